//! The conformance suite, on pages so small that trees grow high and split in every way.

use nandu_index::suite::{KeyKind, Space, conformance};
use nandu_tree::{ByteCells, FixedCells, Options};

use crate::medium::{Bench, Shared};

const SMALL: Options = Options { cache_size: 300, journal_pages: 256, ..Options::DEFAULT };
const NO_CACHE: Options = Options { cache_size: 0, journal_pages: 256, ..Options::DEFAULT };

fn fixed(key_count: u32) -> Space {
    Space { keys: KeyKind::Fixed(4), key_count, value_size_min: 4, value_size_max: 4, operations_max: 200 }
}

fn bytes(key_count: u32) -> Space {
    Space { keys: KeyKind::Bytes(12), key_count, value_size_min: 0, value_size_max: 20, operations_max: 200 }
}

#[test]
fn fixed_cells_conform() {
    conformance(fixed(900), 400, || Bench::new(Shared::new(256, 44, 4000), FixedCells::<4, 4>, SMALL));
}

#[test]
fn fixed_cells_conform_without_cache_and_with_long_values() {
    let space = Space { keys: KeyKind::Fixed(8), value_size_min: 16, value_size_max: 16, ..fixed(500) };
    conformance(space, 400, || Bench::new(Shared::new(512, 44, 4000), FixedCells::<8, 16>, NO_CACHE));
}

#[test]
fn byte_cells_conform() {
    conformance(bytes(200), 400, || Bench::new(Shared::new(256, 44, 4000), ByteCells, SMALL));
}

#[test]
fn byte_cells_conform_without_cache_on_larger_pages() {
    let space = Space { value_size_max: 60, keys: KeyKind::Bytes(24), ..bytes(2000) };
    conformance(space, 400, || Bench::new(Shared::new(512, 44, 4000), ByteCells, NO_CACHE));
}
