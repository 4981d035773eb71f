//! Changes that become durable together, on pages in memory.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_index::suite::{KeyKind, Space, conformance, prefixes};
use nandu_tree::{ByteCells, Cells, Direction, Durability, Edit, Examine, FixedCells, Options, Tree, TreeError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::medium::{Bench, Shared, memory};

const SMALL: Options = Options {
    cache_size: 300,
    journal_pages: 256,
    durability: Durability::OnSync,
    pending_size: 700,
    ..Options::DEFAULT
};

fn fixed(key_count: u32) -> Space {
    Space { keys: KeyKind::Fixed(4), key_count, value_size_min: 4, value_size_max: 4, operations_max: 200 }
}

fn bench<C: Cells>(page_size: usize, cells: C, options: Options) -> Bench<C> {
    Bench::new(Shared::new(page_size, 44, 4000), cells, options)
}

#[test]
fn fixed_cells_conform() {
    conformance(fixed(900), 200, || bench(256, FixedCells::<4, 4>, SMALL));
    prefixes(fixed(900), 200, || bench(256, FixedCells::<4, 4>, SMALL));
}

#[test]
fn fixed_cells_conform_with_much_memory_on_larger_pages() {
    let options = Options { pending_size: 4000, cache_size: 0, ..SMALL };
    conformance(fixed(900), 200, || bench(512, FixedCells::<4, 4>, options));
    prefixes(fixed(900), 200, || bench(512, FixedCells::<4, 4>, options));
}

#[test]
fn byte_cells_conform() {
    let space = Space { keys: KeyKind::Bytes(12), value_size_min: 0, value_size_max: 20, ..fixed(200) };
    conformance(space, 200, || bench(256, ByteCells, SMALL));
    prefixes(space, 200, || bench(256, ByteCells, SMALL));
}

#[test]
fn changes_too_large_for_the_memory_go_to_their_leaves() {
    let space = Space { keys: KeyKind::Bytes(12), value_size_min: 0, value_size_max: 20, ..fixed(200) };
    for pending_size in [60, 0] {
        let options = Options { pending_size, ..SMALL };
        conformance(space, 50, || bench(256, ByteCells, options));
        prefixes(space, 50, || bench(256, ByteCells, options));
    }
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn records<C: Cells>(tree: &mut Tree<'static, Shared, C>) -> Records {
    let mut found = Records::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), vec![0; entry.large.unwrap_or(0)]);
        if entry.large.is_none() {
            found.insert(entry.key.to_vec(), entry.value.to_vec());
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    for (key, value) in &mut found {
        let size = value.len();
        assert_eq!(tree.read(key, 0, value).unwrap(), Some(size));
    }
    found
}

/// Has the medium ask about a page before the next change.
fn ask_about(medium: &Shared, random: &mut ChaCha8Rng) {
    let pages = medium.live_pages();
    let page = pages[random.random_range(0..pages.len())];
    medium.0.borrow_mut().to_examine.push(page);
}

/// Changes, syncs, pages moved by the collector, and cuts between any two of them. The medium sees to it that no page
/// superseded is read; after a cut the tree holds what it held at the last sync, or after a change since then. One put in
/// eight is of a value of up to `large_size` bytes, if that is not 0.
fn survive_cuts<C: Cells>(
    cells: C,
    page_size: usize,
    options: Options,
    key: impl Fn(u32) -> Vec<u8>,
    (value_size, large_size): (u32, u32),
    keys_min: u32,
) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut cuts = 0;
    let (mut rides, mut full_rides) = (0, 0);
    for round in 0..60 {
        let medium = Shared::new(page_size, 44, 4000);
        let mut tree = Tree::create(medium.clone(), cells, options, memory(page_size, &options)).unwrap();
        // The states since the last sync, that one first.
        let mut states = vec![Records::new()];
        let key_count = keys_min + keys_min / 3 * (round % 20);
        for _ in 0..(15 * keys_min).min(2000) {
            let mut records_now = states.last().unwrap().clone();
            let key = key(random.random_range(0..key_count));
            let value = vec![random.random::<u8>(); random.random_range(value_size.min(1)..=value_size) as usize];
            let value = if value_size == 4 { vec![value[0]; 4] } else { value };
            let chance = random.random_range(0..60);
            // With many keys the memory for changes is to become full, so cuts and moves are rare.
            let is_spared = keys_min > 40 && chance >= 53 && random.random_range(0..8) > 0;
            match if is_spared { 20 } else { chance } {
                0..4 if large_size > 0 && (keys_min <= 40 || chance == 0) => {
                    let value = vec![random.random::<u8>(); random.random_range(0..=large_size) as usize];
                    let existed = records_now.insert(key.clone(), value.clone()).is_some();
                    if key.len() + value.len() > tree.entry_size_max() {
                        tree.begin_value(&key, value.len()).unwrap();
                        for piece in value.chunks(tree.value_page_size(&key)) {
                            ask_about(&medium, &mut random);
                            tree.append_value(&key, piece).unwrap();
                        }
                        assert_eq!(tree.finish_value(&key).unwrap(), existed);
                        // Durable when it returns, and all before it.
                        states = vec![records_now];
                        continue;
                    }
                    assert_eq!(tree.put(&key, &value).unwrap(), existed);
                }
                0..30 => {
                    let existed = records_now.insert(key.clone(), value.clone()).is_some();
                    assert_eq!(tree.put(&key, &value).unwrap(), existed);
                }
                30..40 => {
                    let existed = records_now.remove(&key).is_some();
                    assert_eq!(tree.delete(&key).unwrap(), existed);
                }
                40..43 => {
                    let other = [&key[..key.len() - 1], &[255]].concat();
                    if other > key {
                        records_now.insert(key.clone(), value.clone());
                        records_now.remove(&other);
                        tree.batch(&[Edit { key: &key, value: Some(&value) }, Edit { key: &other, value: None }])
                            .unwrap();
                    }
                }
                43..53 => {
                    tree.sync().unwrap();
                    states = vec![states.pop().unwrap()];
                }
                53..57 => {
                    for _ in 0..4 {
                        ask_about(&medium, &mut random);
                    }
                    continue;
                }
                57 => {
                    let expected = records_now.get(&key).map(Vec::as_slice);
                    match tree.get(&key) {
                        Err(TreeError::LargeValue(size)) => {
                            let mut value = vec![0; size];
                            assert_eq!(tree.read(&key, 0, &mut value).unwrap(), Some(size));
                            assert_eq!(Some(&value[..]), expected);
                        }
                        found => assert_eq!(found.unwrap(), expected),
                    }
                    continue;
                }
                _ => {
                    cuts += 1;
                    medium.0.borrow_mut().to_examine.clear();
                    rides += tree.stats().rides;
                    full_rides += tree.stats().full_rides;
                    drop(tree);
                    tree = Tree::open(medium.clone(), cells, options, memory(page_size, &options)).unwrap();
                    if random.random_range(0..2) == 0 {
                        // Changes go on before anything was looked at.
                        let found = tree.record_count();
                        assert!(states.iter().any(|state| state.len() as u64 == found));
                        let page = medium.live_pages()[0];
                        tree.examine(Examine { page, moves: true, may_wait: false }).unwrap();
                    }
                    let found = records(&mut tree);
                    assert!(states.contains(&found), "round {round}: {found:?} is none of {states:?}");
                    assert_eq!(tree.record_count(), found.len() as u64);
                    states = vec![found];
                    continue;
                }
            }
            states.push(records_now);
        }
        medium.0.borrow_mut().to_examine.clear();
        assert_eq!(records(&mut tree), *states.last().unwrap());
        let mut violations = Vec::new();
        tree.verify(&mut |violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        tree.sync().unwrap();
        let mut live = Vec::new();
        tree.live_pages(&mut |page| live.push(page)).unwrap();
        live.sort();
        assert_eq!(live, medium.live_pages());
        tree.settle().unwrap();
        drop(tree);
        let immediate = Options { durability: Durability::Immediate, pending_size: 0, ..options };
        let mut tree = Tree::open(medium, cells, immediate, memory(page_size, &immediate)).unwrap();
        assert_eq!(records(&mut tree), *states.last().unwrap());
    }
    assert!(cuts > 500, "{cuts}");
    println!("{cuts} cuts, {rides} leaves carried changes of others, {full_rides} had no room for them");
    // All before a cut.
    rides
}

#[test]
fn a_cut_leaves_a_sync_of_fixed_cells() {
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes().to_vec();
    survive_cuts(FixedCells::<4, 4>, 256, SMALL, key, (4, 0), 40);
    survive_cuts(FixedCells::<4, 4>, 512, Options { pending_size: 3000, ..SMALL }, key, (4, 0), 40);
    for (pending_size, page_size) in [(500, 1024), (700, 2048)] {
        let options = Options { pending_size, ..SMALL };
        let rides = survive_cuts(FixedCells::<4, 4>, page_size, options, key, (4, 0), 300);
        assert!(rides > 100, "{rides}");
    }
}

#[test]
fn a_cut_leaves_a_sync_of_byte_cells() {
    let key = |number: u32| {
        let mixed = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
        mixed[..2 + number as usize % 3].to_vec()
    };
    survive_cuts(ByteCells, 256, SMALL, key, (20, 0), 40);
    survive_cuts(ByteCells, 512, Options { pending_size: 3000, ..SMALL }, key, (20, 0), 40);
    let rides = survive_cuts(ByteCells, 1024, Options { pending_size: 1500, ..SMALL }, key, (20, 0), 300);
    assert!(rides > 300, "{rides}");
}

/// Changes that wait hide large values and are hidden by them; the collector moves both.
#[test]
fn a_cut_leaves_a_sync_among_large_values() {
    let key = |number: u32| (number % 60).wrapping_mul(0x9E37_79B1).to_be_bytes()[..3].to_vec();
    survive_cuts(ByteCells, 256, SMALL, key, (20, 1500), 40);
    survive_cuts(ByteCells, 512, Options { pending_size: 3000, ..SMALL }, key, (20, 4000), 40);
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes()[..3].to_vec();
    let rides = survive_cuts(ByteCells, 1024, Options { pending_size: 700, ..SMALL }, key, (20, 4000), 150);
    assert!(rides > 300, "{rides}");
}

/// Programs and reads for each of the updates of the second half, on pages of this size, a sync after every `k`.
fn costs_of_updates(page_size: usize, cache_size: usize, pending_size: usize, k: u32) -> (f64, f64) {
    const RECORD_COUNT: u32 = 10_000;
    const UPDATE_COUNT: u32 = 2500;
    let options = Options { cache_size, pending_size, durability: Durability::OnSync, ..Options::DEFAULT };
    let mut bench = Bench::new(Shared::new(page_size, 44, 8000), FixedCells::<4, 4>, options);
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for number in 0..RECORD_COUNT {
        bench.tree().put(&number.wrapping_mul(0x9E37_79B1).to_be_bytes(), &[0; 4]).unwrap();
    }
    let mut before = bench.medium.counts();
    for number in 0..2 * UPDATE_COUNT {
        if number == UPDATE_COUNT {
            before = bench.medium.counts();
        }
        let key = random.random_range(0..RECORD_COUNT).wrapping_mul(0x9E37_79B1);
        bench.tree().put(&key.to_be_bytes(), &number.to_be_bytes()).unwrap();
        if (number + 1).is_multiple_of(k) {
            bench.tree().sync().unwrap();
        }
    }
    let after = bench.medium.counts();
    let each = |difference: u64| difference as f64 / f64::from(UPDATE_COUNT);
    (each(after.programs - before.programs), each(after.reads - before.reads))
}

/// More memory for changes than the list of journal pages can account for is left unused, and costs nothing.
#[test]
fn more_memory_for_changes_never_costs_more_programs() {
    for k in [4, 64] {
        let mut least = f64::INFINITY;
        for pending_size in [1000, 2000, 3000, 8000, 65_535] {
            let (programs, reads) = costs_of_updates(512, 2048, pending_size, k);
            println!("{pending_size} bytes, a sync after {k}: {programs:.3} programs, {reads:.3} reads");
            // Which leaves the updates meet is chance.
            assert!(programs < 1.02 * least, "{programs} programs in {pending_size} bytes, {least} in fewer");
            least = least.min(programs);
        }
    }
}

/// As a file system changes its records: two to four in a group, one of them behind all others, one next to it or to another, one or two
/// anywhere; a sync after each group. It costs little more than the page that each sync has to program.
#[test]
fn small_groups_in_several_leaves_cost_a_program_each() {
    const GROUP_COUNT: u32 = 4000;
    const RECORD_COUNT: u32 = 60_000;
    let options = Options {
        cache_size: 8192,
        journal_pages: 64,
        durability: Durability::OnSync,
        pending_size: 16_384,
        ..Options::DEFAULT
    };
    let mut bench = Bench::new(Shared::new(4096, 48, 16_000), ByteCells, options);
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut before, mut stats) = (bench.medium.counts(), *bench.tree().stats());
    for number in 0..RECORD_COUNT {
        let key = [&[1], &number.wrapping_mul(0x9E37_79B1).to_be_bytes()[..]].concat();
        bench.tree().put(&key, &[7; 24]).unwrap();
    }
    for number in 0..3 * GROUP_COUNT {
        if number == 2 * GROUP_COUNT {
            (before, stats) = (bench.medium.counts(), *bench.tree().stats());
        }
        let value = [number as u8; 24];
        let run = |number: u32| [&[2], &number.to_be_bytes()[..]].concat();
        bench.tree().put(&run(2 * number), &value).unwrap();
        if number % 2 == 0 {
            bench.tree().put(&run(2 * number + 1), &value).unwrap();
        }
        for _ in 0..1 + number % 2 {
            let key = random.random_range(0..RECORD_COUNT).wrapping_mul(0x9E37_79B1);
            bench.tree().put(&[&[1], &key.to_be_bytes()[..]].concat(), &value).unwrap();
        }
        bench.tree().sync().unwrap();
    }
    let (after, now) = (bench.medium.counts(), *bench.tree().stats());
    let each = |difference: u64| difference as f64 / f64::from(GROUP_COUNT);
    let programs = each(after.programs - before.programs);
    println!(
        "{programs:.3} programs, {:.3} reads a group; of a thousand groups {} rode, {} leaves had no room, {} had a page by itself",
        each(after.reads - before.reads),
        1000 * (now.rides - stats.rides) / u64::from(GROUP_COUNT),
        1000 * (now.full_rides - stats.full_rides) / u64::from(GROUP_COUNT),
        1000 * (now.journals - stats.journals) / u64::from(GROUP_COUNT),
    );
    assert!(programs < 1.15, "{programs}");
}

/// The first of the changes that wait may follow a full leaf, which then begins another and would leave this one where it is.
#[test]
fn a_leaf_that_is_moved_goes_although_the_changes_begin_a_new_one() {
    for count in 1..120_u32 {
        let medium = Shared::new(256, 44, 4000);
        let mut bench = Bench::new(medium.clone(), FixedCells::<4, 4>, SMALL);
        for number in 0..count {
            bench.tree().put(&number.to_be_bytes(), &[1; 4]).unwrap();
        }
        bench.tree().settle().unwrap();
        // Of two leaves, where there are two, so that the changes wait.
        bench.tree().put(&0_u32.to_be_bytes(), &[1; 4]).unwrap();
        bench.tree().put(&count.to_be_bytes(), &[2; 4]).unwrap();
        bench.tree().sync().unwrap();
        for page in medium.live_pages() {
            if medium.live_pages().contains(&page) && bench.tree().relocate(page).unwrap() {
                assert!(!medium.live_pages().contains(&page), "page {page} of {count} records stayed");
            }
        }
        assert_eq!(bench.tree().get(&0_u32.to_be_bytes()).unwrap(), Some(&[1; 4][..]));
    }
}
