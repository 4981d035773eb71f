//! The shape and the abilities of a chip, as run-time data.

use core::fmt;

use crate::{BlockAddr, CellMode, PageAddr, PageGroup, Pairing, PairingError};

/// In which order the pages of a block may be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramOrder {
    /// Rising page numbers; gaps are allowed, going back is not. What current parts demand.
    Ascending,
    /// Any order.
    Any,
}

/// What a power cut during a program may damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TearScope {
    /// The bytes being programmed and nothing else.
    Range,
    /// Anything in the page being programmed, parts programmed before included.
    Page,
    /// The page being programmed and its partner in the same cells, however long ago that was programmed.
    Pair,
}

/// Which pages a chip can copy to which inside itself ([`Nand::copy`](crate::Nand::copy)). A part that is told to copy
/// elsewhere loses or garbles the data and reports success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyRule {
    /// It copies nothing.
    Never,
    /// To any block of the same die: each die has a page register of its own.
    Die,
    /// To blocks of the same plane of the same die.
    Plane,
    /// To blocks of the same die and plane whose number is even or odd as that of the first.
    Parity,
}

/// Error correction, as the chip or its controller does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ecc {
    /// Main-area bytes in a codeword; divides the page size.
    pub codeword_size: u32,
    /// Flipped bits that can be corrected in a codeword.
    pub correctable_bits: u16,
}

/// The shape and the abilities of a chip.
///
/// Run-time values: one build of storage code serves every part. A driver takes them from the part's data sheet, its
/// parameter page or the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Bytes in the main area of a page.
    pub page_size: u32,
    /// Bytes in the spare area of a page. It carries the bad-block mark; nothing else may depend on it but the tag.
    pub spare_size: u32,
    /// Bytes of the spare area that storage code may program together with the main area
    /// ([`Nand::program_tagged`](crate::Nand::program_tagged)), and that error correction protects as it does the main area.
    /// They are read at [`Geometry::tag_column`], wherever the part has them: a driver translates. 0: there are none.
    pub tag_size: u32,
    /// Pages in a block, LSB and MSB pages together.
    pub pages_per_block: u32,
    /// Blocks in the chip, bad ones included.
    pub block_count: u32,
    /// Which pages share their cells; [`Pairing::None`] for a chip with one bit a cell.
    pub pairing: Pairing,
    /// In which order the pages of a block may be programmed.
    pub order: ProgramOrder,
    /// Programs that a page takes between two erases (NOP of the data sheets). With 1, each program takes a whole page.
    pub programs_per_page: u8,
    /// Column and length of a program that takes only part of a page are multiples of this many bytes. It equals
    /// `page_size` where `programs_per_page` is 1.
    pub program_unit: u32,
    /// What a power cut during a program may damage.
    pub tear: TearScope,
    /// Error correction below this contract.
    pub ecc: Ecc,
    /// Erases that a block is rated for.
    pub endurance: u32,
    /// Blocks that may be bad over the whole rated life, those marked by the factory included.
    pub bad_block_max: u32,
    /// Planes in a die; neighbouring blocks lie in different planes ([`Geometry::plane_of`]).
    pub plane_count: u8,
    /// Dies in the chip; each has its share of the blocks in a row ([`Geometry::die_of`]).
    pub die_count: u8,
    /// Which pages it copies to which inside itself.
    pub copies: CopyRule,
}

/// Why a geometry is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryError {
    /// The page size is not a power of two from 256 to 65,536.
    PageSize(u32),
    /// The spare area is larger than the main area.
    SpareSize(u32),
    /// The tag does not fit the spare area, beside the bad-block mark.
    TagSize(u32),
    /// The number of pages in a block is not in 1 to 4,096.
    PagesPerBlock(u32),
    /// There is no block, or the pages do not fit a 32-bit address.
    BlockCount(u32),
    /// The pages cannot be paired as stated.
    Pairing(PairingError),
    /// A page takes no program at all.
    ProgramsPerPage,
    /// The program unit does not divide the page, or is not the page although a page takes one program only.
    ProgramUnit(u32),
    /// The codeword does not divide the page.
    Codeword(u32),
    /// A chip without paired pages cannot tear a pair.
    Tear,
    /// More blocks may go bad than there are.
    BadBlocks(u32),
    /// There is no plane or no die, or the dies do not share the blocks evenly.
    Dies,
}

impl fmt::Display for GeometryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeometryError::PageSize(size) => {
                write!(f, "page size {size} is not a power of two from 256 to 65536")
            }
            GeometryError::SpareSize(size) => write!(f, "spare size {size} is larger than the page"),
            GeometryError::TagSize(size) => write!(f, "a tag of {size} bytes does not fit the spare area"),
            GeometryError::PagesPerBlock(pages) => write!(f, "{pages} pages in a block is not in 1 to 4096"),
            GeometryError::BlockCount(blocks) => {
                write!(f, "{blocks} blocks do not fit 32-bit page addresses")
            }
            GeometryError::Pairing(error) => error.fmt(f),
            GeometryError::ProgramsPerPage => f.write_str("a page must take at least one program"),
            GeometryError::ProgramUnit(unit) => write!(f, "program unit {unit} does not fit the page"),
            GeometryError::Codeword(size) => write!(f, "codeword of {size} bytes does not fit the page"),
            GeometryError::Tear => f.write_str("without paired pages a power cut cannot tear a pair"),
            GeometryError::BadBlocks(blocks) => write!(f, "{blocks} bad blocks are more than the chip has blocks"),
            GeometryError::Dies => f.write_str("the blocks cannot be shared among the dies and planes"),
        }
    }
}

impl core::error::Error for GeometryError {}

impl From<PairingError> for GeometryError {
    fn from(error: PairingError) -> GeometryError {
        GeometryError::Pairing(error)
    }
}

/// Columns at the front of the spare area that are left to the bad-block mark.
const MARK_SIZE: u32 = 4;

impl Geometry {
    /// Checks that the values fit each other. Storage code calls it once, before it trusts any of them.
    pub fn validate(&self) -> Result<(), GeometryError> {
        if !self.page_size.is_power_of_two() || !(256..=65_536).contains(&self.page_size) {
            return Err(GeometryError::PageSize(self.page_size));
        }
        if self.spare_size > self.page_size {
            return Err(GeometryError::SpareSize(self.spare_size));
        }
        if self.tag_size > self.spare_size.saturating_sub(MARK_SIZE) {
            return Err(GeometryError::TagSize(self.tag_size));
        }
        if !(1..=4096).contains(&self.pages_per_block) {
            return Err(GeometryError::PagesPerBlock(self.pages_per_block));
        }
        // The highest page number is kept free, so that it can stand for "no page".
        if self.block_count == 0 || self.block_count > (u32::MAX - 1) / self.pages_per_block {
            return Err(GeometryError::BlockCount(self.block_count));
        }
        self.pairing.validate(self.pages_per_block)?;
        if self.programs_per_page == 0 {
            return Err(GeometryError::ProgramsPerPage);
        }
        let unit = self.program_unit;
        let whole_page_only = self.programs_per_page == 1;
        if unit == 0 || !self.page_size.is_multiple_of(unit) || (whole_page_only && unit != self.page_size) {
            return Err(GeometryError::ProgramUnit(unit));
        }
        if self.ecc.codeword_size == 0 || !self.page_size.is_multiple_of(self.ecc.codeword_size) {
            return Err(GeometryError::Codeword(self.ecc.codeword_size));
        }
        if self.tear == TearScope::Pair && !self.pairing.is_paired() {
            return Err(GeometryError::Tear);
        }
        if self.bad_block_max > self.block_count {
            return Err(GeometryError::BadBlocks(self.bad_block_max));
        }
        let dies = self.die_count as u32;
        if dies == 0 || self.plane_count == 0 || !self.block_count.is_multiple_of(dies) {
            return Err(GeometryError::Dies);
        }
        Ok(())
    }

    /// Bits that a cell can hold.
    pub const fn bits_per_cell(&self) -> u32 {
        if self.pairing.is_paired() { 2 } else { 1 }
    }

    /// Pages in the chip.
    pub const fn page_count(&self) -> u32 {
        self.block_count * self.pages_per_block
    }

    /// Main-area bytes in the chip, bad blocks included.
    pub const fn capacity(&self) -> u64 {
        self.page_count() as u64 * self.page_size as u64
    }

    /// Columns of a page: main area, then spare area.
    pub const fn column_count(&self) -> u32 {
        self.page_size + self.spare_size
    }

    /// The column at which a page's tag begins, in the spare area.
    pub const fn tag_column(&self) -> u32 {
        self.page_size + MARK_SIZE
    }

    /// The block that a page lies in.
    pub const fn block_of(&self, page: PageAddr) -> BlockAddr {
        BlockAddr(page.0 / self.pages_per_block)
    }

    /// A page's place in its block, from 0.
    pub const fn index_in_block(&self, page: PageAddr) -> u32 {
        page.0 % self.pages_per_block
    }

    /// The page at a place in a block.
    pub const fn page_at(&self, block: BlockAddr, index: u32) -> PageAddr {
        PageAddr(block.0 * self.pages_per_block + index)
    }

    /// The first page of a block.
    pub const fn first_page(&self, block: BlockAddr) -> PageAddr {
        self.page_at(block, 0)
    }

    /// Whether the page is in the chip.
    pub const fn contains_page(&self, page: PageAddr) -> bool {
        page.0 < self.page_count()
    }

    /// Whether the block is in the chip.
    pub const fn contains_block(&self, block: BlockAddr) -> bool {
        block.0 < self.block_count
    }

    /// The die of a block: the first die has the first blocks.
    pub const fn die_of(&self, block: BlockAddr) -> u32 {
        if self.die_count <= 1 { 0 } else { block.0 / self.blocks_per_die() }
    }

    /// The plane of a block in its die: planes take turns.
    pub const fn plane_of(&self, block: BlockAddr) -> u32 {
        if self.plane_count <= 1 { 0 } else { block.0 % self.blocks_per_die() % self.plane_count as u32 }
    }

    /// Blocks in a die. Not 0, also where the dies do not share the blocks evenly.
    pub(crate) const fn blocks_per_die(&self) -> u32 {
        let dies = if self.die_count == 0 { 1 } else { self.die_count as u32 };
        if self.block_count < dies { 1 } else { self.block_count / dies }
    }

    /// Whether the chip copies a page of the first block into the second inside itself.
    pub const fn may_copy(&self, from: BlockAddr, to: BlockAddr) -> bool {
        let same_die = self.die_of(from) == self.die_of(to);
        let same_plane = same_die && self.plane_of(from) == self.plane_of(to);
        match self.copies {
            CopyRule::Never => false,
            CopyRule::Die => same_die,
            CopyRule::Plane => same_plane,
            CopyRule::Parity => same_plane && from.0 % 2 == to.0 % 2,
        }
    }

    /// Whether blocks can be used in this mode.
    pub const fn supports(&self, mode: CellMode) -> bool {
        matches!(mode, CellMode::Slc) || self.pairing.is_paired()
    }

    /// Pages that a block holds in this mode.
    pub const fn pages_in_mode(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Slc => self.pairing.pair_count(self.pages_per_block),
            CellMode::Mlc => self.pages_per_block,
        }
    }

    /// The place in the block of the `nth` page that may be programmed in this mode: `nth` itself, except that an
    /// SLC-mode block of a chip with paired pages skips the MSB pages.
    pub fn nth_in_mode(&self, mode: CellMode, nth: u32) -> Option<u32> {
        match mode {
            CellMode::Slc => self.pairing.page_of(nth, PageGroup::Lsb, self.pages_per_block),
            CellMode::Mlc => (nth < self.pages_per_block).then_some(nth),
        }
    }

    /// Whether the page at this place of a block may be programmed in this mode.
    pub fn is_used_in_mode(&self, mode: CellMode, index: u32) -> bool {
        match mode {
            CellMode::Slc => {
                matches!(self.pairing.pair_of(index, self.pages_per_block), Some((_, PageGroup::Lsb)))
            }
            CellMode::Mlc => index < self.pages_per_block,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLC: Geometry = Geometry {
        page_size: 2048,
        spare_size: 64,
        tag_size: 0,
        pages_per_block: 64,
        block_count: 1024,
        pairing: Pairing::None,
        order: ProgramOrder::Ascending,
        programs_per_page: 4,
        program_unit: 512,
        tear: TearScope::Page,
        ecc: Ecc { codeword_size: 512, correctable_bits: 1 },
        endurance: 100_000,
        bad_block_max: 20,
        plane_count: 1,
        die_count: 1,
        copies: CopyRule::Never,
    };

    const MLC: Geometry = Geometry {
        pages_per_block: 128,
        pairing: Pairing::SchemeA,
        programs_per_page: 1,
        program_unit: 2048,
        tear: TearScope::Pair,
        ..SLC
    };

    #[test]
    fn sound_geometries_pass_and_each_flaw_is_named() {
        SLC.validate().unwrap();
        MLC.validate().unwrap();
        let flawed = [
            (Geometry { page_size: 2000, ..SLC }, GeometryError::PageSize(2000)),
            (Geometry { spare_size: 4096, ..SLC }, GeometryError::SpareSize(4096)),
            (Geometry { tag_size: 61, ..SLC }, GeometryError::TagSize(61)),
            (Geometry { pages_per_block: 0, ..SLC }, GeometryError::PagesPerBlock(0)),
            (Geometry { block_count: 1 << 26, ..SLC }, GeometryError::BlockCount(1 << 26)),
            (Geometry { programs_per_page: 0, ..SLC }, GeometryError::ProgramsPerPage),
            (Geometry { programs_per_page: 1, ..SLC }, GeometryError::ProgramUnit(512)),
            (Geometry { program_unit: 0, ..SLC }, GeometryError::ProgramUnit(0)),
            (Geometry { ecc: Ecc { codeword_size: 3, correctable_bits: 1 }, ..SLC }, GeometryError::Codeword(3)),
            (Geometry { tear: TearScope::Pair, ..SLC }, GeometryError::Tear),
            (Geometry { bad_block_max: 1025, ..SLC }, GeometryError::BadBlocks(1025)),
            (Geometry { die_count: 0, ..SLC }, GeometryError::Dies),
            (Geometry { die_count: 3, ..SLC }, GeometryError::Dies),
            (Geometry { plane_count: 0, ..SLC }, GeometryError::Dies),
            (Geometry { pages_per_block: 6, ..MLC }, GeometryError::Pairing(PairingError::PageCount(6))),
        ];
        for (geometry, error) in flawed {
            assert_eq!(geometry.validate(), Err(error));
        }
    }

    #[test]
    fn addresses_convert_both_ways() {
        let page = SLC.page_at(BlockAddr(3), 17);
        assert_eq!(page, PageAddr(3 * 64 + 17));
        assert_eq!(SLC.block_of(page), BlockAddr(3));
        assert_eq!(SLC.index_in_block(page), 17);
        assert!(SLC.contains_page(PageAddr(65_535)) && !SLC.contains_page(PageAddr(65_536)));
        assert_eq!(SLC.capacity(), 128 << 20);
    }

    #[test]
    fn a_copy_stays_where_the_rule_keeps_it() {
        // Two dies of 512 blocks, two planes each.
        let chip = Geometry { die_count: 2, plane_count: 2, ..SLC };
        let places =
            [0, 1, 511, 512, 513].map(|block| (chip.die_of(BlockAddr(block)), chip.plane_of(BlockAddr(block))));
        assert_eq!(places, [(0, 0), (0, 1), (0, 1), (1, 0), (1, 1)]);
        let may = |copies, from, to| Geometry { copies, ..chip }.may_copy(BlockAddr(from), BlockAddr(to));
        for (rule, same_plane, other_plane) in
            [(CopyRule::Never, false, false), (CopyRule::Die, true, true), (CopyRule::Plane, true, false)]
        {
            assert_eq!((may(rule, 0, 2), may(rule, 0, 1), may(rule, 0, 512)), (same_plane, other_plane, false));
        }
        let parity = Geometry { copies: CopyRule::Parity, ..SLC };
        assert!(parity.may_copy(BlockAddr(3), BlockAddr(801)) && !parity.may_copy(BlockAddr(3), BlockAddr(4)));
    }

    #[test]
    fn an_slc_mode_block_uses_exactly_the_lsb_pages_in_rising_order() {
        let used: [u32; 64] = core::array::from_fn(|nth| MLC.nth_in_mode(CellMode::Slc, nth as u32).unwrap());
        assert!(used.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(MLC.pages_in_mode(CellMode::Slc), 64);
        assert_eq!(MLC.nth_in_mode(CellMode::Slc, 64), None);
        for index in 0..128 {
            assert_eq!(MLC.is_used_in_mode(CellMode::Slc, index), used.contains(&index));
            assert!(MLC.is_used_in_mode(CellMode::Mlc, index));
        }
        assert!(MLC.supports(CellMode::Mlc) && !SLC.supports(CellMode::Mlc));
    }
}
