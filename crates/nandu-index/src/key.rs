//! A key that does not borrow.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// No key is longer than this many bytes.
pub const KEY_SIZE_MAX: usize = 255;

/// A key of up to [`KEY_SIZE_MAX`] bytes in memory of its own. Any bytes are one, so it may stand in memory that is handed over.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct KeyBuf {
    len: u8,
    bytes: [u8; KEY_SIZE_MAX],
}

impl KeyBuf {
    /// The empty key, which is below every other.
    pub const EMPTY: KeyBuf = KeyBuf { len: 0, bytes: [0; KEY_SIZE_MAX] };

    /// A copy of a key; `None` if it is longer than [`KEY_SIZE_MAX`].
    pub fn new(key: &[u8]) -> Option<KeyBuf> {
        let mut buf = KeyBuf::EMPTY;
        buf.set(key).then_some(buf)
    }

    /// Becomes a copy of `key`. Returns false, and becomes empty, if it is longer than [`KEY_SIZE_MAX`].
    pub fn set(&mut self, key: &[u8]) -> bool {
        self.len = 0;
        self.append(key)
    }

    /// Adds bytes at the end. Returns false, and adds none, if the key would become too long.
    pub fn append(&mut self, more: &[u8]) -> bool {
        let len = self.len as usize;
        let Some(room) = self.bytes.get_mut(len..len + more.len()) else {
            return false;
        };
        room.copy_from_slice(more);
        self.len = (len + more.len()) as u8;
        true
    }

    /// Adds bytes at the beginning. Returns false, and adds none, if the key would become too long.
    pub fn prepend(&mut self, more: &[u8]) -> bool {
        let len = self.len as usize;
        if len + more.len() > KEY_SIZE_MAX {
            return false;
        }
        self.bytes.copy_within(..len, more.len());
        self.bytes[..more.len()].copy_from_slice(more);
        self.len = (len + more.len()) as u8;
        true
    }

    /// Drops so many bytes at the beginning, or all.
    pub fn drop_front(&mut self, size: usize) {
        let len = self.len as usize;
        let size = size.min(len);
        self.bytes.copy_within(size..len, 0);
        self.len = (len - size) as u8;
    }

    /// Keeps the first bytes of the key, at most this many.
    pub fn truncate(&mut self, size: usize) {
        self.len = size.min(self.len.into()) as u8;
    }

    /// The key.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

impl Default for KeyBuf {
    fn default() -> KeyBuf {
        KeyBuf::EMPTY
    }
}

impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl PartialEq for KeyBuf {
    fn eq(&self, other: &KeyBuf) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for KeyBuf {}

#[cfg(test)]
mod tests {
    use super::{KEY_SIZE_MAX, KeyBuf};

    #[test]
    fn a_key_that_is_too_long_is_refused_and_leaves_nothing_half_copied() {
        let mut key = KeyBuf::new(&[7; KEY_SIZE_MAX]).unwrap();
        assert_eq!(key.as_slice(), [7; KEY_SIZE_MAX]);
        assert!(!key.append(&[1]));
        assert_eq!(key.as_slice().len(), KEY_SIZE_MAX);
        assert_eq!(KeyBuf::new(&[0; KEY_SIZE_MAX + 1]), None);
        key.truncate(KEY_SIZE_MAX - 2);
        assert!(!key.prepend(&[1; 3]) && key.prepend(&[1, 2]));
        assert_eq!((key.as_slice().len(), &key.as_slice()[..3]), (KEY_SIZE_MAX, &[1, 2, 7][..]));
        key.drop_front(1);
        assert_eq!((key.as_slice().len(), &key.as_slice()[..2]), (KEY_SIZE_MAX - 1, &[2, 7][..]));
        key.drop_front(KEY_SIZE_MAX);
        assert_eq!(key, KeyBuf::EMPTY);
    }
}
