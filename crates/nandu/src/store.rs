//! Ordered records of byte strings.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, OrderedIndex};
use nandu_log::{Budget, Log, LogStats, Place as LogPlace};
use nandu_nand::{Geometry, Nand};
#[cfg(feature = "snapshots")]
use nandu_tree::Snapshot;
use nandu_tree::{ByteCells, Cells, OnLog, Tree};

#[cfg(feature = "snapshots")]
use crate::At;
#[cfg(feature = "blobs")]
use crate::Writer;
use crate::{Cursor, Error, Options};

/// An invariant that does not hold on the chip, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// One of the log: L1 to L12 of `nandu-log`.
    Log(nandu_log::Violation),
    /// One of the tree: T1 to T12 of `nandu-tree`.
    Tree(nandu_tree::Violation),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Log(violation) => violation.fmt(f),
            Violation::Tree(violation) => violation.fmt(f),
        }
    }
}

/// Ordered records on a chip `N`, in memory handed over when it is opened.
///
/// Keys and values are byte strings; keys are ordered as bytes are. With other cells `C` they are of one size, see
/// [`Map`](crate::Map).
///
/// # What calls cost
///
/// Where a call says what it programs, it says what its own pages take. Each change pays its share of collection besides, once blocks are few
/// (chapter 5 of the design), and on a small chip that is nearly full that has no small bound. In random lives with power cuts a put took at most 262 programs
/// and 13 erases, a delete 131 and 8, a snapshot 138 and 14. A snapshot or a load that is refused may have looked at every page of the chip before: 65,575
/// and 56,104 reads were counted.
pub struct Store<'m, N: Nand, C = ByteCells> {
    tree: Tree<'m, OnLog<'m, N>, C>,
}

impl<N: Nand, C> fmt::Debug for Store<'_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("tree", &self.tree).finish_non_exhaustive()
    }
}

impl<'m, N: Nand> Store<'m, N> {
    /// Bytes of memory that [`format`](Store::format) and [`open`](Store::open) take, exactly. The store itself is `size_of::<Store<N>>()` bytes beside, and
    /// nothing else is used but stack. For a geometry that is known beforehand it can size a static buffer:
    ///
    /// ```
    /// # use nandu::{Options, Store};
    /// # use nandu_sim::{Chip, Sim};
    /// const SIZE: usize = Store::<Sim>::memory_required(&Chip::W25N01GV.geometry, &Options::DEFAULT);
    /// static MEMORY: [u8; SIZE] = [0; SIZE];
    /// ```
    ///
    /// # Alignment
    ///
    /// Memory of any alignment will do. Whole pages go to the chip from buffers in it and come into them, and those lie at multiples of 8 from its
    /// beginning, with [`Options::aligned`] of 32: in memory aligned likewise, as [`Aligned`](crate::nand::Aligned) is, each begins and ends at a line of a Cortex-M7's data cache.
    /// Shorter reads, of headers above all, go to the stack and are not aligned.
    pub const fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        options.memory_required::<N>(geometry)
    }

    /// Makes an empty store on a chip. What was on it is lost, but for bad-block marks and, of a volume found there,
    /// erase counts.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`], [`Error::Unsuitable`] or [`Error::Geometry`] before anything happened; errors of the
    /// chip.
    pub fn format(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        Store::format_with(nand, ByteCells, options, memory)
    }

    /// Opens the store on a chip. After a clean [`unmount`](Store::unmount) it only reads; after a power cut it
    /// programs a copy of the newest page and a checkpoint before it returns. About 20 page reads after a clean
    /// unmount and 52 at most in 1.1 million opens after cuts, cuts inside recoveries among them. With [`Options::read_back`] it reads
    /// a page or two more for each block that it erases.
    ///
    /// # Errors
    ///
    /// [`Error::NotFormatted`]; [`Error::OtherFormat`] for a volume with other properties; [`Error::Memory`]; [`Error::PendingSize`] if changes were left waiting and do not fit
    /// [`Options::pending_size`]; errors of the chip.
    pub fn open(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        Store::open_with(nand, ByteCells, options, memory)
    }
}

impl<'m, N: Nand, C: Cells> Store<'m, N, C> {
    /// As [`format`](Store::format), with other cells.
    ///
    /// # Errors
    ///
    /// As [`format`](Store::format).
    pub fn format_with(nand: N, cells: C, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        OnLog::<N>::check_options(&options.log(), &options.tree())?;
        let required = options.memory_required::<N>(nand.geometry());
        if memory.len() < required {
            return Err(Error::Memory { required });
        }
        let log_size = options.log_memory::<N>(nand.geometry());
        let (log_memory, tree_memory) = memory.split_at_mut(log_size);
        // Each time that a whole log or tree is turned into something else by value, it may take the stack once more.
        let log = Log::format(nand, options.log(), log_memory)?;
        match Tree::create(OnLog::new(log), cells, options.tree(), tree_memory) {
            Ok(tree) => Ok(Store { tree }),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`open`](Store::open), with other cells.
    ///
    /// # Errors
    ///
    /// As [`open`](Store::open).
    pub fn open_with(nand: N, cells: C, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        let mut opened = Self::unopened(nand, cells, options, memory);
        // One store and no other is on the stack while it opens.
        if let Ok(store) = &mut opened
            && let Err(error) = store.open_here()
        {
            opened = Err(error);
        }
        opened
    }

    /// As [`format_with`](Store::format_with), into a place, as [`open_in`](Store::open_in).
    ///
    /// # Errors
    ///
    /// As [`format`](Store::format).
    pub fn format_in(
        place: &mut Option<Self>,
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<(), Error<N::Error>> {
        *place = None;
        let outcome = Self::put_unopened(place, nand, cells, options, memory)?.format_here();
        Self::keep_if_made(place, outcome)
    }

    fn format_here(&mut self) -> Result<(), Error<N::Error>> {
        self.tree.pages_mut().log_mut().format_here()?;
        Ok(self.tree.create_here()?)
    }

    /// As [`open_with`](Store::open_with), into a place, so that the store is on the stack for a moment only and not while it opens: for who keeps
    /// it in memory of its own. After an error the place is empty.
    ///
    /// # Errors
    ///
    /// As [`open`](Store::open).
    pub fn open_in(
        place: &mut Option<Self>,
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<(), Error<N::Error>> {
        *place = None;
        let outcome = Self::put_unopened(place, nand, cells, options, memory)?.open_here();
        Self::keep_if_made(place, outcome)
    }

    /// Empties a place after an error.
    fn keep_if_made(place: &mut Option<Self>, outcome: Result<(), Error<N::Error>>) -> Result<(), Error<N::Error>> {
        if outcome.is_err() {
            *place = None;
        }
        outcome
    }

    /// Makes a store that knows nothing yet, in its place.
    #[inline(never)]
    fn put_unopened<'p>(
        place: &'p mut Option<Self>,
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<&'p mut Self, Error<N::Error>> {
        let (log_place, memory) = Self::divide(&nand, &options, memory)?;
        Ok(place.insert(Self::assemble(nand, cells, options, log_place, memory)))
    }

    /// Makes a store that knows nothing yet. Apart from who opens it, so that what it is put together from is off the stack then.
    #[inline(never)]
    fn unopened(nand: N, cells: C, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        let (place, memory) = Self::divide(&nand, &options, memory)?;
        Ok(Self::assemble(nand, cells, options, place, memory))
    }

    /// The log's memory and the tree's.
    fn divide(
        nand: &N,
        options: &Options,
        memory: &'m mut [u8],
    ) -> Result<(LogPlace<'m>, &'m mut [u8]), Error<N::Error>> {
        OnLog::<N>::check_options(&options.log(), &options.tree())?;
        let required = options.memory_required::<N>(nand.geometry());
        if memory.len() < required {
            return Err(Error::Memory { required });
        }
        let log_size = options.log_memory::<N>(nand.geometry());
        let (log_memory, memory) = memory.split_at_mut(log_size);
        Tree::<OnLog<N>, C>::check(nand.geometry().page_size as usize, &options.tree(), memory.len())?;
        Ok((Log::memory_for(nand, &options.log(), log_memory)?, memory))
    }

    /// Cannot fail, so that no `Result` around it takes the stack of another store.
    #[inline(always)]
    fn assemble(nand: N, cells: C, options: Options, place: LogPlace<'m>, memory: &'m mut [u8]) -> Self {
        let pages = OnLog::new(Log::unopened(nand, options.log(), place));
        Store { tree: Tree::unopened(pages, cells, options.tree(), memory) }
    }

    #[inline(never)]
    fn open_here(&mut self) -> Result<(), Error<N::Error>> {
        self.tree.pages_mut().log_mut().open_here()?;
        Ok(self.tree.open_or_create_here()?)
    }

    /// The value of a key, lent until the store is used again. A large value, which stands in pages of its own, is not
    /// lent: [`Error::LargeValue`] names its size, and [`read`](Store::read) copies any part of it. Reads a page for each level of the tree that is not in
    /// memory: one, with a cache that holds the inner nodes.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; [`Error::LargeValue`]; a page that cannot be read.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error<N::Error>> {
        Ok(self.tree.get(key)?)
    }

    /// Puts a value at a key; returns whether the key was there before. Durable when it returns, unless
    /// [`Options::durability`] leaves that to the next [`sync`](Store::sync). Programs one page, when
    /// a leaf overflows two or three, and its [share of collection](Store#what-calls-cost).
    ///
    /// A value that is too large for a leaf ([`entry_size_max`](Store::entry_size_max)) goes to pages of its own: a program
    /// for each of them, for each index page if they are more than four, and for the leaf. The value before is dead only
    /// after that, so replacing a value needs room for both. A store with large values keeps a
    /// quarter of its capacity free. Such a value, and with it all that was put before, is durable when it returns.
    ///
    /// On a full chip a value that its leaf takes without another page has room all the same, since that frees the page it
    /// replaces: one of the size of the value before or smaller, and others as long as deletions have left room in that leaf. Not
    /// while there are snapshots.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] and [`Error::ValueSize`] name what is too long; [`Error::Full`] if there is no
    /// room, and then nothing has changed; errors of the chip.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error<N::Error>> {
        Ok(self.tree.put(key, value)?)
    }

    /// Bytes of a key's value. Reads what [`get`](Store::get) does.
    ///
    /// # Errors
    ///
    /// As [`get`](Store::get).
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, Error<N::Error>> {
        Ok(self.tree.value_len(key)?)
    }

    /// Copies what the value of a key has from `offset` on into `out`; returns how many bytes that were: fewer than asked
    /// for at the value's end, none behind it. `None` if there is no such key. Reads what [`get`](Store::get) does, one
    /// page for each page of a large value that the part touches, and one for each index page of these.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; a page that cannot be read.
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        Ok(self.tree.read(key, offset, out)?)
    }

    /// Begins to put a value of `length` bytes that come in pieces; what is at the key stays until
    /// [`Writer::finish`](crate::Writer::finish). `buffer`, a page or more, holds what does not fill a page yet.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] names the size of the buffer; else as [`put`](Store::put).
    #[cfg(feature = "blobs")]
    pub fn writer<'s>(
        &'s mut self,
        key: &'s [u8],
        length: usize,
        buffer: &'s mut [u8],
    ) -> Result<Writer<'s, 'm, N, C>, Error<N::Error>> {
        Writer::begin(&mut self.tree, key, length, buffer)
    }

    /// Deletes a key; returns whether it was there. Durable as a put is. Programs one page and its
    /// [share of collection](Store#what-calls-cost), nothing if there was no such key. Works on a full chip too. With snapshots it frees
    /// nothing that they keep, but room for deletes is left.
    ///
    /// One case is known in which it says [`Error::Full`] all the same: on blocks of 8 pages full of large values, when most of the chip has worn
    /// out.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; errors of the chip.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error<N::Error>> {
        Ok(self.tree.delete(key)?)
    }

    /// Makes all these changes or none of them, whenever the power goes. The keys must strictly ascend, and the values be
    /// small ones; large ones that are there may be replaced and deleted. Programs about
    /// one page for each leaf concerned, and its [share of collection](Store#what-calls-cost).
    ///
    /// # Errors
    ///
    /// As [`put`](Store::put); [`Error::NotAscending`] names the first key out of order; [`Error::ValueSize`] for a
    /// large value; [`Error::BatchSize`] if it replaces more of them than the journal holds.
    pub fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Error<N::Error>> {
        Ok(self.tree.batch(edits)?)
    }

    /// Puts entries whose keys strictly ascend, any number of them; returns how many. Programs one page for each leaf
    /// that they fill, instead of one for each entry, and its [share of collection](Store#what-calls-cost), and commits every few
    /// pages: after a power cut, and after an error, a prefix of the entries is there.
    ///
    /// # Errors
    ///
    /// As [`batch`](Store::batch), when the entry is reached.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error<N::Error>> {
        Ok(self.tree.load(entries)?)
    }

    /// Makes every change so far durable, in order, where [`Options::durability`] leaves that to a sync; else there is
    /// nothing to do. Programs one page as a rule, or none if there is no change since the last sync. Where a leaf goes with it
    /// and overflows, a page for each leaf that it becomes and for nodes above: seldom more than three, but in a store that grows,
    /// with much memory for changes, 35 were counted. A sync that places changes pays their [share of collection](Store#what-calls-cost) besides.
    ///
    /// # Errors
    ///
    /// Errors of the chip; then the changes are still there, to be synced again.
    pub fn sync(&mut self) -> Result<(), Error<N::Error>> {
        Ok(self.tree.sync()?)
    }

    /// Brings every change to its place, so that the volume can be opened without memory for changes. Programs about a
    /// page for each leaf that has changes, and its [share of collection](Store#what-calls-cost). Works on a full chip too: what was taken has room.
    ///
    /// # Errors
    ///
    /// Errors of the chip. [`Error::Full`] in the rare case that [`delete`](Store::delete) names.
    pub fn settle(&mut self) -> Result<(), Error<N::Error>> {
        Ok(self.tree.settle()?)
    }

    /// Changes that are not in their place yet, synced or not. Costs nothing.
    pub fn pending_count(&self) -> usize {
        self.tree.pending_count()
    }

    /// Visits the entries between two bounds in order, until `visit` breaks off. Reads each leaf concerned once. Of a
    /// large value the entry says how large it is.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; a page that cannot be read.
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<N::Error>> {
        Ok(self.tree.range(from, to, direction, visit)?)
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    ///
    /// A page that cannot be read.
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.tree.first()?)
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    ///
    /// A page that cannot be read.
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.tree.last()?)
    }

    /// The entry right above a cursor, which moves over it; `None`, and the cursor stays, where there is none. Reads the leaf, unless
    /// the last call read it; from leaf to leaf what [`get`](Store::get) does.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] of a cursor that was placed at a key that this store cannot have; a page that cannot be read.
    pub fn next(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Some(bound) = cursor.bound_above() else { return Ok(None) };
        let entry = self.tree.nearest(bound, Direction::Forward)?;
        cursor.go_above(entry.as_ref());
        Ok(entry)
    }

    /// The entry right below a cursor, which moves over it; `None`, and the cursor stays, where there is none. Reads what
    /// [`next`](Store::next) does.
    ///
    /// # Errors
    ///
    /// As [`next`](Store::next).
    pub fn previous(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Some(bound) = cursor.bound_below() else { return Ok(None) };
        let entry = self.tree.nearest(bound, Direction::Backward)?;
        cursor.go_below(entry.as_ref());
        Ok(entry)
    }

    /// Entries in the store. Costs nothing.
    pub fn record_count(&self) -> u64 {
        self.tree.record_count()
    }

    /// Levels of the tree, leaves included.
    pub fn height(&self) -> u8 {
        self.tree.height()
    }

    /// Bytes in the longest key.
    pub fn key_size_max(&self) -> usize {
        self.tree.key_size_max()
    }

    /// Bytes that a key and its value may have together for the value to stand in its leaf, to be lent and to be put by
    /// a batch.
    pub fn entry_size_max(&self) -> usize {
        self.tree.entry_size_max()
    }

    /// Bytes that the value of a key may have: 16 MiB on pages of 2 KiB and more, less on smaller ones.
    pub fn value_size_max(&self, key: &[u8]) -> usize {
        self.tree.value_size_max(key)
    }

    /// Uses idle time for garbage collection ahead of need: up to this many pages are looked at, and moved if they live.
    /// Returns whether there was anything to do: after the last change false before long, and for ever (L18). A block is emptied only while
    /// changes would have to make room, and while a quarter of it is dead; so what is collected behind the last change programs no more
    /// pages than live, and in a session that changes nothing none.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn idle(&mut self, pages: u32) -> Result<bool, Error<N::Error>> {
        // The collector moves nothing while changes wait for a sync.
        self.tree.sync()?;
        let mut budget = Budget::idle(pages);
        let mut worked = false;
        while let Some(examine) = self.tree.pages_mut().next_idle(&mut budget)? {
            let outcome = self.tree.examine(examine)?;
            nandu_tree::Pages::examined(self.tree.pages_mut(), examine, outcome)?;
            worked = true;
        }
        Ok(worked)
    }

    /// Walks log and tree once, reads only, and reports every invariant that does not hold; returns how many. Reads every
    /// page that may be programmed.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u64, Error<N::Error>> {
        let mut count = 0;
        self.tree.pages_mut().log_mut().verify(&mut |violation| {
            count += 1;
            report(Violation::Log(violation));
        })?;
        OrderedIndex::verify(&mut self.tree, &mut |violation| {
            count += 1;
            report(Violation::Tree(violation));
        })?;
        Ok(count)
    }

    /// What was done since the store was opened, by cause, and how full and how worn the chip is.
    pub fn stats(&self) -> LogStats {
        self.tree.pages().log().stats()
    }

    /// The chip, for looking at it.
    pub fn nand(&self) -> &N {
        self.tree.pages().log().nand()
    }

    /// The chip, for its clock and its counters. Programming or erasing past the store destroys it.
    pub fn nand_mut(&mut self) -> &mut N {
        self.tree.pages_mut().log_mut().nand_mut()
    }

    /// Leaves the store so that the next [`open`](Store::open) has nothing to recover, and gives the chip back. At most
    /// one checkpoint, nothing if nothing was changed and little was read.
    ///
    /// # Errors
    ///
    /// Errors of the chip, which is gone with them; what was put is durable all the same.
    pub fn unmount(mut self) -> Result<N, Error<N::Error>> {
        self.tree.discard_value();
        self.tree.sync()?;
        self.tree.close().into_log().unmount().map_err(|(error, _)| error.into())
    }

    /// As [`unmount`](Store::unmount), of a store that lies in a place, which is empty afterwards: so the store is not moved.
    ///
    /// # Errors
    ///
    /// As [`unmount`](Store::unmount).
    pub fn unmount_in(place: &mut Option<Self>) -> Result<(), Error<N::Error>> {
        let outcome = place.as_mut().map_or(Ok(()), Self::unmount_here);
        *place = None;
        outcome
    }

    fn unmount_here(&mut self) -> Result<(), Error<N::Error>> {
        self.tree.discard_value();
        self.tree.sync()?;
        Ok(self.tree.pages_mut().log_mut().unmount_here()?)
    }

    /// Gives the chip back as it is, as if the power had gone: nothing that was durable is lost, and the next
    /// [`open`](Store::open) recovers.
    pub fn abandon(self) -> N {
        self.tree.close().into_log().abandon()
    }
}

#[cfg(feature = "snapshots")]
impl<'m, N: Nand, C: Cells> Store<'m, N, C> {
    /// Keeps the store as it is now, to be read with [`at`](Store::at) until it is [released](Store::release). Durable when
    /// it returns, so it survives power cuts. Programs one page, makes room for what it needs
    /// ([138 programs and 14 erases at most](Store#what-calls-cost) were seen), and copies nothing; but nothing that is
    /// replaced or deleted afterwards is freed. So a snapshot needs room, which chapter 8 of the design tells: the chip less than half full, and some
    /// blocks in reserve. There are at most eight at a time.
    ///
    /// While there are snapshots, a change costs a search of each one's tree, which reads where nodes are not in memory; and
    /// moving a page that several of them share costs the collector a program for each and one more. A change that grows, for which
    /// 16 erases and checkpoints made no room, is refused with [`Error::Full`]. No change waits for a
    /// [`sync`](Store::sync): each is durable when it returns, and those that wait are settled first.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySnapshots`]; [`Error::Full`] if there is no room for all that, and then nothing
    /// has changed; errors of the chip.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error<N::Error>> {
        Ok(self.tree.snapshot()?)
    }

    /// The store as it was when this snapshot was taken. Reading costs what it costs in the store; that there is no such
    /// snapshot is the error [`Error::NoSnapshot`] of the call that reads.
    pub fn at(&mut self, snapshot: &Snapshot) -> At<'_, 'm, N, C> {
        At::new(self.tree.at(snapshot))
    }

    /// Ends a snapshot and frees what only it kept. Programs one page and its
    /// [share of collection](Store#what-calls-cost), on a full chip too, then reads what tells its tree
    /// from the others: its inner nodes that no other has, and where there are large values its leaves. It stops after about 256
    /// reads; what else is free is found out by garbage collection, at the latest when the chip looks full.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`] if it was released before; errors of the chip.
    pub fn release(&mut self, snapshot: Snapshot) -> Result<(), Error<N::Error>> {
        Ok(self.tree.release(snapshot)?)
    }

    /// The snapshots there are, the oldest first. Costs nothing.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = Snapshot> + use<'m, N, C> {
        self.tree.snapshots()
    }
}

impl<N: Nand, C: Cells> OrderedIndex for Store<'_, N, C> {
    type Error = Error<N::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Self::Error> {
        Store::get(self, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error> {
        Store::put(self, key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Self::Error> {
        Store::delete(self, key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Self::Error> {
        Store::batch(self, edits)
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        Store::range(self, from, to, direction, visit)
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        Store::first(self)
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        Store::last(self)
    }

    fn count(&mut self) -> Result<u64, Self::Error> {
        Ok(self.record_count())
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Store::sync(self)
    }

    fn verify(&mut self, report: &mut dyn FnMut(nandu_index::Violation)) -> Result<(), Self::Error> {
        Ok(OrderedIndex::verify(&mut self.tree, report)?)
    }
}
