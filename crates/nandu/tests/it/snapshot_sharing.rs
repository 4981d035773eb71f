//! What changes cost beside snapshots, and what snapshots are of.

use std::collections::BTreeMap;

use nandu::nand::Cause;
use nandu::{Options, SNAPSHOT_COUNT_MAX, Snapshot, Store};
use nandu_sim::{Chip, Sim};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::snapshots::{OPTIONS, Records, check_sound, formatted, kept, memory, records};

/// A chip with so many hundredths of its room taken by records, of which each of `count` snapshots keeps a part of its own and shares the rest, overwritten
/// until `capacities` times the capacity was programmed for the user. Returns programs per page that the user's changes needed.
fn amplification(count: usize, percent: u32, capacities: u64) -> f64 {
    let mut chip = formatted(Chip::W25N01GV.with_blocks(64));
    let mut bytes = memory(&chip);
    let mut store = Store::open(&mut chip, OPTIONS, &mut bytes).unwrap();
    let key = |number: u32| (number.wrapping_mul(0x9E37_79B1)).to_be_bytes();
    let mut expected = Records::new();
    let mut snapshots = BTreeMap::new();
    let capacity = store.stats().capacity_pages;
    let mut keys = 0_u32;
    while store.stats().live_pages * 100 < capacity * percent {
        let value = keys.to_be_bytes().repeat(24);
        store.put(&key(keys), &value).unwrap();
        expected.insert(key(keys).to_vec(), value);
        keys += 1;
    }
    let mut random = ChaCha8Rng::seed_from_u64(count as u64);
    let mut round = 0_u32;
    let begun = store.stats();
    let needed = |stats: &nandu::LogStats| stats.programs_for(Cause::Host) + stats.programs_for(Cause::Tree);
    while needed(&store.stats()) - needed(&begun) < capacities * u64::from(capacity) {
        if snapshots.len() < count && round.is_multiple_of(40) {
            snapshots.insert(store.snapshot().unwrap().number(), expected.clone());
        }
        // Before the last snapshot a few pages, so that each snapshot has some of its own; then a part of the keys, and of
        // the pages hardly one stays as it was.
        let number =
            if snapshots.len() < count { random.random_range(0..keys) } else { random.random_range(0..keys / 64) };
        let value = round.to_be_bytes().repeat(24);
        store.put(&key(number), &value).unwrap();
        expected.insert(key(number).to_vec(), value);
        round += 1;
    }
    let stats = store.stats();
    let ratio = (stats.programs_total() - begun.programs_total()) as f64 / (needed(&stats) - needed(&begun)) as f64;
    println!(
        "{count} snapshots: {ratio:.3} programs, gc {}, live {} of {capacity}, erases {}",
        stats.programs_for(Cause::Gc),
        stats.live_pages,
        stats.erases,
    );
    assert!(kept(&mut store).unwrap() == snapshots);
    assert!(records(&mut store).unwrap() == expected);
    check_sound(&mut store);
    let all: Vec<Snapshot> = store.snapshots().collect();
    for snapshot in all {
        store.release(snapshot).unwrap();
    }
    assert!(records(&mut store).unwrap() == expected);
    ratio
}

#[test]
fn a_chip_written_many_times_over_keeps_its_snapshots() {
    for (count, percent, most) in [(0, 40, 1.1), (1, 40, 1.1), (3, 40, 1.5), (SNAPSHOT_COUNT_MAX, 25, 3.0)] {
        let programs = amplification(count, percent, 6);
        assert!(programs < most, "{count} snapshots: {programs}");
    }
}

/// Changes that wait are in the snapshot that is taken, and those behind it go on waiting.
#[test]
fn changes_wait_for_syncs_beside_snapshots() {
    let options = Options { durability: nandu::Durability::OnSync, pending_size: 2048, ..OPTIONS };
    let chip = Sim::new(Chip::W25N01GV.with_blocks(48));
    let mut bytes = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut store = Store::format(chip, options, &mut bytes).unwrap();
    let mut expected = Records::new();
    let mut snapshots: BTreeMap<u32, Records> = BTreeMap::new();
    for round in 0..12_u32 {
        for number in 0..300_u32 {
            let key = (number * 7 % (50 + round)).to_be_bytes();
            store.put(&key, &round.to_be_bytes()).unwrap();
            expected.insert(key.to_vec(), round.to_be_bytes().to_vec());
            // Room that the collector makes moves pages, with changes waiting or not.
            if number % 90 == 0 {
                store.idle(20).unwrap();
            }
        }
        match round % 4 {
            0 | 1 => {
                let snapshot = store.snapshot().unwrap();
                snapshots.insert(snapshot.number(), expected.clone());
            }
            2 => {
                while let Some(oldest) = store.snapshots().next() {
                    store.release(oldest).unwrap();
                    snapshots.remove(&oldest.number());
                }
            }
            _ => store.sync().unwrap(),
        }
        if round % 4 != 2 {
            store.put(b"last", &round.to_be_bytes()).unwrap();
            expected.insert(b"last".to_vec(), round.to_be_bytes().to_vec());
            store.sync().unwrap();
            let chip = store.abandon();
            store = Store::open(chip, options, bytes.clone().leak()).unwrap();
        }
        assert!(records(&mut store).unwrap() == expected, "round {round}");
        assert!(kept(&mut store).unwrap() == snapshots, "round {round}");
        check_sound(&mut store);
    }
}
