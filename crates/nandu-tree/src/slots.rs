//! What is known of the nodes of a path, and how steps of an operation go.

use core::ops::Range;

use nandu_cells::SELF;

/// In place of a page number: the page that is being put together. Equals [`SELF`], so that a node encoded with a child there and a slot of that child agree.
pub(crate) const PENDING: u32 = SELF;

/// A neighbour is read when a leaf comes to hold one part less of so many.
pub(crate) const STEPS: usize = 8;

/// How many of these parts a leaf holds at most when a neighbour is read.
pub(crate) const STEPS_MAX: usize = 7;

/// A node of the path in the page buffer.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Where the node is on flash, or [`PENDING`].
    pub(crate) page: u32,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    /// The child that the path goes on to.
    pub(crate) index: usize,
    pub(crate) is_present: bool,
}

impl Slot {
    pub(crate) const ABSENT: Slot = Slot { page: PENDING, offset: 0, size: 0, index: 0, is_present: false };

    pub(crate) fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.size
    }
}

/// What was changed in the buffers and is not programmed yet.
#[derive(Clone, Copy)]
pub(crate) struct Draft {
    pub(crate) is_dirty: bool,
    /// Lowest level of the path that goes into the page: above 0 if the leaf vanished, or got a page of its own.
    pub(crate) lowest: u8,
    /// The page that the child of the lowest node is in from now on.
    pub(crate) linked: Option<u32>,
    /// Size of a leaf that stands in the side buffer.
    pub(crate) staged: Option<usize>,
    /// Whether the leaf shrank, so that a neighbour may fit beside it.
    pub(crate) is_sparse: bool,
    /// Whether the page was put together. Once more, and it would say that pages are replaced which only lost a node.
    pub(crate) is_composed: bool,
}

impl Draft {
    pub(crate) const NONE: Draft =
        Draft { is_dirty: false, lowest: 0, linked: None, staged: None, is_sparse: false, is_composed: false };
}

/// Whether keys come in ascending order.
#[derive(Clone, Copy)]
pub(crate) struct Ascent {
    /// Whether the last change put an entry at the end of its leaf.
    pub(crate) at_end: bool,
    /// Page of the leaf at whose end the last change put an entry.
    pub(crate) page: Option<u32>,
}

impl Ascent {
    pub(crate) const NONE: Ascent = Ascent { at_end: false, page: None };
}

/// Where a descent goes.
#[derive(Clone, Copy)]
pub(crate) enum Seek<'a> {
    /// To the leaf whose range holds this key.
    At(&'a [u8]),
    /// To the leaf whose range holds what is just before this key.
    Before(&'a [u8]),
    /// To the last leaf.
    Last,
}

/// How far a leaf grows before it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It is never divided: it takes what it has room for, in a page of its own if need be.
    Own,
    /// As far as it fits beside its ancestors.
    Full,
    /// As far as there is room for a list beside it, too.
    Early,
}

/// How a put went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// The entry is in the leaf.
    Fits,
    /// The leaf is full, and nothing was changed.
    Overflows,
    /// Keys ascend, and the full leaf is to stay as it is; nothing was changed.
    Starts,
}

/// How a splice of children went.
pub(crate) enum Respliced {
    /// The new node stands in the buffer lent, so many bytes, with the path's child at this index.
    Fits { size: usize, index: usize },
    /// The node must be split: it would have so many children.
    Oversize { count: usize },
}
