//! What the machine says to the host that emulates it.

use core::fmt::{Arguments, Write};

use cortex_m_semihosting::debug::{self, EXIT_FAILURE, EXIT_SUCCESS};
use cortex_m_semihosting::hio;

/// Prints a line.
pub fn say(line: Arguments<'_>) {
    if let Ok(mut host) = hio::hstdout() {
        // Whom should it be told to, if the host does not listen?
        let _ = writeln!(host, "{line}");
    }
}

/// Ends the run.
pub fn exit(is_success: bool) -> ! {
    debug::exit(if is_success { EXIT_SUCCESS } else { EXIT_FAILURE });
    loop {
        core::hint::spin_loop();
    }
}
