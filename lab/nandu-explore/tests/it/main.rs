//! Short forms of what `cargo xtask explore` runs, and what it is worth.
#![allow(clippy::unwrap_used, clippy::panic)]

mod found;
mod planted;
mod short;
