//! What operations cost, exactly, and what a single one costs at worst.

use nandu_sim::{Chip, Counters, Sim};
use nandu_tree::{Edit, FixedCells, Options};

use crate::bench::{Bench, chance};

/// Reads, programs and erases.
type Cost = (u64, u64, u64);

/// What an operation is called, what it costs, and how it is done.
type Operation = (&'static str, Cost, fn(&mut Bench<FixedCells<4, 8>>));

/// Reads, programs and erases of something.
fn spent(bench: &mut Bench<FixedCells<4, 8>>, work: impl FnOnce(&mut Bench<FixedCells<4, 8>>)) -> Cost {
    let before: Counters = *bench.engine().log().nand().counters();
    work(bench);
    let after = bench.engine().log().nand().counters().since(&before);
    (after.reads, after.programs, after.erases)
}

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

#[test]
fn single_operations_cost_what_they_did() {
    let mut bench = Bench::new(Sim::new(Chip::W25N01GV), FixedCells::<4, 8>, Options::DEFAULT);
    for number in 0..20_000_u32 {
        bench.engine().put(&key(number), &[7; 8]).unwrap();
    }
    assert_eq!(bench.engine().height(), 3);
    let operations: [Operation; 6] = [
        ("get", (1, 0, 0), |bench| assert!(bench.engine().get(&key(777)).unwrap().is_some())),
        ("put again", (1, 1, 0), |bench| assert!(bench.engine().put(&key(888), &[1; 8]).unwrap())),
        ("put there once more", (0, 1, 0), |bench| assert!(bench.engine().put(&key(888), &[2; 8]).unwrap())),
        ("delete", (1, 1, 0), |bench| assert!(bench.engine().delete(&key(999)).unwrap())),
        ("delete what is not there", (1, 0, 0), |bench| assert!(!bench.engine().delete(&key(1_000_000)).unwrap())),
        ("batch of three leaves", (6, 3, 0), |bench| {
            let mut keys = [key(1), key(2), key(3)];
            keys.sort();
            let edits = keys.each_ref().map(|key| Edit { key: &key[..], value: Some(&[3; 8]) });
            bench.engine().batch(&edits).unwrap();
        }),
    ];
    for (name, expected, work) in operations {
        assert_eq!(spent(&mut bench, work), expected, "reads, programs and erases of: {name}");
    }
}

#[test]
fn lookups_read_a_page_where_inner_nodes_are_kept() {
    let mut bench = Bench::new(Sim::new(Chip::W25N01GV), FixedCells::<4, 8>, Options::DEFAULT);
    for number in 0..40_000_u32 {
        bench.engine().put(&key(number), &[7; 8]).unwrap();
    }
    let (reads, ..) = spent(&mut bench, |bench| {
        for number in 0..10_000 {
            assert!(bench.engine().get(&key(chance(number, 5) % 40_000)).unwrap().is_some());
        }
    });
    println!("{reads} reads in 10,000 lookups");
    assert!(reads <= 11_000, "{reads}");
}

/// The most that one call of each kind programmed and erased, in lives on chips that are nearly full. The aim is six programs: its page and five moves, but
/// a move may open a block, and then a checkpoint of two pages comes with it. With blocks of eight pages it is more.
#[test]
fn a_put_or_a_delete_programs_eight_pages_at_worst() {
    let mut programs = (0, 0);
    for (chip, entries) in [
        (Chip::TINY.with_blocks(24), 900_u32),
        (Chip::TINY.with_blocks(40), 2200),
        (Chip::W25N01GV.with_blocks(16), 30_000),
        (Chip::W25N01GV.with_blocks(40), 160_000),
    ] {
        let mut bench = Bench::new(Sim::new(chip), FixedCells::<4, 8>, Options::DEFAULT);
        let (mut refused, mut worst) = (0, [(0, 0); 2]);
        for count in 0..3 * entries {
            let at = key(chance(count, 1) % entries);
            let kind = usize::from(chance(count, 2).is_multiple_of(4));
            let (_, programmed, erased) = spent(&mut bench, |bench| match kind {
                0 => refused += u32::from(bench.engine().put(&at, &[count as u8; 8]).is_err()),
                _ => drop(bench.engine().delete(&at).unwrap()),
            });
            worst[kind] = (programmed.max(worst[kind].0), erased.max(worst[kind].1));
            programs = (programs.0 + 1, programs.1 + programmed);
        }
        println!(
            "{worst:?} programs and erases of a put and of a delete at worst, {refused} refused, {}",
            bench.told()
        );
        bench.check();
        if chip.geometry.pages_per_block >= 64 {
            assert!(worst.iter().all(|&(programs, erases)| programs <= 8 && erases <= 2), "{worst:?}");
        }
    }
    println!("{:.3} programs an operation", programs.1 as f64 / f64::from(programs.0));
}

/// What records of small values cost that are put in no order, and how many a chip takes.
#[test]
#[ignore = "takes a minute; for figures"]
fn figures() {
    let mut chip = Chip::W25N01GV;
    chip.geometry.page_size = 8192;
    chip.geometry.program_unit = 8192;
    chip.geometry.block_count = 128;
    let mut bench = Bench::new(Sim::new(chip), FixedCells::<4, 8>, Options { cache_size: 65_536, ..Options::DEFAULT });
    let (reads, programs, erases) = spent(&mut bench, |bench| {
        for number in 0..300_000_u32 {
            bench.engine().put(&key(number), &[7; 8]).unwrap();
        }
    });
    println!("300,000 puts: {reads} reads, {programs} programs, {erases} erases; {}", bench.told());
    let (reads, ..) = spent(&mut bench, |bench| {
        for number in 0..100_000 {
            assert!(bench.engine().get(&key(chance(number, 5) % 300_000)).unwrap().is_some());
        }
    });
    println!("100,000 lookups: {reads} reads");
    for blocks in [16, 24, 40] {
        let chip = Chip::W25N01GV.with_blocks(blocks);
        let mut bench = Bench::new(Sim::new(chip), FixedCells::<4, 8>, Options::DEFAULT);
        let mut count = 0;
        while bench.engine().put(&key(count), &[7; 8]).is_ok() {
            count += 1;
        }
        let live = bench.engine().log().live_pages();
        println!("{blocks} blocks: {count} records, {live} live pages, {}% of all", live * 100 / (blocks * 64));
    }
}
