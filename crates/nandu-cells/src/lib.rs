//! How a node of the mu-Tree is packed into bytes, which differs between kinds of keys and values; how large nodes may be, how they are divided,
//! and which are kept in memory.
//!
//! **For** the trees of nandu and tools that look into their pages. Users of `nandu` do not need it.
//!
//! A node is a slice of bytes. [`Cells`] searches it, edits a leaf in place where that is cheap, and encodes a node
//! anew from a *run*: entries of old nodes with a change in the middle, seen as one sequence ([`LeafRun`], [`InnerRun`]). **The key decision**
//! is that no step needs a decoded copy of a node. The alternative, nodes as arrays of entries in memory, would take a second buffer of more than
//! a page for each node in use, and was refused.
//!
//! ```
//! use nandu_cells::{Cells, FixedCells, LeafRun, RunEdit, Stretch};
//!
//! let cells = FixedCells::<4, 2>;
//! let edit = RunEdit { at: 0, replaces: false, key: &[0, 0, 0, 7], value: &[1, 2] };
//! let run = LeafRun::new(Stretch::NONE, Stretch::NONE, Some(edit));
//! let mut leaf = [0; 16];
//! let size = cells.leaf_encode(&run, 0..1, &mut leaf).unwrap_or(0);
//! assert!(cells.leaf_check(&leaf[..size]));
//! assert_eq!(cells.leaf_find(&leaf[..size], &[0, 0, 0, 7]), Ok(0));
//! ```

#![no_std]

mod bits;
mod bytes;
mod cache;
mod cells;
mod fixed;
mod limits;
pub mod plan;
mod run;

pub use bytes::ByteCells;
pub use cache::Cache;
pub use cells::Cells;
pub use fixed::FixedCells;
pub use limits::Limits;
pub use run::{InnerRun, LeafRun, RunEdit, SELF, Stretch};
