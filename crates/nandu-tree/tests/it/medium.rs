//! Pages in memory. A page is poisoned the moment the tree says that it is superseded, and an append may be made to
//! fail; so a tree that reads what is dead, or relies on what was not programmed, does not get through a test.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use nandu_index::OrderedIndex;
use nandu_index::suite::{Cuttable, Subject};
use nandu_nand::PageAddr;
use nandu_tree::{
    Cells, Examine, Examined, Found, Need, Options, PageKind, Pages, Placement, SummaryRead, Tree, TreeError,
    memory_required,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Append,
    Erased,
    Full,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl std::error::Error for Failure {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Free,
    /// Appended, not committed yet.
    New,
    Live,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) programs: u64,
    pub(crate) commits: u64,
}

/// Blocks of bare pages, behind all other pages: for two streams, the second of pages that are moved.
struct Bare {
    first: u32,
    pages_per_block: u32,
    /// Block and next page of each stream.
    open: [Option<(u32, u32)>; 2],
    free: Vec<u32>,
    /// Programs left before one fails, which closes its block.
    fail_after: Option<u32>,
}

impl Bare {
    fn block(&self, page: u32) -> u32 {
        page - (page - self.first) % self.pages_per_block
    }
}

pub(crate) struct Medium {
    page_size: usize,
    header_size: usize,
    pages: Vec<Option<Box<[u8]>>>,
    /// Superseded since the last append: what they hold can be read until the next one.
    fading: Vec<u32>,
    lives: Vec<Life>,
    found: Vec<Option<Found>>,
    free: Vec<u32>,
    new: Vec<u32>,
    committed: Option<PageAddr>,
    pub(crate) counts: Counts,
    /// Whether superseded pages can still be read, as on a chip before the erase.
    pub(crate) keeps_stale: bool,
    /// Reads of Summaries to come that bring an erased page.
    pub(crate) erased_reads: u32,
    /// Appends left before one fails.
    pub(crate) fail_after: Option<u32>,
    /// Pages that `prepare` asks the tree to examine.
    pub(crate) to_examine: Vec<PageAddr>,
    pub(crate) examined: Vec<(PageAddr, Examined)>,
    bare: Option<Bare>,
    /// Whether the medium says that it has no room before something is moved.
    pub(crate) is_short: bool,
    /// Whether pages may be dead that were not superseded.
    is_doubted: bool,
}

/// A medium that a test and a tree share.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Rc<RefCell<Medium>>);

impl Shared {
    pub(crate) fn new(page_size: usize, header_size: usize, page_count: u32) -> Shared {
        let medium = Medium {
            page_size,
            header_size,
            pages: vec![None; page_count as usize],
            fading: Vec::new(),
            lives: vec![Life::Free; page_count as usize],
            found: vec![None; page_count as usize],
            free: (0..page_count).rev().collect(),
            new: Vec::new(),
            committed: None,
            counts: Counts::default(),
            keeps_stale: false,
            erased_reads: 0,
            fail_after: None,
            to_examine: Vec::new(),
            examined: Vec::new(),
            bare: None,
            is_short: false,
            is_doubted: false,
        };
        Shared(Rc::new(RefCell::new(medium)))
    }

    /// With so many blocks of bare pages behind the other pages.
    pub(crate) fn with_bare(page_size: usize, header_size: usize, page_count: u32, blocks: u32, block: u32) -> Shared {
        let shared = Shared::new(page_size, header_size, page_count);
        {
            let mut medium = shared.0.borrow_mut();
            let count = (page_count + blocks * block) as usize;
            medium.pages.resize(count, None);
            medium.lives.resize(count, Life::Free);
            medium.found.resize(count, None);
            let free = (0..blocks).rev().map(|index| page_count + index * block).collect();
            medium.bare =
                Some(Bare { first: page_count, pages_per_block: block, open: [None; 2], free, fail_after: None });
        }
        shared
    }

    /// After so many programs of bare pages and Summaries one fails.
    pub(crate) fn fail_bare_after(&self, programs: u32) {
        if let Some(bare) = &mut self.0.borrow_mut().bare {
            bare.fail_after = Some(programs);
        }
    }

    /// A Summary is lost: the page looks like nothing that the tree programmed.
    pub(crate) fn lose(&self, page: PageAddr) {
        self.0.borrow_mut().found[page.0 as usize] = None;
    }

    /// The power goes: what was appended after the last commit is lost, and nothing more goes to the open blocks.
    pub(crate) fn cut(&self) {
        let mut medium = self.0.borrow_mut();
        for page in std::mem::take(&mut medium.new) {
            medium.lives[page as usize] = Life::Free;
            medium.pages[page as usize] = None;
        }
        let Some(bare) = &mut medium.bare else { return };
        let open = std::mem::take(&mut bare.open);
        for (block, _) in open.into_iter().flatten() {
            medium.free_block(block);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0.borrow().counts
    }

    pub(crate) fn live_count(&self) -> usize {
        self.0.borrow().lives.iter().filter(|&&life| life != Life::Free).count()
    }

    /// Every page that is not free, in order.
    pub(crate) fn live_pages(&self) -> Vec<PageAddr> {
        let medium = self.0.borrow();
        (0..medium.lives.len() as u32).filter(|&p| medium.lives[p as usize] != Life::Free).map(PageAddr).collect()
    }

    pub(crate) fn bytes(&self, page: PageAddr) -> Vec<u8> {
        self.0.borrow().pages[page.0 as usize].as_deref().unwrap().to_vec()
    }

    pub(crate) fn is_table(&self, page: PageAddr) -> bool {
        self.0.borrow().found[page.0 as usize].is_some_and(|found| found.kind == PageKind::Snapshots)
    }

    pub(crate) fn summaries(&self) -> Vec<PageAddr> {
        let medium = self.0.borrow();
        let is_summary = |page: &u32| medium.found[*page as usize].is_some_and(|found| found.kind == PageKind::Summary);
        (0..medium.found.len() as u32).filter(is_summary).map(PageAddr).collect()
    }

    fn append_kind(&self, buf: &mut [u8], kind: PageKind, commit: bool) -> Result<PageAddr, Failure> {
        let mut medium = self.0.borrow_mut();
        if let Some(left) = &mut medium.fail_after {
            if *left == 0 {
                medium.fail_after = None;
                return Err(Failure::Append);
            }
            *left -= 1;
        }
        for faded in std::mem::take(&mut medium.fading) {
            medium.pages[faded as usize] = None;
            if medium.bare.as_ref().is_some_and(|bare| faded >= bare.first) {
                continue;
            }
            // Reused soon, so that an old page number finds another node there; but not at once.
            let place = medium.free.len().saturating_sub(3);
            medium.free.insert(place, faded);
        }
        let page = medium.free.pop().ok_or(Failure::Full)?;
        let header_size = medium.header_size;
        buf[..header_size].fill(0xAA);
        let slot = &mut medium.pages[page as usize];
        *slot = Some(Box::from(&*buf));
        medium.counts.programs += 1;
        medium.found[page as usize] = Some(Found { kind, sequence: medium.counts.programs });
        medium.lives[page as usize] = Life::New;
        medium.new.push(page);
        if commit {
            medium.counts.commits += 1;
            medium.committed = Some(PageAddr(page));
            for page in std::mem::take(&mut medium.new) {
                if medium.lives[page as usize] == Life::New {
                    medium.lives[page as usize] = Life::Live;
                }
            }
        }
        Ok(PageAddr(page))
    }

    /// Programs a page of a bare stream; `None` if that failed.
    fn append_to_block(&self, bytes: &[u8], stream: usize, is_summary: bool) -> Result<Option<PageAddr>, Failure> {
        let mut medium = self.0.borrow_mut();
        let medium = &mut *medium;
        if let Some(left) = &mut medium.fail_after {
            if *left == 0 {
                medium.fail_after = None;
                return Err(Failure::Append);
            }
            *left -= 1;
        }
        for faded in std::mem::take(&mut medium.fading) {
            medium.pages[faded as usize] = None;
            if medium.bare.as_ref().is_none_or(|bare| faded < bare.first) {
                medium.free.push(faded);
            }
        }
        let Some(bare) = &mut medium.bare else { return Err(Failure::Full) };
        let (block, page) = match bare.open[stream] {
            Some(open) => open,
            None => bare.free.pop().map(|block| (block, block)).ok_or(Failure::Full)?,
        };
        medium.counts.programs += 1;
        let fails = bare.fail_after == Some(0);
        bare.fail_after = bare.fail_after.and_then(|left| left.checked_sub(1));
        let last = block + bare.pages_per_block - 1;
        assert!(is_summary || page < last, "a value in the place of a Summary");
        bare.open[stream] = (page < last && !fails).then_some((block, page + 1));
        if fails {
            medium.free_block(block);
            return Ok(None);
        }
        medium.pages[page as usize] = Some(Box::from(bytes));
        medium.found[page as usize] =
            is_summary.then_some(Found { kind: PageKind::Summary, sequence: medium.counts.programs });
        if is_summary {
            medium.free_block(block);
        } else {
            medium.lives[page as usize] = Life::New;
            medium.new.push(page);
        }
        Ok(Some(PageAddr(page)))
    }

    pub(crate) fn patch(&self, page: PageAddr, place: Range<usize>, bytes: &[u8]) {
        let mut medium = self.0.borrow_mut();
        medium.pages[page.0 as usize].as_deref_mut().unwrap()[place].copy_from_slice(bytes);
    }
}

impl Medium {
    /// Erases a block of bare pages if nothing in it lives or is to come.
    fn free_block(&mut self, block: u32) {
        let Some(bare) = &mut self.bare else { return };
        let pages = block as usize..(block + bare.pages_per_block) as usize;
        let is_open = bare.open.iter().flatten().any(|open| open.0 == block);
        if is_open || self.lives[pages.clone()].iter().any(|&life| life != Life::Free) || bare.free.contains(&block) {
            return;
        }
        bare.free.insert(bare.free.len().saturating_sub(1), block);
        self.fading.retain(|page| !pages.contains(&(*page as usize)));
        self.pages[pages.clone()].fill(None);
        self.found[pages].fill(None);
    }
}

impl Pages for Shared {
    type Error = Failure;

    fn has_bare(&self) -> bool {
        self.0.borrow().bare.is_some()
    }

    fn bare_stream(&self, placement: Placement) -> u8 {
        u8::from(matches!(placement, Placement::Moved { .. }))
    }

    fn bare_room(&self, stream: u8) -> u32 {
        let medium = self.0.borrow();
        let Some(bare) = &medium.bare else { return 0 };
        bare.open[usize::from(stream)].map_or(0, |(block, next)| block + bare.pages_per_block - next)
    }

    fn bare_stream_of(&self, page: PageAddr) -> Option<u8> {
        let medium = self.0.borrow();
        let bare = medium.bare.as_ref().filter(|bare| page.0 >= bare.first)?;
        let block = bare.block(page.0);
        (0..2).find(|&stream| bare.open[usize::from(stream)].is_some_and(|open| open.0 == block))
    }

    fn append_bare(&mut self, bytes: &[u8], placement: Placement) -> Result<PageAddr, Failure> {
        let stream = self.bare_stream(placement).into();
        match self.append_to_block(bytes, stream, false)? {
            Some(page) => Ok(page),
            None => self.append_to_block(bytes, stream, false)?.ok_or(Failure::Append),
        }
    }

    fn append_summary(&mut self, buf: &mut [u8], stream: u8) -> Result<Option<PageAddr>, Failure> {
        self.append_to_block(buf, stream.into(), true)
    }

    fn read_bare(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<(), Failure> {
        let mut medium = self.0.borrow_mut();
        medium.counts.reads += 1;
        let bytes = medium.pages[page.0 as usize].as_deref();
        assert!(bytes.is_some() || medium.keeps_stale, "page {page} is read after it was superseded");
        buf.copy_from_slice(bytes.ok_or(Failure::Erased)?);
        Ok(())
    }

    fn read_summary(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<SummaryRead, Failure> {
        let mut medium = self.0.borrow_mut();
        medium.counts.reads += 1;
        if medium.erased_reads > 0 {
            medium.erased_reads -= 1;
            return Ok(SummaryRead::Erased);
        }
        let Some(bytes) = medium.pages[page.0 as usize].as_deref() else { return Ok(SummaryRead::Erased) };
        buf.copy_from_slice(bytes);
        Ok(if medium.found[page.0 as usize].is_some() { SummaryRead::Summary } else { SummaryRead::Unclear })
    }

    fn is_bare(&self, page: PageAddr) -> bool {
        self.0.borrow().bare.as_ref().is_some_and(|bare| page.0 >= bare.first)
    }

    fn last_of_block(&self, page: PageAddr) -> PageAddr {
        match &self.0.borrow().bare {
            Some(bare) if page.0 >= bare.first => PageAddr(bare.block(page.0) + bare.pages_per_block - 1),
            _ => page,
        }
    }

    fn has_room(&mut self, _pages: u32) -> Result<bool, Failure> {
        Ok(!self.0.borrow().is_short)
    }

    fn block_of(&self, page: PageAddr) -> u32 {
        match &self.0.borrow().bare {
            Some(bare) if page.0 >= bare.first => bare.block(page.0),
            _ => page.0,
        }
    }

    fn page_size(&self) -> usize {
        self.0.borrow().page_size
    }

    fn header_size(&self) -> usize {
        self.0.borrow().header_size
    }

    fn page_count(&self) -> u32 {
        self.0.borrow().pages.len() as u32
    }

    fn committed(&self) -> Option<PageAddr> {
        self.0.borrow().committed
    }

    fn read(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Found, Failure> {
        let mut medium = self.0.borrow_mut();
        medium.counts.reads += 1;
        let bytes = medium.pages[page.0 as usize].as_deref();
        if bytes.is_none() && medium.keeps_stale {
            return Err(Failure::Erased);
        }
        buf.copy_from_slice(bytes.unwrap_or_else(|| panic!("page {page} is read after it was superseded")));
        medium.found[page.0 as usize].ok_or(Failure::Erased)
    }

    fn append(
        &mut self,
        buf: &mut [u8],
        kind: PageKind,
        _placement: Placement,
        commit: bool,
    ) -> Result<PageAddr, Failure> {
        self.append_kind(buf, kind, commit)
    }

    fn stamp(&self) -> u32 {
        self.0.borrow().counts.programs as u32
    }

    fn has_values(&self) -> bool {
        self.0.borrow().found.iter().flatten().any(|found| found.kind == PageKind::Value)
    }

    fn doubt(&mut self) {
        self.0.borrow_mut().is_doubted = true;
    }

    fn supersede(&mut self, page: PageAddr) {
        let mut medium = self.0.borrow_mut();
        assert_ne!(medium.lives[page.0 as usize], Life::Free, "page {page} is superseded twice");
        assert!(
            medium.lives[page.0 as usize] == Life::New || medium.new.is_empty(),
            "page {page} is superseded before the commit"
        );
        medium.new.retain(|&new| new != page.0);
        medium.lives[page.0 as usize] = Life::Free;
        if medium.keeps_stale {
            return;
        }
        medium.fading.push(page.0);
        if let Some(block) = medium.bare.as_ref().filter(|bare| page.0 >= bare.first).map(|bare| bare.block(page.0)) {
            medium.free_block(block);
        }
    }

    fn prepare(&mut self, _need: Need) -> Result<Option<Examine>, Failure> {
        let mut medium = self.0.borrow_mut();
        while let Some(page) = medium.to_examine.pop() {
            // What is superseded is gone at once, unless it is kept.
            if medium.keeps_stale || medium.lives[page.0 as usize] != Life::Free {
                return Ok(Some(Examine { page, moves: true, may_wait: false }));
            }
        }
        Ok(None)
    }

    fn examined(&mut self, examine: Examine, outcome: Examined) -> Result<(), Failure> {
        self.0.borrow_mut().examined.push((examine.page, outcome));
        Ok(())
    }
}

pub(crate) fn memory(page_size: usize, options: &Options) -> &'static mut [u8] {
    vec![0x5A; memory_required(page_size, options)].leak()
}

/// An index and its medium, for the suite.
pub(crate) struct Bench<C: Cells> {
    pub(crate) medium: Shared,
    pub(crate) tree: Option<Tree<'static, Shared, C>>,
    cells: C,
    pub(crate) options: Options,
}

impl<C: Cells> Bench<C> {
    pub(crate) fn new(medium: Shared, cells: C, options: Options) -> Bench<C> {
        let memory = memory(medium.page_size(), &options);
        let tree = Tree::create(medium.clone(), cells, options, memory).unwrap();
        Bench { medium, tree: Some(tree), cells, options }
    }

    pub(crate) fn tree(&mut self) -> &mut Tree<'static, Shared, C> {
        self.tree.as_mut().unwrap()
    }

    /// Asserts that the medium and the tree agree on which pages live. Where the tree said that others may be dead these are
    /// collected first.
    pub(crate) fn check_lives(&mut self) {
        let mut found = Vec::new();
        self.tree().live_pages(&mut |page| found.push(page)).unwrap();
        found.sort();
        if std::mem::take(&mut self.medium.0.borrow_mut().is_doubted) {
            for page in self.medium.live_pages() {
                if found.binary_search(&page).is_err() {
                    Pages::supersede(&mut self.medium, page);
                }
            }
        }
        assert_eq!(found, self.medium.live_pages());
    }
}

impl<C: Cells> Subject for Bench<C> {
    type Error = TreeError<Failure>;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = TreeError<Failure>> {
        self.tree.as_mut().unwrap()
    }

    fn reopen(&mut self) {
        self.tree().sync().unwrap();
        self.check_lives();
        let medium = self.tree.take().unwrap().close();
        let memory = memory(medium.page_size(), &self.options);
        self.tree = Some(Tree::open(medium, self.cells, self.options, memory).unwrap());
    }
}

impl<C: Cells> Cuttable for Bench<C> {
    fn cut(&mut self) {
        let medium = self.tree.take().unwrap().close();
        medium.cut();
        let memory = memory(medium.page_size(), &self.options);
        self.tree = Some(Tree::open(medium, self.cells, self.options, memory).unwrap());
        self.check_lives();
    }
}
