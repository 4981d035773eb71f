//! Which key a record has: how the keys of successive records lie among each other.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// How the keys of records follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Spread at random over the whole range.
    Random,
    /// The number of the record: each is above all before it.
    Ascending,
    /// Records lie in clusters whose places are random, each within a range of 65,536 keys. Successive records are in
    /// different clusters and at random places there. At most 65,536 clusters of as many records.
    Clustered(u32),
}

/// The keys of the records 0, 1, 2 and so on. No two of them are alike.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    order: KeyOrder,
    random: RandomKeys,
}

impl Keys {
    /// The keys of a seed.
    pub fn new(order: KeyOrder, seed: u64) -> Keys {
        Keys { order, random: RandomKeys::new(seed) }
    }

    /// The key of a record.
    pub fn at(&self, record: u32) -> u32 {
        match self.order {
            KeyOrder::Random => self.random.at(record),
            KeyOrder::Ascending => record,
            KeyOrder::Clustered(clusters) => {
                let (cluster, place) = (record % clusters.max(1), record / clusters.max(1));
                self.random.short_at(cluster) << 16 | self.random.short_at(place)
            }
        }
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

    /// The same with 16 bits: a permutation of the numbers below 65,536.
    fn short_at(&self, index: u32) -> u32 {
        let (mut left, mut right) = (index >> 8 & 0xFF, index & 0xFF);
        for round in self.rounds {
            let mixed = (right.wrapping_add(round)).wrapping_mul(0x9E37_79B1);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA77) >> 24));
        }
        left << 8 | right
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
    fn clusters_are_where_they_should_be_and_no_key_comes_twice() {
        let keys = Keys::new(KeyOrder::Clustered(100), 7);
        let drawn: HashSet<u32> = (0..100_000).map(|record| keys.at(record)).collect();
        assert_eq!(drawn.len(), 100_000);
        let places: HashSet<u32> = drawn.iter().map(|key| key >> 16).collect();
        assert_eq!(places.len(), 100);
        assert_ne!(keys.at(0) >> 16, keys.at(1) >> 16);
        assert_eq!(keys.at(0) >> 16, keys.at(100) >> 16);
    }

    #[test]
    fn ascending_keys_ascend() {
        let keys = Keys::new(KeyOrder::Ascending, 7);
        assert!((0..1000).all(|record| keys.at(record) < keys.at(record + 1)));
    }
}
