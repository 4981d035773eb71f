//! The chip that a verb works on: the simulated one of an image, or an MTD device.
//!
//! Storage code sees a chip behind the contract either way. What verbs want to know besides, such as what a block looks like, a simulated chip
//! says of itself, and a device is read for.

use std::fmt;

use nandu_mtd::MtdError;
use nandu_nand::{
    BlockAddr, Cause, CellMode, ErrorType, Geometry, Nand, NandError, NandErrorKind, PageAddr, ReadStatus,
};
use nandu_sim::{BlockInfo, Chip, Counters, Ledger, Sim, SimError};

use crate::device::Device;

/// A chip.
#[derive(Clone, Debug)]
pub(crate) enum Flash {
    Sim(Sim),
    Device(Device),
}

/// What goes wrong with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlashError {
    Sim(SimError),
    Device(MtdError),
}

impl fmt::Display for FlashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlashError::Sim(error) => error.fmt(f),
            FlashError::Device(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FlashError {}

impl NandError for FlashError {
    fn kind(&self) -> NandErrorKind {
        match self {
            FlashError::Sim(error) => error.kind(),
            FlashError::Device(error) => error.kind(),
        }
    }
}

impl From<Sim> for Flash {
    fn from(sim: Sim) -> Flash {
        Flash::Sim(sim)
    }
}

/// What the one of the two does that there is.
macro_rules! either {
    ($flash:expr, $chip:ident => $call:expr) => {
        match $flash {
            Flash::Sim($chip) => $call.map_err(FlashError::Sim),
            Flash::Device($chip) => $call.map_err(FlashError::Device),
        }
    };
}

impl Flash {
    /// What kind of chip it is.
    pub(crate) fn chip(&self) -> &Chip {
        match self {
            Flash::Sim(sim) => sim.chip(),
            Flash::Device(device) => device.chip(),
        }
    }

    /// The simulated chip, if it is one.
    pub(crate) fn sim(&self) -> Option<&Sim> {
        match self {
            Flash::Sim(sim) => Some(sim),
            Flash::Device(_) => None,
        }
    }

    /// Switches a simulated chip on. A device is.
    pub(crate) fn power_on(&mut self) {
        match self {
            Flash::Sim(sim) => sim.power_on(),
            Flash::Device(_) => {}
        }
    }

    /// What was done: to a simulated chip in its life, to a device since it was opened.
    pub(crate) fn counters(&self) -> &Counters {
        match self {
            Flash::Sim(sim) => sim.counters(),
            Flash::Device(device) => device.counters(),
        }
    }

    /// The same by causes.
    pub(crate) fn ledger(&self) -> &Ledger {
        match self {
            Flash::Sim(sim) => sim.ledger(),
            Flash::Device(device) => device.ledger(),
        }
    }

    /// The time that operations took: virtual of a simulated chip, real of a device.
    pub(crate) fn clock_ns(&self) -> u64 {
        match self {
            Flash::Sim(sim) => sim.clock_ns(),
            Flash::Device(device) => device.counters().busy_ns,
        }
    }

    /// What the main area of a page holds, past the contract; `None` if it was not programmed.
    pub(crate) fn content(&self, page: PageAddr) -> Option<Vec<u8>> {
        match self {
            Flash::Sim(sim) if sim.page_state(page).programs == 0 => None,
            Flash::Sim(sim) => {
                let mut bytes = sim.peek(page);
                bytes.truncate(sim.chip().geometry.page_size as usize);
                Some(bytes)
            }
            Flash::Device(device) => device.content(page),
        }
    }

    /// When a page was programmed, where that is known.
    pub(crate) fn programmed_ns(&self, page: PageAddr) -> u64 {
        self.sim().map_or(0, |sim| sim.page_state(page).programmed_ns)
    }

    /// Whether anything of a block is programmed. Pages are, from the first on.
    pub(crate) fn is_programmed(&self, block: BlockAddr) -> bool {
        match self {
            Flash::Sim(sim) => sim.block_state(block).pages_programmed > 0,
            // What lies in a bad block is nobody's.
            Flash::Device(device) => {
                !device.is_marked(block).unwrap_or(true)
                    && device.content(device.geometry().first_page(block)).is_some()
            }
        }
    }

    /// What a block looks like.
    pub(crate) fn block_state(&self, block: BlockAddr) -> BlockInfo {
        match self {
            Flash::Sim(sim) => sim.block_state(block),
            Flash::Device(device) => device.block_state(block),
        }
    }

    /// Whether a page is known not to be what it seems.
    pub(crate) fn is_harmed(&self, page: PageAddr) -> bool {
        self.sim().is_some_and(|sim| sim.page_state(page).harmed)
    }
}

impl ErrorType for Flash {
    type Error = FlashError;
}

impl Nand for Flash {
    fn geometry(&self) -> &Geometry {
        &self.chip().geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, FlashError> {
        either!(self, chip => chip.read(page, column, buf))
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, FlashError> {
        either!(self, chip => chip.read_tagged(page, data, tag))
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), FlashError> {
        either!(self, chip => chip.program(page, column, data))
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), FlashError> {
        either!(self, chip => chip.program_tagged(page, data, tag))
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), FlashError> {
        either!(self, chip => chip.erase(block, mode))
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, FlashError> {
        either!(self, chip => chip.is_bad(block))
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), FlashError> {
        either!(self, chip => chip.mark_bad(block))
    }

    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, FlashError> {
        match self {
            Flash::Sim(sim) => sim.copy(from, to).map_err(FlashError::Sim),
            Flash::Device(_) => Ok(None),
        }
    }

    fn recover_lsb(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, FlashError> {
        match self {
            Flash::Sim(sim) => sim.recover_lsb(page, buf).map_err(FlashError::Sim),
            Flash::Device(_) => Ok(None),
        }
    }

    fn attribute(&mut self, cause: Cause) -> Cause {
        match self {
            Flash::Sim(sim) => sim.attribute(cause),
            Flash::Device(device) => device.attribute(cause),
        }
    }
}
