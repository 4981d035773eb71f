//! The commands a part takes, and what of each goes over the wire.

use nandu_spi::{Lanes, command};

/// Reads the cache on one lane at the full clock: two bytes of column, one dummy byte, data.
pub(crate) const READ_CACHE_FAST: u8 = 0x0B;

/// Where the data of a command go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    None,
    FromPart,
    ToPart,
}

/// What of a command goes over the wire after its opcode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Address bytes.
    pub(crate) address: u8,
    /// Dummy bytes after them.
    pub(crate) dummy: u8,
    pub(crate) flow: Flow,
    /// The lanes of the data.
    pub(crate) lanes: Lanes,
}

/// What goes over the wire after this opcode; `None` where no part of the table knows it.
pub(crate) const fn shape(opcode: u8) -> Option<Shape> {
    use Flow::{FromPart, None as Nothing, ToPart};
    use Lanes::{Four, One, Two};
    let (name, address, dummy, flow, lanes) = match opcode {
        command::RESET => ("reset", 0, 0, Nothing, One),
        // The dummy byte belongs to what the part answers, since not every part has one.
        command::READ_ID => ("read identity", 0, 0, FromPart, One),
        command::GET_FEATURE => ("get feature", 1, 0, FromPart, One),
        command::SET_FEATURE => ("set feature", 1, 0, ToPart, One),
        command::WRITE_ENABLE => ("write enable", 0, 0, Nothing, One),
        command::WRITE_DISABLE => ("write disable", 0, 0, Nothing, One),
        command::PAGE_READ => ("page read", 3, 0, Nothing, One),
        command::READ_CACHE | READ_CACHE_FAST => ("read cache", 2, 1, FromPart, One),
        command::READ_CACHE_X2 => ("read cache x2", 2, 1, FromPart, Two),
        command::READ_CACHE_X4 => ("read cache x4", 2, 1, FromPart, Four),
        command::PROGRAM_LOAD => ("program load", 2, 0, ToPart, One),
        command::PROGRAM_LOAD_X4 => ("program load x4", 2, 0, ToPart, Four),
        command::PROGRAM_LOAD_MORE => ("random load", 2, 0, ToPart, One),
        command::PROGRAM_LOAD_MORE_X4 => ("random load x4", 2, 0, ToPart, Four),
        command::PROGRAM_EXECUTE => ("program execute", 3, 0, Nothing, One),
        command::BLOCK_ERASE => ("block erase", 3, 0, Nothing, One),
        command::SELECT_DIE => ("select die", 0, 0, ToPart, One),
        command::DEEP_POWER_DOWN => ("deep power-down", 0, 0, Nothing, One),
        command::RELEASE_POWER_DOWN => ("release from power-down", 0, 0, Nothing, One),
        command::READ_ECC_STATUS => ("read ECC status", 0, 1, FromPart, One),
        _ => return None,
    };
    Some(Shape { name, address, dummy, flow, lanes })
}
