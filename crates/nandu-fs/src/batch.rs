//! Edits that happen together, put together on the stack.

use nandu_index::Edit;

use crate::fragments::FRAGMENT_SIZE_MAX;
use crate::inode::INODE_SIZE_MAX;
use crate::keys::Key;
use crate::pages::INLINE_SIZE_MAX;

/// Most edits of a batch.
pub(crate) const EDIT_COUNT_MAX: usize = 44;

/// Bytes for values that are encoded into the batch: what is left of two fragments between which a part of a page becomes zero, an inode,
/// and the fragment of zeros.
const ARENA_SIZE: usize = 2 * (1 + FRAGMENT_SIZE_MAX) + INODE_SIZE_MAX + 8;

/// What a page has in its record, with an inode, is less.
const _: () = assert!(INLINE_SIZE_MAX + INODE_SIZE_MAX + 8 <= ARENA_SIZE);

/// Where the value of an edit is.
#[derive(Clone, Copy)]
enum Value<'a> {
    Deleted,
    Encoded(u16, u16),
    Lent(&'a [u8]),
}

/// Edits in the order of their keys, one for each key.
pub(crate) struct Batch<'a> {
    edits: [(Key, Value<'a>); EDIT_COUNT_MAX],
    count: usize,
    arena: [u8; ARENA_SIZE],
    used: usize,
}

impl<'a> Batch<'a> {
    pub(crate) fn new() -> Batch<'a> {
        Batch { edits: [(Key::EMPTY, Value::Deleted); EDIT_COUNT_MAX], count: 0, arena: [0; ARENA_SIZE], used: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Edits that can still be added.
    pub(crate) fn room(&self) -> usize {
        EDIT_COUNT_MAX - self.count
    }

    /// Bytes of values that can still be encoded into it.
    pub(crate) fn arena_room(&self) -> usize {
        ARENA_SIZE - self.used
    }

    pub(crate) fn delete(&mut self, key: Key) {
        self.set(key, Value::Deleted);
    }

    /// Puts a value that outlives the batch.
    pub(crate) fn put_lent(&mut self, key: Key, value: &'a [u8]) {
        self.set(key, Value::Lent(value));
    }

    /// Puts a value made of two parts.
    pub(crate) fn put(&mut self, key: Key, head: &[u8], tail: &[u8]) {
        let (start, middle) = (self.used, self.used + head.len());
        let end = middle + tail.len();
        assert!(end <= ARENA_SIZE, "a batch holds what one operation changes");
        self.arena[start..middle].copy_from_slice(head);
        self.arena[middle..end].copy_from_slice(tail);
        self.used = end;
        self.set(key, Value::Encoded(start as u16, end as u16));
    }

    fn set(&mut self, key: Key, value: Value<'a>) {
        let found = self.edits[..self.count].binary_search_by(|(other, _)| other.as_slice().cmp(key.as_slice()));
        match found {
            Ok(at) => self.edits[at].1 = value,
            Err(at) => {
                assert!(self.count < EDIT_COUNT_MAX, "a batch holds what one operation changes");
                self.edits.copy_within(at..self.count, at + 1);
                self.edits[at] = (key, value);
                self.count += 1;
            }
        }
    }

    /// Calls with the edits.
    pub(crate) fn with_edits<T>(&self, call: impl FnOnce(&[Edit<'_>]) -> T) -> T {
        let mut edits = [Edit { key: &[], value: None }; EDIT_COUNT_MAX];
        for (edit, (key, value)) in edits.iter_mut().zip(&self.edits[..self.count]) {
            edit.key = key.as_slice();
            edit.value = match *value {
                Value::Deleted => None,
                Value::Encoded(start, end) => Some(&self.arena[usize::from(start)..usize::from(end)]),
                Value::Lent(value) => Some(value),
            };
        }
        call(&edits[..self.count])
    }
}
