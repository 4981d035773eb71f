//! The experiment of the paper's Table 5, held against the paper and against an independent model of it.
//!
//! A million insertions for each cell take a minute in all and are left out of the usual run:
//! `cargo test -p nandu-baselines --release -- --ignored --nocapture`.

use std::fmt;

use nandu_baselines::{Cache, PaperOptions, PaperTree, Stats, TreeKind};
use nandu_sim::{Chip, Sim};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const OPERATIONS: usize = 10_000;

const SEEDS: u64 = 5;

/// What an operation costs: the paper's figure, and that of the model.
type Pair = (f64, f64);

struct Row {
    kib: usize,
    operation: usize,
    /// Reads of the B+-tree and of the mu-Tree.
    reads: [Pair; 2],
    programs: [Pair; 2],
}

const NAMES: [&str; 3] = ["retrieval", "insertion", "deletion"];

const NOTHING: [Pair; 2] = [(0.0, 0.0); 2];

const fn row(kib: usize, operation: usize, reads: [Pair; 2], programs: [Pair; 2]) -> Row {
    Row { kib, operation, reads, programs }
}

const TABLE_5: [Row; 12] = [
    row(0, 0, [(3.00, 3.00), (2.97, 2.97)], NOTHING),
    row(0, 1, [(4.11, 4.10), (3.32, 3.27)], [(3.83, 3.83), (1.08, 1.08)]),
    row(0, 2, [(4.14, 4.08), (3.34, 3.25)], [(3.85, 3.81), (1.09, 1.07)]),
    row(4, 0, [(2.00, 2.00), (1.97, 1.97)], NOTHING),
    row(4, 1, [(2.83, 2.83), (2.74, 2.74)], [(3.83, 3.83), (1.08, 1.08)]),
    row(4, 2, [(2.83, 2.81), (2.76, 2.72)], [(3.83, 3.81), (1.09, 1.07)]),
    row(8, 0, [(1.77, 1.76), (1.94, 1.94)], NOTHING),
    row(8, 1, [(2.40, 2.38), (2.49, 2.50)], [(3.84, 3.82), (1.08, 1.08)]),
    row(8, 2, [(2.40, 2.38), (2.51, 2.49)], [(3.85, 3.81), (1.09, 1.07)]),
    row(16, 0, [(1.67, 1.66), (1.90, 1.89)], NOTHING),
    row(16, 1, [(2.03, 2.06), (2.29, 2.31)], [(2.75, 2.72), (1.08, 1.08)]),
    // The paper prints 1.82 and 2.08 reads here, which its own costs contradict: these solve to 1.97 and 2.29.
    row(16, 2, [(1.97, 2.06), (2.29, 2.30)], [(2.74, 2.72), (1.09, 1.07)]),
];

/// How far reads and programs of the B+-tree and of the mu-Tree move from seed to seed.
const TOLERANCES: [(f64, f64); 2] = [(0.10, 0.08), (0.06, 0.02)];

struct Phase {
    stats: Stats,
    ms: f64,
}

impl Phase {
    fn reads(&self) -> f64 {
        self.stats.reads as f64 / OPERATIONS as f64
    }

    fn programs(&self) -> f64 {
        self.stats.programs as f64 / OPERATIONS as f64
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} reads, {:.3} programs, {:.3} ms", self.reads(), self.programs(), self.ms)
    }
}

fn phase(tree: &mut PaperTree<Sim>, mut work: impl FnMut(&mut PaperTree<Sim>)) -> Phase {
    let before = (*tree.stats(), tree.nand().counters().busy_ns);
    work(tree);
    let stats = tree.stats().since(&before.0);
    Phase { stats, ms: (tree.nand().counters().busy_ns - before.1) as f64 / 1e6 / OPERATIONS as f64 }
}

fn run(options: PaperOptions, seed: u64) -> (PaperTree<Sim>, [Phase; 3]) {
    let mut tree = PaperTree::new(Sim::new(Chip::PAPER_MLC), options).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut keys: Vec<u32> = (0..1_000_000).map(|_| random.random()).collect();
    for &key in &keys {
        tree.insert(key, !key).unwrap();
    }
    keys.shuffle(&mut random);
    let retrieval = phase(&mut tree, |tree| {
        for &key in &keys[..OPERATIONS] {
            assert_eq!(tree.get(key).unwrap(), Some(!key));
        }
    });
    let deletion = phase(&mut tree, |tree| {
        for &key in &keys[OPERATIONS..2 * OPERATIONS] {
            tree.delete(key).unwrap();
        }
    });
    let insertion = phase(&mut tree, |tree| {
        for _ in 0..OPERATIONS {
            let key = random.random();
            tree.insert(key, !key).unwrap();
        }
    });
    (tree, [retrieval, insertion, deletion])
}

/// How far the mean over the seeds is from the nearer of paper and model, beyond what is accepted.
fn excess(mean: f64, (paper, model): Pair, tolerance: f64) -> f64 {
    (mean - paper).abs().min((mean - model).abs()) - tolerance
}

/// Held against the mean over five seeds, and single seeds are printed: the reads of a B+-tree's retrievals at 16+16 KB have
/// two values, near 1.57 and near 1.67. Whether one or two of the eight nodes below the root are left in the write cache for
/// all of the phase is a matter of how many operations came before it.
#[test]
#[ignore = "a million insertions for each cell"]
fn every_cell_is_within_the_tolerance_of_the_paper_or_of_the_model() {
    let mut sums = vec![[(0.0, 0.0, 0.0); 2]; TABLE_5.len()];
    for seed in 1..=SEEDS {
        for kib in [0, 4, 8, 16] {
            for (tree_index, kind) in [TreeKind::BPlus, TreeKind::Mu].into_iter().enumerate() {
                let options = PaperOptions::paper(kind, Cache::paper(kib, kib, 4096));
                let (tree, phases) = run(options, seed);
                assert_eq!(tree.height(), 3);
                for (row, sum) in TABLE_5.iter().zip(&mut sums).filter(|(row, _)| row.kib == kib) {
                    let phase = &phases[row.operation];
                    println!("seed {seed} {kib}+{kib} {} {kind:?}: {phase}", NAMES[row.operation]);
                    let sum = &mut sum[tree_index];
                    *sum = (sum.0 + phase.reads(), sum.1 + phase.programs(), sum.2 + phase.ms);
                }
                println!("seed {seed} {kib}+{kib} {kind:?}: {} live pages", tree.live_pages());
            }
        }
    }
    let mut missed = Vec::new();
    for (row, sums) in TABLE_5.iter().zip(&sums) {
        for (tree_index, name) in ["bplus", "mu"].into_iter().enumerate() {
            let (reads, programs, ms) = sums[tree_index];
            let count = f64::from(SEEDS as u32);
            let (reads, programs, ms) = (reads / count, programs / count, ms / count);
            let line = format!(
                "mean {0}+{0}/{1}/{name}: {reads:.3} reads {2:?}, {programs:.3} programs {3:?}, {ms:.3} ms",
                row.kib, NAMES[row.operation], row.reads[tree_index], row.programs[tree_index]
            );
            println!("{line}");
            let tolerance = TOLERANCES[tree_index];
            if excess(reads, row.reads[tree_index], tolerance.0) > 0.0
                || excess(programs, row.programs[tree_index], tolerance.1) > 0.0
            {
                missed.push(line);
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// What the paper's mu-Tree would have had for nothing, and what a cache of nodes makes of both trees.
#[test]
#[ignore = "a million insertions for each line"]
fn what_the_paper_left() {
    for kib in [4, 8, 16] {
        let paper = PaperOptions::paper(TreeKind::Mu, Cache::paper(kib, kib, 4096));
        let (_, phases) = run(PaperOptions { alloc_before_descent: false, ..paper }, 1);
        println!("{kib}+{kib} mu, allocated after the descent: insertion {}", phases[1]);
    }
    for kind in [TreeKind::BPlus, TreeKind::Mu] {
        for bytes in [0, 8192, 16384, 32768] {
            for cache in [Cache::WholePages { bytes }, Cache::Nodes { bytes }] {
                let options = PaperOptions { alloc_before_descent: false, ..PaperOptions::paper(kind, cache) };
                let (tree, phases) = run(options, 1);
                println!(
                    "{kind:?} {cache:?}: retrieval {}; insertion {}; deletion {}; {} pages",
                    phases[0],
                    phases[1],
                    phases[2],
                    tree.live_pages()
                );
            }
        }
    }
}
