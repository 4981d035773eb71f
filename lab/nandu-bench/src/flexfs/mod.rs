//! FlexFS's data placement as a volume of pages: the mechanism around the policies of [`nandu::fs::placement`], for experiments.
//!
//! It is not a file system: which page of which file is where it keeps in memory, and nothing can be mounted. What it does with
//! the chip is real: blocks are erased in a mode, pages are read and programmed on the strict simulator, and every page that is
//! moved is compared with what was written. So an experiment shows what the policies do to latency, throughput and wear, and not
//! what maps on flash cost.
//!
//! * `block.rs`: what is known of a block, and which free one is opened.
//! * `volume.rs`: requests of the host, and idle time.
//! * `mover.rs`: migration, garbage collection and static levelling, page by page, with sources held until their
//!   destination is complete.
//! * `pair_skip.rs`: which pages of an MLC block are left out once others are promised.
//! * `file_system.rs`: the file system itself under the same requests and idle time, to hold this volume against.

mod block;
mod file_system;
mod mover;
mod pair_skip;
mod volume;

pub(crate) use file_system::FileSystem;
use nandu::fs::placement::{PlacementOptions, Region, WearPromise};
use nandu_sim::Chip;
pub(crate) use pair_skip::PairSkip;
pub(crate) use volume::Volume;

use crate::BenchError;

type BenchResult<T> = Result<T, BenchError>;

/// What a volume is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) chip: Chip,
    pub(crate) placement: PlacementOptions,
    pub(crate) promise: Option<WearPromise>,
    /// Time of the processor for each page of the host, microseconds.
    pub(crate) host_cpu_us: u64,
    /// Time of the processor for each page that is moved.
    pub(crate) move_cpu_us: u64,
    /// Whether steps that the host waits for keep to the period of those in idle time, as the published figures show.
    pub(crate) is_urgent_paced: bool,
    /// Which free block is opened.
    pub(crate) choice: Choice,
    /// All pages of the host go there, whatever the policies say.
    pub(crate) forced: Option<Region>,
    pub(crate) seed: u64,
}

/// Which free block is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The least worn one, of several the one that was freed first; static levelling as well.
    LeastWorn,
    /// Any.
    Random,
}

/// What was done beyond what the chip counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Pages that the host wrote, by region.
    pub(crate) host_slc: u64,
    pub(crate) host_mlc: u64,
    /// Pages moved from SLC blocks, and of these pages of hot files.
    pub(crate) migrated: u64,
    pub(crate) migrated_hot: u64,
    /// Pages moved from MLC blocks.
    pub(crate) collected: u64,
    /// Pages moved while the host waited.
    pub(crate) urgent: u64,
    /// Pages of MLC blocks that were closed before they were full.
    pub(crate) wasted: u64,
    /// Most blocks held at a time.
    pub(crate) held_max: u32,
    /// Fewest free blocks.
    pub(crate) free_min: u32,
}

#[cfg(test)]
mod tests {
    use nandu::fs::placement::{Class, Policy, Reference, Region};
    use rand::rngs::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn setup(policy: Policy, blocks: u32) -> Setup {
        Setup {
            chip: Chip::PAPER_FLEX.with_blocks(blocks),
            placement: PlacementOptions { policy, endurance: 1000, ..PlacementOptions::DEFAULT },
            promise: Some(WearPromise::new(u64::from(blocks) * 128, 1000, 1_000_000, 100)),
            host_cpu_us: 0,
            move_cpu_us: 0,
            is_urgent_paced: false,
            choice: Choice::LeastWorn,
            forced: None,
            seed: 0,
        }
    }

    /// Writes, overwrites and deletes files by chance on a chip that is kept about 60 % full, with gaps; returns the volume's counts.
    fn live(policy: Policy, seed: u64) -> Done {
        let mut memory = [Reference::default(); 20];
        let mut volume = Volume::format(setup(policy, 40), &mut memory).unwrap();
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..300 {
            let ino = chance.random_range(0..30);
            if volume.live_pages() > 40 * 128 * 6 / 10 || chance.random_range(0..20) == 0 {
                volume.delete(ino);
            } else {
                for page in 0..chance.random_range(1..200) {
                    volume.write(ino, page, Class::Normal).unwrap();
                }
            }
            volume.idle_until(volume.now_us() + chance.random_range(0..5_000_000)).unwrap();
        }
        volume.verify().unwrap();
        volume.done()
    }

    #[test]
    fn no_page_is_lost_whatever_moves() {
        for (seed, policy) in [Policy::BASELINE, Policy::BACKGROUND, Policy::DYNAMIC, Policy::LOCALITY, Policy::ALL]
            .into_iter()
            .flat_map(|policy| (0..3).map(move |seed| (seed, policy)))
        {
            let done = live(policy, seed);
            assert!(done.migrated > 0 && done.collected > 0, "{policy:?}: {done:?}");
            assert!(done.free_min > 0, "{policy:?}: {done:?}");
            assert_eq!(done, live(policy, seed), "the same seed gives the same chip");
        }
    }

    #[test]
    fn until_its_destination_is_complete_a_page_is_read_where_it_was() {
        let mut memory = [Reference::default(); 20];
        let mut volume = Volume::format(setup(Policy::BACKGROUND, 40), &mut memory).unwrap();
        for page in 0..64 {
            volume.write(1, page, Class::Normal).unwrap();
        }
        // All of the block is migrated, which fills half of an MLC block.
        volume.idle_until(volume.now_us() + 10_000_000).unwrap();
        assert_eq!((volume.done().migrated, volume.done().held_max), (64, 1));
        assert_eq!(volume.free_blocks(), 38);
        for page in 64..128 {
            volume.write(1, page, Class::Normal).unwrap();
        }
        volume.idle_until(volume.now_us() + 10_000_000).unwrap();
        assert_eq!(volume.done().migrated, 128);
        assert_eq!((volume.free_blocks(), volume.blocks_of(Region::Mlc), volume.blocks_of(Region::Slc)), (39, 1, 0));
        volume.verify().unwrap();
    }

    #[test]
    fn blocks_that_nobody_writes_to_are_made_to_wear() {
        let spread = |choice| {
            let mut memory = [Reference::default(); 20];
            let mut volume = Volume::format(Setup { choice, ..setup(Policy::BACKGROUND, 24) }, &mut memory).unwrap();
            for page in 0..1024 {
                volume.write(1, page, Class::Normal).unwrap();
            }
            for round in 0..400 {
                volume.idle_until(volume.now_us() + 12_000_000).unwrap();
                for page in 0..128 {
                    volume.write(2 + round % 2, page, Class::Normal).unwrap();
                }
            }
            volume.verify().unwrap();
            volume.cycles().max().unwrap() - volume.cycles().min().unwrap()
        };
        let (levelled, not) = (spread(Choice::LeastWorn), spread(Choice::Random));
        assert!(levelled <= 18 && not > 2 * levelled, "{levelled} and {not}");
    }
}
