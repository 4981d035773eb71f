//! The log driven by a toy owner, on simulated chips.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod anchors;
mod costs;
mod cuts;
mod faults;
mod guards;
mod hostile;
mod life;
mod model;
mod mounts;
mod pages;
mod promises;
mod room;
mod toy;
mod verify;
