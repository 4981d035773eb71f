//! What a file system on raw NAND flash can do: [`FileSystem`], and the words it speaks with: numbers of inodes, kinds, times, errors.
//!
//! **For** whoever builds a file system for raw NAND, or code that takes any: a mount, a command, an experiment.
//!
//! ```
//! use nandu_files::{Attributes, FileSystem, Ino};
//!
//! /// Writes a file, on whatever file system it is given.
//! fn note<F: FileSystem>(fs: &mut F, root: Ino, name: &[u8], text: &[u8]) -> Result<Ino, F::Error> {
//!     let file = fs.create(root, name, Attributes::FILE)?;
//!     fs.write_at(file, 0, text)?;
//!     fs.fsync(file)?;
//!     Ok(file)
//! }
//! ```
//!
//! **The key decision** is that a file system declares what it cannot do ([`Capabilities`]), and what may be found after a power cut
//! ([`Cuts`]). A part that it lacks is a method that it leaves as it is, which refuses with the number that POSIX has for that. The
//! alternative, a trait of the least that all have in common, could not serve a mount, which asks for everything, and a suite over it would
//! demand of each system no more than of the weakest.

#![no_std]

mod attributes;
mod capabilities;
pub mod errno;
mod error;
mod file_system;
mod kind;
mod requests;
mod time;

use core::fmt;

pub use attributes::{Attributes, DirEntry, FsStat, SetAttributes, Stat};
pub use capabilities::{Capabilities, Cuts, Feature, Order};
pub use error::FileError;
pub use file_system::FileSystem;
pub use kind::FileKind;
pub use requests::{Allocation, RenameMode, XattrMode};
pub use time::Time;

/// Number of an inode. Whether it outlives changes of the file, see [`Capabilities::lasting_numbers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u64);

impl Ino {
    /// The root directory.
    pub const ROOT: Ino = Ino(1);
}

impl fmt::Display for Ino {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
