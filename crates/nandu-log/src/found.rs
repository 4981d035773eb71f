//! What the header of a valid page says.

use nandu_media::{Page, PageKind, Position, STREAM_COUNT_MAX};
use nandu_nand::PageAddr;

/// What the header of a valid page says, copied out of the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) page: PageAddr,
    pub(crate) kind: PageKind,
    pub(crate) sequence: u64,
    pub(crate) committed: Option<u32>,
    pub(crate) checkpoint: u32,
    pub(crate) volume: u32,
    pub(crate) stream: u8,
    pub(crate) is_commit: bool,
    pub(crate) is_moved: bool,
    pub(crate) positions: [Position; STREAM_COUNT_MAX],
}

impl Found {
    /// What stands here until a page was read.
    pub(crate) const NONE: Found = Found {
        page: PageAddr(0),
        kind: PageKind::Anchor,
        sequence: 0,
        committed: None,
        checkpoint: 0,
        volume: 0,
        stream: 0,
        is_commit: false,
        is_moved: false,
        positions: [Position::NONE; STREAM_COUNT_MAX],
    };

    pub(crate) fn of(page: &Page<'_>) -> Found {
        Found {
            page: PageAddr(page.page()),
            kind: page.kind(),
            sequence: page.sequence(),
            committed: page.committed(),
            checkpoint: page.checkpoint(),
            volume: page.volume(),
            stream: page.stream(),
            is_commit: page.is_commit(),
            is_moved: page.is_moved(),
            positions: core::array::from_fn(|stream| page.position(stream)),
        }
    }
}
