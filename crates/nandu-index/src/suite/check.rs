//! Doing operations and comparing what comes back.

use core::error::Error;
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::operation::{Operation, Space, operations};
use crate::{Direction, Edit, OrderedIndex, Violation};

/// What the suite needs besides the index itself.
pub trait Subject {
    /// Error of the index.
    type Error: Error;

    /// The index.
    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Self::Error>;

    /// Closes the index and opens it again from what is on flash.
    fn reopen(&mut self);
}

/// What an index should hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Runs random lists of operations against a fresh index each, `cases` of them, and compares every answer with a
/// [`BTreeMap`]. Panics with the shortest failing list.
#[expect(clippy::panic, reason = "a test's verdict")]
pub fn conformance<S: Subject>(space: Space, cases: u32, fresh: impl Fn() -> S) {
    let outcome = runner(cases).run(&operations(space), |list| {
        let mut subject = fresh();
        let mut model = Model::new();
        for operation in &list {
            apply(&mut subject, &mut model, space, operation);
        }
        compare(&mut subject, &model);
        verify(&mut subject);
        subject.reopen();
        compare(&mut subject, &model);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// The same lists in every run: chance comes from outside, and a failure can be looked at again.
pub(super) fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Does one operation to both and compares what they answer.
pub fn apply<S: Subject>(subject: &mut S, model: &mut Model, space: Space, operation: &Operation) {
    let index = subject.index();
    match operation {
        Operation::Put(key, value) => {
            let before = model.insert(key.clone(), value.clone());
            assert_eq!(ok(index.put(key, value)), before.is_some(), "put {key:?} tells whether the key was there");
        }
        Operation::Delete(key) => {
            let before = model.remove(key);
            assert_eq!(ok(index.delete(key)), before.is_some(), "delete {key:?} tells whether the key was there");
        }
        Operation::Get(key) => assert_eq!(ok(index.get(key)), model.get(key).map(Vec::as_slice), "get {key:?}"),
        Operation::Batch(list) => batch(index, model, list),
        Operation::Range(from, to, direction, limit) => range(index, model, from, to, *direction, *limit),
        Operation::Ends => ends(index, model),
        Operation::Ascend(from, count) => {
            for number in *from..from + count {
                let (key, value) = (space.key(number), space.value(number));
                ok(index.put(&key, &value));
                model.insert(key, value);
            }
        }
        Operation::Clear(from, to) => {
            let keys: Vec<Vec<u8>> = model.range(from.clone()..to.clone()).map(|(key, _)| key.clone()).collect();
            for key in keys {
                assert!(ok(index.delete(&key)), "{key:?} was there");
                model.remove(&key);
            }
        }
        Operation::Reopen => subject.reopen(),
    }
}

/// Compares every entry, in both directions, and the count.
pub fn compare<S: Subject>(subject: &mut S, model: &Model) {
    let index = subject.index();
    range(index, model, &Bound::Unbounded, &Bound::Unbounded, Direction::Forward, usize::MAX);
    range(index, model, &Bound::Unbounded, &Bound::Unbounded, Direction::Backward, usize::MAX);
    ends(index, model);
    for (key, value) in model {
        assert_eq!(ok(index.get(key)), Some(value.as_slice()), "get {key:?}");
    }
}

/// Asserts that the index finds no violation of its invariants.
pub fn verify<S: Subject>(subject: &mut S) {
    let mut violations: Vec<Violation> = Vec::new();
    ok(subject.index().verify(&mut |violation| violations.push(violation)));
    assert_eq!(violations, []);
}

fn batch<E: Error>(index: &mut dyn OrderedIndex<Error = E>, model: &mut Model, list: &[(Vec<u8>, Option<Vec<u8>>)]) {
    let edits: Vec<Edit<'_>> = list.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
    ok(index.batch(&edits));
    for (key, value) in list {
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
}

/// The entries of a range, at most so many.
pub(super) fn within(
    model: &Model,
    lower: Bound<&[u8]>,
    upper: Bound<&[u8]>,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_within = |key: &[u8]| {
        (match lower {
            Bound::Included(bound) => key >= bound,
            Bound::Excluded(bound) => key > bound,
            Bound::Unbounded => true,
        }) && (match upper {
            Bound::Included(bound) => key <= bound,
            Bound::Excluded(bound) => key < bound,
            Bound::Unbounded => true,
        })
    };
    let mut expected: Vec<(Vec<u8>, Vec<u8>)> =
        model.iter().filter(|(key, _)| is_within(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    if direction == Direction::Backward {
        expected.reverse();
    }
    expected.truncate(limit);
    expected
}

fn range<E: Error>(
    index: &mut dyn OrderedIndex<Error = E>,
    model: &Model,
    from: &Bound<Vec<u8>>,
    to: &Bound<Vec<u8>>,
    direction: Direction,
    limit: usize,
) {
    let lower = from.as_ref().map(Vec::as_slice);
    let upper = to.as_ref().map(Vec::as_slice);
    let expected = within(model, lower, upper, direction, limit);
    let mut found = Vec::new();
    let mut visit = |entry: crate::Entry<'_>| {
        if found.len() == limit {
            return ControlFlow::Break(());
        }
        found.push((entry.key.to_vec(), entry.value.to_vec()));
        ControlFlow::Continue(())
    };
    ok(index.range(lower, upper, direction, &mut visit));
    let differing = found.iter().zip(&expected).position(|(found, expected)| found != expected);
    let first = differing.unwrap_or(found.len().min(expected.len()));
    assert_eq!(
        (found.len(), found.get(first)),
        (expected.len(), expected.get(first)),
        "number of entries, and entry {first}, of range {from:?} to {to:?} {direction:?}"
    );
}

fn ends<E: Error>(index: &mut dyn OrderedIndex<Error = E>, model: &Model) {
    let first = ok(index.first()).map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
    assert_eq!(first, model.first_key_value().map(|(key, value)| (key.clone(), value.clone())), "first");
    let last = ok(index.last()).map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
    assert_eq!(last, model.last_key_value().map(|(key, value)| (key.clone(), value.clone())), "last");
    assert_eq!(ok(index.count()), model.len() as u64, "count");
}

#[expect(clippy::panic, reason = "a test's verdict")]
pub(super) fn ok<T, E: Error>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("an operation failed: {error}"),
    }
}
