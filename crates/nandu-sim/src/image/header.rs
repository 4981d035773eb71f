//! The two headers of an image file.

use super::codec::{Decoder, Encoder};
use super::error::{ImagePart, ImageProblem};
use super::space::ALIGNMENT;

/// Bytes of a header.
pub(super) const HEADER_SIZE: u64 = 4096;

/// Where the two headers are.
pub(super) const POSITIONS: [u64; 2] = [0, HEADER_SIZE];

/// Where everything else begins.
pub(super) const HEADERS_END: u64 = 2 * HEADER_SIZE;

/// The format that is written, and the only one that is read.
pub(super) const FORMAT_VERSION: u16 = 2;

/// A content is at most this large.
const CONTENT_SIZE_MAX: u32 = 1 << 24;

const MAGIC: [u8; 8] = *b"nanduIMG";

/// Bytes before the fields that the checksum covers: the magic number and the checksum.
const CHECKED_FROM: usize = 12;

/// Bytes of the header that have a meaning; the rest is zero.
const USED_SIZE: usize = 112;

/// CRC-32C, the one checksum of the format.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The checksum of bytes and others behind them.
pub(super) fn checksum_on(before: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(before, bytes)
}

/// A stretch of the file and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) size: u32,
    pub(super) crc: u32,
}

impl Extent {
    /// No bytes.
    pub(super) const NONE: Extent = Extent { offset: HEADERS_END, size: 0, crc: 0 };

    /// Why the extent cannot be in a file of this size; `None` if it can.
    pub(super) fn problem(&self, file_size: u64) -> Option<&'static str> {
        let end = self.offset.checked_add(u64::from(self.size));
        let is_inside = self.offset >= HEADERS_END && end.is_some_and(|end| end <= file_size);
        (!is_inside || !self.offset.is_multiple_of(ALIGNMENT)).then_some("it points outside the file")
    }
}

/// What the header says. Its bytes are described in the documentation of the module above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Features that only who writes must know; a header with some is not written over.
    pub(super) writer_features: u32,
    /// Counts commits.
    pub(super) generation: u64,
    /// Bytes in a file that no commit was cut in.
    pub(super) file_size: u64,
    pub(super) state: Extent,
    pub(super) directory: Extent,
    /// What changed in the directory since it was written.
    pub(super) journal: Extent,
    /// Bytes that there are for the journal.
    pub(super) journal_room: u32,
    /// Bytes of each content.
    pub(super) content_size: u32,
}

impl Header {
    /// The bytes, for one of [`POSITIONS`].
    pub(super) fn encode(&self, position: u64) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u16(FORMAT_VERSION);
        out.u16(0);
        out.u32(0); // Features that a reader must know: none is defined yet.
        out.u32(self.writer_features);
        out.u32(0); // Features that nobody need know.
        out.u32(0);
        out.u64(position);
        out.u64(self.generation);
        out.u64(self.file_size);
        for extent in [self.state, self.directory, self.journal] {
            out.u64(extent.offset);
            out.u32(extent.size);
            out.u32(extent.crc);
        }
        out.u32(self.journal_room);
        out.u32(self.content_size);
        let mut fields = out.into_bytes();
        fields.resize(HEADER_SIZE as usize - CHECKED_FROM, 0);
        let mut bytes = Vec::with_capacity(HEADER_SIZE as usize);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&checksum(&fields).to_le_bytes());
        bytes.extend_from_slice(&fields);
        bytes
    }

    /// Reads `HEADER_SIZE` bytes that were found at `position`.
    pub(super) fn parse(bytes: &[u8], position: u64) -> Result<Header, ImageProblem> {
        if !begins_as_image(bytes) {
            return Err(ImageProblem::NotAnImage);
        }
        let invalid = |why| ImageProblem::invalid(ImagePart::Header, why);
        let mut input = Decoder::new(bytes);
        input.bytes(MAGIC.len()).map_err(invalid)?;
        let crc = input.u32().map_err(invalid)?;
        if bytes.len() as u64 != HEADER_SIZE || checksum(&bytes[CHECKED_FROM..]) != crc {
            return Err(ImageProblem::Damaged(ImagePart::Header));
        }
        let version = input.u16().map_err(invalid)?;
        if version != FORMAT_VERSION {
            return Err(ImageProblem::Version(version));
        }
        let mut reserved = u32::from(input.u16().map_err(invalid)?);
        let reader_features = input.u32().map_err(invalid)?;
        if reader_features != 0 {
            return Err(ImageProblem::Features(reader_features));
        }
        let writer_features = input.u32().map_err(invalid)?;
        let _ignorable_features = input.u32().map_err(invalid)?;
        reserved |= input.u32().map_err(invalid)?;
        let stated_position = input.u64().map_err(invalid)?;
        let generation = input.u64().map_err(invalid)?;
        let file_size = input.u64().map_err(invalid)?;
        let mut extent = || -> Result<Extent, ImageProblem> {
            Ok(Extent {
                offset: input.u64().map_err(invalid)?,
                size: input.u32().map_err(invalid)?,
                crc: input.u32().map_err(invalid)?,
            })
        };
        let state = extent()?;
        let directory = extent()?;
        let journal = extent()?;
        let (journal_room, content_size) = (input.u32().map_err(invalid)?, input.u32().map_err(invalid)?);
        if stated_position != position {
            return Err(invalid(format!("made for offset {stated_position}, found at {position}")));
        }
        if reserved != 0 || bytes[USED_SIZE..].iter().any(|&byte| byte != 0) {
            return Err(invalid("reserved bytes are not zero".to_owned()));
        }
        if journal.size > journal_room || !(1..=CONTENT_SIZE_MAX).contains(&content_size) || generation == 0 {
            return Err(invalid("its values cannot be".to_owned()));
        }
        Ok(Header { writer_features, generation, file_size, state, directory, journal, journal_room, content_size })
    }
}

/// Whether these bytes, perhaps cut short, begin as an image does.
pub(super) fn begins_as_image(bytes: &[u8]) -> bool {
    let count = bytes.len().min(MAGIC.len());
    bytes[..count] == MAGIC[..count]
}
