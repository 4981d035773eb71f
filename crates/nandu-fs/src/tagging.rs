//! Pages of files that are durable with one program, by their tags ([`nandu_log`], "The tail").
//!
//! After a cut the mount writes the same again, in order, from the state of the newest commit on: the page, the size and the times that
//! follow from it, and the fragments that go. The last page is programmed again, since it may be torn (D4); the others are named where they
//! stand. A cut may leave half of that: the tail is found by every mount until a checkpoint says that it was taken over.

use nandu_nand::Nand;

use crate::below::{FileTree, TAG_OWNER_SIZE};
use crate::tag::Tag;
use crate::{Ino, Time};

/// Blocks of pages that have to be free for a page to be tagged: after a cut that many are needed at most to write a tail again, with its
/// leaves and a commit, in blocks that are begun for it.
const SPARE_BLOCKS: u32 = 4;

/// Whether the write of a page under way is told of by a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tagging {
    /// It is not: something else waits, or changed on the way.
    Not,
    /// The page is to be programmed with this tag.
    With([u8; TAG_OWNER_SIZE]),
    /// It was, or may have been.
    Done,
}

impl Tagging {
    /// No write is under way.
    pub(crate) const NONE: Tagging = Tagging::Not;

    /// The tag that the page is to be programmed with, if there is one. From now on it may be on flash.
    pub(crate) fn take(&mut self) -> Option<[u8; TAG_OWNER_SIZE]> {
        let Tagging::With(owner) = *self else { return None };
        *self = Tagging::Done;
        Some(owner)
    }

    /// Before the first change of the write of a page: whether a tag can tell of all of it.
    pub(crate) fn begin<N: Nand>(tree: &FileTree<'_, N>, (ino, index): (Ino, u32), end: usize, now: Time) -> Tagging {
        let pages = tree.pages();
        let geometry = pages.log().geometry();
        let can_tag = tree.can_tag() && pages.has_capacity_for(SPARE_BLOCKS * geometry.pages_per_block);
        let tag = Tag::of((ino, index), end, now);
        let owner = if can_tag { tag.sealed(geometry) } else { None };
        owner.map_or(Tagging::Not, Tagging::With)
    }

    /// Behind the last change of the write of a page.
    pub(crate) fn end<N: Nand>(&mut self, tree: &mut FileTree<'_, N>) {
        if core::mem::replace(self, Tagging::Not) == Tagging::Done {
            tree.end_tagged();
        }
    }

    /// Something else changed on the way.
    pub(crate) fn give_up(&mut self) {
        *self = Tagging::Not;
    }
}
