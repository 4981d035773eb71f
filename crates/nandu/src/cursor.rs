//! A position among the keys of a store.

use core::ops::Bound;

use nandu_index::{Entry, KEY_SIZE_MAX, KeyBuf};

/// A position between two keys, from which [`Store::next`](crate::Store::next) and [`Store::previous`](crate::Store::previous) go
/// on, one entry with each call.
///
/// A cursor borrows nothing, so the store may be changed between two steps: what is put above the cursor is met by `next`, what is
/// put below it is met by `previous`, and what was deleted is met no more. It serves any store and any snapshot.
///
/// ```
/// use nandu::{Cursor, Options, Store};
/// # use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let options = Options::default();
/// # let chip = Sim::new(Chip::W25N01GV);
/// # let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
/// # let mut store = Store::format(chip, options, &mut memory)?;
/// for second in [10_u32, 20, 30, 40] {
///     store.put(&second.to_be_bytes(), b"21.5 C")?;
/// }
/// // Deletes all up to second 25.
/// let mut cursor = Cursor::below(&25_u32.to_be_bytes());
/// while let Some(entry) = store.previous(&mut cursor)? {
///     let key: [u8; 4] = entry.key.try_into()?;
///     store.delete(&key)?;
/// }
/// assert_eq!(store.next(&mut cursor)?.map(|entry| entry.key), Some(&30_u32.to_be_bytes()[..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Below(KeyBuf),
    Above(KeyBuf),
    End,
}

impl Cursor {
    /// Below every key.
    pub const START: Cursor = Cursor { place: Place::Start };

    /// Above every key.
    pub const END: Cursor = Cursor { place: Place::End };

    /// Right below a key, whether it is there or not: if it is, [`Store::next`](crate::Store::next) meets it.
    pub fn below(key: &[u8]) -> Cursor {
        Cursor { place: Self::at(key, Place::Below) }
    }

    /// Right above a key, whether it is there or not: if it is, [`Store::previous`](crate::Store::previous) meets it.
    pub fn above(key: &[u8]) -> Cursor {
        Cursor { place: Self::at(key, Place::Above) }
    }

    fn at(key: &[u8], beside: fn(KeyBuf) -> Place) -> Place {
        let mut buf = KeyBuf::EMPTY;
        match key.split_at_checked(KEY_SIZE_MAX) {
            // No key is as long as this one, so that all that is below it is at most its beginning.
            Some((beginning, more)) if !more.is_empty() => {
                buf.set(beginning);
                Place::Above(buf)
            }
            _ => {
                buf.set(key);
                beside(buf)
            }
        }
    }

    /// Where a range of what is above begins; `None` if there is nothing.
    pub(crate) fn bound_above(&self) -> Option<Bound<&[u8]>> {
        match &self.place {
            Place::Start => Some(Bound::Unbounded),
            Place::Below(key) => Some(Bound::Included(key.as_slice())),
            Place::Above(key) => Some(Bound::Excluded(key.as_slice())),
            Place::End => None,
        }
    }

    /// Where a range of what is below begins; `None` if there is nothing.
    pub(crate) fn bound_below(&self) -> Option<Bound<&[u8]>> {
        match &self.place {
            Place::Start => None,
            Place::Below(key) => Some(Bound::Excluded(key.as_slice())),
            Place::Above(key) => Some(Bound::Included(key.as_slice())),
            Place::End => Some(Bound::Unbounded),
        }
    }

    /// Behind this entry, on the way up; where there was none it stays.
    pub(crate) fn go_above(&mut self, entry: Option<&Entry<'_>>) {
        if let Some(entry) = entry {
            *self = Cursor::above(entry.key);
        }
    }

    /// Behind this entry, on the way down; where there was none it stays.
    pub(crate) fn go_below(&mut self, entry: Option<&Entry<'_>>) {
        if let Some(entry) = entry {
            *self = Cursor::below(entry.key);
        }
    }
}

impl Default for Cursor {
    fn default() -> Cursor {
        Cursor::START
    }
}
