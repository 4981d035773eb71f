//! Going through the records one by one, with changes in between.

use core::ops::{Bound, ControlFlow, Range};

use nandu_index::{Direction, Entry};
use nandu_nand::Nand;

use crate::FsError;
use crate::fs::Fs;
use crate::keys::{Key, Meaning};

impl<N: Nand> Fs<'_, N> {
    /// Visits the records from one key up to another in their order, until `visit` breaks off. Reads what [`Tree::range`](nandu_tree::Tree::range)
    /// does.
    pub(crate) fn records(
        &mut self,
        (from, to): (Key, Key),
        visit: impl FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), FsError<N::Error>> {
        let (from, to) = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        Ok(self.tree.range(from, to, Direction::Forward, visit)?)
    }

    /// The first inode from this number on that an orphan's record names.
    pub(crate) fn next_orphan(&mut self, from: u64) -> Result<Option<u64>, FsError<N::Error>> {
        self.first_record((Key::orphan(from), Key::inode(1)), |meaning| match meaning {
            Meaning::Orphan { ino } => Some(ino),
            _ => None,
        })
    }

    /// What the first record says by its key of which that says what is looked for.
    pub(crate) fn first_record<T>(
        &mut self,
        range: (Key, Key),
        pick: impl Fn(Meaning) -> Option<T>,
    ) -> Result<Option<T>, FsError<N::Error>> {
        let mut found = None;
        self.records(range, |entry| {
            found = Meaning::of(entry.key).and_then(&pick);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Fills a buffer with the content of records, one after the other; false if they have less, one of them has more, or none.
    pub(crate) fn read_parts(
        &mut self,
        out: &mut [u8],
        parts: Range<u16>,
        key: impl Fn(u16) -> Key,
    ) -> Result<bool, FsError<N::Error>> {
        let mut at = 0;
        for part in parts {
            if at == out.len() {
                break;
            }
            let bytes = self.tree.get(key(part).as_slice())?;
            let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty() && bytes.len() <= out.len() - at) else {
                return Ok(false);
            };
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        }
        Ok(at == out.len())
    }

    pub(crate) fn has_orphan_record(&mut self, ino: u64) -> Result<bool, FsError<N::Error>> {
        Ok(self.tree.value_len(Key::orphan(ino).as_slice())?.is_some())
    }
}
