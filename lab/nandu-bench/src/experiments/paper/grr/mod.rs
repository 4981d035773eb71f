//! Group round robin (Jin, Cho, Chung, IMCOM 2014): the paper's figures, and what its gain consists of.

pub(super) mod costs;
pub(super) mod fair;
pub(super) mod figure6;
pub(super) mod figure7;
pub(super) mod figure8;
pub(super) mod parts;
mod rig;

/// Where the published numbers stand.
const SOURCE: &str = "R. Jin, H.-J. Cho, T.-S. Chung: A Group Round Robin Based B-tree Index Storage Scheme for Flash Memory Devices, IMCOM 2014";

/// What all of these experiments have in common.
const SETUP: &[(&str, &str)] = &[
    (
        "chip",
        "paper-grr: pages of 4 KiB, 32 in a block, sectors of 512 bytes programmed in any order; a cut tears one sector",
    ),
    (
        "memory",
        "a buffer of 1/32 of the index, as many bytes for every structure; inner nodes have a quarter to themselves",
    ),
    (
        "structure",
        "IPL: one log page in a block, LRU, eager splits; GRR: four log pages, eight blocks in turn, semi-clean buffer",
    ),
    (
        "workload",
        "1,024,000 records of 8 + 8 bytes loaded in order and merged, then 400,000 operations on keys chosen evenly",
    ),
];
