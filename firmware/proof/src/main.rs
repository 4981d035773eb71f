//! Uses a store and files on an SPI NAND part through the driver of `nandu-spi`, as firmware would, and cuts the power of the part.
//!
//! It runs in an emulated Cortex-M4 or Cortex-M7. The part is in the machine's memory and takes the bytes that go over the wire. What goes
//! wrong is a panic, and the run fails.

#![no_std]
#![no_main]

mod files;
mod part;
mod records;

use core::mem::size_of_val;

use cortex_m_rt::entry;
use nandu_budget::clock;
use nandu_budget::host::{exit, say};

static mut MEMORY: [u64; 8 * 1024] = [0; 8 * 1024];

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say(format_args!("{info}"));
    exit(false)
}

#[entry]
fn main() -> ! {
    clock::start();
    say(format_args!("core {}", part::core()));
    say(format_args!("trial {}", clock::trial()));
    part::manufacture();
    part::identify();
    // SAFETY: there is one thread, which asks once; any bytes are bytes.
    let memory = unsafe {
        let words = &mut *(&raw mut MEMORY);
        core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words))
    };
    records::prove(memory);
    files::prove(memory);
    let (programs, erases) = part::work();
    say(format_args!("programs {programs}"));
    say(format_args!("erases {erases}"));
    exit(true)
}
