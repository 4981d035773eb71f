//! A driver for a chip of your own, in 60 lines: the six calls of the contract, over whatever moves the bytes.
//!
//! Here a page lies in an array where your transfers to the chip belong; the comments say which those are on an SPI NAND part. The list of what
//! such drivers got wrong is `nandu::nand::checklist`; for SPI NAND itself take `nandu-spi`.
//!
//! `cargo run -p nandu --example driver`

use std::error::Error;

use nandu::nand::{
    BlockAddr, CellMode, CopyRule, Ecc, ErrorType, Geometry, Nand, NandErrorKind, PageAddr, Pairing, ProgramOrder,
    ReadStatus, TearScope,
};
use nandu::{Options, Store};

/// From the data sheet: 64 blocks of 64 pages of 2 KiB, one bit a cell.
const GEOMETRY: Geometry = Geometry {
    page_size: 2048,
    spare_size: 64,
    tag_size: 0,
    pages_per_block: 64,
    block_count: 64,
    pairing: Pairing::None,
    order: ProgramOrder::Ascending,
    programs_per_page: 1,
    program_unit: 2048,
    tear: TearScope::Page,
    ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
    endurance: 100_000,
    bad_block_max: 2,
    plane_count: 1,
    die_count: 1,
    copies: CopyRule::Never,
};

/// The driver. On a board it holds the bus.
struct MyChip {
    main: Vec<u8>,
    is_bad: Vec<bool>,
}

impl MyChip {
    /// Where bytes of a page lie, if they are on the chip.
    fn bytes(&mut self, page: PageAddr, column: u32, size: usize) -> Result<&mut [u8], NandErrorKind> {
        let start = page.0 as usize * GEOMETRY.page_size as usize + column as usize;
        let is_inside = column as usize + size <= GEOMETRY.page_size as usize;
        self.main.get_mut(start..start + size).filter(|_| is_inside).ok_or(NandErrorKind::OutOfBounds)
    }
}

impl ErrorType for MyChip {
    // With a bus that can fail, `nandu::nand::DriverError` keeps its error.
    type Error = NandErrorKind;
}

impl Nand for MyChip {
    fn geometry(&self) -> &Geometry {
        &GEOMETRY
    }

    /// 13h page to cache, 0Fh until it is not busy, 03h cache from the column on. The status says what was corrected.
    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, NandErrorKind> {
        buf.copy_from_slice(self.bytes(page, column, buf.len())?);
        Ok(ReadStatus::Clean)
    }

    /// 06h, 02h with the bytes, 10h, 0Fh until it is not busy; `ProgramFailed` if the status says so. Back only when it is done.
    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), NandErrorKind> {
        let cells = self.bytes(page, column, data.len())?;
        // Cells go from one to zero; a page that was not erased would hold neither content.
        cells.iter_mut().zip(data).for_each(|(cell, byte)| *cell &= byte);
        Ok(())
    }

    /// With no protected spare bytes (`tag_size: 0`) nobody calls it.
    fn program_tagged(&mut self, _: PageAddr, _: &[u8], _: &[u8]) -> Result<(), NandErrorKind> {
        Err(NandErrorKind::Unsupported)
    }

    /// 06h, D8h, 0Fh until it is not busy; `EraseFailed` if the status says so.
    fn erase(&mut self, block: BlockAddr, _: CellMode) -> Result<(), NandErrorKind> {
        let size = (GEOMETRY.pages_per_block * GEOMETRY.page_size) as usize;
        let start = block.0 as usize * size;
        self.main.get_mut(start..start + size).ok_or(NandErrorKind::OutOfBounds)?.fill(0xFF);
        Ok(())
    }

    /// The factory's mark, and yours: the first spare byte of the block's first page is not FFh.
    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, NandErrorKind> {
        self.is_bad.get(block.0 as usize).copied().ok_or(NandErrorKind::OutOfBounds)
    }

    /// Programs 00h there. It may fail on a block that is worn out; the store keeps a list of its own besides.
    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), NandErrorKind> {
        *self.is_bad.get_mut(block.0 as usize).ok_or(NandErrorKind::OutOfBounds)? = true;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Says what is wrong with a geometry before a store does.
    GEOMETRY.validate()?;
    let size = (GEOMETRY.block_count * GEOMETRY.pages_per_block * GEOMETRY.page_size) as usize;
    let mut chip = MyChip { main: vec![0xFF; size], is_bad: vec![false; GEOMETRY.block_count as usize] };
    chip.mark_bad(BlockAddr(5))?;

    let options = Options { cache_size: 1024, ..Options::DEFAULT };
    let mut memory = vec![0; Store::<MyChip>::memory_required(&GEOMETRY, &options)];
    let mut store = Store::format(chip, options, &mut memory)?;
    for number in 0..20_000_u32 {
        store.put(&(number % 1_000).to_be_bytes(), &number.to_be_bytes())?;
    }
    // The power goes, and nothing is lost.
    let chip = store.abandon();
    let mut store = Store::open(chip, options, &mut memory)?;
    assert_eq!(store.record_count(), 1_000);
    assert_eq!(store.get(&999_u32.to_be_bytes())?, Some(&19_999_u32.to_be_bytes()[..]));
    assert_eq!(store.verify(&mut |violation| println!("{violation}"))?, 0);
    println!(
        "{} records in {} bytes of memory",
        store.record_count(),
        Store::<MyChip>::memory_required(&GEOMETRY, &options)
    );
    Ok(())
}
