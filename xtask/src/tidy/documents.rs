//! Files named in the documents exist, and so does what links say is in them; what is to be read first is short.

use super::Finding;
use crate::tree::Tree;

/// Endings by which a word in a document is taken for a file of the repository.
const ENDINGS: [&str; 5] = [".md", ".rs", ".toml", ".sh", ".yml"];

/// How long the front page may be, in lines.
const FRONT_PAGE: &str = "README.md";
const FRONT_PAGE_LINES_MAX: usize = 150;

/// How long the design may be in all, in words: its index page and its chapters.
const DESIGN_WORDS_MAX: usize = 6_600;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    check_lengths(tree, findings);
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut fenced = false;
        for (index, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if fenced {
                continue;
            }
            for name in code_spans(line).into_iter().filter(|name| is_file_name(tree, name)) {
                if !exists(tree, folder, name) {
                    findings.push(Finding::new(path, index + 1, format!("`{name}` does not exist")));
                }
            }
            for (words, target) in links(line) {
                let (target, anchor) = target.split_once('#').unwrap_or((target, ""));
                let outside = target.contains("://") || target.starts_with("mailto:");
                if outside {
                    continue;
                }
                let target_path = if target.is_empty() { path.to_owned() } else { joined(folder, target) };
                if !anchor.is_empty()
                    && tree.text(&target_path).is_some_and(|text| !anchors(text).any(|it| it == anchor))
                {
                    findings.push(Finding::new(
                        path,
                        index + 1,
                        format!("there is no heading #{anchor} in {target_path}"),
                    ));
                }
                if !tree.contains(&target_path) {
                    findings.push(Finding::new(path, index + 1, format!("the link to {target} leads nowhere")));
                } else if let Some(word) = missing_word(tree, words, &target_path) {
                    findings.push(Finding::new(path, index + 1, format!("there is no `{word}` in {target}")));
                }
            }
        }
    }
}

/// What a newcomer has to read is short, and stays so.
fn check_lengths(tree: &Tree, findings: &mut Vec<Finding>) {
    let lines = tree.text(FRONT_PAGE).map_or(0, |text| text.lines().count());
    if lines > FRONT_PAGE_LINES_MAX {
        let text = format!("the front page has {lines} lines, and {FRONT_PAGE_LINES_MAX} are enough");
        findings.push(Finding::new(FRONT_PAGE, 0, text));
    }
    let is_chapter = |path: &str| path == "DESIGN.md" || (path.starts_with("docs/design/") && path.ends_with(".md"));
    let chapters = tree.texts().filter(|&(path, _)| is_chapter(path));
    let words: usize = chapters.map(|(_, text)| text.split_whitespace().count()).sum();
    if words > DESIGN_WORDS_MAX {
        let text = format!("the design has {words} words with its chapters, and {DESIGN_WORDS_MAX} are enough");
        findings.push(Finding::new("DESIGN.md", 0, text));
    }
}

/// What stands between single backticks.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Text and target of each `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices("](").filter_map(|(at, _)| {
        let text = line.get(..at)?.rsplit_once('[')?.1;
        let target = line.get(at + 2..)?.split_once(')')?.0;
        Some((text, target))
    })
}

/// The names by which links reach the headings of a document, as the sites that show Markdown make them. Of headings with the same text
/// only the first has one here.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        let is_heading = !fenced && heading.len() < line.len() && heading.starts_with(' ');
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let name = |c: char| if c == ' ' { '-' } else { c.to_ascii_lowercase() };
        is_heading.then(|| heading.trim().chars().filter(kept).map(name).collect())
    })
}

/// What a link to a source file calls by its name, as a table of tests does, and what is neither there nor the file itself.
fn missing_word<'a>(tree: &Tree, words: &'a str, path: &str) -> Option<&'a str> {
    let word = words.strip_prefix('`')?.strip_suffix('`')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let stem = path.strip_suffix(".rs")?.rsplit('/').next()?;
    if word == stem || !word.bytes().all(is_plain) {
        return None;
    }
    let text = tree.text(path)?;
    let is_there = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|found| found == word);
    (!is_there).then_some(word)
}

/// Whether a code span is meant as a file or folder of the repository.
fn is_file_name(tree: &Tree, span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    if span.is_empty() || !span.chars().all(plain) {
        return false;
    }
    if ENDINGS.iter().any(|ending| span.strip_suffix(ending).is_some_and(|stem| !stem.is_empty())) {
        return true;
    }
    // `read/program` is no path; `crates/nandu-nand` is, since there is such a folder at the root.
    span.split_once('/').is_some_and(|(first, _)| !first.is_empty() && tree.contains(&format!("{first}/")))
}

/// Whether the file exists beside the document or at the root; a bare name may lie anywhere, since prose says
/// "`geometry.rs` of that crate".
fn exists(tree: &Tree, folder: &str, name: &str) -> bool {
    let anywhere = |name: &str| tree.files().any(|(path, _)| path.rsplit('/').next() == Some(name));
    tree.contains(&joined(folder, name)) || tree.contains(name) || (!name.contains('/') && anywhere(name))
}

/// A path seen from a folder, without `.` and `..`.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(document: &str) -> Vec<String> {
        let mut findings = Vec::new();
        let source = ("crates/a/src/gc.rs", "fn collects() {}");
        let tree = Tree::of(&[("crates/a/README.md", document), source, ("STYLE.md", "# Style\n## Words\n")]);
        check(&tree, &mut findings);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn names_of_files_that_do_not_exist_are_found() {
        assert_eq!(findings("`src/gone.rs`"), ["`src/gone.rs` does not exist"]);
        assert_eq!(findings("`gone.rs` and `crates/b`"), ["`gone.rs` does not exist", "`crates/b` does not exist"]);
        assert_eq!(findings("[text](../b/README.md)"), ["the link to ../b/README.md leads nowhere"]);
    }

    #[test]
    fn links_to_headings_that_do_not_exist_are_found() {
        let document = "# The heart, made `small`\n[a](#the-heart-made-small) [b](#soul)\n```sh\n# no heading\n```\n[c](#no-heading)\n";
        assert_eq!(
            findings(document),
            [
                "there is no heading #soul in crates/a/README.md",
                "there is no heading #no-heading in crates/a/README.md"
            ]
        );
    }

    #[test]
    fn a_front_page_that_is_too_long_is_found() {
        let found = |lines: usize| {
            let mut findings = Vec::new();
            check(&Tree::of(&[("README.md", &"line\n".repeat(lines))]), &mut findings);
            findings.len()
        };
        assert_eq!((found(FRONT_PAGE_LINES_MAX), found(FRONT_PAGE_LINES_MAX + 1)), (0, 1));
    }

    #[test]
    fn a_design_that_is_too_long_with_its_chapters_is_found() {
        let found = |words: usize| {
            let chapter = "word ".repeat(words);
            let mut findings = Vec::new();
            let tree =
                Tree::of(&[("DESIGN.md", "one two"), ("docs/design/01-heart.md", &chapter), ("README.md", "three")]);
            check(&tree, &mut findings);
            findings.len()
        };
        assert_eq!((found(DESIGN_WORDS_MAX - 2), found(DESIGN_WORDS_MAX - 1)), (0, 1));
    }

    #[test]
    fn a_link_that_names_what_its_file_does_not_have_is_found() {
        assert!(findings("[`collects`](src/gc.rs), [`gc`](src/gc.rs) and [`gc.rs`](src/gc.rs)").is_empty());
        assert_eq!(findings("[`collect`](src/gc.rs)"), ["there is no `collect` in src/gc.rs"]);
    }

    #[test]
    fn names_of_files_that_exist_and_other_words_are_left_alone() {
        let document = "`src/gc.rs`, `crates/a/src/`, `gc.rs`, `STYLE.md`, [style](../../STYLE.md#words)\n\
                        `read/program`, `Nand::read`, `c.nand`, `*.md`, `crates/*`, [out](https://example.org/x.md)\n\
                        ```sh\ncat `missing.rs` missing.md\n```\n";
        assert!(findings(document).is_empty(), "{:?}", findings(document));
    }
}
