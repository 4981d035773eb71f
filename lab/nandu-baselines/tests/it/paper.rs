//! The trees of the paper on small chips: what they answer, and what they cost without caches.

use nandu_baselines::{BaselineError, Cache, PaperOptions, PaperTree, Stats, TreeKind};
use nandu_index::OrderedIndex;
use nandu_index::suite::{KeyKind, Space, Subject, conformance};
use nandu_nand::Geometry;
use nandu_sim::{Chip, Sim, SimError};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

type Error = BaselineError<SimError>;

const KINDS: [TreeKind; 2] = [TreeKind::Mu, TreeKind::BPlus];

/// Pages of 512 bytes, so that trees grow high with few records, and a spare area for what a header would say.
pub(crate) fn small(block_count: u32) -> Chip {
    let geometry = Geometry {
        page_size: 512,
        spare_size: 64,
        pages_per_block: 16,
        block_count,
        program_unit: 512,
        ..Chip::TINY.geometry
    };
    Chip { geometry, ..Chip::TINY }
}

fn tree(chip: Chip, kind: TreeKind, cache: Cache) -> PaperTree<Sim> {
    PaperTree::new(Sim::new(chip), PaperOptions::paper(kind, cache)).unwrap()
}

struct Bench(PaperTree<Sim>);

impl Subject for Bench {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        &mut self.0
    }

    /// The paper's trees are not opened again; what is in memory stays.
    fn reopen(&mut self) {}
}

fn caches() -> [Cache; 6] {
    let pages = |read_pages, write_pages| Cache::Pages { read_pages, write_pages };
    [Cache::NONE, pages(1, 1), pages(4, 4), pages(0, 8), Cache::Nodes { bytes: 700 }, Cache::WholePages { bytes: 1024 }]
}

#[test]
fn both_trees_conform_with_every_cache() {
    let space =
        Space { keys: KeyKind::Fixed(4), key_count: 900, value_size_min: 4, value_size_max: 4, operations_max: 120 };
    for kind in KINDS {
        for cache in caches() {
            conformance(space, 25, || Bench(tree(small(96), kind, cache)));
        }
    }
}

fn assert_sound(tree: &mut PaperTree<Sim>) {
    let mut violations = Vec::new();
    tree.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
}

/// With random keys a wrong half in a page shows nothing; with ascending keys the collector then erases live nodes.
#[test]
fn ascending_keys_survive_garbage_collection() {
    for kind in KINDS {
        for cache in caches() {
            let mut tree = tree(small(40), kind, cache);
            // A write cache takes in most of what ascending keys change, so it takes some rounds to fill the chip.
            while tree.stats().gc_runs < 60 {
                for key in 0..6000 {
                    tree.insert(key, !key).unwrap();
                    if key % 1000 == 0 {
                        assert_sound(&mut tree);
                    }
                }
                for key in (0..6000).rev() {
                    assert_eq!(tree.get(key).unwrap(), Some(!key));
                }
                for key in 0..6000 {
                    assert!(tree.delete(key).unwrap());
                }
                assert_sound(&mut tree);
                assert_eq!((tree.record_count(), tree.height()), (0, 1));
            }
        }
    }
}

#[test]
fn the_height_shrinks_from_either_end_and_in_any_order() {
    for kind in KINDS {
        for seed in 0..3 {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut tree = tree(small(64), kind, Cache::Pages { read_pages: 2, write_pages: 2 });
            let mut keys: Vec<u32> = (0..4000).map(|number| number * 7).collect();
            for key in &keys {
                tree.insert(*key, 1).unwrap();
            }
            let high = tree.height();
            assert!(high > 2);
            match seed {
                0 => keys.reverse(),
                1 => {}
                _ => keys.shuffle(&mut random),
            }
            for (number, key) in keys.iter().enumerate() {
                assert!(tree.delete(*key).unwrap());
                if number % 400 == 0 {
                    assert_sound(&mut tree);
                }
            }
            assert_eq!((tree.height(), tree.record_count(), tree.live_pages()), (1, 0, 1));
        }
    }
}

/// Table 3 of the paper: without cache, collection and split, h reads each, and 1 or h programs.
#[test]
fn costs_are_those_of_the_papers_table_3() {
    for kind in KINDS {
        let chip = Chip { geometry: Geometry { block_count: 1024, ..small(1).geometry }, ..small(1) };
        let mut tree = tree(chip, kind, Cache::NONE);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let keys: Vec<u32> = (0..1500).map(|_| random.random()).collect();
        for &key in &keys {
            tree.insert(key, 0).unwrap();
        }
        let height = u64::from(tree.height());
        let programs = if kind == TreeKind::Mu { 1 } else { height };
        let cost = |tree: &mut PaperTree<Sim>, work: &mut dyn FnMut(&mut PaperTree<Sim>)| {
            let before = *tree.stats();
            work(tree);
            tree.stats().since(&before)
        };
        // A path may lie in fewer pages than it has levels; so what is looked at is one that does not.
        let apart = |tree: &mut PaperTree<Sim>| {
            let mut far = None;
            for &key in &keys {
                if cost(tree, &mut |tree| assert!(tree.get(key).unwrap().is_some())).reads == height {
                    far = Some(key);
                }
            }
            far.unwrap()
        };
        let key = apart(&mut tree);
        assert_eq!(
            cost(&mut tree, &mut |tree| assert!(tree.insert(key, 9).unwrap())),
            Stats { reads: height, programs, ..Stats::default() }
        );
        let key = apart(&mut tree);
        assert_eq!(
            cost(&mut tree, &mut |tree| assert!(tree.delete(key).unwrap())),
            Stats { reads: height, programs, ..Stats::default() }
        );
        assert_eq!(tree.nand().counters().programs, tree.stats().programs);
    }
}

#[test]
fn a_full_chip_refuses_changes_nothing_and_stays_readable() {
    for kind in KINDS {
        let mut tree = tree(small(8), kind, Cache::NONE);
        let mut count = 0_u32;
        let refused = loop {
            match tree.insert(count.wrapping_mul(2_654_435_761), count) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused, BaselineError::Full);
        assert!(count > 300, "{kind:?} was full at {count} records");
        for number in 0..count {
            assert_eq!(tree.get(number.wrapping_mul(2_654_435_761)).unwrap(), Some(number));
        }
        assert_sound(&mut tree);
    }
}

#[test]
fn what_is_no_key_of_four_bytes_is_refused() {
    let mut tree = tree(small(16), TreeKind::Mu, Cache::NONE);
    assert_eq!(tree.put(&[1; 3], &[0; 4]), Err(BaselineError::Width { size: 3 }));
    assert_eq!(tree.put(&[1; 4], &[0; 5]), Err(BaselineError::Width { size: 5 }));
    assert_eq!(OrderedIndex::count(&mut tree), Ok(0));
}

/// The paper's gain of 90 % for a file that grows, with a write cache of one page, is had only so: the page before dies
/// in its slot, which is then free, and nothing is left to overflow when the change ends.
#[test]
fn changes_of_one_leaf_stay_in_the_write_cache() {
    let mut tree = tree(small(96), TreeKind::Mu, Cache::Pages { read_pages: 1, write_pages: 1 });
    for _ in 0..100 {
        tree.insert(7, 7).unwrap();
    }
    assert_eq!(tree.stats().programs, 0);
    tree.sync().unwrap();
    assert_eq!(tree.stats().programs, 1);
}
