//! Batches: several changes that are there together or not at all, and changes that wait for a sync because that costs less.
//!
//! `cargo run -p nandu --example batches`

use std::error::Error;

use nandu::{Durability, Edit, Options, Store};
use nandu_sim::{Chip, Sim, Tear};

fn main() -> Result<(), Box<dyn Error>> {
    both_or_neither()?;
    together_at_a_sync()
}

/// A batch of which one page program is cut.
fn both_or_neither() -> Result<(), Box<dyn Error>> {
    let chip = Sim::new(Chip::W25N01GV);
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory)?;
    store.put(b"left", b"10")?;
    store.put(b"right", b"0")?;

    // The power goes while the batch is programmed, and half of the bits are there.
    let now = store.nand().operation_count();
    store.nand_mut().cut_at(now, Tear::SomeBits);
    let moved = [Edit { key: b"left", value: Some(b"3") }, Edit { key: b"right", value: Some(b"7") }];
    assert!(store.batch(&moved).is_err());

    let mut chip = store.abandon();
    chip.power_on();
    let mut store = Store::open(chip, options, &mut memory)?;
    assert_eq!(store.get(b"left")?, Some(&b"10"[..]));
    assert_eq!(store.get(b"right")?, Some(&b"0"[..]));

    // Now it is made wholly.
    store.batch(&moved)?;
    assert_eq!(store.get(b"left")?, Some(&b"3"[..]));
    assert_eq!(store.get(b"right")?, Some(&b"7"[..]));
    Ok(())
}

/// The price of 4,096 changes of 1,000 records, made durable one by one and 16 at a time.
fn together_at_a_sync() -> Result<(), Box<dyn Error>> {
    let mut programs = [0.0; 2];
    for (programs, sync_after) in programs.iter_mut().zip([1, 16]) {
        // Changes that wait need memory of their own.
        let durability = if sync_after == 1 { Durability::Immediate } else { Durability::OnSync };
        let options = Options { durability, pending_size: 16 * 1024, ..Options::default() };
        let chip = Sim::new(Chip::W25N01GV);
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let mut store = Store::format(chip, options, &mut memory)?;

        let before = store.stats().programs_total();
        for number in 1..=4_096_u32 {
            let key = (number * 37 % 1_000).to_be_bytes();
            store.put(&key, &number.to_be_bytes())?;
            if sync_after > 1 && number.is_multiple_of(sync_after) {
                // All changes up to here are durable when this returns.
                store.sync()?;
            }
        }
        *programs = (store.stats().programs_total() - before) as f64 / 4_096.0;
        println!("durable after every {sync_after:>2}: {programs:.3} page programs for a change");
    }
    assert!(programs[0] < 1.02, "one program for a durable change, and little for housekeeping");
    assert!(programs[1] < programs[0] / 2.0, "less where changes share a program");
    Ok(())
}
