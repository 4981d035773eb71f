//! What is done to an index, as data: which operations, on which keys, in which order.
//!
//! A [`Workload`] is data. With a seed it becomes a [`Generator`], which yields [`Operation`]s: the same seed yields the
//! same operations on any machine, since all chance comes from a generator with a specified stream (ChaCha8). Three
//! kinds of workload share that type, so whoever takes operations takes all of them:
//!
//! * [`Records`]: a table of records and shares of reads, updates, inserts, deletes and scans, as YCSB has them;
//! * [`FileMix`]: the index of a file system under one of the mixes that the mu-Tree paper counts, with the locality that
//!   its descriptions imply;
//! * [`Trace`]: the index of a file system as a recorder saw it under real work.
//!
//! ```
//! use std::collections::BTreeMap;
//! use nandu_bench::workload::{Operation, Workload};
//!
//! let mut index = BTreeMap::new();
//! for operation in Workload::named("ycsb-a").unwrap().generator(7).unwrap().take(5000) {
//!     match operation {
//!         Operation::Put { key, value } => drop(index.insert(key, value)),
//!         Operation::Delete { key } => assert!(index.remove(&key).is_some()),
//!         Operation::Get { key } => assert!(index.contains_key(&key)),
//!         Operation::Scan { key, count } => drop(index.range(key..).take(count as usize)),
//!     }
//! }
//! ```

mod calls;
mod chooser;
mod files;
mod keys;
mod programs;
pub mod recorder;
mod records;
mod trace;

pub use calls::{BadCalls, CallRecorder, CallTrace, FileCall, FileVerb};
pub use chooser::{BadSkew, Chooser, Skew};
pub use files::FileMix;
pub use keys::{KeyOrder, Keys, RandomKeys};
pub use programs::{Durable, FileName, Files, Population, Postmark, Updates};
pub use records::{Mix, Records, RecordsGenerator};
pub use trace::{BadTrace, Item, Step, Trace, Verb};

/// One thing to do with an index of 32-bit keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Look a key up.
    Get {
        /// The key.
        key: u32,
    },
    /// Put a value at a key, whether it is there or not.
    Put {
        /// The key.
        key: u32,
        /// The value. No two puts of a generator have the same one.
        value: u32,
    },
    /// Delete a key.
    Delete {
        /// The key.
        key: u32,
    },
    /// Read entries in rising order.
    Scan {
        /// The first key, if it is there, else the next one.
        key: u32,
        /// How many, at most.
        count: u32,
    },
}

impl Operation {
    /// The key that it concerns, or begins at.
    pub const fn key(&self) -> u32 {
        match *self {
            Operation::Get { key }
            | Operation::Put { key, .. }
            | Operation::Delete { key }
            | Operation::Scan { key, .. } => key,
        }
    }

    /// Whether it changes the index.
    pub const fn is_change(&self) -> bool {
        matches!(self, Operation::Put { .. } | Operation::Delete { .. })
    }
}

/// What is done to an index.
#[derive(Clone, Debug)]
pub enum Workload {
    /// A table of records.
    Records(Records),
    /// The index of a file system, made up.
    Files(FileMix),
    /// The index of a file system, recorded.
    Trace(Trace),
}

impl Workload {
    /// The workload of a name: those of [`Records::NAMED`], [`FileMix::ALL`], and `recorded`.
    pub fn named(name: &str) -> Option<Workload> {
        let records = Records::NAMED.iter().find(|(own, _)| *own == name).map(|(_, records)| *records);
        let files = FileMix::ALL.iter().find(|mix| mix.name == name).copied();
        let recorded = || (name == "recorded").then(|| Trace::sample().ok()).flatten();
        records.map(Workload::Records).or(files.map(Workload::Files)).or_else(|| recorded().map(Workload::Trace))
    }

    /// The operations of a seed. For a table of records, the puts that load it come first, and the rest goes on for ever.
    ///
    /// # Errors
    ///
    /// If a parameter makes no sense.
    pub fn generator(&self, seed: u64) -> Result<Generator, BadSkew> {
        Ok(match self {
            Workload::Records(records) => {
                Generator::Records(Box::new(records.load(seed).chain(records.operations(seed)?)))
            }
            Workload::Files(mix) => Generator::List(mix.operations(seed).into_iter()),
            Workload::Trace(trace) => Generator::List(trace.operations().into_iter()),
        })
    }
}

/// Yields operations.
pub enum Generator {
    /// One by one, as they are asked for.
    Records(Box<dyn Iterator<Item = Operation>>),
    /// From a list.
    List(std::vec::IntoIter<Operation>),
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator").finish_non_exhaustive()
    }
}

impl Iterator for Generator {
    type Item = Operation;

    fn next(&mut self) -> Option<Operation> {
        match self {
            Generator::Records(records) => records.next(),
            Generator::List(list) => list.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{FileMix, Operation, Records, Workload};

    /// Every workload by name: what it deletes is there, and but for the recorded one what it looks up is there as well.
    #[test]
    fn workloads_ask_for_what_is_there() {
        let names = Records::NAMED.iter().map(|(name, _)| *name).chain(FileMix::ALL.iter().map(|mix| mix.name));
        for name in names.chain(["recorded"]) {
            let mut index = BTreeMap::new();
            let (mut found, mut missed) = (0, 0);
            for operation in Workload::named(name).unwrap().generator(5).unwrap().take(300_000) {
                match operation {
                    Operation::Put { key, value } => drop(index.insert(key, value)),
                    Operation::Delete { key } => assert!(index.remove(&key).is_some(), "{name}: {operation:?}"),
                    Operation::Get { key } if index.contains_key(&key) => found += 1,
                    Operation::Get { .. } => missed += 1,
                    Operation::Scan { count, .. } => assert!(count > 0, "{name}"),
                }
            }
            if name == "recorded" {
                assert!(found > 10 * missed, "{name}: {missed} of {found} lookups find nothing");
            } else {
                assert_eq!(missed, 0, "{name}");
            }
        }
    }

    #[test]
    fn a_seed_yields_the_same_operations_and_another_one_others() {
        for name in ["ycsb-f", "postmark"] {
            let run = |seed| Workload::named(name).unwrap().generator(seed).unwrap().take(120_000).collect::<Vec<_>>();
            assert!(run(1) == run(1), "{name}");
            assert!(run(1) != run(2), "{name}");
        }
    }
}
