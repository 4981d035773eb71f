//! A file system on raw NAND flash.
//!
//! **For** whoever needs files. From the crate `nandu` it is `nandu::fs`; take it alone where there are no stores beside the files.
//!
//! **The key decision** is that a file system is one mu-Tree on one log: inodes, names, pages of files, attributes and links are its
//! records. A change of many records is one commit, which is one page program and its share of collection, and the states that a power cut can leave are those
//! after each commit, in order. The alternative, an inode page for each file that is its own commit record, with directories and a
//! map written at checkpoints, was refused: it takes a roll-forward with eight rules to find out after a cut what the pages meant
//! together, and as many programs.
//!
//! What that design teaches is kept: the inodes of what is in a directory stand near the directory, since their numbers are taken
//! from it; names lead to numbers that never change, so nothing has to be rewritten when something moves; names are found by hash.
//!
//! ```
//! use nandu_fs::{Attributes, Format, Fs, Ino, Options, RenameMode, Time};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV);
//! let options = Options::default();
//! let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options)];
//! let mut fs = Fs::format(chip, options, Format { hash_key: [7; 16], ..Format::default() }, &mut memory)?;
//!
//! fs.set_now(Time::from_seconds(1_700_000_000));
//! let log = fs.mkdir(Ino::ROOT, b"log", Attributes::DIRECTORY)?;
//! let file = fs.create(log, b"today.new", Attributes::FILE)?;
//! fs.write_at(file, 0, b"21.5 C\n")?;
//! // Atomic, durable when it returns, and so is what was written before.
//! fs.rename(log, b"today.new", log, b"today", RenameMode::Replace)?;
//!
//! let chip = fs.unmount()?;
//! let mut fs = Fs::mount(chip, options, &mut memory)?;
//! let file = fs.lookup(log, b"today")?;
//! let mut line = [0; 16];
//! assert_eq!(fs.read_at(file, 0, &mut line)?, 7);
//! assert_eq!(&line[..7], b"21.5 C\n");
//! # Ok(())
//! # }
//! ```
//!
//! # What is durable when
//!
//! * [`Fs::sync`] and [`Fs::fsync`] make everything durable that was changed before, of whatever file.
//! * [`Fs::rename`], [`Fs::link`], [`Fs::mkdir`] and [`Fs::symlink`] are durable when they return, and all before them.
//! * What else was changed may become durable earlier, always in the order in which it was changed. So after a power cut the file system
//!   is what some first part of the operations made of it, all those included that were acknowledged as durable. Of a
//!   write some bytes may be there and others not, and a file is never longer than the bytes that are; every other operation is there wholly
//!   or not at all. What was refused for want of room is not there.
//!
//! # Snapshots
//!
//! [`Fs::snapshot`] keeps all that there is, to be mounted and read with [`Options::snapshot`]. What changes replace afterwards takes room until the snapshot is released.
//!
//! # Features
//!
//! `mlc` compiles blocks with two bits a cell and the policies of [`placement`], `tags` pages of files that are durable with their own program, `snapshots` snapshots of the whole file system;
//! they are there unless they are left out. What is on flash does not depend on them: a volume with one is refused where it is left out.
//! `embedded-io` gives an open [`File`] the traits of that crate; `fast-crc` and `std` are those of the crate `nandu`. `_broken` is private: it switches rules
//! off, for the tests of this repository.
//!
//! # Invariants
//!
//! [`Fs::verify`] checks each and names it by its number; [`Fs::repair`] makes them hold again.
//!
//! * S1  There is a superblock, and a root that is a directory.
//! * S2  Every record has a key and a value that can be understood, and belongs to an inode.
//! * S3  Every name leads to an inode, of the type that the name says, and stands once and where its hash says.
//! * S4  An inode has as many names as it says: a directory one, none if an orphan's record names it.
//! * S5  A directory says which directory has its name, has as many names as its size says, and 2 links and one for each
//!   directory in it. From every directory the root is reached. One without a name is empty.
//! * S6  A file has as many records of pages as it says. Behind its end there is nothing but what was allocated there, and zeros.
//! * S7  Fragments lie over a page that stands on flash, within it, and do not overlap; but those of an orphan, and those behind the end
//!   of a file that is being cut, which go in steps.
//! * S8  Attributes are whole and stand where their hashes say, and their size is what the inode says; but those of an orphan, which go
//!   in steps. A long value that no attribute names belongs to an inode that an orphan's record names.
//! * S9  A number that no inode has got yet is in no record: below the superblock's next chunk, outside of what is left of chunks. No two
//!   directories have the same chunk.
//! * S10 Every page of a file can be read, and is what was written.

#![no_std]

mod attributes;
#[cfg(feature = "mlc")]
mod background;
mod batch;
mod below;
mod check;
mod commit;
mod create;
mod digest;
mod error;
mod file;
#[cfg(feature = "embedded-io")]
mod file_on;
mod file_system;
mod files;
mod flush;
mod fragments;
mod fs;
mod holes;
mod inode;
mod keys;
mod links;
mod mount;
mod names;
mod open_files;
mod options;
mod orphans;
mod page_records;
mod pages;
mod paths;
#[cfg_attr(not(feature = "mlc"), path = "without/place.rs")]
mod place;
#[cfg_attr(feature = "mlc", path = "placing.rs")]
#[cfg_attr(not(feature = "mlc"), path = "without/placing.rs")]
mod placing;
mod put_page;
mod regions;
mod rename;
mod room;
#[cfg(feature = "snapshots")]
mod snapshots;
mod space;
mod super_block;
mod sync;
#[cfg(feature = "tags")]
mod tag;
#[cfg_attr(not(feature = "tags"), path = "without/tagging.rs")]
mod tagging;
#[cfg(feature = "tags")]
mod tags;
mod truncation;
mod walk;
mod write_buffer;
mod xattr_records;
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
pub use nandu_log::{BlockUse, LogOptions};
/// Where pages of files go on chips with one and two bits a cell.
#[cfg(feature = "mlc")]
pub use nandu_placement as placement;
#[cfg(feature = "_broken")]
pub use options::Broken;
pub use options::Options;
pub use regions::Regions;
pub use super_block::Format;
