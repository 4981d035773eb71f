//! In place of `tags.rs` where feature `tags` is left out: a page of a file is durable with the commit that names it. The log refuses a volume
//! with tags.

use nandu_nand::Nand;
use nandu_tree::TAG_OWNER_SIZE;

use crate::fs::Fs;
use crate::{FsError, Ino, Time};

/// No write is told of by a tag.
pub(crate) struct Tagging;

impl Tagging {
    pub(crate) const NONE: Tagging = Tagging;

    pub(crate) fn take(&mut self) -> Option<[u8; TAG_OWNER_SIZE]> {
        None
    }

    pub(crate) fn give_up(&mut self) {}
}

impl<N: Nand> Fs<'_, N> {
    pub(crate) fn begin_tagging(&mut self, _page: (Ino, u32), _end: usize, _now: Time) {}

    pub(crate) fn end_tagging(&mut self) {}

    pub(crate) fn take_over_tail(&mut self) -> Result<(), FsError<N::Error>> {
        Ok(())
    }
}
