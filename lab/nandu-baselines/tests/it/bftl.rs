//! BFTL: the suite, a busy chip, faults, power cuts, hostile images, and what it costs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::{Bound, ControlFlow};

use nandu_baselines::{BaselineError, Bftl, BftlOptions};
use nandu_index::suite::{Cuttable, KeyKind, Space, Subject, conformance, prefixes};
use nandu_index::{Direction, Edit, OrderedIndex};
use nandu_media::checksum::checksum;
use nandu_nand::PageAddr;
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, SimError, Tear, Trigger};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

type Error = BaselineError<SimError>;
type BoxError = Box<dyn std::error::Error>;
type Map = BTreeMap<u32, u32>;

/// A buffer that the toy chip, with eight units in a page, has room for.
const SMALL: BftlOptions = BftlOptions { buffer_units: 12, ..BftlOptions::ORIGINAL };

struct Bench {
    tree: Option<Bftl<Sim>>,
    options: BftlOptions,
}

impl Subject for Bench {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        self.tree.as_mut().unwrap()
    }

    fn reopen(&mut self) {
        let mut tree = self.tree.take().unwrap();
        tree.sync().unwrap();
        self.tree = Some(Bftl::mount(tree.into_nand(), self.options).unwrap());
    }
}

impl Cuttable for Bench {
    fn cut(&mut self) {
        let chip = self.tree.take().unwrap().into_nand();
        self.tree = Some(Bftl::mount(chip, self.options).unwrap());
    }
}

const SPACE: Space =
    Space { keys: KeyKind::Fixed(4), key_count: 500, value_size_min: 4, value_size_max: 4, operations_max: 120 };

fn bench(buffer_units: usize, list_bound: usize, read_pages: usize) -> Bench {
    let options = BftlOptions { buffer_units, list_bound, read_pages, volume: 3 };
    Bench { tree: Some(Bftl::format(Sim::new(crate::paper::small(96)), options).unwrap()), options }
}

#[test]
fn bftl_conforms_with_mounts_in_between() {
    for (buffer_units, list_bound, read_pages) in [(1, 1, 0), (12, 4, 0), (60, 4, 3)] {
        conformance(SPACE, 25, || bench(buffer_units, list_bound, read_pages));
    }
}

#[test]
fn bftl_holds_after_a_cut_what_it_held_after_a_change_since_the_last_sync() {
    for (buffer_units, list_bound, read_pages) in [(1, 1, 0), (12, 4, 0), (60, 4, 3)] {
        prefixes(SPACE, 25, || bench(buffer_units, list_bound, read_pages));
    }
}

fn contents(tree: &mut Bftl<&mut Sim>) -> Result<Map, BoxError> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let mut found = Map::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut |entry| {
        found.insert(number(entry.key), number(entry.value));
        ControlFlow::Continue(())
    })?;
    assert_eq!(found.len() as u64, tree.record_count());
    Ok(found)
}

fn assert_sound<N: nandu_nand::Nand>(tree: &mut Bftl<N>) {
    let mut violations = Vec::new();
    tree.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
}

/// Random changes, with mounts now and then, held against a map.
fn churn(chip: Sim, options: BftlOptions, changes: u32, keys: u32, seed: u64) -> Bftl<Sim> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Map::new();
    let mut tree = Bftl::format(chip, options).unwrap();
    for round in 0..changes {
        let key = random.random_range(0..keys) * 1000;
        if random.random_range(0..4) == 0 {
            assert_eq!(tree.delete(key).unwrap(), model.remove(&key).is_some());
        } else {
            assert_eq!(tree.insert(key, round).unwrap(), model.insert(key, round).is_some());
        }
        if round % 700 == 699 {
            tree.sync().unwrap();
            assert_sound(&mut tree);
            tree = Bftl::mount(tree.into_nand(), options).unwrap();
        }
    }
    assert_sound(&mut tree);
    assert_eq!(tree.record_count(), model.len() as u64);
    for (&key, &value) in &model {
        assert_eq!(tree.get(key).unwrap(), Some(value));
    }
    tree
}

#[test]
fn a_chip_written_many_times_over_keeps_what_lives() {
    for buffer_units in [1, 12, 60] {
        let options = BftlOptions { buffer_units, ..BftlOptions::ORIGINAL };
        let tree = churn(Sim::new(crate::paper::small(40)), options, 6000, 600, 1);
        assert!(tree.stats().gc_runs > 0 && tree.bftl_stats().compactions > 0);
    }
}

#[test]
fn failing_operations_cost_blocks_and_nothing_else() {
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::Bus(Tear::Complete), Fault::Bus(Tear::SomeBits)] {
        for seed in 0..4 {
            let mut chip = Sim::with_seed(crate::paper::small(64), seed).with_factory_bad(5.0, false);
            chip.inject(fault, Trigger::Probability(0.0025));
            churn(chip, BftlOptions { buffer_units: 4, ..SMALL }, 2500, 300, seed);
        }
    }
}

/// On a chip too small for it all, a refused change leaves what was there, and what was acknowledged can still be synced.
#[test]
fn a_full_chip_refuses_changes_and_loses_none() {
    let mut tree = Bftl::format(Sim::new(Chip::TINY), SMALL).unwrap();
    let mut count = 0;
    while let Ok(was_there) = tree.insert(count, !count) {
        assert!(!was_there);
        count += 1;
    }
    assert!(matches!(tree.insert(count, 0), Err(BaselineError::Full)));
    assert!(count > 100, "{count} records on a chip of 128 pages");
    tree.sync().unwrap();
    let mut tree = Bftl::mount(tree.into_nand(), SMALL).unwrap();
    assert_sound(&mut tree);
    assert_eq!(tree.record_count(), u64::from(count));
    assert!((0..count).all(|key| tree.get(key).unwrap() == Some(!key)));
}

/// What was synced, and the states after each change since.
#[derive(Clone, Default)]
struct Promise {
    is_open: bool,
    states: Vec<Map>,
    count: u32,
}

/// A number that follows from two others, as if by chance.
fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

fn open(chip: &mut Sim, may_format: bool) -> Result<Bftl<&mut Sim>, BoxError> {
    let is_blank = may_format && matches!(Bftl::mount(&mut *chip, SMALL), Err(BaselineError::NotFormatted));
    Ok(if is_blank { Bftl::format(chip, SMALL)? } else { Bftl::mount(chip, SMALL)? })
}

/// Puts, deletes and batches, with a sync now and then.
fn workload(operations: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut tree = open(chip, !promise.is_open)?;
        promise.states = vec![contents(&mut tree)?];
        promise.is_open = true;
        for _ in 0..operations {
            let count = promise.count;
            promise.count += 1;
            let key = chance(count, 1) % 40 * 1000;
            let edits = match chance(count, 2) % 8 {
                0 | 1 => vec![(key, None)],
                2 => (0..5).map(|n| (key + n * 7000, (n % 3 != 2).then_some(count))).collect(),
                _ => vec![(key, Some(count))],
            };
            let mut after = promise.states.last().unwrap().clone();
            for &(key, value) in &edits {
                match value {
                    Some(value) => after.insert(key, value),
                    None => after.remove(&key),
                };
            }
            promise.states.push(after);
            let bytes: Vec<([u8; 4], Option<[u8; 4]>)> =
                edits.iter().map(|(key, value)| (key.to_be_bytes(), value.map(u32::to_be_bytes))).collect();
            let edits: Vec<Edit<'_>> =
                bytes.iter().map(|(key, value)| Edit { key, value: value.as_ref().map(|value| &value[..]) }).collect();
            tree.batch(&edits)?;
            if chance(count, 3).is_multiple_of(5) {
                tree.sync()?;
                promise.states.drain(..promise.states.len() - 1);
            }
        }
        Ok(())
    }
}

/// What is found is the state after the last sync or after a change since.
fn check(chip: &mut Sim, promise: &Promise) -> Option<Map> {
    if !promise.is_open {
        return None;
    }
    let mut tree = open(chip, false).unwrap();
    assert_sound(&mut tree);
    let found = contents(&mut tree).unwrap();
    assert!(promise.states.contains(&found), "found what never was since the last sync: {found:?}");
    Some(found)
}

/// A chip with records that stay, scattered over the blocks, so that the workload has the collector move them.
fn settled() -> Sim {
    let mut tree = Bftl::format(Sim::new(Chip::TINY.with_blocks(13)), SMALL).unwrap();
    for number in 0..70 {
        tree.insert(2_000_000 + chance(number, 4) % 40 * 10, number).unwrap();
        tree.insert(chance(number, 3) % 40 * 1000, number).unwrap();
    }
    tree.sync().unwrap();
    let mut chip = tree.into_nand();
    chip.reset_counters();
    chip
}

fn chain_count(usual: u64) -> u64 {
    std::env::var("NANDU_CHAINS").map_or(usual, |count| count.parse().unwrap())
}

#[test]
fn every_cut_leaves_what_was_synced() {
    let mut chip = settled();
    workload(110)(&mut chip, &mut Promise::default()).unwrap();
    let gc = *chip.ledger().of(nandu_nand::Cause::Gc);
    assert!(gc.erases > 4 && gc.programs > 4, "the workload keeps the collector busy: {gc:?}");
    let summary = Driver::new(settled()).every(workload(110), check);
    println!("{summary:?}");
    assert!(summary.cases > 300);
}

#[test]
fn every_cut_of_a_format_leaves_no_tree_or_an_empty_one() {
    let summary = Driver::new(Chip::TINY).every(workload(2), check);
    assert!(summary.cases > 30);
}

#[test]
fn chains_of_cuts_leave_what_was_synced() {
    let recover = |chip: &mut Sim| -> Run { open(chip, true).map(|_| ()) };
    let summary = Driver::new(settled()).resume().seed(7).random(chain_count(300), workload(50), recover, check);
    println!("{summary:?}");
    assert!(summary.cuts > 300);
}

/// Mounts that are cut one after the other, each at its last program, and tears that look complete: the reserve is not used up.
#[test]
fn cuts_of_mounts_in_a_row_use_up_no_blocks() {
    for tear in [Tear::Complete, Tear::Unstable, Tear::Prefix] {
        for programs_back in 0..4 {
            let mut chip = settled();
            let expected = contents(&mut open(&mut chip, false).unwrap()).unwrap();
            for _ in 0..40 {
                let mut trial = chip.clone();
                let first = trial.operation_count();
                open(&mut trial, false).unwrap();
                let length = trial.operation_count() - first;
                let first = chip.operation_count();
                chip.cut_at(first + length - 1 - programs_back, tear);
                assert!(open(&mut chip, false).is_err());
                chip.clear_cuts();
                chip.power_on();
            }
            assert_eq!(contents(&mut open(&mut chip, false).unwrap()).unwrap(), expected);
        }
    }
}

/// Each mount takes a block, of which a short session fills little, so the next ones must give it back.
#[test]
fn short_sessions_in_a_row_use_up_no_blocks() {
    for ends_in_order in [true, false] {
        let mut chip = Sim::new(Chip::W25N01GV.with_blocks(16));
        Bftl::format(&mut chip, SMALL).unwrap();
        let mut expected = contents(&mut open(&mut chip, false).unwrap()).unwrap();
        for round in 0..100 {
            let mut tree = open(&mut chip, false).unwrap();
            tree.insert(round % 40 * 1000, round).unwrap();
            if ends_in_order || round % 2 == 0 {
                tree.sync().unwrap();
                expected.insert(round % 40 * 1000, round);
            }
        }
        assert_eq!(contents(&mut open(&mut chip, false).unwrap()).unwrap(), expected);
    }
}

/// Pages with a word changed and a checksum that is right again: refused or not, nothing panics or goes on for long.
#[test]
fn no_image_makes_anything_panic() {
    let chip = settled();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut mounted = 0;
    for _ in 0..1500 {
        let mut damaged = chip.clone();
        for _ in 0..random.random_range(1..4) {
            let page = PageAddr(random.random_range(0..chip.chip().geometry.page_count()));
            let mut bytes = damaged.peek(page);
            bytes.truncate(256);
            let at = random.random_range(2..64_usize) * 4;
            let value = match random.random_range(0..4) {
                0 => random.random::<u32>(),
                1 => random.random_range(0..200),
                2 => 1 << random.random_range(0..32),
                _ => u32::MAX,
            };
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let crc = checksum(&bytes[8..]) ^ SMALL.volume;
            bytes[4..8].copy_from_slice(&crc.to_le_bytes());
            damaged.poke(page, &bytes);
        }
        let Ok(mut tree) = Bftl::mount(damaged, SMALL) else { continue };
        mounted += 1;
        let _ = tree.verify(&mut |_| {});
        for direction in [Direction::Forward, Direction::Backward] {
            let _ = tree.range(Bound::Unbounded, Bound::Unbounded, direction, &mut |_| ControlFlow::Continue(()));
        }
        for key in 0..40 {
            let _ = tree.insert(key * 900, key);
            let _ = tree.delete(key * 500);
        }
        let _ = tree.sync();
    }
    assert!((1..1500).contains(&mounted), "{mounted} images were mounted");
}

/// What a put and a get cost with each size of the buffer, on a real part.
#[test]
fn costs_by_buffer_size() {
    let mut table = String::new();
    for buffer_units in [1, 8, 60, 240] {
        let options = BftlOptions { buffer_units, ..BftlOptions::ORIGINAL };
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut tree = Bftl::format(Sim::new(Chip::W25N01GV.with_blocks(20)), options).unwrap();
        let keys: Vec<u32> = (0..10_000).map(|_| random.random()).collect();
        for &key in &keys {
            tree.insert(key, !key).unwrap();
        }
        let before = *tree.stats();
        let count = keys.len() as u32;
        for at in 0..count {
            tree.insert(keys[random.random_range(0..count) as usize], at).unwrap();
        }
        tree.sync().unwrap();
        let updates = tree.stats().since(&before);
        let before = *tree.stats();
        for _ in 0..2000 {
            assert!(tree.get(keys[random.random_range(0..count) as usize]).unwrap().is_some());
        }
        let gets = tree.stats().since(&before);
        let (nodes, groups) = tree.table_size();
        let extra = *tree.bftl_stats();
        let (programs, erases) = (tree.nand().counters().programs, tree.stats().erases);
        assert_eq!(programs, tree.stats().programs, "each program is counted");
        let tree = Bftl::mount(tree.into_nand(), options).unwrap();
        writeln!(
            table,
            "buffer of {buffer_units} units: 10000 updates: {} reads, {} programs ({} moves), 2000 gets: {} reads; \
             in all {} commits of {} units in {} pages, {} compactions, {erases} erases; table of {nodes} nodes and {groups} groups; \
             mount: {} + {} reads",
            updates.reads,
            updates.programs,
            updates.gc_moves,
            gets.reads,
            extra.commits,
            extra.commit_units,
            extra.commit_pages,
            extra.compactions,
            tree.bftl_stats().mount_scan_reads,
            tree.bftl_stats().mount_walk_reads,
        )
        .unwrap();
    }
    insta::assert_snapshot!("bftl_costs", table);
}
