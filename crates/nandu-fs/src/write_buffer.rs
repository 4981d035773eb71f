//! One page that is being written, in memory.
//!
//! Writes of less than a page gather here until another page is written, something else changes or a sync comes. Whatever
//! changes the file system first writes this page to the tree, so the tree sees changes in the order in which they were made.

use core::ops::Range;

use crate::batch::LENT_SIZE;
use crate::inode::Inode;

pub(crate) struct WriteBuffer<'m> {
    /// A page, and what a change takes beside; lent to a change where no page is being written.
    pub(crate) memory: &'m mut [u8],
    page_size: usize,
    /// The page that is being written, if there is one.
    pub(crate) written: Option<Written>,
}

/// What of a page was written.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// First byte, and the one behind the last.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the memory holds the rest of the page too.
    pub(crate) is_whole: bool,
}

/// A page that is being written.
pub(crate) struct Written {
    pub(crate) ino: u64,
    pub(crate) index: u32,
    /// The inode with what the writes made of it.
    pub(crate) inode: Inode,
    pub(crate) span: Span,
}

/// Calls with a value that is a head and these bytes of a page. It is made in the page, in front of the bytes or, where there is no room, from
/// their place on; then the page is as it was. The page has room for the head beside them.
pub(crate) fn with_head<T, const HEAD: usize>(
    page: &mut [u8],
    bytes: Range<usize>,
    head: [u8; HEAD],
    call: impl FnOnce(&[u8]) -> T,
) -> T {
    let is_in_front = bytes.start >= HEAD;
    let start = if is_in_front { bytes.start - HEAD } else { bytes.start };
    let spare = if is_in_front { start } else { bytes.end };
    let mut kept = [0; HEAD];
    kept.copy_from_slice(&page[spare..spare + HEAD]);
    page.copy_within(bytes.clone(), start + HEAD);
    page[start..start + HEAD].copy_from_slice(&head);
    let result = call(&page[start..start + HEAD + bytes.len()]);
    page.copy_within(start + HEAD..start + HEAD + bytes.len(), bytes.start);
    page[spare..spare + HEAD].copy_from_slice(&kept);
    result
}

impl<'m> WriteBuffer<'m> {
    /// Bytes of memory for it.
    pub(crate) const fn memory_size(page_size: usize) -> usize {
        if page_size > LENT_SIZE { page_size } else { LENT_SIZE }
    }

    pub(crate) fn new(memory: &'m mut [u8], page_size: usize) -> WriteBuffer<'m> {
        WriteBuffer { memory, page_size, written: None }
    }

    pub(crate) fn page(&self) -> &[u8] {
        &self.memory[..self.page_size]
    }

    pub(crate) fn page_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.page_size]
    }

    /// What was written of this page, if it is the one that is being written.
    pub(crate) fn of(&self, ino: u64, index: u32) -> Option<Span> {
        self.written.as_ref().filter(|written| (written.ino, written.index) == (ino, index)).map(|written| written.span)
    }

    /// The inode that is being written, if it is this one.
    pub(crate) fn inode(&self, ino: u64) -> Option<Inode> {
        self.written.as_ref().filter(|written| written.ino == ino).map(|written| written.inode)
    }
}

#[cfg(test)]
mod tests {
    use super::with_head;

    #[test]
    fn a_head_stands_in_front_of_bytes_for_as_long_as_the_call() {
        let page = [1, 2, 3, 4, 5, 6, 7, 8];
        for (bytes, value) in [(0..3, &[9, 9, 1, 2, 3][..]), (1..2, &[9, 9, 2]), (2..8, &[9, 9, 3, 4, 5, 6, 7, 8])] {
            let mut memory = page;
            with_head(&mut memory, bytes, [9, 9], |made| assert_eq!(made, value));
            assert_eq!(memory, page);
        }
    }
}
