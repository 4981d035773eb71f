//! Calls that are refused, and what they say.

use nandu::{Cursor, Edit, Error, Options, Store};
use nandu_sim::{Chip, Sim, SimError};

use super::values::pattern;

#[test]
fn wrong_calls_are_refused_by_name() {
    let options = Options::DEFAULT;
    let geometry = Chip::TINY.with_blocks(48).geometry;
    let mut memory = vec![0; Store::<Sim>::memory_required(&geometry, &options)];
    let mut buffer = vec![0; 256];
    let chip = || Sim::new(Chip::TINY.with_blocks(48));
    let formatted = |memory: &mut [u8]| Store::format(chip(), options, memory).unwrap().unmount().unwrap();
    let mut errors: Vec<Error<SimError>> = Vec::new();
    errors.extend(Store::open(chip(), options, &mut memory).err());
    let other = Options { volume: Some(7), ..options };
    errors.extend(Store::open(formatted(&mut memory), other, &mut memory).err());
    let of_integers = nandu::FixedCells::<4, 4>;
    errors.extend(Store::open_with(formatted(&mut memory), of_integers, options, &mut memory).err());
    let streams = Options { stream_count: Some(9), ..options };
    errors.extend(Store::format(chip(), streams, &mut memory).err());
    let small = Store::format(chip(), options, &mut memory[..100]).err();
    assert!(matches!(small, Some(nandu::Error::Memory { .. })));
    let mut store = Store::open(formatted(&mut memory), options, &mut memory).unwrap();
    let long = vec![1; store.key_size_max() + 1];
    let too_long = Cursor::below(&long);
    store.put(b"large", &pattern(900, 1)).unwrap();
    errors.extend(store.get(&long).err());
    errors.extend(store.get(b"large").err());
    errors.extend(store.put(&long, b"").err());
    errors.extend(store.delete(&long).err());
    errors.extend(store.value_len(&long).err());
    errors.extend(store.read(&long, 0, &mut []).err());
    errors.extend(store.put(b"k", &vec![0; (16 << 20) + 1]).err());
    errors.extend(store.next(&mut too_long.clone()).err());
    errors.extend(store.previous(&mut too_long.clone()).err());
    errors.extend(store.writer(&long, 3, &mut buffer).err());
    errors.extend(store.writer(b"k", 3, &mut buffer[1..]).err());
    errors.extend(store.writer(b"k", 3, &mut buffer).unwrap().write(b"four").err());
    errors.extend(store.writer(b"k", 3, &mut buffer).unwrap().finish().err());
    errors.extend(store.writer(b"k", 999, &mut buffer).unwrap().finish().err());
    let edit = |key, value| Edit { key, value: Some(value) };
    errors.extend(store.batch(&[edit(b"b", b""), edit(b"a", b"")]).err());
    errors.extend(store.batch(&[edit(b"b", b""), edit(b"b", b"")]).err());
    errors.extend(store.batch(&[edit(b"b", b""), edit(&long, b"")]).err());
    errors.extend(store.batch(&[edit(b"b", &[0; 500])]).err());
    errors.extend(store.load([("a", "1"), ("b", "2"), ("b", "3")]).err());
    let many = (0..40_u8).map(|number| ([number % 39], [1]));
    errors.extend(store.load(many).err());
    assert_eq!(store.record_count(), 39 + 3, "a load stops at what is wrong");
    store.put(b"j", &pattern(30_000, 1)).unwrap();
    errors.push(store.put(b"k", &pattern(30_000, 1)).expect_err("the chip is too small for both"));
    let key = Error::KeySize(14);
    let expected = [
        Error::NotFormatted,
        Error::OtherFormat { what: "volume id" },
        Error::OtherFormat { what: "cells" },
        Error::Unsuitable { what: "stream count outside 2 to 8" },
        // A key that is too long, and a large value that is to be lent; all calls that take a key.
        key,
        Error::LargeValue(900),
        key,
        key,
        key,
        key,
        Error::ValueSize((16 << 20) + 1),
        key,
        key,
        key,
        // A buffer of less than a page; too many bytes, too few, and none of a large value.
        Error::Memory { required: 256 },
        Error::ValueSize(4),
        Error::ValueSize(0),
        Error::ValueSize(0),
        Error::NotAscending(1),
        Error::NotAscending(1),
        key,
        Error::ValueSize(500),
        Error::NotAscending(2),
        Error::NotAscending(39),
        Error::Full,
    ];
    assert_eq!(errors, expected);
}
