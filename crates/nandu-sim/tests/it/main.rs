//! What the simulator promises, held from outside.

#![expect(clippy::unwrap_used, reason = "a test that gets no answer has failed")]

mod activity;
mod faults;
mod image;
mod power_cut;
mod reference;
mod rules;
mod trace;
