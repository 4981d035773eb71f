//! An append-only log over the blocks of a raw NAND chip, with one commit stream.
//!
//! **For** whoever builds an engine of their own over raw NAND and wants wear, bad blocks, garbage collection and recovery done.
//!
//! The owner of a [`Log`] appends whole pages and reads them back by address. A page that it **commits** is its state: after a mount, [`Log::committed`] is the newest of them,
//! and the owner finds everything else from there. All other pages promise nothing by themselves.
//!
//! **The key decision** is that liveness belongs to the owner and time belongs to the log. The log keeps no map of pages,
//! only a count for each block that is never too low; a page is proved dead by its owner's looking from the root. The alternative, a translation layer with a map of its own,
//! would free the owner of that and cost a second tree of the size of the first: every synced write would program its path twice.
//!
//! Two rules carry the rest:
//!
//! * **R1, one commit stream.** A commit is a page of one kind in stream 0. A mount finds the newest one in that stream alone, and does not look
//!   for what was programmed after it. Its header says where the other streams stood.
//! * **R3, pages die with a commit.** [`Log::dies`] takes effect when the next commit is durable. So moving a page is a copy and a death, and
//!   if no commit follows, it never happened.
//!
//! Bodies of pages have to be **position independent**: a page refers to itself by "self", not by address. So a page whose
//! program failed is programmed elsewhere, and recovery copies the newest commit without understanding it.
//!
//! # Invariants
//!
//! The numbers are those of `docs/invariants.md`.
//!
//! * **N1** Each page but a raw one carries its own address, the volume, and a sequence that no other page was given; within a block
//!   sequences rise.
//! * **N2** A block is programmed only after an erase of it returned in this session, or before the clean checkpoint that calls
//!   it erased.
//! * **N3** Stream 0 opened the first entries of the newest checkpoint's ready list, in their order; the other streams opened some of the last.
//! * **N4** A block is erased only if the newest checkpoint lists it.
//! * **N5** The live count of a block is never below the number of its pages that the owner needs, now or if the power goes.
//! * **N6** When a block was opened, an entry of the ready list remains, for recovery to erase and copy to; but a commit that makes deaths count takes it rather than end
//!   the chip. A cut right then leaves a volume that can be read only, and loses nothing.
//! * **N7** The newest commit is readable, and its block is not erased.
//! * **N8** An anchor block is erased only if it holds neither the newest checkpoint nor the newest stable one. Where anchor blocks
//!   were lost, the first checkpoint of a block counts once a second one was begun behind it.
//! * **N9** A page that may be torn is not programmed before it is erased: a block that was open at a cut goes on behind it, once a checkpoint says so.
//! * **N10** Only the owner says that a raw page lives. A summary says whose each raw page before it was when it was programmed; where there is none, the owner is asked.
//! * **N11** The pages of a tail stand in one block, from where the newest commit says that the stream of raw pages stood, or a checkpoint after it. A tag fits one page, one content, one commit and one place. Nothing is tagged where a
//!   mount would not find it.
//! * **N12** From one erase to the next a block has one mode, that of the stream that opened it.
//! * **N13** No page that a commit names shares its cells with a page that is still to be programmed.
//!
//! # An owner's operation
//!
//! ```text
//! let grant = loop {
//!     match log.claim(want, pages, live)? {
//!         Claimed::Granted(grant) => break grant,
//!         Claimed::Collect(budget) => { /* pages are moved, as below, with this one */ }
//!         Claimed::Bury => { /* a commit that says what the one before said, from where it stands now */ }
//!         Claimed::Recount => { /* log.recount_begin(); log.found(page, key) for each that is needed; log.found_all(true) */ }
//!     }
//! };
//! let node = log.append(&mut other_page, Kind::Node, &mut grant)?;
//! log.dies(old_page);
//! log.commit(&mut page, grant)?;         // durable: the new pages count, and the old one is dead
//! let mut budget = log.instalment((pages, due), left);
//! while let Some(victim) = log.victim(&mut budget)? { /* log.copy(..) and log.dies(..) if it lives */ log.answer(victim, fate, &mut budget); }
//! ```

#![no_std]

mod anchors;
mod blocks;
mod chip;
mod choice;
mod classify;
mod collector;
mod disturb;
mod dying;
mod error;
mod format;
mod gap;
mod grant;
mod heads;
mod log;
mod medium;
mod mount;
mod options;
pub mod order;
mod pace;
mod pairs;
mod partners;
mod parts;
mod raw;
mod ready;
mod recover;
mod reserve;
mod roll;
mod room;
mod search;
mod shape;
mod stats;
mod step;
mod survivors;
mod tail;
mod twice;
mod verify;
mod victims;
mod volume;

pub use choice::{BlockUse, Candidate, Choice};
pub use collector::{Budget, takes_commit};
pub use dying::DYING_MAX;
pub use error::LogError;
pub use grant::{Claimed, Fate, Grant, Kind, PageInfo, Victim};
pub use log::Log;
pub use nandu_media::{Malformed, PageKind};
#[cfg(feature = "_broken")]
pub use options::Broken;
pub use options::{LogOptions, OWNER_MAX};
pub use parts::Parts;
pub use raw::{Owner, Rescued, Whose};
pub use room::Claim;
pub use stats::LogStats;
pub use tail::{TAIL_MAX, Tag, Tagged, TailStats};
pub use verify::Violation;
