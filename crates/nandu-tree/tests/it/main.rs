//! The tree on pages in memory that are strict about what lives, and on the log over a simulated chip.

mod conform;
mod cost;
mod damage;
mod fail;
mod log;
mod medium;
mod relocate;
