//! Where each stream stands.

use nandu_media::{Position, STREAM_COUNT_MAX};
use nandu_nand::BlockAddr;

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
    pages: u16,
}

impl Heads {
    pub(crate) const fn new(streams: u8, pages: u16) -> Heads {
        Heads { heads: [None; STREAM_COUNT_MAX], streams, pages }
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
        self.open(stream).map_or(0, |head| u32::from(self.pages - head.next))
    }

    /// A stream goes on in another block; `slot` is `None` where the checkpoint says that it is open.
    pub(crate) fn begin(&mut self, stream: u8, block: BlockAddr, next: u16, slot: Option<u8>) {
        debug_assert!(self.open(stream).is_none(), "a block is closed before the next one is opened");
        debug_assert!(stream < self.streams && next < self.pages);
        let slot = slot.unwrap_or(Position::SLOT_OPEN);
        self.heads[usize::from(stream)] = Some(Head { block, next, slot, is_closed: false });
    }

    /// A page was programmed. Returns the block if it is full now; it is closed then.
    #[must_use]
    pub(crate) fn advance(&mut self, stream: u8) -> Option<BlockAddr> {
        let head = self.heads[usize::from(stream)].as_mut()?;
        debug_assert!(!head.is_closed && head.next < self.pages);
        head.next += 1;
        head.is_closed = head.next == self.pages;
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
        debug_assert!(self.heads.iter().flatten().all(|head| head.next < self.pages));
    }

    /// A checkpoint was made: blocks are those that were open there.
    pub(crate) fn rebase(&mut self) {
        self.heads.iter_mut().flatten().for_each(|head| head.slot = Position::SLOT_OPEN);
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
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::Heads;
    use nandu_media::Position;
    use nandu_nand::BlockAddr;

    #[test]
    fn headers_tell_of_a_block_until_the_next_one_is_opened() {
        let mut heads = Heads::new(2, 2);
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
}
