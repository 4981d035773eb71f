//! FORMAT: Large values of a store, on the new heart
//!
//! The store's own records, among those of its users.
//!
//! A value that does not fit a leaf is cut up. Its beginning stands in the **head**, the record of its key; the rest are **chunks**, records in a part of the key
//! space that users cannot reach. A **link** says which key a value belongs to, and joins those whose owner may be gone to a list, which begins in the
//! **mark**.
//!
//! ```text
//! head    the key; stamp u40, length u32, the value's first bytes. Key and value together take exactly as many bytes as an entry may have at most, which no
//!         other record of a user does
//! own     key: reserved bytes, all 255; kind u8; stamp u40; number u24
//! mark    kind 0, stamp 0, number 0; first u40, next u40, others u40
//! link    kind 1, number 0; next u40, the key that the value was put at
//! chunk   kind 2, number from 1 on; bytes of the value
//! ```
//!
//! Numbers have their high byte first. There are 16 reserved bytes, or half of what the longest key has room for beside the 9 others. A stamp is the sequence of the
//! page that was to be appended next when the value was begun, so no other value has it; 0 is none. Chunks ascend without a gap. All but the last are half as large as
//! an entry may be, or, where that is fewer than 200 bytes, as large.
//! `first` is the first stamp of the list, `next` the one behind it. `others` counts the store's own records, the mark among them, without the link and the
//! chunks of `first`: these are counted when the store is opened, by looking for the last of them.

use nandu_index::KEY_SIZE_MAX;

/// Reserved bytes, where the longest key has room for them.
const RESERVED_MAX: usize = 16;

/// Bytes of an own key behind the reserved ones: kind, stamp, number.
const TAIL: usize = 1 + STAMP + 3;

/// Bytes of an entry below which a chunk is as large as an entry may be; else it is half as large.
const SMALL: usize = 200;

/// Bytes of a stamp.
const STAMP: usize = 5;

/// Bytes before the beginning of a value in its head.
pub(super) const HEAD: usize = STAMP + 4;

/// Bytes of a mark.
const MARK: usize = 3 * STAMP;

/// The highest number of a chunk.
pub(super) const CHUNKS_MAX: u32 = 0xFF_FFFF;

/// Names the chunks of a value; 0 names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(u64);

impl Stamp {
    pub(super) const NONE: Stamp = Stamp(0);

    /// `None` if the number is larger than stamps are, which no chip lives to see.
    pub(super) fn new(sequence: u64) -> Option<Stamp> {
        (sequence > 0 && sequence >> (8 * STAMP) == 0).then_some(Stamp(sequence))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    fn bytes(self) -> [u8; STAMP] {
        let [.., a, b, c, d, e] = self.0.to_be_bytes();
        [a, b, c, d, e]
    }

    fn from_bytes(&[a, b, c, d, e]: &[u8; STAMP]) -> Stamp {
        Stamp(u64::from_be_bytes([0, 0, 0, a, b, c, d, e]))
    }
}

/// What is in the reserved part of the key space.
#[derive(Clone, Copy)]
enum Kind {
    Mark = 0,
    Link = 1,
    Chunk = 2,
}

/// How large records are, and which keys are the store's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    reserved: usize,
    entry_size_max: usize,
}

impl Layout {
    /// `None` if keys or entries are too small for large values.
    pub(super) fn new(key_size_max: usize, entry_size_max: usize) -> Option<Layout> {
        let reserved = (key_size_max.checked_sub(TAIL)? / 2).min(RESERVED_MAX);
        let layout = Layout { reserved, entry_size_max };
        // The longest link, and a head with something behind it.
        let least = (reserved + TAIL + STAMP + key_size_max).max(key_size_max + HEAD + 1);
        (reserved > 0 && entry_size_max >= least).then_some(layout)
    }

    /// Bytes that key and value of a user may have together for the value to stand in its leaf.
    pub(super) fn inline_max(&self) -> usize {
        self.entry_size_max - 1
    }

    /// Bytes of a head's value, whose key has so many.
    pub(super) fn head_size(&self, key: &[u8]) -> usize {
        self.entry_size_max - key.len()
    }

    /// Bytes of a chunk's value. Smaller ones fill leaves better, and on small pages keys take too much of them.
    pub(super) fn chunk_size(&self) -> usize {
        let size = if self.entry_size_max < SMALL { self.entry_size_max } else { self.entry_size_max / 2 };
        size - self.reserved - TAIL
    }

    /// The key that every own key is above, and every user's key below.
    pub(super) fn reserved(&self) -> &'static [u8] {
        &[255; RESERVED_MAX][..self.reserved]
    }

    pub(super) fn is_reserved(&self, key: &[u8]) -> bool {
        key >= self.reserved()
    }

    /// The head in a user's record, if its value is a large one.
    pub(super) fn head(&self, key: &[u8], value: &[u8]) -> Option<Head> {
        if key.len() + value.len() != self.entry_size_max {
            return None;
        }
        let (stamp, rest) = value.split_first_chunk::<STAMP>()?;
        let (length, begin) = rest.split_first_chunk::<4>()?;
        let head = Head { stamp: Stamp::from_bytes(stamp), length: u32::from_be_bytes(*length) as usize };
        debug_assert!(begin.len() + HEAD == value.len(), "the rest is the beginning of the value");
        Some(head)
    }

    pub(super) fn mark_key(&self) -> OwnKey {
        self.key(Kind::Mark, Stamp::NONE, 0)
    }

    pub(super) fn link_key(&self, stamp: Stamp) -> OwnKey {
        self.key(Kind::Link, stamp, 0)
    }

    pub(super) fn chunk_key(&self, stamp: Stamp, number: u32) -> OwnKey {
        self.key(Kind::Chunk, stamp, number)
    }

    /// Number of the chunk that has this key.
    pub(super) fn chunk_number(key: &[u8]) -> u32 {
        key.last_chunk().map_or(0, |&[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    fn key(&self, kind: Kind, stamp: Stamp, number: u32) -> OwnKey {
        debug_assert!(number <= CHUNKS_MAX, "a number has three bytes");
        let mut key = OwnKey { size: (self.reserved + TAIL) as u8, ..OwnKey::EMPTY };
        let tail = &mut key.bytes[self.reserved..];
        tail[0] = kind as u8;
        tail[1..=STAMP].copy_from_slice(&stamp.bytes());
        tail[1 + STAMP..TAIL].copy_from_slice(&number.to_be_bytes()[1..]);
        key
    }
}

/// A key in the reserved part.
#[derive(Clone, Copy)]
pub(super) struct OwnKey {
    size: u8,
    bytes: [u8; RESERVED_MAX + TAIL],
}

impl OwnKey {
    /// A key with nothing but reserved bytes, as long as they can be.
    pub(super) const EMPTY: OwnKey = OwnKey { size: 0, bytes: [255; RESERVED_MAX + TAIL] };

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.size.into()]
    }
}

/// What a head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) stamp: Stamp,
    /// Bytes of the value.
    pub(super) length: usize,
}

impl Head {
    /// Writes it before the beginning of the value.
    pub(super) fn write(self, out: &mut [u8]) {
        out[..STAMP].copy_from_slice(&self.stamp.bytes());
        out[STAMP..HEAD].copy_from_slice(&(self.length as u32).to_be_bytes());
    }
}

/// What the mark says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The value whose owner may be gone, and the one behind it in the list.
    pub(super) first: Stamp,
    pub(super) next: Stamp,
    /// Own records, without the link and the chunks of `first`; 0 if there is no mark.
    pub(super) others: u64,
}

impl Mark {
    pub(super) fn read(value: &[u8]) -> Option<Mark> {
        let value: &[u8; MARK] = value.try_into().ok()?;
        let (stamps, _) = value.as_chunks::<STAMP>();
        let [first, next, others] = stamps.first_chunk()?;
        let [first, next, others] = [first, next, others].map(Stamp::from_bytes);
        (others.number() > 0).then_some(Mark { first, next, others: others.number() })
    }

    pub(super) fn bytes(self) -> [u8; MARK] {
        let mut bytes = [0; MARK];
        let numbers = [self.first, self.next, Stamp(self.others)];
        for (place, number) in bytes.chunks_exact_mut(STAMP).zip(numbers) {
            place.copy_from_slice(&number.bytes());
        }
        bytes
    }
}

/// A link, written.
pub(super) struct Link {
    size: usize,
    bytes: [u8; STAMP + KEY_SIZE_MAX],
}

impl Link {
    /// The link of a value at a key, with the next stamp of the list.
    pub(super) fn new(next: Stamp, key: &[u8]) -> Link {
        let mut link = Link { size: STAMP + key.len().min(KEY_SIZE_MAX), bytes: [0; STAMP + KEY_SIZE_MAX] };
        debug_assert!(key.len() <= KEY_SIZE_MAX, "a key was checked");
        link.bytes[..STAMP].copy_from_slice(&next.bytes());
        link.bytes[STAMP..link.size].copy_from_slice(&key[..link.size - STAMP]);
        link
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    /// Takes a link apart: the next stamp, and the key.
    pub(super) fn read(value: &[u8]) -> Option<(Stamp, &[u8])> {
        value.split_first_chunk().map(|(next, key)| (Stamp::from_bytes(next), key))
    }
}
