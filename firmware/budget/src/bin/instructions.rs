//! Tells how many instructions a put and a get take.

#![no_std]
#![no_main]

use cortex_m_rt::entry;
use nandu_budget::host::{exit, say};

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say(format_args!("{info}"));
    exit(false)
}

#[cfg(not(feature = "files"))]
static mut MEMORY: [u64; 32 * 1024] = [0; 32 * 1024];

#[entry]
fn main() -> ! {
    nandu_budget::clock::start();
    say(format_args!("trial {}", nandu_budget::clock::trial()));
    #[cfg(not(feature = "files"))]
    {
        use nandu_budget::chip::Emulated;
        use nandu_budget::clock::Unclocked;
        use nandu_firmware_driver::ONE_BIT;
        // SAFETY: there is one thread, which asks once; any bytes are bytes.
        let memory = unsafe {
            let words = &mut *(&raw mut MEMORY);
            core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words))
        };
        let (put, get) = nandu_budget::records::count(Unclocked(Emulated::erased(ONE_BIT)), memory);
        say(format_args!("put_instructions {}", put));
        say(format_args!("get_instructions {}", get));
    }
    exit(true)
}
