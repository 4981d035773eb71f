//! What things cost on flash, exactly.

use nandu_log::{Append, Growth, INSTALMENT_MAX, Log, LogOptions, PageKind, Placement};
use nandu_nand::{Cause, Geometry, Nand};
use nandu_sim::{Chip, Counters, Sim};

use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// 8 GiB: 4,096 blocks of 256 pages of 8 KiB.
const LARGE: Chip = Chip {
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

#[test]
fn an_append_is_one_program() {
    let mut sim = Sim::new(Chip::W25N01GV);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut log = Log::format(&mut sim, PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; 2048];
    for _ in 0..1000 {
        let mut budget = log.instalment(1);
        assert!(log.next_work(&mut budget).unwrap().is_none());
        assert!(log.reserve(1, Growth::Grows).unwrap());
        let before = *log.nand().counters();
        let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: true, cause: Cause::Host };
        let at = log.append(&mut page, append).unwrap();
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.programs, cost.reads, cost.erases, cost.bytes_in), (1, 0, 0, 2048));
        let before = *log.nand().counters();
        log.read(at, &mut page).unwrap();
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.programs, cost.reads, cost.erases), (0, 1, 0));
    }
    assert_eq!(log.nand().ledger().of(Cause::Host).programs, 1000);
    assert_eq!(log.stats().programs_for(Cause::Host), 1000);
}

fn cost_of(log: &mut Log<'_, &mut Sim>, work: impl FnOnce(&mut Log<'_, &mut Sim>)) -> Counters {
    let before = *log.nand().counters();
    work(log);
    log.nand().counters().since(&before)
}

#[test]
fn a_checkpoint_is_one_program_where_the_table_fits_the_anchor_and_one_more_for_each_changed_page_of_it() {
    // The first one says that a format erased two blocks.
    for (chip, first, next) in [(Chip::W25N01GV.with_blocks(256), 1, 1), (Chip::W25N01GV, 2, 1), (LARGE, 2, 1)] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(sim.geometry(), &PLAIN);
        let mut log = Log::format(&mut sim, PLAIN, &mut bytes).unwrap();
        let cost = cost_of(&mut log, |log| log.checkpoint().unwrap());
        assert_eq!((cost.programs, cost.erases), (first, 0), "{}", chip.name);
        let cost = cost_of(&mut log, |log| log.checkpoint().unwrap());
        assert_eq!((cost.programs, cost.reads, cost.erases), (next, 1, 0), "{}", chip.name);
    }
}

/// Most reads that a mount took, clean and after a cut, over many states of a volume.
fn mount_reads(chip: Chip, rounds: u32) -> (u64, u64) {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    drop(Toy::format(&mut sim, PLAIN, &mut bytes).unwrap());
    let (mut clean_max, mut cut_max) = (0, 0);
    let mut seed = 1_u32;
    for round in 0..rounds {
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        for _ in 0..round * 7 % 311 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = (seed >> 16) % (toy.len() as u32 * 3 / 4);
            toy.put(id, u64::from(seed)).unwrap();
        }
        let mut cut: Sim = Sim::clone(toy.log.nand());
        let mut clean = toy.unmount().unwrap().clone();
        let reads = |chip: &mut Sim| {
            let mut bytes = memory(chip.geometry(), &PLAIN);
            let before = chip.counters().reads;
            Log::mount(&mut *chip, PLAIN, &mut bytes).unwrap().abandon().counters().reads - before
        };
        clean_max = clean_max.max(reads(&mut clean));
        cut_max = cut_max.max(reads(&mut cut));
    }
    (clean_max, cut_max)
}

#[test]
fn a_mount_reads_at_most_forty_pages_whatever_the_size_of_the_chip() {
    for (chip, rounds) in [(Chip::TINY, 60), (Chip::W25N01GV, 60), (LARGE, 16)] {
        let (clean, cut) = mount_reads(chip, rounds);
        println!("{}: {clean} reads clean, {cut} after a cut", chip.name);
        assert!(clean <= 40 && cut <= 40, "{}: {clean} clean, {cut} after a cut", chip.name);
    }
}

#[test]
fn an_instalment_is_bounded() {
    let chip = Chip::W25N01GV.with_blocks(32);
    let mut sim = Sim::new(chip);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
    let mut worst = 0;
    let count = toy.len() as u32;
    for round in 0..20_000_u32 {
        let before = *toy.log.nand().counters();
        // Scattered by chance, so that full blocks keep some live pages.
        let draw = (round ^ round >> 7).wrapping_mul(2_654_435_761);
        toy.put((draw ^ draw >> 15).wrapping_mul(2_246_822_519) % count, u64::from(round)).unwrap();
        let cost = toy.log.nand().counters().since(&before);
        worst = worst.max(cost.programs);
        // Its own program, the moves, and a checkpoint.
        assert!(cost.programs <= u64::from(1 + INSTALMENT_MAX + 1) && cost.erases <= 2, "round {round}: {cost:?}");
    }
    let stats = toy.log.stats();
    assert!(stats.instalment_max <= INSTALMENT_MAX + 1, "{stats:?}");
    assert!(stats.examinations > 1000, "the chip is too empty to show anything: {stats:?}");
}
