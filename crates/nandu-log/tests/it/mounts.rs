//! How many pages a mount reads, with cuts inside the recoveries before it.

use nandu_log::LogOptions;
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand};
use nandu_sim::{Chip, Sim};

use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// 8 GiB: 4,096 blocks of 256 pages of 8 KiB.
pub(crate) const LARGE: Chip = Chip {
    name: "large",
    geometry: Geometry {
        page_size: 8192,
        program_unit: 8192,
        spare_size: 256,
        pages_per_block: 256,
        block_count: 4096,
        bad_block_max: 80,
        ..Chip::MT29F4G01.geometry
    },
    ..Chip::MT29F4G01
};

/// Most reads of a mount. `read_back` takes up to 10 of them: one for each program and erase of a recovery, and what ends the searches for the
/// newest commit is read twice.
pub(crate) const READS_MAX: u64 = 40;

/// Reads of the log's mount alone; the volume is as after a cut again.
pub(crate) fn reads_of_a_mount(sim: &mut Sim, options: LogOptions) -> u64 {
    let mut bytes = memory(sim.geometry(), &options);
    let before = sim.counters().reads;
    crate::mounted(&mut *sim, options, &mut bytes).unwrap().abandon_log().counters().reads - before
}

/// Most reads of a mount, over chains of cuts: one in some update, the others in the recoveries after it.
fn reads_after_chains(chip: Chip, options: LogOptions, chains: u32) -> u64 {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(sim.geometry(), &options);
    drop(Toy::format(&mut sim, options, &mut bytes).unwrap());
    let mut seed = 1_u32;
    let mut draw = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    let mut most = 0;
    for _ in 0..chains {
        let mut toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
        let (puts, entries) = (draw(700), toy.len() as u32 / 2);
        for round in 0..puts {
            toy.put(draw(entries), u64::from(round)).unwrap();
        }
        let at = toy.log.nand().operation_count() + u64::from(draw(30));
        toy.log.nand_mut().cut_somehow_at(at);
        while !toy.log.nand().is_off() && toy.put(draw(entries), 7).is_ok() {}
        toy.log.abandon_log();
        sim.power_on();
        for _ in 0..draw(4) {
            sim.cut_somehow_at(sim.operation_count() + u64::from(draw(48)));
            let result = Toy::mount(&mut sim, options, &mut bytes).map(|toy| toy.len());
            if sim.is_off() {
                sim.power_on();
            } else {
                result.unwrap();
            }
            sim.clear_cuts();
        }
        most = most.max(reads_of_a_mount(&mut sim, options));
    }
    println!("{}, read_back {}: {most} reads of a mount after chains of cuts", chip.name, options.read_back);
    most
}

/// `NANDU_CHAINS` sets how many chains are tried on the chip of 1,024 blocks.
#[test]
fn a_mount_after_chains_of_cuts_reads_few_pages() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let streams = LogOptions { stream_count: Some(8), ready_max: Some(14), ..PLAIN };
    for (chip, chains, options) in [
        (Chip::TINY, 300, PLAIN),
        (Chip::TINY.with_blocks(64), 300, PLAIN),
        (Chip::TINY_MLC.with_blocks(64), 300, PLAIN),
        (Chip::W25N01GV, count, PLAIN),
        (Chip::W25N01GV, count, streams),
        (LARGE, count / 10, PLAIN),
    ] {
        for read_back in [false, true] {
            let most = reads_after_chains(chip, LogOptions { read_back, ..options }, chains);
            assert!(most <= READS_MAX, "{}: {most} reads", chip.name);
        }
    }
}

#[test]
fn each_format_makes_a_volume_with_another_id() {
    let format = |sim: &mut Sim, options| {
        let mut bytes = memory(sim.geometry(), &options);
        crate::formatted(sim, options, &mut bytes).unwrap().volume()
    };
    let mut seen = std::collections::BTreeSet::new();
    let mut sim = Sim::new(Chip::TINY);
    for _ in 0..20 {
        assert!(seen.insert(format(&mut sim, PLAIN)), "the same chip again");
    }
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
    (0..9).for_each(|value| toy.put(1, value).unwrap());
    drop(toy);
    // As after a format that was cut: nothing tells of the volume before but its pages.
    (0..4).for_each(|block| sim.erase(BlockAddr(block), CellMode::Slc).unwrap());
    assert!(seen.insert(format(&mut sim, PLAIN)), "without its anchors");
    let mut sim = Sim::new(Chip::TINY);
    sim.mark_factory_bad(BlockAddr(15));
    assert!(seen.insert(format(&mut sim, PLAIN)), "another chip, by its bad block");
    assert!(seen.insert(format(&mut Sim::new(Chip::TINY), LogOptions { salt: 1, ..PLAIN })), "by chance");
    assert_eq!(format(&mut Sim::new(Chip::TINY), LogOptions { volume: Some(7), ..PLAIN }), 7);
}
