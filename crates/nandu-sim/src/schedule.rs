//! Faults on demand: which, and when.

use nandu_nand::{BlockAddr, PageAddr};

use crate::random::{Purpose, Stream};
use crate::{OperationKind, Tear};

/// What goes wrong with an operation. The numbers F1 to F17 are those of the fault model in the crate's front page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Any operation: the power is cut, leaving this tear, or one from the seed (F1, F3, F5).
    Cut(Option<Tear>),
    /// Read or program: the page reads well now and gets worse with reads and time until it is lost (F2).
    Unstable,
    /// Read of an erased page, or erase of the block: so many bits of one codeword read as zero although erased; after
    /// an erase that is in every page of the block, or in the page that triggered it (F4).
    ErasedZeros(u16),
    /// Read or copy: so many bits of one codeword of the page are flipped from now on (F6; F7 if there are more than
    /// can be corrected).
    BitFlips(u16),
    /// Read or copy: the page cannot be corrected from now on (F7).
    Uncorrectable,
    /// Read: so many bits are flipped in one codeword of another programmed page of the block (F8).
    ReadDisturb(u16),
    /// Program of a part of a page that has parts already: so many bits of one codeword of those are flipped (F9).
    PartialDisturb(u16),
    /// Program or copy: the chip reports failure; the page is lost, and its LSB partner if it is an MSB page (F10, F5).
    /// Setting a bad-block mark: the mark is not set.
    ProgramFails,
    /// Erase: the chip reports failure; the block holds anything and can never be erased again (F11).
    EraseFails,
    /// Check for a bad-block mark: the mark reads as the opposite of the truth from now on (F13).
    MarkInverted,
    /// Program, copy, erase or bad-block mark: reported as done, and nothing happened (F14).
    NothingHappens,
    /// Read, program or copy: it hits this page, or one whose address differs in one bit chosen by the seed (F15).
    Misdirected(Option<PageAddr>),
    /// Read: the bytes are those of the page that was read or programmed before (F16).
    Stale,
    /// Any operation: its outcome is not reported. It left what this tear says: [`Tear::Before`] if it was never
    /// begun, [`Tear::Complete`] if only its report was lost, another if the chip was reset in the middle (F17).
    Bus(Tear),
}

impl Fault {
    /// Whether the fault can happen to this kind of operation.
    pub const fn fits(self, kind: OperationKind) -> bool {
        use OperationKind::{CheckBad, Copy, Erase, MarkBad, Program, Read};
        match self {
            Fault::Cut(_) | Fault::Bus(_) => true,
            Fault::Unstable => matches!(kind, Read | Program | Copy),
            Fault::ErasedZeros(_) => matches!(kind, Read | Erase),
            Fault::BitFlips(_) | Fault::Uncorrectable => matches!(kind, Read | Copy),
            Fault::ReadDisturb(_) | Fault::Stale => matches!(kind, Read),
            Fault::PartialDisturb(_) => matches!(kind, Program),
            Fault::ProgramFails => matches!(kind, Program | Copy | MarkBad),
            Fault::EraseFails => matches!(kind, Erase),
            Fault::MarkInverted => matches!(kind, CheckBad),
            Fault::NothingHappens => matches!(kind, Program | Copy | Erase | MarkBad),
            Fault::Misdirected(_) => matches!(kind, Read | Program | Copy),
        }
    }
}

/// When a fault happens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// At the operation of this number, once, if the fault fits it. See
    /// [`Sim::operation_count`](crate::Sim::operation_count).
    Operation(u64),
    /// At the n-th operation from now that the fault fits, counted from 0, once.
    Nth(u64),
    /// At each operation that the fault fits, with this probability, by the seed.
    Probability(f64),
    /// At each operation on this page that the fault fits, and at erases of its block. Lasting harm is done once
    /// between two erases.
    Page(PageAddr),
    /// At each operation on this block or its pages that the fault fits.
    Block(BlockAddr),
}

/// Names a scheduled fault, to withdraw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FaultId(pub(crate) u64);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) id: u64,
    pub(crate) fault: Fault,
    pub(crate) trigger: Trigger,
}

/// The scheduled faults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) rules: Vec<Rule>,
    pub(crate) next_id: u64,
}

/// A fault that happens to an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fired {
    pub(crate) fault: Fault,
    /// The page of a [`Trigger::Page`].
    pub(crate) page: Option<PageAddr>,
    /// Whether it comes back with every operation, so that lasting harm must not pile up.
    pub(crate) standing: bool,
}

/// What the schedule has to know about an operation.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) number: u64,
    pub(crate) kind: OperationKind,
    pub(crate) block: BlockAddr,
    /// `None` for operations on blocks.
    pub(crate) page: Option<PageAddr>,
}

impl Schedule {
    pub(crate) fn add(&mut self, fault: Fault, trigger: Trigger) -> FaultId {
        let id = self.next_id;
        self.next_id += 1;
        self.rules.push(Rule { id, fault, trigger });
        FaultId(id)
    }

    pub(crate) fn remove(&mut self, id: FaultId) -> bool {
        let before = self.rules.len();
        self.rules.retain(|rule| rule.id != id.0);
        self.rules.len() < before
    }

    /// The first operation from `now` on that a rule has to look at.
    pub(crate) fn first_operation(&self, now: u64) -> u64 {
        let first = |rule: &Rule| match rule.trigger {
            Trigger::Operation(number) if number < now => u64::MAX,
            Trigger::Operation(number) => number,
            _ => 0,
        };
        self.rules.iter().map(first).min().unwrap_or(u64::MAX)
    }

    /// The faults that happen to an operation, in the order they were scheduled.
    pub(crate) fn fire(&mut self, seed: u64, pages_per_block: u32, target: &Target) -> Vec<Fired> {
        let mut fired = Vec::new();
        self.rules.retain_mut(|rule| {
            if !rule.fault.fits(target.kind) {
                return true;
            }
            let (happens, keep) = match &mut rule.trigger {
                Trigger::Operation(number) => (*number == target.number, *number > target.number),
                Trigger::Nth(0) => (true, false),
                Trigger::Nth(left) => {
                    *left -= 1;
                    (false, true)
                }
                Trigger::Probability(probability) => {
                    let mut stream = Stream::new(seed, Purpose::Schedule, target.number, rule.id);
                    (stream.chance(*probability), true)
                }
                Trigger::Page(page) => {
                    let happens = match target.page {
                        Some(at) => at == *page,
                        None => target.block.0 == page.0 / pages_per_block,
                    };
                    (happens, true)
                }
                Trigger::Block(block) => (*block == target.block, true),
            };
            if happens {
                let (page, standing) = match rule.trigger {
                    Trigger::Page(page) => (Some(page), true),
                    Trigger::Block(_) => (None, true),
                    _ => (None, false),
                };
                fired.push(Fired { fault: rule.fault, page, standing });
            }
            keep
        });
        fired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(number: u64, page: u32) -> Target {
        Target { number, kind: OperationKind::Read, block: BlockAddr(page / 8), page: Some(PageAddr(page)) }
    }

    fn hits(schedule: &mut Schedule, targets: impl IntoIterator<Item = Target>) -> Vec<u64> {
        targets.into_iter().filter(|target| !schedule.fire(1, 8, target).is_empty()).map(|t| t.number).collect()
    }

    #[test]
    fn triggers_fire_when_they_say() {
        let reads = |count: u64| (0..count).map(|number| read(number, number as u32));
        let mut schedule = Schedule::default();
        schedule.add(Fault::Stale, Trigger::Operation(4));
        schedule.add(Fault::Stale, Trigger::Nth(1));
        let page = schedule.add(Fault::Stale, Trigger::Page(PageAddr(9)));
        assert_eq!(hits(&mut schedule, reads(20)), [1, 4, 9]);
        assert_eq!(hits(&mut schedule, reads(20)), [9]);
        assert!(schedule.remove(page) && !schedule.remove(page));
        schedule.add(Fault::Stale, Trigger::Block(BlockAddr(1)));
        assert_eq!(hits(&mut schedule, reads(20)), (8..16).collect::<Vec<_>>());
        assert!(schedule.fire(1, 8, &Target { kind: OperationKind::Erase, ..read(8, 8) }).is_empty());
    }

    #[test]
    fn chance_keeps_its_probability_and_repeats() {
        let mut schedule = Schedule::default();
        schedule.add(Fault::Stale, Trigger::Probability(0.1));
        let first = hits(&mut schedule, (0..2000).map(|number| read(number, 0)));
        assert!((150..250).contains(&first.len()), "{}", first.len());
        assert_eq!(first, hits(&mut schedule, (0..2000).map(|number| read(number, 0))));
    }

    #[test]
    fn only_a_fixed_operation_leaves_the_others_quiet() {
        let mut schedule = Schedule::default();
        assert_eq!(schedule.first_operation(0), u64::MAX);
        schedule.add(Fault::Stale, Trigger::Operation(7));
        assert_eq!(schedule.first_operation(3), 7);
        assert_eq!(schedule.first_operation(8), u64::MAX);
        schedule.add(Fault::Stale, Trigger::Nth(100));
        assert_eq!(schedule.first_operation(3), 0);
    }
}
