//! Values in raw pages that are durable by their tags: what they cost, when there are none, and whether all are there after a cut.

use std::collections::BTreeMap;

use nandu_nand::Geometry;
use nandu_sim::{Chip, Sim, SimError};
use nandu_tree::{Broken, ByteCells, Durability, Edit, Engine, EngineError, LogOptions, Options, Tag, memory_required};

const OPTIONS: Options = Options {
    cache_size: 512,
    pending_size: 1_200,
    has_values: true,
    durability: Durability::OnSync,
    log: LogOptions { has_raw: true, has_tags: true, ..LogOptions::DEFAULT },
    ..Options::DEFAULT
};

const CHIP: Chip = Chip::W25N01GV.with_blocks(48);

fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; memory_required::<Sim>(&chip.geometry, options)]
}

/// What the tag of a value says: its key, whether that is a new one, and what the record beside it holds.
fn tag_of(key: u8, is_new: bool, step: u8) -> Tag {
    let mut tag = Tag::default();
    tag[..3].copy_from_slice(&[key, is_new.into(), step]);
    tag
}

/// The record that goes with a value.
fn beside(key: &[u8; 2]) -> Edit<'_> {
    Edit { key: b"beside", value: Some(key) }
}

type Outcome<T> = Result<T, EngineError<SimError>>;

/// Puts a value of a page, by its tag if it can have one; returns whether it has.
fn put(engine: &mut Engine<'_, Sim, ByteCells>, key: u8, step: u8) -> Outcome<bool> {
    let page = vec![step; 2_048];
    let is_new = engine.read(&[key], 0, &mut [])?.is_none();
    let record = [key, step];
    if engine.put_tagged(&[key], (&page, &tag_of(key, is_new, step)), &[beside(&record)])? {
        return Ok(true);
    }
    engine.begin_value(&[key], page.len())?;
    engine.append_value(&[key], &page)?;
    engine.end_value_with(&[key], &[beside(&record)])?;
    Ok(false)
}

/// Opens a volume, as whoever puts values like these does.
fn open<'m>(sim: Sim, options: Options, bytes: &'m mut [u8]) -> (Engine<'m, Sim, ByteCells>, usize) {
    let mut engine = crate::bench::open(sim, ByteCells, options, bytes).unwrap();
    let (mut place, mut page, mut last, mut count) = (0, vec![0; 2_048], None, 0);
    while let Some(found) = engine.next_tagged(&mut place, &mut page).unwrap() {
        let [key, is_new, step, ..] = found.tag;
        engine.adopt(&[key], (&found, is_new == 1), &[beside(&[key, step])]).unwrap();
        (last, count) = (Some((found, key)), count + 1);
    }
    if let Some((found, key)) = last {
        engine.end_tail((&found, &[key], &page)).unwrap();
    }
    (engine, count)
}

fn value_of(engine: &mut Engine<'_, Sim, ByteCells>, key: u8) -> Option<u8> {
    let mut value = vec![0; 2_048];
    assert_eq!(engine.read(&[key], 0, &mut value).unwrap()?, 2_048);
    assert!(value.iter().all(|&byte| byte == value[0]));
    Some(value[0])
}

fn formatted(bytes: &mut [u8]) -> Engine<'_, Sim, ByteCells> {
    let mut engine = crate::bench::format(Sim::new(CHIP), ByteCells, OPTIONS, bytes).unwrap();
    engine.put(b"beside", &[0, 0]).unwrap();
    engine.sync().unwrap();
    engine
}

#[test]
fn a_tagged_value_takes_a_program_and_a_sync_none() {
    let mut bytes = memory(&CHIP, &OPTIONS);
    let mut engine = formatted(&mut bytes);
    let mut programs = Vec::new();
    for step in 0..21 {
        let before = engine.log().spent().0;
        put(&mut engine, step % 4, step).unwrap();
        engine.sync().unwrap();
        programs.push(engine.log().spent().0 - before);
    }
    // Where no commit knows yet where raw pages go, and behind nine pages, a commit follows; the first one has to make a page for its path, too.
    let expected: Vec<_> = (1..21).map(|step| if step % 10 == 0 { 2 } else { 1 }).collect();
    assert_eq!((programs[0], &programs[1..]), (3, &expected[..]));
}

#[test]
fn what_is_not_durable_yet_is_no_reason_to_tag() {
    let mut bytes = memory(&CHIP, &OPTIONS);
    let mut engine = formatted(&mut bytes);
    put(&mut engine, 1, 1).unwrap();
    engine.sync().unwrap();
    assert!(engine.tag_next().is_some());
    engine.put(b"other", b"waits").unwrap();
    assert_eq!(engine.tag_next(), None);
    assert!(!put(&mut engine, 1, 2).unwrap(), "a sync has to come, in any case");
    engine.sync().unwrap();
    assert!(put(&mut engine, 1, 3).unwrap());
    // A part of a page has no tag.
    let whole = (vec![1; 2_048], vec![1; 2_000]);
    assert!(!engine.put_tagged(b"k", (&whole.1, &tag_of(0, true, 0)), &[]).unwrap());
    assert_eq!(
        engine.put_tagged(b"k", (&whole.0, &tag_of(0, true, 0)), &[Edit { key: b"k", value: None }]),
        Err(EngineError::NotAscending(0))
    );
}

/// W7: a sync believes that a tag tells of all that waits.
#[test]
fn what_waits_when_a_page_is_tagged_all_the_same_is_lost() {
    for (tags_unsynced, found) in [(false, Some(&b"waits"[..])), (true, None)] {
        let options = Options { broken: Broken { tags_unsynced, ..Broken::NOTHING }, ..OPTIONS };
        let mut bytes = memory(&CHIP, &options);
        let mut engine = crate::bench::open(
            formatted(&mut memory(&CHIP, &OPTIONS)).unmount().map_err(|(error, _)| error).unwrap(),
            ByteCells,
            options,
            &mut bytes,
        )
        .unwrap();
        put(&mut engine, 1, 1).unwrap();
        engine.sync().unwrap();
        engine.put(b"other", b"waits").unwrap();
        assert_eq!(put(&mut engine, 1, 2).unwrap(), tags_unsynced);
        engine.sync().unwrap();
        let (mut engine, _) = open(engine.abandon(), options, &mut bytes);
        assert_eq!((value_of(&mut engine, 1), engine.get(b"other").unwrap()), (Some(2), found));
    }
}

#[test]
fn a_mount_makes_what_tags_say_and_the_next_one_finds_it_committed() {
    let mut bytes = memory(&CHIP, &OPTIONS);
    let mut engine = formatted(&mut bytes);
    for step in 0..8 {
        put(&mut engine, step % 3, step).unwrap();
        engine.sync().unwrap();
    }
    let (mut engine, count) = open(engine.abandon(), OPTIONS, &mut bytes);
    assert_eq!(count, 7);
    assert_eq!([0, 1, 2].map(|key| value_of(&mut engine, key)), [Some(6), Some(7), Some(5)]);
    assert_eq!(engine.get(b"beside").unwrap(), Some(&[1, 7][..]));
    assert_eq!(engine.record_count(), 4);
    let (mut engine, count) = open(engine.abandon(), OPTIONS, &mut bytes);
    assert_eq!((count, value_of(&mut engine, 1)), (0, Some(7)));
    let mut wrong = Vec::new();
    engine.verify(&mut |violation| wrong.push(violation.to_string())).unwrap();
    engine.verify_log(&mut |violation| wrong.push(violation.to_string())).unwrap();
    assert_eq!(wrong, Vec::<String>::new());
}

/// As what members list, it takes as much memory as it took where it was written.
#[test]
fn a_mount_with_less_memory_says_so_and_loses_nothing() {
    let mut bytes = memory(&CHIP, &OPTIONS);
    let mut engine = formatted(&mut bytes);
    for step in 0..8 {
        put(&mut engine, step, step).unwrap();
        engine.sync().unwrap();
    }
    let sim = engine.abandon();
    let small = Options { pending_size: 0, ..OPTIONS };
    let mut engine = crate::bench::open(sim, ByteCells, small, &mut bytes).unwrap();
    let (mut place, mut page, mut refused) = (0, vec![0; 2_048], false);
    while let Some(found) = engine.next_tagged(&mut place, &mut page).unwrap() {
        let [key, is_new, step, ..] = found.tag;
        let adopted = engine.adopt(&[key], (&found, is_new == 1), &[beside(&[key, step])]);
        refused |= adopted == Err(EngineError::PendingSize);
    }
    assert!(refused);
    let (mut engine, count) = open(engine.abandon(), OPTIONS, &mut bytes);
    assert_eq!(count, 7);
    assert!((0..8).all(|key| value_of(&mut engine, key) == Some(key)));
}

fn last_of(unsynced: &mut BTreeMap<u8, Vec<u8>>) -> impl Iterator<Item = (u8, u8)> + use<> {
    core::mem::take(unsynced).into_iter().filter_map(|(key, values)| Some((key, *values.last()?)))
}

/// A part with short blocks, filled and written over: whatever is tagged or synced is there after each cut.
fn life(seed: u64) -> (usize, u32) {
    let chip = Chip { geometry: Geometry { pages_per_block: 8, ..CHIP.geometry }, ..CHIP };
    let options = Options { pending_size: 600 + 400 * (seed as usize % 6), ..OPTIONS };
    let mut bytes = memory(&chip, &options);
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
    engine.put(b"beside", &[0, 0]).unwrap();
    engine.sync().unwrap();
    let (mut synced, mut unsynced) = (BTreeMap::new(), BTreeMap::<u8, Vec<u8>>::new());
    let (mut state, mut tagged, mut cuts) = (seed, 0, 0);
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for step in 0..1_500_u32 {
        let (key, value) = (draw(140) as u8, step as u8);
        if put(&mut engine, key, value).unwrap() {
            // Whatever came before was committed, or it would have none.
            synced.extend(last_of(&mut unsynced));
            synced.insert(key, value);
        } else {
            unsynced.entry(key).or_default().push(value);
        }
        if draw(3) > 0 {
            engine.sync().unwrap();
            synced.extend(
                core::mem::take(&mut unsynced).into_iter().map(|(key, values)| (key, values[values.len() - 1])),
            );
        }
        if draw(40) == 0 {
            cuts += 1;
            let count;
            (engine, count) = open(engine.abandon(), options, &mut bytes);
            tagged += count;
            for (key, mut values) in core::mem::take(&mut unsynced) {
                let found = value_of(&mut engine, key);
                values.extend(synced.get(&key));
                assert!(found.is_none_or(|found| values.contains(&found)), "life {seed}, step {step}");
                assert!(found.is_some() || !synced.contains_key(&key), "life {seed}, step {step}");
                synced.extend(found.map(|found| (key, found)));
            }
            for (key, value) in &synced {
                assert_eq!(value_of(&mut engine, *key), Some(*value), "life {seed}, step {step}");
            }
        }
        if step % 100 == 0 {
            let mut wrong = Vec::new();
            engine.verify_log(&mut |violation| wrong.push(violation.to_string())).unwrap();
            engine.verify(&mut |violation| wrong.push(violation.to_string())).unwrap();
            assert_eq!(wrong, Vec::<String>::new(), "life {seed}, step {step}");
        }
    }
    (tagged, cuts)
}

#[test]
fn what_tags_say_survives_moves_and_cuts() {
    let (mut tagged, mut cuts) = (0, 0);
    for seed in 0..16 {
        let life = life(seed);
        (tagged, cuts) = (tagged + life.0, cuts + life.1);
    }
    assert!(tagged > 200 && cuts > 400, "{tagged} pages found by their tags, {cuts} cuts");
}
