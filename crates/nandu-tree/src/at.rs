//! Reading an engine as a snapshot keeps it.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Entry, KeyBuf};
use nandu_nand::Nand;

use crate::check::{check_bound, check_key};
use crate::cursor::Cursor;
use crate::error::{EngineError, Outcome};
use crate::keeper::Keeper;
use crate::lookup::{copy, entry, lend, nearest};
use crate::reserved::user_key;
use crate::shape::TreeShape;
use crate::snapshots::{count, nearest_kept};
use crate::standing::find_kept;

/// An engine as it was when a snapshot was taken, see [`Engine::at`](crate::Engine::at). Each call says [`EngineError::NoSnapshot`] if it was released.
pub struct At<'e, 'm, N: Nand, C> {
    keeper: &'e mut Keeper<'m, N, C>,
    number: u32,
}

impl<N: Nand, C> fmt::Debug for At<'_, '_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("At").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The keys of the entries of a snapshot that come next: in records that snapshots kept, and among those of now. Each may be missing.
struct NextEntries {
    kept: KeyBuf,
    has_kept: bool,
    now: KeyBuf,
    has_now: bool,
}

impl<'e, 'm, N: Nand, C: Cells> At<'e, 'm, N, C> {
    pub(crate) fn new(keeper: &'e mut Keeper<'m, N, C>, number: u32) -> Self {
        At { keeper, number }
    }

    fn shape(&self) -> &TreeShape<C> {
        self.keeper.tree().path.shape()
    }

    fn check(&self) -> Outcome<(), N> {
        match self.keeper.values().snapshots().is_held(self.number) {
            true => Ok(()),
            false => Err(EngineError::NoSnapshot(self.number)),
        }
    }

    /// Copies the key of the record that says what stood at a key, which is that one itself if nothing was kept of it. Returns whether something stood there. Searches for a record of each snapshot from this one on.
    fn record(&mut self, key: &[u8], record: &mut KeyBuf) -> Outcome<bool, N> {
        debug_assert!(self.shape().may_be_given(key), "a key of a user");
        Ok(find_kept(self.keeper, (self.number, key), record)?.unwrap_or_else(|| record.set(key)))
    }

    /// The same of a key that a user asks for.
    fn find(&mut self, key: &[u8], record: &mut KeyBuf) -> Outcome<bool, N> {
        self.check()?;
        check_key(self.shape(), key)?;
        self.record(key, record)
    }

    /// As [`Engine::get`](crate::Engine::get).
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; as [`Engine::get`](crate::Engine::get).
    pub fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>, N> {
        At::new(self.keeper, self.number).into_value(key)
    }

    /// The same, lent for as long as the engine is.
    ///
    /// # Errors
    ///
    /// As [`At::get`].
    pub fn into_value(mut self, key: &[u8]) -> Outcome<Option<&'e [u8]>, N> {
        let mut record = KeyBuf::EMPTY;
        if self.find(key, &mut record)? { lend(self.keeper, record.as_slice()) } else { Ok(None) }
    }

    /// As [`Engine::read`](crate::Engine::read).
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; as [`Engine::read`](crate::Engine::read).
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Outcome<Option<usize>, N> {
        let mut record = KeyBuf::EMPTY;
        if self.find(key, &mut record)? { copy(self.keeper, (record.as_slice(), offset), out) } else { Ok(None) }
    }

    /// Entries that there were. Reads what a get does.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; those of the log.
    pub fn record_count(&mut self) -> Outcome<u64, N> {
        self.check()?;
        count(self.keeper, self.number)
    }

    /// As [`Engine::range`](crate::Engine::range). Reads each leaf concerned, that of what was kept and that of now, and either one again after an entry of the other.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; as [`Engine::range`](crate::Engine::range).
    pub fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        mut visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Outcome<(), N> {
        self.range_by((from, to, direction), &mut visit)
    }

    fn range_by(
        &mut self,
        (from, to, direction): (Bound<&[u8]>, Bound<&[u8]>, Direction),
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Outcome<(), N> {
        self.check()?;
        check_bound(self.shape(), from)?;
        check_bound(self.shape(), to)?;
        let is_forward = direction == Direction::Forward;
        let (begin, end) = if is_forward { (from, to) } else { (to, from) };
        let (mut next_entries, mut record) = (NextEntries::NONE, KeyBuf::EMPTY);
        self.find_next(&mut next_entries, begin, direction)?;
        while let Some(key) = next_entries.first(is_forward, end) {
            if self.record(key, &mut record)?
                && let Some(entry) = self.entry(record.as_slice())?
                && visit(entry).is_break()
            {
                break;
            }
            record.set(key);
            let is_at = |has: bool, other: &KeyBuf| has && *other == record;
            let (is_kept, is_now) =
                (is_at(next_entries.has_kept, &next_entries.kept), is_at(next_entries.has_now, &next_entries.now));
            debug_assert!(is_kept || is_now, "it came from one of both");
            let behind = Bound::Excluded(record.as_slice());
            if is_kept {
                next_entries.has_kept = self.nearest_kept(behind, direction, &mut next_entries.kept)?;
            }
            if is_now {
                next_entries.has_now = nearest(self.keeper, (behind, direction), &mut next_entries.now)?;
            }
        }
        Ok(())
    }

    /// Copies the nearest key, from a bound on, of which this snapshot or one behind it kept what stood there. Returns whether there is one.
    fn nearest_kept(&mut self, bound: Bound<&[u8]>, direction: Direction, nearest: &mut KeyBuf) -> Outcome<bool, N> {
        let (mut found, mut is_found, mut behind) = (KeyBuf::EMPTY, false, 0);
        while let Some(slot) = self.keeper.values().snapshots().slot_from(self.number, behind) {
            behind += 1;
            if nearest_kept(self.keeper, slot, (bound, direction), &mut found)? {
                let key = user_key(found.as_slice());
                if !is_found || (key < nearest.as_slice()) == (direction == Direction::Forward) {
                    is_found = nearest.set(key);
                }
            }
        }
        Ok(is_found)
    }

    /// The entry above a cursor, which goes behind it; `None` at the end.
    ///
    /// # Errors
    ///
    /// As [`At::range`].
    pub fn next(&mut self, cursor: &mut Cursor) -> Outcome<Option<Entry<'_>>, N> {
        self.step(cursor, Direction::Forward)
    }

    /// The entry below a cursor, which goes before it; `None` at the beginning.
    ///
    /// # Errors
    ///
    /// As [`At::range`].
    pub fn previous(&mut self, cursor: &mut Cursor) -> Outcome<Option<Entry<'_>>, N> {
        self.step(cursor, Direction::Backward)
    }

    fn step(&mut self, cursor: &mut Cursor, direction: Direction) -> Outcome<Option<Entry<'_>>, N> {
        let Some(bound) = cursor.bound(direction) else { return Ok(None) };
        self.check()?;
        check_bound(self.shape(), bound)?;
        let (mut next_entries, mut record) = (NextEntries::NONE, KeyBuf::EMPTY);
        self.find_next(&mut next_entries, bound, direction)?;
        while let Some(key) = next_entries.first(direction == Direction::Forward, Bound::Unbounded) {
            if self.record(key, &mut record)? {
                cursor.go_past(key, direction);
                return self.entry(record.as_slice());
            }
            record.set(key);
            self.find_next(&mut next_entries, Bound::Excluded(record.as_slice()), direction)?;
        }
        Ok(None)
    }

    fn find_next(
        &mut self,
        next_entries: &mut NextEntries,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Outcome<(), N> {
        next_entries.has_kept = self.nearest_kept(from, direction, &mut next_entries.kept)?;
        next_entries.has_now = nearest(self.keeper, (from, direction), &mut next_entries.now)?;
        Ok(())
    }

    /// The entry that a record tells of.
    fn entry(&mut self, record: &[u8]) -> Outcome<Option<Entry<'_>>, N> {
        let entry = entry(self.keeper, record)?;
        debug_assert!(entry.as_ref().is_none_or(|entry| entry.key == record), "the entry of that record");
        Ok(entry.map(|entry| Entry { key: user_key(entry.key), ..entry }))
    }
}

impl NextEntries {
    const NONE: NextEntries = NextEntries { kept: KeyBuf::EMPTY, has_kept: false, now: KeyBuf::EMPTY, has_now: false };

    /// The key that comes first, if there is one that is not past an end.
    fn first(&self, is_forward: bool, end: Bound<&[u8]>) -> Option<&[u8]> {
        let (kept, now) = (self.kept.as_slice(), self.now.as_slice());
        let is_kept = self.has_kept && (!self.has_now || kept != now && (kept < now) == is_forward);
        let key = if is_kept { kept } else { now };
        let order = |end: &[u8]| if is_forward { key.cmp(end) } else { end.cmp(key) };
        let is_in = match end {
            Bound::Included(end) => order(end).is_le(),
            Bound::Excluded(end) => order(end).is_lt(),
            Bound::Unbounded => true,
        };
        ((is_kept || self.has_now) && is_in).then_some(key)
    }
}
