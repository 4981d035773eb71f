//! Chance, as a function of the seed and of the place it is used in.
//!
//! There is no generator whose position would have to be kept, saved and restored: each use of chance opens a stream of
//! its own, named by the seed, the purpose and two numbers (an operation, a page, how often its block was erased). So a
//! clone, an image opened again and a replay meet the same chance, and one use of it cannot shift another.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// What a stream is for. The numbers are part of what a seed means and never change.
#[derive(Clone, Copy)]
#[repr(u64)]
pub(crate) enum Purpose {
    FactoryBad = 1,
    Tear = 2,
    Flips = 3,
    Schedule = 4,
    Aging = 5,
    WearOut = 6,
    Garbage = 7,
    Target = 8,
    Chain = 9,
}

/// A stream of random numbers.
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, first: u64, second: u64) -> Stream {
        let mut key = [0; 32];
        for (word, value) in key.chunks_exact_mut(8).zip([seed, purpose as u64, first, second]) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        Stream(ChaCha8Rng::from_seed(key))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, or 0 if the bound is 0. The bias is below one in four billion for the bounds a chip has.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// A number from 0 up to but not including 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether an event of this probability happens.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::{Purpose, Stream};

    #[test]
    fn streams_are_fixed_by_their_names_for_ever() {
        let first = |seed, purpose, a, b| Stream::new(seed, purpose, a, b).next();
        let base = first(7, Purpose::Tear, 1, 2);
        assert_eq!(base, first(7, Purpose::Tear, 1, 2));
        for other in [first(8, Purpose::Tear, 1, 2), first(7, Purpose::Flips, 1, 2), first(7, Purpose::Tear, 2, 1)] {
            assert_ne!(base, other);
        }
        // A seed in a bug report must mean the same chip in every release.
        assert_eq!(base, FROZEN);
    }

    const FROZEN: u64 = 2_717_966_040_190_128_260;

    #[test]
    fn numbers_stay_below_their_bound() {
        let mut stream = Stream::new(1, Purpose::Flips, 0, 0);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[stream.below(5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(stream.below(0), 0);
        assert!((0..100).all(|_| (0.0..1.0).contains(&stream.unit())));
    }
}
