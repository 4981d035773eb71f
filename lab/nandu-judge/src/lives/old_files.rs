//! Lives of the file system of `nandu-fs`.

use nandu::fs::{Format, Fs, FsError, Ino, LogOptions, Options};

use super::tally::Whose;

#[path = "files.rs"]
#[allow(clippy::duplicate_mod, reason = "the same lives of both, which have the same names")]
mod files;

pub(super) use files::live;

fn options(seed: u64, whose: Whose, cache_size: usize, pending_size: usize, note_count: usize) -> Options {
    let log = LogOptions { bare_streams: 1 + (seed % 2) as u8, tags: whose == Whose::Tagged, ..Options::DEFAULT.log };
    Options { log, cache_size, pending_size, note_count, open_max: 4, ..Options::DEFAULT }
}
