//! Which files are open, so that one that has lost its last name lives until it is closed.

/// Bytes for each open file: number 8, of which the two highest bits are flags; count 4.
pub(crate) const OPEN_FILE_SIZE: usize = 12;

/// The file has no name any more.
const UNLINKED: u64 = 1 << 63;

/// There may be pages behind the end of the file, which has no name any more, since a truncation was not brought to its end.
const CUT: u64 = 1 << 62;

const FLAGS: u64 = UNLINKED | CUT;

/// Open files in no order, in memory of the caller's.
pub(crate) struct OpenFiles<'m> {
    memory: &'m mut [u8],
    count: usize,
}

impl<'m> OpenFiles<'m> {
    pub(crate) fn new(memory: &'m mut [u8]) -> OpenFiles<'m> {
        OpenFiles { memory, count: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.memory.len() / OPEN_FILE_SIZE
    }

    fn get(&self, index: usize) -> (u64, u32) {
        let (ino, rest) = self.memory[index * OPEN_FILE_SIZE..].split_at(8);
        let ino = ino.iter().rev().fold(0, |ino, &byte| ino << 8 | u64::from(byte));
        (ino, u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]))
    }

    fn set(&mut self, index: usize, ino: u64, count: u32) {
        let bytes = &mut self.memory[index * OPEN_FILE_SIZE..][..OPEN_FILE_SIZE];
        bytes[..8].copy_from_slice(&ino.to_le_bytes());
        bytes[8..].copy_from_slice(&count.to_le_bytes());
    }

    fn find(&self, ino: u64) -> Option<usize> {
        (0..self.count).find(|&index| self.get(index).0 & !FLAGS == ino)
    }

    pub(crate) fn is_open(&self, ino: u64) -> bool {
        self.find(ino).is_some()
    }

    /// Counts an opening; false if there is no room.
    pub(crate) fn open(&mut self, ino: u64) -> bool {
        match self.find(ino) {
            Some(index) => {
                let (ino, count) = self.get(index);
                self.set(index, ino, count.saturating_add(1));
                true
            }
            None if self.count < self.capacity() => {
                self.set(self.count, ino, 1);
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// The file has lost its last name. Returns whether it is open.
    pub(crate) fn unlink(&mut self, ino: u64) -> bool {
        let Some(index) = self.find(ino) else { return false };
        let (ino, count) = self.get(index);
        self.set(index, ino | UNLINKED, count);
        true
    }

    /// A truncation of a file without a name begins or ends.
    pub(crate) fn set_cut(&mut self, ino: u64, is_cut: bool) {
        let Some(index) = self.find(ino) else { return };
        let (ino, count) = self.get(index);
        self.set(index, if is_cut { ino | CUT } else { ino & !CUT }, count);
    }

    /// Whether such a truncation began and did not end.
    pub(crate) fn is_cut(&self, ino: u64) -> bool {
        self.find(ino).is_some_and(|index| self.get(index).0 & CUT != 0)
    }

    /// Counts a closing. Returns whether it was the last one of a file without a name.
    pub(crate) fn close(&mut self, ino: u64) -> bool {
        let Some(index) = self.find(ino) else { return false };
        let (ino, count) = self.get(index);
        if count > 1 {
            self.set(index, ino, count - 1);
            return false;
        }
        self.count -= 1;
        let (last, last_count) = self.get(self.count);
        self.set(index, last, last_count);
        ino & UNLINKED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{OPEN_FILE_SIZE, OpenFiles};

    #[test]
    fn a_file_is_open_as_often_as_it_was_opened() {
        let mut memory = [0; 2 * OPEN_FILE_SIZE];
        let mut open = OpenFiles::new(&mut memory);
        assert!(open.open(5) && open.open(5) && open.open(6));
        assert!(!open.open(7), "there is memory for two");
        assert!(!open.unlink(7));
        assert!(open.unlink(5));
        open.set_cut(5, true);
        assert!(open.is_cut(5) && !open.is_cut(6));
        assert!(!open.close(5), "it is open once more");
        assert!(open.is_cut(5));
        open.set_cut(5, false);
        assert!(!open.is_cut(5));
        assert!(open.is_open(5));
        assert!(open.close(5));
        assert!(!open.is_open(5) && open.is_open(6));
        assert!(!open.close(6), "it has a name");
        assert!(!open.close(6));
    }
}
