//! The value that is being put: its head as far as it is known, and the numbers of the group under way.
//!
//! Its pages are named by nothing yet. Whoever counts pages or moves them asks here, too.

use core::ops::Range;

use nandu_log::{Claim, Owner};
use nandu_media::features::{BLOBS, SNAPSHOTS};
use nandu_nand::CellMode;

use crate::division::{CHECK, Division, SINGLE_MAX, begin_head, number_at, number_in};
use crate::numbers::Numbers;
use crate::unsettled::Unsettled;

/// A value under way.
#[derive(Clone, Copy)]
struct Open {
    division: Division,
    /// Pages that were programmed.
    done: usize,
    /// Whether the head has the bytes that no page has.
    has_rest: bool,
    /// Sequence that its first page had at least.
    since: u64,
    /// What it asks of the log.
    want: Claim,
    /// How many bits a cell of its raw page has.
    mode: CellMode,
    /// And whose that is.
    owner: Owner,
}

/// Memory for a value that is being put.
pub(crate) struct Values<'m> {
    memory: &'m mut [u8],
    open: Option<Open>,
    /// Pages of a value in the mean of late, times [`WEIGHT`]; 0 where nobody knows.
    mean: usize,
    /// Snapshots, whose records may name pages of values, too.
    snapshots: Numbers,
    /// Copies that no commit may name yet.
    copies: Unsettled,
    /// Leaves of which the youngest snapshot may have to keep something yet; [`ALL`] where nobody knows.
    unkept: u32,
}

/// As many leaves as there are.
const ALL: u32 = u32::MAX;

/// Values of which a new one is one in the mean.
const WEIGHT: usize = 8;

impl<'m> Values<'m> {
    pub(crate) fn new(memory: &'m mut [u8]) -> Values<'m> {
        Values { memory, open: None, mean: 0, snapshots: Numbers::NONE, copies: Unsettled::NONE, unkept: ALL }
    }

    /// Whether there is memory for large values.
    pub(crate) fn is_there(&self) -> bool {
        !self.memory.is_empty()
    }

    /// The snapshots that there are.
    pub(crate) fn snapshots(&self) -> &Numbers {
        &self.snapshots
    }

    /// The same, to be changed.
    pub(crate) fn snapshots_mut(&mut self) -> &mut Numbers {
        self.unkept = ALL;
        &mut self.snapshots
    }

    /// Copies of raw pages that no commit may name yet.
    pub(crate) fn copies(&self) -> &Unsettled {
        &self.copies
    }

    /// The same, to be changed.
    pub(crate) fn copies_mut(&mut self) -> &mut Unsettled {
        &mut self.copies
    }

    /// Pages that growth leaves for what the youngest snapshot has to keep when all that it does not have yet is deleted: one for each leaf, of which the tree has so many at most.
    pub(crate) fn reserve(&self, leaves: u32) -> u32 {
        let is_held = SNAPSHOTS && self.snapshots.held().next().is_some();
        if is_held { self.unkept.min(leaves) } else { 0 }
    }

    /// Whether that may be less than it seems.
    pub(crate) fn may_reserve_less(&self) -> bool {
        SNAPSHOTS && self.unkept == ALL && self.snapshots.held().next().is_some()
    }

    /// So many leaves were counted that hold records of a user, and so many that hold what the youngest snapshot kept.
    pub(crate) fn counted_leaves(&mut self, leaves: u32, kept: u32) {
        self.unkept = leaves.saturating_sub(kept);
    }

    /// A leaf more is kept whole.
    pub(crate) fn kept_leaf(&mut self) {
        if self.unkept != ALL {
            self.unkept = self.unkept.saturating_sub(1);
        }
    }

    /// Begins a value, by this claim; if it has a raw page with so many bits in a cell, which is of this owner. The next page gets this sequence.
    pub(crate) fn begin(&mut self, division: Division, (want, since): (Claim, u64), (owner, mode): (Owner, CellMode)) {
        debug_assert!(self.open.is_none() && division.head_size() <= self.memory.len(), "one at a time");
        begin_head(self.memory, &division);
        self.mean = match self.mean {
            0 => WEIGHT * division.pages(),
            mean => mean - mean / WEIGHT + division.pages(),
        };
        self.open = Some(Open { division, done: 0, has_rest: division.rest().is_empty(), since, want, mode, owner });
    }

    /// No value is under way any more. Returns whether pages of it were programmed.
    pub(crate) fn close(&mut self) -> bool {
        self.open.take().is_some_and(|open| open.done > 0)
    }

    /// Whether nobody knows how many pages values have.
    pub(crate) fn is_unknown(&self) -> bool {
        self.mean == 0
    }

    /// So many values with so many pages were counted.
    pub(crate) fn counted(&mut self, values: u32, pages: u32) {
        debug_assert!(values > 0 || pages == 0, "pages are of values");
        self.mean = WEIGHT * (pages / values.max(1)).max(1) as usize;
    }

    /// Pages that stand together since they are of one value, in the mean.
    pub(crate) fn together(&self) -> u32 {
        (self.mean / WEIGHT).max(1) as u32
    }

    /// How the value under way is divided.
    pub(crate) fn division(&self) -> Option<Division> {
        self.open.filter(|_| BLOBS).map(|open| open.division)
    }

    /// Sequence from which on a page of no record may be one of the value under way.
    pub(crate) fn since(&self) -> Option<u64> {
        self.open.map(|open| open.since)
    }

    /// What the value under way asks of the log.
    pub(crate) fn claim(&self) -> Claim {
        self.open.map_or(Claim::Grow, |open| open.want)
    }

    /// The page that comes next, if one is left.
    pub(crate) fn next(&self) -> Option<usize> {
        self.open.filter(|open| open.done < open.division.pages()).map(|open| open.done)
    }

    /// Bytes of the value that come next, if some are missing; they may be none.
    pub(crate) fn part(&self) -> Option<usize> {
        let Open { division, has_rest, .. } = self.open?;
        match self.next() {
            Some(page) => Some(division.part(page).len()),
            None if has_rest => None,
            None => Some(division.rest().len()),
        }
    }

    /// The head gets the bytes that no page has. Returns whether it is time for that.
    pub(crate) fn take_rest(&mut self, bytes: &[u8]) -> bool {
        let is_rest = self.next().is_none();
        let Some(open) = self.open.as_mut().filter(|_| is_rest) else { return is_rest };
        let end = open.division.head_size();
        debug_assert!(bytes.len() == open.division.rest().len() && open.done == open.division.pages(), "what is left");
        self.memory[end - bytes.len()..end].copy_from_slice(bytes);
        open.has_rest = true;
        is_rest
    }

    /// The head gets the checksum of the raw page.
    pub(crate) fn set_check(&mut self, check: u32) {
        debug_assert!(self.division().is_some_and(|division| division.is_raw()));
        self.memory[CHECK].copy_from_slice(&check.to_le_bytes());
    }

    /// How many bits a cell has of the next page of the value under way, if that is a raw one.
    pub(crate) fn raw_next(&self) -> Option<CellMode> {
        let open = self.open.filter(|open| BLOBS && open.division.is_raw())?;
        self.next().map(|_| open.mode)
    }

    /// The raw page of the value under way was programmed again.
    pub(crate) fn move_raw(&mut self, page: u32) {
        debug_assert!(self.done() == 1 && self.division().is_some_and(|division| division.is_raw()));
        self.memory[number_at(0)].copy_from_slice(&page.to_le_bytes());
    }

    /// Whether a raw page is that of the value under way.
    pub(crate) fn has_raw(&self, page: u32) -> bool {
        self.done() == 1 && self.division().is_some_and(|division| division.is_raw()) && self.leader(0) == page
    }

    /// Whose the raw page of the value under way is; nobody's if it has none.
    pub(crate) fn owner(&self) -> Owner {
        self.open.map_or(Owner::NOBODY, |open| open.owner)
    }

    /// Pages that were programmed.
    pub(crate) fn done(&self) -> usize {
        self.open.map_or(0, |open| open.done)
    }

    /// The same with the one that comes next: it is a page of values where room is asked for it, as it was when the value began, so the answer is the same.
    pub(crate) fn with_next(&self) -> u32 {
        (self.done() + usize::from(self.next().is_some())) as u32
    }

    /// The numbers of the group under way, as they stand in its leader.
    pub(crate) fn numbers(&self) -> &[u8] {
        let Some(Open { division, done, .. }) = self.open else { return &[] };
        if !division.is_grouped() || done == division.pages() {
            return &[];
        }
        let (head, (_, place)) = (division.head_size(), division.place(done));
        debug_assert!(head + 4 * place <= self.memory.len(), "there is memory for a group");
        &self.memory[head..head + 4 * place]
    }

    /// The page that came next is programmed.
    pub(crate) fn programmed(&mut self, page: u32) {
        let Some(open) = &mut self.open else { return };
        let (group, place) = open.division.place(open.done);
        let at = match open.division.is_leader(open.done) {
            true => number_at(group),
            false => {
                let start = open.division.head_size() + 4 * place;
                Range { start, end: start + 4 }
            }
        };
        self.memory[at].copy_from_slice(&page.to_le_bytes());
        open.done += 1;
        debug_assert!(open.done <= open.division.pages(), "no more pages than the value has");
    }

    /// The head, which is whole when all pages are programmed.
    pub(crate) fn head(&self) -> &[u8] {
        &self.memory[..self.open.map_or(0, |open| open.division.head_size())]
    }

    /// A copy of the head of a value of one page, which is whole; `None` if it has more pages.
    pub(crate) fn single_head<'h>(&self, room: &'h mut [u8; SINGLE_MAX]) -> Option<&'h [u8]> {
        let head = self.head();
        let room = room.get_mut(..head.len()).filter(|_| self.done() == 1)?;
        room.copy_from_slice(head);
        Some(room)
    }

    /// Groups whose leaders the head names; where there are no groups, pages.
    pub(crate) fn leaders(&self) -> usize {
        let Some(open) = self.open else { return 0 };
        if open.done == open.division.pages() { open.division.heads() } else { open.division.place(open.done).0 }
    }

    /// The number of such a leader.
    pub(crate) fn leader(&self, group: usize) -> u32 {
        debug_assert!(group < self.leaders(), "a leader that was programmed");
        number_in(self.head(), group)
    }

    /// Room to look at another value's head in, while none is under way.
    pub(crate) fn scratch(&mut self) -> Option<&mut [u8]> {
        if self.open.is_none() { Some(self.memory) } else { None }
    }
}
