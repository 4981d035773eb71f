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
//! * **L2** A data block is programmed only after an erase of it returned in this session, or before the checkpoint that calls
//!   it erased. What a cut left looking erased is erased again.
//! * **L3** The blocks opened since the newest checkpoint are both ends of its ready list: stream 0 takes from the front, the
//!   others from the back.
//! * **L4** No data block is erased that was open at the newest checkpoint, was opened after it, or is not called empty by it;
//!   the blocks of its ready list are.
//! * **L5** The live count of a block is never below the number of its pages that the owner needs.
//! * **L6** When a page is appended that promises something, an entry of the ready list remains, for recovery to erase and copy
//!   to.
//! * **L7** The newest commit page is readable, and its block is not erased.
//! * **L8** An anchor block is erased only if it holds neither the newest checkpoint nor the newest stable one.
//! * **L9** A block that was open at a cut is not programmed before it is erased.
//! * **L10** What reads as a page of the log at its own address in a bare block is a summary.
//!
//! # Bare streams
//!
//! The last [`LogOptions::bare_streams`] of the streams hold pages that are all the owner's bytes ([`Log::append_bare`]): file
//! data has to fit a page. They are named by pages with headers, and by summaries, pages with a header in the same block. A
//! bare page leaves no trace that recovery could find, so it promises nothing: only a commit that names it does. For the
//! invariants this means:
//!
//! * **L1** is said of pages with headers. A bare page takes a sequence as well, so that time goes on, and does not carry it;
//!   after a cut sequences jump by as many as bare streams can have taken.
//! * **L2**, **L3** With bare streams, all streams with headers take from the front of the ready list and bare ones from the
//!   back. Each header says where the bare streams stood, and a stream keeps its block until it opens the next; so the newest
//!   header tells of every bare block that holds a page needed by a commit. Blocks between the ends that are known so may have
//!   been opened by a bare stream since. They hold nothing that is needed and do not count as erased.
//! * **L4** stands: all of them are called empty by the checkpoint that lists them.
//! * **L5** counts bare pages as any. A summary is not counted: it is needed for as long as its block holds live pages.
//! * **L6**, **L7** Commits go to streams with headers. The entry that remains for recovery may have been opened by a bare
//!   stream in between, if that only moved something: it is erased and takes the copy all the same.
//! * **L9** stands: of a block that was open, pages up to where the newest header says the stream stood are live at most.
//! * **L10** is what makes it safe to look for headers in a block that may be bare: bytes that state the address where they are
//!   about to be programmed are appended to another page.
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
mod bare;
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
mod pairs;
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
pub use gc::{Budget, Candidate, Examine, Examined, Growth, INSTALMENT_MAX};
pub use log::{Log, PageInfo};
pub use nandu_media::{Malformed, PageKind};
pub use options::LogOptions;
pub use pairs::Rescued;
pub use placement::Placement;
pub use stats::LogStats;
pub use verify::Violation;
