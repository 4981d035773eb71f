//! The file system beside those of others.

pub(super) mod kernel;

use crate::Experiment;

pub(super) const ALL: &[Experiment] = &[kernel::EXPERIMENT];
