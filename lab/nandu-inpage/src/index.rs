//! As an ordered index.

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
use nandu_nand::{Cause, Nand};

use crate::error::Error;
use crate::inpage::InPage;

impl<N: Nand> OrderedIndex for InPage<'_, N> {
    type Error = Error<N::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Self::Error> {
        InPage::get(self, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error> {
        InPage::put(self, key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Self::Error> {
        InPage::delete(self, key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Self::Error> {
        InPage::batch(self, edits)
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        InPage::range(self, from, to, direction, visit)
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        InPage::first(self)
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        InPage::last(self)
    }

    fn count(&mut self) -> Result<u64, Self::Error> {
        self.count_records()
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        InPage::sync(self)
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Self::Error> {
        InPage::verify(self, report)
    }
}

impl<N: Nand> InPage<'_, N> {
    /// Makes every change so far durable. Costs a program for each unit with changes, and what these cause; with a journal one
    /// program, however many they are, and nothing if there was no change.
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put).
    pub fn sync(&mut self) -> Result<(), Error<N::Error>> {
        self.guarded(|index| {
            index.for_cause(Cause::Host, Self::make_durable)?;
            index.empty_failing()
        })
    }

    /// Makes everything durable, notes that nothing comes after it, and gives the chip back. As long as there are blocks that
    /// a cut may have hit and that were not written to since, it is not noted, so that they are found again.
    ///
    /// # Errors
    ///
    /// As [`put`](InPage::put).
    pub fn unmount(mut self) -> Result<N, Error<N::Error>> {
        self.sync()?;
        if self.is_read_only {
            return Ok(self.nand);
        }
        #[cfg(feature = "_broken")]
        self.sync()?;
        let has_suspects = self.blocks.addresses().any(|block| self.blocks[block].is_suspect != 0);
        self.guarded(|index| {
            index.for_cause(Cause::Host, Self::flush_all)?;
            index.void_journal();
            index.write_anchor(!has_suspects)
        })?;
        Ok(self.nand)
    }

    pub(crate) fn make_durable(&mut self) -> Result<(), Error<N::Error>> {
        if self.has_journal() { self.write_journal() } else { self.flush_all() }
    }
}
