//! The mu-Tree: an ordered index on raw NAND flash that programs one page for each durable change.
//!
//! **For** whoever builds something other than records or files on this index. Users of `nandu` do not need it.
//!
//! On flash nothing is changed in place. In an ordinary B+-tree a changed leaf therefore gets a new address, so its
//! parent changes, and so on up to the root: as many pages programmed as the tree is high. **The key decision** of the
//! mu-Tree is that the changed leaf and all its ancestors, root included, go into *one* page. The alternative, to keep
//! changed index pages in memory and commit them in bulk, saves the programs as well and gives up either durability or
//! bounded memory; it was refused.
//!
//! Nodes have no fixed share of the page: they are stacked, and the only rule is that they fit. They are packed: keys
//! and page numbers take the bits they need ([`FixedCells`]), or begin with a common prefix stored once
//! ([`ByteCells`]). When a leaf overflows it shares with its neighbour before anything is split.
//!
//! ```
//! use nandu_log::{Log, LogOptions};
//! use nandu_sim::{Chip, Sim};
//! use nandu_tree::{Edit, FixedCells, OnLog, Options, Tree, memory_required};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV);
//! let mut log_memory = vec![0; Log::<Sim>::memory_required(&chip.chip().geometry, &LogOptions::DEFAULT)];
//! let log = Log::format(chip, LogOptions::DEFAULT, &mut log_memory)?;
//!
//! let options = Options::default();
//! let mut memory = vec![0; memory_required(log.page_size(), &options)];
//! let mut tree = Tree::create(OnLog::new(log), FixedCells::<4, 8>, options, &mut memory)?;
//! tree.put(&7_u32.to_be_bytes(), &700_u64.to_be_bytes())?;
//! tree.batch(&[
//!     Edit { key: &7_u32.to_be_bytes(), value: None },
//!     Edit { key: &8_u32.to_be_bytes(), value: Some(&800_u64.to_be_bytes()) },
//! ])?;
//! assert_eq!(tree.get(&7_u32.to_be_bytes())?, None);
//! assert_eq!(tree.get(&8_u32.to_be_bytes())?, Some(&800_u64.to_be_bytes()[..]));
//! # Ok(())
//! # }
//! ```
//!
//! With [`Durability::OnSync`] changes wait in memory, become durable together in a *journal page* at each
//! [`sync`](Tree::sync), and go to their leaves later, many with one program. Where a leaf is due, the page of a sync is the leaf's,
//! and carries the changes of others.
//!
//! # Invariants
//!
//! `verify` checks each and names it by its number.
//!
//! * T1  Keys in a leaf and separators in an inner node strictly ascend.
//! * T2  A separator is above every key of the child before it and not above any key of the child after it. With T1
//!   and T4 it follows that each live node, named by page and level, is reached exactly once from the root.
//! * T3  A node has its child on the path in its own page, unless it is the lowest there. So in a page every node above
//!   a dead node is dead, and a page lives exactly while its lowest node does, or while changes in it are needed.
//! * T4  No leaf is empty but the root, and a root that is not a leaf has two children or more.
//! * T5  The root's page says how many entries there are; the newest journal page if that was committed later. Changes
//!   that no leaf holds yet are made in this number.
//! * T6  A page number in a node leads to a page that holds a sound node of the level below.
//! * T7  A descriptor of a large value leads to pages that hold that value, all of it.
//! * T8  The table of snapshots is on flash as it is in memory, and each snapshot's tree holds T1 to T7 with as many entries
//!   as the table says. Where several trees have the same large value, their descriptors are equal.
//! * T9  The entry of a page value leads to a bare page with the entry's checksum, and a note or a Summary of the page's block says
//!   that the page belongs to the entry's key.
//! * T10  The newest commit leads to the newest journal page, and changes in memory are as the journal pages hold them that are said
//!   to.
//! * T11  The entry of a resident value leads to a journal page that holds a value of the entry's key and length.
//! * T12  A leaf is those entries of its page whose keys are between the bounds that its parents give it; the middle one of the page is
//!   among them.
//!
//! # Cost
//!
//! With `h` the height and `c` the number of levels whose nodes are in memory (the root always is, with the default
//! cache all inner nodes of a million 8-byte entries are): a get reads at most `h - c` pages; a put or a delete reads as
//! many and programs 1. A split programs 1 or 2 pages more and comes once in some hundred puts. A change appends at
//! most `4 + 2 h` pages. With `Durability::OnSync` a part of the leaf stays where it is, so that a split programs nothing more.
//!
//! A value of exactly a page ([`Tree::put_page`]) costs a program more, and reading it a read more.
//!
//! A value too large for a leaf that fits the page of the next sync stands there ([`Tree::can_reside`]), at no program of its own; reading
//! it is one read.
//!
//! With `Durability::OnSync` a change reads as much, to find out whether its key is there; a sync programs 1 page, and
//! with `n` changes waiting for `l` leaves a program takes about `1 + 2 n / l` of them to their leaf; the page of a sync is such
//! a program where one is due.
//!
//! # Features
//!
//! `group`, `snapshots`, `blobs`, `files`, `mlc`, `tags`, `fast-crc` and `std` are those of the crate `nandu`. `_broken` is private: it switches
//! invariants off, for the tests of this repository.

#![no_std]

mod apply;
mod at;
mod broken;
mod bulk;
mod changes;
mod copies;
mod descent;
mod draft;
mod error;
mod group;
mod index;
mod join;
mod journals;
mod log;
mod memory;
mod merge;
mod notes;
mod page_values;
mod pages;
mod part;
mod range;
mod relocate;
mod remainder;
mod residents;
mod room;
mod snapshots;
mod split;
mod summaries;
mod survey;
mod tail;
mod tree;
mod trees;
mod values;
mod vanish;
mod verify;

pub use at::At;
#[cfg(feature = "_broken")]
pub use broken::Broken;
pub use error::{PageDamage, TreeError};
pub use log::OnLog;
pub use memory::{Durability, Options, memory_required};
pub use nandu_cells::{ByteCells, Cells, FixedCells};
pub use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
pub use nandu_media::PageKind;
pub use nandu_media::checksum::checksum as page_checksum;
pub use nandu_media::snapshots::SNAPSHOT_COUNT_MAX;
pub use nandu_media::tag::TAG_OWNER_SIZE;
pub use nandu_media::tree::{CellFormat, HEIGHT_MAX, Malformed, TreeBody, TreeFront};
pub use page_values::{PAGE_KEY_SIZE_MAX, PagePut};
pub use pages::{Counted, Examine, Examined, Found, Need, Pages, Placement, SummaryRead};
pub use snapshots::Snapshot;
pub use tree::{Stats, Tree};
