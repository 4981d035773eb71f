//! FORMAT: Tails
//!
//! Where the chip has 16 protected bytes in the spare area of a page, a raw page can carry a tag there ([`nandu_media::tag`]), in which its owner says what a commit would say of it. So one
//! program makes it durable. The tagged pages behind a commit are its **tail**.
//!
//! A tail begins where the header of its commit says that the stream of raw pages stands, and goes no further than 9 pages and the end of that block. Where a checkpoint came between, that one says where it begins, and
//! behind which commit. A page of the tail is one whose tag fits its volume, its address, its content, its commit and its place behind the first one. Between them one other may stand, such as a copy of a page that was moved; a second one in a row, a page that was left
//! out, or one that is erased, ends the tail.
//!
//! ```text
//! anchor, tail    first page that may have a tag (4, all ones: none), 0 (4), sequence of the commit (8)
//! tag, place      pages between the first one and this
//! ```
//!
//! * A mount after a cut hands the tail to the owner, who makes in memory what its tags say, and commits all of it at once. If another cut comes first, the next mount finds the
//!   same tail: the commit was copied without one of its own, and the checkpoint names the tail.
//! * The last page of the tail may be the one that was being programmed when the power went, and read well now and not later. Its owner programs it elsewhere before that commit.
//! * A page that cannot be read, or whose tag does not fit, with a page of the tail behind it, has decayed: what its owner said is not known any more. It is counted ([`TailStats`]).
//! * What tags say of becomes durable in another way with the next commit, and the tail ends.

use nandu_media::anchor;
use nandu_media::features::TAGS;
use nandu_media::tag::{TAG_OWNER_SIZE, TagPlace};
use nandu_nand::PageAddr;

use crate::shape::Shape;

/// What an owner says of a page in its tag.
pub type Tag = [u8; TAG_OWNER_SIZE];

/// Pages of a tail at most, each of which is a read of a mount.
pub const TAIL_MAX: u16 = 9;

/// Places in a row without a tag that a tail goes on behind, so that a mount reads few pages for nothing.
const OTHERS_MAX: u8 = 1;

/// What a mount finds in a place of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// Nothing, and nothing behind it.
    End,
    /// A page that is none of the tail.
    Other,
    /// A page that cannot be read, or whose tag does not fit: it is none of the tail, or was. With a page of the tail behind it, it was.
    Lost,
    /// A page of the tail, and what its owner said of it.
    Of(PageAddr, Tag),
}

/// What a mount found of the tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TailStats {
    /// Pages that were durable by their tags alone.
    pub pages: u32,
    /// Pages besides that were so and could not be read.
    pub lost: u32,
}

/// The raw pages behind the newest commit that may have tags. Takes no memory where tags are not compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    state: [TailState; TAGS as usize],
}

#[derive(Clone, Copy, Debug)]
struct TailState {
    first: Option<PageAddr>,
    /// Sequence of the commit.
    commit: u64,
    /// The page of it that was programmed last.
    newest: Option<PageAddr>,
    /// Whether another page can become one of it.
    is_open: bool,
    /// What a mount found: pages, lost pages, and those that were lost if another page is found behind them.
    mounted: (u8, u8, u8),
    /// Places in a row in which a mount found a page that is none of it.
    others: u8,
}

impl TailState {
    const NONE: TailState =
        TailState { first: None, commit: 0, newest: None, is_open: false, mounted: (0, 0, 0), others: 0 };
}

impl Tail {
    pub(crate) const NONE: Tail = Tail { state: [TailState::NONE; TAGS as usize] };

    fn state(&self) -> TailState {
        self.state.first().copied().unwrap_or(TailState::NONE)
    }

    /// Begins behind a commit that was just programmed, with the page that comes next in the stream of raw pages.
    pub(crate) fn begin(&mut self, commit: u64, first: Option<PageAddr>) {
        let Some(state) = self.state.first_mut() else { return };
        debug_assert!(commit > state.commit, "sequences ascend");
        *state = TailState { first, commit, newest: None, is_open: first.is_some(), ..*state };
    }

    /// What a mount knows of: the first page, and the commit.
    pub(crate) fn stored(first: PageAddr, commit: u64) -> Tail {
        let mut tail = Tail::NONE;
        if let Some(state) = tail.state.first_mut() {
            // There may be one.
            *state = TailState { first: Some(first), commit, newest: Some(first), ..TailState::NONE };
        }
        tail
    }

    /// A mount found this in a place. Where nothing is in the first one, there is no tail. Returns whether that ends it: nothing behind it has a tag.
    pub(crate) fn found_at(&mut self, place: u16, found: Tagged) -> bool {
        let Some(state) = self.state.first_mut() else { return true };
        debug_assert!(place < TAIL_MAX && !state.is_open, "only a mount looks for the tail");
        let (pages, lost, doubtful) = state.mounted;
        state.others = if found == Tagged::Other { state.others.saturating_add(1) } else { 0 };
        match found {
            Tagged::End if place == 0 => *state = TailState::NONE,
            Tagged::Lost => state.mounted = (pages, lost, doubtful + 1),
            Tagged::Of(..) => state.mounted = (pages + 1, lost + doubtful, 0),
            Tagged::End | Tagged::Other => {}
        }
        found == Tagged::End || state.others > OTHERS_MAX
    }

    pub(crate) fn mounted(&self) -> TailStats {
        let (pages, lost, _) = self.state().mounted;
        TailStats { pages: pages.into(), lost: lost.into() }
    }

    /// What a checkpoint says of it.
    pub(crate) fn to_stored(self) -> Option<anchor::TailFields> {
        let TailState { first, commit, .. } = self.state();
        first.map(|PageAddr(first)| anchor::TailFields { first, commit, is_due: false })
    }

    /// Whether another page can become one of it: then no mount found it.
    pub(crate) fn is_open(&self) -> bool {
        self.state().is_open
    }

    /// No other page becomes one of it.
    pub(crate) fn end(&mut self) {
        self.state.iter_mut().for_each(|state| state.is_open = false);
    }

    /// A raw page was programmed in the block, with a tag or without. One that looks erased without one ends the tail, since it would end what a mount finds.
    pub(crate) fn grow(&mut self, page: PageAddr, (is_tagged, is_seen): (bool, bool)) {
        let Some(state) = self.state.first_mut() else { return };
        debug_assert!(!is_tagged || state.is_open && state.newest < Some(page), "pages of a tail ascend");
        if is_tagged {
            state.newest = Some(page);
        }
        state.is_open &= is_tagged || is_seen;
    }

    /// Whether a page is the one of it that was programmed last.
    pub(crate) fn is_newest(&self, page: PageAddr) -> bool {
        self.state().newest == Some(page)
    }

    /// Whether it may have pages: some were programmed, or a mount found it and nothing was committed since.
    pub(crate) fn may_have_pages(&self) -> bool {
        self.state().newest.is_some()
    }

    /// A page of the volume that may have a tag, and what that says of its place.
    pub(crate) fn place(&self, shape: &Shape, (volume, place): (u32, u16)) -> Option<(PageAddr, TagPlace)> {
        let TailState { first, commit, is_open, newest, .. } = self.state();
        debug_assert!(
            !is_open || newest.is_none_or(|newest| first <= Some(newest)),
            "pages of a tail stand behind its first place"
        );
        let first = first.filter(|&first| place < TAIL_MAX && shape.geometry.contains_page(first))?;
        let nth = shape.nth_of(first) + place;
        let page = (nth < shape.pages).then(|| shape.page(shape.block_of(first), nth))?;
        Some((page, TagPlace { volume, page: page.0, commit, place: place.into() }))
    }

    /// The place that a page would have that is programmed next.
    pub(crate) fn open_place(&self, shape: &Shape, (volume, page): (u32, PageAddr)) -> Option<TagPlace> {
        let TailState { first, is_open, newest, .. } = self.state();
        let first = first.filter(|_| is_open)?;
        let is_here = shape.block_of(first) == shape.block_of(page) && first <= page;
        let place = is_here.then(|| shape.nth_of(page) - shape.nth_of(first))?;
        let others = newest.map_or(place, |newest| shape.nth_of(page) - shape.nth_of(newest) - 1);
        if others > OTHERS_MAX.into() {
            return None;
        }
        let (found, said) = self.place(shape, (volume, place))?;
        debug_assert!(found == page, "each place has one page");
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use nandu_nand::PageAddr;

    use super::{TAIL_MAX, Tagged, Tail};
    use crate::options::LogOptions;
    use crate::shape::Shape;

    fn shape() -> Shape {
        let geometry = nandu_sim::Chip::W25N01GV.geometry;
        let options = LogOptions { has_raw: true, has_tags: true, ..LogOptions::DEFAULT };
        Shape::new::<core::convert::Infallible>(&geometry, &options).unwrap()
    }

    fn behind(commit: u64, first: Option<PageAddr>) -> Tail {
        let mut tail = Tail::NONE;
        tail.begin(commit, first);
        tail
    }

    #[test]
    fn a_tail_has_nine_places_and_ends_with_its_block() {
        let shape = shape();
        let tail = behind(7, Some(PageAddr(64 * 5 + 60)));
        let places: [_; 4] = core::array::from_fn(|place| tail.place(&shape, (1, place as u16)).unwrap().0.0);
        assert_eq!(places, [380, 381, 382, 383]);
        assert_eq!(tail.place(&shape, (1, 4)), None);
        assert_eq!(behind(7, Some(PageAddr(64 * 5))).place(&shape, (1, TAIL_MAX)), None);
        assert_eq!(tail.open_place(&shape, (1, PageAddr(381))).unwrap().place, 1);
        for page in [379, 384, 64 * 5] {
            assert_eq!(tail.open_place(&shape, (1, PageAddr(page))), None);
        }
    }

    #[test]
    fn a_mount_ends_behind_two_others_in_a_row() {
        let page = Tagged::Of(PageAddr(70), [0; 12]);
        let mut tail = Tail::stored(PageAddr(70), 7);
        let found = [page, Tagged::Other, Tagged::Lost, Tagged::Other, page, Tagged::Other, Tagged::Other];
        let ends = found.iter().zip(0..).map(|(&found, place)| tail.found_at(place, found));
        assert!(ends.eq([false, false, false, false, false, false, true]));
        assert_eq!((tail.mounted().pages, tail.mounted().lost), (2, 1));
    }

    #[test]
    fn what_a_mount_would_not_see_ends_the_tail() {
        let shape = shape();
        let mut tail = behind(7, Some(PageAddr(70)));
        tail.grow(PageAddr(70), (true, true));
        tail.grow(PageAddr(71), (false, true));
        assert!(tail.is_newest(PageAddr(70)) && tail.open_place(&shape, (1, PageAddr(72))).is_some());
        assert_eq!(tail.open_place(&shape, (1, PageAddr(73))), None, "two others in a row");
        tail.grow(PageAddr(72), (false, false));
        assert_eq!(tail.open_place(&shape, (1, PageAddr(73))), None);
        assert_eq!(tail.to_stored().unwrap().first, 70);
        assert_eq!(behind(7, None).to_stored(), None);
    }
}
