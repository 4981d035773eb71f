//! Rivals of nandu's mu-Tree, built to be measured on the same chip: the mu-Tree as its paper describes it, and the
//! wandering B+-tree of JFFS3 that the paper compares it with.
//!
//! [`PaperTree`] is what the paper measured (D. Kang, D. Jung, J.-U. Kang, J.-S. Kim, "mu-Tree: An Ordered Index Structure
//! for NAND Flash Memory", EMSOFT 2007): entries of 4 and 4 bytes, pages without a header, separate read and write caches
//! of whole pages, greedy garbage collection with the validity of pages in memory.
//!
//! **The key decision** is that both trees are one piece of code, [`TreeKind`] apart: the same descent, the same splits,
//! the same caches and the same collector, so that what is compared is where nodes are put and nothing else. Two
//! programs, each at its best, were refused: a difference between them would say little about the idea.
//!
//! # Invariants
//!
//! * B1  Keys in a node strictly ascend.
//! * B2  Keys lie between the separators around their node, and only a leaf that is the whole tree is empty.
//! * B3  In a page, a node that is reached from the root and is not the lowest one there has the next lower one as a child.
//! * B4  As many records are reached as are counted.
//! * B5  A page is live if and only if its lowest node is reached from the root.

mod entry;
mod error;
mod layout;
mod options;
mod pager;
mod pages;
mod paper;
mod tree;

pub use error::BaselineError;
pub use layout::TreeKind;
pub use options::{Cache, PaperOptions, Stats};
pub use paper::PaperTree;
