//! The file system over the simulator.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod capacity;
mod costs;
mod cuts;
mod damage;
mod directories;
mod faults;
mod files;
mod heart;
mod idle;
mod lives;
mod page_sizes;
mod paths;
mod pending;
mod placing;
mod random;
mod records;
mod repair;
mod rig;
mod space;
mod suite;
mod tags;
mod worn;
mod xattrs;
