//! What kind of chip a device is: from the kernel's answer and from sysfs to a geometry, or the reason why not.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nandu_nand::{CopyRule, Ecc, Geometry, GeometryError, Pairing, ProgramOrder, TearScope};
use rustix::io::Errno;

use crate::door::{Info, Kind};

/// Bytes of a tag.
pub const TAG_SIZE: u32 = 16;

/// Bad blocks that a chip of up to 1,024 blocks is rated for, and each 1,024 blocks of a larger one, where nobody says otherwise.
const BAD_BLOCKS: u32 = 20;

/// What the kernel does not say of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Erases that a block is rated for.
    pub endurance: u32,
    /// Blocks that may be bad over the whole life, by the data sheet; by default 20, and 20 in each 1,024 blocks of a larger device. A volume is
    /// looked for behind that many bad blocks, so it has to be the same whenever the volume is opened.
    pub bad_block_max: Option<u32>,
    /// Spare bytes that the layout leaves free are protected by error correction, so a page can have a tag there. Linux does not
    /// say whether they are, and on many chips they are not; the data sheet does.
    pub has_tags: bool,
    /// Nothing may be programmed or erased, and others may look at the same time.
    pub is_read_only: bool,
}

impl Options {
    /// 50,000 erases, no tags.
    pub const DEFAULT: Options =
        Options { endurance: 50_000, bad_block_max: None, has_tags: false, is_read_only: false };

    /// Bad blocks that a device of so many blocks is rated for.
    pub fn bad_blocks_of(&self, block_count: u32) -> u32 {
        let rated = u64::from(block_count).div_ceil(1024) * u64::from(BAD_BLOCKS);
        self.bad_block_max.unwrap_or(u32::try_from(rated).unwrap_or(u32::MAX)).min(block_count)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

/// Why a device is refused. The text names the reason and not the device.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened, or the kernel does not answer.
    Io(io::Error),
    /// The file is no MTD device.
    NotMtd,
    /// It is the block device of an MTD device, which hides what flash is: the number is the device's.
    BlockDevice(u32),
    /// It is no NAND flash with one bit a cell.
    Kind(Kind),
    /// It cannot be programmed.
    WriteProtected,
    /// Somebody uses it: who, in words.
    InUse(String),
    /// Another process of nandu's has it open.
    Locked,
    /// Nothing corrects flipped bits.
    NoEcc,
    /// The layout of the spare area leaves so few bytes free, and tags were asked for.
    NoRoomForTags(u32),
    /// The kernel cannot read tags: it is older than 6.1.
    NoTagReads,
    /// Sizes that fit no chip.
    Sizes(&'static str),
    /// The same, as the contract says it.
    Geometry(GeometryError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::ACCESS | Errno::PERM) => f.write_str("permission denied: MTD devices are root's"),
                Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => f.write_str("there is no such device"),
                _ => error.fmt(f),
            },
            OpenError::NotMtd => f.write_str("not an MTD device"),
            OpenError::BlockDevice(number) => {
                write!(f, "the block device of MTD device {number}, which hides what flash is: take /dev/mtd{number}")
            }
            OpenError::Kind(Kind::UbiVolume) => f.write_str("a volume of UBI, not NAND flash itself"),
            OpenError::Kind(Kind::MlcNand) => f.write_str(
                "NAND flash with several bits a cell: Linux does not say which pages share cells; a partition with 'slc-mode' can be used",
            ),
            OpenError::Kind(kind) => write!(f, "{}, and nandu is for NAND flash", kind.name()),
            OpenError::WriteProtected => f.write_str("write-protected"),
            OpenError::InUse(who) => write!(f, "in use: {who}"),
            OpenError::Locked => f.write_str("in use by another process of nandu"),
            OpenError::NoEcc => f.write_str("the kernel corrects no flipped bits of it"),
            OpenError::NoRoomForTags(free) => {
                write!(f, "no tags: the layout of the spare area leaves {free} bytes free, and {TAG_SIZE} are needed")
            }
            OpenError::NoTagReads => f.write_str("no tags: this kernel cannot read them; Linux 6.1 can"),
            OpenError::Sizes(what) => f.write_str(what),
            OpenError::Geometry(error) => error.fmt(f),
        }
    }
}

impl Error for OpenError {}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> OpenError {
        OpenError::Io(error.into())
    }
}

/// What sysfs says of a device: the folder of its attributes.
#[derive(Clone, Debug)]
pub(crate) struct Attributes(pub(crate) PathBuf);

impl Attributes {
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.0.join(name)).ok()?.trim().to_owned())
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }
}

/// The shape of a device, and how many corrected bits Linux finds worth a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) geometry: Geometry,
    pub(crate) bits_advised: u16,
    /// Spare bytes that the layout leaves free.
    pub(crate) spare_free: u32,
}

/// The folder of sysfs with all devices.
pub(crate) fn class(root: &Path) -> PathBuf {
    root.join("class/mtd")
}

impl Shape {
    /// # Errors
    ///
    /// What is no NAND flash that can be used.
    pub(crate) fn of(info: &Info, attributes: &Attributes, options: &Options) -> Result<Shape, OpenError> {
        match info.kind {
            Kind::Nand => {}
            Kind::MlcNand if info.is_slc_emulated => {}
            other => return Err(OpenError::Kind(other)),
        }
        if !info.is_writable && !options.is_read_only {
            return Err(OpenError::WriteProtected);
        }
        if info.write_size == 0 || info.erase_size == 0 || !info.erase_size.is_multiple_of(info.write_size) {
            return Err(OpenError::Sizes("its blocks are not made of whole pages"));
        }
        // The kernel's answer has 32 bits for it.
        let size = attributes.number("size").unwrap_or_else(|| info.size.into());
        if size == 0 || !size.is_multiple_of(info.erase_size.into()) {
            return Err(OpenError::Sizes("it is not made of whole blocks"));
        }
        let block_count = u32::try_from(size / u64::from(info.erase_size))
            .map_err(|_| OpenError::Sizes("it has more blocks than can be counted"))?;
        let narrow = |name: &str| attributes.number(name).and_then(|number| u16::try_from(number).ok());
        let strength = narrow("ecc_strength").filter(|&bits| bits > 0).ok_or(OpenError::NoEcc)?;
        let step = attributes.number("ecc_step_size").and_then(|size| u32::try_from(size).ok());
        let codeword_size = step.filter(|&size| size > 0 && info.write_size.is_multiple_of(size));
        let spare_free = attributes.number("oobavail").and_then(|free| u32::try_from(free).ok()).unwrap_or(0);
        if options.has_tags && spare_free < TAG_SIZE {
            return Err(OpenError::NoRoomForTags(spare_free));
        }
        let geometry = Geometry {
            page_size: info.write_size,
            spare_size: info.spare_size,
            tag_size: if options.has_tags { TAG_SIZE } else { 0 },
            pages_per_block: info.erase_size / info.write_size,
            block_count,
            pairing: Pairing::None,
            order: ProgramOrder::Ascending,
            // Linux programs parts of a page only where correction is done part by part, and does not say how many make one too many.
            programs_per_page: 1,
            program_unit: info.write_size,
            tear: TearScope::Page,
            ecc: Ecc { codeword_size: codeword_size.unwrap_or(info.write_size), correctable_bits: strength },
            endurance: options.endurance,
            bad_block_max: options.bad_blocks_of(block_count),
            plane_count: 1,
            die_count: 1,
            copies: CopyRule::Never,
        };
        geometry.validate().map_err(OpenError::Geometry)?;
        let bits_advised = narrow("bitflip_threshold").filter(|bits| (1..=strength).contains(bits)).unwrap_or(strength);
        Ok(Shape { geometry, bits_advised, spare_free })
    }
}
