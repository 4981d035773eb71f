//! Changes: put, delete, batch; and the program that makes one durable.
//!
//! A change is made in the assembly buffer, then the page is programmed ([`Tree::flush`]). A batch goes on in the
//! buffer while its keys belong to the same leaf, and programs one page for each leaf. Only the last page is a commit:
//! whatever the power does, the root before or the root after is found.

use nandu_index::Edit;
use nandu_media::PageKind;
use nandu_nand::PageAddr;

use crate::descent::{PENDING, Place, Seek, Slot};
use crate::draft::Draft;
use crate::journals::Node;
use crate::memory::Durability;
use crate::merge::{MERGES, Span};
use crate::pages::{Need, Pages, Placement};
use crate::part::Part;
use crate::summaries::NotesPlace;
use crate::tree::Tree;
use crate::{Malformed, TreeError};
use nandu_cells::{Cells, LeafRun, RunEdit, Stretch};
use nandu_media::features::{BLOBS, FILES, GROUP};
use nandu_media::section::{SECTION_FRONT_SIZE, SectionKind, SectionWriter};
use nandu_media::tree::{HEIGHT_MAX, JournalAt, TreeBody, TreeFront};

/// What stands in the buffers and is not programmed yet.
#[derive(Default)]
pub(crate) struct Pending {
    /// Whether the path in the assembly buffer was changed.
    pub(crate) dirty: bool,
    /// Lowest level of the path that goes into the page: above 0 if the leaf vanished.
    pub(crate) lowest: u8,
    /// Size of a leaf that stands in the scratch buffer, because it may not fit the assembly buffer.
    pub(crate) staged: Option<usize>,
    /// Pages appended since the last commit.
    pub(crate) appended: u32,
    /// Whether the last change put an entry at the end of its leaf.
    pub(crate) at_end: bool,
    /// Page of the leaf at whose end the last change put an entry.
    pub(crate) run: Option<u32>,
    /// The keys of the last leaf that overflowed, and of the neighbour if it shared with one.
    pub(crate) rewritten: Part<Span, { MERGES as usize }>,
    /// The page that the child of the lowest node on the path is in from now on.
    pub(crate) linked: Option<u32>,
    /// The keys of a leaf that vanished, until the one that gets them is known to hold none of them.
    pub(crate) vanished: Part<Span, { FILES as usize }>,
    /// Whether the path's leaf shrank, so that a neighbour may fit beside it.
    pub(crate) is_sparse: bool,
    /// Whether an overflow is only said, since the leaf of the path may be parted instead.
    pub(crate) may_part: bool,
    /// Whether the path's leaf is being moved: it is programmed elsewhere even where it would stay as it is.
    pub(crate) is_moved: bool,
    /// Whether there was one.
    pub(crate) overflowed: bool,
}

/// What becomes of the pages of a large value whose entry goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retire {
    /// They belong to the entry that comes.
    Nothing,
    /// They are dead once the change commits. If there are more than can be noted, that is an error.
    All,
    /// The same, but those that cannot be noted stay counted as live until the collector looks at them.
    Noted,
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Puts a value at a key. Returns whether the key was there before. Durable when it returns, or at the next
    /// [`sync`](Tree::sync) if the tree was opened so; a large value, and with it all before, always when it returns.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, TreeError<P::Error>> {
        self.check_key(key)?;
        self.or_in_place(&[Edit { key, value: Some(value) }], |tree| tree.put_once(key, value))
    }

    fn put_once(&mut self, key: &[u8], value: &[u8]) -> Result<bool, TreeError<P::Error>> {
        if self.is_large(key, value.len()) {
            if !BLOBS && !FILES {
                return Err(TreeError::NotCompiled { feature: "blobs" });
            }
            return match self.put_resident(key, value)? {
                Some(existed) => Ok(existed),
                None => self.put_large(key, value),
            };
        }
        self.check_value(key, value)?;
        self.discard_value();
        if let Some(existed) = self.later(&[Edit { key, value: Some(value) }])? {
            return Ok(existed);
        }
        let pages_max = self.split_pages_max() + 1;
        let live_max = self.live_max_at(key)?;
        self.prepare(Need { pages: 1, pages_max, live_max, shrinks: self.frees })?;
        let outcome = self.edit_inline(key, Some(value));
        self.conclude(outcome, None)
    }

    /// Deletes a key. Returns whether it was there. Durable as a put is; programs nothing if the key was not there.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, TreeError<P::Error>> {
        self.check_key(key)?;
        self.discard_value();
        if let Some(existed) = self.later(&[Edit { key, value: None }])? {
            return Ok(existed);
        }
        self.prepare(Need { pages: 1, pages_max: 2, live_max: 2, shrinks: true })?;
        let outcome = self.edit(key, None, Retire::All);
        self.conclude_joined(outcome)
    }

    /// Makes all these changes or none. The keys must strictly ascend, and the values are small ones. Programs about one page for each leaf concerned.
    pub fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), TreeError<P::Error>> {
        self.check_edits(edits)?;
        self.discard_value();
        self.or_in_place(edits, |tree| tree.batch_once(edits))
    }

    fn batch_once(&mut self, edits: &[Edit<'_>]) -> Result<(), TreeError<P::Error>> {
        if self.later(edits)?.is_some() {
            return Ok(());
        }
        let need = self.batch_need(edits)?;
        self.prepare(need)?;
        let outcome = edits.iter().try_for_each(|edit| self.edit_inline(edit.key, edit.value).map(|_| ()));
        self.conclude_joined(outcome)
    }

    /// As [`Tree::conclude`], of edits that went to their leaves although changes may wait for others.
    fn conclude_joined<T>(&mut self, outcome: Result<T, TreeError<P::Error>>) -> Result<T, TreeError<P::Error>> {
        let outcome = outcome.and_then(|value| self.lend_changes(Self::join).map(|_| value));
        self.conclude(outcome, None)
    }

    pub(crate) fn check_edits(&self, edits: &[Edit<'_>]) -> Result<(), TreeError<P::Error>> {
        for (index, edit) in edits.iter().enumerate() {
            self.check_key(edit.key)?;
            if let Some(value) = edit.value {
                self.check_value(edit.key, value)?;
            }
            if index > 0 && edits[index - 1].key >= edit.key {
                return Err(TreeError::NotAscending(index));
            }
        }
        Ok(())
    }

    /// As [`Tree::batch`], by an owner who promises that what the edits leave takes no more room than what they found, although
    /// some of them put: then it is allowed on a full medium, as deletes are.
    pub fn batch_freeing(&mut self, edits: &[Edit<'_>]) -> Result<(), TreeError<P::Error>> {
        self.frees = true;
        let outcome = self.batch(edits);
        self.frees = false;
        outcome
    }

    /// Makes changes in memory, if the tree does that and they are not too large. If they are to go to their leaves, no
    /// others are left in memory.
    fn later(&mut self, edits: &[Edit<'_>]) -> Result<Option<bool>, TreeError<P::Error>> {
        if self.is_grouped()
            && self.snapshots.is_empty()
            && let Some(existed) = self.change(edits)?
        {
            return Ok(Some(existed));
        }
        if !self.changes.is_empty() || !self.journals.is_empty() {
            self.settle()?;
        }
        Ok(None)
    }

    /// Whether changes wait for a sync.
    #[inline]
    pub(crate) fn is_grouped(&self) -> bool {
        GROUP && self.durability == Durability::OnSync
    }

    /// Pages that one overflow appends besides the path.
    pub(crate) fn split_pages_max(&self) -> u32 {
        3 + 2 * u32::from(self.state.height)
    }

    /// By how many pages more live after one overflow, at most: two leaves, the path without its leaf, and a node of each level above.
    pub(crate) fn live_pages_max(&self) -> u32 {
        2 + u32::from(self.state.height)
    }

    /// Most pages with headers that a change of one entry appends: where there is no room for so many, the tree is full.
    pub fn growth_pages_max(&self) -> u32 {
        // What has to come before it, a journal page and its notes.
        self.split_pages_max() + 4
    }

    /// What a batch appends: a page for each leaf concerned, and what splits of these need.
    pub(crate) fn batch_need(&mut self, edits: &[Edit<'_>]) -> Result<Need, TreeError<P::Error>> {
        let (mut leaves, mut last, mut bytes) = (0, PENDING, 0);
        for edit in edits {
            self.descend(Seek::At(edit.key), 1)?;
            leaves += u32::from(self.child(0) != last);
            last = self.child(0);
            bytes += edit.value.map_or(0, |value| self.cells.entry_size(edit.key, value));
        }
        let splits = bytes as u32 / (self.assembly.len() as u32 / 4);
        let shrinks = self.frees || edits.iter().all(|edit| edit.value.is_none());
        Ok(Need {
            pages: leaves + splits,
            pages_max: leaves + 2 * splits + self.split_pages_max(),
            live_max: leaves + 2 * splits + self.live_pages_max(),
            shrinks,
        })
    }

    /// Commits what a change left in the buffers, or undoes it.
    pub(crate) fn conclude<T>(
        &mut self,
        outcome: Result<T, TreeError<P::Error>>,
        placement: Option<Placement>,
    ) -> Result<T, TreeError<P::Error>> {
        let outcome = outcome.and_then(|value| {
            // Pages appended without a commit need one, even if the last edits changed nothing more.
            if self.pending.dirty || self.pending.appended > 0 {
                self.commit(placement)?;
            }
            Ok(value)
        });
        if outcome.is_err() {
            self.undo();
        }
        outcome
    }

    fn commit(&mut self, placement: Option<Placement>) -> Result<(), TreeError<P::Error>> {
        if !self.pending.dirty {
            self.take_leaf()?;
            self.pending.dirty = true;
        }
        let supersedes = self.path[0].page;
        let supersedes = (self.path[0].present && supersedes != PENDING).then_some(PageAddr(supersedes));
        let placement = placement.unwrap_or(Placement::Update { supersedes });
        self.flush(true, placement)?;
        if GROUP && self.pending.appended > 0 {
            // The page of the leaf has no room for what must be in a journal page. It counts with the one that is.
            self.stats.full_rides += 1;
            self.write_journal(placement)?;
        }
        Ok(())
    }

    /// Back to the committed state. Nothing on flash belongs to it but what the last commit left.
    pub(crate) fn undo(&mut self) {
        self.state = self.committed;
        self.snapshots.viewed = None;
        self.path = [Slot::ABSENT; HEIGHT_MAX];
        self.pending = Pending::default();
        self.reading.forget();
        // It may hold nodes of pages that never became part of the tree.
        self.cache.clear();
        while let Some(page) = self.journal.take(false) {
            self.bury_page(page);
        }
        self.journal.clear();
    }

    /// Whether the changed path in the assembly buffer is the path of this key.
    fn is_on_path(&self, key: &[u8]) -> bool {
        let inner = &self.path[1..self.state.height as usize];
        self.pending.lowest == 0
            && self.pending.staged.is_none()
            && inner.iter().all(|slot| self.cells.inner_find(&self.assembly[slot.range()], key, false) == slot.index)
    }

    /// Finds the leaf of a key, with the changes in the buffers; what of these belongs to another leaf is programmed.
    pub(crate) fn edited_leaf(&mut self, key: &[u8]) -> Result<Place, TreeError<P::Error>> {
        if self.pending.dirty && !self.is_on_path(key) {
            let supersedes = None;
            self.flush(false, Placement::Update { supersedes })?;
        }
        if !self.pending.dirty {
            self.descend(Seek::At(key), 1)?;
        }
        self.leaf_place(false)
    }

    /// One change in the buffers, of what a leaf holds. Returns whether the key was there.
    pub(crate) fn edit(
        &mut self,
        key: &[u8],
        value: Option<&[u8]>,
        retire: Retire,
    ) -> Result<bool, TreeError<P::Error>> {
        let place = self.edited_leaf(key)?;
        let at = self.cells.leaf_find(self.bytes(&place), key);
        if (BLOBS || FILES)
            && let Ok(index) = at
        {
            self.retire_value(key, index, value, retire)?;
        }
        match value {
            Some(value) => self.put_at(key, value, at)?,
            None => match at {
                Ok(index) => self.delete_at(key, index)?,
                Err(_) => return Ok(false),
            },
        }
        Ok(at.is_ok())
    }

    /// The leaf of the path to where it is changed, if it fits there, else to the scratch buffer, for `flush` to give it a page of its
    /// own. Returns whether it fits.
    pub(crate) fn take_leaf(&mut self) -> Result<bool, TreeError<P::Error>> {
        let page = self.child(0);
        if self.load_leaf(page)?.is_some() {
            return Ok(true);
        }
        let size = self.copy_unspent(page)?;
        self.path[0] = Slot { page, present: true, ..Slot::ABSENT };
        self.pending.staged = Some(size);
        Ok(false)
    }

    /// Copies what counts of the path's leaf to the scratch buffer, to where it stands in a page of its own, and returns its size.
    pub(crate) fn copy_unspent(&mut self, page: u32) -> Result<usize, TreeError<P::Error>> {
        let at = self.own_front();
        let place = self.read_node(page, 0)?;
        let leaf = &self.reading.buf[place];
        let entries = self.unspent(leaf);
        if entries == (0..self.cells.leaf_count(leaf)) {
            self.scratch[at..at + leaf.len()].copy_from_slice(leaf);
            return Ok(leaf.len());
        }
        let count = entries.len();
        let run = LeafRun::new(Stretch::new(leaf, entries), Stretch::NONE, None);
        let size = self.cells.leaf_encode(&run, 0..count, &mut self.scratch[at..]);
        size.ok_or(TreeError::Corrupt { page: PageAddr(page), why: Malformed::Node })
    }

    fn put_at(&mut self, key: &[u8], value: &[u8], at: Result<usize, usize>) -> Result<(), TreeError<P::Error>> {
        let loaded = self.load_leaf(self.child(0))?;
        self.state.records += u64::from(at.is_err());
        let Some(had_spent) = loaded else {
            self.pending.at_end = false;
            return self.overflow((key, value), false);
        };
        let slot = self.path[0];
        let at = if had_spent { self.cells.leaf_find(&self.assembly[slot.range()], key) } else { at };
        let replaces = at.is_ok();
        let (Ok(index) | Err(index)) = at;
        let edit = RunEdit { at: index, replaces, key, value };
        let tail = self.tail();
        let buf = &mut self.assembly[slot.offset..tail];
        let count = self.cells.leaf_count(buf);
        let follows = self.pending.at_end && (self.pending.dirty || self.pending.run == Some(slot.page));
        self.pending.at_end = !replaces && index == count;
        let ascends = self.pending.at_end && count > 0 && (follows || self.is_last_leaf());
        // On a full medium a leaf takes what it has room for: what was put there was promised to need no page more.
        let is_spacious = ascends && self.pages.has_capacity(1, false);
        if is_spacious && slot.size + self.cells.entry_size(key, value) > self.ascending_size_max() {
            if self.may_part() {
                self.pending.overflowed = true;
                return Ok(());
            }
            return self.start_leaf(edit);
        }
        let buf = &mut self.assembly[slot.offset..tail];
        let size = match self.cells.leaf_put(buf, slot.size, at, key, value) {
            Some(size) => size,
            None => {
                let leaf = Stretch::whole(self.cells, &buf[..slot.size]);
                let run = LeafRun::new(leaf, Stretch::NONE, Some(edit));
                let room = buf.len().min(self.scratch.len());
                let Some(size) = self.cells.leaf_encode(&run, 0..run.count(), &mut self.scratch[..room]) else {
                    if ascends && !self.may_part() {
                        return self.start_leaf(edit);
                    }
                    return self.overflow((key, value), true);
                };
                buf[..size].copy_from_slice(&self.scratch[..size]);
                size
            }
        };
        self.path[0].size = size;
        self.pending.dirty = true;
        Ok(())
    }

    /// Bytes up to which ascending keys fill a leaf.
    ///
    /// They fill it beside the youngest path, whose nodes have few children yet. When the leaf is moved later, these have
    /// grown; a leaf that then does not fit beside them costs a second page for the path, each time it is moved. So room
    /// is left for inner nodes as large as they become before they are split.
    pub(crate) fn ascending_size_max(&self) -> usize {
        let height = self.state.height;
        let front = TreeBody::front(self.header_size, height as usize, true, 0);
        let room = self.assembly.len() - front;
        if height == 1 {
            // The first inner nodes come with the second leaf, and their size is not known yet.
            return room - self.limits.grown_root_size(2);
        }
        let child_size = |slot: &Slot| {
            let count = self.cells.inner_count(&self.assembly[slot.range()]).max(2);
            slot.size.div_ceil(count)
        };
        let top = self.top() as usize;
        let grown_root = self.limits.grown_root_size(height).max(self.path[top].size);
        let root_children = grown_root / child_size(&self.path[top]).max(1);
        let grown = |level: usize| {
            let slot = &self.path[level];
            self.limits.grown_size(level as u8, height, child_size(slot), root_children).max(slot.size)
        };
        let path: usize = (1..top).map(grown).sum::<usize>() + grown_root;
        // However long the path, a leaf of some entries is worth a page.
        room.saturating_sub(path).max(room / 2)
    }

    pub(crate) fn is_last_leaf(&self) -> bool {
        let inner = &self.path[1..self.state.height as usize];
        inner.iter().all(|slot| slot.index + 1 == self.cells.inner_count(&self.assembly[slot.range()]))
    }

    #[inline(never)]
    fn delete_at(&mut self, key: &[u8], index: usize) -> Result<(), TreeError<P::Error>> {
        self.state.records = self.state.records.saturating_sub(1);
        self.pending.at_end = false;
        self.pending.dirty = true;
        let page = self.child(0);
        let was_present = self.path[0].present && self.path[0].page == page;
        let (count, size) = if self.take_leaf()? {
            let slot = self.path[0];
            // Spent entries may have stood in front of it.
            let found = self.cells.leaf_find(&self.assembly[slot.range()], key);
            let index = if was_present { Ok(index) } else { found };
            let Ok(index) = index else { return Self::corrupt(page, Malformed::Node) };
            let size = self.cells.leaf_remove(&mut self.assembly[slot.offset..], slot.size, index);
            self.path[0].size = size;
            self.note_shrunk(slot.size, size);
            (self.cells.leaf_count(&self.assembly[slot.offset..]), size)
        } else {
            let at = self.own_front();
            let size = self.pending.staged.unwrap_or(0);
            let found = self.cells.leaf_find(&self.scratch[at..at + size], key);
            let Ok(index) = found else { return Self::corrupt(page, Malformed::Node) };
            let size = self.cells.leaf_remove(&mut self.scratch[at..], size, index);
            self.pending.staged = Some(size);
            (self.cells.leaf_count(&self.scratch[at..]), size)
        };
        debug_assert!(size <= self.assembly.len(), "a leaf fits a page");
        if count > 0 || self.state.height == 1 {
            return Ok(());
        }
        self.vanish(key)?;
        self.clear_heir(key)
    }

    /// Programs the path in the assembly buffer. With `commit` it becomes the tree, and what it replaced is dead; not, if
    /// the page was to be a journal page too and has no room for that.
    pub(crate) fn flush(&mut self, commit: bool, placement: Placement) -> Result<(), TreeError<P::Error>> {
        let top = self.top() as usize;
        let detached = self.unstage()?;
        let lowest = if detached.is_some() { 1 } else { self.pending.lowest as usize };
        let linked = detached.or(self.pending.linked.take());
        if lowest == 0 {
            self.retire_page(self.path[0].page);
        }
        for level in lowest.max(1)..=top {
            self.repath(level, lowest, linked);
        }
        let gap = self.gap(lowest);
        let mut draft = Draft::EMPTY;
        let (rides, notes) = match GROUP || FILES {
            true => self.place_sections(gap.len(), commit, &mut draft)?,
            false => (false, NotesPlace::None),
        };
        // What is not compiled is known here not to be there.
        let draft = (GROUP && rides).then_some(&draft);
        let notes = if FILES { notes } else { NotesPlace::None };
        self.compose(lowest, draft, notes);
        // Without room for what is to be in a journal page it counts only with the page that will be one.
        let commit = commit && (draft.is_some() || !self.journals.is_riding());
        let is_commit = commit && notes != NotesPlace::Page;
        let page = self.pages.append(self.assembly, PageKind::Tree, placement, is_commit)?.0;
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        self.journal.append(page);
        self.pending.appended += 1;
        for (level, slot) in self.path.iter_mut().enumerate().take(top + 1) {
            let old_page = slot.page;
            slot.present = level >= lowest;
            (slot.page, slot.lowest) = (page, lowest as u8);
            if level == top {
                self.cache.drop_node(old_page, level as u8);
            } else if slot.present {
                self.cache.renew(old_page, level as u8, page, &self.assembly[slot.range()]);
            }
        }
        self.state.root = page;
        self.pending.run = (self.pending.at_end && lowest == 0).then_some(page);
        self.pending.dirty = false;
        self.pending.is_sparse = false;
        self.pending.lowest = 0;
        if commit {
            let notes_page = match notes {
                NotesPlace::Page => Some(self.append_notes(self.journals.named(), placement)?),
                _ => None,
            };
            self.snapshots.fresh = Some(page);
            self.finish();
            self.replace_notes_page(notes_page);
            self.drop_empty_table();
            if let Some(draft) = draft {
                self.stats.rides += 1;
                self.note_draft(page, draft, Node::Live, false);
            }
        }
        Ok(())
    }

    /// The commit is durable: what it replaced is dead, unless a snapshot keeps it.
    pub(crate) fn finish(&mut self) {
        self.committed = self.state;
        self.pending.appended = 0;
        while let Some(page) = self.journal.take(true) {
            let forgets_rides = self.broken.forgets_rides();
            match self.journals.find_mut(page) {
                // It is still needed for its changes.
                Some(listed) if !forgets_rides => {
                    listed.node = Node::Dead;
                    self.stats.outlived += u64::from(!listed.is_by_itself);
                }
                Some(listed) => {
                    listed.node = Node::Live;
                    self.pages.supersede(PageAddr(page));
                }
                None => self.bury_unless_kept(page),
            }
        }
        if self.journal.take_short() && self.pages.has_bare() {
            self.pages.doubt();
        }
        self.journal.clear();
    }

    /// Brings a leaf from the scratch buffer to its place, or, if it does not fit there, programs it by itself and
    /// returns its page.
    #[inline(never)]
    fn unstage(&mut self) -> Result<Option<u32>, TreeError<P::Error>> {
        let Some(size) = self.pending.staged.take() else {
            return Ok(None);
        };
        if self.place_leaf(size) {
            return Ok(None);
        }
        let old = self.path[0].page;
        self.retire_page(old);
        self.cache.drop_node(old, 0);
        self.stats.detached += 1;
        let at = self.own_front();
        self.cells.leaf_key(&self.scratch[at..at + size], 0, &mut self.keys[0]);
        self.path[0].page = PENDING;
        self.append_leaf(size).map(Some)
    }

    /// Copies the leaf in the scratch buffer to the front of the assembly buffer, if it fits.
    pub(crate) fn place_leaf(&mut self, size: usize) -> bool {
        let (front, tail) = (self.front(), self.tail());
        if front + size > tail {
            return false;
        }
        let at = self.own_front();
        self.assembly[front..front + size].copy_from_slice(&self.scratch[at..at + size]);
        self.path[0] = Slot { offset: front, size, index: 0, present: true, ..self.path[0] };
        true
    }

    /// Makes an inner node of the path point into the page being put together, and its old child there where that was.
    fn repath(&mut self, level: usize, lowest: usize, linked: Option<u32>) {
        let slot = self.path[level];
        let replaced = self.with_doubt(slot.page);
        let node = &mut self.assembly[slot.range()];
        let page_bits = u32::from(self.format.page_bits);
        if slot.page != PENDING && self.cells.inner_path(node).is_none() {
            self.journal.supersede(replaced);
        }
        let here = (level > lowest || linked.is_some() && level == lowest).then_some(slot.index);
        self.cells.inner_repath(node, slot.page, here, page_bits);
        if let Some(page) = linked.filter(|_| level == lowest) {
            self.cells.inner_repath(node, page, None, page_bits);
        }
    }

    /// Where the page that is put together has room between leaf and inner nodes.
    fn gap(&self, lowest: usize) -> core::ops::Range<usize> {
        let levels = usize::from(self.state.height) - lowest;
        let locator_size = if lowest > 0 { self.keys[0].as_slice().len() } else { 0 };
        let end = TreeBody::front(self.header_size, levels, true, locator_size);
        let gap = match lowest {
            0 => end + self.path[0].size..self.tail(),
            _ => end..self.path[lowest].offset,
        };
        assert!(gap.start <= gap.end, "the nodes of a path fit its page");
        gap
    }

    /// What a page that is put together is to carry in so much room: whether it is the draft, and notes.
    #[inline(never)]
    fn place_sections(
        &mut self,
        room: usize,
        commit: bool,
        draft: &mut Draft,
    ) -> Result<(bool, NotesPlace), TreeError<P::Error>> {
        if !commit {
            return Ok((false, NotesPlace::None));
        }
        if !self.journals.is_riding() {
            return Ok((false, self.place_notes(room)?));
        }
        let for_draft = room.checked_sub(SECTION_FRONT_SIZE + self.notes_size());
        if !for_draft.is_some_and(|room| self.draft_section(room, draft)) {
            return Ok((false, NotesPlace::None));
        }
        let notes = self.place_notes(room - SECTION_FRONT_SIZE - draft.section_size())?;
        // They fit, unless programs of Summaries failed.
        Ok(if notes == NotesPlace::Page { (false, NotesPlace::None) } else { (true, notes) })
    }

    /// Bytes that notes take in a page, if they all stay.
    #[inline]
    pub(crate) fn notes_size(&self) -> usize {
        if self.notes.is_empty() { 0 } else { self.size_of_notes() }
    }

    #[inline(never)]
    fn size_of_notes(&self) -> usize {
        SECTION_FRONT_SIZE + self.notes.size(|page| self.journal.is_old(page))
    }

    /// Writes the front of the page, and between leaf and inner nodes changes, notes and erased bytes.
    #[inline(never)]
    fn compose(&mut self, lowest: usize, draft: Option<&Draft>, notes: NotesPlace) {
        let gap = self.gap(lowest);
        let height = self.state.height as usize;
        let mut sizes = [0; HEIGHT_MAX];
        for (size, slot) in sizes.iter_mut().zip(&self.path) {
            *size = slot.size as u16;
        }
        let locator = if lowest > 0 { self.keys[0].as_slice() } else { &[] };
        let named = self.journals.named().map(JournalAt::Page);
        let front = TreeFront {
            height: height as u8,
            lowest: lowest as u8,
            format: self.format,
            records: self.state.records,
            has_values: self.pages.has_values(),
            journal: if draft.is_some() { Some(JournalAt::Here) } else { named },
            table: self.snapshots.named(),
            has_sections: draft.is_some() || notes.size() > 0,
            locator,
            sizes: &sizes[lowest..height],
        };
        front.write(self.assembly, self.header_size);
        let mut writer = SectionWriter::new(&mut self.assembly[gap]);
        if GROUP && let Some(draft) = draft {
            let content = writer.add(SectionKind::Changes, draft.section_size());
            draft.write_section(&self.journals, &self.changes, &self.format, content);
        }
        if let NotesPlace::Section(size) = notes {
            self.notes.write(writer.add(SectionKind::Notes, size), &self.journal);
        }
        writer.finish();
    }

    /// The page is dead once the change commits.
    pub(crate) fn retire_page(&mut self, page: u32) {
        if page != PENDING {
            self.journal.supersede(self.with_doubt(page));
        }
    }

    pub(crate) fn corrupt<T>(page: u32, why: Malformed) -> Result<T, TreeError<P::Error>> {
        Err(TreeError::Corrupt { page: PageAddr(page), why })
    }
}
