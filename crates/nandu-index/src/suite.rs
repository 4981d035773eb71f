//! The suite that every index must pass.
//!
//! [`conformance`] drives an index with random operations and holds everything it answers against a
//! [`BTreeMap`]; a failure is shrunk to a short list of operations. The operations, and the strategies that make them,
//! are public so that other drivers (power cuts, faults, fuzzing) use the same.

mod check;
mod operation;

pub use check::{Subject, apply, compare, conformance, verify};
pub use operation::{KeyKind, Operation, Space, operations};
