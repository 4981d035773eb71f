//! The conformance suite, with pages so small that trees grow high and split in every way.

use nandu_index::suite::{KeyKind, Space, conformance};
use nandu_sim::{Chip, Sim};
use nandu_tree::{ByteCells, FixedCells, Options};

use crate::bench::{Bench, OPTIONS};
use crate::group::waiting;

const NO_CACHE: Options = Options { cache_size: 0, ..Options::DEFAULT };

fn fixed(key_count: u32) -> Space {
    Space { keys: KeyKind::Fixed(4), key_count, value_size_min: 4, value_size_max: 4, operations_max: 150 }
}

fn bytes(key_count: u32) -> Space {
    Space { keys: KeyKind::Bytes(10), value_size_min: 0, value_size_max: 20, ..fixed(key_count) }
}

fn chip() -> Sim {
    Sim::new(Chip::TINY.with_blocks(96))
}

#[test]
fn fixed_cells_conform() {
    conformance(fixed(900), 120, || Bench::new(chip(), FixedCells::<4, 4>, OPTIONS));
}

#[test]
fn fixed_cells_conform_without_cache() {
    conformance(fixed(400), 60, || Bench::new(chip(), FixedCells::<4, 4>, NO_CACHE));
}

#[test]
fn byte_cells_conform() {
    conformance(bytes(200), 120, || Bench::new(chip(), ByteCells, OPTIONS));
}

#[test]
fn byte_cells_conform_without_cache() {
    conformance(bytes(900), 60, || Bench::new(chip(), ByteCells, NO_CACHE));
}

#[test]
fn trees_conform_whose_changes_wait() {
    for (cache, pending) in [(512, 300), (0, 40), (512, 8192)] {
        conformance(fixed(900), 40, || Bench::new(chip(), FixedCells::<4, 4>, waiting(cache, pending)));
        conformance(bytes(200), 40, || Bench::new(chip(), ByteCells, waiting(cache, pending)));
    }
}
