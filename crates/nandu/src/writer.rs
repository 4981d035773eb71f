//! Putting a value that comes in pieces.

use core::fmt;

use nandu_nand::Nand;
use nandu_tree::{ByteCells, Cells, OnLog, Tree};

use crate::Error;

/// Puts a value that comes in pieces, see [`Store::writer`](crate::Store::writer).
///
/// Nothing has changed before [`finish`](Writer::finish) returns, whenever the power goes; dropped before, a writer gives
/// up what it wrote.
pub struct Writer<'s, 'm, N: Nand, C: Cells = ByteCells> {
    tree: &'s mut Tree<'m, OnLog<'m, N>, C>,
    key: &'s [u8],
    length: usize,
    /// Bytes that came.
    done: usize,
    buffer: &'s mut [u8],
    /// Bytes that came and are not appended yet; a small value stays here to the end.
    filled: usize,
    is_large: bool,
}

impl<N: Nand, C: Cells> fmt::Debug for Writer<'_, '_, N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("key", &self.key)
            .field("length", &self.length)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<'s, 'm, N: Nand, C: Cells> Writer<'s, 'm, N, C> {
    pub(crate) fn begin(
        tree: &'s mut Tree<'m, OnLog<'m, N>, C>,
        key: &'s [u8],
        length: usize,
        buffer: &'s mut [u8],
    ) -> Result<Self, Error<N::Error>> {
        let page_size = nandu_tree::Pages::page_size(tree.pages());
        if buffer.len() < page_size {
            return Err(Error::Memory { required: page_size });
        }
        let is_large = key.len() + length > tree.entry_size_max();
        if key.len() > tree.key_size_max() {
            return Err(Error::KeySize(key.len()));
        }
        if is_large {
            tree.begin_value(key, length)?;
        }
        Ok(Writer { tree, key, length, done: 0, buffer, filled: 0, is_large })
    }

    /// Takes the next bytes. Programs a page whenever one is full.
    ///
    /// # Errors
    ///
    /// [`Error::ValueSize`] if they are more than was said; [`Error::Full`]; errors of the chip. After an error
    /// nothing has changed and nothing more is taken.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error<N::Error>> {
        if self.done + bytes.len() > self.length {
            return Err(Error::ValueSize(self.done + bytes.len()));
        }
        let page = if self.is_large { self.tree.value_page_size(self.key) } else { self.buffer.len() };
        while !bytes.is_empty() {
            let size = bytes.len().min(page - self.filled);
            let (now, rest) = bytes.split_at(size);
            self.buffer[self.filled..self.filled + size].copy_from_slice(now);
            self.filled += size;
            self.done += size;
            bytes = rest;
            if self.is_large && (self.filled == page || self.done == self.length) {
                self.tree.append_value(self.key, &self.buffer[..self.filled])?;
                self.filled = 0;
            }
        }
        Ok(())
    }

    /// Puts the value; returns whether the key was there before. Durable as what [`Store::put`](crate::Store::put) puts.
    ///
    /// # Errors
    ///
    /// [`Error::ValueSize`] if fewer bytes came than was said; else as [`write`](Writer::write).
    pub fn finish(self) -> Result<bool, Error<N::Error>> {
        if self.done != self.length {
            return Err(Error::ValueSize(self.done));
        }
        Ok(match self.is_large {
            true => self.tree.finish_value(self.key)?,
            false => self.tree.put(self.key, &self.buffer[..self.filled])?,
        })
    }
}

impl<N: Nand, C: Cells> Drop for Writer<'_, '_, N, C> {
    fn drop(&mut self) {
        self.tree.discard_value();
    }
}
