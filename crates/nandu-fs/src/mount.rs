//! Formatting, mounting, unmounting.

use nandu_log::{Budget, Log, LogOptions};
use nandu_nand::{Geometry, Nand};
use nandu_tree::{ByteCells, OnLog, Tree, TreeError};

use crate::fs::Fs;
use crate::open_files::{OPEN_FILE_SIZE, OpenFiles};
use crate::tagging::Tagging;
use crate::write_buffer::WriteBuffer;
use crate::{Format, FsError, Options, Time};

/// Bytes of the smallest page: an inode and a name of some length have to fit a quarter of it.
const PAGE_SIZE_MIN: usize = 512;

/// The caller's memory: the log's, the rest, and that of policies.
type Divided<'m> = (&'m mut [u8], Rest<'m>, &'m mut [u8]);

/// The caller's memory but the log's and that of policies.
struct Rest<'m> {
    tree: &'m mut [u8],
    buffer: &'m mut [u8],
    open: &'m mut [u8],
}

fn divide<'m, N: Nand>(nand: &N, options: &Options, memory: &'m mut [u8]) -> Result<Divided<'m>, FsError<N::Error>> {
    let geometry = nand.geometry();
    let page_size = geometry.page_size as usize;
    if page_size < PAGE_SIZE_MIN {
        return Err(FsError::PageSize(page_size));
    }
    OnLog::<N>::check_options(&options.log, &options.tree(page_size))?;
    let required = options.memory_required::<N>(geometry);
    if memory.len() < required {
        return Err(FsError::Memory { required });
    }
    // What holds pages comes first, so that each is as aligned as the memory.
    let (log, rest) = memory.split_at_mut(options.log_memory::<N>(geometry));
    let (buffer, rest) = rest.split_at_mut(WriteBuffer::memory_size(page_size));
    let (open_size, placing_size) = (OPEN_FILE_SIZE * options.open_max, options.placing_memory());
    let (tree, rest) = rest.split_at_mut(rest.len() - open_size - placing_size);
    let (open, placing) = rest.split_at_mut(open_size);
    Ok((log, Rest { tree, buffer, open }, placing))
}

impl<N: Nand> Fs<'_, N> {
    /// Bytes of memory that [`Fs::format`] and [`Fs::mount`] take, exactly. The file system itself is `size_of::<Fs<N>>()` bytes beside, and nothing
    /// else is used but stack. For a geometry that is known beforehand it can size a static buffer.
    ///
    /// # Alignment
    ///
    /// Memory of any alignment will do. Whole pages go to the chip from buffers in it and come into them, and those lie at multiples of 8 from its
    /// beginning, with [`Options::aligned`] of 32: in memory aligned likewise, as [`Aligned`](nandu_nand::Aligned) is, each begins and ends at a line of a Cortex-M7's data cache.
    /// Whole pages of a file that [`write_at`](Fs::write_at) and [`read_at`](Fs::read_at) move go straight from and to the caller's buffer: they are
    /// as aligned as that if the offset is a multiple of the page size. Shorter reads, of headers above all, go to the stack and are not aligned.
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
        let (log_memory, rest, placing) = divide(&nand, &options, memory)?;
        let log = Self::salted(&options, &format);
        let mut made = Self::on_new_log(nand, options, log, log_memory, rest);
        // One file system and no other is on the stack while it works.
        if let Ok(fs) = &mut made
            && let Err(error) = fs.make_volume(&format, placing)
        {
            made = Err(error);
        }
        made
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
        *place = None;
        let (log_memory, rest, placing) = divide(&nand, &options, memory)?;
        let log = Self::salted(&options, format);
        let fs = Self::put_unopened(place, nand, (options, log), log_memory, rest)?;
        let outcome = fs.format_log().and_then(|()| fs.make_volume(format, placing));
        if outcome.is_err() {
            *place = None;
        }
        outcome
    }

    /// Choices of the log, with what the volume's id is drawn from: the key is chance that the caller has.
    fn salted(options: &Options, format: &Format) -> LogOptions {
        let key = u128::from_le_bytes(format.hash_key);
        let salt = options.log.salt ^ ((key >> 64) as u64).rotate_left(1) ^ key as u64;
        LogOptions { salt, ..options.log }
    }

    /// Makes the log in place.
    fn format_log(&mut self) -> Result<(), FsError<N::Error>> {
        self.tree.pages_mut().log_mut().format_here()?;
        nandu_tree::Pages::note_values(self.tree.pages_mut());
        Ok(())
    }

    /// Makes the root directory and what the volume says of itself.
    #[inline(never)]
    fn make_volume(&mut self, format: &Format, placing: &'m mut [u8]) -> Result<(), FsError<N::Error>> {
        self.tree.create_here()?;
        #[cfg(feature = "_broken")]
        self.tree.set_broken(self.options.broken.tree);
        self.make_root(format)?;
        self.begin_placing(placing, 0);
        Ok(())
    }

    /// Mounts the file system on a chip. After [`Fs::unmount`] it only reads, about 20 pages; after a power cut it reads 53 at most (145 with tags, in
    /// what was measured) and programs a copy of the newest page and a checkpoint before it returns, however much the volume holds. Where pages have tags it
    /// reads two pages more for each of up to 15 that only tags tell of, and programs the last of them, a commit and a checkpoint besides.
    ///
    /// # Errors
    ///
    /// [`FsError::NotFormatted`] and [`FsError::NoFileSystem`] if there is none; [`FsError::OtherFormat`] of a volume with other properties, as a
    /// store of records has; [`FsError::OtherVersion`]; [`FsError::Memory`]; [`FsError::PendingSize`] if changes were left waiting and do not fit [`Options::pending_size`].
    pub fn mount(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, FsError<N::Error>> {
        let (log_memory, rest, placing) = divide(&nand, &options, memory)?;
        let mut mounted = Self::on_old_log(nand, options, log_memory, rest);
        // One file system and no other is on the stack while it works.
        if let Ok(fs) = &mut mounted
            && let Err(error) = fs.open_in_place(placing)
        {
            mounted = Err(error);
        }
        mounted
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
        *place = None;
        let (log_memory, rest, placing) = divide(&nand, &options, memory)?;
        let fs = Self::put_unopened(place, nand, (options, options.log), log_memory, rest)?;
        let outcome = fs.open_log().and_then(|()| fs.open_in_place(placing));
        if outcome.is_err() {
            *place = None;
        }
        outcome
    }

    /// Makes a file system that knows nothing yet, on a log that does not either, in its place.
    #[inline(never)]
    fn put_unopened<'p>(
        place: &'p mut Option<Self>,
        nand: N,
        (options, log): (Options, LogOptions),
        memory: &'m mut [u8],
        rest: Rest<'m>,
    ) -> Result<&'p mut Self, FsError<N::Error>> {
        let page_size = nand.geometry().page_size as usize;
        Tree::<OnLog<N>, ByteCells>::check(page_size, &options.tree(page_size), rest.tree.len())?;
        let log_place = Log::memory_for(&nand, &log, memory)?;
        let pages = OnLog::new(Log::unopened(nand, log, log_place));
        Ok(place.insert(Self::assemble(pages, page_size, options, rest)))
    }

    /// Opens the log in place.
    fn open_log(&mut self) -> Result<(), FsError<N::Error>> {
        self.tree.pages_mut().log_mut().open_here()?;
        nandu_tree::Pages::note_values(self.tree.pages_mut());
        Ok(())
    }

    /// Takes over what the volume says.
    #[inline(never)]
    fn open_in_place(&mut self, placing: &'m mut [u8]) -> Result<(), FsError<N::Error>> {
        match self.tree.open_here() {
            Ok(()) => {}
            Err(TreeError::NotFound | TreeError::OtherFormat) => return Err(FsError::NoFileSystem),
            Err(error) => return Err(error.into()),
        }
        #[cfg(feature = "_broken")]
        self.tree.set_broken(self.options.broken.tree);
        self.read_super_block()?;
        self.take_over_tail()?;
        let windows = self.wear_windows()?;
        self.begin_placing(placing, windows);
        Ok(())
    }

    /// A file system over the log that the chip holds.
    #[inline(never)]
    fn on_old_log(nand: N, options: Options, memory: &'m mut [u8], rest: Rest<'m>) -> Result<Self, FsError<N::Error>> {
        Self::unopened(Log::mount(nand, options.log, memory)?, options, rest)
    }

    /// A file system over a new log.
    #[inline(never)]
    fn on_new_log(
        nand: N,
        options: Options,
        log: LogOptions,
        memory: &'m mut [u8],
        rest: Rest<'m>,
    ) -> Result<Self, FsError<N::Error>> {
        Self::unopened(Log::format(nand, log, memory)?, options, rest)
    }

    /// A file system that knows nothing yet.
    #[inline(never)]
    fn unopened(log: Log<'m, N>, options: Options, rest: Rest<'m>) -> Result<Self, FsError<N::Error>> {
        let page_size = log.page_size();
        Tree::<OnLog<N>, ByteCells>::check(page_size, &options.tree(page_size), rest.tree.len())?;
        Ok(Self::assemble(Self::medium(log), page_size, options, rest))
    }

    /// Cannot fail, so that no `Result` around it takes the stack of another file system.
    #[inline(always)]
    fn assemble(pages: OnLog<'m, N>, page_size: usize, options: Options, rest: Rest<'m>) -> Self {
        Fs {
            tree: Tree::unopened(pages, ByteCells, options.tree(page_size), rest.tree),
            buffer: WriteBuffer::new(rest.buffer, page_size),
            open: OpenFiles::new(rest.open),
            options,
            hash_key: [0; 16],
            chunk_next: 0,
            now: Time::EPOCH,
            has_orphans: true,
            placing: None,
            tagging: Tagging::NONE,
        }
    }

    /// A log for a tree. What is kept where there are pages of files is kept from the beginning: else records would take it.
    fn medium(log: Log<'m, N>) -> OnLog<'m, N> {
        let mut pages = OnLog::new(log);
        nandu_tree::Pages::note_values(&mut pages);
        pages
    }

    /// Makes everything durable, leaves the file system so that the next mount has nothing to recover, and gives the chip back.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] as in [`Fs::sync`]; errors of the chip, which is gone with them.
    pub fn unmount(mut self) -> Result<N, FsError<N::Error>> {
        self.settle_for_unmount()?;
        self.tree.close().into_log().unmount().map_err(|(error, _)| error.into())
    }

    /// As [`Fs::unmount`], of a file system that lies in a place, which is empty afterwards: so it is not moved.
    ///
    /// # Errors
    ///
    /// As [`Fs::unmount`].
    pub fn unmount_in(place: &mut Option<Self>) -> Result<(), FsError<N::Error>> {
        let outcome = match place {
            Some(fs) => fs.settle_for_unmount().and_then(|()| Ok(fs.tree.pages_mut().log_mut().unmount_here()?)),
            None => Ok(()),
        };
        *place = None;
        outcome
    }

    fn settle_for_unmount(&mut self) -> Result<(), FsError<N::Error>> {
        if self.options.read_only {
            return Ok(());
        }
        self.flush()?;
        // Tags are looked for after a cut only.
        self.tree.sync()?;
        // What waits to be moved on would have to be moved again.
        if !self.tree.pages().log().is_read_only() {
            self.tree.name_settled()?;
        }
        Ok(())
    }

    /// Gives the chip back as it is, as if the power had gone: what was durable is there, and the next mount recovers.
    pub fn abandon(self) -> N {
        self.tree.close().into_log().abandon()
    }

    /// Uses idle time: makes changes durable, removes what is deleted and was left for later, and collects garbage, looking at up to
    /// this many pages. Returns whether there was anything to do: after the last change false before long, and for ever (L18). A block is emptied
    /// only while writes would have to make room, and while a quarter of it is dead; so what is collected behind the last change programs
    /// no more pages than live, and in a session that changes nothing none.
    ///
    /// # Errors
    ///
    /// [`FsError::Full`] as in [`Fs::sync`]; errors of the chip.
    pub fn idle(&mut self, pages: u32) -> Result<bool, FsError<N::Error>> {
        self.check_writable()?;
        self.flush()?;
        let is_reaped = self.has_orphans;
        self.reap_some()?;
        Ok(self.collect(Budget::idle(pages))? || is_reaped)
    }
}
