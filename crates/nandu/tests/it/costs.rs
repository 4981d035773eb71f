//! What operations cost on the chip, where a user would notice.

use nandu::nand::Cause;
use nandu::{Options, Store};
use nandu_sim::{Chip, Sim};

/// Fills a chip with records of 100 bytes in this order of keys until seven tenths of its room are taken, then updates them
/// at random; returns the programs per page that the user's changes needed, for the load and for the updates.
fn amplification(order: impl Fn(u32) -> u32) -> (f64, f64) {
    let chip = Sim::new(Chip::W25N01GV.with_blocks(96));
    let geometry = chip.chip().geometry;
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory).unwrap();
    let capacity = store.stats().capacity_pages;
    let mut count = 0;
    while store.stats().live_pages * 10 < capacity * 7 {
        store.put(&order(count).to_be_bytes(), &[count as u8; 96]).unwrap();
        count += 1;
    }
    let after_load = store.stats();
    let needed = |stats: &nandu::LogStats| stats.programs_for(Cause::Host) + stats.programs_for(Cause::Tree);
    let load = after_load.programs_total() as f64 / needed(&after_load) as f64;
    let mut random = 12_345_u32;
    for _ in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = ((u64::from(random) * u64::from(count)) >> 32) as u32;
        store.put(&order(number).to_be_bytes(), &[random as u8; 96]).unwrap();
    }
    let after = store.stats();
    let updates =
        (after.programs_total() - after_load.programs_total()) as f64 / (needed(&after) - needed(&after_load)) as f64;
    println!("{count} records, load {load:.3}, updates {updates:.3}");
    (load, updates)
}

#[test]
fn a_chip_loaded_in_the_order_of_keys_is_collected_as_cheaply_as_any() {
    let (load, updates) = amplification(|number| number);
    assert!(load < 1.2, "the load programmed {load} pages for each that it needed");
    assert!(updates < 2.6, "updates programmed {updates} pages for each that they needed");
}

#[test]
fn a_chip_loaded_at_random_is_collected_cheaply() {
    let (load, updates) = amplification(|number| number.wrapping_mul(0x9E37_79B1));
    assert!(load < 1.6, "the load programmed {load} pages for each that it needed");
    assert!(updates < 2.6, "updates programmed {updates} pages for each that they needed");
}

/// A path as file trees have them: long, and alike for a long way.
fn path(number: u32) -> Vec<u8> {
    let (package, folder) = (number / 180, number / 12);
    format!(
        "/usr/share/doc/package-with-a-long-name-{:04}/examples/{:05}-folder/file-number-{number:06}.configuration",
        package.wrapping_mul(2_654_435) % 10_000,
        folder.wrapping_mul(40_503) % 100_000,
    )
    .into_bytes()
}

#[test]
fn long_keys_that_are_alike_for_a_long_way_do_not_make_the_tree_too_high() {
    for is_sorted in [true, false] {
        let chip = Sim::new(Chip::W25N01GV);
        let options = Options { cache_size: 32_768, ..Options::default() };
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let mut store = Store::format(chip, options, &mut memory).unwrap();
        let mut keys: Vec<Vec<u8>> = (0..40_000).map(path).collect();
        if is_sorted {
            keys.sort();
        } else {
            keys.sort_by_key(|key| key.iter().fold(7_u32, |sum, &byte| sum.wrapping_mul(16_777_619) ^ u32::from(byte)));
        }
        for key in &keys {
            store.put(key, b"12 bytes of it").unwrap();
        }
        println!("sorted {is_sorted}: height {}, {:?}", store.height(), store.stats().live_pages);
        assert_eq!(store.record_count(), 40_000);
        assert!(store.height() <= 6, "{} levels", store.height());
    }
}
