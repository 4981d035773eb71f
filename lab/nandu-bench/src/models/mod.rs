//! Flash file systems of others as counts of operations: what each programs for what a program asks of it, by the sizes of its
//! structures and its rules for syncs, commits and garbage, on no chip and with no bytes.
//!
//! They are models and not the file systems: what they are for is to stand beside ours under one workload on one device, with every
//! assumption in sight. Where the kernel's own was counted, or a publication says what it should be, experiments hold the model against
//! that. Host reads are not counted, since they depend on a page cache; the collector's are.

mod classic;
mod flash;
mod index;
mod jffs2;
mod ubifs;
mod yaffs2;

pub use classic::{Classic, ParentUpdate};
pub use jffs2::{Flush, Jffs2};
pub use ubifs::Ubifs;
pub use yaffs2::Yaffs2;

use crate::BenchError;
use crate::workload::Files;

/// A device, as far as counts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks.
    pub block_count: u32,
}

/// What a model did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pages read by the collector.
    pub reads: u64,
    /// Pages programmed, those of the collector included.
    pub programs: u64,
    /// Pages programmed by the collector.
    pub collector_programs: u64,
    /// Blocks erased.
    pub erases: u64,
}

impl Counts {
    /// What was done since `before`.
    #[must_use]
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            collector_programs: self.collector_programs - before.collector_programs,
            erases: self.erases - before.erases,
        }
    }
}

/// A file system whose operations are counted.
pub trait Model: Files {
    /// What it did so far.
    fn counts(&self) -> Counts;
}

/// Bytes that a host's page cache writes as one.
const HOST_PAGE_SIZE: u64 = 4096;

/// The parts of a write in the pages of the host: the page, where the part begins there, and how many bytes it has.
fn host_pages(offset: u64, size: usize) -> impl Iterator<Item = (u64, u64, u64)> {
    parts(offset, size as u64, HOST_PAGE_SIZE)
}

/// The same in pages of any size.
fn parts(offset: u64, size: u64, page_size: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = offset + size;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (page, start) = (at / page_size, at % page_size);
        let count = (page_size - start).min(end - at);
        at += count;
        Some((page, start, count))
    })
}

const FULL: &str = "the model's device is full";

/// Whether a model stopped since its device has no more room.
pub fn is_full(error: &BenchError) -> bool {
    matches!(error, BenchError::Other(text) if text == FULL)
}

fn missing() -> BenchError {
    BenchError::Other("a model was asked for a file that is not there".into())
}

#[cfg(test)]
mod tests;
