//! What the programs of this package share: a part in the memory of the emulated machine, the measuring of stack and instructions,
//! and the loads under which they are measured.

#![no_std]

pub mod chip;
pub mod clock;
#[cfg(any(feature = "files", feature = "all"))]
pub mod files;
pub mod host;
pub mod random;
#[cfg(not(feature = "files"))]
pub mod records;
pub mod stack;

/// Bytes of memory for nodes in every figure of memory and stack.
pub const CACHE_SIZE: usize = 1024;

/// Bytes of memory for changes where they wait for a sync.
pub const PENDING_SIZE: usize = 1024;
