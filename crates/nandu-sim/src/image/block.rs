//! One block of the chip, as bytes.

use std::collections::BTreeMap;

use nandu_nand::{Cause, CellMode, Geometry, NandErrorKind};

use super::codec::{Decoder, Encoder, Reason};
use super::container::NOTE_SIZE;
use crate::damage::{Harm, HarmKind};
use crate::history::{History, HistoryEntry};
use crate::state::{BlockState, Condition, Mark, PageState, Place, Store};
use crate::{BlockCounters, HISTORY_LENGTH, OperationKind, Sim};

/// Bytes of a page in the record.
const PAGE_SIZE: usize = 22;

const HAS_STORE: u8 = 1;
const HAS_DAMAGE: u8 = 2;
const HAS_HISTORY: u8 = 4;

/// Counts and times in an image are below this. A simulator that starts from there has room to count on for longer than
/// anyone can wait.
pub(super) const COUNT_LIMIT: u64 = 1 << 62;

/// The same for counts of 32 bits: a sixteenth of them is left.
const COUNT_LIMIT_32: u32 = 0xF000_0000;

/// What the directory keeps of a block.
pub(super) fn encode_note(block: &BlockState) -> [u8; NOTE_SIZE] {
    let mut out = Encoder::default();
    let counters = &block.counters;
    out.u64(counters.programs);
    out.u64(counters.reads);
    out.u32(counters.erases.min(COUNT_LIMIT_32 - 1));
    out.u32(counters.reads_since_erase.min(COUNT_LIMIT_32 - 1));
    out.u32(block.next_index);
    out.u8(encode_mode(block.mode));
    out.u8(block.condition as u8);
    out.u8(block.mark.0);
    out.u8(0);
    let mut note = [0; NOTE_SIZE];
    note.copy_from_slice(out.as_slice());
    note
}

/// A block from its note, without content.
pub(super) fn decode_note(note: &[u8; NOTE_SIZE], geometry: &Geometry) -> Result<BlockState, Reason> {
    let mut input = Decoder::new(note);
    let (programs, reads) = (count(&mut input)?, count(&mut input)?);
    let (erases, reads_since_erase) = (count_32(&mut input)?, count_32(&mut input)?);
    let next_index = input.u32()?;
    let mode = decode_mode(input.u8()?, geometry)?;
    let condition = input.u8()?;
    let condition = Condition::from_index(condition).ok_or_else(|| format!("condition {condition} is unknown"))?;
    let mark = input.u8()?;
    if mark & !(Mark::FACTORY | Mark::GROWN | Mark::INVERTED) != 0 {
        return Err(format!("bad-block mark {mark:#x} is unknown"));
    }
    if input.u8()? != 0 || next_index > geometry.pages_per_block {
        return Err("a value of its entry cannot be".to_owned());
    }
    let counters = BlockCounters { erases, programs, reads, reads_since_erase };
    Ok(BlockState { counters, next_index, mode, condition, mark: Mark(mark), ..BlockState::FRESH })
}

/// The record of a block's pages; empty for a block that has no page to tell of.
pub(super) fn encode_pages(block: &BlockState, out: &mut Encoder) {
    let mut parts = 0;
    parts |= if block.store.is_some() { HAS_STORE } else { 0 };
    parts |= if block.damage.is_some() { HAS_DAMAGE } else { 0 };
    parts |= if block.history.is_some() { HAS_HISTORY } else { 0 };
    if parts == 0 {
        return;
    }
    out.u8(parts);
    let pages = block.store.as_ref().map_or(&[][..], |store| told(&store.pages));
    if block.store.is_some() {
        out.u32(pages.len() as u32);
    }
    for page in pages {
        out.u64(page.written);
        out.u64(page.programmed_ns);
        out.u32(page.reads.min(COUNT_LIMIT_32 - 1));
        out.u8(page.programs);
        out.u8(page.lasting_flags());
    }
    if let Some(damage) = &block.damage {
        out.u32(damage.len() as u32);
        for (&index, harms) in damage.iter() {
            out.u32(index);
            out.u32(harms.len() as u32);
            harms.iter().for_each(|harm| encode_harm(harm, out));
        }
    }
    if let Some(history) = &block.history {
        out.u8(history.iter().count() as u8);
        history.iter().for_each(|entry| encode_history_entry(entry, out));
    }
}

/// The pages up to the last one that is not as it was erased.
fn told(pages: &[PageState]) -> &[PageState] {
    let count = pages.iter().rposition(|page| PageState { flags: page.lasting_flags(), ..*page } != PageState::ERASED);
    &pages[..count.map_or(0, |last| last + 1)]
}

/// Gives a block the pages of its record, whose contents are at these places. `sim` is the chip that the block will be part of.
pub(super) fn decode_pages(bytes: &[u8], places: &[Place], sim: &Sim, block: &mut BlockState) -> Result<(), Reason> {
    let held =
        |block: &BlockState| block.store.iter().flat_map(|store| &store.pages).filter(|page| page.is_held()).count();
    if bytes.is_empty() {
        return if places.is_empty() { Ok(()) } else { Err("pages without a state".to_owned()) };
    }
    let mut input = Decoder::new(bytes);
    let parts = input.u8()?;
    if parts == 0 || parts & !(HAS_STORE | HAS_DAMAGE | HAS_HISTORY) != 0 {
        return Err(format!("parts {parts:#x} are unknown"));
    }
    if parts & HAS_STORE != 0 {
        block.store = Some(decode_store(&mut input, places, sim)?);
    }
    if held(block) != places.len() {
        return Err("not each page that holds bytes has a place".to_owned());
    }
    if parts & HAS_DAMAGE != 0 {
        block.damage = Some(Box::new(decode_damage(&mut input, sim)?));
    }
    if parts & HAS_HISTORY != 0 {
        block.history = Some(Box::new(decode_history(&mut input, &sim.chip.geometry)?));
    }
    input.finish()
}

fn decode_store(input: &mut Decoder<'_>, places: &[Place], sim: &Sim) -> Result<Box<Store>, Reason> {
    let count = input.u32()? as usize;
    if count > sim.chip.geometry.pages_per_block as usize || input.remaining() < count * PAGE_SIZE {
        return Err("its pages cannot be so many".to_owned());
    }
    let mut store = Store::without_data(&sim.chip);
    store.places = vec![Place::NONE; store.pages.len()].into();
    let mut places = places.iter();
    for (page, held) in store.pages[..count].iter_mut().zip(&mut store.places) {
        *page = PageState {
            written: input.u64()?,
            programmed_ns: past_ns(input, sim)?,
            reads: count_32(input)?,
            programs: input.u8()?,
            flags: input.u8()?,
        };
        if page.flags & !(PageState::SPARE_WRITTEN | PageState::HELD) != 0 {
            return Err(format!("flags {:#x} of a page are unknown", page.flags));
        }
        if page.is_held()
            && let Some(&place) = places.next()
        {
            *held = place;
            page.flags |= PageState::AWAY;
        }
    }
    Ok(Box::new(store))
}

fn encode_harm(harm: &Harm, out: &mut Encoder) {
    out.u32(harm.from);
    out.u32(harm.to);
    match harm.kind {
        HarmKind::Lost => out.u8(0),
        HarmKind::Flips(bits) => {
            out.u8(1);
            out.u16(bits);
        }
        HarmKind::Unstable { since_ns, reads } => {
            out.u8(2);
            out.u64(since_ns);
            out.u32(reads.min(COUNT_LIMIT_32 - 1));
        }
        HarmKind::Weak => out.u8(3),
    }
}

fn decode_damage(input: &mut Decoder<'_>, sim: &Sim) -> Result<BTreeMap<u32, Vec<Harm>>, Reason> {
    let page_count = input.u32()?;
    let mut damage = BTreeMap::new();
    for _ in 0..page_count {
        let (index, harm_count) = (input.u32()?, input.u32()?);
        if index >= sim.chip.geometry.pages_per_block || harm_count == 0 || damage.contains_key(&index) {
            return Err("harm to a page cannot be".to_owned());
        }
        // Grows as bytes are found, whatever the count says.
        let mut harms = Vec::new();
        for _ in 0..harm_count {
            harms.push(decode_harm(input, sim)?);
        }
        damage.insert(index, harms);
    }
    if damage.is_empty() { Err("no page is harmed".to_owned()) } else { Ok(damage) }
}

fn decode_harm(input: &mut Decoder<'_>, sim: &Sim) -> Result<Harm, Reason> {
    let (from, to) = (input.u32()?, input.u32()?);
    // Harm to a codeword may reach beyond the spare area, which is shorter.
    if from > to || to > sim.chip.geometry.column_count() + sim.chip.geometry.page_size {
        return Err(format!("columns {from} to {to} cannot be harmed"));
    }
    let kind = match input.u8()? {
        0 => HarmKind::Lost,
        1 => HarmKind::Flips(input.u16()?),
        2 => HarmKind::Unstable { since_ns: past_ns(input, sim)?, reads: count_32(input)? },
        3 => HarmKind::Weak,
        other => return Err(format!("harm {other} is unknown")),
    };
    Ok(Harm { from, to, kind })
}

fn encode_history_entry(entry: &HistoryEntry, out: &mut Encoder) {
    out.u64(entry.number);
    out.u32(entry.column);
    out.u32(entry.length);
    out.u16(entry.index);
    out.u8(entry.kind as u8);
    out.u8(entry.cause as u8);
    out.u8(encode_mode(entry.mode));
    out.u8(entry.error.map_or(0, encode_error));
}

fn decode_history(input: &mut Decoder<'_>, geometry: &Geometry) -> Result<History, Reason> {
    let entry_count = usize::from(input.u8()?);
    if entry_count > HISTORY_LENGTH {
        return Err(format!("a history of {entry_count} operations is too long"));
    }
    let mut history = History::EMPTY;
    for _ in 0..entry_count {
        let (number, column, length, index) = (input.u64()?, input.u32()?, input.u32()?, input.u16()?);
        let (kind, cause, mode, error) = (input.u8()?, input.u8()?, input.u8()?, input.u8()?);
        history.note(HistoryEntry {
            number,
            column,
            length,
            index,
            kind: OperationKind::from_index(kind).ok_or_else(|| format!("operation {kind} is unknown"))?,
            cause: Cause::from_index(cause).ok_or_else(|| format!("cause {cause} is unknown"))?,
            mode: decode_mode(mode, geometry)?,
            error: if error == 0 { None } else { Some(decode_error(error)?) },
        });
    }
    Ok(history)
}

/// The kinds of errors by their numbers, from 1; 0 is no error.
const ERRORS: [NandErrorKind; 9] = [
    NandErrorKind::Uncorrectable,
    NandErrorKind::ProgramFailed,
    NandErrorKind::EraseFailed,
    NandErrorKind::OutOfBounds,
    NandErrorKind::NotAligned,
    NandErrorKind::Unsupported,
    NandErrorKind::Bus,
    NandErrorKind::Gone,
    NandErrorKind::Other,
];

fn encode_error(error: NandErrorKind) -> u8 {
    let other = ERRORS.len() - 1;
    ERRORS.iter().position(|&known| known == error).unwrap_or(other) as u8 + 1
}

fn decode_error(number: u8) -> Result<NandErrorKind, Reason> {
    ERRORS.get(usize::from(number).wrapping_sub(1)).copied().ok_or_else(|| format!("error {number} is unknown"))
}

pub(super) fn encode_mode(mode: CellMode) -> u8 {
    match mode {
        CellMode::Slc => 0,
        CellMode::Mlc => 1,
    }
}

pub(super) fn decode_mode(number: u8, geometry: &Geometry) -> Result<CellMode, Reason> {
    match number {
        0 => Ok(CellMode::Slc),
        1 if geometry.supports(CellMode::Mlc) => Ok(CellMode::Mlc),
        _ => Err(format!("the chip has no cell mode {number}")),
    }
}

/// A count or a time that leaves room to count on.
pub(super) fn count(input: &mut Decoder<'_>) -> Result<u64, Reason> {
    let value = input.u64()?;
    if value < COUNT_LIMIT { Ok(value) } else { Err(format!("a count of {value} cannot be")) }
}

/// A time on the chip's clock that is not in the future.
fn past_ns(input: &mut Decoder<'_>, sim: &Sim) -> Result<u64, Reason> {
    let time_ns = input.u64()?;
    if time_ns <= sim.clock_ns { Ok(time_ns) } else { Err(format!("a clock of {time_ns} ns is in the future")) }
}

fn count_32(input: &mut Decoder<'_>) -> Result<u32, Reason> {
    let value = input.u32()?;
    if value < COUNT_LIMIT_32 { Ok(value) } else { Err(format!("a count of {value} cannot be")) }
}
