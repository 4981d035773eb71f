//! Where the newest checkpoint is, and where the next one goes.

use nandu_media::ANCHOR_COUNT;
use nandu_nand::{BlockAddr, PageAddr};

/// The anchor blocks and the newest checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchors {
    pub(crate) blocks: [Option<BlockAddr>; ANCHOR_COUNT],
    /// Which of them holds the newest checkpoint.
    pub(crate) current: usize,
    /// Which of them holds the newest checkpoint that is known to be stable.
    pub(crate) base: usize,
    /// Pages programmed in the current one.
    pub(crate) next: u16,
    /// Whether the current block was written by this session alone, so that it may be programmed further.
    pub(crate) is_trusted: bool,
    /// The newest anchor.
    pub(crate) page: Option<PageAddr>,
    /// Sequence of the newest anchor at the mount.
    pub(crate) sequence: u64,
    /// Number of the newest checkpoint.
    pub(crate) number: u32,
    /// Whether the newest checkpoint says that nothing was programmed after it.
    pub(crate) is_clean: bool,
}

impl Anchors {
    pub(crate) const UNKNOWN: Anchors = Anchors {
        blocks: [None; ANCHOR_COUNT],
        current: 0,
        base: 0,
        next: 0,
        is_trusted: false,
        page: None,
        sequence: 0,
        number: 0,
        is_clean: false,
    };
}
