//! Tells how much memory, struct and stack a profile takes.

#![no_std]
#![no_main]

use core::mem::size_of_val;

use cortex_m_rt::entry;
#[cfg(any(feature = "files", feature = "all"))]
use nandu::nand::Geometry;
use nandu_budget::chip::Chip;
use nandu_budget::host::{exit, say};
use nandu_budget::stack::Stack;
use nandu_firmware_driver::ONE_BIT;

static mut MEMORY: [u64; 16 * 1024] = [0; 16 * 1024];

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    say(format_args!("{info}"));
    exit(false)
}

#[entry]
fn main() -> ! {
    let mut stack = Stack::new();
    let mut largest = (0, 0);
    #[cfg(any(feature = "files", feature = "all"))]
    for (geometry, options) in file_systems() {
        use nandu::fs::Fs;
        let required = Fs::<Chip>::memory_required(&geometry, &options);
        nandu_budget::files::measure(&mut stack, geometry, options, memory(required));
        largest = largest.max((required, size_of::<Fs<'_, Chip>>()));
    }
    #[cfg(not(feature = "files"))]
    {
        use nandu_budget::records::{OPTIONS, Store};
        let required = Store::<Chip>::memory_required(&ONE_BIT, &OPTIONS);
        nandu_budget::records::measure(&mut stack, ONE_BIT, memory(required));
        largest = largest.max((required, size_of::<Store<'_, Chip>>()));
    }
    say(format_args!("memory {}", largest.0));
    say(format_args!("struct {}", largest.1));
    stack.report();
    exit(true)
}

fn memory(size: usize) -> &'static mut [u8] {
    // SAFETY: there is one thread, and whoever got the memory before has let go of it.
    let words = unsafe { &mut *(&raw mut MEMORY) };
    assert!(size <= size_of_val(words), "{size} bytes of memory");
    // SAFETY: any bytes are bytes, and there are so many.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size) }
}

#[cfg(feature = "files")]
fn file_systems() -> [(Geometry, nandu::fs::Options); 1] {
    [(ONE_BIT, nandu_budget::files::OPTIONS)]
}

#[cfg(feature = "all")]
fn file_systems() -> [(Geometry, nandu::fs::Options); 2] {
    use nandu_budget::files::OPTIONS;
    use nandu_firmware_driver::{TAGGED, TWO_BITS};
    let tagged = nandu::fs::Options { log: nandu::fs::LogOptions { has_tags: true, ..OPTIONS.log }, ..OPTIONS };
    [(TAGGED, tagged), (TWO_BITS, tagged.both_modes(&TWO_BITS))]
}
