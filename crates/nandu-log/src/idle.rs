//! What idle time may be used for, and why it comes to rest.
//!
//! Moving pages makes some others dead, as those that name them; so whoever goes on for as long as something is dead moves pages
//! for ever, and wears out a chip that nobody writes to. Idle time does beforehand what operations would have to do, and no more:
//!
//! * **L18** Since the mount, idle time programs at most [`INSTALMENT_MAX`] pages for each that operations appended, and behind the last of
//!   these no more than live, but for the rest of a block. What idle time programs earns it nothing. Leaves that
//!   name pages moved to two bits a cell come later, at most one for each. To make room it empties a block only while
//!   blocks are few and a quarter of that block is dead. So it comes to rest, and in a session that appends nothing it programs and erases
//!   nothing. What is in danger is moved besides, once: its bits flip ([`Cause::Refresh`]), or a program failed beside it ([`Cause::Retire`]).
//!
//! Blocks are few where operations pay instalments, or where an owner that chooses its victims says so
//! ([`Budget::chosen`](crate::Budget::chosen)).

use nandu_nand::{BlockAddr, Cause, Nand};

use crate::collector::INSTALMENT_MAX;
use crate::log::Log;

/// Part of a block's pages, as a divisor, that is to be dead for idle time to empty it. Operations take what there is when they must.
const DEAD_SHARE: u32 = 4;

impl<N: Nand> Log<'_, N> {
    /// Pages that idle time may still program (L18). Costs nothing.
    pub fn idle_programs(&self) -> u32 {
        let earned = (self.appended() - self.collector.idle_seen).saturating_mul(INSTALMENT_MAX.into());
        let left = u64::from(self.collector.idle_left).saturating_add(earned);
        left.min(self.blocks.live_total().into()) as u32
    }

    /// What operations appended since the mount.
    fn appended(&self) -> u64 {
        self.stats.programs[Cause::Host as usize] + self.stats.programs[Cause::Value as usize]
    }

    /// Whether idle time may erase blocks ahead of their use: no checkpoint says that it did, so the next session would again.
    pub(crate) fn may_idle_erase(&self) -> bool {
        self.appended() > 0
    }

    /// Takes what the page just examined made idle time program.
    pub(crate) fn spend_idle_programs(&mut self) {
        let programs = self.stats.programs().saturating_sub(self.collector.programs_before);
        let left = u64::from(self.idle_programs()).saturating_sub(programs);
        (self.collector.idle_seen, self.collector.idle_left) = (self.appended(), left as u32);
    }

    /// Whether a block is to be emptied although nobody waits for its room.
    pub(crate) fn is_worth_idling(&self, block: BlockAddr, to_mlc: bool) -> bool {
        let (live, most) = (u32::from(self.blocks.live(block)), u32::from(self.moved_max(block, to_mlc)));
        live * DEAD_SHARE <= most * (DEAD_SHARE - 1) && live <= self.idle_programs()
    }
}
