//! Putting a value that comes in pieces, on the new heart.

use core::fmt;

use nandu_nand::Nand;
use nandu_newtree::{ByteCells, Cells};

use super::store::Store;
use super::values::Draft;
use crate::Error;

/// Puts a value that comes in pieces, see [`Store::writer`].
///
/// Nothing has changed before [`finish`](Writer::finish) returns, whenever the power goes. What a writer wrote that was dropped before is removed by the
/// calls that follow.
pub struct Writer<'s, 'm, N: Nand, C: Cells = ByteCells> {
    store: &'s mut Store<'m, N, C>,
    /// Of a large value.
    draft: Option<Draft>,
    key: &'s [u8],
    length: usize,
    /// Bytes that came.
    done: usize,
    buffer: &'s mut [u8],
    /// Bytes that came and are not put yet; a small value stays here to the end.
    filled: usize,
}

impl<N: Nand, C: Cells> fmt::Debug for Writer<'_, '_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Writer { key, length, done, .. } = self;
        f.debug_struct("Writer").field("key", key).field("length", length).field("done", done).finish_non_exhaustive()
    }
}

impl<'s, 'm, N: Nand, C: Cells> Writer<'s, 'm, N, C> {
    pub(super) fn new(
        store: &'s mut Store<'m, N, C>,
        draft: Option<Draft>,
        key: &'s [u8],
        length: usize,
        buffer: &'s mut [u8],
    ) -> Self {
        Writer { store, draft, key, length, done: 0, buffer, filled: 0 }
    }

    /// Takes the next bytes. Programs whenever a leaf's worth came.
    ///
    /// # Errors
    ///
    /// [`Error::ValueSize`] if they are more than was said; [`Error::Full`]; errors of the chip. After an error
    /// nothing has changed and nothing more is taken.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error<N::Error>> {
        if self.done + bytes.len() > self.length {
            return Err(Error::ValueSize(self.done + bytes.len()));
        }
        self.done += bytes.len();
        let (engine, values) = self.store.parts();
        let (Some(draft), Some(values)) = (&mut self.draft, values) else {
            self.buffer[self.filled..][..bytes.len()].copy_from_slice(bytes);
            self.filled += bytes.len();
            return Ok(());
        };
        let mut rest = values.keep(draft, self.key, bytes);
        let group = values.group_size(self.buffer.len());
        while !rest.is_empty() {
            // The last bytes go with the head.
            if self.filled == group {
                values.extend(engine, draft, self.key, &self.buffer[..group])?;
                self.filled = 0;
            }
            let (now, more) = rest.split_at(rest.len().min(group - self.filled));
            self.buffer[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            rest = more;
        }
        Ok(())
    }

    /// Puts the value; returns whether the key was there before. Durable when it returns.
    ///
    /// # Errors
    ///
    /// [`Error::ValueSize`] if fewer bytes came than was said; else as [`write`](Writer::write).
    pub fn finish(self) -> Result<bool, Error<N::Error>> {
        if self.done != self.length {
            return Err(Error::ValueSize(self.done));
        }
        let data = &self.buffer[..self.filled];
        match (self.draft, self.store.parts()) {
            (Some(draft), (engine, Some(values))) => Ok(values.finish(engine, draft, self.key, data)?),
            _ => self.store.put(self.key, data),
        }
    }
}
