//! How deep calls reach into the stack: what lies below is painted before a call, and looked at after it.

use core::arch::asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::host::say;
/// Where paint begins: 96 KiB below the end of the memory that `memory.x` names, where the stack begins.
const FLOOR: usize = 0x2040_0000 - 96 * 1024;

const PAINT: u32 = 0xc5c5_c5c5;

/// The deepest call of a kind.
#[derive(Debug)]
struct Deepest {
    size: usize,
    call: &'static str,
}

impl Deepest {
    const NONE: Deepest = Deepest { size: 0, call: "" };

    fn hold_against(&mut self, size: usize, call: &'static str) {
        if size > self.size {
            *self = Deepest { size, call };
        }
    }
}

/// What was seen so far.
#[derive(Debug)]
pub struct Stack {
    open: Deepest,
    call: Deepest,
}

impl Default for Stack {
    fn default() -> Stack {
        Stack::new()
    }
}

impl Stack {
    /// Nothing was seen.
    pub const fn new() -> Stack {
        Stack { open: Deepest::NONE, call: Deepest::NONE }
    }

    /// Makes a call that opens or mounts.
    pub fn open<T>(&mut self, name: &'static str, call: impl FnOnce() -> T) -> T {
        // What nobody measures may have reached deeper than the last call that was measured: formatting above all.
        SPOILT.store(FLOOR, Ordering::Relaxed);
        let (result, size) = depth(call);
        self.open.hold_against(size, name);
        result
    }

    /// Makes any other call.
    pub fn call<T>(&mut self, name: &'static str, call: impl FnOnce() -> T) -> T {
        let (result, size) = depth(call);
        self.call.hold_against(size, name);
        result
    }

    /// Tells the host.
    pub fn report(&self) {
        self.report_of("");
    }

    /// Tells the host whose stack it is, before the names of the figures.
    pub fn report_of(&self, whose: &str) {
        say(format_args!("{whose}stack_open {} {}", self.open.size, self.open.call));
        say(format_args!("{whose}stack_call {} {}", self.call.size, self.call.call));
    }
}

/// The lowest word that may have lost its paint, from the last call.
static SPOILT: AtomicUsize = AtomicUsize::new(FLOOR);

/// What the call returns, and the bytes of stack below this function that it used.
#[inline(never)]
fn depth<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let top = paint(SPOILT.load(Ordering::Relaxed));
    let result = apart(call);
    let lowest = lowest(top);
    SPOILT.store(lowest, Ordering::Relaxed);
    (result, top - lowest)
}

/// Keeps the call's frame below the one in which the stack was painted.
#[inline(never)]
fn apart<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// Paints what lies below the stack pointer, from an address on; returns that pointer.
#[inline(always)]
fn paint(from: usize) -> usize {
    let top: usize;
    // SAFETY: nothing below the stack pointer is in use, there is no interrupt, and the machine has megabytes of stack.
    unsafe {
        asm!("mov {}, sp", out(reg) top);
        asm!(
            "2:",
            "str {paint}, [{at}], #4",
            "cmp {at}, {top}",
            "blo 2b",
            at = inout(reg) from => _,
            top = in(reg) top,
            paint = in(reg) PAINT,
        );
    }
    top
}

/// The lowest pair of words that has lost its paint.
fn lowest(top: usize) -> usize {
    let at: usize;
    // SAFETY: these words are the machine's memory, whatever is in them.
    unsafe {
        asm!(
            "2:",
            "ldrd {low}, {high}, [{at}], #8",
            "cmp {low}, {paint}",
            "it eq",
            "cmpeq {high}, {paint}",
            "bne 3f",
            "cmp {at}, {top}",
            "blo 2b",
            "3:",
            low = out(reg) _,
            high = out(reg) _,
            at = inout(reg) FLOOR => at,
            top = in(reg) top,
            paint = in(reg) PAINT,
            options(readonly, nostack),
        );
    }
    assert!(at > FLOOR + 8, "a call needs more stack than is painted");
    at - 8
}
