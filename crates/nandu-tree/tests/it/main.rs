//! The tree on pages in memory that are strict about what lives.

mod conform;
mod cost;
mod damage;
mod fail;
mod medium;
mod relocate;
