//! The conformance suite: IPL and GRR, in each layout, under each buffer, and what else there is to choose, on pages so small that
//! trees grow high.

use nandu_index::suite::{KeyKind, Space, conformance};
use nandu_inpage::{Cells, GroupSize, Layout, LogPages, LogRead, Options, Policy, Splits};
use nandu_sim::Chip;

use crate::rig::{GRR, Held, IPL, PAGES, SECTORS, in_pages, with_long_blocks, with_two_pages};

const CASES: u32 = 60;

const SPACE: Space =
    Space { keys: KeyKind::Fixed(4), key_count: 500, value_size_min: 4, value_size_max: 4, operations_max: 120 };

fn conforms(chip: Chip, options: Options) {
    println!("{options:?}");
    conformance(SPACE, CASES, || Held::new(chip.with_blocks(100), options));
}

/// The suite under each buffer.
fn conforms_with_each_buffer(chip: Chip, options: Options) {
    for policy in [Policy::Lru, Policy::CleanFirst, Policy::SemiClean] {
        conforms(chip, Options { policy, ..options });
    }
}

#[test]
fn ipl_conforms_with_each_buffer() {
    conforms_with_each_buffer(SECTORS, IPL);
}

#[test]
fn ipl_in_whole_pages_conforms_with_each_buffer() {
    conforms_with_each_buffer(PAGES, in_pages(IPL));
}

#[test]
fn grr_conforms_with_each_buffer() {
    conforms_with_each_buffer(SECTORS, GRR);
}

#[test]
fn grr_in_whole_pages_conforms_with_each_buffer() {
    conforms_with_each_buffer(PAGES, in_pages(GRR));
}

#[test]
fn only_log_pages_that_matter_are_read_and_it_conforms() {
    conforms_with_each_buffer(SECTORS, Options { log_read: LogRead::Smart, ..GRR });
    conforms_with_each_buffer(PAGES, in_pages(Options { log_read: LogRead::Smart, ..IPL }));
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
fn merges_that_take_changes_along_and_level_wear_conform() {
    for options in [GRR, Options { journal_blocks: 2, ..GRR }, IPL] {
        let options = Options { absorb: true, levelling_gap: Some(1), ..options };
        conforms(SECTORS, options);
        conforms(PAGES, in_pages(options));
    }
}

#[test]
fn nodes_of_two_pages_conform_with_each_buffer() {
    for options in [GRR, IPL] {
        conforms_with_each_buffer(SECTORS, with_two_pages(options));
        conforms_with_each_buffer(PAGES, in_pages(with_two_pages(options)));
    }
}

#[test]
fn nodes_of_two_and_three_pages_in_real_use_conform() {
    let product = Options {
        log_pages: LogPages::Adaptive(1),
        log_read: LogRead::Smart,
        group: GroupSize::Dynamic(4),
        journal_blocks: 2,
        absorb: true,
        levelling_gap: Some(2),
        ..with_two_pages(GRR)
    };
    let three = Options { node_pages: 3, log_pages_max: 3, buffer_size: 4096, ..product };
    let all = Options { log_pages: LogPages::Opportunistic(2), log_read: LogRead::All, ..three };
    let strings = Options { cells: Cells::Bytes, ..three };
    let space =
        Space { keys: KeyKind::Bytes(20), key_count: 300, value_size_min: 0, value_size_max: 16, operations_max: 120 };
    for (chip, layout) in [(SECTORS, Layout::Sectors), (PAGES, Layout::Pages)] {
        let of = |options| Options { layout, ..options };
        conforms(chip, of(product));
        conforms(with_long_blocks(chip), of(three));
        conforms(with_long_blocks(chip), of(all));
        conformance(space, CASES, || Held::new(with_long_blocks(chip).with_blocks(200), of(strings)));
    }
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

/// Changes that go along in the log pages of others leave units of the buffer with nothing in them, which are given back.
#[test]
fn a_buffer_with_few_syncs_is_no_reason_to_be_full() {
    let options = Options {
        cells: Cells::Fixed { key: 4, value: 4 },
        buffer_size: 56 * 2560,
        log_pages_max: 16,
        ..Options::DEFAULT
    };
    let mut held = Held::new(Chip::W25N01GV.with_blocks(40), options);
    let index = held.get_mut();
    for number in 0..75_000_u32 {
        let key = number.wrapping_mul(0x9E37_79B9);
        assert!(!index.put(&key.to_be_bytes(), &number.to_be_bytes()).unwrap(), "{number}");
        if number.is_multiple_of(4096) {
            index.sync().unwrap();
        }
    }
}

#[test]
fn what_is_there_is_replaced_and_what_is_not_is_inserted() {
    let mut held = Held::new(PAGES, in_pages(GRR));
    let index = held.get_mut();
    let key = 7_u32.to_be_bytes();
    assert!(!index.replace(&key, b"none").unwrap());
    assert_eq!(index.get(&key).unwrap(), None);
    assert!(index.insert_if_absent(&key, b"once").unwrap());
    assert!(!index.insert_if_absent(&key, b"more").unwrap());
    assert_eq!(index.get(&key).unwrap(), Some(&b"once"[..]));
    assert!(index.replace(&key, b"anew").unwrap());
    index.sync().unwrap();
    held.reopen_with(|index| index.abandon());
    assert_eq!(held.get_mut().get(&key).unwrap(), Some(&b"anew"[..]));
}
