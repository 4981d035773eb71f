//! Several trees with pages in common: the newest one, and those of the snapshots.
//!
//! A page lives while any tree reaches its lowest node; each tree is asked by a search for a key of that node. When such a
//! page is moved, every tree that reaches it has to follow, and none may get a copy of its own: a chip could fill up by
//! being collected. So the page is programmed once, with the path of one tree above its lowest node. For each other tree
//! the search goes up to where its path leaves what is moved already, and only the nodes above are programmed, the lowest
//! of them pointing at the moved node; a tree whose root is moved already needs no page at all. What trees share
//! thereafter is what they shared before, at every level.
//!
//! All of it counts only with the table of snapshots, the last page to be programmed. If the power goes before, every
//! tree is where it was; were the trees committed one after the other, a cut would leave two copies for ever.
//!
//! The pages of paths and tables are replaced by the next move, unlike what is moved, so they are not put beside it
//! ([`Placement::Passing`]): their blocks fall empty by themselves. Beside it they would be two thirds of what a move programs,
//! and emptying a block would fill another one.

use nandu_index::KeyBuf;
use nandu_media::features::SNAPSHOTS;
use nandu_media::snapshots::{SNAPSHOT_COUNT_MAX, SnapshotRecord};
use nandu_media::tree::HEIGHT_MAX;
use nandu_media::value::{Descriptor, TAG_LARGE};
use nandu_nand::PageAddr;

use crate::TreeError;
use crate::descent::{PENDING, Seek, Slot};
use crate::merge::Span;
use crate::pages::{Pages, Placement};
use crate::snapshots::{MAYBE_KEPT, root};
use crate::tree::{State, Tree};
use nandu_cells::Cells;

/// Reads after which the end of a snapshot leaves the rest of what only it reached to the collector.
const BURIAL_READS_MAX: u32 = 256;

/// The newest tree, and one for each snapshot.
pub(crate) const TREE_COUNT_MAX: usize = 1 + SNAPSHOT_COUNT_MAX;

/// Trees, one bit each: bit 0 is the newest, bit 1 the first snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeSet(u16);

impl TreeSet {
    pub(crate) const NONE: TreeSet = TreeSet(0);
    pub(crate) const NEWEST: TreeSet = TreeSet(1);

    pub(crate) fn insert(&mut self, tree: usize) {
        self.0 |= 1 << tree;
    }

    pub(crate) fn has(self, tree: usize) -> bool {
        self.0 >> tree & 1 == 1
    }

    pub(crate) fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// The pages of a tree's path, by level: before and after the move.
#[derive(Clone, Copy)]
struct Trail {
    old: [u32; HEIGHT_MAX],
    new: [u32; HEIGHT_MAX],
}

impl Trail {
    const NONE: Trail = Trail { old: [PENDING; HEIGHT_MAX], new: [PENDING; HEIGHT_MAX] };

    /// The highest level at which another tree has the same node.
    fn common(&self, other: &Trail) -> Option<usize> {
        (0..HEIGHT_MAX).rev().find(|&level| self.old[level] != PENDING && self.old[level] == other.old[level])
    }
}

/// The node whose path is programmed anew.
pub(crate) struct Target<'a> {
    pub(crate) from: PageAddr,
    pub(crate) level: u8,
    pub(crate) key: &'a KeyBuf,
    /// What takes the place of the key's entry in the leaf, of the same size.
    pub(crate) stored: Option<&'a [u8]>,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    pub(crate) fn tree_count(&self) -> usize {
        1 + self.snapshots.records().len()
    }

    fn tree_state(&self, tree: usize) -> State {
        match tree {
            0 if self.snapshots.viewed.is_some() => self.committed,
            0 => self.state,
            _ => self.snapshots.state(tree - 1),
        }
    }

    /// The page of the node of a level that a tree has for a key; `None` if it is not that high. Reads at most a page for
    /// each level in between that is not in memory.
    pub(crate) fn page_at(&mut self, tree: usize, key: &[u8], level: u8) -> Result<Option<u32>, TreeError<P::Error>> {
        let State { root, height, .. } = self.tree_state(tree);
        if level >= height {
            return Ok(None);
        }
        let mut page = root;
        for above in (level + 1..height).rev() {
            page = self.step(page, above, key, None)?.0;
        }
        Ok(Some(page))
    }

    /// The child of an inner node for a key, and whether it is in the same page. Tightens the fence above it.
    fn step(
        &mut self,
        page: u32,
        level: u8,
        key: &[u8],
        fence: Option<&mut Option<KeyBuf>>,
    ) -> Result<(u32, bool), TreeError<P::Error>> {
        let slot = self.path[level as usize];
        let node = if slot.present && slot.page == page {
            &self.assembly[slot.range()]
        } else if let Some(place) = self.cache.find(page, level) {
            self.cache.bytes(place)
        } else {
            let place = self.read_node(page, level)?;
            self.cache.insert(page, level, &self.reading.buf[place.clone()]);
            &self.reading.buf[place]
        };
        let index = self.cells.inner_find(node, key, false);
        if let Some(fence) = fence
            && index + 1 < self.cells.inner_count(node)
        {
            self.cells.inner_separator(node, index, fence.insert(KeyBuf::EMPTY));
        }
        let path = self.cells.inner_path(node);
        let child = match path {
            Some(path) if path == index => page,
            _ => self.cells.inner_child(node, index, u32::from(self.format.page_bits)),
        };
        Ok((child, path.is_some()))
    }

    /// Whether a tree reaches the node of a level in a page that another tree has between two fences. What a node is
    /// responsible for grows and shrinks without its being programmed, when a neighbour vanishes or a leaf begins behind it;
    /// so only a key of its own leads to it in every tree. Without one all nodes between the fences are looked at, rarely
    /// more than two. Reads as [`Tree::page_at`] does.
    fn reaches_between(
        &mut self,
        tree: usize,
        page: u32,
        level: u8,
        (low, high): (&KeyBuf, Option<&KeyBuf>),
    ) -> Result<bool, TreeError<P::Error>> {
        let State { root, height, .. } = self.tree_state(tree);
        if level >= height {
            return Ok(false);
        }
        let mut key = *low;
        for _ in 0..self.page_count {
            let mut fence = None;
            let mut found = root;
            for above in (level + 1..height).rev() {
                found = self.step(found, above, key.as_slice(), Some(&mut fence))?.0;
            }
            if found == page {
                return Ok(true);
            }
            match fence {
                Some(fence) if fence.as_slice() <= key.as_slice() => break,
                Some(fence) if high.is_none_or(|high| fence.as_slice() < high.as_slice()) => key = fence,
                _ => break,
            }
        }
        Ok(false)
    }

    /// Whether any of the first so many trees reaches a node that another tree has between two fences.
    pub(crate) fn is_reached_between(
        &mut self,
        trees: usize,
        page: u32,
        level: u8,
        fences: (&KeyBuf, Option<&KeyBuf>),
    ) -> Result<bool, TreeError<P::Error>> {
        for tree in 0..trees {
            if self.reaches_between(tree, page, level, fences)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Which trees reach the node of a level in a page, by a key of its own.
    pub(crate) fn reach(&mut self, page: u32, level: u8, key: &[u8]) -> Result<TreeSet, TreeError<P::Error>> {
        let mut reach = TreeSet::NONE;
        for tree in 0..self.tree_count() {
            if self.page_at(tree, key, level)? == Some(page) {
                reach.insert(tree);
            }
        }
        Ok(reach)
    }

    /// Lowest level of a page of the tree, and puts in its place a key in the range of the node there; any key for a leaf without
    /// entries, which is all of its tree.
    pub(crate) fn whereabouts(&mut self, page: PageAddr, key: &mut KeyBuf) -> Result<u8, TreeError<P::Error>> {
        Ok(self.locate(page, key)?.unwrap_or_else(|| {
            self.cells.minimum(key);
            0
        }))
    }

    /// A page number for the journal: whether a snapshot may reach the page, which the tree replaces.
    pub(crate) fn with_doubt(&self, page: u32) -> u32 {
        let snapshots = &self.snapshots;
        let is_known = snapshots.is_empty() || snapshots.is_joint || snapshots.fresh == Some(page);
        if is_known { page } else { page | MAYBE_KEPT }
    }

    /// Says that a page of the tree, or what a journal entry stands for, is dead, unless a snapshot reaches it. Reads the
    /// page, unless it is the one read last, and what a search of each snapshot reads.
    pub(crate) fn bury_unless_kept(&mut self, entry: u32) {
        let page = entry & !MAYBE_KEPT;
        if SNAPSHOTS && entry & MAYBE_KEPT != 0 {
            match self.is_kept(page) {
                Ok(true) => return self.note_kept(),
                Ok(false) => {}
                Err(_) => return,
            }
        }
        self.bury(page);
    }

    /// A page of the tree lives for snapshots alone from now on.
    fn note_kept(&mut self) {
        self.snapshots.shared = self.snapshots.shared.saturating_sub(1);
        self.snapshots.kept += 1;
        self.pages.note_snapshots(self.snapshots.records().len(), self.snapshots.shared);
    }

    #[inline(never)]
    fn is_kept(&mut self, page: u32) -> Result<bool, TreeError<P::Error>> {
        let mut key = KeyBuf::EMPTY;
        let level = self.whereabouts(PageAddr(page), &mut key)?;
        for tree in 1..self.tree_count() {
            if self.page_at(tree, key.as_slice(), level)? == Some(page) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The descriptor that a tree holds for a key, if it has a large value there.
    pub(crate) fn descriptor_at(&mut self, tree: usize, key: &[u8]) -> Result<Option<Descriptor>, TreeError<P::Error>> {
        let Some(page) = self.page_at(tree, key, 0)? else { return Ok(None) };
        // Not from the assembly buffer: a change under way may have been made there already.
        let leaf = match self.cache.find(page, 0) {
            Some(place) => self.cache.bytes(place),
            None => {
                let place = self.read_node(page, 0)?;
                &self.reading.buf[place]
            }
        };
        let Ok(index) = self.cells.leaf_find(leaf, key) else { return Ok(None) };
        let stored = self.cells.leaf_value(leaf, index);
        if self.tag_size() == 0 || stored.first() != Some(&TAG_LARGE) {
            return Ok(None);
        }
        Ok(self.layout(key).and_then(|layout| Descriptor::parse(stored, layout)))
    }

    /// Which trees hold the large value with this stamp for a key; where it says that its pages are is put in place of the descriptor.
    #[inline(never)]
    pub(crate) fn holders(
        &mut self,
        key: &[u8],
        stamp: u32,
        found: &mut Descriptor,
    ) -> Result<TreeSet, TreeError<P::Error>> {
        let mut holders = TreeSet::NONE;
        for tree in 0..self.tree_count() {
            // The path to it in the newest tree is needed again if the value is moved.
            let descriptor = if tree == 0 { self.descriptor(key)? } else { self.descriptor_at(tree, key)? };
            let Some(descriptor) = descriptor else { continue };
            if descriptor.stamp == stamp {
                if holders == TreeSet::NONE {
                    *found = descriptor;
                }
                holders.insert(tree);
            }
        }
        Ok(holders)
    }

    /// Whether a snapshot holds the large value with this stamp.
    pub(crate) fn is_value_kept(&mut self, key: &[u8], stamp: u32) -> Result<bool, TreeError<P::Error>> {
        for tree in 1..self.tree_count() {
            if self.descriptor_at(tree, key)?.is_some_and(|descriptor| descriptor.stamp == stamp) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Programs the path to a node anew in each of these trees, which all have it or, where something is stored, each its
    /// own; that is a commit. Programs a page for each tree, fewer where roots are shared, and the table; a leaf that does
    /// not fit the page of its path takes one more.
    pub(crate) fn move_jointly(&mut self, trees: TreeSet, target: &Target<'_>) -> Result<(), TreeError<P::Error>> {
        self.snapshots.is_joint = true;
        let outcome = self.rewrite_paths(trees, target);
        if outcome.is_err() {
            self.undo();
        }
        self.snapshots.is_joint = false;
        outcome
    }

    fn rewrite_paths(&mut self, trees: TreeSet, target: &Target<'_>) -> Result<(), TreeError<P::Error>> {
        let mut trails = [Trail::NONE; TREE_COUNT_MAX];
        let mut states = [self.committed; TREE_COUNT_MAX];
        let count = self.tree_count();
        // All before the first is programmed: afterwards the cache must not see the old nodes again.
        for tree in 0..count {
            states[tree] = self.tree_state(tree);
            let mut page = states[tree].root;
            for level in (target.level..states[tree].height).rev().filter(|_| trees.has(tree)) {
                trails[tree].old[level as usize] = page;
                if level > target.level {
                    page = self.step(page, level, target.key.as_slice(), None)?.0;
                }
            }
        }
        for tree in (0..count).filter(|&tree| trees.has(tree)) {
            let mut trail = trails[tree];
            let common = trails[..tree].iter().filter_map(|other| Some((trail.common(other)?, other)));
            let common = common.max_by_key(|(level, _)| *level).map(|(level, other)| (level, *other));
            if let Some((level, other)) = common {
                trail.new[..=level].copy_from_slice(&other.new[..=level]);
            }
            match common {
                Some((level, other)) if level + 1 == states[tree].height as usize => {
                    states[tree].root = other.new[level];
                }
                Some((level, other)) => {
                    self.stand(states[tree]);
                    self.link(level as u8 + 1, other.new[level], target)?;
                    states[tree] = self.state;
                }
                None => {
                    self.stand(states[tree]);
                    self.renew(target)?;
                    states[tree] = self.state;
                    trail.new[target.level as usize] = self.child(target.level);
                }
            }
            let first = common.map_or(target.level as usize, |(level, _)| level) + 1;
            for level in first..states[tree].height as usize {
                trail.new[level] = states[tree].root;
            }
            trails[tree] = trail;
        }
        let mut records = [SnapshotRecord::default(); SNAPSHOT_COUNT_MAX];
        for (place, record) in self.snapshots.records().iter().enumerate() {
            records[place] = SnapshotRecord { number: record.number, root: root(states[place + 1]) };
        }
        self.commit_table(&records[..count - 1], states[0], Placement::Passing)?;
        self.snapshots.fresh = None;
        Ok(())
    }

    /// Programs the node of the target and its path.
    fn renew(&mut self, target: &Target<'_>) -> Result<(), TreeError<P::Error>> {
        self.descend(Seek::At(target.key.as_slice()), target.level + 1)?;
        self.touch(target.level)?;
        if let Some(stored) = target.stored {
            let at = self.own_front();
            let leaf = match self.pending.staged {
                Some(size) => &mut self.scratch[at..at + size],
                None => &mut self.assembly[self.path[0].range()],
            };
            let found = self.cells.leaf_find(leaf, target.key.as_slice());
            let place = found.ok().and_then(|index| place_in(leaf, self.cells.leaf_value(leaf, index)));
            match place.filter(|place| place.len() == stored.len()) {
                Some(place) => leaf[place].copy_from_slice(stored),
                None => return Self::corrupt(self.child(0), crate::Malformed::Node),
            }
        }
        self.flush(false, Placement::Moved { from: target.from })
    }

    /// Programs the path above a node that is in another page now.
    fn link(&mut self, level: u8, page: u32, target: &Target<'_>) -> Result<(), TreeError<P::Error>> {
        self.descend(Seek::At(target.key.as_slice()), level)?;
        self.pending.dirty = true;
        self.pending.lowest = level;
        self.pending.at_end = false;
        self.keys[0] = *target.key;
        self.pending.linked = Some(page);
        self.path[0] = Slot::ABSENT;
        self.flush(false, Placement::Passing)
    }

    /// Says which pages are dead now that this tree is not kept any more: those that no other tree reaches; `false` if it gave up
    /// before it knew all. Reads the inner nodes that no other tree has, and those of the others beside them; where there are
    /// large values, also the leaves: at most [`BURIAL_READS_MAX`] pages and those of one turn, a search of each tree.
    pub(crate) fn bury_tree(&mut self, gone: State) -> Result<bool, TreeError<P::Error>> {
        let reads = self.reading.reads;
        let mut key = KeyBuf::EMPTY;
        self.cells.minimum(&mut key);
        let mut seen = [PENDING; HEIGHT_MAX];
        // Each turn goes on behind a node of its own, and nodes that are not leaves or in pages of leaves are fewer.
        for _ in 0..self.page_count {
            if self.reading.reads.wrapping_sub(reads) > BURIAL_READS_MAX {
                return Ok(false);
            }
            let mut fence = None::<KeyBuf>;
            let mut page = gone.root;
            for level in (0..gone.height).rev() {
                // A node seen before is one that no other tree has.
                let is_first = seen[level as usize] != page;
                if is_first && self.is_reached_between(self.tree_count(), page, level, (&key, fence.as_ref()))? {
                    break;
                }
                seen[level as usize] = page;
                if level == 0 {
                    let is_done = self.bury_values(page, &Span { low: Some(key), high: fence }, reads)?;
                    self.pages.supersede(PageAddr(page));
                    if !is_done {
                        return Ok(false);
                    }
                    break;
                }
                let (child, has_path) = self.step(page, level, key.as_slice(), Some(&mut fence))?;
                if is_first && !has_path {
                    self.pages.supersede(PageAddr(page));
                }
                page = child;
            }
            match fence {
                Some(fence) if fence.as_slice() > key.as_slice() => key = fence,
                _ => return Ok(true),
            }
        }
        Ok(true)
    }

    /// Says that the large values of a leaf of these keys that is dead are dead, those that no tree holds; `false` if it gave up, having read too
    /// much since so many pages were read.
    fn bury_values(&mut self, page: u32, span: &Span, reads: u32) -> Result<bool, TreeError<P::Error>> {
        if !self.pages.has_values() || self.tag_size() == 0 {
            return Ok(true);
        }
        let mut key = KeyBuf::EMPTY;
        let mut done = 0;
        loop {
            if self.reading.reads.wrapping_sub(reads) > BURIAL_READS_MAX {
                return Ok(false);
            }
            // The search for the key in other trees needs the buffer.
            let place = self.read_node(page, 0)?;
            let leaf = &self.reading.buf[place];
            // A spent entry may lead to pages that hold something else by now.
            let Some(index) = self.unspent_in(leaf, self.in_span(leaf, span)).nth(done) else { return Ok(true) };
            self.cells.leaf_key(leaf, index, &mut key);
            let stored = self.cells.leaf_value(leaf, index);
            done += 1;
            let layout = self.layout(key.as_slice());
            let Some(descriptor) = layout.and_then(|layout| Descriptor::parse(stored, layout)) else { continue };
            let mut held = descriptor;
            if self.holders(key.as_slice(), descriptor.stamp, &mut held)? == TreeSet::NONE {
                self.bury_value(key.as_slice(), &descriptor);
            }
        }
    }
}

/// Where a part of a node is in it.
fn place_in(node: &[u8], part: &[u8]) -> Option<core::ops::Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(node.as_ptr() as usize)?;
    (start + part.len() <= node.len()).then_some(start..start + part.len())
}
