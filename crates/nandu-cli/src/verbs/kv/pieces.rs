//! A value on its way out, in pieces: a large one is not to be in memory whole.

use std::io;

use super::formats::Format;
use crate::hexdump;
use crate::index::IndexError;
use crate::view::View;

/// Bytes of a value that are in memory at a time.
const PIECE_SIZE: usize = 64 * 1024;

/// Why a value did not arrive.
pub(super) enum Failed {
    Index(IndexError),
    Output(io::Error),
}

impl From<IndexError> for Failed {
    fn from(error: IndexError) -> Failed {
        Failed::Index(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Output(error)
    }
}

/// The value of a record.
pub(super) enum Value<'a, 's, 'm> {
    /// One that is in memory.
    Lent(&'a [u8]),
    /// One of so many bytes that is read again whenever it is asked for.
    Stored { view: &'a mut View<'s, 'm>, key: &'a [u8], size: usize },
}

impl Value<'_, '_, '_> {
    /// Hands over the bytes in order.
    fn each_piece(&mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> Result<(), Failed> {
        match self {
            Value::Lent(bytes) => take(bytes)?,
            Value::Stored { view, key, size } => {
                let mut piece = vec![0; PIECE_SIZE.min(*size)];
                let mut offset = 0;
                while offset < *size {
                    let wanted = piece.len().min(*size - offset);
                    match view.read(key, offset, &mut piece[..wanted])? {
                        Some(count) if count > 0 => take(&piece[..count])?,
                        _ => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                    }
                    offset += wanted;
                }
            }
        }
        Ok(())
    }

    /// Hands over the text in order, as far as the bytes are text; returns whether all of them are.
    fn each_text(&mut self, mut take: impl FnMut(&str) -> io::Result<()>) -> Result<bool, Failed> {
        let mut text = Text::default();
        self.each_piece(|piece| text.push(piece, &mut take))?;
        Ok(text.is_whole())
    }

    /// Whether it can stand in a column of text.
    pub(super) fn is_text(&mut self, format: Format) -> Result<bool, Failed> {
        let mut fits = true;
        let is_text = self.each_text(|text| {
            fits &= format.takes(text.as_bytes());
            Ok(())
        })?;
        Ok(fits && is_text)
    }

    /// Writes it as a field of a column, of text or of digits.
    pub(super) fn write_field(&mut self, format: Format, is_text: bool, out: &mut dyn io::Write) -> Result<(), Failed> {
        if !is_text {
            return self.each_piece(|piece| out.write_all(hexdump::digits(piece).as_bytes()));
        }
        let mut is_quoted = false;
        if format == Format::Csv {
            self.each_piece(|piece| {
                is_quoted |= piece.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
                Ok(())
            })?;
        }
        if !is_quoted {
            return self.each_piece(|piece| out.write_all(piece));
        }
        out.write_all(b"\"")?;
        self.each_piece(|piece| {
            for part in piece.split_inclusive(|&byte| byte == b'"') {
                out.write_all(part)?;
                if part.ends_with(b"\"") {
                    out.write_all(b"\"")?;
                }
            }
            Ok(())
        })?;
        Ok(out.write_all(b"\"")?)
    }

    /// Writes it as a field of a JSON object: a name and a string.
    pub(super) fn write_json(&mut self, name: &str, out: &mut dyn io::Write) -> Result<(), Failed> {
        if !self.each_text(|_| Ok(()))? {
            write!(out, "\"{name}_hex\":\"")?;
            self.each_piece(|piece| out.write_all(hexdump::digits(piece).as_bytes()))?;
        } else {
            write!(out, "\"{name}\":\"")?;
            self.each_text(|text| {
                let quoted = serde_json::to_string(text)?;
                out.write_all(&quoted.as_bytes()[1..quoted.len() - 1])
            })?;
        }
        Ok(out.write_all(b"\"")?)
    }
}

/// Text that comes in pieces, which may end within a character.
#[derive(Default)]
struct Text {
    begun: Vec<u8>,
    is_broken: bool,
}

impl Text {
    fn push(&mut self, piece: &[u8], take: &mut impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        if self.is_broken {
            return Ok(());
        }
        self.begun.extend_from_slice(piece);
        let end = match str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) => {
                self.is_broken = error.error_len().is_some();
                error.valid_up_to()
            }
        };
        if let Ok(text) = str::from_utf8(&self.begun[..end]) {
            take(text)?;
        }
        self.begun.drain(..end);
        Ok(())
    }

    fn is_whole(&self) -> bool {
        !self.is_broken && self.begun.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    /// The text in pieces of so many bytes, and whether it was text to its end.
    fn text_of(bytes: &[u8], piece_size: usize) -> (String, bool) {
        let (mut text, mut found) = (Text::default(), String::new());
        for piece in bytes.chunks(piece_size) {
            text.push(piece, &mut |part| {
                found.push_str(part);
                Ok(())
            })
            .unwrap();
        }
        (found, text.is_whole())
    }

    #[test]
    fn characters_that_lie_across_pieces_stay_whole() {
        let all = "a\u{e9}\u{1f600}\u{20ac}z";
        for piece_size in 1..all.len() + 1 {
            assert_eq!(text_of(all.as_bytes(), piece_size), (all.to_owned(), true), "{piece_size}");
            assert!(!text_of(&all.as_bytes()[..5], piece_size).1, "it ends within a character");
            assert!(!text_of(b"ab\xffcd", piece_size).1);
        }
        assert_eq!(text_of(b"", 4), (String::new(), true));
    }
}
