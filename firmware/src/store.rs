//! Records of byte strings and of integers: log, tree and store with everything they can do.

use core::ops::{Bound, ControlFlow};

use nandu::nand::NandErrorKind;
use nandu::{Direction, Edit, Error, Map, Options, Store};

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};

/// 8 bytes for each of 1024 blocks, five page buffers, a kilobyte of cache and the tables.
const MEMORY_SIZE: usize = 20 * 1024;

const OPTIONS: Options = Options { cache_size: 1024, ..Options::DEFAULT };

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    let outcome = if number & 1 == 0 { records(&mut memory, number) } else { integers(&mut memory, number) };
    outcome.unwrap_or(0)
}

fn records(memory: &mut [u8], number: u32) -> Result<u32, Error<NandErrorKind>> {
    let mut store = match number & 2 {
        0 => Store::format(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
        _ => Store::open(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
    };
    let key = number.to_be_bytes();
    store.put(&key, b"value")?;
    store.batch(&[Edit { key: &key, value: None }])?;
    store.delete(&key)?;
    store.idle(1)?;
    let mut count = 0;
    for direction in [Direction::Forward, Direction::Backward] {
        store.range(Bound::Included(&key), Bound::Unbounded, direction, |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
    }
    let found = store.get(&key)?.map_or(0, |value| value.len() as u32);
    store.unmount()?;
    Ok(found + count)
}

fn integers(memory: &mut [u8], number: u32) -> Result<u32, Error<NandErrorKind>> {
    let mut map: Map<_, u32, 4, u32, 4> = Map::open(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?;
    map.put(number, number)?;
    let mut sum = map.get(number)?.unwrap_or(0);
    map.range(number.., |_, value| sum = sum.wrapping_add(value))?;
    map.delete(number)?;
    map.unmount()?;
    Ok(sum)
}
