//! The command as its users meet it.

#![expect(clippy::unwrap_used, reason = "a test that gets no answer has failed")]

mod check;
mod dffs;
mod differential;
mod digest;
mod dumps;
mod format_one;
mod fs_snapshots;
mod images;
mod index;
mod keeping;
mod lab;
mod manners;
mod mount;
mod mounted;
mod pages;
mod pjdfstest;
mod record;
mod rights;
mod store;
mod streams;
mod transcripts;
mod worn;
