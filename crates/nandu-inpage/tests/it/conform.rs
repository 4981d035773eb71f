//! The conformance suite: each layout, each buffer, each way to split, on pages so small that trees grow high.

use nandu_index::suite::{KeyKind, Space, conformance};
use nandu_inpage::{Cells, GroupSize, LogPages, LogRead, Options, Policy, Splits};
use nandu_sim::Chip;

use crate::rig::{GRR, Held, IPL, PAGES, SECTORS, in_pages};

const CASES: u32 = 60;

const SPACE: Space =
    Space { keys: KeyKind::Fixed(4), key_count: 500, value_size_min: 4, value_size_max: 4, operations_max: 120 };

fn conforms(chip: Chip, options: Options) {
    conformance(SPACE, CASES, || Held::new(chip.with_blocks(100), options));
}

#[test]
fn ipl_conforms() {
    conforms(SECTORS, IPL);
}

#[test]
fn ipl_in_whole_pages_conforms() {
    conforms(PAGES, in_pages(IPL));
}

#[test]
fn grr_conforms() {
    conforms(SECTORS, GRR);
}

#[test]
fn grr_in_whole_pages_conforms() {
    conforms(PAGES, in_pages(GRR));
}

#[test]
fn grr_with_an_ordinary_clean_first_buffer_conforms() {
    conforms(SECTORS, Options { policy: Policy::CleanFirst, log_read: LogRead::Smart, ..GRR });
    conforms(PAGES, Options { policy: Policy::CleanFirst, ..in_pages(GRR) });
}

#[test]
fn lazy_splits_under_lru_and_eager_ones_under_clean_first_conform() {
    conforms(SECTORS, Options { splits: Splits::LazyTwo, log_read: LogRead::All, ..IPL });
    conforms(SECTORS, Options { splits: Splits::EagerThree, ..GRR });
}

#[test]
fn real_use_conforms() {
    let options = Options {
        log_pages: LogPages::Adaptive(2),
        log_read: LogRead::Smart,
        group: GroupSize::Dynamic(4),
        dirty_max_percent: 50,
        ..GRR
    };
    conforms(SECTORS, options);
    conforms(PAGES, in_pages(options));
}

#[test]
fn log_pages_where_there_is_room_conform() {
    let options = Options { log_pages: LogPages::Opportunistic(1), group: GroupSize::Fixed(4), ..GRR };
    conforms(SECTORS, options);
    conforms(PAGES, in_pages(options));
}

#[test]
fn byte_strings_conform() {
    let space =
        Space { keys: KeyKind::Bytes(10), key_count: 300, value_size_min: 0, value_size_max: 16, operations_max: 120 };
    let grr = Options { cells: Cells::Bytes, ..GRR };
    conformance(space, CASES, || Held::new(SECTORS.with_blocks(200), grr));
    conformance(space, CASES, || Held::new(PAGES.with_blocks(200), in_pages(grr)));
    let ipl = Options { cells: Cells::Bytes, ..IPL };
    conformance(space, CASES, || Held::new(SECTORS.with_blocks(200), ipl));
}
