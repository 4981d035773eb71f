//! The store as its users see it, on simulated chips.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that gets no answer has failed")]

mod costs;
mod cuts;
mod fuzz;
mod memory;
mod suite;
mod sync;
mod values;
