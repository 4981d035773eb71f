//! What is known of a part.

use nandu_nand::{CopyRule, Ecc, Geometry, Pairing, ProgramOrder, TearScope};

use crate::command::IDENTITY_SIZE;
use crate::status::StatusScheme;

/// How a part wants to be asked for its identity. On the wire the first two are the same: a zero byte after the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IdMethod {
    /// With an address byte, 00h.
    Address,
    /// With a dummy byte.
    Dummy,
    /// With neither: the maker's byte comes at once.
    Direct,
}

/// What a part answers to [`READ_ID`](crate::command::READ_ID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// How it is asked.
    pub method: IdMethod,
    /// The bytes that tell it apart, the maker's first; 2 to [`IDENTITY_SIZE`]. What comes after them does not count.
    pub bytes: &'static [u8],
}

/// How one of several dies is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DieSelect {
    /// There is one die.
    Single,
    /// By command C2h with the die's number. Registers are each die's own.
    Command,
    /// By bit 6 of register D0h. Registers are each die's own.
    Register,
    /// By the row: dies follow each other in one range of rows, and registers are shared.
    Row,
}

/// How a part with two planes is told the plane of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlaneSelect {
    /// It knows it from the row.
    Row,
    /// In addition by this bit of the column address, which is the lowest bit of the block's number. In every command with a column.
    ColumnBit(u8),
}

/// In which pages of a block the maker's bad mark stands: the first byte of the spare area, not FFh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkPages {
    /// In the first page.
    First,
    /// In the first or in the second.
    FirstTwo,
}

impl MarkPages {
    /// How many pages are looked at.
    pub const fn count(self) -> u32 {
        match self {
            MarkPages::First => 1,
            MarkPages::FirstTwo => 2,
        }
    }
}

/// The mode in which a part reads on over the ends of pages, which cannot be used with columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContinuousRead {
    /// There is none.
    None,
    /// Bit 3 of the configuration ("BUF") is 0. Winbond.
    BufferBitClear,
    /// This bit of the configuration, as a mask, is 1.
    ConfigBitSet(u8),
}

/// What a part does when it wakes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PowerUp {
    /// Every block is protected from programs and erases.
    pub locked: bool,
    /// Error correction is on.
    pub ecc: bool,
    /// It is in continuous read. `true` if any version of the part that answers with this identity is.
    pub continuous_read: bool,
}

/// Bytes of the spare area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpareRange {
    /// The first, counted from the beginning of the spare area.
    pub offset: u16,
    /// How many.
    pub size: u16,
}

/// Times in microseconds. The first three are what an operation usually takes and what a driver waits before it looks for the first
/// time; the limits are far above what data sheets name as maxima, and an operation that takes longer has gone wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Times {
    /// A page read, array to cache.
    pub read_us: u32,
    /// A program.
    pub program_us: u32,
    /// An erase.
    pub erase_us: u32,
    /// When a page read has gone wrong.
    pub read_limit_us: u32,
    /// When a program has gone wrong.
    pub program_limit_us: u32,
    /// When an erase has gone wrong.
    pub erase_limit_us: u32,
    /// When a reset has gone wrong. It is as long as an erase that it cuts short may still take.
    pub reset_limit_us: u32,
}

impl Times {
    /// Times of a part with the limits of [`Times`] that fit every part of the table.
    pub const fn usual(read_us: u32, program_us: u32, erase_us: u32) -> Times {
        Times {
            read_us,
            program_us,
            erase_us,
            read_limit_us: 10_000,
            program_limit_us: 50_000,
            erase_limit_us: 400_000,
            reset_limit_us: 10_000,
        }
    }
}

/// How long a part takes into deep power-down and out of it, in microseconds: tDP and tRES of its data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PowerDown {
    /// From [`DEEP_POWER_DOWN`](crate::command::DEEP_POWER_DOWN) until it sleeps.
    pub enter_us: u32,
    /// From [`RELEASE_POWER_DOWN`](crate::command::RELEASE_POWER_DOWN) until it takes another command.
    pub wake_us: u32,
}

/// What is known of a part. [`PARTS`](crate::PARTS) has those of the table; a row of one's own is made the same way:
///
/// ```
/// use nandu_spi::{IdMethod, Identity, PARTS, Part};
///
/// let mine = Part {
///     name: "W25N01GW",
///     id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xba, 0x21] },
///     sources: &["its data sheet"],
///     ..*Part::by_name("W25N01GV", PARTS).unwrap()
/// };
/// mine.validate().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// As it stands on the package, without what names the package.
    pub name: &'static str,
    /// Who makes it.
    pub maker: &'static str,
    /// What it answers when asked.
    pub id: Identity,
    /// Bytes in the main area of a page.
    pub page_size: u32,
    /// Bytes in the spare area, those included that the part keeps for its parity.
    pub spare_size: u32,
    /// Pages in a block.
    pub pages_per_block: u32,
    /// Blocks in a die.
    pub blocks_per_die: u32,
    /// Planes in a die; a block's plane is the rest of its number.
    pub plane_count: u8,
    /// How the part is told the plane of a column.
    pub plane_select: PlaneSelect,
    /// Dies.
    pub die_count: u8,
    /// How a die is selected.
    pub die_select: DieSelect,
    /// Bits that are corrected in 512 bytes of the main area and their share of the spare area.
    pub ecc_bits: u8,
    /// How the outcome of a read is decoded.
    pub status: StatusScheme,
    /// In which pages of a block the bad mark stands.
    pub marks: MarkPages,
    /// Bytes of the spare area that error correction protects and that are free for use, in rising order, from byte 4 on; `None` where
    /// nobody says, or not twice.
    pub protected: Option<&'static [SpareRange]>,
    /// Programs that a page takes between two erases, with error correction on. 1 where nobody says. More than 1 says as well that
    /// [`PROGRAM_LOAD`](crate::command::PROGRAM_LOAD) sets what it is not given to ones.
    pub programs_per_page: u8,
    /// Blocks that may be bad over the rated life, in the whole part.
    pub bad_block_max: u32,
    /// Erases that a block is rated for.
    pub endurance: u32,
    /// How it wakes up.
    pub power_up: PowerUp,
    /// How its continuous read is switched off.
    pub continuous_read: ContinuousRead,
    /// Whether four lanes need [`CONFIG_QUAD`](crate::command::CONFIG_QUAD).
    pub quad_bit: bool,
    /// Between which blocks it copies pages inside.
    pub copy: CopyRule,
    /// The row of its parameter page behind the array. 1, as ONFI has it, where no source says another; `None` where one says that there
    /// is none.
    pub parameter_row: Option<u8>,
    /// How long its operations take.
    pub times: Times,
    /// Its deep power-down, for [`SpiNand::power_down`](crate::SpiNand::power_down). `None` in the table, since no two of its sources say which part
    /// has one: who has the data sheet makes a row of his own with it.
    pub power_down: Option<PowerDown>,
    /// Where the facts come from, and what was made of sources that disagree. In the table each begins with letters of
    /// [`SOURCES`](crate::SOURCES) and a colon, and without the feature `sources` there are none.
    pub sources: &'static [&'static str],
}

/// Columns at the front of the spare area that [`Geometry`] leaves to the bad mark.
pub(crate) const MARK_SIZE: u32 = 4;

/// Bytes of a codeword's main area.
const CODEWORD_SIZE: u32 = 512;

/// The continuation code of JEDEC: the maker is not the one whose byte came first.
const CONTINUATION: u8 = 0x7f;

/// Why a row is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartError {
    /// Its shape is refused.
    Geometry(nandu_nand::GeometryError),
    /// The identity has less than 2 or more than [`IDENTITY_SIZE`] bytes.
    Identity,
    /// The protected bytes do not rise, or overlap each other or the four bytes of the mark, or do not fit the spare area.
    Protected,
    /// One die needs no selection, several do.
    Dies,
    /// The plane's bit is one of the column, or there are no planes for it.
    Planes,
    /// Columns do not fit two bytes, or rows three.
    Address,
}

impl core::fmt::Display for PartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            PartError::Geometry(error) => error.fmt(f),
            PartError::Identity => write!(f, "an identity has 2 to {IDENTITY_SIZE} bytes"),
            PartError::Protected => f.write_str("protected bytes must rise and fit the spare area behind the mark"),
            PartError::Dies => f.write_str("the number of dies does not fit how one is selected"),
            PartError::Planes => f.write_str("the plane's bit does not fit the page or the number of planes"),
            PartError::Address => f.write_str("columns must fit two bytes and rows three"),
        }
    }
}

impl core::error::Error for PartError {}

impl Part {
    /// The row with this name, in any case of letters.
    pub fn by_name(name: &str, parts: &'static [Part]) -> Option<&'static Part> {
        parts.iter().find(|part| part.name.eq_ignore_ascii_case(name))
    }

    /// The row whose identity begins the bytes that a part answered; of several the longest.
    ///
    /// A row that is followed by two continuation codes is another maker's: GigaDevice's byte C8h is also ESMT's behind three of them.
    pub fn identify<'a>(bytes: &[u8; IDENTITY_SIZE], parts: &'a [Part]) -> Option<&'a Part> {
        let fits = |part: &&Part| {
            let id = part.id.bytes;
            let rest = bytes.get(id.len()..).unwrap_or_default();
            bytes.starts_with(id) && !rest.starts_with(&[CONTINUATION, CONTINUATION])
        };
        parts.iter().filter(fits).max_by_key(|part| part.id.bytes.len())
    }

    /// Bytes of the spare area that can hold a tag.
    pub const fn tag_size(&self) -> u32 {
        let Some(ranges) = self.protected else { return 0 };
        let mut size = 0;
        let mut index = 0;
        while index < ranges.len() {
            size += ranges[index].size as u32;
            index += 1;
        }
        size
    }

    /// Blocks in the part.
    pub const fn block_count(&self) -> u32 {
        self.blocks_per_die.saturating_mul(self.die_count as u32)
    }

    /// The part's shape as the contract has it. The tag's columns are logical: see [`SpiNand`](crate::SpiNand#spare-columns).
    pub const fn geometry(&self) -> Geometry {
        let whole = self.programs_per_page <= 1;
        Geometry {
            page_size: self.page_size,
            spare_size: self.spare_size,
            tag_size: self.tag_size(),
            pages_per_block: self.pages_per_block,
            block_count: self.block_count(),
            pairing: Pairing::None,
            order: ProgramOrder::Ascending,
            programs_per_page: self.programs_per_page,
            program_unit: if whole { self.page_size } else { CODEWORD_SIZE },
            tear: TearScope::Page,
            ecc: Ecc { codeword_size: CODEWORD_SIZE, correctable_bits: self.ecc_bits as u16 },
            endurance: self.endurance,
            bad_block_max: self.bad_block_max,
            plane_count: self.plane_count,
            die_count: self.die_count,
            copies: self.copy,
        }
    }

    /// Checks that a row fits itself. [`PARTS`](crate::PARTS) does; a row of one's own may not.
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub fn validate(&self) -> Result<(), PartError> {
        let geometry = self.geometry();
        geometry.validate().map_err(PartError::Geometry)?;
        if geometry.column_count() > 1 << 16 || geometry.page_count() > 1 << 24 {
            return Err(PartError::Address);
        }
        if !(2..=IDENTITY_SIZE).contains(&self.id.bytes.len()) {
            return Err(PartError::Identity);
        }
        let mut end = MARK_SIZE;
        for range in self.protected.unwrap_or_default() {
            if u32::from(range.offset) < end || range.size == 0 {
                return Err(PartError::Protected);
            }
            end = u32::from(range.offset) + u32::from(range.size);
        }
        if end > self.spare_size {
            return Err(PartError::Protected);
        }
        if (self.die_count == 1) != (self.die_select == DieSelect::Single) || self.die_count == 0 {
            return Err(PartError::Dies);
        }
        match self.plane_select {
            PlaneSelect::ColumnBit(bit)
                if self.plane_count < 2 || bit > 15 || 1 << bit < self.page_size + self.spare_size =>
            {
                Err(PartError::Planes)
            }
            _ if self.plane_count == 0 => Err(PartError::Planes),
            _ => Ok(()),
        }
    }
}
