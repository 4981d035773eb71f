//! Pages of files that are durable with one program, by their tags ([`nandu_log`], "Tails").
//!
//! What is written is noted before the first change, and taken by the call that programs the page, which makes all of them. If the tree cannot tag it then, the page is put as any other.

use nandu_nand::Nand;

use crate::below::FileTree;
use crate::tag::PageTag;
use crate::{Ino, Time};

/// What tells of the write of a page under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tagging(Option<PageTag>);

impl Tagging {
    /// No write is under way.
    pub(crate) const NONE: Tagging = Tagging(None);

    /// What the tag is to say.
    pub(crate) fn take(&mut self) -> Option<PageTag> {
        self.0.take()
    }

    /// Before the first change of the write of a page.
    pub(crate) fn begin<N: Nand>(_tree: &FileTree<'_, N>, page: (Ino, u32), end: usize, now: Time) -> Tagging {
        Tagging(Some(PageTag::of(page, end, now)))
    }

    /// Something else changed on the way.
    pub(crate) fn give_up(&mut self) {
        *self = Tagging::NONE;
    }

    /// Behind the last change of the write of a page.
    pub(crate) fn end<N: Nand>(&mut self, _tree: &mut FileTree<'_, N>) {
        self.give_up();
    }
}
