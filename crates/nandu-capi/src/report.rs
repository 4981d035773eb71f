//! Violations in words.

use core::ffi::{CStr, c_void};
use core::fmt::{Display, Write};

use crate::border::{Report, tell};

/// Bytes of the longest text, its zero included; a longer one is cut.
const TEXT_SIZE: usize = 192;

/// Tells a function of the caller's.
pub(crate) struct Reporter {
    report: Report,
    context: *mut c_void,
}

impl Reporter {
    pub(crate) fn new(report: Report, context: *mut c_void) -> Reporter {
        Reporter { report, context }
    }

    pub(crate) fn report(&mut self, violation: &dyn Display) {
        if self.report.is_none() {
            return;
        }
        let mut text = Text { bytes: [0; TEXT_SIZE], size: 0 };
        // A text that is too long ends early.
        let _ = write!(text, "{violation}");
        if let Ok(text) = CStr::from_bytes_until_nul(&text.bytes) {
            tell(self.report, self.context, text);
        }
    }
}

/// A text with a zero behind it.
pub(crate) struct Text {
    bytes: [u8; TEXT_SIZE],
    size: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = (self.size + text.len()).min(TEXT_SIZE - 1);
        self.bytes[self.size..end].copy_from_slice(&text.as_bytes()[..end - self.size]);
        self.size = end;
        Ok(())
    }
}
