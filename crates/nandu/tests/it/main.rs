//! The store as its users see it, on simulated chips.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod alignment;
mod campaign;
mod costs;
mod cursor;
mod cuts;
mod delete_range;
mod digest;
mod faults;
mod fuzz;
mod heart_cases;
mod idle;
mod large_values;
mod life;
mod liveness;
mod memory;
mod partitions;
mod pending;
mod places;
mod refusals;
mod releases;
mod rig;
mod snapshot_costs;
mod snapshot_sharing;
mod snapshots;
mod suite;
mod sync;
mod value_costs;
mod values;
mod volumes;
