//! Room on the medium for changes: one that is taken has the room to reach its leaf.
//!
//! A change that waits in memory takes its pages later, when its leaf may overflow: a page more for each change, at worst, and no more than a
//! page for each leaf and what the bytes of the changes fill. So
//!
//! * a change that may need more pages than it frees is taken only where those that wait have room beside it in this way, room
//!   included that the medium keeps dead for its collector. Where they have not, they go to their leaves first;
//! * they go there with the room that is kept for deletions, where there is no other: it was promised when they came. Refused, they
//!   would fill the memory that a deletion has to wait in;
//! * a change that its leaf takes as it is needs no more pages than it frees, on a full medium too, like a deletion.
//!
//! None of this changes what is programmed in which order, so all that is said of tears elsewhere holds.

use nandu_index::Edit;
use nandu_media::value::{PageValue, TAG_INLINE};

use crate::TreeError;
use crate::descent::Seek;
use crate::merge::Aim;
use crate::pages::Pages;
use crate::tree::Tree;
use nandu_cells::Cells;

/// A leaf that overflows becomes three at most.
const LEAF_GROWTH: u32 = 2;

/// Bytes that two more children take in an inner node, where those that it has are smaller: longer separators are rare, and what they cost
/// beyond is a page of those that are kept dead.
const CHILDREN_SIZE: usize = 64;

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Whether changes that wait, with so many that come, have room to go to their leaves later.
    pub(crate) fn has_room_to_wait(&self, more: usize) -> bool {
        let waiting = self.changes.len() + more;
        // Those of one leaf share what it needs: a page, and as many as their bytes fill at worst, where a page is taken to hold a quarter of its
        // own: not proved, but lives on full chips find no change that has no room. There are no more leaves than live pages.
        let by_size = self.changes.size() / (self.assembly.len() / 4).max(1);
        let by_leaf = by_size.saturating_add(self.pages.live_pages() as usize).saturating_add(1);
        self.pages.has_capacity(u32::try_from(waiting.min(by_leaf)).unwrap_or(u32::MAX), true)
    }

    /// By how many pages more live after a put of this key. Where the medium is nearly full, which of the nodes above the leaf can
    /// be split decides: that reads what the put does.
    pub(crate) fn live_max_at(&mut self, key: &[u8]) -> Result<u32, TreeError<P::Error>> {
        let most = self.live_pages_max();
        if self.pages.has_capacity(most, false) {
            return Ok(most);
        }
        self.view(None);
        self.descend(Seek::At(key), 1)?;
        let takes_more = |tree: &Self, level: &u8| {
            let slot = tree.path[usize::from(*level)];
            let count = tree.cells.inner_count(&tree.assembly[slot.range()]);
            let size = slot.size + (2 * slot.size / count.max(1)).max(CHILDREN_SIZE);
            !tree.is_oversize(*level, count + 2, size)
        };
        let split = (1..self.state.height).take_while(|level| !takes_more(self, level)).count();
        Ok(LEAF_GROWTH + split as u32)
    }

    /// Calls what makes these edits. Where the medium is full for it, deletions that wait are brought to their leaves first, since until then
    /// what they delete counts; and where the leaves take the edits as they are, it is called again as what frees as many pages as it
    /// takes. Costs nothing more where there is room.
    pub(crate) fn or_in_place<T>(
        &mut self,
        edits: &[Edit<'_>],
        mut call: impl FnMut(&mut Self) -> Result<T, TreeError<P::Error>>,
    ) -> Result<T, TreeError<P::Error>> {
        let mut outcome = call(self);
        // What a snapshot keeps is not freed; and who puts page values says himself what frees, since of the room that is kept not all is for
        // everybody.
        if !self.is_full(&outcome) || self.frees || !self.snapshots.is_empty() || self.pages.has_bare() {
            return outcome;
        }
        let mut fits = self.fit_in_place(edits)?;
        if !fits && !self.changes.is_empty() {
            self.settle()?;
            outcome = call(self);
            fits = self.is_full(&outcome) && self.fit_in_place(edits)?;
        }
        if fits {
            self.frees = true;
            outcome = call(self);
            self.frees = false;
        }
        outcome
    }

    fn is_full<T>(&self, outcome: &Result<T, TreeError<P::Error>>) -> bool {
        matches!(outcome, Err(TreeError::Pages(error)) if self.pages.is_full(error))
    }

    /// Whether the leaves of these edits take them as they are, with all changes that wait for them. Reads each leaf once or twice.
    fn fit_in_place(&mut self, edits: &[Edit<'_>]) -> Result<bool, TreeError<P::Error>> {
        let mut growth = 0_usize;
        for edit in edits {
            match self.growth_of(edit)? {
                Some(more) => growth = growth.saturating_add(more),
                None => return Ok(false),
            }
        }
        for edit in edits.iter().filter(|edit| edit.value.is_some()) {
            let merged = self.changes_at(Aim::Key(edit.key))?;
            let size = self.merged_size(&merged)?.saturating_add(growth);
            // One that stands in a page of its own, since its path has grown, is split when it is programmed again.
            let may_split = growth == 0 && self.pages.has_capacity(1, true);
            if self.front() + size > self.tail() && !may_split {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// By how many bytes at most an edit makes its leaf larger; `None` if it needs pages of its own and frees none.
    fn growth_of(&mut self, edit: &Edit<'_>) -> Result<Option<usize>, TreeError<P::Error>> {
        let Some(value) = edit.value else { return Ok(Some(0)) };
        let is_large = self.is_large(edit.key, value.len());
        // Of a value in pages of its own the leaf says where they are.
        let size = if is_large { PageValue::SIZE } else { self.tag_size() + value.len() };
        let found = self.find_change(edit.key)?;
        let place = if found.is_none() {
            self.descend(Seek::At(edit.key), 1)?;
            Some(self.leaf_place(false)?)
        } else {
            None
        };
        let before = match (found, &place) {
            (Some(index), _) => self.changes.stored(index),
            (None, Some(place)) => {
                let leaf = self.bytes(place);
                self.cells.leaf_find(leaf, edit.key).ok().map(|at| self.cells.leaf_value(leaf, at))
            }
            (None, None) => None,
        };
        let frees_pages = self.tag_size() > 0 && before.is_some_and(|before| before.first() != Some(&TAG_INLINE));
        if is_large && !frees_pages {
            return Ok(None);
        }
        Ok(Some(match before {
            Some(before) => size.saturating_sub(before.len()),
            // Only how long the value is matters.
            None => self.scratch.get(..size).map_or(usize::MAX / 2, |value| self.cells.entry_size(edit.key, value)),
        }))
    }
}
