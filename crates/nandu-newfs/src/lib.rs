//! The file system of `nandu-fs` on the new heart.
//!
//! **The key decision** is that inodes, names, attributes and pages of files are records of one tree, and that all of them wait in memory as changes for the next sync. A page of a file is a raw
//! page, its bytes and nothing else, and its record has its number and checksum. Only records say what lives: what stands beside raw pages of whose they are is a hint, and where a cut lost it the leaves are
//! read when that block is emptied (docs/notes, "Files on the new heart").
//!
//! **What is shared.** The files of `nandu-fs` that ask the tree for no more than `Records` has are compiled here a second time, from where they are. What differs is here: `below.rs`
//! (`Records`, the calls of the tree), `heart.rs`, `mount.rs`, `options.rs`, `put_page.rs`. When the old heart goes, they move here.
//!
//! **What is more**: snapshots ([`Fs::snapshot`]). What is durable when is as of `nandu-fs`.
//! Where the documentation of a shared call speaks of these, of invariants of `nandu-log` and `nandu-tree`, or of an eighth that is kept, it is that of `nandu-fs`: here a thirty-second is kept, or 32 pages.

#![no_std]

#[path = "../../nandu-fs/src/attributes.rs"]
mod attributes;
#[cfg(feature = "mlc")]
mod background;
#[path = "../../nandu-fs/src/batch.rs"]
mod batch;
mod below;
#[path = "../../nandu-fs/src/check/mod.rs"]
mod check;
#[path = "../../nandu-fs/src/commit.rs"]
mod commit;
#[path = "../../nandu-fs/src/create.rs"]
mod create;
#[path = "../../nandu-fs/src/error.rs"]
mod error;
#[path = "../../nandu-fs/src/file.rs"]
mod file;
#[cfg(feature = "embedded-io")]
#[path = "../../nandu-fs/src/file_on.rs"]
mod file_on;
#[path = "../../nandu-fs/src/file_system.rs"]
mod file_system;
#[path = "../../nandu-fs/src/files.rs"]
mod files;
#[path = "../../nandu-fs/src/flush.rs"]
mod flush;
#[path = "../../nandu-fs/src/fragments.rs"]
mod fragments;
#[path = "../../nandu-fs/src/fs.rs"]
mod fs;
mod heart;
#[path = "../../nandu-fs/src/holes.rs"]
mod holes;
#[path = "../../nandu-fs/src/inode.rs"]
mod inode;
#[path = "../../nandu-fs/src/keys.rs"]
mod keys;
#[path = "../../nandu-fs/src/links.rs"]
mod links;
mod mount;
#[path = "../../nandu-fs/src/names.rs"]
mod names;
#[path = "../../nandu-fs/src/open_files.rs"]
mod open_files;
mod options;
#[path = "../../nandu-fs/src/orphans.rs"]
mod orphans;
#[path = "../../nandu-fs/src/page_records.rs"]
mod page_records;
#[path = "../../nandu-fs/src/pages.rs"]
mod pages;
#[path = "../../nandu-fs/src/paths.rs"]
mod paths;
#[cfg_attr(not(feature = "mlc"), path = "without/place.rs")]
mod place;
#[cfg_attr(feature = "mlc", path = "../../nandu-fs/src/placing.rs")]
#[cfg_attr(not(feature = "mlc"), path = "../../nandu-fs/src/without/placing.rs")]
mod placing;
mod put_page;
mod regions;
#[path = "../../nandu-fs/src/rename.rs"]
mod rename;
#[cfg(feature = "snapshots")]
mod snapshots;
#[path = "../../nandu-fs/src/space.rs"]
mod space;
#[path = "../../nandu-fs/src/super_block.rs"]
mod super_block;
#[path = "../../nandu-fs/src/sync.rs"]
mod sync;
#[cfg(feature = "tags")]
#[path = "../../nandu-fs/src/tag.rs"]
mod tag;
#[cfg_attr(not(feature = "tags"), path = "../../nandu-fs/src/without/tagging.rs")]
mod tagging;
#[cfg(feature = "tags")]
mod tags;
#[path = "../../nandu-fs/src/truncation.rs"]
mod truncation;
#[path = "../../nandu-fs/src/walk.rs"]
mod walk;
#[path = "../../nandu-fs/src/write_buffer.rs"]
mod write_buffer;
#[path = "../../nandu-fs/src/xattr_records.rs"]
mod xattr_records;
#[path = "../../nandu-fs/src/xattrs.rs"]
mod xattrs;

pub use below::{LogStats, LogViolation, PageDamage, TreeViolation};
pub use check::{Mended, Repair, Violation};
pub use error::{Damage, FsError};
pub use file::{File, OpenOptions};
#[cfg(feature = "embedded-io")]
pub use file_on::FileOn;
pub use fs::Fs;
pub use nandu_files::{
    Allocation, Attributes, Capabilities, Cuts, DirEntry, Feature, FileError, FileKind, FileSystem, FsStat, Ino, Order,
    RenameMode, SetAttributes, Stat, Time, XattrMode,
};
pub use nandu_newlog::{BlockUse, LogOptions};
/// Where pages of files go on chips with one and two bits a cell.
#[cfg(feature = "mlc")]
pub use nandu_placement as placement;
#[cfg(feature = "_broken")]
pub use options::Broken;
pub use options::Options;
pub use regions::Regions;
pub use super_block::Format;
