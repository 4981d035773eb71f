//! Wear, retention, read disturb and the end of life.

use std::collections::BTreeSet;

use nandu_nand::CellMode;

use crate::Sim;
use crate::random::{Purpose, Stream};

const YEAR_NS: f64 = 365.25 * 24.0 * 3600.0 * 1e9;

/// How a chip ages. Off unless set by [`Sim::set_aging`].
///
/// Flipped bits are measured in *load*: 1.0 is as many flipped bits in a page as error correction could correct if they
/// were spread evenly over its codewords. They are not: they fall where the seed says, so that pages begin to be lost
/// somewhere between 0.3 and 0.8. A page's bits flip in an order of their own, so that what is flipped stays flipped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aging {
    /// Load from wear alone in a block at its rated endurance; grows with the square of the erase count.
    pub wear_load: f64,
    /// Load that a year adds to a page in a new block; in a block at its rated endurance it is ten times that.
    pub retention_load_per_year: f64,
    /// Reads of other pages of the block since its erase that add a load of 1.0, with one bit a cell; 0 for no effect.
    pub disturb_reads_slc: u32,
    /// The same with two bits a cell.
    pub disturb_reads_mlc: u32,
    /// Probability that an erase fails at twice the rated endurance; it rises linearly from 0 at the rated endurance.
    /// A program fails with the same probability divided by the pages of a block.
    pub failure: f64,
}

impl Aging {
    /// Nothing ages.
    pub const NONE: Aging = Aging {
        wear_load: 0.0,
        retention_load_per_year: 0.0,
        disturb_reads_slc: 0,
        disturb_reads_mlc: 0,
        failure: 0.0,
    };

    /// A plausible chip: one year of retention at the rated endurance and ten when new; refresh is due after about a
    /// million reads of a block with one bit a cell, a hundred thousand with two.
    pub const fn typical() -> Aging {
        Aging {
            wear_load: 0.1,
            retention_load_per_year: 0.02,
            disturb_reads_slc: 5_000_000,
            disturb_reads_mlc: 500_000,
            failure: 0.1,
        }
    }

    /// Load of a page.
    fn load(&self, wear: f64, age_ns: u64, other_reads: u32, mode: CellMode) -> f64 {
        let disturb_reads = match mode {
            CellMode::Slc => self.disturb_reads_slc,
            CellMode::Mlc => self.disturb_reads_mlc,
        };
        let disturb = if disturb_reads == 0 { 0.0 } else { f64::from(other_reads) / f64::from(disturb_reads) };
        let retention = self.retention_load_per_year * (age_ns as f64 / YEAR_NS) * (1.0 + 9.0 * wear);
        self.wear_load * wear * wear + retention + disturb
    }

    /// Probability that an erase fails.
    fn failure_at(&self, wear: f64) -> f64 {
        (self.failure * (wear - 1.0)).clamp(0.0, 1.0)
    }
}

impl Sim {
    /// Erases of a block as a share of the rated endurance.
    fn wear(&self, block: u32) -> f64 {
        f64::from(self.blocks[block as usize].counters.erases) / f64::from(self.chip.geometry.endurance.max(1))
    }

    /// Whether this erase of a block fails because the block is worn out.
    pub(crate) fn erase_wears_out(&self, block: u32) -> bool {
        let probability = self.aging.failure_at(self.wear(block));
        let erases = u64::from(self.blocks[block as usize].counters.erases);
        probability > 0.0 && Stream::new(self.seed, Purpose::WearOut, u64::from(block), erases).chance(probability)
    }

    /// Whether this program of a page fails because its block is worn out.
    pub(crate) fn program_wears_out(&self, block: u32, index: u32) -> bool {
        let pages = self.chip.geometry.pages_per_block;
        let probability = self.aging.failure_at(self.wear(block)) / f64::from(pages);
        let state = &self.blocks[block as usize];
        let place = u64::from(block * pages + index) | 1 << 32;
        let time = u64::from(state.counters.erases) << 8 | u64::from(state.page(index).programs);
        probability > 0.0 && Stream::new(self.seed, Purpose::WearOut, place, time).chance(probability)
    }

    /// Adds the places (column and bit) of a programmed page that are flipped by age.
    pub(crate) fn aged_bits(&self, block: u32, index: u32, flipped: &mut BTreeSet<(u32, u8)>) {
        if self.aging == Aging::NONE {
            return;
        }
        let state = &self.blocks[block as usize];
        let page = state.page(index);
        let geometry = &self.chip.geometry;
        let other_reads = state.counters.reads_since_erase - page.reads.min(state.counters.reads_since_erase);
        let age_ns = self.clock_ns - page.programmed_ns;
        let load = self.aging.load(self.wear(block), age_ns, other_reads, state.mode);
        let codewords = geometry.page_size / geometry.ecc.codeword_size;
        let limit = f64::from(codewords) * f64::from(geometry.ecc.correctable_bits);
        let place = u64::from(block * geometry.pages_per_block + index);
        let mut stream = Stream::new(self.seed, Purpose::Aging, place, u64::from(state.counters.erases));
        // A bit flips when the load passes a threshold; the thresholds of a page are spread by a random offset, so that
        // pages of one age do not change all at once.
        let count = (load * limit + stream.unit()).min(f64::from(geometry.page_size)) as u32;
        for _ in 0..count {
            let column = stream.below(geometry.page_size);
            flipped.insert((column, stream.below(8) as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_the_sum_of_wear_retention_and_disturb() {
        let aging = Aging::typical();
        let load = |wear, years: f64, reads| aging.load(wear, (years * YEAR_NS) as u64, reads, CellMode::Slc);
        let near = |load: f64, expected: f64| assert!((load - expected).abs() < 1e-6, "{load} is not {expected}");
        near(load(0.0, 0.0, 0), 0.0);
        near(load(1.0, 0.0, 0), 0.1);
        near(load(0.5, 0.0, 0), 0.025);
        near(load(0.0, 1.0, 0), 0.02);
        near(load(1.0, 1.0, 0), 0.1 + 0.2);
        near(load(0.0, 0.0, 1_000_000), 0.2);
        near(aging.load(0.0, 0, 100_000, CellMode::Mlc), 0.2);
        assert_eq!(Aging::NONE.load(9.0, u64::MAX, u32::MAX, CellMode::Mlc), 0.0);
    }

    #[test]
    fn failures_begin_past_the_rated_endurance() {
        let aging = Aging::typical();
        assert_eq!(aging.failure_at(1.0), 0.0);
        assert!((aging.failure_at(2.0) - 0.1).abs() < 1e-9);
        assert_eq!(aging.failure_at(1000.0), 1.0);
    }
}
