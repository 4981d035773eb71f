//! Orders that types keep: a block goes from [`Listed`] to [`Erased`] to open, and none of the two is made but by the step before.
//!
//! A block that is erased while a checkpoint still counts pages in it would, torn in that, have pages that can be taken neither for live nor for dead (N4). A block that only looks erased
//! loses what is programmed into it (N2). So an erase takes a block that the newest checkpoint lists, and opening takes one that was erased since:
//!
//! ```compile_fail,E0308
//! # use nandu_log::order::{Erased, Listed};
//! fn open(block: Erased) {}
//! fn wrong(block: Listed) {
//!     open(block); // It was not erased.
//! }
//! ```
//!
//! Nobody but the ready list says what is listed:
//!
//! ```compile_fail,E0423
//! # use nandu_nand::BlockAddr;
//! # use nandu_log::order::Listed;
//! let block = Listed(BlockAddr(7));
//! ```
//!
//! Nobody but the erase says what is erased:
//!
//! ```compile_fail,E0423
//! # use nandu_nand::BlockAddr;
//! # use nandu_log::order::Erased;
//! let block = Erased(BlockAddr(7));
//! ```
//!
//! And a block is opened once:
//!
//! ```compile_fail,E0382
//! # use nandu_log::order::Erased;
//! fn open(block: Erased) {}
//! fn wrong(block: Erased) {
//!     open(block);
//!     open(block);
//! }
//! ```

use nandu_nand::BlockAddr;

/// A block of the newest checkpoint's ready list, taken from there: it holds nothing that any mount could need.
#[derive(Debug)]
#[must_use = "a block that is taken from the ready list is opened or retired"]
pub struct Listed(BlockAddr);

impl Listed {
    pub(crate) fn taken(block: BlockAddr) -> Listed {
        Listed(block)
    }

    /// The block.
    pub fn block(&self) -> BlockAddr {
        self.0
    }

    /// The erase returned.
    pub(crate) fn erased(self) -> Erased {
        Erased(self.0)
    }
}

/// A block that was erased after the newest checkpoint called it empty.
#[derive(Debug)]
#[must_use = "a block that was taken and erased is opened"]
pub struct Erased(BlockAddr);

impl Erased {
    /// The block.
    pub fn block(&self) -> BlockAddr {
        self.0
    }
}
