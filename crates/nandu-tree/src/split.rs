//! Overflow: sharing with a neighbour, splitting, and what that changes in the levels above.
//!
//! Here every new leaf is programmed. Where changes wait for a sync, a part of the leaf stays in its page instead
//! ([`crate::remainder`]); this is what is left where that does not work out, and where a change is durable at once.
//!
//! Nodes that are not on the path are programmed first, each in a page of its own; the path is programmed last. The
//! half of an inner node that holds the path's child stays in the path's page, the other half leaves it: a node may
//! stand in a page above another only if it is its parent (T3).

use core::ops::Range;

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_nand::PageAddr;

use crate::descent::{LeafFences, PENDING, Slot};
use crate::pages::{Pages, Placement};
use crate::tree::Tree;
use crate::{Malformed, TreeError};
use nandu_cells::plan::{PARTS_MAX, Room, ascending_cut, choose, inner_cut, separator_at};
use nandu_cells::{Cells, InnerRun, LeafRun, RunEdit, SELF, Stretch};
use nandu_media::tree::{CellFormat, TreeBody, TreeFront};

/// Which buffer an overflowing leaf is in.
#[derive(Clone, Copy)]
enum Home {
    Assembly,
    Scratch,
    Reading,
}

/// Separators that are spliced in.
pub(crate) type Separators = [KeyBuf; PARTS_MAX - 1];

/// What takes the place of children of an inner node. The separators between them are in the tree ([`Tree::keys`]), not on the stack.
pub(crate) struct Splice {
    pub(crate) at: usize,
    pub(crate) removed: usize,
    pub(crate) count: usize,
    pub(crate) pages: [u32; PARTS_MAX],
}

impl Splice {
    /// So many children for the one here, all in the page of the path yet.
    pub(crate) fn new(at: usize, count: usize) -> Splice {
        Splice { at, removed: 1, count, pages: [SELF; PARTS_MAX] }
    }

    fn run<'a>(&'a self, node: &'a [u8], page: u32, page_bits: u32, keys: &'a Separators) -> InnerRun<'a> {
        InnerRun {
            node,
            page,
            at: self.at,
            removed: self.removed,
            pages: &self.pages[..self.count],
            separators: &keys[..self.count - 1],
            page_bits,
        }
    }

    fn path_index(&self) -> usize {
        self.at + self.pages[..self.count].iter().position(|&page| page == SELF).unwrap_or(0)
    }
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Where a leaf stands in a page of its own.
    pub(crate) fn own_front(&self) -> usize {
        TreeBody::front(self.header_size, 1, false, 0)
    }

    /// Programs the leaf in the scratch buffer in a page of its own.
    pub(crate) fn append_leaf(&mut self, size: usize) -> Result<u32, TreeError<P::Error>> {
        let end = self.scratch.len();
        write_leaf_front(self.state.height, self.format, self.header_size, self.scratch, size, end);
        let page = self.pages.append(self.scratch, PageKind::Tree, Placement::Split, false)?.0;
        self.note_append(page);
        Ok(page)
    }

    /// Programs the inner node at the front of the reading buffer in a page of its own.
    fn append_inner(&mut self, level: u8, size: usize, locator: &KeyBuf) -> Result<u32, TreeError<P::Error>> {
        let buf = &mut self.reading.buf;
        let at = buf.len() - size;
        buf.copy_within(..size, at);
        let front = TreeFront {
            height: self.state.height.max(level + 2),
            lowest: level,
            format: self.format,
            records: 0,
            has_values: false,
            journal: None,
            table: None,
            has_sections: false,
            locator: locator.as_slice(),
            sizes: &[size as u16],
        };
        let end = front.write(buf, self.header_size);
        buf[end..at].fill(0xFF);
        let page = self.pages.append(buf, PageKind::Tree, Placement::Split, false)?.0;
        self.note_append(page);
        Ok(page)
    }

    fn note_append(&mut self, page: u32) {
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        self.journal.append(page);
        self.pending.appended += 1;
    }

    /// Ascending keys: the full leaf stays where it is, and a new one begins with this entry.
    pub(crate) fn start_leaf(&mut self, edit: RunEdit<'_>) -> Result<(), TreeError<P::Error>> {
        self.stats.starts += 1;
        let slot = self.path[0];
        let mut splice = Splice::new(self.path[1].index, 2);
        let [separator, last] = &mut self.keys;
        self.cells.leaf_key(&self.assembly[slot.range()], edit.at - 1, last);
        separator.set(edit.key);
        self.cells.separator(last.as_slice(), separator);
        let own = self.own_front();
        let mut full = slot.page;
        if self.pending.dirty || self.pending.is_moved {
            // In a batch the leaf is not on flash as it is now; and what is moved may not stay.
            self.note_rewritten();
            self.retire_page(slot.page);
            self.cache.drop_node(slot.page, 0);
            self.scratch[own..own + slot.size].copy_from_slice(&self.assembly[slot.range()]);
            full = self.append_leaf(slot.size)?;
        }
        let run = LeafRun::new(Stretch::NONE, Stretch::NONE, Some(RunEdit { at: 0, ..edit }));
        let Some(size) = self.cells.leaf_encode(&run, 0..1, &mut self.scratch[own..]) else {
            return Self::corrupt(slot.page, Malformed::PathTooLarge);
        };
        splice.pages[0] = full;
        self.replace_leaves(&mut splice, size)
    }

    /// The change does not fit the leaf of the path, which is in the assembly buffer or else in the reading buffer.
    pub(crate) fn overflow(
        &mut self,
        (key, value): (&[u8], &[u8]),
        in_assembly: bool,
    ) -> Result<(), TreeError<P::Error>> {
        if self.may_part() {
            self.pending.overflowed = true;
            return Ok(());
        }
        let sibling = self.sibling();
        let edit_of = |found: Result<usize, usize>| {
            let (Ok(at) | Err(at)) = found;
            RunEdit { at, replaces: found.is_ok(), key, value }
        };
        if in_assembly {
            let leaf = self.path[0].range();
            let edit = edit_of(self.cells.leaf_find(&self.assembly[leaf.clone()], key));
            return self.divide(edit, Home::Assembly, leaf, sibling).map(|_| ());
        }
        // The neighbour needs the reading buffer.
        let size = self.copy_unspent(self.child(0))?;
        let leaf = self.own_front()..self.own_front() + size;
        let edit = edit_of(self.cells.leaf_find(&self.scratch[leaf.clone()], key));
        if sibling.is_none() || !self.divide(edit, Home::Scratch, leaf.clone(), sibling)? {
            self.reading.forget();
            self.reading.buf[leaf.clone()].copy_from_slice(&self.scratch[leaf.clone()]);
            self.divide(edit, Home::Reading, leaf, None)?;
        }
        Ok(())
    }

    /// Divides the overflowing leaf, with its neighbour if that works out, and puts what it becomes into the levels
    /// above. Returns false, with nothing changed, if a leaf in the scratch buffer cannot share.
    fn divide(
        &mut self,
        edit: RunEdit<'_>,
        home: Home,
        leaf: Range<usize>,
        sibling: Option<(u32, bool)>,
    ) -> Result<bool, TreeError<P::Error>> {
        let child = self.child(0);
        let neighbour = match sibling {
            Some((page, _)) => self.read_neighbour(page)?,
            None => 0..0,
        };
        let own = self.own_front();
        let tail = self.tail();
        let room = Room {
            path: tail.saturating_sub(self.front()),
            // A leaf in a page of its own may become the root, whose page has a longer front.
            own: self.assembly.len() - TreeBody::front(self.header_size, 1, true, 0),
        };
        let entries = match sibling {
            Some((_, right)) => {
                let leaf = neighbour.clone();
                self.unspent_of_neighbour(leaf, right)
            }
            None => 0..0,
        };
        let neighbour = Stretch::new(&self.reading.buf[neighbour], entries);
        // New leaves are put together in the buffer that holds no old one. In the assembly buffer the path's inner
        // nodes stay where they are, behind.
        let (leaf, out, out_end) = match home {
            Home::Assembly => (&self.assembly[leaf], &mut *self.scratch, room.own + own),
            Home::Scratch => (&self.scratch[leaf], &mut *self.assembly, tail),
            Home::Reading => (&self.reading.buf[leaf], &mut *self.scratch, room.own + own),
        };
        let leaf = Stretch::whole(self.cells, leaf);
        let (run, plan) = choose(self.cells, leaf, neighbour, edit, sibling.map(|(_, right)| right), room);
        if !plan.is_shared && matches!(home, Home::Scratch) {
            return Ok(false);
        }
        let mut splice = Splice::new(self.path[1].index, plan.parts);
        for part in 1..plan.parts {
            separator_at(self.cells, &run, plan.cuts[part], &mut self.keys[part - 1]);
        }
        let mut size = 0;
        // The part of the path is encoded last, since it stays in the buffer.
        let others = (0..plan.parts).filter(|&part| part != plan.path);
        for part in others.chain([plan.path]) {
            let encoded = self.cells.leaf_encode(&run, plan.part(part), &mut out[own..out_end]);
            size = encoded.ok_or(TreeError::Corrupt { page: PageAddr(child), why: Malformed::PathTooLarge })?;
            if part != plan.path {
                write_leaf_front(self.state.height, self.format, self.header_size, out, size, out_end);
                let page = self.pages.append(out, PageKind::Tree, Placement::Split, false)?.0;
                assert!(page < self.page_count, "the medium keeps to its own size");
                self.journal.append(page);
                self.pending.appended += 1;
                splice.pages[part] = page;
            }
        }
        if matches!(home, Home::Scratch) {
            self.scratch[own..own + size].copy_from_slice(&self.assembly[own..own + size]);
        }
        match (plan.is_shared, plan.parts) {
            (true, 2) => self.stats.shares += 1,
            (true, _) => self.stats.triples += 1,
            (false, _) => self.stats.splits += 1,
        }
        self.note_rewritten();
        self.retire_page(child);
        self.cache.drop_node(child, 0);
        if let (true, Some((page, right))) = (plan.is_shared, sibling) {
            self.note_rewritten_with(right);
            self.retire_page(page);
            self.cache.drop_node(page, 0);
            splice.at -= usize::from(!right);
            splice.removed = 2;
        }
        self.replace_leaves(&mut splice, size)?;
        Ok(true)
    }

    /// What the keys of the neighbour of the path's leaf on this side are between.
    pub(crate) fn neighbour_fences(&mut self, right: bool) -> LeafFences {
        let index = self.path[1].index;
        self.path[1].index = if right { index + 1 } else { index - 1 };
        let fences = self.leaf_fences();
        self.path[1].index = index;
        fences
    }

    /// The neighbour under the same parent that an overflowing leaf shares with: right, or left of the last.
    pub(crate) fn sibling(&self) -> Option<(u32, bool)> {
        if self.state.height == 1 {
            return None;
        }
        let slot = self.path[1];
        let node = &self.assembly[slot.range()];
        let right = slot.index + 1 < self.cells.inner_count(node);
        self.neighbour(right).map(|page| (page, right))
    }

    /// The neighbour on this side under the same parent, if there is one; the tree has inner nodes.
    pub(crate) fn neighbour(&self, right: bool) -> Option<u32> {
        let slot = self.path[1];
        let node = &self.assembly[slot.range()];
        let index = if right { slot.index + 1 } else { slot.index.checked_sub(1)? };
        if index >= self.cells.inner_count(node) {
            return None;
        }
        match self.cells.inner_path(node) == Some(index) {
            true => Some(slot.page),
            false => Some(self.cells.inner_child(node, index, u32::from(self.format.page_bits))),
        }
    }

    /// New leaves take the place of old ones; the one on the path is in the scratch buffer, `size` bytes.
    pub(crate) fn replace_leaves(&mut self, splice: &mut Splice, size: usize) -> Result<(), TreeError<P::Error>> {
        self.path[0] = Slot { present: false, ..Slot::ABSENT };
        self.splice(splice)?;
        self.path[0] = Slot { present: true, ..Slot::ABSENT };
        self.pending.dirty = true;
        self.pending.lowest = 0;
        self.pending.staged = (!self.place_leaf(size)).then_some(size);
        Ok(())
    }

    /// Carries new children up from level 1 until a node takes them without being split.
    fn splice(&mut self, splice: &mut Splice) -> Result<(), TreeError<P::Error>> {
        self.reading.forget();
        let page_bits = u32::from(self.format.page_bits);
        let mut level = 1_u8;
        loop {
            if level == self.state.height {
                return self.grow(splice);
            }
            let slot = self.path[level as usize];
            let run = splice.run(&self.assembly[slot.range()], slot.page, page_bits, &self.keys);
            let count = run.count(self.cells);
            let size = self.cells.inner_size(&run, 0..count);
            if !self.is_oversize(level, count, size) {
                let Some(size) = self.cells.inner_encode(&run, 0..count, self.reading.buf) else {
                    return Err(TreeError::TooHigh);
                };
                return self.replace_inner(level, size, splice.path_index());
            }
            self.split_inner(level, count, splice)?;
            level += 1;
        }
    }

    /// Splits the path's node of this level, with what is spliced in; its two halves are what is spliced in above.
    #[cfg_attr(feature = "files", inline(never))]
    fn split_inner(&mut self, level: u8, count: usize, splice: &mut Splice) -> Result<(), TreeError<P::Error>> {
        self.stats.inner_splits += 1;
        let slot = self.path[level as usize];
        let page_bits = u32::from(self.format.page_bits);
        let path_index = splice.path_index();
        let run = splice.run(&self.assembly[slot.range()], slot.page, page_bits, &self.keys);
        // Ascending keys leave full nodes behind at every level.
        let ascends = self.pending.at_end && path_index + 1 == count;
        let mut key = KeyBuf::EMPTY;
        let cut =
            if ascends { ascending_cut(self.cells, &run, &mut key) } else { inner_cut(self.cells, &run, &mut key) };
        let on_right = path_index >= cut;
        let (mine, other) = if on_right { (cut..count, 0..cut) } else { (0..cut, cut..count) };
        let Some(size) = self.cells.inner_encode(&run, other, self.reading.buf) else {
            return Err(TreeError::TooHigh);
        };
        // The key that locates the other half, and then the one that goes up.
        if on_right {
            self.low_key(level, &mut key);
        } else {
            run.separator(self.cells, cut - 1, &mut key);
        }
        let page = self.append_inner(level, size, &key)?;
        let run = splice.run(&self.assembly[slot.range()], slot.page, page_bits, &self.keys);
        let Some(size) = self.cells.inner_encode(&run, mine.clone(), self.reading.buf) else {
            return Err(TreeError::TooHigh);
        };
        run.separator(self.cells, cut - 1, &mut key);
        self.replace_inner(level, size, path_index - mine.start)?;
        self.keys[0] = key;
        splice.pages = if on_right { [page, SELF, 0] } else { [SELF, page, 0] };
        splice.at = self.path.get(level as usize + 1).map_or(0, |slot| slot.index);
        (splice.removed, splice.count) = (1, 2);
        Ok(())
    }

    pub(crate) fn is_oversize(&self, level: u8, count: usize, size: usize) -> bool {
        let height = self.state.height;
        let root = self.path[self.top() as usize];
        let root_children = self.cells.inner_count(&self.assembly[root.range()]);
        self.limits.must_split(level, height, count, size)
            || self.limits.should_split(level, height, count, size, root_children)
    }

    /// The old root was split, or was a leaf that was: a new one above its halves.
    #[cfg_attr(feature = "files", inline(never))]
    fn grow(&mut self, splice: &Splice) -> Result<(), TreeError<P::Error>> {
        let level = self.state.height as usize;
        if level == self.limits.height_max() {
            return Err(TreeError::TooHigh);
        }
        let run =
            InnerRun { at: 0, removed: 0, ..splice.run(&[], PENDING, u32::from(self.format.page_bits), &self.keys) };
        let count = run.count(self.cells);
        let size = self.cells.inner_encode(&run, 0..count, self.reading.buf).ok_or(TreeError::TooHigh)?;
        let tail = self.tail();
        let end = self.assembly.len();
        self.state.height += 1;
        if tail < self.front() + size {
            return Err(TreeError::TooHigh);
        }
        self.assembly.copy_within(tail..end, tail - size);
        for slot in &mut self.path[1..level] {
            slot.offset -= size;
        }
        let offset = end - size;
        self.assembly[offset..].copy_from_slice(&self.reading.buf[..size]);
        let index = splice.path_index() - splice.at;
        self.path[level] = Slot { page: PENDING, offset, size, index, lowest: u8::MAX, present: true };
        Ok(())
    }

    /// The inner node at the front of the reading buffer takes the place of the path's node of this level. The levels
    /// below that are present make room.
    pub(crate) fn replace_inner(&mut self, level: u8, size: usize, index: usize) -> Result<(), TreeError<P::Error>> {
        self.retire_inner(level);
        let slot = self.path[level as usize];
        let end = slot.offset + slot.size;
        let below = self.path[1..level as usize].iter().find(|slot| slot.present);
        let first = below.map_or(slot.offset, |below| below.offset);
        let offset = end.checked_sub(size).ok_or(TreeError::TooHigh)?;
        let first_after = (first + offset).checked_sub(slot.offset).ok_or(TreeError::TooHigh)?;
        if first_after < self.front() {
            return Err(TreeError::TooHigh);
        }
        self.assembly.copy_within(first..slot.offset, first_after);
        for below in self.path[1..level as usize].iter_mut().filter(|slot| slot.present) {
            below.offset = below.offset + offset - slot.offset;
        }
        self.assembly[offset..end].copy_from_slice(&self.reading.buf[..size]);
        self.path[level as usize] = Slot { offset, size, index, ..self.path[level as usize] };
        Ok(())
    }

    /// The path's node of this level is replaced: it leaves the cache, and its page is dead if it was the lowest there.
    pub(crate) fn retire_inner(&mut self, level: u8) {
        let slot = self.path[level as usize];
        if slot.page == PENDING {
            return;
        }
        if self.cells.inner_path(&self.assembly[slot.range()]).is_none() {
            self.journal.supersede(self.with_doubt(slot.page));
        }
        self.cache.drop_node(slot.page, level);
        self.path[level as usize].page = PENDING;
    }
}

/// Makes the leaf behind the front of a page a page of its own; what is behind the leaf is filled up to `end`.
fn write_leaf_front(height: u8, format: CellFormat, header_size: usize, buf: &mut [u8], size: usize, end: usize) {
    // A page of its own never has the root, not even the page of a root that is being split.
    let height = height.max(2);
    let front = TreeFront {
        height,
        lowest: 0,
        format,
        records: 0,
        has_values: false,
        journal: None,
        table: None,
        has_sections: false,
        locator: &[],
        sizes: &[size as u16],
    };
    let leaf_end = front.write(buf, header_size) + size;
    buf[leaf_end..end].fill(0xFF);
}
