//! Ordered records of byte strings, on the new heart.

use core::fmt;
use core::iter;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, KeyBuf, OrderedIndex};
use nandu_nand::{Geometry, Nand};
use nandu_newlog::{Log, LogError, LogStats};
use nandu_newtree::{ByteCells, Cells, Cursor as Place, Engine, EngineError, Make, Parts};

use super::records::{HEAD, Head, Layout};
use super::values::Values;
use super::verify::{Violation, verify};
use super::writer::Writer;
use super::{BLOBS, options};
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
    /// How large values stand among the records. `None` where values are of one size, or pages too small.
    layout: Option<Layout>,
    /// The large values, where there can be some and they are compiled.
    values: Option<Values<'m>>,
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
        make: Make<'m, N>,
    ) -> Result<Self, Error<N::Error>> {
        let (memory, head) = Self::divide(&nand, &options, memory)?;
        let parts = Parts::new(nand, cells, &options::engine(&options), memory, make)?;
        let mut store = Store::unopened(cells, parts);
        store.open_here(head)?;
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
        make: Make<'m, N>,
    ) -> Result<(), Error<N::Error>> {
        *place = None;
        let (memory, head) = Self::divide(&nand, &options, memory)?;
        let store = Self::put_unopened(place, nand, cells, options, memory, make)?;
        let opened = store.open_here(head);
        if opened.is_err() {
            *place = None;
        }
        opened
    }

    /// Puts a store in its place that knows nothing yet. Apart from who opens it, so that what it is put together from is off the stack then.
    #[inline(never)]
    fn put_unopened<'p>(
        place: &'p mut Option<Self>,
        nand: N,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
        make: Make<'m, N>,
    ) -> Result<&'p mut Self, Error<N::Error>> {
        let parts = Parts::new(nand, cells, &options::engine(&options), memory, make)?;
        Ok(place.insert(Store::unopened(cells, parts)))
    }

    /// Divides the memory, once the options suit.
    fn divide(nand: &N, options: &Options, memory: &'m mut [u8]) -> Result<Divided<'m>, Error<N::Error>> {
        options::check(options)?;
        let geometry = *nand.geometry();
        let required = options::memory_required::<N>(&geometry, options);
        if memory.len() < required {
            return Err(Error::Memory { required });
        }
        Ok(memory.split_at_mut(required - options::head_memory(&geometry)))
    }

    fn unopened(cells: C, parts: Parts<'m, N, C>) -> Self {
        let engine = Engine::unopened(parts);
        let layout = match cells.key_size() {
            0 => Layout::new(engine.key_size_max(), engine.entry_size_max()),
            _ => None,
        };
        Store { engine, cells, layout, values: None }
    }

    #[inline(never)]
    fn open_here(&mut self, head: &'m mut [u8]) -> Result<(), Error<N::Error>> {
        self.engine.open_here()?;
        let Some(layout) = self.layout else { return Ok(()) };
        if BLOBS {
            self.values = Some(Values::open(&mut self.engine, layout, head)?);
        } else if self.engine.get(layout.mark_key().as_slice())?.is_some() {
            return Err(Error::NotCompiled { feature: "blobs" });
        }
        Ok(())
    }

    /// As [`Store::get`](crate::Store::get).
    ///
    /// # Errors
    ///
    /// As [`Store::get`](crate::Store::get).
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Error<N::Error>> {
        self.check_key(key)?;
        let Some(value) = self.engine.get(key)? else { return Ok(None) };
        match head_in(self.layout, key, value) {
            Some(head) => Err(Error::LargeValue(head.length)),
            None => Ok(Some(value)),
        }
    }

    /// As [`Store::value_len`](crate::Store::value_len).
    ///
    /// # Errors
    ///
    /// As [`Store::value_len`](crate::Store::value_len).
    pub fn value_len(&mut self, key: &[u8]) -> Result<Option<usize>, Error<N::Error>> {
        self.check_key(key)?;
        let value = self.engine.get(key)?;
        let layout = self.layout;
        Ok(value.map(|value| head_in(layout, key, value).map_or(value.len(), |head| head.length)))
    }

    /// As [`Store::read`](crate::Store::read): a page for each leaf of pieces that the part touches.
    ///
    /// # Errors
    ///
    /// As [`Store::read`](crate::Store::read).
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        self.check_key(key)?;
        let Some(value) = self.engine.get(key)? else { return Ok(None) };
        let head = head_in(self.layout, key, value);
        let (length, begin) = match head {
            Some(head) => (head.length, &value[HEAD..]),
            None => (value.len(), value),
        };
        let size = out.len().min(length.saturating_sub(offset));
        let (here, rest) = out[..size].split_at_mut(size.min(begin.len().saturating_sub(offset)));
        here.copy_from_slice(begin.get(offset..).map_or(&[][..], |begin| &begin[..here.len()]));
        let begin = begin.len();
        if let (Some(head), Some(values), false) = (head, self.values.as_ref(), rest.is_empty()) {
            values.read_chunks(&mut self.engine, (head.stamp, begin), offset.max(begin), rest)?;
        }
        Ok(Some(size))
    }

    /// As [`Store::put`](crate::Store::put). A large value is durable when it returns, and all before it. It costs about a program for three of its pieces, of which each has a quarter of a page, and 3.
    ///
    /// # Errors
    ///
    /// As [`Store::put`](crate::Store::put).
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Error<N::Error>> {
        self.check_key(key)?;
        if self.is_large(key, value.len()) {
            let (engine, values) = self.parts();
            let Some(values) = values else { return Err(Error::NotCompiled { feature: "blobs" }) };
            return Ok(values.put(engine, key, value)?);
        }
        self.change(iter::once(key), |engine| engine.put(key, value))
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
        self.check_key(key)?;
        let draft = match (self.is_large(key, length), self.parts()) {
            (false, _) => None,
            (true, (_, None)) => return Err(Error::NotCompiled { feature: "blobs" }),
            (true, (engine, Some(values))) => {
                values.step(engine)?;
                Some(values.begin(engine, key, length)?)
            }
        };
        Ok(Writer::new(self, draft, key, length, buffer))
    }

    /// As [`Store::delete`](crate::Store::delete). Of a large value the head goes, with 2 programs more; the rest is removed in steps.
    ///
    /// # Errors
    ///
    /// As [`Store::delete`](crate::Store::delete).
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, Error<N::Error>> {
        self.check_key(key)?;
        self.change(iter::once(key), |engine| engine.delete(key))
    }

    /// As [`Store::batch`](crate::Store::batch). For each large value that it replaces or deletes it programs 2 pages more.
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
        self.change(edits.iter().map(|edit| edit.key), |engine| engine.batch(edits))
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

    /// Changes in memory that no leaf holds yet, synced or not; those of pieces of large values count.
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
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<N::Error>> {
        let Some(layout) = self.layout else { return Ok(self.engine.range(from, to, direction, visit)?) };
        for bound in [from, to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                self.check_key_size(key)?;
            }
        }
        let above = |bound| matches!(bound, Bound::Included(key) | Bound::Excluded(key) if layout.is_reserved(key));
        if above(from) {
            return Ok(());
        }
        let to = if above(to) || to == Bound::Unbounded { Bound::Excluded(layout.reserved()) } else { to };
        Ok(self.engine.range(from, to, direction, |entry| visit(user_entry(Some(layout), entry)))?)
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
        let own = self.values.as_ref().filter(|_| BLOBS).map_or(0, Values::own_count);
        // What is damaged may count wrongly.
        self.engine.record_count().saturating_sub(own)
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
        match self.layout {
            Some(layout) => layout.inline_max(),
            None => self.engine.entry_size_max(),
        }
    }

    /// Bytes that the value of a key may have: 16 MiB.
    pub fn value_size_max(&self, key: &[u8]) -> usize {
        match self.layout {
            Some(_) if BLOBS => super::values::VALUE_SIZE_MAX,
            _ => self.entry_size_max().saturating_sub(key.len()),
        }
    }

    /// As [`Store::idle`](crate::Store::idle): up to so many programs, or one step of removing what nobody's value is.
    ///
    /// # Errors
    ///
    /// As [`Store::idle`](crate::Store::idle).
    pub fn idle(&mut self, pages: u32) -> Result<bool, Error<N::Error>> {
        if let (engine, Some(values)) = self.parts()
            && values.has_list()
        {
            values.step(engine)?;
            return Ok(true);
        }
        Ok(self.engine.idle(pages)?)
    }

    /// As [`Store::verify`](crate::Store::verify). Reads the pieces of large values twice.
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
        if let Some(values) = &self.values {
            verify(values, &mut self.engine, &mut |what, stamp| report(Violation::Value { what, stamp }))?;
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

    /// Refuses keys that are too long, or the store's own. Those of one size are the tree's to check.
    fn check_key(&self, key: &[u8]) -> Result<(), Error<N::Error>> {
        let Some(layout) = self.layout else { return Ok(()) };
        self.check_key_size(key)?;
        match layout.is_reserved(key) {
            true => Err(Error::Unsuitable { what: "a key that begins with so many bytes of 255" }),
            false => Ok(()),
        }
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

    /// Changes the records of these keys, after their large values entered the list. Where there is no room it is made, of what is nobody's.
    fn change<'k, T>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        mut make: impl FnMut(&mut Engine<'m, N, C>) -> Result<T, EngineError<N::Error>>,
    ) -> Result<T, Error<N::Error>> {
        let (engine, values) = self.parts();
        let Some(values) = values else { return Ok(make(engine)?) };
        values.step(engine)?;
        loop {
            values.retire(engine, keys.clone())?;
            match make(engine).map_err(|error| values.as_full(error)) {
                Err(EngineError::Log(LogError::Full)) if values.step(engine)? => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    /// The first entry from a bound on, upwards.
    fn above(&mut self, bound: Bound<&[u8]>) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        let Store { engine, layout, .. } = self;
        let mut cursor = match bound {
            Bound::Unbounded => Place::START,
            Bound::Included(key) => Place::below(key),
            Bound::Excluded(key) => Place::above(key),
        };
        let entry = engine.next(&mut cursor)?;
        let is_users = |entry: &Entry<'_>| !layout.is_some_and(|layout| layout.is_reserved(entry.key));
        Ok(entry.filter(is_users).map(|entry| user_entry(*layout, entry)))
    }

    /// The first entry from a bound on, downwards.
    fn below(&mut self, bound: Bound<&[u8]>) -> Result<Option<Entry<'_>>, Error<N::Error>> {
        if let (Bound::Included(key) | Bound::Excluded(key), Some(_)) = (bound, self.layout) {
            self.check_key_size(key)?;
        }
        let Store { engine, layout, .. } = self;
        let reserved = layout.map(|layout| layout.reserved());
        let is_users = |key: &[u8]| reserved.is_none_or(|reserved| key < reserved);
        let mut cursor = match bound {
            Bound::Included(key) if is_users(key) => Place::above(key),
            Bound::Excluded(key) if is_users(key) => Place::below(key),
            _ => reserved.map_or(Place::END, Place::below),
        };
        Ok(engine.previous(&mut cursor)?.map(|entry| user_entry(*layout, entry)))
    }

    /// Whether a value of so many bytes is a large one.
    fn is_large(&self, key: &[u8], length: usize) -> bool {
        self.layout.is_some_and(|layout| key.len() + length > layout.inline_max())
    }

    /// The engine, and the large values if they are compiled.
    pub(super) fn parts(&mut self) -> (&mut Engine<'m, N, C>, Option<&mut Values<'m>>) {
        (&mut self.engine, self.values.as_mut().filter(|_| BLOBS))
    }
}

/// Memory for the engine, and for a head.
type Divided<'m> = (&'m mut [u8], &'m mut [u8]);

/// What a record says of a large value.
fn head_in(layout: Option<Layout>, key: &[u8], value: &[u8]) -> Option<Head> {
    layout.filter(|_| BLOBS)?.head(key, value)
}

/// A record as its user sees it: of a large value its size.
fn user_entry<'e>(layout: Option<Layout>, entry: Entry<'e>) -> Entry<'e> {
    match head_in(layout, entry.key, entry.value) {
        Some(head) => Entry { key: entry.key, value: &[], large: Some(head.length) },
        None => entry,
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
        Ok(self.engine.verify(report)?)
    }
}
