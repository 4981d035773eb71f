//! Lives of the file system of `nandu-newfs`.

use nandu_newfs::{Format, Fs, FsError, Ino, LogOptions, Options};

use super::tally::Whose;

#[path = "files.rs"]
#[allow(clippy::duplicate_mod, reason = "the same lives of both, which have the same names")]
mod files;

pub(super) use files::live;

fn options(_seed: u64, whose: Whose, cache_size: usize, pending_size: usize, _note_count: usize) -> Options {
    let (has_tags, has_mlc) = (whose == Whose::Tagged, whose == Whose::Dense);
    let log = LogOptions { has_tags, has_mlc, ..Options::DEFAULT.log };
    Options { log, cache_size, pending_size, open_max: 4, ..Options::DEFAULT }
}
