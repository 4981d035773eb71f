//! Edits that happen together, put together in memory that is lent, or in room on the stack that is as large as the operation needs.

use nandu_index::Edit;

use crate::Ino;
use crate::fragments::{FRAGMENT_SIZE_MAX, FRAGMENTS_FOUND_MAX};
use crate::inode::{INODE_SIZE_MAX, Inode};
use crate::keys::{KEY_SIZE_MAX, Key};
use crate::page_records::INLINE_SIZE_MAX;

/// Most edits of a batch.
pub(crate) const EDIT_COUNT_MAX: usize = 44;

/// Bytes of the key and the value of an inode.
pub(crate) const INODE_ROOM: usize = KEY_SIZE_MAX + INODE_SIZE_MAX;

/// What is left of two fragments between which a part of a page becomes zero, an inode, the fragment of zeros, and keys.
const WHOLE: usize = 2 * (1 + FRAGMENT_SIZE_MAX) + INODE_SIZE_MAX + 8 + EDIT_COUNT_MAX * KEY_SIZE_MAX;

/// Bytes for keys and values of a batch in the memory of the page that is being written, which is lent to each change and never smaller.
pub(crate) const LENT_SIZE: usize = 2048;

/// Room on the stack for the largest batch there is: for repair, which has lent the memory to what it counts.
pub(crate) type WholeRoom = BatchRoom<EDIT_COUNT_MAX, WHOLE>;

/// Room for an inode.
pub(crate) type InodeRoom = BatchRoom<1, INODE_ROOM>;

/// Room for an inode, a record of its page whose value is lent, and the deletion of all fragments over that.
pub(crate) type PageRoom =
    BatchRoom<{ FRAGMENTS_FOUND_MAX + 2 }, { (FRAGMENTS_FOUND_MAX + 1) * KEY_SIZE_MAX + INODE_ROOM }>;

/// A truncation lays zeros over the last page or cuts its record, and deletes records; zeros in a page part two fragments. Both fit.
const _: () = {
    let part = 1 + FRAGMENT_SIZE_MAX;
    let last = if part > INLINE_SIZE_MAX { part } else { INLINE_SIZE_MAX };
    assert!(last + 8 + INODE_SIZE_MAX + EDIT_COUNT_MAX * KEY_SIZE_MAX <= LENT_SIZE);
    assert!(2 * part + 8 + (FRAGMENTS_FOUND_MAX + 3) * KEY_SIZE_MAX <= LENT_SIZE);
};

/// In place of an edit that is not there.
pub(crate) const NO_EDIT: Edit<'_> = Edit { key: &[], value: None };

/// Room for so many edits, and for so many bytes of keys and of values that are encoded into it.
pub(crate) struct BatchRoom<const EDITS: usize, const BYTES: usize>;

impl<const EDITS: usize, const BYTES: usize> BatchRoom<EDITS, BYTES> {
    pub(crate) const EDITS: usize = EDITS;
    pub(crate) const BYTES: usize = BYTES;
}

/// Makes an empty batch with so much room. Not a function: what that returns would be on the stack twice.
macro_rules! batch_in {
    ($batch:ident: $room:ty) => {
        let mut edits = [crate::batch::NO_EDIT; <$room>::EDITS];
        let mut bytes = [0; <$room>::BYTES];
        let mut $batch = crate::batch::Batch::new(&mut edits, &mut bytes);
    };
}
pub(crate) use batch_in;

/// Edits in the order of their keys, one for each key.
pub(crate) struct Batch<'a> {
    edits: &'a mut [Edit<'a>],
    count: usize,
    /// What is left of the room for keys and values.
    bytes: &'a mut [u8],
}

impl<'a> Batch<'a> {
    /// An empty one.
    pub(crate) fn new(edits: &'a mut [Edit<'a>], bytes: &'a mut [u8]) -> Batch<'a> {
        Batch { edits, count: 0, bytes }
    }

    pub(crate) fn edits(&self) -> &[Edit<'a>] {
        &self.edits[..self.count]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Edits that can still be added.
    pub(crate) fn room(&self) -> usize {
        self.edits.len() - self.count
    }

    /// Whether so many edits can still be added, with values of so many bytes together that are encoded into it.
    pub(crate) fn has_room(&self, edits: usize, bytes: usize) -> bool {
        self.room() >= edits && self.bytes.len() >= bytes + edits * KEY_SIZE_MAX
    }

    pub(crate) fn delete(&mut self, key: Key) {
        self.set(key, None);
    }

    /// Takes out every edit from one key up to another.
    pub(crate) fn forget(&mut self, from: Key, to: Key) {
        let place = |key: &Key| self.edits().partition_point(|edit| edit.key < key.as_slice());
        let (first, behind) = (place(&from), place(&to));
        self.edits.copy_within(behind..self.count, first);
        self.count -= behind - first;
    }

    /// Takes out all.
    #[cfg(feature = "_broken")]
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Puts a value that outlives the batch.
    pub(crate) fn put_lent(&mut self, key: Key, value: &'a [u8]) {
        self.set(key, Some(value));
    }

    /// Puts a value made of two parts.
    pub(crate) fn put(&mut self, key: Key, head: &[u8], tail: &[u8]) {
        let value = self.take(head.len() + tail.len());
        let (front, back) = value.split_at_mut(head.len());
        front.copy_from_slice(head);
        back.copy_from_slice(tail);
        self.set(key, Some(value));
    }

    pub(crate) fn put_inode(&mut self, ino: Ino, inode: &Inode) {
        let size = inode.write(self.bytes);
        let value = self.take(size);
        self.set(Key::inode(ino.0), Some(value));
    }

    /// So many bytes of the room, for a value.
    pub(crate) fn take(&mut self, size: usize) -> &'a mut [u8] {
        assert!(size <= self.bytes.len(), "a batch holds what one operation changes");
        let (taken, left) = core::mem::take(&mut self.bytes).split_at_mut(size);
        self.bytes = left;
        taken
    }

    fn set(&mut self, key: Key, value: Option<&'a [u8]>) {
        match self.edits().binary_search_by(|other| other.key.cmp(key.as_slice())) {
            Ok(at) => self.edits[at].value = value,
            Err(at) => {
                assert!(self.count < self.edits.len(), "a batch holds what one operation changes");
                let bytes = self.take(key.as_slice().len());
                bytes.copy_from_slice(key.as_slice());
                self.edits.copy_within(at..self.count, at + 1);
                self.edits[at] = Edit { key: bytes, value };
                self.count += 1;
            }
        }
    }
}
