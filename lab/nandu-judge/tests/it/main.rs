//! The judge: what it refuses, what it measures, its verdicts.

#![expect(clippy::unwrap_used, reason = "tests, which fail so")]

mod command;
mod promises;
mod verdicts;
