//! Power cuts at every operation of the durable trees, with every tear, and chains of cuts that hit recovery too.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_baselines::{BaselineError, DurableOptions, DurableTree, TreeKind};
use nandu_index::{Direction, Edit, OrderedIndex};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::durable::variants;

/// What was acknowledged, and the change under way.
#[derive(Clone, Default)]
struct Promise {
    is_open: bool,
    values: BTreeMap<u32, u32>,
    pending: Vec<(u32, Option<u32>)>,
    count: u32,
}

fn apply(values: &mut BTreeMap<u32, u32>, changes: &[(u32, Option<u32>)]) {
    for &(key, value) in changes {
        match value {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }
}

/// A number that follows from two others, as if by chance.
fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

type BoxError = Box<dyn std::error::Error>;

/// Opens the tree, making one only on a chip on which none was opened before.
fn open(chip: &mut Sim, options: DurableOptions, may_format: bool) -> Result<DurableTree<&mut Sim>, BoxError> {
    // A second try is made where the first one may have failed, since it holds the chip.
    let is_blank = may_format && matches!(DurableTree::mount(&mut *chip, options), Err(BaselineError::NotFormatted));
    Ok(if is_blank { DurableTree::format(chip, options)? } else { DurableTree::mount(chip, options)? })
}

fn contents(tree: &mut DurableTree<&mut Sim>) -> Result<BTreeMap<u32, u32>, BoxError> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let mut found = BTreeMap::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut |entry| {
        found.insert(number(entry.key), number(entry.value));
        ControlFlow::Continue(())
    })?;
    assert_eq!(found.len() as u64, tree.record_count());
    Ok(found)
}

/// Puts, deletes and batches.
fn workload(options: DurableOptions, operations: u32, keys: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut tree = open(chip, options, !promise.is_open)?;
        promise.values = contents(&mut tree)?;
        promise.pending.clear();
        promise.is_open = true;
        for _ in 0..operations {
            let count = promise.count;
            promise.count += 1;
            let key = chance(count, 1) % keys * 1000;
            promise.pending = match chance(count, 2) % 8 {
                0 => vec![(key, None)],
                1 => (0..5).map(|n| (key + n * 7000, (n % 3 != 2).then_some(count))).collect(),
                _ => vec![(key, Some(count))],
            };
            match promise.pending[..] {
                [(key, Some(value))] => drop(tree.insert(key, value)?),
                [(key, None)] => drop(tree.delete(key)?),
                ref list => {
                    let bytes: Vec<([u8; 4], Option<[u8; 4]>)> =
                        list.iter().map(|(key, value)| (key.to_be_bytes(), value.map(u32::to_be_bytes))).collect();
                    let edits: Vec<Edit<'_>> = bytes
                        .iter()
                        .map(|(key, value)| Edit { key, value: value.as_ref().map(|value| &value[..]) })
                        .collect();
                    tree.batch(&edits)?;
                }
            }
            apply(&mut promise.values, &promise.pending);
            promise.pending.clear();
        }
        Ok(())
    }
}

/// What was acknowledged is there; what was under way is wholly there or wholly not.
fn check(options: DurableOptions) -> impl Fn(&mut Sim, &Promise) -> Option<BTreeMap<u32, u32>> {
    move |chip, promise| {
        if !promise.is_open {
            return None;
        }
        let mut tree = open(chip, options, false).unwrap();
        let mut violations = Vec::new();
        tree.verify(&mut |violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        let found = contents(&mut tree).unwrap();
        let mut after = promise.values.clone();
        apply(&mut after, &promise.pending);
        assert!(found == promise.values || found == after, "neither before nor after {:?}", promise.pending);
        Some(found)
    }
}

/// A chip with records that stay, scattered over the blocks, so that the workload has the collector move them.
fn settled(options: DurableOptions) -> Sim {
    let mut tree = DurableTree::format(Sim::new(Chip::TINY.with_blocks(13)), options).unwrap();
    // Leaves of the B+-tree are twice as large, and the height of the mu-Tree is limited on such small pages; with fewer
    // blocks than the toy chip has, either tree keeps the collector busy.
    let count = if options.kind == TreeKind::Mu { 40 } else { 150 };
    for number in 0..count {
        tree.insert(2_000_000 + chance(number, 4) % count * 10, number).unwrap();
        tree.insert(chance(number, 3) % 40 * 1000, number).unwrap();
    }
    tree.into_nand()
}

/// Cuts each operation with each tear.
fn every(options: DurableOptions) {
    let summary = Driver::new(settled(options)).every(workload(options, 110, 40), check(options));
    println!("{summary:?}");
    assert!(summary.cases > 1000);
}

/// How many chains are tried: as many as the environment variable `NANDU_CHAINS` says, where it is set.
fn chain_count(usual: u64) -> u64 {
    std::env::var("NANDU_CHAINS").map_or(usual, |count| count.parse().unwrap())
}

/// Chains of one to four cuts, which hit recoveries and the workload that goes on after them.
fn chains(options: DurableOptions) {
    let recover = move |chip: &mut Sim| -> Run { open(chip, options, true).map(|_| ()) };
    let driver = Driver::new(settled(options)).resume().seed(7);
    let summary = driver.random(chain_count(300), workload(options, 110, 40), recover, check(options));
    println!("{summary:?}");
    assert!(summary.cuts > 300);
}

/// So many superblocks that the chain's blocks fill up and are replaced.
fn restless(options: DurableOptions) -> DurableOptions {
    DurableOptions { superblock_interval_pages: 1, ..options }
}

#[test]
fn the_workload_that_is_cut_collects_garbage_and_fills_blocks_of_the_chain() {
    for options in variants() {
        for (options, superblocks_min) in [(options, 4), (restless(options), 70)] {
            let mut chip = settled(options);
            chip.reset_counters();
            let mut promise = Promise::default();
            workload(options, 110, 40)(&mut chip, &mut promise).unwrap();
            let gc = *chip.ledger().of(nandu_nand::Cause::Gc);
            let superblocks = chip.ledger().of(nandu_nand::Cause::Checkpoint).programs;
            println!("{options:?}: {gc:?}, {superblocks} pages of the chain");
            assert!(gc.erases > 4 && gc.programs > 4, "{options:?}: {gc:?}");
            assert!(superblocks >= superblocks_min, "{options:?}: {superblocks} pages of the chain");
        }
    }
}

// A test for each tree, so that a failed case can be run alone.

#[test]
fn every_cut_of_the_mu_tree_leaves_what_was_acknowledged() {
    every(variants()[0]);
}

#[test]
fn every_cut_of_the_bplus_tree_leaves_what_was_acknowledged() {
    every(variants()[1]);
}

#[test]
fn every_cut_of_the_journal_tree_leaves_what_was_acknowledged() {
    every(variants()[2]);
}

/// Blocks that fail between the cuts, on a chip that has some to lose.
#[test]
fn chains_of_cuts_on_a_chip_that_fails_leave_what_was_acknowledged() {
    for options in variants() {
        let mut chip = Sim::new(Chip::TINY.with_blocks(32));
        chip.inject(Fault::ProgramFails, Trigger::Probability(0.005));
        chip.inject(Fault::EraseFails, Trigger::Probability(0.005));
        let recover = move |chip: &mut Sim| -> Run { open(chip, options, true).map(|_| ()) };
        let summary = Driver::new(chip).resume().seed(3).random(
            chain_count(150),
            workload(options, 60, 40),
            recover,
            check(options),
        );
        assert!(summary.cuts > 150);
    }
}

#[test]
fn every_cut_of_a_format_leaves_no_tree_or_an_empty_one() {
    for options in variants() {
        let summary = Driver::new(Chip::TINY).every(workload(options, 2, 60), check(options));
        assert!(summary.cases > 30);
    }
}

#[test]
fn every_cut_of_the_superblock_chain_leaves_what_was_acknowledged() {
    every(restless(variants()[0]));
}

#[test]
fn chains_of_cuts_of_the_mu_tree_leave_what_was_acknowledged() {
    chains(variants()[0]);
}

#[test]
fn chains_of_cuts_of_the_bplus_tree_leave_what_was_acknowledged() {
    chains(variants()[1]);
}

#[test]
fn chains_of_cuts_of_the_journal_tree_leave_what_was_acknowledged() {
    chains(variants()[2]);
}

#[test]
fn chains_of_cuts_of_the_superblock_chain_leave_what_was_acknowledged() {
    chains(restless(variants()[0]));
}
