//! The contract between storage code and a raw NAND flash chip.
//!
//! **For** whoever writes a driver for a chip, or code that stores something on one. Users of `nandu` find it as `nandu::nand`.
//!
//! A driver implements [`Nand`]; storage code takes any `N: Nand`. Between the two stand the geometry of the part as
//! run-time data ([`Geometry`]), addresses that cannot be mixed up ([`PageAddr`], [`BlockAddr`]), the pairing of pages
//! in multi-level chips ([`Pairing`]), what a read found out besides its bytes ([`ReadStatus`]) and errors that can be
//! told apart without knowing the driver ([`NandErrorKind`]).
//!
//! A driver for SPI NAND parts, with a table of them, is the crate `nandu-spi`; a chip in memory to test on is `nandu-sim`.
//! Who writes a driver finds a list of what has to be right in [`checklist`]. A range of a chip's blocks is a chip of its own
//! ([`Partition`]), and several may use one chip at once ([`Shared`]).
//!
//! **The key decision** is that this contract promises as little as real parts do. The spare area belongs to the
//! bad-block mark and to nobody else; a program takes the main area of one page; nothing is said to survive a power cut
//! but what was complete before it, and on a chip with paired pages not even that. The alternative, a contract with
//! protected spare bytes, atomic programs or reliable erases, would be pleasanter to write against and would hold on no
//! chip that is sold. It was refused.
//!
//! Everything here is blocking. An asynchronous twin can reuse every type of this crate: operations are single calls
//! with borrowed buffers, no method returns a guard or an iterator, and [`ErrorType`] stands apart from [`Nand`].
//!
//! ```
//! use nandu_nand::{CellMode, Nand, PageAddr};
//!
//! /// Erases a block and programs its first page.
//! fn first_page<N: Nand>(chip: &mut N, page: PageAddr, data: &[u8]) -> Result<(), N::Error> {
//!     let block = chip.geometry().block_of(page);
//!     chip.erase(block, CellMode::Slc)?;
//!     chip.program(page, 0, data)
//! }
//! ```

#![no_std]

mod address;
mod aligned;
mod cause;
pub mod checklist;
mod driver_error;
mod error;
mod geometry;
mod nand;
mod pairing;
mod partition;
mod shared;
mod status;

pub use address::{BlockAddr, PageAddr};
pub use aligned::{ALIGNMENT, Aligned};
pub use cause::Cause;
pub use driver_error::DriverError;
pub use error::{ErrorType, NandError, NandErrorKind};
pub use geometry::{CopyRule, Ecc, Geometry, GeometryError, ProgramOrder, TearScope};
pub use nand::Nand;
pub use pairing::{CellMode, PageGroup, Pairing, PairingError};
pub use partition::{Partition, PartitionError, RangeError};
pub use shared::Shared;
pub use status::ReadStatus;
