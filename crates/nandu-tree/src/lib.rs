//! The mu-Tree on a log with one commit stream: an ordered index on raw NAND flash that programs one page for each durable change.
//!
//! **For** whoever builds something other than records or files on this index.
//!
//! On flash nothing is changed in place. In an ordinary B+-tree a changed leaf therefore gets a new address, so its parent changes, and so on up to the root: as many pages programmed as the
//! tree is high. In the mu-Tree the changed leaf and all its ancestors, root included, go into *one* page. **The key decision** here is that a page of the collector's promises nothing: it
//! holds a survivor with the path above it, the tree in memory goes on from there, and the next commit makes it count. The alternative, moves that are commits of their own, needs rules for
//! moves of moves at a mount, and was refused.
//!
//! Nodes have no fixed share of the page: they are stacked, and the only rule is that they fit. They are packed: keys and page numbers take the bits they need ([`FixedCells`]), or begin
//! with a common prefix stored once ([`ByteCells`]). When a leaf overflows it shares with its neighbour before anything is split.
//!
//! ```
//! use nandu_tree::{Edit, Engine, FixedCells, Log, Options, Parts, memory_required};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV);
//! let options = Options::default();
//! let mut memory = vec![0; memory_required::<Sim>(&chip.chip().geometry, &options)];
//! let mut engine = Engine::unopened(Parts::new(chip, FixedCells::<4, 8>, &options, &mut memory)?);
//! engine.begin(&options, Log::format)?;
//! engine.put(&7_u32.to_be_bytes(), &700_u64.to_be_bytes())?;
//! engine.batch(&[
//!     Edit { key: &7_u32.to_be_bytes(), value: None },
//!     Edit { key: &8_u32.to_be_bytes(), value: Some(&800_u64.to_be_bytes()) },
//! ])?;
//! assert_eq!(engine.get(&7_u32.to_be_bytes())?, None);
//! assert_eq!(engine.get(&8_u32.to_be_bytes())?, Some(&800_u64.to_be_bytes()[..]));
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! A **commit** is the state of the volume: a page with a leaf and its inner nodes up to the root, or a *bare* one that holds no node and names the root's page. A **node page** promises
//! nothing. The tree in memory has a *working root*, that of the newest page with a path, commit or not, and every operation descends from it; a commit makes all node pages before it count.
//! Orders in which pages are programmed, and the tear that makes each necessary, stand in the modules: `split` (siblings before the path), `commit` (a leaf of its own before its path;
//! deaths with the commit), `keeper` (a move as a commit: the source dies with it), `relocate` (a copy, and the source lives until the commit), `batch` (all leaves before the commit).
//!
//! # Invariants
//!
//! `verify` checks T1 to T6 of `docs/invariants.md` and names each by its number. Further:
//!
//! * **H1** What a commit leads to was programmed before it. So a cut leaves the tree of the commit before, or that of this one.
//! * **H2** A page that an operation or a move replaces is told to the log right before a commit, each once, and dies with it. So the tree of the newest commit is on
//!   flash, whatever is erased.
//! * **H3** What a failed operation appended is named by nothing. The live pages are counted again before the next operation, so that counts are exact.
//! * **H4** Nothing is read from memory that another page took the place of: a node is forgotten when it is replaced, a page when its number is programmed again.
//!
//! Where changes wait for a sync ([`Durability::OnSync`]):
//!
//! * **W1** A commit lists every change that becomes durable with it, unless all are in its own leaf and no other commit is needed. Of those in its leaves it lists the keys, where keys have any length.
//! * **W2** Members leave the window oldest first, when what still waited of them is listed by a durable commit ([`order`]).
//! * **W3** What is unsynced fits one commit, and is in no leaf but that commit's.
//! * **W4** What members list is in memory until they leave, in its leaf or not, since a mount makes it there.
//! * **W5** The page of a member lives until it leaves, and is not moved.
//! * **W6** A record that names several pages of a value, and changes for which memory has no room, are in their leaves as soon as they are durable. A commit lists only that they are there.
//! * **W7** A page has a tag only if everything before it is durable and its changes have room in memory, in the next list and in their leaves. No commit comes between the page and its changes.
//! * **W8** The page of a commit with a value lives while it is a member, and while a record names the value.
//!
//! Where there are snapshots ([`Engine::snapshot`]), which are records of what stood at a key before its first change:
//!
//! * **K1** What stands in its entry is kept by a change of its own, before the one that takes its place.
//! * **K2** A value in pages of its own is named by one record at any time: its head is kept with the change that takes its place.
//! * **K3** What is kept takes room. Growth leaves a page for each leaf of which nothing is kept yet, so that a change that frees is not refused.
//! * **K4** What a snapshot kept that was released goes to the one before it, unless that has kept something there itself.
//!
//! # Cost
//!
//! With `h` the height and `c` the number of levels whose nodes are in memory (the root always is, with the default cache all inner nodes of a million 8-byte entries are): a get reads at
//! most `h - c` pages; a put or a delete reads as many and programs 1. A split programs 1 or 2 pages more and comes once in some hundred puts. Each operation does a share of collecting
//! besides, which the log bounds.

#![no_std]

mod at;
mod batch;
mod blobs;
mod changes;
mod check;
mod commit;
mod copies;
mod cursor;
mod debt;
mod descend;
mod division;
mod edit;
mod edits;
mod engine;
mod error;
mod fit;
mod graft;
mod growth;
mod idle;
mod keep;
mod keeper;
mod large;
mod list;
mod lookup;
mod make;
mod now;
mod numbers;
mod options;
pub mod order;
mod pages;
mod parts;
mod path;
mod prune;
mod range;
mod reader;
mod relocate;
mod replay;
mod reserved;
mod settling;
mod shape;
mod siblings;
mod slots;
mod snapshots;
mod splice;
mod split;
mod standing;
mod stats;
mod sync;
mod tags;
mod tree;
mod under_way;
mod unsettled;
mod values;
mod vanish;
mod verify;
mod walk;
mod window;
mod writer;

pub use at::At;
pub use cursor::Cursor;
pub use engine::{Begin, Engine};
pub use error::{BATCH_PAGES_MAX, BESIDE_MAX, EngineError, Outcome, PageDamage};
pub use nandu_cells::{ByteCells, Cells, FixedCells};
pub use nandu_index::{Direction, Edit, Entry, KeyBuf, Violation};
pub use nandu_log::{Log, LogError, LogOptions, Tag};
pub use nandu_media::tree::Malformed;
pub use numbers::SNAPSHOT_COUNT_MAX;
#[cfg(feature = "_broken")]
pub use options::Broken;
pub use options::{Durability, Options, memory_required};
pub use parts::Parts;
pub use stats::Stats;
pub use tags::TaggedPage;
