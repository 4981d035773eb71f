//! Reading an engine as a snapshot keeps it.

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Entry, KeyBuf};
use nandu_nand::Nand;

use crate::check::check_key;
use crate::cursor::Cursor;
use crate::error::{EngineError, Outcome};
use crate::keeper::Keeper;
use crate::lookup::{copy, entry, lend, nearest};
use crate::numbers::Numbered;
use crate::reserved::{NOTHING, kept_key, user_key};
use crate::shape::TreeShape;
use crate::snapshots::{count, nearest_kept};
use crate::standing::value_of;

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

/// Where the entries of a snapshot stand that come next: in records that snapshots kept, and among those of now.
struct NextEntries {
    kept: Option<KeyBuf>,
    now: Option<KeyBuf>,
}

impl<'e, 'm, N: Nand, C: Cells> At<'e, 'm, N, C> {
    pub(crate) fn new(keeper: &'e mut Keeper<'m, N, C>, number: u32) -> Self {
        At { keeper, number }
    }

    /// Snapshots from this one on.
    fn younger(&self) -> impl Iterator<Item = Numbered> + use<N, C> {
        self.keeper.values().snapshots().from(self.number)
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

    /// The key of the record that says what stood at a key, which is that one itself if nothing was kept of it; `None` if nothing stood there. Searches for a record of each snapshot from this one on.
    fn record(&mut self, key: &[u8]) -> Outcome<Option<KeyBuf>, N> {
        debug_assert!(self.shape().may_be_given(key), "a key of a user");
        for snapshot in self.younger() {
            let kept = kept_key(snapshot.slot, key);
            if let Some(value) = value_of(self.keeper, kept.as_slice())? {
                return Ok((value != NOTHING).then_some(kept));
            }
        }
        Ok(KeyBuf::new(key))
    }

    /// As [`Engine::get`](crate::Engine::get).
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; as [`Engine::get`](crate::Engine::get).
    pub fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>, N> {
        self.check()?;
        check_key(self.shape(), key)?;
        match self.record(key)? {
            Some(record) => lend(self.keeper, record.as_slice()),
            None => Ok(None),
        }
    }

    /// The same, lent for as long as the engine is.
    ///
    /// # Errors
    ///
    /// As [`At::get`].
    pub fn into_value(mut self, key: &[u8]) -> Outcome<Option<&'e [u8]>, N> {
        self.check()?;
        check_key(self.shape(), key)?;
        match self.record(key)? {
            Some(record) => lend(self.keeper, record.as_slice()),
            None => Ok(None),
        }
    }

    /// As [`Engine::read`](crate::Engine::read).
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSnapshot`]; as [`Engine::read`](crate::Engine::read).
    pub fn read(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Outcome<Option<usize>, N> {
        self.check()?;
        check_key(self.shape(), key)?;
        match self.record(key)? {
            Some(record) => copy(self.keeper, (record.as_slice(), offset), out),
            None => Ok(None),
        }
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
        self.check()?;
        for bound in [from, to] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                check_key(self.shape(), key)?;
            }
        }
        let is_forward = direction == Direction::Forward;
        let (begin, end) = if is_forward { (from, to) } else { (to, from) };
        let mut next_entries = self.next_entries(begin, direction)?;
        while let Some(key) = next_entries.first(is_forward, end) {
            if let Some(record) = self.record(key.as_slice())?
                && let Some(entry) = self.entry(record)?
                && visit(entry).is_break()
            {
                break;
            }
            let behind = Bound::Excluded(key.as_slice());
            debug_assert!(next_entries.kept == Some(key) || next_entries.now == Some(key), "it came from one of both");
            if next_entries.kept == Some(key) {
                next_entries.kept = self.nearest_kept(behind, direction)?;
            }
            if next_entries.now == Some(key) {
                next_entries.now = nearest(self.keeper, behind, direction)?;
            }
        }
        Ok(())
    }

    /// The nearest key, from a bound on, of which this snapshot or one behind it kept what stood there.
    fn nearest_kept(&mut self, bound: Bound<&[u8]>, direction: Direction) -> Outcome<Option<KeyBuf>, N> {
        let mut nearest: Option<KeyBuf> = None;
        for snapshot in self.younger() {
            let Some(found) = nearest_kept(self.keeper, snapshot.slot, (bound, direction))? else { continue };
            let key = user_key(found.as_slice());
            let is_nearer = |other: &KeyBuf| (key < other.as_slice()) == (direction == Direction::Forward);
            if nearest.as_ref().is_none_or(is_nearer) {
                nearest = KeyBuf::new(key);
            }
        }
        Ok(nearest)
    }

    /// The entry above a cursor, which goes behind it; `None` at the end.
    ///
    /// # Errors
    ///
    /// As [`At::range`].
    pub fn next(&mut self, cursor: &mut Cursor) -> Outcome<Option<Entry<'_>>, N> {
        let Some(bound) = cursor.bound_above() else { return Ok(None) };
        let Some((key, record)) = self.nearest(bound, Direction::Forward)? else { return Ok(None) };
        let entry = self.entry(record)?;
        cursor.go_above(key);
        Ok(entry)
    }

    /// The entry below a cursor, which goes before it; `None` at the beginning.
    ///
    /// # Errors
    ///
    /// As [`At::range`].
    pub fn previous(&mut self, cursor: &mut Cursor) -> Outcome<Option<Entry<'_>>, N> {
        let Some(bound) = cursor.bound_below() else { return Ok(None) };
        let Some((key, record)) = self.nearest(bound, Direction::Backward)? else { return Ok(None) };
        let entry = self.entry(record)?;
        cursor.go_below(key);
        Ok(entry)
    }

    /// The key nearest to a bound, and that of the record that says what stood there.
    fn nearest(&mut self, bound: Bound<&[u8]>, direction: Direction) -> Outcome<Option<(KeyBuf, KeyBuf)>, N> {
        self.check()?;
        if let Bound::Included(key) | Bound::Excluded(key) = bound {
            check_key(self.shape(), key)?;
        }
        let mut last: Option<KeyBuf> = None;
        loop {
            let from = last.as_ref().map_or(bound, |key| Bound::Excluded(key.as_slice()));
            let next_entries = self.next_entries(from, direction)?;
            let Some(key) = next_entries.first(direction == Direction::Forward, Bound::Unbounded) else {
                return Ok(None);
            };
            debug_assert!(last.is_none_or(|last| last != key), "it goes on");
            if let Some(record) = self.record(key.as_slice())? {
                return Ok(Some((key, record)));
            }
            last = Some(key);
        }
    }

    fn next_entries(&mut self, from: Bound<&[u8]>, direction: Direction) -> Outcome<NextEntries, N> {
        Ok(NextEntries { kept: self.nearest_kept(from, direction)?, now: nearest(self.keeper, from, direction)? })
    }

    /// The entry that a record tells of.
    fn entry(&mut self, record: KeyBuf) -> Outcome<Option<Entry<'_>>, N> {
        let entry = entry(self.keeper, record)?;
        debug_assert!(entry.as_ref().is_none_or(|entry| entry.key == record.as_slice()), "the entry of that record");
        Ok(entry.map(|entry| Entry { key: user_key(entry.key), ..entry }))
    }
}

impl NextEntries {
    /// The key that comes first, if it is not past an end.
    fn first(&self, is_forward: bool, end: Bound<&[u8]>) -> Option<KeyBuf> {
        let first = match (self.kept, self.now) {
            (Some(kept), Some(now)) if (kept.as_slice() < now.as_slice()) == is_forward => Some(kept),
            (kept, now) => now.or(kept),
        }?;
        let order = |end: &[u8]| if is_forward { first.as_slice().cmp(end) } else { end.cmp(first.as_slice()) };
        let is_in = match end {
            Bound::Included(end) => order(end).is_le(),
            Bound::Excluded(end) => order(end).is_lt(),
            Bound::Unbounded => true,
        };
        is_in.then_some(first)
    }
}
