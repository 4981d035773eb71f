//! Why an experiment has no figures.

use std::error::Error;

use nandu_sim::SimError;

use crate::workload::BadSkew;

/// Why an experiment has no figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The store failed.
    #[error("the store: {0}")]
    Store(#[from] nandu::Error<SimError>),
    /// A structure of another crate failed; see [`BenchError::structure`].
    #[error("the structure: {0}")]
    Structure(#[source] Box<dyn Error + Send + Sync>),
    /// The chip failed where an experiment works on it directly.
    #[error("the chip: {0}")]
    Chip(#[from] SimError),
    /// The workload makes no sense.
    #[error(transparent)]
    Skew(#[from] BadSkew),
    /// The memory of the case is too small for a store on its chip.
    #[error("{0} bytes of memory are too few for a store on this chip")]
    Memory(usize),
    /// The store answered wrong.
    #[error("key {0} is not what was put")]
    Wrong(u32),
    /// Anything else, in one line.
    #[error("{0}")]
    Other(String),
}

impl BenchError {
    /// The error of any structure: `index.get(&key).map_err(BenchError::structure)?`.
    pub fn structure(error: impl Error + Send + Sync + 'static) -> BenchError {
        BenchError::Structure(Box::new(error))
    }
}
