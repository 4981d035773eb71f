//! Page values on the log, over a simulated chip: power cuts at every operation, chains of cuts, a chip kept busy.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_log::{Budget, Log, LogError, LogOptions};
use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};
use nandu_tree::{Broken, ByteCells, Direction, Durability, OnLog, Options, Pages, Tree, TreeError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const LOG: LogOptions = LogOptions { bare_streams: 2, ..LogOptions::DEFAULT };
pub(crate) const ON_SYNC: Options = Options {
    cache_size: 300,
    durability: Durability::OnSync,
    pending_size: 400,
    note_count: 16,
    parts_leaves: true,
    ..Options::DEFAULT
};
pub(crate) const IMMEDIATE: Options = Options { durability: Durability::Immediate, ..ON_SYNC };

pub(crate) type Records = BTreeMap<Vec<u8>, Vec<u8>>;
pub(crate) type BoxError = Box<dyn std::error::Error>;
pub(crate) type ChipTree<'m, 'c> = Tree<'m, OnLog<'m, &'c mut Sim>, ByteCells>;

/// What was acknowledged as durable, and the states after each call since, that of the call under way too.
#[derive(Clone, Default)]
pub(crate) struct Promise {
    pub(crate) is_open: bool,
    pub(crate) states: Vec<Records>,
    pub(crate) count: u32,
}

fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

/// The page value that this operation puts.
fn page_of(count: u32) -> Vec<u8> {
    (0..256).map(|at| chance(count, at) as u8).collect()
}

/// Whatever of it is not said is as in [`with_tree`].
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) log: LogOptions,
    pub(crate) options: Options,
    pub(crate) broken: Broken,
}

fn setup(options: Options) -> Setup {
    Setup { log: LOG, options, broken: Broken::default() }
}

fn with_tree<T>(
    chip: &mut Sim,
    options: Options,
    may_create: bool,
    work: impl FnOnce(&mut ChipTree<'_, '_>) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    with_tree_on(chip, setup(options), may_create, work)
}

pub(crate) fn with_tree_on<T>(
    chip: &mut Sim,
    setup: Setup,
    may_create: bool,
    work: impl FnOnce(&mut ChipTree<'_, '_>) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let Setup { log, options, .. } = setup;
    let geometry = chip.chip().geometry;
    let mut log_bytes = vec![0; Log::<Sim>::memory_required(&geometry, &log)];
    let mut tree_bytes = vec![0; nandu_tree::memory_required(geometry.page_size as usize, &options)];
    let mounted = match Log::mount(&mut *chip, log, &mut log_bytes) {
        Err(LogError::NotFormatted) if may_create => Err(()),
        other => Ok(other?),
    };
    let log = match mounted {
        Ok(log) => log,
        Err(()) => Log::format(&mut *chip, log, &mut log_bytes)?,
    };
    let pages = OnLog::new(log);
    let mut tree = if pages.log().committed().is_none() && may_create {
        Tree::create(pages, ByteCells, options, &mut tree_bytes)?
    } else {
        Tree::open(pages, ByteCells, options, &mut tree_bytes)?
    };
    work(&mut tree)
}

pub(crate) fn contents(tree: &mut ChipTree<'_, '_>) -> Result<Records, BoxError> {
    let mut found = Records::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.large.map_or(entry.value.to_vec(), |size| vec![0; size]));
        ControlFlow::Continue(())
    })?;
    for (key, value) in &mut found {
        let size = value.len();
        assert_eq!(tree.read(key, 0, value)?, Some(size));
    }
    assert_eq!(found.len() as u64, tree.record_count(), "the tree holds other entries than it counts");
    Ok(found)
}

fn workload(options: Options, operations: u32, keys: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    broken_workload(options, operations, keys, Broken::default())
}

fn broken_workload(
    options: Options,
    operations: u32,
    keys: u32,
    broken: Broken,
) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    workload_on(Setup { broken, ..setup(options) }, operations, keys)
}

/// Has the collector empty the block that is fullest, of those with one bit a cell.
fn migrate(tree: &mut ChipTree<'_, '_>, examinations: u32) -> Result<(), BoxError> {
    let log = tree.pages_mut().log_mut();
    let fullest = log.candidates(CellMode::Slc).max_by_key(|candidate| candidate.live);
    if let Some(candidate) = fullest {
        log.empty_next(candidate.block, nandu_nand::Cause::Migration);
    }
    let mut budget = Budget::room(examinations);
    while let Some(examine) = tree.pages_mut().next_idle(&mut budget)? {
        let outcome = tree.examine(examine)?;
        tree.pages_mut().examined(examine, outcome)?;
    }
    Ok(())
}

pub(crate) fn workload_on(setup: Setup, operations: u32, keys: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let may_create = !promise.is_open;
        let Setup { log, options, broken } = setup;
        with_tree_on(chip, setup, may_create, |tree| {
            promise.states = vec![contents(tree)?];
            promise.is_open = true;
            tree.set_broken(broken);
            for _ in 0..operations {
                let count = promise.count;
                promise.count += 1;
                let key = [b'k', (chance(count, 1) % keys) as u8];
                let mut after = promise.states.last().unwrap().clone();
                let kind = chance(count, 2) % 12;
                let stream = (log.mlc_streams > 0).then(|| (chance(count, 3) % u32::from(log.bare_streams)) as u8);
                if log.mlc_streams > 0 && chance(count, 4).is_multiple_of(4) {
                    match chance(count, 5) % 3 {
                        0 => tree.name_settled()?,
                        _ => migrate(tree, chance(count, 6) % 16)?,
                    }
                }
                if kind < 6 {
                    let page = page_of(count);
                    after.insert(key.to_vec(), page.clone());
                    promise.states.push(after);
                    tree.put_page_to(&key, &page, stream)?;
                } else if kind < 8 {
                    after.insert(key.to_vec(), vec![count as u8; 10]);
                    promise.states.push(after);
                    tree.put(&key, &[count as u8; 10])?;
                } else if kind < 9 {
                    after.remove(&key[..]);
                    promise.states.push(after);
                    tree.delete(&key)?;
                } else {
                    tree.sync()?;
                }
                if kind >= 9 || options.durability == Durability::Immediate {
                    promise.states.drain(..promise.states.len() - 1);
                }
            }
            Ok(())
        })
    }
}

fn check(options: Options) -> impl Fn(&mut Sim, &Promise) -> Option<Records> {
    check_on(setup(options))
}

pub(crate) fn check_on(setup: Setup) -> impl Fn(&mut Sim, &Promise) -> Option<Records> {
    move |chip, promise| {
        if !promise.is_open {
            return None;
        }
        let found = with_tree_on(chip, setup, false, |tree| {
            let mut violations = Vec::new();
            tree.verify(&mut |violation| violations.push(violation))?;
            assert_eq!(violations, []);
            contents(tree)
        });
        let found = found.unwrap();
        assert!(promise.states.contains(&found), "{} states", promise.states.len());
        Some(found)
    }
}

fn recover(options: Options) -> impl Fn(&mut Sim) -> Run {
    recover_on(setup(options))
}

pub(crate) fn recover_on(setup: Setup) -> impl Fn(&mut Sim) -> Run {
    move |chip| with_tree_on(chip, setup, true, |_| Ok(()))
}

const CHIP: Chip = Chip::TINY.with_blocks(28);

#[test]
fn every_cut_leaves_page_values_of_a_sync() {
    let summary = Driver::new(CHIP).every(workload(ON_SYNC, 120, 20), check(ON_SYNC));
    println!("{summary:?}");
    assert!(summary.cases > 1000, "{summary:?}");
}

#[test]
fn every_cut_leaves_page_values_that_are_durable_at_once() {
    let summary = Driver::new(CHIP).every(workload(IMMEDIATE, 120, 20), check(IMMEDIATE));
    println!("{summary:?}");
    assert!(summary.cases > 1000, "{summary:?}");
}

/// Chains of cuts, `NANDU_CHAINS` of them; a few hundred are the short form.
#[test]
fn chains_of_cuts_leave_page_values() {
    let count: u64 = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    for (options, seed, operations, keys) in [(ON_SYNC, 3, 60, 24), (IMMEDIATE, 3, 60, 24), (ON_SYNC, 4, 200, 45)] {
        let work = workload(options, operations, keys);
        let summary = Driver::new(CHIP).resume().seed(seed).random(count, work, recover(options), check(options));
        println!("{summary:?}");
        assert!(summary.cuts > 2 * count, "{summary:?}");
    }
}

/// A chip whose power goes soon after each mount, again and again. Each mount finds a block that was open, and moves noted pages out of it;
/// the next cut undoes that, and the blocks it took hold nothing. Nevertheless the collector keeps the blocks that it needs.
#[test]
fn cuts_soon_after_each_mount_leave_room_to_collect() {
    let ways = [24, 28].into_iter().flat_map(|blocks| [8, 16, 24].map(|keys| (blocks, keys)));
    for (blocks, keys) in ways {
        for (puts, after) in [(3, 10), (3, 14), (7, 8), (14, 6), (14, 10)] {
            let mut chip = Sim::new(Chip::TINY.with_blocks(blocks));
            let mut number = 0;
            let mut put = |tree: &mut ChipTree<'_, '_>| -> Result<(), BoxError> {
                number += 1;
                tree.put_page(&[b'k', (chance(number, 1) % keys) as u8], &page_of(number))?;
                Ok(())
            };
            let mut work = |chip: &mut Sim, synced: u32, unsynced: u32| {
                with_tree(chip, ON_SYNC, true, |tree| {
                    for _ in 0..synced {
                        put(tree)?;
                        tree.sync()?;
                    }
                    (0..unsynced).try_for_each(|_| put(tree))?;
                    Ok(tree.sync()?)
                })
            };
            work(&mut chip, 400, puts).unwrap();
            for _ in 0..12 {
                // A mount is as long as it is, so it is tried first on a copy.
                let mut copy = chip.clone();
                work(&mut copy, 0, 0).unwrap();
                chip.cut_at(copy.operation_count() + after, Tear::Complete);
                let _ = work(&mut chip, 1, 0);
                chip.clear_cuts();
                chip.power_on();
            }
            let outcome = work(&mut chip, 20, 0);
            assert!(outcome.is_ok(), "{blocks} blocks, {keys} keys, {puts} puts, cut after {after}: {outcome:?}");
        }
    }
}

/// What chains of cuts find, if a rule is not kept.
fn found_without(broken: Broken) -> Option<String> {
    let work = broken_workload(ON_SYNC, 150, 20, broken);
    let run = || Driver::new(CHIP).resume().seed(5).random(400, work, recover(ON_SYNC), check(ON_SYNC));
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).err()?;
    Some(payload.downcast_ref::<String>().cloned().unwrap_or_default())
}

#[test]
fn a_rule_left_out_is_found() {
    let kept = Broken::default();
    assert_eq!(found_without(kept), None);
    let broken = [
        Broken { commit_first: true, ..kept },
        Broken { supersede_first: true, ..kept },
        Broken { move_stale: true, ..kept },
    ];
    for broken in broken {
        let found = found_without(broken).unwrap_or_default();
        println!("{broken:?}: {found}");
        let losses = ["the check", "its checksum is wrong", "other entries than it counts"];
        let is_loss = losses.iter().any(|loss| found.contains(loss));
        assert!(is_loss, "{broken:?}: {found}");
    }
}

#[test]
fn a_cut_in_the_recovery_and_in_the_changes_that_follow_it() {
    let continue_briefly = |chip: &mut Sim| -> Run {
        with_tree(chip, ON_SYNC, true, |tree| {
            // The first change has what was noted moved out of the blocks that were open.
            tree.put(b"z", b"")?;
            tree.delete(b"z")?;
            tree.sync()?;
            Ok(())
        })
    };
    let summary = Driver::new(CHIP).limit(12_000).pairs(workload(ON_SYNC, 60, 20), continue_briefly, check(ON_SYNC));
    println!("{summary:?}");
    assert!(summary.cases > 5_000, "{summary:?}");
}

#[test]
fn every_cut_on_a_chip_whose_pages_are_paired() {
    let chip = Chip::TINY_MLC.with_blocks(40);
    let summary = Driver::new(chip).resume().every(workload(ON_SYNC, 100, 20), check(ON_SYNC));
    println!("{summary:?}");
    assert!(summary.cases > 800, "{summary:?}");
}

/// A chip with page values on it, opened again and changed.
fn used(chip: Chip, operations: u32) -> (Sim, Promise) {
    let (mut sim, mut promise) = (Sim::new(chip), Promise::default());
    workload(ON_SYNC, operations, 20)(&mut sim, &mut promise).unwrap();
    (sim, promise)
}

/// Each fault at each operation of a mount and some changes. What is read is never wrong; where `survives`, every call
/// succeeds, and everything is there afterwards.
fn try_everywhere(fault: Fault, survives: bool) {
    let (start, promise) = used(CHIP, 90);
    let first = start.operation_count();
    let last = {
        let (mut sim, mut promise) = (start.clone(), promise.clone());
        workload(ON_SYNC, 40, 20)(&mut sim, &mut promise).unwrap();
        sim.operation_count()
    };
    for operation in first..last {
        let (mut sim, mut promise) = (start.clone(), promise.clone());
        sim.inject(fault, Trigger::Operation(operation));
        let outcome = workload(ON_SYNC, 40, 20)(&mut sim, &mut promise);
        sim.withdraw_all();
        if let Err(error) = outcome {
            assert!(!survives, "{fault:?} at {operation}: {error}");
            continue;
        }
        let opened = with_tree(&mut sim, ON_SYNC, false, contents);
        match opened {
            Ok(found) if survives => assert!(promise.states.contains(&found), "{fault:?} at {operation}"),
            // A commit that was reported and never happened takes what it promised with it; but nothing is made up.
            Ok(found) => {
                let was_put = |value: &Vec<u8>| match value[..] {
                    [first, ..] if value.len() == 10 => *value == [first; 10],
                    _ => (0..promise.count).any(|count| *value == page_of(count)),
                };
                assert!(found.values().all(was_put), "{fault:?} at {operation}");
            }
            Err(error) => assert!(!survives, "{fault:?} at {operation}: {error}"),
        }
    }
}

#[test]
fn programs_and_erases_that_fail_lose_nothing() {
    for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::BitFlips(1)] {
        try_everywhere(fault, true);
    }
}

#[test]
fn a_page_that_is_lost_misdirected_or_stale_is_never_taken_for_another() {
    let faults = [
        Fault::Uncorrectable,
        Fault::NothingHappens,
        Fault::Misdirected(None),
        Fault::Stale,
        Fault::Bus(Tear::Before),
        Fault::Bus(Tear::Complete),
    ];
    for fault in faults {
        try_everywhere(fault, false);
    }
}

/// The pages of a chip.
fn image(chip: &Sim) -> Vec<Vec<u8>> {
    let geometry = chip.chip().geometry;
    let main = geometry.page_size as usize;
    (0..geometry.page_count()).map(|page| chip.peek(PageAddr(page))[..main].to_vec()).collect()
}

fn chip_with(pages: &[Vec<u8>]) -> Sim {
    let mut chip = Sim::new(CHIP);
    for block in 0..CHIP.geometry.block_count {
        chip.erase(BlockAddr(block), CellMode::Slc).unwrap();
    }
    for (page, bytes) in (0..).map(PageAddr).zip(pages) {
        if bytes.iter().any(|&byte| byte != 0xFF) {
            chip.poke(page, bytes);
        }
    }
    chip
}

/// Pages are swapped, copied and changed, with checksums that are right: the image may be refused and calls may fail, but
/// nothing panics, and no call goes on for long.
#[test]
fn hostile_images_do_no_harm() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let originals = [60, 90].map(|operations| image(&used(CHIP, operations).0));
    let mut opened = 0;
    for round in 0..3000 {
        let mut pages = originals[round % 2].clone();
        for _ in 0..random.random_range(1..4) {
            let page = random.random_range(0..pages.len());
            let other = pages[random.random_range(0..pages.len())].clone();
            let at = random.random_range(0..pages[page].len());
            match random.random_range(0..8) {
                0 => pages[page] = other,
                1 => pages[page].fill(0xFF),
                2 => pages[page][at] ^= random.random::<u8>(),
                kind => {
                    let at = if kind < 5 { 44 + at % 50 } else { at };
                    pages[page][at] = random.random();
                    let crc = nandu_media::checksum::checksum(&pages[page][4..]).to_le_bytes();
                    pages[page][..4].copy_from_slice(&crc);
                }
            }
        }
        let mut chip = chip_with(&pages);
        let outcome = with_tree(&mut chip, ON_SYNC, false, |tree| {
            let mut since = tree.pages().log().nand().operation_count();
            let mut bounded = |tree: &ChipTree<'_, '_>| {
                let now = tree.pages().log().nand().operation_count();
                assert!(now - since < 40_000, "{} operations", now - since);
                since = now;
            };
            let _ = tree.verify(&mut |_| ());
            bounded(tree);
            let mut part = [0; 300];
            for number in 0..20_u8 {
                let key = [b'k', number];
                let _ = tree.get(&key).is_ok();
                let _ = tree.read(&key, 10, &mut part);
                bounded(tree);
                let _ = match number % 4 {
                    0 | 1 => tree.put_page(&key, &[number; 256]).is_ok(),
                    2 => tree.delete(&key).is_ok(),
                    _ => tree.sync().is_ok(),
                };
                bounded(tree);
            }
            let _ = tree.settle();
            bounded(tree);
            Ok(())
        });
        opened += u32::from(outcome.is_ok());
    }
    println!("{opened} opened");
    assert!(opened > 300, "{opened}");
}

/// Nothing beyond what is asked for is needed, and one byte less is refused.
#[test]
fn the_memory_required_is_exact() {
    let medium = crate::medium::Shared::with_bare(256, 44, 100, 20, 8);
    for note_count in [0, 1, 8, 100] {
        let options = Options { note_count, ..ON_SYNC };
        let required = nandu_tree::memory_required(256, &options);
        let mut bytes = vec![0; required - 1];
        let outcome = Tree::create(medium.clone(), ByteCells, options, &mut bytes).map(|_| ());
        assert_eq!(outcome, Err(TreeError::MemoryTooSmall { required }));
    }
    let with = |note_count| nandu_tree::memory_required(2048, &Options { note_count, ..ON_SYNC });
    assert_eq!(with(100) - with(0), 100 * 21);
}

#[test]
fn a_chip_written_many_times_over_keeps_page_values() {
    for options in [ON_SYNC, IMMEDIATE] {
        let mut chip = Sim::new(Chip::W25N01GV.with_blocks(24));
        with_tree(&mut chip, options, true, |tree| {
            let mut model: BTreeMap<[u8; 4], u32> = BTreeMap::new();
            for round in 0..20_000_u32 {
                let key = [0, 0, 3, (chance(round, 5) % 250) as u8];
                let mut page = [0; 2048];
                page[..4].copy_from_slice(&round.to_be_bytes());
                tree.put_page(&key, &page)?;
                model.insert(key, round);
                if round % 7 == 0 {
                    tree.sync()?;
                }
            }
            for (key, round) in &model {
                let mut found = [0; 4];
                assert_eq!(tree.read(key, 0, &mut found)?, Some(4));
                assert_eq!(found, round.to_be_bytes());
            }
            tree.settle()?;
            let mut violations = Vec::new();
            tree.verify(&mut |violation| violations.push(violation))?;
            assert_eq!(violations, []);
            let stats = tree.pages().log().stats();
            println!("{stats:?}");
            assert!(stats.erases > 200);
            let mut live = 0;
            tree.live_pages(&mut |_| live += 1)?;
            assert_eq!(live, stats.live_pages, "tree and log agree on what lives");
            Ok(())
        })
        .unwrap();
    }
}
