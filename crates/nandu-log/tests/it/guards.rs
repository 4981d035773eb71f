//! Invariants, each shown where nothing else helps.

use nandu_log::{Broken, Budget, Claim, Claimed, Grant, Kind, Log, LogError, LogOptions};
use nandu_nand::BlockAddr;
use nandu_sim::{Chip, Fault, Sim, SimError, Trigger};

use crate::cuts::chance;
use crate::toy::{Toy, Values, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// Small blocks, so that few pages fill the chip.
const SMALL: Chip = Chip::TINY.with_blocks(16);

/// Room for pages, without collecting; `None` where there is none.
fn room(log: &mut Log<'_, Sim>, want: Claim, pages: u32) -> Option<Grant> {
    match log.claim(want, pages, pages).ok()? {
        Claimed::Granted(grant) => Some(grant),
        _ => None,
    }
}

fn commit(log: &mut Log<'_, Sim>) -> Result<nandu_nand::PageAddr, LogError<SimError>> {
    let grant = room(log, Claim::Bury, 1).unwrap();
    log.commit(&mut vec![7; log.page_size()], grant)
}

fn verify(log: &mut Log<'_, Sim>) {
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}

/// Fills the chip with commits that all live, up to the last block that can be opened; at each of them a cut follows, and another one behind
/// its recovery. Whether every mount could repair the volume.
fn a_full_chip_is_recovered(options: LogOptions) -> bool {
    let mut bytes = memory(&SMALL.geometry, &options);
    let mut log = crate::formatted(Sim::new(SMALL), options, &mut bytes).unwrap();
    let kept = u32::from(!options.broken.recovery_block);
    let mut count = 0;
    loop {
        let newest = commit(&mut log).unwrap();
        count += 1;
        let mut cut = log.nand().clone();
        // Of the blocks that are kept for recoveries, commits that nobody claims room for leave one.
        let cuts = if log.stats().pool_blocks < 4 { 1 } else { 2 };
        for round in 0..cuts {
            let mut bytes = memory(&SMALL.geometry, &options);
            let mut log = crate::mounted(cut, options, &mut bytes).unwrap();
            if log.is_read_only() {
                return false;
            }
            assert!(round > 0 || log.committed() != Some(newest), "the newest commit was not copied");
            let mut page = vec![0; log.page_size()];
            log.read(log.committed().unwrap(), &mut page).unwrap();
            assert_eq!(page.last(), Some(&7));
            verify(&mut log);
            if round + 1 < cuts {
                commit(&mut log).unwrap();
            }
            cut = log.abandon_log();
        }
        let is_last = SMALL.geometry.index_in_block(newest) + 1 == SMALL.geometry.pages_per_block;
        if is_last && log.stats().pool_blocks <= kept {
            assert!(count >= 80, "{count} commits");
            return true;
        }
    }
}

/// N6: the last commit takes no block that recovery needs for its copy. Where all others are full of pages that live, there is no other.
#[test]
fn a_commit_on_a_full_chip_leaves_recovery_a_block() {
    assert!(a_full_chip_is_recovered(PLAIN));
    assert!(
        !a_full_chip_is_recovered(LogOptions { broken: Broken { recovery_block: true, ..Broken::NOTHING }, ..PLAIN }),
        "the rule is not needed"
    );
}

/// N4: a block that was open at the newest checkpoint is not erased before the next one, though nothing in it lives and the blocks that
/// recovery tries before it fail.
#[test]
fn a_recovery_erases_no_block_that_was_open_at_the_newest_checkpoint() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = crate::formatted(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; log.page_size()];
    let mut grant = room(&mut log, Claim::Grow, 2).unwrap();
    let dead = log.append(&mut page, Kind::Node, &mut grant).unwrap();
    log.dies(dead);
    log.commit(&mut page, grant).unwrap();
    log.checkpoint().unwrap();
    let newest = commit(&mut log).unwrap();
    let opened = SMALL.geometry.block_of(dead);
    assert_eq!(log.live_bound(opened), 0);
    let erases = log.nand().counters().erases;
    let mut sim = log.abandon_log();
    for block in 0..SMALL.geometry.block_count {
        if BlockAddr(block) != opened {
            sim.inject(Fault::EraseFails, Trigger::Block(BlockAddr(block)));
        }
    }
    let mut log = crate::mounted(sim, PLAIN, &mut bytes).unwrap();
    assert!(log.nand().counters().erases > erases, "the recovery tried the blocks that it may erase");
    assert!(log.is_read_only());
    log.read(dead, &mut page).unwrap();
    log.read(newest, &mut page).unwrap();
    assert_eq!(log.committed(), Some(newest));
}

/// R3 and N7: whatever dies with the next commit is there until that commit is, the newest commit among it.
#[test]
fn what_is_dying_outlives_every_checkpoint_before_the_next_commit() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = crate::formatted(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; log.page_size()];
    // A block of commits, of which all are dying.
    let mut grant = room(&mut log, Claim::Grow, 10).unwrap();
    let nodes: Vec<_> = (0..9).map(|_| log.append(&mut page, Kind::Node, &mut grant).unwrap()).collect();
    let newest = log.commit(&mut page, grant).unwrap();
    nodes.iter().for_each(|&node| log.dies(node));
    log.dies(newest);
    for round in 0..20 {
        log.checkpoint().unwrap();
        let mut budget = Budget::idle(16);
        assert!(log.victim(&mut budget).unwrap().is_none(), "nothing is asked about a page that is dying");
        if round % 5 == 4 {
            let mut bytes = memory(&SMALL.geometry, &PLAIN);
            let mut cut = crate::mounted(log.nand().clone(), PLAIN, &mut bytes).unwrap();
            nodes.iter().for_each(|&node| assert!(cut.read(node, &mut page).is_ok()));
            cut.read(cut.committed().unwrap(), &mut page).unwrap();
        }
    }
    nodes.iter().for_each(|&node| assert!(log.read(node, &mut page).is_ok()));
    assert_eq!(log.committed(), Some(newest));
    log.read(newest, &mut page).unwrap();
}

/// R3: a block of which every page dies with the next commit counts as full until then. Where pages die at once it counts as empty, and the
/// next checkpoint lists it to be erased.
#[test]
fn a_block_of_dying_pages_is_not_free_before_the_commit() {
    for (options, live) in [(PLAIN, 8), (LogOptions { broken: Broken { dying: true, ..Broken::NOTHING }, ..PLAIN }, 0)]
    {
        let mut bytes = memory(&SMALL.geometry, &options);
        let mut log = crate::formatted(Sim::new(SMALL), options, &mut bytes).unwrap();
        let mut page = vec![7; log.page_size()];
        let mut grant = room(&mut log, Claim::Grow, 9).unwrap();
        let nodes: Vec<_> = (0..8).map(|_| log.append(&mut page, Kind::Node, &mut grant).unwrap()).collect();
        log.commit(&mut page, grant).unwrap();
        let pool = log.stats().pool_blocks;
        nodes.iter().for_each(|&node| log.dies(node));
        let block = SMALL.geometry.block_of(nodes[0]);
        assert_eq!((log.live_bound(block), log.stats().pool_blocks), (live, pool + u32::from(live == 0)));
        commit(&mut log).unwrap();
        assert_eq!((log.live_bound(block), log.stats().pool_blocks), (0, pool + 1));
    }
}

/// A batch may take more blocks than one ready list has.
#[test]
fn a_batch_of_many_blocks_is_appended_and_lost_or_kept_as_one() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = crate::formatted(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; log.page_size()];
    let before = commit(&mut log).unwrap();
    let mut grant = room(&mut log, Claim::Grow, 31).unwrap();
    let nodes: Vec<_> = (0..30).map(|_| log.append(&mut page, Kind::Node, &mut grant).unwrap()).collect();
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut cut = crate::mounted(log.nand().clone(), PLAIN, &mut bytes).unwrap();
    assert!(!cut.is_read_only());
    cut.read(before, &mut page).unwrap();
    let newest = log.commit(&mut page, grant).unwrap();
    verify(&mut log);
    // Nothing can grow further, and that is no end of the chip's life.
    assert!(matches!(log.claim(Claim::Grow, 2, 2), Err(LogError::Full)));
    assert!(matches!(log.claim(Claim::Replace, 100, 100), Err(LogError::Full)));
    assert!(!log.is_read_only());
    let mut cut = crate::mounted(log.abandon_log(), PLAIN, &mut bytes).unwrap();
    nodes.iter().for_each(|&node| assert!(cut.read(node, &mut page).is_ok()));
    assert_ne!(cut.committed(), Some(newest));
    verify(&mut cut);
}

/// N5: what was found out about a block that was being emptied says nothing of it once it was erased and filled again.
#[test]
fn a_block_whose_emptying_was_left_off_and_that_was_used_again_keeps_its_pages() {
    let mut sim = Sim::new(Chip::TINY);
    let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
    let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
    let mut values = Values::new();
    for round in 0..4_000_u32 {
        let id = chance(round, 1) % 30;
        toy.put(id, u64::from(round)).unwrap();
        values.insert(id, u64::from(round));
        if chance(round, 2).is_multiple_of(8) {
            // One page, and then no more for a while.
            let mut budget = Budget::urgent(1);
            if let Some(victim) = toy.log.victim(&mut budget).unwrap() {
                let fate = toy.relocate(&victim).unwrap();
                toy.log.answer(victim, fate, &mut budget);
            }
        }
        toy.check_bounds();
    }
    assert_eq!(toy.values().unwrap(), values);
}

/// N5: an owner that fails while it is asked about a page, since it cannot read another one, gives no answer. The page may live.
#[test]
fn a_page_about_which_nobody_answered_stays_counted() {
    let mut sim = Sim::new(Chip::TINY);
    let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
    let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
    let mut unanswered = 0;
    let mut values = Values::new();
    for round in 0..4_000_u32 {
        // Everything once, then some of it, so that what is asked about lives.
        let id = if round < 28 { round } else { chance(round, 1) % 12 };
        toy.put(id, u64::from(round)).unwrap();
        values.insert(id, u64::from(round));
        if round % 5 == 0 {
            unanswered += u32::from(toy.log.victim(&mut Budget::urgent(1)).unwrap().is_some());
        }
        toy.check_bounds();
    }
    assert!(unanswered > 100, "{unanswered}");
    assert_eq!(toy.values().unwrap(), values);
}

/// N7: the block of the newest commit is not erased, though its owner needs no page of it and does not count it.
#[test]
fn the_newest_commit_outlives_a_recount_that_does_not_name_it() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = crate::formatted(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; log.page_size()];
    // It is the last page of its block, so that the block is closed.
    let mut newest = commit(&mut log).unwrap();
    while SMALL.geometry.index_in_block(newest) + 1 < SMALL.geometry.pages_per_block {
        let before = newest;
        log.dies(before);
        newest = commit(&mut log).unwrap();
    }
    log.recount_begin();
    log.found_all(true);
    assert_eq!(log.live_bound(SMALL.geometry.block_of(newest)), 1);
    for _ in 0..20 {
        log.checkpoint().unwrap();
        let mut budget = Budget::idle(16);
        while let Some(victim) = log.victim(&mut budget).unwrap() {
            log.answer(victim, nandu_log::Fate::Dead, &mut budget);
        }
        assert_eq!(log.committed(), Some(newest));
        log.read(newest, &mut page).unwrap();
    }
    // Whole rounds of the chip, with nothing committed: pages that promise nothing go.
    let mut log = crate::mounted(log.abandon_log(), PLAIN, &mut bytes).unwrap();
    log.read(log.committed().unwrap(), &mut page).unwrap();
    assert_eq!(page.last(), Some(&7));
    verify(&mut log);
}

/// Where the mark of the block to be opened cannot be read, nothing was appended that waits for a commit, and pages can be counted.
#[test]
fn an_append_that_did_not_reach_the_chip_is_no_page_before_a_commit() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let chip = crate::formatted(Sim::new(SMALL), PLAIN, &mut bytes).unwrap().abandon_log();
    let mut log = crate::mounted(chip, PLAIN, &mut bytes).unwrap();
    let Claimed::Granted(mut grant) = log.claim(Claim::Grow, 2, 2).unwrap() else { panic!("there is room") };
    log.nand_mut().power_off();
    let mut page = vec![0; log.page_size()];
    assert!(log.append(&mut page, Kind::Node, &mut grant).is_err());
    log.recount_begin();
    log.found_all(true);
    assert_eq!(log.live_pages(), 0);
}

/// N6: a commit that makes deaths count takes the block of a recovery rather than end the chip. A cut after it leaves a volume that can be read only, with that commit.
#[test]
fn a_commit_that_makes_deaths_count_takes_the_last_block_and_is_not_lost() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = crate::formatted(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; log.page_size()];
    let mut newest = None;
    while log.stats().pool_blocks > 0 {
        let Claimed::Granted(grant) = log.claim(Claim::Bury, 1, 1).unwrap() else { panic!("a block is left") };
        newest = Some(log.commit(&mut page, grant).unwrap());
    }
    assert!(!log.is_read_only() && log.committed() == newest);
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut cut = crate::mounted(log.nand().clone(), PLAIN, &mut bytes).unwrap();
    assert!(cut.is_read_only() && cut.committed() == newest);
    cut.read(newest.unwrap(), &mut page).unwrap();
}
