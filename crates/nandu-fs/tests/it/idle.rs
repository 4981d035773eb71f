//! Idle time comes to rest (L18): through `idle`, and through `step` where policies place pages.

use nandu_fs::Options;
use nandu_suite::SMALL;
use nandu_suite::idle::comes_to_rest;

use crate::lives::{PAIRED_CHIP, TAGGED, TAGGED_OPTIONS, placed};
use crate::rig::{Nandu, OPTIONS};

#[test]
fn files_come_to_rest() {
    for seed in 0..4 {
        comes_to_rest(&Nandu(OPTIONS), SMALL.with_blocks(44), seed);
    }
}

#[test]
fn files_whose_changes_wait_come_to_rest() {
    for seed in 0..4 {
        comes_to_rest(&Nandu(Options { pending_size: 8000, note_count: 64, ..OPTIONS }), SMALL.with_blocks(120), seed);
    }
}

#[test]
fn files_with_tags_come_to_rest() {
    for seed in 0..4 {
        comes_to_rest(&Nandu(TAGGED_OPTIONS), TAGGED.chip, seed);
    }
}

/// Through steps, as policies say, and through `idle` alone; without a promised lifetime, of which each window that is over is noted.
#[test]
fn files_with_two_bits_a_cell_come_to_rest() {
    let options = Options { wear: None, ..placed() };
    for seed in 0..4 {
        comes_to_rest(&Nandu(options), PAIRED_CHIP, seed);
        comes_to_rest(&Nandu(Options { placement: None, ..options }), PAIRED_CHIP, seed);
    }
}
