//! FORMAT.md and FORMAT-LAB.md from the doc comments of what is stored.
//!
//! A Rust file under `crates/*/src` or `lab/*/src` whose module documentation has a line `//! FORMAT: <title>` describes bytes that
//! outlive the program. It becomes a section of FORMAT.md: its module documentation, then the documentation of each
//! item that holds a `text` table. So the bytes are described once, beside the code that reads and writes them. What the product
//! stores on flash is one document, in the order in which a reader meets it; rivals and the simulator's files are the other.

use std::fs;
use std::path::Path;

use crate::tree::{HOUSES, Tree};

/// What the product stores on flash.
const PRODUCT: &str = "FORMAT.md";
/// What rivals store, and the files of the simulator.
const LABORATORY: &str = "FORMAT-LAB.md";

/// Beginnings of paths whose bytes are the laboratory's, although some of them stand in a crate of the product.
const LABORATORY_PATHS: [&str; 4] =
    ["lab/", "crates/nandu-sim/", "crates/nandu-media/src/dffs.rs", "crates/nandu-media/src/inpage"];

/// The order of the product's sections, by file: what is on every page, what a mount reads first, the tree, files. A file that is not
/// named comes behind these.
const ORDER: [&str; 20] = [
    "crates/nandu-media/src/header.rs",
    "crates/nandu-media/src/anchor.rs",
    "crates/nandu-media/src/table.rs",
    "crates/nandu-media/src/tree.rs",
    "crates/nandu-media/src/path.rs",
    "crates/nandu-cells/src/",
    "crates/nandu-media/src/journal.rs",
    "crates/nandu-media/src/section.rs",
    "crates/nandu-media/src/notes.rs",
    "crates/nandu-media/src/value.rs",
    "crates/nandu-media/src/snapshots.rs",
    "crates/nandu-media/src/tag.rs",
    "crates/nandu-fs/src/super_block.rs",
    "crates/nandu-fs/src/keys.rs",
    "crates/nandu-fs/src/inode.rs",
    "crates/nandu-fs/src/names.rs",
    "crates/nandu-fs/src/pages.rs",
    "crates/nandu-fs/src/fragments.rs",
    "crates/nandu-fs/src/xattr_records.rs",
    "crates/nandu-fs/src/tags.rs",
];

const BEGIN: &str = "<!-- generated from the sources by `cargo xtask codegen`: begin -->";
const END: &str = "<!-- generated: end -->";
const TITLE: &str = "FORMAT: ";

/// What to do with the document.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Write it.
    Write,
    /// Fail if writing it would change it.
    Check,
}

pub(crate) fn run(root: &Path, action: Action) -> Result<(), String> {
    let tree = Tree::load(root)?;
    for document in [PRODUCT, LABORATORY] {
        let old = tree.text(document).ok_or_else(|| format!("{document} is missing"))?;
        let new = generate(&tree, document, old)?;
        if new == old {
            continue;
        }
        match action {
            Action::Check => return Err(format!("{document} is not what the sources say: run `cargo xtask codegen`")),
            Action::Write => fs::write(root.join(document), new).map_err(|error| format!("{document}: {error}"))?,
        }
    }
    Ok(())
}

/// The document with the part between its markers made anew.
fn generate(tree: &Tree, document: &str, old: &str) -> Result<String, String> {
    let marker = |word: &str| old.find(word).ok_or_else(|| format!("{document} lacks the line {word}"));
    let (begin, end) = (marker(BEGIN)? + BEGIN.len(), marker(END)?);
    if end < begin {
        return Err(format!("{document} has its markers in the wrong order"));
    }
    let mut sources: Vec<(&str, &str)> =
        tree.texts().filter(|(path, _)| is_source(path) && document_of(path) == document).collect();
    sources.sort_by_key(|&(path, _)| (place(path), path));
    let mut sections = String::new();
    for (path, text) in sources {
        if let Some(section) = Section::of(path, text)? {
            sections.push_str(&section.render(path));
        }
    }
    if sections.is_empty() {
        sections.push_str("\nNothing is stored yet.\n");
    }
    Ok(format!("{}\n{sections}\n{}", &old[..begin], &old[end..]))
}

fn is_source(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next().is_some_and(|house| HOUSES.contains(&house)) && parts.nth(1) == Some("src") && path.ends_with(".rs")
}

/// The document that describes the bytes of a source.
fn document_of(path: &str) -> &'static str {
    if LABORATORY_PATHS.iter().any(|begin| path.starts_with(begin)) { LABORATORY } else { PRODUCT }
}

/// Where a source stands in its document.
fn place(path: &str) -> usize {
    ORDER.iter().position(|begin| path.starts_with(begin)).unwrap_or(ORDER.len())
}

/// What one file contributes.
struct Section {
    title: String,
    introduction: Vec<String>,
    /// Name and documentation of each item with a table.
    items: Vec<(String, Vec<String>)>,
}

impl Section {
    fn of(path: &str, text: &str) -> Result<Option<Section>, String> {
        let mut introduction: Vec<String> = text.lines().map_while(module_line).collect();
        let Some(at) = introduction.iter().position(|line| line.starts_with(TITLE)) else { return Ok(None) };
        let title = introduction.remove(at)[TITLE.len()..].trim().to_owned();
        if introduction.get(at).is_some_and(String::is_empty) {
            introduction.remove(at);
        }
        let items = items_with_tables(text);
        if items.is_empty() && !has_table(&introduction) {
            return Err(format!("{path} says `{TITLE}{title}` and holds no ```text table"));
        }
        Ok(Some(Section { title, introduction, items }))
    }

    fn render(&self, path: &str) -> String {
        let mut out = format!("\n## {}\n\nSource: `{path}`.\n", self.title);
        if !self.introduction.is_empty() {
            out.push_str(&format!("\n{}", render_lines(&self.introduction)));
        }
        for (name, lines) in &self.items {
            out.push_str(&format!("\n### {name}\n\n{}", render_lines(lines)));
        }
        out
    }
}

/// A line of module documentation without its marker.
fn module_line(line: &str) -> Option<String> {
    let rest = line.strip_prefix("//!")?;
    Some(rest.strip_prefix(' ').unwrap_or(rest).to_owned())
}

/// The items whose documentation holds a table, by name, in the order of the file.
fn items_with_tables(text: &str) -> Vec<(String, Vec<String>)> {
    let mut items = Vec::new();
    let mut documentation: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(rest) = line.strip_prefix("///") {
            documentation.push(rest.strip_prefix(' ').unwrap_or(rest).to_owned());
        } else if !line.starts_with("#[") {
            let documentation = std::mem::take(&mut documentation);
            if has_table(&documentation) {
                items.push((item_name(line), documentation));
            }
        }
    }
    items
}

fn has_table(lines: &[String]) -> bool {
    lines.iter().any(|line| line.trim() == "```text")
}

/// The name that a line declares: the word after `struct`, `const` and the like, else the first word.
fn item_name(line: &str) -> String {
    let words: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty() && !matches!(*word, "pub" | "crate" | "super" | "in"))
        .collect();
    let declared =
        words.iter().position(|word| matches!(*word, "struct" | "enum" | "const" | "static" | "fn" | "type"));
    let name = match declared {
        Some(at) => words.get(at + 1),
        None => words.first(),
    };
    name.unwrap_or(&"item").to_string()
}

/// Documentation as it reads outside rustdoc: headings below the section's, links to items as plain code.
fn render_lines(lines: &[String]) -> String {
    let mut out = String::new();
    let mut fenced = false;
    for line in lines {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            out.push_str(line);
        } else if line.starts_with('#') {
            out.push_str("###");
            out.push_str(line);
        } else {
            out.push_str(&without_item_links(line));
        }
        out.push('\n');
    }
    out
}

/// Links of rustdoc to items, with and without a path, become plain code; links to the outside stay.
fn without_item_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("[`") {
        let (before, link) = rest.split_at(start);
        out.push_str(before);
        let Some(close) = link.find("`]") else {
            rest = link;
            break;
        };
        let (code, after) = (&link[1..=close], &link[close + 2..]);
        match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((target, _)) if target.contains("://") => {
                let end = close + 2 + target.len() + 2;
                out.push_str(&link[..end]);
                rest = &link[end..];
            }
            Some((_, behind)) => {
                out.push_str(code);
                rest = behind;
            }
            None => {
                out.push_str(code);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
//! The image file.
//!
//! FORMAT: Image file
//!
//! Numbers are little-endian. See [`Header`](crate::Header).
//!
//! # Order
//!
//! Header first.

use x;

/// First bytes of the file.
///
/// ```text
/// offset  size  field
///      0     4  magic
/// ```
#[repr(C)]
pub(crate) struct Header {
    /// No table here.
    magic: [u8; 4],
}

/// Not stored: [`Header`] has it.
pub struct Other;
";

    fn document(inside: &str) -> String {
        format!("# Format\n\n{BEGIN}\n{inside}\n{END}\n\nEnd.\n")
    }

    #[test]
    fn a_marked_source_becomes_a_section_with_its_tables() {
        let tree = Tree::of(&[("crates/a/src/image.rs", SOURCE), ("crates/a/src/lib.rs", "//! Nothing stored.\n")]);
        let expected = document(
            "
## Image file

Source: `crates/a/src/image.rs`.

The image file.

Numbers are little-endian. See `Header`.

#### Order

Header first.

### Header

First bytes of the file.

```text
offset  size  field
     0     4  magic
```
",
        );
        assert_eq!(generate(&tree, PRODUCT, &document("old")).unwrap(), expected);
        assert_eq!(generate(&tree, PRODUCT, &expected).unwrap(), expected);
    }

    #[test]
    fn the_product_stands_in_its_order_and_the_laboratory_apart() {
        let source = |title: &str| format!("//! FORMAT: {title}\n//!\n//! ```text\n//! a\n//! ```\n");
        let files = [
            ("crates/nandu-fs/src/inode.rs", source("Inodes")),
            ("crates/nandu-media/src/anchor.rs", source("Anchor")),
            ("crates/nandu-media/src/header.rs", source("Header")),
            ("crates/nandu-media/src/inpage/node.rs", source("Nodes")),
            ("crates/nandu-sim/src/image.rs", source("Image")),
            ("lab/a/src/b.rs", source("Rival")),
        ];
        let tree = Tree::of(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
        let titles = |name| {
            let text = generate(&tree, name, &document("")).unwrap();
            text.lines().filter_map(|line| line.strip_prefix("## ").map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(titles(PRODUCT), ["Header", "Anchor", "Inodes"]);
        assert_eq!(titles(LABORATORY), ["Nodes", "Image", "Rival"]);
    }

    #[test]
    fn a_mark_alone_gives_its_tables_without_an_introduction() {
        let source = "//! FORMAT: Image\n\n/// ```text\n/// a\n/// ```\nstruct A;\n";
        let text = generate(&Tree::of(&[("crates/a/src/image.rs", source)]), PRODUCT, &document("")).unwrap();
        assert!(text.contains("Source: `crates/a/src/image.rs`.\n\n### A\n"), "{text}");
    }

    #[test]
    fn only_sources_of_crates_count_and_a_mark_without_a_table_is_refused() {
        let tests = Tree::of(&[("crates/a/tests/it/image.rs", SOURCE), ("xtask/src/image.rs", SOURCE)]);
        assert!(generate(&tests, PRODUCT, &document("")).unwrap().contains("Nothing is stored yet."));
        let empty = Tree::of(&[("crates/a/src/image.rs", "//! FORMAT: Image\n")]);
        assert!(generate(&empty, PRODUCT, &document("")).unwrap_err().contains("holds no ```text table"));
    }

    #[test]
    fn a_document_without_its_markers_is_refused() {
        let tree = Tree::of(&[("crates/a/src/image.rs", SOURCE)]);
        assert!(generate(&tree, PRODUCT, "# Format\n").is_err());
        assert!(generate(&tree, PRODUCT, &format!("{END}\n{BEGIN}\n")).is_err());
    }

    #[test]
    fn links_to_items_become_code_and_links_to_the_outside_stay() {
        assert_eq!(without_item_links("a [`B`] c [`D`](e::F) g"), "a `B` c `D` g");
        assert_eq!(without_item_links("a [`B`](https://c.d) e [f](g)"), "a [`B`](https://c.d) e [f](g)");
    }
}
