//! Modules of a crate stand on floors: one uses what lies on floors below its own, so that there is no circle.
//!
//! A struct whose methods stand in several files would hide a circle, since a method is called without an import. So a call of a method
//! that one other file declares for it counts as a use of that file. What the crate's root passes on counts as what it is, and the files
//! of a folder are one module.
//!
//! A struct that others hold has few fields and a trait few methods, but for those of which the table says why.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

struct House {
    name: &'static str,
    /// The struct whose methods stand in several files, and what a value of it is called in them.
    shared: &'static str,
    called: &'static [&'static str],
    /// Modules, from the ground up.
    floors: &'static [&'static [&'static str]],
    /// Structs and traits that are larger, and why they are.
    large: &'static [(&'static str, &'static str)],
}

/// Most fields of a struct, and most methods of a trait.
const FIELDS_MAX: usize = 12;
const METHODS_MAX: usize = 15;

/// In such a folder stands what is compiled in place of modules of the same names.
const STUBS: &str = "without/";

const HOUSES: [House; 5] = [LOG, TREE, FILE_SYSTEM, STORE, FILES];

const STORE: House = House {
    name: "nandu",
    shared: "Store",
    called: &["self.", "store.", "Self::", "Store::"],
    floors: &[
        &["error", "fixed", "options", "verify"],
        &["at"],
        &["store"],
        &["digest"],
        &["delete_range", "map", "writer"],
    ],
    large: &[],
};

const FILES: House = House {
    name: "nandu-files",
    shared: "-",
    called: &[],
    floors: &[&["errno", "kind", "requests", "time"], &["attributes", "capabilities"], &["error"], &["file_system"]],
    large: &[
        ("FileSystem", "what POSIX asks of any file system; a mount and a suite call all of it on several of them"),
        ("Capabilities", "what a file system may lack, a field each, told once"),
        ("Stat", "what POSIX has in it"),
    ],
};

const FILE_SYSTEM: House = House {
    name: "nandu-fs",
    shared: "Fs",
    called: &["self.", "fs.", "Self::", "Fs::"],
    floors: &[
        // What is told, what stands in records, and what the file system holds of each concern.
        &["below", "keys", "open_files"],
        &["error"],
        &["fragments", "inode", "placing", "tag"],
        &["tagging"],
        &["page_records"],
        &["batch"],
        &["write_buffer"],
        &["options"],
        &["fs"],
        // What reads records, and what removes them.
        &["place", "regions", "room", "walk"],
        &["xattr_records"],
        &["names", "orphans"],
        // What changes records, and pages.
        &["commit", "pages", "paths", "space"],
        &["tags"],
        &["put_page"],
        &["flush"],
        &["background", "super_block", "sync", "truncation"],
        // The calls.
        &["attributes", "holes", "mount"],
        &["files", "snapshots", "xattrs"],
        &["create"],
        &["check", "links"],
        &["digest", "file", "file_system", "rename"],
        &["file_on"],
    ],
    large: &[],
};

const LOG: House = House {
    name: "nandu-log",
    shared: "-",
    called: &[],
    floors: &[
        &["dying", "error", "heads", "options", "order", "partners", "reserve"],
        &["ready", "shape"],
        // The chip, and what is known of blocks.
        &["blocks", "chip", "tail"],
        &["disturb", "medium", "stats"],
        &["anchors", "collector", "gap", "raw", "search"],
        &["pairs", "parts", "roll", "room", "survivors"],
        &["classify", "grant", "pace", "victims"],
        &["volume"],
        &["choice", "format", "recover", "step", "twice", "verify"],
        &["mount"],
        &["log"],
    ],
    large: &[("LogStats", "counters that are told")],
};

const TREE: House = House {
    name: "nandu-tree",
    shared: "-",
    called: &[],
    floors: &[
        &["debt", "division", "reserved", "unsettled"],
        &["copies"],
        &["edits"],
        // What is told, and what a tree is made of.
        &["changes", "cursor", "error", "numbers", "options", "order", "pages", "slots", "splice", "stats"],
        &["shape", "values", "window"],
        // The path, what is read, who may append, and what a commit lists.
        &["check", "list", "path", "reader", "writer"],
        &["fit", "tree"],
        &["commit", "descend"],
        &["replay", "siblings"],
        &["large"],
        // What changes nodes, and what walks over them.
        &["range", "relocate", "settling", "split", "verify", "walk"],
        &["vanish"],
        &["edit"],
        &["batch", "keeper"],
        &["growth", "standing", "under_way"],
        // Changes at once, and changes that wait.
        &["lookup", "now", "sync"],
        &["graft", "idle", "make", "prune"],
        // Snapshots.
        &["keep", "snapshots"],
        &["at", "blobs", "parts", "tags"],
        &["engine"],
    ],
    large: &[],
};

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for house in &HOUSES {
        check_house(tree, house, findings);
    }
}

fn check_house(tree: &Tree, house: &House, findings: &mut Vec<Finding>) {
    let floor = |module: &str| house.floors.iter().position(|floor| floor.contains(&module));
    let folder = format!("crates/{}/src/", house.name);
    for (path, text) in tree.texts().filter(|(path, _)| path.starts_with(&folder)) {
        let Some(module) = path.strip_prefix(&folder).and_then(module_of).filter(|&module| module != "lib") else {
            continue;
        };
        check_sizes(path, &product(text), house, findings);
        if floor(module).is_none() {
            findings.push(Finding::new(path, 0, "the module has no floor in xtask/src/tidy/floors.rs"));
        }
    }
    for Use { path, line, module, used } in uses(tree, house.name, house.shared, house.called) {
        let Some(own) = floor(&module) else { continue };
        if floor(&used).is_some_and(|below| below >= own) {
            let text = format!("`{module}` uses `{used}`, which is on no floor below it");
            findings.push(Finding::new(&path, line, text));
        }
    }
}

/// A place where a module uses another one of its crate.
struct Use {
    path: String,
    line: usize,
    module: String,
    used: String,
}

/// Every use of another module of the crate.
fn uses(tree: &Tree, name: &str, shared: &str, called: &[&str]) -> Vec<Use> {
    let folder = format!("crates/{name}/src/");
    let root = tree.text(&format!("{folder}lib.rs")).unwrap_or_default();
    let passed_on = passed_on(root);
    // Path, module and source.
    let sources: Vec<(&str, &str, String)> = tree
        .texts()
        .filter_map(|(path, text)| Some((path, module_of(path.strip_prefix(&folder)?)?, product(text))))
        .filter(|&(_, module, _)| module != "lib")
        .collect();
    // Methods by the modules that declare them.
    let mut methods: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, module, text) in &sources {
        for method in methods_of(text, shared) {
            let modules = methods.entry(method).or_default();
            if !modules.contains(module) {
                modules.push(module);
            }
        }
    }
    let mut found = Vec::new();
    for (path, module, text) in &sources {
        let mut uses: Vec<(usize, &str)> = grouped_uses(text);
        for (index, line) in text.lines().enumerate() {
            let calls = called.iter().flat_map(|called| {
                // A field may have the name of a method.
                words_behind(line, called).filter(move |method| line.contains(&format!("{called}{method}(")))
            });
            let declared = calls.filter_map(|method| match methods.get(method).map(Vec::as_slice) {
                Some([other]) if !text.contains(&format!("fn {method}(")) => Some(*other),
                _ => None,
            });
            uses.extend(words_behind(line, "crate::").chain(declared).map(|used| (index, used)));
        }
        for (index, used) in uses {
            let used = passed_on.get(used).copied().unwrap_or(used);
            if used != *module && sources.iter().any(|(_, other, _)| *other == used) {
                let [path, module, used] = [*path, *module, used].map(str::to_owned);
                found.push(Use { path, line: index + 1, module, used });
            }
        }
    }
    found
}

/// The module that a file belongs to, by its path in the sources of a crate.
fn module_of(path: &str) -> Option<&str> {
    let path = path.strip_suffix(".rs")?;
    path.strip_prefix(STUBS).unwrap_or(path).split('/').next()
}

/// What the root of a crate passes on of its modules, and of which.
fn passed_on(root: &str) -> BTreeMap<&str, &str> {
    let statements =
        root.match_indices("pub use ").filter_map(|(at, start)| root[at + start.len()..].split(';').next());
    let parts = statements.filter_map(|statement| statement.split_once("::"));
    parts.flat_map(|(module, names)| words(names).map(move |name| (name, module))).collect()
}

/// What is imported together from the crate's root, with the lines where that begins.
fn grouped_uses(text: &str) -> Vec<(usize, &str)> {
    let groups = text.match_indices("use crate::{").filter_map(|(at, start)| {
        let line = text[..at].matches('\n').count();
        Some((line, text[at + start.len()..].split("};").next()?))
    });
    groups.flat_map(|(line, names)| words(names).map(move |name| (line, name))).collect()
}

/// Finds structs with too many fields and traits with too many methods.
fn check_sizes(path: &str, text: &str, house: &House, findings: &mut Vec<Finding>) {
    let mut open: Option<(usize, &str, usize)> = None;
    let mut count = 0;
    for (index, line) in text.lines().enumerate() {
        let item = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        let name = |kind: &str| item.strip_prefix(kind).and_then(|rest| words(rest).next());
        let (is_struct, is_trait) = (name("struct "), name("trait "));
        if let Some(name) = is_struct.or(is_trait).filter(|_| line.ends_with('{')) {
            open = Some((index, name, if is_struct.is_some() { FIELDS_MAX } else { METHODS_MAX }));
            count = 0;
        } else if let Some((start, name, max)) = open {
            let inner = line.strip_prefix("    ").filter(|inner| inner.starts_with(|c: char| c.is_alphabetic()));
            let is_method = inner.is_some_and(|inner| inner.starts_with("fn "));
            let is_field = inner.is_some_and(|inner| inner.contains(": "));
            count += usize::from(if max == METHODS_MAX { is_method } else { is_field });
            if line.starts_with('}') {
                if count > max && !house.large.iter().any(|&(large, _)| large == name) {
                    findings.push(Finding::new(path, start + 1, format!("`{name}` has {count} parts, {max} at most")));
                }
                open = None;
            }
        }
    }
}

/// The identifiers in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// A source without its comments and unit tests.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| format!("{}\n", line.split("//").next().unwrap_or_default())).collect()
}

/// The methods that a source declares for a struct.
fn methods_of<'a>(text: &'a str, shared: &str) -> Vec<&'a str> {
    let mut is_inside = false;
    let mut methods = Vec::new();
    for line in text.lines() {
        if line.starts_with("impl") {
            is_inside = line.contains(&format!(" {shared}<")) && !line.contains(" for ");
        } else if line.starts_with('}') {
            is_inside = false;
        } else if is_inside && line.starts_with("    ") && !line.starts_with("     ") {
            methods.extend(words_behind(line, "fn "));
        }
    }
    methods
}

/// The identifiers that follow a text in a line.
fn words_behind<'a>(line: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(before).filter_map(move |(at, _)| {
        let is_whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = &line[at + before.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        (is_whole && end > 0).then_some(&rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: House = House {
        name: "nandu-a",
        shared: "A",
        called: &["self."],
        floors: &[&["parts"], &["a"], &["low"], &["high", "beside"]],
        large: &[("Large", "for the test")],
    };

    fn findings(low: &str, beside: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/nandu-a/src/lib.rs", "mod a;\npub use high::{\n    High,\n};\n"),
            ("crates/nandu-a/src/parts.rs", "pub struct Part;\n"),
            ("crates/nandu-a/src/a.rs", "use crate::parts::Part;\n"),
            ("crates/nandu-a/src/low.rs", low),
            (
                "crates/nandu-a/src/high.rs",
                "use crate::a::A;\nimpl A<'_> {\n    pub fn climb(&self) {\n        self.fall();\n    }\n}\n",
            ),
            ("crates/nandu-a/src/beside.rs", beside),
        ]);
        let mut findings = Vec::new();
        check_house(&tree, &HOUSE, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    const FALL: &str = "use crate::a::A;\nimpl A<'_> {\n    fn fall(&self) {}\n}\n";

    #[test]
    fn a_module_uses_what_is_below_it() {
        assert!(findings(FALL, "use crate::low::X;\n").is_empty());
        let tested = format!("{FALL}#[cfg(test)]\nmod tests {{\n    use crate::high::X;\n}}\n");
        assert!(findings(&tested, "// crate::high::X\n").is_empty());
    }

    #[test]
    fn an_import_or_a_call_upwards_or_beside_is_found() {
        let upwards = "crates/nandu-a/src/low.rs:4: `low` uses `high`, which is on no floor below it";
        assert_eq!(
            findings("use crate::a::A;\nimpl A<'_> {\n    fn fall(&self) {\n        self.climb();\n    }\n}\n", "")
                .len(),
            1
        );
        assert_eq!(findings(&format!("{}use crate::high::X;\n", "\n".repeat(3)), ""), [upwards]);
        assert_eq!(findings(FALL, "use crate::high::X;\n").len(), 1);
    }

    #[test]
    fn what_the_root_passes_on_and_what_a_folder_or_a_stub_holds_is_of_a_module() {
        assert_eq!(findings("use crate::High;\n", "").len(), 1);
        assert_eq!(findings("use crate::{\n    High, Other,\n};\n", "").len(), 1);
        assert!(findings("use crate::Other;\n", "").is_empty());
        assert_eq!(module_of("high/inner/deep.rs"), Some("high"));
        assert_eq!(module_of("without/high.rs"), Some("high"));
    }

    #[test]
    fn a_struct_or_a_trait_with_too_much_in_it_is_found_but_for_the_named_ones() {
        let wide = |name: &str, count: usize| {
            let fields: String = (0..count).map(|field| format!("    pub field_{field}: u8,\n")).collect();
            format!("pub struct {name} {{\n{fields}}}\n")
        };
        assert!(findings(&wide("Small", FIELDS_MAX), "").is_empty());
        assert_eq!(findings(&wide("Wide", FIELDS_MAX + 1), "").len(), 1);
        assert!(findings(&wide("Large", FIELDS_MAX + 1), "").is_empty());
        let methods = "    fn method(&self);\n".repeat(METHODS_MAX + 1);
        assert_eq!(findings(&format!("pub trait Wide {{\n{methods}}}\n"), "").len(), 1);
    }

    #[test]
    fn a_module_that_nobody_placed_is_found() {
        let tree = Tree::of(&[("crates/nandu-a/src/utils.rs", "")]);
        let mut findings = Vec::new();
        check_house(&tree, &HOUSE, &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
