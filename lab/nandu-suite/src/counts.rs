//! What a campaign tried, for the page of counts (`docs/counts.md`).
//!
//! A campaign that found nothing says so at its end, on the terminal; where `NANDU_COUNTS` names a file, also as a line there, of words between tabs. `cargo xtask counts FILE` makes rows of the page from such lines. One
//! that finds something fails, and has no row.

use std::fs::OpenOptions;
use std::io::Write;

/// A campaign that found nothing.
#[derive(Clone, Copy, Debug)]
pub struct Tried<'a> {
    /// What held.
    pub promise: &'a str,
    /// On what, and how.
    pub what: &'a str,
    /// The faults that came, by their numbers in the fault model.
    pub against: &'a str,
    /// The command that does it again.
    pub command: &'a str,
    /// How often, of each kind.
    pub counts: &'a [(u64, &'a str)],
}

/// That nothing acknowledged is lost.
pub const KEPT: &str = "Nothing acknowledged is lost, and what was not is wholly there or wholly not";
/// Power cuts and those in recoveries.
pub const CUTS: &str = "F1, F2, F3, F18";
/// The command of most of these campaigns.
pub const SWARM: &str = "cargo xtask swarm";

impl Tried<'_> {
    /// Says it on the terminal, and records it.
    ///
    /// # Panics
    ///
    /// As [`Tried::record`].
    pub fn tell(&self) {
        println!("{}: {}. {}.", self.what, self.in_words(), self.promise);
        self.record();
    }

    /// Writes it to the file that `NANDU_COUNTS` names, if it does.
    ///
    /// # Panics
    ///
    /// If that cannot be written.
    pub fn record(&self) {
        let Some(path) = std::env::var_os("NANDU_COUNTS") else { return };
        let line = [self.promise, self.what, self.against, self.command, &self.in_words()].join("\t");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// How often, without what never came.
    fn in_words(&self) -> String {
        let counts = self.counts.iter().filter(|(number, _)| *number > 0);
        counts.map(|(number, unit)| format!("{number} {unit}")).collect::<Vec<_>>().join(", ")
    }
}
