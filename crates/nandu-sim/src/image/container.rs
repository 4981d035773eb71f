//! Numbered entries with records in a file, replaced all at once or not at all.
//!
//! Knows nothing of chips: a state and a note and records for some blocks go in as bytes and come out as they were at the last commit.
//! The layout and the argument for the order of writes stand in the documentation of the module above.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::codec::{Decoder, Encoder, Reason};
use super::error::{ImagePart, ImageProblem};
use super::header::{Extent, HEADER_SIZE, Header, begins_as_image, checksum};
use super::medium::Medium;

/// Extents begin at multiples of this many bytes.
const ALIGNMENT: u64 = 64;

/// Bytes that the directory keeps of each block, besides where its record is.
pub(super) const NOTE_SIZE: usize = 32;

/// Records that a block may have, each of which is replaced without the other.
pub(super) const RECORD_COUNT: usize = 2;

/// Bytes of an entry of the directory.
const ENTRY_SIZE: usize = 8 + 16 * RECORD_COUNT + NOTE_SIZE;

/// Block numbers are below this; so bounds what a directory can make its reader allocate.
pub(super) const BLOCK_COUNT_MAX: u32 = 1 << 20;

/// A state is at most this large.
pub(super) const STATE_SIZE_MAX: u32 = 1 << 20;

/// Where the record of a block that has none is said to be.
const NO_RECORD: Extent = Extent { offset: HEADER_SIZE, size: 0, crc: 0 };

/// What the directory knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Small enough to be written anew with each commit, and read without the records.
    pub(super) note: [u8; NOTE_SIZE],
    records: [Extent; RECORD_COUNT],
}

/// Numbered records, each with a note, and a state on a medium.
pub(super) struct Container<M> {
    medium: M,
    header: Header,
    blocks: BTreeMap<u32, Entry>,
    /// Whether the header is in its place and the medium ends where it says, so that a commit can begin.
    settled: bool,
    poisoned: bool,
}

impl<M: Medium> Container<M> {
    /// Starts an empty container. Nothing is written before its first commit.
    pub(super) fn create(medium: M) -> Container<M> {
        let header = Header {
            writer_features: 0,
            generation: 0,
            file_size: HEADER_SIZE,
            state: NO_RECORD,
            directory: NO_RECORD,
        };
        Container { medium, header, blocks: BTreeMap::new(), settled: false, poisoned: false }
    }

    /// Opens what the last commit left. Reads the header and the directory and writes nothing.
    pub(super) fn open(mut medium: M) -> Result<Container<M>, ImageProblem> {
        let size = medium.size()?;
        let (header, in_place) = read_header(&mut medium, size)?;
        if size < header.file_size {
            return Err(ImageProblem::CutShort { size, expected: header.file_size });
        }
        let blocks = read_directory(&mut medium, &header)?;
        check_extents(&header, &blocks)?;
        let settled = in_place && size == header.file_size;
        Ok(Container { medium, header, blocks, settled, poisoned: false })
    }

    /// Counts commits.
    pub(super) fn generation(&self) -> u64 {
        self.header.generation
    }

    /// Bytes of the records and of what describes them.
    pub(super) fn file_size(&self) -> u64 {
        self.header.file_size
    }

    /// The blocks that something is kept of, rising.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.blocks.iter().map(|(&block, entry)| (block, entry))
    }

    /// The note of a block as it was committed.
    pub(super) fn note(&self, block: u32) -> Option<&[u8; NOTE_SIZE]> {
        self.blocks.get(&block).map(|entry| &entry.note)
    }

    /// The state as it was committed.
    pub(super) fn read_state(&mut self) -> Result<Vec<u8>, ImageProblem> {
        let mut bytes = Vec::new();
        read_extent(&mut self.medium, self.header.state, ImagePart::State, &mut bytes)?;
        Ok(bytes)
    }

    /// A record of a block as it was committed, into `bytes`; empty for a block without it.
    pub(super) fn read_record(&mut self, block: u32, which: usize, bytes: &mut Vec<u8>) -> Result<(), ImageProblem> {
        bytes.clear();
        match self.blocks.get(&block) {
            Some(entry) => read_extent(&mut self.medium, entry.records[which], ImagePart::Block(block), bytes),
            None => Ok(()),
        }
    }

    /// Begins to replace records. What is put is seen by no one until [`Commit::finish`]; dropping the commit forgets it.
    pub(super) fn begin(&mut self) -> Result<Commit<'_, M>, ImageProblem> {
        if self.poisoned {
            return Err(ImageProblem::Poisoned);
        }
        if self.header.writer_features != 0 {
            return Err(ImageProblem::Features(self.header.writer_features));
        }
        self.settle()?;
        let free = FreeSpace::beside(&self.header, &self.blocks);
        let blocks = self.blocks.clone();
        // Until the commit is done, the medium may be longer than the header in it says.
        self.settled = false;
        Ok(Commit { container: self, blocks, free })
    }

    /// Puts the medium into the form that a finished commit leaves, if one was cut.
    fn settle(&mut self) -> Result<(), ImageProblem> {
        if self.settled || self.header.generation == 0 {
            return Ok(());
        }
        // The header first: while it may be damaged, the trailer that it was read from has to stay.
        self.medium.write_at(0, &self.header.encode(0))?;
        self.medium.sync()?;
        // A trailer left behind by a cut commit must be gone before the next commit writes over what it points at: if
        // that one is cut in turn, only its own trailer may be found at the end.
        self.medium.set_size(self.header.file_size)?;
        self.medium.sync()?;
        self.settled = true;
        Ok(())
    }
}

/// A commit that is being written.
pub(super) struct Commit<'c, M> {
    container: &'c mut Container<M>,
    blocks: BTreeMap<u32, Entry>,
    free: FreeSpace,
}

impl<M: Medium> Commit<'_, M> {
    /// Gives a block a new note, and leaves its records as they are.
    pub(super) fn put_note(&mut self, block: u32, note: [u8; NOTE_SIZE]) {
        self.blocks.entry(block).or_insert(Entry { note, records: [NO_RECORD; RECORD_COUNT] }).note = note;
    }

    /// Gives a block a new record; an empty one takes no room. The block has a note.
    pub(super) fn put_record(&mut self, block: u32, which: usize, bytes: &[u8]) -> Result<(), ImageProblem> {
        let record = if bytes.is_empty() { NO_RECORD } else { self.write(bytes)? };
        if let Some(entry) = self.blocks.get_mut(&block) {
            entry.records[which] = record;
        }
        Ok(())
    }

    /// Makes everything put, and this state, what the container holds.
    ///
    /// After an error the container refuses to commit if it cannot know which of the two states the medium holds.
    pub(super) fn finish(mut self, state: &[u8]) -> Result<(), ImageProblem> {
        let directory = self.write(&encode_directory(&self.blocks))?;
        let state = self.write(state)?;
        let end_of = |extent: &Extent| (extent.offset + u64::from(extent.size)).next_multiple_of(ALIGNMENT);
        let extents = self.blocks.values().flat_map(|entry| &entry.records).chain([&directory, &state]);
        let end = extents.map(end_of).max().unwrap_or(HEADER_SIZE);
        let old = self.container.header;
        let header = Header { generation: old.generation + 1, file_size: end, state, directory, ..old };
        let position = self.free.end.max(old.file_size);
        let medium = &mut self.container.medium;
        medium.write_at(position, &header.encode(position))?;
        medium.sync()?;
        self.container.poisoned = true;
        medium.write_at(0, &header.encode(0))?;
        medium.sync()?;
        medium.set_size(end)?;
        self.container.header = header;
        self.container.blocks = self.blocks;
        self.container.settled = true;
        self.container.poisoned = false;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Extent, ImageProblem> {
        let size = u32::try_from(bytes.len()).map_err(|_| ImageProblem::Unsupported("a record of four gigabytes"))?;
        let offset = self.free.take(u64::from(size));
        self.container.medium.write_at(offset, bytes)?;
        Ok(Extent { offset, size, crc: checksum(bytes) })
    }
}

/// Finds the header, or the trailer if a commit was cut while it wrote the header; says whether it was the header.
fn read_header<M: Medium>(medium: &mut M, size: u64) -> Result<(Header, bool), ImageProblem> {
    let mut bytes = vec![0; size.min(HEADER_SIZE) as usize];
    medium.read_at(0, &mut bytes)?;
    if size < HEADER_SIZE {
        return Err(if begins_as_image(&bytes) {
            ImageProblem::CutShort { size, expected: HEADER_SIZE }
        } else {
            ImageProblem::NotAnImage
        });
    }
    let problem = match Header::parse(&bytes, 0) {
        Ok(header) => return Ok((header, true)),
        Err(problem) => problem,
    };
    if size >= 2 * HEADER_SIZE {
        let position = size - HEADER_SIZE;
        medium.read_at(position, &mut bytes)?;
        if let Ok(header) = Header::parse(&bytes, position) {
            return Ok((header, false));
        }
    }
    Err(problem)
}

fn read_directory<M: Medium>(medium: &mut M, header: &Header) -> Result<BTreeMap<u32, Entry>, ImageProblem> {
    let invalid = |why: &str| ImageProblem::invalid(ImagePart::Directory, why);
    check_bounds(header.directory, header).map_err(invalid)?;
    let size = header.directory.size as usize;
    if !size.is_multiple_of(ENTRY_SIZE) || size / ENTRY_SIZE > BLOCK_COUNT_MAX as usize {
        return Err(invalid("its size cannot be"));
    }
    let mut bytes = Vec::new();
    read_extent(medium, header.directory, ImagePart::Directory, &mut bytes)?;
    let mut blocks = BTreeMap::new();
    let mut input = Decoder::new(&bytes);
    let mut lowest_allowed = 0;
    while input.remaining() > 0 {
        let (block, entry, reserved) = decode_entry(&mut input).map_err(|why| invalid(&why))?;
        if block < lowest_allowed || block >= BLOCK_COUNT_MAX || reserved != 0 {
            return Err(invalid("its entries cannot be"));
        }
        lowest_allowed = block + 1;
        for record in entry.records {
            check_bounds(record, header).map_err(invalid)?;
        }
        blocks.insert(block, entry);
    }
    Ok(blocks)
}

fn decode_entry(input: &mut Decoder<'_>) -> Result<(u32, Entry, u32), Reason> {
    let (block, reserved) = (input.u32()?, input.u32()?);
    let mut records = [NO_RECORD; RECORD_COUNT];
    for record in &mut records {
        *record = Extent { offset: input.u64()?, size: input.u32()?, crc: input.u32()? };
    }
    Ok((block, Entry { note: input.array()?, records }, reserved))
}

fn encode_directory(blocks: &BTreeMap<u32, Entry>) -> Vec<u8> {
    let mut out = Encoder::default();
    for (&block, entry) in blocks {
        out.u32(block);
        out.u32(0);
        for record in entry.records {
            out.u64(record.offset);
            out.u32(record.size);
            out.u32(record.crc);
        }
        out.bytes(&entry.note);
    }
    out.into_bytes()
}

fn check_bounds(extent: Extent, header: &Header) -> Result<(), &'static str> {
    let end = extent.offset.checked_add(u64::from(extent.size)).ok_or("it points outside the file")?;
    if extent.offset < HEADER_SIZE || !extent.offset.is_multiple_of(ALIGNMENT) || end > header.file_size {
        return Err("it points outside the file");
    }
    Ok(())
}

/// Every stretch of the file that is in use, by its place.
fn in_order<'a>(header: &'a Header, blocks: &'a BTreeMap<u32, Entry>) -> impl Iterator<Item = &'a Extent> {
    let records = blocks.values().flat_map(|entry| &entry.records);
    let mut extents: Vec<&Extent> =
        records.chain([&header.state, &header.directory]).filter(|extent| extent.size > 0).collect();
    extents.sort_unstable_by_key(|extent| extent.offset);
    extents.into_iter()
}

/// No byte belongs to two records: so a small file cannot make its reader allocate a large chip.
fn check_extents(header: &Header, blocks: &BTreeMap<u32, Entry>) -> Result<(), ImageProblem> {
    check_bounds(header.state, header).map_err(|why| ImageProblem::invalid(ImagePart::State, why))?;
    if header.state.size > STATE_SIZE_MAX {
        return Err(ImageProblem::invalid(ImagePart::State, "its size cannot be"));
    }
    let mut free_from = HEADER_SIZE;
    for extent in in_order(header, blocks) {
        if extent.offset < free_from {
            return Err(ImageProblem::invalid(ImagePart::Directory, "records overlap"));
        }
        free_from = extent.offset + u64::from(extent.size);
    }
    Ok(())
}

/// Reads a stretch of the file. One that has no bytes has no checksum either.
fn read_extent<M: Medium>(
    medium: &mut M,
    extent: Extent,
    part: ImagePart,
    bytes: &mut Vec<u8>,
) -> Result<(), ImageProblem> {
    bytes.clear();
    bytes.resize(extent.size as usize, 0);
    medium.read_at(extent.offset, bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ImageProblem::Damaged(part),
        _ => ImageProblem::Io(error),
    })?;
    if extent.size > 0 && checksum(bytes) != extent.crc {
        return Err(ImageProblem::Damaged(part));
    }
    Ok(())
}

/// Room for new records: what the last commit does not use.
struct FreeSpace {
    /// Gaps by size, then offset, so that the smallest that fits is found at once.
    gaps: BTreeSet<(u64, u64)>,
    /// Where the medium can be extended.
    end: u64,
}

impl FreeSpace {
    fn beside(header: &Header, blocks: &BTreeMap<u32, Entry>) -> FreeSpace {
        let mut gaps = BTreeSet::new();
        let mut end = HEADER_SIZE;
        for extent in in_order(header, blocks) {
            if extent.offset > end {
                gaps.insert((extent.offset - end, end));
            }
            end = (extent.offset + u64::from(extent.size)).next_multiple_of(ALIGNMENT);
        }
        FreeSpace { gaps, end }
    }

    fn take(&mut self, size: u64) -> u64 {
        let size = size.next_multiple_of(ALIGNMENT);
        if let Some(&(gap, offset)) = self.gaps.range((size, 0)..).next() {
            self.gaps.remove(&(gap, offset));
            if gap > size {
                self.gaps.insert((gap - size, offset + size));
            }
            return offset;
        }
        let offset = self.end;
        self.end += size;
        offset
    }
}
