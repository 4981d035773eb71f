//! Pages that are found again: what is changed gets a place on flash when the operation is complete.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};

use super::chain::Chain;
use super::format::{HEADER_SIZE, Header, Kind};
use super::space::{Role, Space};
use super::{DurableOptions, MountReads};
use crate::entry::{ENTRY_SIZE, decode, entry_at};
use crate::layout::{Image, Layout};
use crate::options::Stats;
use crate::pager::Recent;
use crate::pages::{Node, Pages, Result, Root};
use crate::{BaselineError, TreeKind};

/// Numbers from here on are pages that have no place on flash yet.
const PENDING_FIRST: u32 = 1 << 31;

/// How often a page is read or a block erased when transfers fail.
const TRIES_MAX: u32 = 3;

/// How often a page is tried in other blocks when programs fail.
const ATTEMPTS_MAX: u32 = 8;

/// Pages that have no place on flash yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Overlay {
    pages: BTreeMap<u32, Arc<Vec<u8>>>,
    /// Pages on flash that the overlay replaces. Those above the leaves stay needed until the next root is programmed,
    /// since a mount begins with the last one.
    superseded: Vec<(PageAddr, u8)>,
}

impl Overlay {
    pub(super) fn len(&self) -> u32 {
        self.pages.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.superseded.is_empty()
    }
}

/// The pages of a tree that can be opened again.
#[derive(Debug)]
pub(super) struct Store<N: Nand> {
    pub(super) nand: N,
    pub(super) layout: Layout,
    pub(super) options: DurableOptions,
    pub(super) space: Space,
    pub(super) chain: Chain,
    pub(super) overlay: Overlay,
    recent: Recent,
    pub(super) stats: Stats,
    pub(super) mount_reads: MountReads,
    /// The newest root on flash.
    pub(super) committed: Root,
    pub(super) next_sequence: u64,
    pub(super) pages_since_superblock: u32,
    next_pending: u32,
    /// Nothing is programmed at the end of an operation: more follow that belong to the same change.
    pub(super) is_held: bool,
    /// The next end of an operation programs everything, index nodes of a journal tree included.
    pub(super) is_forced: bool,
    /// A mount is putting right what a cut left. If it is cut itself, what it programmed must not be taken for changes: the
    /// block is erased and used by the next one, so that cuts in a row use up no blocks.
    pub(super) is_repair: bool,
    pub(super) is_poisoned: bool,
}

impl<N: Nand> Store<N> {
    pub(super) fn new(nand: N, options: DurableOptions, chain: Chain) -> Store<N> {
        let geometry = *nand.geometry();
        Store {
            layout: Layout::with_header(options.kind, &geometry, HEADER_SIZE, super::format::FACTS_COLUMN),
            space: Space::new(&geometry),
            recent: Recent::new(options.read_pages),
            nand,
            options,
            chain,
            overlay: Overlay::default(),
            stats: Stats::default(),
            mount_reads: MountReads::default(),
            committed: Root::EMPTY,
            next_sequence: 1,
            pages_since_superblock: 0,
            next_pending: PENDING_FIRST,
            is_held: false,
            is_forced: false,
            is_repair: false,
            is_poisoned: false,
        }
    }

    /// Reads a page into `buffer`; none if what is there does not verify.
    pub(super) fn read_verified(&mut self, page: PageAddr, buffer: &mut [u8]) -> Result<Option<Header>, N::Error> {
        match read(&mut self.nand, &mut self.stats, page, buffer) {
            Ok(_) => Ok(Header::parse(buffer, page).filter(|header| header.volume == self.options.volume)),
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => Ok(None),
            Err(error) => Err(BaselineError::Nand(error)),
        }
    }

    /// Erases a block. False if the block cannot be: then it is not used any more.
    pub(super) fn erase(&mut self, block: BlockAddr) -> Result<bool, N::Error> {
        self.stats.erases += 1;
        // Pages read before must not be taken for those programmed next.
        self.recent.forget(|page| self.space.geometry.block_of(page) == block);
        let mut outcome = self.nand.erase(block, CellMode::Slc);
        for _ in 1..TRIES_MAX {
            if !outcome.as_ref().is_err_and(|error| error.kind() == NandErrorKind::Bus) {
                break;
            }
            self.stats.erases += 1;
            outcome = self.nand.erase(block, CellMode::Slc);
        }
        match outcome {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == NandErrorKind::EraseFailed => {
                self.space.set_role(block, Role::Bad);
                self.space.unmarked.push(block);
                Ok(false)
            }
            Err(error) => Err(BaselineError::Nand(error)),
        }
    }

    /// Whether the outcome of a program says that another block has to be taken.
    pub(super) fn is_lost(outcome: core::result::Result<(), N::Error>) -> Result<Option<NandErrorKind>, N::Error> {
        match outcome {
            Ok(()) => Ok(None),
            Err(error) if matches!(error.kind(), NandErrorKind::ProgramFailed | NandErrorKind::Bus) => {
                Ok(Some(error.kind()))
            }
            Err(error) => Err(BaselineError::Nand(error)),
        }
    }

    /// Whether index nodes stay in memory when a leaf is written.
    fn is_journal(&self) -> bool {
        self.options.journal_nodes > 0 && self.options.kind == TreeKind::BPlus
    }

    /// The pages of the overlay that the end of this operation programs, in the order of their making, so that the root's
    /// comes last.
    fn due(&self, root: &Root) -> (Vec<u32>, bool) {
        let all: Vec<u32> = self.overlay.pages.keys().copied().collect();
        let leaves: Vec<u32> =
            all.iter().copied().filter(|number| self.layout.facts(&self.overlay.pages[number]).lowest == 1).collect();
        let dirty = all.len() - leaves.len();
        let has_root_leaf = root.height == 1;
        let is_partial = self.is_journal()
            && !self.is_forced
            && !leaves.is_empty()
            && !has_root_leaf
            && dirty <= self.options.journal_nodes as usize;
        if is_partial { (leaves, false) } else { (all, true) }
    }

    /// Programs what is due, and makes it count.
    fn commit(&mut self, root: &mut Root) -> Result<(), N::Error> {
        let (numbers, is_whole) = self.due(root);
        if self.space.peek(numbers.len() as u32).is_none() {
            return Err(BaselineError::Full);
        }
        let outcome = self.program_group(&numbers, is_whole, root);
        self.is_poisoned |= outcome.is_err();
        let places = outcome?;
        for number in &numbers {
            self.overlay.pages.remove(number);
        }
        for page in self.overlay.pages.values_mut() {
            point_to(&self.layout, Arc::make_mut(page).as_mut_slice(), &places);
        }
        if let Some(place) = root.page.and_then(|page| places.get(&page.0)) {
            root.page = Some(*place);
        }
        for place in places.values() {
            self.space.set_live(*place);
        }
        let superseded = std::mem::take(&mut self.overlay.superseded);
        for (page, level) in superseded {
            if is_whole || level == 1 {
                self.space.set_dead(page);
                self.recent.remove(page);
            } else {
                self.overlay.superseded.push((page, level));
            }
        }
        if is_whole {
            self.committed = *root;
        }
        Ok(())
    }

    /// Programs pages as one group: a cut before the last one leaves nothing of them, since a mount discards pages that no
    /// last one follows. When a program fails, all are programmed again elsewhere: they name each other's places.
    fn program_group(
        &mut self,
        numbers: &[u32],
        is_whole: bool,
        root: &Root,
    ) -> Result<BTreeMap<u32, PageAddr>, N::Error> {
        'attempt: for _ in 0..ATTEMPTS_MAX {
            let pages = self.space.peek(numbers.len() as u32).ok_or(BaselineError::Full)?;
            let places: BTreeMap<u32, PageAddr> = numbers.iter().copied().zip(pages).collect();
            for (index, number) in numbers.iter().enumerate() {
                let mut bytes = self.overlay.pages[number].as_ref().clone();
                point_to(&self.layout, &mut bytes, &places);
                let page = self.space.advance().ok_or(BaselineError::Full)?;
                let is_last = index + 1 == numbers.len();
                let header = Header {
                    sequence: self.next_sequence,
                    records: root.records,
                    volume: self.options.volume,
                    page,
                    kind: Kind::Tree,
                    tree: self.options.kind,
                    is_last,
                    has_root: is_last && is_whole,
                    is_repair: self.is_repair,
                    group_index: index as u16,
                };
                header.seal(&mut bytes);
                // The sequence grows whatever becomes of the program: a page whose program failed may read well, and a mount
                // must be able to tell it from the one that took its place.
                self.next_sequence += 1;
                self.pages_since_superblock += 1;
                self.stats.programs += 1;
                let outcome = self.nand.program(page, 0, &bytes);
                if let Some(kind) = Self::is_lost(outcome)? {
                    let block = self.space.geometry.block_of(page);
                    // A page with an unknown outcome may be half programmed, so its block takes no more either.
                    let is_failed = kind == NandErrorKind::ProgramFailed;
                    self.space.close(if is_failed { Role::Bad } else { Role::Data });
                    if is_failed {
                        self.space.evacuate.push(block);
                    }
                    continue 'attempt;
                }
            }
            return Ok(places);
        }
        Err(BaselineError::Poisoned)
    }

    /// Forgets changes that were not programmed.
    pub(super) fn restore(&mut self, overlay: Overlay) {
        self.overlay = overlay;
    }
}

/// Reads a page, again if the transfer failed.
fn read<N: Nand>(
    nand: &mut N,
    stats: &mut Stats,
    page: PageAddr,
    buffer: &mut [u8],
) -> core::result::Result<ReadStatus, N::Error> {
    for _ in 1..TRIES_MAX {
        stats.reads += 1;
        match nand.read(page, 0, buffer) {
            Err(error) if error.kind() == NandErrorKind::Bus => {}
            outcome => return outcome,
        }
    }
    stats.reads += 1;
    nand.read(page, 0, buffer)
}

/// Replaces numbers of pages without a place by their places, in all index nodes of a page.
fn point_to(layout: &Layout, page: &mut [u8], places: &BTreeMap<u32, PageAddr>) {
    let facts = layout.facts(page);
    for level in facts.lowest.max(2)..=facts.height {
        let Some(range) = layout.node(&facts, level, facts.height) else { continue };
        let node = &mut page[range];
        for at in 0..node.len() / ENTRY_SIZE {
            if let Some(place) = places.get(&entry_at(node, at).value) {
                node[at * ENTRY_SIZE + 4..(at + 1) * ENTRY_SIZE].copy_from_slice(&place.0.to_le_bytes());
            }
        }
    }
}

impl<N: Nand> Pages for Store<N> {
    type Chip = N::Error;

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn begin(&mut self) {
        self.recent.begin();
    }

    fn node(&mut self, page: PageAddr, level: u8, height: u8) -> Result<Node<'_>, N::Error> {
        let layout = self.layout;
        let bytes: &[u8] = if page.0 >= PENDING_FIRST {
            match self.overlay.pages.get(&page.0) {
                Some(bytes) => bytes,
                None => return Err(BaselineError::Corrupt { page, why: "it is on no chip" }),
            }
        } else {
            self.fetch(page)?
        };
        let facts = layout.facts(bytes);
        let Some(range) = layout.node(&facts, level, height) else {
            return Err(BaselineError::Corrupt { page, why: "it does not hold the level that its parent says" });
        };
        Ok(Node { bytes: &bytes[range], lowest: facts.lowest })
    }

    fn lowest(&mut self, page: PageAddr, height: u8) -> Result<(u8, Option<u32>), N::Error> {
        let layout = self.layout;
        let bytes = self.fetch(page)?;
        let facts = layout.facts(bytes);
        let Some(range) = layout.node(&facts, facts.lowest, height) else {
            return Err(BaselineError::Corrupt { page, why: "it holds no node" });
        };
        Ok((facts.lowest, decode(&bytes[range]).next().map(|entry| entry.key)))
    }

    fn allocate(&mut self) -> Result<PageAddr, N::Error> {
        let number = self.next_pending;
        // After two thousand million pages the numbers begin again; none of the first is in the overlay by then.
        self.next_pending = number.checked_add(1).filter(|&next| next != u32::MAX).unwrap_or(PENDING_FIRST);
        Ok(PageAddr(number))
    }

    fn release(&mut self, page: PageAddr) {
        self.overlay.pages.remove(&page.0);
    }

    fn put(&mut self, page: PageAddr, image: Image) {
        self.overlay.pages.insert(page.0, Arc::new(image.bytes));
    }

    fn supersede(&mut self, page: PageAddr, level: u8, lowest: u8) {
        if level != lowest {
            return;
        }
        if page.0 >= PENDING_FIRST {
            self.overlay.pages.remove(&page.0);
        } else {
            self.overlay.superseded.push((page, level));
        }
    }

    fn end(&mut self, root: &mut Root) -> Result<(), N::Error> {
        if self.is_held { Ok(()) } else { self.commit(root) }
    }

    fn is_live(&self, page: PageAddr) -> bool {
        page.0 >= PENDING_FIRST || self.space.is_live(page)
    }

    fn live_pages(&self) -> u64 {
        // Index pages that the overlay replaces are kept for a mount, and are not the tree's.
        let kept = self.overlay.superseded.iter().filter(|(page, _)| self.space.is_live(*page)).count() as u64;
        self.space.live_count() + u64::from(self.overlay.len()) - kept
    }

    fn stats_mut(&mut self) -> &mut Stats {
        &mut self.stats
    }
}

impl<N: Nand> Store<N> {
    /// The bytes of a page on flash, which have to verify.
    fn fetch(&mut self, page: PageAddr) -> Result<&[u8], N::Error> {
        if !self.space.geometry.contains_page(page) {
            return Err(BaselineError::Corrupt { page, why: "it is outside the chip" });
        }
        if let Some(at) = self.recent.find(page) {
            return Ok(self.recent.bytes(at));
        }
        let volume = self.options.volume;
        let buffer = self.recent.make_room(self.layout.size);
        let outcome = read(&mut self.nand, &mut self.stats, page, buffer);
        let header = Header::parse(buffer, page).filter(|header| header.volume == volume);
        match (outcome, header) {
            (Ok(_), Some(header)) if header.kind == Kind::Tree => {
                let at = self.recent.keep(page);
                Ok(self.recent.bytes(at))
            }
            (Err(error), _) => Err(BaselineError::Nand(error)),
            (Ok(_), _) => Err(BaselineError::Corrupt { page, why: "it does not verify" }),
        }
    }
}
