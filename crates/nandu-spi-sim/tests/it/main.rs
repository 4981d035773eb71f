//! What the simulator of the wire promises, held from outside.

#![expect(clippy::unwrap_used, reason = "a test that gets no answer has failed")]

mod chip;
mod cuts;
mod driver;
mod mistakes;
mod outages;
mod rules;
mod same;
mod sleep;
mod small;
mod store;
