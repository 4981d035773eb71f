//! What the collector costs where inner nodes are in memory: which pages live is known without reading the dead, and leaves ride.

use nandu_log::{Log, LogOptions};
use nandu_nand::{Cause, PageAddr};
use nandu_sim::{Chip, Sim};
use nandu_tree::{ByteCells, Durability, Examine, Examined, OnLog, Options, Tree};

const UPDATES: u64 = 20_000;

#[derive(Debug)]
struct Costs {
    programs: u64,
    /// Of these, the collector's.
    moved: u64,
    collector_reads: u64,
    /// Leaves that rode instead of being moved.
    lifted: u64,
    erases: u64,
}

/// What so many updates cost, each synced, on a chip that is being collected.
fn costs(cache_size: usize) -> Costs {
    let chip = Chip::W25N01GV.with_blocks(48);
    let log_options = LogOptions::DEFAULT;
    let options = Options { cache_size, durability: Durability::OnSync, pending_size: 8192, ..Options::DEFAULT };
    let mut log_bytes = vec![0; Log::<Sim>::memory_required(&chip.geometry, &log_options)];
    let mut bytes = vec![0; nandu_tree::memory_required(2048, &options)];
    let log = Log::format(Sim::new(chip), log_options, &mut log_bytes).unwrap();
    let mut tree = Tree::create(OnLog::new(log), ByteCells, options, &mut bytes).unwrap();
    let key = |number: u32| (number.wrapping_mul(0x9E37_79B1) % 20_000).to_be_bytes();
    for number in 0..6_000 {
        tree.put(&key(number), &[7; 60]).unwrap();
    }
    tree.sync().unwrap();
    let before = tree.pages().log().stats();
    let reads_before = tree.pages_mut().log_mut().nand().ledger().of(Cause::Gc).reads;
    for number in 0..UPDATES as u32 {
        tree.put(&key(number.wrapping_mul(0x85EB_CA6B) >> 9), &[8; 60]).unwrap();
        tree.sync().unwrap();
    }
    let lifted = tree.stats().lifted;
    let log = tree.pages_mut().log_mut();
    let (after, reads) = (log.stats(), log.nand().ledger().of(Cause::Gc).reads - reads_before);
    Costs {
        programs: after.programs_total() - before.programs_total(),
        moved: after.programs_for(Cause::Gc) - before.programs_for(Cause::Gc),
        collector_reads: reads,
        lifted,
        erases: after.erases - before.erases,
    }
}

#[test]
fn dead_pages_are_not_read_for_the_collector_where_inner_nodes_are_in_memory() {
    let [small, large] = [512, 32 << 10].map(costs);
    println!("{small:?}\n{large:?}");
    // A leaf that rides is read when it is asked about, and one that is moved.
    assert!(large.erases > 300 && large.collector_reads <= 2 * (large.moved + large.lifted), "{large:?}");
    assert!(small.collector_reads > 10 * large.collector_reads, "{small:?}, {large:?}");
}

#[test]
fn leaves_ride_with_syncs_and_are_not_moved() {
    let costs = costs(32 << 10);
    assert!(costs.lifted > 100, "{costs:?}");
    // A commit for each sync, and a tenth for what memory has no room for, journal pages that are moved, and checkpoints.
    assert!(costs.programs <= UPDATES * 110 / 100, "{costs:?}");
}

/// What is found out about a block is forgotten when the block is filled again, and nothing is found out about one that is being filled.
#[test]
fn a_block_that_is_filled_again_is_asked_about_anew() {
    let (log_options, options) = (LogOptions::DEFAULT, Options::DEFAULT);
    for is_watched in [true, false] {
        let chip = Chip::TINY.with_blocks(24);
        let pages_per_block = chip.geometry.pages_per_block;
        let mut log_bytes = vec![0; Log::<Sim>::memory_required(&chip.geometry, &log_options)];
        let mut bytes = vec![0; nandu_tree::memory_required(256, &options)];
        let log = Log::format(Sim::new(chip), log_options, &mut log_bytes).unwrap();
        let mut tree = Tree::create(OnLog::new(log), ByteCells, options, &mut bytes).unwrap();
        let mut block = None;
        let mut live_there = 0;
        for round in 0..400_u32 {
            let key = [(round % 3) as u8];
            tree.put(&key, &[round as u8; 10]).unwrap();
            let mut live = Vec::new();
            tree.live_pages(&mut |page| live.push(page)).unwrap();
            live.sort();
            let block = *block.get_or_insert(live[0].0 / pages_per_block);
            live.retain(|page| page.0 / pages_per_block == block);
            live_there += live.len();
            let examine = |page| Examine { page, moves: false, may_wait: false };
            if is_watched {
                live.iter().for_each(|&page| {
                    assert_eq!(tree.examine(examine(page)).unwrap(), Examined::Live, "{page:?}, round {round}")
                });
            } else if live.is_empty() {
                // The block holds nothing, and is going to be filled again.
                tree.examine(examine(PageAddr(block * pages_per_block))).unwrap();
            } else if live[0].0 % pages_per_block > 3 {
                let page = live[live.len() - 1];
                assert_eq!(tree.examine(examine(page)).unwrap(), Examined::Live, "{page:?}, round {round}");
            }
        }
        assert!(live_there > 20, "{live_there}");
    }
}
