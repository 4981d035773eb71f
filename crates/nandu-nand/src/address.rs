//! Addresses of pages and blocks.

use core::fmt;

/// Address of a page: block number times pages per block, plus the page's place in its block.
///
/// Pages are numbered as the chip numbers them, LSB and MSB pages alike, whatever mode a block is in; so an address
/// does not change its meaning when a block changes its mode. The conversions live in
/// [`Geometry`](crate::Geometry), which alone knows how many pages a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddr(pub u32);

/// Address of a block, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddr(pub u32);

impl fmt::Display for PageAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for BlockAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
