//! A cursor: one record after the other in either direction, while the store is changed. Here a log forgets its oldest lines.
//!
//! `cargo run -p nandu --example cursor`

use std::error::Error;

use nandu::{Cursor, Options, Store};
use nandu_sim::{Chip, Sim};

/// Lines that the log keeps.
const KEPT: u64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let chip = Sim::new(Chip::W25N01GV);
    let options = Options::default();
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory)?;

    for second in 0..250_u32 {
        // The highest byte first: then keys are in the order of the numbers.
        store.put(&second.to_be_bytes(), b"all is well")?;

        // A cursor borrows nothing, so what it stands at may be deleted. The key is lent until the next call: copy it.
        let mut oldest = Cursor::START;
        while store.record_count() > KEPT {
            let Some(entry) = store.next(&mut oldest)? else { break };
            let key: [u8; 4] = entry.key.try_into()?;
            store.delete(&key)?;
        }
    }
    assert_eq!(store.record_count(), KEPT);

    // From the newest line backwards.
    let mut cursor = Cursor::END;
    let mut newest = Vec::new();
    while let Some(entry) = store.previous(&mut cursor)? {
        newest.push(u32::from_be_bytes(entry.key.try_into()?));
        if newest.len() == 3 {
            break;
        }
    }
    assert_eq!(newest, [249, 248, 247]);

    // From a key on, whether it is there or not: second 40 was forgotten long ago.
    let mut cursor = Cursor::below(&40_u32.to_be_bytes());
    let first = store.next(&mut cursor)?.map(|entry| entry.key.to_vec());
    assert_eq!(first, Some(150_u32.to_be_bytes().to_vec()));
    println!("the newest are {newest:?}, the oldest is 150");
    Ok(())
}
