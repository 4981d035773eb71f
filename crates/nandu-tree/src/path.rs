//! The path that is worked on: a leaf and its ancestors, up to the root, as they are programmed into one page.
//!
//! The inner nodes stand at the end of the page buffer, the root last, just as they are on flash; so the root is never read, and the next operation begins where the last one ended.
//! A leaf that is changed stands at the front. One that does not fit before its ancestors stands in the side buffer, *staged*, and gets a page of its own when the path is programmed, unless it fits by then.
//! Nothing here reads or programs. What an operation replaces is noted, and told to the log right before the commit.

use core::ops::Range;

use nandu_cells::plan::{Plan, Room, choose, separate};
use nandu_cells::{Cells, LeafRun, RunEdit, Stretch};
use nandu_index::KeyBuf;
use nandu_media::path::{PathBody, PathFront, flag_sections};
use nandu_media::tree::{HEIGHT_MAX, Malformed};

use crate::options::Separators;
use crate::pages::{PageList, REPLACED_MAX};
use crate::shape::{Counts, TreeShape, TreeState};
use crate::slots::{Ascent, Draft, Growth, PENDING, Put, STEPS, STEPS_MAX, Seek, Slot};
use crate::splice::Splice;
use crate::stats::Stats;

/// One part of so many stays free in a leaf that is joined, so that the next put does not split it again.
const SPARED: usize = 32;

/// The path that is worked on.
pub(crate) struct Path<'m, C> {
    shape: TreeShape<C>,
    page: &'m mut [u8],
    side: &'m mut [u8],
    slots: [Slot; HEIGHT_MAX],
    state: TreeState,
    draft: Draft,
    ascent: Ascent,
    replaced: PageList<REPLACED_MAX>,
    /// The separators that are spliced in; between two changes the first is the key of the entry that is lent.
    keys: &'m mut Separators,
    stats: Stats,
    /// What is free in the page that was composed.
    gap: Range<usize>,
}

impl<'m, C: Cells> Path<'m, C> {
    pub(crate) fn new(shape: TreeShape<C>, [page, side]: [&'m mut [u8]; 2], keys: &'m mut Separators) -> Self {
        debug_assert!(page.len() == shape.page_size() && side.len() == page.len(), "the buffers are pages");
        Path {
            shape,
            page,
            side,
            slots: [Slot::ABSENT; HEIGHT_MAX],
            state: TreeState::NONE,
            draft: Draft::NONE,
            ascent: Ascent::NONE,
            replaced: PageList::EMPTY,
            keys,
            stats: Stats::default(),
            gap: 0..0,
        }
    }

    pub(crate) fn shape(&self) -> &TreeShape<C> {
        &self.shape
    }

    /// The volume is one of this shape.
    pub(crate) fn reshape(&mut self, shape: &TreeShape<C>) {
        debug_assert!(shape.page_size() == self.page.len() && !self.holds_root(), "nothing was read yet");
        self.shape = *shape;
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }

    /// The tree that the path belongs to.
    pub(crate) fn state(&self) -> TreeState {
        self.state
    }

    /// Goes on with this tree. What stands in the buffers is forgotten.
    pub(crate) fn begin(&mut self, state: TreeState) {
        (self.state, self.slots) = (state, [Slot::ABSENT; HEIGHT_MAX]);
        (self.draft, self.ascent) = (Draft::NONE, Ascent::NONE);
        self.replaced.clear();
    }

    /// Becomes the empty tree, to be programmed. What was the root is replaced by the caller.
    pub(crate) fn empty(&mut self) {
        self.state = TreeState { root: self.state.root, ..TreeState::NONE };
        let (front, nothing) = (self.front(), LeafRun::new(Stretch::NONE, Stretch::NONE, None));
        let size = self.shape.cells().leaf_encode(&nothing, 0..0, &mut self.page[front..]).unwrap_or(0);
        debug_assert!(size > 0, "an empty leaf has a front");
        (self.slots, self.draft) = ([Slot::ABSENT; HEIGHT_MAX], Draft { is_dirty: true, ..Draft::NONE });
        self.slots[0] = Slot { offset: front, size, is_present: true, ..Slot::ABSENT };
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.draft.is_dirty
    }

    /// Whether the leaf does not fit beside its ancestors yet.
    pub(crate) fn is_staged(&self) -> bool {
        self.draft.staged.is_some()
    }

    /// Keeps a key that is lent, until something is changed.
    pub(crate) fn lend(&mut self, key: &[u8]) {
        self.keys[0].set(key);
    }

    /// The separators that are spliced in, or the key that is lent.
    pub(crate) fn separators(&self) -> &[KeyBuf] {
        &self.keys[..]
    }

    pub(crate) fn is_ascending(&self) -> bool {
        self.ascent.at_end
    }

    /// Bytes for a leaf beside its ancestors.
    pub(crate) fn room(&self) -> usize {
        self.tail().saturating_sub(self.front())
    }

    /// The tree has as many entries, and pages of values, as are said here, whatever its leaves have: changes that wait count.
    pub(crate) fn count(&mut self, counts: Counts) {
        self.state.counts = counts;
    }

    /// Pages that are replaced by what was programmed since they were told last, and by what stands in the buffers.
    pub(crate) fn replaced(&self) -> &PageList<REPLACED_MAX> {
        &self.replaced
    }

    /// The leaf that is here, to be patched.
    pub(crate) fn held_leaf_mut(&mut self) -> &mut [u8] {
        match self.draft.staged {
            Some(size) => &mut self.side[self.shape.own_front()..][..size],
            None => &mut self.page[self.slots[0].range()],
        }
    }

    pub(crate) fn replaced_mut(&mut self) -> &mut PageList<REPLACED_MAX> {
        &mut self.replaced
    }

    /// Notes that a page is replaced once what follows is durable.
    pub(crate) fn replace(&mut self, page: u32) {
        if page != PENDING {
            self.replaced.note(page);
        }
    }

    pub(crate) fn top(&self) -> u8 {
        self.state.height - 1
    }

    /// Where the leaf of the path stands.
    fn front(&self) -> usize {
        self.shape.front(self.state.height)
    }

    /// Where the inner nodes of the path begin, level 1 being present.
    fn tail(&self) -> usize {
        if self.top() > 0 { self.slots[1].offset } else { self.page.len() }
    }

    fn slot(&self, level: u8) -> &Slot {
        &self.slots[usize::from(level)]
    }

    /// An inner node of the path.
    pub(crate) fn inner(&self, level: u8) -> &[u8] {
        debug_assert!(level > 0 && self.slot(level).is_present, "an inner node that is here");
        &self.page[self.slot(level).range()]
    }

    /// Where the path's node of this level is on flash, or [`PENDING`].
    pub(crate) fn page_of(&self, level: u8) -> u32 {
        self.slot(level).page
    }

    /// The child that the path goes on to from its node of this level.
    pub(crate) fn index(&self, level: u8) -> usize {
        self.slot(level).index
    }

    /// Whether the node of this level in that page is here.
    pub(crate) fn holds(&self, level: u8, page: u32) -> bool {
        self.slot(level).is_present && self.slot(level).page == page
    }

    /// Whether the root is here.
    pub(crate) fn holds_root(&self) -> bool {
        self.holds(self.top(), self.state.root) || self.holds(self.top(), PENDING)
    }

    /// Page of the node of this level that the path leads to; for the highest level the root's.
    pub(crate) fn child(&self, level: u8) -> u32 {
        if level == self.top() {
            return self.slot(level).page;
        }
        self.child_at(level + 1, self.index(level + 1))
    }

    /// Page of a child of the path's node of this level.
    pub(crate) fn child_at(&self, level: u8, index: usize) -> u32 {
        let node = self.inner(level);
        debug_assert!(index < self.shape.cells().inner_count(node), "a child of the node");
        if self.shape.cells().inner_path(node) == Some(index) {
            return self.slot(level).page;
        }
        self.shape.cells().inner_child(node, index, self.shape.page_bits())
    }

    /// Children of the path's node of this level.
    pub(crate) fn child_count(&self, level: u8) -> usize {
        self.shape.cells().inner_count(self.inner(level))
    }

    /// Goes on from the node of this level to the child that is sought.
    pub(crate) fn seek(&mut self, level: u8, seek: Seek<'_>) {
        let (cells, node) = (self.shape.cells(), self.inner(level));
        let index = match seek {
            Seek::At(key) => cells.inner_find(node, key, false),
            Seek::Before(key) => cells.inner_find(node, key, true),
            Seek::Last => cells.inner_count(node) - 1,
        };
        self.slots[usize::from(level)].index = index;
    }

    /// Whether the changed path is the path of this key, so that its leaf can be changed further.
    pub(crate) fn is_on(&self, key: &[u8]) -> bool {
        let find = |level| self.shape.cells().inner_find(self.inner(level), key, false);
        self.draft.lowest == 0 && (1..self.state.height).all(|level| find(level) == self.slot(level).index)
    }

    /// The leaf of the path, if it is here.
    pub(crate) fn leaf(&self) -> Option<&[u8]> {
        (self.slots[0].is_present && self.slots[0].page == self.child(0)).then(|| self.held_leaf())
    }

    /// The leaf that is here, whatever the inner nodes lead to.
    pub(crate) fn held_leaf(&self) -> &[u8] {
        debug_assert!(self.slots[0].is_present, "a leaf is here");
        debug_assert!(self.draft.staged.is_none_or(|size| size <= self.side.len()), "and it fits its buffer");
        match self.draft.staged {
            Some(size) => &self.side[self.shape.own_front()..][..size],
            None => &self.page[self.slots[0].range()],
        }
    }

    /// The node of this level, its old page, and its bytes as they were programmed.
    pub(crate) fn programmed_node(&self, level: u8) -> (u32, &[u8]) {
        let slot = self.slot(level);
        (slot.page, &self.page[slot.range()])
    }

    /// Copies an inner node in front of the one above it; what was below is gone.
    ///
    /// # Errors
    ///
    /// [`Malformed::PathTooLarge`]: the path does not fit a page.
    pub(crate) fn take_inner(&mut self, level: u8, page: u32, node: &[u8]) -> Result<(), Malformed> {
        debug_assert!(level > 0 && !self.draft.is_dirty, "what is not programmed is not overwritten");
        let end = if level == self.top() { self.page.len() } else { self.slot(level + 1).offset };
        let offset = end.checked_sub(node.len()).filter(|&offset| offset >= self.front());
        let offset = offset.ok_or(Malformed::PathTooLarge)?;
        self.page[offset..end].copy_from_slice(node);
        for below in &mut self.slots[1..usize::from(level)] {
            below.is_present = false;
        }
        let leaf = &mut self.slots[0];
        leaf.is_present &= self.draft.staged.is_none() && leaf.offset + leaf.size <= offset;
        self.draft.staged = None;
        self.slots[usize::from(level)] = Slot { page, offset, size: node.len(), index: 0, is_present: true };
        debug_assert!(self.holds(level, page), "the node is here");
        Ok(())
    }

    /// Copies the leaf that the path leads to to where it is changed: before its ancestors, or to the side buffer if it does not fit there.
    pub(crate) fn take_leaf(&mut self, page: u32, leaf: &[u8]) -> Result<(), Malformed> {
        debug_assert!(!self.draft.is_dirty, "what is not programmed is not overwritten");
        let (offset, size, tail) = (self.front(), leaf.len(), self.tail());
        self.draft.staged = None;
        match self.page[..tail].get_mut(offset..offset + size) {
            Some(room) => room.copy_from_slice(leaf),
            None => {
                let room = self.side.get_mut(self.shape.own_front()..).and_then(|side| side.get_mut(..size));
                room.ok_or(Malformed::NodeSizes)?.copy_from_slice(leaf);
                self.draft.staged = Some(size);
            }
        }
        self.slots[0] = Slot { page, offset, size, index: 0, is_present: true };
        Ok(())
    }

    /// The least separator above all under the path's node of this level, or the greatest not above any of it. Returns whether there is one.
    pub(crate) fn fence(&self, level: u8, is_above: bool, out: &mut KeyBuf) -> bool {
        for level in level + 1..self.state.height {
            let (slot, node) = (self.slot(level), self.inner(level));
            let index = slot.index + usize::from(is_above);
            if index > 0 && index < self.shape.cells().inner_count(node) {
                self.shape.cells().inner_separator(node, index - 1, out);
                return true;
            }
        }
        false
    }

    /// A key in the range of the path's node of this level: the least.
    pub(crate) fn low_key(&self, level: u8, out: &mut KeyBuf) {
        if !self.fence(level, false, out) {
            self.shape.cells().minimum(out);
        }
    }

    /// The neighbour of the leaf on this side under the same parent, if there is one.
    pub(crate) fn neighbour(&self, right: bool) -> Option<u32> {
        if self.top() == 0 {
            return None;
        }
        let index = self.slots[1].index;
        let index = if right { index + 1 } else { index.checked_sub(1)? };
        (index < self.child_count(1)).then(|| self.child_at(1, index))
    }

    /// Puts an entry into the leaf that is here, if it is to go there. Returns whether its key was there. Where a leaf that is divided would grow beyond `ascending_max` bytes, ascending keys leave it behind.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8], (growth, ascending_max): (Growth, usize)) -> (Put, bool) {
        let cells = self.shape.cells();
        let Some(leaf) = self.leaf() else { return (Put::Overflows, false) };
        let at = cells.leaf_find(leaf, key);
        let existed = at.is_ok();
        if let Some(size) = self.draft.staged {
            self.ascent.at_end = false;
            let own = self.shape.own_front();
            let room = &mut self.side[own..own + self.shape.own_room()];
            let fits = if growth != Growth::Own { None } else { cells.leaf_put(room, size, at, key, value) };
            let Some(size) = fits else { return (Put::Overflows, existed) };
            self.draft = Draft { is_dirty: true, staged: Some(size), ..self.draft };
            self.state.counts.records += self.shape.counted(!existed, key);
            return (Put::Fits, existed);
        }
        let (Ok(index) | Err(index)) = at;
        let (slot, tail) = (self.slots[0], self.tail());
        let count = cells.leaf_count(leaf);
        let follows = self.ascent.at_end && (self.draft.is_dirty || self.ascent.page == Some(slot.page));
        self.ascent.at_end = !existed && index == count;
        let may_start = self.ascent.at_end && count > 0 && growth != Growth::Own;
        let is_last = |level| self.slot(level).index + 1 == self.child_count(level);
        let ascends = may_start && (follows || (1..self.state.height).all(is_last));
        if ascends && slot.size + cells.entry_size(key, value) > ascending_max {
            return (Put::Starts, existed);
        }
        let kept = if growth == Growth::Early { self.shape.list_room() } else { 0 };
        let tail = tail.saturating_sub(kept).max(slot.offset + slot.size);
        let buf = &mut self.page[slot.offset..tail];
        let size = match cells.leaf_put(buf, slot.size, at, key, value) {
            Some(size) => size,
            None => {
                let leaf = Stretch::whole(cells, &buf[..slot.size]);
                let edit = RunEdit { at: index, replaces: existed, key, value };
                let run = LeafRun::new(leaf, Stretch::NONE, Some(edit));
                let room = buf.len();
                let Some(size) = cells.leaf_encode(&run, 0..run.count(), &mut self.side[..room]) else {
                    return (if ascends { Put::Starts } else { Put::Overflows }, existed);
                };
                buf[..size].copy_from_slice(&self.side[..size]);
                size
            }
        };
        self.slots[0].size = size;
        self.draft.is_dirty = true;
        self.state.counts.records += self.shape.counted(!existed, key);
        debug_assert!(slot.offset + size <= tail, "the leaf stands before its ancestors");
        (Put::Fits, existed)
    }

    /// Removes an entry of the leaf that is here, by its key. Returns whether it was there, and whether the leaf vanishes.
    pub(crate) fn remove(&mut self, key: &[u8]) -> (bool, bool) {
        let cells = self.shape.cells();
        let Some(Ok(index)) = self.leaf().map(|leaf| cells.leaf_find(leaf, key)) else { return (false, false) };
        let slot = self.slots[0];
        let count = match self.draft.staged {
            Some(size) => {
                let leaf = &mut self.side[self.shape.own_front()..];
                let after = cells.leaf_remove(leaf, size, index);
                self.draft.staged = Some(after);
                cells.leaf_count(leaf)
            }
            None => {
                let leaf = &mut self.page[slot.offset..];
                let after = cells.leaf_remove(leaf, slot.size, index);
                self.slots[0].size = after;
                let (count, room) = (cells.leaf_count(leaf), self.room().max(1));
                let steps = |size: usize| (size * STEPS).div_ceil(room);
                self.draft.is_sparse |= steps(after) < steps(slot.size) && steps(after) <= STEPS_MAX;
                count
            }
        };
        // A count that a hostile page made too small is reported by `verify`, and does not end the program.
        self.state.counts.records = self.state.counts.records.saturating_sub(self.shape.counted(true, key));
        (self.ascent.at_end, self.draft.is_dirty) = (false, true);
        (true, count == 0 && self.top() > 0)
    }

    /// Puts the path down to this level into the buffers as it is, to be programmed again.
    pub(crate) fn touch(&mut self, level: u8) {
        debug_assert!(level > 0 || self.leaf().is_some(), "the lowest node is here");
        (self.draft.is_dirty, self.draft.lowest, self.draft.is_sparse) = (true, level, false);
        self.ascent.at_end = false;
    }

    /// The leaf to the side buffer, from where it is divided.
    pub(crate) fn stage_leaf(&mut self) {
        if self.draft.staged.is_none() {
            let slot = self.slots[0];
            debug_assert!(slot.is_present, "there is a leaf");
            self.side[self.shape.own_front()..][..slot.size].copy_from_slice(&self.page[slot.range()]);
            self.draft.staged = Some(slot.size);
        }
    }

    /// What was staged has its own page; the leaf before its ancestors is as it was.
    pub(crate) fn unstage(&mut self) {
        self.draft.staged = None;
    }

    fn staged(&self) -> &[u8] {
        &self.side[self.shape.own_front()..][..self.draft.staged.unwrap_or(0)]
    }

    /// The leaf in the side buffer, as a page of its own.
    pub(crate) fn seal_staged(&mut self) -> &mut [u8] {
        let (size, end) = (self.draft.staged.unwrap_or(0), self.side.len());
        self.shape.seal_leaf(self.state.height, self.side, size, end);
        self.side
    }

    fn edit_of<'a>(&self, key: &'a [u8], value: &'a [u8]) -> RunEdit<'a> {
        let at = self.shape.cells().leaf_find(self.staged(), key);
        let (Ok(index) | Err(index)) = at;
        RunEdit { at: index, replaces: at.is_ok(), key, value }
    }

    /// How the staged leaf is divided, with a neighbour that stands on this side of it if that works out. Where the parts end is noted. Off the stack when they are programmed.
    #[inline(never)]
    pub(crate) fn plan(&mut self, (key, value): (&[u8], &[u8]), neighbour: &[u8], right: Option<bool>) -> Plan {
        let cells = self.shape.cells();
        let room = Room { path: self.room().saturating_sub(self.shape.list_room()), own: self.shape.own_room() };
        let edit = self.edit_of(key, value);
        let leaf = Stretch::whole(cells, &self.side[self.shape.own_front()..][..self.draft.staged.unwrap_or(0)]);
        let beside = if right.is_some() { Stretch::whole(cells, neighbour) } else { Stretch::NONE };
        let (run, plan) = choose(cells, (leaf, beside, edit), right, room, self.keys);
        separate(cells, &run, &plan, self.keys);
        debug_assert!(plan.path < plan.parts && plan.cuts[plan.parts] == run.count(), "the plan is of the run");
        plan
    }

    /// Encodes a part of the staged leaf and a neighbour behind the front of a page of its own, in the page buffer, and returns its size.
    pub(crate) fn encode_shared(
        &mut self,
        (key, value): (&[u8], &[u8]),
        neighbour: &[u8],
        right: bool,
        part: Range<usize>,
    ) -> Option<usize> {
        let cells = self.shape.cells();
        let edit = self.edit_of(key, value);
        let (own, tail) = (self.shape.own_front(), self.tail());
        let leaf = Stretch::whole(cells, &self.side[own..][..self.draft.staged.unwrap_or(0)]);
        let beside = Stretch::whole(cells, neighbour);
        let (first, second) = if right { (leaf, beside) } else { (beside, leaf) };
        let at = edit.at + if right { 0 } else { beside.count() };
        let run = LeafRun::new(first, second, Some(RunEdit { at, ..edit }));
        cells.leaf_encode(&run, part, &mut self.page[own..tail])
    }

    /// Encodes a part of the staged leaf behind the front of a page of its own, in this buffer, and returns its size.
    pub(crate) fn encode_alone(
        &self,
        (key, value): (&[u8], &[u8]),
        part: Range<usize>,
        out: &mut [u8],
    ) -> Option<usize> {
        let cells = self.shape.cells();
        let run = LeafRun::new(Stretch::whole(cells, self.staged()), Stretch::NONE, Some(self.edit_of(key, value)));
        cells.leaf_encode(&run, part, &mut out[self.shape.own_front()..][..self.shape.own_room()])
    }

    /// The page buffer, with the part encoded last as a page of its own. The inner nodes of the path stay where they are behind it: they have no meaning there.
    pub(crate) fn seal_part(&mut self, size: usize) -> &mut [u8] {
        let tail = self.tail();
        self.shape.seal_leaf(self.state.height, self.page, size, tail);
        self.page
    }

    /// The part encoded last in the page buffer is the leaf from now on.
    pub(crate) fn stage_part(&mut self, size: usize) {
        debug_assert!(self.shape.own_front() + size <= self.tail(), "the part stands before the inner nodes");
        let own = self.shape.own_front();
        self.side[own..own + size].copy_from_slice(&self.page[own..own + size]);
        self.draft.staged = Some(size);
    }

    /// This is the leaf from now on, with these bytes before each key. Returns false if it does not fit a page.
    pub(crate) fn stage(&mut self, leaf: &[u8], before: &[u8]) -> bool {
        let room = &mut self.side[self.shape.own_front()..][..self.shape.own_room()];
        self.draft.staged = self.shape.cells().leaf_prefixed(leaf, before, room);
        self.draft.staged.is_some()
    }

    /// Stages a new leaf of one entry, which follows all of the path's leaf; the separator between them is noted.
    pub(crate) fn stage_new(&mut self, key: &[u8], value: &[u8]) -> bool {
        let (cells, own) = (self.shape.cells(), self.shape.own_front());
        let [separator, last] = &mut *self.keys;
        let leaf = &self.page[self.slots[0].range()];
        debug_assert!(self.draft.staged.is_none(), "the leaf stands before its ancestors");
        let count = cells.leaf_count(leaf);
        cells.leaf_key(leaf, count - 1, last);
        debug_assert!(last.as_slice() < key, "the entry follows");
        separator.set(key);
        cells.separator(last.as_slice(), separator);
        let edit = RunEdit { at: 0, replaces: false, key, value };
        let run = LeafRun::new(Stretch::NONE, Stretch::NONE, Some(edit));
        self.draft.staged = cells.leaf_encode(&run, 0..1, &mut self.side[own..]);
        self.draft.staged.is_some()
    }

    /// Whether the leaf lost so much that a neighbour may fit beside it; says so once.
    pub(crate) fn take_sparse(&mut self) -> bool {
        let is_sparse = core::mem::take(&mut self.draft.is_sparse);
        let is_here = self.draft.is_dirty && self.draft.lowest == 0 && self.draft.staged.is_none();
        // A root that has two children keeps them.
        is_sparse && is_here && self.top() > 0 && self.child_count(1) > 2
    }

    /// Stages the leaf and a neighbour as one, if both fit the page of the path and leave so much of it free.
    pub(crate) fn stage_joined(&mut self, (neighbour, right): (&[u8], bool), kept: usize) -> bool {
        let (cells, room) = (self.shape.cells(), self.room().saturating_sub(kept));
        let own = Stretch::whole(cells, &self.page[self.slots[0].range()]);
        let other = Stretch::whole(cells, neighbour);
        let (first, second) = if right { (own, other) } else { (other, own) };
        let run = LeafRun::new(first, second, None);
        let at = self.shape.own_front();
        let end = (at + room - room / SPARED).min(self.side.len());
        self.draft.staged = cells.leaf_encode(&run, 0..run.count(), &mut self.side[at..end]);
        self.draft.staged.is_some()
    }

    /// The children that take the place of the path's leaf, and of the neighbour on this side if it is one of them.
    pub(crate) fn leaf_splice(&self, count: usize, with: Option<bool>) -> Splice {
        let index = if self.top() > 0 { self.slots[1].index } else { 0 };
        let splice = Splice::new(index, count);
        match with {
            None => splice,
            Some(right) => Splice { at: index - usize::from(!right), removed: 2, ..splice },
        }
    }

    /// What was staged is the leaf of the path from now on, in the place of others: children of level 1 are spliced next.
    pub(crate) fn begin_splice(&mut self) {
        debug_assert!(self.draft.staged.is_some(), "what takes the place is staged");
        self.slots[0].is_present = false;
    }

    /// The staged leaf is on the path that was spliced.
    pub(crate) fn end_splice(&mut self) {
        debug_assert!(self.draft.staged.is_some(), "the leaf is staged");
        self.slots[0] = Slot { is_present: true, ..Slot::ABSENT };
        (self.draft.is_dirty, self.draft.lowest) = (true, 0);
        self.place_leaf();
    }

    /// The two halves of the node of this level take its place in the one above: the other half stands in that page, and what was lent separates them.
    pub(crate) fn halves(&mut self, level: u8, other: u32, path_is_right: bool) -> Splice {
        let at = if level < self.top() { self.slot(level + 1).index } else { 0 };
        let mut splice = Splice::new(at, 2);
        splice.pages[usize::from(!path_is_right)] = other;
        debug_assert!(splice.place() == usize::from(path_is_right), "the other half is on the other side");
        splice
    }

    /// The old root was split, or was a leaf that was: a new one above its halves, put together in `out`. Returns false if the tree would be too high.
    pub(crate) fn grow(&mut self, splice: &Splice, out: &mut [u8]) -> bool {
        let (cells, level) = (self.shape.cells(), usize::from(self.state.height));
        if level == self.shape.limits().height_max() {
            return false;
        }
        let run = splice.run((&[], PENDING), self.shape.page_bits(), &self.keys[..]);
        let Some(size) = cells.inner_encode(&run, 0..run.count(cells), out) else { return false };
        let (tail, end) = (self.tail(), self.page.len());
        self.state.height += 1;
        let Some(first) = tail.checked_sub(size).filter(|&first| first >= self.front()) else { return false };
        self.page.copy_within(tail..end, first);
        for slot in &mut self.slots[1..level] {
            slot.offset -= size;
        }
        let offset = end - size;
        self.page[offset..].copy_from_slice(&out[..size]);
        self.slots[level] = Slot { page: PENDING, offset, size, index: splice.place(), is_present: true };
        true
    }

    /// A new inner node takes the place of the path's node of this level, which was retired. The levels below that are present make room. Returns false if there is none.
    pub(crate) fn replace_inner(&mut self, level: u8, node: &[u8], index: usize) -> bool {
        let at = usize::from(level);
        let slot = self.slots[at];
        debug_assert!(slot.page == PENDING, "what is replaced was retired");
        let (front, end) = (self.front(), slot.range().end);
        let below = self.slots[1..at].iter().find(|slot| slot.is_present);
        let first = below.map_or(slot.offset, |below| below.offset);
        let Some(offset) = end.checked_sub(node.len()) else { return false };
        let after = (first + offset).checked_sub(slot.offset);
        let Some(first_after) = after.filter(|&first| first >= front) else { return false };
        self.page.copy_within(first..slot.offset, first_after);
        for below in self.slots[1..at].iter_mut().filter(|slot| slot.is_present) {
            below.offset = below.offset + offset - slot.offset;
        }
        self.page[offset..end].copy_from_slice(node);
        self.slots[at] = Slot { offset, size: node.len(), index, ..slot };
        debug_assert!(self.slots[at].range().end == end && first_after >= front, "it stands before the one above");
        true
    }

    /// The path's node of this level is replaced: its page is, too, if it was the lowest there. Returns that page, unless the node is on none.
    pub(crate) fn retire(&mut self, level: u8) -> Option<u32> {
        let page = self.slot(level).page;
        if page == PENDING {
            return None;
        }
        if level == 0 || self.shape.cells().inner_path(self.inner(level)).is_none() {
            self.replace(page);
        }
        self.slots[usize::from(level)].page = PENDING;
        Some(page)
    }

    /// Takes the empty leaf, or an inner node without children, out of the path; it was retired.
    pub(crate) fn take_out(&mut self, level: u8) {
        debug_assert!(self.slot(level).page == PENDING, "what is taken out was retired");
        self.slots[usize::from(level)] = Slot::ABSENT;
        if level == 0 {
            self.draft.staged = None;
        }
    }

    /// The only child of the root, if that is the lowest node of what is programmed next: the child is to become the root.
    pub(crate) fn only_child(&self) -> Option<u32> {
        let top = self.top();
        (top > 0 && self.draft.lowest == top && self.child_count(top) == 1).then(|| self.child_at(top, 0))
    }

    /// The root, which was retired, is gone: there is a level less. The node of the level below, or the leaf, is taken in next.
    pub(crate) fn sink(&mut self) {
        let top = self.top();
        debug_assert!(top > 0, "a leaf that is the root stays");
        self.take_out(top);
        self.state.height -= 1;
        self.draft = Draft::NONE;
    }

    /// Copies the staged leaf before its ancestors, if it fits. Returns whether the leaf stands there, or there is none.
    pub(crate) fn place_leaf(&mut self) -> bool {
        let Some(size) = self.draft.staged else { return true };
        let (front, own) = (self.front(), self.shape.own_front());
        if front + size > self.tail() {
            return false;
        }
        self.page[front..front + size].copy_from_slice(&self.side[own..own + size]);
        self.slots[0] = Slot { offset: front, size, index: 0, is_present: true, ..self.slots[0] };
        self.draft.staged = None;
        true
    }

    /// The staged leaf was programmed into a page of its own; the path without it is programmed next.
    pub(crate) fn link(&mut self, page: u32) {
        debug_assert!(self.draft.staged.is_some() && self.top() > 0, "a leaf of its own has a parent");
        self.slots[0] = Slot::ABSENT;
        self.draft = Draft { lowest: 1, linked: Some(page), staged: None, ..self.draft };
        self.repath(1, 1, Some(page));
    }

    /// A leaf that was staged behind it was programmed into a page of its own, too: the child at this index of the same parent.
    pub(crate) fn link_other(&mut self, index: usize, old: u32, page: u32) {
        debug_assert!(self.draft.linked.is_some() && self.child_at(1, index) == old, "the path is programmed next");
        self.draft.staged = None;
        let (cells, page_bits, range) = (self.shape.cells(), self.shape.page_bits(), self.slot(1).range());
        cells.inner_repath(&mut self.page[range.clone()], old, Some(index), page_bits);
        cells.inner_repath(&mut self.page[range], page, None, page_bits);
        self.replace(old);
    }

    /// Makes the page buffer the page of the path; notes what it replaces. Returns how many bytes are free for sections; `None`, with nothing changed, if the path does
    /// not fit a page, which it does unless flash holds what was never programmed.
    pub(crate) fn compose(&mut self) -> Option<usize> {
        let Draft { is_dirty, lowest, linked, staged, .. } = self.draft;
        debug_assert!(is_dirty && staged.is_none(), "there is something to program, and it is all here");
        debug_assert!(!self.draft.is_composed, "a path is put together once");
        let mut locator = KeyBuf::EMPTY;
        if lowest > 0 {
            self.low_key(lowest, &mut locator);
        }
        let height = self.state.height;
        let (header_size, levels) = (self.shape.header_size(), usize::from(height - lowest));
        let end = PathBody::front(header_size, levels, true, locator.as_slice().len());
        let gap = match lowest {
            0 => end + self.slots[0].size..self.tail(),
            _ => end..self.slot(lowest).offset,
        };
        if gap.start > gap.end {
            return None;
        }
        if lowest == 0 {
            self.replace(self.slots[0].page);
        }
        // A leaf of its own was linked already.
        for level in lowest.max(1) + u8::from(linked.is_some())..height {
            self.repath(level, lowest, None);
        }
        let mut sizes = [0; HEIGHT_MAX];
        for (size, slot) in sizes.iter_mut().zip(&self.slots) {
            *size = slot.size as u16;
        }
        let front = PathFront {
            height,
            lowest,
            format: self.shape.format(),
            records: self.state.written_records(),
            root: None,
            locator: locator.as_slice(),
            sizes: &sizes[usize::from(lowest)..usize::from(height)],
        };
        let at = front.write(self.page, header_size);
        debug_assert!(at == end, "the front ends where the leaf stands");
        self.page[gap.clone()].fill(0xFF);
        self.gap = gap;
        self.draft.is_composed = true;
        Some(self.gap.len())
    }

    /// The place for sections in the page that was composed last, which says from here on that it has some.
    pub(crate) fn sections(&mut self) -> &mut [u8] {
        debug_assert!(self.draft.is_dirty, "a page that is to be programmed");
        flag_sections(self.page, self.shape.header_size());
        &mut self.page[self.gap.clone()]
    }

    /// Room for a page where no leaf is staged.
    pub(crate) fn beside(&mut self) -> &mut [u8] {
        self.side
    }

    /// The page that was composed last; before there is a tree, room for one.
    pub(crate) fn composed(&mut self) -> &mut [u8] {
        self.page
    }

    /// Makes an inner node of the path point into the page being put together, and its old child there where that was.
    fn repath(&mut self, level: u8, lowest: u8, linked: Option<u32>) {
        let (cells, page_bits, slot) = (self.shape.cells(), self.shape.page_bits(), *self.slot(level));
        if cells.inner_path(self.inner(level)).is_none() {
            self.replace(slot.page);
        }
        let node = &mut self.page[slot.range()];
        let here = (level > lowest || linked.is_some() && level == lowest).then_some(slot.index);
        cells.inner_repath(node, slot.page, here, page_bits);
        if let Some(page) = linked.filter(|_| level == lowest) {
            cells.inner_repath(node, page, None, page_bits);
        }
        debug_assert!(cells.inner_path(node).is_none() == (level == lowest), "only the lowest node has no child here");
    }

    /// Lowest level of what was composed.
    pub(crate) fn lowest(&self) -> u8 {
        self.draft.lowest
    }

    /// The page of its own that a leaf got while the path with it is not programmed yet.
    pub(crate) fn linked(&self) -> Option<u32> {
        self.draft.linked
    }

    /// What was composed is on flash in this page.
    pub(crate) fn programmed(&mut self, page: u32) {
        debug_assert!(page < self.shape.page_count(), "the log keeps to its own size");
        let lowest = usize::from(self.draft.lowest);
        for (level, slot) in self.slots.iter_mut().enumerate().take(usize::from(self.state.height)) {
            slot.is_present = level >= lowest;
            slot.page = page;
        }
        self.ascent.page = (self.ascent.at_end && lowest == 0).then_some(page);
        self.draft = Draft::NONE;
        self.state.root = page;
        debug_assert!(self.holds_root(), "the root is here");
    }
}
