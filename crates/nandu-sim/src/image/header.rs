//! The first bytes of an image file.

use crc::{CRC_32_ISCSI, Crc, Table};

use super::codec::{Decoder, Encoder};
use super::error::{ImagePart, ImageProblem};

/// Bytes of the header and of the trailer.
pub(super) const HEADER_SIZE: u64 = 4096;

/// The format that is written, and the newest that is read.
pub(super) const FORMAT_VERSION: u16 = 1;

const MAGIC: [u8; 8] = *b"nanduIMG";

/// Bytes before the fields that the checksum covers: the magic number and the checksum.
const CHECKED_FROM: usize = 12;

/// Bytes of the header that have a meaning; the rest is zero.
const USED_SIZE: usize = 88;

static CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// CRC-32C, the one checksum of the format.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    CRC32C.checksum(bytes)
}

/// A stretch of the file and the checksum of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) size: u32,
    pub(super) crc: u32,
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
}

impl Header {
    /// The bytes, for the place in the file that they are written to: 0, or that of the trailer.
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
        for extent in [self.state, self.directory] {
            out.u64(extent.offset);
            out.u32(extent.size);
            out.u32(extent.crc);
        }
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
        if stated_position != position {
            return Err(invalid(format!("made for offset {stated_position}, found at {position}")));
        }
        if reserved != 0 || bytes[USED_SIZE..].iter().any(|&byte| byte != 0) {
            return Err(invalid("reserved bytes are not zero".to_owned()));
        }
        Ok(Header { writer_features, generation, file_size, state, directory })
    }
}

/// Whether these bytes, perhaps cut short, begin as an image does.
pub(super) fn begins_as_image(bytes: &[u8]) -> bool {
    let count = bytes.len().min(MAGIC.len());
    bytes[..count] == MAGIC[..count]
}
