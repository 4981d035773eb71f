//! The store as its users see it, on simulated chips.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that gets no answer has failed")]
#![cfg_attr(feature = "next", expect(clippy::duplicate_mod, reason = "tests of either heart are modules of both"))]

mod alignment;
mod costs;
mod cursor;
mod cuts;
mod delete_range;
mod faults;
mod fuzz;
mod heart;
mod heart_cases;
mod idle;
mod life;
mod memory;
#[cfg(feature = "next")]
mod next;
mod partitions;
mod pending;
mod places;
mod releases;
mod snapshot_costs;
mod snapshot_sharing;
mod snapshots;
mod suite;
mod sync;
mod value_costs;
mod values;
mod volumes;
