//! The digest: alike for the same entries, other for others, and none of what cannot be read.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;

use nandu::nand::PageAddr;
use nandu::{Durability, Edit, Error, Map, Options, Store};
use nandu_sim::{Chip, Fault, Sim, Trigger};
use siphasher::sip::SipHasher24;

use super::rig::SMALL;
use super::values::{Records, pattern, records};

const OPTIONS: Options = Options { cache_size: 512, ..Options::DEFAULT };

const ON_SYNC: Options = Options { durability: Durability::OnSync, pending_size: 4_000, ..OPTIONS };

/// What `FORMAT.md` says of some entries.
fn as_documented(records: &Records) -> u64 {
    records.iter().fold(0, |digest: u64, (key, value)| {
        let mut hash = SipHasher24::new_with_key(b"nandu records 1\0");
        hash.write(&digest.to_le_bytes());
        for bytes in [key, value] {
            hash.write(&(bytes.len() as u64).to_le_bytes());
            hash.write(bytes);
        }
        hash.finish()
    })
}

fn memory(chip: &Chip, options: Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.geometry, &options)]
}

fn fresh(chip: Chip, options: Options) -> Store<'static, Sim> {
    Store::format(Sim::new(chip), options, memory(&chip, options).leak()).unwrap()
}

/// Unmounts, or is cut, and opens again.
fn again(store: Store<'static, Sim>, options: Options, is_cut: bool) -> Store<'static, Sim> {
    let chip = if is_cut { store.abandon() } else { store.unmount().unwrap() };
    let memory = memory(chip.chip(), options).leak();
    Store::open(chip, options, memory).unwrap()
}

/// Some entries: many small ones, an empty one, and values of one page and of several, wherever they stand on pages of some size.
fn entries() -> Records {
    let small =
        (0..150_u32).map(|number| (format!("k{number:03}").into_bytes(), pattern(number as usize % 40, number)));
    let large =
        [300, 700, 1200, 4000, 30_000].map(|size| (format!("k{size}").into_bytes(), pattern(size as usize, size)));
    small.chain(large).chain([(Vec::new(), Vec::new())]).collect()
}

/// The same entries by detours: others came and went, and pages were moved.
fn by_detours(store: &mut Store<'_, Sim>) {
    for round in 0..3_u32 {
        for (key, value) in entries().iter().rev() {
            let other = pattern((value.len() + 7 * round as usize) % 900, round);
            store.put(key, &other).unwrap();
        }
        store.put(b"gone", &pattern(2_000, round)).unwrap();
    }
    for (index, (key, value)) in entries().iter().enumerate() {
        if index % 3 == 0 {
            store.delete(key).unwrap();
        }
        store.put(key, value).unwrap();
    }
    store.batch(&[Edit { key: b"gone", value: None }, Edit { key: b"k", value: None }]).unwrap();
}

#[test]
fn the_same_entries_have_one_digest_whatever_their_history_and_the_chip() {
    let expected = as_documented(&entries());
    for chip in [Chip::TINY.with_blocks(200), SMALL.with_blocks(160), Chip::W25N01GV.with_blocks(64)] {
        for options in [OPTIONS, ON_SYNC] {
            let mut store = fresh(chip, options);
            assert_eq!(store.digest(), Ok(0), "a store without entries");
            for (key, value) in &entries() {
                store.put(key, value).unwrap();
            }
            // As it is read, with what waits.
            assert_eq!(store.digest(), Ok(expected), "{}", chip.name);

            let mut store = fresh(chip, options);
            by_detours(&mut store);
            assert_eq!(store.digest(), Ok(expected), "{}", chip.name);
            store.sync().unwrap();
            assert_eq!(store.digest(), Ok(expected));
            let mut store = again(store, options, true);
            assert_eq!(store.digest(), Ok(expected));
            store.merge().unwrap();
            while store.idle(20).unwrap() {}
            assert_eq!(again(store, options, false).digest(), Ok(expected));
        }
    }
}

#[test]
fn what_a_snapshot_keeps_has_a_digest_of_its_own() {
    for options in [OPTIONS, ON_SYNC] {
        let mut store = fresh(Chip::W25N01GV.with_blocks(64), options);
        by_detours(&mut store);
        let expected = as_documented(&entries());
        let snapshot = store.snapshot().unwrap();
        assert_eq!(store.digest(), Ok(expected), "what is kept is no part of it");
        store.put(b"k4000", &pattern(5_000, 1)).unwrap();
        store.put(b"k000", b"other").unwrap();
        store.delete(b"k30000").unwrap();
        store.delete(b"k017").unwrap();
        store.put(b"l", b"new").unwrap();
        let now = as_documented(&records(&mut store).unwrap());
        assert_ne!(now, expected);
        assert_eq!(store.digest(), Ok(now));
        assert_eq!(store.at(&snapshot).digest(), Ok(expected));
        store.sync().unwrap();
        let mut store = again(store, options, true);
        assert_eq!(store.digest(), Ok(now));
        assert_eq!(store.at(&snapshot).digest(), Ok(expected));
        store.release(snapshot).unwrap();
        assert_eq!(store.digest(), Ok(now));
        assert_eq!(store.at(&snapshot).digest(), Err(Error::NoSnapshot(snapshot.number())));
    }
}

#[test]
fn every_change_is_another_digest() {
    let mut store = fresh(Chip::W25N01GV.with_blocks(64), OPTIONS);
    for (key, value) in &entries() {
        store.put(key, value).unwrap();
    }
    let mut digests = vec![store.digest().unwrap()];
    let mut changed = |store: &mut Store<'_, Sim>| {
        let digest = store.digest().unwrap();
        assert!(!digests.contains(&digest), "change {}", digests.len());
        digests.push(digest);
    };
    for (key, value) in &entries() {
        for place in BTreeSet::from([0, value.len() / 2, value.len().saturating_sub(1)]) {
            let mut other = value.clone();
            if let Some(byte) = other.get_mut(place) {
                *byte ^= 0x10;
                store.put(key, &other).unwrap();
                changed(&mut store);
            }
        }
        store.put(key, &[value, &[0][..]].concat()).unwrap();
        changed(&mut store);
        store.delete(key).unwrap();
        changed(&mut store);
        store.put(key, value).unwrap();
    }
    assert_eq!(store.digest(), Ok(as_documented(&entries())));
    // Where a key ends and its value begins matters, and so does which of two keys has which value.
    let of = |pairs: &[(&[u8], &[u8])]| {
        let mut store = fresh(Chip::TINY, OPTIONS);
        pairs.iter().for_each(|(key, value)| assert_eq!(store.put(key, value), Ok(false)));
        store.digest().unwrap()
    };
    let (a, b) = (of(&[(b"ab", b"cd"), (b"x", b"1")]), of(&[(b"abc", b"d"), (b"x", b"1")]));
    assert_ne!(a, b);
    assert_ne!(a, of(&[(b"ab", b"1"), (b"x", b"cd")]));
    assert_ne!(of(&[(b"a", b"")]), of(&[(b"", b"a")]));
}

#[test]
fn a_chip_that_was_put_back_and_what_was_not_synced_are_noticed() {
    let mut store = fresh(Chip::W25N01GV.with_blocks(48), ON_SYNC);
    store.put(b"counter", b"41").unwrap();
    store.sync().unwrap();
    let old = store.digest().unwrap();
    let put_back = store.nand().clone();
    store.put(b"counter", b"42").unwrap();
    let kept_elsewhere = store.digest().unwrap();
    let mut store = again(store, ON_SYNC, true);
    assert_eq!(store.digest(), Ok(old), "it was not synced");
    store.put(b"counter", b"42").unwrap();
    store.sync().unwrap();
    assert_eq!(again(store, ON_SYNC, true).digest(), Ok(kept_elsewhere));

    let mut bytes = memory(put_back.chip(), ON_SYNC);
    let mut store = Store::open(put_back, ON_SYNC, &mut bytes).unwrap();
    assert_eq!(store.verify(&mut |_| {}), Ok(0), "it is sound, and old");
    assert_eq!(store.digest(), Ok(old));
    assert_ne!(old, kept_elsewhere);
}

/// Each page in turn: it is not needed, or it is named.
#[test]
fn a_page_that_cannot_be_read_is_named_and_no_other_digest() {
    let chip = SMALL.with_blocks(120);
    let mut store = fresh(chip, OPTIONS);
    by_detours(&mut store);
    let (expected, sim) = (as_documented(&entries()), store.unmount().unwrap());
    let mut bytes = memory(&chip, OPTIONS);
    let mut named = BTreeMap::new();
    for page in 0..chip.geometry.block_count * chip.geometry.pages_per_block {
        let mut sim = sim.clone();
        sim.inject(Fault::Uncorrectable, Trigger::Page(PageAddr(page)));
        let Ok(mut store) = Store::open(sim, OPTIONS, &mut bytes) else { continue };
        let before = store.stats().programs_total();
        match store.digest() {
            Ok(digest) => assert_eq!(digest, expected, "page {page}"),
            Err(Error::Corrupt { page: it, why }) => {
                assert_eq!(it, PageAddr(page));
                named.insert(page, why);
            }
            Err(error) => panic!("page {page}: {error}"),
        }
        assert_eq!(store.stats().programs_total(), before);
    }
    // The pages of the value of 30,000 bytes alone.
    assert!(named.len() > 30, "{} pages are needed", named.len());
}

#[test]
fn a_map_has_the_digest_of_its_bytes() {
    let mut memory = vec![0; Map::<Sim, u32, 4, u64, 8>::memory_required(&Chip::TINY.geometry, &OPTIONS)];
    let mut map: Map<_, u32, 4, u64, 8> = Map::format(Sim::new(Chip::TINY), OPTIONS, &mut memory).unwrap();
    let pairs = (0..200_u32).map(|number| (number * 3, u64::from(number) << 30));
    pairs.clone().rev().for_each(|(key, value)| assert_eq!(map.put(key, value), Ok(false)));
    let bytes = pairs.map(|(key, value)| (key.to_be_bytes().to_vec(), value.to_be_bytes().to_vec())).collect();
    assert_eq!(map.digest(), Ok(as_documented(&bytes)));
}

/// What the documentation of the call says of its cost.
#[test]
fn a_digest_reads_each_leaf_and_each_page_of_a_large_value() {
    let mut store = fresh(Chip::W25N01GV.with_blocks(64), Options { cache_size: 4096, ..OPTIONS });
    let mut reads = |key: &[u8], value: &[u8]| {
        store.put(key, value).unwrap();
        let before = store.nand().counters().reads;
        store.digest().unwrap();
        store.nand().counters().reads - before
    };
    for number in 0..1_000_u32 {
        reads(&number.to_be_bytes(), &pattern(20, number));
    }
    // A leaf has 40 of these entries at least.
    let small = reads(b"small", b"");
    assert!(small <= 1_000 / 40, "{small}");
    // A record names 20 pages, and not 200.
    let large = reads(b"large", &pattern(20 * 2_000, 1)) - small;
    assert!((20..=30).contains(&large), "{large}");
    let grouped = reads(b"large", &pattern(200 * 2_000, 1)) - small;
    assert!((200..=2 * 400 + 220).contains(&grouped), "{grouped}");
}
