//! What a chip is and does apart from its blocks, as bytes.

use std::collections::BTreeMap;

use nandu_nand::{BlockAddr, Cause, Geometry, PageAddr};

use super::block::count;
use super::codec::{Decoder, Encoder, Reason};
use super::parameters;
use crate::schedule::{Rule, Schedule};
use crate::{Address, Aging, Counters, CutRecord, Decay, Fault, OperationKind, Sim, Tear, Trigger};

/// Stands for "no page"; never the number of a page.
const NO_PAGE: u32 = u32::MAX;

/// Stands for a tear that is left to the seed.
const TEAR_BY_SEED: u8 = u8::MAX;

const IS_OFF: u8 = 1;
const HAS_LAST_CUT: u8 = 2;

/// The state of a chip that passed [`parameters::check`].
pub(super) fn encode(sim: &Sim) -> Vec<u8> {
    let mut out = Encoder::default();
    parameters::encode(&sim.chip, &mut out);
    out.u64(sim.seed);
    out.u64(sim.clock_ns);
    out.u64(sim.operations);
    out.u32(sim.register.map_or(NO_PAGE, |page| page.0));
    out.u8(sim.cause as u8);
    let is_off = if sim.off { IS_OFF } else { 0 };
    let has_last_cut = if sim.last_cut.is_some() { HAS_LAST_CUT } else { 0 };
    out.u8(is_off | has_last_cut);
    out.u16(Cause::COUNT as u16);
    for (_, counters) in sim.ledger.iter() {
        encode_counters(counters, &mut out);
    }
    encode_faults(sim, &mut out);
    out.into_bytes()
}

fn encode_faults(sim: &Sim, out: &mut Encoder) {
    let aging = &sim.aging;
    out.f64(aging.wear_load);
    out.f64(aging.retention_load_per_year);
    out.f64(aging.failure);
    out.u32(aging.disturb_reads_slc);
    out.u32(aging.disturb_reads_mlc);
    out.u32(sim.decay.reads);
    out.u64(sim.decay.time_ns);
    if let Some(cut) = &sim.last_cut {
        out.u64(cut.operation);
        let (is_block, number) = match cut.address {
            Address::Page(page) => (0, page.0),
            Address::Block(block) => (1, block.0),
        };
        out.u32(number);
        out.u8(is_block);
        out.u8(cut.kind as u8);
        out.u8(cut.tear as u8);
    }
    out.u32(sim.cuts.len() as u32);
    for (&operation, &tear) in &sim.cuts {
        out.u64(operation);
        encode_tear(tear, out);
    }
    out.u64(sim.schedule.next_id);
    out.u32(sim.schedule.rules.len() as u32);
    for rule in &sim.schedule.rules {
        out.u64(rule.id);
        encode_fault(rule.fault, out);
        encode_trigger(rule.trigger, out);
    }
}

/// A chip with the state of an image, its blocks still as they left the factory.
pub(super) fn decode(bytes: &[u8]) -> Result<Sim, Reason> {
    let mut input = Decoder::new(bytes);
    let chip = parameters::decode(&mut input)?;
    let geometry = chip.geometry;
    let mut sim = Sim::with_seed(chip, input.u64()?);
    sim.clock_ns = count(&mut input)?;
    sim.operations = count(&mut input)?;
    sim.register = decode_page(input.u32()?, &geometry)?;
    let cause = input.u8()?;
    sim.cause = Cause::from_index(cause).ok_or_else(|| format!("cause {cause} is unknown"))?;
    let flags = input.u8()?;
    if flags & !(IS_OFF | HAS_LAST_CUT) != 0 {
        return Err(format!("flags {flags:#x} are unknown"));
    }
    sim.off = flags & IS_OFF != 0;
    let cause_count = usize::from(input.u16()?);
    if cause_count > Cause::COUNT {
        return Err(format!("a ledger of {cause_count} causes is unknown"));
    }
    for entry in sim.ledger.entries.iter_mut().take(cause_count) {
        *entry = decode_counters(&mut input)?;
    }
    sim.counters = sim.ledger.total();
    sim.aging = decode_aging(&mut input)?;
    sim.decay = Decay { reads: input.u32()?, time_ns: input.u64()? };
    if flags & HAS_LAST_CUT != 0 {
        sim.last_cut = Some(decode_last_cut(&mut input)?);
    }
    sim.cuts = decode_cuts(&mut input)?;
    sim.schedule = decode_schedule(&mut input, &geometry)?;
    input.finish()?;
    sim.settle();
    Ok(sim)
}

fn encode_counters(counters: &Counters, out: &mut Encoder) {
    for value in [
        counters.reads,
        counters.programs,
        counters.partial_programs,
        counters.erases,
        counters.copies,
        counters.mark_checks,
        counters.marks,
        counters.bytes_out,
        counters.bytes_in,
        counters.busy_ns,
    ] {
        out.u64(value);
    }
}

fn decode_counters(input: &mut Decoder<'_>) -> Result<Counters, Reason> {
    // The sum of all causes must not overflow either, so that each may count to a share of what a chip may.
    let mut share = || match count(input)? {
        value if value >> 56 == 0 => Ok(value),
        value => Err(format!("a count of {value} cannot be")),
    };
    Ok(Counters {
        reads: share()?,
        programs: share()?,
        partial_programs: share()?,
        erases: share()?,
        copies: share()?,
        mark_checks: share()?,
        marks: share()?,
        bytes_out: share()?,
        bytes_in: share()?,
        busy_ns: share()?,
    })
}

fn decode_aging(input: &mut Decoder<'_>) -> Result<Aging, Reason> {
    let mut load = || match input.f64()? {
        value if value.is_finite() && value >= 0.0 => Ok(value),
        value => Err(format!("an aging of {value} cannot be")),
    };
    let (wear_load, retention_load_per_year, failure) = (load()?, load()?, load()?);
    let (disturb_reads_slc, disturb_reads_mlc) = (input.u32()?, input.u32()?);
    Ok(Aging { wear_load, retention_load_per_year, disturb_reads_slc, disturb_reads_mlc, failure })
}

fn decode_last_cut(input: &mut Decoder<'_>) -> Result<CutRecord, Reason> {
    let (operation, number) = (input.u64()?, input.u32()?);
    let address = match input.u8()? {
        0 => Address::Page(PageAddr(number)),
        1 => Address::Block(BlockAddr(number)),
        other => return Err(format!("address {other} is unknown")),
    };
    let (kind, tear) = (input.u8()?, input.u8()?);
    let kind = OperationKind::from_index(kind).ok_or_else(|| format!("operation {kind} is unknown"))?;
    let tear = Tear::from_index(tear).ok_or_else(|| format!("tear {tear} is unknown"))?;
    Ok(CutRecord { operation, kind, address, tear })
}

fn decode_cuts(input: &mut Decoder<'_>) -> Result<BTreeMap<u64, Option<Tear>>, Reason> {
    let mut cuts = BTreeMap::new();
    for _ in 0..input.u32()? {
        let operation = input.u64()?;
        cuts.insert(operation, decode_tear(input)?);
    }
    Ok(cuts)
}

fn decode_schedule(input: &mut Decoder<'_>, geometry: &Geometry) -> Result<Schedule, Reason> {
    let next_id = count(input)?;
    let mut rules = Vec::new();
    for _ in 0..input.u32()? {
        let id = input.u64()?;
        rules.push(Rule { id, fault: decode_fault(input, geometry)?, trigger: decode_trigger(input)? });
    }
    Ok(Schedule { rules, next_id })
}

fn encode_tear(tear: Option<Tear>, out: &mut Encoder) {
    out.u8(tear.map_or(TEAR_BY_SEED, |tear| tear as u8));
}

fn decode_tear(input: &mut Decoder<'_>) -> Result<Option<Tear>, Reason> {
    match input.u8()? {
        TEAR_BY_SEED => Ok(None),
        number => Tear::from_index(number).map(Some).ok_or_else(|| format!("tear {number} is unknown")),
    }
}

fn decode_page(number: u32, geometry: &Geometry) -> Result<Option<PageAddr>, Reason> {
    match PageAddr(number) {
        PageAddr(NO_PAGE) => Ok(None),
        page if geometry.contains_page(page) => Ok(Some(page)),
        page => Err(format!("page {page} is outside the chip")),
    }
}

/// A fault is its number and an argument: bits, a page or a tear.
fn encode_fault(fault: Fault, out: &mut Encoder) {
    let (number, argument) = match fault {
        Fault::Cut(tear) => (0, u32::from(tear.map_or(TEAR_BY_SEED, |tear| tear as u8))),
        Fault::Unstable => (1, 0),
        Fault::ErasedZeros(bits) => (2, u32::from(bits)),
        Fault::BitFlips(bits) => (3, u32::from(bits)),
        Fault::Uncorrectable => (4, 0),
        Fault::ReadDisturb(bits) => (5, u32::from(bits)),
        Fault::PartialDisturb(bits) => (6, u32::from(bits)),
        Fault::ProgramFails => (7, 0),
        Fault::EraseFails => (8, 0),
        Fault::MarkInverted => (9, 0),
        Fault::NothingHappens => (10, 0),
        Fault::Misdirected(page) => (11, page.map_or(NO_PAGE, |page| page.0)),
        Fault::Stale => (12, 0),
        Fault::Bus(tear) => (13, u32::from(tear as u8)),
    };
    out.u8(number);
    out.u32(argument);
}

fn decode_fault(input: &mut Decoder<'_>, geometry: &Geometry) -> Result<Fault, Reason> {
    let (number, argument) = (input.u8()?, input.u32()?);
    let bits = u16::try_from(argument).map_err(|_| format!("a fault of {argument} bits cannot be"));
    let tear = u8::try_from(argument).ok().and_then(Tear::from_index);
    let known_tear = tear.ok_or_else(|| format!("tear {argument} is unknown"));
    Ok(match number {
        0 if argument == u32::from(TEAR_BY_SEED) => Fault::Cut(None),
        0 => Fault::Cut(Some(known_tear?)),
        1 => Fault::Unstable,
        2 => Fault::ErasedZeros(bits?),
        3 => Fault::BitFlips(bits?),
        4 => Fault::Uncorrectable,
        5 => Fault::ReadDisturb(bits?),
        6 => Fault::PartialDisturb(bits?),
        7 => Fault::ProgramFails,
        8 => Fault::EraseFails,
        9 => Fault::MarkInverted,
        10 => Fault::NothingHappens,
        11 => Fault::Misdirected(decode_page(argument, geometry)?),
        12 => Fault::Stale,
        13 => Fault::Bus(known_tear?),
        other => return Err(format!("fault {other} is unknown")),
    })
}

/// A trigger is its number and an argument: an operation, a count, a probability or an address.
fn encode_trigger(trigger: Trigger, out: &mut Encoder) {
    let (number, argument) = match trigger {
        Trigger::Operation(operation) => (0, operation),
        Trigger::Nth(left) => (1, left),
        Trigger::Probability(probability) => (2, probability.to_bits()),
        Trigger::Page(page) => (3, u64::from(page.0)),
        Trigger::Block(block) => (4, u64::from(block.0)),
    };
    out.u8(number);
    out.u64(argument);
}

fn decode_trigger(input: &mut Decoder<'_>) -> Result<Trigger, Reason> {
    let (number, argument) = (input.u8()?, input.u64()?);
    let address = u32::try_from(argument).map_err(|_| format!("address {argument} cannot be"));
    Ok(match number {
        0 => Trigger::Operation(argument),
        1 => Trigger::Nth(argument),
        2 => Trigger::Probability(f64::from_bits(argument)),
        3 => Trigger::Page(PageAddr(address?)),
        4 => Trigger::Block(BlockAddr(address?)),
        other => return Err(format!("trigger {other} is unknown")),
    })
}
