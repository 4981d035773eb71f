//! A simulator of SPI NAND parts on the wire, to test drivers with.
//!
//! **For** whoever writes or tests a driver for SPI NAND parts, this repository's or another.
//!
//! [`SpiSim`] takes the transactions that a part takes, byte by byte, over a chip of [`nandu_sim`]. It keeps registers, page cache, busy
//! times, planes and dies, protection and the modes of power-up, and answers as the part of a row of [`nandu_spi`] would: its identity, its
//! registers, its way to say what error correction found. It implements [`embedded_hal::spi::SpiDevice`] and
//! [`embedded_hal::delay::DelayNs`], so any driver over embedded-hal runs on it, and [`nandu_spi::Wire`].
//!
//! ```
//! use embedded_hal::spi::{Operation, SpiDevice};
//! use nandu_spi::{PARTS, Part};
//! use nandu_spi_sim::SpiSim;
//!
//! # fn main() -> Result<(), nandu_spi_sim::WireError> {
//! let mut spi = SpiSim::blank(Part::by_name("W25N01GV", PARTS).unwrap());
//!
//! // Read identity: one dummy byte, then three bytes from the part.
//! let mut identity = [0; 3];
//! spi.transaction(&mut [Operation::Write(&[0x9F, 0]), Operation::Read(&mut identity)])?;
//! assert_eq!(identity, [0xEF, 0xAA, 0x21]);
//!
//! // Page read to cache of page 5, then wait until the part is no longer busy.
//! spi.write(&[0x13, 0, 0, 5])?;
//! let mut status = [1];
//! while status[0] & 1 != 0 {
//!     spi.transaction(&mut [Operation::Write(&[0x0F, 0xC0]), Operation::Read(&mut status)])?;
//! }
//! assert!(spi.now_ns() > 10_000);
//! # Ok(())
//! # }
//! ```
//!
//! **The key decision** is that the simulator judges a driver by what a data sheet forbids and not by what one part happens to forgive. A
//! part that is told something while it is busy drops it; a driver that does so works on the desk and loses data in the field. So the
//! simulator panics, with the last transactions and the history of the block. The alternative, to do what the part would do and leave the
//! verdict to the test, was refused: a test that looks at data finds such a fault only where it happens to read again.
//!
//! # A driver under power cuts
//!
//! The power-cut driver of [`nandu_sim::power_cut`] lends a chip to each run; a part over it wakes up as after power-up:
//!
//! ```
//! use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
//! use nandu_sim::{Sim, power_cut};
//! use nandu_spi::{PARTS, Part, SpiNand};
//! use nandu_spi_sim::{SpiSim, chip};
//!
//! // Any driver: this one is nandu's, and its part has fewer blocks than the one of the table, which is faster.
//! static PART: Part = Part { blocks_per_die: 16, bad_block_max: 1, ..PARTS[1] };
//!
//! fn open(sim: &mut Sim) -> Result<SpiNand<SpiSim<&mut Sim>>, nandu_spi::SpiError<nandu_spi_sim::WireError>> {
//!     SpiNand::open_as(SpiSim::new(&PART, sim), &PART)
//! }
//!
//! let summary = power_cut::every(
//!     chip(&PART),
//!     |sim: &mut Sim, is_done: &mut bool| {
//!         let mut nand = open(sim)?;
//!         nand.erase(BlockAddr(2), CellMode::Slc)?;
//!         nand.program(PageAddr(128), 0, &[0x5A; 2048])?;
//!         *is_done = true;
//!         Ok(())
//!     },
//!     |sim, is_done| {
//!         let mut page = [0; 2048];
//!         let read = open(sim).unwrap().read(PageAddr(128), 0, &mut page);
//!         assert!(!is_done || read.is_ok() && page == [0x5A; 2048]);
//!     },
//! );
//! assert_eq!(summary.operations, 2);
//! ```
//!
//! # What it panics on
//!
//! * Any command but a look at the status and a reset while the part is busy (and the choice of another die).
//! * A program or an erase without write enable, of a protected block, or of the one-time pages; a load without write enable on
//!   Winbond's parts, which ignore it.
//! * A row outside the part, a column outside the page, a plane bit that is not that of the row.
//! * A read of a cache, or a program of one, that holds nothing since power-up or reset.
//! * What [`nandu_sim`] calls illegal: a program out of order, a second one of the same bytes, a program or an erase of a bad block.
//! * A copy (page read, then program execute without a load) between blocks where [`Geometry::may_copy`](nandu_nand::Geometry::may_copy)
//!   says no.
//! * A command or register that the part does not have, one that ends in the middle, data on the wrong number of lanes, four lanes
//!   without the bit that allows them.
//!
//! Rules are judged by what a driver can know: after [`WireFault::PowerLost`] or while the bus is dead, and until the next reset, the part
//! ignores what it does not take, or reports a failure.
//!
//! Program load (02h) sets the cache to ones only on parts that take several programs of a page; on others the rest of the cache stays as it
//! was and is programmed too, since not every maker's does and no table says whose.
//!
//! What it cannot know to be wrong, it answers as the part does: whoever decodes the status wrongly, takes columns for rows or reads in
//! continuous read gets the bytes that a part would give.
//!
//! # How the wire shows what the chip does
//!
//! | of the chip | on the wire |
//! |---|---|
//! | corrected bits, uncorrectable pages | the part's codes in C0h, 30h, F0h, 7Ch; a corrected read flips a bit of each spare byte that the part does not protect |
//! | failed programs and erases | the bits for them in C0h |
//! | a bad-block mark | 00h in the first spare byte, on parts with marks in two pages in the first, the second or both; programmed there, it marks the block |
//! | a lost or misdirected program, a stale read | as they are: nothing tells |
//! | [`Fault::Bus`](nandu_sim::Fault::Bus) | the transaction in which it ends, or the next, fails with [`WireError::Bus`] |
//! | a power cut | the operation is torn, and all transactions fail with [`WireError::Gone`] until there is power |
//! | a reset while it is busy | a program or an erase is torn |
//!
//! Programs and erases happen when their busy time ends. [`WireFault`] has what goes wrong on the way there: transactions that get lost,
//! operations that never end, power that is gone for a moment; [`SpiSim::set_dead`] cuts the bus. [`Fault::MarkInverted`](nandu_sim::Fault::MarkInverted) falls on checks for a mark, which a part does not know;
//! [`Sim::invert_mark`](nandu_sim::Sim::invert_mark) does the same.
//!
//! # What is simplified
//!
//! Commands whose address goes on several lanes (BBh, EBh), cache reads in the background (31h, 3Fh) and the second opcodes of random load
//! (C4h, 72h) are not known. Protection is all or nothing. A reset brings back the registers of power-up, as on some parts: a driver has to set them again. Busy
//! times are those of the chip, and every seventh is three times as long ([`SpiSim::set_slow_every`]). One-time pages cannot be programmed. The parameter page stands in the row of the
//! pages behind [`CONFIG_OTP`](nandu_spi::command::CONFIG_OTP) that the table names, 1 or 4, and the unique identity in row 0 or 6; on parts without one both are missing.

mod command;
mod encode;
mod execute;
mod frame;
mod history;
mod info;
mod sim;
mod unit;

pub use frame::WireError;
pub use sim::{Delay, SpiSim, WireFault, chip};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
