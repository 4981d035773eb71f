//! What the file system asks of tree and log below it, beyond the calls of the tree, and what their errors are here.

use core::error::Error;

use nandu_log::LogError;
use nandu_nand::Nand;

use crate::FsError;
use crate::below::{PageDamage, TreeError};
use crate::fs::Fs;

/// Blocks of pages that have to be free for a part of a page to wait in memory.
const SPARE_BLOCKS: u32 = 3;

/// Bytes that a file of one page takes of leaves, at most: its name, its inode, and the record of its page, in leaves that are not full.
const RECORDS_SIZE: u32 = 220;

impl<N: Nand> Fs<'_, N> {
    /// Whether there is so much room that a part of a page may wait in memory.
    pub(crate) fn has_spare_room(&mut self) -> Result<bool, FsError<N::Error>> {
        let pages = SPARE_BLOCKS * self.tree.log().geometry().pages_per_block;
        Ok(self.tree.has_room(pages)? && !self.tree.is_grown_up())
    }

    /// Whether changes of records may take what is kept for them, of which this part, a divisor, has to be left.
    pub(crate) fn has_kept(&mut self, share: u32) -> Result<bool, FsError<N::Error>> {
        Ok(self.tree.has_kept(share)?)
    }

    /// Pages of files that can be written.
    pub(crate) fn available_pages(&mut self) -> u32 {
        let per_leaf = self.page_size() as u32 / RECORDS_SIZE;
        let pages = self.tree.pages_left();
        pages - pages.div_ceil(per_leaf + 1)
    }
}

impl<E: Error + 'static> From<TreeError<E>> for FsError<E> {
    fn from(error: TreeError<E>) -> FsError<E> {
        match error {
            TreeError::Log(error) => FsError::from(error),
            TreeError::Corrupt { page, why } => FsError::CorruptPage { page, why: PageDamage::Node(why) },
            TreeError::OtherFormat => FsError::OtherFormat { what: "cells" },
            TreeError::Memory { required } => FsError::Memory { required },
            TreeError::PageSize(size) => FsError::PageSize(size),
            TreeError::PendingSize => FsError::PendingSize,
            // There is no room for so much at once.
            TreeError::BatchTooLarge { .. } | TreeError::TooHigh => FsError::Full,
            TreeError::TooManySnapshots => FsError::TooManySnapshots,
            TreeError::NoSnapshot(number) => FsError::NoSnapshot(number),
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
            LogError::Unsuitable { what } => FsError::Unsuitable { what },
            LogError::Geometry(error) => FsError::Geometry(error),
            LogError::Memory { required } => FsError::Memory { required },
            // Of what is not known here, this says least: nothing more is written.
            LogError::ReadOnly | _ => FsError::ReadOnly,
        }
    }
}
