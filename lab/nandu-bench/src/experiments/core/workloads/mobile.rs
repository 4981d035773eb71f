//! Half an hour of a phone on cells with two bits, twice: the policies of placement move pages in idle time.

use nandu::fs::placement::PlacementOptions;
use nandu::fs::{Fs, Options};
use nandu_sim::{Chip, Sim};

use super::Phase;
use crate::flexfs::FileSystem;
use crate::workload::{CallTrace, FileVerb};
use crate::{BenchError, Context, Figure};

/// Microseconds of the processor for a request, and for a page that is moved.
const CPU_US: (u64, u64) = (855, 97);
/// Between two traces.
const PAUSE_US: u64 = 600_000_000;
/// The first file that never changes.
const STATIC_FILE: u32 = 1_000;
const STATIC_PAGES: u32 = 256;

pub(super) fn run(context: &mut Context<'_>) -> Result<Vec<Figure>, BenchError> {
    let chip = Chip::PAPER_FLEX.with_blocks(context.scaled(192, 128));
    let memory = Options { cache_size: 64 << 10, pending_size: 16 << 10, ..Options::DEFAULT };
    let options = Options {
        placement: Some(PlacementOptions::for_geometry(&chip.geometry)),
        ..memory.both_modes(&chip.geometry)
    };
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.geometry, &options)];
    let mut files = FileSystem::format(Sim::with_seed(chip, context.seed), options, &mut memory, CPU_US)?;
    let static_pages = files.available_pages()? * 3 / 10;
    for page in 0..static_pages as u32 {
        files.write(STATIC_FILE + page / STATIC_PAGES, page % STATIC_PAGES)?;
    }
    files.idle_until(files.now_us() + PAUSE_US)?;
    let trace = CallTrace::mobile(1);
    let calls = &trace.calls[..trace.calls.len() / context.scaled(1, 6)];
    let phase = Phase::start(files.fs().nand());
    let mut writes = 0;
    for round in 0..context.scaled(2, 1) {
        let since_us = files.now_us();
        for (nth, call) in calls.iter().enumerate() {
            files.idle_until(since_us + call.at_us)?;
            files.call(call.verb)?;
            writes += u64::from(matches!(call.verb, FileVerb::Write { .. }));
            context.tell((round * calls.len() + nth) as u64, 2 * calls.len() as u64);
        }
        files.idle_until(files.now_us() + PAUSE_US)?;
    }
    let figures = phase.figures("mobile", files.fs().nand(), writes);
    files.verify()?;
    Ok(figures)
}
