//! A strict simulator of raw NAND flash chips.

mod aging;
mod careful;
mod chip;
mod counters;
mod damage;
mod history;
mod inspect;
mod legality;
mod nand;
mod operation;
mod random;
mod schedule;
mod sim;
mod state;
mod tear;

pub use aging::Aging;
pub use chip::{Bus, Chip, Timing};
pub use counters::{BlockCounters, Counters, Ledger};
pub use damage::Decay;
pub use history::{HISTORY_LENGTH, HistoryEntry};
pub use inspect::DirtyBlock;
pub use operation::{Address, Observer, Operation, OperationKind, Outcome, SimError};
pub use schedule::{Fault, FaultId, Trigger};
pub use sim::Sim;
pub use state::{BlockInfo, Condition, PageInfo};
pub use tear::{CutRecord, Tear, UnknownTear};
