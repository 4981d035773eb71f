//! Finding again what was programmed since a checkpoint, in the order in which it was.

use nandu_media::dffs::{FLAG_RECOVERY, Fields, Kind};
use nandu_media::{Field, Malformed};
use nandu_nand::{BlockAddr, Nand, PageAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::blocks::{Area, NEW};
use crate::dffs::{Dffs, HEADS, NO_BLOCK, Result};
use crate::error::Error;
use crate::pages::NODE;

/// The next page to look at in a block.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Cursor {
    /// Sequence of the page, or the highest there is at the end of the block.
    sequence: u64,
    block: u32,
    /// Where the block begins to be new.
    first: u32,
    index: u32,
    area: u32,
}

impl Cursor {
    pub(crate) const NONE: Cursor = Cursor { sequence: u64::MAX, block: NO_BLOCK, first: 0, index: 0, area: 0 };
}

/// The area of a kind of inode.
fn area_of(kind: Kind) -> Option<Area> {
    match kind {
        Kind::Directory => Some(Area::Directory),
        Kind::Virtual => Some(Area::Virtual),
        Kind::File => Some(Area::File),
        _ => None,
    }
}

impl<N: Nand> Dffs<'_, N> {
    /// Finds the blocks with inodes newer than the checkpoint: those that were being filled, from where the checkpoint left them, and of those that
    /// were free all whose first page is newer. Others cannot have any, since no block is used again before a checkpoint. Costs a read for
    /// each block that was free.
    pub(crate) fn find_cursors(&mut self) -> Result<(), N> {
        let mut count = 0;
        for (head, area) in self.heads.into_iter().zip(HEADS) {
            if head.block != NO_BLOCK && matches!(area, Area::Directory | Area::Virtual | Area::File) {
                self.add_cursor(&mut count, head.block, head.index, area)?;
            }
        }
        for block in self.blocks.addresses() {
            if !self.blocks.get(block).is_free() {
                continue;
            }
            // The second page if the first cannot be read: one that was acknowledged may have decayed.
            for nth in 0..2 {
                match self.inspect(self.page_of(block, nth), NODE)? {
                    Ok(Fields { kind, sequence, flags, .. }) if sequence > self.checkpoint => {
                        // O14: its sequence is used up, be it of a recovery that was cut.
                        self.sequence = self.sequence.max(sequence);
                        if let Some(area) = area_of(kind).filter(|_| flags & FLAG_RECOVERY == 0) {
                            self.blocks.update(block, |entry| {
                                entry.set_area(area);
                                entry.flags |= NEW;
                            });
                            self.add_cursor(&mut count, block.0, 0, area)?;
                        }
                        break;
                    }
                    Ok(_) | Err(Malformed::Erased) => break,
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    fn add_cursor(&mut self, count: &mut usize, block: u32, first: u32, area: Area) -> Result<(), N> {
        let page = self.page_of(BlockAddr(block), first);
        let cursor = self.cursors.get_mut(*count);
        let cursor = cursor.ok_or(Error::Corrupt { page, why: Malformed::Range(Field::BlocksSinceTheCheckpoint) })?;
        *cursor = Cursor { sequence: u64::MAX, block, first, index: first, area: area as u32 };
        *count += 1;
        Ok(())
    }

    /// Begins to go through the pages.
    pub(crate) fn rewind(&mut self) -> Result<(), N> {
        for at in 0..self.cursors.len() {
            self.cursors[at].index = self.cursors[at].first;
            self.settle_cursor(at)?;
        }
        Ok(())
    }

    /// Moves a cursor on to a page that counts.
    fn settle_cursor(&mut self, at: usize) -> Result<(), N> {
        self.cursors[at].sequence = u64::MAX;
        while self.cursors[at].block != NO_BLOCK && self.cursors[at].index < self.block_pages {
            let Cursor { block, index, area, .. } = self.cursors[at];
            let page = self.page_of(BlockAddr(block), index);
            // What a cut or a failed program left counts for nothing.
            if let Ok(fields) = self.inspect(page, NODE)? {
                let fits = area_of(fields.kind).is_some_and(|kind| kind as u32 == area);
                if fits && fields.sequence > self.checkpoint && fields.flags & FLAG_RECOVERY == 0 {
                    self.cursors[at].sequence = fields.sequence;
                    return Ok(());
                }
            }
            self.cursors[at].index += 1;
        }
        Ok(())
    }

    /// The next page in the order of programs, with its content in [`NODE`].
    pub(crate) fn next_new(&mut self) -> Result<Option<(PageAddr, Fields)>, N> {
        let next = self.cursors.iter().enumerate().min_by_key(|(_, cursor)| cursor.sequence);
        let Some((at, cursor)) = next.filter(|(_, cursor)| cursor.sequence != u64::MAX) else { return Ok(None) };
        let page = self.page_of(BlockAddr(cursor.block), cursor.index);
        self.cursors[at].index += 1;
        self.settle_cursor(at)?;
        let fields = self.load(page, NODE)?;
        Ok(Some((page, fields)))
    }
}
