//! What large values cost, and the room that is kept for moving them.

use nandu::nand::Cause;
use nandu::{Options, Store};
use nandu_sim::{Chip, Sim};

use super::values::{check_sound, formatted, memory, model, pattern};

const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

/// Why the limit is where it is: see the tree's module on values.
#[test]
fn a_value_costs_less_in_its_leaf_than_in_a_page_as_long_as_a_leaf_takes_it() {
    let chip = formatted(Chip::W25N01GV.with_blocks(64));
    let mut bytes = memory(&chip);
    let limit = Store::open(chip, OPTIONS, &mut bytes).unwrap().entry_size_max() - 4;
    for size in [100, 200, 300, 400, limit, limit + 1, 700] {
        let chip = formatted(Chip::W25N01GV.with_blocks(64));
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        let key = |number: u32| (number.wrapping_mul(0x9E37_79B1)).to_be_bytes();
        for number in 0..500 {
            store.put(&key(number), &pattern(size, number)).unwrap();
        }
        let pages = f64::from(store.stats().live_pages) / 500.0;
        let host = |store: &Store<'_, Sim>| {
            let stats = store.stats();
            [Cause::Host, Cause::Tree, Cause::Value].map(|cause| stats.programs_for(cause)).iter().sum::<u64>()
        };
        let before = host(&store);
        for number in 0..1000 {
            store.put(&key(number * 7 % 500), &pattern(size, number)).unwrap();
        }
        let programs = (host(&store) - before) as f64 / 1000.0;
        let (programs_max, pages_max) = if size <= limit { (1.02, 0.45) } else { (2.02, 1.1) };
        assert!(programs <= programs_max && pages <= pages_max, "{size} bytes: {programs} programs, {pages} pages");
    }
}

#[test]
fn a_chip_filled_beside_large_values_after_the_store_was_opened_again_can_be_emptied() {
    let chip = formatted(Chip::W25N01GV.with_blocks(48));
    let mut memory = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
    for key in [b"a", b"b", b"c"] {
        store.put(key, &pattern(20_000, 1)).unwrap();
    }
    let chip = store.unmount().unwrap();
    let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
    let mut count = 0_u16;
    let refusal = loop {
        match store.put(&count.to_be_bytes(), &[7; 390]) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refusal, nandu::Error::Full);
    for number in (0..count).rev() {
        assert!(store.delete(&number.to_be_bytes()).unwrap());
    }
    for key in [b"a", b"b", b"c"] {
        assert!(store.delete(key).unwrap());
    }
    assert_eq!(store.record_count(), 0);
    check_sound(&mut store);
}

#[test]
fn the_collector_moves_values_on_a_crowded_chip() {
    let tiny = Chip::TINY.with_blocks(64);
    let chip = Chip::W25N01GV.with_blocks(64);
    for (chip, seed, keys, pages_max) in
        [(tiny, 10, 300, 6), (tiny, 11, 300, 2), (chip, 12, 1600, 4), (chip, 13, 300, 40)]
    {
        let outcome = model(chip, seed, 2400, keys, pages_max, 0.9);
        assert!(outcome.moved > 100, "seed {seed}: {} pages moved", outcome.moved);
        // On the small chip they were refused many times, and never before half was full.
        assert!(chip != tiny || outcome.full > 100, "seed {seed}: {} puts refused", outcome.full);
        assert!(outcome.least > 0.5, "seed {seed}: full at {}", outcome.least);
    }
}
