//! An append-only log over the blocks of a raw NAND chip.
//!
//! **For** whoever builds an engine of their own over raw NAND and wants wear, bad blocks, garbage collection and recovery done. Users of
//! `nandu` do not need it.
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
//! * **L8** An anchor block is erased only if it holds neither the newest checkpoint nor the newest stable one. Where anchor blocks
//!   were lost, the first checkpoint of a block counts once a second one was begun behind it.
//! * **L9** A block that was open at a cut is not programmed before it is erased.
//! * **L10** What reads as a page of the log at its own address in a bare block is a summary.
//! * **L11** No page that a commit names is an LSB page whose partner will be programmed before the next erase, where a cut in
//!   that could destroy it.
//! * **L12** A block is used in the mode of the stream that opened it, from one erase to the next: with one bit a cell, no MSB page
//!   is programmed.
//!
//! # Bare streams
//!
//! The last [`LogOptions::bare_streams`] of the streams hold pages that are all the owner's bytes ([`Log::append_bare`]): file
//! data has to fit a page. They are named by pages with headers, and by summaries, pages with a header in the same block. A
//! bare page without a tag leaves no trace that recovery could find, so it promises nothing: only a commit that names it does. For the
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
//! # Tails
//!
//! Where the chip has protected spare bytes, a bare page may have a *tag* in which its owner says what a commit would say of it
//! ([`Log::append_tagged`]), and promises something by that. The tagged pages behind a commit are its tail, which the owner takes over after a cut
//! ([`Log::due_page`]). The module `tags` says how they are found and what makes them safe (L13 to L17).
//!
//! # Streams with two bits a cell
//!
//! The last [`LogOptions::mlc_streams`] of the bare streams use both bits of each cell: their blocks hold twice as many pages and
//! are slower to program. Everything else, all pages with headers among it, stays with one bit a cell, which nothing can damage
//! later. A free block has no mode; it gets one when it is erased, shortly before a stream opens it. For the invariants this means:
//!
//! * **L1**, **L5** count a block's pages by its mode. The newest checkpoint has the mode of blocks that hold data.
//! * **L2** A block that was erased ahead for another mode is erased again.
//! * **L3** Streams with two bits a cell alone take the last entries of the ready list, a third of all as long as three are left.
//!   So after a cut the place of a block in the list tells its mode, and with it how many pages it has, without a read.
//! * **L6** counts the other entries only.
//! * **L9** stands: a block that was open at a cut is closed, so of what was left out for L11 only the end has to be known.
//! * **L10** stands. A summary may stand before the last page of its block.
//! * **L11** A commit may name any page appended before it, but for copies ([`Placement::Survivor`]). Those exposed at that moment
//!   are protected: their partners are left out until the next erase. A copy is named only when [`Log::is_settled`] says that its
//!   partner was programmed, or never will be; before that its source is what counts.
//!
//! The owner's part, beside that of any owner with bare streams:
//!
//! ```text
//! log.append_bare(bytes, Placement::Survivor { from }, ..)?;   // to move a page: then Examined::Copied, and later, all at once,
//! if log.is_settled(copy) { /* a commit that names it; then supersede(from) */ }
//! while let Some(moved) = log.rescue()? { /* the page is elsewhere now */ }        // after each append_bare and append_summary
//! while let Some(stream) = log.summary_due() { log.append_summary(.., stream, ..)?; }   // before each commit, then rescue again
//! ```
//!
//! # An owner's operation
//!
//! ```text
//! let mut budget = log.instalment(pages);
//! while let Some(examine) = log.next_work(&mut budget)? { /* move the page if it lives */ log.examined(examine, ..)?; }
//! while !log.reserve(pages, Growth::Grows)? { /* the same with Budget::room(16) */ }
//! let page = log.append(bytes, ..)?;       // the last one with is_commit
//! log.supersede(old_page);                 // only now
//! ```
//!
//! # Features
//!
//! `group`, `snapshots`, `blobs`, `files`, `mlc`, `tags`, `fast-crc` and `std` are those of the crate `nandu`. `_broken` is private: it switches
//! invariants off, for the tests of this repository.

#![no_std]

mod access;
mod anchors;
mod bare;
mod block_table;
mod checkpoint;
mod choice;
mod collector;
mod compiled;
mod disturb;
mod error;
mod format;
mod found;
mod frontier;
mod gc;
mod heads;
mod idle;
mod liveness;
mod log;
mod losses;
mod memory;
mod mount;
mod options;
mod pairs;
mod placement;
mod read;
mod ready;
mod recovery;
mod report;
mod retire;
mod roll_forward;
mod room;
mod runs;
mod sampler;
mod search;
mod shape;
mod slots;
mod stats;
mod streams;
mod tags;
mod tail;
mod verify;
mod victims;
mod wear;

pub use choice::{BlockUse, Candidate, OpenBlock};
pub use collector::INSTALMENT_MAX;
pub use error::LogError;
pub use frontier::Append;
pub use gc::{Budget, Examine, Examined, Growth};
pub use log::{Log, PageInfo};
pub use mount::Place;
pub use nandu_media::tag::TAG_OWNER_SIZE;
pub use nandu_media::{Malformed, PageKind};
pub use options::LogOptions;
pub use placement::Placement;
pub use slots::Rescued;
pub use stats::LogStats;
pub use tags::{Due, TAIL_MAX};
pub use verify::Violation;
