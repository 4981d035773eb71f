//! Lives of the file system of `nandu-newfs`.

use nandu_newfs::{Format, Fs, FsError, Ino, Options};

use super::tally::Whose;

#[path = "files.rs"]
#[allow(clippy::duplicate_mod, reason = "the same lives of both, which have the same names")]
mod files;

pub(super) use files::live;

fn options(_seed: u64, _whose: Whose, cache_size: usize, pending_size: usize, _note_count: usize) -> Options {
    Options { cache_size, pending_size, open_max: 4, ..Options::DEFAULT }
}
