//! What an error of a file system has to say besides its words.

use core::error::Error;

use crate::Feature;

/// An error of a file system.
pub trait FileError: Error + 'static {
    /// The number that POSIX, as Linux counts, has for it; one of [`errno`](crate::errno).
    fn errno(&self) -> i32;

    /// What is said where the file system lacks something; its number is [`Feature::errno`].
    fn lacks(feature: Feature) -> Self;
}
