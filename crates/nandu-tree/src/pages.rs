//! The medium as the tree sees it.

use core::error::Error;

use nandu_media::PageKind;
use nandu_media::tag::TAG_OWNER_SIZE;
use nandu_nand::PageAddr;

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
    /// What has to be programmed because other pages are moved, says nothing new, and is replaced with the next move.
    Passing,
    /// A page value that goes to this one of the bare streams, counted from 0, since the owner knows better than the medium.
    Chosen {
        /// Which of them.
        stream: u8,
    },
}

/// What reading a page found out besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What it was appended as: a page of the tree, one of a large value, a journal page or a table of snapshots.
    pub kind: PageKind,
    /// Its place in the order of appends.
    pub sequence: u64,
}

/// What stands where a Summary may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryRead {
    /// A Summary, which is sound as a page.
    Summary,
    /// Nothing was programmed there.
    Erased,
    /// Something else, or what is left of a Summary.
    Unclear,
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

    /// Reads a whole page, of any kind that belongs to a tree, and checks that it is what was appended there.
    fn read(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Found, Self::Error>;

    /// Programs a whole page somewhere and returns where. With `commit`, this page and everything appended before it
    /// is durable when it returns, and after a power cut is found by [`Pages::committed`]; without, it counts only
    /// once a later page is committed.
    fn append(
        &mut self,
        buf: &mut [u8],
        kind: PageKind,
        placement: Placement,
        commit: bool,
    ) -> Result<PageAddr, Self::Error>;

    /// How many snapshots the tree has, so that room is kept to move what they share: moving a page programs up to two more
    /// than there are snapshots.
    ///
    /// Of the newest tree's pages they reach `shared` at most: a change that replaces one of these frees none, so deletes
    /// need room for as many.
    fn note_snapshots(&mut self, count: usize, shared: u32) {
        let _ = (count, shared);
    }

    /// As [`Pages::note_snapshots`], for one snapshot more; an error if there is no room for what it asks, and then nothing has
    /// changed.
    fn admit_snapshot(&mut self, count: usize, shared: u32) -> Result<(), Self::Error> {
        self.note_snapshots(count, shared);
        Ok(())
    }

    /// Pages that are counted as live: all that are, or more.
    fn live_pages(&self) -> u32 {
        0
    }

    /// A number that no large value and no snapshot was given before.
    fn stamp(&self) -> u32 {
        0
    }

    /// The page belongs to an operation under way: its block is not to be emptied before [`Pages::unpin_all`].
    fn pin(&mut self, page: PageAddr) {
        let _ = page;
    }

    /// Ends every pin.
    fn unpin_all(&mut self) {}

    /// Whether the tree has, or once had, values with pages of their own, so that room is kept to move them. The tree
    /// writes it beside its root.
    fn has_values(&self) -> bool {
        false
    }

    /// The tree says beside its root that it has such values.
    fn note_values(&mut self) {}

    /// Whether there are bare pages: pages that hold the user's bytes and nothing else. If not, none of the calls about them is made
    /// but those that only read.
    fn has_bare(&self) -> bool {
        false
    }

    /// The stream of bare pages to which [`Pages::append_bare`] would append a page now.
    fn bare_stream(&self, placement: Placement) -> u8 {
        let _ = placement;
        0
    }

    /// Pages that the open block of a bare stream still takes; the last of them is for a Summary. 0: no block is open.
    fn bare_room(&self, stream: u8) -> u32 {
        let _ = stream;
        0
    }

    /// The bare stream whose open block a page is in.
    fn bare_stream_of(&self, page: PageAddr) -> Option<u8> {
        let _ = page;
        None
    }

    /// Programs a page of bytes as they are and returns where. Not into the last page of a block; never called where there are
    /// no bare pages. The page counts only once a later page is committed.
    fn append_bare(&mut self, bytes: &[u8], placement: Placement) -> Result<PageAddr, Self::Error> {
        let _ = (bytes, placement);
        unreachable!("a medium without bare pages is not asked to append one")
    }

    /// The same. Where [`Pages::can_tag`] says so, with a tag in which the owner says what the page is: then it is durable, and
    /// [`Pages::tail_len`] has grown.
    fn append_tagged(
        &mut self,
        bytes: &[u8],
        owner: &[u8; TAG_OWNER_SIZE],
        placement: Placement,
    ) -> Result<PageAddr, Self::Error> {
        let _ = owner;
        self.append_bare(bytes, placement)
    }

    /// Whether a new bare page appended now could be durable by its tag.
    fn can_tag(&self) -> bool {
        false
    }

    /// Bare pages behind the newest commit that are durable by their tags.
    fn tail_len(&self) -> u16 {
        0
    }

    /// Programs a Summary, a page with a header that is no commit, into the open block of a bare stream. `None` if that failed
    /// and the block was closed. Nothing supersedes it: it goes with its block.
    fn append_summary(&mut self, buf: &mut [u8], stream: u8) -> Result<Option<PageAddr>, Self::Error> {
        let _ = (buf, stream);
        Ok(None)
    }

    /// Whether what bare pages are moved to may be destroyed by the program of a later page of the same block: where two bits share
    /// a cell. If not, none of the calls about such pages is made.
    fn has_pairs(&self) -> bool {
        false
    }

    /// Most pages of a block that may wait for their partner at once. So many pages at the end of a block may stay erased behind
    /// its Summary.
    fn exposed_max(&self) -> usize {
        0
    }

    /// Whether a page that was moved can be named by the next commit: no program that is cut destroys it after that.
    fn is_settled(&self, page: PageAddr) -> bool {
        let _ = page;
        true
    }

    /// Has a page that was moved settled at once, for a page of its block that stays erased.
    fn settle(&mut self, page: PageAddr) {
        let _ = page;
    }

    /// The next bare page that had to be programmed elsewhere, since a program over its cells failed: where it was, and where it is.
    fn rescue(&mut self) -> Result<Option<(PageAddr, PageAddr)>, Self::Error> {
        Ok(None)
    }

    /// Whether the pages of a bare stream share their cells with others.
    fn is_paired(&self, stream: u8) -> bool {
        let _ = stream;
        false
    }

    /// Whether the next commit may name a page over whose cells another one could be programmed until then.
    fn promises_exposed(&self) -> bool {
        false
    }

    /// The stream whose open block a commit now would leave without a page for a Summary.
    fn summary_due(&self) -> Option<u8> {
        None
    }

    /// No copy waits any more ([`Examined::Copied`]): what was copied and lives may be asked about again.
    fn forget_copied(&mut self) {}

    /// Whether an error says that there is no room.
    fn is_full(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }

    /// Whether the medium has to be opened again before anything can be programmed: then an error is passed on, whatever could be done
    /// without what failed, since it is the only one that says why.
    fn is_lost(&self) -> bool {
        false
    }

    /// Reads a part of a bare page. Nothing tells whether it is what was appended there.
    fn read_bare(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<(), Self::Error> {
        self.read(page, buf).map(|_| ())
    }

    /// Reads a page that may be a Summary. That it is none is no error.
    fn read_summary(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<SummaryRead, Self::Error> {
        let kind = self.read(page, buf)?.kind;
        Ok(if kind == PageKind::Summary { SummaryRead::Summary } else { SummaryRead::Unclear })
    }

    /// Whether a page is in a block of bare pages.
    fn is_bare(&self, page: PageAddr) -> bool {
        let _ = page;
        false
    }

    /// The last page of the block of a page.
    fn last_of_block(&self, page: PageAddr) -> PageAddr {
        page
    }

    /// Whether so many pages of either kind can be appended now, and nothing has to be moved for that.
    fn has_room(&mut self, pages: u32) -> Result<bool, Self::Error> {
        let _ = pages;
        Ok(true)
    }

    /// Whether so many pages more may live; with `overdraws`, for a while, in a part of what is kept dead for the collector too. Costs
    /// nothing.
    fn has_capacity(&self, pages: u32, overdraws: bool) -> bool {
        let _ = (pages, overdraws);
        true
    }

    /// The block of a page, if it is known.
    fn counted(&self, page: PageAddr) -> Option<Counted> {
        let _ = page;
        None
    }

    /// Which block a page is in.
    fn block_of(&self, page: PageAddr) -> u32 {
        page.0
    }

    /// Pages that can be appended now in all.
    fn room_in_all(&self) -> u32 {
        u32::MAX
    }

    /// Pages that can be appended now to move what lives, beside those that other operations need.
    fn move_room(&self) -> u32 {
        u32::MAX
    }

    /// Whether more blocks are empty than the collector needs to be left.
    fn has_spare_blocks(&self) -> bool {
        true
    }

    /// As [`Pages::prepare`], for a large value that takes so many pages in all, most of which are prepared for again one by
    /// one.
    fn prepare_value(&mut self, pages: u32) -> Result<Option<Examine>, Self::Error> {
        let _ = pages;
        self.prepare(Need { pages: 1, pages_max: 1, live_max: 1, shrinks: false })
    }

    /// Nothing points at this page any more. Called only for pages appended and, for a page of a committed state, only
    /// after the commit that superseded it. It can still be read until the next page is appended.
    fn supersede(&mut self, page: PageAddr);

    /// Any number of pages of committed states may be dead that are not going to be superseded: whoever wants to know has to ask.
    fn doubt(&mut self) {}

    /// Makes room for an operation. Returns a page to be examined first: the tree finds out whether it lives, tells with
    /// [`Pages::examined`], and asks again. `None` when there is room.
    fn prepare(&mut self, need: Need) -> Result<Option<Examine>, Self::Error> {
        let _ = need;
        Ok(None)
    }

    /// What became of a page returned by [`Pages::prepare`].
    fn examined(&mut self, examine: Examine, outcome: Examined) -> Result<(), Self::Error> {
        let _ = (examine, outcome);
        Ok(())
    }

    /// What it means for the page under examination that reading or moving it failed: an error to be returned, or an
    /// outcome with which work goes on.
    fn excuse(&mut self, page: PageAddr, error: Self::Error) -> Result<Examined, Self::Error> {
        let _ = page;
        Err(error)
    }
}

/// A block to which nothing more is appended, and how many of its pages live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its first page.
    pub first: u32,
    /// Its pages.
    pub pages: u32,
    /// Other than before where it was filled again.
    pub erase_count: u32,
    /// How many of them live, if that is known: after a cut it may be fewer than are counted.
    pub live: Option<u16>,
}

/// What an operation is going to append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Pages that it appends as a rule.
    pub pages: u32,
    /// Pages that it may append, if nodes are split; for a batch an estimate.
    pub pages_max: u32,
    /// By how many more pages live after it than before, at most: it supersedes most of what it appends anew.
    pub live_max: u32,
    /// Whether it frees at least as many pages as it appends, as a delete does: then it is allowed on a full medium.
    pub shrinks: bool,
}

/// A page about which the medium asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Examine {
    /// The page.
    pub page: PageAddr,
    /// Whether to move the page if it lives; if not, it is only asked whether it does.
    pub moves: bool,
    /// Whether it may be left for the next sync to supersede, to be asked about again.
    pub may_wait: bool,
}

/// What the tree found about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// Nothing points at it.
    Dead,
    /// It lived, and has been appended elsewhere and superseded.
    Moved,
    /// It lives, and has been appended where no commit can name it yet. When one does it is superseded.
    Copied,
    /// It lives and is where it was.
    Live,
    /// The same, and the next sync is going to supersede it as likely as not.
    Later,
    /// It cannot be read, so nobody knows.
    Unreadable,
}
