//! Idle time comes to rest (N14): a store that nobody changes wears no chip.

use nandu::{Durability, Options, Store};
use nandu_sim::{Chip, Sim, Tear};

/// Pieces of idle time after which one that still finds work never ends.
const PIECES_MAX: u32 = 20_000;

fn next(state: &mut u32, below: u32) -> u32 {
    *state = state.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15);
    (*state >> 8) % below
}

fn wear(store: &Store<'_, Sim>) -> (u64, u64) {
    (store.nand().counters().programs, store.nand().counters().erases)
}

/// Rests until nothing is left to do, and a while longer, in which nothing is programmed or erased. Returns what the rest programmed.
fn rest(store: &mut Store<'_, Sim>, place: &str) -> u64 {
    let (before, _) = wear(store);
    let mut pieces = 0;
    while store.idle(64).unwrap() {
        pieces += 1;
        assert!(pieces < PIECES_MAX, "{place}: no end after {} programs", wear(store).0 - before);
    }
    let at_rest = wear(store);
    for _ in 0..200 {
        assert!(!store.idle(64).unwrap(), "{place}");
    }
    assert_eq!(wear(store), at_rest, "{place}");
    at_rest.0 - before
}

/// Puts, replaces and deletes, until so many percent of what fits lives and a while longer.
fn change(store: &mut Store<'_, Sim>, random: &mut u32, percent: u32) {
    let pages = store.nand().chip().geometry.page_count();
    let size = store.entry_size_max() / 2;
    for _ in 0..2 * pages {
        let stats = store.stats();
        let key = next(random, 2 * pages).to_be_bytes();
        let is_full = u64::from(stats.live_pages) * 100 > u64::from(stats.capacity_pages) * u64::from(percent);
        let outcome = if is_full || next(random, 8) == 0 {
            store.delete(&key)
        } else {
            let size = 1 + next(random, size as u32) as usize;
            store.put(&key, &vec![key[3]; size])
        };
        match outcome {
            Err(nandu::Error::Full) => {}
            outcome => drop(outcome.unwrap()),
        }
    }
}

fn comes_to_rest(chip: Chip, options: Options, seed: u32) {
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)];
    let mut sim = Store::format(Sim::new(chip), options, &mut memory).unwrap().unmount().unwrap();
    let mut random = seed;
    for percent in [5, 60, 90, 100, 30, 100] {
        let place = format!("seed {seed}, {percent} %");
        let mut store = Store::open(sim, options, &mut memory).unwrap();
        change(&mut store, &mut random, percent);
        let at = store.nand().operation_count() + u64::from(next(&mut random, 50));
        store.nand_mut().cut_at(at, Tear::Prefix);
        for number in 0..100_u32 {
            let _ = store.put(&number.to_be_bytes(), b"cut").and_then(|_| store.sync());
        }
        let mut cut = store.abandon();
        cut.clear_cuts();
        cut.power_on();
        store = Store::open(cut, options, &mut memory).unwrap();
        let programs = rest(&mut store, &format!("{place}, behind a cut"));
        assert!(programs <= 16, "{place}: {programs} programs although nothing was changed since the cut");
        change(&mut store, &mut random, percent);
        let live = u64::from(store.stats().live_pages + chip.geometry.pages_per_block);
        let programs = rest(&mut store, &place);
        assert!(programs <= live, "{place}: {programs} programs for {live} pages");
        store = Store::open(store.unmount().unwrap(), options, &mut memory).unwrap();
        let programs = rest(&mut store, &format!("{place}, opened again"));
        assert!(programs <= 1, "{place}: {programs} programs in a session that changes nothing");
        store = Store::open(store.unmount().unwrap(), options, &mut memory).unwrap();
        assert_eq!(rest(&mut store, &format!("{place}, opened once more")), 0, "{place}");
        sim = store.unmount().unwrap();
    }
}

#[test]
fn a_store_comes_to_rest() {
    for seed in 0..4 {
        comes_to_rest(Chip::TINY.with_blocks(40), Options { cache_size: 512, ..Options::DEFAULT }, seed);
    }
}

#[test]
fn a_store_whose_changes_wait_comes_to_rest() {
    let options = Options { cache_size: 4096, durability: Durability::OnSync, pending_size: 2000, ..Options::DEFAULT };
    let mut chip = Chip::W25N01GV.with_blocks(64);
    chip.geometry.pages_per_block = 8;
    for seed in 0..4 {
        comes_to_rest(chip, options, seed);
    }
}
