//! Changes that become durable together: what a power cut leaves.

use core::ops::{Bound, ControlFlow};
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use super::check::{Model, Subject, apply, compare, ok, runner, verify};
use super::operation::{Operation, Space, operations};
use crate::Direction;

/// An index that can lose the power.
pub trait Cuttable: Subject {
    /// Leaves the index without a word, as a power cut does, and opens it again from what is on flash.
    fn cut(&mut self);
}

/// What happens after an operation.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Nothing,
    Sync,
    Cut,
}

/// What one call changes: keys, and the values put there.
type Change = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Runs random lists of operations against a fresh index each, `cases` of them, with syncs and power cuts among them. After a
/// cut the index must hold what it held after one of the calls since the last sync, or at that sync, and answer everything by
/// that. Panics with the shortest failing list.
#[expect(clippy::panic, reason = "a test's verdict")]
pub fn prefixes<S: Cuttable>(space: Space, cases: u32, fresh: impl Fn() -> S) {
    let moment = prop_oneof![12 => Just(Moment::Nothing), 3 => Just(Moment::Sync), 1 => Just(Moment::Cut)];
    let lists = (operations(space), vec(moment, space.operations_max));
    let outcome = runner(cases).run(&lists, |(list, moments)| {
        let mut subject = fresh();
        let mut run = Run { synced: Model::new(), model: Model::new(), changes: Vec::new() };
        for (operation, moment) in list.iter().zip(moments) {
            run.operate(&mut subject, space, operation);
            match moment {
                Moment::Nothing => {}
                Moment::Sync => {
                    ok(subject.index().sync());
                    run.note_sync();
                }
                Moment::Cut => run.cut(&mut subject),
            }
        }
        compare(&mut subject, &run.model);
        verify(&mut subject);
        run.cut(&mut subject);
        verify(&mut subject);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// What the index may hold.
struct Run {
    /// At the last sync.
    synced: Model,
    /// Now.
    model: Model,
    /// By what that became this.
    changes: Vec<Change>,
}

impl Run {
    fn operate<S: Subject>(&mut self, subject: &mut S, space: Space, operation: &Operation) {
        let put = |number| Operation::Put(space.key(number), space.value(number));
        let single: Vec<Operation> = match operation {
            Operation::Ascend(from, count) => (*from..from + count).map(put).collect(),
            Operation::Clear(from, to) => {
                self.model.range(from.clone()..to.clone()).map(|(key, _)| Operation::Delete(key.clone())).collect()
            }
            other => [other.clone()].into(),
        };
        for operation in &single {
            apply(subject, &mut self.model, space, operation);
            match operation {
                Operation::Put(key, value) => self.changes.push([(key.clone(), Some(value.clone()))].into()),
                Operation::Delete(key) => self.changes.push([(key.clone(), None)].into()),
                Operation::Batch(list) => self.changes.push(list.clone()),
                Operation::Reopen => self.note_sync(),
                _ => {}
            }
        }
    }

    fn note_sync(&mut self) {
        self.synced.clone_from(&self.model);
        self.changes.clear();
    }

    fn cut<S: Cuttable>(&mut self, subject: &mut S) {
        subject.cut();
        let mut found = Model::new();
        let mut visit = |entry: crate::Entry<'_>| {
            found.insert(entry.key.to_vec(), entry.value.to_vec());
            ControlFlow::Continue(())
        };
        ok(subject.index().range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut visit));
        let mut is_there = self.synced == found;
        for change in self.changes.drain(..) {
            for (key, value) in change {
                match value {
                    Some(value) => self.synced.insert(key, value),
                    None => self.synced.remove(&key),
                };
            }
            is_there |= self.synced == found;
        }
        assert!(is_there, "found {found:?}, which is none of the states since the last sync");
        self.model.clone_from(&found);
        self.synced = found;
        compare(subject, &self.model);
    }
}
