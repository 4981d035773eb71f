//! Numbered entries with records and contents in a file, replaced all at once or not at all.
//!
//! Knows nothing of chips: a state, and for some blocks a note, a record and the contents of pages go in as bytes and come out as they were
//! at the last commit. The layout and the argument for the order of writes stand in the documentation of the module above.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::codec::{Decoder, Encoder, Reason};
use super::error::{ImagePart, ImageProblem};
use super::header::{Extent, HEADER_SIZE, HEADERS_END, Header, POSITIONS, begins_as_image, checksum, checksum_on};
use super::medium::Medium;
use super::space::{ALIGNMENT, Space};
use crate::state::Place;

/// Bytes that the directory keeps of each block, besides where its record is.
pub(super) const NOTE_SIZE: usize = 32;

/// Bytes of an entry of the directory.
const ENTRY_SIZE: usize = 32 + NOTE_SIZE;

/// Block numbers are below this; so bounds what a directory can make its reader allocate.
pub(super) const BLOCK_COUNT_MAX: u32 = 1 << 20;

/// A state is at most this large.
pub(super) const STATE_SIZE_MAX: u32 = 1 << 20;

/// Contents may begin at this many multiples of [`ALIGNMENT`].
const PLACE_COUNT: u64 = 1 << 32;

/// The journal has room for as many bytes as the directory, and at least for these.
const JOURNAL_ROOM_MIN: u32 = 4096;

/// What the directory knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Small enough to be read without the record.
    pub(super) note: [u8; NOTE_SIZE],
    record: Extent,
    /// The commit that wrote it.
    generation: u64,
}

/// The record of a block: where the contents of its pages are, and bytes.
#[derive(Default)]
pub(super) struct Record {
    pub(super) places: Vec<Place>,
    pub(super) bytes: Vec<u8>,
}

/// Numbered records, each with a note and contents, and a state on a medium.
pub(super) struct Container<M> {
    medium: Arc<M>,
    header: Header,
    blocks: BTreeMap<u32, Entry>,
    space: Space,
    /// Whether both headers say the same.
    is_settled: bool,
    is_poisoned: bool,
}

impl<M: Medium> Container<M> {
    /// Starts an empty container. Nothing is written before its first commit.
    pub(super) fn create(medium: Arc<M>, content_size: u32) -> Container<M> {
        let header = Header {
            writer_features: 0,
            generation: 0,
            file_size: HEADERS_END,
            state: Extent::NONE,
            directory: Extent::NONE,
            journal: Extent::NONE,
            journal_room: 0,
            content_size,
        };
        let space = Space::new(HEADERS_END);
        Container { medium, header, blocks: BTreeMap::new(), space, is_settled: true, is_poisoned: false }
    }

    /// Opens what the last commit left. Reads the headers, the directory and all records, and writes nothing.
    pub(super) fn open(medium: Arc<M>) -> Result<Container<M>, ImageProblem> {
        let size = medium.size()?;
        let headers = read_headers(&*medium, size)?;
        let is_settled = matches!(&headers[..], [one, other] if one == other);
        let mut first_problem = None;
        // The newer header first. What it names may be missing, if the machine stopped while it was written; then the older
        // one is right, and nothing that it names was written over.
        for &header in if is_settled { &headers[..1] } else { &headers[..] } {
            match Container::open_as(&medium, header, size, is_settled) {
                Ok(container) => return Ok(container),
                Err(problem) => first_problem = first_problem.or(Some(problem)),
            }
        }
        Err(first_problem.unwrap_or(ImageProblem::Damaged(ImagePart::Header)))
    }

    fn open_as(medium: &Arc<M>, header: Header, size: u64, is_settled: bool) -> Result<Container<M>, ImageProblem> {
        if size < header.file_size {
            return Err(ImageProblem::CutShort { size, expected: header.file_size });
        }
        let blocks = read_directory(&**medium, &header)?;
        let mut state = Vec::new();
        if header.state.size > STATE_SIZE_MAX || header.state.problem(header.file_size).is_some() {
            return Err(ImageProblem::invalid(ImagePart::State, "its size or place cannot be"));
        }
        read_extent(&**medium, header.state, ImagePart::State, &mut state)?;
        let mut container = Container {
            medium: Arc::clone(medium),
            header,
            blocks,
            space: Space::new(HEADERS_END),
            is_settled,
            is_poisoned: false,
        };
        container.space = container.find_space()?;
        Ok(container)
    }

    /// Looks where everything is. No byte belongs to two: so a small file cannot make its reader allocate a large chip.
    fn find_space(&self) -> Result<Space, ImageProblem> {
        let header = &self.header;
        let mut used = vec![
            (header.state.offset, u64::from(header.state.size)),
            (header.directory.offset, u64::from(header.directory.size)),
            (header.journal.offset, u64::from(header.journal_room)),
        ];
        let (mut record, mut content) = (Record::default(), vec![0; header.content_size as usize]);
        for (&block, entry) in &self.blocks {
            self.read_record(block, &mut record)?;
            used.push((entry.record.offset, u64::from(entry.record.size)));
            // What the last commit wrote may be missing, and is looked at unless a later write says that it was safe.
            let is_fresh = entry.generation == header.generation && !self.is_settled;
            for &place in &record.places {
                used.push((place.offset(), u64::from(header.content_size)));
                if is_fresh && !is_content(&*self.medium, place, &mut content)? {
                    return Err(ImageProblem::Damaged(ImagePart::Block(block)));
                }
            }
        }
        used.retain(|&(_, size)| size > 0);
        let overlap = || ImageProblem::invalid(ImagePart::Directory, "records overlap");
        let space = Space::beside(HEADERS_END, used).ok_or_else(overlap)?;
        // The journal may have room behind the end of the file.
        if space.end() > header.file_size + u64::from(header.journal_room) + ALIGNMENT {
            return Err(overlap());
        }
        Ok(space)
    }

    /// Counts commits.
    pub(super) fn generation(&self) -> u64 {
        self.header.generation
    }

    /// Bytes of the file that are in use, gaps included.
    pub(super) fn file_size(&self) -> u64 {
        self.header.file_size
    }

    /// Bytes of a content.
    pub(super) fn content_size(&self) -> u32 {
        self.header.content_size
    }

    /// The blocks that something is kept of, rising.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.blocks.iter().map(|(&block, entry)| (block, entry))
    }

    /// The state as it was committed.
    pub(super) fn read_state(&self) -> Result<Vec<u8>, ImageProblem> {
        let mut bytes = Vec::new();
        read_extent(&*self.medium, self.header.state, ImagePart::State, &mut bytes)?;
        Ok(bytes)
    }

    /// The record of a block as it was committed; empty for a block without one.
    pub(super) fn read_record(&self, block: u32, record: &mut Record) -> Result<(), ImageProblem> {
        record.places.clear();
        record.bytes.clear();
        let Some(entry) = self.blocks.get(&block).filter(|entry| entry.record.size > 0) else { return Ok(()) };
        read_extent(&*self.medium, entry.record, ImagePart::Block(block), &mut record.bytes)?;
        let invalid = |why: Reason| ImageProblem::invalid(ImagePart::Block(block), why);
        let mut input = Decoder::new(&record.bytes);
        let count = input.u32().map_err(invalid)? as usize;
        if input.remaining() / Place::SIZE < count {
            return Err(invalid("it ends too early".to_owned()));
        }
        for _ in 0..count {
            let place = Place { unit: input.u32().map_err(invalid)?, crc: input.u32().map_err(invalid)? };
            let extent = Extent { offset: place.offset(), size: self.header.content_size, crc: 0 };
            if let Some(why) = extent.problem(self.header.file_size) {
                return Err(invalid(why.to_owned()));
            }
            record.places.push(place);
        }
        record.bytes.drain(..4 + count * Place::SIZE);
        Ok(())
    }

    /// Begins to replace records. What is put is seen by no one until [`Commit::finish`]; dropping the commit forgets it. With `is_pinned`,
    /// nothing is written over that an earlier commit wrote.
    pub(super) fn begin(&mut self, is_pinned: bool) -> Result<Commit<'_, M>, ImageProblem> {
        if self.is_poisoned {
            return Err(ImageProblem::Poisoned);
        }
        if self.header.writer_features != 0 {
            return Err(ImageProblem::Features(self.header.writer_features));
        }
        if !is_pinned {
            self.space.wake();
        }
        Ok(Commit { container: self, changed: BTreeMap::new(), taken: Vec::new(), left: Vec::new(), drops_all: false })
    }

    /// Nothing more will be written.
    pub(super) fn leave(&mut self) {
        self.is_settled = true;
    }

    /// Makes both headers the same: nothing of the last commit is missing. It was synced; this need not be.
    pub(super) fn settle(&mut self) -> Result<(), ImageProblem> {
        if !self.is_settled && !self.is_poisoned {
            let position = POSITIONS[(self.header.generation + 1) as usize % 2];
            self.medium.write_at(position, &self.header.encode(position))?;
            self.is_settled = true;
        }
        Ok(())
    }
}

/// A commit that is being written.
pub(super) struct Commit<'c, M: Medium> {
    container: &'c mut Container<M>,
    changed: BTreeMap<u32, Entry>,
    /// Stretches that this commit took, to be given back if it fails.
    taken: Vec<(u64, u64)>,
    /// Stretches that are not in use after it.
    left: Vec<(u64, u64)>,
    /// Whether blocks that are not put go.
    drops_all: bool,
}

impl<M: Medium> Commit<'_, M> {
    fn generation(&self) -> u64 {
        self.container.header.generation + 1
    }

    fn take(&mut self, size: u64) -> u64 {
        let offset = self.container.space.take(size);
        self.taken.push((offset, size));
        offset
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Extent, ImageProblem> {
        if bytes.is_empty() {
            return Ok(Extent::NONE);
        }
        let size = u32::try_from(bytes.len()).map_err(|_| ImageProblem::Unsupported("a record of four gigabytes"))?;
        let offset = self.take(u64::from(size));
        self.container.medium.write_at(offset, bytes)?;
        Ok(Extent { offset, size, crc: checksum(bytes) })
    }

    /// Writes the content of a page. It belongs to the block whose record names its place.
    pub(super) fn write_content(&mut self, bytes: &[u8]) -> Result<Place, ImageProblem> {
        debug_assert_eq!(bytes.len(), self.container.header.content_size as usize, "contents have one size");
        let Extent { offset, crc, .. } = self.write(bytes)?;
        let unit = offset / ALIGNMENT;
        if unit >= PLACE_COUNT {
            return Err(ImageProblem::Unsupported("so many pages"));
        }
        Ok(Place { unit: unit as u32, crc })
    }

    /// A content is no longer in use.
    pub(super) fn leave_content(&mut self, place: Place) {
        self.left.push((place.offset(), u64::from(self.container.header.content_size)));
    }

    /// Nothing of what there was is in use.
    pub(super) fn leave_all(&mut self) -> Result<(), ImageProblem> {
        let mut record = Record::default();
        for &block in self.container.blocks.keys() {
            self.container.read_record(block, &mut record)?;
            let size = u64::from(self.container.header.content_size);
            self.left.extend(record.places.iter().map(|place| (place.offset(), size)));
        }
        self.left.extend(self.container.blocks.values().map(|entry| stretch(entry.record)));
        self.drops_all = true;
        Ok(())
    }

    /// Gives a block a note and a record: where its contents are, and bytes. One with neither takes no room.
    pub(super) fn put(
        &mut self,
        block: u32,
        note: [u8; NOTE_SIZE],
        places: &[Place],
        bytes: &[u8],
    ) -> Result<(), ImageProblem> {
        let mut out = Encoder::default();
        if !places.is_empty() || !bytes.is_empty() {
            out.u32(places.len() as u32);
            for place in places {
                out.u32(place.unit);
                out.u32(place.crc);
            }
            out.bytes(bytes);
        }
        let entry = Entry { note, record: self.write(out.as_slice())?, generation: self.generation() };
        if let Some(old) = self.container.blocks.get(&block).filter(|_| !self.drops_all) {
            self.left.push(stretch(old.record));
        }
        if let Some(twice) = self.changed.insert(block, entry) {
            self.left.push(stretch(twice.record));
        }
        Ok(())
    }

    /// Makes everything put, and this state, what the container holds.
    ///
    /// After an error the container refuses to commit if it cannot know which of the two states the medium holds.
    pub(super) fn finish(mut self, state: &[u8]) -> Result<(), ImageProblem> {
        let old = self.container.header;
        let state = self.write(state)?;
        self.left.push(stretch(old.state));
        let mut header = Header { generation: self.generation(), state, ..old };
        let mut entries = Encoder::default();
        self.changed.iter().for_each(|(&block, entry)| encode_entry(block, entry, &mut entries));
        let entries = entries.into_bytes();
        let journal_end = u64::from(old.journal.size) + entries.len() as u64;
        if self.drops_all || journal_end > u64::from(old.journal_room) {
            self.write_directory(&mut header)?;
            self.left.push(stretch(old.directory));
            self.left.push((old.journal.offset, u64::from(old.journal_room)));
        } else {
            self.container.medium.write_at(old.journal.offset + u64::from(old.journal.size), &entries)?;
            header.journal.crc = checksum_on(old.journal.crc, &entries);
            header.journal.size = journal_end as u32;
        }
        // The journal may have room behind the end of the file, and then it is as long as what it holds.
        header.file_size = self.container.space.end();
        if header.journal.offset + u64::from(header.journal_room).next_multiple_of(ALIGNMENT) == header.file_size {
            header.file_size = header.journal.offset + u64::from(header.journal.size);
        }
        let position = POSITIONS[header.generation as usize % 2];
        let medium = Arc::clone(&self.container.medium);
        if medium.size()? < header.file_size {
            medium.set_size(header.file_size)?;
        }
        self.container.is_poisoned = true;
        medium.write_at(position, &header.encode(position))?;
        medium.sync()?;
        self.container.is_poisoned = false;
        self.container.is_settled = false;
        self.container.header = header;
        if self.drops_all {
            self.container.blocks.clear();
        }
        // One by one: `append` would build the whole map anew.
        self.container.blocks.extend(std::mem::take(&mut self.changed));
        self.taken.clear();
        for (offset, size) in self.left.drain(..).filter(|&(_, size)| size > 0) {
            self.container.space.rest(offset, size);
        }
        // A file that is longer than it need be is right too.
        let size = medium.size()?;
        if size - header.file_size > header.file_size / 4 {
            let _ = medium.set_size(header.file_size);
        }
        Ok(())
    }

    /// Writes the directory anew, with what changes, and room for a journal.
    fn write_directory(&mut self, header: &mut Header) -> Result<(), ImageProblem> {
        let mut out = Encoder::default();
        let mut all = if self.drops_all { BTreeMap::new() } else { self.container.blocks.clone() };
        all.extend(&self.changed);
        all.iter().for_each(|(&block, entry)| encode_entry(block, entry, &mut out));
        header.directory = self.write(out.as_slice())?;
        header.journal_room = header.directory.size.max(JOURNAL_ROOM_MIN);
        header.journal = Extent { offset: self.take(u64::from(header.journal_room)), size: 0, crc: 0 };
        Ok(())
    }
}

impl<M: Medium> Drop for Commit<'_, M> {
    fn drop(&mut self) {
        if !self.container.is_poisoned {
            self.taken.drain(..).for_each(|(offset, size)| self.container.space.give(offset, size));
        }
    }
}

fn stretch(extent: Extent) -> (u64, u64) {
    (extent.offset, u64::from(extent.size))
}

/// Finds the headers, the newer one first.
fn read_headers<M: Medium>(medium: &M, size: u64) -> Result<Vec<Header>, ImageProblem> {
    let mut bytes = vec![0; size.min(HEADER_SIZE) as usize];
    medium.read_at(0, &mut bytes)?;
    let is_image = begins_as_image(&bytes);
    let first = Header::parse(&bytes, POSITIONS[0]);
    if let Err(problem @ (ImageProblem::Version(_) | ImageProblem::Features(_))) = first {
        return Err(problem);
    }
    if size < HEADERS_END {
        let cut_short = ImageProblem::CutShort { size, expected: HEADERS_END };
        return Err(if is_image { cut_short } else { ImageProblem::NotAnImage });
    }
    medium.read_at(POSITIONS[1], &mut bytes)?;
    let second = Header::parse(&bytes, POSITIONS[1]);
    let mut headers = match (first, second) {
        (Ok(first), Ok(second)) => vec![first, second],
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => vec![one],
        (Err(problem), Err(_)) => return Err(problem),
    };
    headers.sort_by_key(|header| std::cmp::Reverse(header.generation));
    Ok(headers)
}

fn read_directory<M: Medium>(medium: &M, header: &Header) -> Result<BTreeMap<u32, Entry>, ImageProblem> {
    let invalid = |why: &str| ImageProblem::invalid(ImagePart::Directory, why);
    let mut blocks = BTreeMap::new();
    for extent in [header.directory, header.journal] {
        if let Some(why) = extent.problem(header.file_size) {
            return Err(invalid(why));
        }
        let size = extent.size as usize;
        if !size.is_multiple_of(ENTRY_SIZE) || size / ENTRY_SIZE > BLOCK_COUNT_MAX as usize {
            return Err(invalid("its size cannot be"));
        }
        let mut bytes = Vec::new();
        read_extent(medium, extent, ImagePart::Directory, &mut bytes)?;
        let mut input = Decoder::new(&bytes);
        while input.remaining() > 0 {
            let (block, entry, reserved) = decode_entry(&mut input).map_err(|why| invalid(&why))?;
            let is_sound = block < BLOCK_COUNT_MAX && reserved == 0 && entry.generation <= header.generation;
            if !is_sound {
                return Err(invalid("its entries cannot be"));
            }
            // Later ones replace earlier ones.
            blocks.insert(block, entry);
        }
    }
    // An entry that was replaced may name what the file is too short for now.
    match blocks.values().find_map(|entry| entry.record.problem(header.file_size)) {
        Some(why) => Err(invalid(why)),
        None => Ok(blocks),
    }
}

fn decode_entry(input: &mut Decoder<'_>) -> Result<(u32, Entry, u32), Reason> {
    let (block, reserved) = (input.u32()?, input.u32()?);
    let generation = input.u64()?;
    let record = Extent { offset: input.u64()?, size: input.u32()?, crc: input.u32()? };
    Ok((block, Entry { note: input.array()?, record, generation }, reserved))
}

fn encode_entry(block: u32, entry: &Entry, out: &mut Encoder) {
    out.u32(block);
    out.u32(0);
    out.u64(entry.generation);
    out.u64(entry.record.offset);
    out.u32(entry.record.size);
    out.u32(entry.record.crc);
    out.bytes(&entry.note);
}

/// Reads a stretch of the file. One that has no bytes has no checksum either.
fn read_extent<M: Medium>(
    medium: &M,
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

/// Reads a content; says whether it is what was written.
pub(crate) fn is_content(medium: &(impl Medium + ?Sized), place: Place, bytes: &mut [u8]) -> io::Result<bool> {
    match medium.read_at(place.offset(), bytes) {
        Ok(()) => Ok(checksum(bytes) == place.crc),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
