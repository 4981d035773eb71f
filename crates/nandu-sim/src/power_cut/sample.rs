//! Which cases are run: every one, pairs, or a random sample.

use std::fmt::Debug;

use crate::power_cut::case::{Case, Ended};
use crate::power_cut::cuts::Cut;
use crate::power_cut::{CHAIN_MAX, Summary};
use crate::random::{Purpose, Stream};
use crate::{OperationKind, Sim};

/// Chains of cuts that begin alike.
struct Nest<'a> {
    seed: u64,
    /// Cuts of the longest ones.
    length: usize,
    /// The cuts made so far.
    cuts: Vec<Cut>,
    summary: &'a mut Summary,
}

impl<A: Default + Clone, O: PartialEq + Debug> Case<'_, A, O> {
    /// Every operation of the workload, with every tear.
    #[track_caller]
    pub(super) fn every(&self) -> Summary {
        if let Some(summary) = self.replayed() {
            return summary;
        }
        let seed = self.driver.seed;
        let kinds = self.uncut(seed);
        let mut summary = Summary { operations: kinds.len() as u64, ..Summary::default() };
        for (operation, &kind) in (0..).zip(&kinds) {
            (self.driver.progress)(operation, summary.operations);
            for tear in self.tears(kind) {
                let cut = Cut { operation, tear };
                if let Some((chip, noted)) = self.passed(seed, &[cut], self.first_cut(seed, cut)) {
                    self.passed(seed, &[cut], self.finish(chip, noted));
                    summary.count(1);
                }
            }
        }
        (self.driver.progress)(summary.operations, summary.operations);
        summary
    }

    /// Every change that the workload makes, with every tear, then every change that the recovery makes, likewise, and so on up to
    /// chains of so many cuts.
    #[track_caller]
    pub(super) fn nested(&self, length: usize) -> Summary {
        if let Some(summary) = self.replayed() {
            return summary;
        }
        let seed = self.driver.seed;
        let kinds = self.uncut(seed);
        let mut summary = Summary { operations: kinds.len() as u64, ..Summary::default() };
        let firsts = self.candidates(&kinds);
        let limit = self.driver.limit.max(length as u64);
        let kept = kept(&firsts, limit, length);
        let budget = limit / kept.max(1);
        for index in 0..kept {
            (self.driver.progress)(index, kept);
            let first = firsts[spread(index, kept, firsts.len() as u64) as usize];
            if let Some(state) = self.passed(seed, &[first], self.first_cut(seed, first)) {
                self.nest(&mut Nest { seed, length, cuts: vec![first], summary: &mut summary }, state, (budget, index));
            }
        }
        (self.driver.progress)(kept, kept);
        summary
    }

    /// Checks a chip after its cuts, and what further cuts leave of it, in about so many cases. Chains of which each begins elsewhere have
    /// different turns, so that together they come to all further cuts.
    #[track_caller]
    fn nest(&self, nest: &mut Nest<'_>, (mut chip, noted): (Sim, A), (budget, turn): (u64, u64)) {
        let seed = nest.seed;
        nest.summary.count(nest.cuts.len());
        if nest.cuts.len() == nest.length {
            return self.passed(seed, &nest.cuts, self.finish(chip, noted));
        }
        let (recovery, _) = self.passed(seed, &nest.cuts, self.preview(&mut chip, &noted));
        self.passed(seed, &nest.cuts, self.finish(self.spare.clone_of(&mut chip), noted.clone()));
        let others = self.candidates(&recovery);
        let size = others.len() as u64;
        let count = kept(&others, budget.saturating_sub(1), nest.length - nest.cuts.len());
        for nth in 0..count {
            let cut = others[((spread(nth, count, size) + turn) % size) as usize];
            let (mut chip, mut noted) = (self.spare.clone_of(&mut chip), noted.clone());
            nest.cuts.push(cut);
            match self.passed(seed, &nest.cuts, self.cut_aftermath(&mut chip, &mut noted, cut)) {
                Ended::Cut => self.nest(nest, (chip, noted), ((budget - 1) / count, turn / size + nth)),
                Ended::Replaced => self.spare.reclaim(chip),
                Ended::Uncut => self.passed(seed, &nest.cuts, Err(unrepeatable(cut))),
            }
            nest.cuts.pop();
        }
        self.spare.reclaim(chip);
    }

    /// So many random chains.
    #[track_caller]
    pub(super) fn random(&self, count: u64) -> Summary {
        if let Some(summary) = self.replayed() {
            return summary;
        }
        let mut summary = Summary::default();
        for number in 0..count {
            (self.driver.progress)(number, count);
            let mut stream = Stream::new(self.driver.seed, Purpose::Chain, number, 0);
            // The first case has the driver's own seed, so that one case of one seed can be asked for.
            let seed = if number == 0 { self.driver.seed } else { stream.next() };
            let (operations, cuts) = self.random_chain(seed, &mut stream);
            if number == 0 {
                summary.operations = operations;
                self.passed(seed, &[], self.run(seed, &[]));
            }
            summary.count(cuts);
        }
        (self.driver.progress)(count, count);
        summary
    }

    /// Runs and checks one chain; returns the operations of its workload without a cut, and the cuts it made.
    #[track_caller]
    fn random_chain(&self, seed: u64, stream: &mut Stream) -> (u64, usize) {
        let mut cuts = Vec::new();
        let kinds = self.passed(seed, &cuts, self.rehearse(seed));
        let operations = kinds.len() as u64;
        let length = 1 + stream.below(CHAIN_MAX as u32) as usize;
        let Some(first) = self.choose(&kinds, stream) else { return (operations, 0) };
        cuts.push(first);
        let mut chip = self.fresh(seed);
        let mut noted = A::default();
        if matches!(self.passed(seed, &cuts, self.cut_workload(&mut chip, &mut noted, first)), Ended::Uncut) {
            self.passed(seed, &cuts, Err(unrepeatable(first)))
        }
        while cuts.len() < length {
            let aftermath = self.preview(&mut chip, &noted);
            let (recovery, workload) = self.passed(seed, &cuts, aftermath);
            let into_workload = self.driver.resume && stream.below(2) == 0;
            let (kinds, before) = if into_workload { (&workload, recovery.len()) } else { (&recovery, 0) };
            let Some(mut cut) = self.choose(kinds, stream) else { break };
            cut.operation += before as u64;
            cuts.push(cut);
            if matches!(self.passed(seed, &cuts, self.cut_aftermath(&mut chip, &mut noted, cut)), Ended::Uncut) {
                self.passed(seed, &cuts, Err(unrepeatable(cut)))
            }
        }
        self.passed(seed, &cuts, self.finish(chip, noted));
        (operations, cuts.len())
    }

    /// One cut among these operations: mostly of one that changes the chip, since the others leave nothing.
    fn choose(&self, kinds: &[OperationKind], stream: &mut Stream) -> Option<Cut> {
        let changes: Vec<usize> = (0..kinds.len()).filter(|&at| is_change(kinds[at])).collect();
        let any = changes.is_empty() || stream.below(8) == 0;
        let operation = match any {
            true => stream.below(kinds.len() as u32) as usize,
            false => changes[stream.below(changes.len() as u32) as usize],
        };
        let tears: Vec<_> = self.tears(*kinds.get(operation)?).collect();
        let tear = *tears.get(stream.below(tears.len() as u32) as usize)?;
        Some(Cut { operation: operation as u64, tear })
    }

    /// Runs and checks the workload without a cut; returns what it asked of the chip.
    #[track_caller]
    fn uncut(&self, seed: u64) -> Vec<OperationKind> {
        let mut chip = self.fresh(seed);
        let mut noted = A::default();
        let kinds = self.passed(seed, &[], self.record_workload(&mut chip, &mut noted));
        self.passed(seed, &[], self.finish(chip, noted));
        kinds
    }

    /// What the workload asks of a chip without a cut.
    fn rehearse(&self, seed: u64) -> Result<Vec<OperationKind>, String> {
        let mut chip = self.fresh(seed);
        let kinds = self.record_workload(&mut chip, &mut A::default())?;
        self.spare.reclaim(chip);
        Ok(kinds)
    }

    /// What follows a cut asks of the chip, as [`record_aftermath`](Case::record_aftermath) says it; the chip itself is
    /// left alone.
    fn preview(&self, chip: &mut Sim, noted: &A) -> Result<(Vec<OperationKind>, Vec<OperationKind>), String> {
        let mut chip = self.spare.clone_of(chip);
        let kinds = self.record_aftermath(&mut chip, &mut noted.clone())?;
        self.spare.reclaim(chip);
        Ok(kinds)
    }

    /// A chip after its first cut, and what had been acknowledged; `None` if the tear does not fit there, in which case
    /// another one covers what would have been left.
    fn first_cut(&self, seed: u64, cut: Cut) -> Result<Option<(Sim, A)>, String> {
        let mut chip = self.fresh(seed);
        let mut noted = A::default();
        match self.cut_workload(&mut chip, &mut noted, cut)? {
            Ended::Cut => Ok(Some((chip, noted))),
            Ended::Replaced => {
                self.spare.reclaim(chip);
                Ok(None)
            }
            Ended::Uncut => Err(unrepeatable(cut)),
        }
    }

    /// Every cut of an operation that changes the chip.
    fn candidates(&self, kinds: &[OperationKind]) -> Vec<Cut> {
        let changes = (0..).zip(kinds).filter(|&(_, &kind)| is_change(kind));
        changes.flat_map(|(operation, &kind)| self.tears(kind).map(move |tear| Cut { operation, tear })).collect()
    }
}

fn is_change(kind: OperationKind) -> bool {
    !matches!(kind, OperationKind::Read | OperationKind::CheckBad)
}

fn unrepeatable(cut: Cut) -> String {
    format!("the run without this cut came to operation {}, this one did not: it does not repeat itself", cut.operation)
}

/// How many of these cuts are tried in so many cases, where chains of so many more cuts begin with each: all, or as many as leave one of each
/// length to each of them.
fn kept(cuts: &[Cut], cases: u64, length: usize) -> u64 {
    (cuts.len() as u64).min(cases / length as u64)
}

/// The place of the `nth` of `count` things spread evenly over `size` places.
fn spread(nth: u64, count: u64, size: u64) -> u64 {
    (u128::from(nth) * u128::from(size) / u128::from(count.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn few_things_are_spread_over_many_places_and_as_many_hit_each() {
        assert_eq!((0..4).map(|nth| spread(nth, 4, 10)).collect::<Vec<_>>(), [0, 2, 5, 7]);
        assert_eq!((0..3).map(|nth| spread(nth, 3, 3)).collect::<Vec<_>>(), [0, 1, 2]);
    }
}
