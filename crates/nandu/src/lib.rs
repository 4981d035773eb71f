//! Durable ordered records on raw NAND flash.
//!
//! **For** whoever keeps records or files on raw NAND flash, in firmware or on a host: this crate is the one to add to a project. Tests
//! take `nandu-sim` beside it.
//!
//! [`Store`] keeps keys and values that are byte strings, [`Map`] keeps integers by integers in a fraction of the room.
//! Both are one mu-Tree on one log: each change is durable when it returns and costs one page program and its share of collection, whatever the
//! power does it is wholly there or wholly not, and all memory is handed over when the store is opened. [`fs::Fs`] keeps files and
//! directories on the same tree.
//!
//! ```
//! use nandu::{Edit, Options, Store};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV);
//! let options = Options::default();
//! let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
//!
//! let mut store = Store::format(chip, options, &mut memory)?;
//! store.put(b"lamp/kitchen", b"on")?;
//! store.put(b"lamp/cellar", b"off")?;
//! assert_eq!(store.get(b"lamp/kitchen")?, Some(&b"on"[..]));
//!
//! // Both or neither, whenever the power goes.
//! store.batch(&[
//!     Edit { key: b"lamp/cellar", value: None },
//!     Edit { key: b"lamp/kitchen", value: Some(b"off") },
//! ])?;
//!
//! let chip = store.unmount()?;
//! let mut store = Store::open(chip, options, &mut memory)?;
//! assert_eq!(store.get(b"lamp/kitchen")?, Some(&b"off"[..]));
//! assert_eq!(store.record_count(), 1);
//!
//! // As it was, however it changes, until it is released.
//! let before = store.snapshot()?;
//! store.delete(b"lamp/kitchen")?;
//! assert_eq!(store.at(&before).get(b"lamp/kitchen")?, Some(&b"off"[..]));
//! store.release(before)?;
//! # Ok(())
//! # }
//! ```
//!
//! **The key decision** is that a store is its tree: there is no translation layer below it and no log of changes beside it, so
//! that nothing is written twice. Values live in the leaves as long as a key and its value fit a fifth of a page or so together
//! ([`Store::entry_size_max`]); larger ones, to 16 MiB, have pages of their own and are copied out with [`Store::read`]
//! instead of being lent. The price is that moving such a page to free a block rewrites a leaf as well.
//!
//! With [`Durability::OnSync`] changes wait in memory, become durable together at [`Store::sync`], and go to their leaves later,
//! many with one program. This is the one exception from writing nothing twice: a sync programs a page that holds them until then.
//!
//! ```
//! use nandu::{Durability, Options, Store};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options { durability: Durability::OnSync, pending_size: 16_384, ..Options::default() };
//! let chip = Sim::new(Chip::W25N01GV);
//! let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
//! let mut store = Store::format(chip, options, &mut memory)?;
//! let programs = store.stats().programs_total();
//! for sensor in 0..100_u32 {
//!     store.put(&sensor.to_be_bytes(), b"21.5 C")?;
//! }
//! store.sync()?;
//! assert!(store.stats().programs_total() - programs <= 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! They choose what is compiled and never what is on flash: a volume that uses a part which is left out is refused with an error that
//! names it.
//!
//! * On by default: `group` (changes that wait for a sync), `snapshots`, `blobs` (values that do not fit a leaf), `files`, `mlc` (files on
//!   blocks with two bits a cell), `tags` (files on parts with protected spare bytes).
//! * Off: `embedded-io` (the traits of that crate for open files), `defmt` (`defmt::Format` for errors), `fast-crc` (larger tables for checksums), `std` (checksums by the
//!   machine's own instructions, for hosts).

#![no_std]
/// The examples of the front pages, run as they stand there.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(feature = "snapshots")]
mod at;
mod delete_range;
mod digest;
mod error;
mod fixed;
mod map;
mod options;
mod store;
mod verify;
mod writer;

#[cfg(feature = "snapshots")]
pub use at::{At, Snapshot};
pub use delete_range::RangeDeleted;
pub use error::Error;
pub use fixed::Fixed;
pub use map::Map;
/// Files and directories, see [`fs::Fs`].
#[cfg(feature = "files")]
pub use nandu_fs as fs;
pub use nandu_index::{Direction, Edit, Entry};
pub use nandu_log::LogStats;
pub use nandu_nand as nand;
/// A position of [`Store::next`] and [`Store::previous`], and of the same calls of snapshots; it serves any store.
///
/// ```
/// use nandu::{Cursor, Options, Store};
/// # use nandu_sim::{Chip, Sim};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let options = Options::default();
/// # let chip = Sim::new(Chip::W25N01GV);
/// # let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
/// # let mut store = Store::format(chip, options, &mut memory)?;
/// for second in [10_u32, 20, 30, 40] {
///     store.put(&second.to_be_bytes(), b"21.5 C")?;
/// }
/// // Deletes all up to second 25.
/// let mut cursor = Cursor::below(&25_u32.to_be_bytes());
/// while let Some(entry) = store.previous(&mut cursor)? {
///     let key: [u8; 4] = entry.key.try_into()?;
///     store.delete(&key)?;
/// }
/// assert_eq!(store.next(&mut cursor)?.map(|entry| entry.key), Some(&30_u32.to_be_bytes()[..]));
/// # Ok(())
/// # }
/// ```
pub use nandu_tree::Cursor;
#[cfg(feature = "snapshots")]
pub use nandu_tree::SNAPSHOT_COUNT_MAX;
pub use nandu_tree::{ByteCells, Cells, Durability, FixedCells, PageDamage};
pub use options::Options;
pub use store::Store;
pub use verify::Violation;
pub use writer::Writer;
