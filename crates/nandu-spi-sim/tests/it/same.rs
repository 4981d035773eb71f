//! The wire is transparent: driver, wire and chip together do what the chip alone does, with all faults and cuts.

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr};
use nandu_sim::{Decay, Fault, OperationKind, Sim, Tear, Trigger};
use nandu_spi::{Part, SpiNand};
use nandu_spi_sim::{SpiSim, chip};

use crate::small::part;

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(limit)) as u32
    }
}

/// What a block is to its user.
#[derive(Clone, Copy, Default)]
struct Block {
    is_erased: bool,
    next: u32,
}

/// What an operation came to. Without power the driver speaks of its bus.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The bytes of the main area, and the most bits that may have been corrected.
    Read(Vec<u8>, u16),
    Failed(NandErrorKind),
}

/// What one asks of both chips.
#[derive(Clone, Debug)]
enum Step {
    Erase(BlockAddr),
    /// Without a tag, which stands elsewhere in the part and would be torn in another way.
    Program(PageAddr, Vec<u8>),
    Read(PageAddr),
}

fn run<N: Nand>(chip: &mut N, step: &Step) -> Outcome {
    let geometry = *chip.geometry();
    let result = match step {
        Step::Erase(block) => chip.erase(*block, CellMode::Slc),
        Step::Program(page, data) => chip.program(*page, 0, data),
        Step::Read(page) => {
            let mut bytes = vec![0; geometry.page_size as usize];
            return match chip.read(*page, 0, &mut bytes) {
                Ok(status) => Outcome::Read(bytes, status.corrected_bits()),
                Err(error) => failed(error.kind()),
            };
        }
    };
    result.map_or_else(|error| failed(error.kind()), |()| Outcome::Done)
}

fn failed(kind: NandErrorKind) -> Outcome {
    Outcome::Failed(if kind == NandErrorKind::Gone { NandErrorKind::Bus } else { kind })
}

/// What a part says of so many bits, at its worst.
fn told(part: &Part, bits: u16) -> u16 {
    let range = |low: u16, high: u16| if (low..=high).contains(&bits) { high } else { 0 };
    match part.maker {
        _ if bits == 0 => 0,
        "Winbond" => u16::from(part.ecc_bits),
        "Micron" => range(1, 3) + range(4, 6) + range(7, 8),
        _ => bits,
    }
}

/// Lives a life on both; returns how many operations failed and how many cuts there were.
fn live(part: &'static Part, seed: u64) -> (u32, u32) {
    let fresh = || {
        let mut sim = Sim::with_seed(chip(part), seed);
        // Times differ, since the wire has its own.
        sim.set_decay(Decay { reads: 6, time_ns: u64::MAX / 2 });
        sim
    };
    let (mut plain, mut wired) = (fresh(), fresh());
    let geometry = plain.chip().geometry;
    let mut chance = Chance(seed);
    let (mut failures, mut cuts) = (0, 0);
    let mut blocks = vec![Block::default(); geometry.block_count as usize];
    while cuts < 6 {
        let cut = plain.operation_count() + 5 + u64::from(chance.below(60));
        let tears: Vec<Tear> = Tear::all_for(OperationKind::Program, &geometry).collect();
        let tear = tears[chance.below(tears.len() as u32) as usize];
        for sim in [&mut plain, &mut wired] {
            sim.power_on();
            sim.cut_at(cut, tear);
        }
        let mut spi = SpiNand::open_as(SpiSim::new(part, &mut wired), part).unwrap();
        loop {
            let number = chance.below(geometry.block_count) as usize;
            let (block, state) = (BlockAddr(number as u32), &mut blocks[number]);
            let fault = match chance.below(40) {
                0 => Some(Fault::BitFlips(1 + chance.below(u32::from(part.ecc_bits) + 2) as u16)),
                1 => Some(Fault::Uncorrectable),
                2 => Some(Fault::Unstable),
                3 => Some(Fault::ReadDisturb(1)),
                4 => Some(Fault::ProgramFails),
                5 => Some(Fault::EraseFails),
                6 => Some(Fault::NothingHappens),
                7 => Some(Fault::Misdirected(None)),
                8 => Some(Fault::Stale),
                9 => Some(Fault::ErasedZeros(1)),
                10 => Some(Fault::Bus(Tear::SomeBits)),
                _ => None,
            };
            let step = match chance.below(8) {
                0 => Step::Erase(block),
                1..4 if state.is_erased && state.next < geometry.pages_per_block => {
                    let byte = chance.below(255) as u8;
                    let page = geometry.page_at(block, state.next);
                    let data = (0..geometry.page_size).map(|at| byte ^ at as u8).collect();
                    Step::Program(page, data)
                }
                _ => Step::Read(geometry.page_at(block, chance.below(geometry.pages_per_block))),
            };
            let mut spi_sim = spi.release();
            for sim in [&mut plain, spi_sim.sim_mut()] {
                fault.into_iter().for_each(|fault| {
                    sim.inject(fault, Trigger::Operation(sim.operation_count()));
                });
            }
            spi = SpiNand::open_as(spi_sim, part).unwrap();
            let (expected, found) = (run(&mut plain, &step), run(&mut spi, &step));
            let expected = match expected {
                Outcome::Read(data, bits) => Outcome::Read(data, told(part, bits)),
                other => other,
            };
            assert!(expected == found, "{}, life {seed}, {fault:?}: {step:?}\n{expected:?}\n{found:?}", part.name);
            failures += u32::from(matches!(found, Outcome::Failed(_)));
            match (&step, found) {
                (Step::Erase(_), outcome) => *state = Block { is_erased: outcome == Outcome::Done, next: 0 },
                (Step::Program(..), _) => state.next += 1,
                _ => {}
            }
            if plain.is_off() {
                // A torn block is erased before it is used again.
                state.is_erased = false;
                break;
            }
        }
        drop(spi);
        assert!(wired.is_off() && plain.last_cut() == wired.last_cut(), "{}, life {seed}", part.name);
        assert_eq!(plain.operation_count(), wired.operation_count());
        cuts += 1;
    }
    (failures, cuts)
}

#[test]
fn lives_on_the_chip_and_over_the_wire_are_the_same() {
    for name in ["W25N01GV", "GD5F1GQ5UE", "MT29F1G01ABAFD", "MX35LF1GE4AB"] {
        let part: &'static Part = Box::leak(Box::new(Part { pages_per_block: 8, ..part(name, 8) }));
        let failures: u32 = (0..40).map(|seed| live(part, seed).0).sum();
        assert!(failures > 400, "{name}: {failures}");
    }
}
