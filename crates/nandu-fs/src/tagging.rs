//! Pages of files that are durable with one program, by their tags ([`nandu_log`], "Tails").
//!
//! What is written is noted before the first change, and taken by the call that programs the page, which makes all of them. If the tree cannot tag it then, the page is put as any other.

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
    pub(crate) fn begin(page: (Ino, u32), end: usize, now: Time) -> Tagging {
        Tagging(Some(PageTag::of(page, end, now)))
    }

    /// Behind the last change of the write of a page, or where something else changed on the way.
    pub(crate) fn end(&mut self) {
        *self = Tagging::NONE;
    }
}
