//! From the root down to a leaf.
//!
//! The inner nodes of the path are copied to the end of the assembly buffer as they are on flash; what a change makes
//! of them is written into the copies only when the page is programmed. So the same path serves lookups, and the next
//! change begins where the last one ended.

use core::ops::Range;

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_media::features::FILES;
use nandu_nand::PageAddr;

use crate::merge::Span;
use crate::pages::{Found, Pages};
use crate::tree::Tree;
use crate::{Malformed, TreeError};
use nandu_cells::{Cells, LeafRun, Stretch};
use nandu_media::tree::TreeBody;

/// In place of a page number: the page that is being put together. Equals [`nandu_cells::SELF`], so that a node
/// encoded with a child there and a slot of that child agree.
pub(crate) const PENDING: u32 = u32::MAX;

/// A node of the path in the assembly buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// Where the node is on flash, or [`PENDING`].
    pub(crate) page: u32,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    /// The child that the path goes on to.
    pub(crate) index: usize,
    /// Lowest level in `page`, if the node was read from flash rather than from the cache.
    pub(crate) lowest: u8,
    pub(crate) present: bool,
}

impl Slot {
    pub(crate) const ABSENT: Slot = Slot { page: PENDING, offset: 0, size: 0, index: 0, lowest: 0, present: false };

    pub(crate) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.size
    }
}

/// Leaves read last that are remembered.
const MISSED: usize = 8;

/// The page read last.
pub(crate) struct Reading<'m> {
    pub(crate) buf: &'m mut [u8],
    page: Option<u32>,
    found: Option<Found>,
    /// What it says of itself, if it is one of the tree's.
    pub(crate) body: Option<TreeBody>,
    checked: u8,
    /// Leaves read.
    misses: u8,
    /// Pages of the last of them, in a ring.
    missed: [u32; MISSED],
    /// Pages read; wraps.
    pub(crate) reads: u32,
}

impl<'m> Reading<'m> {
    pub(crate) fn new(buf: &'m mut [u8]) -> Reading<'m> {
        Reading {
            buf,
            page: None,
            found: None,
            body: None,
            checked: u8::MAX,
            misses: 0,
            missed: [u32::MAX; MISSED],
            reads: 0,
        }
    }

    /// The buffer is going to be used for something else, or its page is programmed anew.
    pub(crate) fn forget(&mut self) {
        self.page = None;
    }

    pub(crate) fn forget_page(&mut self, page: u32) {
        if self.page == Some(page) {
            self.page = None;
        }
    }
}

/// Where a leaf is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Assembly(Range<usize>),
    Reading(Range<usize>),
    Cached(Range<usize>),
}

/// A separator in an inner node of the path.
#[derive(Clone, Copy)]
pub(crate) struct Fence {
    /// Where the node is in the assembly buffer.
    offset: usize,
    size: usize,
    index: usize,
}

impl Fence {
    pub(crate) fn copy<C: Cells>(self, cells: C, assembly: &[u8], out: &mut KeyBuf) {
        cells.inner_separator(&assembly[self.offset..self.offset + self.size], self.index, out);
    }
}

/// Where the bounds of a leaf's keys stand, which are not below the first and below the second; `None` is no bound. Good as long as the
/// inner nodes of the path stay.
#[derive(Clone, Copy)]
pub(crate) struct LeafFences {
    pub(crate) low: Option<Fence>,
    pub(crate) high: Option<Fence>,
}

/// Where a descent goes.
#[derive(Clone, Copy)]
pub(crate) enum Seek<'a> {
    /// To the leaf whose range holds this key.
    At(&'a [u8]),
    /// To the leaf whose range holds what is just before this key.
    Before(&'a [u8]),
    /// To the last leaf.
    Last,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    pub(crate) fn top(&self) -> u8 {
        self.state.height - 1
    }

    /// Where the leaf of a path stands in the assembly buffer.
    pub(crate) fn front(&self) -> usize {
        TreeBody::front(self.header_size, self.state.height as usize, true, 0)
    }

    /// Where the inner nodes of the path begin in the assembly buffer, level 1 being present.
    pub(crate) fn tail(&self) -> usize {
        if self.state.height > 1 { self.path[1].offset } else { self.assembly.len() }
    }

    /// Reads a page, unless it is the one read last, and finds a node in it that is safe to use.
    pub(crate) fn read_node(&mut self, page: u32, level: u8) -> Result<Range<usize>, TreeError<P::Error>> {
        let corrupt = |why| TreeError::Corrupt { page: PageAddr(page), why };
        let place = self.read_body(page)?.node(level).map_err(corrupt)?;
        if self.reading.checked != level {
            let node = &self.reading.buf[place.clone()];
            let sound = match level {
                0 => self.cells.leaf_check(node),
                _ => self.cells.inner_check(node, u32::from(self.format.page_bits)),
            };
            if !sound {
                return Err(corrupt(Malformed::Node));
            }
            self.reading.checked = level;
        }
        Ok(place)
    }

    /// A leaf beside the path, in the reading buffer: read, or copied from where it is kept.
    #[inline(never)]
    pub(crate) fn read_neighbour(&mut self, page: u32) -> Result<Range<usize>, TreeError<P::Error>> {
        match self.cache.find(page, 0) {
            Some(place) => {
                let leaf = self.cache.bytes(place);
                self.reading.forget();
                self.reading.buf[..leaf.len()].copy_from_slice(leaf);
                Ok(0..leaf.len())
            }
            None => self.read_node(page, 0),
        }
    }

    /// Reads a page, unless it is the one read last, and lends what it says of itself.
    pub(crate) fn read_body(&mut self, page: u32) -> Result<&TreeBody, TreeError<P::Error>> {
        if self.reading.body.is_none() || self.reading.page != Some(page) {
            self.fetch(page)?;
        }
        match &self.reading.body {
            Some(body) => Ok(body),
            None => Self::corrupt(page, Malformed::LevelMissing),
        }
    }

    /// Reads a page, unless it is the one read last; one of the tree is sound in its front.
    pub(crate) fn fetch(&mut self, page: u32) -> Result<Found, TreeError<P::Error>> {
        if let (Some(found), true) = (self.reading.found, self.reading.page == Some(page)) {
            return Ok(found);
        }
        let corrupt = |why| TreeError::Corrupt { page: PageAddr(page), why };
        self.reading.forget();
        if page >= self.page_count {
            return Err(corrupt(Malformed::PageNumber));
        }
        let found = self.pages.read(PageAddr(page), self.reading.buf)?;
        self.reading.reads = self.reading.reads.wrapping_add(1);
        self.reading.body = None;
        if found.kind == PageKind::Tree {
            let body = self.reading.body.insert(TreeBody::EMPTY);
            body.read(self.reading.buf, self.header_size).map_err(corrupt)?;
            if body.format != self.format {
                return Err(corrupt(Malformed::Cells));
            }
        }
        self.reading.page = Some(page);
        self.reading.found = Some(found);
        self.reading.checked = u8::MAX;
        Ok(found)
    }

    /// Makes the root present in the assembly buffer.
    pub(crate) fn load_root(&mut self) -> Result<(), TreeError<P::Error>> {
        let top = self.top();
        let slot = self.path[top as usize];
        if slot.present && (slot.page == self.state.root || slot.page == PENDING) {
            return Ok(());
        }
        if top == 0 { self.load_leaf(self.state.root).map(|_| ()) } else { self.load_inner(top, self.state.root) }
    }

    /// Copies an inner node in front of the one above it; what was below is gone.
    pub(crate) fn load_inner(&mut self, level: u8, page: u32) -> Result<(), TreeError<P::Error>> {
        let end = if level == self.top() { self.assembly.len() } else { self.path[level as usize + 1].offset };
        let cached = self.cache.find(page, level);
        let (size, lowest) = match &cached {
            Some(place) => (place.len(), u8::MAX),
            None => {
                let place = self.read_node(page, level)?;
                (place.len(), self.read_body(page)?.lowest)
            }
        };
        let too_large = TreeError::Corrupt { page: PageAddr(page), why: Malformed::PathTooLarge };
        let offset = end.checked_sub(size).filter(|&offset| offset >= self.front()).ok_or(too_large)?;
        match cached {
            Some(place) => self.assembly[offset..end].copy_from_slice(self.cache.bytes(place)),
            None => {
                let place = self.read_node(page, level)?;
                self.assembly[offset..end].copy_from_slice(&self.reading.buf[place.clone()]);
                if level < self.top() {
                    self.cache.insert(page, level, &self.reading.buf[place]);
                }
            }
        }
        for below in &mut self.path[1..level as usize] {
            below.present = false;
        }
        let leaf = &mut self.path[0];
        leaf.present &= leaf.offset + leaf.size <= offset;
        self.path[level as usize] = Slot { page, offset, size, index: 0, lowest, present: true };
        Ok(())
    }

    /// Goes down and makes every inner node of the path from the root to level `floor`, at least 1, present.
    pub(crate) fn descend(&mut self, seek: Seek<'_>, floor: u8) -> Result<(), TreeError<P::Error>> {
        self.load_root()?;
        let mut level = self.top();
        while level >= floor {
            let slot = self.path[level as usize];
            let node = &self.assembly[slot.range()];
            let index = match seek {
                Seek::At(key) => self.cells.inner_find(node, key, false),
                Seek::Before(key) => self.cells.inner_find(node, key, true),
                Seek::Last => self.cells.inner_count(node) - 1,
            };
            self.path[level as usize].index = index;
            if level == floor {
                break;
            }
            let child = self.child(level - 1);
            level -= 1;
            let below = self.path[level as usize];
            if !below.present || below.page != child {
                self.load_inner(level, child)?;
            }
        }
        Ok(())
    }

    /// Page of the node of this level that the path leads to; for the highest level the root's.
    pub(crate) fn child(&self, level: u8) -> u32 {
        if level == self.top() {
            return self.path[level as usize].page;
        }
        let parent = &self.path[level as usize + 1];
        let node = &self.assembly[parent.range()];
        if self.cells.inner_path(node) == Some(parent.index) {
            return parent.page;
        }
        self.cells.inner_child(node, parent.index, u32::from(self.format.page_bits))
    }

    /// The page of the leaf whose range holds a key. Inner nodes are searched where they are, in the path or in the cache; the path is changed only where
    /// one has to be read.
    pub(crate) fn find_leaf(&mut self, key: &[u8]) -> Result<u32, TreeError<P::Error>> {
        if self.pages.has_bare() {
            // Where there are files a record is mostly followed by others near it, which the path is kept for.
            self.descend(Seek::At(key), 1)?;
            return Ok(self.child(0));
        }
        self.load_root()?;
        let mut page = self.path[usize::from(self.top())].page;
        for level in (1..=self.top()).rev() {
            let slot = self.path[usize::from(level)];
            let node = if slot.present && slot.page == page {
                &self.assembly[slot.range()]
            } else if let Some(place) = self.cache.find(page, level) {
                self.cache.bytes(place)
            } else {
                self.descend(Seek::At(key), 1)?;
                return Ok(self.child(0));
            };
            let index = self.cells.inner_find(node, key, false);
            if self.cells.inner_path(node) != Some(index) {
                page = self.cells.inner_child(node, index, u32::from(self.format.page_bits));
            }
        }
        Ok(page)
    }

    /// Finds the leaf that the path leads to; with `keep` a leaf that had to be read goes to the cache.
    pub(crate) fn leaf_place(&mut self, keep: bool) -> Result<Place, TreeError<P::Error>> {
        let page = self.child(0);
        self.leaf_in(page, keep)
    }

    /// The same of the leaf in a page.
    pub(crate) fn leaf_in(&mut self, page: u32, keep: bool) -> Result<Place, TreeError<P::Error>> {
        let slot = self.path[0];
        if slot.present && slot.page == page {
            return Ok(Place::Assembly(slot.range()));
        }
        if self.reading.page != Some(page) {
            if let Some(place) = self.cache.find(page, 0) {
                return Ok(Place::Cached(place));
            }
            let place = self.read_node(page, 0)?;
            // Most leaves are not looked up again soon. Where there is no room for all, one that is gets in at its fourth miss or so,
            // and the others do not cost a copy each. One that was read just now, before a few others, is being worked on.
            let is_back = !keep && self.reading.missed.contains(&page);
            self.reading.misses = self.reading.misses.wrapping_add(1);
            self.reading.missed[usize::from(self.reading.misses) % MISSED] = page;
            let leaf = &self.reading.buf[place.clone()];
            match keep {
                true if !self.reading.misses.is_multiple_of(4) => self.cache.insert_leaf_beside(page, leaf),
                // Records of files are looked up again and again, so that it saves reads to close a gap for them.
                true if !self.pages.has_bare() => self.cache.insert_looked_up(page, leaf),
                true => self.cache.insert(page, 0, leaf),
                false if is_back => self.cache.insert(page, 0, leaf),
                _ => self.cache.insert_leaf_beside(page, leaf),
            }
            return Ok(Place::Reading(place));
        }
        Ok(Place::Reading(self.read_node(page, 0)?))
    }

    /// Copies what counts of the leaf that the path leads to to the front of the assembly buffer, where it is changed. `None` if it
    /// does not fit before its ancestors; then all of it is in the reading buffer. Else whether there were spent entries.
    pub(crate) fn load_leaf(&mut self, page: u32) -> Result<Option<bool>, TreeError<P::Error>> {
        let slot = self.path[0];
        if slot.present && slot.page == page {
            return Ok(Some(false));
        }
        let front = self.front();
        let tail = if self.top() == 0 { self.assembly.len() } else { self.tail() };
        let cached = self.cache.find(page, 0);
        let place = if cached.is_some() { 0..0 } else { self.read_node(page, 0)? };
        let leaf = match &cached {
            Some(place) => self.cache.bytes(place.clone()),
            None => &self.reading.buf[place],
        };
        let entries = self.unspent(leaf);
        let is_whole = entries == (0..self.cells.leaf_count(leaf));
        let room = &mut self.assembly[front..tail];
        let size = if is_whole {
            room.get_mut(..leaf.len()).map(|room| {
                room.copy_from_slice(leaf);
                leaf.len()
            })
        } else {
            let count = entries.len();
            let run = LeafRun::new(Stretch::new(leaf, entries), Stretch::NONE, None);
            self.cells.leaf_encode(&run, 0..count, room)
        };
        let Some(size) = size else {
            self.read_node(page, 0)?;
            return Ok(None);
        };
        self.path[0] = Slot { page, offset: front, size, index: 0, lowest: 0, present: true };
        Ok(Some(!is_whole))
    }

    /// The entries of the path's leaf that are not spent. Only leaves that were parted have others, and only files part them.
    pub(crate) fn unspent(&self, leaf: &[u8]) -> Range<usize> {
        if !FILES {
            return 0..self.cells.leaf_count(leaf);
        }
        self.unspent_in(leaf, self.between(leaf, self.leaf_fences()))
    }

    /// The entries of a neighbour of the path's leaf, which is in the reading buffer, that are not spent.
    pub(crate) fn unspent_of_neighbour(&mut self, place: Range<usize>, right: bool) -> Range<usize> {
        if FILES {
            let fences = self.neighbour_fences(right);
            let leaf = &self.reading.buf[place];
            return self.unspent_in(leaf, self.between(leaf, fences));
        }
        0..self.cells.leaf_count(&self.reading.buf[place])
    }

    /// Those of these entries of a leaf, which are all of its keys, that are not spent.
    pub(crate) fn unspent_in(&self, leaf: &[u8], entries: Range<usize>) -> Range<usize> {
        let Range { mut start, mut end } = entries;
        if let Some(vanished) = self.pending.vanished.get() {
            // It was next to this leaf, so that all its keys are at one end.
            let gone = self.in_span(leaf, vanished);
            if gone.start <= start {
                start = start.max(gone.end);
            } else if gone.end >= end {
                end = end.min(gone.start);
            }
        }
        start..end.max(start)
    }

    /// The entries of a leaf between these fences.
    #[inline(never)]
    pub(crate) fn between(&self, leaf: &[u8], fences: LeafFences) -> Range<usize> {
        let mut key = KeyBuf::EMPTY;
        let mut lower = |fence| {
            self.fence_key(fence, &mut key);
            self.cells.leaf_find(leaf, key.as_slice()).unwrap_or_else(|index| index)
        };
        let start = fences.low.map_or(0, &mut lower);
        let end = fences.high.map_or(self.cells.leaf_count(leaf), lower);
        start..end.max(start)
    }

    /// The entries of a leaf with these keys.
    pub(crate) fn in_span(&self, leaf: &[u8], span: &Span) -> Range<usize> {
        let lower = |key: &KeyBuf| self.cells.leaf_find(leaf, key.as_slice()).unwrap_or_else(|index| index);
        let start = span.low.as_ref().map_or(0, lower);
        let end = span.high.as_ref().map_or(self.cells.leaf_count(leaf), lower);
        start..end.max(start)
    }

    /// What the keys of the path's leaf are between.
    pub(crate) fn leaf_fences(&self) -> LeafFences {
        LeafFences { low: self.find_fence(0, false), high: self.find_fence(0, true) }
    }

    /// The least separator above everything under the path's node of this level, or the greatest not above anything there.
    fn find_fence(&self, level: u8, is_above: bool) -> Option<Fence> {
        let mut level = usize::from(level);
        while level < usize::from(self.top()) {
            level += 1;
            let slot = &self.path[level];
            let index = slot.index + usize::from(is_above);
            if index > 0 && index < self.cells.inner_count(&self.assembly[slot.range()]) {
                return Some(Fence { offset: slot.offset, size: slot.size, index: index - 1 });
            }
        }
        None
    }

    pub(crate) fn fence_key(&self, fence: Fence, out: &mut KeyBuf) {
        fence.copy(self.cells, self.assembly, out);
    }

    /// The least separator above everything under the path's node of this level; `None` if there is nothing above.
    pub(crate) fn fence_above(&self, level: u8, out: &mut KeyBuf) -> Option<()> {
        self.fence(level, true, out)
    }

    /// The greatest separator not above anything under the path's node of this level; `None` if there is nothing below.
    pub(crate) fn fence_below(&self, level: u8, out: &mut KeyBuf) -> Option<()> {
        self.fence(level, false, out)
    }

    /// A key in the range of the path's node of this level: the least.
    #[inline(never)]
    pub(crate) fn low_key(&self, level: u8, out: &mut KeyBuf) {
        self.cells.minimum(out);
        let _ = self.fence_below(level, out);
    }

    #[inline(never)]
    fn fence(&self, level: u8, is_above: bool, out: &mut KeyBuf) -> Option<()> {
        self.find_fence(level, is_above).map(|fence| self.fence_key(fence, out))
    }
}
