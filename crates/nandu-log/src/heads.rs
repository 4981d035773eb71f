//! Where each stream stands.

use nandu_media::features::{FILES, MLC};
use nandu_media::{Position, STREAM_COUNT_MAX};
use nandu_nand::{BlockAddr, CellMode};

/// A stream's block and how far it is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) block: BlockAddr,
    /// Pages programmed.
    pub(crate) next: u16,
    /// Place in the ready list, or that of blocks open at the checkpoint.
    slot: u8,
    /// Nothing more goes there. The head of a closed block stays until its stream opens another, so that headers tell of it.
    is_closed: bool,
}

/// The heads of all streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads {
    heads: [Option<Head>; STREAM_COUNT_MAX],
    streams: u8,
    /// How many of them, the last ones, are of raw pages; the second of these has two bits a cell.
    raws: u8,
    /// Pages of a block with one bit a cell, and with two.
    pages: (u16, u16),
    /// Pages that a commit takes.
    commits: u8,
    /// A bit for each place of the ready list that streams of raw pages opened since the checkpoint, and that the one with two bits a cell did.
    raw_slots: [u16; 1 + MLC as usize],
}

impl Heads {
    pub(crate) const fn new((streams, raws): (u8, u8), pages: (u16, u16), commits: u8) -> Heads {
        Heads { heads: [None; STREAM_COUNT_MAX], streams, raws, pages, commits, raw_slots: [0; 1 + MLC as usize] }
    }

    /// The stream of raw pages with so many bits in a cell, if there is one.
    pub(crate) fn raw(&self, mode: CellMode) -> Option<u8> {
        debug_assert!(
            self.raws <= 2 && self.raws < self.streams,
            "one of each mode, behind those of pages with headers"
        );
        match mode {
            CellMode::Slc => (FILES && self.raws > 0).then(|| self.streams - self.raws),
            CellMode::Mlc => (MLC && self.raws > 1).then(|| self.streams - 1),
        }
    }

    /// How the cells of a stream's blocks are used.
    pub(crate) fn mode(&self, stream: u8) -> CellMode {
        if self.raw(CellMode::Mlc) == Some(stream) { CellMode::Mlc } else { CellMode::Slc }
    }

    /// Whether a stream is of raw pages.
    pub(crate) fn is_raw(&self, stream: u8) -> bool {
        self.raw(CellMode::Slc).is_some_and(|first| stream >= first)
    }

    /// Pages of a block of a stream.
    pub(crate) fn pages(&self, stream: u8) -> u16 {
        if self.mode(stream) == CellMode::Mlc { self.pages.1 } else { self.pages.0 }
    }

    pub(crate) fn streams(&self) -> u8 {
        self.streams
    }

    pub(crate) fn open(&self, stream: u8) -> Option<Head> {
        self.heads[usize::from(stream)].filter(|head| !head.is_closed)
    }

    /// Pages programmed in a block that is open.
    pub(crate) fn next_in(&self, block: BlockAddr) -> Option<u16> {
        self.heads.iter().flatten().find(|head| head.block == block && !head.is_closed).map(|head| head.next)
    }

    /// Pages that the open block of a stream still takes.
    pub(crate) fn room(&self, stream: u8) -> u32 {
        self.open(stream).map_or(0, |head| u32::from(self.pages(stream) - head.next))
    }

    /// Whether a commit opens a block.
    pub(crate) fn commit_opens(&self) -> bool {
        self.room(0) < self.commits.into()
    }

    /// Pages that a commit takes.
    pub(crate) fn commits(&self) -> u8 {
        self.commits
    }

    /// Blocks that an operation with so many pages opens, the last of them a commit.
    pub(crate) fn opened_by(&self, pages: u32) -> u32 {
        debug_assert!(pages > 0, "an operation has a commit");
        let nodes = (pages - 1).saturating_sub(self.room(1));
        u32::from(self.commit_opens()) + nodes.div_ceil(self.pages.0.into())
    }

    /// Blocks that a raw page opens.
    pub(crate) fn opened_by_raw(&self, mode: CellMode) -> u32 {
        u32::from(self.raw(mode).is_some_and(|raw| self.room(raw) == 0))
    }

    /// A stream goes on in another block; `slot` is `None` where the checkpoint says that it is open.
    pub(crate) fn begin(&mut self, stream: u8, block: BlockAddr, next: u16, slot: Option<u8>) {
        debug_assert!(self.open(stream).is_none(), "a block is closed before the next one is opened");
        debug_assert!(stream < self.streams && next < self.pages(stream));
        if let Some(slot) = slot.filter(|_| self.is_raw(stream)) {
            let sets = 1 + usize::from(self.mode(stream) == CellMode::Mlc);
            self.raw_slots.iter_mut().take(sets).for_each(|slots| *slots |= 1 << slot);
        }
        let slot = slot.unwrap_or(Position::SLOT_OPEN);
        self.heads[usize::from(stream)] = Some(Head { block, next, slot, is_closed: false });
    }

    /// A page was programmed. Returns the block if it is full now; it is closed then.
    #[must_use]
    pub(crate) fn advance(&mut self, stream: u8) -> Option<BlockAddr> {
        let pages = self.pages(stream);
        let head = self.heads[usize::from(stream)].as_mut()?;
        debug_assert!(!head.is_closed && head.next < pages);
        head.next += 1;
        head.is_closed = head.next == pages;
        head.is_closed.then_some(head.block)
    }

    /// Nothing more goes to the block of a stream.
    pub(crate) fn close(&mut self, stream: u8) {
        if let Some(head) = &mut self.heads[usize::from(stream)] {
            debug_assert!(!head.is_closed, "a block is closed once");
            head.is_closed = true;
        }
        debug_assert!(self.room(stream) == 0);
    }

    /// Forgets the block of a stream in which nothing was programmed.
    pub(crate) fn forget(&mut self, stream: u8) {
        debug_assert!(self.open(stream).is_none(), "an open block is not forgotten");
        self.heads[usize::from(stream)] = None;
    }

    /// A checkpoint is about to be made: it tells of open blocks only.
    pub(crate) fn forget_closed(&mut self) {
        for head in &mut self.heads {
            *head = head.filter(|head| !head.is_closed);
        }
        debug_assert!(self.heads.iter().flatten().all(|head| head.next < self.pages.1));
    }

    /// A checkpoint was made: blocks are those that were open there.
    pub(crate) fn rebase(&mut self) {
        self.heads.iter_mut().flatten().for_each(|head| head.slot = Position::SLOT_OPEN);
        self.raw_slots.fill(0);
    }

    /// Where each stream stands, counting the page that is about to be programmed in one of them.
    pub(crate) fn positions_with(&self, stream: u8) -> [Position; STREAM_COUNT_MAX] {
        debug_assert!(stream < self.streams);
        let mut positions = [Position::NONE; STREAM_COUNT_MAX];
        for (at, (position, head)) in positions.iter_mut().zip(&self.heads).enumerate() {
            let Some(head) = head else { continue };
            let next = head.next + u16::from(at == usize::from(stream));
            if let Some(last) = next.checked_sub(1) {
                *position = Position::new(head.slot, last).unwrap_or(Position::NONE);
            }
        }
        for (place, &slots) in self.raw_slots.iter().take(self.raws.into()).enumerate() {
            positions[usize::from(self.streams) + place] = Position::of_slots(slots);
        }
        positions
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Heads;
    use nandu_media::Position;
    use nandu_nand::BlockAddr;

    #[test]
    fn headers_tell_of_a_block_until_the_next_one_is_opened() {
        let mut heads = Heads::new((2, 0), (2, 2), 1);
        heads.begin(0, BlockAddr(7), 0, Some(3));
        assert_eq!(heads.positions_with(1)[0], Position::NONE);
        assert_eq!(heads.positions_with(0)[0], Position::new(3, 0).unwrap());
        assert_eq!(heads.advance(0), None);
        assert_eq!(heads.advance(0), Some(BlockAddr(7)));
        assert_eq!((heads.room(0), heads.positions_with(1)[0]), (0, Position::new(3, 1).unwrap()));
        heads.begin(0, BlockAddr(8), 0, Some(4));
        assert_eq!(heads.advance(0), None);
        heads.rebase();
        assert_eq!(heads.positions_with(1)[0], Position::new(Position::SLOT_OPEN, 0).unwrap());
        heads.close(0);
        heads.forget_closed();
        assert_eq!(heads.heads[0], None);
    }

    #[test]
    fn headers_say_which_blocks_of_the_list_are_raw() {
        let mut heads = Heads::new((3, 1), (2, 2), 1);
        heads.begin(1, BlockAddr(4), 0, Some(5));
        heads.begin(2, BlockAddr(7), 0, Some(4));
        heads.close(2);
        heads.begin(2, BlockAddr(8), 0, Some(3));
        let raw = heads.positions_with(0)[3];
        assert_eq!((0..14).filter(|&slot| raw.has_slot(slot)).collect::<std::vec::Vec<_>>(), [3, 4]);
        heads.rebase();
        assert!((0..14).all(|slot| !heads.positions_with(0)[3].has_slot(slot)));
    }
}
