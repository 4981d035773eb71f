//! Random lives of stores whose changes wait in little memory: a delete is never refused, and what is deleted makes room.

use std::collections::BTreeMap;

use nandu::{Durability, Options, Store};
use nandu_sim::{Chip, Sim, SimError};
use nandu_suite::{Refused, live_all, lives_asked_for};

use super::liveness::serves_again;
use super::values::{check_sound, records};

type Error = nandu::Error<SimError>;
type Records = BTreeMap<Vec<u8>, Vec<u8>>;

const FULL: Error = nandu::Error::Full;

/// What may be refused on a full chip.
const PUTS: &str = "puts";

/// What random lives are lived on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    blocks: u32,
    page_size: u32,
    pending: (usize, usize),
    /// Bytes of the largest value; 0 for those that fit a leaf.
    value_max: usize,
    steps: u32,
}

pub(crate) const SMALL: World = World { blocks: 16, page_size: 2048, pending: (600, 900), value_max: 0, steps: 4000 };
pub(crate) const LARGE: World =
    World { blocks: 42, page_size: 4096, pending: (600, 900), value_max: 30_000, steps: 4000 };

/// Numbers that look like chance and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % bound.max(1) as u64) as usize
    }
}

impl World {
    pub(crate) const fn with_pending(self, least: usize, most: usize) -> World {
        World { pending: (least, most), ..self }
    }
}

fn chip(world: &World) -> Chip {
    let mut chip = Chip::W25N01GV.with_blocks(world.blocks);
    chip.geometry.pages_per_block = 8;
    chip.geometry.page_size = world.page_size;
    chip.geometry.program_unit = world.page_size;
    chip
}

fn key(random: &mut Random, key_max: usize) -> Vec<u8> {
    let length = match random.below(4) {
        0 => 1,
        1 => 4,
        2 => key_max,
        _ => 1 + random.below(key_max),
    };
    let number = random.below(400) as u32;
    let mut key = vec![(number % 251) as u8; length];
    let count = length.min(4);
    key[..count].copy_from_slice(&number.wrapping_mul(0x9E37_79B1).to_be_bytes()[..count]);
    key
}

/// What was returned, unless there was no room.
fn count_full<T>(outcome: Result<T, Error>, refused: &mut Refused, what: &'static str) -> Option<T> {
    refused.count(what, outcome, |error| *error == FULL)
}

/// Deletes every second record.
fn delete_half(store: &mut Store<'_, Sim>, model: &mut Records, refused: &mut Refused) {
    let half: Vec<_> = model.keys().step_by(2).cloned().collect();
    for key in half {
        if count_full(store.delete(&key), refused, "deletes").is_some() {
            model.remove(&key);
        }
    }
}

fn live(world: &World, seed: u64) -> Refused {
    let mut random = Random(seed);
    let (least, most) = world.pending;
    let pending_size = least + random.below(most - least + 1);
    let options = Options { cache_size: 512, durability: Durability::OnSync, pending_size, ..Options::DEFAULT };
    let sim = Sim::new(chip(world));
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip(world).geometry, &options)];
    let sim = Store::format(sim, options, &mut memory).unwrap().unmount().unwrap();
    let mut store = Store::open(sim, options, &mut memory).unwrap();
    let (key_max, entry_max) = (store.key_size_max(), store.entry_size_max());
    let mut model = Records::new();
    let mut refused = Refused::default();
    for step in 0..world.steps {
        if random.below(500) == 0 {
            // What was not synced would be lost.
            count_full(store.sync(), &mut refused, "syncs");
            let sim = if random.below(2) == 0 { store.abandon() } else { store.unmount().unwrap() };
            store = Store::open(sim, options, &mut memory).unwrap();
        }
        let key = key(&mut random, key_max);
        match random.below(10) {
            0 if random.below(10) == 0 => drop(count_full(store.idle(8), &mut refused, "syncs")),
            0 => drop(count_full(store.sync(), &mut refused, "syncs")),
            1..4 => {
                let existed = count_full(store.delete(&key), &mut refused, "deletes");
                if existed.is_some() {
                    assert_eq!(existed, Some(model.remove(&key).is_some()));
                }
            }
            _ => {
                let inline_max = entry_max - key.len();
                let size = match random.below(4) {
                    0 if world.value_max > 0 => random.below(world.value_max),
                    0 => inline_max,
                    1 => random.below(20),
                    _ => random.below(inline_max + 1),
                };
                let value = vec![step as u8; size];
                if count_full(store.put(&key, &value), &mut refused, PUTS).is_some() {
                    model.insert(key, value);
                } else if random.below(20) == 0 {
                    let gone = model.clone();
                    delete_half(&mut store, &mut model, &mut refused);
                    for (key, value) in gone {
                        if model.contains_key(&key) || value.len() + key.len() > entry_max || random.below(8) > 0 {
                            continue;
                        }
                        if count_full(store.put(&key, &value), &mut refused, "puts after half was deleted").is_some() {
                            model.insert(key, value);
                        }
                        break;
                    }
                }
            }
        }
    }
    count_full(store.merge(), &mut refused, "merges");
    delete_half(&mut store, &mut model, &mut refused);
    count_full(store.merge(), &mut refused, "merges");
    assert!(records(&mut store).unwrap() == model, "seed {seed}");
    check_sound(&mut store);
    serves_again(options, &mut store.abandon(), &format!("seed {seed}"));
    refused
}

/// Lives so many lives, and says which were not sound.
fn lives(world: &World, seeds: core::ops::Range<u64>) {
    live_all(seeds, PUTS, |seed| live(world, seed));
}

#[test]
fn deletes_are_never_refused() {
    lives(&SMALL, 0..25);
}

#[test]
fn deletes_are_never_refused_beside_large_values() {
    lives(&LARGE, 0..10);
}

/// Fills a chip to the last page, then puts other values of the same size or a smaller one at what is there, again and again, then
/// deletes everything.
fn overwrite_on_a_full_chip(options: Options, value_size: impl Fn(u32) -> usize) {
    let chip = Chip::TINY.with_blocks(40);
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
    let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
    let entry_max = store.entry_size_max();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let mut model = Records::new();
    for number in 0.. {
        let value = vec![1; value_size(number)];
        match store.put(&key(number), &value) {
            Ok(_) => drop(model.insert(key(number).to_vec(), value)),
            Err(error) => {
                assert_eq!(error, FULL);
                break;
            }
        }
    }
    store.sync().unwrap();
    let mut random = Random(3);
    let small: Vec<Vec<u8>> = model.keys().filter(|key| model[*key].len() + key.len() <= entry_max).cloned().collect();
    let mut live_max = 0;
    for step in 0..12_000_u32 {
        let key = &small[random.below(small.len())];
        let shorter = usize::from(step % 3 == 0).min(model[key].len());
        let value = vec![step as u8; model[key].len() - shorter];
        assert_eq!(store.put(key, &value), Ok(true), "overwrite {step}");
        model.insert(key.clone(), value);
        if random.below(20) == 0 {
            store.sync().unwrap();
        }
        live_max = live_max.max(store.stats().live_pages);
    }
    let stats = store.stats();
    // What waits may take half of the pages that are kept dead, two blocks and a twelfth of all good ones; the other half is not
    // used up, however long it goes on.
    let overdraft = (2 + (chip.geometry.block_count - 4) / 12) * chip.geometry.pages_per_block / 2;
    assert!(live_max <= stats.capacity_pages + overdraft, "{live_max} pages live of {}", stats.capacity_pages);
    store.merge().unwrap();
    assert!(records(&mut store).unwrap() == model);
    for key in model.keys() {
        assert_eq!(store.delete(key), Ok(true));
    }
    store.merge().unwrap();
    assert_eq!(store.record_count(), 0);
    check_sound(&mut store);
}

#[test]
fn values_are_overwritten_on_a_full_chip() {
    let small = |number: u32| number as usize * 7 % 31;
    let some_large = |number: u32| if number.is_multiple_of(5) { 300 + number as usize % 900 } else { 20 };
    let on_sync =
        |pending_size| Options { cache_size: 512, durability: Durability::OnSync, pending_size, ..Options::DEFAULT };
    for options in [Options { cache_size: 512, ..Options::DEFAULT }, on_sync(30), on_sync(400), on_sync(4000)] {
        overwrite_on_a_full_chip(options, small);
        overwrite_on_a_full_chip(options, some_large);
    }
}

/// Where half of each leaf was deleted, what comes back has room, alone and in a batch.
#[test]
fn what_was_deleted_has_room_on_a_full_chip() {
    let options = Options { cache_size: 512, ..Options::DEFAULT };
    let chip = Chip::TINY;
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
    let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
    let mut count = 0_u32;
    while store.put(&count.to_be_bytes(), &[1; 20]).is_ok() {
        count += 1;
    }
    for number in (1..count).step_by(2) {
        assert_eq!(store.delete(&number.to_be_bytes()), Ok(true));
    }
    for number in (1..count - 8).step_by(16) {
        assert_eq!(store.put(&number.to_be_bytes(), &[2; 20]), Ok(false), "{number} of {count}");
        let (key, before) = ((number + 8).to_be_bytes(), (number + 7).to_be_bytes());
        let edits = [&before, &key].map(|key| nandu::Edit { key, value: Some(&[3; 20]) });
        assert_eq!(store.batch(&edits), Ok(()), "{number} of {count}");
    }
    check_sound(&mut store);
}

/// Where every second record was deleted, from leaves that were full, others have room: keys of which no leaf has anything.
#[test]
fn what_was_deleted_has_room_for_other_keys() {
    let on_sync = Options { durability: Durability::OnSync, pending_size: 400, ..Options::DEFAULT };
    for options in [Options { cache_size: 512, ..Options::DEFAULT }, Options { cache_size: 512, ..on_sync }] {
        let mut chip = Chip::W25N01GV.with_blocks(24);
        chip.geometry.pages_per_block = 16;
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
        let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
        let fill = |store: &mut Store<'_, Sim>, from: u32| {
            let mut number = from;
            while store.put(&number.to_be_bytes(), &[1; 20]).is_ok() {
                number += 1;
            }
            number - from
        };
        let count = fill(&mut store, 0);
        for number in (1..count).step_by(2) {
            assert_eq!(store.delete(&number.to_be_bytes()), Ok(true));
        }
        store.merge().unwrap();
        let others = fill(&mut store, 1 << 20);
        assert!(others >= count / 4, "{others} after {} of {count}", count / 2);
        assert_eq!(records(&mut store).unwrap().len() as u32, count.div_ceil(2) + others);
        check_sound(&mut store);
    }
}

/// Deletes that wait hold the pages of their leaves. A put for which there would be room without them is not refused: they go to their leaves first.
#[test]
fn deletes_that_wait_make_room() {
    for pending_size in [1000, 2000, 4000, 8192] {
        let options = Options { cache_size: 512, durability: Durability::OnSync, pending_size, ..Options::DEFAULT };
        let chip = chip(&SMALL);
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
        let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
        let mut count = 0_u32;
        while store.put(&count.to_be_bytes(), &[1; 200]).is_ok() {
            count += 1;
        }
        for number in (0..count).step_by(2) {
            assert_eq!(store.delete(&number.to_be_bytes()), Ok(true), "{pending_size}: {number} of {count}");
        }
        let mut others = 0;
        while store.put(&(count + others).to_be_bytes(), &[2; 200]).is_ok() {
            others += 1;
        }
        assert!(others >= count / 4, "{pending_size}: {others} after {} of {count}", count / 2);
        check_sound(&mut store);
    }
}

/// Where there is no memory for changes each is durable at once, of whatever size; with the least memory each is at a sync. A large value was refused as `Full` on an empty chip once.
#[test]
fn without_memory_for_changes_each_is_durable_at_once() {
    for pending_size in [0, 1, 600] {
        let chip = Chip::W25N01GV.with_blocks(40);
        let options = Options { durability: Durability::OnSync, pending_size, ..Options::DEFAULT };
        let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
        let mut store = Store::format(Sim::new(chip), options, &mut memory).unwrap();
        let mut model = Records::new();
        for step in 0..200_usize {
            let key = vec![step as u8 % 7; 1 + 40 * (step % 7)];
            let value = vec![step as u8; [3, 700, 1_500, 3_000, 9_000][step % 5]];
            if step % 6 == 5 {
                assert_eq!(store.delete(&key), Ok(model.remove(&key).is_some()), "{pending_size}, step {step}");
            } else {
                let existed = store.put(&key, &value);
                assert_eq!(existed, Ok(model.insert(key, value).is_some()), "{pending_size}, step {step}");
            }
            if pending_size > 0 {
                store.sync().unwrap();
            }
        }
        let sim = store.abandon();
        let mut store = Store::open(sim, options, &mut memory).unwrap();
        assert_eq!(records(&mut store).unwrap(), model, "{pending_size}");
    }
}

/// As many lives as somebody lets run, with memory for changes of any size.
#[test]
#[ignore = "as many as NANDU_LIVES says"]
fn many_lives() {
    lives(&SMALL.with_pending(0, 8192), lives_asked_for());
}

#[test]
#[ignore = "as many as NANDU_LIVES says"]
fn many_lives_beside_large_values() {
    lives(&LARGE.with_pending(0, 8192), lives_asked_for());
}
