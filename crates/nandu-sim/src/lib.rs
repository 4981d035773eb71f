//! A strict simulator of raw NAND flash chips, for testing and measuring code that stores things on them.
//!
//! **For** whoever tests or measures code that stores things on raw NAND, nandu's or their own: nothing here knows of nandu.
//!
//! [`Sim`] implements [`nandu_nand::Nand`] in memory. It counts and times every operation exactly, refuses what no real
//! chip would take, loses power at any operation you name and leaves what real chips leave then, and produces any fault
//! of the model below on demand. The same seed gives the same chip, bit for bit.
//!
//! ```
//! use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandError, NandErrorKind, PageAddr};
//! use nandu_sim::{Chip, Sim, Tear};
//!
//! # fn main() -> Result<(), nandu_sim::SimError> {
//! let mut chip = Sim::new(Chip::W25N01GV);
//! chip.attribute(Cause::Host);
//! chip.erase(BlockAddr(0), CellMode::Slc)?;
//! chip.program(PageAddr(0), 0, &[0x55; 2048])?;
//!
//! // The power goes during the next program, and leaves the page half programmed.
//! chip.cut_at(chip.operation_count(), Tear::SomeBits);
//! let error = chip.program(PageAddr(1), 0, &[0x33; 2048]).unwrap_err();
//! assert_eq!(error.kind(), NandErrorKind::Gone);
//!
//! chip.power_on();
//! let mut page = [0; 2048];
//! let status = chip.read(PageAddr(0), 0, &mut page)?;
//! assert!(page == [0x55; 2048] && status.corrected_bits() == 0);
//! // Error correction noticed nothing, but this is not what was programmed: only a checksum can tell.
//! let _ = chip.read(PageAddr(1), 0, &mut page)?;
//! assert_ne!(page, [0x33; 2048]);
//!
//! // What the chip did, exactly, and for whom.
//! assert_eq!(chip.counters().programs, 2);
//! assert_eq!(chip.ledger().of(Cause::Host), chip.counters());
//! # Ok(())
//! # }
//! ```
//!
//! **The key decision** is that chance has no state. Where a real chip would leave something to chance, the simulator
//! draws it from a stream named by the seed, the purpose and the place: operation, page, how often its block was
//! erased. The alternative, one generator that all draw from, would make each fault shift all later ones, and its
//! position would be part of every saved chip. It was refused.
//!
//! # Strictness
//!
//! Breaking a rule of the contract is a bug of the caller, and the simulator panics with the last operations of that
//! block: a program beyond what a page takes or over programmed bytes, out of order, of a block not erased or bad, of
//! an MSB page in SLC mode, not aligned; an erase of a bad block; a copy inside the chip where
//! [`Geometry::may_copy`](nandu_nand::Geometry::may_copy) says no; any address outside the chip. A chip from the factory
//! counts as not erased. What a chip permits (partial programs, any order) is permitted. Rules are judged by what the
//! caller can know: after a fault that it was not told of, it is not blamed.
//!
//! # Faults
//!
//! | # | fault | how |
//! |---|---|---|
//! | F1 | program cut | [`Sim::cut_at`] with a [`Tear`], or [`Fault::Cut`] |
//! | F2 | unstable bits | [`Tear::Unstable`], [`Fault::Unstable`]; speed by [`Sim::set_decay`] |
//! | F3 | cut erase | [`Tear::HalfErased`], [`Tear::WeaklyErased`], [`Tear::FadingContent`] |
//! | F4 | erased page with flipped bits | [`Fault::ErasedZeros`] |
//! | F5 | paired page destroyed | [`Tear::PairLost`] and its like, [`Fault::ProgramFails`] on an MSB page |
//! | F6 | flipped bits within ECC | [`Fault::BitFlips`], [`Sim::set_aging`], [`Sim::advance_ns`] |
//! | F7 | beyond ECC | [`Fault::Uncorrectable`], and where F2, F6 lead |
//! | F8 | read disturb | [`Fault::ReadDisturb`], [`Aging::disturb_reads_slc`] |
//! | F9 | partial-program disturb | [`Fault::PartialDisturb`] |
//! | F10 | program status fail | [`Fault::ProgramFails`] |
//! | F11 | erase status fail | [`Fault::EraseFails`] |
//! | F12 | factory bad block | [`Sim::with_factory_bad`], [`Sim::mark_factory_bad`] |
//! | F13 | spare-area corruption | [`Fault::MarkInverted`], [`Sim::invert_mark`] |
//! | F14 | lost program or erase | [`Fault::NothingHappens`] |
//! | F15 | misdirected program or read | [`Fault::Misdirected`] |
//! | F16 | stale read | [`Fault::Stale`] |
//! | F17 | bus error, timeout, reset | [`Fault::Bus`] |
//! | F18 | cut during recovery | [`power_cut::pairs`], [`power_cut::random`]; several cuts may wait |
//! | F19 | chip full | [`Chip::TINY`], [`Chip::with_blocks`] |
//! | F20 | sequence near its end | nothing to do for a chip: [`Sim::poke`] a page that says so |
//! | F21, F24 | foreign or hostile content | [`Sim::poke`], [`Sim::corrupt`] |
//! | F22 | content on another chip | [`Sim::transplant`] |
//! | F23 | end of life | [`Aging::failure`] |
//! | F25 | brown-out before a cut | [`Sim::sag`] |
//!
//! A fault is scheduled by [`Sim::inject`] with a [`Trigger`]: at an operation's number, at the n-th operation that it
//! fits, with a probability, or at a page or block.
//!
//! # Costs
//!
//! A block that was never programmed takes 56 bytes; its storage comes with its first program. Without cuts,
//! faults, aging and observer, an operation is a few comparisons and one copy.

mod aging;
mod careful;
mod chip;
mod counters;
mod damage;
mod history;
pub mod image;
mod inspect;
mod kept;
mod legality;
mod nand;
mod operation;
pub mod power_cut;
mod random;
mod sag;
mod schedule;
mod sim;
mod state;
mod tear;
pub mod trace;

pub use aging::Aging;
pub use chip::{Bus, Chip, Timing};
pub use counters::{BlockCounters, Counters, Ledger};
pub use damage::Decay;
pub use history::{HISTORY_LENGTH, HistoryEntry};
pub use operation::{Address, Observer, Operation, OperationKind, Outcome, SimError};
pub use sag::{Sag, Weakness};
pub use schedule::{Fault, FaultId, Trigger};
pub use sim::Sim;
pub use state::{BlockInfo, Condition, PageInfo};
pub use tear::{CutRecord, Tear, UnknownTear};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
