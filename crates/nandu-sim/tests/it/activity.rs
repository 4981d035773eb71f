//! Random things to do to a chip, kept legal.

use nandu_nand::{BlockAddr, Cause, CellMode, CopyRule, Geometry, Nand, PageAddr, Pairing};
use nandu_sim::{Aging, Chip, Condition, Decay, Fault, Sim, Tear, Trigger};
use proptest::prelude::*;

/// Something to do to a chip. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Erase(u32, bool),
    Program(u32, u8),
    ProgramPart(u32, u8),
    Read(u32),
    Copy(u32, u32),
    CheckBad(u32),
    MarkBad(u32),
    Cut(u8, u64),
    Inject(u8, u8, u32),
    Advance(u64),
    Attribute(u8),
    Settings(u32),
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<u32>(), any::<bool>()).prop_map(|(block, mlc)| Step::Erase(block, mlc)),
        8 => (any::<u32>(), any::<u8>()).prop_map(|(block, fill)| Step::Program(block, fill)),
        2 => (any::<u32>(), any::<u8>()).prop_map(|(block, fill)| Step::ProgramPart(block, fill)),
        4 => any::<u32>().prop_map(Step::Read),
        1 => (any::<u32>(), any::<u32>()).prop_map(|(from, to)| Step::Copy(from, to)),
        1 => any::<u32>().prop_map(Step::CheckBad),
        1 => any::<u32>().prop_map(Step::MarkBad),
        2 => (any::<u8>(), 0..4u64).prop_map(|(tear, wait)| Step::Cut(tear, wait)),
        2 => (any::<u8>(), any::<u8>(), any::<u32>()).prop_map(|(fault, when, at)| Step::Inject(fault, when, at)),
        1 => (0..1u64 << 40).prop_map(Step::Advance),
        1 => any::<u8>().prop_map(Step::Attribute),
        1 => any::<u32>().prop_map(Step::Settings),
    ];
    proptest::collection::vec(step, 0..40)
}

impl Step {
    /// Whether it is something that is asked of the chip, not something that is done to it.
    pub(crate) fn is_operation(&self) -> bool {
        !matches!(self, Step::Cut(..) | Step::Inject(..) | Step::Settings(_))
    }
}

/// Does a step as far as it is legal. The caller's knowledge, which pages it programmed, is in `next`.
pub(crate) fn carry_out(sim: &mut Sim, next: &mut [u32], step: &Step) {
    let geometry = *sim.geometry();
    let block_of = |number: u32| BlockAddr(number % geometry.block_count);
    match *step {
        Step::Erase(block, mlc) => {
            let block = block_of(block);
            let mode = if mlc && geometry.supports(CellMode::Mlc) { CellMode::Mlc } else { CellMode::Slc };
            if !sim.block_state(block).reads_bad {
                // After an erase that did not return, nothing may be programmed.
                next[block.0 as usize] = if sim.erase(block, mode).is_ok() { 0 } else { u32::MAX };
            }
        }
        Step::Program(block, fill) => {
            if let Some(page) = next_page(sim, next, block_of(block)) {
                let _ = sim.program(page, 0, &vec![fill; geometry.page_size as usize]);
            }
        }
        Step::ProgramPart(block, fill) => {
            if let Some(page) = next_page(sim, next, block_of(block)) {
                let _ = sim.program(page, 0, &vec![fill; geometry.program_unit as usize]);
            }
        }
        Step::Read(page) => {
            let _ = sim.read(PageAddr(page % geometry.page_count()), 0, &mut [0; 64]);
        }
        Step::Copy(from, block) => {
            let from = PageAddr(from % geometry.page_count());
            if sim.chip().geometry.may_copy(geometry.block_of(from), block_of(block))
                && let Some(to) = next_page(sim, next, block_of(block))
            {
                let _ = sim.copy(from, to);
            }
        }
        Step::CheckBad(block) => {
            let _ = sim.is_bad(block_of(block));
        }
        Step::MarkBad(block) => {
            let _ = sim.mark_bad(block_of(block));
        }
        Step::Cut(tear, wait) => match Tear::from_index(tear) {
            Some(tear) => sim.cut_at(sim.operation_count() + wait, tear),
            None => sim.cut_somehow_at(sim.operation_count() + wait),
        },
        Step::Inject(fault, when, at) => {
            sim.inject(fault_of(fault, at, &geometry), trigger_of(when, at, sim.operation_count()));
        }
        Step::Advance(duration_ns) => sim.advance_ns(duration_ns),
        Step::Attribute(cause) => {
            sim.attribute(Cause::from_index(cause).unwrap_or(Cause::Host));
        }
        Step::Settings(value) => {
            sim.set_aging(Aging { wear_load: f64::from(value % 8), failure: 0.5, ..Aging::typical() });
            sim.set_decay(Decay { reads: value % 5, time_ns: 1 << 30 });
        }
    }
    if sim.is_off() {
        sim.power_on();
    }
}

fn fault_of(number: u8, at: u32, geometry: &Geometry) -> Fault {
    let bits = (at % 20) as u16;
    match number % 14 {
        0 => Fault::Cut(Tear::from_index(at as u8)),
        1 => Fault::Unstable,
        2 => Fault::ErasedZeros(bits),
        3 => Fault::BitFlips(bits),
        4 => Fault::Uncorrectable,
        5 => Fault::ReadDisturb(bits),
        6 => Fault::PartialDisturb(bits),
        7 => Fault::ProgramFails,
        8 => Fault::EraseFails,
        9 => Fault::MarkInverted,
        10 => Fault::NothingHappens,
        11 => Fault::Misdirected(at.is_multiple_of(2).then_some(PageAddr(at % geometry.page_count()))),
        12 => Fault::Stale,
        _ => Fault::Bus(Tear::from_index(at as u8 % 17).unwrap()),
    }
}

fn trigger_of(number: u8, at: u32, now: u64) -> Trigger {
    match number % 5 {
        0 => Trigger::Operation(now + u64::from(at % 8)),
        1 => Trigger::Nth(u64::from(at % 4)),
        2 => Trigger::Probability(0.2),
        3 => Trigger::Page(PageAddr(at % 64)),
        _ => Trigger::Block(BlockAddr(at % 4)),
    }
}

/// The page of a block that may be programmed next, if any may.
fn next_page(sim: &Sim, next: &mut [u32], block: BlockAddr) -> Option<PageAddr> {
    let geometry = sim.geometry();
    let state = sim.block_state(block);
    let erased = matches!(state.condition, Condition::Erased | Condition::WeaklyErased);
    let index = geometry.nth_in_mode(state.mode, next[block.0 as usize])?;
    if !erased || state.reads_bad {
        return None;
    }
    next[block.0 as usize] += 1;
    Some(geometry.page_at(block, index))
}

static UNUSUAL: [(u16, u16); 4] = [(0, 3), (1, 4), (2, 6), (5, 7)];

pub(crate) fn chips() -> impl Strategy<Value = Chip> {
    let table = Geometry { pairing: Pairing::Table(&UNUSUAL), ..Chip::TINY_MLC.geometry };
    let planes = Geometry { plane_count: 2, die_count: 2, copies: CopyRule::Plane, ..Chip::TINY.geometry };
    proptest::sample::select(vec![
        Chip::TINY,
        Chip::TINY_MLC,
        Chip { name: "unusual", source: "a test", geometry: table, ..Chip::TINY_MLC },
        Chip::W25N01GV.with_blocks(4),
        Chip::GD5F2GQ5.with_blocks(4),
        Chip { name: "planes", geometry: planes, ..Chip::TINY },
        Chip::PAPER_GRR.with_blocks(3),
    ])
}
