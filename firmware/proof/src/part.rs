//! A W25N01GV of few blocks in the memory of the machine: what a driver sees of it on the wire.
//!
//! It wakes up as the part's version T does, locked and in continuous read, is busy for some looks at its status, takes a program or an erase
//! only with permission, and puts what error correction says into the status. It panics on what the part does not take. Without power
//! nothing answers, and the bus says nothing of it: it reads as zeros or as ones.

use core::convert::Infallible;

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use nandu::nand::Nand;
use nandu_budget::clock;
use nandu_spi::command::{
    BLOCK_ERASE, CONFIG_BUFFER, CONFIG_ECC, GET_FEATURE, LOCK_BLOCKS, PAGE_READ, PROGRAM_EXECUTE, PROGRAM_LOAD,
    PROGRAM_LOAD_MORE, READ_CACHE, READ_ID, REGISTER_CONFIG, REGISTER_LOCK, REGISTER_STATUS, RESET, SET_FEATURE,
    STATUS_BUSY, STATUS_ERASE_FAILED, STATUS_PROGRAM_FAILED, STATUS_WRITE_ENABLED, WRITE_DISABLE, WRITE_ENABLE,
};
use nandu_spi::{HalWire, PARTS, Part, SpiNand};

/// Blocks of the part, which take half of the second memory of the boards.
const BLOCK_COUNT: u32 = 56;

/// The row of the part, with fewer blocks.
static ROW: Part = Part { blocks_per_die: BLOCK_COUNT, bad_block_max: 4, ..PARTS[1] };

/// The block that the factory marked.
const BAD_BLOCK: usize = 5;

const PAGES_PER_BLOCK: usize = 64;
const PAGE_COUNT: usize = BLOCK_COUNT as usize * PAGES_PER_BLOCK;
const PAGE_SIZE: usize = 2048;

/// A page with its spare area.
type Raw = [u8; PAGE_SIZE + 64];

/// Looks at the status for which the part is busy.
const BUSY_LOOKS: u32 = 3;

/// A status that says that more bits had flipped than can be corrected.
const UNCORRECTABLE: u8 = 0x20;

/// Programs that a page takes between two erases.
const PROGRAMS_MAX: u8 = 4;

/// The cells of the part.
#[repr(C)]
struct Array {
    raw: [Raw; PAGE_COUNT],
    /// Programs of each page since the last erase.
    programs: [u8; PAGE_COUNT],
    /// Not 0: a cut left more wrong bits than can be corrected.
    is_lost: [u8; PAGE_COUNT],
}

/// What is outside the cells; power brings it to its initial state, but for the last five.
struct Control {
    lock: u8,
    config: u8,
    status: u8,
    busy_looks: u32,
    is_enabled: bool,
    cache: Raw,
    /// Programs and erases until the power goes in the middle of one.
    cut: Option<u32>,
    cut_count: u32,
    is_off: bool,
    program_count: u32,
    erase_count: u32,
}

static mut CONTROL: Control = Control {
    lock: LOCK_BLOCKS,
    config: CONFIG_ECC,
    status: 0,
    busy_looks: 0,
    is_enabled: false,
    cache: [0xff; PAGE_SIZE + 64],
    cut: None,
    cut_count: 0,
    is_off: false,
    program_count: 0,
    erase_count: 0,
};

fn control() -> &'static mut Control {
    // SAFETY: there is one thread and no interrupt, and each function of this file asks anew and hands the reference down only.
    unsafe { &mut *(&raw mut CONTROL) }
}

fn array() -> &'static mut Array {
    // The second memory of the board MPS2, 16 MiB.
    let address = if core() == 7 { 0x6000_0000 } else { 0x2100_0000 };
    // SAFETY: the linker does not know of this memory, any bytes are an `Array`, it fits, and nobody keeps the reference.
    unsafe { &mut *(address as *mut Array) }
}

/// Which Cortex-M it is: 4 or 7.
pub(crate) fn core() -> u32 {
    // SAFETY: the address is that of CPUID, which may be read at any time.
    let cpuid = unsafe { (0xe000_ed00 as *const u32).read_volatile() };
    cpuid >> 4 & 15
}

/// The part behind its driver.
pub(crate) type Chip = SpiNand<HalWire<Spi, Delay>>;

/// The errors of the driver. The bus has none.
pub(crate) type ChipError = nandu_spi::SpiError<Infallible>;

/// Makes a part of erased blocks, one of them bad.
pub(crate) fn manufacture() {
    let array = array();
    array.raw.as_flattened_mut().fill(0xff);
    array.programs.fill(0);
    array.is_lost.fill(0);
    array.raw[BAD_BLOCK * PAGES_PER_BLOCK][PAGE_SIZE] = 0;
}

/// Opens the part by its identity, as one of all that the driver knows, and looks what it was taken for.
pub(crate) fn identify() {
    let found = SpiNand::open(HalWire::new(Spi, Delay)).expect("the part is known");
    assert_eq!(found.part().name, "W25N01GV", "by its identity");
    let mut chip = open();
    for block in 0..BLOCK_COUNT {
        let is_bad = chip.is_bad(nandu::nand::BlockAddr(block)).expect("a mark");
        assert_eq!(is_bad, block as usize == BAD_BLOCK, "the mark of block {block}");
    }
}

/// Switches the part on and opens it.
pub(crate) fn open() -> Chip {
    let control = control();
    (control.lock, control.config, control.status) = (LOCK_BLOCKS, CONFIG_ECC, 0);
    (control.busy_looks, control.is_enabled) = (BUSY_LOOKS, false);
    (control.cut, control.is_off) = (None, false);
    control.cache.fill(0);
    SpiNand::open_as(HalWire::new(Spi, Delay), &ROW).expect("the part opens")
}

/// The power goes in the middle of the program or erase after so many others, or not at all.
pub(crate) fn cut_after(count: Option<u32>) {
    control().cut = count;
}

/// Whether the power has gone.
pub(crate) fn is_off() -> bool {
    control().is_off
}

/// Times that the power went in the middle of an operation.
pub(crate) fn cut_count() -> u32 {
    control().cut_count
}

/// Programs and erases so far.
pub(crate) fn work() -> (u32, u32) {
    let control = control();
    (control.program_count, control.erase_count)
}

/// The delay of the machine: the part counts looks and not time.
#[derive(Debug)]
pub(crate) struct Delay;

impl DelayNs for Delay {
    fn delay_ns(&mut self, _: u32) {}
}

/// The bus with the part on it.
#[derive(Debug)]
pub(crate) struct Spi;

impl ErrorType for Spi {
    type Error = Infallible;
}

impl SpiDevice for Spi {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), Infallible> {
        // What the bus and the part take is not the processor's work.
        clock::pause(|| control().take(operations));
        Ok(())
    }
}

fn row(high: u8, middle: u8, low: u8) -> usize {
    let row = u32::from_be_bytes([0, high, middle, low]) as usize;
    assert!(row < PAGE_COUNT, "row {row} is outside the part");
    row
}

fn columns(high: u8, low: u8, size: usize) -> core::ops::Range<usize> {
    let start = usize::from(u16::from_be_bytes([high, low]));
    start..start + size
}

impl Control {
    #[inline(never)]
    fn take(&mut self, operations: &mut [Operation<'_, u8>]) {
        if self.is_off {
            let level = if self.cut_count.is_multiple_of(2) { 0 } else { 0xff };
            for operation in operations {
                if let Operation::Read(buf) = operation {
                    buf.fill(level);
                }
            }
            return;
        }
        match operations {
            [Operation::Write(head)] => self.command(head),
            [Operation::Write(head), Operation::Read(buf)] => self.answer(head, buf),
            [Operation::Write(head), Operation::Write(data)] => self.receive(head, data),
            _ => panic!("the part takes no such transaction"),
        }
    }

    fn check_idle(&self, opcode: u8) {
        assert!(self.busy_looks == 0, "{opcode:02x}h is said to a busy part");
    }

    fn command(&mut self, head: &[u8]) {
        if head[0] != RESET {
            self.check_idle(head[0]);
        }
        match *head {
            [RESET] => (self.status, self.is_enabled, self.busy_looks) = (0, false, BUSY_LOOKS),
            [WRITE_ENABLE] => self.is_enabled = true,
            [WRITE_DISABLE] => self.is_enabled = false,
            [PAGE_READ, high, middle, low] => self.read(row(high, middle, low)),
            [PROGRAM_EXECUTE, high, middle, low] => self.program(row(high, middle, low)),
            [BLOCK_ERASE, high, middle, low] => self.erase(row(high, middle, low) / PAGES_PER_BLOCK),
            _ => panic!("the part has no command {head:02x?}"),
        }
    }

    /// What goes to the processor.
    fn answer(&mut self, head: &[u8], buf: &mut [u8]) {
        if head[0] != GET_FEATURE {
            self.check_idle(head[0]);
        }
        match *head {
            [READ_ID, 0] => {
                for (byte, identity) in buf.iter_mut().zip([0xef, 0xaa, 0x21, 0, 0]) {
                    *byte = identity;
                }
            }
            [GET_FEATURE, REGISTER_LOCK] => buf.fill(self.lock),
            [GET_FEATURE, REGISTER_CONFIG] => buf.fill(self.config),
            [GET_FEATURE, REGISTER_STATUS] => buf.fill(self.look()),
            [READ_CACHE, high, low, 0] => {
                assert!(self.config & CONFIG_BUFFER != 0, "a column is named in continuous read");
                buf.copy_from_slice(&self.cache[columns(high, low, buf.len())]);
            }
            _ => panic!("the part does not answer {head:02x?}"),
        }
    }

    /// What comes from the processor.
    fn receive(&mut self, head: &[u8], data: &[u8]) {
        self.check_idle(head[0]);
        match *head {
            [SET_FEATURE, REGISTER_LOCK] => self.lock = data[0],
            [SET_FEATURE, REGISTER_CONFIG] => self.config = data[0],
            [load @ (PROGRAM_LOAD | PROGRAM_LOAD_MORE), high, low] => {
                assert!(self.is_enabled, "the part ignores data before permission");
                if load == PROGRAM_LOAD {
                    self.cache.fill(0xff);
                }
                self.cache[columns(high, low, data.len())].copy_from_slice(data);
            }
            _ => panic!("the part does not take {head:02x?}"),
        }
    }

    /// The register of status. While the part is busy its other bits mean nothing, so they say the worst.
    fn look(&mut self) -> u8 {
        if self.busy_looks > 0 {
            self.busy_looks -= 1;
            return STATUS_BUSY | STATUS_ERASE_FAILED | STATUS_PROGRAM_FAILED | UNCORRECTABLE;
        }
        self.status | if self.is_enabled { STATUS_WRITE_ENABLED } else { 0 }
    }

    fn has_ecc(&self) -> bool {
        self.config & CONFIG_ECC != 0
    }

    fn read(&mut self, row: usize) {
        let array = array();
        self.cache = array.raw[row];
        self.status = if self.has_ecc() && array.is_lost[row] != 0 { UNCORRECTABLE } else { 0 };
        self.busy_looks = BUSY_LOOKS;
    }

    /// Takes the permission back; whether there was one and the blocks are not locked.
    fn is_allowed(&mut self) -> bool {
        self.busy_looks = BUSY_LOOKS;
        let is_enabled = core::mem::replace(&mut self.is_enabled, false);
        is_enabled && self.lock & LOCK_BLOCKS == 0
    }

    /// Counts an operation; where the power goes in the middle of it, a number for what is left of it.
    fn tear(&mut self) -> Option<u32> {
        let is_cut = self.cut == Some(0);
        self.cut = self.cut.and_then(|count| count.checked_sub(1));
        if !is_cut {
            return None;
        }
        self.is_off = true;
        self.cut_count += 1;
        Some(self.cut_count / 2)
    }

    fn program(&mut self, row: usize) {
        if !self.is_allowed() {
            self.status = STATUS_PROGRAM_FAILED;
            return;
        }
        let array = array();
        let block = row / PAGES_PER_BLOCK;
        if self.has_ecc() {
            let later = row + 1..(block + 1) * PAGES_PER_BLOCK;
            assert!(
                array.programs[later].iter().all(|&count| count == 0),
                "page {row} is programmed after a later one"
            );
            assert!(block != BAD_BLOCK, "a bad block is programmed");
        }
        self.program_count += 1;
        let (size, is_lost) = match self.tear().map(|number| number % 4) {
            None => (size_of::<Raw>(), false),
            Some(0) => (0, false),
            // Half a page, of which error correction knows nothing, or says so.
            Some(1) => (PAGE_SIZE / 2, false),
            Some(2) => (PAGE_SIZE / 2, true),
            // All of it, but nobody is told.
            Some(_) => (size_of::<Raw>(), false),
        };
        if size > 0 {
            array.programs[row] += 1;
            assert!(array.programs[row] <= PROGRAMS_MAX, "page {row} is programmed too often");
        }
        for (cell, &byte) in array.raw[row].iter_mut().zip(&self.cache[..size]) {
            *cell &= byte;
        }
        array.is_lost[row] |= u8::from(is_lost);
        self.status = 0;
    }

    fn erase(&mut self, block: usize) {
        if !self.is_allowed() {
            self.status = STATUS_ERASE_FAILED;
            return;
        }
        assert!(block != BAD_BLOCK, "a bad block is erased");
        let array = array();
        self.erase_count += 1;
        let erased = match self.tear().map(|number| number % 3) {
            None | Some(0) => PAGES_PER_BLOCK,
            Some(1) => PAGES_PER_BLOCK / 2,
            Some(_) => 0,
        };
        let first = block * PAGES_PER_BLOCK;
        let pages = first..first + erased;
        array.raw[pages.clone()].as_flattened_mut().fill(0xff);
        array.programs[pages.clone()].fill(0);
        array.is_lost[pages].fill(0);
        if erased == PAGES_PER_BLOCK / 2 {
            // Of the others some hold what they held.
            for row in (first + erased..first + PAGES_PER_BLOCK).step_by(3) {
                array.is_lost[row] = 1;
            }
        }
        self.status = 0;
    }
}
