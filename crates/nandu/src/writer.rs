//! Putting a value that comes in pieces.

use core::fmt;

use nandu_nand::Nand;
use nandu_tree::{ByteCells, Cells};

use crate::{Error, Store};

/// Puts a value that comes in pieces, see [`Store::writer`].
///
/// Nothing has changed before [`finish`](Writer::finish) returns, whenever the power goes; dropped before, a writer gives
/// up what it wrote.
pub struct Writer<'s, 'm, N: Nand, C: Cells = ByteCells> {
    store: &'s mut Store<'m, N, C>,
    is_large: bool,
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

impl<'m, N: Nand, C: Cells> Store<'m, N, C> {
    /// Begins to put a value of `length` bytes that come in pieces; what is at the key stays until
    /// [`Writer::finish`](crate::Writer::finish). `buffer`, a page or more, holds what does not fill a page yet.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`] names the size of the buffer; else as [`put`](Store::put).
    pub fn writer<'s>(
        &'s mut self,
        key: &'s [u8],
        length: usize,
        buffer: &'s mut [u8],
    ) -> Result<Writer<'s, 'm, N, C>, Error<N::Error>> {
        let required = self.engine().log().page_size();
        if buffer.len() < required {
            return Err(Error::Memory { required });
        }
        let is_large = !self.has_fixed_keys() && key.len() + length > self.entry_size_max();
        if is_large {
            self.engine().begin_value(key, length)?;
        } else {
            self.check_key(key)?;
        }
        Ok(Writer { store: self, is_large, key, length, done: 0, buffer, filled: 0 })
    }
}

impl<N: Nand, C: Cells> Writer<'_, '_, N, C> {
    /// Takes the next bytes. Programs a page whenever one is full.
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
        let engine = self.store.engine();
        let mut rest = bytes;
        while !rest.is_empty() {
            let size = if self.is_large { engine.value_part().unwrap_or(0) } else { self.buffer.len() };
            let (now, more) = rest.split_at(rest.len().min(size.saturating_sub(self.filled)));
            self.buffer[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            rest = more;
            if self.is_large && self.filled == size {
                self.filled = 0;
                engine.append_value(self.key, &self.buffer[..size])?;
            }
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
        if !self.is_large {
            return self.store.put(self.key, &self.buffer[..self.filled]);
        }
        self.store.end_value(self.key)
    }
}
