//! Page values on the log, over a simulated chip: power cuts at every operation, chains of cuts, a chip kept busy.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_log::{Log, LogError, LogOptions};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use nandu_tree::{ByteCells, Direction, Durability, OnLog, Options, Tree};

const LOG: LogOptions = LogOptions { bare_streams: 2, ..LogOptions::DEFAULT };
const ON_SYNC: Options = Options {
    cache_size: 300,
    durability: Durability::OnSync,
    pending_size: 400,
    note_count: 16,
    ..Options::DEFAULT
};
const IMMEDIATE: Options = Options { durability: Durability::Immediate, ..ON_SYNC };

type Records = BTreeMap<Vec<u8>, Vec<u8>>;
type BoxError = Box<dyn std::error::Error>;
type ChipTree<'m, 'c> = Tree<'m, OnLog<'m, &'c mut Sim>, ByteCells>;

/// What was acknowledged as durable, and the states after each call since, that of the call under way too.
#[derive(Clone, Default)]
struct Promise {
    is_open: bool,
    states: Vec<Records>,
    count: u32,
}

fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

fn with_tree<T>(
    chip: &mut Sim,
    options: Options,
    may_create: bool,
    work: impl FnOnce(&mut ChipTree<'_, '_>) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let geometry = chip.chip().geometry;
    let mut log_bytes = vec![0; Log::<Sim>::memory_required(&geometry, &LOG)];
    let mut tree_bytes = vec![0; nandu_tree::memory_required(geometry.page_size as usize, &options)];
    let log = match Log::mount(&mut *chip, LOG, &mut log_bytes) {
        Err(LogError::NotFormatted) if may_create => Err(()),
        other => Ok(other?),
    };
    let log = match log {
        Ok(log) => log,
        Err(()) => Log::format(&mut *chip, LOG, &mut log_bytes)?,
    };
    let pages = OnLog::new(log);
    let mut tree = if pages.log().committed().is_none() && may_create {
        Tree::create(pages, ByteCells, options, &mut tree_bytes)?
    } else {
        Tree::open(pages, ByteCells, options, &mut tree_bytes)?
    };
    work(&mut tree)
}

fn contents(tree: &mut ChipTree<'_, '_>) -> Result<Records, BoxError> {
    let mut found = Records::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.large.map_or(entry.value.to_vec(), |size| vec![0; size]));
        ControlFlow::Continue(())
    })?;
    for (key, value) in &mut found {
        let size = value.len();
        assert_eq!(tree.read(key, 0, value)?, Some(size));
    }
    assert_eq!(found.len() as u64, tree.record_count());
    Ok(found)
}

fn workload(options: Options, operations: u32, keys: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let page_size = chip.chip().geometry.page_size as usize;
        let may_create = !promise.is_open;
        with_tree(chip, options, may_create, |tree| {
            promise.states = vec![contents(tree)?];
            promise.is_open = true;
            for _ in 0..operations {
                let count = promise.count;
                promise.count += 1;
                let key = [b'k', (chance(count, 1) % keys) as u8];
                let mut after = promise.states.last().unwrap().clone();
                let kind = chance(count, 2) % 12;
                if kind < 6 {
                    let page: Vec<u8> = (0..page_size).map(|at| chance(count, at as u32) as u8).collect();
                    after.insert(key.to_vec(), page.clone());
                    promise.states.push(after);
                    tree.put_page(&key, &page)?;
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
    move |chip, promise| {
        if !promise.is_open {
            return None;
        }
        let found = with_tree(chip, options, false, |tree| {
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
    move |chip| with_tree(chip, options, true, |_| Ok(()))
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

#[test]
fn chains_of_cuts_leave_page_values() {
    for options in [ON_SYNC, IMMEDIATE] {
        let work = workload(options, 60, 24);
        let summary = Driver::new(CHIP).resume().seed(3).random(300, work, recover(options), check(options));
        println!("{summary:?}");
        assert!(summary.cuts > 500, "{summary:?}");
    }
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
