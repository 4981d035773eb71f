//! The file system on simulated chips.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod costs;
mod failing;
mod faults;
mod hostile;
mod lives;
mod model;
mod operations;
mod orders;
mod random;
mod recoveries;
mod rig;
mod suite;
