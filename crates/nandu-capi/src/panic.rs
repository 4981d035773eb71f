//! What happens to a bug of nandu's own where there is no standard library.

use core::panic::PanicInfo;

unsafe extern "C" {
    /// Supplied by the program; must not return.
    fn nandu_panic();
}

// Nothing of what it says is used: texts and places would take a fifth of a firmware.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: the header has the C side promise a function of this type.
    unsafe { nandu_panic() };
    loop {
        core::hint::spin_loop();
    }
}
