//! The tree on pages in memory that are strict about what lives, and on the log over a simulated chip.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod bulk;
mod conform;
mod cost;
mod damage;
mod fail;
mod group;
mod log;
mod medium;
mod page_cuts;
mod page_values;
mod paired_cuts;
mod parted;
mod relocate;
mod rides;
mod snapshots;
mod survey;
