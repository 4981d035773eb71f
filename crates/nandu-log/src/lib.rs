//! An append-only log over the blocks of a raw NAND chip.
//!
//! The owner of a [`Log`] appends whole pages and reads them back by address. A page appended with the commit flag is the
//! owner's state: after a mount, [`Log::committed`] is the newest of them. The owner finds everything else from there; it
//! tells the log which pages it no longer needs ([`Log::supersede`]) and, asked about a page of a block that is to be
//! emptied, finds out whether it lives and moves it ([`Log::next_work`]).
//!
//! **The key decision** is that liveness belongs to the owner and time belongs to the log. The log keeps no map of pages,
//! only a count for each block that is never too low; a page is proved dead by its owner's looking from the root. And one
//! sequence orders every program on the chip, so that after a cut the newest commit is found by following the streams from
//! the newest checkpoint, in a bounded number of reads. The alternative, a translation layer with a map of its own, would
//! free the owner of both duties and cost a second tree of the size of the first: every synced write would program its
//! path twice.
//!
//! Bodies of pages have to be **position independent**: a page refers to itself by "self", not by address. So a page whose
//! program failed is programmed elsewhere, and recovery copies the newest commit page without understanding it.
//!
//! # Invariants
//!
//! * **L1** Each page carries its own address, the volume, and a sequence that no other page was given; within a block
//!   sequences rise.
//! * **L2** A data block is programmed only after an erase of it returned and a checkpoint said so, or, in recovery, after an
//!   erase in this session.
//! * **L3** The blocks opened since the newest checkpoint are both ends of its ready list: stream 0 takes from the front, the
//!   others from the back.
//! * **L4** No data block is erased that was open at the newest checkpoint, was opened after it, or is not called empty by it.
//! * **L5** The live count of a block is never below the number of its pages that the owner needs.
//! * **L6** When a page is appended that promises something, an entry of the ready list remains, for recovery to erase and copy
//!   to.
//! * **L7** The newest commit page is readable, and its block is not erased.
//! * **L8** An anchor block is erased only if it holds neither the newest checkpoint nor the newest stable one.
//! * **L9** A block that was open at a cut is not programmed before it is erased.
//!
//! # An owner's operation
//!
//! ```text
//! let mut budget = log.instalment(pages);
//! while let Some(examine) = log.next_work(&mut budget)? { /* move the page if it lives */ log.examined(examine, ..)?; }
//! while !log.reserve(pages, Growth::Grows)? { /* the same with Budget::idle(16) */ }
//! let page = log.append(bytes, ..)?;       // the last one with is_commit
//! log.supersede(old_page);                 // only now
//! ```

#![no_std]

mod access;
mod anchor;
mod block_table;
mod checkpoint;
mod disturb;
mod error;
mod format;
mod frontier;
mod gc;
mod log;
mod memory;
mod mount;
mod options;
mod placement;
mod recovery;
mod retire;
mod roll_forward;
mod shape;
mod stats;
mod verify;
mod wear;

pub use error::LogError;
pub use frontier::Append;
pub use gc::{Budget, Examine, Examined, Growth, INSTALMENT_MAX};
pub use log::{Log, PageInfo};
pub use nandu_media::{Malformed, PageKind};
pub use options::LogOptions;
pub use placement::Placement;
pub use stats::LogStats;
pub use verify::Violation;
