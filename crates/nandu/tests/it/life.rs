//! Long lives: chips filled and emptied, read too often, and worn to their end.

use nandu::Options;
use nandu::nand::Cause;
use nandu_sim::{Aging, Chip, Sim, SimError};

use super::rig::SMALL;
use super::values::{Records, check_sound, pattern, read_all, records};
use nandu::Store;

type Error = nandu::Error<SimError>;

const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };
const FULL: Error = nandu::Error::Full;
const READ_ONLY: Error = nandu::Error::ReadOnly;

fn memory(chip: &Sim, options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, options)]
}

fn formatted(chip: Chip) -> Sim {
    let sim = Sim::new(chip);
    let mut bytes = memory(&sim, &OPTIONS);
    Store::format(sim, OPTIONS, &mut bytes).unwrap().unmount().unwrap()
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// Fills a store in random order until it is full and deletes everything, three times over; opened again in between, after an
/// unmount or without one. Full, it has more than this part of the capacity.
fn fill_and_empty(chip: Chip, least: f64, value_size: impl Fn(u32) -> usize) {
    let mut chip = formatted(chip);
    let mut bytes = memory(&chip, &OPTIONS);
    let mut counts = Vec::new();
    for round in 0..3 {
        let mut store = Store::open(chip, OPTIONS, &mut bytes).unwrap();
        let mut expected = Records::new();
        let refusal = loop {
            let count = expected.len() as u32;
            let key = (count ^ round).wrapping_mul(0x9E37_79B1).to_be_bytes().to_vec();
            let value = pattern(value_size(count), count + round);
            match store.put(&key, &value) {
                Ok(_) => drop(expected.insert(key, value)),
                Err(error) => break error,
            }
        };
        assert_eq!(refusal, FULL);
        let live = f64::from(store.stats().live_pages) / f64::from(store.stats().capacity_pages);
        assert!(live > least, "round {round}: full with {live} of the capacity");
        counts.push(expected.len());
        let chip_between = if round == 1 { store.abandon() } else { store.unmount().unwrap() };

        let mut store = Store::open(chip_between, OPTIONS, &mut bytes).unwrap();
        assert!(records(&mut store).unwrap() == expected, "round {round}");
        let mut order: Vec<_> = expected.keys().cloned().collect();
        order.sort_by_key(|key| mixed(u32::from(key[3]) << 8 | u32::from(key[2]), 5));
        for key in order {
            assert_eq!(store.delete(&key), Ok(true), "round {round}: a delete on a full chip");
        }
        assert_eq!((store.record_count(), records(&mut store).unwrap()), (0, Records::new()));
        check_sound(&mut store);
        chip = store.unmount().unwrap();
    }
    assert!(counts[2] * 10 >= counts[0] * 8, "what fits becomes less: {counts:?}");
}

#[test]
fn a_chip_filled_until_full_can_be_emptied_and_filled_again() {
    for chip in [Chip::TINY, Chip::TINY.with_blocks(40), Chip::TINY_MLC] {
        fill_and_empty(chip, 0.5, |count| mixed(count, 1) as usize % 30);
    }
    fill_and_empty(Chip::W25N01GV.with_blocks(40), 0.5, |count| 200 + mixed(count, 1) as usize % 200);
}

#[test]
fn a_chip_filled_with_large_values_can_be_emptied_and_filled_again() {
    // Value pages alone; index pages, too; and a chip with pages of 2 KiB.
    fill_and_empty(SMALL.with_blocks(40), 0.45, |count| 60 + mixed(count, 1) as usize % 700);
    fill_and_empty(SMALL.with_blocks(64), 0.5, |count| 60 + mixed(count, 1) as usize % 3000);
    fill_and_empty(Chip::W25N01GV.with_blocks(40), 0.5, |count| mixed(count, 1) as usize % 40_000);
}

/// Puts until the store can only be read; when it is full, deletes. Blocks fail as worn blocks do.
fn wear_out(chip: Chip, keys: u32, value_size: impl Fn(u32) -> usize) {
    let mut chip = formatted(chip);
    chip.set_aging(Aging { failure: 0.5, ..Aging::NONE });
    let mut bytes = memory(&chip, &OPTIONS);
    let mut expected = Records::new();
    let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
    let mut round = 0;
    let end = loop {
        round += 1;
        assert!(round < 2_000_000, "the chip does not wear out: {:?}", store.stats());
        let key = format!("{}", mixed(round, 1) % keys).into_bytes();
        let value = pattern(value_size(round), round);
        match store.put(&key, &value) {
            Ok(_) => drop(expected.insert(key, value)),
            Err(FULL) => match expected.keys().next().cloned() {
                // Room shrinks as blocks die.
                Some(first) => match store.delete(&first) {
                    Ok(_) => drop(expected.remove(&first)),
                    Err(error) => break error,
                },
                None => break FULL,
            },
            Err(error) => break error,
        }
    };
    assert_eq!(end, READ_ONLY, "after {round} puts: {:?}", store.stats());
    let stats = store.stats();
    assert!(stats.bad_blocks >= 3 && stats.erase_count_max > 9, "{stats:?}");
    assert!(records(&mut store).unwrap() == expected, "after {round} puts");
    let _ = store.abandon();
    for _ in 0..3 {
        let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
        assert!(records(&mut store).unwrap() == expected, "opened again after {round} puts");
        for (key, value) in &expected {
            assert_eq!(read_all(&mut store, key).unwrap().as_ref(), Some(value));
        }
        assert_eq!(store.put(b"more", b"x"), Err(READ_ONLY));
        assert_eq!(store.batch(&[nandu::Edit { key: b"more", value: Some(b"x") }]), Err(READ_ONLY));
    }
}

#[test]
fn a_chip_worn_to_its_end_is_read_only_and_readable() {
    wear_out(Chip::TINY, 12, |round| mixed(round, 3) as usize % 30);
    wear_out(Chip::TINY.with_blocks(40), 40, |round| mixed(round, 3) as usize % 30);
    wear_out(Chip::TINY.with_blocks(40), 4, |round| mixed(round, 3) as usize % 1200);
}

/// Reads one record again and again, a chip of which is said to bear it so often, with idle time in between. Returns how many
/// records were lost, and how many pages were moved because of reads.
fn read_often(reads_max: u32) -> (usize, u64) {
    let options = Options { cache_size: 512, reads_max: Some(reads_max), ..Options::DEFAULT };
    let mut chip = formatted(Chip::W25N02KV.with_blocks(24));
    // Pages are lost from 3,000 reads of their block on.
    chip.set_aging(Aging { disturb_reads_slc: 10_000, ..Aging::NONE });
    let mut bytes = memory(&chip, &options);
    let mut store = Store::open(chip, options, &mut bytes).unwrap();
    let key = |number: u32| number.to_be_bytes();
    for number in 0..300 {
        store.put(&key(number), &pattern(300, number)).unwrap();
    }
    for round in 0..16_000_u32 {
        // Two leaves in turn, so that each is read from the chip.
        let found = store.get(&key(100 + round % 2 * 100)).map(|found| found.is_some());
        // A node above it may be lost with a leaf beside it.
        if found.is_err() || (round % 125 == 0 && store.idle(8).is_err()) {
            return (1, store.stats().programs_for(Cause::Refresh));
        }
        assert_eq!(found, Ok(true));
    }
    let moved = store.stats().programs_for(Cause::Refresh);
    let is_lost = |&number: &u32| store.get(&key(number)).is_err();
    let lost = (0..300).filter(is_lost).count();
    (lost, moved)
}

/// F8: the pages beside the one that is read are disturbed, and nobody reads them, so nothing says so.
#[test]
fn a_block_that_is_read_too_often_is_emptied_before_it_loses_data() {
    assert_eq!(read_often(375).0, 0);
    assert!(read_often(375).1 > 0);
    assert!(read_often(0).0 > 0);
}

/// Short sessions leave no count behind, and move the block all the same.
#[test]
fn a_block_read_in_many_short_sessions_is_emptied_before_it_loses_data() {
    let options = |reads_max| Options { cache_size: 512, reads_max: Some(reads_max), ..Options::DEFAULT };
    let lost = [375, 0].map(|reads_max| {
        let mut chip = formatted(Chip::W25N02KV.with_blocks(24));
        chip.set_aging(Aging { disturb_reads_slc: 10_000, ..Aging::NONE });
        let mut bytes = memory(&chip, &options(reads_max));
        let mut store = Store::open(chip, options(reads_max), &mut bytes).unwrap();
        for number in 0..300_u32 {
            store.put(&number.to_be_bytes(), &pattern(300, number)).unwrap();
        }
        let mut chip = store.unmount().unwrap();
        for _ in 0..300 {
            let Ok(mut store) = Store::open(chip, options(reads_max), &mut bytes) else { return 300 };
            for round in 0..50 {
                let _ = store.get(&(100 + round % 2 * 100_u32).to_be_bytes());
            }
            if store.idle(100).is_err() {
                return 1;
            }
            chip = store.unmount().unwrap();
        }
        let Ok(mut store) = Store::open(chip, options(reads_max), &mut bytes) else { return 300 };
        (0..300_u32).filter(|number| store.get(&number.to_be_bytes()).is_err()).count()
    });
    assert!(lost[0] == 0 && lost[1] > 0, "{lost:?} records are lost with and without refresh");
}

/// Cuts the power and opens again, with one put in between, so many times. Returns the most reads, programs and erases that a
/// put did.
fn cut_again_and_again(chip: Chip, value_size: usize, cycles: u32) -> (u64, u64, u64) {
    let mut chip = formatted(chip);
    let mut bytes = memory(&chip, &OPTIONS);
    let mut expected = Records::new();
    let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
    for number in 0_u32.. {
        let stats = store.stats();
        if stats.live_pages * 10 > stats.capacity_pages * 7 {
            break;
        }
        let (key, value) = (number.wrapping_mul(0x9E37_79B1).to_be_bytes().to_vec(), pattern(value_size, number));
        store.put(&key, &value).unwrap();
        expected.insert(key, value);
    }
    let _ = store.abandon();
    let keys: Vec<_> = expected.keys().cloned().collect();
    let (mut reads, mut programs, mut erases) = (0, 0, 0);
    for cycle in 0..cycles {
        let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
        let (key, value) = (&keys[mixed(cycle, 3) as usize % keys.len()], pattern(value_size, cycle));
        let before = *store.nand().counters();
        store.put(key, &value).unwrap();
        let cost = store.nand().counters().since(&before);
        (reads, programs, erases) = (reads.max(cost.reads), programs.max(cost.programs), erases.max(cost.erases));
        expected.insert(key.clone(), value);
        let _ = store.abandon();
    }
    let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
    assert!(records(&mut store).unwrap() == expected);
    check_sound(&mut store);
    (reads, programs, erases)
}

#[test]
fn a_chip_cut_a_thousand_times_with_a_put_in_between_keeps_its_bound() {
    for (chip, value_size) in [(Chip::TINY.with_blocks(40), 28), (Chip::W25N01GV.with_blocks(64), 340)] {
        let (reads, programs, erases) = cut_again_and_again(chip, value_size, 1000);
        println!("{}: at most {reads} reads, {programs} programs, {erases} erases", chip.name);
        assert!(reads <= 400 && programs <= 64 && erases <= 8, "{reads} reads, {programs} programs, {erases} erases");
    }
}
