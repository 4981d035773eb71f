//! A position among the keys.

use core::ops::Bound;

use nandu_index::{Direction, KEY_SIZE_MAX, KeyBuf};

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

    /// The key that it is beside.
    pub(crate) fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    /// Where a range of what is above begins, or of what is below; `None` if there is nothing.
    pub(crate) fn bound(&self, direction: Direction) -> Option<Bound<&[u8]>> {
        let (ahead, behind) = match direction {
            Direction::Forward => (Place::Above, Place::End),
            Direction::Backward => (Place::Below, Place::Start),
        };
        match self.place {
            place if place == behind => None,
            Place::Start | Place::End => Some(Bound::Unbounded),
            place if place == ahead => Some(Bound::Excluded(self.key())),
            _ => Some(Bound::Included(self.key())),
        }
    }

    /// Goes behind an entry, on the way up, or before it on the way down.
    pub(crate) fn go_past(&mut self, key: &[u8], direction: Direction) {
        let is_whole = self.key.set(key);
        debug_assert!(is_whole, "the key of an entry");
        self.place = if direction == Direction::Forward { Place::Above } else { Place::Below };
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

    use nandu_index::Direction::{Backward, Forward};

    use super::Cursor;

    #[test]
    fn what_is_above_and_below_a_cursor_begins_beside_its_key() {
        let key = &b"key"[..];
        let bounds = |cursor: &Cursor| [Backward, Forward].map(|to| cursor.bound(to).is_some());
        assert_eq!([Cursor::START, Cursor::END].map(|cursor| bounds(&cursor)), [[false, true], [true, false]]);
        assert_eq!(Cursor::below(key).bound(Forward), Some(Bound::Included(key)));
        assert_eq!(Cursor::below(key).bound(Backward), Some(Bound::Excluded(key)));
        assert_eq!(Cursor::above(key).bound(Forward), Some(Bound::Excluded(key)));
        assert_eq!(Cursor::above(key).bound(Backward), Some(Bound::Included(key)));
        // A key longer than any is above all that it begins with.
        assert_eq!(Cursor::below(&[7; 300]), Cursor::above(&[7; 255]));
    }
}
