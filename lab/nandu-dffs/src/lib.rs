//! DFFS: a file system on raw NAND flash as its paper has it, with hybrid indexing and embedded inodes.
//!
//! **For** whoever compares a file system with DFFS, or studies it. For use take `nandu-fs`.
//!
//! (Kim and others, "An Efficient Metadata Index Structure for Flash File Systems".) An inode is a page. A directory's inode and the hash table
//! of its entries are one page, so that a lookup reads one page for each directory of a path, and adding or removing a name programs one.
//! Entries are pointers without names: a name stands in the inode that has it. An entry for a directory is a logical number, which a small
//! map in memory translates, so that a directory's page moves without its parent; an entry for a file is the address of its inode's page.
//!
//! **The key decision** is to follow the paper, and to add only what it leaves open: what is durable when, recovery after a power cut, overwriting,
//! truncating, renaming, bad blocks. The alternative is `nandu-fs`, which gives up direct pointers for lasting inode numbers, links and attributes.
//!
//! ```
//! use nandu_dffs::{Dffs, Options, Permissions};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV.with_blocks(64));
//! let options = Options::DEFAULT;
//! let mut memory = vec![0; Dffs::<Sim>::memory_required(&chip.chip().geometry, &options)];
//! let mut fs = Dffs::format(chip, options, &mut memory)?;
//! let directory = fs.mkdir(fs.root(), b"letters", Permissions { mode: 0o755, uid: 0, gid: 0 })?;
//! let file = fs.create(directory, b"first", Permissions { mode: 0o644, uid: 0, gid: 0 })?;
//! fs.write(file, 0, b"Dear reader")?;
//! fs.fsync(file)?;
//!
//! // The power goes: what was synced stays.
//! let chip = fs.abandon();
//! let mut fs = Dffs::mount(chip, options, &mut memory)?;
//! let mut bytes = [0; 4];
//! fs.read(file, 0, &mut bytes)?;
//! assert_eq!(&bytes, b"Dear");
//! # Ok(())
//! # }
//! ```
//!
//! # Areas
//!
//! The chip has six areas ([`Area`]), each a list of blocks that are taken when needed and filled page by page: checkpoints, the map, inodes of
//! directories, further pages of their tables (virtual directories), inodes of files, and data. The first six blocks are for checkpoints; any other
//! goes to whichever area needs one, the least worn first, and is erased right before its first program.
//!
//! Every page but those of data says what it is, whose it is, and its place in the order of all programs (`nandu_media::dffs`). A block of data has
//! its owners in its last page. Where a bucket is taken in every page of a chain, a virtual directory is added at its end. A bucket is in use in a
//! prefix of the chain, so that the first page in which it is empty ends a search: the last entry of a bucket fills the hole of one that goes.
//!
//! # What is promised
//!
//! Changes of names are durable when the call returns: [`Dffs::create`], [`Dffs::mkdir`], [`Dffs::unlink`], [`Dffs::rmdir`] and [`Dffs::rename`]
//! happen wholly or not at all, whatever a power cut hits. What was written is durable when [`Dffs::fsync`], [`Dffs::close`] or [`Dffs::sync`] of it
//! returned; of what was not, each file is found as some of the writes up to the cut made it, no earlier than its last sync. A rename makes what was
//! written to the file durable.
//!
//! # How it is kept
//!
//! Only one operation is under way, and its programs follow each other, so a cut leaves one incomplete, and its programs are the newest.
//!
//! * O1 A new inode is programmed before the bucket that leads to it.
//! * O2 A new virtual directory is programmed before the page of the chain that leads to it.
//! * O3 An entry that fills a hole is programmed there before it is taken out of its old place.
//! * O4 Data is programmed before the inode that leads to it. The inode names the page to which the bucket leads, so that recovery finds it although
//!   the bucket is behind ([`ParentUpdate::Close`]).
//! * O5 A rename programs the inode, then the new name, then takes the old one away. Before the second it has not happened; after it, recovery
//!   takes the old name away.
//! * O6 A collected block is used again only after a checkpoint that says so. So what is newer than a checkpoint stands in blocks that were free at
//!   the checkpoint or were being filled, and what that leads to is still there.
//! * O7 A checkpoint is programmed after whatever it leads to.
//! * O8 Recovery repeats the checkpoint that it starts from before it does anything else, and
//! * O9 programs the newest inode again before the checkpoint that ends it, and erases no block with an inode newer than the checkpoint that it
//!   starts from, or with data of one: a page that was being programmed at a cut may read well and be lost later, and then what it replaced is the
//!   newest.
//! * O10 Recovery takes out an entry that O3 left in two pages.
//! * O11 Recovery takes away an old name that O5 left.
//! * O12 No block is filled on after a cut.
//! * O13 Data of files that live, newer than the checkpoint, keeps its blocks from being used.
//! * O14 What a recovery programs counts only with the checkpoint that ends it. So one that is cut leaves nothing, and the next has as much room.
//!
//! A mount reads the newest checkpoint, its superblock, the map and the root. After a cut it also reads the first page of every block that was free,
//! each page of an inode programmed since the checkpoint and what that replaced. Memory is what [`Dffs::memory_required`] says, by the chip and
//! the options alone.
//!
//! # Garbage collection
//!
//! While few blocks are free, the block with the fewest live pages is collected. A page lives if what it names as parent, predecessor or owner
//! leads back to it ([`Dffs::verify`] checks the same). What lives goes to the end of its area. An inode that moved leaves its bucket behind, and all
//! that are behind in a page of a directory are brought up to date by one program. A block of data whose summary is missing, or from which a file
//! was renamed, is collected by asking the inodes of all files. After a cut, live pages are counted once before the first block is collected.
//!
//! # Limits
//!
//! A file has as many pages as its inode has pointers: 434 on pages of 2 KiB, 868 KiB. There are no hard links, symbolic links, special files or
//! extended attributes, and two names cannot change places; each is refused with [`Error::Unsupported`]. Sizes are 32-bit, times whole seconds from
//! 1970 to 2106, owners 16-bit. A directory has one link, and its times are those of the first page of its chain. Listing a directory reads the
//! inode of every entry. A file is found by the bucket of its name, so renaming one that is not open changes the number it is known by.
//!
//! On chips with paired pages only LSB pages are used. Wear is evened only by taking the least worn free block: data that never changes keeps its
//! blocks. Data has no checksum of its own: what the chip's error correction passes is believed. File content that imitates an inode of this volume at
//! its own address, in the first page of a block, could mislead a recovery. A sixteenth of the room is kept dead, so that collecting gains something.
//! A recovery takes a few blocks from those that are free. Where it finds too few, as on a chip whose blocks fail, or where no checkpoint can be
//! programmed any more, the volume is [read-only](Dffs::is_read_only): everything acknowledged can be read. After a change that failed half way
//! nothing is programmed until the next mount, which puts it right; everything can be read, and is found as it was or as it was to be.
//! A page of an inode that can no longer be read is reported by whoever needs it, and its block is left alone.

#![no_std]

mod areas;
mod blocks;
mod chain;
mod checkpoint;
mod chip;
mod collect;
mod dffs;
mod directory;
mod error;
mod file_system;
mod files;
mod hash;
mod lag;
mod listing;
mod map;
mod memory;
mod mount;
mod node;
mod options;
mod pages;
mod recover;
mod rename;
mod replay;
mod room;
mod slots;
mod stats;
mod verify;

pub use blocks::Area;
pub use dffs::{Dffs, Result};
pub use error::Error;
pub use listing::Entry;
pub use nandu_media::Malformed;
pub use node::{Changes, Directory, File, Node, Permissions, Stat};
#[cfg(feature = "_broken")]
pub use options::Broken;
pub use options::{Options, ParentUpdate};
pub use stats::{BlockUse, Space, Stats};
pub use verify::Violation;
