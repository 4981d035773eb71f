//! Large values in the tree: what a commit lists of them, what they cost, how they are moved.

use nandu_newtree::{ByteCells, Durability, Engine, EngineError, Options, memory_required};
use nandu_sim::{Chip, Sim, SimError};

const OPTIONS: Options = Options { cache_size: 512, pending_size: 600, has_values: true, ..Options::DEFAULT };

const ON_SYNC: Options = Options { durability: Durability::OnSync, ..OPTIONS };

fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; memory_required::<Sim>(&chip.geometry, options)]
}

fn put(engine: &mut Engine<'_, Sim, ByteCells>, key: &[u8], value: &[u8]) -> Result<bool, EngineError<SimError>> {
    engine.begin_value(key, value.len())?;
    let mut rest = value;
    while let Some(size) = engine.value_part() {
        let (now, more) = rest.split_at(size);
        engine.append_value(key, now)?;
        rest = more;
    }
    engine.end_value(key)
}

/// What a key has after a cut: a small value that waits is replaced by a large one, and both are durable.
fn after_a_cut(options: Options, key: u8) -> Result<Option<Vec<u8>>, EngineError<SimError>> {
    let chip = Chip::TINY.with_blocks(32);
    let mut bytes = memory(&chip, &options);
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes)?;
    for number in 0..100_u8 {
        engine.put(&[number], &[1; 9])?;
    }
    engine.settle()?;
    // Of these, in as many leaves, one is in the leaf of the commit.
    for number in (0..100_u8).step_by(20) {
        engine.put(&[number], &[2; 9])?;
    }
    engine.sync()?;
    put(&mut engine, &[key], &[7; 900])?;
    let chip = engine.abandon();
    let mut engine = crate::bench::open(chip, ByteCells, options, &mut bytes)?;
    engine.get(&[key]).map(|value| value.map(<[u8]>::to_vec))
}

/// W6: a commit before lists a small value of the key.
#[test]
fn a_large_value_is_not_hidden_by_what_an_older_member_lists() {
    let mut lost = 0;
    for key in (0..100).step_by(20) {
        assert_eq!(after_a_cut(ON_SYNC, key), Err(EngineError::LargeValue(900)));
        lost += u32::from(after_a_cut(Options { hide_heads: true, ..ON_SYNC }, key) == Ok(Some(vec![2; 9])));
    }
    assert!(lost > 0, "values are lost without the rule");
}

/// A program for each page, and one for the record.
#[test]
fn a_large_value_costs_a_program_for_each_page_and_one() {
    for options in [OPTIONS, ON_SYNC] {
        let chip = Chip::W25N01GV.with_blocks(32);
        let mut bytes = memory(&chip, &options);
        let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
        put(&mut engine, b"k", &[1; 5_000]).unwrap();
        for (size, pages) in [(600, 1), (1_900, 1), (3_900, 2), (30_000, 16)] {
            let before = engine.log().spent();
            assert_eq!(put(&mut engine, b"k", &vec![3; size]), Ok(true));
            assert_eq!(engine.log().spent().0, before.0 + pages + 1, "{size} bytes");
            let reads = engine.nand_mut().counters().reads;
            let mut value = vec![0; size];
            assert_eq!(engine.read(b"k", 0, &mut value), Ok(Some(size)));
            assert_eq!((value, engine.nand_mut().counters().reads - reads), (vec![3; size], pages));
        }
        let before = engine.log().spent().0;
        assert_eq!(engine.delete(b"k"), Ok(true));
        engine.sync().unwrap();
        assert_eq!(engine.log().spent().0, before + 1);
    }
}
