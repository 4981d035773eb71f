//! One die as the wire sees it: registers, page cache, and what it is busy with.

use nandu_nand::{BlockAddr, PageAddr};
use nandu_spi::{ContinuousRead, DieSelect, Part, StatusScheme, command};

use crate::encode::{Code, Found, encode};

/// Bits of the register of protection that protect something.
const PROTECTION: u8 = 0x78;

/// Bit of the configuration that can never be cleared again: the one-time pages are locked.
pub(crate) const CONFIG_OTP_LOCK: u8 = 0x80;

/// What the cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Nothing that is known.
    Nothing,
    /// A page of the array, perhaps with bytes loaded over it.
    Page(PageAddr),
    /// A page of those behind [`command::CONFIG_OTP`].
    Info,
    /// What was loaded, and ones.
    Loaded,
}

/// The page cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    pub(crate) bytes: Vec<u8>,
    pub(crate) filled: Filled,
    /// Columns from the first to behind the last that were loaded since it was filled.
    pub(crate) loaded: Option<(u32, u32)>,
    /// The plane bits of the loads, if the part has such: whether each was that of the row is known when there is a row.
    pub(crate) planes: Vec<u32>,
}

/// What a die is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Read(PageAddr),
    ReadInfo(u32),
    Program {
        page: PageAddr,
        column: u32,
        size: u32,
    },
    /// The mark of a block.
    Mark(BlockAddr),
    Erase(BlockAddr),
    Reset,
}

/// Work, and until when it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) work: Work,
    pub(crate) duration_ns: u64,
    /// When it ends; `u64::MAX` if it never does.
    pub(crate) end_ns: u64,
}

/// One die, or all dies of a part that tells them apart by the row.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) lock: u8,
    pub(crate) config: u8,
    /// Register D0h: on most parts how strongly outputs are driven.
    drive: u8,
    pub(crate) write_enabled: bool,
    pub(crate) erase_failed: bool,
    pub(crate) program_failed: bool,
    pub(crate) found: Found,
    /// Whether the last operation was a page read, so that all of the status is about it.
    pub(crate) after_read: bool,
    pub(crate) cache: Cache,
    pub(crate) pending: Option<Pending>,
    /// The chip said nothing of how an operation ended: the next transaction fails.
    pub(crate) bus_failed: bool,
}

impl Unit {
    pub(crate) fn new(part: &Part) -> Unit {
        let columns = (part.page_size + part.spare_size) as usize;
        let cache = Cache { bytes: vec![0xFF; columns], filled: Filled::Nothing, loaded: None, planes: Vec::new() };
        let mut unit = Unit {
            lock: 0,
            config: 0,
            drive: 0,
            write_enabled: false,
            erase_failed: false,
            program_failed: false,
            found: Found::Clean,
            after_read: false,
            cache,
            pending: None,
            bus_failed: false,
        };
        unit.wake(part);
        unit
    }

    /// The state after power-up.
    pub(crate) fn wake(&mut self, part: &Part) {
        self.lock = if part.power_up.locked { PROTECTION } else { 0 };
        self.config = if part.power_up.ecc { command::CONFIG_ECC } else { 0 };
        self.config |= match part.continuous_read {
            ContinuousRead::BufferBitClear if !part.power_up.continuous_read => command::CONFIG_BUFFER,
            ContinuousRead::ConfigBitSet(mask) if part.power_up.continuous_read => mask,
            _ => 0,
        };
        self.drive = 0;
        self.write_enabled = false;
        (self.erase_failed, self.program_failed) = (false, false);
        self.found = Found::Clean;
        self.after_read = false;
        self.cache.filled = Filled::Nothing;
        self.cache.loaded = None;
        self.cache.planes.clear();
        self.pending = None;
        self.bus_failed = false;
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.lock & PROTECTION != 0
    }

    pub(crate) fn has_ecc(&self) -> bool {
        self.config & command::CONFIG_ECC != 0
    }

    /// Whether the pages behind the array stand in for it.
    pub(crate) fn is_otp(&self) -> bool {
        self.config & command::CONFIG_OTP != 0
    }

    /// Whether reads of the cache pay no heed to the column and go on over the ends of pages.
    pub(crate) fn is_continuous(&self, part: &Part) -> bool {
        match part.continuous_read {
            // The pages behind the array are read page by page whatever BUF says.
            _ if self.is_otp() => false,
            ContinuousRead::None => false,
            ContinuousRead::BufferBitClear => self.config & command::CONFIG_BUFFER == 0,
            ContinuousRead::ConfigBitSet(mask) => self.config & mask != 0,
        }
    }

    pub(crate) fn code(&self, part: &Part) -> Code {
        encode(part.status, part.ecc_bits, self.found)
    }

    /// The register of status.
    pub(crate) fn status(&self, part: &Part) -> u8 {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        if self.pending.is_some() {
            return command::STATUS_BUSY | bit(self.write_enabled, command::STATUS_WRITE_ENABLED);
        }
        // These parts have the codes of error correction where the bits of failures are.
        let ecc = if part.status == StatusScheme::XtxA && !self.after_read { 0 } else { self.code(part).status };
        ecc | bit(self.write_enabled, command::STATUS_WRITE_ENABLED)
            | bit(self.erase_failed, command::STATUS_ERASE_FAILED)
            | bit(self.program_failed, command::STATUS_PROGRAM_FAILED)
    }

    /// What a register holds; `None` if the part has none of this address.
    pub(crate) fn register(&self, part: &Part, register: u8) -> Option<u8> {
        match register {
            command::REGISTER_LOCK => Some(self.lock),
            command::REGISTER_CONFIG => Some(self.config),
            command::REGISTER_STATUS => Some(self.status(part)),
            command::REGISTER_DIE => Some(self.drive),
            command::REGISTER_ECC_COUNT if part.status == StatusScheme::Count30 => Some(self.code(part).more),
            command::REGISTER_STATUS_2
                if matches!(part.status, StatusScheme::GigaDevice4 | StatusScheme::GigaDevice8) =>
            {
                Some(self.code(part).more)
            }
            _ => None,
        }
    }

    /// Sets a register; says whether the part has one there that can be set.
    pub(crate) fn set_register(&mut self, part: &Part, register: u8, value: u8) -> bool {
        match register {
            command::REGISTER_LOCK => self.lock = value,
            command::REGISTER_CONFIG => self.config = value,
            command::REGISTER_DIE if part.die_select != DieSelect::Register => self.drive = value,
            _ => return false,
        }
        true
    }
}
