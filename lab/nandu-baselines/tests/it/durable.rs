//! The durable trees: the suite with mounts in between, a busy chip, faults.

use std::collections::BTreeMap;

use nandu_baselines::{BaselineError, DurableOptions, DurableTree, TreeKind};
use nandu_index::OrderedIndex;
use nandu_index::suite::{KeyKind, Space, Subject, conformance};
use nandu_sim::{Chip, Fault, Sim, SimError, Tear, Trigger};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

type Error = BaselineError<SimError>;

/// The mu-Tree with the paper's layout, the wandering B+-tree, and the same with a journal tree.
pub(crate) fn variants() -> [DurableOptions; 3] {
    let mu = DurableOptions { superblock_interval_pages: 24, ..DurableOptions::new(TreeKind::Mu) };
    let bplus = DurableOptions { kind: TreeKind::BPlus, ..mu };
    [mu, bplus, DurableOptions { journal_nodes: 3, ..bplus }]
}

struct Bench {
    tree: Option<DurableTree<Sim>>,
    options: DurableOptions,
}

impl Bench {
    fn new(chip: Chip, options: DurableOptions) -> Bench {
        Bench { tree: Some(DurableTree::format(Sim::new(chip), options).unwrap()), options }
    }
}

impl Subject for Bench {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        self.tree.as_mut().unwrap()
    }

    fn reopen(&mut self) {
        let chip = self.tree.take().unwrap().into_nand();
        self.tree = Some(DurableTree::mount(chip, self.options).unwrap());
    }
}

#[test]
fn all_durable_trees_conform_with_mounts_in_between() {
    let space =
        Space { keys: KeyKind::Fixed(4), key_count: 500, value_size_min: 4, value_size_max: 4, operations_max: 120 };
    for options in variants() {
        for read_pages in [0, 3] {
            let options = DurableOptions { read_pages, ..options };
            conformance(space, 25, || Bench::new(crate::paper::small(64), options));
        }
    }
}

fn assert_sound<N: nandu_nand::Nand>(tree: &mut DurableTree<N>) {
    let mut violations = Vec::new();
    tree.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
}

/// Random changes, with mounts now and then, held against a map.
fn churn(mut chip: Sim, options: DurableOptions, changes: u32, keys: u32, seed: u64) -> DurableTree<Sim> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = BTreeMap::new();
    chip.reset_counters();
    let mut tree = DurableTree::format(chip, options).unwrap();
    for round in 0..changes {
        let key = random.random_range(0..keys) * 1000;
        if random.random_range(0..4) == 0 {
            assert_eq!(tree.delete(key).unwrap(), model.remove(&key).is_some());
        } else {
            assert_eq!(tree.insert(key, round).unwrap(), model.insert(key, round).is_some());
        }
        if round % 700 == 699 {
            assert_sound(&mut tree);
            tree = DurableTree::mount(tree.into_nand(), options).unwrap();
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
    for options in variants() {
        let tree = churn(Sim::new(crate::paper::small(40)), options, 6000, 600, 1);
        assert!(tree.nand().counters().erases > 200, "{options:?}: {} erases", tree.nand().counters().erases);
    }
}

#[test]
fn failing_operations_cost_blocks_and_nothing_else() {
    for options in variants() {
        for fault in [Fault::ProgramFails, Fault::EraseFails, Fault::Bus(Tear::Complete), Fault::Bus(Tear::SomeBits)] {
            for seed in 0..4 {
                let mut chip = Sim::with_seed(crate::paper::small(64), seed).with_factory_bad(5.0, false);
                chip.inject(fault, Trigger::Probability(0.0025));
                let tree = churn(chip, options, 2500, 300, seed);
                let failed = tree.nand().counters().programs + tree.nand().counters().erases;
                assert!(failed > 1000);
            }
        }
    }
}

/// On blocks of 8 pages, 512 superblocks fill an anchor block, and the next one is erased and used.
#[test]
fn the_chain_turns_over_to_its_anchors() {
    let options = DurableOptions { superblock_interval_pages: 1, ..DurableOptions::new(TreeKind::Mu) };
    let tree = churn(Sim::new(Chip::TINY), options, 2000, 60, 5);
    let anchors: Vec<u32> =
        (0..3).map(|block| tree.nand().block_state(nandu_nand::BlockAddr(block)).counters.erases).collect();
    assert!(anchors.iter().all(|&erases| erases >= 1) && anchors.iter().sum::<u32>() > 5, "{anchors:?}");
}

/// How a mount finds the tree: along the chain, through the pages since the newest superblock, and over the index nodes.
#[test]
fn a_mount_reads_the_chain_the_tail_and_the_index_nodes() {
    for options in variants() {
        let options = DurableOptions { superblock_interval_pages: 64, ..options };
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let mut tree = DurableTree::format(Sim::new(Chip::W25N01GV.with_blocks(128)), options).unwrap();
        let mut worst = (0, 0);
        let mut programs = 0;
        for round in 0..12_000_u32 {
            tree.insert(random.random(), round).unwrap();
            if round % 500 == 499 {
                programs += tree.stats().programs;
                tree = DurableTree::mount(tree.into_nand(), options).unwrap();
                let reads = tree.mount_reads();
                worst = (worst.0.max(reads.chain), worst.1.max(reads.tail));
            }
        }
        println!(
            "{options:?}: {} programs per change, mounts read {worst:?}, last {:?}, {} live pages, height {}",
            f64::from(programs as u32) / 12_000.0,
            tree.mount_reads(),
            tree.live_pages(),
            tree.height()
        );
        // Seven reads find the newest of 64 pages, in three blocks, after the anchors were looked for in sixteen.
        assert!(worst.0 <= 16 + 3 * 7, "{options:?}: {} reads along the chain", worst.0);
        // The operation that exceeds the interval ends before the superblock is written, and each block may end the tail.
        assert!(worst.1 <= 64 + 16 + 5, "{options:?}: {} reads of the tail", worst.1);
    }
}
