//! Sizing: how much memory a store and a file system take on which chip, and what more memory saves.
//!
//! `cargo run -p nandu --example sizing`

use std::error::Error;

use nandu::fs::{self, Fs};
use nandu::{Durability, Options, Store};
use nandu_sim::{Chip, Sim};

const RECORDS: u32 = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    what_it_takes();
    what_a_cache_saves()?;
    what_pending_changes_save()
}

/// Bytes of memory to hand over, known at compile time. `Store` itself takes some bytes more, and the stack is yours.
fn what_it_takes() {
    const SMALL: Options = Options { cache_size: 1024, ..Options::DEFAULT };
    println!("bytes to hand over                  W25N01GV, 128 MiB   W25N02KV, 256 MiB");
    let row = |what: &str, of: &dyn Fn(Chip) -> usize| {
        let (one, two) = (of(Chip::W25N01GV), of(Chip::W25N02KV));
        println!("  {what:<32} {one:>18}  {two:>18}");
        (one, two)
    };
    let (small, larger_chip) =
        row("store, 1 KiB for nodes", &|chip| Store::<Sim>::memory_required(&chip.geometry, &SMALL));
    row("store, 8 KiB (the default)", &|chip| Store::<Sim>::memory_required(&chip.geometry, &Options::DEFAULT));
    let files = fs::Options::default();
    row("files, by default", &|chip| Fs::<Sim>::memory_required(&chip.geometry, &files));

    // More blocks take more, since the log keeps some bytes for each. Everything else is the same.
    assert!(small < 24 * 1024 && small < larger_chip);
    // The other way round: from memory to options.
    let options = Options::DEFAULT.fit::<Sim>(&Chip::W25N01GV.geometry, 32 * 1024);
    assert!(
        options.is_some_and(|options| Store::<Sim>::memory_required(&Chip::W25N01GV.geometry, &options) <= 32 * 1024)
    );
}

/// Reads of a get by the memory for nodes, among 20,000 records of 12 bytes.
fn what_a_cache_saves() -> Result<(), Box<dyn Error>> {
    println!("cache_size   page reads for a get");
    let mut reads = Vec::new();
    for cache_size in [0, 1024, 8 * 1024, 64 * 1024] {
        let options = Options { cache_size, ..Options::DEFAULT };
        let chip = Sim::new(Chip::W25N01GV);
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let mut store = Store::format(chip, options, &mut memory)?;
        store.load((0..RECORDS).map(|number| (number.to_be_bytes(), [0; 8])))?;
        let before = store.nand().counters().reads;
        for number in 0..RECORDS {
            store.get(&(number.wrapping_mul(7_919) % RECORDS).to_be_bytes())?;
        }
        let for_a_get = (store.nand().counters().reads - before) as f64 / f64::from(RECORDS);
        println!("  {cache_size:>8}   {for_a_get:.2}");
        reads.push(for_a_get);
    }
    assert!(reads.is_sorted_by(|less, more| less >= more), "more memory never costs reads: {reads:?}");
    assert!(reads[3] < 1.01, "with all inner nodes in memory a get reads one page");
    Ok(())
}

/// Programs of a change by the memory for changes, a sync after every 16th.
fn what_pending_changes_save() -> Result<(), Box<dyn Error>> {
    println!("pending_size   page programs for a change, 16 to a sync");
    let mut programs = Vec::new();
    for pending_size in [1024, 4 * 1024, 32 * 1024] {
        let options = Options { durability: Durability::OnSync, pending_size, ..Options::DEFAULT };
        let chip = Sim::new(Chip::W25N01GV);
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let mut store = Store::format(chip, options, &mut memory)?;
        store.load((0..RECORDS).map(|number| (number.to_be_bytes(), [0; 8])))?;
        let before = store.stats().programs_total();
        for number in 1..=RECORDS {
            store.put(&(number.wrapping_mul(7_919) % RECORDS).to_be_bytes(), &[1; 8])?;
            if number.is_multiple_of(16) {
                store.sync()?;
            }
        }
        let for_a_change = (store.stats().programs_total() - before) as f64 / f64::from(RECORDS);
        println!("  {pending_size:>10}   {for_a_change:.3}");
        programs.push(for_a_change);
    }
    assert!(programs[2] < programs[0], "more memory saves programs: {programs:?}");
    Ok(())
}
