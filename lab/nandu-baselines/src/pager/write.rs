//! The paper's write cache: pages in the order of their allocation, programmed in bulk.

use nandu_nand::{Nand, PageAddr};

use crate::BaselineError;
use crate::options::Stats;
use crate::pages::Result;

#[derive(Debug)]
struct Slot {
    page: PageAddr,
    /// Place of the page among all that the frontier gave out. Pages of a block are programmed in this order.
    order: u64,
    bytes: Vec<u8>,
}

/// Pages that are allocated and not programmed yet, and those programmed last.
#[derive(Debug)]
pub(super) struct WriteCache {
    capacity: usize,
    /// In the order of allocation.
    slots: Vec<Slot>,
    /// Pages that died before they were programmed: they are allocated next.
    vacant: Vec<(PageAddr, u64)>,
    /// Programmed pages that can still be read here until the next allocation.
    flushed: Vec<Slot>,
    next_order: u64,
}

impl WriteCache {
    pub(super) fn new(capacity: usize) -> WriteCache {
        WriteCache { capacity, slots: Vec::new(), vacant: Vec::new(), flushed: Vec::new(), next_order: 0 }
    }

    pub(super) fn drop_flushed(&mut self) {
        self.flushed.clear();
    }

    /// A page that was allocated before and died in the cache.
    pub(super) fn reuse(&mut self) -> Option<PageAddr> {
        let first = (0..self.vacant.len()).min_by_key(|&at| self.vacant[at].1)?;
        let (page, order) = self.vacant.remove(first);
        self.occupy(page, order);
        Some(page)
    }

    /// A page from the frontier.
    pub(super) fn add(&mut self, page: PageAddr) {
        let order = self.next_order;
        self.next_order += 1;
        self.occupy(page, order);
    }

    fn occupy(&mut self, page: PageAddr, order: u64) {
        self.slots.push(Slot { page, order, bytes: Vec::new() });
    }

    pub(super) fn put(&mut self, page: PageAddr, bytes: Vec<u8>) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.page == page) {
            slot.bytes = bytes;
        }
    }

    /// The page is not needed: its slot is free at once.
    pub(super) fn discard(&mut self, page: PageAddr) {
        if let Some(at) = self.slots.iter().position(|slot| slot.page == page) {
            let slot = self.slots.remove(at);
            self.vacant.push((slot.page, slot.order));
        }
        self.flushed.retain(|slot| slot.page != page);
    }

    pub(super) fn find(&self, page: PageAddr) -> Option<usize> {
        self.slots.iter().position(|slot| slot.page == page && !slot.bytes.is_empty())
    }

    pub(super) fn bytes(&self, at: usize) -> &[u8] {
        &self.slots[at].bytes
    }

    pub(super) fn find_flushed(&self, page: PageAddr) -> Option<usize> {
        self.flushed.iter().position(|slot| slot.page == page)
    }

    pub(super) fn flushed_bytes(&self, at: usize) -> &[u8] {
        &self.flushed[at].bytes
    }

    /// Whether more pages wait than there are slots. Asked at the end of an operation, when those that died in it are gone.
    pub(super) fn is_overflowed(&self) -> bool {
        self.slots.len() > self.capacity
    }

    /// Whether any page that is still to be programmed is such.
    pub(super) fn uses(&self, is_such: impl Fn(PageAddr) -> bool) -> bool {
        let vacant = self.vacant.iter().map(|&(page, _)| page);
        self.slots.iter().map(|slot| slot.page).chain(vacant).any(is_such)
    }

    pub(super) fn pending(&self) -> impl Iterator<Item = (PageAddr, &[u8])> {
        self.slots.iter().map(|slot| (slot.page, slot.bytes.as_slice()))
    }

    /// Programs every page that waits. The pages allocated last stay readable, as many as the cache has slots.
    pub(super) fn flush<N: Nand>(&mut self, nand: &mut N, stats: &mut Stats) -> Result<(), N::Error> {
        let mut in_order: Vec<&Slot> = self.slots.iter().collect();
        in_order.sort_unstable_by_key(|slot| slot.order);
        for slot in &in_order {
            stats.programs += 1;
            nand.program(slot.page, 0, &slot.bytes).map_err(BaselineError::Nand)?;
        }
        if let Some(last) = in_order.last().map(|slot| slot.order) {
            // A page before one that is programmed can no longer be: the pages of a block are programmed in order.
            self.vacant.retain(|&(_, order)| order > last);
        }
        let kept = self.slots.len().min(self.capacity);
        self.flushed = self.slots.split_off(self.slots.len() - kept);
        self.slots.clear();
        Ok(())
    }
}
