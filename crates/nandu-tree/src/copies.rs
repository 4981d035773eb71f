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

impl<'m> Copies<'m> {
    /// None yet.
    pub(crate) fn new(memory: &'m mut [u8]) -> Copies<'m> {
        Copies { memory, used: 0, last: 0, count: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a copy of a record. Returns false, with nothing changed, if there is no room.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let size = FRONT + key.len() + value.len();
        let Some(room) = self.memory.get_mut(self.used..self.used + size) else { return false };
        let (front, rest) = room.split_at_mut(FRONT);
        front[..2].copy_from_slice(&(key.len() as u16).to_le_bytes());
        front[2..].copy_from_slice(&(value.len() as u16).to_le_bytes());
        let (first, second) = rest.split_at_mut(key.len());
        first.copy_from_slice(key);
        second.copy_from_slice(value);
        (self.last, self.used, self.count) = (self.used, self.used + size, self.count + 1);
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

    /// All, in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Edit<'_>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let (copy, end) = self.at(at)?;
            at = end;
            Some(copy)
        })
    }

    /// The one that begins here, and where it ends.
    fn at(&self, at: usize) -> Option<(Edit<'_>, usize)> {
        let (front, rest) = self.memory[at..self.used].split_first_chunk::<FRONT>()?;
        let [key, value] =
            [[front[0], front[1]], [front[2], front[3]]].map(|size| usize::from(u16::from_le_bytes(size)));
        let (key, rest) = rest.split_at(key);
        let value = &rest[..value];
        Some((Edit { key, value: Some(value) }, at + FRONT + key.len() + value.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::Copies;

    #[test]
    fn copies_come_back_in_their_order_and_the_last_may_be_taken_back() {
        let mut memory = [0xEE; 40];
        let mut copies = Copies::new(&mut memory);
        assert!(copies.last().is_none() && copies.push(b"one", b"1") && copies.push(b"", b"gone"));
        assert_eq!(copies.last().map(|it| (it.key, it.value)), Some((&b""[..], Some(&b"gone"[..]))));
        copies.pop();
        assert!(copies.push(b"two", b"") && !copies.push(b"three", &[3; 30]) && copies.push(b"four", b"4444"));
        let all: [_; 3] = core::array::from_fn(|at| copies.iter().nth(at).map(|it| (it.key, it.value.unwrap())));
        assert_eq!(all, [Some((&b"one"[..], &b"1"[..])), Some((b"two", b"")), Some((b"four", b"4444"))]);
        assert_eq!((copies.count(), copies.is_empty()), (3, false));
    }
}
