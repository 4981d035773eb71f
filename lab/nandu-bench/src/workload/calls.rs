//! What programs do with files, with the time of each call: recorded, made up, and replayed.
//!
//! A trace is lines of JSON, one for each call, in the order of time:
//!
//! ```text
//! {"at_us":1500000,"call":"write","file":3,"offset":0,"length":1008}
//! {"at_us":1500400,"call":"close","file":3}
//! ```
//!
//! [`CallRecorder`] writes them as they happen, [`CallTrace::read`] reads them again, and [`CallTrace::mobile`] makes up half an hour
//! of a mobile phone.

use std::io::{self, BufRead, Write};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCall {
    /// When, microseconds since the beginning of the trace.
    pub at_us: u64,
    /// What.
    #[serde(flatten)]
    pub verb: FileVerb,
}

/// What a call does. A file is a number; a name is nothing that placement cares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
pub enum FileVerb {
    /// Reads bytes.
    Read {
        /// The file.
        file: u32,
        /// The first byte.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// Writes bytes.
    Write {
        /// The file.
        file: u32,
        /// The first byte.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// Makes a file durable.
    Sync {
        /// The file.
        file: u32,
    },
    /// Closes a file; what of it waits in memory is written.
    Close {
        /// The file.
        file: u32,
    },
    /// Deletes a file.
    Delete {
        /// The file.
        file: u32,
    },
}

/// Why lines are no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadCalls {
    /// The lines cannot be read.
    #[error("the trace cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line is no call.
    #[error("line {line}: {error}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A call is earlier than the one before it.
    #[error("line {0} is earlier than the one before it")]
    Order(usize),
}

/// Writes calls as they happen.
#[derive(Debug)]
pub struct CallRecorder<W> {
    to: W,
}

impl<W: Write> CallRecorder<W> {
    /// Writes to anything; it is not buffered here.
    pub fn new(to: W) -> CallRecorder<W> {
        CallRecorder { to }
    }

    /// Notes a call.
    ///
    /// # Errors
    ///
    /// Those of what is written to.
    pub fn note(&mut self, at_us: u64, verb: FileVerb) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, &FileCall { at_us, verb })?;
        self.to.write_all(b"\n")
    }

    /// What was written to.
    pub fn finish(self) -> W {
        self.to
    }
}

/// Calls in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// The calls.
    pub calls: Vec<FileCall>,
}

impl CallTrace {
    /// Reads lines; empty ones are passed over.
    ///
    /// # Errors
    ///
    /// [`BadCalls`].
    pub fn read(from: impl BufRead) -> Result<CallTrace, BadCalls> {
        let mut calls: Vec<FileCall> = Vec::new();
        for (index, line) in from.lines().enumerate() {
            let line = line?;
            if line.trim().is_empty() {
                continue;
            }
            let call: FileCall =
                serde_json::from_str(&line).map_err(|error| BadCalls::Line { line: index + 1, error })?;
            if calls.last().is_some_and(|last| last.at_us > call.at_us) {
                return Err(BadCalls::Order(index + 1));
            }
            calls.push(call);
        }
        Ok(CallTrace { calls })
    }

    /// Writes all of them, through a recorder.
    ///
    /// # Errors
    ///
    /// Those of what is written to.
    pub fn write<W: Write>(&self, to: W) -> io::Result<W> {
        let mut recorder = CallRecorder::new(to);
        for call in &self.calls {
            recorder.note(call.at_us, call.verb)?;
        }
        Ok(recorder.finish())
    }

    /// Half an hour of a mobile phone, made up after what the FlexFS paper tells of its recording (section 5.2.1): messages, an address
    /// book, memos, a game, six MP3 files downloaded from 750 s on, and nine pictures taken; 18 MiB of files each. About 39 MB in
    /// 38,600 writes of 1,008 bytes in the mean, 4,400 reads of 5.7 MB, and 89 % of the time idle.
    pub fn mobile(seed: u64) -> CallTrace {
        let mut phone = Phone { calls: Vec::new(), sizes: [0; SMALL_FILES], chance: ChaCha8Rng::seed_from_u64(seed) };
        phone.sessions(2_000_000, 745_000_000, 300);
        for song in 0..6 {
            phone.download(FIRST_SONG + song, 750_000_000 + u64::from(song) * 18_000_000, SONG_SIZE, 5_000);
        }
        for picture in 0..9 {
            let at_us = 930_000_000 + u64::from(picture) * 60_000_000;
            phone.download(FIRST_PICTURE + picture, at_us, PICTURE_SIZE, 5_500);
        }
        phone.sessions(1_425_000_000, 1_798_000_000, 160);
        let mut calls = phone.calls;
        calls.sort_by_key(|call| call.at_us);
        CallTrace { calls }
    }

    /// The share of the time that lies in gaps of a second or more.
    pub fn idle_share(&self) -> f64 {
        let last_us = self.calls.last().map_or(0, |call| call.at_us);
        let gaps = self.calls.windows(2).map(|pair| pair[1].at_us - pair[0].at_us);
        gaps.filter(|&gap_us| gap_us >= 1_000_000).sum::<u64>() as f64 / last_us.max(1) as f64
    }
}

/// Files of messages, addresses, memos and the game, in turn.
const SMALL_FILES: usize = 12;
const FIRST_SONG: u32 = 100;
const SONG_SIZE: u64 = 3 << 20;
const FIRST_PICTURE: u32 = 200;
const PICTURE_SIZE: u64 = 2 << 20;
/// Programs write large files through a buffer of this size.
const BUFFER_SIZE: u64 = 1024;

/// The applications of a phone.
struct Phone {
    calls: Vec<FileCall>,
    sizes: [u64; SMALL_FILES],
    chance: ChaCha8Rng,
}

impl Phone {
    fn call(&mut self, at_us: u64, verb: FileVerb) {
        self.calls.push(FileCall { at_us, verb });
    }

    /// Short visits to the small applications: something is read, a record or a few are written, the file is closed.
    fn sessions(&mut self, from_us: u64, to_us: u64, count: u64) {
        for nth in 0..count {
            let which = self.chance.random_range(0..SMALL_FILES);
            let file = which as u32 + 1;
            let span_us = (to_us - from_us) / count;
            let mut at_us = from_us + nth * span_us + self.chance.random_range(0..span_us / 4);
            for _ in 0..self.chance.random_range(9..=10) {
                let offset = self.chance.random_range(0..=self.sizes[which]);
                let length = self.chance.random_range(400..2190);
                self.call(at_us, FileVerb::Read { file, offset, length });
                at_us += 800;
            }
            for _ in 0..self.chance.random_range(3..=4) {
                let length = self.chance.random_range(300..1140);
                self.call(at_us, FileVerb::Write { file, offset: self.sizes[which], length });
                self.sizes[which] += u64::from(length);
                at_us += 4_000;
            }
            self.call(at_us, FileVerb::Close { file });
        }
    }

    /// A large file, as fast as it comes.
    fn download(&mut self, file: u32, at_us: u64, size: u64, period_us: u64) {
        for (nth, offset) in (0..size).step_by(BUFFER_SIZE as usize).enumerate() {
            self.call(at_us + nth as u64 * period_us, FileVerb::Write { file, offset, length: BUFFER_SIZE as u32 });
        }
        self.call(at_us + size / BUFFER_SIZE * period_us, FileVerb::Close { file });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_hour_of_a_phone_is_as_the_paper_counts_it() {
        let trace = CallTrace::mobile(0);
        let lengths = |is_write: bool| -> Vec<u64> {
            let of = |call: &FileCall| match call.verb {
                FileVerb::Write { length, .. } if is_write => Some(u64::from(length)),
                FileVerb::Read { length, .. } if !is_write => Some(u64::from(length)),
                _ => None,
            };
            trace.calls.iter().filter_map(of).collect()
        };
        let (writes, reads) = (lengths(true), lengths(false));
        let near = |value: f64, stated: f64, share: f64| {
            assert!((value - stated).abs() <= share * stated, "{value} is not about {stated}");
        };
        near(writes.len() as f64, 38_600.0, 0.01);
        near(writes.iter().sum::<u64>() as f64, 39e6, 0.01);
        near(writes.iter().sum::<u64>() as f64 / writes.len() as f64, 1008.0, 0.01);
        near(reads.len() as f64, 4_400.0, 0.02);
        near(reads.iter().sum::<u64>() as f64, 5.7e6, 0.03);
        near(trace.idle_share(), 0.89, 0.01);
        assert!(trace.calls.last().is_some_and(|call| call.at_us < 1_800_000_000));
    }

    #[test]
    fn what_is_recorded_is_read_again_and_nonsense_is_refused_with_its_line() {
        let trace = CallTrace::mobile(3);
        let text = trace.write(Vec::new()).unwrap();
        assert_eq!(CallTrace::read(&text[..]).unwrap(), trace);
        let first = text.split(|byte| *byte == b'\n').next().unwrap();
        assert!(String::from_utf8_lossy(first).starts_with("{\"at_us\":"));
        let refused = |text: &str| CallTrace::read(text.as_bytes()).unwrap_err().to_string();
        let line = "{\"at_us\":5,\"call\":\"sync\",\"file\":1}\n";
        assert!(refused(&format!("{line}\n{{\"at_us\":6}}")).starts_with("line 3: "));
        assert_eq!(refused(&format!("{line}{}", line.replace('5', "4"))), "line 2 is earlier than the one before it");
    }
}
