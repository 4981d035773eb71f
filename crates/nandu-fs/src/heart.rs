//! What the file system asks of tree and log below it, beyond the calls of the tree, and what their errors are here.
//!
//! Everything that differs between the two hearts is in this file, in `below.rs`, `mount.rs`, `options.rs`, `put_page.rs`, `collection.rs`, `regions.rs` and what places and tags pages. The crate
//! `nandu-newfs` has its own of these, and shares the other files.

use core::error::Error;

use nandu_log::LogError;
use nandu_nand::Nand;

use crate::FsError;
use crate::below::{LogViolation, PageDamage, TreeError, TreeViolation};
use crate::fs::Fs;
use crate::keys::Key;

/// Blocks of pages that have to be free for a part of a page to wait in memory.
const SPARE_BLOCKS: u32 = 3;

/// Bytes that a file of one page takes of leaves: its name, its inode and the place of its page. Measured with names of nine bytes, which
/// come in the order of their hashes, so that most leaves were parted: 93 on pages of 2 KiB, 113 on those of 4 KiB.
const RECORDS_SIZE: u32 = 120;

/// Whether the call that takes the last name of a file, or cuts a part of it off, removes all of that, or a step, and the changes that follow the rest.
pub(crate) const REMOVES_AT_ONCE: bool = true;

impl<N: Nand> Fs<'_, N> {
    /// Whether there is so much room that a part of a page may wait in memory.
    pub(crate) fn has_spare_room(&mut self) -> Result<bool, FsError<N::Error>> {
        let pages = self.tree.pages();
        Ok(pages.has_capacity_for(SPARE_BLOCKS * pages.log().geometry().pages_per_block))
    }

    /// Whether changes of records may take what is kept for them, of which this part, a divisor, has to be left.
    pub(crate) fn has_kept(&mut self, share: u32) -> Result<bool, FsError<N::Error>> {
        Ok(self.tree.pages().has_capacity_for_records(self.tree.growth_pages_max(), share))
    }

    /// Pages of files that can be written.
    pub(crate) fn available_pages(&self) -> u32 {
        let per_leaf = self.page_size() as u32 / RECORDS_SIZE;
        self.tree.pages().page_values_available(self.tree.growth_pages_max(), per_leaf)
    }

    /// Makes durable what was changed and no tag tells of.
    pub(crate) fn make_durable(&mut self) -> Result<(), FsError<N::Error>> {
        Ok(self.tree.sync_untagged()?)
    }

    /// Reports what is wrong with the log.
    pub(crate) fn verify_log(&mut self, report: &mut dyn FnMut(LogViolation)) -> Result<(), FsError<N::Error>> {
        Ok(self.tree.pages_mut().log_mut().verify(report).map(drop)?)
    }

    /// Reports what is wrong with the tree.
    pub(crate) fn verify_tree(&mut self, report: &mut dyn FnMut(TreeViolation)) -> Result<(), FsError<N::Error>> {
        Ok(self.tree.verify(report).map(drop)?)
    }

    /// Whether the page of a value can be read, as far as its first byte says; `false` if there is none.
    pub(crate) fn has_sound_page(&mut self, key: Key) -> Result<bool, FsError<N::Error>> {
        match self.tree.read(key.as_slice(), 0, &mut [0; 1]) {
            Ok(size) => Ok(size == Some(1)),
            Err(TreeError::Corrupt { .. } | TreeError::Pages(LogError::Corrupt { .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl<E: Error + 'static> From<TreeError<LogError<E>>> for FsError<E> {
    fn from(error: TreeError<LogError<E>>) -> FsError<E> {
        match error {
            TreeError::Pages(error) => FsError::from(error),
            TreeError::Corrupt { page, why } => FsError::CorruptPage { page, why: PageDamage::Node(why) },
            TreeError::NotesFull => FsError::Full,
            TreeError::NotFound => FsError::NoFileSystem,
            TreeError::OtherFormat => FsError::OtherFormat { what: "cells" },
            TreeError::MemoryTooSmall { required } => FsError::Memory { required },
            TreeError::PageSize(size) => FsError::PageSize(size),
            TreeError::PendingSize | TreeError::NoteCount(_) => FsError::PendingSize,
            TreeError::NotCompiled { feature } => FsError::NotCompiled { feature },
            // The others are of keys, values and batches that the file system does not make.
            _ => FsError::Inconsistent,
        }
    }
}

impl<E: Error + 'static> From<LogError<E>> for FsError<E> {
    fn from(error: LogError<E>) -> FsError<E> {
        match error {
            LogError::Nand(error) => FsError::Chip(error),
            LogError::Corrupt { page, why } => FsError::CorruptPage { page, why: PageDamage::Page(why) },
            LogError::Full => FsError::Full,
            LogError::Poisoned => FsError::Poisoned,
            LogError::NotFormatted => FsError::NotFormatted,
            LogError::WrongFormat { what } => FsError::OtherFormat { what },
            LogError::NotCompiled { feature } => FsError::NotCompiled { feature },
            LogError::Unsuitable { what } => FsError::Unsuitable { what },
            LogError::Geometry(error) => FsError::Geometry(error),
            LogError::Memory { required } => FsError::Memory { required },
            // Of what is not known here, this says least: nothing more is written.
            LogError::ReadOnly | _ => FsError::ReadOnly,
        }
    }
}
