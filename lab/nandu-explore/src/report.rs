//! What was explored, and what was found: as a table, and as lines that merge.

use std::fmt::Write;

use nandu_suite::counts::{CUTS, KEPT, Tried};
use serde::{Deserialize, Serialize};

use crate::brown_out::{self, BrownOuts};
use crate::search::Bounds;

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
    /// What was found after brown-outs.
    #[serde(default)]
    pub brown_outs: Vec<BrownOuts>,
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

impl Report {
    /// Records what was tried for the [page of counts](nandu_suite::counts), if nothing is wrong.
    pub fn record(&self, bounds: Bounds) {
        if !self.violations.is_empty() {
            return;
        }
        let Report { system, depth, .. } = self;
        // Of a share it is said that it is one: when all were run, the sum says so.
        let (share, shares) = (u64::from(bounds.shard.1 > 1), format!("of {} shares", bounds.shard.1));
        let counts = [
            (share, shares.as_str()),
            (self.states, "states"),
            (self.played, "calls"),
            (self.cuts, "cuts"),
            (self.cuts_in_recovery, "in recoveries"),
            (self.faults, "failures"),
        ];
        Tried {
            promise: KEPT,
            what: &format!("{system}, every sequence of {depth} calls, cuts and failures"),
            against: if bounds.has_faults { "F1, F2, F3, F10, F11, F18" } else { CUTS },
            command: &format!("cargo xtask explore --system {system} --depth {depth}"),
            counts: &counts,
        }
        .record();
        let brown_outs = self.brown_outs.iter().map(|row| row.all + row.older + row.damage + row.fading).sum();
        if brown_outs > 0 {
            Tried {
                promise: "After a supply that sagged no content is found that was never there, and damage is told",
                what: &format!("{system}, every sequence of {depth} calls, the last operations weak"),
                against: "F25",
                command: &format!(
                    "cargo xtask explore --system {system} --depth {depth} --brown-out {}",
                    bounds.sag_max
                ),
                counts: &[(share, shares.as_str()), (brown_outs, "brown-outs")],
            }
            .record();
        }
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
                brown_out::merge(&mut into.brown_outs, report.brown_outs);
                into.violations.extend(report.violations);
            }
            None => merged.push(report),
        }
    }
    merged
}

/// Tables of reports, for people: one of what was tried, one of brown-outs if there were any, and what is wrong.
pub fn table(reports: &[Report]) -> String {
    let heads = ["system", "depth", "states", "played", "cuts", "in recovery", "faults", "refused", "violations"];
    let mut text = lines(
        heads,
        reports.iter().map(|of| {
            let violations = of.violations.len() as u64;
            let numbers = [of.states, of.played, of.cuts, of.cuts_in_recovery, of.faults, of.refused, violations];
            (vec![of.system.clone(), of.depth.to_string()], numbers.to_vec())
        }),
    );
    if reports.iter().any(|report| !report.brown_outs.is_empty()) {
        let heads = ["system", "reach", "weak", "all found", "older found", "no cut before", "damage told", "fading"];
        let rows = reports.iter().flat_map(|of| of.brown_outs.iter().map(|row| (&of.system, row)));
        let rows = rows.map(|(system, row)| {
            let words = vec![system.clone(), row.reach.to_string(), row.weakness.clone()];
            (words, vec![row.all, row.older, row.uncut, row.damage, row.fading])
        });
        text.push('\n');
        text.push_str(&lines(heads, rows));
    }
    for violation in reports.iter().flat_map(|report| &report.violations) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{}", violation.to_test());
    }
    text
}

/// Lines of a table: words, and numbers behind them.
fn lines<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = (Vec<String>, Vec<u64>)>) -> String {
    let numbers = |(mut words, numbers): (Vec<String>, Vec<u64>)| {
        words.extend(numbers.into_iter().map(with_commas));
        debug_assert_eq!(words.len(), N);
        words
    };
    let rows: Vec<Vec<String>> = [heads.map(str::to_owned).to_vec()].into_iter().chain(rows.map(numbers)).collect();
    let mut text = String::new();
    for row in &rows {
        for (at, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[at].len()).max().unwrap_or_default();
            let _ = if at == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
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
            brown_outs: Vec::new(),
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
