//! The tree: its memory, opening, looking up.

use core::fmt;

use nandu_index::KeyBuf;
use nandu_media::PageKind;
use nandu_nand::PageAddr;

use crate::broken::Broken;
use crate::changes::Changes;
use crate::copies::Copies;
use crate::descent::{Place, Reading, Slot};
use crate::group::Lift;
use crate::journals::Journals;
use crate::memory::{Durability, JOURNAL_PAGES_MIN, Journal, Options, memory_required, value_buffer_size};
use crate::notes::Notes;
use crate::pages::{Need, Pages};
use crate::part::Part;
use crate::residents::Wish;
use crate::snapshots::Snapshots;
use crate::split::Separators;
use crate::survey::Survey;
use crate::tail::TailState;
use crate::values::{Stored, Values};
use crate::{Placement, TreeError};
use nandu_cells::{Cache, Cells, LeafRun, Limits, Stretch};
use nandu_media::features::{BLOBS, FILES, GROUP, SNAPSHOTS};
use nandu_media::journal::JournalBody;
use nandu_media::notes::NotesPage;
use nandu_media::section::SectionKind;
use nandu_media::tree::{CellFormat, HEIGHT_MAX, JournalAt, TreeBody};

/// What the tree did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Leaves that overflowed and shared with a neighbour.
    pub shares: u64,
    /// Pairs of full leaves that became three.
    pub triples: u64,
    /// Leaves that took in a neighbour, since both fitted one page.
    pub joins: u64,
    /// Leaves that were split without a neighbour.
    pub splits: u64,
    /// Leaves begun behind a full one, for ascending keys.
    pub starts: u64,
    /// Inner nodes split.
    pub inner_splits: u64,
    /// Leaves that were split, or shared with a neighbour, while a part of them stayed in its page.
    pub parted: u64,
    /// Leaves that did not fit the page of their path and got one of their own.
    pub detached: u64,
    /// Journal pages by themselves.
    pub journals: u64,
    /// Leaves whose page carried changes of other leaves.
    pub rides: u64,
    /// Leaves whose page was to carry such changes and had no room for them.
    pub full_rides: u64,
    /// Leaves that a sync took along, so that the collector did not have to move them.
    pub lifted: u64,
    /// Pages moved that lived as leaves and carried changes of others.
    pub moved_rides: u64,
    /// Pages whose changes were needed when their leaves were programmed elsewhere.
    pub outlived: u64,
    /// Values that went into the page of a sync.
    pub residents: u64,
    /// Of these, moved to another page.
    pub moved_residents: u64,
}

/// What a commit makes durable besides the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) root: u32,
    pub(crate) height: u8,
    pub(crate) records: u64,
}

/// A mu-Tree on pages `P` with cells `C`, in memory given by the caller.
///
/// The memory holds four page buffers. The *assembly* buffer holds the inner nodes of the last path at its end, the
/// root last, and a leaf at its front, just as they are programmed; so the root is never read, and consecutive changes
/// to one leaf read nothing. The *reading* buffer holds the page read last. The *scratch* buffer holds a node that is
/// split off. The *value* buffer holds the index of a large value, or a small value on its way to its leaf.
pub struct Tree<'m, P, C> {
    pub(crate) pages: P,
    pub(crate) cells: C,
    pub(crate) format: CellFormat,
    pub(crate) header_size: usize,
    pub(crate) page_count: u32,
    pub(crate) limits: Limits,
    pub(crate) assembly: &'m mut [u8],
    pub(crate) scratch: &'m mut [u8],
    pub(crate) reading: Reading<'m>,
    pub(crate) cache: Cache<'m>,
    pub(crate) values: Values<'m>,
    pub(crate) journal: Journal<'m>,
    pub(crate) snapshots: Snapshots,
    pub(crate) path: [Slot; HEIGHT_MAX],
    pub(crate) state: State,
    pub(crate) committed: State,
    pub(crate) pending: crate::apply::Pending,
    /// The separators that are spliced in. At other times the first is a key in the range of the lowest node of the path, if that is not a
    /// leaf, and the second that of an entry which is lent.
    pub(crate) keys: Separators,
    pub(crate) durability: Durability,
    /// Whether the owner says of the batch under way that it takes no more room than there was.
    pub(crate) frees: bool,
    pub(crate) changes: Changes<'m>,
    pub(crate) journals: Journals,
    pub(crate) notes: Notes<'m>,
    pub(crate) copies: Copies<'m>,
    pub(crate) broken: Broken,
    /// Bytes of the changes of the last sync.
    pub(crate) group_size: usize,
    /// The same of the largest among the last ones; fades.
    pub(crate) group_peak: usize,
    pub(crate) tail: TailState,
    pub(crate) parts_leaves: bool,
    /// What a resident value asks of the memory for changes.
    pub(crate) wish: Wish,
    /// Where the search for a leaf to be merged goes on.
    pub(crate) sweep: Part<KeyBuf, { GROUP as usize }>,
    /// The leaf that is left for the next sync to take along.
    pub(crate) lift: Part<Lift, { GROUP as usize }>,
    /// What is known of the block that is being emptied.
    pub(crate) survey: Survey,
    pub(crate) stats: Stats,
}

impl<P, C> fmt::Debug for Tree<'_, P, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("root", &self.state.root)
            .field("height", &self.state.height)
            .field("records", &self.state.records)
            .finish_non_exhaustive()
    }
}

impl<'m, P: Pages, C: Cells> Tree<'m, P, C> {
    /// Makes an empty tree on a medium that holds none. Programs 1 page.
    ///
    /// `memory` is at least [`memory_required`] bytes; what is beyond is not used.
    #[inline(never)]
    pub fn create(pages: P, cells: C, options: Options, memory: &'m mut [u8]) -> Result<Self, TreeError<P::Error>> {
        Self::check(pages.page_size(), &options, memory.len())?;
        let mut tree = Tree::unopened(pages, cells, options, memory);
        tree.create_here()?;
        Ok(tree)
    }

    /// Makes it an empty one, as [`Tree::create`] does.
    pub fn create_here(&mut self) -> Result<(), TreeError<P::Error>> {
        self.configure()?;
        if self.pages.committed().is_some() { Err(TreeError::AlreadyThere) } else { self.make() }
    }

    /// Makes it the one that the medium holds, as [`Tree::open`] does.
    pub fn open_here(&mut self) -> Result<(), TreeError<P::Error>> {
        self.configure()?;
        let committed = self.pages.committed().ok_or(TreeError::NotFound)?;
        self.open_in_place(committed)
    }

    /// Opens the tree that the medium holds as [`open`](Tree::open) does, or makes an empty one where nothing was committed: a format
    /// that was cut between making the log and making the tree left a volume that holds nothing.
    #[inline(never)]
    pub fn open_or_create(
        pages: P,
        cells: C,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<Self, TreeError<P::Error>> {
        Self::check(pages.page_size(), &options, memory.len())?;
        let mut tree = Tree::unopened(pages, cells, options, memory);
        tree.open_or_create_here()?;
        Ok(tree)
    }

    /// As [`Tree::open_or_create`], in place.
    ///
    /// # Errors
    ///
    /// As [`Tree::open_or_create`].
    pub fn open_or_create_here(&mut self) -> Result<(), TreeError<P::Error>> {
        self.configure()?;
        match self.pages.committed() {
            Some(committed) => self.open_in_place(committed),
            None => self.make(),
        }
    }

    /// Programs the empty tree, in place.
    #[inline(never)]
    fn make(&mut self) -> Result<(), TreeError<P::Error>> {
        self.prepare(Need { pages: 1, pages_max: 1, live_max: 1, shrinks: false })?;
        self.empty();
        self.flush(true, Placement::Update { supersedes: None })?;
        Ok(())
    }

    /// Opens the tree that the medium holds. Reads 1 page, with snapshots 2, and 1 for each journal page that is still needed:
    /// those are at most 2 more than hold as many changes as fit `pending_size`, and up to 4 pages of leaves; none after
    /// [`Tree::settle`].
    #[inline(never)]
    pub fn open(pages: P, cells: C, options: Options, memory: &'m mut [u8]) -> Result<Self, TreeError<P::Error>> {
        Self::check(pages.page_size(), &options, memory.len())?;
        let mut tree = Tree::unopened(pages, cells, options, memory);
        tree.open_here()?;
        Ok(tree)
    }

    /// Opens the tree whose newest commit this page is. Apart from `open`, so that only one tree is on the stack while it works.
    #[inline(never)]
    fn open_in_place(&mut self, committed: PageAddr) -> Result<(), TreeError<P::Error>> {
        let corrupt = |why| TreeError::Corrupt { page: committed, why };
        let foreign = |error| match error {
            TreeError::Corrupt { why: crate::Malformed::Cells, .. } => TreeError::OtherFormat,
            error => error,
        };
        let mut said = None;
        let mut root = committed.0;
        let kind = self.fetch(committed.0).map_err(foreign)?.kind;
        Self::check_compiled(kind)?;
        if FILES {
            self.load_notes(committed, kind)?;
        }
        if SNAPSHOTS && kind == PageKind::Snapshots {
            if self.pages.has_bare() {
                return Err(corrupt(crate::Malformed::Levels));
            }
            let state = self.parse_table(committed.0)?;
            return self.open_at(state);
        }
        if FILES && kind == PageKind::Notes {
            return self.open_noted(committed);
        }
        if GROUP && kind == PageKind::Journal {
            let body = JournalBody::parse(self.reading.buf, self.header_size).map_err(corrupt)?;
            if body.format != self.format {
                return Err(TreeError::OtherFormat);
            }
            self.replay(committed.0, true)?;
            (said, root) = (Some((body.height, body.records)), body.root);
        }
        let body = self.read_body(root).map_err(foreign)?;
        let (is_root, in_root) = (body.root_present(), (body.height, body.records));
        let (has_values, journal, table) = (body.has_values, body.journal, body.table);
        if !is_root || in_root.0 as usize > self.limits.height_max() {
            return Err(TreeError::Corrupt { page: PageAddr(root), why: crate::Malformed::Levels });
        }
        let (height, records) = said.unwrap_or(in_root);
        if height != in_root.0 {
            return Err(corrupt(crate::Malformed::Levels));
        }
        self.state = State { root, height, records };
        self.committed = self.state;
        if has_values {
            self.pages.note_values();
        }
        self.load_root()?;
        let missing = |feature| Err(TreeError::NotCompiled { feature });
        match (said, journal, table) {
            _ if has_values && !BLOBS && !FILES => return missing("blobs"),
            (_, Some(_), _) if !GROUP => return missing("group"),
            (_, _, Some(_)) if !SNAPSHOTS => return missing("snapshots"),
            // There are no journal pages while there are snapshots: what the root says of a table is older than the journal.
            (Some(_), ..) => {}
            (None, Some(JournalAt::Page(journal)), None) => self.replay(journal, false)?,
            (None, Some(JournalAt::Here), None) => self.replay(root, true)?,
            (None, Some(_), _) => return Err(corrupt(crate::Malformed::Levels)),
            (None, None, Some(_)) if self.pages.has_bare() => return Err(corrupt(crate::Malformed::Levels)),
            (None, None, Some(table)) => self.load_table(table)?,
            (None, None, None) => {}
        }
        Ok(())
    }

    /// Refuses a commit of a kind that only a part writes that is not compiled.
    fn check_compiled(kind: PageKind) -> Result<(), TreeError<P::Error>> {
        let feature = match kind {
            PageKind::Snapshots if !SNAPSHOTS => "snapshots",
            PageKind::Notes if !FILES => "files",
            PageKind::Journal if !GROUP => "group",
            _ => return Ok(()),
        };
        Err(TreeError::NotCompiled { feature })
    }

    /// Begins at a root that another page names.
    fn open_at(&mut self, state: State) -> Result<(), TreeError<P::Error>> {
        match self.read_body(state.root) {
            Err(TreeError::Corrupt { why: crate::Malformed::Cells, .. }) => return Err(TreeError::OtherFormat),
            other => other?,
        };
        self.state = state;
        self.committed = state;
        self.load_root()?;
        Ok(())
    }

    /// Begins at a page that is the commit for the sake of its notes, which is in the reading buffer.
    fn open_noted(&mut self, committed: PageAddr) -> Result<(), TreeError<P::Error>> {
        let corrupt = |page, why| Err(TreeError::Corrupt { page: PageAddr(page), why });
        let said = match NotesPage::parse(self.reading.buf, self.header_size) {
            Ok(said) => said,
            Err(why) => return corrupt(committed.0, why),
        };
        let NotesPage { root, records, height, has_values, journal } = said;
        if has_values {
            self.pages.note_values();
        }
        self.notes.page = Some(committed.0);
        self.open_at(State { root, height, records })?;
        let body = self.read_body(root)?;
        if !body.root_present() || body.height != height || height as usize > self.limits.height_max() {
            return corrupt(root, crate::Malformed::Levels);
        }
        if let Some(journal) = journal {
            // It may name the tree as it was before a page of the tree that came after it, so nothing in it is proved.
            self.replay(journal, false)?;
        }
        Ok(())
    }

    /// Takes over the notes of the newest commit, which is in the reading buffer.
    fn load_notes(&mut self, committed: PageAddr, kind: PageKind) -> Result<(), TreeError<P::Error>> {
        let corrupt = |why| TreeError::Corrupt { page: committed, why };
        let notes = match kind {
            PageKind::Notes => Some(NotesPage::front(self.header_size)..self.assembly.len()),
            PageKind::Journal => {
                let body = JournalBody::parse(self.reading.buf, self.header_size).map_err(corrupt)?;
                body.sections.find(SectionKind::Notes)
            }
            PageKind::Tree => self.read_body(committed.0)?.sections.find(SectionKind::Notes),
            _ => None,
        };
        match notes {
            Some(place) => self.take_notes(committed, place),
            None => Ok(()),
        }
    }

    /// Whether a tree can be made with these options in so much memory: to be asked before [`Tree::unopened`].
    ///
    /// # Errors
    ///
    /// [`TreeError::MemoryTooSmall`], [`TreeError::NotCompiled`].
    pub fn check(page_size: usize, options: &Options, memory_size: usize) -> Result<(), TreeError<P::Error>> {
        if !GROUP && options.durability == Durability::OnSync {
            return Err(TreeError::NotCompiled { feature: "group" });
        }
        let required = memory_required(page_size, options);
        if memory_size < required {
            return Err(TreeError::MemoryTooSmall { required });
        }
        Ok(())
    }

    /// Takes over what the medium says of itself now that it is open, and finds out what fits a page.
    fn configure(&mut self) -> Result<(), TreeError<P::Error>> {
        let (page_size, header_size) = (self.pages.page_size(), self.pages.header_size());
        let limits = Limits::new(
            (page_size, header_size),
            |levels, locator| TreeBody::front(header_size, levels, true, locator),
            self.cells.key_size(),
            self.cache.size(),
        )
        .ok_or(TreeError::PageSize(page_size))?;
        let fixed_entry = usize::from(self.cells.key_size()) + usize::from(self.cells.value_size());
        if fixed_entry > limits.entry_size_max {
            return Err(TreeError::PageSize(page_size));
        }
        (self.header_size, self.limits) = (header_size, limits);
        let has_bare = self.pages.has_bare();
        self.journals = Journals::new(page_size, header_size, &self.format, self.changes.size(), has_bare);
        self.notes.configure(page_size, header_size, self.pages.exposed_max());
        Ok(())
    }

    /// A tree that knows nothing yet: [`Tree::create_here`], [`Tree::open_here`] or [`Tree::open_or_create_here`] comes next, before any other call. It cannot fail, so that no `Result` around it takes the
    /// stack of another tree, and whoever holds the tree makes it where it stays. [`Tree::check`] was asked about options and memory.
    // With two callers it would be returned on the stack, from where it would be copied.
    #[cfg_attr(feature = "files", inline(always))]
    pub fn unopened(pages: P, cells: C, options: Options, memory: &'m mut [u8]) -> Self {
        let page_size = pages.page_size();
        let (assembly, memory) = memory.split_at_mut(page_size);
        let (reading, memory) = memory.split_at_mut(page_size);
        let (scratch, memory) = memory.split_at_mut(page_size);
        let (values, memory) = memory.split_at_mut(value_buffer_size(page_size));
        let (cache, memory) = memory.split_at_mut(options.cache_size);
        let (journal, memory) = memory.split_at_mut(4 * options.journal_pages.max(JOURNAL_PAGES_MIN));
        let (changes, memory) = memory.split_at_mut(options.pending_size_used());
        let (notes, memory) = memory.split_at_mut(crate::notes::memory_size(options.note_count));
        let (copies, _) = memory.split_at_mut(crate::copies::memory_size(options.copy_count));
        let page_count = pages.page_count();
        // One value more than there are pages, all bits set, stands for "in this page".
        let page_bits = (32 - page_count.leading_zeros()) as u8;
        let format =
            CellFormat { cells: C::KIND, key_size: cells.key_size(), value_size: cells.value_size(), page_bits };
        let state = State { root: u32::MAX, height: 1, records: 0 };
        Tree {
            pages,
            cells,
            format,
            header_size: 0,
            page_count,
            limits: Limits::NONE,
            assembly,
            scratch,
            reading: Reading::new(reading),
            cache: Cache::new(cache),
            values: Values { buf: values, holds: None, writing: Part::NONE },
            journal: Journal::new(journal),
            snapshots: Snapshots::NONE,
            path: [Slot::ABSENT; HEIGHT_MAX],
            state,
            committed: state,
            pending: crate::apply::Pending::default(),
            keys: const { [KeyBuf::EMPTY; 2] },
            durability: options.durability,
            frees: false,
            changes: Changes::new(changes, &format),
            journals: Journals::NONE,
            notes: Notes::new(notes),
            copies: Copies::new(copies),
            broken: Default::default(),
            group_size: 0,
            group_peak: 0,
            parts_leaves: options.parts_leaves,
            wish: Wish::default(),
            sweep: Part::NONE,
            lift: Part::NONE,
            survey: Survey::NONE,
            tail: TailState::default(),
            stats: Stats::default(),
        }
    }

    /// Becomes the empty tree, to be flushed.
    pub(crate) fn empty(&mut self) {
        self.state.height = 1;
        self.state.records = 0;
        let front = self.front();
        let nothing = LeafRun::new(Stretch::NONE, Stretch::NONE, None);
        let size = self.cells.leaf_encode(&nothing, 0..0, &mut self.assembly[front..]).unwrap_or(0);
        self.path = [Slot::ABSENT; HEIGHT_MAX];
        self.path[0] = Slot { page: crate::descent::PENDING, offset: front, size, index: 0, lowest: 0, present: true };
        self.pending.lowest = 0;
        self.pending.dirty = true;
    }

    /// The value of a key, lent until the tree is used again. Reads at most as many pages as the tree has levels not
    /// in memory. A large value is not lent: the error names its size, and [`Tree::read`] copies it.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, TreeError<P::Error>> {
        self.check_key(key)?;
        if let Some(index) = self.find_change(key)? {
            let Some(stored) = self.changes.stored(index) else { return Ok(None) };
            return match self.stored(key, stored) {
                Some(Stored::Inline(value)) => Ok(Some(value)),
                Some(Stored::Large(length)) => Err(TreeError::LargeValue(length as usize)),
                _ => Err(TreeError::LargeValue(self.assembly.len())),
            };
        }
        let page = self.find_leaf(key)?;
        let place = self.leaf_in(page, true)?;
        let leaf = self.bytes(&place);
        let Ok(index) = self.cells.leaf_find(leaf, key) else { return Ok(None) };
        match self.stored(key, self.cells.leaf_value(leaf, index)) {
            Some(Stored::Inline(value)) => Ok(Some(value)),
            Some(Stored::Large(length)) => Err(TreeError::LargeValue(length as usize)),
            Some(Stored::Page) => Err(TreeError::LargeValue(self.assembly.len())),
            None => Self::corrupt(page, crate::Malformed::Node),
        }
    }

    /// Entries in the tree. Costs nothing.
    pub fn record_count(&self) -> u64 {
        if self.snapshots.viewed.is_some() { self.committed.records } else { self.state.records }
    }

    /// Levels in the tree, leaves included.
    pub fn height(&self) -> u8 {
        self.state.height
    }

    /// The page that the root is in.
    pub fn root(&self) -> PageAddr {
        PageAddr(self.state.root)
    }

    /// Bytes in the longest key that can be put.
    pub fn key_size_max(&self) -> usize {
        self.limits.key_size_max
    }

    /// Bytes that key and value of an entry may have together, for the value to stand in its leaf.
    pub fn entry_size_max(&self) -> usize {
        self.limits.entry_size_max - self.tag_size()
    }

    /// What the tree did since it was opened.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Test switch: from now on these rules are not kept.
    #[cfg(feature = "_broken")]
    pub fn set_broken(&mut self, broken: Broken) {
        self.broken = broken;
    }

    /// The medium.
    pub fn pages(&self) -> &P {
        &self.pages
    }

    /// The medium. Pages of this tree must not be appended or superseded through it.
    pub fn pages_mut(&mut self) -> &mut P {
        &mut self.pages
    }

    /// Gives the medium back. Nothing is lost that was durable; changes since the last sync are.
    pub fn close(mut self) -> P {
        self.drop_copies();
        self.pages
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<(), TreeError<P::Error>> {
        let fits = match self.cells.key_size() {
            0 => key.len() <= self.limits.key_size_max,
            size => key.len() == size as usize,
        };
        if fits { Ok(()) } else { Err(TreeError::KeySize(key.len())) }
    }

    pub(crate) fn check_value(&self, key: &[u8], value: &[u8]) -> Result<(), TreeError<P::Error>> {
        let fits = match self.cells.value_size() {
            0 if self.cells.key_size() == 0 => key.len() + value.len() <= self.entry_size_max(),
            size => value.len() == size as usize,
        };
        if fits { Ok(()) } else { Err(TreeError::ValueSize(value.len())) }
    }

    pub(crate) fn bytes(&self, place: &Place) -> &[u8] {
        match place {
            Place::Assembly(range) => &self.assembly[range.clone()],
            Place::Reading(range) => &self.reading.buf[range.clone()],
            Place::Cached(range) => self.cache.bytes(range.clone()),
        }
    }
}
