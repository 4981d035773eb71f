//! Modules of a crate stand on floors: one uses what lies on floors below its own, so that there is no circle.
//!
//! A struct whose methods stand in several files would hide a circle, since a method is called without an import. So a call of a method
//! that one other file declares for it counts as a use of that file.

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
}

const HOUSES: [House; 1] = [House {
    name: "nandu-log",
    shared: "Log",
    called: &["self.", "log.", "search.", "Self::", "Log::"],
    floors: &[
        // What is told and asked, and what the log holds of each concern.
        &[
            "anchors",
            "collector",
            "compiled",
            "error",
            "found",
            "losses",
            "options",
            "placement",
            "runs",
            "sampler",
            "slots",
            "stats",
            "tail",
        ],
        &["shape"],
        &["block_table", "ready"],
        &["memory"],
        &["log"],
        // Questions that flash is not asked for.
        &["disturb", "heads", "room", "streams", "wear"],
        &["access", "liveness", "pairs", "report", "victims"],
        // What reads only.
        &["read", "retire", "roll_forward", "search", "verify"],
        // What programs and erases.
        &["checkpoint"],
        &["choice", "tags"],
        &["frontier"],
        &["bare", "gc", "recovery"],
        &["mount"],
        &["format"],
    ],
}];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for house in &HOUSES {
        check_house(tree, house, findings);
    }
}

fn check_house(tree: &Tree, house: &House, findings: &mut Vec<Finding>) {
    let folder = format!("crates/{}/src/", house.name);
    let module = |path: &str| path.strip_prefix(&folder).and_then(|path| path.strip_suffix(".rs")).map(str::to_owned);
    let modules: BTreeMap<String, String> = tree
        .texts()
        .filter_map(|(path, text)| Some((module(path)?, product(text))))
        .filter(|(module, _)| module != "lib" && !module.contains('/'))
        .collect();
    let floor = |module: &str| house.floors.iter().position(|floor| floor.contains(&module));
    // Methods by the files that declare them.
    let mut methods: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (module, text) in &modules {
        for method in methods_of(text, house.shared) {
            methods.entry(method).or_default().push(module);
        }
    }
    for (module, text) in &modules {
        let path = format!("{folder}{module}.rs");
        let Some(own) = floor(module) else {
            findings.push(Finding::new(&path, 0, "the module has no floor in xtask/src/tidy/floors.rs"));
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            // A field may have the name of a method.
            let is_called = |method: &&str| line.contains(&format!("{method}("));
            let calls = house.called.iter().flat_map(|called| words_behind(line, called)).filter(is_called);
            let declared = calls.filter_map(|method| match methods.get(method).map(Vec::as_slice) {
                Some([other]) if !text.contains(&format!("fn {method}(")) => Some(*other),
                _ => None,
            });
            for used in words_behind(line, "crate::").chain(declared).filter(|used| used != module) {
                if floor(used).is_some_and(|below| below >= own) {
                    let text = format!("`{module}` uses `{used}`, which is on no floor below it");
                    findings.push(Finding::new(&path, index + 1, text));
                }
            }
        }
    }
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
    };

    fn findings(low: &str, beside: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/nandu-a/src/lib.rs", "mod a;\n"),
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
    fn a_module_that_nobody_placed_is_found() {
        let tree = Tree::of(&[("crates/nandu-a/src/utils.rs", "")]);
        let mut findings = Vec::new();
        check_house(&tree, &HOUSE, &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
