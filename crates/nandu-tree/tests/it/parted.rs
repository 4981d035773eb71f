//! Leaves of which a part stays in its page: against a map, with cuts, on a medium that is strict about what lives.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nandu_tree::{Broken, ByteCells, Cells, Direction, Durability, Edit, Examined, FixedCells, Options, Tree};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::medium::{Shared, memory};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

const PAGE_SIZE: usize = 512;

fn options() -> Options {
    Options {
        cache_size: 600,
        durability: Durability::OnSync,
        pending_size: 900,
        parts_leaves: true,
        ..Options::DEFAULT
    }
}

fn open<C: Cells>(medium: &Shared, cells: C, broken: Broken) -> Tree<'static, Shared, C> {
    let mut tree = Tree::open(medium.clone(), cells, options(), memory(PAGE_SIZE, &options())).unwrap();
    tree.set_broken(broken);
    tree
}

fn walk<C: Cells>(
    tree: &mut Tree<'static, Shared, C>,
    from: Bound<&[u8]>,
    direction: Direction,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    tree.range(from, Bound::Unbounded, direction, |entry| {
        found.push((entry.key.to_vec(), entry.value.to_vec()));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// Everything is there in both directions, at both ends and from anywhere, and nothing else.
fn compare<C: Cells>(tree: &mut Tree<'static, Shared, C>, expected: &Records, from: &[u8]) {
    let plain: Vec<_> = expected.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert_eq!(walk(tree, Bound::Unbounded, Direction::Forward), plain);
    let mut back = walk(tree, Bound::Unbounded, Direction::Backward);
    back.reverse();
    assert_eq!(back, plain);
    let rest: Vec<_> = plain.iter().filter(|(key, _)| key.as_slice() >= from).cloned().collect();
    assert_eq!(walk(tree, Bound::Included(from), Direction::Forward), rest);
    assert_eq!(tree.record_count(), expected.len() as u64);
    let first = tree.first().unwrap().map(|entry| entry.key.to_vec());
    assert_eq!(first, expected.keys().next().cloned());
    let last = tree.last().unwrap().map(|entry| entry.key.to_vec());
    assert_eq!(last, expected.keys().next_back().cloned());
    let mut violations = Vec::new();
    tree.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
}

/// Stretches of keys come one by one, so that leaves are parted, and go as a whole, so that leaves vanish beside parts that
/// stayed. Syncs, questions of the collector, and cuts come in between. Returns how many leaves were parted.
fn come_and_go<C: Cells>(cells: C, value_size_max: usize, seed: u64, steps: u32, broken: Broken) -> u64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let medium = Shared::new(PAGE_SIZE, 44, 4000);
    drop(Tree::create(medium.clone(), cells, options(), memory(PAGE_SIZE, &options())).unwrap());
    let mut tree = open(&medium, cells, broken);
    let mut states = vec![Records::new()];
    let (mut parted, mut stretch) = (0, 0_u32);
    for step in 0..steps {
        if step.is_multiple_of(40) {
            stretch = random.random_range(0..24) << 24;
        }
        let mut now = states.last().unwrap().clone();
        let key = (stretch | random.random_range(0..60) << 8).to_be_bytes().to_vec();
        match random.random_range(0..40) {
            0..25 => {
                let value = vec![random.random::<u8>(); random.random_range(4..=value_size_max)];
                tree.put(&key, &value).unwrap();
                now.insert(key, value);
                states.push(now);
            }
            25..27 => {
                let count = random.random_range(4..40);
                let keys: Vec<_> = now.range(key..).map(|(key, _)| key.clone()).take(count).collect();
                for keys in keys.chunks(8) {
                    let edits: Vec<_> = keys.iter().map(|key| Edit { key, value: None }).collect();
                    tree.batch(&edits).unwrap();
                    keys.iter().for_each(|key| drop(now.remove(key)));
                    states.push(now.clone());
                }
            }
            27..37 => {
                tree.sync().unwrap();
                states.drain(..states.len() - 1);
            }
            37 | 38 => {
                let pages = medium.live_pages();
                medium.0.borrow_mut().to_examine.push(pages[random.random_range(0..pages.len())]);
            }
            _ => {
                parted += tree.stats().parted;
                drop(tree);
                tree = open(&medium, cells, broken);
                let found: Records = walk(&mut tree, Bound::Unbounded, Direction::Forward).into_iter().collect();
                let place = states.iter().position(|state| *state == found);
                states = vec![states.swap_remove(place.unwrap())];
            }
        }
        // What was never superseded lives.
        let examined: Vec<_> = medium.0.borrow_mut().examined.drain(..).collect();
        assert!(examined.iter().all(|(_, outcome)| *outcome != Examined::Dead), "{examined:?}");
        if step.is_multiple_of(16) {
            let from = (random.random_range(0..24_u32) << 24 | random.random_range(0..60) << 8).to_be_bytes();
            compare(&mut tree, states.last().unwrap(), &from);
        }
    }
    parted + tree.stats().parted
}

#[test]
fn what_left_a_leaf_counts_no_more() {
    for seed in 0..4 {
        let parted = [
            come_and_go(ByteCells, 24, seed, 6_000, Broken::NONE),
            come_and_go(FixedCells::<4, 4>, 4, seed, 6_000, Broken::NONE),
        ];
        assert!(parted[0] > 100 && parted[1] > 20, "{parted:?}");
    }
}

#[test]
fn a_rule_left_out_is_found() {
    for broken in [Broken { wake_spent: true, ..Broken::NONE }, Broken { seek_first: true, ..Broken::NONE }] {
        let is_found =
            |seed| catch_unwind(AssertUnwindSafe(|| come_and_go(ByteCells, 24, seed, 6_000, broken))).is_err();
        assert!((0..4).any(is_found), "{broken:?}");
    }
}

/// What is behind the entries of a leaf begins a new one. Where all of them go at the same time, the new leaf must still begin behind
/// them, and not at the first key that comes to mind.
#[test]
fn the_entries_of_a_leaf_go_while_others_come_behind_them() {
    let mut parted = 0;
    for start in 20..50_u32 {
        let medium = Shared::new(PAGE_SIZE, 44, 4000);
        drop(Tree::create(medium.clone(), ByteCells, options(), memory(PAGE_SIZE, &options())).unwrap());
        let mut tree = open(&medium, ByteCells, Broken::NONE);
        let mut expected = Records::new();
        for number in 0..60_u32 {
            tree.put(&number.to_be_bytes(), &[7; 12]).unwrap();
            expected.insert(number.to_be_bytes().to_vec(), vec![7; 12]);
        }
        tree.settle().unwrap();
        for number in start..60 {
            tree.delete(&number.to_be_bytes()).unwrap();
            expected.remove(&number.to_be_bytes()[..]);
        }
        for number in 60..84_u32 {
            tree.put(&number.to_be_bytes(), &[8; 12]).unwrap();
            expected.insert(number.to_be_bytes().to_vec(), vec![8; 12]);
        }
        tree.settle().unwrap();
        compare(&mut tree, &expected, &start.to_be_bytes());
        parted += tree.stats().parted;
    }
    assert!(parted > 60, "{parted}");
}
