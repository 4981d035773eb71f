//! Going through a store one entry at a time, both ways, while it changes.

use std::collections::BTreeMap;
use std::ops::Bound;

use nandu::{Cursor, Durability, Error, Map, Options, Store};
use nandu_sim::{Chip, Sim, SimError};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Where the cursor should be: right below or right above a key.
#[derive(Clone, Debug)]
enum Place {
    Start,
    Below(Vec<u8>),
    Above(Vec<u8>),
    End,
}

impl Place {
    fn next(&mut self, model: &Model) -> Option<Vec<u8>> {
        let from = match self {
            Place::Start => Bound::Unbounded,
            Place::Below(key) => Bound::Included(key.clone()),
            Place::Above(key) => Bound::Excluded(key.clone()),
            Place::End => return None,
        };
        let key = model.range::<Vec<u8>, _>((from, Bound::Unbounded)).next()?.0.clone();
        *self = Place::Above(key.clone());
        Some(key)
    }

    fn previous(&mut self, model: &Model) -> Option<Vec<u8>> {
        let to = match self {
            Place::Start => return None,
            Place::Below(key) => Bound::Excluded(key.clone()),
            Place::Above(key) => Bound::Included(key.clone()),
            Place::End => Bound::Unbounded,
        };
        let key = model.range::<Vec<u8>, _>((Bound::Unbounded, to)).next_back()?.0.clone();
        *self = Place::Below(key.clone());
        Some(key)
    }
}

/// Steps in both directions, with puts, deletes and syncs in between, and now and then a jump.
fn walk(options: Options, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let chip = Sim::new(Chip::TINY.with_blocks(64));
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory).unwrap();
    let mut model = Model::new();
    let (mut cursor, mut place) = (Cursor::START, Place::Start);
    for step in 0..6_000 {
        let mut key = random.random_range(0..300_u32).to_be_bytes()[2..].to_vec();
        if random.random_range(0..4) == 0 {
            key.push(7);
        }
        match random.random_range(0..12) {
            0..2 => {
                let value = vec![step as u8; random.random_range(0..20)];
                store.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            2 => assert_eq!(store.delete(&key).unwrap(), model.remove(&key).is_some()),
            3 if step % 7 == 0 => store.sync().unwrap(),
            3 if step % 5 == 0 => {
                (cursor, place) = match random.random_range(0..4) {
                    0 => (Cursor::START, Place::Start),
                    1 => (Cursor::below(&key), Place::Below(key)),
                    2 => (Cursor::above(&key), Place::Above(key)),
                    _ => (Cursor::END, Place::End),
                };
            }
            // More up than down in one part, more down than up in the other, so that the whole range is met.
            draw if (draw < 9) == (step % 2_000 < 1_000) => {
                let expected = place.next(&model).map(|key| (model[&key].clone(), key));
                let found = store.next(&mut cursor).unwrap().map(|entry| (entry.value.to_vec(), entry.key.to_vec()));
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
            _ => {
                let expected = place.previous(&model).map(|key| (model[&key].clone(), key));
                let found =
                    store.previous(&mut cursor).unwrap().map(|entry| (entry.value.to_vec(), entry.key.to_vec()));
                assert_eq!(found, expected, "seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn steps_agree_with_a_model_while_the_store_changes() {
    for seed in 0..6 {
        walk(Options { cache_size: 512, ..Options::DEFAULT }, seed);
        let on_sync = Options { durability: Durability::OnSync, pending_size: 500, ..Options::DEFAULT };
        walk(on_sync, 100 + seed);
    }
}

/// A walk over everything reads each leaf once, as a range does, and an inner node now and then.
#[test]
fn a_walk_reads_each_leaf_once() {
    let options = Options { cache_size: 4096, ..Options::DEFAULT };
    let chip = Sim::new(Chip::W25N01GV.with_blocks(32));
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory).unwrap();
    store.load((0..3_000_u32).map(|key| (key.to_be_bytes(), [7; 40]))).unwrap();
    let reads = |store: &Store<'_, Sim>| store.nand().counters().reads;
    let before = reads(&store);
    store
        .range(Bound::Unbounded, Bound::Unbounded, nandu::Direction::Forward, |_| std::ops::ControlFlow::Continue(()))
        .unwrap();
    let of_range = reads(&store) - before;
    let mut cursor = Cursor::START;
    let before = reads(&store);
    let mut count = 0;
    while store.next(&mut cursor).unwrap().is_some() {
        count += 1;
    }
    let up = reads(&store) - before;
    let before = reads(&store);
    while store.previous(&mut cursor).unwrap().is_some() {
        count += 1;
    }
    let down = reads(&store) - before;
    assert_eq!(count, 6_000);
    assert!(of_range > 60, "{of_range}");
    assert!(up <= of_range + 2 && down <= of_range + 2, "{up} up, {down} down, {of_range} by a range");
}

#[test]
fn a_cursor_beside_a_key_that_is_too_long_is_refused() {
    let options = Options::DEFAULT;
    let chip = Sim::new(Chip::W25N01GV.with_blocks(32));
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut memory).unwrap();
    store.put(b"k", b"1").unwrap();
    let longest = store.key_size_max();
    let mut cursor = Cursor::above(&vec![b'a'; longest]);
    assert_eq!(store.next(&mut cursor).unwrap().map(|entry| entry.key), Some(&b"k"[..]));
    for length in [longest + 1, 400] {
        let mut cursor = Cursor::below(&vec![b'z'; length]);
        assert!(matches!(store.next(&mut cursor), Err(Error::KeySize(_))));
        assert!(matches!(store.previous(&mut cursor), Err(Error::KeySize(_))));
    }
}

#[test]
fn a_map_is_walked_both_ways() {
    let options = Options::DEFAULT;
    let chip = Sim::new(Chip::W25N01GV.with_blocks(32));
    let mut memory = vec![0; Map::<Sim, u32, 4, u32, 4>::memory_required(&chip.chip().geometry, &options)];
    let mut map: Map<_, u32, 4, u32, 4> = Map::format(chip, options, &mut memory).unwrap();
    map.load((0..1_000).map(|key| (key * 3, key))).unwrap();
    let mut cursor = Map::<Sim, u32, 4, u32, 4>::below(1_500);
    assert_eq!(map.next(&mut cursor), Ok(Some((1_500, 500))));
    assert_eq!(map.next(&mut cursor), Ok(Some((1_503, 501))));
    assert_eq!(map.previous(&mut cursor), Ok(Some((1_503, 501))));
    assert_eq!(map.previous(&mut cursor), Ok(Some((1_500, 500))));
    assert_eq!(map.previous(&mut cursor), Ok(Some((1_497, 499))));
    let of_another_size: Result<_, Error<SimError>> = map.next(&mut Cursor::below(b"12345"));
    assert_eq!(of_another_size, Err(Error::KeySize(5)));
}
