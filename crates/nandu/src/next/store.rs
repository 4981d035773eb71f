//! Ordered records of byte strings, on the new heart.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, KeyBuf, OrderedIndex};
use nandu_nand::{Geometry, Nand};
use nandu_newlog::{Log, LogStats};
use nandu_newtree::{Begin, ByteCells, Cells, Cursor as Place, Engine, EngineError, Parts};

#[cfg(feature = "snapshots")]
use super::at::{At, Snapshot};
use super::options;
use super::verify::Violation;
use super::writer::Writer;
use crate::{Cursor, Error, Options};

/// Entries that a load puts with one commit.
const LOAD: usize = 32;

/// Ordered records on a chip `N`, in memory handed over when it is opened; on the new heart, see [`next`](crate::next).
///
/// Keys and values are byte strings; keys are ordered as bytes are. With other cells `C` they are of one size, see
/// [`Map`](super::Map).
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
    /// As [`Store::memory_required`](crate::Store::memory_required).
    pub const fn memory_required(geometry: &Geometry, options: &Options) -> usize {
        options::memory_required::<N>(geometry, options)
    }

    /// As [`Store::format`](crate::Store::format).
    ///
    /// # Errors
    ///
    /// As [`Store::format`](crate::Store::format).
    pub fn format(nand: N, options: Options, memory: &'m mut [u8]) -> Result<Self, Error<N::Error>> {
        Store::format_with(nand, ByteCells, options, memory)
    }

    /// As [`Store::open`](crate::Store::open). If there are large values it reads further what a get does, and three times that if one is being removed.
    ///
    /// # Errors
    ///
    /// As [`Store::open`](crate::Store::open).
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
        options::check(&options)?;
        let options = options::engine(&options);
        let mut store = Store { engine: Engine::unopened(Parts::new(nand, cells, &options, memory)?), cells };
        store.engine.begin(&options, begin)?;
        Ok(store)
    }

    /// As [`format_in`](crate::Store::format_in).
    ///
    /// # Errors
    ///
    /// As [`format_in`](crate::Store::format_in).
    pub fn format_in(
        place: &mut Option<Self>,
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<(), Error<N::Error>> {
        Self::put_in(place, nand, cells, options, memory, Log::format)
    }

    /// As [`open_in`](crate::Store::open_in).
    ///
    /// # Errors
    ///
    /// As [`open_in`](crate::Store::open_in).
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
        options::check(&options)?;
        let options = options::engine(&options);
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
        options: &nandu_newtree::Options,
        memory: &'m mut [u8],
    ) -> Result<&'p mut Self, Error<N::Error>> {
        let parts = Parts::new(nand, cells, options, memory)?;
        Ok(place.insert(Store { engine: Engine::unopened(parts), cells }))
    }

    /// As [`Store::get`](crate::Store::get).
    ///
    /// # Errors
    ///
    /// As [`Store::get`](crate::Store::get).
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error<N::Error>> {
        Ok(self.engine.get(key)?)
    }

    /// As [`Store::value_len`](crate::Store::value_len).
    ///
    /// # Errors
    ///
    /// As [`Store::value_len`](crate::Store::value_len).
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, Error<N::Error>> {
        match self.engine.get(key) {
            Ok(value) => Ok(value.map(<[u8]>::len)),
            Err(EngineError::LargeValue(size)) => Ok(Some(size)),
            Err(error) => Err(error.into()),
        }
    }

    /// As [`Store::read`](crate::Store::read): each page of the value that the part touches, and one more for each group of them, see [`next`](crate::next).
    ///
    /// # Errors
    ///
    /// As [`Store::read`](crate::Store::read).
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        let size = self.engine.read(key, offset, out)?;
        Ok(size.map(|size| size.saturating_sub(offset).min(out.len())))
    }

    /// As [`Store::put`](crate::Store::put). A large value is durable when it returns, and all before it; one of one page, which a value as large as a page is if its key is not long, waits as any other change does. It costs a program for each of its pages, and what a put does.
    ///
    /// # Errors
    ///
    /// As [`Store::put`](crate::Store::put).
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

    /// As [`Store::writer`](crate::Store::writer).
    ///
    /// # Errors
    ///
    /// As [`Store::writer`](crate::Store::writer).
    pub fn writer<'s>(
        &'s mut self,
        key: &'s [u8],
        length: usize,
        buffer: &'s mut [u8],
    ) -> Result<Writer<'s, 'm, N, C>, Error<N::Error>> {
        let required = self.engine.log().page_size();
        if buffer.len() < required {
            return Err(Error::Memory { required });
        }
        // Keys of one size have no large values.
        let is_large = self.cells.key_size() == 0 && key.len() + length > self.entry_size_max();
        if is_large {
            self.engine.begin_value(key, length)?;
        } else {
            self.check_key(key)?;
        }
        Ok(Writer::new(self, is_large, (key, length), buffer))
    }

    /// As [`Store::delete`](crate::Store::delete).
    ///
    /// # Errors
    ///
    /// As [`Store::delete`](crate::Store::delete).
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error<N::Error>> {
        Ok(self.engine.delete(key)?)
    }

    /// As [`Store::batch`](crate::Store::batch).
    ///
    /// # Errors
    ///
    /// As [`Store::batch`](crate::Store::batch); [`Error::BatchSize`] for a batch of too many leaves.
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

    /// As [`Store::load`](crate::Store::load). Commits every 32 entries.
    ///
    /// # Errors
    ///
    /// As [`Store::load`](crate::Store::load).
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

    /// As [`Store::sync`](crate::Store::sync).
    ///
    /// # Errors
    ///
    /// As [`Store::sync`](crate::Store::sync).
    pub fn sync(&mut self) -> Result<(), Error<N::Error>> {
        Ok(self.engine.sync()?)
    }

    /// As [`Store::settle`](crate::Store::settle).
    ///
    /// # Errors
    ///
    /// As [`Store::settle`](crate::Store::settle).
    pub fn settle(&mut self) -> Result<(), Error<N::Error>> {
        Ok(self.engine.settle()?)
    }

    /// Changes in memory that no leaf holds yet, synced or not.
    pub fn pending_count(&self) -> usize {
        self.engine.pending_count()
    }

    /// As [`Store::range`](crate::Store::range).
    ///
    /// # Errors
    ///
    /// As [`Store::range`](crate::Store::range).
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<N::Error>> {
        Ok(self.engine.range(from, to, direction, visit)?)
    }

    /// As [`Store::first`](crate::Store::first).
    ///
    /// # Errors
    ///
    /// As [`Store::first`](crate::Store::first).
    pub fn first(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        self.above(Bound::Unbounded)
    }

    /// As [`Store::last`](crate::Store::last).
    ///
    /// # Errors
    ///
    /// As [`Store::last`](crate::Store::last).
    pub fn last(&mut self) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        self.below(Bound::Unbounded)
    }

    /// As [`Store::next`](crate::Store::next).
    ///
    /// # Errors
    ///
    /// As [`Store::next`](crate::Store::next).
    pub fn next(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Some(bound) = cursor.bound_above() else { return Ok(None) };
        let entry = self.above(bound)?;
        cursor.go_above(entry.as_ref());
        Ok(entry)
    }

    /// As [`Store::previous`](crate::Store::previous).
    ///
    /// # Errors
    ///
    /// As [`Store::previous`](crate::Store::previous).
    pub fn previous(&mut self, cursor: &mut Cursor) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Some(bound) = cursor.bound_below() else { return Ok(None) };
        let entry = self.below(bound)?;
        cursor.go_below(entry.as_ref());
        Ok(entry)
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

    /// As [`Store::entry_size_max`](crate::Store::entry_size_max).
    pub fn entry_size_max(&self) -> usize {
        self.engine.entry_size_max()
    }

    /// Bytes that the value of a key may have: 16 MiB, or as many as the numbers of pages beside the key lead to, which on pages of 2 KiB is 13 MiB for a short key.
    pub fn value_size_max(&self, key: &[u8]) -> usize {
        self.engine.value_size_max(key)
    }

    /// As [`Store::idle`](crate::Store::idle).
    ///
    /// # Errors
    ///
    /// As [`Store::idle`](crate::Store::idle).
    pub fn idle(&mut self, pages: u32) -> Result<bool, Error<N::Error>> {
        Ok(self.engine.idle(pages)?)
    }

    /// As [`Store::verify`](crate::Store::verify). Reads the pages of large values, too.
    ///
    /// # Errors
    ///
    /// As [`Store::verify`](crate::Store::verify).
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

    /// As [`Store::nand_mut`](crate::Store::nand_mut).
    pub fn nand_mut(&mut self) -> &mut N {
        self.engine.nand_mut()
    }

    /// As [`Store::unmount`](crate::Store::unmount).
    ///
    /// # Errors
    ///
    /// As [`Store::unmount`](crate::Store::unmount).
    pub fn unmount(self) -> Result<N, Error<N::Error>> {
        self.engine.unmount().map_err(|(error, _)| error.into())
    }

    /// As [`unmount_in`](crate::Store::unmount_in).
    ///
    /// # Errors
    ///
    /// As [`unmount_in`](crate::Store::unmount_in).
    pub fn unmount_in(place: &mut Option<Self>) -> Result<(), Error<N::Error>> {
        let Some(store) = place.take() else { return Ok(()) };
        store.unmount().map(drop)
    }

    /// As [`Store::abandon`](crate::Store::abandon).
    pub fn abandon(self) -> N {
        self.engine.abandon()
    }

    // What stands behind the calls.

    fn check_key_size(&self, key: &[u8]) -> Result<(), Error<N::Error>> {
        if key.len() <= self.engine.key_size_max() { Ok(()) } else { Err(Error::KeySize(key.len())) }
    }

    /// Refuses keys that are too long. Those of one size are the tree's to check.
    fn check_key(&self, key: &[u8]) -> Result<(), Error<N::Error>> {
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

    /// The first entry from a bound on, upwards.
    fn above(&mut self, bound: Bound<&[u8]>) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let mut cursor = match bound {
            Bound::Unbounded => Place::START,
            Bound::Included(key) => Place::below(key),
            Bound::Excluded(key) => Place::above(key),
        };
        Ok(self.engine.next(&mut cursor)?)
    }

    /// The first entry from a bound on, downwards.
    fn below(&mut self, bound: Bound<&[u8]>) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let mut cursor = match bound {
            Bound::Unbounded => Place::END,
            Bound::Included(key) => Place::above(key),
            Bound::Excluded(key) => Place::below(key),
        };
        Ok(self.engine.previous(&mut cursor)?)
    }

    /// Puts the value under way, all of whose bytes were programmed.
    pub(super) fn end_value(&mut self, key: &[u8]) -> Result<bool, Error<N::Error>> {
        // The last page may have none.
        while self.engine.value_part().is_some() {
            self.engine.append_value(key, &[])?;
        }
        Ok(self.engine.end_value(key)?)
    }

    pub(super) fn engine(&mut self) -> &mut Engine<'m, N, C> {
        &mut self.engine
    }
}

#[cfg(feature = "snapshots")]
impl<'m, N: Nand, C: Cells> Store<'m, N, C> {
    /// Keeps the store as it is now, with what waits, to be read with [`at`](Store::at) until it is [released](Store::release). Durable when it returns. 1 program, or 2 where something waits; copies nothing.
    /// At most [`SNAPSHOT_COUNT_MAX`](crate::SNAPSHOT_COUNT_MAX) at a time.
    ///
    /// What stands at a key is kept before the first change there: that change makes two, once for each snapshot, or keeps its whole leaf in a page while an eighth of the room is left; it searches for what was kept as long as there are snapshots. What is kept takes room; a change that frees is
    /// not refused for it.
    ///
    /// # Errors
    ///
    /// [`Error::TooManySnapshots`], also where those that were released are not removed yet; [`Error::Unsuitable`] where keys have one size; [`Error::Full`]; errors of the chip.
    pub fn snapshot(&mut self) -> Result<Snapshot, Error<N::Error>> {
        if self.cells.key_size() > 0 {
            return Err(Error::Unsuitable { what: "snapshots of keys of one size" });
        }
        Ok(Snapshot::new(self.engine.snapshot()?))
    }

    /// As [`Store::at`](crate::Store::at).
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
