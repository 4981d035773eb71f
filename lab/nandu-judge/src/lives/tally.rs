//! What lives found.

use std::collections::BTreeMap;

use nandu_sim::Counters;

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

/// What the worst call of a kind took for each page that it wrote, and where.
#[derive(Clone, Debug, Default)]
struct Worst {
    programs: u64,
    erases: u64,
    /// The life and step of the most programs.
    place: String,
}

/// What some lives found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    lives: u64,
    calls: u64,
    cuts: u64,
    worst: BTreeMap<(Whose, &'static str), Worst>,
    mounts: BTreeMap<Whose, (u64, String)>,
    /// What was refused that must not be, and where first; every kind that was tried is there.
    refused: BTreeMap<&'static str, (u64, String)>,
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
        let (programs, erases) = (done.programs.div_ceil(pages), done.erases.div_ceil(pages));
        if programs > worst.programs {
            (worst.programs, worst.place) = (programs, place());
        }
        worst.erases = worst.erases.max(erases);
    }

    pub(super) fn mount(&mut self, whose: Whose, reads: u64, place: &dyn Fn() -> String) {
        let most = self.mounts.entry(whose).or_default();
        if reads > most.0 {
            *most = (reads, place());
        }
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

    /// Takes in what other lives found, in whatever order: of two that are as bad the place that comes first stays.
    pub(super) fn add(&mut self, other: Tally) {
        (self.lives, self.calls, self.cuts) =
            (self.lives + other.lives, self.calls + other.calls, self.cuts + other.cuts);
        for (of, theirs) in other.worst {
            let ours = self.worst.entry(of).or_default();
            ours.erases = ours.erases.max(theirs.erases);
            if (theirs.programs, &ours.place) > (ours.programs, &theirs.place) {
                (ours.programs, ours.place) = (theirs.programs, theirs.place);
            }
        }
        for (whose, theirs) in other.mounts {
            let ours = self.mounts.entry(whose).or_default();
            if (theirs.0, &ours.1) > (ours.0, &theirs.1) {
                *ours = theirs;
            }
        }
        for (what, (count, place)) in other.refused {
            let ours = self.refused.entry(what).or_default();
            ours.0 += count;
            if ours.1.is_empty() || !place.is_empty() && place < ours.1 {
                ours.1 = place;
            }
        }
    }

    pub(crate) fn mounts(&self) -> Values {
        self.mounts.iter().map(|(whose, (reads, _))| (whose.name().to_owned(), *reads as f64)).collect()
    }

    pub(crate) fn programs(&self) -> Values {
        self.worst_calls(|worst| worst.programs)
    }

    pub(crate) fn erases(&self) -> Values {
        self.worst_calls(|worst| worst.erases)
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

    /// How much was lived, and where the worst of each kind was found.
    pub(crate) fn in_words(&self) -> String {
        let mut text = format!("{} lives, {} calls, {} cuts", self.lives, self.calls, self.cuts);
        for ((whose, call), Worst { programs, erases, place }) in &self.worst {
            if *programs > 0 {
                text += &format!("\n  {}: {call}: {programs} programs ({place}), {erases} erases", whose.name());
            }
        }
        for (whose, (reads, place)) in &self.mounts {
            text += &format!("\n  {}: mount: {reads} reads ({place})", whose.name());
        }
        for (what, (count, place)) in self.refused.iter().filter(|(_, (count, _))| *count > 0) {
            text += &format!("\n  {what}: refused {count} times, first in {place}");
        }
        text
    }
}
