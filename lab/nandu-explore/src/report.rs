//! What was explored, and what was found: as a table, and as lines that merge.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// What the exploration of a system, or of a share of its sequences, did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The system.
    pub system: String,
    /// Its chip.
    pub chip: String,
    /// Its calls.
    pub calls: Vec<String>,
    /// Calls and cuts of a sequence.
    pub depth: u8,
    /// Shares that are in this report.
    pub shards: u64,
    /// States that differ. One that two shares reach is in both.
    pub states: u64,
    /// How often calls were made on a chip of their own.
    pub played: u64,
    /// Power cuts, each followed by two recoveries, and one after a rest.
    pub cuts: u64,
    /// Those among them that were in a recovery.
    pub cuts_in_recovery: u64,
    /// Programs and erases that failed.
    pub faults: u64,
    /// Calls that were refused for room.
    pub refused: u64,
    /// What should not be.
    pub violations: Vec<Violation>,
}

/// A sequence after which something was wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Violation {
    /// The system.
    pub system: String,
    /// The moves, see [`replay`](crate::replay).
    pub moves: Vec<String>,
    /// What was wrong.
    pub what: String,
}

impl Violation {
    /// A test to paste.
    pub fn to_test(&self) -> String {
        let name: String = self.system.replace('-', "_");
        format!(
            "// {}\n#[test]\nfn {name}_after_{}_moves() {{\n    assert_eq!(nandu_explore::replay(\"{}\", \"{}\"), Ok(()));\n}}\n",
            self.what,
            self.moves.len(),
            self.system,
            self.moves.join(" ")
        )
    }
}

/// Joins reports of shares of the same systems. The order of the systems stays.
pub fn merge(reports: impl IntoIterator<Item = Report>) -> Vec<Report> {
    let mut merged: Vec<Report> = Vec::new();
    for report in reports {
        let same = |of: &&mut Report| (&of.system, of.depth) == (&report.system, report.depth);
        match merged.iter_mut().find(same) {
            Some(into) => {
                into.shards += report.shards;
                into.states += report.states;
                into.played += report.played;
                into.cuts += report.cuts;
                into.cuts_in_recovery += report.cuts_in_recovery;
                into.faults += report.faults;
                into.refused += report.refused;
                into.violations.extend(report.violations);
            }
            None => merged.push(report),
        }
    }
    merged
}

/// A table of reports, for people.
pub fn table(reports: &[Report]) -> String {
    let mut text = String::new();
    let heads = ["system", "depth", "states", "played", "cuts", "in recovery", "faults", "refused", "violations"];
    let rows: Vec<[String; 9]> = reports
        .iter()
        .map(|of| {
            let numbers = [
                of.depth.into(),
                of.states,
                of.played,
                of.cuts,
                of.cuts_in_recovery,
                of.faults,
                of.refused,
                of.violations.len() as u64,
            ];
            let mut row = [const { String::new() }; 9];
            row[0].clone_from(&of.system);
            for (cell, number) in row[1..].iter_mut().zip(numbers) {
                *cell = with_commas(number);
            }
            row
        })
        .collect();
    let width = |at: usize| rows.iter().map(|row| row[at].len()).chain([heads[at].len()]).max().unwrap_or_default();
    let mut line = |cells: [&str; 9]| {
        for (at, cell) in cells.into_iter().enumerate() {
            // Writing to a string does not fail.
            let _ =
                if at == 0 { write!(text, "{cell:<0$}", width(at)) } else { write!(text, "  {cell:>0$}", width(at)) };
        }
        text.push('\n');
    };
    line(heads);
    rows.iter().for_each(|row| line(row.each_ref().map(String::as_str)));
    for violation in reports.iter().flat_map(|report| &report.violations) {
        let _ = write!(text, "\n{}", violation.to_test());
    }
    text
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Report, Violation, merge, table};

    fn report(system: &str, states: u64) -> Report {
        Report {
            system: system.to_owned(),
            chip: String::new(),
            calls: Vec::new(),
            depth: 2,
            shards: 1,
            states,
            played: 1_234_567,
            cuts: 1,
            cuts_in_recovery: 0,
            faults: 0,
            refused: 0,
            violations: Vec::new(),
        }
    }

    #[test]
    fn shares_of_a_system_are_one_row() {
        let lost = Violation { system: "b".to_owned(), moves: vec!["put".to_owned()], what: "lost".to_owned() };
        let with_loss = Report { violations: vec![lost], ..report("b", 5) };
        let merged = merge([report("a", 1), report("b", 2), report("a", 3), with_loss]);
        assert_eq!(merged.iter().map(|of| (of.states, of.shards)).collect::<Vec<_>>(), [(4, 2), (7, 2)]);
        let text = table(&merged);
        assert!(text.contains("2,469,134") && text.contains("nandu_explore::replay(\"b\", \"put\")"), "{text}");
    }
}
