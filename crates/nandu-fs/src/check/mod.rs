//! Looking whether all is well, and mending what is not: what a computer does to a volume, and a microcontroller seldom.
//!
//! It sees of the file system what other mechanisms see of one another. Nothing but the trait of file systems calls it.

mod chunks;
mod repair;
mod verify;
mod walk;

pub use repair::{Mended, Repair};
pub use verify::Violation;
