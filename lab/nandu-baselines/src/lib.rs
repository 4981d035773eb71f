//! Rivals of nandu's mu-Tree, built to be measured on the same chip: the mu-Tree as its paper describes it, and the
//! wandering B+-tree of JFFS3 that the paper compares it with.
//!
//! **For** whoever compares an index with these. They are yardsticks and not for use.
//!
//! [`PaperTree`] is what the paper measured (D. Kang, D. Jung, J.-U. Kang, J.-S. Kim, "mu-Tree: An Ordered Index Structure
//! for NAND Flash Memory", EMSOFT 2007): entries of 4 and 4 bytes, pages without a header, separate read and write caches
//! of whole pages, greedy garbage collection with the validity of pages in memory.
//!
//! [`DurableTree`] is the same two trees as they would have to be to be used: found again after any power cut, with JFFS3's chain
//! of superblocks, and for the B+-tree its journal tree.
//!
//! [`Bftl`] is another rival: a B-tree whose nodes are scattered over a log as index units.
//!
//! ```
//! use nandu_baselines::{Bftl, BftlOptions};
//! use nandu_index::OrderedIndex;
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut tree = Bftl::format(Sim::new(Chip::W25N01GV.with_blocks(64)), BftlOptions::ORIGINAL)?;
//! tree.put(&7_u32.to_be_bytes(), &[1, 2, 3, 4])?;
//! OrderedIndex::sync(&mut tree)?;
//! assert_eq!(OrderedIndex::get(&mut tree, &7_u32.to_be_bytes())?, Some(&[1, 2, 3, 4][..]));
//! # Ok(())
//! # }
//! ```
//!
//! **The key decision** is that both trees are one piece of code, [`TreeKind`] apart: the same descent, the same splits,
//! the same caches and the same collector, so that what is compared is where nodes are put and nothing else. Two
//! programs, each at its best, were refused: a difference between them would say little about the idea.
//!
//! # What a durable tree relies on
//!
//! A change is made in memory, in pages that have no place yet; when it is complete, its pages get places and are programmed
//! as one group, the root's last. So a group whose program fails is programmed again elsewhere, and a cut leaves a group
//! without its end, which a mount discards. These make it hold:
//!
//! * Blocks are filled only from the ready list of the newest superblock, or after an erase in the same mount, so that a
//!   mount knows where to look and no page is programmed on what only looks erased.
//! * No block is filled further after a cut. The newest page that counts may have been torn by it and be lost later, so a mount
//!   writes it again elsewhere and puts a superblock into an anchor block that is neither the one it found nor the one known
//!   to be stable.
//! * Until then it erases only what the superblock found calls safe: what neither that superblock nor the one before it
//!   needs, since the one found may be the page that the cut tore.
//! * What a mount programs before its superblock is marked and is no part of any tail: cuts in a row use up no blocks.
//!
//! The alternative, the log of nandu with its commit page, would have served; it was refused because what is measured here is
//! what JFFS3's way of finding the root costs.
//!
//! # Invariants
//!
//! * B1  Keys in a node strictly ascend.
//! * B2  Keys lie between the separators around their node, and only a leaf that is the whole tree is empty.
//! * B3  In a page, a node that is reached from the root and is not the lowest one there has the next lower one as a child.
//! * B4  As many records are reached as are counted.
//! * B5  A page is live if and only if its lowest node is reached from the root.
//! * B6  BFTL: the table lists each node that is reached and no other, with no more groups than the bound.

mod bftl;
mod durable;
mod entry;
mod error;
mod layout;
mod options;
mod pager;
mod pages;
mod paper;
mod tree;
mod word;

pub use bftl::{Bftl, BftlOptions, BftlStats};
pub use durable::{DurableOptions, DurableTree, MountReads};
pub use error::BaselineError;
pub use layout::TreeKind;
pub use options::{Cache, PaperOptions, Stats};
pub use paper::PaperTree;
