//! A position among the keys.

use core::ops::Bound;

use nandu_index::{KEY_SIZE_MAX, KeyBuf};

/// A position between two keys, from which [`Engine::next`](crate::Engine::next) and [`Engine::previous`](crate::Engine::previous) go on, one entry with each call.
///
/// A cursor borrows nothing, so the tree may be changed between two steps: what is put above the cursor is met by `next`, what is put below it is met by
/// `previous`, and what was deleted is met no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    key: KeyBuf,
    place: Place,
}

/// Where a cursor is; for those beside a key, that is the cursor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Below,
    Above,
    End,
}

impl Cursor {
    /// Below every key.
    pub const START: Cursor = Cursor { key: KeyBuf::EMPTY, place: Place::Start };

    /// Above every key.
    pub const END: Cursor = Cursor { key: KeyBuf::EMPTY, place: Place::End };

    /// Right below a key, whether it is there or not: if it is, [`Engine::next`](crate::Engine::next) meets it.
    pub fn below(key: &[u8]) -> Cursor {
        Self::beside(key, Place::Below)
    }

    /// Right above a key, whether it is there or not: if it is, [`Engine::previous`](crate::Engine::previous) meets it.
    pub fn above(key: &[u8]) -> Cursor {
        Self::beside(key, Place::Above)
    }

    fn beside(key: &[u8], place: Place) -> Cursor {
        let mut buf = KeyBuf::EMPTY;
        // No key is as long as a longer one, so that all that is below it is at most its beginning.
        let is_whole = buf.set(&key[..key.len().min(KEY_SIZE_MAX)]) && key.len() <= KEY_SIZE_MAX;
        Cursor { key: buf, place: if is_whole { place } else { Place::Above } }
    }

    /// Where a range of what is above begins; `None` if there is nothing.
    pub(crate) fn bound_above(&self) -> Option<Bound<&[u8]>> {
        match self.place {
            Place::Start => Some(Bound::Unbounded),
            Place::Below => Some(Bound::Included(self.key.as_slice())),
            Place::Above => Some(Bound::Excluded(self.key.as_slice())),
            Place::End => None,
        }
    }

    /// Where a range of what is below begins; `None` if there is nothing.
    pub(crate) fn bound_below(&self) -> Option<Bound<&[u8]>> {
        match self.place {
            Place::Start => None,
            Place::Below => Some(Bound::Excluded(self.key.as_slice())),
            Place::Above => Some(Bound::Included(self.key.as_slice())),
            Place::End => Some(Bound::Unbounded),
        }
    }

    /// Goes behind an entry, on the way up.
    pub(crate) fn go_above(&mut self, key: KeyBuf) {
        *self = Cursor { key, place: Place::Above };
    }

    /// Goes before an entry, on the way down.
    pub(crate) fn go_below(&mut self, key: KeyBuf) {
        *self = Cursor { key, place: Place::Below };
    }
}

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor::START
    }
}

#[cfg(test)]
mod tests {
    use core::ops::Bound;

    use super::Cursor;

    #[test]
    fn what_is_above_and_below_a_cursor_begins_beside_its_key() {
        let key = &b"key"[..];
        let bounds = |cursor: &Cursor| (cursor.bound_below().is_some(), cursor.bound_above().is_some());
        assert_eq!([Cursor::START, Cursor::END].map(|cursor| bounds(&cursor)), [(false, true), (true, false)]);
        assert_eq!(Cursor::below(key).bound_above(), Some(Bound::Included(key)));
        assert_eq!(Cursor::below(key).bound_below(), Some(Bound::Excluded(key)));
        assert_eq!(Cursor::above(key).bound_above(), Some(Bound::Excluded(key)));
        assert_eq!(Cursor::above(key).bound_below(), Some(Bound::Included(key)));
        // A key longer than any is above all that it begins with.
        assert_eq!(Cursor::below(&[7; 300]), Cursor::above(&[7; 255]));
    }
}
