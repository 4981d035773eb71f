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
