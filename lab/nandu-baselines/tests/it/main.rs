//! The baselines on simulated chips.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bftl;
mod cuts;
mod durable;
mod paper;
mod table5;
