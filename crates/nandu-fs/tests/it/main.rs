//! The file system over the simulator.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod capacity;
mod costs;
mod cuts;
mod damage;
mod digest;
mod directories;
mod faults;
mod files;
mod heart;
mod liveness;
mod lives;
#[cfg(feature = "mlc")]
mod mlc_lives;
mod page_sizes;
mod paths;
#[cfg(feature = "mlc")]
mod placing;
mod random;
mod records;
mod repair;
mod rig;
#[cfg(feature = "snapshots")]
mod snapshots;
mod space;
mod suite;
mod tags;
mod truncations;
mod worn;
mod xattrs;
