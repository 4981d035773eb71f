//! Instructions, counted by the machine's timer: the emulator is told to take a fixed time for each.
//!
//! `qemu-system-arm -icount shift=7` lets 128 ns pass for each instruction, and SysTick counts 25 times in each microsecond, so 16
//! ticks are 5 instructions. What the driver and the part take is left out: a clock that stands still while they work.

use nandu::nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};

const CONTROL: *mut u32 = 0xe000_e010 as *mut u32;
const RELOAD: *mut u32 = 0xe000_e014 as *mut u32;
const CURRENT: *mut u32 = 0xe000_e018 as *mut u32;

/// The timer counts down in 24 bits.
const MASK: u32 = 0x00ff_ffff;

static mut CLOCK: Clock = Clock { since: 0, ticks: 0 };

struct Clock {
    since: u32,
    ticks: u64,
}

fn now() -> u32 {
    // SAFETY: the address is that of SYST_CVR, which may be read at any time.
    unsafe { CURRENT.read_volatile() }
}

fn clock() -> &'static mut Clock {
    // SAFETY: there is one thread and no interrupt, and every caller in this file lets go of the reference before it returns.
    unsafe { &mut *(&raw mut CLOCK) }
}

/// Starts the timer.
pub fn start() {
    // SAFETY: these are the addresses of SYST_RVR, SYST_CVR and SYST_CSR, and no one else uses the timer.
    unsafe {
        RELOAD.write_volatile(MASK);
        CURRENT.write_volatile(0);
        CONTROL.write_volatile(0b101);
    }
}

fn go_on() {
    clock().since = now();
}

fn stop() {
    let clock = clock();
    // An interval is at most 5 million instructions.
    clock.ticks += u64::from(clock.since.wrapping_sub(now()) & MASK);
}

/// Instructions that a call takes, without those of the chip.
pub fn count<T>(call: impl FnOnce() -> T) -> (T, u64) {
    clock().ticks = 0;
    go_on();
    let result = call();
    stop();
    (result, clock().ticks * 5 / 16)
}

/// Does something while the clock stands still.
pub fn pause<T>(work: impl FnOnce() -> T) -> T {
    stop();
    let result = work();
    go_on();
    result
}

/// Instructions counted for a loop of 30,000, to be seen beside that number.
pub fn trial() -> u64 {
    // SAFETY: the loop changes one register and touches no memory.
    let spin = || unsafe {
        core::arch::asm!("2:", "nop", "subs {n}, #1", "bne 2b", n = inout(reg) 10_000_u32 => _);
    };
    count(spin).1
}

/// A chip during whose work the clock stands still.
#[derive(Debug)]
pub struct Unclocked<N>(pub N);

impl<N> Unclocked<N> {
    fn work<T>(&mut self, work: impl FnOnce(&mut N) -> T) -> T {
        pause(|| work(&mut self.0))
    }
}

impl<N: ErrorType> ErrorType for Unclocked<N> {
    type Error = N::Error;
}

impl<N: Nand> Nand for Unclocked<N> {
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, N::Error> {
        self.work(|chip| chip.read(page, column, buf))
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), N::Error> {
        self.work(|chip| chip.program(page, column, data))
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), N::Error> {
        self.work(|chip| chip.program_tagged(page, data, tag))
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), N::Error> {
        self.work(|chip| chip.erase(block, mode))
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, N::Error> {
        self.work(|chip| chip.is_bad(block))
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), N::Error> {
        self.work(|chip| chip.mark_bad(block))
    }
}
