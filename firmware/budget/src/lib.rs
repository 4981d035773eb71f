//! What the programs of this package share: a part in the memory of the emulated machine, the measuring of stack and instructions,
//! and the loads under which they are measured.

#![no_std]

pub mod chip;
pub mod clock;
#[cfg(any(feature = "files", feature = "all", feature = "new-files"))]
pub mod files;
pub mod host;
pub mod random;
#[cfg(not(any(feature = "files", feature = "new-files")))]
pub mod records;
pub mod stack;

/// The file system of the profile.
#[cfg(any(feature = "files", feature = "all"))]
pub use nandu::fs;
/// The file system of the profile.
#[cfg(feature = "new-files")]
pub use nandu_newfs as fs;

/// Bytes of memory for nodes in every figure of memory and stack.
pub const CACHE_SIZE: usize = 1024;

/// Bytes of memory for changes where they wait for a sync.
pub const PENDING_SIZE: usize = 1024;
