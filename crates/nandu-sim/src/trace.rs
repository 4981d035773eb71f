//! Records of operations, and doing them again.
//!
//! A [`Recording`] watches a [`Sim`] and writes what it is asked to do, and how that ends, as lines of text. A
//! [`Replayer`] does the same to a chip in the same state and checks that everything ends as it did then.
//!
//! **The key decision** is that a trace is text, one operation a line, so that `grep`, `diff` and `wc` work on it and a
//! bug report can hold its last lines. The alternative, packed bytes, would be half the size. It was refused.
//!
//! FORMAT: Trace of operations
//!
//! Lines of ASCII, each ended by a line feed, words apart by single spaces. Numbers are decimal; checksums are CRC-32C,
//! hashes are those of `Sim::state_hash`, both hexadecimal, as are bytes.
//!
//! ```text
//! line                       meaning
//! nandu-trace 1              first line: the format and its version
//! chip NAME seed SEED        second line, for people: the same as in the state
//! state BYTES                third line: the state as in the image file, when the recording began
//! bad BLOCK...               fourth line: blocks that were bad when the chip was made
//! start HASH                 fifth line: hash of the chip when the recording began
//!
//! cause WORD                 the operations from here on are done for this cause
//! idle NS                    nanoseconds pass between two operations
//! power STATE                power is given (on) or taken (off) after the last operation
//! data BYTES                 what the next line programs; absent if the recording left the bytes out
//! r PAGE COLUMN LENGTH       read
//! p PAGE COLUMN LENGTH       program
//! e BLOCK MODE               erase; the mode is slc or mlc
//! b BLOCK                    check for a bad-block mark
//! m BLOCK                    set a bad-block mark
//! y FROM TO                  copy inside the chip
//!
//! end COUNT CLOCK HASH       last line: operations recorded, clock in nanoseconds, hash of the chip
//! ```
//!
//! Behind an operation stands what came of it:
//!
//! ```text
//! word                       meaning
//! =CHECKSUM                  of the bytes that a read delivered or a program was given
//! ~BITS                      so many bits were corrected in the worst codeword
//! bad                        a bad-block mark was found
//! !KIND                      it failed: uncorrectable, program-failed, erase-failed, out-of-bounds, not-aligned,
//!                            unsupported, bus, gone, other
//! ```
//!
//! # What a trace does not tell
//!
//! Power given and taken between operations: the replay gives power whenever an operation follows a cut. Faults
//! scheduled and settings made while it was recorded: do that before. An LSB recovery read looks like a read. Content
//! that was on the chip before: if there was any, the replay wants the image that the recording began on.

mod line;
mod permission;
mod replay;

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use nandu_nand::{Cause, NandErrorKind, PageAddr, PageGroup};

use self::line::{End, Entry, Hex, Step};
use crate::state::Mark;
use crate::{Address, Chip, Observer, Operation, OperationKind, Outcome, Sim, image};

pub use self::permission::IllegalUse;
pub use self::replay::{Replay, Replayer, TraceError};

/// The format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// What a recording keeps of the bytes that are programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Their checksum. The replay programs other bytes and cannot compare what is read.
    Checksum,
    /// The bytes. The trace is twice as large as what was programmed.
    Bytes,
}

/// A recording under way.
///
/// ```
/// use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
/// use nandu_sim::trace::{Content, Recording, Replayer};
/// use nandu_sim::{Chip, Sim};
///
/// let mut sim = Sim::with_seed(Chip::TINY, 7);
/// let recording = Recording::start(&mut sim, Vec::new(), Content::Bytes)?;
/// sim.erase(BlockAddr(0), CellMode::Slc)?;
/// sim.program(PageAddr(0), 0, &[0x55; 256])?;
/// let trace = recording.finish(&mut sim)?;
///
/// let replay = Replayer::new(trace.as_slice())?.run(None, &mut |_| {})?;
/// assert_eq!(replay.sim.state_hash(), sim.state_hash());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recording<W> {
    tape: Arc<Mutex<Tape<W>>>,
}

impl<W: Write + Send + 'static> Recording<W> {
    /// Begins to record what is done to a chip, which gets a new observer. Writes the lines that begin a trace.
    ///
    /// # Errors
    ///
    /// Those of the writer, and of a chip that an image could not hold.
    pub fn start(sim: &mut Sim, mut writer: W, content: Content) -> io::Result<Recording<W>> {
        let state = image::encode_state(sim).map_err(io::Error::other)?;
        writeln!(writer, "nandu-trace {VERSION}")?;
        writeln!(writer, "chip {} seed {}", sim.chip().name, sim.seed())?;
        writeln!(writer, "state {}", Hex(&state))?;
        write!(writer, "bad")?;
        for (block, _) in (0u32..).zip(&sim.blocks).filter(|(_, state)| state.mark.0 & Mark::FACTORY != 0) {
            write!(writer, " {block}")?;
        }
        writeln!(writer, "\nstart {:016x}", sim.state_hash())?;
        let tape = Tape {
            writer,
            content,
            chip: *sim.chip(),
            // Unlike any cause, so that the first operation states its own.
            cause: None,
            clock_ns: sim.clock_ns(),
            is_off: sim.is_off(),
            operation_count: 0,
            error: None,
        };
        let tape = Arc::new(Mutex::new(tape));
        sim.set_observer(Some(Box::new(Watcher { tape: tape.clone() })));
        Ok(Recording { tape })
    }

    /// Ends the recording: the chip is observed no more. Gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// The first that the writer reported since the start, or that somebody took this recording off the chip and keeps
    /// it.
    pub fn finish(self, sim: &mut Sim) -> io::Result<W> {
        sim.set_observer(None);
        let tape = Arc::into_inner(self.tape).ok_or_else(|| io::Error::other("the recording is still in use"))?;
        let mut tape = tape.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = tape.error.take() {
            return Err(error);
        }
        // So that the replay ends in the same state to the last bit.
        if sim.clock_ns() > tape.clock_ns {
            writeln!(tape.writer, "{}", Entry::Idle(sim.clock_ns() - tape.clock_ns))?;
        }
        if sim.is_off() != tape.is_off {
            writeln!(tape.writer, "{}", Entry::Power(!sim.is_off()))?;
        }
        let (operation_count, clock_ns) = (tape.operation_count, sim.clock_ns());
        writeln!(tape.writer, "{}", Entry::End(End { operation_count, clock_ns, hash: sim.state_hash() }))?;
        tape.writer.flush()?;
        Ok(tape.writer)
    }
}

impl<W> fmt::Debug for Recording<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").finish_non_exhaustive()
    }
}

/// What the chip and the recording share.
struct Tape<W> {
    writer: W,
    content: Content,
    chip: Chip,
    cause: Option<Cause>,
    /// The chip's clock at the end of the last operation.
    clock_ns: u64,
    /// Whether the power went during the last operation.
    is_off: bool,
    operation_count: u64,
    /// The first error of the writer; nothing is written after it.
    error: Option<io::Error>,
}

impl<W: Write> Tape<W> {
    fn note(&mut self, operation: &Operation, data: &[u8]) -> io::Result<()> {
        if self.cause != Some(operation.cause) {
            self.cause = Some(operation.cause);
            writeln!(self.writer, "{}", Entry::Cause(operation.cause))?;
        }
        let idle_ns = operation.clock_ns.saturating_sub(self.clock_ns + duration_ns(&self.chip, operation));
        if idle_ns > 0 {
            writeln!(self.writer, "{}", Entry::Idle(idle_ns))?;
        }
        self.clock_ns = operation.clock_ns;
        self.is_off = operation.outcome == Outcome::Failed(NandErrorKind::Gone);
        if self.content == Content::Bytes && operation.kind == OperationKind::Program {
            writeln!(self.writer, "{}", Entry::Data(data.to_vec()))?;
        }
        self.operation_count += 1;
        writeln!(self.writer, "{}", Entry::Operation(Step::of(operation, data)))
    }
}

/// The observer of a recorded chip.
struct Watcher<W> {
    tape: Arc<Mutex<Tape<W>>>,
}

impl<W: Write + Send> Observer for Watcher<W> {
    fn operation(&mut self, operation: &Operation, data: &[u8]) {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        if tape.error.is_none() {
            tape.error = tape.note(operation, data).err();
        }
    }
}

/// How long an operation takes, whatever comes of it; what the clock shows beyond that was idle time.
fn duration_ns(chip: &Chip, operation: &Operation) -> u64 {
    let (geometry, timing) = (&chip.geometry, &chip.timing);
    let group = |page: PageAddr| {
        let pair = geometry.pairing.pair_of(geometry.index_in_block(page), geometry.pages_per_block);
        pair.map_or(PageGroup::Lsb, |(_, group)| group)
    };
    let page = match operation.address {
        Address::Page(page) => page,
        Address::Block(block) => geometry.first_page(block),
    };
    let array_ns = match operation.kind {
        OperationKind::Read => timing.read_ns(group(page)),
        OperationKind::Program => timing.program_ns(group(page)),
        OperationKind::Erase => timing.erase_ns,
        OperationKind::CheckBad => timing.read_lsb_ns,
        OperationKind::MarkBad => timing.program_lsb_ns,
        OperationKind::Copy => {
            timing.program_ns(group(page)) + operation.from.map_or(0, |from| timing.read_ns(group(from)))
        }
    };
    u64::from(array_ns) + timing.bus.transfer_ns(u64::from(operation.length))
}
