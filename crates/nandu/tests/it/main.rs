//! The store as its users see it, on simulated chips.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod alignment;
mod costs;
mod cursor;
mod cuts;
mod faults;
mod fuzz;
mod life;
mod memory;
mod partitions;
mod pending;
mod places;
mod releases;
mod snapshot_costs;
mod snapshots;
mod suite;
mod sync;
mod values;
mod volumes;
