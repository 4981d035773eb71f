//! The trait.

use core::error::Error;
use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_nand::PageAddr;

/// One change of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit<'a> {
    /// The key it concerns.
    pub key: &'a [u8],
    /// The value to put there; `None` deletes the key.
    pub value: Option<&'a [u8]>,
}

/// A key and its value, lent by the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its value; empty if it is too large to be lent.
    pub value: &'a [u8],
    /// Bytes of a value that is too large to be lent.
    pub large: Option<usize>,
}

/// Which way a range runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest key up.
    Forward,
    /// From the highest key down.
    Backward,
}

/// An invariant that does not hold on flash, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Number of the invariant, as the index's documentation lists them: `"T1"`.
    pub invariant: &'static str,
    /// The page.
    pub page: PageAddr,
    /// Level of the node in the page; leaves are at level 0.
    pub level: u8,
    /// Which entry of the node, from 0.
    pub index: u32,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, page, level, index } = self;
        write!(f, "{invariant} violated in page {page}, level {level}, entry {index}")
    }
}

/// An ordered map from keys to values on flash.
///
/// A change that returned without an error is durable, unless the index was opened otherwise; then it is after
/// [`OrderedIndex::sync`]. A change that returned an error has not happened, and the index still holds what it held
/// before. Whatever happens to the power, an index that is opened again holds every durable change wholly, and of any
/// other change all or nothing.
pub trait OrderedIndex {
    /// What can go wrong.
    type Error: Error;

    /// The value of a key.
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Self::Error>;

    /// Puts a value at a key. Returns whether the key was there before.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error>;

    /// Deletes a key. Returns whether it was there.
    fn delete(&mut self, key: &[u8]) -> Result<bool, Self::Error>;

    /// Makes all these changes or none of them, whenever the power goes. The keys must strictly ascend.
    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Self::Error>;

    /// Visits the entries between two bounds in order, until `visit` breaks off.
    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error>;

    /// The entry with the lowest key.
    fn first(&mut self) -> Result<Option<Entry<'_>>, Self::Error>;

    /// The entry with the highest key.
    fn last(&mut self) -> Result<Option<Entry<'_>>, Self::Error>;

    /// How many keys there are. Costs no operation on flash.
    fn count(&mut self) -> Result<u64, Self::Error>;

    /// Makes every change so far durable.
    fn sync(&mut self) -> Result<(), Self::Error>;

    /// Walks the whole index once and reports each invariant that does not hold. Reads only.
    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Self::Error>;
}
