//! The pages whose partner may still be programmed, and what they hold.

use nandu_media::features::MLC;
use nandu_media::{NO_PAGE, STREAM_COUNT_MAX};
use nandu_nand::PageAddr;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A commit may name the page.
pub(crate) const NAMED: u8 = 1;
/// Its content is not kept: nobody reads it at another place.
pub(crate) const BLANK: u8 = 2;
/// Its partner will not be programmed before the next erase.
pub(crate) const PROTECTED: u8 = 4;
/// The program of its partner failed: what the chip holds of it may be lost, and its content is in memory only.
pub(crate) const DOUBTED: u8 = 8;

/// An exposed page.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(crate) struct Slot {
    /// All ones: the slot is not in use.
    pub(crate) page: U32,
    pub(crate) stream: u8,
    pub(crate) flags: u8,
    pub(crate) reserved: [u8; 2],
}

impl Slot {
    pub(crate) const UNUSED: Slot = Slot { page: U32::new(NO_PAGE), stream: 0, flags: 0, reserved: [0; 2] };

    pub(crate) fn is_used(&self) -> bool {
        self.page.get() != NO_PAGE
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A page that had to be programmed elsewhere, since the program of its partner failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// Where it was: nothing there can be relied on.
    pub from: PageAddr,
    /// Where it is now. It counts as live there, and no longer where it was.
    pub to: PageAddr,
}

/// The exposed pages of all open blocks, and those that were moved and not asked for.
pub(crate) struct Pairs<'m> {
    pub(crate) slots: &'m mut [Slot],
    /// What the pages hold, a page for each slot.
    pub(crate) copies: &'m mut [u8],
    pub(crate) rescued: [Option<Rescued>; RESCUED_MAX],
}

/// Most pages that are moved and not asked for.
const RESCUED_MAX: usize = if MLC { STREAM_COUNT_MAX } else { 0 };

impl<'m> Pairs<'m> {
    pub(crate) fn new(slots: &'m mut [Slot], copies: &'m mut [u8]) -> Pairs<'m> {
        let mut pairs = Pairs { slots, copies, rescued: [None; RESCUED_MAX] };
        pairs.clear();
        pairs
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill(Slot::UNUSED);
        self.rescued = [None; RESCUED_MAX];
    }

    pub(crate) fn find(&self, page: PageAddr) -> Option<usize> {
        if MLC { self.slots.iter().position(|slot| slot.page.get() == page.0) } else { None }
    }

    pub(crate) fn has(&self, page: PageAddr, flag: u8) -> bool {
        self.find(page).is_some_and(|slot| self.slots[slot].has(flag))
    }

    pub(crate) fn used(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| MLC && slot.is_used())
    }

    /// A page of which the chip may hold nothing.
    pub(crate) fn doubted(&self) -> Option<usize> {
        if MLC { self.slots.iter().position(|slot| slot.is_used() && slot.has(DOUBTED)) } else { None }
    }

    pub(crate) fn range(&self, slot: usize) -> core::ops::Range<usize> {
        let size = self.copies.len() / self.slots.len().max(1);
        slot * size..(slot + 1) * size
    }

    /// What a page holds that cannot be relied on where it is.
    pub(crate) fn doubted_content(&self, page: PageAddr) -> Option<&[u8]> {
        let slot = self.find(page).filter(|&slot| self.slots[slot].has(DOUBTED))?;
        Some(&self.copies[self.range(slot)])
    }

    /// Whether a commit could name a page of which the chip may hold nothing, or that is elsewhere and its owner did not ask.
    pub(crate) fn endangers_commits(&self) -> bool {
        self.used().any(|slot| slot.has(DOUBTED) && slot.has(NAMED)) || self.rescued.iter().any(Option::is_some)
    }

    pub(crate) fn release(&mut self, page: PageAddr) {
        if let Some(slot) = self.find(page) {
            self.slots[slot] = Slot::UNUSED;
        }
    }

    /// No page of a block will be programmed before its next erase.
    pub(crate) fn release_block(&mut self, pages: core::ops::Range<u32>) {
        if !MLC {
            return;
        }
        for slot in self.slots.iter_mut() {
            if pages.contains(&slot.page.get()) && !slot.has(DOUBTED) {
                *slot = Slot::UNUSED;
            }
        }
    }

    /// A page is needed no longer; returns where it is. One that a commit named stays protected: after a cut, recovery may go
    /// back to that commit.
    pub(crate) fn superseded(&mut self, page: PageAddr) -> PageAddr {
        let place = self.rescued.iter().position(|moved| moved.is_some_and(|moved| moved.from == page));
        let moved = place.and_then(|place| self.rescued[place].take());
        let page = moved.map_or(page, |moved| moved.to);
        if !self.has(page, PROTECTED) {
            self.release(page);
        }
        page
    }

    /// Notes that a page is elsewhere. `from` may be where an earlier failure had it moved.
    pub(crate) fn note_rescued(&mut self, from: PageAddr, to: PageAddr) {
        if let Some(earlier) = self.rescued.iter_mut().flatten().find(|moved| moved.to == from) {
            earlier.to = to;
            return;
        }
        let place = self.rescued.iter_mut().find(|place| place.is_none());
        assert!(place.is_some(), "pages were moved after failures, and the owner never asked where");
        if let Some(place) = place {
            *place = Some(Rescued { from, to });
        }
    }
}
