//! The index on simulated chips.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod conform;
mod costs;
mod cuts;
mod everywhere;
mod faults;
mod journal;
mod rig;
mod wear;
