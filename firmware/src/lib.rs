//! The core crates as a microcontroller sees them.
//!
//! Generic code is compiled only where somebody uses it with a type. So this library uses each core crate, with a
//! driver whose bus is a register, and its size is the code a firmware would carry. Nothing here is meant to be run.

#![no_std]

mod contract;
mod dffs;
mod files;
mod inpage;
mod log;
mod media;
mod spi;
mod store;
mod tree;

use core::panic::PanicInfo;

/// Firmware would reset the processor.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Entry points, kept by the linker although nobody in this library calls them.
#[used]
static ENTRY_POINTS: [fn(u32) -> u32; 9] = [
    contract::exercise,
    dffs::exercise,
    files::exercise,
    inpage::exercise,
    media::exercise,
    log::exercise,
    tree::exercise,
    spi::exercise,
    store::exercise,
];
