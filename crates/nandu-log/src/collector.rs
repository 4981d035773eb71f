//! What the collector is doing.

use nandu_nand::{BlockAddr, Cause, PageAddr};

/// Most pages that an operation examines for each page that it appends. Where the owner says that moving a page may program more
/// than one ([`Log::expect_moves_of`](crate::Log::expect_moves_of)), each of those beside the first counts as a page examined; only the last examination
/// of an instalment may go beyond the bound, by as many.
///
/// The reserve leaves at least a twelfth of the pages of every set of full blocks dead, so emptying blocks yields more than
/// one page for twelve examined; with sixteen the pool cannot run dry.
pub const INSTALMENT_MAX: u32 = 16;

/// Fewest ready blocks that are enough: one to open, one for recovery.
pub(crate) const READY_MIN: usize = 2;

/// What is being emptied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collector {
    pub(crate) victim: Option<BlockAddr>,
    pub(crate) cursor: u16,
    pub(crate) cause: Cause,
    /// A page of the victim cannot be read and may be live.
    pub(crate) is_damaged: bool,
    /// The victim is counted, not emptied.
    pub(crate) counts_only: bool,
    /// Pages of the victim before the cursor that are live and stay.
    pub(crate) left: u16,
    /// The page handed out and not answered yet: not counted in `left`, whatever happens to it.
    pub(crate) pending: Option<PageAddr>,
    /// Ready blocks that the operation under way needs, one for recovery among them.
    pub(crate) ready_wanted: usize,
    /// An operation waits for ready blocks, so nothing is erased ahead.
    pub(crate) is_urgent: bool,
    /// Live counts are to be made exact, since the chip may be full.
    pub(crate) wants_exact: bool,
    /// Steps of the instalment under way, and pages it is for.
    pub(crate) taken: u32,
    pub(crate) pages: u32,
    /// What the last victim was ranked by where blocks are scarce, if its owner left pages in it for want of room.
    pub(crate) left_behind: Option<(u32, BlockAddr)>,
    /// The block that the owner wants to be emptied next.
    pub(crate) chosen: Option<BlockAddr>,
    /// To what it books that.
    pub(crate) chosen_cause: Cause,
    /// The next checkpoint lists the most worn block that holds nothing, for pages of that.
    pub(crate) lists_most_worn: bool,
    /// Pages that moving one may program, but for the first.
    pub(crate) beside_max: u32,
    /// Pages that must be able to live for the owner to change anything.
    pub(crate) change_min: u32,
    /// Moving a page may program another one that names it.
    pub(crate) has_named_pages: bool,
    /// Pages programmed before the page under examination was handed out.
    pub(crate) programs_before: u64,
    /// Pages that the last examination programmed beside the first, and that the budget has not paid for yet.
    pub(crate) debt: u32,
    /// Whether the page under examination was handed out for an instalment.
    pub(crate) is_instalment: bool,
    /// Whether it was handed out for idle time.
    pub(crate) is_idle: bool,
    /// Pages that idle time may still program to make room (L18).
    pub(crate) idle_left: u32,
    /// Pages of operations that it was given some for.
    pub(crate) idle_seen: u64,
    /// Pages moved for levelling since the mount.
    pub(crate) levelled: u64,
    /// Pages that operations may append until idle time of the owner is expected no longer.
    pub(crate) idle_trust: u32,
    /// The owner put off moving a page, so the instalment is over.
    pub(crate) is_put_off: bool,
}

impl Collector {
    pub(crate) const IDLE: Collector = Collector {
        victim: None,
        cursor: 0,
        cause: Cause::Gc,
        is_damaged: false,
        counts_only: false,
        left: 0,
        pending: None,
        ready_wanted: READY_MIN,
        is_urgent: false,
        wants_exact: false,
        taken: 0,
        pages: 1,
        left_behind: None,
        chosen: None,
        chosen_cause: Cause::Migration,
        lists_most_worn: false,
        beside_max: 0,
        change_min: 1,
        has_named_pages: false,
        programs_before: 0,
        debt: 0,
        is_instalment: false,
        is_idle: false,
        idle_left: 0,
        idle_seen: 0,
        levelled: 0,
        idle_trust: 0,
        is_put_off: false,
    };

    /// Steps of the instalment under way per page it is for.
    pub(crate) fn instalment_steps(&self) -> u32 {
        self.taken.div_ceil(self.pages.max(1))
    }
}
