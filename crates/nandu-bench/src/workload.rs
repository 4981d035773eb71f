//! Which key comes next: the distributions that experiments draw from.
//!
//! A workload is data plus a seed: the same seed draws the same keys, on any machine, since the generator has a
//! specified stream (ChaCha8).

use rand::distr::{Distribution, Uniform};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::Zipf;

/// How the items of a set are chosen, again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Skew {
    /// Each item is as likely as any other.
    Uniform,
    /// A share of the choices goes to a share of the items, and each group is uniform in itself.
    HotCold {
        /// Share of the choices that go to hot items, 0 to 1.
        choices: f64,
        /// Share of the items that are hot, 0 to 1.
        items: f64,
    },
    /// The item of rank r is chosen with probability proportional to r to the power of minus the exponent.
    Zipf(f64),
}

/// Chooses items of a set of fixed size.
#[derive(Debug)]
pub struct Chooser {
    random: ChaCha8Rng,
    skew: Draw,
    count: u32,
    /// The items by rank; none if an item's number is its rank.
    shuffled: Option<Vec<u32>>,
}

#[derive(Debug)]
enum Draw {
    Uniform(Uniform<u32>),
    HotCold { choices: f64, hot: Uniform<u32>, cold: Uniform<u32> },
    Zipf(Zipf<f64>),
}

/// Why a chooser cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a skew needs items, shares between 0 and 1, and an exponent that is not negative")]
pub struct BadSkew;

impl Chooser {
    /// A chooser among `count` items. Which of them are the popular ones is shuffled, so that popularity does not follow the
    /// order of items. Takes four bytes an item.
    ///
    /// # Errors
    ///
    /// If there is nothing to choose from, or a parameter of the skew is outside its range.
    pub fn new(count: u32, skew: Skew, seed: u64) -> Result<Chooser, BadSkew> {
        let mut chooser = Chooser::in_order(count, skew, seed)?;
        let mut shuffled: Vec<u32> = (0..count).collect();
        shuffled.shuffle(&mut chooser.random);
        Ok(Chooser { shuffled: Some(shuffled), ..chooser })
    }

    /// A chooser among `count` items of which the first is the most popular and the last the least: popular items are
    /// neighbours.
    ///
    /// # Errors
    ///
    /// As [`new`](Chooser::new).
    pub fn in_order(count: u32, skew: Skew, seed: u64) -> Result<Chooser, BadSkew> {
        let random = ChaCha8Rng::seed_from_u64(seed);
        let range = |low, high| Uniform::new(low, high).map_err(|_| BadSkew);
        let skew = match skew {
            Skew::Uniform => Draw::Uniform(range(0, count)?),
            Skew::HotCold { choices, items } => {
                if !(0.0..=1.0).contains(&choices) || !(0.0..=1.0).contains(&items) {
                    return Err(BadSkew);
                }
                let hot_count = (f64::from(count) * items).round() as u32;
                Draw::HotCold { choices, hot: range(0, hot_count)?, cold: range(hot_count, count)? }
            }
            Skew::Zipf(exponent) => Draw::Zipf(Zipf::new(f64::from(count), exponent).map_err(|_| BadSkew)?),
        };
        Ok(Chooser { random, skew, count, shuffled: None })
    }

    /// The next item.
    pub fn choose(&mut self) -> u32 {
        let rank = match &self.skew {
            Draw::Uniform(all) => all.sample(&mut self.random),
            Draw::HotCold { choices, hot, cold } => {
                if self.random.random_bool(*choices) {
                    hot.sample(&mut self.random)
                } else {
                    cold.sample(&mut self.random)
                }
            }
            // Ranks count from 1.
            Draw::Zipf(zipf) => (zipf.sample(&mut self.random) as u32).clamp(1, self.count) - 1,
        };
        self.shuffled.as_ref().map_or(rank, |shuffled| shuffled[rank as usize])
    }
}

/// Distinct pseudo-random 32-bit keys: a permutation of the 32-bit numbers, so that the first n keys are n different
/// ones and no table of keys already used is needed.
#[derive(Clone, Copy, Debug)]
pub struct RandomKeys {
    rounds: [u32; 4],
}

impl RandomKeys {
    /// The sequence of keys of a seed.
    pub fn new(seed: u64) -> RandomKeys {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        RandomKeys { rounds: core::array::from_fn(|_| random.random()) }
    }

    /// The key at a place of the sequence. A four-round Feistel network on two halves of 16 bits is a permutation
    /// whatever its round function is.
    pub fn at(&self, index: u32) -> u32 {
        let (mut left, mut right) = (index >> 16, index & 0xFFFF);
        for round in self.rounds {
            let mixed = (right.wrapping_add(round)).wrapping_mul(0x9E37_79B1);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA77) >> 16));
        }
        left << 16 | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn random_keys_are_distinct_and_spread_over_the_whole_range() {
        let keys = RandomKeys::new(7);
        let drawn: HashSet<u32> = (0..200_000).map(|index| keys.at(index)).collect();
        assert_eq!(drawn.len(), 200_000);
        for slice in 0..16 {
            let inside = drawn.iter().filter(|&&key| key >> 28 == slice).count();
            assert!((11_500..13_500).contains(&inside), "slice {slice} holds {inside} of 200000 keys");
        }
    }

    #[test]
    fn a_hot_set_gets_its_share() {
        let mut chooser = Chooser::new(1000, Skew::HotCold { choices: 0.95, items: 0.05 }, 3).unwrap();
        let mut counts = vec![0u32; 1000];
        for _ in 0..100_000 {
            counts[chooser.choose() as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u32 = counts[..50].iter().sum();
        assert!((94_500..95_500).contains(&hot), "{hot} of 100000 choices");
    }

    #[test]
    fn zipf_ranks_fall_off_as_the_exponent_says() {
        let mut chooser = Chooser::new(10_000, Skew::Zipf(0.99), 3).unwrap();
        let mut counts = vec![0u32; 10_000];
        for _ in 0..1_000_000 {
            counts[chooser.choose() as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The share of rank 1 is 1 over the sum of r^-0.99 for r up to 10,000, which is 10.2.
        assert!((94_000..102_000).contains(&counts[0]), "{} of 1000000", counts[0]);
        let ratio = f64::from(counts[0]) / f64::from(counts[9]);
        assert!((8.5..11.0).contains(&ratio), "rank 1 is chosen {ratio} times as often as rank 10");
    }

    #[test]
    fn in_order_the_first_items_are_the_popular_ones() {
        let mut chooser = Chooser::in_order(1000, Skew::HotCold { choices: 0.95, items: 0.05 }, 3).unwrap();
        let hot = (0..10_000).filter(|_| chooser.choose() < 50).count();
        assert!((9400..9600).contains(&hot), "{hot} of 10000 choices");
    }

    #[test]
    fn the_same_seed_chooses_the_same_items() {
        let draw = |seed| {
            let mut chooser = Chooser::new(100, Skew::Zipf(0.99), seed).unwrap();
            (0..50).map(|_| chooser.choose()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn senseless_parameters_are_refused() {
        assert!(Chooser::new(0, Skew::Uniform, 0).is_err());
        assert!(Chooser::new(10, Skew::HotCold { choices: 1.5, items: 0.1 }, 0).is_err());
        assert!(Chooser::new(10, Skew::HotCold { choices: 0.9, items: 0.0 }, 0).is_err());
        assert!(Chooser::new(10, Skew::Zipf(-1.0), 0).is_err());
    }
}
