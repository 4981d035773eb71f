//! The page of counts: how often what was tried, in rows that the runs wrote and nobody else.
//!
//! A campaign appends a line to the file that `NANDU_COUNTS` names (`nandu_suite::counts`). `counts FILE` adds the lines of such files to `docs/counts.tsv`, with the commit that they were run at, and makes the table of
//! `docs/counts.md` anew. Shares of one campaign are summed; a campaign that was run again replaces what it said before.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The rows.
const DATA: &str = "docs/counts.tsv";
/// The page.
const PAGE: &str = "docs/counts.md";

const BEGIN: &str = "<!-- from docs/counts.tsv by `cargo xtask counts`: begin -->";
const END: &str = "<!-- counts: end -->";

/// What a campaign tried, by what held and what it was tried on.
type Rows = BTreeMap<(String, String), Row>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    against: String,
    command: String,
    /// How often, and of what.
    counts: Vec<(u64, String)>,
    /// Commit and day.
    at: String,
}

/// Adds the lines of these files; without files, says whether the page is what the rows say.
pub(crate) fn run(root: &Path, files: &[&str]) -> Result<(), String> {
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let (data, page) = (root.join(DATA), root.join(PAGE));
    let mut rows = parse(&read(&data)?, None)?;
    let old = read(&page)?;
    if !files.is_empty() {
        let (at, mut new) = (commit(root)?, String::new());
        for file in files {
            new.push_str(&read(&root.join(file))?);
        }
        rows.extend(parse(&new, Some(&at))?);
        fs::write(&data, to_lines(&rows)).map_err(|error| format!("{DATA}: {error}"))?;
    }
    let new = with_table(&old, &rows)?;
    if files.is_empty() && new != old {
        return Err(format!("{PAGE} is not what {DATA} says"));
    }
    fs::write(&page, new).map_err(|error| format!("{PAGE}: {error}"))
}

/// The newest commit and its day. Counts are of a commit, so nothing may be changed beside it.
fn commit(root: &Path) -> Result<String, String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output();
        let output = output.map_err(|error| format!("git: {error}"))?;
        String::from_utf8(output.stdout).map(|text| text.trim().to_owned()).map_err(|error| format!("git: {error}"))
    };
    let changed = git(&["status", "--porcelain", "--", "crates", "lab"])?;
    if !changed.is_empty() {
        return Err(format!("counts are of a commit, and these files differ from it:\n{changed}"));
    }
    git(&["show", "--no-patch", "--abbrev=8", "--format=%h, %cs", "HEAD"])
}

/// Rows of lines of five words, or of six with where they were run.
fn parse(text: &str, at: Option<&str>) -> Result<Rows, String> {
    let mut rows = Rows::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let (words, at) = match (words.as_slice(), at) {
            ([words @ .., at], None) => (words, *at),
            (words, Some(at)) => (words, at),
            _ => (&[][..], ""),
        };
        let &[promise, what, against, command, counts] = words else {
            return Err(format!("this is no line of a campaign: {line}"));
        };
        let counts = counts.split(", ").map(count).collect::<Option<Vec<_>>>();
        let counts = counts.ok_or_else(|| format!("these are no counts: {line}"))?;
        let row = Row { against: against.to_owned(), command: command.to_owned(), counts, at: at.to_owned() };
        let key = (promise.to_owned(), what.to_owned());
        match rows.get_mut(&key) {
            Some(share) => add(&mut share.counts, row.counts),
            None => drop(rows.insert(key, row)),
        }
    }
    Ok(rows)
}

fn count(words: &str) -> Option<(u64, String)> {
    let (number, unit) = words.split_once(' ')?;
    Some((number.parse().ok()?, unit.to_owned()))
}

/// Another share of a campaign.
fn add(counts: &mut Vec<(u64, String)>, share: Vec<(u64, String)>) {
    for (number, unit) in share {
        match counts.iter_mut().find(|(_, other)| *other == unit) {
            Some((sum, _)) => *sum += number,
            None => counts.push((number, unit)),
        }
    }
}

fn to_lines(rows: &Rows) -> String {
    let line = |((promise, what), row): (&(String, String), &Row)| {
        let counts: Vec<_> = row.counts.iter().map(|(number, unit)| format!("{number} {unit}")).collect();
        format!("{promise}\t{what}\t{}\t{}\t{}\t{}\n", row.against, row.command, counts.join(", "), row.at)
    };
    rows.iter().map(line).collect()
}

/// The page with its tables made anew, one for each promise.
fn with_table(page: &str, rows: &Rows) -> Result<String, String> {
    let place = |marker: &str| page.find(marker).ok_or_else(|| format!("{PAGE} lacks the line {marker}"));
    let (begin, end) = (place(BEGIN)? + BEGIN.len(), place(END)?);
    let (mut table, mut last) = (String::new(), "");
    for ((promise, what), row) in rows {
        if promise != last {
            table.push_str(&format!(
                "\n## {promise}\n\n| on what | against | how often | by | at |\n|---|---|---|---|---|\n"
            ));
            last = promise;
        }
        let counts: Vec<_> =
            row.counts.iter().map(|(number, unit)| format!("{} {unit}", with_commas(*number))).collect();
        let Row { against, command, at, .. } = row;
        table.push_str(&format!("| {what} | {against} | {} | `{command}` | {at} |\n", counts.join(", ")));
    }
    Ok(format!("{}\n{table}\n{}", &page[..begin], page.get(end..).unwrap_or_default()))
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, parse, to_lines, with_commas, with_table};

    const SHARES: &str = "kept\tstores\tF1\tswarm\t999 chains, 1500 cuts\nkept\tstores\tF1\tswarm\t1 chains, 7 pairs\n";

    #[test]
    fn shares_are_summed_and_a_campaign_that_was_run_again_replaces_what_it_said() {
        let mut rows = parse("kept\tstores\tF1\tswarm\t5 chains\tabc, 2026-01-01\n", None).unwrap_or_default();
        rows.extend(parse(SHARES, Some("def, 2026-01-02")).unwrap_or_default());
        assert_eq!(to_lines(&rows), "kept\tstores\tF1\tswarm\t1000 chains, 1500 cuts, 7 pairs\tdef, 2026-01-02\n");
        assert_eq!(parse(&to_lines(&rows), None), Ok(rows));
    }

    #[test]
    fn what_is_no_line_of_a_campaign_is_refused() {
        for wrong in ["kept\tstores", "kept\tstores\tF1\tswarm\tmany chains", "kept\tstores\tF1\tswarm\t5\n", ""] {
            assert_eq!(parse(wrong, Some("at")).is_err(), !wrong.is_empty(), "{wrong}");
        }
    }

    #[test]
    fn a_promise_has_a_table() {
        let page = format!("Words.\n{BEGIN}\nold\n{END}\nMore.\n");
        let rows = parse(SHARES, Some("def")).unwrap_or_default();
        let made = with_table(&page, &rows).unwrap_or_default();
        assert!(made.contains("## kept\n") && made.contains("| 1,000 chains, 1,500 cuts, 7 pairs |"), "{made}");
        assert!(made.starts_with("Words.\n") && made.ends_with("More.\n") && !made.contains("old"), "{made}");
        assert_eq!(with_table(&made, &rows), Ok(made));
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1_000, 1_234_567].map(with_commas).each_ref().map(String::as_str)
        );
    }
}
