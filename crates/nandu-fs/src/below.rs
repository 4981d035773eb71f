//! The tree and the log below: all that the file system asks of them.

use core::fmt;
use core::ops::{Bound, ControlFlow, Deref, DerefMut};

use nandu_index::{Direction, Edit, Entry};
#[cfg(feature = "mlc")]
use nandu_log::Budget;
use nandu_log::LogError;
#[cfg(feature = "tags")]
use nandu_log::TAIL_MAX;
use nandu_nand::{CellMode, Nand};
#[cfg(feature = "tags")]
use nandu_tree::Tag;
use nandu_tree::{ByteCells, Engine, Outcome, Parts};

pub use nandu_log::{LogStats, Violation as LogViolation};
pub(crate) use nandu_tree::EngineError as TreeError;
#[cfg(feature = "tags")]
pub(crate) use nandu_tree::TaggedPage;
pub use nandu_tree::{PageDamage, Violation as TreeViolation};

/// Bytes that a tag has room for.
#[cfg(feature = "tags")]
pub(crate) const TAG_OWNER_SIZE: usize = size_of::<Tag>();

/// Pages that are kept for changes of records: content of files leaves them. Of a chip on which hardly anything may live this part of it, a divisor.
const KEPT: u32 = 32;
const KEPT_SHARE: u32 = 8;

/// Part of a page, as a divisor, by which the root may yet grow for a part of a page to wait in memory: some children more.
const ROOT_SPARE: usize = 16;

/// Reads of a mount for the tail, the members of the window, and [`RECORDS_READ`] and the inode of each file concerned, which take [`RECORD_READS`] each where the tree has three levels: those for a whole tail of one file.
#[cfg(feature = "tags")]
const TAIL_READS_MAX: usize = TAIL_MAX as usize + RECORD_READS * (RECORDS_READ + 1);

/// Pages of the block table that there is room for beside these.
#[cfg(feature = "tags")]
const TABLE_PAGES: usize = 3;

/// Records that a mount reads in any case: the superblock, and those that its commit brings to their leaf.
#[cfg(feature = "tags")]
const RECORDS_READ: usize = 2;

/// Reads that lead to a record, at least.
#[cfg(feature = "tags")]
const RECORD_READS: usize = 2;

/// The records of the volume, by their keys: what calls of the engine are where a snapshot may be read, or room may be kept. All others are the engine's own.
pub(crate) struct Records<'m, N: Nand> {
    engine: Engine<'m, N, ByteCells>,
    /// The snapshot that is read, if it is one.
    view: Option<u32>,
    /// File of the page that was tagged last, and how often that was another one since the tail began.
    #[cfg(feature = "tags")]
    tagged: (u64, u8),
}

impl<N: Nand> fmt::Debug for Records<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

impl<'m, N: Nand> Deref for Records<'m, N> {
    type Target = Engine<'m, N, ByteCells>;

    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl<N: Nand> DerefMut for Records<'_, N> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.engine
    }
}

impl<'m, N: Nand> Records<'m, N> {
    /// Records of which nothing is known yet.
    pub(crate) fn unopened(parts: Parts<'m, N, ByteCells>) -> Self {
        Records {
            engine: Engine::unopened(parts),
            view: None,
            #[cfg(feature = "tags")]
            tagged: (0, 0),
        }
    }

    /// From here on a snapshot is read, and nothing is changed.
    pub(crate) fn begin_view(&mut self, number: u32) -> Outcome<(), N> {
        if !self.engine.snapshots().any(|it| it == number) {
            return Err(TreeError::NoSnapshot(number));
        }
        self.view = Some(number);
        Ok(())
    }

    /// Gives the chip back as it is.
    pub(crate) fn abandon(self) -> N {
        self.engine.abandon()
    }

    /// Whether the chip can only be read.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.log().is_read_only() || self.log().capacity_pages() == 0
    }

    /// The snapshot that is read, if it is one.
    fn view(&self) -> Option<u32> {
        self.view.filter(|_| cfg!(feature = "snapshots"))
    }

    pub(crate) fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>, N> {
        match self.view() {
            None => self.engine.get(key),
            Some(number) => self.engine.at(number).into_value(key),
        }
    }

    /// Bytes of a value, in its record or in a page.
    pub(crate) fn value_len(&mut self, key: &[u8]) -> Outcome<Option<usize>, N> {
        match self.get(key) {
            Ok(value) => Ok(value.map(<[u8]>::len)),
            Err(TreeError::LargeValue(size)) => Ok(Some(size)),
            Err(error) => Err(error),
        }
    }

    /// Copies a part of a value; returns how many bytes that are.
    pub(crate) fn read(&mut self, key: &[u8], from: usize, out: &mut [u8]) -> Outcome<Option<usize>, N> {
        let size = match self.view() {
            None => self.engine.read(key, from, out),
            Some(number) => self.engine.at(number).read(key, from, out),
        }?;
        Ok(size.map(|size| size.saturating_sub(from).min(out.len())))
    }

    /// Records that there are.
    pub(crate) fn count(&mut self) -> Outcome<u64, N> {
        match self.view() {
            None => Ok(self.engine.record_count()),
            Some(number) => self.engine.at(number).record_count(),
        }
    }

    pub(crate) fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Outcome<(), N> {
        match self.view() {
            None => self.engine.range(from, to, direction, visit),
            Some(number) => self.engine.at(number).range(from, to, direction, visit),
        }
    }

    /// Whether what is kept for changes of records is there, or this part of it, a divisor. Of a chip at its end it is: that, the log says of the change itself.
    pub(crate) fn has_kept(&mut self, share: u32) -> Outcome<bool, N> {
        Ok(self.log().capacity_pages() == 0 || self.engine.has_room(0, self.kept() / share)?)
    }

    /// Whether so many pages can be put beside what is kept, or the chip is at its end.
    pub(crate) fn has_room(&mut self, pages: u32) -> Outcome<bool, N> {
        Ok(self.log().capacity_pages() == 0 || self.engine.has_room(pages, self.kept())?)
    }

    /// Whether the tree can hardly grow any more.
    pub(crate) fn is_grown_up(&mut self) -> bool {
        let size = self.log().geometry().page_size;
        self.engine.is_grown_up(size as usize / ROOT_SPARE)
    }

    /// Pages that can be put beside what is kept, at least.
    pub(crate) fn pages_left(&mut self) -> u32 {
        self.engine.pages_left(self.kept())
    }

    fn kept(&self) -> u32 {
        let capacity = self.log().capacity_pages();
        KEPT.min(capacity / KEPT_SHARE)
    }

    /// Why there is no room. Where so many blocks died that more lives than may, by more than a full chip ends above that, the chip is at its end, and takes nothing but what frees.
    fn refuse(&self) -> TreeError<N::Error> {
        let block = self.log().geometry().pages_per_block;
        let is_at_end = self.log().lasting_pages() > self.log().capacity_pages() + block;
        TreeError::Log(if is_at_end { LogError::ReadOnly } else { LogError::Full })
    }

    /// Makes changes, which leave what is kept.
    pub(crate) fn batch(&mut self, edits: &[Edit<'_>]) -> Outcome<(), N> {
        if self.has_kept(1)? { self.engine.batch(edits) } else { Err(self.refuse()) }
    }

    /// Makes these bytes, a page at most, the value of a key, and other changes: all of it or nothing. 1 program: of a page, with so many bits in a cell if it can have them, or, if they fit there, of a commit, so that all of it is durable. They may come in the place of
    /// a page on a full chip, too.
    pub(crate) fn put_page(
        &mut self,
        key: &[u8],
        bytes: &[u8],
        (beside, replaces): (&[Edit<'_>], bool),
        mode: CellMode,
    ) -> Outcome<(), N> {
        if !replaces && !self.has_room(1)? {
            return Err(self.refuse());
        }
        if self.engine.put_blob(key, bytes, beside)? {
            return Ok(());
        }
        self.engine.begin_value_in(key, bytes.len(), mode)?;
        let mut rest = bytes;
        while let Some(size) = self.engine.value_part() {
            let (now, more) = rest.split_at(size.min(rest.len()));
            self.engine.append_value(key, now)?;
            rest = more;
        }
        self.engine.end_value_with(key, beside)
    }

    /// The same of a whole page of a file, with a tag that says all of it, so that all of it is durable; `false` if that cannot be. A tail is as long as a mount reads no more for it than it may.
    #[cfg(feature = "tags")]
    pub(crate) fn put_tagged(
        &mut self,
        ino: u64,
        (key, page): (&[u8], &[u8]),
        tag: &Tag,
        beside: &[Edit<'_>],
    ) -> Outcome<bool, N> {
        let Some((place, members)) = self.engine.tag_next() else { return Ok(false) };
        let (newest, files) = self.tagged;
        let files = if place == 0 { 1 } else { files + u8::from(newest != ino) };
        // It looks for a page behind the last one, too.
        let tail = (place as usize + 2).min(TAIL_MAX.into());
        // The root is read in any case.
        let record = usize::from(self.engine.height()).saturating_sub(1).max(RECORD_READS);
        let table = self.engine.log().table_pages().saturating_sub(TABLE_PAGES);
        let has_place = tail + members + table + record * (RECORDS_READ + usize::from(files)) <= TAIL_READS_MAX;
        if !has_place || !self.has_room(1)? || !self.engine.put_tagged(key, (page, tag), beside)? {
            return Ok(false);
        }
        self.tagged = (ino, files);
        Ok(true)
    }

    /// Uses idle time, for the block that was chosen. Makes moves count when nothing is left to do, unless a user's changes wait, too.
    #[cfg(feature = "mlc")]
    pub(crate) fn step(&mut self, programs: u32) -> Outcome<bool, N> {
        let buries = !self.engine.is_owed();
        self.engine.idle_with(Budget::chosen(programs), buries)
    }

    /// Whether every page of a value can be read; `false` if it is none.
    pub(crate) fn is_value_sound(&mut self, key: &[u8]) -> Outcome<bool, N> {
        Ok(self.engine.verify_value(key)?.unwrap_or(false))
    }
}
