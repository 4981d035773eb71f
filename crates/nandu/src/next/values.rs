//! Values that do not fit a leaf: put, replaced, removed in steps.
//!
//! A value counts once its head does, which is put last and names its stamp. Two orders keep flash in hand at every cut:
//!
//! * A value that is begun enters the list with its first chunks, and leaves it in the commit of its head. A cut between leaves the value before, and chunks
//!   in the list that no head names.
//! * A value that is to be replaced or deleted enters the list *before* its head goes. A cut between, or a change that is refused, leaves it first in the list although its
//!   head names it; so whoever goes on with the list first asks the head.
//!
//! What enters the list is therefore named by a head only while one call goes on, or until the next one asks ([`Values::settle`]). A value stands in the list
//! once: it enters only when no value in the list is named. The list needs no room: mark and links are replaced by records of the same size, and chunks are
//! deleted; a tree takes both on a full chip.

use core::ops::Bound;

use nandu_index::{Direction, Edit, KeyBuf};
use nandu_nand::Nand;
use nandu_newtree::{Cells, Engine, EngineError, LogError, Malformed};

use super::records::{CHUNKS_MAX, HEAD, Head, Layout, Link, Mark, OwnKey, Stamp};

/// Chunks that are put with one commit.
const GROUP: usize = 16;

/// Chunks that are deleted with one.
const REMOVED: usize = 8;

/// Bytes of the largest value.
pub(super) const VALUE_SIZE_MAX: usize = 16 << 20;

pub(super) type Outcome<T, N> = Result<T, EngineError<<N as nandu_nand::ErrorType>::Error>>;

/// The large values of a store.
pub(super) struct Values<'m> {
    layout: Layout,
    /// The head of the value that is being put.
    head: &'m mut [u8],
    mark: Mark,
    /// Link and chunks of the first value in the list.
    listed: u64,
    /// No head names the first value in the list.
    is_checked: bool,
}

/// A value that is being put.
pub(super) struct Draft {
    stamp: Stamp,
    length: usize,
    /// Bytes of its beginning that are in the head yet.
    begun: usize,
    chunks: u32,
    is_listed: bool,
}

impl<'m> Values<'m> {
    /// Bytes of memory for a head.
    pub(super) const fn memory_required(page_size: usize) -> usize {
        page_size / 4
    }

    /// Finds out what there is. `memory` is for a head. Reads what a get does, and three times that if there is something in the list.
    pub(super) fn open<N: Nand, C: Cells>(
        engine: &mut Engine<'_, N, C>,
        layout: Layout,
        memory: &'m mut [u8],
    ) -> Outcome<Self, N> {
        let mark = match engine.get(layout.mark_key().as_slice())?.map(Mark::read) {
            Some(Some(mark)) => mark,
            Some(None) => return Err(corrupt(engine)),
            None => Mark::default(),
        };
        let mut values = Values { layout, head: memory, mark, listed: 0, is_checked: false };
        values.listed = values.size_of(engine, mark.first)?;
        Ok(values)
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// The store's own records.
    pub(super) fn own_count(&self) -> u64 {
        self.mark.others + self.listed
    }

    /// Whether a value of so many bytes is a large one.
    pub(super) fn is_large(&self, key: &[u8], length: usize) -> bool {
        key.len() + length > self.layout.inline_max()
    }

    /// A tree that cannot become higher for pieces of values is full: deleting makes room.
    pub(super) fn as_full<E: core::error::Error>(&self, error: EngineError<E>) -> EngineError<E> {
        match error {
            EngineError::TooHigh if self.own_count() > 1 => EngineError::Log(LogError::Full),
            error => error,
        }
    }

    /// Whether something is to be removed.
    pub(super) fn has_list(&self) -> bool {
        self.mark.first != Stamp::NONE
    }

    /// The head of a key, if its value is a large one. Reads what a get does, or nothing while there is no large value.
    pub(super) fn find<N: Nand, C: Cells>(
        &self,
        engine: &mut Engine<'_, N, C>,
        key: &[u8],
    ) -> Outcome<Option<Head>, N> {
        // The mark is one.
        if self.own_count() <= 1 {
            return Ok(None);
        }
        Ok(engine.get(key)?.and_then(|value| self.layout.head(key, value)))
    }

    // The list.

    /// Own records of a value: its link and its chunks. Two searches.
    pub(super) fn size_of<N: Nand, C: Cells>(&self, engine: &mut Engine<'_, N, C>, stamp: Stamp) -> Outcome<u64, N> {
        if stamp == Stamp::NONE {
            return Ok(0);
        }
        let has_link = engine.get(self.layout.link_key(stamp).as_slice())?.is_some();
        Ok(u64::from(has_link) + u64::from(self.last_chunk(engine, stamp)?))
    }

    /// Number of the last chunk of a value, 0 if it has none.
    fn last_chunk<N: Nand, C: Cells>(&self, engine: &mut Engine<'_, N, C>, stamp: Stamp) -> Outcome<u32, N> {
        let (low, high) = (self.layout.chunk_key(stamp, 0), self.layout.chunk_key(stamp, CHUNKS_MAX));
        let last = engine.nearest(Bound::Included(high.as_slice()), Direction::Backward)?;
        let number = |key: KeyBuf| (key.as_slice() > low.as_slice()).then(|| Layout::chunk_number(key.as_slice()));
        Ok(last.and_then(number).unwrap_or(0))
    }

    /// What the link of a value says.
    pub(super) fn link_of<N: Nand, C: Cells>(
        &self,
        engine: &mut Engine<'_, N, C>,
        stamp: Stamp,
    ) -> Outcome<Option<(Stamp, KeyBuf)>, N> {
        let link = engine.get(self.layout.link_key(stamp).as_slice())?.and_then(Link::read);
        Ok(link.and_then(|(next, key)| Some((next, KeyBuf::new(key)?))))
    }

    fn put_link<N: Nand, C: Cells>(&self, engine: &mut Engine<'_, N, C>, stamp: Stamp, link: &Link) -> Outcome<(), N> {
        engine.put(self.layout.link_key(stamp).as_slice(), link.as_slice()).map(drop)
    }

    /// The mark is on flash; so many records belong to the first of the list.
    fn marked(&mut self, mark: Mark, listed: u64) {
        debug_assert!(mark.others > 0, "the mark counts itself");
        (self.mark, self.listed, self.is_checked) = (mark, listed, false);
    }

    fn put_mark<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        mark: Mark,
        listed: u64,
    ) -> Outcome<(), N> {
        engine.put(self.layout.mark_key().as_slice(), &mark.bytes())?;
        self.marked(mark, listed);
        Ok(())
    }

    /// Whether the head of a value names it.
    pub(super) fn is_named<N: Nand, C: Cells>(&self, engine: &mut Engine<'_, N, C>, stamp: Stamp) -> Outcome<bool, N> {
        let Some((_, key)) = self.link_of(engine, stamp)? else { return Ok(false) };
        Ok(self.find(engine, key.as_slice())?.is_some_and(|head| head.stamp == stamp))
    }

    /// Takes out of the list what heads name after all: what a change entered that was refused or cut. 1 program for each.
    pub(super) fn settle<N: Nand, C: Cells>(&mut self, engine: &mut Engine<'_, N, C>) -> Outcome<(), N> {
        while self.has_list() && !self.is_checked {
            if self.is_named(engine, self.mark.first)? {
                self.pop(engine)?;
            } else {
                self.is_checked = true;
            }
        }
        debug_assert!(!self.has_list() || self.is_checked, "the first value is known to be nobody's");
        Ok(())
    }

    /// The first value leaves the list. 1 program.
    fn pop<N: Nand, C: Cells>(&mut self, engine: &mut Engine<'_, N, C>) -> Outcome<(), N> {
        debug_assert!(self.has_list(), "there is a first value");
        let (mark, listed) = self.without_first(engine, self.mark.others + self.listed)?;
        self.put_mark(engine, mark, listed)
    }

    /// The mark without the first value, and how many records belong to the next, where there are so many own records in all but those of the next.
    fn without_first<N: Nand, C: Cells>(&self, engine: &mut Engine<'_, N, C>, own: u64) -> Outcome<(Mark, u64), N> {
        let first = self.mark.next;
        let next = match first {
            Stamp::NONE => Stamp::NONE,
            first => self.link_of(engine, first)?.map_or(Stamp::NONE, |(next, _)| next),
        };
        let listed = self.size_of(engine, first)?;
        let others = own.checked_sub(listed).filter(|&others| others > 0).ok_or_else(|| corrupt(engine))?;
        Ok((Mark { first, next, others }, listed))
    }

    /// A large value enters the list. 2 programs.
    fn push<N: Nand, C: Cells>(&mut self, engine: &mut Engine<'_, N, C>, stamp: Stamp, key: &[u8]) -> Outcome<(), N> {
        debug_assert!(stamp != self.mark.first && stamp != self.mark.next, "a value enters the list once");
        let next = self.mark.first;
        self.put_link(engine, stamp, &Link::new(next, key))?;
        let size = self.size_of(engine, stamp)?;
        let others = self.own_count().checked_sub(size).filter(|&others| others > 0).ok_or_else(|| corrupt(engine))?;
        self.put_mark(engine, Mark { first: stamp, next, others }, size)
    }

    /// The large values of these keys enter the list, since the keys are about to be changed. 2 programs for each.
    pub(super) fn retire<'k, N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Outcome<(), N> {
        if self.own_count() <= 1 {
            return Ok(());
        }
        self.settle(engine)?;
        for key in keys {
            if let Some(head) = self.find(engine, key)? {
                self.push(engine, head.stamp, key)?;
            }
        }
        Ok(())
    }

    /// Removes some chunks of what is nobody's. Returns whether it did. A page for each leaf concerned, and one for the mark.
    pub(super) fn step<N: Nand, C: Cells>(&mut self, engine: &mut Engine<'_, N, C>) -> Outcome<bool, N> {
        self.settle(engine)?;
        if !self.has_list() {
            return Ok(false);
        }
        let last = self.last_chunk(engine, self.mark.first)?;
        match self.remove(engine, last, REMOVED as u32) {
            // Fewer at a time ask for less room.
            Err(EngineError::Log(LogError::Full) | EngineError::BatchTooLarge { .. }) => {
                self.remove(engine, last, 1)?
            }
            outcome => outcome?,
        }
        Ok(true)
    }

    /// Removes the last chunks of the first value in the list, so many at most; behind the last one the link, and the value leaves the list.
    fn remove<N: Nand, C: Cells>(&mut self, engine: &mut Engine<'_, N, C>, last: u32, most: u32) -> Outcome<(), N> {
        debug_assert!(self.is_checked && most as usize <= REMOVED, "what is removed is nobody's");
        let stamp = self.mark.first;
        let left = last.saturating_sub(most);
        let mut keys = [OwnKey::EMPTY; REMOVED + 1];
        let mut count = 0;
        if left == 0 {
            keys[0] = self.layout.link_key(stamp);
            count = 1;
        }
        for (key, number) in keys[count..].iter_mut().zip(left + 1..=last) {
            *key = self.layout.chunk_key(stamp, number);
            count += 1;
        }
        let edits = keys.each_ref().map(|key| Edit { key: key.as_slice(), value: None });
        engine.batch(&edits[..count])?;
        self.listed = if left == 0 { 0 } else { 1 + u64::from(left) };
        if left == 0 {
            self.pop(engine)?;
        }
        Ok(())
    }

    // Putting a value.

    /// Begins a value; nothing is programmed for it yet. Removes as much of what is nobody's as the value needs room.
    pub(super) fn begin<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        key: &[u8],
        length: usize,
    ) -> Outcome<Draft, N> {
        debug_assert!(self.is_large(key, length), "a small value goes to its leaf");
        if length > VALUE_SIZE_MAX {
            return Err(EngineError::ValueSize(length));
        }
        let page = engine.log().page_size() - engine.log().header_size();
        let pages = length.div_ceil(page) as u32;
        if pages > engine.log().capacity_pages() {
            return Err(EngineError::Log(LogError::Full));
        }
        self.settle(engine)?;
        // Where pages are small a leaf has room for one chunk beside the path to it; and it takes two programs to move, which counts as another page.
        let most = 2 * (length.div_ceil(self.layout.chunk_size()) + GROUP) as u32;
        while self.has_list() && !engine.log().has_room(most) {
            self.step(engine)?;
        }
        // What was begun before and waits has another stamp.
        engine.sync()?;
        let Some(stamp) = Stamp::new(engine.log().next_sequence()) else {
            return Err(EngineError::Log(LogError::ReadOnly));
        };
        Ok(Draft { stamp, length, begun: 0, chunks: 0, is_listed: false })
    }

    /// Takes what of the next bytes belongs to the head; returns the rest, which is for chunks.
    pub(super) fn keep<'b>(&mut self, draft: &mut Draft, key: &[u8], bytes: &'b [u8]) -> &'b [u8] {
        let size = self.layout.head_size(key) - HEAD;
        let (now, rest) = bytes.split_at(bytes.len().min(size - draft.begun));
        self.head[HEAD + draft.begun..][..now.len()].copy_from_slice(now);
        draft.begun += now.len();
        rest
    }

    /// Bytes that [`Values::extend`] takes, of so many that there is room to gather; whole chunks.
    pub(super) fn group_size(&self, room: usize) -> usize {
        let chunk = self.layout.chunk_size();
        (room / chunk).clamp(1, GROUP) * chunk
    }

    /// Puts chunks that are not the last ones. About a program for three of them.
    pub(super) fn extend<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        draft: &mut Draft,
        key: &[u8],
        data: &[u8],
    ) -> Outcome<(), N> {
        let size = self.layout.chunk_size();
        debug_assert!(data.len().is_multiple_of(size), "these are not the last bytes");
        match self.extend_at_once(engine, draft, key, data) {
            // Fewer at a time ask for less room.
            Err(EngineError::Log(LogError::Full) | EngineError::BatchTooLarge { .. }) if data.len() > size => {
                data.chunks(size).try_for_each(|chunk| self.extend_at_once(engine, draft, key, chunk))
            }
            outcome => outcome,
        }
    }

    fn extend_at_once<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        draft: &mut Draft,
        key: &[u8],
        data: &[u8],
    ) -> Outcome<(), N> {
        let count = data.len() / self.layout.chunk_size();
        if draft.is_listed {
            self.commit(engine, draft, (key, data), None)?;
            self.listed += count as u64;
        } else {
            let own = self.own_count() + u64::from(self.mark.others == 0);
            let mark = Mark { first: draft.stamp, next: self.mark.first, others: own };
            self.commit(engine, draft, (key, data), Some((mark, false)))?;
            self.marked(mark, 1 + count as u64);
            draft.is_listed = true;
        }
        // There is no head.
        self.is_checked = true;
        draft.chunks += count as u32;
        Ok(())
    }

    /// Puts the last chunks and the head; returns whether the key was there.
    pub(super) fn finish<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        mut draft: Draft,
        key: &[u8],
        data: &[u8],
    ) -> Outcome<bool, N> {
        let size = self.layout.chunk_size();
        match self.finish_at_once(engine, &draft, key, data) {
            Err(EngineError::Log(LogError::Full) | EngineError::BatchTooLarge { .. }) if data.len() > size => {
                let (now, last) = data.split_at((data.len() - 1) / size * size);
                self.extend(engine, &mut draft, key, now)?;
                self.finish_at_once(engine, &draft, key, last)
            }
            outcome => outcome,
        }
    }

    fn finish_at_once<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        draft: &Draft,
        key: &[u8],
        data: &[u8],
    ) -> Outcome<bool, N> {
        let size = self.layout.head_size(key);
        debug_assert!(HEAD + draft.begun == size && !data.is_empty(), "the head is full, and there is more");
        Head { stamp: draft.stamp, length: draft.length }.write(&mut self.head[..size]);
        let before = engine.get(key)?.map(|value| self.layout.head(key, value));
        let more = data.len().div_ceil(self.layout.chunk_size()) as u64;
        // All own records, when this is done.
        let is_new = self.mark.others == 0;
        let own = self.own_count() + more + u64::from(!draft.is_listed) + u64::from(is_new);
        // What the list is without the new value.
        let (rest, listed) = match draft.is_listed {
            true => self.without_first(engine, own)?,
            false => (Mark { others: own - self.listed, ..self.mark }, self.listed),
        };
        let (mark, listed) = match before.flatten() {
            None => (rest, listed),
            Some(Head { stamp, .. }) => {
                // Nothing reads it before the mark names it.
                self.put_link(engine, stamp, &Link::new(rest.first, key))?;
                let size = self.size_of(engine, stamp)?;
                let others = own.checked_sub(size).filter(|&others| others > 0).ok_or_else(|| corrupt(engine))?;
                (Mark { first: stamp, next: rest.first, others }, size)
            }
        };
        self.commit(engine, draft, (key, data), Some((mark, true)))?;
        self.marked(mark, listed);
        engine.sync()?;
        Ok(before.is_some())
    }

    /// Puts a value that is here as a whole. Where there is no room, all that is nobody's is removed first.
    pub(super) fn put<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        key: &[u8],
        value: &[u8],
    ) -> Outcome<bool, N> {
        self.step(engine)?;
        let has_list = self.has_list();
        match self.put_once(engine, key, value) {
            Err(EngineError::Log(LogError::Full)) if has_list => {
                while self.step(engine)? {}
                self.put_once(engine, key, value)
            }
            outcome => outcome,
        }
    }

    fn put_once<N: Nand, C: Cells>(
        &mut self,
        engine: &mut Engine<'_, N, C>,
        key: &[u8],
        value: &[u8],
    ) -> Outcome<bool, N> {
        let mut draft = self.begin(engine, key, value.len())?;
        let mut rest = self.keep(&mut draft, key, value);
        let group = self.group_size(value.len());
        while rest.len() > group {
            let (now, more) = rest.split_at(group);
            self.extend(engine, &mut draft, key, now)?;
            rest = more;
        }
        self.finish(engine, draft, key, rest)
    }

    /// One commit: chunks; with a mark, that, and the link of a value that has none; and the head, if it is to go with them.
    fn commit<N: Nand, C: Cells>(
        &self,
        engine: &mut Engine<'_, N, C>,
        draft: &Draft,
        (key, data): (&[u8], &[u8]),
        mark: Option<(Mark, bool)>,
    ) -> Outcome<(), N> {
        let mut keys = [OwnKey::EMPTY; GROUP + 2];
        keys[0] = self.layout.mark_key();
        keys[1] = self.layout.link_key(draft.stamp);
        for (key, number) in keys[2..].iter_mut().zip(draft.chunks + 1..) {
            *key = self.layout.chunk_key(draft.stamp, number);
        }
        let link = Link::new(mark.map_or(Stamp::NONE, |(mark, _)| mark.next), key);
        let bytes = mark.map(|(mark, _)| mark.bytes());
        let mut edits = [Edit { key, value: None }; GROUP + 3];
        let mut count = 0;
        let mut add = |key, value| {
            edits[count] = Edit { key, value: Some(value) };
            count += 1;
        };
        if mark.is_some_and(|(_, has_head)| has_head) {
            add(key, &self.head[..self.layout.head_size(key)]);
        }
        if let Some(bytes) = &bytes {
            add(keys[0].as_slice(), bytes);
            if !draft.is_listed {
                add(keys[1].as_slice(), link.as_slice());
            }
        }
        for (key, chunk) in keys[2..].iter().zip(data.chunks(self.layout.chunk_size())) {
            add(key.as_slice(), chunk);
        }
        engine.batch(&edits[..count]).map_err(|error| self.as_full(error))
    }

    // Reading.

    /// Copies what a value has from `offset` on into `out`, whose beginning the head has filled up to `done`. Reads a page for each leaf of chunks.
    pub(super) fn read_chunks<N: Nand, C: Cells>(
        &self,
        engine: &mut Engine<'_, N, C>,
        (stamp, begin): (Stamp, usize),
        offset: usize,
        out: &mut [u8],
    ) -> Outcome<(), N> {
        debug_assert!(offset >= begin, "the head has what is before");
        let size = self.layout.chunk_size();
        let (mut at, mut done) = (offset - begin, 0);
        // A leaf of them at a time, so that what is missing shows.
        let from = self.layout.chunk_key(stamp, (at / size) as u32 + 1);
        let to = self.layout.chunk_key(stamp, CHUNKS_MAX);
        let bounds = (Bound::Included(from.as_slice()), Bound::Included(to.as_slice()));
        engine.range(bounds.0, bounds.1, Direction::Forward, |entry| {
            let is_next = Layout::chunk_number(entry.key) as usize == at / size + 1;
            let Some(part) = entry.value.get(at % size..).filter(|_| is_next) else {
                return core::ops::ControlFlow::Break(());
            };
            let count = part.len().min(out.len() - done);
            out[done..done + count].copy_from_slice(&part[..count]);
            (at, done) = (at + count, done + count);
            // A chunk that is not full is the last one.
            match done < out.len() && entry.value.len() == size {
                true => core::ops::ControlFlow::Continue(()),
                false => core::ops::ControlFlow::Break(()),
            }
        })?;
        if done < out.len() { Err(corrupt(engine)) } else { Ok(()) }
    }
}

/// Something of a value is missing, or says what cannot be.
pub(super) fn corrupt<N: Nand, C: Cells>(engine: &Engine<'_, N, C>) -> EngineError<N::Error> {
    EngineError::Corrupt { page: engine.root(), why: Malformed::Short }
}
