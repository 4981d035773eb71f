//! Records in memory of a caller, while their leaves are read for something else.

use nandu_index::Edit;

/// Copies of records, one behind the other: the sizes of key and value, and both.
pub(crate) struct Copies<'m> {
    memory: &'m mut [u8],
    used: usize,
    /// Where the last one begins.
    last: usize,
    count: usize,
}

/// Bytes of two sizes.
const FRONT: usize = 4;

/// The size of a value of a record that is to go.
const GONE: u16 = u16::MAX;

impl<'m> Copies<'m> {
    /// None yet.
    pub(crate) fn new(memory: &'m mut [u8]) -> Copies<'m> {
        Copies { memory, used: 0, last: 0, count: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds a copy of a record with a key of two parts, or of the key of one that is to go. Returns false, with nothing changed, if there is no room.
    pub(crate) fn push(&mut self, (prefix, key): (&[u8], &[u8]), value: Option<&[u8]>) -> bool {
        let (key_size, bytes) = (prefix.len() + key.len(), value.unwrap_or_default());
        let end = self.used + FRONT + key_size + bytes.len();
        let Some(mut room) = self.memory.get_mut(self.used..end) else { return false };
        let value_size = value.map_or(GONE, |value| value.len() as u16);
        for part in [&(key_size as u16).to_le_bytes(), &value_size.to_le_bytes(), prefix, key, bytes] {
            let (place, rest) = room.split_at_mut(part.len());
            place.copy_from_slice(part);
            room = rest;
        }
        (self.last, self.used, self.count) = (self.used, end, self.count + 1);
        debug_assert!(self.used <= self.memory.len(), "it fits");
        true
    }

    /// Takes the one back that was added last. Another one is added before this is called again.
    pub(crate) fn pop(&mut self) {
        debug_assert!(self.last < self.used, "it was just added");
        (self.used, self.count) = (self.last, self.count - 1);
    }

    /// The one that was added last.
    pub(crate) fn last(&self) -> Option<Edit<'_>> {
        self.at(self.last).map(|(copy, _)| copy)
    }

    /// What is left of the memory.
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        &mut self.memory[self.used..]
    }

    /// One of them, in the order in which they were added.
    pub(crate) fn get(&self, index: usize) -> Option<Edit<'_>> {
        let (mut copy, mut end) = self.at(0)?;
        for _ in 0..index {
            (copy, end) = self.at(end)?;
        }
        Some(copy)
    }

    /// The one that begins here, and where it ends.
    fn at(&self, at: usize) -> Option<(Edit<'_>, usize)> {
        let (front, rest) = self.memory[at..self.used].split_first_chunk::<FRONT>()?;
        let [key_size, value_size] = [[front[0], front[1]], [front[2], front[3]]].map(u16::from_le_bytes);
        let (key, rest) = rest.split_at(key_size.into());
        let value = (value_size != GONE).then(|| &rest[..value_size.into()]);
        Some((Edit { key, value }, at + FRONT + key.len() + value.map_or(0, <[u8]>::len)))
    }
}
