//! Where pages of files go on a chip whose blocks can hold one bit or two in a cell, and when they move.
//!
//! **For** whoever keeps blocks of both kinds. Users of `nandu` find it as `nandu::fs::placement`.
//!
//! A block in SLC mode is programmed 2.3 times as fast as one in MLC mode, holds half as much, and no page of it can be damaged by a
//! partner. So pages go to SLC blocks first and are moved to MLC blocks in idle time, as far as idle time, room and the promised
//! lifetime permit. From FlexFS (S. Lee, K. Ha, K. Zhang, J. Kim, J. Kim: FlexFS: A Flexible Flash File System for MLC NAND Flash
//! Memory, USENIX ATC 2009), with what its paper leaves out.
//!
//! **The key decision** is that policies are apart from mechanism: nothing here touches a chip, owns a page or looks at a clock. Whoever
//! keeps the blocks tells what happened and when, and asks where the next page goes, which block to empty and when the next step is
//! due. So the file system, the experiments and firmware without threads use the same code, and every policy can be switched
//! off for itself. The alternative, policies within the log, would have made each experiment need a file system.
//!
//! All numbers are integers: pages, microseconds, and [`Share`]s in 65,536ths.
//!
//! ```
//! use nandu_placement::{Class, Head, Placement, PlacementOptions, Reference};
//!
//! let mut memory = [Reference::default(); 160];
//! let mut placement = Placement::new(PlacementOptions::DEFAULT, None, &mut memory, 0);
//! let now_us = 5_000_000;
//! placement.request_begin(now_us);
//! // Nothing is known of the load yet, and there are blocks enough: the page of inode 9 goes to SLC blocks.
//! assert_eq!(placement.place(9, Class::Normal, now_us, 100), Head::SlcCold);
//! placement.request_end(now_us + 431);
//! // A second later the first page may be migrated.
//! assert_eq!(placement.step_due_us(), Some(now_us + 431 + 1_000_000));
//! ```

#![no_std]

mod allocation;
mod hotness;
mod idle;
mod levelling;
mod options;
mod share;
mod victims;
mod wear_budget;

pub use allocation::{Allocation, Limits};
pub use hotness::{Hotness, Reference};
pub use idle::IdleClock;
pub use levelling::Levelling;
use nandu_nand::CellMode;
pub use options::{PlacementOptions, Policy};
pub use share::Share;
pub use victims::{FullBlock, Rank, rank_mlc, rank_slc};
pub use wear_budget::{WearBudget, WearPromise, WearUsed};

/// How the cells of blocks are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// One bit in a cell.
    Slc,
    /// Two bits in a cell.
    Mlc,
}

impl Region {
    /// The mode in which its blocks are erased.
    pub const fn mode(self) -> CellMode {
        match self {
            Region::Slc => CellMode::Slc,
            Region::Mlc => CellMode::Mlc,
        }
    }
}

/// An open block that is filled page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Head {
    /// SLC, for pages that will be migrated.
    SlcCold,
    /// SLC, for pages that will be written again before that.
    SlcHot,
    /// MLC, for pages of the host and migrated ones together.
    Mlc,
}

impl Head {
    /// Every head.
    pub const ALL: [Head; 3] = [Head::SlcCold, Head::SlcHot, Head::Mlc];

    /// The region of its blocks.
    pub const fn region(self) -> Region {
        match self {
            Head::SlcCold | Head::SlcHot => Region::Slc,
            Head::Mlc => Region::Mlc,
        }
    }
}

/// What is promised of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It becomes durable with a later sync, if there is one.
    Normal,
    /// It is durable when the call returns.
    Synced,
}

/// All policies together.
#[derive(Debug)]
pub struct Placement<'m> {
    options: PlacementOptions,
    allocation: Allocation,
    hotness: Hotness<'m>,
    wear: Option<WearBudget>,
    idle: IdleClock,
    levelling: Levelling,
}

impl<'m> Placement<'m> {
    /// Begins at a mount or a format. `wear` is the promise, if wear is to be managed, and what of it was used; `memory` is for the
    /// queues that tell hot files from others, 16 bytes for each file, [`Hotness::HOT_COUNT`] and [`Hotness::COLD_COUNT`] by default.
    pub fn new(
        options: PlacementOptions,
        wear: Option<(WearPromise, WearUsed)>,
        memory: &'m mut [Reference],
        now_us: u64,
    ) -> Placement<'m> {
        Placement {
            allocation: Allocation::new(options),
            hotness: Hotness::new(memory, options.correlation_us),
            wear: wear.map(|(promise, used)| WearBudget::new(promise, used, now_us)),
            idle: IdleClock::new(options.wait_us, options.step_period_us, now_us),
            levelling: Levelling::new(options.endurance),
            options,
        }
    }

    /// The parameters.
    pub fn options(&self) -> &PlacementOptions {
        &self.options
    }

    /// A request of the host begins: no step of background work may begin until it ends.
    pub fn request_begin(&mut self, now_us: u64) {
        let usable_us = self.idle.request_begin(now_us);
        self.allocation.idled(usable_us);
    }

    /// A request of the host ends.
    pub fn request_end(&mut self, now_us: u64) {
        self.idle.request_end(now_us);
    }

    /// Where a page that the host writes goes, with so many free blocks.
    pub fn place(&mut self, ino: u64, class: Class, now_us: u64, free_blocks: u32) -> Head {
        let policy = self.options.policy;
        if let Some(wear) = &mut self.wear {
            wear.advance(now_us);
        }
        if policy.locality {
            self.hotness.touch(ino, now_us);
        }
        let is_hot = self.is_hot(ino);
        let region = if policy.dynamic {
            let limits = Limits {
                free_blocks: policy.cap.then_some(free_blocks),
                delta: self.wear.as_ref().filter(|_| policy.wear).map(WearBudget::delta),
                locality: policy.locality,
            };
            match class {
                Class::Normal => self.allocation.place(is_hot, limits),
                Class::Synced => self.allocation.place_synced(is_hot, limits),
            }
        } else {
            Region::Slc
        };
        if let Some(wear) = &mut self.wear {
            wear.host_wrote(region);
        }
        match region {
            Region::Mlc => Head::Mlc,
            Region::Slc if is_hot && policy.split_heads => Head::SlcHot,
            Region::Slc => Head::SlcCold,
        }
    }

    /// Notes pages that were programmed in a region, or left out there, whoever wanted it: they are wear.
    pub fn programmed(&mut self, region: Region, pages: u64) {
        if let Some(wear) = &mut self.wear {
            wear.programmed(region, pages);
        }
    }

    /// Whether a window of the wear budget is over, for which the account has to be brought up to date
    /// ([`Placement::account`]).
    pub fn is_account_due(&self, now_us: u64) -> bool {
        self.wear.as_ref().is_some_and(|wear| wear.is_over(now_us))
    }

    /// Says what of the wear budget was used, and begins a new window if one is over. Returns how many are over, if wear is managed.
    pub fn account(&mut self, pages: u64, now_us: u64) -> Option<u64> {
        let wear = self.wear.as_mut()?;
        wear.account(pages);
        wear.advance(now_us);
        Some(wear.used().windows)
    }

    /// Forgets a file that was deleted.
    pub fn deleted(&mut self, ino: u64) {
        self.hotness.forget(ino);
    }

    /// Whether a file is hot; none is where locality is switched off.
    pub fn is_hot(&self, ino: u64) -> bool {
        self.options.policy.locality && self.hotness.is_hot(ino)
    }

    /// Whether the host has to wait until there are more free blocks before another one is opened.
    pub fn is_short(&self, free_blocks: u32) -> bool {
        free_blocks < self.options.free_blocks_min
    }

    /// When the next step of background work may begin; see [`IdleClock::step_due_us`].
    pub fn step_due_us(&self) -> Option<u64> {
        self.idle.step_due_us().filter(|_| self.options.policy.background)
    }

    /// When a step may begin for what is to be done at this time; see [`IdleClock::late_step_due_us`].
    pub fn late_step_due_us(&self, at_us: u64) -> Option<u64> {
        self.idle.late_step_due_us(at_us).filter(|_| self.options.policy.background)
    }

    /// A step of background work begins.
    pub fn step_begins(&mut self, now_us: u64) {
        self.idle.step_begins(now_us);
    }

    /// A step found nothing to do.
    pub fn nothing_to_do(&mut self) {
        self.idle.nothing_to_do();
    }

    /// The place of a full SLC block in the order of victims; see [`rank_slc`].
    pub fn rank_slc(&self, block: &FullBlock, free_blocks: u32) -> Option<Rank> {
        rank_slc(block, self.is_short(free_blocks))
    }

    /// The place of a full MLC block in the order of victims; see [`rank_mlc`].
    pub fn rank_mlc(&self, block: &FullBlock, free_blocks: u32) -> Option<Rank> {
        rank_mlc(block, self.is_short(free_blocks), free_blocks, &self.options)
    }

    /// Whether a block is so much more worn than the least worn one that pages which never change do well there; see
    /// [`Levelling::is_ahead`].
    pub fn is_ahead(&self, erases: u32, least: u32) -> bool {
        self.levelling.is_ahead(erases, least)
    }

    /// When blocks that nobody writes to are made to wear.
    pub fn levelling(&mut self) -> &mut Levelling {
        &mut self.levelling
    }

    /// What idle time permits, and what is used of it.
    pub fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// The budget, if wear is managed.
    pub fn wear(&self) -> Option<&WearBudget> {
        self.wear.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn with(policy: Policy, run: impl FnOnce(&mut Placement<'_>)) {
        let mut memory = [Reference::default(); 10];
        let options = PlacementOptions { policy, ..PlacementOptions::DEFAULT };
        let promise = WearPromise::new(1000, 1, 1000, 10);
        let mut placement = Placement::new(options, Some((promise, WearUsed::default())), &mut memory, 0);
        run(&mut placement);
    }

    /// Writes pages of a file in one request; returns how many went to SLC blocks.
    fn write(placement: &mut Placement<'_>, ino: u64, pages: u32, now_us: u64) -> u32 {
        placement.request_begin(now_us);
        let slc = (0..pages).filter(|_| placement.place(ino, Class::Normal, now_us, 100) != Head::Mlc).count();
        placement.request_end(now_us);
        slc as u32
    }

    #[test]
    fn each_policy_can_be_left_out() {
        // Without dynamic allocation everything goes to SLC blocks, however short idle time is.
        for policy in [Policy::BASELINE, Policy::BACKGROUND] {
            with(policy, |placement| {
                for nth in 0..4 {
                    assert_eq!(write(placement, 1, 1024, nth * SECOND), 1024);
                }
                assert_eq!(placement.step_due_us().is_some(), policy.background);
            });
        }
        with(Policy::DYNAMIC, |placement| {
            assert_eq!(write(placement, 1, 1024, 0), 1024);
            assert_eq!(write(placement, 1, 1024, SECOND), 0, "there was no idle time to migrate in");
            assert!(!placement.is_hot(1));
        });
        // There is idle time enough, but not for a chip that is to last.
        for (policy, slc) in [(Policy::LOCALITY, 1024), (Policy::ALL, 0)] {
            with(policy, |placement| {
                write(placement, 1, 1024, 0);
                assert_eq!(write(placement, 2, 1024, 30 * SECOND), slc, "{policy:?}");
            });
        }
    }

    #[test]
    fn pages_of_hot_files_have_a_head_of_their_own() {
        for (policy, head) in [(Policy::LOCALITY, Head::SlcHot), (Policy::LOCALITY.published(), Head::SlcCold)] {
            with(policy, |placement| {
                assert_eq!(placement.place(1, Class::Normal, 0, 100), Head::SlcCold);
                assert_eq!(placement.place(1, Class::Synced, 2 * SECOND, 100), head);
                placement.deleted(1);
                assert_eq!(placement.place(1, Class::Normal, 4 * SECOND, 100), Head::SlcCold);
            });
        }
    }

    #[test]
    fn what_is_programmed_is_counted_by_region() {
        with(Policy::ALL, |placement| {
            placement.programmed(Region::Slc, 3);
            placement.programmed(Region::Mlc, 4);
            assert_eq!(placement.wear().unwrap().used().pages, 10);
        });
    }
}
