//! The in-page-logging index: everything it can do, with keys of one width.

use core::ops::{Bound, ControlFlow};

use nandu_inpage::{Cells, Direction, Error, InPage, Options};
use nandu_nand::NandErrorKind;

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};

/// Enough for some hundred nodes; the exact number depends on the part.
const MEMORY_SIZE: usize = 192 * 1024;

const OPTIONS: Options = Options {
    cells: Cells::Fixed { key: 4, value: 4 },
    node_count_max: Some(512),
    buffer_size: 16 * 1024,
    ..Options::DEFAULT
};

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    records(&mut memory, number).unwrap_or(0)
}

fn records(memory: &mut [u8], number: u32) -> Result<u32, Error<NandErrorKind>> {
    let mut index = match number & 2 {
        0 => InPage::format(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
        _ => InPage::open(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
    };
    let key = number.to_be_bytes();
    index.put(&key, &key)?;
    index.put_blind(&key, &key)?;
    index.sync()?;
    let mut count = 0;
    for direction in [Direction::Forward, Direction::Backward] {
        index.range(Bound::Included(&key), Bound::Unbounded, direction, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
    }
    index.delete(&key)?;
    let found = index.get(&key)?.map_or(0, |value| value.len() as u32);
    index.unmount()?;
    Ok(found + count)
}
