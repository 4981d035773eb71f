//! The kind of chip, as bytes.

use std::sync::{Mutex, PoisonError};

use nandu_nand::{CopyRule, Ecc, Geometry, Pairing, ProgramOrder, TearScope};

use super::codec::{Decoder, Encoder, Reason};
use super::container::BLOCK_COUNT_MAX;
use crate::{Bus, Chip, Timing};

/// A chip's name is at most this many bytes.
const NAME_SIZE_MAX: usize = 64;

/// The line that says where a chip's numbers come from is at most this many bytes.
const SOURCE_SIZE_MAX: usize = 256;

/// Kinds of chips that are no presets are remembered up to this number, for the life of the process.
const REMEMBERED_MAX: usize = 256;

/// Program units that a page may have; the simulator keeps one bit of each in a word.
const UNIT_COUNT_MAX: u32 = 64;

const INTERNAL_COPY: u8 = 1;
const LSB_RECOVERY: u8 = 2;
const TAGS: u8 = 4;
const COPIES_IN_PLANE: u8 = 8;
const COPIES_BY_PARITY: u8 = 16;

/// Whether an image can hold this chip; if not, what it cannot hold.
pub(super) fn check(chip: &Chip) -> Result<(), &'static str> {
    if chip.name.len() > NAME_SIZE_MAX || chip.source.len() > SOURCE_SIZE_MAX {
        return Err("a chip with so long a name or source");
    }
    if chip.geometry.block_count > BLOCK_COUNT_MAX {
        return Err("a chip of more than 1048576 blocks");
    }
    Ok(())
}

/// Appends a chip that passed [`check`].
pub(super) fn encode(chip: &Chip, out: &mut Encoder) {
    for text in [chip.name, chip.source] {
        out.u16(text.len() as u16);
        out.bytes(text.as_bytes());
    }
    encode_geometry(&chip.geometry, out);
    let timing = &chip.timing;
    for time in [
        timing.read_lsb_ns,
        timing.read_msb_ns,
        timing.program_lsb_ns,
        timing.program_msb_ns,
        timing.erase_ns,
        timing.bus.byte_ps,
        timing.bus.command_ns,
    ] {
        out.u32(time);
    }
    let copies = match chip.geometry.copies {
        CopyRule::Never => 0,
        CopyRule::Die => INTERNAL_COPY,
        CopyRule::Plane => INTERNAL_COPY | COPIES_IN_PLANE,
        CopyRule::Parity => INTERNAL_COPY | COPIES_BY_PARITY,
    };
    let lsb_recovery = if chip.lsb_recovery { LSB_RECOVERY } else { 0 };
    let tags = if chip.geometry.tag_size > 0 { TAGS } else { 0 };
    out.u8(copies | lsb_recovery | tags);
    if tags != 0 {
        out.u16(chip.geometry.tag_size as u16);
    }
}

fn encode_geometry(geometry: &Geometry, out: &mut Encoder) {
    for value in [
        geometry.page_size,
        geometry.spare_size,
        geometry.pages_per_block,
        geometry.block_count,
        geometry.program_unit,
        geometry.ecc.codeword_size,
        geometry.endurance,
        geometry.bad_block_max,
    ] {
        out.u32(value);
    }
    out.u16(geometry.ecc.correctable_bits);
    out.u8(geometry.programs_per_page);
    out.u8(geometry.plane_count);
    out.u8(geometry.die_count);
    out.u8(match geometry.order {
        ProgramOrder::Ascending => 0,
        ProgramOrder::Any => 1,
    });
    out.u8(match geometry.tear {
        TearScope::Range => 0,
        TearScope::Page => 1,
        TearScope::Pair => 2,
    });
    match geometry.pairing {
        Pairing::None => out.u8(0),
        Pairing::SchemeA => out.u8(1),
        Pairing::Dist3 => out.u8(2),
        Pairing::Table(pairs) => {
            out.u8(3);
            out.u16(pairs.len() as u16);
            for &(lsb, msb) in pairs {
                out.u16(lsb);
                out.u16(msb);
            }
        }
    }
}

/// Reads a chip; one that the simulator would refuse is an error.
pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Chip, Reason> {
    let name = text(input, NAME_SIZE_MAX)?;
    let source = text(input, SOURCE_SIZE_MAX)?;
    let mut geometry = decode_geometry(input)?;
    let timing = Timing {
        read_lsb_ns: input.u32()?,
        read_msb_ns: input.u32()?,
        program_lsb_ns: input.u32()?,
        program_msb_ns: input.u32()?,
        erase_ns: input.u32()?,
        bus: Bus { byte_ps: input.u32()?, command_ns: input.u32()? },
    };
    let flags = input.u8()?;
    let unknown = || format!("the chip has abilities unknown to this version ({flags:#x})");
    if flags & !(INTERNAL_COPY | LSB_RECOVERY | TAGS | COPIES_IN_PLANE | COPIES_BY_PARITY) != 0 {
        return Err(unknown());
    }
    geometry.copies = match (flags & INTERNAL_COPY != 0, flags & COPIES_IN_PLANE != 0, flags & COPIES_BY_PARITY != 0) {
        (false, false, false) => CopyRule::Never,
        (true, false, false) => CopyRule::Die,
        (true, true, false) => CopyRule::Plane,
        (true, false, true) => CopyRule::Parity,
        _ => return Err(unknown()),
    };
    if flags & TAGS != 0 {
        geometry.tag_size = input.u16()?.into();
        geometry.validate().map_err(|error| error.to_string())?;
    }
    let preset = Chip::preset(name);
    let name = match preset {
        Some(preset) => preset.name,
        None => remember(&TEXTS, name)?,
    };
    let source = match preset {
        Some(preset) if preset.source == source => preset.source,
        _ => remember(&TEXTS, source)?,
    };
    let lsb_recovery = flags & LSB_RECOVERY != 0;
    Ok(Chip { name, source, geometry, timing, lsb_recovery })
}

fn decode_geometry(input: &mut Decoder<'_>) -> Result<Geometry, Reason> {
    let mut word = || input.u32();
    let (page_size, spare_size, pages_per_block, block_count) = (word()?, word()?, word()?, word()?);
    let (program_unit, codeword_size, endurance, bad_block_max) = (word()?, word()?, word()?, word()?);
    let correctable_bits = input.u16()?;
    let (programs_per_page, plane_count, die_count) = (input.u8()?, input.u8()?, input.u8()?);
    let order = match input.u8()? {
        0 => ProgramOrder::Ascending,
        1 => ProgramOrder::Any,
        other => return Err(format!("program order {other} is unknown")),
    };
    let tear = match input.u8()? {
        0 => TearScope::Range,
        1 => TearScope::Page,
        2 => TearScope::Pair,
        other => return Err(format!("tear scope {other} is unknown")),
    };
    let pairing = match input.u8()? {
        0 => Pairing::None,
        1 => Pairing::SchemeA,
        2 => Pairing::Dist3,
        3 => Pairing::Table(decode_table(input)?),
        other => return Err(format!("pairing {other} is unknown")),
    };
    let geometry = Geometry {
        page_size,
        spare_size,
        tag_size: 0,
        pages_per_block,
        block_count,
        pairing,
        order,
        programs_per_page,
        program_unit,
        tear,
        ecc: Ecc { codeword_size, correctable_bits },
        endurance,
        bad_block_max,
        plane_count,
        die_count,
        copies: CopyRule::Never,
    };
    geometry.validate().map_err(|error| error.to_string())?;
    if block_count > BLOCK_COUNT_MAX || page_size / program_unit > UNIT_COUNT_MAX {
        return Err(format!("{block_count} blocks of pages of {page_size} bytes cannot be simulated"));
    }
    Ok(geometry)
}

fn decode_table(input: &mut Decoder<'_>) -> Result<&'static [(u16, u16)], Reason> {
    let count = usize::from(input.u16()?);
    if count * 4 > input.remaining() {
        return Err("the pairing table ends too early".to_owned());
    }
    let pairs = (0..count).map(|_| Ok((input.u16()?, input.u16()?))).collect::<Result<Vec<_>, Reason>>()?;
    remember(&TABLES, &pairs)
}

fn text<'a>(input: &mut Decoder<'a>, size_max: usize) -> Result<&'a str, Reason> {
    let size = usize::from(input.u16()?);
    if size > size_max {
        return Err(format!("a text of {size} bytes is too long"));
    }
    let text = std::str::from_utf8(input.bytes(size)?).map_err(|error| error.to_string())?;
    // These texts are shown on terminals.
    if text.chars().any(char::is_control) { Err("a text has control characters".to_owned()) } else { Ok(text) }
}

static TEXTS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

static TABLES: Mutex<Vec<&'static [(u16, u16)]>> = Mutex::new(Vec::new());

/// Keeps a value for the life of the process, once, however many images have it. A chip is plain data that refers to
/// constants; one that comes from a file needs something that lives as long. The bound on what is kept stands against
/// hostile images: it comes to some hundred kilobytes of texts and two megabytes of tables.
fn remember<T>(known: &Mutex<Vec<&'static T>>, value: &T) -> Result<&'static T, Reason>
where
    T: PartialEq + ?Sized,
    Box<T>: for<'a> From<&'a T>,
{
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&found) = known.iter().find(|&&found| found == value) {
        return Ok(found);
    }
    if known.len() == REMEMBERED_MAX {
        return Err("too many kinds of chips were opened that are no presets".to_owned());
    }
    let kept: &'static T = Box::leak(Box::from(value));
    known.push(kept);
    Ok(kept)
}
