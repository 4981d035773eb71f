//! What lives found.

use std::collections::BTreeMap;

use nandu_sim::Counters;
use nandu_suite::counts::{self, Tried};
use nandu_suite::liveness::Liveness;

use crate::measure::Values;

/// Whose calls these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    Records,
    /// Of a life in which snapshots are taken.
    Kept,
    Files,
    Tagged,
    /// With two bits a cell, where pages move when the collector needs room.
    Dense,
}

impl Whose {
    const fn name(self) -> &'static str {
        match self {
            Whose::Records => "records",
            Whose::Kept => "records, with snapshots",
            Whose::Files => "files",
            Whose::Tagged => "files, tagged",
            Whose::Dense => "files, two bits a cell",
        }
    }
}

/// What the worst calls of a kind took for each page that they wrote.
#[derive(Clone, Debug, Default)]
struct Worst {
    programs: Most,
    erases: u64,
    reads: Most,
}

/// The most of something, and the life and step in which that was.
#[derive(Clone, Debug, Default)]
struct Most {
    count: u64,
    place: String,
}

impl Most {
    fn see(&mut self, count: u64, place: &dyn Fn() -> String) {
        if count > self.count {
            *self = Most { count, place: place() };
        }
    }

    fn in_words(&self, unit: &str) -> String {
        match self.count {
            0 => format!("0 {unit}"),
            count => format!("{count} {unit} ({})", self.place),
        }
    }

    /// Of two that are as many the place that comes first stays.
    fn add(&mut self, other: Most) {
        if (other.count, &self.place) > (self.count, &other.place) {
            *self = other;
        }
    }
}

/// Volumes that were asked whether they serve again.
#[derive(Clone, Debug, Default)]
struct Served {
    lives: u64,
    /// Of them those that can only be read, on a chip that lost blocks.
    read_only: u64,
    /// Of them those that do not serve, and where and how first.
    wrong: u64,
    first: String,
}

/// What some lives found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    lives: u64,
    calls: u64,
    cuts: u64,
    worst: BTreeMap<(Whose, &'static str), Worst>,
    mounts: BTreeMap<Whose, Most>,
    /// What was refused that must not be, and where first; every kind that was tried is there.
    refused: BTreeMap<&'static str, (u64, String)>,
    asked: BTreeMap<Whose, Served>,
}

impl Tally {
    pub(super) fn begin_life(&mut self, whose: Whose) {
        self.lives += 1;
        self.mounts.entry(whose).or_default();
    }

    pub(super) fn cut(&mut self) {
        self.cuts += 1;
    }

    /// A call that writes so many bytes took this.
    pub(super) fn call(&mut self, of: (Whose, &'static str), done: &Counters, pages: u64, place: &dyn Fn() -> String) {
        self.calls += 1;
        let worst = self.worst.entry(of).or_default();
        let pages = pages.max(1);
        worst.programs.see(done.programs.div_ceil(pages), place);
        worst.erases = worst.erases.max(done.erases.div_ceil(pages));
        worst.reads.see(done.reads.div_ceil(pages), place);
    }

    pub(super) fn mount(&mut self, whose: Whose, reads: u64, place: &dyn Fn() -> String) {
        self.mounts.entry(whose).or_default().see(reads, place);
    }

    /// Something was tried that must not be refused.
    pub(super) fn tried(&mut self, what: &'static str, is_refused: bool, place: &dyn Fn() -> String) {
        let (count, first) = self.refused.entry(what).or_default();
        if is_refused {
            *count += 1;
            if first.is_empty() {
                *first = place();
            }
        }
    }

    /// A volume was asked whether it serves again.
    pub(super) fn liveness(&mut self, whose: Whose, found: &Liveness, place: &dyn Fn() -> String) {
        let asked = self.asked.entry(whose).or_default();
        asked.lives += 1;
        asked.read_only += u64::from(found.is_read_only);
        if let Some(what) = found.wrong() {
            asked.wrong += 1;
            let what = format!("{}: {what}", place());
            if asked.first.is_empty() {
                asked.first = what;
            }
        }
    }

    /// Takes in what other lives found, in whatever order.
    pub(super) fn add(&mut self, other: Tally) {
        (self.lives, self.calls, self.cuts) =
            (self.lives + other.lives, self.calls + other.calls, self.cuts + other.cuts);
        for (of, theirs) in other.worst {
            let ours = self.worst.entry(of).or_default();
            ours.programs.add(theirs.programs);
            ours.erases = ours.erases.max(theirs.erases);
            ours.reads.add(theirs.reads);
        }
        for (whose, theirs) in other.mounts {
            self.mounts.entry(whose).or_default().add(theirs);
        }
        for (what, (count, place)) in other.refused {
            let ours = self.refused.entry(what).or_default();
            ours.0 += count;
            if ours.1.is_empty() || !place.is_empty() && place < ours.1 {
                ours.1 = place;
            }
        }
        for (whose, theirs) in other.asked {
            let ours = self.asked.entry(whose).or_default();
            ours.lives += theirs.lives;
            ours.read_only += theirs.read_only;
            ours.wrong += theirs.wrong;
            if ours.first.is_empty() || !theirs.first.is_empty() && theirs.first < ours.first {
                ours.first = theirs.first;
            }
        }
    }

    pub(crate) fn mounts(&self) -> Values {
        self.mounts.iter().map(|(whose, reads)| (whose.name().to_owned(), reads.count as f64)).collect()
    }

    pub(crate) fn programs(&self) -> Values {
        self.worst_calls(|worst| worst.programs.count)
    }

    pub(crate) fn erases(&self) -> Values {
        self.worst_calls(|worst| worst.erases)
    }

    pub(crate) fn reads(&self) -> Values {
        self.worst_calls(|worst| worst.reads.count)
    }

    fn worst_calls(&self, of: impl Fn(&Worst) -> u64) -> Values {
        let mut values = Values::new();
        for ((whose, call), worst) in &self.worst {
            let case = match (whose, *call) {
                (Whose::Records, "put" | "delete") => "records, put and delete",
                (Whose::Records, _) => "records, other calls",
                (whose, _) => whose.name(),
            };
            let most = values.entry(case.to_owned()).or_default();
            *most = f64::max(*most, of(worst) as f64);
        }
        values
    }

    pub(crate) fn refused(&self) -> Values {
        self.refused.iter().map(|(what, (count, _))| ((*what).to_owned(), *count as f64)).collect()
    }

    /// Volumes that do not serve again.
    pub(crate) fn dead(&self) -> Values {
        self.asked.iter().map(|(whose, asked)| (whose.name().to_owned(), asked.wrong as f64)).collect()
    }

    /// Records what held in all lives, for the [page of counts](nandu_suite::counts).
    pub(crate) fn record(&self) {
        let (what, command) =
            ("stores and files of all kinds, in random lives on chips of 8 to 1,024 blocks", "cargo xtask promises");
        let lives = [(self.lives, "lives"), (self.calls, "calls"), (self.cuts, "cuts")];
        Tried { promise: counts::KEPT, what, against: counts::CUTS, command, counts: &lives }.record();
        if self.refused.values().all(|(count, _)| *count == 0) {
            let promise = "What frees is never refused for room, nor is an unmount";
            Tried { promise, what, against: "F18, F19", command, counts: &lives[..2] }.record();
        }
        for (whose, served) in self.asked.iter().filter(|(_, served)| served.wrong == 0) {
            let promise = "When no fault comes any more, a volume serves again";
            let what = format!("{}, at the end of a random life", whose.name());
            Tried { promise, what: &what, against: "F18, F19", command, counts: &[(served.lives, "volumes")] }.record();
        }
    }

    /// How much was lived, and where the worst of each kind was found.
    pub(crate) fn in_words(&self) -> String {
        let mut text = format!("{} lives, {} calls, {} cuts", self.lives, self.calls, self.cuts);
        for ((whose, call), Worst { programs, erases, reads }) in &self.worst {
            let (of_programs, of_reads) = (programs.in_words("programs"), reads.in_words("reads"));
            text += &format!("\n  {}: {call}: {of_programs}, {erases} erases, {of_reads}", whose.name());
        }
        for (whose, reads) in &self.mounts {
            text += &format!("\n  {}: mount: {}", whose.name(), reads.in_words("reads"));
        }
        for (what, (count, place)) in self.refused.iter().filter(|(_, (count, _))| *count > 0) {
            text += &format!("\n  {what}: refused {count} times, first in {place}");
        }
        for (whose, Served { lives, read_only, wrong, first }) in &self.asked {
            let of = if *wrong > 0 { format!(", first {first}") } else { String::new() };
            text += &format!(
                "\n  {}: {wrong} of {lives} do not serve again, {read_only} can only be read{of}",
                whose.name()
            );
        }
        text
    }
}
