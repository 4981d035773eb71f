//! Power cuts: at every operation, with everything a cut can leave, and in the recoveries after it.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_inpage::{Broken, Cells, Direction, Error, GroupSize, InPage, LogPages, LogRead, Options};
use nandu_nand::Nand;
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

use crate::rig::{GRR, IPL, PAGES, SECTORS, in_pages, memory, with_two_pages};

type Values = BTreeMap<u32, Option<u32>>;

/// What was promised: for each key what it held at the last sync, and what was asked of it since, in order.
#[derive(Clone, Default)]
struct Promise {
    /// Whether the chip was opened, so that the rest has a meaning.
    is_open: bool,
    synced: Values,
    since: BTreeMap<u32, Vec<Option<u32>>>,
    /// Operations done, over all runs.
    count: u32,
}

impl Promise {
    fn sync(&mut self) {
        for (key, values) in std::mem::take(&mut self.since) {
            self.synced.insert(key, values.last().copied().unwrap());
        }
    }

    fn holds(&self, key: u32, found: Option<u32>) -> bool {
        let synced = self.synced.get(&key).copied().flatten();
        found == synced || self.since.get(&key).is_some_and(|values| values.contains(&found))
    }
}

/// A small generator, so that workloads are the same every time.
fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

fn contents<N: Nand>(index: &mut InPage<'_, N>) -> Result<Values, Error<N::Error>> {
    let mut values = Values::new();
    index.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut |entry| {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        values.insert(number(entry.key), Some(number(entry.value)));
        ControlFlow::Continue(())
    })?;
    Ok(values)
}

/// What a workload does.
#[derive(Clone, Copy)]
struct Load {
    operations: u32,
    keys: u32,
    /// One operation in so many is followed by a sync.
    sync_every: u32,
    /// One operation in so many deletes a run of keys, so that leaves become empty.
    clear_every: u32,
    is_blind: bool,
    ends_clean: bool,
}

const LOAD: Load = Load { operations: 40, keys: 60, sync_every: 6, clear_every: 20, is_blind: false, ends_clean: true };

fn workload(options: Options, load: Load) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = memory(chip.chip(), &options);
        let mut index = InPage::open(&mut *chip, options, &mut bytes)?;
        let found = contents(&mut index)?;
        // What was under way at a cut is there or not; what follows goes on from what is there.
        promise.synced = found;
        promise.since.clear();
        promise.is_open = true;
        for _ in 0..load.operations {
            let count = promise.count;
            promise.count += 1;
            let key = chance(count, 1) % load.keys;
            if load.clear_every > 0 && chance(count, 2).is_multiple_of(load.clear_every) {
                for key in key..key + 14 {
                    promise.since.entry(key).or_default().push(None);
                    index.delete(&key.to_be_bytes())?;
                }
            } else if chance(count, 3).is_multiple_of(8) {
                promise.since.entry(key).or_default().push(None);
                index.delete(&key.to_be_bytes())?;
            } else {
                promise.since.entry(key).or_default().push(Some(count));
                if load.is_blind {
                    index.put_blind(&key.to_be_bytes(), &count.to_be_bytes())?;
                } else {
                    index.put(&key.to_be_bytes(), &count.to_be_bytes())?;
                }
            }
            if chance(count, 4).is_multiple_of(load.sync_every) {
                index.sync()?;
                promise.sync();
            }
        }
        if load.ends_clean {
            index.unmount()?;
            promise.sync();
        }
        Ok(())
    }
}

fn recover(options: Options) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut bytes = memory(chip.chip(), &options);
        InPage::open(chip, options, &mut bytes)?;
        Ok(())
    }
}

/// What was synced is there, or something asked for later; and the index is sound.
fn check(options: Options, start: &Sim) -> impl Fn(&mut Sim, &Promise) -> Values + use<> {
    let mut bytes = memory(start.chip(), &options);
    let before = contents(&mut InPage::open(start.clone(), options, &mut bytes).unwrap()).unwrap();
    move |chip, promise| {
        let mut bytes = memory(chip.chip(), &options);
        let mut index = InPage::open(&mut *chip, options, &mut bytes).unwrap();
        let found = contents(&mut index).unwrap();
        if promise.is_open {
            for key in 0..200 {
                let value = found.get(&key).copied().flatten();
                let (synced, since) = (promise.synced.get(&key), promise.since.get(&key));
                assert!(promise.holds(key, value), "key {key} is {value:?}, synced {synced:?}, since {since:?}");
            }
        } else {
            assert_eq!(found, before);
        }
        index.verify(&mut |violation| panic!("{violation}")).unwrap();
        // And it goes on working.
        let mut index = InPage::open(chip.clone(), options, &mut bytes).unwrap();
        for key in 0..20_u32 {
            index.put(&key.to_be_bytes(), &[1; 4]).unwrap();
        }
        index.sync().unwrap();
        index.verify(&mut |violation| panic!("{violation}")).unwrap();
        found
    }
}

fn formatted(chip: Chip, options: Options) -> Sim {
    let mut bytes = memory(&chip, &options);
    let index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
    index.unmount().unwrap()
}

/// A chip with a tree of two levels on it, whose blocks have been merged.
fn used(chip: Chip, options: Options, load: Load) -> Sim {
    let mut sim = formatted(chip, options);
    let mut promise = Promise { count: 5000, ..Promise::default() };
    workload(options, Load { operations: 150, clear_every: 0, ends_clean: true, ..load })(&mut sim, &mut promise)
        .unwrap();
    sim
}

fn every(chip: Chip, options: Options, load: Load) {
    let sim = used(chip, options, load);
    let check = check(options, &sim);
    let summary = Driver::new(sim).every(workload(options, load), check);
    assert!(summary.operations > 60, "{summary:?}");
}

#[test]
fn every_cut_of_a_fresh_volume() {
    for (chip, options) in [(SECTORS, GRR), (PAGES, in_pages(GRR)), (SECTORS, IPL), (PAGES, in_pages(IPL))] {
        let sim = formatted(chip, options);
        let check = check(options, &sim);
        Driver::new(sim).every(workload(options, LOAD), check);
    }
}

#[test]
fn every_cut_with_merges_and_splits() {
    every(SECTORS, GRR, LOAD);
    every(PAGES, in_pages(GRR), LOAD);
}

#[test]
fn every_cut_of_ipl() {
    every(SECTORS, IPL, LOAD);
    every(PAGES, in_pages(IPL), LOAD);
}

#[test]
fn every_cut_with_blind_changes_and_early_merges() {
    let options = Options { log_pages: LogPages::Adaptive(1), log_read: LogRead::Smart, ..GRR };
    every(SECTORS, options, Load { is_blind: true, ..LOAD });
    every(PAGES, in_pages(options), Load { is_blind: true, ..LOAD });
}

#[test]
fn every_cut_while_merges_take_changes_along_and_level_wear() {
    let options = Options { absorb: true, levelling_gap: Some(1), ..GRR };
    every(SECTORS, options, Load { is_blind: true, ..LOAD });
    every(PAGES, in_pages(options), LOAD);
}

#[test]
fn every_cut_among_the_pages_of_a_node() {
    let load = Load { operations: 30, keys: 120, ..LOAD };
    every(SECTORS, with_two_pages(GRR), Load { clear_every: 6, ..load });
    every(PAGES, in_pages(with_two_pages(GRR)), load);
    every(SECTORS, with_two_pages(IPL), load);
    let smart = Options { log_read: LogRead::Smart, log_pages: LogPages::Adaptive(1), ..with_two_pages(GRR) };
    every(PAGES, in_pages(smart), Load { is_blind: true, ..load });
}

#[test]
fn every_cut_while_leaves_become_empty() {
    let load = Load { clear_every: 3, operations: 25, keys: 80, ..LOAD };
    every(SECTORS, GRR, load);
    every(PAGES, in_pages(GRR), load);
    every(SECTORS, IPL, load);
}

#[test]
fn every_cut_and_going_on_after_it() {
    for (chip, options) in [(SECTORS, GRR), (PAGES, in_pages(GRR))] {
        let load = Load { operations: 25, ends_clean: false, ..LOAD };
        let sim = used(chip, options, load);
        let check = check(options, &sim);
        Driver::new(sim).resume().every(workload(options, load), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_after_it() {
    let kinds = [GRR, with_two_pages(GRR)].into_iter();
    for (chip, options) in kinds.flat_map(|options| [(SECTORS, options), (PAGES, in_pages(options))]) {
        let load = Load { operations: 15, ends_clean: false, ..LOAD };
        let sim = used(chip, options, load);
        let check = check(options, &sim);
        let summary = Driver::new(sim).limit(8_000).pairs(workload(options, load), recover(options), check);
        assert!(summary.cases > 1_000, "{summary:?}");
    }
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
    let product = Options { log_pages: LogPages::Adaptive(2), log_read: LogRead::Smart, ..GRR };
    let cases = [
        (SECTORS, GRR, LOAD),
        (PAGES, in_pages(GRR), LOAD),
        (SECTORS, IPL, LOAD),
        (SECTORS, Options { group: GroupSize::Fixed(4), ..GRR }, Load { clear_every: 4, ..LOAD }),
        (SECTORS, product, Load { is_blind: true, ..LOAD }),
        (PAGES, in_pages(product), Load { is_blind: true, clear_every: 6, ..LOAD }),
        (PAGES, Options { cells: Cells::Bytes, ..in_pages(IPL) }, Load { clear_every: 4, ..LOAD }),
        (SECTORS, with_two_pages(GRR), Load { clear_every: 4, keys: 150, ..LOAD }),
        (PAGES, in_pages(with_two_pages(product)), Load { is_blind: true, clear_every: 6, keys: 150, ..LOAD }),
    ];
    for (chip, options, load) in cases {
        let sim = used(chip.with_blocks(24), options, load);
        let check = check(options, &sim);
        let driver = Driver::new(sim).resume().seed(7);
        driver.random(count, workload(options, load), recover(options), check);
    }
}

#[test]
fn a_chip_whose_format_was_cut_has_the_new_volume_or_none() {
    for (chip, options) in [(SECTORS, GRR), (PAGES, in_pages(GRR))] {
        for start in [Sim::new(chip), used(chip, options, LOAD)] {
            let format = move |chip: &mut Sim, _: &mut ()| -> Run {
                let mut bytes = memory(chip.chip(), &options);
                InPage::format(chip, options, &mut bytes)?;
                Ok(())
            };
            Driver::new(start).every(format, |chip, _: &()| {
                let mut bytes = memory(chip.chip(), &options);
                match InPage::open(chip, options, &mut bytes) {
                    Ok(mut index) => index.verify(&mut |violation| panic!("{violation}")).unwrap(),
                    Err(error) => assert!(matches!(error, Error::NotFormatted | Error::Corrupt { .. }), "{error}"),
                }
            });
        }
    }
}

/// Whether the driver finds a loss, and only with cuts.
fn finds_a_loss(options: Options, load: Load) -> bool {
    let sim = used(SECTORS, Options { broken: Broken::default(), ..options }, load);
    let check = check(options, &sim);
    let mut uncut = sim.clone();
    let mut promise = Promise::default();
    workload(options, load)(&mut uncut, &mut promise).unwrap();
    check(&mut uncut, &promise);
    let run = std::panic::AssertUnwindSafe(|| {
        Driver::new(sim).every(workload(options, load), check);
    });
    std::panic::catch_unwind(run).is_err()
}

#[test]
fn a_sector_added_behind_a_merge_is_found() {
    let broken = Broken { sector_after_merge: true, ..Broken::default() };
    assert!(finds_a_loss(Options { broken, ..IPL }, LOAD));
}

#[test]
fn a_block_erased_before_its_last_node_is_copied_is_found() {
    let broken = Broken { erase_before_copy: true, ..Broken::default() };
    assert!(finds_a_loss(Options { broken, ..GRR }, LOAD));
}
