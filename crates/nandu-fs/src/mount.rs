//! Formatting, mounting, unmounting.

use nandu_log::Log;
use nandu_nand::{Geometry, Nand};
use nandu_tree::{ByteCells, Parts};

use crate::below::Records;
use crate::fs::Fs;
use crate::open_files::{OPEN_FILE_SIZE, OpenFiles};
use crate::tagging::Tagging;
use crate::write_buffer::WriteBuffer;
use crate::{Format, FsError, Options, Time};

/// Bytes of the smallest page: an inode and a name of some length have to fit a quarter of it.
const PAGE_SIZE_MIN: usize = 512;

impl<N: Nand> Fs<'_, N> {
    /// Bytes of memory that [`Fs::format`] and [`Fs::mount`] take, exactly. The file system itself is `size_of::<Fs<N>>()` bytes beside, and nothing
    /// else is used but stack. For a geometry that is known beforehand it can size a static buffer. Memory of any alignment will do; buffers for pages that go to the chip lie at
    /// multiples of 32 from its beginning.
    pub const fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        options.memory_required::<N>(geometry)
    }
}

impl<'m, N: Nand> Fs<'m, N> {
    /// Makes an empty file system on a chip. What was on it is lost, but for bad-block marks and, of a volume found there, erase
    /// counts. Erases what was written.
    ///
    /// # Errors
    ///
    /// [`FsError::Memory`] and [`FsError::PageSize`], before anything happened.
    pub fn format(nand: N, options: Options, format: Format, memory: &'m mut [u8]) -> Result<Self, FsError<N::Error>> {
        let mut place = None;
        Self::format_in(&mut place, nand, options, &format, memory)?;
        // Where it was made it is.
        place.ok_or(FsError::NotFormatted)
    }

    /// As [`Fs::format`], into a place, as [`Fs::mount_in`].
    ///
    /// # Errors
    ///
    /// As [`Fs::format`].
    pub fn format_in(
        place: &mut Option<Self>,
        nand: N,
        options: Options,
        format: &Format,
        memory: &'m mut [u8],
    ) -> Result<(), FsError<N::Error>> {
        let made =
            Self::put_unopened(place, nand, options, memory).and_then(|(fs, memory)| fs.make_volume(format, memory));
        if made.is_err() {
            *place = None;
        }
        made
    }

    /// Makes the log, the tree and the root directory. The memory is that of policies of placement.
    fn make_volume(&mut self, format: &Format, placing: &'m mut [u8]) -> Result<(), FsError<N::Error>> {
        let key = u128::from_le_bytes(format.hash_key);
        let mut engine = self.options.engine();
        // The key is chance that the caller has.
        engine.log.salt ^= ((key >> 64) as u64).rotate_left(1) ^ key as u64;
        self.tree.begin(&engine, Log::format)?;
        (self.hash_key, self.now) = (format.hash_key, format.now);
        self.make_root(format)?;
        self.begin_placing(placing, 0);
        Ok(())
    }

    /// Mounts the file system on a chip. After [`Fs::unmount`] it only reads; after a power cut it reads 40 pages at most
    /// and programs a copy of the newest page and a checkpoint before it returns, however much the volume holds; and where tags tell of pages, a copy of the last of them and a commit.
    ///
    /// # Errors
    ///
    /// [`FsError::NotFormatted`] and [`FsError::NoFileSystem`] if there is none; [`FsError::OtherFormat`] of a volume with other properties, as a
    /// store of records has; [`FsError::OtherVersion`]; [`FsError::Memory`]; [`FsError::PendingSize`] if changes were left waiting and do not fit [`Options::pending_size`].
    pub fn mount(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, FsError<N::Error>> {
        let mut place = None;
        Self::mount_in(&mut place, nand, options, memory)?;
        // Where it was mounted it is.
        place.ok_or(FsError::NotFormatted)
    }

    /// As [`Fs::mount`], into a place, so that the file system is on the stack for a moment only and not while it mounts: for who keeps it in
    /// memory of its own. After an error the place is empty.
    ///
    /// # Errors
    ///
    /// As [`Fs::mount`].
    pub fn mount_in(
        place: &mut Option<Self>,
        nand: N,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<(), FsError<N::Error>> {
        let mounted = Self::put_unopened(place, nand, options, memory).and_then(|(fs, memory)| fs.open_volume(memory));
        if mounted.is_err() {
            *place = None;
        }
        mounted
    }

    /// Looks for the volume and reads what it says of itself. The memory is that of policies of placement.
    fn open_volume(&mut self, placing: &'m mut [u8]) -> Result<(), FsError<N::Error>> {
        let engine = self.options.engine();
        match self.tree.begin(&engine, Log::mount).map_err(FsError::from) {
            Err(FsError::OtherFormat { what: "cells" }) => return Err(FsError::NoFileSystem),
            begun => begun?,
        }
        self.read_super_block()?;
        #[cfg(feature = "tags")]
        self.take_over_tail()?;
        if let Some(number) = self.options.snapshot {
            self.options.read_only = true;
            self.tree.begin_view(number)?;
        }
        let windows = self.wear_windows()?;
        self.begin_placing(placing, windows);
        Ok(())
    }

    /// Puts a file system that knows nothing yet into its place. Returns memory that policies of placement have, too.
    #[inline(never)]
    fn put_unopened<'p>(
        place: &'p mut Option<Self>,
        nand: N,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<(&'p mut Self, &'m mut [u8]), FsError<N::Error>> {
        *place = None;
        let page_size = nand.geometry().page_size as usize;
        if page_size < PAGE_SIZE_MIN {
            return Err(FsError::PageSize(page_size));
        }
        let required = options.memory_required::<N>(nand.geometry());
        if memory.len() < required {
            return Err(FsError::Memory { required });
        }
        // What holds pages comes first, so that each is as aligned as the memory.
        let (buffer, rest) = memory.split_at_mut(WriteBuffer::memory_size(page_size));
        let (rest, placing) = rest.split_at_mut(rest.len() - options.placing_memory());
        let (tree, open) = rest.split_at_mut(rest.len() - OPEN_FILE_SIZE * options.open_max);
        let engine = options.engine();
        let parts = Parts::new(nand, ByteCells, &engine, tree)?;
        let fs = place.insert(Fs {
            tree: Records::unopened(parts),
            buffer: WriteBuffer::new(buffer, page_size),
            open: OpenFiles::new(open),
            options,
            hash_key: [0; 16],
            chunk_next: 0,
            now: Time::EPOCH,
            has_orphans: true,
            placing: None,
            tagging: Tagging::NONE,
        });
        Ok((fs, placing))
    }

    /// Makes everything durable, leaves the file system so that the next mount has nothing to recover, and gives the chip back.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] as in [`Fs::sync`]; errors of the chip, which is gone with them.
    pub fn unmount(mut self) -> Result<N, FsError<N::Error>> {
        self.leave()?;
        Ok(self.abandon())
    }

    /// As [`Fs::unmount`], of a file system that lies in a place, which is empty afterwards: so it is not moved.
    ///
    /// # Errors
    ///
    /// As [`Fs::unmount`].
    pub fn unmount_in(place: &mut Option<Self>) -> Result<(), FsError<N::Error>> {
        let left = place.as_mut().map_or(Ok(()), Self::leave);
        *place = None;
        left
    }

    fn leave(&mut self) -> Result<(), FsError<N::Error>> {
        if !self.options.read_only {
            self.flush()?;
        }
        Ok(self.tree.unmount_here()?)
    }

    /// Gives the chip back as it is, as if the power had gone: what was durable is there, and the next mount recovers.
    pub fn abandon(self) -> N {
        self.tree.abandon()
    }

    /// Uses idle time: makes changes durable and removes what is deleted and was left for later, or, where nothing was programmed for that, collects garbage, with up to
    /// this many programs. Returns whether there was anything to do: after the last change false before long, and for ever.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] as in [`Fs::sync`]; errors of the chip.
    pub fn idle(&mut self, pages: u32) -> Result<bool, FsError<N::Error>> {
        self.check_writable()?;
        let (is_reaped, before) = (self.has_orphans, self.tree.log().spent());
        self.flush()?;
        self.reap_some()?;
        self.tree.sync()?;
        // What was written took what a call may take.
        let has_written = self.tree.log().spent() != before;
        Ok(has_written || !self.is_unchanged() && self.tree.idle(pages)? || is_reaped)
    }
}
