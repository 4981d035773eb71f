//! Large values on the new heart: their pieces are seen by nobody, removed in steps, and lost or left over at no cut.

use std::collections::BTreeMap;

use nandu::{Edit, Error, Options};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

use super::heart::Store;
use super::values::{Records, check_sound, formatted, memory, model, pattern, read_all, records};

const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

/// Removes all that is nobody's, and whatever else idle time does.
fn rest(store: &mut Store<'_, impl nandu::nand::Nand<Error = nandu_sim::SimError>>) {
    let mut calls = 0;
    while store.idle(20).unwrap() {
        calls += 1;
        assert!(calls < 20_000, "idle time does not end");
    }
}

/// Leaves pieces of values in every way: replaced by a large and by a small value, deleted, by a batch, given up by a writer.
fn leave_pieces(store: &mut Store<'_, Sim>, size: usize) {
    store.put(b"replaced", &pattern(size, 1)).unwrap();
    store.put(b"replaced", &pattern(size, 2)).unwrap();
    store.put(b"replaced", b"small").unwrap();
    store.put(b"in a batch", &pattern(size, 3)).unwrap();
    store.batch(&[Edit { key: b"a", value: Some(b"1") }, Edit { key: b"in a batch", value: None }]).unwrap();
    store.put(b"z", &pattern(size, 4)).unwrap();
    assert!(store.delete(b"z").unwrap());
    let mut buffer = vec![0; 2048];
    store.writer(b"stays", size, &mut buffer).unwrap().write(&pattern(size, 5)).unwrap();
    check_sound(store);
    assert_eq!(store.record_count(), 3);
}

#[test]
fn what_was_replaced_deleted_or_given_up_is_removed_in_idle_time() {
    for (chip, size) in [(Chip::TINY.with_blocks(64), 3_000), (Chip::W25N01GV.with_blocks(48), 60_000)] {
        let chip = formatted(chip);
        let mut bytes = memory(&chip);
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        store.put(b"stays", &pattern(size, 0)).unwrap();
        rest(&mut store);
        let live = store.stats().live_pages;
        leave_pieces(&mut store, size);
        rest(&mut store);
        check_sound(&mut store);
        assert!(store.stats().live_pages <= live + 8, "{} pages live, {live} before", store.stats().live_pages);
        // The same, found again after a cut.
        leave_pieces(&mut store, size);
        let chip = store.abandon();
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        assert_eq!(store.record_count(), 3);
        rest(&mut store);
        check_sound(&mut store);
        let wanted = [(&b"a"[..], b"1".to_vec()), (b"replaced", b"small".to_vec()), (b"stays", pattern(size, 0))];
        assert_eq!(records(&mut store).unwrap(), wanted.map(|(key, value)| (key.to_vec(), value)).into());
    }
}

#[test]
fn keys_of_the_store_itself_are_refused_and_never_shown() {
    let chip = formatted(Chip::W25N01GV.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    let below = [255; 15];
    store.put(&below, &pattern(5_000, 1)).unwrap();
    for key in [&[255; 16][..], &[255; 40], &[[255; 16], [0; 16]].concat()] {
        let is_refused = |outcome| matches!(outcome, Err(Error::Unsuitable { .. }));
        assert!(is_refused(store.put(key, b"").map(drop)));
        assert!(is_refused(store.get(key).map(drop)));
        assert!(is_refused(store.delete(key).map(drop)));
        assert!(is_refused(store.batch(&[Edit { key, value: None }])));
        assert!(is_refused(store.writer(key, 3, &mut vec![0; 2048]).map(drop)));
        let mut cursor = nandu::Cursor::above(key);
        assert_eq!(store.next(&mut cursor), Ok(None));
        assert_eq!(store.previous(&mut cursor).unwrap().map(|entry| entry.key.len()), Some(15));
    }
    assert_eq!(
        store.last().unwrap().map(|entry| (entry.key.to_vec(), entry.large)),
        Some((below.to_vec(), Some(5_000)))
    );
    assert_eq!(store.next(&mut nandu::Cursor::above(&below)), Ok(None));
    assert_eq!(store.record_count(), 1);
}

/// A batch that is refused has told the list of values that it did not replace.
#[test]
fn a_change_that_is_refused_leaves_large_values_whole() {
    let chip = formatted(Chip::TINY.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    for key in [b"a", b"b", b"c"] {
        store.put(key, &pattern(700, key[0].into())).unwrap();
    }
    let refusal = (0_u32..).map(|number| store.put(&number.to_be_bytes(), &[1; 30])).find_map(Result::err);
    assert_eq!(refusal, Some(Error::Full));
    let keys: Vec<Vec<u8>> = (0..60_u32).map(|number| [b'd', number as u8].to_vec()).collect();
    let mut edits = vec![Edit { key: b"a", value: None }, Edit { key: b"b", value: Some(b"small") }];
    edits.extend(keys.iter().map(|key| Edit { key, value: Some(&[7; 30]) }));
    for _ in 0..3 {
        assert!(matches!(store.batch(&edits), Err(Error::Full | Error::BatchSize)));
        check_sound(&mut store);
    }
    // On a full chip one of them can be deleted all the same, and the others stay.
    assert!(store.delete(b"a").unwrap());
    check_sound(&mut store);
    let chip = store.abandon();
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    rest(&mut store);
    for key in [b"b", b"c"] {
        assert_eq!(read_all(&mut store, key).unwrap(), Some(pattern(700, key[0].into())));
    }
    check_sound(&mut store);
}

/// What the store said is durable, and the one change that it has said nothing of yet.
#[derive(Clone, Default)]
struct Promise {
    records: Records,
    pending: Option<Records>,
    count: u32,
}

/// Large values put, written in pieces, given up, replaced by others, by small ones and by batches, and deleted; idle time between.
fn workload(changes: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = memory(chip);
        let mut store = Store::open(&mut *chip, OPTIONS, &mut bytes)?;
        promise.records = records(&mut store)?;
        promise.pending = None;
        for _ in 0..changes {
            let count = promise.count;
            promise.count += 1;
            let key = vec![b'a' + (count * 7 % 5) as u8];
            let value = pattern([420, 90, 60, 800][(count / 3) as usize % 4], count);
            let mut after = promise.records.clone();
            match count % 9 {
                0 | 1 | 4 => {
                    after.insert(key.clone(), value.clone());
                    promise.pending = Some(after);
                    store.put(&key, &value)?;
                }
                2 | 5 => {
                    after.remove(&key);
                    promise.pending = Some(after);
                    store.delete(&key)?;
                }
                3 => {
                    let changed: BTreeMap<&[u8], Option<&[u8]>> =
                        [(&b"a"[..], Some(&b"1"[..])), (b"b", None), (b"e", Some(b"2"))].into();
                    for (&key, value) in &changed {
                        match value {
                            Some(value) => after.insert(key.to_vec(), value.to_vec()),
                            None => after.remove(key),
                        };
                    }
                    promise.pending = Some(after);
                    let edits: Vec<_> = changed.iter().map(|(&key, &value)| Edit { key, value }).collect();
                    store.batch(&edits)?;
                }
                6 => {
                    let mut buffer = [0; 256];
                    let mut writer = store.writer(&key, 800, &mut buffer)?;
                    writer.write(&pattern(700, count))?;
                }
                7 => {
                    store.idle(8)?;
                }
                _ => {
                    after.insert(key.clone(), b"small".to_vec());
                    promise.pending = Some(after);
                    store.put(&key, b"small")?;
                }
            }
            promise.records = promise.pending.take().unwrap_or_else(|| promise.records.clone());
        }
        store.unmount()?;
        Ok(())
    }
}

fn recover(chip: &mut Sim) -> Run {
    let mut bytes = memory(chip);
    Store::open(chip, OPTIONS, &mut bytes)?;
    Ok(())
}

/// Sound at once, and sound when all that is nobody's was removed; nothing but pieces goes in between.
fn check(chip: &mut Sim, promise: &Promise) -> Records {
    let mut bytes = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    check_sound(&mut store);
    let found = records(&mut store).unwrap();
    assert!(found == promise.records || promise.pending.as_ref() == Some(&found), "neither before nor after");
    assert_eq!(store.record_count(), found.len() as u64);
    found
}

fn check_rested(chip: &mut Sim, promise: &Promise) -> Records {
    let found = check(chip, promise);
    let mut bytes = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    rest(&mut store);
    check_sound(&mut store);
    assert_eq!(records(&mut store).unwrap(), found);
    assert_eq!(store.record_count(), found.len() as u64);
    found
}

#[test]
fn every_cut_leaves_whole_values_and_no_pieces_that_nothing_names() {
    let summary = Driver::new(formatted(Chip::TINY.with_blocks(32))).resume().every(workload(45), check);
    assert!(summary.cases > 1_000, "{summary:?}");
    let summary = Driver::new(formatted(Chip::TINY.with_blocks(32))).limit(1_500).every(workload(45), check_rested);
    assert!(summary.cases > 1_000, "{summary:?}");
}

#[test]
fn random_chains_of_cuts_among_pieces() {
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(32))).seed(17).resume();
    let summary = driver.random(2_000, workload(40), recover, check);
    assert!(summary.cuts >= 3_000, "{summary:?}");
}

#[test]
fn pieces_are_moved_on_a_crowded_chip() {
    for (seed, keys, pages_max) in [(12, 1600, 4), (13, 300, 40)] {
        let outcome = model(Chip::W25N01GV.with_blocks(64), seed, 1_200, keys, pages_max, 0.9);
        assert!(outcome.moved > 100, "seed {seed}: {} pages moved", outcome.moved);
        assert!(outcome.least > 0.6, "seed {seed}: full at {}", outcome.least);
    }
}

/// Values of two pages, until the chip is full to the brim: each of them can be deleted.
#[test]
fn a_chip_full_to_the_brim_of_small_pieces_can_be_emptied() {
    let chip = formatted(Chip::W25N01GV.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let mut count = 0;
    let refusal = loop {
        match store.put(&key(count), &pattern(4_000, count)) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refusal, Error::Full);
    let stats = store.stats();
    assert!(stats.live_pages * 20 > stats.capacity_pages * 19, "full with {stats:?}");
    for number in 0..count {
        assert_eq!(store.delete(&key(number)), Ok(true), "{number} of {count}");
    }
    rest(&mut store);
    check_sound(&mut store);
    assert_eq!((store.record_count(), store.stats().live_pages), (0, 1));
}

type Change<'a> = &'a mut dyn FnMut(&mut Store<'_, Sim>);

/// What one call programs at most where there is room, collecting among it: a small record over a large value, and the delete of a large value.
#[test]
fn changes_over_large_values_cost_a_few_programs() {
    let chip = formatted(Chip::W25N01GV.with_blocks(64));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    for number in 0..60 {
        store.put(&key(number), &pattern(30_000, number)).unwrap();
    }
    let mut most = [0, 0, 0];
    for number in 0..30_u32 {
        let changes: [Change<'_>; 3] = [
            &mut |store| assert!(store.put(&key(number), b"small").unwrap()),
            &mut |store| assert!(store.delete(&key(number + 30)).unwrap()),
            &mut |store| assert!(store.put(&key(number), b"other").unwrap()),
        ];
        for (change, most) in changes.into_iter().zip(&mut most) {
            let before = store.stats().programs_total();
            change(&mut store);
            *most = (*most).max(store.stats().programs_total() - before);
        }
    }
    println!("put over a large value, delete of one, put while pieces are removed: at most {most:?} programs");
    assert!(most.iter().all(|&programs| programs <= 12), "{most:?}");
}

/// Pieces that are missing, left over, or out of reach: made past the store, on its tree.
#[test]
fn verify_reports_pieces_that_are_missing_and_pieces_that_nothing_names() {
    use nandu_newtree::{ByteCells, Engine};
    let chip = formatted(Chip::TINY.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    store.put(b"k", &pattern(900, 1)).unwrap();
    let chip = store.unmount().unwrap();
    let options = nandu_newtree::Options { cache_size: 512, ..nandu_newtree::Options::DEFAULT };
    let mut engine = Engine::open(chip.clone(), ByteCells, options, &mut bytes).unwrap();
    let mut own = Vec::new();
    engine
        .range(std::ops::Bound::Excluded(b"k"), std::ops::Bound::Unbounded, nandu::Direction::Forward, |entry| {
            own.push((entry.key.to_vec(), entry.value.to_vec()));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    drop(engine);
    assert!(own.len() > 10, "a mark, a link and chunks");
    for (index, (key, value)) in own.iter().enumerate() {
        let mut stray = key.clone();
        *stray.last_mut().unwrap() ^= 0x80;
        for (key, value) in [(key, None), (&stray, Some(&value[..]))] {
            let mut engine = Engine::open(chip.clone(), ByteCells, options, &mut bytes).unwrap();
            engine.batch(&[Edit { key, value }]).unwrap();
            let damaged = engine.unmount().unwrap();
            let Ok(mut store) = Store::open(damaged, OPTIONS, &mut bytes) else { continue };
            let mut reports = Vec::new();
            let count = store.verify(&mut |violation| reports.push(violation.to_string())).unwrap();
            assert!(count > 0 && count == reports.len() as u64, "record {index} with {value:?}");
            assert!(store.read(b"k", 0, &mut [0; 900]).is_err() || key != &own[2].0);
        }
    }
}
