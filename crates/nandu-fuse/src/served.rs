//! The file system behind a lock, with what keeps its chip.

use std::io::{self, Write};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::Errno;
use nandu::fs::Regions;
use nandu_files::errno::{EIO, EUCLEAN};
use nandu_files::{Capabilities, FileError, Ino, Time};
use nandu_nand::Nand;

use crate::numbers::Numbers;
use crate::{Keeper, Volume};

/// Seconds after which a read is noted again though nothing was changed, as the file system does.
const NOTE_SECONDS: i64 = 86_400;

/// Reads that wait to be noted, at most; of more than these the next opening tells.
const UNNOTED_MAX: usize = 64;

/// What requests share.
pub(crate) struct Served<F, K> {
    state: Mutex<State<F, K>>,
}

/// What one request has for itself.
pub(crate) struct State<F, K> {
    pub(crate) fs: F,
    /// How the kernel knows what was renamed.
    pub(crate) numbers: Numbers,
    keeper: K,
    /// Whether the chip could not be kept, and was not since.
    has_failed: bool,
    /// Whether the file system could not be changed any more when somebody last looked.
    was_read_only: bool,
    /// When everything was kept, and the requests there had been then.
    kept_at: Instant,
    kept_count: u64,
    /// Whether reads change the time of the last one.
    notes_reads: bool,
    request_count: u64,
    /// Requests there had been when idle time found nothing to do.
    idle_since: Option<u64>,
    /// Steps of background work in a row.
    steps: u64,
    has_stepped: bool,
    /// Inodes that were read while the file system would have had to program for noting it.
    unnoted: Vec<Ino>,
    /// Requests there had been when an error of what nobody asked for was told last.
    told_at: Option<u64>,
}

impl<F: Volume, K: Keeper<F::Chip>> Served<F, K> {
    pub(crate) fn new(fs: F, keeper: K, notes_reads: bool) -> Served<F, K> {
        let (has_noted_reads, was_read_only) = (fs.notes_reads(), fs.is_read_only());
        Served {
            state: Mutex::new(State {
                fs,
                numbers: Numbers::default(),
                keeper,
                has_failed: false,
                was_read_only,
                kept_at: Instant::now(),
                kept_count: 0,
                notes_reads: notes_reads && has_noted_reads,
                request_count: 0,
                idle_since: None,
                steps: 0,
                has_stepped: false,
                unnoted: Vec::new(),
                told_at: None,
            }),
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fs.capabilities()
    }

    pub(crate) fn into_parts(self) -> (F, K) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.fs, state.keeper)
    }

    /// Serves a request, at the present time. None is taken while the chip cannot be kept: what it changes would be lost.
    pub(crate) fn with<T>(&self, request: impl FnOnce(&mut State<F, K>) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut state = self.lock();
        state.request_count += 1;
        if state.has_failed {
            return Err(Errno::EIO);
        }
        let outcome = state.serve(request);
        if state.keeper.is_due(state.fs.nand()) {
            state.keep_or_fail()?;
        }
        outcome
    }

    /// Serves a request that only looks at what is there, or says that somebody is done with it. It is taken whether the chip can be kept or
    /// not: what there is can be read, and a file whose closing was not counted would count as open until the next mount.
    pub(crate) fn look<T>(&self, request: impl FnOnce(&mut State<F, K>) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut state = self.lock();
        state.request_count += 1;
        let outcome = state.serve(request);
        if !state.has_failed && state.keeper.is_due(state.fs.nand()) {
            // Who changes something is told of an error.
            let _ = state.keep();
        }
        outcome
    }

    /// Asks how full the file system is. That is no request: whoever watches how room comes back does not keep it from coming.
    pub(crate) fn watch<T>(&self, question: impl FnOnce(&mut State<F, K>) -> T) -> T {
        question(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State<F, K>> {
        // A request that panicked left the file system as an error would have: what is on flash is right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable and keeps what nobody asked for, if that is due. What was refused for a lack of space is refused here too, and what
    /// was done before is kept.
    pub(crate) fn catch_up(&self) {
        let mut state = self.lock();
        if state.kept_at.elapsed() < KEEP_PERIOD {
            return;
        }
        if state.request_count != state.kept_count || state.has_failed {
            state.kept_count = state.request_count;
            let outcome = state.fs.sync();
            state.tell(outcome);
            if state.has_failed || state.keeper.is_behind(state.fs.nand()) {
                let _ = state.keep();
            }
        }
        state.kept_at = Instant::now();
    }

    pub(crate) fn request_count(&self) -> u64 {
        self.lock().request_count
    }

    /// Does a step of background work where policies say when one is due. Returns how long to wait for the next one; `None` where there are no
    /// policies, or nothing to do. After an error the next request fails too, but it may say no more than that something failed before.
    pub(crate) fn step(&self) -> Option<Duration> {
        let mut state = self.lock();
        let outcome = state.fs.step(now());
        let worked = state.tell(outcome).unwrap_or(false);
        state.note_reads();
        state.steps = if worked { state.steps + 1 } else { 0 };
        // The first step may make changes durable, and the last leaves nothing. What is moved in between is where it was until then, and nobody
        // was told of what is made durable there.
        let is_kept_now = state.steps == 1 || state.steps.is_multiple_of(STEPS_KEPT) || (!worked && state.has_stepped);
        if is_kept_now {
            let _ = state.keep();
        }
        state.has_stepped = worked;
        let due = state.fs.step_due()?;
        Some(until(due))
    }

    /// What the blocks of the chip are used for, as text. Looking is no request: whoever watches does not keep background work from going on.
    pub(crate) fn regions(&self) -> Option<Vec<u8>> {
        let state = self.lock();
        let Regions { free_blocks, tree_blocks, slc_blocks, slc_pages, mlc_blocks, mlc_pages, bad_blocks } =
            state.fs.regions()?;
        let text =
            format!("{free_blocks} {tree_blocks} {slc_blocks} {slc_pages} {mlc_blocks} {mlc_pages} {bad_blocks}");
        Some(text.into_bytes())
    }

    /// Wear and losses of the chip, as text, see [`HEALTH_XATTR`](crate::HEALTH_XATTR). Looking is no request.
    pub(crate) fn health(&self) -> Option<Vec<u8>> {
        let state = self.lock();
        let stats = state.fs.log_stats()?;
        let geometry = state.fs.nand().geometry();
        let numbers = [
            stats.erase_count_min,
            stats.erase_count_mean(),
            stats.erase_count_max,
            geometry.endurance,
            stats.bad_blocks,
            geometry.bad_block_max,
            stats.damaged_blocks,
            stats.tail.lost,
            stats.pool_blocks,
            stats.live_pages,
            stats.capacity_pages,
        ];
        Some(numbers.map(|number| number.to_string()).join(" ").into_bytes())
    }

    /// Whether policies say when background work is done.
    pub(crate) fn is_placed(&self) -> bool {
        self.lock().fs.is_placed()
    }

    /// Uses idle time. Returns whether there is more to do at once.
    pub(crate) fn idle(&self, pages: u32) -> bool {
        let mut state = self.lock();
        if state.idle_since == Some(state.request_count) {
            return false;
        }
        let outcome = state.fs.idle(pages);
        let works = state.tell(outcome).unwrap_or(false) | state.note_reads();
        state.steps = if works { state.steps + 1 } else { 0 };
        // As in `step`: what is done in between nobody was told of.
        let is_kept_now = !works || state.has_failed || state.steps % IDLE_KEPT == 1;
        let is_kept = !is_kept_now || !state.keeper.is_behind(state.fs.nand()) || state.keep().is_ok();
        if !works && is_kept {
            state.idle_since = Some(state.request_count);
        }
        works && is_kept
    }
}

impl<F: Volume, K: Keeper<F::Chip>> State<F, K> {
    fn serve<T>(&mut self, request: impl FnOnce(&mut State<F, K>) -> Result<T, Errno>) -> Result<T, Errno> {
        self.fs.request_begin(now()).map_err(errno)?;
        let outcome = request(self);
        self.fs.request_end(now());
        if !self.was_read_only && self.fs.is_read_only() {
            self.was_read_only = true;
            let why = "too few blocks of its chip can still be erased and programmed";
            let _ = writeln!(io::stderr(), "nandu: the file system can only be read from here on: {why}");
        }
        outcome
    }

    /// Notes that something was read. Whoever read it has it, whether that can be noted or not.
    pub(crate) fn note_read(&mut self, ino: Ino) {
        if !self.notes_reads || self.has_failed {
            return;
        }
        let outcome = self.fs.note_read(ino);
        self.tell(outcome);
        // What was written last waits in memory, and may be just what was read.
        if self.unnoted.len() < UNNOTED_MAX && !self.unnoted.contains(&ino) && self.wants_read(ino) {
            self.unnoted.push(ino);
        }
    }

    /// Whether a read would be noted: the first after a change, and the first of a day.
    pub(crate) fn wants_read(&mut self, ino: Ino) -> bool {
        if !self.notes_reads {
            return false;
        }
        let now = now().seconds;
        self.fs.stat(ino).is_ok_and(|stat| {
            let is_old = now.saturating_sub(stat.atime.seconds) >= NOTE_SECONDS;
            stat.atime <= stat.mtime.max(stat.ctime) || is_old
        })
    }

    /// Notes what was read and could not be noted then. Returns whether there was something.
    fn note_reads(&mut self) -> bool {
        let unnoted = mem::take(&mut self.unnoted);
        self.fs.set_now(now());
        for &ino in &unnoted {
            let outcome = self.fs.note_read(ino);
            self.tell(outcome);
        }
        !unnoted.is_empty()
    }

    /// The outcome of what no request asked for. An error of the chip is said to whoever watches the process, once between two requests: it is
    /// the only time that it is heard of, since who asks next may be told only that something failed before.
    fn tell<T>(&mut self, outcome: Result<T, F::Error>) -> Option<T> {
        match outcome {
            Ok(done) => Some(done),
            Err(error) => {
                if self.told_at != Some(self.request_count) {
                    self.told_at = Some(self.request_count);
                    errno(error);
                }
                None
            }
        }
    }

    /// Has the chip kept: what is durable on it is durable then.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        let outcome = self.keeper.keep(self.fs.nand_mut());
        match &outcome {
            Err(error) if !self.has_failed => {
                let _ = writeln!(io::stderr(), "nandu: {error}; no change is taken before this can be written");
            }
            Ok(()) if self.has_failed => {
                let _ = writeln!(io::stderr(), "nandu: what could not be written is written now");
            }
            _ => {}
        }
        self.has_failed = outcome.is_err();
        outcome
    }

    /// The end of a request that promises durability.
    pub(crate) fn keep_or_fail(&mut self) -> Result<(), Errno> {
        self.keep().map_err(|_| Errno::EIO)
    }
}

/// What a program is told. What only says that something is wrong below is also said in words, to whoever watches the process.
pub(crate) fn errno<E: FileError>(error: E) -> Errno {
    let number = error.errno();
    if matches!(number, EIO | EUCLEAN) {
        // Nobody watches a process in the background.
        let _ = writeln!(io::stderr(), "nandu: {error}");
    }
    Errno::from_i32(number)
}

/// What nobody asked to be durable is after this time and what it takes to notice it: less than five seconds.
const KEEP_PERIOD: Duration = Duration::from_secs(4);

/// Steps of background work after which the chip is kept.
const STEPS_KEPT: u64 = 256;

/// Pieces of idle time after which the chip is kept.
const IDLE_KEPT: u64 = 16;

/// How long it is until then.
fn until(time: Time) -> Duration {
    let now = now();
    let nanoseconds = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds);
    let left = nanoseconds(time) - nanoseconds(now);
    u64::try_from(left).map_or(Duration::ZERO, Duration::from_nanos)
}

pub(crate) fn now() -> Time {
    from_system(SystemTime::now())
}

/// A time that the kernel sent. Before 1970 it came as whole seconds back and nanoseconds forward, and `fuser` takes both for backward.
pub(crate) fn from_kernel(time: SystemTime) -> Time {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Time { seconds: after.as_secs() as i64, nanoseconds: after.subsec_nanos() },
        Err(error) => {
            let before = error.duration();
            Time { seconds: 0_i64.saturating_sub_unsigned(before.as_secs()), nanoseconds: before.subsec_nanos() }
        }
    }
}

/// A time of the operating system as one of the file system.
pub(crate) fn from_system(time: SystemTime) -> Time {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Time { seconds: after.as_secs() as i64, nanoseconds: after.subsec_nanos() },
        Err(error) => {
            let before = error.duration();
            match before.subsec_nanos() {
                0 => Time { seconds: -(before.as_secs() as i64), nanoseconds: 0 },
                rest => Time { seconds: -(before.as_secs() as i64) - 1, nanoseconds: 1_000_000_000 - rest },
            }
        }
    }
}
