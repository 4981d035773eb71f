//! What the trees need of pages, however they are kept.

use nandu_nand::PageAddr;

use crate::layout::{Image, Layout};
use crate::options::Stats;
use crate::{BaselineError, TreeKind};

/// Where the tree begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    /// The page with the root; none before the first change.
    pub(crate) page: Option<PageAddr>,
    /// Levels in all.
    pub(crate) height: u8,
    /// Records in all.
    pub(crate) records: u64,
}

impl Root {
    pub(crate) const EMPTY: Root = Root { page: None, height: 1, records: 0 };
}

/// A node, lent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    /// Its entries.
    pub(crate) bytes: &'a [u8],
    /// The lowest level in its page: the page dies with that node.
    pub(crate) lowest: u8,
}

pub(crate) type Result<T, E> = core::result::Result<T, BaselineError<E>>;

/// Pages that a tree reads and replaces. A change is a call of [`begin`](Pages::begin), reads, allocations, pages put
/// and nodes superseded, and [`end`](Pages::end), which is what makes it happen.
pub(crate) trait Pages {
    /// The chip's error.
    type Chip: core::error::Error + 'static;

    /// What a page holds, and where.
    fn layout(&self) -> &Layout;

    /// Whether a mu-Tree asks for its page before it descends.
    fn allocates_early(&self) -> bool {
        false
    }

    /// An operation begins.
    fn begin(&mut self);

    /// The node at a level, from 1, of a page.
    fn node(&mut self, page: PageAddr, level: u8, height: u8) -> Result<Node<'_>, Self::Chip>;

    /// The lowest level in a page and the first key of the node there, if it has one.
    fn lowest(&mut self, page: PageAddr, height: u8) -> Result<(u8, Option<u32>), Self::Chip>;

    /// A page to put something in.
    fn allocate(&mut self) -> Result<PageAddr, Self::Chip>;

    /// Gives back a page that was allocated and is not needed.
    fn release(&mut self, page: PageAddr);

    /// What is to be programmed into an allocated page.
    fn put(&mut self, page: PageAddr, image: Image);

    /// A node is replaced; if it is the lowest in its page, the page is dead.
    fn supersede(&mut self, page: PageAddr, level: u8, lowest: u8);

    /// The change is complete, and this is the tree now. What the root's page is may change with it.
    fn end(&mut self, root: &mut Root) -> Result<(), Self::Chip>;

    /// Whether the page counts as live.
    fn is_live(&self, page: PageAddr) -> bool;

    /// How many pages count as live.
    fn live_pages(&self) -> u64;

    /// What is counted.
    fn stats_mut(&mut self) -> &mut Stats;

    /// Which tree it is for.
    fn kind(&self) -> TreeKind {
        self.layout().kind
    }
}
