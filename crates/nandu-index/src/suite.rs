//! The suite that every index must pass.
//!
//! [`conformance`] drives an index with random operations and holds everything it answers against a
//! [`BTreeMap`]; a failure is shrunk to a short list of operations. [`prefixes`] does the same with an index whose changes become
//! durable together, and cuts the power at any point. The operations, and the strategies that make them,
//! are public so that other drivers (power cuts, faults, fuzzing) use the same.

mod check;
mod operation;
mod prefix;
mod snapshots;

pub use check::{Model, Subject, apply, compare, conformance, verify};
pub use operation::{KeyKind, Operation, Space, operations};
pub use prefix::{Cuttable, prefixes};
pub use snapshots::{Pair, SnapshotSubject, Step, snapshot_conformance, steps, take_step};
