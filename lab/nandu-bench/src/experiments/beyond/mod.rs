//! What nandu makes of the paper's ideas, beside the paper's structures.

mod groupcommit;
mod indexes;
mod scale;
mod skew;
mod table5;

use super::paper::flexfs::{decade, year};
use crate::Experiment;

/// In the order of how much they ask for.
pub(super) const ALL: &[Experiment] = &[
    table5::EXPERIMENT,
    skew::EXPERIMENT,
    groupcommit::EXPERIMENT,
    indexes::EXPERIMENT,
    decade::EXPERIMENT,
    year::EXPERIMENT,
    scale::EXPERIMENT,
];
