//! The new heart, on the way: the store on a log with one commit stream.
//!
//! What is here has the names, methods, arguments and errors of [`Store`](crate::Store) and [`Map`](crate::Map), and takes their place when it has all that they have.
//! Until then it stands beside them, behind the Cargo feature `next`. **Its bytes on flash are others**, and change without notice.
//!
//! ```
//! use nandu::{Edit, Options, next::Store};
//! use nandu_sim::{Chip, Sim};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let chip = Sim::new(Chip::W25N01GV);
//! let options = Options::default();
//! let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
//!
//! let mut store = Store::format(chip, options, &mut memory)?;
//! store.put(b"lamp/kitchen", b"on")?;
//! store.put(b"plan/kitchen", &[7; 100_000])?;
//! store.batch(&[Edit { key: b"lamp/cellar", value: Some(b"off") }, Edit { key: b"lamp/kitchen", value: None }])?;
//!
//! let chip = store.unmount()?;
//! let mut store = Store::open(chip, options, &mut memory)?;
//! assert_eq!(store.get(b"lamp/cellar")?, Some(&b"off"[..]));
//! assert_eq!(store.value_len(b"plan/kitchen")?, Some(100_000));
//! assert_eq!(store.record_count(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What differs
//!
//! * **Not built yet**: two bits a cell, which are refused with [`Error::Unsuitable`].
//!   [`Options::journal_pages`](crate::Options::journal_pages) means nothing here.
//! * **Changes that wait** ([`Durability::OnSync`](crate::Durability)): one that makes a leaf overflow makes all before it durable, and itself. A batch that does not fit
//!   a page or half of [`Options::pending_size`](crate::Options::pending_size) brings everything that waits to its leaves first. A large value of several
//!   pages is durable when its call returns, with all before it; one of one page waits, as any other change.
//! * **Large values** have pages of their own, which their record names, with up to 96 last bytes, so that a value as large as a page takes one; of very large ones it names some pages, and these the others. What was replaced or given up is free with the next commit, or, of
//!   more pages than die with one commit, when live pages are counted next. A value that a program writes may look like such a record, which takes intent: it gets a page of its own, and a batch refuses it
//!   with [`Error::ValueSize`].
//! * **Room for large values**: moving a page of one takes another program for the record that names it, or part of one where several are moved at once. Growth is refused where that would not end, which is at
//!   four fifths of the room or less. [`Store::value_size_max`] depends on the length of the key.
//! * **Cargo features**: `group` and `blobs` choose what is compiled, as of [`Store`](crate::Store).
//! * **Snapshots** are records of what stood at a key before the first change there, so that they take room for what was changed, and changes go on waiting for a sync. Growth is refused unless a page stays free for each leaf of which nothing is kept: so the leaves take less than half of the room when a snapshot is taken; pages of large values do not count. What a released one kept is removed with the calls that
//!   follow. A batch that replaces more large values than half a page names is refused with [`Error::BatchSize`] while a snapshot is to keep them. A [`Map`] has no snapshots, nor has a store with [`FixedCells`](crate::FixedCells): their keys have no room for the mark of a record of a snapshot. Keys that begin with FF 7F 48 D0 to DF
//!   are refused with [`Error::ReservedKey`].
//! * A batch is limited in its pages: [`Error::BatchSize`].
//! * [`Violation`] and [`LogStats`] are those of the new log and tree.

#[cfg(feature = "snapshots")]
mod at;
mod error;
#[path = "../map.rs"]
mod map;
mod options;
mod store;
mod verify;
mod writer;

#[cfg(feature = "snapshots")]
pub use at::{At, Snapshot};
pub use map::Map;
pub use nandu_newlog::LogStats;
pub use store::Store;
pub use verify::Violation;
pub use writer::Writer;

use crate::{Cursor, Error, Fixed, Options};

/// Whether large values are compiled. A store that has some is refused where they are not.
const BLOBS: bool = cfg!(feature = "blobs");
