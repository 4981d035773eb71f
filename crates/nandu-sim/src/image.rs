//! A simulated chip as a file.
//!
//! [`ImageFile::create`] makes one of a [`Sim`]; [`ImageFile::open`] gives the `Sim` back, with everything that matters
//! for what it does next: content, harm, wear, counters, ledger, clock, scheduled faults. [`ImageFile::commit`] writes
//! what changed since. The file is as large as what was programmed, not as the chip. A chip that was opened from an image reads the bytes of
//! its pages from it when they are asked for: its memory is some 32 bytes for each page that was ever programmed, and the bytes of what is
//! not committed yet.
//!
//! **The key decision** is that a commit writes a page for each page that was programmed, and happens wholly or not at all, whenever
//! its process is killed or the machine loses its power. The alternatives were refused: a log of operations beside the file has to be
//! played back when the image is opened, and a map of the file into memory writes pages in an order that nobody chose.
//!
//! FORMAT: Image file of the simulator
//!
//! Numbers are little-endian. Checksums are CRC-32C. The file begins with two headers; the directory, its journal, the state, the
//! records of blocks and the contents of pages stand anywhere behind them, at multiples of 64 bytes, and do not overlap. Bytes between
//! them have no meaning.
//!
//! ```text
//! header, 4096 bytes, at offset 0 and at offset 4096
//! offset  size  field              meaning
//!      0     8  magic              "nanduIMG"
//!      8     4  crc                checksum of bytes 12 to 4095
//!     12     2  version            2
//!     14     2  reserved           zero, checked on read
//!     16     4  features_read      bits of features that who reads must know; else refused
//!     20     4  features_write     bits of features that who writes must know; else opened for reading only
//!     24     4  features_other     bits of features that may be ignored
//!     28     4  reserved           zero, checked on read
//!     32     8  position           offset of these bytes in the file: 0 or 4096
//!     40     8  generation         counts commits, from 1
//!     48     8  file_size          bytes that the file has at least
//!     56    16  state              extent
//!     72    16  directory          extent
//!     88    16  journal            extent
//!    104     4  journal_room       bytes that the journal may come to have
//!    108     4  content_size       bytes of the content of a page: its main and spare area
//!    112  3984  reserved           zero, checked on read
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
//! it left the factory. The journal has entries, too: those that were replaced since the directory was written, oldest first.
//!
//! ```text
//! entry of the directory, 64 bytes
//! offset  size  field              meaning
//!      0     4  block              number of the block, below 1048576
//!      4     4  reserved           zero, checked on read
//!      8     8  generation         the commit that wrote the entry
//!     16    16  record             extent of the record
//!     32     8  programs           over the block's life
//!     40     8  reads              over the block's life
//!     48     4  erases             over the block's life
//!     52     4  reads_since_erase
//!     56     4  next_index         the page behind the last one programmed
//!     60     1  mode               0 SLC, 1 MLC
//!     61     1  condition          0 never erased, 1 erased, 2 erase was cut, 3 erase failed
//!     62     1  mark               bit 0 factory bad, 1 grown bad, 2 reads as the opposite
//!     63     1  reserved           zero, checked on read
//! ```
//!
//! ```text
//! record of a block, in this order; none for a block that has nothing to tell
//!  size  field              meaning
//!     4  content_count      pages that hold bytes, and for each of them by rising page number
//!     4    unit             offset of its content in the file, in units of 64 bytes
//!     4    crc              checksum of the content
//!     1  parts              bit 0 pages, 1 harm, 2 history
//!  with pages
//!     4  page_count         pages up to the last that is not as it was erased, and for each of them
//!     8    written          units of the main area that were programmed, a bit each
//!     8    programmed_ns    clock at the last program
//!     4    reads            since the erase
//!     1    programs         since the erase
//!     1    flags            bit 0 the spare area was programmed, 1 the page holds bytes
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
//!     1  abilities          bit 0 internal copy, 1 LSB recovery, 2 protected bytes of the spare area, 3 copies only inside
//!                           a plane, 4 copies only from even to even and from odd to odd blocks
//!  with such bytes
//!     2  tag_size           how many
//! ```
//!
//! # Why a commit happens wholly or not at all
//!
//! What the last commit names is never written over: contents, records, the state and, when the journal is full, a new directory go
//! to gaps and to the end of the file, and entries go behind those of the journal. Then comes the header, in place of the
//! older one of the two. All of it is made safe by one `sync`.
//!
//! The header with the higher generation is looked at first. If the machine stopped before the `sync` returned, any part of what was
//! written may be missing: the header is wrong and the other one is taken, or the header is right and something that it names is
//! not. So the checksums of everything that its commit wrote are looked at, and the other header is taken if one does not match. All that the
//! other one names is there: it was synced, and nothing is written over it before the next commit. A commit whose process was
//! killed left a part of the writes in their order, which is the same with fewer cases.
//!
//! Who closes an image writes its header to the other place, too. Then both say the same: nothing of the last commit can be
//! missing, and what does not match its checksum is damage and refused. Damage to one of the two headers does no harm. Contents of
//! pages are looked at when they are read, of which the chip says that it is gone.
//!
//! Who only reads a file that another process writes to finds a state of it as well if what it reads matches its checksums, which is how
//! [`backup`] works: what a commit no longer needs rests for a while before it is written over.
//!
//! What is assumed of the file system is listed at [`Medium`]. A new image is written under another name, synced and
//! renamed.

mod backup;
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
mod space;
mod state;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nandu_nand::BlockAddr;

use self::codec::Encoder;
use self::container::{Commit, Container, NOTE_SIZE, Record, STATE_SIZE_MAX};
use crate::kept::Source;
use crate::state::{BlockState, Condition, Mark, PageState, Place};
use crate::{Chip, Sim};

pub use self::backup::backup;
pub(crate) use self::container::is_content;
pub use self::error::{ImageError, ImagePart, ImageProblem};
pub use self::medium::Medium;

/// Memory for what is known of a chip's pages, beyond which an image is not opened.
const PAGES_SIZE_MAX: u64 = 1 << 30;

/// Each image that this process opened has a number of its own.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

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
pub struct ImageFile<M: Medium = File> {
    path: PathBuf,
    container: Container<M>,
    /// What chips read from that came out of this image.
    source: Arc<Source>,
    number: u64,
    chip: Chip,
    seed: u64,
}

impl<M: Medium> fmt::Debug for ImageFile<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageFile")
            .field("path", &self.path)
            .field("chip", &self.chip.name)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl ImageFile {
    /// Makes the image of a chip under a name that nothing has yet.
    ///
    /// # Errors
    ///
    /// [`Exists`](ImageProblem::Exists); [`Unsupported`](ImageProblem::Unsupported) for a chip that is too large;
    /// [`Io`](ImageProblem::Io). Then there is no file of this name, or the one there was.
    pub fn create(path: impl AsRef<Path>, sim: &mut Sim) -> Result<ImageFile, ImageError> {
        publish::publish(path.as_ref(), false, |file, name| ImageFile::create_on(file, name, sim, &mut |_, _| {}))
    }

    /// Makes the image of a chip, in place of the file of this name if there is one.
    ///
    /// # Errors
    ///
    /// As [`create`](ImageFile::create), and [`InUse`](ImageProblem::InUse) where the file is an image that someone has
    /// open.
    pub fn replace(path: impl AsRef<Path>, sim: &mut Sim) -> Result<ImageFile, ImageError> {
        publish::publish(path.as_ref(), true, |file, name| ImageFile::create_on(file, name, sim, &mut |_, _| {}))
    }

    /// Opens an image to work on it. Nobody else can open it before this value and the chip are dropped.
    ///
    /// Costs a pass over what is known of the pages; their contents are read, and checked, when they are asked for.
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

    /// The chip of an image that others may read at the same time. Changes to it go nowhere. Nobody can write to the image before
    /// the chip is dropped, which reads from it.
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
        let (mut image, sim) = ImageFile::open_on(file, path, progress)?;
        // The file cannot be written to.
        image.container.leave();
        Ok(sim)
    }
}

impl<M: Medium> ImageFile<M> {
    /// Writes the image of a chip to an empty medium. `name` stands for it in errors. The chip stays in memory.
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
        let medium = Arc::new(medium);
        let content_size = sim.chip.geometry.column_count();
        let container = Container::create(Arc::clone(&medium), content_size);
        let mut image = ImageFile::new(name.as_ref(), medium, container, sim);
        image.commit_watched(sim, progress)?;
        image.container.settle().map_err(|problem| ImageError::new(&image.path, problem))?;
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
        let (name, medium) = (name.as_ref(), Arc::new(medium));
        let failed = |problem| ImageError::new(name, problem);
        let container = Container::open(Arc::clone(&medium)).map_err(failed)?;
        let mut sim = read_chip(&container, progress).map_err(failed)?;
        let image = ImageFile::new(name, medium, container, &sim);
        sim.kept.source = Some(Arc::clone(&image.source));
        sim.kept.commit = Some((image.number, image.generation()));
        Ok((image, sim))
    }

    fn new(name: &Path, medium: Arc<M>, container: Container<M>, sim: &Sim) -> ImageFile<M> {
        let source = Arc::new(Source::new(medium, container.content_size()));
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        ImageFile { path: name.to_path_buf(), container, source, number, chip: *sim.chip(), seed: sim.seed() }
    }

    /// Writes what changed since the image was opened or last committed: the next to open it finds `sim` as it is now,
    /// or, if this is cut, as it was then.
    ///
    /// `sim` is the chip that the image was made of or that came out of it, or a clone of that. Costs one `sync` call and writes each
    /// page that was programmed, what is known of the pages of each block that changed, and some two kilobytes. A clone whose twin
    /// was committed is written wholly.
    ///
    /// # Errors
    ///
    /// [`Io`](ImageProblem::Io), [`Unsupported`](ImageProblem::Unsupported), and
    /// [`Poisoned`](ImageProblem::Poisoned) after an error that left open which of the two states the file holds. After any other error the
    /// image is as it was and the commit can be tried again.
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
        let placed = self.write_chip(sim, progress).map_err(|problem| ImageError::new(&self.path, problem))?;
        self.note_commit(sim, &placed);
        Ok(())
    }

    fn write_chip(&mut self, sim: &Sim, progress: Progress<'_>) -> Result<Vec<Placed>, ImageProblem> {
        parameters::check(&sim.chip).map_err(ImageProblem::Unsupported)?;
        let state = state::encode(sim);
        if state.len() > STATE_SIZE_MAX as usize {
            return Err(ImageProblem::Unsupported("so many scheduled faults"));
        }
        let knows_image = sim.kept.commit == Some((self.number, self.container.generation()));
        let mut blocks: Vec<u32> = match knows_image {
            true => sim.dirty.clone(),
            false => (0..).zip(&sim.blocks).filter(|(_, block)| is_touched(block)).map(|(number, _)| number).collect(),
        };
        blocks.sort_unstable();
        // Other chips that came out of this image read what it held when they were last told.
        let own = if sim.kept.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, &self.source)) { 2 } else { 1 };
        let mut commit = self.container.begin(Arc::strong_count(&self.source) > own)?;
        if knows_image {
            sim.kept.left.iter().for_each(|&place| commit.leave_content(place));
        } else {
            commit.leave_all()?;
        }
        let (total, mut writer) = (blocks.len() as u64, Writer::new(sim, knows_image));
        for (done, &number) in (0..).zip(&blocks) {
            progress(done, total);
            writer.write_block(&mut commit, number)?;
        }
        if sim.kept.is_unreadable() {
            let problem = sim.kept.source.as_ref().and_then(|source| source.take_problem());
            return Err(problem.unwrap_or(ImageProblem::Poisoned));
        }
        commit.finish(&state)?;
        progress(total, total);
        Ok(writer.placed)
    }

    /// Notes in the chip what the image has now.
    fn note_commit(&mut self, sim: &mut Sim, placed: &[Placed]) {
        if let Some(source) = &mut sim.kept.source {
            *source = Arc::clone(&self.source);
        }
        let is_read_from = sim.kept.source.is_some();
        let page_count = sim.chip.geometry.pages_per_block as usize;
        for &Placed { block, index, place } in placed {
            let Some(store) = &mut sim.blocks[block as usize].store else { continue };
            if store.places.is_empty() {
                store.places = vec![Place::NONE; page_count].into();
            }
            store.places[index as usize] = place;
            if is_read_from {
                store.pages[index as usize].flags |= PageState::AWAY;
            }
        }
        for block in std::mem::take(&mut sim.dirty) {
            let state = &mut sim.blocks[block as usize];
            state.dirty = 0;
            if let Some(store) = state.store.as_deref_mut().filter(|_| is_read_from) {
                // All that it held is in the image.
                let data = std::mem::take(&mut store.data);
                sim.pool.give_data(data);
            }
        }
        sim.pool.taken = 0;
        sim.kept.left.clear();
        sim.kept.commit = Some((self.number, self.container.generation()));
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many commits the image has seen, the one that made it included.
    pub fn generation(&self) -> u64 {
        self.container.generation()
    }

    /// Bytes of the file, gaps included. It may be longer for a while.
    pub fn file_size(&self) -> u64 {
        self.container.file_size()
    }
}

impl<M: Medium> Drop for ImageFile<M> {
    fn drop(&mut self) {
        // An image of which this cannot be said is right too: who opens it looks at what the last commit wrote.
        let _ = self.container.settle();
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

/// Where a commit put the content of a page.
struct Placed {
    block: u32,
    index: u32,
    place: Place,
}

/// Writes blocks of a chip.
struct Writer<'s> {
    sim: &'s Sim,
    /// Whether what the chip says of its places is true of the image.
    knows_image: bool,
    placed: Vec<Placed>,
    places: Vec<Place>,
    record: Encoder,
    content: Vec<u8>,
}

impl<'s> Writer<'s> {
    fn new(sim: &'s Sim, knows_image: bool) -> Writer<'s> {
        let content = vec![0; sim.chip.geometry.column_count() as usize];
        Writer { sim, knows_image, placed: Vec::new(), places: Vec::new(), record: Encoder::default(), content }
    }

    fn write_block<M: Medium>(&mut self, commit: &mut Commit<'_, M>, number: u32) -> Result<(), ImageProblem> {
        let block = &self.sim.blocks[number as usize];
        self.places.clear();
        for (index, page) in (0..).zip(block.store.iter().flat_map(|store| &store.pages)) {
            if !page.is_held() {
                continue;
            }
            let known = block.store.as_ref().map_or(Place::NONE, |store| store.place(index));
            let place = if known.is_none() || !self.knows_image {
                self.sim.fetch_raw((number, index), 0, &mut self.content);
                let place = commit.write_content(&self.content)?;
                self.placed.push(Placed { block: number, index, place });
                place
            } else {
                known
            };
            self.places.push(place);
        }
        self.record.clear();
        block::encode_pages(block, &mut self.record);
        commit.put(number, block::encode_note(block), &self.places, self.record.as_slice())
    }
}

fn read_chip<M: Medium>(container: &Container<M>, progress: Progress<'_>) -> Result<Sim, ImageProblem> {
    let state = container.read_state()?;
    let mut sim = state::decode(&state).map_err(|why| ImageProblem::invalid(ImagePart::State, why))?;
    if container.content_size() != sim.chip.geometry.column_count() {
        return Err(ImageProblem::invalid(ImagePart::Header, "contents are no pages of the chip"));
    }
    let total = container.entries().count() as u64;
    let mut pages_size = 0;
    let mut record = Record::default();
    for (done, (number, entry)) in (0..).zip(container.entries()) {
        progress(done, total);
        container.read_record(number, &mut record)?;
        let block = read_block(&sim, number, &entry.note, &record, &mut pages_size)
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
    record: &Record,
    pages_size: &mut u64,
) -> Result<BlockState, String> {
    let geometry = &sim.chip.geometry;
    if !geometry.contains_block(BlockAddr(number)) {
        return Err(format!("the chip has {} blocks", geometry.block_count));
    }
    let mut block = block::decode_note(note, geometry)?;
    block::decode_pages(&record.bytes, &record.places, sim, &mut block)?;
    if block.store.is_some() {
        let page_size = size_of::<PageState>() + Place::SIZE;
        *pages_size += u64::from(geometry.pages_per_block) * page_size as u64;
        if *pages_size > PAGES_SIZE_MAX {
            return Err("the chip holds more than fits into memory".to_owned());
        }
    }
    Ok(block)
}
