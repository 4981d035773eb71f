//! A component is a struct with private fields, whose methods stand in one file, and which asserts what it relies on.
//!
//! Files are not components: a struct whose methods stand in many files is one hall with many doors. In the crates of this table each struct
//! has its methods in one file, no more than 12 fields but for counters that are told, and private ones if a method changes them. The crates assert something in at
//! least 20 of 1,000 lines, and have no more lines than they were given.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

struct House {
    name: &'static str,
    /// Most lines with comments, without unit tests.
    lines_max: usize,
}

const HOUSES: [House; 2] =
    [House { name: "nandu-log", lines_max: 7670 }, House { name: "nandu-tree", lines_max: 11500 }];

/// Fewest assertions in 1,000 lines.
const ASSERTIONS_MIN: usize = 20;

/// Most fields of a struct.
const FIELDS_MAX: usize = 12;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for house in &HOUSES {
        check_house(tree, house, findings);
    }
}

/// What is known of a struct.
#[derive(Default)]
struct Component<'a> {
    declared: Option<(&'a str, usize)>,
    fields: usize,
    open_fields: usize,
    open_field: Option<usize>,
    methods_in: Vec<&'a str>,
    changes: bool,
}

fn check_house(tree: &Tree, house: &House, findings: &mut Vec<Finding>) {
    let folder = format!("crates/{}/src/", house.name);
    let mut components: BTreeMap<String, Component<'_>> = BTreeMap::new();
    let (mut lines, mut assertions) = (0, 0);
    for (path, text) in tree.texts().filter(|(path, _)| path.starts_with(&folder) && path.ends_with(".rs")) {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        lines += text.lines().count();
        let is_assertion = |line: &&str| {
            let code = line.split("//").next().unwrap_or_default();
            ["assert!(", "assert_eq!(", "assert_ne!("].iter().any(|name| code.contains(name))
        };
        assertions += text.lines().filter(is_assertion).count();
        read_components(path, text, &mut components);
    }
    let root = format!("{folder}lib.rs");
    if lines > house.lines_max {
        findings.push(Finding::new(&root, 0, format!("the crate has {lines} lines, {} at most", house.lines_max)));
    }
    if assertions * 1000 < ASSERTIONS_MIN * lines {
        findings.push(Finding::new(&root, 0, format!("{assertions} assertions in {lines} lines are too few")));
    }
    for (name, component) in components {
        let Some((path, line)) = component.declared else { continue };
        // What is only told, and that to everybody, is no component.
        let is_told = component.open_fields == component.fields && !component.changes;
        if component.fields > FIELDS_MAX && !is_told {
            let text = format!("`{name}` has {} fields, {FIELDS_MAX} at most", component.fields);
            findings.push(Finding::new(path, line, text));
        }
        if component.methods_in.len() > 1 {
            let text = format!("`{name}` has methods in {}", component.methods_in.join(" and "));
            findings.push(Finding::new(path, line, text));
        }
        if let Some(field) = component.open_field.filter(|_| component.changes) {
            findings.push(Finding::new(path, field, format!("`{name}` changes itself, so its fields are private")));
        }
    }
}

/// Finds the structs of a source and where their methods stand.
fn read_components<'a>(path: &'a str, text: &'a str, components: &mut BTreeMap<String, Component<'a>>) {
    let mut in_struct: Option<String> = None;
    let mut in_impl: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let item = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
        if let Some(rest) = item.strip_prefix("struct ") {
            let name = first_word(rest).to_owned();
            components.entry(name.clone()).or_default().declared = Some((path, index + 1));
            in_struct = line.ends_with('{').then_some(name);
        } else if let Some(rest) = line.strip_prefix("impl").filter(|_| !line.contains(" for ")) {
            let name = first_word(behind_generics(rest)).to_owned();
            let component = components.entry(name.clone()).or_default();
            if !component.methods_in.contains(&path) {
                component.methods_in.push(path);
            }
            in_impl = Some(name);
        } else if line.starts_with('}') {
            (in_struct, in_impl) = (None, None);
        } else if let Some(name) = &in_struct {
            let field = line.strip_prefix("    ").filter(|field| field.starts_with(|c: char| c.is_alphabetic()));
            if let Some(field) = field.filter(|field| field.contains(": "))
                && let Some(component) = components.get_mut(name)
            {
                component.fields += 1;
                if field.starts_with("pub ") {
                    component.open_fields += 1;
                }
                if field.starts_with("pub") {
                    component.open_field.get_or_insert(index + 1);
                }
            }
        } else if let Some(name) = &in_impl {
            let is_method = line.starts_with("    ") && line.contains("fn ");
            if (is_method || line.starts_with("        "))
                && line.contains("&mut self")
                && let Some(component) = components.get_mut(name)
            {
                component.changes = true;
            }
        }
    }
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// What follows the parameters of an `impl`.
fn behind_generics(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let tree = Tree::of(files);
        let mut findings = Vec::new();
        check_house(&tree, &House { name: "nandu-a", lines_max: 50 }, &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    const SOUND: &str = "pub(crate) struct A<'m> {\n    field: &'m u8,\n}\n\nimpl<'m> A<'m> {\n    fn change(&mut self) {\n        assert!(true);\n    }\n}\n";

    #[test]
    fn methods_in_one_file_and_private_fields_are_sound() {
        assert!(findings(&[("crates/nandu-a/src/a.rs", SOUND)]).is_empty());
        let record = "pub(crate) struct R {\n    pub(crate) field: u8,\n}\nimpl R {\n    fn ask(&self) {}\n}\n";
        assert!(findings(&[("crates/nandu-a/src/a.rs", SOUND), ("crates/nandu-a/src/r.rs", record)]).is_empty());
    }

    #[test]
    fn methods_in_two_files_are_found() {
        let other = "use crate::a::A;\n\nimpl A<'_> {\n    fn other(&self) {}\n}\n";
        let found = findings(&[("crates/nandu-a/src/a.rs", SOUND), ("crates/nandu-a/src/b.rs", other)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("methods in"), "{found:?}");
    }

    #[test]
    fn an_open_field_of_what_changes_itself_is_found() {
        let open = SOUND.replace("    field", "    pub(crate) field");
        let found = findings(&[("crates/nandu-a/src/a.rs", &open)]);
        assert_eq!(found, ["crates/nandu-a/src/a.rs:2: `A` changes itself, so its fields are private"]);
    }

    #[test]
    fn too_many_fields_too_many_lines_and_too_few_assertions_are_found() {
        let fields: String = (0..=FIELDS_MAX).map(|field| format!("    field_{field}: u8,\n")).collect();
        let wide = format!("struct Wide {{\n{fields}}}\nfn f() {{\n    assert!(true);\n}}\n");
        assert_eq!(findings(&[("crates/nandu-a/src/a.rs", &wide)]).len(), 1);
        let long = "fn f() {}\n".repeat(51);
        assert_eq!(findings(&[("crates/nandu-a/src/a.rs", &long)]).len(), 2);
    }
}
