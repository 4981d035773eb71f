//! Snapshots of stores.

use core::ffi::c_int;

use nandu::Snapshot;

use crate::border::{Buffer, In, Out};
use crate::error::{Answer, Code, count, status};
use crate::store::{Inner, copy};
use crate::volume::Handle;

/// The snapshot of a number.
pub(crate) fn snapshot_of(store: &Inner, number: u32) -> Answer<Snapshot> {
    store.snapshots().find(|snapshot| snapshot.number() == number).ok_or(Code::NO_SNAPSHOT)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_snapshot(store: Handle<Inner>, snapshot: Out<u32>) -> c_int {
    status(store.with(|store| {
        snapshot.check()?;
        snapshot.set(store.snapshot()?.number())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_release(store: Handle<Inner>, snapshot: u32) -> c_int {
    status(store.with(|store| {
        let snapshot = snapshot_of(store, snapshot)?;
        Ok(store.release(snapshot)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_snapshots(store: Handle<Inner>, mut snapshots: Out<u32>, capacity: usize) -> c_int {
    count(
        store.with(|store| tell_numbers(store.snapshots().map(|snapshot| snapshot.number()), &mut snapshots, capacity)),
    )
}

/// Tells numbers as far as there is room; returns how many there are.
pub(crate) fn tell_numbers(
    all: impl ExactSizeIterator<Item = u32>,
    numbers: &mut Out<u32>,
    capacity: usize,
) -> Answer<usize> {
    let there = all.len();
    for (place, number) in numbers.slice(capacity)?.iter_mut().zip(all) {
        place.write(number);
    }
    Ok(there)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_get_at(
    store: Handle<Inner>,
    snapshot: u32,
    key: In,
    key_size: usize,
    mut buffer: Buffer,
    buffer_size: usize,
) -> i32 {
    count(store.with(|store| {
        let (key, buffer) = (key.bytes(key_size)?, buffer.bytes(buffer_size)?);
        let snapshot = snapshot_of(store, snapshot)?;
        let mut at = store.at(&snapshot);
        match at.get(key) {
            Ok(value) => copy(value, buffer),
            Err(nandu::Error::LargeValue(size)) if size <= buffer.len() => {
                at.read(key, 0, buffer)?.ok_or(Code::NOT_FOUND)
            }
            Err(error) => Err(error.into()),
        }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_read_at(
    store: Handle<Inner>,
    snapshot: u32,
    key: In,
    key_size: usize,
    offset: usize,
    mut buffer: Buffer,
    buffer_size: usize,
) -> i32 {
    count(store.with(|store| {
        let buffer = buffer.bytes(buffer_size)?;
        let snapshot = snapshot_of(store, snapshot)?;
        store.at(&snapshot).read(key.bytes(key_size)?, offset, buffer)?.ok_or(Code::NOT_FOUND)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_digest_at(store: Handle<Inner>, snapshot: u32, digest: Out<u64>) -> c_int {
    status(store.with(|store| {
        digest.check()?;
        let snapshot = snapshot_of(store, snapshot)?;
        digest.set(store.at(&snapshot).digest()?)
    }))
}
