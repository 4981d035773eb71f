//! A snapshot: the store as it was, while it changes; here for a backup that takes its time.
//!
//! `cargo run -p nandu --example snapshot`

use std::error::Error;
use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Options, Store};
use nandu_sim::{Chip, Sim};

fn main() -> Result<(), Box<dyn Error>> {
    let chip = Sim::new(Chip::W25N01GV);
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory)?;
    for number in 0..500_u32 {
        store.put(&number.to_be_bytes(), b"before")?;
    }

    // One page program, whatever the store holds; nothing is copied.
    let programs = store.stats().programs_total();
    let monday = store.snapshot()?;
    assert_eq!(store.stats().programs_total() - programs, 1);

    // The store goes on.
    store.put(&7_u32.to_be_bytes(), b"after")?;
    store.delete(&8_u32.to_be_bytes())?;

    // It survives that the power goes: a snapshot is found again among those of the store.
    let chip = store.abandon();
    let mut store = Store::open(chip, options, &mut memory)?;
    let found = store.snapshots().next();
    assert_eq!(found, Some(monday));

    // What was there then, and what is there now.
    let mut copied = 0;
    store.at(&monday).range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        assert_eq!(entry.value, b"before");
        copied += 1;
        ControlFlow::Continue(())
    })?;
    assert_eq!((copied, store.record_count()), (500, 499));
    assert_eq!(store.get(&7_u32.to_be_bytes())?, Some(&b"after"[..]));

    // While it is kept, nothing that it holds is freed. Release it when the backup is done.
    store.release(monday)?;
    assert_eq!(store.snapshots().len(), 0);
    println!("{copied} records as they were, {} as they are", store.record_count());
    Ok(())
}
