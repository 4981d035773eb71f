//! A leaf that is split while a part of it stays in its page.
//!
//! Two halves of a leaf that overflows are two pages, and one of them holds nothing new: it was on flash already. So where changes wait
//! in memory, one part goes to a new page, with its changes and the path, and the other stays where it is: the path leads there, with
//! narrower bounds than before. What left a leaf so stands in its page still. Such entries are **spent**.
//!
//! **The rule**: a leaf holds those entries of its page whose keys are between the bounds that its parents give it (T12). Everything that
//! looks at more of a leaf than one key leaves out the others, and they are dropped whenever the leaf is programmed.
//!
//! * Bounds get wider where a neighbour vanishes. The leaf that gets its range could show spent entries again, so if it holds any of that
//!   range it is programmed without them in the same commit ([`Tree::clear_heir`]).
//! * Whether a page lives is found out by a key of its leaf. The one in the middle is never spent while the leaf lives: a cut
//!   leaves the part that holds it where it is. So one search is enough.
//! * Changes of the part that stays are not in its page, and wait on in memory and in journal pages. The sequence of its page
//!   says about them what it said before; the page of the other part is newer than all its own.
//!
//! One program makes the new part, the new bounds and the sync durable together, and supersedes nothing that stays: a tear leaves
//! the leaf as it was. Where two neighbours are full, what comes between them gets the last third of one and the first of the other, so
//! leaves are as full as with parts that are all programmed. That alternative takes 2 or 3 pages, of which the last has little room for
//! what rides: 10,529 programs for 10,000 synced creates of files, not 10,038. It is what is done where each change is durable at once.

use core::ops::Range;

use nandu_index::KeyBuf;
use nandu_media::features::FILES;
use nandu_media::section::SECTION_FRONT_SIZE;

use crate::TreeError;
use crate::apply::Pending;
use crate::descent::LeafFences;
use crate::pages::Pages;
use crate::range::{Merged, Source};
use crate::split::Splice;
use crate::tree::Tree;
use nandu_cells::{Cells, LeafRun, SELF, Stretch};

/// Two neighbours share, rather than become three, while they fill less than the first of these many hundredths of two leaves, or than the
/// second and leave room for what rides.
const SHARE_BELOW: (usize, usize) = (80, 96);

/// A leaf that fills less than so many hundredths of its room is not parted for the sake of what rides: leaves do not become fuller again
/// by themselves.
const FILL_MIN: usize = 75;

/// Part of a leaf, as a divisor, in which the cheapest separator is looked for on either side of where a cut would be best: for
/// byte strings, which differ much in what they cost, and for integers.
const SLACK: (usize, usize) = (16, 64);

/// Three leaves become of two only if the one between gets so many of the first's changes, as a fraction: else it would overflow
/// again, and few of them would have gone to a leaf.
const CHANGES_MIN: (usize, usize) = (1, 4);

/// A leaf that takes part: in the assembly buffer, or in the reading buffer.
struct Side {
    place: Range<usize>,
    is_in_assembly: bool,
    entries: Range<usize>,
    /// Its changes in memory.
    changes: Range<usize>,
    /// The entry whose key its part that stays must hold.
    anchor: usize,
    /// Bytes of its entries with its changes, as [`Cells::entry_size`] counts them.
    weight: usize,
    /// Bytes as a node, about, for each [`SCALE`] of these.
    ratio: usize,
}

const SCALE: usize = 1024;

impl Side {
    /// Bytes of a leaf with all of it.
    fn size(&self) -> usize {
        self.weight * self.ratio / SCALE
    }

    /// The weight of so many bytes of a leaf.
    fn weight_of(&self, size: usize) -> usize {
        size * SCALE / self.ratio.max(1)
    }
}

/// Which part of a leaf stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    Low,
    High,
}

/// What goes to the new page.
struct Part {
    /// Entries of the leaf of the path.
    own: Range<usize>,
    /// Entries of its neighbour.
    other: Range<usize>,
    splice: Splice,
    /// The page of the neighbour, if all of it goes there.
    gone: Option<u32>,
}

impl Part {
    const NONE: Part =
        Part { own: 0..0, other: 0..0, splice: Splice { at: 0, removed: 0, count: 0, pages: [0; 3] }, gone: None };
}

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Whether leaves are parted. Only files ask for it.
    #[inline]
    pub(crate) fn parts_leaves(&self) -> bool {
        FILES && self.parts_leaves
    }

    /// Whether the leaf of the path may be parted when it overflows.
    #[inline]
    pub(crate) fn may_part(&self) -> bool {
        FILES && self.pending.may_part && self.pending.appended == 0
    }

    /// The leaf of the path, as it is on flash, does not take all its changes. Puts a part of it into the buffers and leaves the rest in
    /// its page; if that does not work out, nothing, so that the leaf is split. Reads a neighbour.
    #[inline(never)]
    pub(crate) fn part_leaf(&mut self) -> Result<(), TreeError<P::Error>> {
        // Nothing but the copy of the leaf was changed.
        self.path[0].present = false;
        self.pending = Pending::default();
        self.journal.clear();
        let Some(side) = self.side_of_path()? else { return Ok(()) };
        let sibling = self.sibling();
        let other = match sibling {
            Some((page, right)) => self.side_of_neighbour(page, right)?.map(|other| (other, page, right)),
            None => None,
        };
        let room = self.tail().saturating_sub(self.front());
        if side.size() * 100 < room * FILL_MIN {
            return Ok(());
        }
        let mut part = Part::NONE;
        let is_found = self.part_ascending(&side, &mut part)
            || other.as_ref().is_some_and(|(other, page, right)| {
                self.part_shared(&side, other, *page, *right, room, &mut part)
                    || self.part_between(&side, other, *page, *right, &mut part)
            })
            || self.part_in_two(&side, &mut part);
        if is_found {
            self.place_part(&side, other.as_ref().map(|(other, _, right)| (other, *right)), &mut part)?;
        }
        Ok(())
    }

    /// The leaf of the path, in the assembly buffer; `None` if it does not fit there.
    #[inline(never)]
    fn side_of_path(&mut self) -> Result<Option<Side>, TreeError<P::Error>> {
        let place = self.leaf_place(false)?;
        let (fences, mut anchor) = (self.leaf_fences(), KeyBuf::EMPTY);
        if self.anchor_of(self.bytes(&place), fences, &mut anchor).is_none() || self.load_leaf(self.child(0))?.is_none()
        {
            return Ok(None);
        }
        // Spent entries were left out.
        let place = self.path[0].range();
        let leaf = &self.assembly[place.clone()];
        let Ok(anchor) = self.cells.leaf_find(leaf, anchor.as_slice()) else { return Ok(None) };
        let entries = 0..self.cells.leaf_count(leaf);
        let side = Side { place, is_in_assembly: true, entries, changes: 0..0, anchor, weight: 0, ratio: 0 };
        Ok(Some(self.weigh(side, fences)))
    }

    /// A neighbour of it, in the reading buffer; `None` on a damaged volume.
    #[inline(never)]
    fn side_of_neighbour(&mut self, page: u32, right: bool) -> Result<Option<Side>, TreeError<P::Error>> {
        let place = self.read_neighbour(page)?;
        let fences = self.neighbour_fences(right);
        let mut key = KeyBuf::EMPTY;
        let leaf = &self.reading.buf[place.clone()];
        let entries = self.unspent_in(leaf, self.between(leaf, fences));
        let Some(anchor) = self.anchor_of(leaf, fences, &mut key) else { return Ok(None) };
        let side = Side { place, is_in_assembly: false, entries, changes: 0..0, anchor, weight: 0, ratio: 0 };
        Ok(Some(self.weigh(side, fences)))
    }

    /// The entry in the middle of a leaf, and its key; `None` on a damaged volume.
    fn anchor_of(&self, leaf: &[u8], fences: LeafFences, key: &mut KeyBuf) -> Option<usize> {
        let count = self.cells.leaf_count(leaf);
        if count == 0 {
            return None;
        }
        self.cells.leaf_key(leaf, count / 2, key);
        self.between(leaf, fences).contains(&(count / 2)).then_some(count / 2)
    }

    fn leaf_of(&self, side: &Side) -> &[u8] {
        if side.is_in_assembly { &self.assembly[side.place.clone()] } else { &self.reading.buf[side.place.clone()] }
    }

    fn weigh(&self, side: Side, fences: LeafFences) -> Side {
        let mut side = Side { changes: 0..0, ..side };
        let plain = self.weight_of_all(&side);
        let run = LeafRun::new(Stretch::new(self.leaf_of(&side), side.entries.clone()), Stretch::NONE, None);
        side.ratio = match plain {
            0 => SCALE,
            _ => self.cells.leaf_size(&run, 0..side.entries.len()) * SCALE / plain,
        };
        side.changes = self.changes_between(&self.changes, fences);
        side.weight = self.weight_of_all(&side);
        side
    }

    /// What a leaf will hold with its changes, from its first entry on.
    fn merged_of(side: &Side) -> Merged {
        Merged { leaf: (side.entries.start, side.entries.end), changes: (side.changes.start, side.changes.end) }
    }

    /// The next entry of what a leaf will hold: its key, where that comes from, and what the entry weighs.
    #[inline(never)]
    fn next_entry(&self, side: &Side, merged: &mut Merged, key: &mut KeyBuf) -> Option<(Source, usize)> {
        let leaf = self.leaf_of(side);
        loop {
            let source = self.next_merged(leaf, merged, key, true)?;
            let stored = match source {
                Source::Leaf(index) => Some(self.cells.leaf_value(leaf, index)),
                Source::Change(index) => self.changes.stored(index),
            };
            if let Some(stored) = stored {
                return Some((source, self.cells.entry_size(key.as_slice(), stored)));
            }
        }
    }

    /// The key of one of these entries.
    fn copy_key(&self, side: &Side, source: Source, key: &mut KeyBuf) {
        match source {
            Source::Leaf(index) => self.cells.leaf_key(self.leaf_of(side), index, key),
            Source::Change(index) => _ = key.set(self.changes.key(index)),
        }
    }

    /// What all of a leaf will weigh.
    #[inline(never)]
    fn weight_of_all(&self, side: &Side) -> usize {
        let (mut merged, mut key, mut sum) = (Self::merged_of(side), KeyBuf::EMPTY, 0);
        while let Some((_, weight)) = self.next_entry(side, &mut merged, &mut key) {
            sum += weight;
        }
        sum
    }

    /// The cheapest separator near where what is before it weighs so much, that leaves the anchor where it is to be, becomes this one of those that
    /// are spliced in; false if there is none.
    #[inline(never)]
    fn cut_side(&mut self, side: &Side, target: usize, stays: Stays, place: usize) -> bool {
        let slack = side.weight / if self.cells.key_size() == 0 { SLACK.0 } else { SLACK.1 };
        let mut best: Option<(u32, usize)> = None;
        let (mut before, mut key) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        let (mut merged, mut is_first, mut sum) = (Self::merged_of(side), true, 0_usize);
        while let Some((source, weight)) = self.next_entry(side, &mut merged, &mut key) {
            let distance = sum.abs_diff(target);
            if !is_first && distance <= slack.max(weight) {
                // The key becomes the separator: the stack is short where a leaf is parted.
                self.cells.separator(before.as_slice(), &mut key);
                let is_low = self.place_in(side, &key) > side.anchor;
                let cost = (self.cells.separator_cost(key.as_slice()), distance);
                let is_allowed = is_low == (stays == Stays::Low);
                if is_allowed && best.is_none_or(|best| cost < best) {
                    best = Some(cost);
                    self.keys[place].set(key.as_slice());
                }
            }
            self.copy_key(side, source, &mut before);
            is_first = false;
            sum += weight;
        }
        best.is_some()
    }

    /// The first entry of a leaf's page whose key is not below this one.
    fn place_in(&self, side: &Side, key: &KeyBuf) -> usize {
        let (Ok(at) | Err(at)) = self.cells.leaf_find(self.leaf_of(side), key.as_slice());
        at
    }

    /// The entries of a leaf from a separator on, or those below it.
    fn entries_beside(&self, side: &Side, cut: usize, is_above: bool) -> Range<usize> {
        let at = self.place_in(side, &self.keys[cut]).clamp(side.entries.start, side.entries.end);
        if is_above { at..side.entries.end } else { side.entries.start..at }
    }

    /// Keys ascend: the leaf stays, and what comes behind it, or behind what it will have room for, begins a new one.
    #[inline(never)]
    fn part_ascending(&mut self, side: &Side, part: &mut Part) -> bool {
        let Some(last) = side.entries.clone().next_back() else { return false };
        let (mut before, mut key) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
        self.cells.leaf_key(self.leaf_of(side), last, &mut before);
        let first_behind = match self.changes.find(before.as_slice()) {
            Ok(index) => index + 1,
            Err(index) => index,
        };
        let behind = first_behind.max(side.changes.start)..side.changes.end;
        let count = behind.clone().filter(|&index| self.changes.stored(index).is_some()).count();
        if count == 0 || count == 1 && !self.is_last_leaf() {
            return false;
        }
        let room = self.tail().saturating_sub(self.front());
        let roomy = room.saturating_sub(self.room_for_ride()).max(room * FILL_MIN / 100);
        let weight_max = side.weight_of(self.ascending_size_max().min(roomy));
        // The cut is above all that the page shows, also where changes take it away.
        let (mut merged, mut sum, mut seen) = (Self::merged_of(side), 0, 0);
        let (mut is_cut, mut is_overfull) = (false, false);
        while let Some((source, weight)) = self.next_entry(side, &mut merged, &mut key) {
            if matches!(source, Source::Change(index) if behind.contains(&index)) {
                seen += 1;
                is_overfull |= seen == 1 && sum > weight_max;
                if !is_cut && (sum + weight > weight_max || seen == count) {
                    self.cells.separator(before.as_slice(), &mut key);
                    self.keys[0].set(key.as_slice());
                    is_cut = true;
                }
                self.copy_key(side, source, &mut before);
            }
            sum += weight;
        }
        part.own = side.entries.end..side.entries.end;
        self.beside(&mut part.splice, true);
        is_cut && !is_overfull
    }

    /// Bytes that a page needs for what rides, about.
    fn room_for_ride(&self) -> usize {
        2 * SECTION_FRONT_SIZE
            + self.notes_size()
            + self.journals.list_size() / 2
            + 2 * self.group_peak.min(self.group_size * 2)
    }

    /// A leaf in two, of which that goes to the new page that has more of the changes, if that works out.
    #[inline(never)]
    fn part_in_two(&mut self, side: &Side, part: &mut Part) -> bool {
        let (below, anchored) = self.weights_to_anchor(side);
        let middle = self.lower_of_anchor(side);
        let half = side.weight / 2;
        let goes_low = middle - side.changes.start > side.changes.end - middle;
        [goes_low, !goes_low].into_iter().any(|goes_low| {
            let (target, stays) = match goes_low {
                true => (half.min(below), Stays::High),
                false => (half.max(below + anchored), Stays::Low),
            };
            if !self.cut_side(side, target, stays, 0) {
                return false;
            }
            let at = self.changes.lower(self.keys[0].as_slice());
            let changes = if goes_low { side.changes.start..at } else { at..side.changes.end };
            part.own = self.entries_beside(side, 0, !goes_low);
            part.other = 0..0;
            self.beside(&mut part.splice, !goes_low);
            // Without changes the same leaf would overflow the next time.
            !changes.is_empty()
        })
    }

    /// What is below the anchor of a leaf weighs, and the anchor.
    #[inline(never)]
    fn weights_to_anchor(&self, side: &Side) -> (usize, usize) {
        let (mut merged, mut key, mut below) = (Self::merged_of(side), KeyBuf::EMPTY, 0);
        while let Some((_, weight)) = self.next_entry(side, &mut merged, &mut key) {
            match self.cells.leaf_find(self.leaf_of(side), key.as_slice()) {
                Ok(at) if at == side.anchor => return (below, weight),
                Ok(at) | Err(at) if at > side.anchor => break,
                _ => below += weight,
            }
        }
        (below, 0)
    }

    /// The first change whose key is not below the anchor of a leaf.
    #[inline(never)]
    fn lower_of_anchor(&self, side: &Side) -> usize {
        let mut anchor = KeyBuf::EMPTY;
        self.cells.leaf_key(self.leaf_of(side), side.anchor, &mut anchor);
        self.changes.lower(anchor.as_slice())
    }

    /// The leaf of the path stays with one part, and the other is beside it, behind the first separator.
    fn beside(&self, splice: &mut Splice, low_stays: bool) {
        let page = self.child(0);
        splice.pages = if low_stays { [page, SELF, 0] } else { [SELF, page, 0] };
        splice.at = if self.state.height > 1 { self.path[1].index } else { 0 };
        (splice.removed, splice.count) = (1, 2);
    }

    /// The neighbour has room: it gets a part, in a new page.
    #[inline(never)]
    fn part_shared(&mut self, side: &Side, other: &Side, page: u32, right: bool, room: usize, part: &mut Part) -> bool {
        let size = side.size() + other.size();
        let percent = size * 50 / room.max(1);
        let is_roomy = percent <= SHARE_BELOW.1 && size / 2 + self.room_for_ride() <= room;
        if percent > SHARE_BELOW.0 && !is_roomy || side.size() <= size / 2 {
            return false;
        }
        let half = side.weight_of(size / 2);
        let (target, stays) = if right { (half, Stays::Low) } else { (side.weight - half, Stays::High) };
        if !self.cut_side(side, target, stays, 0) {
            return false;
        }
        let at = self.changes.lower(self.keys[0].as_slice());
        let changes = if right { at..other.changes.end } else { other.changes.start..at };
        if changes.is_empty() {
            return false;
        }
        part.own = self.entries_beside(side, 0, right);
        part.other = other.entries.clone();
        part.gone = Some(page);
        self.beside(&mut part.splice, right);
        part.splice.at -= usize::from(!right);
        part.splice.removed = 2;
        true
    }

    /// Both are full: what is between them gets a third of each.
    #[inline(never)]
    fn part_between(&mut self, side: &Side, other: &Side, page: u32, right: bool, part: &mut Part) -> bool {
        let third = (side.size() + other.size()) / 3;
        let (low, high) = if right { (side, other) } else { (other, side) };
        if low.size() <= third || high.size() <= third {
            return false;
        }
        let target = high.weight.saturating_sub(high.weight_of(third));
        if !self.cut_side(low, low.weight_of(third), Stays::Low, 0) || !self.cut_side(high, target, Stays::High, 1) {
            return false;
        }
        part.own = self.entries_beside(side, usize::from(!right), right);
        part.other = self.entries_beside(other, usize::from(right), !right);
        let changes = self.changes.lower(self.keys[0].as_slice())..self.changes.lower(self.keys[1].as_slice());
        let child = self.child(0);
        part.splice.pages = if right { [child, SELF, page] } else { [page, SELF, child] };
        part.splice.at = self.path[1].index - usize::from(!right);
        (part.splice.removed, part.splice.count) = (2, 3);
        changes.len() * CHANGES_MIN.1 >= side.changes.len() * CHANGES_MIN.0 && !changes.is_empty()
    }

    /// Puts a part into the buffers, and the new bounds into the levels above.
    fn place_part(
        &mut self,
        side: &Side,
        other: Option<(&Side, bool)>,
        part: &mut Part,
    ) -> Result<(), TreeError<P::Error>> {
        let at = self.own_front();
        let own = Stretch::new(&self.assembly[side.place.clone()], part.own.clone());
        let (first, second) = match other {
            None => (own, Stretch::NONE),
            Some((other, right)) => {
                let other = Stretch::new(&self.reading.buf[other.place.clone()], part.other.clone());
                if right { (own, other) } else { (other, own) }
            }
        };
        let run = LeafRun::new(first, second, None);
        let room = self.tail().saturating_sub(self.front()).min(self.scratch.len() - at);
        let Some(size) = self.cells.leaf_encode(&run, 0..run.count(), &mut self.scratch[at..at + room]) else {
            return Ok(());
        };
        self.stats.parted += 1;
        if let Some(page) = part.gone {
            self.retire_page(page);
            self.cache.drop_node(page, 0);
        }
        self.replace_leaves(&mut part.splice, size)
    }
}
