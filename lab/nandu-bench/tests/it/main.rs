//! Figures, held against a committed snapshot.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod browser;
mod committed;
mod devtools;
mod flexfs;
mod page;
mod reproduced;
mod small;
mod snapshots;
