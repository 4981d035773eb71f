//! The log driven by a toy owner, on simulated chips.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that gets no answer has failed")]

mod anchors;
mod bare;
mod bare_cuts;
mod costs;
mod cuts;
mod faults;
mod guards;
mod hostile;
mod life;
mod mlc;
mod mlc_cuts;
mod model;
mod mounts;
mod tags;
mod toy;
mod verify;
