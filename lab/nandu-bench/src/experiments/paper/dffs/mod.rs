//! The file system on the work of the DFFS paper, beside models of the file systems that the paper compares.

pub(super) mod directories;
pub(super) mod filebench;
pub(super) mod gc;
pub(super) mod mount;
pub(super) mod ops;
pub(super) mod postmark;
mod within;

use nandu::fs::Options;
use nandu::nand::Pairing;
use nandu_sim::Chip;

use crate::models::{Classic, Counts, Device, Flush, Jffs2, Model, ParentUpdate, Ubifs, Yaffs2};

/// Where the published numbers stand, and whose the others are.
const SOURCE: &str = "Kim et al.: An Efficient Metadata Index Structure for Flash File Systems (DFFS); `model` is what another simulation of the same rules gives";

/// A model of a file system.
#[derive(Clone, Copy)]
enum Kind {
    Jffs2(Flush),
    Yaffs2 { honours_syncs: bool },
    Ubifs,
    Classic(ParentUpdate),
}

/// Every model of another file system, by its name in cases.
const MODELS: [(&str, Kind); 6] = [
    ("jffs2", Kind::Jffs2(Flush::Never)),
    ("jffs2-flushed", Kind::Jffs2(Flush::Pads)),
    ("jffs2-kernel", Kind::Jffs2(Flush::Collects)),
    ("yaffs2", Kind::Yaffs2 { honours_syncs: false }),
    ("yaffs2-flushed", Kind::Yaffs2 { honours_syncs: true }),
    ("ubifs", Kind::Ubifs),
];

/// The model of DFFS, which checks the file system and is checked by it.
const CLASSIC: [(&str, Kind); 2] =
    [("classic", Kind::Classic(ParentUpdate::OnClose)), ("classic-each", Kind::Classic(ParentUpdate::Each))];

impl Kind {
    fn model(self, chip: &Chip) -> Box<dyn Model> {
        let device = device(chip);
        match self {
            Kind::Jffs2(flush) => Box::new(Jffs2::new(&device, flush)),
            Kind::Yaffs2 { honours_syncs } => Box::new(Yaffs2::new(&device, honours_syncs)),
            Kind::Ubifs => Box::new(Ubifs::new(&device)),
            Kind::Classic(parent) => Box::new(Classic::new(&device, parent)),
        }
    }
}

/// What models know of a chip.
fn device(chip: &Chip) -> Device {
    let geometry = &chip.geometry;
    Device {
        page_size: geometry.page_size,
        pages_per_block: geometry.pages_per_block,
        block_count: geometry.block_count,
    }
}

/// The paper's device, with so many MiB: pages of 2 KiB, 64 in a block.
fn paper_chip(size_mib: u32) -> Chip {
    const { assert!(matches!(Chip::PAPER_ONENAND.geometry.pairing, Pairing::None)) };
    Chip::PAPER_ONENAND.with_blocks(size_mib * 8)
}

/// Seconds that the chip takes for what a model did.
fn flash_s(chip: &Chip, counts: &Counts) -> f64 {
    let timing = &chip.timing;
    let nanoseconds = counts.reads * u64::from(timing.read_lsb_ns)
        + counts.programs * u64::from(timing.program_lsb_ns)
        + counts.erases * u64::from(timing.erase_ns);
    nanoseconds as f64 / 1e9
}

/// What our file system is given: about 256 KiB.
const OPTIONS: Options = Options { cache_size: 192 << 10, pending_size: 16_384, ..Options::DEFAULT };

/// What DFFS is given: about 95 KiB on the paper's device.
const DFFS_OPTIONS: nandu_dffs::Options = nandu_dffs::Options { directory_max: 1024, ..nandu_dffs::Options::DEFAULT };
