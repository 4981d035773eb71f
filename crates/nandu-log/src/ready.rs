//! The blocks that are open and those that are opened next.

use nandu_media::READY_COUNT_MAX;
use nandu_media::anchor::mlc_ready_count;
use nandu_media::features::MLC;
use nandu_nand::BlockAddr;

use crate::shape::End;

/// Blocks that one append tries before it gives up.
pub(crate) const BLOCKS_TRIED: u32 = 8;

/// A stream's block and how far it is programmed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frontier {
    pub(crate) block: BlockAddr,
    /// Pages programmed; the frontier of a closed block stays until the stream opens another.
    pub(crate) next: u16,
    /// Place in the ready list, or that of blocks open at the checkpoint.
    pub(crate) slot: u8,
    pub(crate) is_closed: bool,
    /// Pages that are left out, before here or behind, so that their partners stay as they are.
    pub(crate) skipped: u16,
}

/// The ready list of the newest checkpoint, the least worn block first. Hot streams take from its front, the others, whose
/// pages stay for long, from its back: so worn blocks rest. Where there are bare streams, these alone take from the back. Where
/// some streams have two bits a cell, these alone take from the last entries, and no others do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadyList {
    pub(crate) blocks: [BlockAddr; READY_COUNT_MAX],
    pub(crate) count: usize,
    others: usize,
    /// Entries opened since the checkpoint from the front.
    pub(crate) front: usize,
    /// Entries opened since the checkpoint from the back.
    pub(crate) back: usize,
    /// Entries opened since the checkpoint from those for streams with two bits a cell.
    pub(crate) mlc: usize,
}

impl ReadyList {
    pub(crate) const EMPTY: ReadyList =
        ReadyList { blocks: [BlockAddr(0); READY_COUNT_MAX], count: 0, others: 0, front: 0, back: 0, mlc: 0 };

    /// Entries in front of those for streams with two bits a cell: all, where there are none.
    pub(crate) fn others(&self) -> usize {
        if MLC { self.others } else { self.count }
    }

    /// Entries that were not opened, of those that are not for streams with two bits a cell.
    pub(crate) fn remaining(&self) -> usize {
        self.others() - self.front - self.back
    }

    /// The same of those that are.
    pub(crate) fn mlc_remaining(&self) -> usize {
        if MLC { self.count - self.others - self.mlc } else { 0 }
    }

    /// Says which entries are for streams with two bits a cell, now that the list is complete.
    pub(crate) fn divide(&mut self, has_mlc: bool) {
        self.others = self.count - if has_mlc { mlc_ready_count(self.count) } else { 0 };
    }

    pub(crate) fn push(&mut self, block: BlockAddr) {
        self.blocks[self.count] = block;
        self.count += 1;
    }

    pub(crate) fn unopened(&self) -> &[BlockAddr] {
        &self.blocks[self.front..self.others() - self.back]
    }

    pub(crate) fn mlc_unopened(&self) -> &[BlockAddr] {
        &self.blocks[self.others()..self.others() + self.mlc_remaining()]
    }

    pub(crate) fn all_unopened(&self) -> impl Iterator<Item = BlockAddr> + use<'_> {
        self.unopened().iter().chain(self.mlc_unopened()).copied()
    }

    /// Takes the next block from an end, with its place in the list. There has to be one.
    pub(crate) fn take(&mut self, end: End) -> (usize, BlockAddr) {
        let (place, taken) = match end {
            End::Front => (self.front, &mut self.front),
            End::Back => (self.others() - 1 - self.back, &mut self.back),
            End::Mlc => (self.count - 1 - self.mlc, &mut self.mlc),
        };
        *taken += 1;
        (place, self.blocks[place])
    }
}
