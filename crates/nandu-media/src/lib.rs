//! Every byte nandu writes to flash.
//!
//! **For** whoever reads or writes images of volumes with other tools. Users of `nandu` do not need it.
//!
//! Each structure is a type that only its `parse` or its writer makes, after checking magic, checksum, version and
//! ranges in this order; what has been parsed has accessors that cannot fail. Integers are little-endian. Reserved
//! bytes are zero and checked.
//!
//! ```
//! // The checksum of every page is XXH32.
//! assert_eq!(nandu_media::checksum::page_checksum(b"abc"), 0x32D1_53FF);
//! ```
//!
//! **The key decision** is that a page describes itself in its main area: kind, version, volume, own address, sequence
//! and checksum stand in front of whatever it holds, and the spare area is left to the bad-block mark. The alternative,
//! tags in the spare area for all pages, costs no main area and was refused: parts with on-die error correction leave few protected
//! spare bytes, and parts with two bits a cell leave none. Where there are some, pages of file data may have one ([`tag`]), which
//! saves a program and is needed for nothing else.
//!
//! This crate knows bytes, not chips: page and block numbers are plain integers here.

#![no_std]

pub mod anchor;
pub mod change;
pub mod checksum;
pub mod dffs;
pub mod features;
pub mod header;
pub mod inpage;
mod malformed;
pub mod path;
pub mod section;
pub mod table;
pub mod tag;
pub mod tree;
pub mod value;
pub mod volume;

pub use anchor::{Anchor, AnchorFields, HeadFields};
pub use header::{Page, PageFields, PageHeader, PageKind, Position};
pub use malformed::{Field, Malformed};
pub use table::{BlockRecord, BlockState};

/// Version of the format that this crate writes and reads.
pub const FORMAT_VERSION: u8 = 2;

/// A page number that stands for no page.
pub const NO_PAGE: u32 = u32::MAX;

/// A block number that stands for no block.
pub const NO_BLOCK: u32 = u32::MAX;

/// Most streams a log can have.
pub const STREAM_COUNT_MAX: usize = 8;

/// Fewest streams a log can have, not counting those of pages without header.
pub const STREAM_COUNT_MIN: usize = 2;

/// Most blocks a checkpoint can hold ready.
pub const READY_COUNT_MAX: usize = 14;

/// Shortest list that a volume may be limited to.
pub const READY_COUNT_MIN: usize = 3;

/// Blocks that hold anchors.
pub const ANCHOR_COUNT: usize = 4;
