//! What operations cost, exactly.

use std::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry};
use nandu_tree::{ByteCells, Cells, FixedCells, Options};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};

use crate::medium::{Bench, Counts, Shared};

/// Entries put by the tests of large trees.
const LARGE: u32 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };

fn paper_chip() -> Shared {
    Shared::new(4096, 48, 128 * 128)
}

fn options(cache_size: usize) -> Options {
    Options { cache_size, journal_pages: 64, ..Options::DEFAULT }
}

/// Operations on pages that each of `count` operations cost.
fn per_operation<C: Cells>(
    bench: &mut Bench<C>,
    count: u32,
    mut operation: impl FnMut(&mut Bench<C>, u32),
) -> (f64, f64) {
    let Counts { reads, programs, .. } = bench.medium.counts();
    for number in 0..count {
        operation(bench, number);
    }
    let after = bench.medium.counts();
    let each = |difference: u64| difference as f64 / f64::from(count);
    (each(after.reads - reads), each(after.programs - programs))
}

#[test]
fn random_inserts_cost_one_program_and_lookups_one_read() {
    for cache_size in [0, 8192, 16384, 32768] {
        let mut bench = Bench::new(paper_chip(), FixedCells::<4, 4>, options(cache_size));
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut keys: Vec<[u8; 4]> = Vec::new();
        let (insert_reads, insert_programs) = per_operation(&mut bench, LARGE, |bench, number| {
            let key = random.next_u32().to_be_bytes();
            bench.tree().put(&key, &number.to_be_bytes()).unwrap();
            keys.push(key);
        });
        let live = bench.medium.live_count();
        let (get_reads, _) = per_operation(&mut bench, 10_000, |bench, _| {
            let key = keys[random.random_range(0..keys.len())];
            assert!(bench.tree().get(&key).unwrap().is_some());
        });
        let (delete_reads, delete_programs) = per_operation(&mut bench, 10_000, |bench, _| {
            let key = keys.swap_remove(random.random_range(0..keys.len()));
            bench.tree().delete(&key).unwrap();
        });
        println!(
            "cache {cache_size}: insert {insert_reads:.3} reads {insert_programs:.4} programs, get {get_reads:.3}, \
             delete {delete_reads:.3} {delete_programs:.4}, {live} pages, height {}, {:?}",
            bench.tree().height(),
            bench.tree().stats()
        );
        assert!(insert_programs <= 1.01);
        assert!(delete_programs <= 1.001);
        let pages_max = f64::from(LARGE) * if cfg!(debug_assertions) { 2400.0 } else { 2310.0 } / 1e6;
        // Without a cache a tree of this size has a large root, and pays for fewer reads with pages.
        assert!((live as f64) < pages_max || (cfg!(debug_assertions) && cache_size == 0));
        assert!(get_reads <= if cache_size == 0 { 3.0 } else { 1.1 });
        let mut violations = Vec::new();
        bench.tree().verify(&mut |violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        bench.check_lives();
    }
}

#[test]
fn ascending_inserts_cost_one_program_and_hardly_a_read_at_any_memory() {
    for cache_size in [0, 8192] {
        let mut bench = Bench::new(paper_chip(), FixedCells::<4, 4>, options(cache_size));
        let (reads, programs) = per_operation(&mut bench, LARGE, |bench, number| {
            bench.tree().put(&number.to_be_bytes(), &number.to_be_bytes()).unwrap();
        });
        let live = bench.medium.live_count();
        println!("ascending, cache {cache_size}: {reads:.4} reads {programs:.4} programs, {live} pages");
        assert!(reads <= 0.005);
        assert!(programs <= 1.001);
        // Leaves are left as full as fits beside the path when its nodes have grown: without a cache the root is large.
        let live_max = if cache_size == 0 { 2700.0 } else { 1700.0 };
        assert!((live as f64) < f64::from(LARGE) * live_max / 1e6);
        bench.check_lives();
    }
}

#[test]
fn records_of_a_hundred_bytes_cost_what_the_peers_are_measured_by() {
    let cache_size = 16 * 1024 - 2048 - 3 * 2048 - 256;
    let mut bench = Bench::new(Shared::new(2048, 44, 256 * 64), ByteCells, options(cache_size));
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let key = |number: u32| format!("{number:04}").into_bytes();
    for number in 0..500 {
        bench.tree().put(&key(number), &[number as u8; 96]).unwrap();
    }
    let (reads, programs) = per_operation(&mut bench, 20_000, |bench, round| {
        bench.tree().put(&key(random.random_range(0..500)), &[round as u8; 96]).unwrap();
    });
    let (lookup_reads, _) = per_operation(&mut bench, 20_000, |bench, _| {
        bench.tree().get(&key(random.random_range(0..500))).unwrap().unwrap();
    });
    println!("peers: {reads:.3} reads {programs:.4} programs, lookup {lookup_reads:.3}");
    assert!(programs <= 1.002);
    assert!(reads <= 1.0);
    assert!(lookup_reads <= 1.0);
    bench.check_lives();
}

/// A file system looks names up by ranges: were one that ends where its leaf ends to look at the next leaf too, many a lookup would read
/// two.
#[test]
fn a_range_within_a_leaf_reads_that_leaf_alone() {
    let mut bench = Bench::new(paper_chip(), ByteCells, options(32_768));
    let key = |number: u32| number.to_be_bytes();
    for number in 0..20_000 {
        bench.tree().put(&key(number), &[number as u8; 20]).unwrap();
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let mut visited = 0;
        let (reads, _) = per_operation(&mut bench, 20_000, |bench, round| {
            let key = key(round * 7919 % 20_000);
            let bound = Bound::Included(&key[..]);
            let count = |_: Entry<'_>| {
                visited += 1;
                ControlFlow::Continue(())
            };
            bench.tree().range(bound, bound, direction, count).unwrap();
        });
        assert!(visited == 20_000 && reads <= 1.0, "{visited} visited, {reads:.3} reads");
    }
}
