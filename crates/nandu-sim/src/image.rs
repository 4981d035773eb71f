//! A simulated chip as a file.
//!
//! [`ImageFile::create`] makes one of a [`Sim`]; [`ImageFile::open`] gives the `Sim` back, with everything that matters
//! for what it does next: content, harm, wear, counters, ledger, clock, scheduled faults. [`ImageFile::commit`] writes
//! what changed since. The file is as large as what was programmed, not as the chip.
//!
//! **The key decision** is that a commit happens wholly or not at all, whenever its process is killed or the machine
//! loses its power, and that a file at rest is nevertheless checked to its last byte in use: it has one header, and that
//! has to be right. Two headers used in turn, the usual way, would take a damaged new header for a commit that was cut
//! and silently go back to the old state. It was refused.
//!
//! FORMAT: Image file of the simulator
//!
//! Numbers are little-endian. Checksums are CRC-32C. The file begins with the header; the directory, the state and the
//! records of blocks stand anywhere behind it, at multiples of 64 bytes, and do not overlap. Bytes between them have no
//! meaning.
//!
//! ```text
//! header, 4096 bytes
//! offset  size  field              meaning
//!      0     8  magic              "nanduIMG"
//!      8     4  crc                checksum of bytes 12 to 4095
//!     12     2  version            1
//!     14     2  reserved           zero, checked on read
//!     16     4  features_read      bits of features that who reads must know; else refused
//!     20     4  features_write     bits of features that who writes must know; else opened for reading only
//!     24     4  features_other     bits of features that may be ignored
//!     28     4  reserved           zero, checked on read
//!     32     8  position           offset of these bytes in the file: 0, or that of a trailer
//!     40     8  generation         counts commits, from 1
//!     48     8  file_size          bytes of a file in which no commit was cut
//!     56    16  state              extent
//!     72    16  directory          extent
//!     88  4008  reserved           zero, checked on read
//! ```
//!
//! ```text
//! extent, 16 bytes
//! offset  size  field              meaning
//!      0     8  offset             place in the file, a multiple of 64
//!      8     4  size               bytes; 0 for nothing
//!     12     4  crc                checksum of the bytes; 0 for nothing
//! ```
//!
//! The directory has an entry for each block that was ever touched, by rising block number. A block without one is as
//! it left the factory.
//!
//! ```text
//! entry of the directory, 72 bytes
//! offset  size  field              meaning
//!      0     4  block              number of the block, below 1048576
//!      4     4  reserved           zero, checked on read
//!      8    16  pages              extent of the pages record
//!     24    16  data               extent of the data record
//!     40     8  programs           over the block's life
//!     48     8  reads              over the block's life
//!     56     4  erases             over the block's life
//!     60     4  reads_since_erase
//!     64     4  next_index         the page behind the last one programmed
//!     68     1  mode               0 SLC, 1 MLC
//!     69     1  condition          0 never erased, 1 erased, 2 erase was cut, 3 erase failed
//!     70     1  mark               bit 0 factory bad, 1 grown bad, 2 reads as the opposite
//!     71     1  reserved           zero, checked on read
//! ```
//!
//! The data record of a block is the bytes, main and spare area, of each page that holds any, by rising page number.
//!
//! ```text
//! pages record, in this order
//!  size  field              meaning
//!     1  parts              bit 0 pages, 1 harm, 2 history; an empty record has none of them
//!  with pages, for each page of the block
//!     8  written            units of the main area that were programmed, a bit each
//!     8  programmed_ns      clock at the last program
//!     4  reads              since the erase
//!     1  programs           since the erase
//!     1  flags              bit 0 the spare area was programmed, 1 the page holds bytes
//!  with harm
//!     4  page_count         harmed pages, and for each of them
//!     4    page             its place in the block
//!     4    harm_count       harms done to it, and for each of them
//!     4      from           first column
//!     4      to             column behind the last
//!     1      kind           0 lost, 1 flipped bits, 2 unstable, 3 weak
//!     2      bits           for kind 1
//!     8      since_ns       for kind 2: clock when it became so
//!     4      reads          for kind 2: reads since then
//!  with history
//!     1  entry_count        up to 16, oldest first, and for each
//!     8    number           of the operation
//!     4    column
//!     4    length
//!     2    page             its place in the block
//!     1    operation        0 read, 1 program, 2 erase, 3 check mark, 4 set mark, 5 copy
//!     1    cause
//!     1    mode
//!     1    error            0 none
//! ```
//!
//! ```text
//! state, in this order
//!  size  field              meaning
//!     -  chip               as below
//!     8  seed
//!     8  clock_ns
//!     8  operations         operations started so far
//!     4  register           page whose content the page register holds; 0xFFFFFFFF none
//!     1  cause              announced last
//!     1  flags              bit 0 without power, 1 a cut happened
//!     2  cause_count        and for each cause, in the order of its number
//!    80    counters         reads, programs, partial programs, erases, copies, mark checks, marks, bytes out, bytes in,
//!                           busy nanoseconds, 8 bytes each
//!     8  wear_load          IEEE 754 binary64, as the next two
//!     8  retention_load_per_year
//!     8  failure
//!     4  disturb_reads_slc
//!     4  disturb_reads_mlc
//!     4  decay_reads
//!     8  decay_time_ns
//!  if a cut happened
//!     8  operation
//!     4  address
//!     1  address_kind       0 page, 1 block
//!     1  operation_kind
//!     1  tear
//!  always
//!     4  cut_count          cuts to come, and for each
//!     8    operation
//!     1    tear             255: by the seed
//!     8  next_rule          number of the next scheduled fault
//!     4  rule_count         scheduled faults, and for each
//!     8    number
//!     1    fault            0 cut, 1 unstable, 2 erased zeros, 3 bit flips, 4 uncorrectable, 5 read disturb,
//!                           6 partial disturb, 7 program fails, 8 erase fails, 9 mark inverted, 10 nothing happens,
//!                           11 misdirected, 12 stale, 13 bus
//!     4    argument         bits, tear (255: by the seed), or page (0xFFFFFFFF: by the seed)
//!     1    trigger          0 operation, 1 n-th, 2 probability, 3 page, 4 block
//!     8    argument         number, count, IEEE 754 binary64, page or block
//! ```
//!
//! ```text
//! chip, in this order
//!  size  field              meaning
//!     2  name_size          up to 64
//!     -  name               UTF-8
//!     2  source_size        up to 256
//!     -  source             UTF-8
//!    32  geometry           page size, spare size, pages per block, blocks, program unit, codeword size, endurance,
//!                           bad blocks allowed, 4 bytes each
//!     2  correctable_bits   in a codeword
//!     1  programs_per_page
//!     1  plane_count
//!     1  die_count
//!     1  order              0 rising, 1 any
//!     1  tear               0 range, 1 page, 2 pair
//!     1  pairing            0 none, 1 scheme A, 2 distance 3, 3 table
//!  with a table
//!     2  pair_count         and for each pair
//!     2    lsb              page
//!     2    msb              page
//!  always
//!    20  times              read LSB, read MSB, program LSB, program MSB, erase, in nanoseconds, 4 bytes each
//!     4  byte_ps            bus: picoseconds for a byte
//!     4  command_ns         bus: nanoseconds for a command
//!     1  abilities          bit 0 internal copy, 1 LSB recovery, 2 protected bytes of the spare area
//!  with such bytes
//!     2  tag_size           how many
//! ```
//!
//! # Why a commit happens wholly or not at all
//!
//! What the header names is never written over: new records, the new directory and the new state go to gaps and to the
//! end of the file. Then, in this order:
//!
//! 1. The *trailer*, a copy of the new header, is written to what is now the end of the file. `sync`.
//! 2. The header is written. `sync`.
//! 3. The file is cut to `file_size`, and the trailer is gone.
//!
//! Cut before the end of step 1, the header is the old one and all it names is untouched: the old state. What may lie
//! behind `file_size` is not looked at. Cut in step 2, the header is old, new, or a mixture that fails its checksum; in
//! the last case the trailer is at the end of the file, whole, since it was synced before. Cut in step 3, the header is
//! new. So the trailer is only believed where the header is wrong, and a file that no commit was cut in has none:
//! there, a header that is wrong is damage and is refused.
//!
//! What a cut commit left is put in order before the next one begins: the header is written if the trailer was used,
//! synced, and the file is cut to `file_size`, synced. Otherwise that commit, cut in its step 2, could leave the older
//! trailer at the end of the file.
//!
//! What is assumed of the file system is listed at [`Medium`]. A new image is written under another name, synced and
//! renamed.

mod block;
mod codec;
mod container;
#[cfg(test)]
mod crash_tests;
mod error;
mod header;
mod medium;
mod parameters;
mod publish;
mod state;

use std::fs::File;
use std::path::{Path, PathBuf};

use nandu_nand::BlockAddr;

use self::codec::Encoder;
use self::container::{Commit, Container, NOTE_SIZE, STATE_SIZE_MAX};
use crate::state::{BlockState, Condition, Mark};
use crate::{Chip, DirtyBlock, Sim};

pub use self::error::{ImageError, ImagePart, ImageProblem};
pub use self::medium::Medium;

/// Memory for the content of a chip, beyond which an image is not opened.
const CONTENT_SIZE_MAX: u64 = 32 << 30;

/// Is told how much of how much is done.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// The file of a simulated chip, open for commits. See the [module](self) for what it guarantees.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("nandu-image-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory)?;
/// # let path = directory.join("chip.nand");
/// use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
/// use nandu_sim::{Chip, Sim};
/// use nandu_sim::image::ImageFile;
///
/// let mut sim = Sim::new(Chip::TINY);
/// let mut image = ImageFile::create(&path, &mut sim)?;
/// sim.erase(BlockAddr(0), CellMode::Slc)?;
/// sim.program(PageAddr(0), 0, &[7; 256])?;
/// image.commit(&mut sim)?;
/// drop(image);
///
/// let (_image, again) = ImageFile::open(&path)?;
/// assert_eq!(again.state_hash(), sim.state_hash());
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ImageFile<M = File> {
    path: PathBuf,
    container: Container<M>,
    chip: Chip,
    seed: u64,
    /// Whether an earlier commit failed, so that nobody remembers which blocks changed.
    all_dirty: bool,
}

impl ImageFile {
    /// Makes the image of a chip under a name that nothing has yet.
    ///
    /// # Errors
    ///
    /// [`Exists`](ImageProblem::Exists); [`Unsupported`](ImageProblem::Unsupported) for a chip that is too large;
    /// [`Io`](ImageProblem::Io). Then there is no file of this name, or the one there was.
    pub fn create(path: impl AsRef<Path>, sim: &mut Sim) -> Result<ImageFile, ImageError> {
        publish::publish(path.as_ref(), false, sim, &mut |_, _| {})
    }

    /// Makes the image of a chip, in place of the file of this name if there is one.
    ///
    /// # Errors
    ///
    /// As [`create`](ImageFile::create), and [`InUse`](ImageProblem::InUse) where the file is an image that someone has
    /// open.
    pub fn replace(path: impl AsRef<Path>, sim: &mut Sim) -> Result<ImageFile, ImageError> {
        publish::publish(path.as_ref(), true, sim, &mut |_, _| {})
    }

    /// Opens an image to work on it. Nobody else can open it before this value is dropped.
    ///
    /// Costs a pass over what was programmed.
    ///
    /// # Errors
    ///
    /// [`InUse`](ImageProblem::InUse), [`Io`](ImageProblem::Io), and whatever else [`ImageProblem`] lists that can be
    /// wrong with a file.
    pub fn open(path: impl AsRef<Path>) -> Result<(ImageFile, Sim), ImageError> {
        ImageFile::open_watched(path, &mut |_, _| {})
    }

    /// [`open`](ImageFile::open), telling how far it is, in blocks.
    ///
    /// # Errors
    ///
    /// As [`open`](ImageFile::open).
    pub fn open_watched(path: impl AsRef<Path>, progress: Progress<'_>) -> Result<(ImageFile, Sim), ImageError> {
        let path = path.as_ref();
        let file = publish::open_locked(path, true).map_err(|problem| ImageError::new(path, problem))?;
        ImageFile::open_on(file, path, progress)
    }

    /// The chip of an image that others may read at the same time. Changes to it go nowhere.
    ///
    /// # Errors
    ///
    /// As [`open`](ImageFile::open).
    pub fn load(path: impl AsRef<Path>) -> Result<Sim, ImageError> {
        ImageFile::load_watched(path, &mut |_, _| {})
    }

    /// [`load`](ImageFile::load), telling how far it is, in blocks.
    ///
    /// # Errors
    ///
    /// As [`open`](ImageFile::open).
    pub fn load_watched(path: impl AsRef<Path>, progress: Progress<'_>) -> Result<Sim, ImageError> {
        let path = path.as_ref();
        let file = publish::open_locked(path, false).map_err(|problem| ImageError::new(path, problem))?;
        ImageFile::open_on(file, path, progress).map(|(_, sim)| sim)
    }
}

impl<M: Medium> ImageFile<M> {
    /// Writes the image of a chip to an empty medium. `name` stands for it in errors.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ImageProblem::Unsupported), [`Io`](ImageProblem::Io).
    pub fn create_on(
        medium: M,
        name: impl AsRef<Path>,
        sim: &mut Sim,
        progress: Progress<'_>,
    ) -> Result<ImageFile<M>, ImageError> {
        let container = Container::create(medium);
        let path = name.as_ref().to_path_buf();
        let mut image = ImageFile { path, container, chip: *sim.chip(), seed: sim.seed(), all_dirty: true };
        image.commit_watched(sim, progress)?;
        Ok(image)
    }

    /// Opens the image on a medium. `name` stands for it in errors.
    ///
    /// # Errors
    ///
    /// As [`open`](ImageFile::open).
    pub fn open_on(
        medium: M,
        name: impl AsRef<Path>,
        progress: Progress<'_>,
    ) -> Result<(ImageFile<M>, Sim), ImageError> {
        let path = name.as_ref().to_path_buf();
        match Container::open(medium).and_then(|mut container| {
            let sim = read_chip(&mut container, progress)?;
            Ok((container, sim))
        }) {
            Ok((container, sim)) => {
                let image = ImageFile { path, container, chip: *sim.chip(), seed: sim.seed(), all_dirty: false };
                Ok((image, sim))
            }
            Err(problem) => Err(ImageError::new(&path, problem)),
        }
    }

    /// Writes what changed since the image was opened or last committed: the next to open it finds `sim` as it is now,
    /// or, if this is cut, as it was then.
    ///
    /// `sim` is the chip that the image was made of or that came out of it, or a clone of that. Costs two `sync` calls and writes each
    /// changed block wholly, or its counters only if nothing else changed.
    ///
    /// # Errors
    ///
    /// [`Io`](ImageProblem::Io), [`Unsupported`](ImageProblem::Unsupported), and
    /// [`Poisoned`](ImageProblem::Poisoned) after an error that left open which of the two states the file holds.
    ///
    /// # Panics
    ///
    /// If `sim` is another chip or has another seed.
    pub fn commit(&mut self, sim: &mut Sim) -> Result<(), ImageError> {
        self.commit_watched(sim, &mut |_, _| {})
    }

    /// [`commit`](ImageFile::commit), telling how far it is, in blocks.
    ///
    /// # Errors
    ///
    /// As [`commit`](ImageFile::commit).
    ///
    /// # Panics
    ///
    /// As [`commit`](ImageFile::commit).
    pub fn commit_watched(&mut self, sim: &mut Sim, progress: Progress<'_>) -> Result<(), ImageError> {
        assert!(
            *sim.chip() == self.chip && sim.seed() == self.seed,
            "{}: the image of one chip cannot take the content of another",
            self.path.display()
        );
        let mut dirty = sim.take_dirty();
        if self.all_dirty || !self.rest_is_committed(sim, &dirty) {
            dirty = (0..sim.chip.geometry.block_count)
                .map(BlockAddr)
                .map(|block| DirtyBlock { block, content: true })
                .collect();
            dirty.retain(|dirty| {
                is_touched(&sim.blocks[dirty.block.0 as usize]) || self.container.note(dirty.block.0).is_some()
            });
        }
        dirty.sort_unstable_by_key(|dirty| dirty.block);
        // What changed is forgotten by the chip and not yet in the file; only success makes good for that.
        self.all_dirty = true;
        write_chip(&mut self.container, sim, &dirty, progress)
            .map_err(|problem| ImageError::new(&self.path, problem))?;
        self.all_dirty = false;
        Ok(())
    }

    /// Whether the blocks that did not change are in the image as they are in this chip. They are not if it is a clone
    /// whose twin was committed: it does not know what the twin changed.
    fn rest_is_committed(&self, sim: &Sim, dirty: &[DirtyBlock]) -> bool {
        let mut is_dirty = vec![false; sim.blocks.len()];
        dirty.iter().for_each(|dirty| is_dirty[dirty.block.0 as usize] = true);
        (0..).zip(&sim.blocks).filter(|(number, _)| !is_dirty[*number as usize]).all(|(number, state)| {
            match self.container.note(number) {
                Some(note) => *note == block::encode_note(state),
                None => !is_touched(state),
            }
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many commits the image has seen, the one that made it included.
    pub fn generation(&self) -> u64 {
        self.container.generation()
    }

    /// Bytes of the file, gaps included.
    pub fn file_size(&self) -> u64 {
        self.container.file_size()
    }
}

/// The state section of an image of this chip: what it is and does apart from its blocks.
pub(crate) fn encode_state(sim: &Sim) -> Result<Vec<u8>, &'static str> {
    parameters::check(&sim.chip)?;
    Ok(state::encode(sim))
}

/// A chip with this state section, its blocks as they left the factory.
pub(crate) fn decode_state(bytes: &[u8]) -> Result<Sim, String> {
    state::decode(bytes)
}

/// CRC-32C.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    header::checksum(bytes)
}

/// Whether a block is not as it left the factory.
fn is_touched(state: &BlockState) -> bool {
    state.condition != Condition::NeverErased
        || state.mark != Mark::NONE
        || state.counters != BlockState::FRESH.counters
        || state.store.is_some()
        || state.damage.is_some()
        || state.history.is_some()
}

fn write_chip<M: Medium>(
    container: &mut Container<M>,
    sim: &Sim,
    dirty: &[DirtyBlock],
    progress: Progress<'_>,
) -> Result<(), ImageProblem> {
    parameters::check(&sim.chip).map_err(ImageProblem::Unsupported)?;
    let state = state::encode(sim);
    if state.len() > STATE_SIZE_MAX as usize {
        return Err(ImageProblem::Unsupported("so many scheduled faults"));
    }
    let total = dirty.len() as u64;
    let mut commit = container.begin()?;
    let mut buffer = Encoder::default();
    for (done, dirty) in (0..).zip(dirty) {
        progress(done, total);
        write_block(&mut commit, sim, dirty, &mut buffer)?;
    }
    commit.finish(&state)?;
    progress(total, total);
    Ok(())
}

fn write_block<M: Medium>(
    commit: &mut Commit<'_, M>,
    sim: &Sim,
    dirty: &DirtyBlock,
    buffer: &mut Encoder,
) -> Result<(), ImageProblem> {
    let number = dirty.block.0;
    let state = &sim.blocks[number as usize];
    commit.put_note(number, block::encode_note(state));
    buffer.clear();
    block::encode_pages(state, buffer);
    commit.put_record(number, block::PAGES, buffer.as_slice())?;
    if dirty.content {
        buffer.clear();
        block::encode_data(state, &sim.chip, buffer);
        commit.put_record(number, block::DATA, buffer.as_slice())?;
    }
    Ok(())
}

fn read_chip<M: Medium>(container: &mut Container<M>, progress: Progress<'_>) -> Result<Sim, ImageProblem> {
    let state = container.read_state()?;
    let mut sim = state::decode(&state).map_err(|why| ImageProblem::invalid(ImagePart::State, why))?;
    let notes: Vec<_> = container.entries().map(|(number, entry)| (number, entry.note)).collect();
    let total = notes.len() as u64;
    let mut content_size = 0;
    let (mut pages, mut data) = (Vec::new(), Vec::new());
    for (done, (number, note)) in (0..).zip(notes) {
        progress(done, total);
        container.read_record(number, block::PAGES, &mut pages)?;
        container.read_record(number, block::DATA, &mut data)?;
        let block = read_block(&sim, number, &note, &pages, &data, &mut content_size)
            .map_err(|why| ImageProblem::invalid(ImagePart::Block(number), why))?;
        sim.blocks[number as usize] = block;
    }
    progress(total, total);
    Ok(sim)
}

fn read_block(
    sim: &Sim,
    number: u32,
    note: &[u8; NOTE_SIZE],
    pages: &[u8],
    data: &[u8],
    content_size: &mut u64,
) -> Result<BlockState, String> {
    let geometry = &sim.chip.geometry;
    if !geometry.contains_block(BlockAddr(number)) {
        return Err(format!("the chip has {} blocks", geometry.block_count));
    }
    let mut block = block::decode_note(note, geometry)?;
    if block::has_store(pages) {
        *content_size += u64::from(geometry.pages_per_block) * u64::from(geometry.column_count());
        if *content_size > CONTENT_SIZE_MAX {
            return Err("the chip holds more than fits into memory".to_owned());
        }
    }
    block::decode_pages(pages, sim, &mut block)?;
    block::decode_data(data, &sim.chip, &mut block)?;
    Ok(block)
}
