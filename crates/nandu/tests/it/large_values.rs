//! Large values: their pages are whole, moved, and free again when nothing names them, at every cut.

use std::collections::BTreeMap;

use nandu::nand::{Ecc, Geometry, PageAddr};
use nandu::{Durability, Edit, Error, Options, Store};
use nandu_media::checksum::page_checksum;
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

use super::cuts::chains;
use super::rig::SMALL;
use super::values::{Records, check_sound, formatted, memory, model, pattern, read_all, records};

const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

/// The same, with changes that wait.
const ON_SYNC: Options = Options { durability: Durability::OnSync, pending_size: 1_000, ..OPTIONS };

/// Whatever idle time does.
fn rest(store: &mut Store<'_, impl nandu::nand::Nand<Error = nandu_sim::SimError>>) {
    let mut calls = 0;
    while store.idle(20).unwrap() {
        calls += 1;
        assert!(calls < 20_000, "idle time does not end");
    }
}

/// Makes pages of values dead in every way: replaced by a large and by a small value, deleted, by a batch, given up by a writer.
fn leave_pages(store: &mut Store<'_, Sim>, size: usize) {
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
fn pages_that_were_replaced_deleted_or_given_up_are_free_at_once() {
    for durability in [Durability::Immediate, Durability::OnSync] {
        for (chip, size) in [(Chip::TINY.with_blocks(64), 3_000), (Chip::W25N01GV.with_blocks(48), 60_000)] {
            let options = Options { durability, pending_size: 2_000, ..OPTIONS };
            let chip = formatted(chip);
            let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
            let mut store = Store::open(chip, options, &mut bytes).unwrap();
            store.put(b"stays", &pattern(size, 0)).unwrap();
            let live = store.stats().live_pages;
            leave_pages(&mut store, size);
            // What a writer gave up is counted with the next change.
            store.put(b"a", b"2").unwrap();
            store.sync().unwrap();
            check_sound(&mut store);
            assert!(store.stats().live_pages <= live + 8, "{} pages live, {live} before", store.stats().live_pages);
            // The same, found again after a cut.
            leave_pages(&mut store, size);
            store.sync().unwrap();
            let chip = store.abandon();
            let mut store = Store::open(chip, options, &mut bytes).unwrap();
            assert_eq!(store.record_count(), 3);
            rest(&mut store);
            check_sound(&mut store);
            let wanted = [(&b"a"[..], b"1".to_vec()), (b"replaced", b"small".to_vec()), (b"stays", pattern(size, 0))];
            assert_eq!(records(&mut store).unwrap(), wanted.map(|(key, value)| (key.to_vec(), value)).into());
        }
    }
}

/// What says in a leaf where a large value is: a mark, the bytes of the value, and the numbers of its pages.
const MARK: [u8; 4] = [0x7F, 0x48, 0xD6, 0x9B];

/// A small value whose bytes say where a large one is, as the store writes them, is a value like any other.
#[test]
fn a_value_that_looks_like_what_says_where_a_large_one_is() {
    let chip = formatted(Chip::TINY.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    // A value of 100 bytes takes one page.
    let head = [&MARK[..], &100_u32.to_le_bytes(), &7_u32.to_le_bytes()].concat();
    let key = b"small";
    store.put(key, &head).unwrap();
    assert_eq!(store.value_len(key), Ok(Some(head.len())));
    assert_eq!(read_all(&mut store, key).unwrap(), Some(head.clone()));
    let batch = store.batch(&[Edit { key: b"other", value: Some(&head) }]);
    assert_eq!(batch, Err(Error::ValueSize(head.len())), "a batch has small values only");
    // With a byte more, or another length, it is told apart.
    let longer = [&head[..], b"!"].concat();
    let other = [&MARK[..], &100_000_u32.to_le_bytes(), &7_u32.to_le_bytes()].concat();
    for value in [longer, other] {
        store.batch(&[Edit { key: b"other", value: Some(&value) }]).unwrap();
        assert_eq!(store.get(b"other"), Ok(Some(&value[..])));
    }
    check_sound(&mut store);
}

/// Groups of pages, with leaders, on the smallest pages: put, read in parts, replaced.
#[test]
fn a_value_of_more_pages_than_its_record_names() {
    let chip = formatted(Chip::TINY.with_blocks(96));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    let most = store.value_size_max(b"k");
    assert!(most > 30_000, "{most}");
    assert_eq!(store.put(b"k", &vec![0; most + 1]), Err(Error::ValueSize(most + 1)));
    for size in [3_000, 9_000, 20_000] {
        let value = pattern(size, size as u32);
        store.put(b"k", &value).unwrap();
        for number in 0..600_u32 {
            store.put(&(number * 7 % 60).to_be_bytes(), &pattern(150, number)).unwrap();
        }
        assert_eq!(read_all(&mut store, b"k").unwrap(), Some(value.clone()));
        let mut part = [0; 333];
        for offset in (0..size).step_by(777) {
            let count = store.read(b"k", offset, &mut part).unwrap().unwrap();
            assert_eq!(part[..count], value[offset..(offset + 333).min(size)], "from {offset} on");
        }
        check_sound(&mut store);
        let chip = store.abandon();
        store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        assert_eq!(read_all(&mut store, b"k").unwrap(), Some(value));
        check_sound(&mut store);
    }
}

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
    /// Programs of the collector in the last run.
    moved: u64,
}

/// Large values put, written in pieces, given up, replaced by others, by small ones and by batches, and deleted; idle time between.
fn workload(options: Options, changes: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let mut store = Store::open(&mut *chip, options, &mut bytes)?;
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
            store.sync()?;
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

/// Sound at once, and after idle time.
fn check(options: Options) -> impl Fn(&mut Sim, &Promise) -> Records {
    move |chip, promise| {
        let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
        let mut store = Store::open(&mut *chip, options, &mut bytes).unwrap();
        check_sound(&mut store);
        let found = records(&mut store).unwrap();
        assert!(found == promise.records || promise.pending.as_ref() == Some(&found), "neither before nor after");
        assert_eq!(store.record_count(), found.len() as u64);
        found
    }
}

fn check_rested(chip: &mut Sim, promise: &Promise) -> Records {
    let found = check(OPTIONS)(chip, promise);
    let mut bytes = memory(chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    rest(&mut store);
    check_sound(&mut store);
    assert_eq!(records(&mut store).unwrap(), found);
    assert_eq!(store.record_count(), found.len() as u64);
    found
}

#[test]
fn every_cut_leaves_whole_values() {
    for options in [OPTIONS, ON_SYNC] {
        let driver = Driver::new(formatted(Chip::TINY.with_blocks(32))).resume();
        let summary = driver.every(workload(options, 45), check(options));
        assert!(summary.cases > 1_000, "{summary:?}");
    }
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(32))).limit(1_500);
    let summary = driver.every(workload(OPTIONS, 45), check_rested);
    assert!(summary.cases > 1_000, "{summary:?}");
}

/// Values of groups of pages, each with a leader, in blocks that are read so often that they are emptied: pages move alone and with their leader.
#[test]
fn every_cut_leaves_whole_values_of_groups_that_move() {
    for options in [OPTIONS, ON_SYNC] {
        let options = Options { reads_max: Some(60), ..options };
        let run = move |chip: &mut Sim, promise: &mut Promise| -> Run {
            let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
            let mut store = Store::open(&mut *chip, options, &mut bytes)?;
            promise.records = records(&mut store)?;
            promise.pending = None;
            for _ in 0..24 {
                let count = promise.count;
                promise.count += 1;
                let key = vec![b'a' + (count * 7 % 5) as u8];
                let value = pattern(if count.is_multiple_of(3) { 2_400 } else { 200 }, count);
                let after: Records =
                    promise.records.clone().into_iter().chain([(key.clone(), value.clone())]).collect();
                promise.pending = Some(after);
                store.put(&key, &value)?;
                store.sync()?;
                promise.records = promise.pending.take().unwrap_or_default();
                let _ = read_all(&mut store, b"a");
            }
            promise.moved = store.stats().programs_for(nandu::nand::Cause::Refresh);
            Ok(())
        };
        let chip = formatted(Chip::TINY.with_blocks(30));
        let mut promise = Promise::default();
        run(&mut chip.clone(), &mut promise).unwrap();
        assert!(promise.moved > 20, "{} programs for moves", promise.moved);
        let summary = Driver::new(chip).limit(1_500).every(run, check(options));
        assert!(summary.cases >= 1_000, "{summary:?}");
    }
}

#[test]
fn random_chains_of_cuts_among_values() {
    let driver = Driver::new(formatted(Chip::TINY.with_blocks(32))).seed(17).resume();
    let summary = driver.random(chains(800), workload(OPTIONS, 40), recover, check(OPTIONS));
    assert!(summary.cuts >= 1_200, "{summary:?}");
}

#[test]
fn pages_of_values_are_moved_on_a_crowded_chip() {
    for (seed, keys, pages_max) in [(12, 1600, 4), (13, 300, 40)] {
        let outcome = model(Chip::W25N01GV.with_blocks(64), seed, 2_400, keys, pages_max, 0.9);
        assert!(outcome.moved > 100, "seed {seed}: {} pages moved", outcome.moved);
        assert!(outcome.least > 0.6, "seed {seed}: full at {}", outcome.least);
    }
}

/// Values of two pages, until the chip is full to the brim: each of them can be deleted.
#[test]
fn a_chip_full_to_the_brim_of_values_can_be_emptied() {
    let chip = formatted(Chip::W25N01GV.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    let mut count = 0;
    let refusal = loop {
        match store.put(&key(count), &pattern(3_900, count)) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refusal, Error::Full);
    let stats = store.stats();
    // Before any is moved, four programs are reckoned for three of them, and moving all of them has to leave the slack.
    assert!(stats.live_pages * 100 > stats.capacity_pages * 73, "full with {stats:?}");
    for number in 0..count {
        assert_eq!(store.delete(&key(number)), Ok(true), "{number} of {count}");
    }
    rest(&mut store);
    check_sound(&mut store);
    assert_eq!((store.record_count(), store.stats().live_pages), (0, 1));
}

type Change<'a> = &'a mut dyn FnMut(&mut Store<'_, Sim>);

/// What one call programs at most where there is room, collecting among it: a small record over a large value, and the delete of a large value.
/// Whether there is room for a value is asked when it begins and for each of its pages: the answers have to agree, or one that takes the place of another is refused for ever.
#[test]
fn a_full_chip_takes_values_in_the_place_of_others() {
    for blocks in 16..28 {
        let geometry =
            Geometry { page_size: 512, program_unit: 512, pages_per_block: 64, ..SMALL.with_blocks(blocks).geometry };
        let chip = formatted(Chip {
            geometry: Geometry { ecc: Ecc { codeword_size: 512, ..geometry.ecc }, ..geometry },
            ..SMALL
        });
        let mut memory = memory(&chip);
        let mut store = Store::open(chip, OPTIONS, &mut memory).unwrap();
        let mut count = 0_u32;
        let refused = loop {
            match store.put(&count.to_be_bytes(), &pattern(150, count)) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!((refused, store.value_len(&[0; 4]).unwrap()), (Error::Full, Some(150)));
        for number in 0..count {
            let put = store.put(&number.to_be_bytes(), &pattern(150, !number));
            assert_eq!(put, Ok(true), "{blocks} blocks, {number} of {count}");
        }
        check_sound(&mut store);
    }
}

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
    println!("put over a large value, delete of one, put: at most {most:?} programs");
    assert!(most.iter().all(|&programs| programs <= 6), "{most:?}");
}

/// Records that name other pages than their value's.
#[test]
fn verify_reports_pages_of_values_that_are_not_what_their_record_says() {
    let chip = formatted(Chip::TINY.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    store.put(b"k", &pattern(900, 1)).unwrap();
    let chip = store.unmount().unwrap();
    let pages = chip.chip().geometry.pages_per_block * chip.chip().geometry.block_count;
    let has_mark = |page: &u32| chip.peek(PageAddr(*page)).windows(4).any(|bytes| bytes == MARK);
    let page = PageAddr((0..pages).find(has_mark).unwrap());
    let size = chip.chip().geometry.page_size as usize;
    let whole = chip.peek(page)[..size].to_vec();
    let at = whole.windows(4).position(|bytes| bytes == MARK).unwrap() + 8;
    for place in at..at + 4 * 5 {
        let mut damaged = whole.clone();
        damaged[place] ^= 1;
        let crc = page_checksum(&damaged[4..]);
        damaged[..4].copy_from_slice(&crc.to_le_bytes());
        let mut chip = chip.clone();
        chip.poke(page, &damaged);
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        let mut reports = Vec::new();
        let count = store.verify(&mut |violation| reports.push(violation.to_string())).unwrap();
        assert!(count > 0 && count == reports.len() as u64, "byte {place}");
        assert!(store.read(b"k", 0, &mut [0; 900]).is_err(), "byte {place}");
    }
}

/// What a writer left that was dropped right before an unmount is counted no more.
#[test]
fn a_value_that_is_given_up_before_an_unmount_takes_no_room_afterwards() {
    let chip = formatted(Chip::W25N01GV.with_blocks(48));
    let mut bytes = memory(&chip);
    let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    store.put(b"k", b"small").unwrap();
    let live = store.stats().live_pages;
    let mut buffer = vec![0; 2048];
    store.writer(b"k", 90_000, &mut buffer).unwrap().write(&pattern(80_000, 5)).unwrap();
    assert!(store.stats().live_pages > live + 30);
    let chip = store.unmount().unwrap();
    let store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
    assert!(store.stats().live_pages <= live + 2, "{} pages live, {live} before", store.stats().live_pages);
}
