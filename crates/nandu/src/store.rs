//! Ordered records of byte strings.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, KeyBuf, OrderedIndex};
use nandu_log::{Log, LogStats};
use nandu_nand::{Geometry, Nand};
use nandu_tree::{Begin, ByteCells, Cells, Cursor, Engine, EngineError, Parts};

#[cfg(feature = "snapshots")]
use crate::at::{At, Snapshot};
use crate::verify::Violation;
use crate::{Error, Options};

/// Entries that a load puts with one commit.
const LOAD: usize = 32;

/// Ordered records on a chip `N`, in memory handed over when it is opened.
///
/// Keys and values are byte strings; keys are ordered as bytes are. With other cells `C` they are of one size, see
/// [`Map`](crate::Map).
///
/// # What calls cost
///
/// Where a call says what it programs, it says what its own pages take. Each change pays its share of collection besides, once blocks are few. What a call takes at most is promised in
/// `promises.toml`, and the table of the judge says what was measured.
///
/// # Changes that wait
///
/// With [`Durability::OnSync`](crate::Durability::OnSync) a change that makes a leaf overflow makes all before it durable, and itself. A batch that does not fit a page or half of
/// [`Options::pending_size`] goes to its leaves at once. Where not even its keys fit, everything that waits goes there first.
pub struct Store<'m, N: Nand, C = ByteCells> {
    engine: Engine<'m, N, C>,
    cells: C,
}

impl<N: Nand, C> fmt::Debug for Store<'_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("engine", &self.engine).finish_non_exhaustive()
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
    /// Memory of any alignment will do. Whole pages go to the chip from buffers at its beginning and come into them: so in memory aligned to 32 bytes, as [`Aligned`](crate::nand::Aligned) is, each begins
    /// and ends at a line of a Cortex-M7's data cache. Shorter reads, of headers above all, go to the stack and are not aligned.
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

    /// Opens the store on a chip. After a clean [`unmount`](Store::unmount) it only reads; after a power cut it programs a copy of the newest commit and a checkpoint before it returns. At most 40 page reads, whatever
    /// the power did. With [`Options::read_back`] it reads a page or two more for each block that it erases. If there are large values it reads further what a get does, and three times that if one is
    /// being removed.
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
        Self::with_log(nand, cells, options, memory, Log::format)
    }

    /// As [`open`](Store::open), with other cells.
    ///
    /// # Errors
    ///
    /// As [`open`](Store::open).
    pub fn open_with(nand: N, cells: C, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        Self::with_log(nand, cells, options, memory, Log::mount)
    }

    fn with_log(
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
        begin: Begin<'m, N>,
    ) -> Result<Self, Error<N::Error>> {
        let options = options.engine();
        let mut store = Store { engine: Engine::unopened(Parts::new(nand, cells, &options, memory)?), cells };
        store.engine.begin(&options, begin)?;
        Ok(store)
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
        Self::put_in(place, nand, cells, options, memory, Log::format)
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
        Self::put_in(place, nand, cells, options, memory, Log::mount)
    }

    fn put_in(
        place: &mut Option<Self>,
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
        begin: Begin<'m, N>,
    ) -> Result<(), Error<N::Error>> {
        *place = None;
        let options = options.engine();
        let store = Self::put_unopened(place, nand, cells, &options, memory)?;
        let opened = store.engine.begin(&options, begin);
        if opened.is_err() {
            *place = None;
        }
        Ok(opened?)
    }

    /// Puts a store in its place that knows nothing yet. Apart from who opens it, so that what it is put together from is off the stack then.
    #[inline(never)]
    fn put_unopened<'p>(
        place: &'p mut Option<Self>,
        nand: N,
        cells: C,
        options: &nandu_tree::Options,
        memory: &'m mut [u8],
    ) -> Result<&'p mut Self, Error<N::Error>> {
        let parts = Parts::new(nand, cells, options, memory)?;
        Ok(place.insert(Store { engine: Engine::unopened(parts), cells }))
    }

    /// The value of a key, lent until the store is used again. A large value, which stands in pages of its own, is not
    /// lent: [`Error::LargeValue`] names its size, and [`read`](Store::read) copies any part of it. Reads a page for each level of the tree that is not in
    /// memory: one, with a cache that holds the inner nodes.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; [`Error::LargeValue`]; a page that cannot be read.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error<N::Error>> {
        Ok(self.engine.get(key)?)
    }

    /// Bytes of a key's value. Reads what [`get`](Store::get) does.
    ///
    /// # Errors
    ///
    /// As [`get`](Store::get).
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, Error<N::Error>> {
        match self.engine.get(key) {
            Ok(value) => Ok(value.map(<[u8]>::len)),
            Err(EngineError::LargeValue(size)) => Ok(Some(size)),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies what the value of a key has from `offset` on into `out`; returns how many bytes that were: fewer than asked
    /// for at the value's end, none behind it. `None` if there is no such key. Reads what [`get`](Store::get) does, one
    /// page for each page of a large value that the part touches, and one for each group of these.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; a page that cannot be read.
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        let size = self.engine.read(key, offset, out)?;
        Ok(size.map(|size| size.saturating_sub(offset).min(out.len())))
    }

    /// Puts a value at a key; returns whether the key was there before. Durable when it returns, unless
    /// [`Options::durability`] leaves that to the next [`sync`](Store::sync). Programs one page, when
    /// a leaf overflows two or three, and its [share of collection](Store#what-calls-cost).
    ///
    /// A value that is too large for a leaf ([`entry_size_max`](Store::entry_size_max)) goes to pages of its own, which its record names, with up to 96 last bytes: a value as large as a page takes one. It costs a
    /// program for each of its pages, and what a put does. With several pages it is durable when the call returns, and all before it; with one page it waits as any other change does. What it replaces is
    /// free with the next commit or, of more pages than die with one commit, when live pages are counted next. So replacing a value needs room for both. Moving a page of one takes another program for
    /// the record that names it, or part of one where several are moved at once; growth is refused where that would not end, which is at four fifths of the room or less. A small value that looks like the
    /// record of a large one, which takes intent, gets a page of its own.
    ///
    /// On a full chip a value that its leaf takes without another page has room all the same, since that frees the page it
    /// replaces: one of the size of the value before or smaller, and others as long as deletions have left room in that leaf.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] and [`Error::ValueSize`] name what is too long; [`Error::Full`] if there is no
    /// room, and then nothing has changed; errors of the chip.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error<N::Error>> {
        let is_longer = self.cells.key_size() == 0 && key.len() + value.len() > self.entry_size_max();
        if !is_longer && !self.engine.is_large(key, value) {
            return Ok(self.engine.put(key, value)?);
        }
        self.engine.begin_value(key, value.len())?;
        let mut rest = value;
        while let Some(size) = self.engine.value_part().filter(|_| !rest.is_empty()) {
            let (now, more) = rest.split_at(size.min(rest.len()));
            self.engine.append_value(key, now)?;
            rest = more;
        }
        self.end_value(key)
    }

    /// Deletes a key; returns whether it was there. Durable as a put is. Programs one page and its
    /// [share of collection](Store#what-calls-cost), nothing if there was no such key. Works on a full chip too, and while there are snapshots.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`]; errors of the chip.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error<N::Error>> {
        Ok(self.engine.delete(key)?)
    }

    /// Makes all these changes or none of them, whenever the power goes. The keys must strictly ascend, and the values be
    /// small ones; large ones that are there may be replaced and deleted. Programs about
    /// one page for each leaf concerned, and its [share of collection](Store#what-calls-cost).
    ///
    /// # Errors
    ///
    /// As [`put`](Store::put); [`Error::NotAscending`] names the first key out of order; [`Error::ValueSize`] for a
    /// large value; [`Error::BatchSize`] for a batch of too many leaves, or one that replaces more large values than half a page names while a
    /// snapshot is to keep them.
    pub fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Error<N::Error>> {
        for (index, edit) in edits.iter().enumerate() {
            match edit.value {
                Some(value) => self.check_entry(edit.key, value)?,
                None => self.check_key(edit.key)?,
            }
            if index > 0 && edits[index - 1].key >= edit.key {
                return Err(Error::NotAscending(index));
            }
        }
        Ok(self.engine.batch(edits)?)
    }

    /// Puts entries whose keys strictly ascend, any number of them; returns how many. Commits every 32 entries, or after fewer where they concern many leaves, and each commit costs what a
    /// [`batch`](Store::batch) does: after a power cut, and after an error, a prefix of the entries is there.
    ///
    /// # Errors
    ///
    /// As [`batch`](Store::batch), when the entry is reached.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, Error<N::Error>> {
        let mut entries = entries.into_iter().fuse();
        let mut group = [const { None }; LOAD];
        // The key before a group.
        let mut last = None;
        let mut count = 0_u64;
        loop {
            group.fill_with(|| entries.next());
            let mut edits = [Edit { key: &[], value: None }; LOAD];
            let mut size = 0;
            let mut refused = None;
            for (key, value) in group.iter().flatten() {
                let (key, value) = (key.as_ref(), value.as_ref());
                let is_above = match size {
                    0 => last.as_ref().is_none_or(|last: &KeyBuf| last.as_slice() < key),
                    size => edits[size - 1].key < key,
                };
                let index = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(size);
                let order = if is_above { Ok(()) } else { Err(Error::NotAscending(index)) };
                if let Err(error) = self.check_entry(key, value).and(order) {
                    refused = Some(error);
                    break;
                }
                edits[size] = Edit { key, value: Some(value) };
                size += 1;
            }
            self.load_group(&edits[..size])?;
            count += size as u64;
            if let Some(error) = refused {
                return Err(error);
            }
            if size < LOAD {
                return Ok(count);
            }
            last = KeyBuf::new(edits[size - 1].key);
        }
    }

    /// One batch, or two of half of the entries where they concern too many leaves.
    fn load_group(&mut self, edits: &[Edit<'_>]) -> Result<(), Error<N::Error>> {
        match self.batch(edits) {
            Err(Error::BatchSize) if edits.len() > 1 => {
                let (first, second) = edits.split_at(edits.len() / 2);
                self.load_group(first)?;
                self.load_group(second)
            }
            outcome => outcome,
        }
    }

    /// Makes every change so far durable, in order, where [`Options::durability`] leaves that to a sync; else there is
    /// nothing to do. Programs one page as a rule, or none if there is no change since the last sync. Where a leaf goes with it
    /// and overflows, a page for each leaf that it becomes and for nodes above. A sync that places changes pays their [share of collection](Store#what-calls-cost) besides.
    ///
    /// # Errors
    ///
    /// Errors of the chip; then the changes are still there, to be synced again.
    pub fn sync(&mut self) -> Result<(), Error<N::Error>> {
        Ok(self.engine.sync()?)
    }

    /// Brings every change to its place, so that the volume can be opened without memory for changes. Programs about a
    /// page for each leaf that has changes, and its [share of collection](Store#what-calls-cost). Works on a full chip too: what was taken has room.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn merge(&mut self) -> Result<(), Error<N::Error>> {
        Ok(self.engine.merge()?)
    }

    /// Changes in memory that no leaf holds yet, synced or not.
    pub fn pending_count(&self) -> usize {
        self.engine.pending_count()
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
        Ok(self.engine.range(from, to, direction, visit)?)
    }

    /// The entry with the lowest key.
    ///
    /// # Errors
    ///
    /// A page that cannot be read.
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.engine.first()?)
    }

    /// The entry with the highest key.
    ///
    /// # Errors
    ///
    /// A page that cannot be read.
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.engine.last()?)
    }

    /// The entry right above a cursor, which moves over it; `None`, and the cursor stays, where there is none. Reads the leaf, unless
    /// the last call read it; from leaf to leaf what [`get`](Store::get) does.
    ///
    /// # Errors
    ///
    /// [`Error::KeySize`] of a cursor that was placed at a key that this store cannot have; a page that cannot be read.
    pub fn next(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.engine.next(cursor)?)
    }

    /// The entry right below a cursor, which moves over it; `None`, and the cursor stays, where there is none. Reads what
    /// [`next`](Store::next) does.
    ///
    /// # Errors
    ///
    /// As [`next`](Store::next).
    pub fn previous(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        Ok(self.engine.previous(cursor)?)
    }

    /// Entries in the store. Costs nothing.
    pub fn record_count(&self) -> u64 {
        self.engine.record_count()
    }

    /// Levels of the tree, leaves included.
    pub fn height(&self) -> u8 {
        self.engine.height()
    }

    /// Bytes in the longest key.
    pub fn key_size_max(&self) -> usize {
        self.engine.key_size_max()
    }

    /// Bytes that a key and its value may have together for the value to stand in its leaf, to be lent and to be put by
    /// a batch.
    pub fn entry_size_max(&self) -> usize {
        self.engine.entry_size_max()
    }

    /// Bytes that the value of a key may have: 16 MiB, or as many as the numbers of pages beside the key lead to, which on pages of 2 KiB is 13 MiB for a short key.
    pub fn value_size_max(&self, key: &[u8]) -> usize {
        self.engine.value_size_max(key)
    }

    /// Uses idle time for garbage collection ahead of need: up to this many pages are looked at, and moved if they live.
    /// Returns whether there was anything to do: after the last change false before long, and for ever. A block is emptied only while
    /// changes would have to make room, and while half of it is dead; so what is collected behind the last change programs no more
    /// pages than live. A session that changes nothing programs nothing, but for a few pages in the first one behind a change.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn idle(&mut self, pages: u32) -> Result<bool, Error<N::Error>> {
        Ok(self.engine.idle(pages)?)
    }

    /// Walks log and tree once, reads only, and reports every invariant that does not hold; returns how many. Reads every
    /// page that may be programmed, those of large values too.
    ///
    /// # Errors
    ///
    /// Errors of the chip.
    pub fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<u64, Error<N::Error>> {
        let mut count = 0;
        let mut report = |violation| {
            count += 1;
            report(violation);
        };
        self.engine.verify_log(&mut |violation| report(Violation::Log(violation)))?;
        self.engine.verify(&mut |violation| report(Violation::Tree(violation)))?;
        let mut found = next_large(&mut self.engine, Bound::Unbounded)?;
        while let Some(key) = found {
            if self.engine.verify_value(key.as_slice())? == Some(false) {
                report(Violation::Value(self.engine.root()));
            }
            found = next_large(&mut self.engine, Bound::Excluded(key.as_slice()))?;
        }
        Ok(count)
    }

    /// What was done since the store was opened, by cause, and how full and how worn the chip is.
    pub fn stats(&self) -> LogStats {
        self.engine.log().stats()
    }

    /// The chip, for looking at it.
    pub fn nand(&self) -> &N {
        self.engine.log().nand()
    }

    /// The chip, for its clock and its counters. Programming or erasing past the store destroys it.
    pub fn nand_mut(&mut self) -> &mut N {
        self.engine.nand_mut()
    }

    /// Leaves the store so that the next [`open`](Store::open) has nothing to recover, and gives the chip back. At most
    /// one checkpoint, nothing if nothing was changed and little was read.
    ///
    /// # Errors
    ///
    /// Errors of the chip, which is gone with them; what was put is durable all the same.
    pub fn unmount(self) -> Result<N, Error<N::Error>> {
        self.engine.unmount().map_err(|(error, _)| error.into())
    }

    /// As [`unmount`](Store::unmount), of a store that lies in a place, which is empty afterwards: so the store is not moved.
    ///
    /// # Errors
    ///
    /// As [`unmount`](Store::unmount).
    pub fn unmount_in(place: &mut Option<Self>) -> Result<(), Error<N::Error>> {
        let left = place.as_mut().map_or(Ok(()), |store| store.engine.unmount_here());
        *place = None;
        Ok(left?)
    }

    /// Gives the chip back as it is, as if the power had gone: nothing that was durable is lost, and the next
    /// [`open`](Store::open) recovers.
    pub fn abandon(self) -> N {
        self.engine.abandon()
    }

    // What stands behind the calls.

    fn check_key_size(&self, key: &[u8]) -> Result<(), Error<N::Error>> {
        if key.len() <= self.engine.key_size_max() { Ok(()) } else { Err(Error::KeySize(key.len())) }
    }

    /// Refuses keys that are too long. Those of one size are the tree's to check.
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), Error<N::Error>> {
        if self.cells.key_size() == 0 { self.check_key_size(key) } else { Ok(()) }
    }

    /// Refuses what its leaf does not take.
    fn check_entry(&self, key: &[u8], value: &[u8]) -> Result<(), Error<N::Error>> {
        self.check_key(key)?;
        let (key_size, value_size) = (self.cells.key_size().into(), self.cells.value_size().into());
        if key_size > 0 && key.len() != key_size {
            return Err(Error::KeySize(key.len()));
        }
        let fits = match key_size {
            0 => key.len() + value.len() <= self.entry_size_max(),
            _ => value.len() == value_size,
        };
        if fits { Ok(()) } else { Err(Error::ValueSize(value.len())) }
    }

    /// Puts the value under way, all of whose bytes were programmed.
    pub(crate) fn end_value(&mut self, key: &[u8]) -> Result<bool, Error<N::Error>> {
        // The last page may have none.
        while self.engine.value_part().is_some() {
            self.engine.append_value(key, &[])?;
        }
        Ok(self.engine.end_value(key)?)
    }

    /// Whether keys have one size; then there are no large values.
    pub(crate) fn has_fixed_keys(&self) -> bool {
        self.cells.key_size() > 0
    }

    pub(crate) fn engine(&mut self) -> &mut Engine<'m, N, C> {
        &mut self.engine
    }
}

#[cfg(feature = "snapshots")]
impl<'m, N: Nand, C: Cells> Store<'m, N, C> {
    /// Keeps the store as it is now, with what waits, to be read with [`at`](Store::at) until it is [released](Store::release). Durable when it returns. 1 program, or 2 where something waits; copies nothing.
    /// At most [`SNAPSHOT_COUNT_MAX`](crate::SNAPSHOT_COUNT_MAX) at a time.
    ///
    /// What stands at a key is kept before the first change there: that change makes two, once for each snapshot, or keeps its whole leaf in a page while an eighth of the room is left; it searches for what was kept as long as there are snapshots. What is kept takes room; a change that frees is
    /// not refused for it, on pages of 512 bytes and more. Growth is refused unless a page stays free for each leaf of which nothing is kept: so the leaves take less than half of the room when a snapshot is
    /// taken; pages of large values do not count.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySnapshots`], also where those that were released are not removed yet; [`Error::Unsuitable`] where keys have one size; [`Error::Full`]; [`Error::TooHigh`]; errors of the chip.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error<N::Error>> {
        if self.cells.key_size() > 0 {
            return Err(Error::Unsuitable { what: "snapshots of keys of one size" });
        }
        Ok(Snapshot::new(self.engine.snapshot()?))
    }

    /// The store as it was when this snapshot was taken. Reading costs what it costs in the store; that there is no such
    /// snapshot is the error [`Error::NoSnapshot`] of the call that reads.
    pub fn at(&mut self, snapshot: &Snapshot) -> At<'_, 'm, N, C> {
        At::new(self.engine.at(snapshot.number()))
    }

    /// Ends a snapshot. Durable when it returns; what only it kept is removed with the calls that follow and in [idle time](Store::idle), some records each, and where there is an older snapshot handed on to that.
    /// 1 program, or 2 where something waits, on a full chip too.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`] if it was released before; errors of the chip.
    pub fn release(&mut self, snapshot: Snapshot) -> Result<(), Error<N::Error>> {
        Ok(self.engine.release(snapshot.number())?)
    }

    /// The snapshots there are, the oldest first. Costs nothing.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = Snapshot> + use<'m, N, C> {
        self.engine.snapshots().map(Snapshot::new)
    }
}

/// The next key with a large value.
fn next_large<N: Nand, C: Cells>(
    engine: &mut Engine<'_, N, C>,
    from: Bound<&[u8]>,
) -> Result<Option<KeyBuf>, Error<N::Error>> {
    let mut found = None;
    engine.range(from, Bound::Unbounded, Direction::Forward, |entry| match entry.large {
        Some(_) => {
            found = KeyBuf::new(entry.key);
            ControlFlow::Break(())
        }
        None => ControlFlow::Continue(()),
    })?;
    Ok(found)
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
        Ok(self.engine.verify(report)?)
    }
}
