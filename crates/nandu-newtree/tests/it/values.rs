//! Large values in the tree: what a commit lists of them, what they cost, how they are moved.

use nandu_newtree::{ByteCells, Durability, Engine, EngineError, LogError, Options, memory_required};
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

/// A program for each page, and one for the record, which waits for a sync where changes do and there is one page.
#[test]
fn a_large_value_costs_a_program_for_each_page_and_one() {
    for options in [OPTIONS, ON_SYNC] {
        let chip = Chip::W25N01GV.with_blocks(32);
        let mut bytes = memory(&chip, &options);
        let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes).unwrap();
        put(&mut engine, b"k", &[1; 5_000]).unwrap();
        for (size, pages) in [(600, 1), (1_900, 1), (2_048, 1), (3_900, 2), (30_000, 16)] {
            let before = engine.log().spent();
            assert_eq!(put(&mut engine, b"k", &vec![3; size]), Ok(true));
            let waits = options.durability == Durability::OnSync && pages == 1;
            assert_eq!(engine.log().spent().0, before.0 + pages + u64::from(!waits), "{size} bytes");
            engine.sync().unwrap();
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

const CHIP: Chip = Chip::TINY.with_blocks(40);

/// A full chip with values of one page that are put again and again, beside records that wait long, so that members stay in the window; and what each value may be after a cut: as durable, or as put since.
struct Life<'m> {
    engine: Engine<'m, Sim, ByteCells>,
    random: u32,
    durable: Vec<u8>,
    since: Vec<Vec<u8>>,
}

impl<'m> Life<'m> {
    const KEYS: u32 = 100;

    fn new(options: Options, seed: u32, bytes: &'m mut [u8]) -> Self {
        let engine = crate::bench::format(Sim::new(CHIP), ByteCells, options, bytes).unwrap();
        let keys = Life::KEYS as usize;
        let random = seed.wrapping_mul(0x9E37_79B1) | 1;
        Life { engine, random, durable: vec![0; keys], since: vec![Vec::new(); keys] }
    }

    fn next(&mut self, below: u32) -> u32 {
        self.random = self.random.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
        (self.random >> 8) % below
    }

    fn step(&mut self) -> Result<(), EngineError<SimError>> {
        let small = Some(self.next(300)).filter(|_| self.next(4) == 0);
        let (key, byte, is_synced) = (self.next(Life::KEYS), 1 + self.next(255) as u8, self.next(6) == 0);
        let engine = &mut self.engine;
        if let Some(number) = small {
            match engine.put(&(256 + number).to_be_bytes(), &[9; 9]) {
                Err(EngineError::Log(LogError::Full)) => {}
                other => drop(other?),
            }
        }
        let byte = match put(engine, &[key as u8], &[byte; 190]) {
            Err(EngineError::Log(LogError::Full)) => {
                engine.delete(&[key as u8])?;
                0
            }
            other => other.map(|_| byte)?,
        };
        self.since[key as usize].push(byte);
        if is_synced {
            engine.sync()?;
            for (durable, since) in self.durable.iter_mut().zip(&mut self.since) {
                *durable = since.drain(..).next_back().unwrap_or(*durable);
            }
        }
        Ok(())
    }

    /// How many values are not what they may be if the power goes now, between two calls, and comes back with more memory.
    fn lost(&mut self, options: Options) -> Result<usize, EngineError<SimError>> {
        let options = Options { pending_size: 8_000, ..options };
        let mut bytes = memory(&CHIP, &options);
        let mut engine = crate::bench::open(self.engine.nand_mut().clone(), ByteCells, options, &mut bytes)?;
        let (mut value, mut lost) = ([0; 190], 0);
        for (key, (durable, since)) in self.durable.iter().zip(&self.since).enumerate() {
            let byte = match engine.read(&[key as u8], 0, &mut value) {
                Ok(Some(190)) if value.iter().all(|byte| *byte == value[0]) => Some(value[0]),
                Ok(None) => Some(0),
                _ => None,
            };
            lost += usize::from(byte.is_none_or(|byte| byte != *durable && !since.contains(&byte)));
        }
        Ok(lost)
    }
}

fn lost_in_lives(options: Options) -> Result<usize, EngineError<SimError>> {
    let mut lost = 0;
    for seed in 0..4 {
        let mut bytes = memory(&CHIP, &options);
        let mut life = Life::new(options, seed, &mut bytes);
        for step in 0..600 {
            life.step()?;
            lost += if step % 7 == 0 { life.lost(options)? } else { 0 };
        }
    }
    Ok(lost)
}

/// W4: their pages move while their records wait, and while a member lists them that are in their leaves.
#[test]
fn values_of_a_page_that_wait_are_found_when_the_power_goes_between_calls() {
    for pending_size in [400, 1_500] {
        assert_eq!(lost_in_lives(Options { pending_size, ..ON_SYNC }), Ok(0));
    }
}
