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
//! * **Not built yet**: snapshots; two bits a cell, which are refused with [`Error::Unsuitable`].
//!   [`Options::journal_pages`](crate::Options::journal_pages) means nothing here.
//! * **Changes that wait** ([`Durability::OnSync`](crate::Durability)): one that makes a leaf overflow makes all before it durable, and itself. A batch, or a piece of a large value, that does not fit
//!   a page or half of [`Options::pending_size`](crate::Options::pending_size) brings everything that waits to its leaves first. A large value is durable when its call
//!   returns, with all before it.
//! * **Keys of 16 and more bytes that all begin with 255** are the store's own, where values may be large: [`Store::put`] and others refuse them with
//!   [`Error::Unsuitable`]. On smaller pages than 1 KiB fewer such bytes are enough: 10 on 512 bytes.
//! * **Large values are cut up** into records, of which a leaf holds three or four, and are removed in steps: each change, and idle time, removes up to eight pieces of what was
//!   replaced, deleted or given up. Until then these take room; a change that finds none removes as many as it needs.
//! * **Cargo features**: `group` and `blobs` choose what is compiled, as of [`Store`](crate::Store).
//! * A batch is limited in its pages: [`Error::BatchSize`].
//! * [`Violation`] and [`LogStats`] are those of the new log and tree.

mod error;
#[path = "../map.rs"]
mod map;
mod options;
mod store;
mod verify;
mod writer;

pub use map::Map;
pub use nandu_newlog::LogStats;
pub use store::Store;
pub use verify::Violation;
pub use writer::Writer;

use crate::{Cursor, Error, Fixed, Options};

/// Whether large values are compiled. A store that has some is refused where they are not.
const BLOBS: bool = cfg!(feature = "blobs");
