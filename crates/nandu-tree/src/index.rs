//! The engine as an index like any other.

use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Edit, Entry, OrderedIndex, Violation};
use nandu_nand::Nand;

use crate::engine::Engine;
use crate::error::EngineError;

impl<N: Nand, C: Cells> OrderedIndex for Engine<'_, N, C> {
    type Error = EngineError<N::Error>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Self::Error> {
        Engine::get(self, key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error> {
        Engine::put(self, key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Self::Error> {
        Engine::delete(self, key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Self::Error> {
        Engine::batch(self, edits)
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        Engine::range(self, from, to, direction, visit)
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        Engine::first(self)
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        Engine::last(self)
    }

    fn count(&mut self) -> Result<u64, Self::Error> {
        Ok(self.record_count())
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        Engine::sync(self)
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Self::Error> {
        Engine::verify(self, report)
    }
}
