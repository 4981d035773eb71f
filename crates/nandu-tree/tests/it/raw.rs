//! Values in raw pages: what they cost, what they refuse, and whether they are all there after cuts and moves.

use std::collections::BTreeMap;

use nandu_sim::{Chip, Fault, Sim, SimError, Trigger};
use nandu_tree::{ByteCells, Durability, Edit, Engine, EngineError, LogError, LogOptions, Options, memory_required};

use crate::bench::value_of;

const OPTIONS: Options = Options {
    cache_size: 512,
    pending_size: 1_200,
    has_values: true,
    durability: Durability::OnSync,
    log: LogOptions { has_raw: true, ..LogOptions::DEFAULT },
    ..Options::DEFAULT
};

fn memory(chip: &Chip) -> Vec<u8> {
    vec![0; memory_required::<Sim>(&chip.geometry, &OPTIONS)]
}

fn put(engine: &mut Engine<'_, Sim, ByteCells>, key: &[u8], value: &[u8]) -> Result<bool, EngineError<SimError>> {
    engine.begin_value(key, value.len())?;
    engine.append_value(key, value)?;
    assert_eq!(engine.value_part(), None, "a page has all of it");
    engine.end_value(key)
}

fn put_with(
    engine: &mut Engine<'_, Sim, ByteCells>,
    key: &[u8],
    value: &[u8],
    beside: &[Edit<'_>],
) -> Result<bool, EngineError<SimError>> {
    engine.begin_value(key, value.len())?;
    engine.append_value(key, value)?;
    engine.end_value_with(key, beside).map(|()| true)
}

#[test]
fn a_value_takes_a_program_and_waits_and_is_read_with_a_read() {
    let chip = Chip::W25N01GV.with_blocks(32);
    let mut bytes = memory(&chip);
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, OPTIONS, &mut bytes).unwrap();
    put(&mut engine, b"k", &[3; 600]).unwrap();
    engine.sync().unwrap();
    for size in [600, 1_900, 2_048, 2_048] {
        let before = engine.log().spent().0;
        put(&mut engine, b"k", &vec![3; size]).unwrap();
        assert_eq!(engine.log().spent().0, before + 1);
        engine.sync().unwrap();
        assert_eq!(engine.log().spent().0, before + 2);
        let reads = engine.nand_mut().counters().reads;
        let mut value = vec![0; size];
        assert_eq!(engine.read(b"k", 0, &mut value), Ok(Some(size)));
        // And the leaf, where nothing waits of the key.
        let reads = engine.nand_mut().counters().reads - reads;
        assert!(value == vec![3; size] && (1..=2).contains(&reads), "{reads} reads");
    }
    assert_eq!(engine.value_size_max(b"k"), 2_048);
    assert_eq!(engine.begin_value(b"k", 2_049), Err(EngineError::ValueSize(2_049)));
    assert_eq!(engine.begin_value(b"twelve bytes", 2_000), Err(EngineError::ValueSize(2_000)));
    assert_eq!(value_of(&mut engine, b"k"), Some(vec![3; 2_048]));
}

type Values = BTreeMap<[u8; 2], Option<Vec<u8>>>;

/// A part with short blocks, filled to what it takes and written over, with records beside and cuts: what was synced is there, and what was not is the old value or the new one.
fn life(seed: u64) -> (u32, u32, u64) {
    let mut chip = Chip::W25N01GV.with_blocks(40);
    chip.geometry.pages_per_block = 8;
    // In some lives memory has room for a change or two, so that batches go to their leaves at once.
    let pending_size = if seed % 4 == 3 { 60 } else { 600 + 400 * (seed as usize % 8) };
    let options = Options { pending_size, ..OPTIONS };
    let mut bytes = vec![0; memory_required::<Sim>(&chip.geometry, &options)];
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
    let (mut synced, mut unsynced) = (Values::new(), BTreeMap::<[u8; 2], Vec<Option<Vec<u8>>>>::new());
    let (mut state, mut refused, mut cuts, mut blobs) = (seed, 0, 0, 0);
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    for step in 0..1_500_u32 {
        let is_record = draw(2) == 0;
        let key = (if is_record { 256 + draw(400) } else { draw(220) } as u16).to_be_bytes();
        let size_max = if is_record { 150 } else { 2_048 };
        let value = (draw(8) > 0).then(|| vec![step as u8; 1 + draw(size_max) as usize]);
        let mut is_synced = false;
        let done = match &value {
            Some(value) if is_record => engine.put(&key, value),
            Some(value) if step % 3 == 0 => put(&mut engine, &key, value),
            Some(value) if step % 3 == 1 && engine.put_blob(&key, value, &[]).unwrap() => {
                is_synced = true;
                Ok(true)
            }
            Some(value) => {
                // With a record that is replaced or comes, as the inode of a file does.
                let beside = (1_000 + draw(300) as u16).to_be_bytes();
                let record = vec![step as u8; 20 + draw(180) as usize];
                let done = put_with(&mut engine, &key, value, &[Edit { key: &beside, value: Some(&record) }]);
                if done.is_ok() {
                    unsynced.entry(beside).or_default().push(Some(record));
                }
                done
            }
            None => engine.delete(&key),
        };
        match done {
            Ok(_) => unsynced.entry(key).or_default().push(value),
            Err(EngineError::Log(LogError::Full)) if value.is_some() => refused += 1,
            Err(error) => panic!("{error}"),
        }
        let next = draw(60);
        if (1..10).contains(&next) {
            engine.sync().unwrap();
            is_synced = true;
        }
        if is_synced {
            let last =
                core::mem::take(&mut unsynced).into_iter().filter_map(|(key, mut values)| Some((key, values.pop()?)));
            synced.extend(last);
        }
        if next == 0 {
            (cuts, blobs) = (cuts + 1, blobs + engine.stats().blobs);
            engine = crate::bench::open(engine.abandon(), ByteCells, options, &mut bytes).unwrap();
            for (key, mut values) in core::mem::take(&mut unsynced) {
                let found = value_of(&mut engine, &key);
                values.push(synced.get(&key).cloned().flatten());
                assert!(values.contains(&found), "life {seed}, step {step}");
                synced.insert(key, found);
            }
        }
        if step % 50 == 0 {
            let all: Vec<_> = synced.iter().filter(|(key, _)| !unsynced.contains_key(*key)).collect();
            for (key, value) in all {
                assert_eq!(value_of(&mut engine, key), *value, "life {seed}, step {step}");
            }
            let mut wrong = Vec::new();
            engine.verify_log(&mut |violation| wrong.push(violation.to_string())).unwrap();
            engine.verify(&mut |violation| wrong.push(violation.to_string())).unwrap();
            assert_eq!(wrong, Vec::<String>::new(), "life {seed}, step {step}");
            let mut live = 0;
            engine.live_pages(&mut |_| live += 1).unwrap();
            assert!(live <= engine.log().live_pages(), "life {seed}, step {step}");
        }
    }
    (refused, cuts, blobs + engine.stats().blobs)
}

#[test]
fn raw_pages_survive_moves_and_cuts_on_a_full_chip() {
    let (mut refused, mut cuts, mut blobs) = (0, 0, 0);
    // In the last one a page of a value is moved while room is made for the leaf that its head is to go to.
    for seed in (0..crate::bench::cases(24)).chain([705]) {
        println!("life {seed}");
        let life = life(seed);
        (refused, cuts, blobs) = (refused + life.0, cuts + life.1, blobs + life.2);
    }
    assert!(refused > 500 && cuts > 400 && blobs > 500, "{refused} refused, {cuts} cuts, {blobs} in commits");
}

/// The program of a summary fails, so that nothing says whose the pages of its group are, and that block is emptied at once: one of them is of a value that is under way.
#[test]
fn the_page_of_a_value_under_way_stays_where_nothing_says_whose_it_is() {
    let mut chip = Chip::W25N01GV.with_blocks(40);
    chip.geometry.pages_per_block = 8;
    let mut bytes = memory(&chip);
    for failing in 0..60 {
        let engine = crate::bench::format(Sim::new(chip), ByteCells, OPTIONS, &mut bytes).unwrap();
        // Behind a cut what a block holds is told by its pages alone.
        let mut engine = crate::bench::open(engine.abandon(), ByteCells, OPTIONS, &mut bytes).unwrap();
        let begun = engine.log().nand().operation_count();
        engine.nand_mut().inject(Fault::ProgramFails, Trigger::Operation(begun + failing));
        for key in 0..40_u8 {
            put(&mut engine, &[key], &[key; 2_000]).unwrap();
        }
        engine.sync().unwrap();
        while engine.idle(20).unwrap() {}
        for key in 0..40_u8 {
            assert_eq!(value_of(&mut engine, &[key]), Some(vec![key; 2_000]), "operation {failing} failed");
        }
    }
}

/// What stands in a raw page the head of its key tells by a checksum.
#[test]
fn a_raw_page_that_has_other_bytes_is_not_taken_for_the_value() {
    let chip = Chip::W25N01GV.with_blocks(32);
    let mut bytes = memory(&chip);
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, OPTIONS, &mut bytes).unwrap();
    put(&mut engine, b"k", &[3; 2_000]).unwrap();
    put(&mut engine, b"l", &[4; 2_000]).unwrap();
    engine.sync().unwrap();
    let mut pages = Vec::new();
    engine.live_pages(&mut |page| pages.push(page)).unwrap();
    let raw: Vec<_> = pages.into_iter().filter(|&page| engine.log().is_raw(page)).collect();
    assert_eq!(raw.len(), 2);
    let mut sim = engine.unmount().map_err(|(error, _)| error).unwrap();
    sim.corrupt(raw[0], 100);
    let mut engine = crate::bench::open(sim, ByteCells, OPTIONS, &mut bytes).unwrap();
    let read: Vec<_> = [b"k", b"l"].map(|key| engine.verify_value(key).unwrap()).into();
    assert!(read.contains(&Some(true)) && read.contains(&Some(false)), "{read:?}");
}

/// Pages that die are told to the log, however many there are: else it would not know what lives, and all leaves would be read.
#[test]
fn where_many_values_go_nothing_is_counted_anew() {
    let chip = Chip::W25N01GV.with_blocks(40);
    let options = Options { pending_size: 8_192, ..OPTIONS };
    let mut bytes = vec![0; memory_required::<Sim>(&chip.geometry, &options)];
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
    for round in 0..3 {
        for key in 0..90_u8 {
            put(&mut engine, &[key], &[round; 2_000]).unwrap();
        }
        engine.sync().unwrap();
        let keys: Vec<_> = (0..90_u8).map(|key| [key]).collect();
        for step in keys.chunks(30) {
            let gone: Vec<_> = step.iter().map(|key| Edit { key, value: None }).collect();
            engine.batch(&gone).unwrap();
        }
        put(&mut engine, &[0], &[round; 2_000]).unwrap();
        assert_eq!(engine.stats().recounts, 0, "round {round}");
    }
    engine.sync().unwrap();
    let mut live = 0;
    engine.live_pages(&mut |_| live += 1).unwrap();
    assert_eq!(engine.log().live_pages(), live);
}

/// A batch for which memory has no room goes to its leaves at once. If pages have to be moved for it, what names them is no change that waits: that would hide what the batch makes, and come back at a mount.
#[test]
fn what_moves_for_a_batch_at_once_does_not_hide_it() {
    let mut moves = 0;
    for (seed, blocks) in (0..6).map(|seed| (seed, 20 + 2 * seed)) {
        let mut chip = Chip::W25N01GV.with_blocks(blocks);
        chip.geometry.pages_per_block = 8;
        // Calls do no share of collecting, so that those that come have to.
        let options = Options { pending_size: 600, has_parts: true, ..OPTIONS };
        let mut bytes = vec![0; memory_required::<Sim>(&chip.geometry, &options)];
        let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
        let mut model = BTreeMap::new();
        for step in 0..1_500_u32 {
            let number = crate::bench::chance(step, seed);
            let first = (number % 80) as u8;
            let key_of = |key: u8| [key; 10];
            if number & 0x380 > 0 {
                if put(&mut engine, &key_of(first), &[step as u8; 2_000]).is_ok() {
                    model.insert(first, step as u8);
                }
            } else {
                let before = engine.stats().moves;
                let keys: Vec<_> = (first..first + 20).map(key_of).collect();
                let edits: Vec<_> = keys.iter().map(|key| Edit { key, value: None }).collect();
                engine.batch(&edits).unwrap();
                keys.iter().for_each(|key| _ = model.remove(&key[0]));
                moves += engine.stats().moves - before;
            }
            for key in first..first + 20 {
                let found = value_of(&mut engine, &key_of(key)).map(|value| value[0]);
                assert_eq!(found, model.get(&key).copied(), "{blocks} blocks, step {step}, key {key}");
            }
        }
    }
    assert!(moves > 20, "{moves}");
}
