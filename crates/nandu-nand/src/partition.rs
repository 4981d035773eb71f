//! A range of a chip's blocks as a chip of its own.

use core::error::Error;
use core::fmt;

use crate::{
    BlockAddr, Cause, CellMode, CopyRule, ErrorType, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus,
};

/// Blocks `first..first + count` of a chip, as a chip of its own whose blocks count from 0.
///
/// For a boot loader or a picture of the firmware beside a volume, and for two volumes on one chip. Nothing outside of the range is
/// read, programmed or erased through it. `N` is a driver, a `&mut` to one, or [`&Shared`](crate::Shared) where several partitions are used at
/// once.
///
/// A page or block outside of the range is refused before the chip is asked. Everything else is what the chip answers, and costs
/// what it costs there. Partitions that overlap are not noticed.
///
/// # Which ranges are sound
///
/// Planes and dies stand in the block number ([`Geometry::plane_of`], [`Geometry::die_of`]), and pages are copied inside the chip by
/// them. So a block has to be in the same plane, and as even or odd, in the partition as in the chip. [`Geometry::partition`] refuses other
/// ranges: the first block is a multiple of the number of planes, an even one under [`CopyRule::Parity`], and the range lies in one die
/// or is made of whole dies.
///
/// # Bad blocks
///
/// A chip is rated for so many bad blocks and does not say where. All of them may lie in one partition, so each is rated for as many as
/// the chip, or for all its blocks if those are fewer. Blocks that the factory marked stay bad blocks of the partition.
///
/// ```
/// use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr, Partition, Shared};
/// # use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// # let driver = Sim::new(Chip::W25N01GV);
/// // 1,024 blocks: the boot loader has 8, records have 248, files the rest.
/// let chip = Shared::new(driver);
/// let mut records = Partition::new(&chip, BlockAddr(8), 248)?;
/// let mut files = Partition::new(&chip, BlockAddr(256), 768)?;
///
/// // Each goes to a store or file system of its own. Or without one:
/// records.erase(BlockAddr(0), CellMode::Slc)?;
/// files.erase(BlockAddr(0), CellMode::Slc)?;
/// files.program(PageAddr(0), 0, &[0x5a; 2048])?;
///
/// drop((records, files));
/// let mut page = [0; 2048];
/// let _ = chip.into_inner().read(PageAddr(256 * 64), 0, &mut page)?;
/// assert_eq!(page, [0x5a; 2048]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Partition<N> {
    chip: N,
    first: BlockAddr,
    geometry: Geometry,
}

/// Why a range of blocks is no partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// The range is empty or ends behind the chip, which has so many blocks.
    Outside {
        /// Blocks of the chip.
        block_count: u32,
    },
    /// The first block has another plane or parity than block 0: its place in its die has to be a multiple of a number.
    Start {
        /// The number.
        multiple: u32,
    },
    /// The range takes a part of one die and something of another. Dies have so many blocks.
    Dies {
        /// Blocks of a die.
        blocks_per_die: u32,
    },
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeError::Outside { block_count } => {
                write!(f, "a range that is empty or not in the {block_count} blocks of the chip")
            }
            RangeError::Start { multiple } => {
                write!(f, "a partition of this chip begins at a multiple of {multiple} blocks")
            }
            RangeError::Dies { blocks_per_die } => {
                write!(f, "a partition lies in one die of {blocks_per_die} blocks or is made of whole dies")
            }
        }
    }
}

impl Error for RangeError {}

/// An error of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionError<E> {
    /// The chip's error. Addresses in it are the chip's.
    Chip(E),
    /// The page or block is none of the partition. The chip was not asked.
    OutOfBounds,
}

impl<E: fmt::Display> fmt::Display for PartitionError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionError::Chip(error) => error.fmt(f),
            PartitionError::OutOfBounds => f.write_str("address outside the partition"),
        }
    }
}

impl<E: Error> Error for PartitionError<E> {}

impl<E: NandError> NandError for PartitionError<E> {
    fn kind(&self) -> NandErrorKind {
        match self {
            PartitionError::Chip(error) => error.kind(),
            PartitionError::OutOfBounds => NandErrorKind::OutOfBounds,
        }
    }
}

impl Geometry {
    /// The geometry of a partition of this chip, see [`Partition`]. A `const fn`, so that a static buffer can have the size that storage code
    /// asks for.
    ///
    /// # Errors
    ///
    /// [`RangeError`] for a range that is not in the chip or not sound.
    pub const fn partition(&self, first: BlockAddr, count: u32) -> Result<Geometry, RangeError> {
        if count == 0 || first.0 >= self.block_count || count > self.block_count - first.0 {
            return Err(RangeError::Outside { block_count: self.block_count });
        }
        let blocks_per_die = self.blocks_per_die();
        let place = first.0 % blocks_per_die;
        let die_count = if count <= blocks_per_die - place {
            1
        } else if place == 0 && count.is_multiple_of(blocks_per_die) && count / blocks_per_die <= self.die_count as u32
        {
            (count / blocks_per_die) as u8
        } else {
            return Err(RangeError::Dies { blocks_per_die });
        };
        let planes = if self.plane_count == 0 { 1 } else { self.plane_count as u32 };
        let by_parity = matches!(self.copies, CopyRule::Parity);
        if !place.is_multiple_of(planes) || by_parity && !first.0.is_multiple_of(2) {
            let multiple = if by_parity && !planes.is_multiple_of(2) { 2 * planes } else { planes };
            return Err(RangeError::Start { multiple });
        }
        let bad_block_max = if self.bad_block_max < count { self.bad_block_max } else { count };
        Ok(Geometry { block_count: count, bad_block_max, die_count, ..*self })
    }
}

impl<N: Nand> Partition<N> {
    /// The blocks `first..first + count` of a chip. Asks the chip for its geometry and nothing else.
    ///
    /// # Errors
    ///
    /// [`RangeError`] for a range that is not in the chip or not sound.
    pub fn new(chip: N, first: BlockAddr, count: u32) -> Result<Partition<N>, RangeError> {
        let geometry = chip.geometry().partition(first, count)?;
        Ok(Partition { chip, first, geometry })
    }

    /// The first block, as the chip counts.
    pub fn first(&self) -> BlockAddr {
        self.first
    }

    /// The whole chip.
    pub fn chip(&self) -> &N {
        &self.chip
    }

    /// The whole chip. What is done to blocks of the partition there is done behind the back of whoever stores something in it.
    pub fn chip_mut(&mut self) -> &mut N {
        &mut self.chip
    }

    /// Gives the chip back.
    pub fn into_inner(self) -> N {
        self.chip
    }

    /// A page as the chip counts. It fits, since the range ends in the chip.
    fn page(&self, page: PageAddr) -> Result<PageAddr, PartitionError<N::Error>> {
        if self.geometry.contains_page(page) {
            Ok(PageAddr(self.geometry.first_page(self.first).0 + page.0))
        } else {
            Err(PartitionError::OutOfBounds)
        }
    }

    /// A block as the chip counts.
    fn block(&self, block: BlockAddr) -> Result<BlockAddr, PartitionError<N::Error>> {
        if self.geometry.contains_block(block) {
            Ok(BlockAddr(self.first.0 + block.0))
        } else {
            Err(PartitionError::OutOfBounds)
        }
    }
}

impl<N: Nand> ErrorType for Partition<N> {
    type Error = PartitionError<N::Error>;
}

impl<N: Nand> Nand for Partition<N> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        let page = self.page(page)?;
        self.chip.read(page, column, buf).map_err(PartitionError::Chip)
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, Self::Error> {
        let page = self.page(page)?;
        self.chip.read_tagged(page, data, tag).map_err(PartitionError::Chip)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), Self::Error> {
        let page = self.page(page)?;
        self.chip.program(page, column, data).map_err(PartitionError::Chip)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), Self::Error> {
        let page = self.page(page)?;
        self.chip.program_tagged(page, data, tag).map_err(PartitionError::Chip)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), Self::Error> {
        let block = self.block(block)?;
        self.chip.erase(block, mode).map_err(PartitionError::Chip)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, Self::Error> {
        let block = self.block(block)?;
        self.chip.is_bad(block).map_err(PartitionError::Chip)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), Self::Error> {
        let block = self.block(block)?;
        self.chip.mark_bad(block).map_err(PartitionError::Chip)
    }

    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, Self::Error> {
        let (from, to) = (self.page(from)?, self.page(to)?);
        self.chip.copy(from, to).map_err(PartitionError::Chip)
    }

    fn recover_lsb(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, Self::Error> {
        let page = self.page(page)?;
        self.chip.recover_lsb(page, buf).map_err(PartitionError::Chip)
    }

    fn attribute(&mut self, cause: Cause) -> Cause {
        self.chip.attribute(cause)
    }
}
