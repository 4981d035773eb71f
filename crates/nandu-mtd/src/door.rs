//! What a driver needs of an MTD device, so that it can be tested without one.

use rustix::io::Errno;

/// What a device says of itself ([`Door::info`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// What is behind it.
    pub kind: Kind,
    /// Whether it can be programmed.
    pub is_writable: bool,
    /// Whether each cell of a chip with several bits holds one, because the kernel skips the other pages.
    pub is_slc_emulated: bool,
    /// Bytes in all, as far as 32 bits go.
    pub size: u32,
    /// Bytes that are erased together.
    pub erase_size: u32,
    /// Bytes that are programmed together.
    pub write_size: u32,
    /// Bytes of the spare area of a page.
    pub spare_size: u32,
}

/// What is behind an MTD device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NAND flash with one bit a cell.
    Nand,
    /// NAND flash with several bits a cell.
    MlcNand,
    /// NOR flash.
    Nor,
    /// Memory.
    Ram,
    /// Memory that is only read.
    Rom,
    /// Atmel's DataFlash.
    DataFlash,
    /// A volume of UBI, which looks like an MTD device.
    UbiVolume,
    /// Nothing.
    Absent,
    /// A number that Linux had no name for when this was written.
    Unknown(u8),
}

impl Kind {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Nand => "NAND flash",
            Kind::MlcNand => "NAND flash with several bits a cell",
            Kind::Nor => "NOR flash",
            Kind::Ram => "RAM",
            Kind::Rom => "ROM",
            Kind::DataFlash => "DataFlash",
            Kind::UbiVolume => "a volume of UBI",
            Kind::Absent => "nothing",
            Kind::Unknown(_) => "of a kind that is not known",
        }
    }
}

/// What error correction found out during one read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corrected {
    /// Corrected bits in the worst codeword.
    pub bits_max: u32,
    /// Codewords that could not be corrected.
    pub uncorrectable: u32,
}

/// What error correction did since the device came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Corrected bits. Wraps.
    pub corrected: u32,
    /// Codewords that could not be corrected. Wraps.
    pub failed: u32,
}

/// The calls at an MTD device. [`Kernel`](crate::Kernel) makes them; a test answers them itself.
///
/// Offsets and lengths are in bytes of the main area. Each method is one call and answers with what the kernel says, unchanged: `ENOTTY`
/// for a call that it does not know yet.
pub trait Door {
    /// Type and shape.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn info(&mut self) -> Result<Info, Errno>;

    /// Reads bytes of the main area; how many came. Says nothing of error correction: not even that it failed.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<usize, Errno>;

    /// Reads bytes of the main area, and free bytes of the spare area from the first on, with what error correction found out.
    ///
    /// # Errors
    ///
    /// The kernel's. `EUCLEAN` and `EBADMSG`, which only repeat what was found out, are none.
    fn read_counted(&mut self, offset: u64, data: &mut [u8], spare: &mut [u8]) -> Result<Corrected, Errno>;

    /// What error correction did so far.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn totals(&mut self) -> Result<Totals, Errno>;

    /// Programs bytes of the main area; how many went.
    ///
    /// # Errors
    ///
    /// The kernel's; `EIO` where the chip says that it failed.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, Errno>;

    /// Programs bytes of the main area, and free bytes of the spare area from the first on, together.
    ///
    /// # Errors
    ///
    /// As [`write`](Door::write).
    fn write_spare(&mut self, offset: u64, data: &[u8], spare: &[u8]) -> Result<(), Errno>;

    /// Erases.
    ///
    /// # Errors
    ///
    /// The kernel's; `EIO` where the chip says that it failed, and for a bad block.
    fn erase(&mut self, offset: u64, length: u64) -> Result<(), Errno>;

    /// Whether the block at this offset is bad.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn is_bad(&mut self, offset: u64) -> Result<bool, Errno>;

    /// Marks the block at this offset as bad.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn mark_bad(&mut self, offset: u64) -> Result<(), Errno>;

    /// The spare area of the page at this offset as it lies there, uncorrected.
    ///
    /// # Errors
    ///
    /// The kernel's.
    fn read_spare(&mut self, offset: u64, spare: &mut [u8]) -> Result<(), Errno>;
}

/// A door that somebody else holds.
impl<D: Door + ?Sized> Door for &mut D {
    fn info(&mut self) -> Result<Info, Errno> {
        (**self).info()
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<usize, Errno> {
        (**self).read(offset, data)
    }

    fn read_counted(&mut self, offset: u64, data: &mut [u8], spare: &mut [u8]) -> Result<Corrected, Errno> {
        (**self).read_counted(offset, data, spare)
    }

    fn totals(&mut self) -> Result<Totals, Errno> {
        (**self).totals()
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        (**self).write(offset, data)
    }

    fn write_spare(&mut self, offset: u64, data: &[u8], spare: &[u8]) -> Result<(), Errno> {
        (**self).write_spare(offset, data, spare)
    }

    fn erase(&mut self, offset: u64, length: u64) -> Result<(), Errno> {
        (**self).erase(offset, length)
    }

    fn is_bad(&mut self, offset: u64) -> Result<bool, Errno> {
        (**self).is_bad(offset)
    }

    fn mark_bad(&mut self, offset: u64) -> Result<(), Errno> {
        (**self).mark_bad(offset)
    }

    fn read_spare(&mut self, offset: u64, spare: &mut [u8]) -> Result<(), Errno> {
        (**self).read_spare(offset, spare)
    }
}
