//! The same operations on both hearts, chosen at random: the same answers and the same errors.

use std::ops::{Bound, ControlFlow};

use nandu::nand::{Ecc, Geometry};
use nandu::{Cursor, Direction, Durability, Edit, Entry, Options, next};
use nandu_sim::{Chip, Sim, SimError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::cuts::{number, swarm_seed};
use super::values::pattern;

type Error = nandu::Error<SimError>;
type Key = Vec<u8>;

#[derive(Clone, Debug)]
enum Operation {
    Put(Key, Vec<u8>),
    /// A value in pieces of so many bytes: as many as it said, or one fewer, or more.
    Write(Key, Vec<u8>, usize, isize),
    Delete(Key),
    Batch(Vec<(Key, Option<Vec<u8>>)>),
    Load(Vec<(Key, Vec<u8>)>),
    Get(Key),
    Length(Key),
    Read(Key, usize, usize),
    Range(Bound<Key>, Bound<Key>, bool, usize),
    First,
    Last,
    Place(Cursor),
    Next,
    Previous,
    Count,
    Sync,
}

/// A record as it is lent.
type Lent = (Key, Vec<u8>, Option<usize>);

/// What a call answers: a number, and the records that it lends.
type Answer = Result<(usize, Vec<Lent>), Error>;

fn of(entry: Entry<'_>) -> Lent {
    (entry.key.to_vec(), entry.value.to_vec(), entry.large)
}

fn one(found: Option<Entry<'_>>) -> (usize, Vec<Lent>) {
    (0, found.map(of).into_iter().collect())
}

/// Both stores have these methods, and no trait in common that has them all.
macro_rules! answer {
    ($name:ident, $store:ty) => {
        fn $name(store: &mut $store, cursor: &mut Cursor, operation: &Operation) -> Answer {
            let number = |number: usize| (number, Vec::new());
            match operation {
                Operation::Put(key, value) => store.put(key, value).map(|was_there| number(was_there.into())),
                Operation::Write(key, value, piece, more) => {
                    let mut buffer = vec![0; 2048];
                    let mut writer = store.writer(key, value.len().saturating_add_signed(*more), &mut buffer)?;
                    for piece in value.chunks(*piece) {
                        writer.write(piece)?;
                    }
                    writer.finish().map(|was_there| number(was_there.into()))
                }
                Operation::Delete(key) => store.delete(key).map(|was_there| number(was_there.into())),
                Operation::Batch(edits) => {
                    let edits: Vec<_> =
                        edits.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
                    store.batch(&edits).map(|()| number(0))
                }
                Operation::Load(entries) => {
                    store.load(entries.iter().map(|(key, value)| (key, value))).map(|count| number(count as usize))
                }
                Operation::Get(key) => {
                    Ok((0, store.get(key)?.map(|value| (key.clone(), value.to_vec(), None)).into_iter().collect()))
                }
                Operation::Length(key) => Ok(number(store.value_len(key)?.map_or(0, |length| length + 1))),
                Operation::Read(key, offset, size) => {
                    let mut out = vec![0; *size];
                    let read = store.read(key, *offset, &mut out)?;
                    out.truncate(read.unwrap_or(0));
                    Ok((usize::from(read.is_some()), vec![(key.clone(), out, None)]))
                }
                Operation::Range(from, to, is_forward, count) => {
                    let direction = if *is_forward { Direction::Forward } else { Direction::Backward };
                    let slice = |bound: &Bound<Key>| bound.clone();
                    let (from, to) = (slice(from), slice(to));
                    let mut found = Vec::new();
                    store.range(
                        from.as_ref().map(|key| &key[..]),
                        to.as_ref().map(|key| &key[..]),
                        direction,
                        |entry| {
                            found.push(of(entry));
                            if found.len() < *count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                        },
                    )?;
                    Ok((0, found))
                }
                Operation::First => store.first().map(one),
                Operation::Last => store.last().map(one),
                Operation::Place(place) => {
                    *cursor = *place;
                    Ok(number(0))
                }
                Operation::Next => store.next(cursor).map(one),
                Operation::Previous => store.previous(cursor).map(one),
                Operation::Count => Ok(number(store.record_count() as usize)),
                Operation::Sync => store.sync().map(number_of).and(store.settle()).map(number_of),
            }
        }
    };
}

fn number_of((): ()) -> (usize, Vec<Lent>) {
    (0, Vec::new())
}

answer!(answer_before, nandu::Store<'_, Sim>);
answer!(answer_after, next::Store<'_, Sim>);

/// Draws operations over so many keys, with values of at most so many bytes, of which one in eight is large.
struct Draw {
    random: ChaCha8Rng,
    key_size_max: usize,
    inline_max: usize,
    keys: u32,
    large_max: usize,
}

impl Draw {
    fn key(&mut self) -> Key {
        let number = self.random.random_range(0..self.keys);
        let mut key = number.wrapping_mul(0x9E37_79B1).to_be_bytes()[..2].to_vec();
        match number % 7 {
            0 => key.insert(0, 255),
            1 => key.extend(vec![7; self.key_size_max - 2]),
            2 => key.truncate(1),
            _ => {}
        }
        // One in some hundred calls has a key that is too long, or none.
        match self.random.random_range(0..300) {
            0 => vec![3; self.key_size_max + 1],
            1 => Vec::new(),
            _ => key,
        }
    }

    /// Far enough from the limit between small and large values, which is not the same on both.
    fn small(&mut self, key: &Key) -> Vec<u8> {
        let most = self.inline_max.saturating_sub(key.len());
        let size = self.random.random_range(0..=most.min(40));
        pattern(size, self.random.random())
    }

    fn large(&mut self, key: &Key) -> Vec<u8> {
        let least = (self.inline_max + 16).saturating_sub(key.len());
        let size = self.random.random_range(least..=self.large_max);
        pattern(size, self.random.random())
    }

    fn value(&mut self, key: &Key) -> Vec<u8> {
        if self.random.random_range(0..8) == 0 { self.large(key) } else { self.small(key) }
    }

    fn bound(&mut self) -> Bound<Key> {
        match self.random.random_range(0..4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(self.key()),
            _ => Bound::Included(self.key()),
        }
    }

    /// Keys of a batch: ascending, but one time in twenty.
    fn ascending(&mut self, count: usize) -> Vec<Key> {
        let mut keys: Vec<Key> = (0..count).map(|_| self.key()).collect();
        if self.random.random_range(0..20) > 0 {
            keys.sort();
            keys.dedup();
        }
        keys
    }

    fn operation(&mut self) -> Operation {
        let key = self.key();
        match self.random.random_range(0..100) {
            0..30 => {
                let value = self.value(&key);
                Operation::Put(key, value)
            }
            30..34 => {
                let value = self.value(&key);
                let more = [0, 0, 0, 1, -1][self.random.random_range(0..5)];
                Operation::Write(key, value, self.random.random_range(1..900), more)
            }
            34..48 => Operation::Delete(key),
            48..54 => {
                let count = self.random.random_range(0..12);
                let edits = self.ascending(count).into_iter().map(|key| {
                    let value = match self.random.random_range(0..40) {
                        0 => Some(self.large(&key)),
                        1..16 => None,
                        _ => Some(self.small(&key)),
                    };
                    (key, value)
                });
                Operation::Batch(edits.collect())
            }
            54..56 => {
                let count = self.random.random_range(0..70);
                let entries = self.ascending(count).into_iter().map(|key| {
                    let value = self.small(&key);
                    (key, value)
                });
                Operation::Load(entries.collect())
            }
            56..66 => Operation::Get(key),
            66..70 => Operation::Length(key),
            70..76 => {
                let (offset, size) = (self.random.random_range(0..1500), self.random.random_range(0..1500));
                Operation::Read(key, offset, size)
            }
            76..82 => {
                let (from, to) = (self.bound(), self.bound());
                Operation::Range(from, to, self.random.random(), self.random.random_range(1..60))
            }
            82 => Operation::First,
            83 => Operation::Last,
            84..86 => Operation::Place(match self.random.random_range(0..4) {
                0 => Cursor::START,
                1 => Cursor::END,
                2 => Cursor::below(&key),
                _ => Cursor::above(&key),
            }),
            86..92 => Operation::Next,
            92..97 => Operation::Previous,
            97..99 => Operation::Count,
            _ => Operation::Sync,
        }
    }
}

/// Runs operations in sessions, which end with an unmount or without one.
fn run(chip: Chip, options: Options, seed: u64, operations: u32, keys: u32, large_max: usize) {
    const SESSION: u32 = 400;
    let (mut before, mut after) = (Sim::new(chip), Sim::new(chip));
    let geometry = before.chip().geometry;
    let mut memory = vec![0; nandu::Store::<Sim>::memory_required(&geometry, &options)];
    let mut memory_after = vec![0; next::Store::<Sim>::memory_required(&geometry, &options)];
    before = nandu::Store::format(before, options, &mut memory).unwrap().unmount().unwrap();
    after = next::Store::format(after, options, &mut memory_after).unwrap().unmount().unwrap();
    let random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = Draw { random, key_size_max: 0, inline_max: 0, keys, large_max };
    let (mut cursor, mut cursor_after) = (Cursor::START, Cursor::START);
    for session in 0..operations.div_ceil(SESSION) {
        let mut store = nandu::Store::open(before, options, &mut memory).unwrap();
        let mut store_after = next::Store::open(after, options, &mut memory_after).unwrap();
        assert_eq!(store.key_size_max(), store_after.key_size_max());
        draw.key_size_max = store.key_size_max();
        draw.inline_max = store.entry_size_max().min(store_after.entry_size_max());
        for step in 0..SESSION {
            let operation = draw.operation();
            let wanted = answer_before(&mut store, &mut cursor, &operation);
            let answer = answer_after(&mut store_after, &mut cursor_after, &operation);
            assert_eq!(answer, wanted, "seed {seed}, session {session}, step {step}: {operation:?}");
            assert_ne!(answer, Err(nandu::Error::Full), "the chips are large enough");
            assert_eq!(cursor, cursor_after);
        }
        if session % 8 == 0 {
            let mut violations = Vec::new();
            store_after.verify(&mut |violation| violations.push(violation)).unwrap();
            assert_eq!(violations, [], "seed {seed}, session {session}");
        }
        if options.durability == Durability::OnSync {
            store_after.sync().unwrap();
        }
        before = store.unmount().unwrap();
        after = if session % 2 == 0 { store_after.abandon() } else { store_after.unmount().unwrap() };
    }
}

const OPTIONS: Options = Options { cache_size: 1024, ..Options::DEFAULT };

#[test]
fn both_hearts_give_the_same_answers() {
    for seed in 0..4 {
        run(Chip { ..super::heart::SMALL }.with_blocks(64), OPTIONS, seed, 2_500, 120, 1_500);
        run(Chip::W25N01GV.with_blocks(64), OPTIONS, 10 + seed, 2_500, 900, 12_000);
    }
}

/// A chip of other pages than a preset has.
fn with_pages_of(page_size: u32, chip: Chip) -> Chip {
    let geometry = Geometry { page_size, program_unit: page_size, spare_size: page_size / 16, ..chip.geometry };
    let geometry = Geometry { ecc: Ecc { codeword_size: 512, ..geometry.ecc }, ..geometry };
    Chip { geometry, ..chip }
}

/// The full form: as many operations as somebody asks for, in runs of 5,000, on pages of 512 bytes to 4 KiB, with changes durable one by one and together. See
/// TESTING.md.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    const RUN: u64 = 5_000;
    let operations = number("NANDU_SWARM_CASES", 1_000_000);
    let chips = [
        (with_pages_of(512, Chip::TINY.with_blocks(256)), 120, 900),
        (super::heart::SMALL.with_blocks(64), 120, 1_500),
        (Chip::W25N01GV.with_blocks(64), 900, 12_000),
        (with_pages_of(4096, Chip::W25N01GV.with_blocks(48)), 1_500, 20_000),
    ];
    let on_sync = Options { durability: Durability::OnSync, pending_size: 1_500, ..OPTIONS };
    let kinds = [OPTIONS, on_sync, Options { pending_size: 300, ..on_sync }];
    for nth in 0..operations.div_ceil(RUN) {
        let (chip, keys, large_max) = chips[nth as usize % chips.len()];
        let options = kinds[nth as usize % kinds.len()];
        run(chip, options, swarm_seed() * 1_000_000 + nth, RUN as u32, keys, large_max);
        println!("{} operations: the same answers", (nth + 1) * RUN);
    }
}

#[test]
fn both_hearts_refuse_the_same_wrong_calls_alike() {
    let options = Options::DEFAULT;
    let geometry = Chip::TINY.with_blocks(48).geometry;
    let required = nandu::Store::<Sim>::memory_required(&geometry, &options);
    let mut memory = vec![0; required.max(next::Store::<Sim>::memory_required(&geometry, &options))];
    let mut buffer = vec![0; 256];
    macro_rules! errors {
        ($store:ident) => {{
            let chip = || Sim::new(Chip::TINY.with_blocks(48));
            let formatted = |memory: &mut [u8]| $store::format(chip(), options, memory).unwrap().unmount().unwrap();
            let mut errors: Vec<Error> = Vec::new();
            errors.extend($store::open(chip(), options, &mut memory).err());
            let other = Options { volume: Some(7), ..options };
            errors.extend($store::open(formatted(&mut memory), other, &mut memory).err());
            let of_integers = nandu::FixedCells::<4, 4>;
            errors.extend($store::open_with(formatted(&mut memory), of_integers, options, &mut memory).err());
            let streams = Options { stream_count: Some(9), ..options };
            errors.extend($store::format(chip(), streams, &mut memory).err());
            let small = $store::format(chip(), options, &mut memory[..100]).err();
            assert!(matches!(small, Some(nandu::Error::Memory { .. })));
            let mut store = $store::open(formatted(&mut memory), options, &mut memory).unwrap();
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
            errors
        }};
    }
    use nandu::Store as Before;
    use next::Store as After;
    // What is not possible is said in other words.
    let without_words = |error: Error| match error {
        Error::Unsuitable { .. } => Error::Unsuitable { what: "" },
        error => error,
    };
    let [before, after] =
        [errors!(Before), errors!(After)].map(|errors| errors.into_iter().map(without_words).collect::<Vec<_>>());
    assert_eq!(after, before);
    assert_eq!(before.len(), 25);
}

#[test]
fn what_is_not_built_yet_is_refused_by_name() {
    let chip = || Sim::new(Chip::TINY);
    let options = Options { mode: nandu::nand::CellMode::Mlc, ..Options::DEFAULT };
    let mut memory = vec![0; next::Store::<Sim>::memory_required(&chip().chip().geometry, &options)];
    let error = next::Store::format(chip(), options, &mut memory).expect_err("it is not built");
    let is_named = error.to_string().contains("two bits a cell");
    assert!(matches!(error, nandu::Error::Unsuitable { .. }) && is_named, "{error}");
}
