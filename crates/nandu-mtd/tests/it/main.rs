//! The driver over a kernel that is a test, with a simulated chip behind it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod errors;
mod fake;
mod opening;
mod reads;
mod storage;
