//! Experiments on simulated chips.
//!
//! **For** whoever measures; the command's `nandu lab` is its door.
//!
//! An [`Experiment`] is data (chips, memory, records, workload, what others state, what is demanded) and a function that runs
//! it and returns [`Figure`]s: numbers of page operations, of simulated time, of wear. All of them are exact: the same seed
//! gives the same figures on any machine, to the last bit, so they can be held against limits, against the numbers of a
//! publication or of a model, and against a committed snapshot. [`runner`] runs many of them on all cores.
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

pub mod claim;
pub mod claims;
pub mod compare;
mod context;
mod demand;
mod draw;
mod error;
mod experiment;
pub mod experiments;
mod figure;
mod flexfs;
pub mod folder;
mod metric;
pub mod models;
pub mod origin;
pub mod page;
pub mod pages;
mod plot;
pub mod records;
pub mod results;
mod rig;
pub mod runner;
mod subject;
mod summary;
mod text;
pub mod workload;

pub use context::{Context, Scale};
pub use demand::{Accept, Beside, Doubt, Judgement, Limit, Verdict};
pub use error::BenchError;
pub use experiment::{Experiment, Stated};
pub use figure::Figure;
pub use metric::Better;
pub use plot::{Plot, PlotKind};
