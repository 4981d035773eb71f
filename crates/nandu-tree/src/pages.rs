//! The medium as the tree sees it.

use core::error::Error;

use nandu_nand::PageAddr;

use crate::Malformed;

/// Why a page is appended, for the medium to place it well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// A change the user asked for. `supersedes` is the page whose lowest node this one replaces, if there is one: how
    /// long that lived is the best guess at how long this one will.
    Update {
        /// The page replaced.
        supersedes: Option<PageAddr>,
    },
    /// A node split off, which nothing says will change soon.
    Split,
    /// What [`Tree::relocate`](crate::Tree::relocate) moves out of a block that is to be erased.
    Moved {
        /// Where it was.
        from: PageAddr,
    },
}

/// What the tree needs of the medium below it: pages appended in an order that a power cut does not change.
///
/// The tree numbers pages as the chip does. A page appended is never changed; it is either superseded or lives.
pub trait Pages {
    /// What can go wrong below.
    type Error: Error;

    /// Bytes in a page, 256 to 65,536.
    fn page_size(&self) -> usize;

    /// Bytes at the front of a page that [`Pages::append`] fills in and the tree leaves alone.
    fn header_size(&self) -> usize;

    /// Page addresses are below this.
    fn page_count(&self) -> u32;

    /// The page appended last with `commit`; `None` on a medium just formatted.
    fn committed(&self) -> Option<PageAddr>;

    /// Reads a whole page and checks that it is what was appended there.
    fn read(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<(), Self::Error>;

    /// Programs a whole page somewhere and returns where. With `commit`, this page and everything appended before it
    /// is durable when it returns, and after a power cut is found by [`Pages::committed`]; without, it counts only
    /// once a later page is committed.
    fn append(&mut self, buf: &mut [u8], placement: Placement, commit: bool) -> Result<PageAddr, Self::Error>;

    /// Nothing points at this page any more. Called only for pages appended and, for a page of a committed state, only
    /// after the commit that superseded it.
    fn supersede(&mut self, page: PageAddr);

    /// Makes room for an operation that appends up to this many pages. Returns a page to be examined first: the tree
    /// moves it if it lives, tells with [`Pages::examined`], and asks again. `None` when there is room.
    fn prepare(&mut self, pages: u32) -> Result<Option<PageAddr>, Self::Error> {
        let _ = pages;
        Ok(None)
    }

    /// A page returned by [`Pages::prepare`] is no longer needed: it was stale, or it was moved.
    fn examined(&mut self, page: PageAddr, was_live: bool) -> Result<(), Self::Error> {
        let _ = (page, was_live);
        Ok(())
    }

    /// The content of a page contradicts itself although the page passed the checks of [`Pages::read`].
    fn report_corrupt(&mut self, page: PageAddr, why: Malformed) {
        let _ = (page, why);
    }
}
