//! SPI NAND: a table of parts, and a driver for them.
//!
//! **For** firmware on a board with an SPI NAND part, and tests of such firmware together with `nandu-spi-sim`.
//!
//! [`SpiNand`] is the driver, behind the contract [`Nand`](nandu_nand::Nand). [`HalWire`] is a wire of `embedded-hal`'s SPI device and
//! delay; the README goes from a part that is not yet soldered to the first record stored on it.
//!
//! [`Part`] is what is known of a part: how it is told apart, its shape, how the outcome of a read is decoded, which spare bytes are
//! protected, where bad marks stand, how it wakes up. [`PARTS`] has a row for each part known here, with its sources. [`Wire`] is what
//! moves the bytes: one [`Transaction`] at a time, as a plain SPI peripheral, a QSPI controller or a simulator does it.
//!
//! **The key decision** is that a part is data and not code: one driver serves every row, and a user can hand over a row of his own.
//! Most losses of data on raw NAND begin with a wrong fact in a driver, so each fact stands once, beside where it comes from, and where
//! sources disagree the row takes the reading that costs something over the one that loses something. The alternative, a module of code
//! for each maker, hides the facts among the code and was refused.
//!
//! ```
//! use nandu_spi::{PARTS, Part};
//!
//! let part = Part::identify(&[0xef, 0xaa, 0x21, 0, 0], PARTS).unwrap();
//! assert_eq!(part.name, "W25N01GV");
//! assert_eq!(part.geometry().capacity(), 128 << 20);
//! ```

#![no_std]

mod bus;
mod columns;
pub mod command;
mod device;
mod error;
mod hal;
mod nand;
mod part;
mod parts;
mod status;
mod wire;

pub use device::SpiNand;
pub use error::{Operation, SpiError};
pub use hal::HalWire;
pub use nandu_nand::CopyRule;
pub use part::{
    ContinuousRead, DieSelect, IdMethod, Identity, MarkPages, Part, PartError, PlaneSelect, PowerDown, PowerUp,
    SpareRange, Times,
};
pub use parts::{PARTS, SOURCES};
pub use status::{EccOutcome, MoreStatus, StatusScheme};
pub use wire::{Address, Data, Lanes, Transaction, Wire};

/// The page for newcomers, whose program runs as it stands there, on a simulated part.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
