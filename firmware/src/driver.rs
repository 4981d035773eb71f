//! A driver reduced to its shape: four wires of an SPI-NAND part, moved bit by bit.

use core::sync::atomic::{AtomicU32, Ordering};

use nandu_nand::{
    BlockAddr, CellMode, Ecc, ErrorType, Geometry, Nand, NandErrorKind, PageAddr, Pairing, ProgramOrder, ReadStatus,
    TearScope,
};

/// Stands for a port register, which a real driver would find at an address.
static PORT: AtomicU32 = AtomicU32::new(0);

const CLOCK: u32 = 1;
const DATA_OUT: u32 = 2;
const DATA_IN: u32 = 4;
const SELECT: u32 = 8;

const WRITE_ENABLE: u8 = 0x06;
const GET_FEATURE: u8 = 0x0f;
const PAGE_READ: u8 = 0x13;
const READ_CACHE: u8 = 0x03;
const PROGRAM_LOAD: u8 = 0x02;
const PROGRAM_EXECUTE: u8 = 0x10;
const BLOCK_ERASE: u8 = 0xd8;
const STATUS: u8 = 0xc0;

const BUSY: u8 = 0x01;
const ERASE_FAILED: u8 = 0x04;
const PROGRAM_FAILED: u8 = 0x08;

/// Status polls after which the part is taken for dead.
const POLLS_MAX: u32 = 100_000;

const GEOMETRY: Geometry = Geometry {
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
};

/// The part on the bus.
pub(crate) struct SpiNand {
    geometry: Geometry,
}

impl SpiNand {
    pub(crate) fn new() -> SpiNand {
        SpiNand { geometry: GEOMETRY }
    }

    fn exchange(&mut self, byte: u8) -> u8 {
        let mut received = 0;
        for bit in (0..8).rev() {
            let out = if byte >> bit & 1 == 1 { DATA_OUT } else { 0 };
            PORT.store(out, Ordering::Relaxed);
            PORT.store(out | CLOCK, Ordering::Relaxed);
            let level = PORT.load(Ordering::Relaxed) & DATA_IN != 0;
            received = received << 1 | u8::from(level);
        }
        received
    }

    fn command(&mut self, bytes: &[u8]) {
        PORT.store(0, Ordering::Relaxed);
        for &byte in bytes {
            self.exchange(byte);
        }
    }

    fn end(&mut self) {
        PORT.store(SELECT, Ordering::Relaxed);
    }

    fn row_command(&mut self, code: u8, row: u32) {
        let [_, high, middle, low] = row.to_be_bytes();
        self.command(&[code, high, middle, low]);
        self.end();
    }

    fn column_command(&mut self, code: u8, column: u32) {
        let [_, _, high, low] = column.to_be_bytes();
        self.command(&[code, high, low]);
    }

    fn wait(&mut self) -> Result<u8, NandErrorKind> {
        for _ in 0..POLLS_MAX {
            self.command(&[GET_FEATURE, STATUS]);
            let status = self.exchange(0);
            self.end();
            if status & BUSY == 0 {
                return Ok(status);
            }
        }
        Err(NandErrorKind::Bus)
    }

    fn checked(&self, page: PageAddr, column: u32, size: usize) -> Result<(), NandErrorKind> {
        let end = column as usize + size;
        if self.geometry.contains_page(page) && end <= self.geometry.column_count() as usize {
            Ok(())
        } else {
            Err(NandErrorKind::OutOfBounds)
        }
    }
}

impl ErrorType for SpiNand {
    type Error = NandErrorKind;
}

impl Nand for SpiNand {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, NandErrorKind> {
        self.checked(page, column, buf.len())?;
        self.row_command(PAGE_READ, page.0);
        let status = self.wait()?;
        self.column_command(READ_CACHE, column);
        self.exchange(0);
        for byte in buf {
            *byte = self.exchange(0);
        }
        self.end();
        match status >> 4 & 3 {
            0 => Ok(ReadStatus::Clean),
            1 => Ok(ReadStatus::from_bits(1, self.geometry.ecc.correctable_bits)),
            _ => Err(NandErrorKind::Uncorrectable),
        }
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), NandErrorKind> {
        self.checked(page, column, data.len())?;
        self.command(&[WRITE_ENABLE]);
        self.end();
        self.column_command(PROGRAM_LOAD, column);
        for &byte in data {
            self.exchange(byte);
        }
        self.end();
        self.row_command(PROGRAM_EXECUTE, page.0);
        if self.wait()? & PROGRAM_FAILED == 0 { Ok(()) } else { Err(NandErrorKind::ProgramFailed) }
    }

    fn program_tagged(&mut self, _page: PageAddr, _data: &[u8], _tag: &[u8]) -> Result<(), NandErrorKind> {
        // The geometry says that there are no tags.
        Err(NandErrorKind::Unsupported)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), NandErrorKind> {
        if !self.geometry.supports(mode) {
            return Err(NandErrorKind::Unsupported);
        }
        self.command(&[WRITE_ENABLE]);
        self.end();
        self.row_command(BLOCK_ERASE, self.geometry.first_page(block).0);
        if self.wait()? & ERASE_FAILED == 0 { Ok(()) } else { Err(NandErrorKind::EraseFailed) }
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, NandErrorKind> {
        let mut mark = [0];
        let page = self.geometry.first_page(block);
        match self.read(page, self.geometry.page_size, &mut mark) {
            // The mark lies outside what the error correction protects.
            Ok(_) | Err(NandErrorKind::Uncorrectable) => Ok(mark[0] != 0xff),
            Err(error) => Err(error),
        }
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), NandErrorKind> {
        self.program(self.geometry.first_page(block), self.geometry.page_size, &[0])
    }
}
