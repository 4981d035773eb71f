//! Large values in the tree: what a commit lists of them, what they cost, how they are moved.

use nandu_sim::{Chip, Sim, SimError};
use nandu_tree::{
    BESIDE_MAX, Broken, ByteCells, Durability, Edit, Engine, EngineError, LogError, Options, memory_required,
};

use crate::bench::put_in_parts;

const OPTIONS: Options = Options { cache_size: 512, pending_size: 600, has_values: true, ..Options::DEFAULT };

const ON_SYNC: Options = Options { durability: Durability::OnSync, ..OPTIONS };

fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; memory_required::<Sim>(&chip.geometry, options)]
}

/// What a key has after a cut: a small value that waits is replaced by a large one, and both are durable.
fn after_a_cut(options: Options, key: u8) -> Result<Option<Vec<u8>>, EngineError<SimError>> {
    let chip = Chip::TINY.with_blocks(32);
    let mut bytes = memory(&chip, &options);
    let mut engine = crate::bench::format(Sim::new(chip), ByteCells, options, &mut bytes)?;
    for number in 0..100_u8 {
        engine.put(&[number], &[1; 9])?;
    }
    engine.merge()?;
    // Of these, in as many leaves, one is in the leaf of the commit.
    for number in (0..100_u8).step_by(20) {
        engine.put(&[number], &[2; 9])?;
    }
    engine.sync()?;
    put_in_parts(&mut engine, &[key], &[7; 900])?;
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
        lost += u32::from(
            after_a_cut(Options { broken: Broken { hides_heads: true, ..Broken::NOTHING }, ..ON_SYNC }, key)
                == Ok(Some(vec![2; 9])),
        );
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
        put_in_parts(&mut engine, b"k", &[1; 5_000]).unwrap();
        for (size, pages) in [(600, 1), (1_900, 1), (2_048, 1), (3_900, 2), (30_000, 16)] {
            let before = engine.log().spent();
            assert_eq!(put_in_parts(&mut engine, b"k", &vec![3; size]), Ok(true));
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
        let byte = match put_in_parts(engine, &[key as u8], &[byte; 190]) {
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

/// The version that a value of one page and the two records beside it say, in a volume as it is found.
fn versions(chip: Sim) -> [Option<u8>; 3] {
    let mut bytes = memory(&CHIP, &ON_SYNC);
    let mut engine = crate::bench::open(chip, ByteCells, ON_SYNC, &mut bytes).unwrap();
    let mut value = [0; 190];
    let size = engine.read(b"m", 0, &mut value).unwrap();
    assert!(size.is_none() || value.iter().all(|&byte| byte == value[0]));
    [
        size.map(|_| value[0]),
        engine.get(b"a").unwrap().map(|value| value[0]),
        engine.get(b"z").unwrap().map(|value| value[0]),
    ]
}

/// Puts versions of a value with two records beside it, a sync after every third, until the power goes at this operation; returns how many there were, and how many were synced.
fn put_versions(options: Options, cut_at: Option<u64>) -> (Sim, u8, u8) {
    let mut bytes = memory(&CHIP, &options);
    let mut engine = crate::bench::format(Sim::new(CHIP), ByteCells, options, &mut bytes).unwrap();
    // Leaves enough that the three are not in one.
    for number in 0..120_u8 {
        engine.put(&[b'a' + number % 26, number], &[0; 9]).unwrap();
    }
    engine.sync().unwrap();
    let begin = engine.nand_mut().operation_count();
    if let Some(at) = cut_at {
        engine.nand_mut().cut_at(begin + at, nandu_sim::Tear::Prefix);
    }
    let (mut begun, mut synced) = (0, 0);
    for version in 1..=18 {
        // Others fill the memory for changes, so that a commit may come between any two.
        let is_off = (0..version % 4).any(|other| engine.put(&[b'b' + other, 200 + version], &[7; 20]).is_err());
        if is_off {
            assert!(engine.nand_mut().is_off());
            break;
        }
        begun = version;
        let value = [version; 9];
        let edits = [b"a", b"z"].map(|key| Edit { key, value: Some(&value) });
        let put = engine.begin_value(b"m", 190).and_then(|()| {
            while let Some(size) = engine.value_part() {
                engine.append_value(b"m", &[version; 190][..size])?;
            }
            engine.end_value_with(b"m", &edits)
        });
        let done = put.and_then(|()| if version % 3 == 0 { engine.sync() } else { Ok(()) });
        if done.is_err() {
            assert!(engine.nand_mut().is_off());
            break;
        }
        if version % 3 == 0 || options.durability == Durability::Immediate {
            synced = version;
        }
    }
    (engine.abandon(), begun, synced)
}

#[test]
fn a_value_and_what_changes_with_it_are_there_together_or_not_at_all() {
    for options in [OPTIONS, ON_SYNC] {
        for at in 0..80 {
            let (mut chip, begun, synced) = put_versions(options, Some(at));
            chip.clear_cuts();
            chip.power_off();
            chip.power_on();
            let [value, first, second] = versions(chip);
            assert!(value == first && value == second, "cut at {at}: {value:?} {first:?} {second:?}");
            assert!((synced..=begun).contains(&value.unwrap_or(0)), "cut at {at}: {value:?}, {synced} were synced");
        }
        let (chip, ..) = put_versions(options, None);
        assert_eq!(versions(chip), [Some(18); 3]);
    }
    let is_torn = |&at: &u64| {
        let (mut chip, ..) =
            put_versions(Options { broken: Broken { splits_batches: true, ..Broken::NOTHING }, ..ON_SYNC }, Some(at));
        chip.clear_cuts();
        chip.power_off();
        chip.power_on();
        let [value, first, second] = versions(chip);
        value != first || value != second
    };
    assert!((0..80).filter(is_torn).count() > 0, "one by one, some are there and others are not");
}

/// What is asked for wrongly is refused, and the value is given up.
#[test]
fn what_cannot_end_with_a_value_is_refused() {
    let mut bytes = memory(&CHIP, &ON_SYNC);
    let mut engine = crate::bench::format(Sim::new(CHIP), ByteCells, ON_SYNC, &mut bytes).unwrap();
    let edit = |key| Edit { key, value: None };
    for beside in [&[edit(&b"b"[..]), edit(b"a")][..], &[edit(b"m")], &[edit(b"a"); BESIDE_MAX + 1]] {
        engine.begin_value(b"m", 150).unwrap();
        while let Some(size) = engine.value_part() {
            engine.append_value(b"m", &[1; 150][..size]).unwrap();
        }
        assert!(matches!(engine.end_value_with(b"m", beside), Err(EngineError::NotAscending(_))));
        assert_eq!(engine.get(b"m"), Ok(None));
    }
    // One of two pages cannot.
    engine.begin_value(b"m", 600).unwrap();
    while let Some(size) = engine.value_part() {
        engine.append_value(b"m", &[1; 600][..size]).unwrap();
    }
    assert_eq!(engine.end_value_with(b"m", &[]), Err(EngineError::ValueSize(0)));
    assert_eq!(engine.get(b"m"), Ok(None));
}

/// On a full chip a value of one page may come in the place of one, and what frees room is not refused.
#[test]
fn a_page_comes_in_the_place_of_a_page_on_a_full_chip() {
    let mut bytes = memory(&CHIP, &ON_SYNC);
    let mut engine = crate::bench::format(Sim::new(CHIP), ByteCells, ON_SYNC, &mut bytes).unwrap();
    let mut count = 0_u8;
    while engine.pages_left(0) > 0 || engine.has_room(1, 0).unwrap() {
        match put_in_parts(&mut engine, &[count], &[1; 190]) {
            Ok(_) => count += 1,
            Err(error) => {
                assert_eq!(error, EngineError::Log(LogError::Full));
                break;
            }
        }
    }
    assert!(count > 20, "{count} values");
    for round in 0..200_u8 {
        let key = [round.wrapping_mul(37) % count];
        assert_eq!(put_in_parts(&mut engine, &key, &[round; 190]), Ok(true), "round {round}");
        if round % 4 == 0 {
            engine.sync().unwrap();
        }
    }
    for key in 0..count {
        engine.batch_freeing(&[Edit { key: &[key], value: None }, Edit { key: &[255], value: Some(&[key]) }]).unwrap();
    }
    engine.sync().unwrap();
    assert_eq!(engine.record_count(), 1);
}
