//! In-page logging: an ordered index on raw NAND flash whose nodes stay in their blocks.
//!
//! **For** whoever compares an index with IPL or GRR. For use take `nandu`, unless updates among neighbours that are synced in groups are
//! most of the work.
//!
//! What changed in a node is not programmed with the node, but as a few records into a log page of the same block. A read
//! takes the node's page and the log pages. When the log of a block is full, the block is *merged*: its nodes, with their
//! logs, go to a free block, and it is erased. In-page logging (IPL: one log page in each block, blocks filled one after the
//! other) and group round robin (GRR: more log pages, several blocks filled in turn, a buffer that keeps changes without
//! their nodes) are one engine with different [`Options`]: [`Options::IPL`], [`Options::GRR`], and [`Options::DEFAULT`] for real
//! use.
//!
//! **The key decision** is that the index places its pages itself. The log of `nandu-log` appends and moves pages as it
//! likes, while here a change has to go into the block of its node; so this crate keeps its own block table, anchors and
//! recovery. The alternative, log records appended anywhere and found by a map, is another index (BFTL) with other costs.
//!
//! ```
//! use nandu_inpage::{InPage, Options};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV.with_blocks(64));
//! let options = Options::DEFAULT;
//! let mut memory = vec![0; InPage::<Sim>::memory_required(&chip.chip().geometry, &options)];
//! let mut index = InPage::format(chip, options, &mut memory)?;
//! index.put(b"key", b"value")?;
//! index.put_blind(b"other", b"not read before")?;
//! index.sync()?;
//!
//! // The power goes: what was synced stays.
//! let chip = index.abandon();
//! let mut index = InPage::open(chip, options, &mut memory)?;
//! assert_eq!(index.get(b"key")?, Some(&b"value"[..]));
//! assert_eq!(index.count_records()?, 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! After [`InPage::sync`] every change before it survives any power cut. Of a change that was not synced, a cut leaves for each
//! key the outcome of some of the calls on that key in order, at least of those that were synced; nothing is promised about
//! which keys keep more of them.
//!
//! With a journal ([`Options::journal_blocks`]) a sync is one program, and a cut leaves what the index held after one of the calls, no
//! earlier than the last sync. [`InPage::batch`] makes several changes that way together. [`Durability::Immediate`] makes each
//! call durable by itself.
//!
//! # Invariants
//!
//! What every writer keeps, so that recovery can rely on it:
//!
//! * I1 Sequences rise with every program; of the pages of a node the one with the highest sequence is current.
//! * I2 A log sector counts only in the block of the node's current page, and if it is newer.
//! * I3 No sector is added to a block once its merge began.
//! * I4 A new node is durable before the link to it; a node is clipped, or given another sector, only after that link; the
//!   left neighbour is truncated before a link is removed.
//! * I5 A block is erased only when every node that can be reached has its current page elsewhere.
//! * I6 The sectors of a block are used in order, and one that is not erased is used up, valid or not.
//!
//! * J1 A change is in the journal, durably, before a node that holds it is programmed.
//! * J2 A batch is noted whole before any of it is done, and holds when the page with the last of it is programmed.
//! * J3 A block of the journal is erased only after a journal page, or an anchor, says that it is not needed.
//! * J4 After a cut, the newest journal page is copied before any of its changes are made again.
//!
//! [`InPage::verify`] checks what can be seen:
//!
//! * V1 Every node that the tree leads to can be read.
//! * V2 Keys ascend and lie within the fences, which are those that the parent gives.
//! * V3 Each node is reached once, and every node of the table is reached.
//! * V4 The size of each node is known, and none is larger than a page without changes that are to be flushed.
//! * V5 Each node stands in one block, which lists it; no block holds more than it has pages.
//!
//! # Cost
//!
//! With `l` the programmed log pages of a block that are read, and `g` the pages of a node ([`Options::node_pages`]): a node that is not
//! in the buffer costs `g + l` reads. A flush of changes costs one program, and when the log of the block is full a merge: `g` reads
//! for each node and one for each log page of the block, `g` programs for each node, and an erase. Opening reads every page of the
//! blocks in use.
//!
//! A journal costs a program for each sync or each page of changes, whichever comes first, and an erase for each block of them;
//! when it is full, the nodes with the oldest changes are flushed. Opening after a cut reads it, copies its last page, makes its
//! changes again, flushes them, and erases its blocks.
//!
//! # Limits
//!
//! How often a block was erased is said by its pages and by anchors; a cut may make the last erases of a block that is free
//! forgotten, and on chips with so many blocks that half a block does not take their counts, more. Leaves are not balanced when keys are deleted: an empty leaf goes, unless it is the first of its
//! parent, and inner nodes stay. Chips with paired pages are refused, and sectors need a chip that takes partial programs in
//! any order of pages and tears only what is being programmed.
//!
//! A batch of several changes is refused without a journal: nothing else could make it all or nothing. With one it takes at
//! most as many pages as the journal has. Unless the options say so ([`Options::read_back`]), programs are not read back, so a program
//! that a chip reports and does not do is found only when its page is read. When the newest page of the root or of the journal, or
//! what was logged last in a block, decays between a cut and the next opening, it cannot be told from what the cut tore: it is counted
//! ([`Stats::torn`]), and older records answer. After an orderly end, or where others were programmed behind it, it is found, and the
//! nodes that it concerns are reported as lost. An older page of the journal that is needed and cannot be read makes the volume one
//! that cannot be opened: what it held may be newer than any node.
//!
//! Nothing is promised about capacity, so there is no number of spare blocks below which a volume becomes read-only: each
//! block that dies makes the chip fuller, four are kept for merges and deletes, and when none is left to copy into, what there is can
//! be read; unless the power went while a journal was in use, whose changes need a block to go to.

#![no_std]

mod anchor;
mod arena;
mod batch;
mod blocks;
mod buffer;
mod change;
mod chip;
mod descent;
mod error;
mod evict;
mod flush;
mod format;
mod index;
mod inpage;
mod journal;
mod load;
mod log_page;
mod memory;
mod merge;
mod mount;
mod node;
mod nodes;
mod options;
mod parts;
mod placement;
mod range;
mod replay;
mod scan;
mod split;
mod stats;
mod verify;

pub use error::Error;
pub use inpage::InPage;
pub use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
pub use nandu_media::Malformed;
#[cfg(feature = "_broken")]
pub use options::Broken;
pub use options::{Cells, Durability, GroupSize, Kind, Layout, LogPages, LogRead, Options, Policy, Splits, Times};
pub use stats::{Size, Stats};
