//! FlexFS (Lee, Ha, Zhang, Kim, Kim, USENIX ATC 2009): its experiments with the policies that `nandu::fs::placement` offers.
//!
//! E1 to E10 drive a volume of pages whose maps are in memory, since the paper's figures are of placement alone and so is the model's. `files.rs` runs
//! the loads of E1 to E5, E7 and E10 through the file system itself, and `year.rs` that of `decade.rs`, for a year.

mod bursts;
pub(super) mod busy;
pub(super) mod calls;
pub(in crate::experiments) mod decade;
pub(super) mod files;
pub(super) mod idle;
pub(super) mod locality;
pub(super) mod mobile;
pub(super) mod pair_skip;
pub(super) mod response;
pub(super) mod times;
pub(super) mod wear;
pub(in crate::experiments) mod year;

use bursts::{Burst, Run};

use crate::{Figure, Plot, PlotKind};

/// Where the published numbers stand.
const SOURCE: &str = "S. Lee, K. Ha, K. Zhang, J. Kim, J. Kim: FlexFS: A Flexible Flash File System for MLC NAND Flash Memory, USENIX ATC 2009";

const CHIP: (&str, &str) = (
    "chip",
    "paper-flex: 64 MiB as MLC; an SLC page takes 431 us, an MLC page 994 in the mean, an MSB page 1557, an erase 872",
);
const VOLUME: (&str, &str) = (
    "structure",
    "a volume of pages with SLC and MLC blocks, driven by the policies of nandu::fs::placement; maps are in memory (the file system itself: \
     paper/flexfs-files)",
);
const HOST: (&str, &str) = (
    "host",
    "855 us of processor time for each page written, 97 us for each page moved; throughput is bytes by time within requests",
);

/// Throughput over what was written, a line for each scheme.
const fn throughput(title: &'static str) -> Plot {
    Plot {
        title,
        metric: "mb_per_s",
        cases: "{series}/at/{x}",
        x: "written (% of the capacity)",
        y: "MiB/s in a burst",
        kind: PlotKind::Lines,
    }
}

/// Alpha over what was written, a line for each scheme.
const fn alphas(title: &'static str) -> Plot {
    Plot { metric: "alpha", y: "alpha", ..throughput(title) }
}

/// The figures of each burst.
fn series(experiment: &'static str, scheme: &str, run: &Run) -> Vec<Figure> {
    let of_burst = |burst: &Burst| {
        let case = format!("{scheme}/at/{:.1}%", burst.written);
        [
            Figure::new(experiment, &case, "mb_per_s", burst.mb_per_s(), "MiB/s"),
            Figure::new(experiment, &case, "alpha", burst.alpha, "ratio"),
            Figure::new(experiment, &case, "free_blocks", f64::from(burst.free_blocks), "blocks"),
        ]
    };
    run.bursts.iter().flat_map(of_burst).collect()
}
