//! Doing again what a trace tells.

use std::fmt;
use std::io::{self, BufRead, Read};

use nandu_nand::{BlockAddr, CopyRule, Nand, NandErrorKind, ReadStatus};

use super::line::{self, Action, End, Entry, Step};
use super::{IllegalUse, VERSION};
use crate::{Chip, Counters, Ledger, Outcome, Sim, SimError, image};

/// Bytes in a line: a page and its spare area as hexadecimal digits take less.
const LINE_SIZE_MAX: u64 = 4 << 20;

/// A clock does not go on from here; it would overflow some operations later.
const CLOCK_LIMIT: u64 = 1 << 62;

/// Why a trace cannot be replayed, or was not repeated.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The reader reported an error.
    Io(io::Error),
    /// The first line is not that of a trace.
    NotATrace,
    /// A later version of nandu wrote the trace in a format of this number.
    Version(u32),
    /// A line is not understood.
    Line {
        /// Its number, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// The trace began on a chip that held something, and none was given.
    NeedsChip,
    /// The chip given is not in the state that the trace began on.
    OtherChip,
    /// An operation cannot be done on this chip, so the trace was changed or began on another.
    Illegal {
        /// The number of the line.
        number: u64,
        /// Why the chip would refuse it.
        why: IllegalUse,
    },
    /// The chip did something else than when the trace was recorded.
    Diverged {
        /// The number of the line.
        number: u64,
        /// What the line says.
        recorded: String,
        /// What happened.
        repeated: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Io(error) => error.fmt(f),
            TraceError::NotATrace => f.write_str("not a trace"),
            TraceError::Version(version) => write!(f, "written in format {version}, which this version cannot read"),
            TraceError::Line { number, why } => write!(f, "line {number}: {why}"),
            TraceError::NeedsChip => f.write_str("it began on a chip in use; give the image as it was then"),
            TraceError::OtherChip => f.write_str("it began on a chip in another state than this"),
            TraceError::Illegal { number, why } => write!(f, "line {number} cannot be done: {why}"),
            TraceError::Diverged { number, recorded, repeated } => {
                write!(f, "line {number} was `{recorded}` and is now `{repeated}`")
            }
        }
    }
}

// The text says all there is to say, so that there is no source to be printed behind it.
impl std::error::Error for TraceError {}

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> TraceError {
        TraceError::Io(error)
    }
}

/// A trace that was opened and can be replayed.
pub struct Replayer<R> {
    lines: Lines<R>,
    start: Sim,
    start_hash: u64,
}

impl<R> fmt::Debug for Replayer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replayer").field("start", &self.start).finish_non_exhaustive()
    }
}

/// What a replay came to. Every operation ended as it did when the trace was recorded.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The chip afterwards. Its counters and ledger include what was done before the trace began.
    pub sim: Sim,
    /// Operations repeated.
    pub operation_count: u64,
    /// What the replay did, by cause, without what was done before.
    pub ledger: Ledger,
    /// Virtual time from the start of the trace to its last operation, nanoseconds.
    pub duration_ns: u64,
    /// Whether the trace had its last line: the recording was ended properly.
    pub complete: bool,
    /// Whether the trace held the bytes that were programmed, so that what was read was compared too.
    pub compared_content: bool,
}

impl Replay {
    /// What the replay did, without what was done before.
    pub fn counters(&self) -> Counters {
        self.ledger.total()
    }
}

impl<R: BufRead> Replayer<R> {
    /// Reads the lines that begin a trace.
    ///
    /// # Errors
    ///
    /// If they are not understood.
    pub fn new(reader: R) -> Result<Replayer<R>, TraceError> {
        let mut lines = Lines { reader, number: 0, size: 0, line: String::new() };
        read_version(&mut lines)?;
        let chip_line = lines.next()?.unwrap_or_default().to_owned();
        let state = lines.field("state")?;
        let bytes = line::parse_hex(&state).map_err(|why| lines.wrong(why))?;
        let mut start = image::decode_state(&bytes).map_err(|why| lines.wrong(why))?;
        if chip_line != format!("chip {} seed {}", start.chip().name, start.seed()) {
            return Err(TraceError::Line { number: 2, why: "it is not the chip of the next line".to_owned() });
        }
        for block in lines.field("bad")?.split_ascii_whitespace() {
            match block.parse().map(BlockAddr) {
                Ok(block) if start.chip.geometry.contains_block(block) => start.mark_factory_bad(block),
                _ => return Err(lines.wrong(format!("`{block}` is no block of this chip"))),
            }
        }
        let hash = lines.field("start")?;
        let start_hash = line::hash(&hash).map_err(|why| lines.wrong(why))?;
        Ok(Replayer { lines, start, start_hash })
    }

    /// The chip that the trace was recorded on.
    pub fn chip(&self) -> &Chip {
        self.start.chip()
    }

    /// Whether the chip held something when the recording began, so that [`run`](Replayer::run) has to be given it.
    pub fn needs_chip(&self) -> bool {
        self.start.state_hash() != self.start_hash
    }

    /// Does everything again, on `sim` or on a chip as it left the factory, and tells how many bytes of
    /// the trace are done.
    ///
    /// # Errors
    ///
    /// [`NeedsChip`](TraceError::NeedsChip) or [`OtherChip`](TraceError::OtherChip) before anything was done; else what
    /// is wrong with the trace or the first operation that ended otherwise.
    pub fn run(self, sim: Option<Sim>, progress: &mut dyn FnMut(u64)) -> Result<Replay, TraceError> {
        let needs_chip = self.needs_chip();
        let sim = match sim {
            Some(sim) if sim.state_hash() == self.start_hash => sim,
            Some(_) => return Err(TraceError::OtherChip),
            None if needs_chip => return Err(TraceError::NeedsChip),
            None => self.start,
        };
        let (ledger_before, clock_before_ns) = (sim.ledger().clone(), sim.clock_ns());
        let mut stage = Stage { sim, data: None, any_checksum_only: false, operation_count: 0 };
        let mut lines = self.lines;
        let mut end = None;
        while let Some(text) = lines.next()? {
            let entry = text.parse().map_err(|why| TraceError::Line { number: lines.number, why })?;
            if end.is_some() {
                return Err(lines.wrong("a line follows the last".to_owned()));
            }
            match entry {
                Entry::End(found) => end = Some(found),
                other => stage.carry_out(other, &lines)?,
            }
            progress(lines.size);
        }
        let compared_content = !stage.any_checksum_only;
        if let Some(end) = end {
            stage.check_end(&end, compared_content, &lines)?;
        }
        let mut ledger = stage.sim.ledger().clone();
        for (entry, before) in ledger.entries.iter_mut().zip(&ledger_before.entries) {
            *entry = entry.since(before);
        }
        Ok(Replay {
            operation_count: stage.operation_count,
            ledger,
            duration_ns: stage.sim.clock_ns() - clock_before_ns,
            complete: end.is_some(),
            compared_content,
            sim: stage.sim,
        })
    }
}

/// A replay under way.
struct Stage {
    sim: Sim,
    /// The bytes that the next line programs.
    data: Option<Vec<u8>>,
    /// Whether bytes had to be made up, so that what is read back cannot be compared.
    any_checksum_only: bool,
    operation_count: u64,
}

impl Stage {
    fn carry_out<R>(&mut self, entry: Entry, lines: &Lines<R>) -> Result<(), TraceError> {
        match entry {
            Entry::Cause(cause) => {
                self.sim.attribute(cause);
            }
            Entry::Idle(duration_ns) => {
                if duration_ns >= CLOCK_LIMIT || self.sim.clock_ns() >= CLOCK_LIMIT {
                    return Err(lines.wrong("the clock ends before that".to_owned()));
                }
                self.sim.advance_ns(duration_ns);
            }
            Entry::Power(true) => self.sim.power_on(),
            Entry::Power(false) => self.sim.power_off(),
            Entry::Data(bytes) => self.data = Some(bytes),
            Entry::Operation(step) => self.repeat(&step, lines)?,
            Entry::End(_) => {}
        }
        Ok(())
    }

    /// Does an operation and compares what comes of it.
    fn repeat<R>(&mut self, step: &Step, lines: &Lines<R>) -> Result<(), TraceError> {
        // Nobody is told of power between operations, but an operation that was observed had it.
        if self.sim.is_off() {
            self.sim.power_on();
        }
        self.operation_count += 1;
        self.check_legal(&step.action).map_err(|why| TraceError::Illegal { number: lines.number, why })?;
        let repeated = self.perform(step);
        let comparable = match step.action {
            Action::Read { .. } if self.any_checksum_only => Step { checksum: repeated.checksum, ..*step },
            _ => *step,
        };
        if repeated != comparable {
            return Err(TraceError::Diverged {
                number: lines.number,
                recorded: step.to_string(),
                repeated: repeated.to_string(),
            });
        }
        Ok(())
    }

    fn check_legal(&self, action: &Action) -> Result<(), IllegalUse> {
        let sim = &self.sim;
        match *action {
            Action::Read { page, column, length } => sim.may_read(page, column, length as usize),
            Action::Program { page, column, length } => sim.may_program(page, column, length as usize),
            Action::Erase { block, .. } => sim.may_erase(block),
            Action::CheckBad { block } | Action::MarkBad { block } => {
                if sim.chip.geometry.contains_block(block) {
                    Ok(())
                } else {
                    Err(IllegalUse::Address)
                }
            }
            Action::Copy { from, to } => {
                sim.may_read(from, 0, 0)?;
                sim.may_program(to, 0, sim.chip.geometry.page_size as usize)?;
                // A chip that copies nothing says so.
                if sim.chip.geometry.copies == CopyRule::Never { Ok(()) } else { sim.may_copy(from, to) }
            }
        }
    }

    /// Does an operation that is legal.
    fn perform(&mut self, step: &Step) -> Step {
        let done = Outcome::Done { corrected_bits: 0 };
        let corrected = |status: ReadStatus| Outcome::Done { corrected_bits: status.corrected_bits() };
        let failed = |error: SimError| Outcome::Failed(error.kind);
        let mut checksum = None;
        let outcome = match step.action {
            Action::Read { page, column, length } => {
                let mut buffer = vec![0; length as usize];
                let result = self.sim.read(page, column, &mut buffer);
                checksum = (result.is_ok() && length > 0).then(|| image::checksum(&buffer));
                result.map_or_else(failed, corrected)
            }
            Action::Program { page, column, length } => {
                let data = self.take_data(step.checksum, length as usize);
                // Made-up bytes stand for those of the line.
                checksum = if self.any_checksum_only { step.checksum } else { Some(image::checksum(&data)) };
                self.sim.program(page, column, &data).map_or_else(failed, |()| done)
            }
            Action::Erase { block, mode } => self.sim.erase(block, mode).map_or_else(failed, |()| done),
            Action::CheckBad { block } => {
                self.sim.is_bad(block).map_or_else(failed, |bad| if bad { Outcome::Bad } else { done })
            }
            Action::MarkBad { block } => self.sim.mark_bad(block).map_or_else(failed, |()| done),
            Action::Copy { from, to } => match self.sim.copy(from, to) {
                Ok(Some(status)) => corrected(status),
                Ok(None) => Outcome::Failed(NandErrorKind::Unsupported),
                Err(error) => failed(error),
            },
        };
        Step { action: step.action, checksum, outcome }
    }

    /// The bytes to program: those of the line before, or some made up from the checksum.
    fn take_data(&mut self, checksum: Option<u32>, length: usize) -> Vec<u8> {
        if let Some(data) = self.data.take().filter(|data| data.len() == length) {
            return data;
        }
        self.any_checksum_only = true;
        let pattern = checksum.unwrap_or_default().to_le_bytes();
        pattern.iter().copied().cycle().take(length).collect()
    }

    fn check_end<R>(&self, end: &End, compared_content: bool, lines: &Lines<R>) -> Result<(), TraceError> {
        let hash = if compared_content { self.sim.state_hash() } else { end.hash };
        let repeated = End { operation_count: self.operation_count, clock_ns: self.sim.clock_ns(), hash };
        if repeated != *end {
            return Err(TraceError::Diverged {
                number: lines.number,
                recorded: Entry::End(*end).to_string(),
                repeated: Entry::End(repeated).to_string(),
            });
        }
        Ok(())
    }
}

/// Lines of bounded size, and the number of the last.
struct Lines<R> {
    reader: R,
    number: u64,
    /// Bytes read so far.
    size: u64,
    line: String,
}

impl<R> Lines<R> {
    /// Something is wrong with the last line.
    fn wrong(&self, why: String) -> TraceError {
        TraceError::Line { number: self.number, why }
    }
}

impl<R: BufRead> Lines<R> {
    /// The next line. A last one without its end was cut short and does not count.
    fn next(&mut self) -> Result<Option<&str>, TraceError> {
        self.line.clear();
        self.number += 1;
        let mut bytes = std::mem::take(&mut self.line).into_bytes();
        (&mut self.reader).take(LINE_SIZE_MAX).read_until(b'\n', &mut bytes)?;
        self.size += bytes.len() as u64;
        if bytes.len() as u64 == LINE_SIZE_MAX {
            return Err(self.wrong("it is too long".to_owned()));
        }
        self.line = String::from_utf8(bytes).map_err(|_| self.wrong("it is not text".to_owned()))?;
        Ok(self.line.strip_suffix('\n'))
    }

    /// What stands behind the word that a line must begin with.
    fn field(&mut self, name: &str) -> Result<String, TraceError> {
        let line = self.next()?.and_then(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned());
        line.ok_or_else(|| self.wrong(format!("it should begin with `{name}`")))
    }
}

fn read_version<R: BufRead>(lines: &mut Lines<R>) -> Result<(), TraceError> {
    let first = match lines.next() {
        Ok(Some(line)) => line,
        Ok(None) | Err(TraceError::Line { .. }) => return Err(TraceError::NotATrace),
        Err(error) => return Err(error),
    };
    match first.strip_prefix("nandu-trace ").map(str::parse) {
        Some(Ok(VERSION)) => Ok(()),
        Some(Ok(version)) => Err(TraceError::Version(version)),
        _ => Err(TraceError::NotATrace),
    }
}
