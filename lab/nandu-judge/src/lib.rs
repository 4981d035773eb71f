//! Measures what nandu promises.
//!
//! **For** `cargo xtask promises`, which prints one table: promise, case, limit, what is measured, verdict.
//!
//! * `promises.rs`: `promises.toml`, read and checked.
//! * `measure.rs`: which promise is measured how.
//! * `lives/`: random lives with cuts on full chips: the worst call, the worst mount, what is refused.
//! * `experiments.rs`, `room.rs`, `idle.rs`, `snapshot.rs`, `pages.rs`: everything else.
//! * `table.rs`: verdicts.
//!
//! **The key decision** is that limits are absolute and stand in one file, and that a promise without a measurement is an error. The alternative, what
//! was measured last and a tenth, made every removal of a mechanism illegal, and told nobody what a user may expect.

mod experiments;
mod files;
mod idle;
mod lives;
mod measure;
mod pages;
mod promises;
mod room;
mod snapshot;
mod table;

pub use measure::{Form, Given, Judge, JudgeError, Value};
pub use promises::{Case, Direction, Promise, PromiseError, Promises, Scope};
pub use table::{Row, Verdict, rows, table};
