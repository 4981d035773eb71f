//! The store as its users see it, on simulated chips.

mod cuts;
mod fuzz;
mod memory;
mod suite;
