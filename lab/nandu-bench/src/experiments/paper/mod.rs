//! What papers measured, measured again.

mod dffs;
mod figure7;
mod figure8;
mod figure9;
pub(super) mod flexfs;
mod grr;
pub(super) mod micro;
mod replay;
mod table1;
mod table3;
mod table5;

use crate::Experiment;

/// In the order of the papers' sections.
pub(super) const ALL: &[Experiment] = &[
    table1::EXPERIMENT,
    table3::EXPERIMENT,
    figure7::EXPERIMENT,
    table5::EXPERIMENT,
    figure8::EXPERIMENT,
    figure9::EXPERIMENT,
    grr::costs::EXPERIMENT,
    grr::figure6::EXPERIMENT,
    grr::figure7::EXPERIMENT,
    grr::figure8::EXPERIMENT,
    grr::fair::EXPERIMENT,
    grr::parts::EXPERIMENT,
    flexfs::times::EXPERIMENT,
    flexfs::idle::BASELINE,
    flexfs::idle::BACKGROUND,
    flexfs::busy::PUBLISHED,
    flexfs::locality::WRITTEN,
    flexfs::locality::LIVE,
    flexfs::response::EXPERIMENT,
    flexfs::wear::BUDGET,
    flexfs::wear::EVENNESS,
    flexfs::mobile::EXPERIMENT,
    flexfs::busy::DECIDED,
    flexfs::pair_skip::EXPERIMENT,
    flexfs::calls::EXPERIMENT,
    flexfs::files::EXPERIMENT,
    dffs::ops::EXPERIMENT,
    dffs::postmark::EXPERIMENT,
    dffs::filebench::EXPERIMENT,
    dffs::mount::EXPERIMENT,
    dffs::gc::EXPERIMENT,
    dffs::directories::EXPERIMENT,
];

/// Where the numbers of the mu-Tree paper stand.
const MUTREE: &str =
    "D. Kang, D. Jung, J.-U. Kang, J.-S. Kim: mu-Tree: An Ordered Index Structure for NAND Flash Memory, EMSOFT 2007";
