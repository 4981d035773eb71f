//! Which record comes next: the distributions that workloads draw from.

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
    /// As `Zipf`, and the newest item has the first rank, the oldest the last.
    Latest(f64),
}

/// Chooses items of a set of fixed size.
#[derive(Debug)]
pub struct Chooser {
    random: ChaCha8Rng,
    skew: Skew,
    draw: Draw,
    count: u32,
    /// The items by rank; none if an item's number is its rank.
    shuffled: Option<Vec<u32>>,
}

#[derive(Debug)]
enum Draw {
    Uniform(Uniform<u32>),
    HotCold { choices: f64, hot: Uniform<u32>, cold: Uniform<u32> },
    Zipf(Zipf<f64>),
    Latest(Zipf<f64>),
}

impl Draw {
    fn new(count: u32, skew: Skew) -> Result<Draw, BadSkew> {
        let range = |low, high| Uniform::new(low, high).map_err(|_| BadSkew);
        let zipf = |exponent| Zipf::new(f64::from(count), exponent).map_err(|_| BadSkew);
        Ok(match skew {
            Skew::Uniform => Draw::Uniform(range(0, count)?),
            Skew::HotCold { choices, items } => {
                if !(0.0..=1.0).contains(&choices) || !(0.0..=1.0).contains(&items) {
                    return Err(BadSkew);
                }
                let hot_count = (f64::from(count) * items).round() as u32;
                Draw::HotCold { choices, hot: range(0, hot_count)?, cold: range(hot_count, count)? }
            }
            Skew::Zipf(exponent) => Draw::Zipf(zipf(exponent)?),
            Skew::Latest(exponent) => Draw::Latest(zipf(exponent)?),
        })
    }
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
        Ok(Chooser { random, skew, draw: Draw::new(count, skew)?, count, shuffled: None })
    }

    /// Chooses among this many items from now on. Items that are new have the last ranks, or the first under
    /// [`Skew::Latest`].
    ///
    /// # Errors
    ///
    /// If nothing is left to choose from; then nothing changes.
    pub fn set_count(&mut self, count: u32) -> Result<(), BadSkew> {
        if count != self.count {
            self.draw = Draw::new(count, self.skew)?;
            self.count = count;
        }
        Ok(())
    }

    /// The next item.
    pub fn choose(&mut self) -> u32 {
        let count = self.count;
        // Ranks count from 1.
        let ranked = |zipf: &Zipf<f64>, random: &mut ChaCha8Rng| (zipf.sample(random) as u32).clamp(1, count) - 1;
        let rank = match &self.draw {
            Draw::Uniform(all) => all.sample(&mut self.random),
            Draw::HotCold { choices, hot, cold } => {
                if self.random.random_bool(*choices) {
                    hot.sample(&mut self.random)
                } else {
                    cold.sample(&mut self.random)
                }
            }
            Draw::Zipf(zipf) => ranked(zipf, &mut self.random),
            Draw::Latest(zipf) => count - 1 - ranked(zipf, &mut self.random),
        };
        self.shuffled.as_ref().and_then(|shuffled| shuffled.get(rank as usize).copied()).unwrap_or(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_newest_item_is_the_likeliest_however_many_there_are() {
        let mut chooser = Chooser::in_order(1000, Skew::Latest(0.99), 3).unwrap();
        for count in [1000, 1500, 700] {
            chooser.set_count(count).unwrap();
            let mut counts = vec![0u32; count as usize];
            for _ in 0..50_000 {
                counts[chooser.choose() as usize] += 1;
            }
            let newest = *counts.last().unwrap();
            assert_eq!(counts.iter().max(), Some(&newest), "of {count}");
            assert!(newest > 20 * counts[0], "of {count}: newest {newest}, oldest {}", counts[0]);
        }
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
