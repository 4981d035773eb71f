//! The calls of a store.

use nandu::ByteCells;
use nandu_budget::records::{OPTIONS, Outcome, Store};
use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};

const MEMORY_SIZE: usize = 32 * 1024;

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    records(&mut memory, number).unwrap_or(0)
}

fn records(memory: &mut [u8], number: u32) -> Outcome<u32> {
    let mut place = None;
    Store::open_in(&mut place, SpiNand::new(ONE_BIT, Pins), ByteCells, OPTIONS, memory)?;
    let Some(store) = &mut place else { return Ok(0) };
    let key = number.to_be_bytes();
    store.put(&key, &[number as u8; 40])?;
    store.delete(&key)?;
    let count = store.get(&key)?.map_or(0, |value| value.len() as u32);
    #[cfg(not(feature = "min"))]
    let count = count + every(store, number)?;
    #[cfg(not(feature = "min"))]
    again(&mut place)?;
    Ok(count)
}

/// What the smallest store does not have.
#[cfg(not(feature = "min"))]
fn every(store: &mut Store<'_, SpiNand<Pins>>, number: u32) -> Outcome<u32> {
    use core::ops::{Bound, ControlFlow};

    use nandu::{Direction, Edit};

    let key = number.to_be_bytes();
    let key = key.as_slice();
    let edits = [Edit { key, value: None }, Edit { key: &[0xff; 5], value: Some(&[1]) }];
    store.batch(&edits[..1 + number as usize % 2])?;
    let mut count = 0;
    for direction in [Direction::Forward, Direction::Backward] {
        store.range(Bound::Included(key), Bound::Unbounded, direction, |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
    }
    #[cfg(any(feature = "store", feature = "all"))]
    {
        count += snapshot(store, key)?;
    }
    store.sync()?;
    let mut buffer = [0; 2048];
    let mut writer = store.writer(key, 6_000, &mut buffer)?;
    writer.write(&[1; 100])?;
    writer.finish()?;
    count += store.read(key, 5, &mut buffer)?.unwrap_or(0) as u32;
    store.merge()?;
    store.idle(1)?;
    Ok(count)
}

/// A snapshot is taken, read and released.
#[cfg(any(feature = "store", feature = "all"))]
fn snapshot(store: &mut Store<'_, SpiNand<Pins>>, key: &[u8]) -> Outcome<u32> {
    use core::ops::{Bound, ControlFlow};

    let before = store.snapshot()?;
    let mut count = store.at(&before).get(key)?.map_or(0, |value| value.len() as u32);
    store.at(&before).range(Bound::Included(key), Bound::Unbounded, nandu::Direction::Forward, |_| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    store.release(before)?;
    Ok(count)
}

/// Ends a store and begins one.
#[cfg(not(feature = "min"))]
fn again(place: &mut Option<Store<'_, SpiNand<Pins>>>) -> Outcome<()> {
    Store::unmount_in(place)?;
    let mut memory = [0; MEMORY_SIZE];
    let mut place = None;
    Store::format_in(&mut place, SpiNand::new(ONE_BIT, Pins), ByteCells, OPTIONS, &mut memory)?;
    Store::unmount_in(&mut place)
}
