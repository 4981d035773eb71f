//! Experiments on simulated chips.
//!
//! An [`Experiment`] is data (chips, memory, records, workload) and a function that runs it and returns [`Figure`]s:
//! numbers of page operations, of simulated time, of wear. All of them are exact: the same seed gives the same figures on
//! any machine, to the last bit, so they can be held against limits and against a committed snapshot.
//!
//! ```
//! use nandu_bench::{Context, experiments};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let experiment = experiments::find("core/mount").next().ok_or("not there")?;
//! for figure in experiment.run(&mut Context::small(7))? {
//!     println!("{}", figure.to_json());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **The key decision** is that costs are counted on a simulated chip and never timed: a figure is a property of the code,
//! not of the machine it ran on. What the host takes for it is measured apart, by `cargo bench -p nandu-bench`.

mod experiment;
pub mod experiments;
mod figure;
mod rig;
pub mod workload;

pub use experiment::{BenchError, Context, Experiment, Limit, Scale, Verdict};
pub use figure::Figure;
