//! What the blocks of the chip are used for.

use nandu_log::BlockUse;
use nandu_nand::{BlockAddr, CellMode, Nand};

use crate::fs::Fs;

/// Blocks and pages of each region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Blocks that hold nothing.
    pub free_blocks: u32,
    /// Blocks of the tree and of the log, with one bit in a cell.
    pub tree_blocks: u32,
    /// Blocks with pages of files and one bit in a cell.
    pub slc_blocks: u32,
    /// Pages of files there that are needed, at most.
    pub slc_pages: u32,
    /// Blocks with pages of files and two bits in a cell.
    pub mlc_blocks: u32,
    /// Pages of files there that are needed, at most.
    pub mlc_pages: u32,
    /// Blocks that are not used.
    pub bad_blocks: u32,
}

impl<N: Nand> Fs<'_, N> {
    /// What the blocks of the chip are used for. Costs a pass over a table in memory.
    pub fn regions(&self) -> Regions {
        let mut regions = Regions::default();
        for (_, what, live) in self.uses() {
            let (blocks, pages) = match what {
                BlockUse::Free => (&mut regions.free_blocks, None),
                BlockUse::Anchors | BlockUse::Headed => (&mut regions.tree_blocks, None),
                BlockUse::Raw(CellMode::Slc) => (&mut regions.slc_blocks, Some(&mut regions.slc_pages)),
                BlockUse::Raw(CellMode::Mlc) => (&mut regions.mlc_blocks, Some(&mut regions.mlc_pages)),
                BlockUse::Bad => (&mut regions.bad_blocks, None),
            };
            *blocks += 1;
            if let Some(pages) = pages {
                *pages += u32::from(live);
            }
        }
        regions
    }

    /// What each block is used for, for a map. Costs a pass over a table in memory.
    pub fn uses(&self) -> impl Iterator<Item = (BlockAddr, BlockUse, u16)> {
        self.tree.log().uses()
    }
}
