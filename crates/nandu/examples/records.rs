//! Records: put, get, delete, list, and find everything again after the chip was closed.
//!
//! `cargo run -p nandu --example records`

use std::error::Error;
use std::ops::{Bound, ControlFlow};

use nandu::{Direction, Options, Store};
use nandu_sim::{Chip, Sim};

fn main() -> Result<(), Box<dyn Error>> {
    // A simulated chip of 128 MiB. On a board a driver stands here, such as that of `nandu-spi`.
    let chip = Sim::new(Chip::W25N01GV);

    // The store asks for its memory once and never again. In firmware this is a `static`.
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];

    // `format` is for the first time; later `open` finds what is there.
    let mut store = Store::format(chip, options, &mut memory)?;

    // Durable when it returns. The answer says whether the key was there before.
    assert!(!store.put(b"sensor/1", b"21.5 C")?);
    assert!(store.put(b"sensor/1", b"21.6 C")?);
    store.put(b"sensor/2", b"19.0 C")?;
    store.put(b"name", b"kitchen")?;

    // A value is lent until the next call, so nothing is copied that you do not copy.
    assert_eq!(store.get(b"sensor/1")?, Some(&b"21.6 C"[..]));
    assert_eq!(store.get(b"sensor/9")?, None);
    assert!(store.delete(b"name")?);

    // Keys are sorted as bytes are. A range goes either way, and stops where you say.
    let mut seen = Vec::new();
    store.range(Bound::Included(b"sensor/"), Bound::Excluded(b"sensor0"), Direction::Forward, |entry| {
        seen.push(String::from_utf8_lossy(entry.key).into_owned());
        ControlFlow::Continue(())
    })?;
    assert_eq!(seen, ["sensor/1", "sensor/2"]);

    // Closed and opened again: `unmount` gives the chip back.
    let chip = store.unmount()?;
    let mut store = Store::open(chip, options, &mut memory)?;
    assert_eq!(store.record_count(), 2);
    assert_eq!(store.get(b"sensor/2")?, Some(&b"19.0 C"[..]));
    println!("{} records, {} pages programmed in all", store.record_count(), store.nand().counters().programs);
    Ok(())
}
