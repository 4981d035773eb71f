//! Two stores on one chip, each in a partition, used in turns.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu::nand::{BlockAddr, Partition, Shared};
use nandu::{Direction, Options, Store};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;
type Part<'a> = Partition<&'a Shared<&'a mut Sim>>;

const OPTIONS: Options = Options { cache_size: 256, ..Options::DEFAULT };

/// First block and number of blocks of each store. The ranges touch each other; the blocks before and behind them belong to nobody.
const RANGES: [(u32, u32); 2] = [(3, 17), (20, 16)];

/// Blocks of a range that the factory marked: the first of one, some of the other.
const BAD: [u32; 3] = [3, 22, 35];

fn chip() -> Chip {
    let mut chip = Chip::TINY.with_blocks(40);
    chip.geometry.bad_block_max = 2;
    chip
}

fn memory() -> [Vec<u8>; 2] {
    RANGES.map(|(first, count)| {
        let geometry = chip().geometry.partition(BlockAddr(first), count).unwrap();
        vec![0; Store::<Part<'_>>::memory_required(&geometry, &OPTIONS)]
    })
}

fn part<'a>(chip: &'a Shared<&'a mut Sim>, nth: usize) -> Part<'a> {
    let (first, count) = RANGES[nth];
    Partition::new(chip, BlockAddr(first), count).unwrap()
}

fn records(store: &mut Store<'_, Part<'_>>) -> Records {
    let mut found = Records::new();
    let all = store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.value.to_vec());
        ControlFlow::Continue(())
    });
    all.unwrap();
    found
}

/// A chip with two empty stores.
fn formatted() -> Sim {
    let mut sim = Sim::new(chip());
    for block in BAD {
        sim.mark_factory_bad(BlockAddr(block));
    }
    let shared = Shared::new(&mut sim);
    for (nth, memory) in memory().iter_mut().enumerate() {
        Store::format(part(&shared, nth), OPTIONS, memory).unwrap().unmount().unwrap();
    }
    sim
}

/// What each store acknowledged, and what it had been asked for when the power went.
#[derive(Clone, Default)]
struct Promise {
    records: [Records; 2],
    pending: [Option<Records>; 2],
}

fn puts_in_turns(chip: &mut Sim, promise: &mut Promise) -> Run {
    let shared = Shared::new(chip);
    let [mut first, mut second] = memory();
    let first = Store::open(part(&shared, 0), OPTIONS, &mut first)?;
    let second = Store::open(part(&shared, 1), OPTIONS, &mut second)?;
    let mut stores = [first, second];
    for (nth, store) in stores.iter_mut().enumerate() {
        promise.records[nth] = records(store);
        promise.pending[nth] = None;
    }
    for count in 0..100_u8 {
        let nth = usize::from(count % 5 > 1);
        let (key, value) = ([b'a' + count % 13], vec![count; usize::from(count % 7) * 3]);
        let mut after = promise.records[nth].clone();
        if count % 11 == 10 {
            after.remove(&key[..])
        } else {
            after.insert(key.to_vec(), value.clone())
        };
        promise.pending[nth] = Some(after.clone());
        if count % 11 == 10 {
            stores[nth].delete(&key)?;
        } else {
            stores[nth].put(&key, &value)?;
        }
        (promise.records[nth], promise.pending[nth]) = (after, None);
    }
    for store in stores {
        store.unmount()?;
    }
    Ok(())
}

fn check(chip: &mut Sim, promise: &Promise) -> [Records; 2] {
    assert_untouched_outside(chip);
    let shared = Shared::new(chip);
    let mut memory = memory();
    [0, 1].map(|nth| {
        let mut store = Store::open(part(&shared, nth), OPTIONS, &mut memory[nth]).unwrap();
        let mut violations = Vec::new();
        store.verify(&mut |violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        let found = records(&mut store);
        let is_right = found == promise.records[nth] || promise.pending[nth].as_ref() == Some(&found);
        assert!(is_right, "store {nth}: found {found:?}, acknowledged {:?}", promise.records[nth]);
        found
    })
}

/// Blocks of nobody were not so much as read; bad ones were only looked at.
fn assert_untouched_outside(sim: &Sim) {
    let blank = Sim::new(chip());
    for block in (0..40).map(BlockAddr) {
        let is_inside = RANGES.iter().any(|&(first, count)| (first..first + count).contains(&block.0));
        let counters = sim.block_state(block).counters;
        if !is_inside {
            assert_eq!(sim.block_state(block), blank.block_state(block), "block {block} is none of a partition");
        } else if BAD.contains(&block.0) {
            assert_eq!((counters.erases, counters.programs), (0, 0), "bad block {block}");
        }
    }
}

#[test]
fn a_cut_at_every_operation_of_two_stores_on_one_chip() {
    let summary = Driver::new(formatted()).resume().every(puts_in_turns, check);
    assert!(summary.cases > 1_000, "{summary:?}");
}

#[test]
fn both_stores_use_all_their_blocks_and_no_other() {
    let mut sim = formatted();
    let shared = Shared::new(&mut sim);
    let [mut first, mut second] = memory();
    let mut stores = [
        Store::open(part(&shared, 0), OPTIONS, &mut first).unwrap(),
        Store::open(part(&shared, 1), OPTIONS, &mut second).unwrap(),
    ];
    for count in 0..2_000_u32 {
        for store in &mut stores {
            store.put(&(count % 40).to_be_bytes(), &count.to_be_bytes()).unwrap();
        }
    }
    for store in &mut stores {
        assert_eq!(records(store).len(), 40);
    }
    assert_untouched_outside(&sim);
    for (first, count) in RANGES {
        let used = (first..first + count).filter(|block| !BAD.contains(block));
        assert!(used.map(|block| sim.block_state(BlockAddr(block)).counters.programs).all(|programs| programs > 0));
    }
}
