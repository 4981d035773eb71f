//! SPI NAND: a table of parts, and what goes over the wire to them.
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

pub mod command;
mod part;
mod parts;
mod status;
mod wire;

pub use part::{
    ContinuousRead, CopyRule, DieSelect, IdMethod, Identity, MarkPages, Part, PartError, PlaneSelect, PowerUp,
    SpareRange, Times,
};
pub use parts::PARTS;
pub use status::{EccOutcome, MoreStatus, StatusScheme};
pub use wire::{Address, Data, Lanes, Transaction, Wire};
