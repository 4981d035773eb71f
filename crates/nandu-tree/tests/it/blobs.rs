//! Values in commits: what they cost, when there are none, and how long they live. Lives with cuts and moves stand in `raw.rs`.

use nandu_sim::{Chip, Sim};
use nandu_tree::{Broken, ByteCells, Durability, Edit, Engine, LogOptions, Options, memory_required};

use crate::bench::value_of;

const OPTIONS: Options = Options {
    cache_size: 512,
    pending_size: 2_000,
    has_values: true,
    durability: Durability::OnSync,
    log: LogOptions { has_raw: true, ..LogOptions::DEFAULT },
    ..Options::DEFAULT
};

/// A store, whose values have pages of their own.
const STORE: Options = Options { log: LogOptions::DEFAULT, ..OPTIONS };

const CHIP: Chip = Chip::W25N01GV.with_blocks(40);

fn memory() -> Vec<u8> {
    vec![0; memory_required::<Sim>(&CHIP.geometry, &OPTIONS).max(memory_required::<Sim>(&CHIP.geometry, &STORE))]
}

fn formatted(options: Options, bytes: &mut [u8]) -> Engine<'_, Sim, ByteCells> {
    crate::bench::format(Sim::new(CHIP), ByteCells, options, bytes).unwrap()
}

#[test]
fn a_value_in_a_commit_takes_a_program_with_all_before_it() {
    let mut bytes = memory();
    let mut engine = formatted(OPTIONS, &mut bytes);
    for size in [1, 600, 1_700] {
        engine.put(b"before", &[size as u8]).unwrap();
        let before = engine.log().spent().0;
        let beside = [Edit { key: b"beside", value: Some(&[size as u8]) }];
        assert_eq!(engine.put_blob(b"k", &vec![size as u8; size], &beside), Ok(true));
        engine.sync().unwrap();
        assert_eq!(engine.log().spent().0, before + 1, "{size} bytes");
        let chip = engine.abandon();
        bytes.fill(0);
        engine = crate::bench::open(chip, ByteCells, OPTIONS, &mut bytes).unwrap();
        let reads = engine.nand_mut().counters().reads;
        assert_eq!(value_of(&mut engine, b"k"), Some(vec![size as u8; size]));
        assert_eq!(engine.nand_mut().counters().reads, reads + 1, "its head waits in memory");
        for key in [b"before", b"beside"] {
            assert_eq!(engine.get(key), Ok(Some(&[size as u8][..])));
        }
    }
    // One that does not fit beside a list, and none.
    let before = engine.log().spent();
    assert_eq!(engine.put_blob(b"k", &[1; 2_000], &[]), Ok(false));
    assert_eq!(engine.put_blob(b"k", &[], &[]), Ok(false));
    assert_eq!((engine.log().spent(), value_of(&mut engine, b"k")), (before, Some(vec![1_700_u32 as u8; 1_700])));
    // A store's values are its own.
    let mut bytes = memory();
    assert_eq!(formatted(STORE, &mut bytes).put_blob(b"k", &[1; 600], &[]), Ok(false));
}

/// Puts values in commits, then records until all these commits have left the window and their blocks would be emptied if nothing lived there. Returns how many values are there.
fn values_left(options: Options) -> usize {
    let mut bytes = memory();
    let mut engine = formatted(options, &mut bytes);
    for key in 0..30_u8 {
        assert_eq!(engine.put_blob(&[key], &[key; 900], &[]), Ok(true));
    }
    for number in 0..4_000_u32 {
        engine.put(&(number % 40).to_be_bytes(), &number.to_be_bytes()).unwrap();
        engine.sync().unwrap();
    }
    (0..30_u8).filter(|&key| engine.verify_value(&[key]).is_ok_and(|it| it == Some(true))).count()
}

/// W8: the page of a value dies when it leaves the window, though a head names it.
#[test]
fn a_commit_that_dies_with_its_membership_takes_its_value_along() {
    assert_eq!(values_left(OPTIONS), 30);
    let broken = Options { broken: Broken { blobs_leave: true, ..Broken::NOTHING }, ..OPTIONS };
    let run = std::panic::AssertUnwindSafe(|| values_left(broken));
    assert!(std::panic::catch_unwind(run).is_ok_and(|left| left < 30));
}

/// Where values come and go in commits, pages count as live that are so, and no others.
#[test]
fn what_lives_is_counted_while_values_in_commits_come_and_go() {
    let mut bytes = memory();
    let mut engine = formatted(OPTIONS, &mut bytes);
    let mut refused = 0;
    for round in 0..2_000_u32 {
        let key = [(round.wrapping_mul(2_654_435_761) >> 27) as u8];
        match round % 5 {
            0 => _ = engine.delete(&key).unwrap(),
            1 => _ = engine.put(&[200, key[0]], &[round as u8; 30]).unwrap(),
            _ => {
                let value = vec![round as u8; 300 + round as usize % 900];
                refused += u32::from(!engine.put_blob(&key, &value, &[]).unwrap());
            }
        }
        if round % 100 == 99 {
            engine.sync().unwrap();
            while engine.log().has_dying() {
                engine.idle(1).unwrap();
            }
            let mut live = 0;
            engine.live_pages(&mut |_| live += 1).unwrap();
            assert_eq!((live, engine.log().is_exact()), (engine.log().live_pages(), true), "round {round}");
        }
    }
    assert!(engine.stats().recounts == 0 && refused < 30, "{refused} of 1,200 have a page of their own");
}
