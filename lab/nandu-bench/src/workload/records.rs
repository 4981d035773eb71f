//! Tables of records, and the shares of what is done to them: uniform, skewed, and the core workloads of YCSB.

use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::Operation;
use super::chooser::{BadSkew, Chooser, Skew};
use super::keys::{KeyOrder, Keys};

/// Shares of each kind of operation. They need not sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Lookups of a record that is there.
    pub reads: f64,
    /// Puts to a record that is there.
    pub updates: f64,
    /// Puts of a new record.
    pub inserts: f64,
    /// Deletions of a record that is there.
    pub deletes: f64,
    /// Reads of successive entries, 1 to [`Mix::SCAN_LENGTH_MAX`] of them.
    pub scans: f64,
    /// A lookup, and a put to the same record.
    pub read_modify_writes: f64,
}

impl Mix {
    /// Entries of the longest scan; the length is uniform, as YCSB has it.
    pub const SCAN_LENGTH_MAX: u32 = 100;

    const NONE: Mix = Mix { reads: 0.0, updates: 0.0, inserts: 0.0, deletes: 0.0, scans: 0.0, read_modify_writes: 0.0 };

    /// Updates alone.
    pub const UPDATES: Mix = Mix { updates: 1.0, ..Mix::NONE };
    /// Inserts alone.
    pub const INSERTS: Mix = Mix { inserts: 1.0, ..Mix::NONE };
    /// Reads and updates in equal shares.
    pub const HALF_UPDATES: Mix = Mix { reads: 0.5, updates: 0.5, ..Mix::NONE };
    /// What a store sees that lives: half reads, and updates, inserts and as many deletes.
    pub const CHURN: Mix = Mix { reads: 0.5, updates: 0.2, inserts: 0.15, deletes: 0.15, ..Mix::NONE };

    fn total(&self) -> f64 {
        self.reads + self.updates + self.inserts + self.deletes + self.scans + self.read_modify_writes
    }

    fn is_sound(&self) -> bool {
        let shares = [self.reads, self.updates, self.inserts, self.deletes, self.scans, self.read_modify_writes];
        shares.iter().all(|share| (0.0..=1e9).contains(share)) && self.total() > 0.0
    }
}

/// A table of records and what is done to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Records {
    /// How their keys lie.
    pub order: KeyOrder,
    /// How many there are before the first operation.
    pub count: u32,
    /// Which record an operation concerns.
    pub skew: Skew,
    /// Shares of the operations.
    pub mix: Mix,
}

/// The skew that YCSB takes where it says Zipfian.
const ZIPF: Skew = Skew::Zipf(0.99);

impl Records {
    const fn random(skew: Skew, mix: Mix) -> Records {
        Records { order: KeyOrder::Random, count: 100_000, skew, mix }
    }

    /// Those with a name. `ycsb-a` to `ycsb-f` are the core workloads of YCSB; its Zipfian distribution is scrambled here
    /// because the keys of successive records are random.
    pub const NAMED: [(&'static str, Records); 11] = [
        ("uniform", Records::random(Skew::Uniform, Mix::CHURN)),
        ("sequential", Records { order: KeyOrder::Ascending, count: 1, skew: Skew::Latest(0.99), mix: Mix::INSERTS }),
        ("clustered", Records { order: KeyOrder::Clustered(1000), ..Records::random(Skew::Uniform, Mix::CHURN) }),
        ("zipf", Records::random(ZIPF, Mix::HALF_UPDATES)),
        ("latest", Records::random(Skew::Latest(0.99), Mix::CHURN)),
        ("ycsb-a", Records::random(ZIPF, Mix::HALF_UPDATES)),
        ("ycsb-b", Records::random(ZIPF, Mix { reads: 0.95, updates: 0.05, ..Mix::NONE })),
        ("ycsb-c", Records::random(ZIPF, Mix { reads: 1.0, ..Mix::NONE })),
        ("ycsb-d", Records::random(Skew::Latest(0.99), Mix { reads: 0.95, inserts: 0.05, ..Mix::NONE })),
        ("ycsb-e", Records::random(ZIPF, Mix { scans: 0.95, inserts: 0.05, ..Mix::NONE })),
        ("ycsb-f", Records::random(ZIPF, Mix { reads: 0.5, read_modify_writes: 0.5, ..Mix::NONE })),
    ];

    /// The keys of its records.
    pub fn keys(&self, seed: u64) -> Keys {
        Keys::new(self.order, seed)
    }

    /// The puts that load the table, in the order of record numbers.
    pub fn load(&self, seed: u64) -> impl Iterator<Item = Operation> + use<> {
        let keys = self.keys(seed);
        (0..self.count).map(move |record| Operation::Put { key: keys.at(record), value: record })
    }

    /// What is done to the loaded table, for ever.
    ///
    /// # Errors
    ///
    /// If there is nothing to choose from, or a share or a parameter of the skew is outside its range.
    pub fn operations(&self, seed: u64) -> Result<RecordsGenerator, BadSkew> {
        if !self.mix.is_sound() {
            return Err(BadSkew);
        }
        // Popularity must not follow the order of keys. Random keys do not follow the order of records anyway, and other
        // keys that are chosen by rank are shuffled.
        let is_ranked = matches!(self.skew, Skew::Zipf(_) | Skew::HotCold { .. });
        let must_shuffle = is_ranked && self.order != KeyOrder::Random && self.mix.deletes == 0.0;
        let new = if must_shuffle { Chooser::new } else { Chooser::in_order };
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ MIX_SEED);
        let live = (self.mix.deletes > 0.0).then(|| {
            let mut live: Vec<u32> = (0..self.count).collect();
            if is_ranked {
                live.shuffle(&mut random);
            }
            live
        });
        Ok(RecordsGenerator {
            keys: self.keys(seed),
            chooser: new(self.count, self.skew, seed)?,
            mix: self.mix,
            random,
            live,
            by_age: matches!(self.skew, Skew::Latest(_)),
            next_record: self.count,
            next_value: self.count,
            pending: None,
        })
    }
}

/// Keeps what is drawn for the mix apart from what is drawn for keys and records.
const MIX_SEED: u64 = 0x6D69_7865_7300_0000;

/// Yields what is done to a loaded table, for ever.
#[derive(Debug)]
pub struct RecordsGenerator {
    keys: Keys,
    chooser: Chooser,
    mix: Mix,
    random: ChaCha8Rng,
    /// The records that are there; none as long as nothing is ever deleted, so that all of them are.
    live: Option<Vec<u32>>,
    /// Whether those that are there must stay in the order of their age.
    by_age: bool,
    next_record: u32,
    next_value: u32,
    /// The second half of a read and write.
    pending: Option<Operation>,
}

impl RecordsGenerator {
    fn put(&mut self, record: u32) -> Operation {
        let value = self.next_value;
        self.next_value = self.next_value.wrapping_add(1);
        Operation::Put { key: self.keys.at(record), value }
    }

    fn insert(&mut self) -> Operation {
        let record = self.next_record;
        self.next_record = self.next_record.wrapping_add(1);
        if let Some(live) = &mut self.live {
            live.push(record);
        }
        self.resize();
        self.put(record)
    }

    /// The place of a record among those that are there.
    fn choose(&mut self) -> (usize, u32) {
        let place = self.chooser.choose();
        (place as usize, self.live.as_ref().map_or(place, |live| live[place as usize]))
    }

    fn delete(&mut self) -> Operation {
        let (place, record) = self.choose();
        if let Some(live) = &mut self.live {
            if self.by_age {
                // The exchange below would make the newest record an old one.
                live.remove(place);
            } else {
                live.swap_remove(place);
            }
        }
        self.resize();
        Operation::Delete { key: self.keys.at(record) }
    }

    fn resize(&mut self) {
        let count = self.live.as_ref().map_or(self.next_record as usize, Vec::len);
        // It cannot become empty: the last record is never deleted.
        let _ = self.chooser.set_count(count as u32);
    }

    fn live_count(&self) -> usize {
        self.live.as_ref().map_or(self.next_record as usize, Vec::len)
    }
}

impl Iterator for RecordsGenerator {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        let mut drawn = self.random.random_range(0.0..self.mix.total());
        let mut falls = |share: f64| {
            drawn -= share;
            drawn < 0.0
        };
        let mix = self.mix;
        Some(if falls(mix.inserts) || self.live_count() < 2 {
            self.insert()
        } else if falls(mix.deletes) {
            self.delete()
        } else {
            let (_, record) = self.choose();
            let key = self.keys.at(record);
            if falls(mix.reads) {
                Operation::Get { key }
            } else if falls(mix.scans) {
                Operation::Scan { key, count: self.random.random_range(1..=Mix::SCAN_LENGTH_MAX) }
            } else if falls(mix.read_modify_writes) {
                self.pending = Some(self.put(record));
                Operation::Get { key }
            } else {
                self.put(record)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn named(name: &str) -> Records {
        Records::NAMED.iter().find(|(own, _)| *own == name).unwrap().1
    }

    /// Counts of gets, puts to records that are there, puts of new ones, deletes and scans.
    fn counts(name: &str, operations: usize) -> [usize; 5] {
        let records = named(name);
        let mut there: HashMap<u32, ()> = records.load(3).map(|operation| (operation.key(), ())).collect();
        let mut counts = [0; 5];
        for operation in records.operations(3).unwrap().take(operations) {
            let kind = match operation {
                Operation::Get { .. } => 0,
                Operation::Put { key, .. } => {
                    if there.insert(key, ()).is_some() {
                        1
                    } else {
                        2
                    }
                }
                Operation::Delete { key } => {
                    there.remove(&key).unwrap();
                    3
                }
                Operation::Scan { .. } => 4,
            };
            counts[kind] += 1;
        }
        counts
    }

    #[test]
    fn mixes_have_the_shares_they_state() {
        let shares: [(&str, [f64; 5]); 9] = [
            ("ycsb-a", [0.5, 0.5, 0.0, 0.0, 0.0]),
            ("ycsb-b", [0.95, 0.05, 0.0, 0.0, 0.0]),
            ("ycsb-c", [1.0, 0.0, 0.0, 0.0, 0.0]),
            ("ycsb-d", [0.95, 0.0, 0.05, 0.0, 0.0]),
            ("ycsb-e", [0.0, 0.0, 0.05, 0.0, 0.95]),
            // A read and write is two operations: of three, two are lookups.
            ("ycsb-f", [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0, 0.0]),
            ("uniform", [0.5, 0.2, 0.15, 0.15, 0.0]),
            ("latest", [0.5, 0.2, 0.15, 0.15, 0.0]),
            ("sequential", [0.0, 0.0, 1.0, 0.0, 0.0]),
        ];
        for (name, expected) in shares {
            let counts = counts(name, 20_000);
            for (count, share) in counts.iter().zip(expected) {
                let off = (*count as f64 / 20_000.0 - share).abs();
                // Six standard deviations of a share of one half.
                assert!(off < 0.022, "{name}: {counts:?} and not {expected:?}");
            }
        }
    }

    #[test]
    fn a_scrambled_zipf_has_its_popular_keys_anywhere() {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        for operation in named("ycsb-c").operations(3).unwrap().take(200_000) {
            *counts.entry(operation.key()).or_default() += 1;
        }
        let mut popular: Vec<(u32, u32)> = counts.into_iter().map(|(key, count)| (count, key)).collect();
        popular.sort_unstable_by(|a, b| b.cmp(a));
        // The share of rank 1 of 100,000 is 1 over the sum of r^-0.99, which is 12.8.
        assert!((14_500..16_800).contains(&popular[0].0), "{}", popular[0].0);
        let quarters: Vec<u32> = popular[..40].iter().map(|(_, key)| key >> 30).collect();
        assert!((0..4).all(|quarter| quarters.contains(&quarter)), "{quarters:?}");
    }

    #[test]
    fn the_latest_records_are_read_most() {
        let records = named("ycsb-d");
        let keys = records.keys(3);
        let mut record_of: HashMap<u32, u32> = (0..records.count).map(|record| (keys.at(record), record)).collect();
        let (mut newest, mut young, mut reads) = (records.count, 0, 0);
        for operation in records.operations(3).unwrap().take(50_000) {
            match operation {
                Operation::Put { key, .. } => {
                    record_of.insert(key, newest);
                    newest += 1;
                }
                other => {
                    reads += 1;
                    young += u32::from(newest - record_of[&other.key()] <= newest / 100);
                }
            }
        }
        // The newest hundredth has the share H(1000) / H(100,000) of a Zipf distribution, a little above one half.
        assert!((0.55..0.68).contains(&(f64::from(young) / f64::from(reads))), "{young} of {reads}");
    }

    #[test]
    fn senseless_shares_are_refused() {
        let with = |mix| Records { mix, ..named("uniform") }.operations(0).is_err();
        assert!(with(Mix::NONE) && with(Mix { reads: -1.0, updates: 2.0, ..Mix::NONE }));
        assert!(Records { count: 0, ..named("uniform") }.operations(0).is_err());
    }
}
