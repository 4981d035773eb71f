//! The end of a snapshot: what it costs at most, and that everything it kept comes free.

use nandu::nand::Nand;
use nandu::{Options, Store};
use nandu_sim::{Chip, Sim};

use crate::values::check_sound;

const OPTIONS: Options = Options { cache_size: 2048, ..Options::DEFAULT };
const RECORDS: u32 = 5_000;

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

fn memory(chip: &Sim) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(chip.geometry(), &OPTIONS)]
}

/// Records in some hundred leaves, and a large value, so that leaves have to be looked through for others.
fn filled<'m>(chip: &'m mut Sim, bytes: &'m mut [u8]) -> Store<'m, &'m mut Sim> {
    let mut store = Store::format(chip, OPTIONS, bytes).unwrap();
    store.put(b"large", &[7; 9_000]).unwrap();
    for number in 0..RECORDS {
        store.put(&key(number), &[1; 90]).unwrap();
    }
    store
}

fn overwrite(store: &mut Store<'_, &mut Sim>) {
    for number in 0..RECORDS {
        store.put(&key(number), &[2; 90]).unwrap();
    }
}

/// Records that can be put beside those that are there.
fn room(store: &mut Store<'_, &mut Sim>) -> u32 {
    for number in RECORDS.. {
        match store.put(&key(number), &[3; 90]) {
            Err(nandu::Error::Full) => return number - RECORDS,
            result => assert!(!result.unwrap()),
        }
    }
    0
}

#[test]
fn the_end_of_a_snapshot_reads_few_pages_and_all_that_it_kept_comes_free() {
    let mut chip = Sim::new(Chip::W25N01GV.with_blocks(40));
    let mut bytes = memory(&chip);
    let alone = {
        let mut store = filled(&mut chip, &mut bytes);
        overwrite(&mut store);
        room(&mut store)
    };
    for is_opened_again in [false, true] {
        let mut chip = Sim::new(Chip::W25N01GV.with_blocks(40));
        let mut bytes = memory(&chip);
        let mut store = filled(&mut chip, &mut bytes);
        let before = store.snapshot().unwrap();
        overwrite(&mut store);
        let (reads, programs) = (store.nand().counters().reads, store.nand().counters().programs);
        store.release(before).unwrap();
        let (reads, programs) = (store.nand().counters().reads - reads, store.nand().counters().programs - programs);
        println!("{reads} reads, {programs} programs, live {}", store.stats().live_pages);
        assert!(reads <= 256 + 60 && programs <= 20, "{reads} reads, {programs} programs");
        check_sound(&mut store);
        let mut again = memory(store.nand());
        if is_opened_again {
            let chip = store.unmount().unwrap();
            store = Store::open(chip, OPTIONS, &mut again).unwrap();
        }
        let found = room(&mut store);
        assert!(found * 100 >= alone * 98, "{found} records fit, {alone} where there was never a snapshot");
        check_sound(&mut store);
    }
}
