//! Raw pages with two bits a cell: lives with torn cuts and programs that fail, on chips filled to the brim.

use std::collections::BTreeMap;

use nandu_nand::{CellMode, Geometry, Pairing, TearScope};
use nandu_sim::{Chip, Fault, Sim, SimError, Trigger};
use nandu_tree::{ByteCells, Durability, Engine, EngineError, LogError, LogOptions, Options, memory_required};

use crate::bench::{cases, sound, value_of};

const OPTIONS: Options = Options {
    cache_size: 512,
    pending_size: 1_200,
    has_values: true,
    durability: Durability::OnSync,
    log: LogOptions { has_raw: true, has_mlc: true, ..LogOptions::DEFAULT },
    ..Options::DEFAULT
};

/// Pages that share their cells, and blocks that are full soon.
fn chip(blocks: u32, pairing: Pairing) -> Chip {
    let chip = Chip::TINY_MLC.with_blocks(blocks);
    let geometry = Geometry {
        page_size: 512,
        program_unit: 512,
        pages_per_block: 16,
        pairing,
        tear: TearScope::Pair,
        ..chip.geometry
    };
    Chip { geometry, ..chip }
}

type Tree<'m> = Engine<'m, Sim, ByteCells>;
type Key = [u8; 2];
type Value = Option<Vec<u8>>;

fn put(engine: &mut Tree<'_>, key: &[u8], value: &[u8], mode: CellMode) -> Result<bool, EngineError<SimError>> {
    engine.begin_value_in(key, value.len(), mode)?;
    engine.append_value(key, value)?;
    engine.end_value(key)
}

/// The value of a key when a snapshot was taken.
fn value_at(engine: &mut Tree<'_>, number: u32, key: &[u8]) -> Value {
    let mut bytes = vec![0; 512];
    let size = engine.at(number).read(key, 0, &mut bytes).unwrap()?;
    bytes.truncate(size);
    Some(bytes)
}

struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What lives are to have seen.
#[derive(Debug, Default)]
struct Seen {
    refused: u32,
    cuts: u32,
    failures: u64,
    dense: u32,
    snapshots: u32,
}

/// What was synced is there, and what was not is the old value or the new one, whatever a cut tears and whichever programs fail.
fn life(seed: u64, seen: &mut Seen) {
    let chip = chip(48, if seed.is_multiple_of(2) { Pairing::SchemeA } else { Pairing::Dist3 });
    let pending_size = if seed % 4 == 3 { 60 } else { 600 + 400 * (seed as usize % 8) };
    let options = Options { pending_size, has_snapshots: seed % 5 == 4, ..OPTIONS };
    let mut bytes = vec![0; memory_required::<Sim>(&chip.geometry, &options)];
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
    let (mut synced, mut unsynced) = (BTreeMap::<Key, Value>::new(), BTreeMap::<Key, Vec<Value>>::new());
    let (mut draw, mut failed) = (Draw(seed), 0);
    let keys = if seed.is_multiple_of(3) { 300 } else { 520 };
    // What a snapshot has to keep, where there is one.
    let mut kept: Option<(u32, BTreeMap<Key, Value>)> = None;
    for step in 0..1_200_u32 {
        let is_record = draw.below(3) == 0;
        let key = (if is_record { 1_000 + draw.below(120) } else { draw.below(keys) } as u16).to_be_bytes();
        let value =
            (draw.below(8) > 0).then(|| vec![step as u8; 1 + draw.below(if is_record { 60 } else { 512 }) as usize]);
        let mode = if draw.below(4) == 0 { CellMode::Mlc } else { CellMode::Slc };
        match draw.below(40) {
            0 => {
                engine.nand_mut().inject(Fault::Cut(None), Trigger::Nth(draw.below(40)));
            }
            // A chip that is full has no block to lose.
            1 if seed.is_multiple_of(3) && failed < 2 => {
                failed += 1;
                engine.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(draw.below(8)));
            }
            _ => {}
        }
        let done = match &value {
            Some(value) if is_record => engine.put(&key, value),
            Some(value) => put(&mut engine, &key, value, mode),
            None => engine.delete(&key),
        };
        let mut is_cut = false;
        match done {
            Ok(_) => unsynced.entry(key).or_default().push(value),
            Err(EngineError::Log(LogError::Full)) if value.is_some() => seen.refused += 1,
            Err(_) if engine.log().nand().is_off() => {
                unsynced.entry(key).or_default().push(value);
                is_cut = true;
            }
            Err(error) => {
                panic!("life {seed}, step {step}: {error}")
            }
        }
        match draw.below(60) {
            1..10 if !is_cut => match engine.sync() {
                Ok(()) => {
                    let last = core::mem::take(&mut unsynced).into_iter();
                    synced.extend(last.filter_map(|(key, mut values)| Some((key, values.pop()?))));
                }
                Err(_) if engine.log().nand().is_off() => is_cut = true,
                Err(error) => panic!("life {seed}, step {step}: {error}"),
            },
            10..14 if !is_cut => match engine.idle(12) {
                Ok(_) => {}
                Err(_) if engine.log().nand().is_off() => is_cut = true,
                Err(error) => {
                    panic!("life {seed}, step {step}: {error}")
                }
            },
            _ => {}
        }
        if is_cut || draw.below(120) == 0 {
            seen.cuts += 1;
            seen.failures += engine.log().stats().failures;
            let mut sim = match (is_cut, draw.below(2)) {
                (false, 0) => engine.unmount().unwrap_or_else(|(_, sim)| sim),
                _ => engine.abandon(),
            };
            sim.withdraw_all();
            if sim.is_off() {
                sim.power_on();
            }
            engine = crate::bench::open(sim, ByteCells, options, &mut bytes).unwrap();
            for (key, mut values) in core::mem::take(&mut unsynced) {
                let found = value_of(&mut engine, &key);
                values.push(synced.get(&key).cloned().flatten());
                assert!(values.contains(&found), "life {seed}, step {step}");
                synced.insert(key, found);
            }
        }
        if step % 50 == 0 && !engine.log().nand().is_off() {
            engine.nand_mut().withdraw_all();
            if let Some((number, values)) = &kept {
                for (key, value) in values {
                    assert_eq!(value_at(&mut engine, *number, key), *value, "life {seed}, step {step}, snapshot");
                }
            }
            if options.has_snapshots && step % 200 == 0 {
                if let Some((number, _)) = kept.take() {
                    engine.release(number).unwrap();
                }
                if engine.sync().is_ok()
                    && let Ok(number) = engine.snapshot()
                {
                    let last = core::mem::take(&mut unsynced).into_iter();
                    synced.extend(last.filter_map(|(key, mut values)| Some((key, values.pop()?))));
                    kept = Some((number, synced.clone()));
                    seen.snapshots += 1;
                }
            }
            for (key, value) in synced.iter().filter(|(key, _)| !unsynced.contains_key(*key)) {
                assert_eq!(value_of(&mut engine, key), *value, "life {seed}, step {step}");
            }
            for (key, values) in &unsynced {
                assert_eq!(value_of(&mut engine, key), *values.last().unwrap(), "life {seed}, step {step}");
            }
            sound(&mut engine).unwrap();
            let mut wrong = Vec::new();
            engine.verify_log(&mut |violation| wrong.push(violation.to_string())).unwrap();
            assert_eq!(wrong, Vec::<String>::new(), "life {seed}, step {step}");
            let geometry = chip.geometry;
            engine
                .live_pages(&mut |page| {
                    seen.dense += u32::from(!geometry.is_used_in_mode(CellMode::Slc, geometry.index_in_block(page)));
                })
                .unwrap();
        }
    }
}

/// `NANDU_CHAINS` says how many lives, `NANDU_SEED` which is the first.
#[test]
fn raw_pages_with_two_bits_a_cell_survive_cuts_and_failures_on_a_full_chip() {
    let mut seen = Seen::default();
    let first = std::env::var("NANDU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    // In the last one a copy is named while room is made for the leaf that its head is to go to.
    for seed in (first..first + cases(24)).chain([50_613]) {
        println!("life {seed}");
        life(seed, &mut seen);
    }
    let Seen { refused, cuts, failures, dense, snapshots } = seen;
    assert!(refused > 100 && cuts > 400 && failures > 20 && dense > 5_000 && snapshots > 15, "{seen:?}");
}
