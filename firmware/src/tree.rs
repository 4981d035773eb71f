//! The tree on the log.

use core::ops::{Bound, ControlFlow};

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};
use nandu_tree::{ByteCells, Cursor, Direction, Edit, Engine, EngineError, Log, Options, Parts};

use nandu::nand::NandErrorKind;

/// Three pages, 8 KiB of nodes, and the log.
const MEMORY_SIZE: usize = 28 * 1024;

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    records(&mut memory, number).unwrap_or(0)
}

fn records(memory: &mut [u8], number: u32) -> Result<u32, EngineError<NandErrorKind>> {
    let chip = SpiNand::new(ONE_BIT, Pins);
    let options = Options::DEFAULT;
    let mut engine = Engine::unopened(Parts::new(chip, ByteCells, &options, memory)?);
    let begin = if number & 1 == 0 { Log::format } else { Log::mount };
    engine.begin(&options, begin)?;
    let key = number.to_be_bytes();
    engine.put(&key, b"value")?;
    engine.batch(&[Edit { key: b"a", value: None }, Edit { key: &key, value: Some(b"other") }])?;
    let mut sum = engine.get(&key)?.map_or(0, |value| value.len() as u32);
    engine.range(Bound::Unbounded, Bound::Included(&key), Direction::Backward, |entry| {
        sum += entry.value.len() as u32;
        ControlFlow::Continue(())
    })?;
    let mut cursor = Cursor::START;
    sum += engine.next(&mut cursor)?.map_or(0, |entry| entry.key.len() as u32);
    sum += engine.previous(&mut cursor)?.map_or(0, |entry| entry.key.len() as u32);
    engine.delete(&key)?;
    engine.verify(&mut |_| sum += 1)?;
    engine.idle(number)?;
    engine.unmount().map_err(|(error, _)| error)?;
    Ok(sum)
}
