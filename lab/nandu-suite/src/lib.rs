//! The suite that every file system with the trait of `nandu-files` must pass, on simulated chips.
//!
//! **For** the tests of file systems with the trait of `nandu-files`, in this repository or outside.
//!
//! ```
//! use nandu_sim::Chip;
//! use nandu_suite::{System, conformance};
//!
//! /// What a file system owes, on a chip of the simulator.
//! fn passes<S: System>(system: &S) {
//!     conformance::conformance(system, Chip::W25N01GV.with_blocks(64));
//! }
//! ```
//!
//! **The key decision** is that it is a crate of its own and not a feature of `nandu-files`: it stands on the simulator, whose power cuts it is
//! about, and `nandu-files` on the contract alone. A system is brought to it as a [`System`], which formats and mounts; what it lacks and what a
//! power cut may leave it says itself. The alternative, a suite for each system that knows both, was there, and said of each what it happened to test.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, which fail so")]

mod chips;
pub mod conformance;
pub mod counts;
pub mod cuts;
pub mod full;
pub mod idle;
pub mod liveness;
pub mod lives;
mod model;
mod operation;
mod promise;
mod random;
mod refused;
mod seen;
mod swarm;
mod system;

pub use chips::{PAGE_SIZES, SMALL, sized};
pub use model::{Model, workload};
pub use operation::{Chance, NAMES, NEW, Op, Path, Slots, apply, apply_errno, resolve};
pub use promise::{Promise, is_allowed};
pub use random::{Pace, agree};
pub use refused::{Refused, live_all, lives_asked_for};
pub use seen::{Entry, Everything, Seen, content, everything, names, violations, xattrs};
pub use swarm::swarm;
pub use system::{Opened, ROOT, Root, Stepped, System};
