//! What the store itself costs: the figures that the project holds it to.

mod groupcommit;
mod million;
mod mount;
mod peers_500;
mod skew;
pub(super) mod workloads;

use crate::Experiment;

pub(super) const ALL: &[Experiment] = &[
    peers_500::EXPERIMENT,
    million::EXPERIMENT,
    skew::EXPERIMENT,
    mount::EXPERIMENT,
    groupcommit::EXPERIMENT,
    workloads::EXPERIMENT,
];
