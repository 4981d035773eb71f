//! What an ordered index on raw NAND flash can do: [`OrderedIndex`], its keys and its values.
//!
//! **For** whoever builds an index for raw NAND, or code and experiments that take any.
//!
//! Keys and values are byte slices. Keys are ordered as bytes are, so an integer is written with its high byte first
//! ([`u32::to_be_bytes`]) and then sorts as a number does. Whether keys have one width or any is the index's business;
//! it refuses with an error what it cannot hold.
//!
//! ```
//! use nandu_index::OrderedIndex;
//!
//! /// Counts one more under a key, on whatever index it is given.
//! fn count<I: OrderedIndex>(index: &mut I, key: &[u8]) -> Result<u32, I::Error> {
//!     let before = index.get(key)?.and_then(|value| value.try_into().ok()).map_or(0, u32::from_be_bytes);
//!     index.put(key, &(before + 1).to_be_bytes())?;
//!     index.sync()?;
//!     Ok(before + 1)
//! }
//! ```
//!
//! **The key decision** is that an index lends what it found instead of copying it: a value is a slice of the index's
//! own page buffer, valid until the index is used again. A caller that wants to keep it copies it. The alternative,
//! buffers given by the caller at each call, costs a copy in the common case and a size error in the rare one.
//!
//! The suite that every index must pass stands behind the feature `suite`, which alone needs the standard library.

#![no_std]

#[cfg(feature = "suite")]
extern crate std;

mod index;
mod key;
#[cfg(feature = "suite")]
pub mod suite;

pub use index::{Direction, Edit, Entry, OrderedIndex, Violation};
pub use key::{KEY_SIZE_MAX, KeyBuf};
