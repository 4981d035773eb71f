//! A firmware that makes each call of a profile once, with arguments that the compiler cannot know. It is linked, never run: its size is
//! that of the profile.

#![no_std]
#![no_main]

#[cfg(any(feature = "files", feature = "all"))]
mod file_calls;
#[cfg(not(feature = "files"))]
mod record_calls;

use cortex_m_rt::entry;
use nandu_firmware_driver::word;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

#[entry]
fn main() -> ! {
    loop {
        let number = word();
        #[cfg(not(feature = "files"))]
        core::hint::black_box(record_calls::exercise(number));
        #[cfg(any(feature = "files", feature = "all"))]
        core::hint::black_box(file_calls::exercise(number));
    }
}
