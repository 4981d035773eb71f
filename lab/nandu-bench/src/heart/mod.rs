//! The two hearts that may beat under records and files: the one of `nandu`, and the one that is to take its place.
//!
//! Whatever is measured on both takes its store from [`Heart::format`] and [`Heart::open`]. **The new heart plugs in by one file, `new.rs`.** A file system comes from a
//! [`Maker`].

mod files;
mod new;
mod old;

use std::fmt;

pub use files::Maker;
pub(crate) use files::OldFiles;
use nandu::{Edit, Error, Options};
use nandu_sim::{Sim, SimError};

use crate::BenchError;

/// Which log and tree are under a store or a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Heart {
    /// `nandu-log`, `nandu-tree` and `nandu-fs`.
    #[default]
    Old,
    /// What is written to take their place.
    New,
}

impl Heart {
    /// Both, in the order in which they are printed.
    pub const ALL: [Heart; 2] = [Heart::Old, Heart::New];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Heart::Old => "old",
            Heart::New => "new",
        }
    }

    /// The heart of this name.
    pub fn named(name: &str) -> Option<Heart> {
        Heart::ALL.into_iter().find(|heart| heart.name() == name)
    }

    /// Whether a store can be made on it.
    pub const fn has_records(self) -> bool {
        match self {
            Heart::Old => true,
            Heart::New => new::HAS_RECORDS,
        }
    }

    /// Whether its stores have snapshots.
    pub const fn has_snapshots(self) -> bool {
        match self {
            Heart::Old => true,
            Heart::New => new::HAS_SNAPSHOTS,
        }
    }

    /// Whether a file system can be made on it. The lab has a [`Maker`] for the old one only; whoever has another hands that in.
    pub const fn has_files(self) -> bool {
        true
    }

    /// Bytes of memory that a store with these options takes on a chip.
    pub fn memory_required(self, chip: &Sim, cells: Cells, options: &Options) -> usize {
        match self {
            Heart::Old => old::memory_required(chip, options),
            Heart::New => new::memory_required(chip, cells, options),
        }
    }

    /// Makes an empty store on a chip.
    ///
    /// # Errors
    ///
    /// [`BenchError::NotBuilt`], or what the store says.
    pub fn format<'m>(
        self,
        chip: &'m mut Sim,
        cells: Cells,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<Box<dyn Records + 'm>, BenchError> {
        match self {
            Heart::Old => old::format(chip, cells, options, memory),
            Heart::New => new::format(chip, cells, options, memory),
        }
    }

    /// Opens the store on a chip.
    ///
    /// # Errors
    ///
    /// As [`format`](Heart::format).
    pub fn open<'m>(
        self,
        chip: &'m mut Sim,
        cells: Cells,
        options: Options,
        memory: &'m mut [u8],
    ) -> Result<Box<dyn Records + 'm>, BenchError> {
        match self {
            Heart::Old => old::open(chip, cells, options, memory),
            Heart::New => new::open(chip, cells, options, memory),
        }
    }
}

impl fmt::Display for Heart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How records lie in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Byte strings of any length.
    Bytes,
    /// Keys and values of 4 bytes.
    Fixed,
}

/// What a store returns.
pub type Outcome<T> = Result<T, Error<SimError>>;

/// Takes a key, and its value if that is no larger than an entry.
pub type Visit<'v> = dyn FnMut(&[u8], Option<&[u8]>) + 'v;

/// A snapshot by its place among those that there are, the oldest first, from 0.
pub type SnapshotIndex = usize;

/// What a store says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pages that live.
    pub live_pages: u32,
    /// Pages that may live.
    pub capacity_pages: u32,
    /// Most steps of collection that one operation paid; 0 where nobody counts them.
    pub instalment_max: u32,
    /// Erases of a block in the mean.
    pub erase_count_mean: u32,
    /// Erases of the most worn block.
    pub erase_count_max: u32,
}

/// A store of records on a simulated chip that somebody else has, on either heart.
pub trait Records {
    /// Puts a record; says whether its key was there.
    ///
    /// # Errors
    ///
    /// Those of `nandu::Store`, here and below.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Outcome<bool>;
    /// The value of a key.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn get(&mut self, key: &[u8]) -> Outcome<Option<&[u8]>>;
    /// Copies the value of a key, however large, into `out` as far as that goes, and returns how many bytes that are.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn read(&mut self, key: &[u8], out: &mut [u8]) -> Outcome<Option<usize>>;
    /// Deletes a record; says whether its key was there.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn delete(&mut self, key: &[u8]) -> Outcome<bool>;
    /// Changes that happen together.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn batch(&mut self, edits: &[Edit<'_>]) -> Outcome<()>;
    /// Puts many records with rising keys into an empty store or behind what is there.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn load(&mut self, records: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Outcome<()>;
    /// Hands out keys and values of all records, in the order of their keys; of a value that is larger than an entry nothing.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn visit(&mut self, visit: &mut Visit<'_>) -> Outcome<()>;
    /// Makes every change durable.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn sync(&mut self) -> Outcome<()>;
    /// Does background work of up to so many pages; says whether there is more.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn idle(&mut self, pages: u32) -> Outcome<bool>;
    /// Keeps the records as they are.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn snapshot(&mut self) -> Outcome<()>;
    /// The value of a key in a snapshot, of whatever size.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn value_at(&mut self, snapshot: SnapshotIndex, key: &[u8]) -> Outcome<Option<Vec<u8>>>;
    /// Visits all keys of a snapshot as [`visit`](Records::visit) does.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn visit_at(&mut self, snapshot: SnapshotIndex, visit: &mut Visit<'_>) -> Outcome<()>;
    /// The numbers of the snapshots that there are, which ascend.
    fn snapshots(&self) -> Vec<u32>;
    /// Gives up one of the snapshots.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn release(&mut self, snapshot: SnapshotIndex) -> Outcome<()>;
    /// Counts what is not as it has to be in the whole volume.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn verify(&mut self) -> Outcome<u64>;
    /// Longest key.
    fn key_size_max(&self) -> usize;
    /// Most bytes of a key and a value that lie in a leaf.
    fn entry_size_max(&self) -> usize;
    /// What the store says of itself.
    fn stats(&self) -> Stats;
    /// The chip.
    fn nand(&self) -> &Sim;
    /// The chip, to be cut.
    fn nand_mut(&mut self) -> &mut Sim;
    /// Makes everything durable and lets go of the chip. Whoever drops the store instead leaves the chip as it is.
    ///
    /// # Errors
    ///
    /// As [`put`](Records::put).
    fn unmount(self: Box<Self>) -> Outcome<()>;
}
