//! What an index must do that keeps snapshots of itself.

use core::ops::Bound;
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::check::{Model, Subject, apply, compare, ok, verify, within};
use super::operation::{Operation, Space, bound, operations};
use crate::Direction;

/// An entry, copied.
pub type Pair = (Vec<u8>, Vec<u8>);

/// A subject that can keep what it holds under a number.
pub trait SnapshotSubject: Subject {
    /// Takes a snapshot.
    fn take(&mut self) -> Result<u32, Self::Error>;

    /// Releases a snapshot.
    fn release(&mut self, number: u32) -> Result<(), Self::Error>;

    /// The snapshots there are, the oldest first.
    fn numbers(&mut self) -> Vec<u32>;

    /// Snapshots that there can be.
    fn count_max(&self) -> usize;

    /// The value of a key in a snapshot.
    fn get_at(&mut self, number: u32, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// At most so many entries of a range in a snapshot.
    fn range_at(
        &mut self,
        number: u32,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Pair>, Self::Error>;

    /// The first and the last entry of a snapshot, and how many it has.
    fn ends_at(&mut self, number: u32) -> Result<(Option<Pair>, Option<Pair>, u64), Self::Error>;
}

/// One thing to do with such an index. Which snapshot is meant is taken modulo their number.
#[derive(Clone, Debug)]
pub enum Step {
    /// Something that any index can do.
    Do(Operation),
    /// Take a snapshot; one too many must be refused and change nothing.
    Take,
    /// Release a snapshot.
    Release(usize),
    /// Look a key up in a snapshot.
    Get(usize, Vec<u8>),
    /// Read a range of a snapshot, at most so many entries.
    Range(usize, Bound<Vec<u8>>, Bound<Vec<u8>>, Direction, usize),
}

/// A list of steps.
pub fn steps(space: Space) -> impl Strategy<Value = Vec<Step>> {
    let direction = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    let one = prop_oneof![
        24 => operations(Space { operations_max: 8, ..space })
            .prop_map(|list| list.into_iter().map(Step::Do).collect::<Vec<Step>>()),
        6 => Just(std::vec![Step::Take]),
        4 => (0..8_usize).prop_map(|which| std::vec![Step::Release(which)]),
        3 => (0..8_usize, 0..space.key_count).prop_map(move |(which, key)| std::vec![Step::Get(which, space.key(key))]),
        3 => (0..8_usize, bound(space), bound(space), direction, 0..200_usize)
            .prop_map(|(which, from, to, direction, limit)| std::vec![Step::Range(which, from, to, direction, limit)]),
    ];
    vec(one, 1..=space.operations_max / 4).prop_map(|lists| lists.into_iter().flatten().collect())
}

/// Runs random lists of steps against a fresh index each, `cases` of them, and holds the index and each of its snapshots
/// against a [`BTreeMap`] of its own. Panics with the shortest failing list.
#[expect(clippy::panic, reason = "a test's verdict")]
pub fn snapshot_conformance<S: SnapshotSubject>(space: Space, cases: u32, fresh: impl Fn() -> S) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, random).run(&steps(space), |list| {
        let mut subject = fresh();
        let mut model = Model::new();
        let mut kept = BTreeMap::new();
        for step in &list {
            take_step(&mut subject, &mut model, &mut kept, space, step);
        }
        compare_all(&mut subject, &model, &kept);
        subject.reopen();
        compare_all(&mut subject, &model, &kept);
        verify(&mut subject);
        for number in kept.keys() {
            ok(subject.release(*number));
        }
        subject.reopen();
        compare_all(&mut subject, &model, &BTreeMap::new());
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Does one step to the index and to the maps, and compares what they answer.
pub fn take_step<S: SnapshotSubject>(
    subject: &mut S,
    model: &mut Model,
    kept: &mut BTreeMap<u32, Model>,
    space: Space,
    step: &Step,
) {
    let chosen = |which: &usize| kept.keys().nth(which % kept.len().max(1)).copied();
    match step {
        Step::Do(operation) => {
            apply(subject, model, space, operation);
            if matches!(operation, Operation::Reopen) {
                assert_eq!(subject.numbers(), kept.keys().copied().collect::<Vec<u32>>(), "snapshots after a mount");
            }
        }
        Step::Take if kept.len() == subject.count_max() => {
            assert!(subject.take().is_err(), "a snapshot too many");
        }
        Step::Take => {
            let number = ok(subject.take());
            assert!(kept.insert(number, model.clone()).is_none(), "number {number} is given twice");
        }
        Step::Release(which) => {
            if let Some(number) = chosen(which) {
                ok(subject.release(number));
                kept.remove(&number);
                assert!(subject.release(number).is_err(), "snapshot {number} is released twice");
                assert!(subject.get_at(number, &space.key(0)).is_err(), "snapshot {number} was released");
            }
        }
        Step::Get(which, key) => {
            if let Some(number) = chosen(which) {
                let found = ok(subject.get_at(number, key));
                assert_eq!(found.as_ref(), kept[&number].get(key), "get {key:?} in snapshot {number}");
            }
        }
        Step::Range(which, from, to, direction, limit) => {
            if let Some(number) = chosen(which) {
                range(subject, number, &kept[&number], (from, to), *direction, *limit);
            }
        }
    }
}

fn compare_all<S: SnapshotSubject>(subject: &mut S, model: &Model, kept: &BTreeMap<u32, Model>) {
    compare(subject, model);
    assert_eq!(subject.numbers(), kept.keys().copied().collect::<Vec<u32>>(), "the snapshots there are");
    for (&number, model) in kept {
        let all = (&Bound::Unbounded, &Bound::Unbounded);
        range(subject, number, model, all, Direction::Forward, usize::MAX);
        range(subject, number, model, all, Direction::Backward, usize::MAX);
        let owned = |entry: Option<(&Vec<u8>, &Vec<u8>)>| entry.map(|(key, value)| (key.clone(), value.clone()));
        let ends = (owned(model.first_key_value()), owned(model.last_key_value()), model.len() as u64);
        assert_eq!(ok(subject.ends_at(number)), ends, "ends and count of snapshot {number}");
    }
}

fn range<S: SnapshotSubject>(
    subject: &mut S,
    number: u32,
    model: &Model,
    (from, to): (&Bound<Vec<u8>>, &Bound<Vec<u8>>),
    direction: Direction,
    limit: usize,
) {
    let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
    let expected = within(model, bounds.0, bounds.1, direction, limit);
    let found = ok(subject.range_at(number, bounds.0, bounds.1, direction, limit));
    let differing = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    let first = differing.unwrap_or(found.len().min(expected.len()));
    assert_eq!(
        (found.len(), found.get(first)),
        (expected.len(), expected.get(first)),
        "number of entries, and entry {first}, of range {from:?} to {to:?} {direction:?} of snapshot {number}"
    );
}
