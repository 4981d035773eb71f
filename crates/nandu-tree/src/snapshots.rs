//! Snapshots: old roots that are kept reachable, in a table on flash.
//!
//! A snapshot is the root that the tree had. Nothing is copied: what the tree replaces afterwards stays where it is as long
//! as a snapshot reaches it. The **table of snapshots** is a page of its own that is a commit: it says which roots are kept
//! and which one is the tree's, so taking and releasing a snapshot programs that page and nothing else, and is durable
//! when it returns. Pages with the root that are programmed later name the table. The alternative, the table beside each
//! root, saves a page and was refused: it takes room from every leaf as soon as there is a snapshot, and leaves filled
//! before that would no longer fit the page of their path.
//!
//! There are up to [`SNAPSHOT_COUNT_MAX`] of them, 24 bytes of memory each, in the tree itself: as many as a page of 256
//! bytes has room for. Each costs a search of its tree whenever a page is replaced that it may reach.
//!
//! **What lives** is what any of the trees reaches, so a page that the tree replaces is dead only if no snapshot reaches it.
//! That is looked at when it is replaced ([`Tree::bury_unless_kept`]), so that the counts of live pages stay exact; a
//! page that cannot be looked at stays counted. `trees.rs` tells how a page that several trees reach is moved.
//!
//! **While there are snapshots, no change waits for a sync**: each is durable when it returns. Changes that wait are made
//! known to be in a leaf by the leaf's being newer than the journal page; a leaf that is moved for a snapshot would have to
//! be newer without them. Taking a snapshot brings all that wait to their leaves first. So a table and a journal page are
//! never both needed, and neither has to name the other.
//!
//! A number is never given twice while its snapshot can be mistaken for another: it is taken from the medium's count of
//! pages, as the stamps of large values are.

use nandu_media::PageKind;
use nandu_media::features::SNAPSHOTS;
use nandu_media::snapshots::{Root, SNAPSHOT_COUNT_MAX, SnapshotRecord, SnapshotTable};
use nandu_nand::PageAddr;

use crate::descent::{PENDING, Slot};
use crate::pages::{Examined, Need, Pages, Placement};
use crate::tree::{State, Tree};
use crate::{Malformed, TreeError};
use nandu_cells::Cells;
use nandu_media::tree::HEIGHT_MAX;

/// In the journal, beside a page number: a snapshot may reach the page. Chips have fewer pages.
pub(crate) const MAYBE_KEPT: u32 = 1 << 30;

/// A state of the tree that is kept, see [`Tree::snapshot`]. A small value: it says which snapshot is meant, and is good for
/// as long as that one is not released, over mounts and power cuts too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    pub(crate) number: u32,
}

impl Snapshot {
    /// Names the snapshot; no two have the same, and later ones have higher ones.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// The table of snapshots in memory.
#[derive(Clone, Copy)]
pub(crate) struct Snapshots {
    records: [SnapshotRecord; SNAPSHOT_COUNT_MAX],
    count: usize,
    /// Where the table is on flash. It stays after the last release until a commit leaves it out.
    pub(crate) page: Option<u32>,
    /// The snapshot whose tree the state of the tree is at the moment; none: its own.
    pub(crate) viewed: Option<usize>,
    /// A page programmed since the newest snapshot was taken, so that no snapshot reaches it.
    pub(crate) fresh: Option<u32>,
    /// Pages of the tree that snapshots reach, at most.
    pub(crate) shared: u32,
    /// Live pages that the tree does not reach, at least.
    pub(crate) kept: u32,
    /// Whether what is replaced is replaced in every tree that reaches it.
    pub(crate) is_joint: bool,
}

impl Snapshots {
    pub(crate) const NONE: Snapshots = Snapshots {
        records: [SnapshotRecord { number: 0, root: Root { page: 0, height: 0, records: 0 } }; SNAPSHOT_COUNT_MAX],
        count: 0,
        page: None,
        viewed: None,
        fresh: None,
        shared: 0,
        kept: 0,
        is_joint: false,
    };

    pub(crate) fn records(&self) -> &[SnapshotRecord] {
        &self.records[..if SNAPSHOTS { self.count } else { 0 }]
    }

    /// Without the feature `snapshots` there never is one.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.records().is_empty()
    }

    pub(crate) fn state(&self, place: usize) -> State {
        state(self.records[place].root)
    }

    pub(crate) fn place(&self, number: u32) -> Option<usize> {
        self.records().iter().position(|record| record.number == number)
    }

    /// The table that pages with the root name: none where there is nothing in it.
    pub(crate) fn named(&self) -> Option<u32> {
        self.page.filter(|_| !self.is_empty())
    }

    fn set(&mut self, records: &[SnapshotRecord]) {
        self.count = records.len();
        self.records[..records.len()].copy_from_slice(records);
    }

    /// A number for the next one: the wanted one, or the next that no snapshot has.
    fn unused(&self, wanted: u32) -> u32 {
        let mut number = wanted;
        while self.place(number).is_some() {
            number = number.wrapping_add(1);
        }
        number
    }
}

pub(crate) fn state(root: Root) -> State {
    State { root: root.page, height: root.height, records: root.records }
}

pub(crate) fn root(state: State) -> Root {
    Root { page: state.root, height: state.height, records: state.records }
}

impl<'m, P: Pages, C: Cells> Tree<'m, P, C> {
    /// Keeps the tree as it is now, to be read with [`Tree::at`] until it is [released](Tree::release). Durable when it
    /// returns. Programs 1 page and copies nothing, after [`Tree::settle`]; pages of the tree that are replaced later are not freed.
    ///
    /// # Errors
    ///
    /// [`TreeError::TooManySnapshots`]; [`TreeError::NoSnapshots`] where there are bare pages, which snapshots do not keep yet; a medium without room: one with snapshots keeps a part of its capacity free.
    pub fn snapshot(&mut self) -> Result<Snapshot, TreeError<P::Error>> {
        if self.pages.has_bare() {
            return Err(TreeError::NoSnapshots);
        }
        self.discard_value();
        self.settle()?;
        let count = self.snapshots.count;
        if count == SNAPSHOT_COUNT_MAX {
            return Err(TreeError::TooManySnapshots);
        }
        let counted = self.pages.live_pages();
        match self.keep(count) {
            // Counts that were too high are exact now.
            Err(TreeError::Pages(error)) if self.pages.is_full(&error) && self.pages.live_pages() < counted => {
                self.keep(count)
            }
            outcome => outcome,
        }
    }

    /// Takes a snapshot beside so many.
    fn keep(&mut self, count: usize) -> Result<Snapshot, TreeError<P::Error>> {
        let before = self.snapshots.shared;
        // A leaf has a record, and of the inner nodes there are not more than leaves. With large values that is less than what lives.
        let nodes = u32::try_from(self.state.records).unwrap_or(u32::MAX).saturating_mul(2).saturating_add(1);
        let shared = self.pages.live_pages().saturating_sub(self.snapshots.kept).min(nodes);
        self.pages.admit_snapshot(count + 1, shared)?;
        self.snapshots.shared = shared;
        let outcome = self.prepare(Need { pages: 1, pages_max: 1, live_max: 1, shrinks: false }).and_then(|()| {
            // Not before room was made: that moves pages, roots among them.
            let number = self.snapshots.unused(self.pages.stamp());
            let mut records = [SnapshotRecord::default(); SNAPSHOT_COUNT_MAX];
            records[..count].copy_from_slice(self.snapshots.records());
            records[count] = SnapshotRecord { number, root: root(self.state) };
            self.commit_table(&records[..=count], self.state, Placement::Update { supersedes: None })?;
            self.snapshots.fresh = None;
            Ok(Snapshot { number })
        });
        if outcome.is_err() {
            self.snapshots.shared = before;
            self.pages.note_snapshots(count, before);
        }
        outcome
    }

    /// Ends a snapshot: what only it reached is free. Durable when it returns. Programs 1 page, also on a full medium; then
    /// reads the inner nodes by which the snapshot's tree differs from the others, and, where there are large values, the
    /// leaves, but not more than about 256 pages; what is free beyond those is found out by the collector.
    ///
    /// # Errors
    ///
    /// [`TreeError::NoSnapshot`] if it was released before.
    pub fn release(&mut self, snapshot: Snapshot) -> Result<(), TreeError<P::Error>> {
        self.discard_value();
        let number = snapshot.number;
        if self.snapshots.place(number).is_none() {
            return Err(TreeError::NoSnapshot(number));
        }
        self.prepare(Need { pages: 1, pages_max: 1, live_max: 1, shrinks: true })?;
        let Some(place) = self.snapshots.place(number) else { return Err(TreeError::NoSnapshot(number)) };
        let gone = self.snapshots.state(place);
        let mut records = [SnapshotRecord::default(); SNAPSHOT_COUNT_MAX];
        let count = self.snapshots.count - 1;
        let others = self.snapshots.records().iter().filter(|record| record.number != number);
        for (left, record) in records.iter_mut().zip(others) {
            *left = *record;
        }
        let shared = self.snapshots.shared;
        self.snapshots.shared = if count > 0 { shared } else { 0 };
        if let Err(error) = self.commit_table(&records[..count], self.state, Placement::Update { supersedes: None }) {
            self.snapshots.shared = shared;
            return Err(error);
        }
        let live = self.pages.live_pages();
        // The release is durable, also if the power goes now. What is not found out here, because it would take too long or cannot
        // be read, stays counted as live until the collector looks at it, as it would after a cut.
        let found_all = self.bury_tree(gone).unwrap_or(false);
        if !found_all {
            self.pages.doubt();
        }
        let freed = live.saturating_sub(self.pages.live_pages());
        self.snapshots.kept = if found_all { self.snapshots.kept.saturating_sub(freed) } else { 0 };
        self.pages.note_snapshots(count, self.snapshots.shared);
        // It may hold nodes that no tree has any more.
        self.cache.clear();
        Ok(())
    }

    /// The snapshots there are, the oldest first. Costs nothing.
    pub fn snapshots(&self) -> impl ExactSizeIterator<Item = Snapshot> + use<'m, P, C> {
        let Snapshots { records, count, .. } = self.snapshots;
        records.into_iter().take(count).map(|record| Snapshot { number: record.number })
    }

    /// Programs the table; that is a commit, with which this is the tree. Undoes everything since the commit before if it
    /// fails.
    pub(crate) fn commit_table(
        &mut self,
        records: &[SnapshotRecord],
        current: State,
        placement: Placement,
    ) -> Result<(), TreeError<P::Error>> {
        let table = SnapshotTable::new(root(current), self.pages.has_values(), self.snapshots.shared, records);
        if SnapshotTable::size_max(self.header_size) > self.scratch.len() {
            return Err(TreeError::PageSize(self.scratch.len()));
        }
        table.write(self.scratch, self.header_size);
        let page = match self.pages.append(self.scratch, PageKind::Snapshots, placement, true) {
            Ok(page) => page.0,
            Err(error) => {
                self.undo();
                return Err(TreeError::Pages(error));
            }
        };
        assert!(page < self.page_count, "the medium keeps to its own size");
        self.reading.forget_page(page);
        if let Some(before) = self.snapshots.page.replace(page) {
            self.pages.supersede(PageAddr(before));
        }
        self.snapshots.set(records);
        self.stand(current);
        self.snapshots.viewed = None;
        self.finish();
        Ok(())
    }

    /// A commit that does not name the table is durable: without snapshots it is dead.
    pub(crate) fn drop_empty_table(&mut self) {
        if self.snapshots.is_empty()
            && let Some(table) = self.snapshots.page.take()
        {
            self.pages.supersede(PageAddr(table));
        }
    }

    /// Takes over the table that a commit page names.
    pub(crate) fn load_table(&mut self, page: u32) -> Result<(), TreeError<P::Error>> {
        if self.fetch(page)?.kind != PageKind::Snapshots {
            return Self::corrupt(page, Malformed::PageNumber);
        }
        self.parse_table(page).map(|_| ())
    }

    /// Takes over the table in the reading buffer, and returns which tree it says is the newest.
    pub(crate) fn parse_table(&mut self, page: u32) -> Result<State, TreeError<P::Error>> {
        let table = self.read_table(page)?;
        if table.has_values {
            self.pages.note_values();
        }
        self.snapshots.set(table.snapshots());
        self.snapshots.page = Some(page);
        self.snapshots.shared = table.shared.min(self.page_count);
        self.pages.note_snapshots(self.snapshots.count, self.snapshots.shared);
        Ok(state(table.current))
    }

    fn read_table(&mut self, page: u32) -> Result<SnapshotTable, TreeError<P::Error>> {
        let Ok(table) = SnapshotTable::parse(self.reading.buf, self.header_size) else {
            return Self::corrupt(page, Malformed::Node);
        };
        let roots = table.snapshots().iter().map(|record| record.root).chain([table.current]);
        for root in roots {
            if root.page >= self.page_count {
                return Self::corrupt(page, Malformed::PageNumber);
            }
            if root.height as usize > self.limits.height_max() {
                return Self::corrupt(page, Malformed::Levels);
            }
        }
        Ok(table)
    }

    /// Whether the table on flash says what is in memory; reads it.
    pub(crate) fn is_table_sound(&mut self) -> Result<bool, TreeError<P::Error>> {
        let Some(page) = self.snapshots.page else { return Ok(self.snapshots.is_empty()) };
        if self.fetch(page)?.kind != PageKind::Snapshots {
            return Ok(false);
        }
        let table = self.read_table(page)?;
        Ok(table.snapshots() == self.snapshots.records())
    }

    /// Finds out about a page that holds a table, and programs it anew if it is the newest one.
    #[inline(never)]
    pub(crate) fn examine_table(&mut self, page: PageAddr, moves: bool) -> Result<Examined, TreeError<P::Error>> {
        if self.snapshots.page != Some(page.0) {
            return Ok(Examined::Dead);
        }
        if !moves {
            return Ok(Examined::Live);
        }
        let records = self.snapshots.records;
        self.commit_table(&records[..self.snapshots.count], self.state, Placement::Moved { from: page })?;
        Ok(Examined::Moved)
    }

    /// Makes the tree of a snapshot, or the tree itself, the one that is read. Costs nothing; a root that is not kept in
    /// memory is read again.
    pub(crate) fn view(&mut self, place: Option<usize>) {
        if self.snapshots.viewed == place {
            return;
        }
        let state = place.map_or(self.committed, |place| self.snapshots.state(place));
        self.stand(state);
        self.snapshots.viewed = place;
    }

    /// Goes over to another root. Nothing may wait to be programmed.
    pub(crate) fn stand(&mut self, state: State) {
        assert!(!self.pending.dirty, "a change is under way while another tree is looked at");
        let top = self.top();
        let slot = self.path[top as usize];
        if top > 0 && slot.present && slot.page != PENDING {
            self.cache.insert(slot.page, top, &self.assembly[slot.range()]);
        }
        if state != self.state {
            self.path = [Slot::ABSENT; HEIGHT_MAX];
        }
        self.state = state;
    }
}
