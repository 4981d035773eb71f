//! Power cuts where changes become durable together: what was synced stays, and what came after is there up to some change or not at all. And each rule, by a test that
//! loses data without it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use nandu_tree::{Broken, Edit, EngineError, FixedCells, LogError, Options};

use crate::bench::{Bench, BoxError, cases, chance, contents, sound, with_engine};
use crate::group::waiting;

type Values = BTreeMap<Vec<u8>, Vec<u8>>;

const CELLS: FixedCells<4, 4> = FixedCells;

/// What the tree may hold after a cut: what it held at the last sync, and after each change since, the one under way included.
#[derive(Clone)]
struct Promise {
    is_open: bool,
    states: Vec<Values>,
    /// Changes begun, over all runs on this chip.
    count: u32,
    /// Pages that the last run moved as commits.
    moved_by_commit: u64,
}

impl Default for Promise {
    fn default() -> Promise {
        Promise { is_open: false, states: vec![Values::new()], count: 0, moved_by_commit: 0 }
    }
}

/// How many of each kind of operations there are, in 16.
#[derive(Clone, Copy)]
struct Mix {
    options: Options,
    keys: u32,
    syncs: u32,
    /// Entries of a batch.
    batch: u32,
    /// In place of other keys, the leaf of one is changed again and again.
    is_hot: bool,
}

const MIX: Mix = Mix { options: waiting(256, 400), keys: 200, syncs: 4, batch: 5, is_hot: false };

/// Puts, deletes, batches and syncs, with idle time now and then.
fn workload(operations: u32, mix: Mix) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        with_engine(chip, CELLS, (mix.options, !promise.is_open), |engine| {
            promise.states = vec![contents(engine)?];
            promise.is_open = true;
            for _ in 0..operations {
                let count = promise.count;
                promise.count += 1;
                let spread = if mix.is_hot && chance(count, 8).is_multiple_of(2) { 8 } else { mix.keys };
                let number = chance(count, 1) % spread;
                let key = |n: u32| ((number + 37 * n) % mix.keys * 1000).to_be_bytes().to_vec();
                let value = count.to_be_bytes().to_vec();
                let kind = chance(count, 2) % 16;
                let changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> = match kind {
                    0 | 1 => [(key(0), None)].into(),
                    2 => (0..mix.batch).map(|n| (key(n), (n % 3 != 2).then(|| value.clone()))).collect(),
                    3 if chance(count, 3).is_multiple_of(4) => {
                        engine.idle(4)?;
                        continue;
                    }
                    kind if kind < 4 + mix.syncs => {
                        engine.sync()?;
                        promise.states.drain(..promise.states.len() - 1);
                        continue;
                    }
                    _ => [(key(0), Some(value))].into(),
                };
                let mut after = promise.states.last().unwrap().clone();
                for (key, value) in &changed {
                    match value {
                        Some(value) => after.insert(key.clone(), value.clone()),
                        None => after.remove(key),
                    };
                }
                promise.states.push(after);
                let edits: Vec<Edit<'_>> =
                    changed.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
                let done = match edits[..] {
                    [Edit { key, value: None }] => engine.delete(key).map(drop),
                    [Edit { key, value: Some(value) }] => engine.put(key, value).map(drop),
                    ref edits => engine.batch(edits),
                };
                match done {
                    // On a chip that is full it has not happened.
                    Err(EngineError::Log(LogError::Full)) => drop(promise.states.pop()),
                    other => other?,
                }
            }
            promise.moved_by_commit = engine.stats().moved_by_commit;
            Ok(())
        })
    }
}

/// Mounts with few reads, and what is there is what was promised.
fn check(mix: Mix) -> impl Fn(&mut Sim, &Promise) -> Option<Values> {
    move |chip, promise| {
        if !promise.is_open {
            return None;
        }
        let before = *chip.counters();
        let found = with_engine(chip, CELLS, (mix.options, false), |engine| {
            let reads = engine.log().nand().counters().since(&before).reads;
            assert!(reads <= 40, "{reads} reads to mount");
            sound(engine)?;
            contents(engine).map_err(BoxError::from)
        });
        let found = found.unwrap();
        assert!(promise.states.contains(&found), "none of {} states", promise.states.len());
        Some(found)
    }
}

fn recover(mix: Mix) -> impl Fn(&mut Sim) -> Run {
    move |chip| with_engine(chip, CELLS, (mix.options, true), |_| Ok(()))
}

const MIXES: [Mix; 4] = [
    MIX,
    Mix { options: waiting(256, 9), ..MIX },
    Mix { options: waiting(256, 2000), syncs: 6, is_hot: true, ..MIX },
    Mix { options: waiting(0, 120), batch: 25, syncs: 2, ..MIX },
];

#[test]
fn every_cut_leaves_what_was_synced() {
    for mix in MIXES {
        let summary = Driver::new(Chip::TINY).every(workload(150, mix), check(mix));
        println!("{summary:?}");
        assert!(summary.cases > 400);
    }
}

/// A chip on which an engine worked for a while, and what is on it.
fn prepared(chip: Chip, rounds: u32, mix: Mix) -> (Sim, Promise) {
    let mut chip = Sim::new(chip);
    let mut promise = Promise::default();
    for _ in 0..rounds {
        workload(300, mix)(&mut chip, &mut promise).unwrap();
    }
    (chip, promise)
}

/// Every cut, where the collector moves pages in most operations, and on a chip that is full.
#[test]
fn every_cut_where_pages_move_leaves_what_was_synced() {
    for (chip, keys, operations) in
        [(Chip::TINY, 500, 50), (Chip::TINY.with_blocks(24), 1250, 50), (Chip::TINY.with_blocks(24), 3000, 16)]
    {
        let mix = Mix { keys, syncs: 5, ..MIX };
        let (filled, promise) = prepared(chip, 12, mix);
        let start = |chip: &mut Sim, noted: &mut Promise| {
            if !noted.is_open {
                *noted = promise.clone();
            }
            workload(operations, mix)(chip, noted)
        };
        let summary = Driver::new(filled.clone()).every(start, check(mix));
        println!("{summary:?}");
        assert!(summary.cases > 200);
        let driver = Driver::new(filled).resume().seed(3);
        let summary = driver.random(cases(100), start, recover(mix), check(mix));
        println!("{summary:?}");
    }
}

#[test]
fn chains_of_cuts_leave_what_was_synced() {
    for (seed, mix) in (7..).zip(MIXES) {
        let driver = Driver::new(Chip::TINY).resume().seed(seed);
        let summary = driver.random(cases(150), workload(80, mix), recover(mix), check(mix));
        println!("{summary:?}");
    }
}

#[test]
fn pairs_of_cuts_in_recovery_leave_what_was_synced() {
    for mix in MIXES {
        let driver = Driver::new(Chip::TINY).limit(cases(800));
        let summary = driver.pairs(workload(100, mix), recover(mix), check(mix));
        println!("{summary:?}");
        assert!(summary.cases > 250);
    }
}

/// Every cut, where no block may be opened for survivors, so that moves are commits. If such a commit is torn, the page is where it was, and the commit before counts.
#[test]
fn every_cut_where_moves_are_commits_leaves_what_was_synced() {
    let mix = Mix { keys: 1300, syncs: 1, ..MIX };
    let mut chip = Chip::TINY.with_blocks(26);
    chip.geometry.pages_per_block = 8;
    let (mut chip, mut promise) = (Sim::new(chip), Promise::default());
    workload(6000, mix)(&mut chip, &mut promise).unwrap();
    let moved_by_commit = |mut chip: Sim, mut promise: Promise| {
        workload(6, mix)(&mut chip, &mut promise).unwrap();
        promise.moved_by_commit
    };
    // Cut again and again after few operations, until that is so.
    let mut rounds = 0;
    while moved_by_commit(chip.clone(), promise.clone()) == 0 {
        assert!(rounds < 400, "moves are never commits");
        rounds += 1;
        workload(2, mix)(&mut chip, &mut promise).unwrap();
    }
    println!("after {rounds} cuts");
    let start = |chip: &mut Sim, noted: &mut Promise| {
        if !noted.is_open {
            *noted = promise.clone();
        }
        workload(6, mix)(chip, noted)
    };
    let summary = Driver::new(chip.clone()).every(start, check(mix));
    println!("{summary:?}");
    assert!(summary.cases > 60);
    let summary = Driver::new(chip).resume().seed(4).random(cases(40), start, recover(mix), check(mix));
    println!("{summary:?}");
}

/// Whether the cut driver finds a loss with these options.
fn loses(mix: Mix) -> bool {
    let run = || Driver::new(Chip::TINY).every(workload(150, mix), check(mix));
    let is_lost = catch_unwind(AssertUnwindSafe(run)).is_err();
    is_lost
        || catch_unwind(AssertUnwindSafe(|| {
            let driver = Driver::new(Chip::TINY).resume().seed(5);
            driver.random(300, workload(80, mix), recover(mix), check(mix))
        }))
        .is_err()
}

/// W1: a commit that does not list what is in its own leaf shows an older member's value of that key again.
#[test]
fn without_changes_of_its_own_leaf_in_the_list_an_old_value_comes_back() {
    let key = |number: u32| (number * 1000).to_be_bytes();
    // Of so many keys, each in another leaf, a member lists a value. Then the leaf of one goes along with a commit, which has no room for what waits of the others.
    let comes_back = |options: Options, listed: u32, one: u32| {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(64)), FixedCells::<4, 4>, options);
        let put = |bench: &mut Bench<_>, number, value: u32| {
            bench.engine().put(&key(number), &value.to_be_bytes()).unwrap();
        };
        (0..20 * listed).for_each(|number| put(&mut bench, number, 0));
        bench.engine().merge().unwrap();
        (0..listed).for_each(|number| put(&mut bench, 20 * number, 1));
        bench.engine().sync().unwrap();
        (0..3).for_each(|number| put(&mut bench, 20 * one + number, 2));
        bench.engine().sync().unwrap();
        let chip = bench.cut();
        bench.reopen_on(chip);
        bench.engine().get(&key(20 * one)).unwrap() == Some(&1_u32.to_be_bytes()[..])
    };
    let all = || (8..24).step_by(3).flat_map(|listed| (0..listed).map(move |one| (listed, one)));
    let options = waiting(256, 2000);
    assert!(!all().any(|(listed, one)| comes_back(options, listed, one)));
    let broken = Options { broken: Broken { lists_others_only: true, ..Broken::NOTHING }, ..options };
    let count = all().filter(|&(listed, one)| comes_back(broken, listed, one)).count();
    println!("{count} values");
    assert!(count > 0);
}

/// W2: a member that leaves while a change waits that it alone lists.
#[test]
fn without_carrying_changes_are_lost() {
    assert!(loses(Mix {
        options: Options { broken: Broken { skips_carrying: true, ..Broken::NOTHING }, ..MIX.options },
        ..MIX
    }));
}

/// W3: a batch that fits no commit, in memory all the same.
#[test]
fn without_a_limit_to_what_is_unsynced_a_batch_is_torn() {
    let large = Mix { batch: 25, ..MIX };
    assert!(loses(Mix {
        options: Options { broken: Broken { splits_batches: true, ..Broken::NOTHING }, ..large.options },
        ..large
    }));
}

/// W5: a page that a mount replays is erased.
#[test]
fn a_member_that_dies_with_its_leaf_is_missed() {
    let mix = Mix { keys: 500, syncs: 5, ..MIX };
    let broken =
        Mix { options: Options { broken: Broken { members_die: true, ..Broken::NOTHING }, ..mix.options }, ..mix };
    assert!(loses(broken) || catch_unwind(AssertUnwindSafe(|| prepared(Chip::TINY, 12, broken))).is_err());
}
