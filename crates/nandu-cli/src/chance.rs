//! Numbers by chance.

use std::hash::{BuildHasher, RandomState};

/// A number by chance, from what the operating system seeds hash maps with.
pub(crate) fn number(index: usize) -> u64 {
    RandomState::new().hash_one(index)
}
