//! The other end of the wire: a part whose pages lie in the memory of the emulated machine.
//!
//! It holds what is programmed and nothing else, so it may have more blocks than there is memory.

use nandu::nand::{Geometry, NandErrorKind};
use nandu_firmware_driver as driver;
use nandu_firmware_driver::{SpiNand, Wire};

/// The second memory of the board MPS2.
const MEMORY: usize = 0x2100_0000;
const MEMORY_SIZE: usize = 16 << 20;

/// A page with its spare area.
type Raw = [u8; 2112];

const PAGE_COUNT: usize = 65_536;
const RAW_COUNT: usize = (MEMORY_SIZE - size_of::<[u16; 2 * PAGE_COUNT]>()) / size_of::<Raw>();
const PAGES_PER_BLOCK: usize = 64;

/// No page of the memory.
const NONE: u16 = u16::MAX;

#[repr(C)]
struct Memory {
    /// For each page of the part the one of the memory that holds it.
    raw_of: [u16; PAGE_COUNT],
    free: [u16; PAGE_COUNT],
    raw: [Raw; RAW_COUNT],
}

struct Part {
    free_count: usize,
    /// Bytes of the command so far, and its first four.
    length: usize,
    command: [u8; 4],
    cache: Raw,
    status: u8,
    /// Programs and erases until the power goes in the middle of one, until one fails.
    cut: Option<u32>,
    failure: Option<u32>,
    is_dead: bool,
}

static mut PART: Part = Part {
    free_count: 0,
    length: 0,
    command: [0; 4],
    cache: [0xff; 2112],
    status: 0,
    cut: None,
    failure: None,
    is_dead: false,
};

fn part() -> &'static mut Part {
    // SAFETY: there is one thread and no interrupt, and nobody keeps the reference: each function of `Emulated` asks anew.
    unsafe { &mut *(&raw mut PART) }
}

fn memory() -> &'static mut Memory {
    // SAFETY: the linker does not know of this memory, any bytes are a `Memory`, it fits, and nobody keeps the reference.
    unsafe { &mut *(MEMORY as *mut Memory) }
}

/// The wire to the part, of which the machine has one.
#[derive(Clone, Copy, Debug)]
pub struct Emulated;

/// The part behind its driver.
pub type Chip = SpiNand<Emulated>;

impl Emulated {
    /// Makes a part of erased blocks.
    pub fn erased(geometry: Geometry) -> Chip {
        let memory = memory();
        memory.raw_of.fill(NONE);
        for (number, free) in (0..).zip(&mut memory.free[..RAW_COUNT]) {
            *free = number;
        }
        let part = part();
        part.free_count = RAW_COUNT;
        Emulated::on(geometry)
    }

    /// Switches the part on, as it is.
    pub fn on(geometry: Geometry) -> Chip {
        let part = part();
        (part.cut, part.failure, part.is_dead, part.status) = (None, None, false, 0);
        SpiNand::new(geometry, Emulated)
    }

    /// The power goes in the middle of the program or erase after so many others.
    pub fn cut_after(count: u32) {
        part().cut = Some(count);
    }

    /// The program or erase after so many others fails.
    pub fn fail_after(count: u32) {
        part().failure = Some(count);
    }

    /// Whether the power has gone.
    pub fn is_dead() -> bool {
        part().is_dead
    }
}

impl Wire for Emulated {
    fn select(&mut self) {
        part().length = 0;
    }

    #[inline(never)]
    fn exchange(&mut self, byte: u8) -> u8 {
        let part = part();
        if part.is_dead {
            return 0xff;
        }
        let at = part.length;
        part.length += 1;
        if at < 4 {
            part.command[at] = byte;
        }
        let column = part.column();
        match part.command[0] {
            driver::GET_FEATURE => part.status,
            driver::READ_CACHE if at > 3 => part.cache.get(column + at - 4).copied().unwrap_or(0xff),
            driver::PROGRAM_LOAD | driver::PROGRAM_LOAD_MORE if at > 2 => {
                if let Some(cell) = part.cache.get_mut(column + at - 3) {
                    *cell = byte;
                }
                0
            }
            driver::PROGRAM_LOAD if at == 0 => {
                part.cache.fill(0xff);
                0
            }
            _ => 0,
        }
    }

    /// As byte by byte, in a fraction of the time.
    fn send(&mut self, bytes: &[u8]) {
        let part = part();
        let is_load = matches!(part.command[0], driver::PROGRAM_LOAD | driver::PROGRAM_LOAD_MORE) && part.length == 3;
        if part.is_dead || !is_load {
            return bytes.iter().for_each(|&byte| {
                self.exchange(byte);
            });
        }
        let column = part.column();
        part.length += bytes.len();
        if let Some(cells) = part.cache.get_mut(column..column + bytes.len()) {
            cells.copy_from_slice(bytes);
        }
    }

    /// As byte by byte, in a fraction of the time.
    fn receive(&mut self, buf: &mut [u8]) {
        let part = part();
        let column = part.column();
        match part.cache.get(column..column + buf.len()) {
            Some(cells) if !part.is_dead => buf.copy_from_slice(cells),
            _ => buf.fill(0xff),
        }
    }

    fn deselect(&mut self) {
        let part = part();
        if part.is_dead || part.length != 4 {
            return;
        }
        let [code, high, middle, low] = part.command;
        let row = u32::from_be_bytes([0, high, middle, low]) as usize;
        match code {
            driver::PAGE_READ => part.read(row),
            driver::PROGRAM_EXECUTE => part.program(row),
            driver::BLOCK_ERASE => part.erase(row),
            _ => {}
        }
    }
}

impl Part {
    fn column(&self) -> usize {
        usize::from(self.command[1]) << 8 | usize::from(self.command[2])
    }

    fn read(&mut self, row: usize) {
        let memory = memory();
        match memory.raw_of[row] {
            NONE => self.cache.fill(0xff),
            raw => self.cache = memory.raw[usize::from(raw)],
        }
        self.status = 0;
    }

    /// Counts an operation: whether it is the one in which the power goes, whether it fails.
    fn fate(&mut self) -> (bool, bool) {
        let is_due = |countdown: &mut Option<u32>| {
            let due = *countdown == Some(0);
            *countdown = countdown.and_then(|count| count.checked_sub(1));
            due
        };
        (is_due(&mut self.cut), is_due(&mut self.failure))
    }

    fn program(&mut self, row: usize) {
        let memory = memory();
        let (is_cut, fails) = self.fate();
        if memory.raw_of[row] == NONE {
            assert!(self.free_count > 0, "more pages are programmed than the machine has memory for");
            self.free_count -= 1;
            let raw = memory.free[self.free_count];
            memory.raw_of[row] = raw;
            memory.raw[usize::from(raw)].fill(0xff);
        }
        let raw = &mut memory.raw[usize::from(memory.raw_of[row])];
        let end = if is_cut || fails { 1000 } else { raw.len() };
        for (cell, &byte) in raw.iter_mut().zip(&self.cache[..end]) {
            *cell &= byte;
        }
        self.is_dead = is_cut;
        self.status = if fails { driver::PROGRAM_FAILED } else { 0 };
    }

    fn erase(&mut self, row: usize) {
        let (is_cut, fails) = self.fate();
        self.is_dead = is_cut;
        self.status = if fails { driver::ERASE_FAILED } else { 0 };
        if is_cut || fails {
            return;
        }
        let memory = memory();
        let first = row / PAGES_PER_BLOCK * PAGES_PER_BLOCK;
        for raw_of in &mut memory.raw_of[first..first + PAGES_PER_BLOCK] {
            if *raw_of != NONE {
                memory.free[self.free_count] = *raw_of;
                self.free_count += 1;
                *raw_of = NONE;
            }
        }
    }
}

/// What the driver says of a part without power.
pub const DEAD: NandErrorKind = NandErrorKind::Bus;
