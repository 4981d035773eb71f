//! A driver for SPI-NAND parts, as firmware has one, over whatever moves the bytes.
//!
//! [`Pins`] moves them bit by bit over four wires at a port register. Programs that run in an emulator have a part of their own
//! behind [`Wire`].

#![no_std]

use core::sync::atomic::{AtomicU32, Ordering};

use nandu_nand::{
    BlockAddr, CellMode, CopyRule, Ecc, ErrorType, Geometry, Nand, NandErrorKind, PageAddr, Pairing, ProgramOrder,
    ReadStatus, TearScope,
};

/// Moves bytes to and from a part.
pub trait Wire {
    /// Begins a command.
    fn select(&mut self);

    /// Sends a byte and returns the one that came for it.
    fn exchange(&mut self, byte: u8) -> u8;

    /// Sends bytes.
    fn send(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.exchange(byte);
        }
    }

    /// Receives bytes.
    fn receive(&mut self, buf: &mut [u8]) {
        for byte in buf {
            *byte = self.exchange(0);
        }
    }

    /// Ends a command.
    fn deselect(&mut self);
}

/// Stands for a port register, which a real driver would find at an address.
static PORT: AtomicU32 = AtomicU32::new(0);

const CLOCK: u32 = 1;
const DATA_OUT: u32 = 2;
const DATA_IN: u32 = 4;
const SELECT: u32 = 8;

/// Four wires at a port, moved by the processor.
#[derive(Clone, Copy, Debug)]
pub struct Pins;

impl Wire for Pins {
    fn select(&mut self) {
        PORT.store(0, Ordering::Relaxed);
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

    fn deselect(&mut self) {
        PORT.store(SELECT, Ordering::Relaxed);
    }
}

/// A word from the pins, which the compiler cannot know.
pub fn word() -> u32 {
    PORT.load(Ordering::Relaxed)
}

/// Allows the next program or erase.
pub const WRITE_ENABLE: u8 = 0x06;
/// Reads a register.
pub const GET_FEATURE: u8 = 0x0f;
/// Reads a page into the cache of the part.
pub const PAGE_READ: u8 = 0x13;
/// Reads the cache from a column on.
pub const READ_CACHE: u8 = 0x03;
/// Fills the cache from a column on, the rest with ones.
pub const PROGRAM_LOAD: u8 = 0x02;
/// Fills the cache from a column on and leaves the rest.
pub const PROGRAM_LOAD_MORE: u8 = 0x84;
/// Programs the cache.
pub const PROGRAM_EXECUTE: u8 = 0x10;
/// Erases a block.
pub const BLOCK_ERASE: u8 = 0xd8;
/// The register with the bits below.
pub const STATUS: u8 = 0xc0;

/// An operation goes on.
pub const BUSY: u8 = 0x01;
/// The last erase failed.
pub const ERASE_FAILED: u8 = 0x04;
/// The last program failed.
pub const PROGRAM_FAILED: u8 = 0x08;
/// What error correction made of the last read: corrected, or more than it can.
pub const CORRECTED: u8 = 0x10;
/// See [`CORRECTED`].
pub const UNCORRECTABLE: u8 = 0x20;

/// Status polls after which the part is taken for dead; each moves 24 bits, so an erase takes a few hundred.
const POLLS_MAX: u32 = 5_000;

/// 1,024 blocks of 64 pages of 2 KiB with one bit a cell.
pub const ONE_BIT: Geometry = Geometry {
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

/// The same with a tag of 16 bytes for each page.
pub const TAGGED: Geometry = Geometry { tag_size: 16, ..ONE_BIT };

/// The same with two bits a cell, and tags.
pub const TWO_BITS: Geometry = Geometry {
    pairing: Pairing::SchemeA,
    programs_per_page: 1,
    program_unit: 2048,
    tear: TearScope::Pair,
    ecc: Ecc { codeword_size: 512, correctable_bits: 8 },
    endurance: 3_000,
    ..TAGGED
};

/// The part on the bus.
#[derive(Debug)]
pub struct SpiNand<W> {
    geometry: Geometry,
    wire: W,
}

impl<W: Wire> SpiNand<W> {
    /// A part of this geometry behind a wire.
    pub fn new(geometry: Geometry, wire: W) -> SpiNand<W> {
        SpiNand { geometry, wire }
    }

    fn command(&mut self, bytes: &[u8]) {
        self.wire.select();
        self.wire.send(bytes);
    }

    fn end(&mut self) {
        self.wire.deselect();
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

    fn load(&mut self, code: u8, column: u32, data: &[u8]) {
        self.column_command(code, column);
        self.wire.send(data);
        self.end();
    }

    fn execute(&mut self, page: PageAddr) -> Result<(), NandErrorKind> {
        self.command(&[WRITE_ENABLE]);
        self.end();
        self.row_command(PROGRAM_EXECUTE, page.0);
        if self.wait()? & PROGRAM_FAILED == 0 { Ok(()) } else { Err(NandErrorKind::ProgramFailed) }
    }

    fn wait(&mut self) -> Result<u8, NandErrorKind> {
        for _ in 0..POLLS_MAX {
            self.command(&[GET_FEATURE, STATUS]);
            let status = self.wire.exchange(0);
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

impl<W: Wire> ErrorType for SpiNand<W> {
    type Error = NandErrorKind;
}

impl<W: Wire> Nand for SpiNand<W> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, NandErrorKind> {
        self.checked(page, column, buf.len())?;
        self.row_command(PAGE_READ, page.0);
        let status = self.wait()?;
        self.column_command(READ_CACHE, column);
        self.wire.exchange(0);
        self.wire.receive(buf);
        self.end();
        match status >> 4 & 3 {
            0 => Ok(ReadStatus::Clean),
            1 => Ok(ReadStatus::from_bits(1, self.geometry.ecc.correctable_bits)),
            _ => Err(NandErrorKind::Uncorrectable),
        }
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), NandErrorKind> {
        self.checked(page, column, data.len())?;
        self.load(PROGRAM_LOAD, column, data);
        self.execute(page)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), NandErrorKind> {
        if self.geometry.tag_size == 0 {
            return Err(NandErrorKind::Unsupported);
        }
        self.checked(page, 0, data.len())?;
        let column = self.geometry.tag_column();
        self.checked(page, column, tag.len())?;
        self.load(PROGRAM_LOAD, 0, data);
        self.load(PROGRAM_LOAD_MORE, column, tag);
        self.execute(page)
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
