//! The paper's read cache: pages, least recently used first out.

use nandu_nand::PageAddr;

/// The pages read last. Without a cache there is still a buffer for one, which is forgotten with each operation.
#[derive(Debug)]
pub(crate) struct Recent {
    capacity: usize,
    /// The least recently used first.
    pages: Vec<(PageAddr, Vec<u8>)>,
    spare: Vec<u8>,
}

impl Recent {
    pub(crate) fn new(capacity: usize) -> Recent {
        Recent { capacity, pages: Vec::new(), spare: Vec::new() }
    }

    /// An operation begins.
    pub(crate) fn begin(&mut self) {
        if self.capacity == 0
            && let Some((_, bytes)) = self.pages.pop()
        {
            self.spare = bytes;
        }
    }

    /// Where the page is, which is now the one used last.
    pub(crate) fn find(&mut self, page: PageAddr) -> Option<usize> {
        let at = self.pages.iter().position(|(held, _)| *held == page)?;
        self.pages[at..].rotate_left(1);
        Some(self.pages.len() - 1)
    }

    pub(crate) fn bytes(&self, at: usize) -> &[u8] {
        &self.pages[at].1
    }

    /// A buffer to read into, for which the least recently used page may have to go.
    pub(crate) fn make_room(&mut self, size: usize) -> &mut [u8] {
        if self.pages.len() >= self.capacity.max(1) {
            self.spare = self.pages.remove(0).1;
        }
        self.spare.resize(size, 0);
        &mut self.spare
    }

    /// The buffer holds this page now.
    pub(crate) fn keep(&mut self, page: PageAddr) -> usize {
        self.pages.push((page, std::mem::take(&mut self.spare)));
        self.pages.len() - 1
    }

    /// Nothing was read into the buffer.
    pub(crate) fn give_up(&mut self) {
        self.spare.clear();
    }

    /// Forgets pages that are such.
    pub(crate) fn forget(&mut self, is_such: impl Fn(PageAddr) -> bool) {
        self.pages.retain(|(page, _)| !is_such(*page));
    }

    pub(crate) fn remove(&mut self, page: PageAddr) {
        if let Some(at) = self.pages.iter().position(|(held, _)| *held == page) {
            self.spare = self.pages.remove(at).1;
        }
    }
}
