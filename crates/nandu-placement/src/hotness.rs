//! Which files are hot: two queues of inode numbers.
//!
//! A file that is written again later is moved from the cold queue, which is a FIFO, to the hot one, which is an LRU. From the 2Q
//! algorithm as FlexFS uses it (section 4.1.3 of its paper). That references close together count as one is ours: without it a
//! long sequential write would make every file hot.

/// A file in a queue: memory for one, to be handed over. Its number and the time of the last reference, low bytes first.
pub type Reference = [u8; 16];

/// A file, as it is while it is looked at.
#[derive(Clone, Copy)]
struct File {
    ino: u64,
    at_us: u64,
}

impl File {
    fn of(reference: &Reference) -> File {
        let (words, _) = reference.as_chunks::<8>();
        File { ino: u64::from_le_bytes(words[0]), at_us: u64::from_le_bytes(words[1]) }
    }

    fn to_bytes(self) -> Reference {
        let mut bytes = Reference::default();
        bytes[..8].copy_from_slice(&self.ino.to_le_bytes());
        bytes[8..].copy_from_slice(&self.at_us.to_le_bytes());
        bytes
    }
}

/// The two queues, in memory of the caller's. Nothing of it has to outlast a mount.
#[derive(Debug)]
pub struct Hotness<'m> {
    hot: Queue<'m>,
    cold: Queue<'m>,
    correlation_us: u64,
}

impl<'m> Hotness<'m> {
    /// Files in the hot queue by default.
    pub const HOT_COUNT: usize = 32;
    /// Files in the cold queue by default.
    pub const COLD_COUNT: usize = 128;

    /// Empty queues of which a fifth of the memory is the hot one, at least one place of each; with less memory than two no file is
    /// ever hot. References within `correlation_us` microseconds of the one before count as the same.
    pub fn new(memory: &'m mut [Reference], correlation_us: u64) -> Hotness<'m> {
        let hot_count = if memory.len() < 2 { 0 } else { (memory.len() / 5).max(1) };
        let (hot, cold) = memory.split_at_mut(hot_count);
        Hotness { hot: Queue { files: hot, count: 0 }, cold: Queue { files: cold, count: 0 }, correlation_us }
    }

    /// Notes a write to a file. Costs no flash operation, and time in proportion to the memory.
    pub fn touch(&mut self, ino: u64, now_us: u64) {
        if let Some(place) = self.hot.find(ino) {
            let is_new = self.hot.reference(place, now_us, self.correlation_us);
            if is_new {
                self.hot.move_to_front(place);
            }
        } else if let Some(place) = self.cold.find(ino) {
            let is_new = self.cold.reference(place, now_us, self.correlation_us);
            if is_new && !self.hot.files.is_empty() {
                let file = self.cold.remove(place);
                if let Some(demoted) = self.hot.insert(file) {
                    self.cold.insert(demoted);
                }
            }
        } else {
            self.cold.insert(File { ino, at_us: now_us }.to_bytes());
        }
    }

    /// Whether a file is hot.
    pub fn is_hot(&self, ino: u64) -> bool {
        self.hot.find(ino).is_some()
    }

    /// Forgets a file that was deleted.
    pub fn forget(&mut self, ino: u64) {
        for queue in [&mut self.hot, &mut self.cold] {
            if let Some(place) = queue.find(ino) {
                queue.remove(place);
            }
        }
    }
}

/// Files, the one referred to last first. A queue is as long as its memory, a hundred places or so, and is searched place by place.
#[derive(Debug)]
struct Queue<'m> {
    files: &'m mut [Reference],
    count: usize,
}

impl Queue<'_> {
    fn find(&self, ino: u64) -> Option<usize> {
        self.files[..self.count].iter().position(|file| File::of(file).ino == ino)
    }

    /// Notes the time of a reference; says whether it is a new one, not the same again.
    fn reference(&mut self, place: usize, now_us: u64, correlation_us: u64) -> bool {
        let file = File::of(&self.files[place]);
        self.files[place] = File { at_us: now_us, ..file }.to_bytes();
        now_us.saturating_sub(file.at_us) >= correlation_us
    }

    fn move_to_front(&mut self, place: usize) {
        self.files[..=place].rotate_right(1);
    }

    fn remove(&mut self, place: usize) -> Reference {
        let file = self.files[place];
        self.files[place..self.count].rotate_left(1);
        self.count -= 1;
        file
    }

    /// Inserts a file at the front; returns the one that falls out at the end, if the queue is full.
    fn insert(&mut self, file: Reference) -> Option<Reference> {
        if self.files.is_empty() {
            return None;
        }
        let fallen = (self.count == self.files.len()).then(|| self.files.last().copied()).flatten();
        self.count = (self.count + 1).min(self.files.len());
        self.files[..self.count].rotate_right(1);
        self.files[0] = file;
        fallen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_file_is_hot_when_it_is_written_again_later_and_not_at_once() {
        let mut memory = [Reference::default(); 160];
        let mut hotness = Hotness::new(&mut memory, SECOND);
        assert_eq!((hotness.hot.files.len(), hotness.cold.files.len()), (Hotness::HOT_COUNT, Hotness::COLD_COUNT));
        hotness.touch(7, 0);
        assert!(!hotness.is_hot(7));
        // A long sequential write: each reference is close to the one before, so all are one.
        for nth in 1..100 {
            hotness.touch(7, nth * SECOND / 10);
            assert!(!hotness.is_hot(7));
        }
        hotness.touch(7, 9_900_000 + SECOND);
        assert!(hotness.is_hot(7));
        hotness.forget(7);
        assert!(!hotness.is_hot(7));
    }

    #[test]
    fn the_cold_queue_forgets_what_was_seen_first() {
        let mut memory = [Reference::default(); 10];
        let mut hotness = Hotness::new(&mut memory, SECOND);
        // Eight places; a reference does not move a file within the queue unless it makes it hot.
        for ino in 0..9 {
            hotness.touch(ino, ino);
        }
        hotness.touch(0, 10 * SECOND);
        assert!(!hotness.is_hot(0), "it was forgotten, and is seen for the first time");
        hotness.touch(2, 10 * SECOND);
        assert!(hotness.is_hot(2));
    }

    #[test]
    fn the_hot_file_written_to_longest_ago_becomes_cold_again() {
        let mut memory = [Reference::default(); 10];
        let mut hotness = Hotness::new(&mut memory, SECOND);
        for ino in [1, 2, 3] {
            hotness.touch(ino, 0);
        }
        hotness.touch(1, 2 * SECOND);
        hotness.touch(2, 3 * SECOND);
        hotness.touch(1, 4 * SECOND);
        // Two places are taken by 1 and 2, of which 2 was written to longer ago.
        hotness.touch(3, 5 * SECOND);
        assert_eq!([1, 2, 3].map(|ino| hotness.is_hot(ino)), [true, false, true]);
        // It is at the head of the cold queue, so its next write makes it hot at once.
        hotness.touch(2, 6 * SECOND);
        assert_eq!([1, 2, 3].map(|ino| hotness.is_hot(ino)), [false, true, true]);
    }

    #[test]
    fn without_memory_nothing_is_hot() {
        for size in 0..2 {
            let mut memory = [Reference::default(); 2];
            let mut hotness = Hotness::new(&mut memory[..size], SECOND);
            for nth in 0..5 {
                hotness.touch(3, nth * 2 * SECOND);
                assert!(!hotness.is_hot(3));
            }
        }
    }
}
