//! Random lives of file systems whose changes wait in little memory: no name is refused to go, and what is removed makes room.

use nandu_fs::{LogOptions, Options};
use nandu_sim::Chip;
use nandu_suite::{Chance, Refused, full, live_all, lives_asked_for};

use crate::rig::{Nandu, OPTIONS};

/// What random lives are lived on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    blocks: u32,
    pending: (usize, usize),
    steps: u32,
}

pub(crate) const SMALL: World = World { blocks: 38, pending: (200, 1000), steps: 800 };

impl World {
    pub(crate) const fn with_pending(self, least: usize, most: usize) -> World {
        World { pending: (least, most), ..self }
    }
}

fn chip(world: &World) -> Chip {
    let mut chip = Chip::W25N01GV.with_blocks(world.blocks);
    chip.geometry.pages_per_block = 8;
    chip
}

/// Lives one life, with memory for changes of a size by chance.
fn live(world: &World, seed: u64) -> Refused {
    let mut chance = Chance::new(seed);
    let (least, most) = world.pending;
    let pending_size = least + chance.below(most - least + 1);
    let log = LogOptions { bare_streams: 1 + (seed % 2) as u8, ..LogOptions::DEFAULT };
    let options = Options { log, cache_size: 512, pending_size, note_count: 16, open_max: 4, ..Options::DEFAULT };
    full::live(&Nandu(options), chip(world), seed, &mut chance, world.steps)
}

/// Lives so many lives, and says which were not sound.
fn lives(world: &World, seeds: core::ops::Range<u64>) {
    live_all(seeds, full::WRITES, |seed| live(world, seed));
}

#[test]
fn names_are_never_refused_to_go() {
    lives(&SMALL, 0..20);
}

/// A page that is written over takes the place of the one before, on a chip that is full too, for as long as one likes.
#[test]
fn pages_are_written_over_on_a_full_chip() {
    for pending_size in [300, 4096] {
        full::pages_are_written_over(&Nandu(Options { pending_size, ..OPTIONS }), nandu_suite::SMALL);
    }
}

/// As many lives as somebody lets run, with memory for changes of any size.
#[test]
#[ignore = "as many as NANDU_LIVES says"]
fn many_lives() {
    lives(&SMALL.with_pending(0, 8192), lives_asked_for());
}
