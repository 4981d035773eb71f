//! One page that is being written, in memory.
//!
//! Writes of less than a page gather here until another page is written, something else changes or a sync comes. Whatever
//! changes the file system first writes this page to the tree, so the tree sees changes in the order in which they were made.

use crate::inode::Inode;

pub(crate) struct WriteBuffer<'m> {
    pub(crate) memory: &'m mut [u8],
    /// The page that is being written, if there is one.
    pub(crate) written: Option<Written>,
}

/// A page that is being written.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    pub(crate) ino: u64,
    pub(crate) index: u32,
    /// The inode with what the writes made of it.
    pub(crate) inode: Inode,
    /// First byte that was written, and the one behind the last.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Whether the memory holds the rest of the page too.
    pub(crate) is_whole: bool,
}

impl<'m> WriteBuffer<'m> {
    pub(crate) fn new(memory: &'m mut [u8]) -> WriteBuffer<'m> {
        WriteBuffer { memory, written: None }
    }

    pub(crate) fn page(&self) -> &[u8] {
        self.memory
    }

    pub(crate) fn page_mut(&mut self) -> &mut [u8] {
        self.memory
    }

    /// Where the page that is being written is, if it is this one.
    pub(crate) fn of(&self, ino: u64, index: u32) -> Option<Written> {
        self.written.filter(|written| (written.ino, written.index) == (ino, index))
    }

    /// The inode that is being written, if it is this one.
    pub(crate) fn inode(&self, ino: u64) -> Option<Inode> {
        self.written.filter(|written| written.ino == ino).map(|written| written.inode)
    }
}
