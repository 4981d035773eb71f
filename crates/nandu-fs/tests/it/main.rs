//! The file system over the simulator.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cuts;
mod model;
mod operation;
mod random;
mod rig;
