//! Recoveries that are cut, again and again, on volumes with little room.

use nandu_dffs::{Dffs, Error, Options};
use nandu_nand::BlockAddr;
use nandu_sim::{Decay, Fault, Sim, Tear, Trigger};

use crate::lives::FEW_BLOCKS;
use crate::model::{Model, Op, apply, choose};
use crate::rig::{Chance, Everything, NEW, OPTIONS, SMALL, everything, memory, violations};

/// Cuts of recoveries in a row: more than a chip has free blocks.
const CUTS: usize = 24;

/// Tears of programs and erases that leave the same whenever they are looked at.
const STABLE: [Tear; 4] = [Tear::Before, Tear::PrefixLost, Tear::MostBitsLost, Tear::Complete];
const ANY: [Tear; 7] = [
    Tear::Before,
    Tear::PrefixLost,
    Tear::Complete,
    Tear::Unstable,
    Tear::LooksErased,
    Tear::HalfErased,
    Tear::WeaklyErased,
];

/// A volume that grew until it refused to, cut in one of the operations after that.
fn full_and_cut(mut sim: Sim, options: Options, chance: &mut Chance) -> Sim {
    let geometry = sim.chip().geometry;
    let page_size = geometry.page_size as usize;
    let mut memory = memory(&geometry, &options);
    let mut fs = Dffs::format(sim, options, &mut memory).unwrap();
    let size_max = fs.file_size_max() as usize;
    let mut model = Model::default();
    // Steps after the first refusal, until the power goes.
    let (mut is_full, mut left) = (false, 10 + chance.below(60));
    loop {
        let op = choose(&model, chance, 60, page_size);
        let shrinks = matches!(op, Op::Unlink(_) | Op::Rmdir(_) | Op::Truncate(..));
        if shrinks && !is_full {
            continue;
        }
        let is_made = model.clone().apply(&op, page_size, size_max);
        if is_full {
            left -= 1;
            if left == 0 {
                let number = fs.nand().operation_count() + chance.below(12) as u64;
                fs.nand_mut().cut_at(number, STABLE[chance.below(STABLE.len())]);
            }
        }
        let outcome = apply(&mut fs, &op);
        if left == 0 {
            sim = fs.abandon();
            break;
        }
        match outcome {
            Ok(()) => assert!(is_made && model.apply(&op, page_size, size_max)),
            Err(Error::Full | Error::TooManyDirectories) => {
                is_full = true;
                model = Model::of(&everything(&mut fs).unwrap());
            }
            Err(_) => assert!(!is_made),
        }
    }
    restart(&mut sim);
    sim
}

/// Whatever a cut left unstable is lost afterwards.
fn restart(sim: &mut Sim) {
    sim.clear_cuts();
    sim.power_off();
    sim.power_on();
    sim.advance_ns(Decay::DEFAULT.time_ns);
}

/// What a mount of a copy finds, and how many operations it took.
fn found(sim: &Sim, options: Options, place: &str) -> (Everything, u64) {
    let mut sim = sim.clone();
    let mut memory = memory(&sim.chip().geometry, &options);
    let before = sim.operation_count();
    let mut fs = Dffs::mount(&mut sim, options, &mut memory).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert!(!fs.is_read_only(), "{place}: no room");
    let count = fs.nand().operation_count() - before;
    let found = everything(&mut fs).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(violations(&mut fs), Vec::<String>::new(), "{place}");
    (found, count)
}

/// However many recoveries are cut, one after the other, late in each or anywhere, the next mounts and finds the same.
#[test]
fn any_number_of_cut_recoveries_leaves_room_for_the_next() {
    let ways = [(SMALL, OPTIONS), (FEW_BLOCKS.chip, FEW_BLOCKS.options)];
    let mut worst = 0;
    for seed in 0..60 {
        let (chip, options) = ways[seed % 2];
        let mut chance = Chance::new(seed as u64);
        let mut sim = full_and_cut(Sim::with_seed(chip, seed as u64), options, &mut chance);
        let (first, _) = found(&sim, options, &format!("seed {seed}"));
        for cut in 0..CUTS {
            let place = format!("seed {seed}, recovery {cut}");
            let (again, count) = found(&sim, options, &place);
            assert_eq!(again, first, "{place}");
            worst = worst.max(count);
            if count == 0 {
                break;
            }
            let back = if seed % 3 == 0 { chance.below(count as usize) } else { chance.below(count.min(12) as usize) };
            sim.cut_at(sim.operation_count() + count - 1 - back as u64, ANY[chance.below(ANY.len())]);
            let mut memory = memory(&chip.geometry, &options);
            let _ = Dffs::mount(&mut sim, options, &mut memory);
            restart(&mut sim);
        }
    }
    assert!(worst > 6, "recoveries had nothing to do");
}

/// Where no block can be erased any more, what was acknowledged can still be read, again and again.
#[test]
fn a_recovery_without_room_mounts_to_be_read() {
    for seed in 0..8 {
        let mut sim = full_and_cut(Sim::with_seed(SMALL, seed), OPTIONS, &mut Chance::new(seed));
        let (first, _) = found(&sim, OPTIONS, &format!("seed {seed}"));
        for block in 6..SMALL.geometry.block_count {
            sim.inject(Fault::EraseFails, Trigger::Block(BlockAddr(block)));
        }
        let mut memory = memory(&SMALL.geometry, &OPTIONS);
        for _ in 0..3 {
            let mut fs = Dffs::mount(sim, OPTIONS, &mut memory).unwrap();
            assert!(fs.is_read_only());
            let now = everything(&mut fs).unwrap();
            assert!(first.iter().all(|(path, content)| now.get(path) == Some(content)), "seed {seed}");
            assert_eq!(fs.create(fs.root(), b"more", NEW), Err(Error::ReadOnly));
            sim = fs.unmount().unwrap();
        }
    }
}
