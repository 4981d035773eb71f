//! Which bytes of an image file are in use.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Stretches begin at multiples of this many bytes.
pub(super) const ALIGNMENT: u64 = 64;

/// Bytes given back that rest before they are used again, at most. So long whoever copies the file while it is in use finds what it
/// read of before.
const RESTING_SIZE_MAX: u64 = 4 << 20;

/// Bytes in use from which on anything rests: what is less is copied in a moment.
const RESTS_FROM: u64 = 1 << 20;

/// A stretch of the file: where it begins and its size, a multiple of [`ALIGNMENT`].
type Stretch = (u64, u64);

/// The room of a file: what is in use, what is free, and what is not in use and not to be used yet.
pub(super) struct Space {
    first: u64,
    /// Free stretches by size, then place, so that the smallest that fits is found at once.
    by_size: BTreeSet<Stretch>,
    /// The same by place, so that neighbours are joined.
    by_place: BTreeMap<u64, u64>,
    /// Behind all that is in use or rests.
    end: u64,
    resting: VecDeque<Stretch>,
    resting_size: u64,
    used: u64,
}

impl Space {
    /// A file of which only the bytes before `first` are in use.
    pub(super) fn new(first: u64) -> Space {
        Space {
            first,
            by_size: BTreeSet::new(),
            by_place: BTreeMap::new(),
            end: first,
            resting: VecDeque::new(),
            resting_size: 0,
            used: 0,
        }
    }

    /// A file of which these stretches are in use too, each given by its place and its bytes; `None` if two overlap.
    pub(super) fn beside(first: u64, mut used: Vec<Stretch>) -> Option<Space> {
        let mut space = Space::new(first);
        used.sort_unstable();
        for (offset, size) in used {
            let size = size.next_multiple_of(ALIGNMENT);
            if offset < space.end {
                return None;
            }
            let gap = offset - space.end;
            if gap > 0 {
                space.insert(space.end, gap);
            }
            space.end = offset + size;
            space.used += size;
        }
        Some(space)
    }

    /// Where the file may end.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Takes room for so many bytes.
    pub(super) fn take(&mut self, size: u64) -> u64 {
        let size = size.next_multiple_of(ALIGNMENT);
        self.used += size;
        if let Some(&(gap, offset)) = self.by_size.range((size, 0)..).next() {
            self.by_size.remove(&(gap, offset));
            self.by_place.remove(&offset);
            if gap > size {
                self.insert(offset + size, gap - size);
            }
            return offset;
        }
        let offset = self.end;
        self.end += size;
        offset
    }

    /// Gives back room that nothing refers to: it may be taken at once.
    pub(super) fn give(&mut self, offset: u64, size: u64) {
        let size = size.next_multiple_of(ALIGNMENT);
        self.used -= size;
        self.free(offset, size);
    }

    /// Gives back room that is taken again only after others that were given back later have come to rest behind it.
    pub(super) fn rest(&mut self, offset: u64, size: u64) {
        let size = size.next_multiple_of(ALIGNMENT);
        self.used -= size;
        self.resting_size += size;
        self.resting.push_back((offset, size));
    }

    /// Ends the rest of what rested long enough.
    pub(super) fn wake(&mut self) {
        let limit = if self.used < RESTS_FROM { 0 } else { (self.used / 8).min(RESTING_SIZE_MAX) };
        while self.resting_size > limit {
            let Some((offset, size)) = self.resting.pop_front() else { return };
            self.resting_size -= size;
            self.free(offset, size);
        }
    }

    fn insert(&mut self, offset: u64, size: u64) {
        self.by_size.insert((size, offset));
        self.by_place.insert(offset, size);
    }

    fn free(&mut self, mut offset: u64, mut size: u64) {
        if let Some((&before, &gap)) = self.by_place.range(..offset).next_back()
            && before + gap == offset
        {
            self.by_size.remove(&(gap, before));
            self.by_place.remove(&before);
            (offset, size) = (before, gap + size);
        }
        if let Some(gap) = self.by_place.remove(&(offset + size)) {
            self.by_size.remove(&(gap, offset + size));
            size += gap;
        }
        if offset + size == self.end {
            self.end = offset;
        } else {
            self.insert(offset, size);
        }
        debug_assert!(self.end >= self.first, "more was given back than taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined_and_the_end_comes_down() {
        let mut space = Space::beside(128, vec![(192, 60), (448, 64)]).unwrap();
        assert_eq!(space.end(), 512);
        assert_eq!(space.take(190), 256, "the smallest that fits");
        assert_eq!(space.take(65), 512, "what is before it is too small");
        space.give(256, 190);
        space.give(192, 60);
        assert_eq!(space.take(320), 128);
        space.give(448, 64);
        space.give(512, 65);
        assert_eq!(space.end(), 448);
        assert!(Space::beside(128, vec![(128, 65), (192, 1)]).is_none());
        assert!(Space::beside(128, vec![(64, 1)]).is_none());
    }

    #[test]
    fn what_rests_is_taken_last() {
        let size = 1 << 15;
        let mut space = Space::new(64);
        let stretches: Vec<u64> = (0..64).map(|_| space.take(size)).collect();
        for &offset in &stretches[..16] {
            space.rest(offset, size);
        }
        space.wake();
        // Forty-eight are in use, so that six rest.
        let woken = (0..10).map(|_| space.take(size)).collect::<Vec<_>>();
        assert_eq!(woken, stretches[..10]);
        assert_eq!(space.take(size), 64 + 64 * size);
    }
}
