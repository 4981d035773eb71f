//! The tree on the log over a simulated chip.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod bench;
mod blobs;
mod conform;
mod cost;
mod cuts;
mod damage;
mod fail;
mod full;
mod group;
mod lives;
mod mlc;
mod raw;
mod snapshot_cuts;
mod snapshots;
mod sync_cuts;
mod tags;
mod values;
