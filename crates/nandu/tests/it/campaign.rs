//! A campaign of power cuts over stores of many kinds: every cut, a second one in the recovery, and a third in the recovery from that.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use nandu::nand::{Cause, Ecc, Geometry};
use nandu::{Durability, Edit, Options, Store};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim, SimError};
use nandu_suite::counts;

use super::cuts::{number, swarm_seed};
use super::liveness::serves_again_sometimes;
use super::values::{Records, pattern, records};

type Error = nandu::Error<SimError>;
/// Keys with their new values, ascending.
type Change = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// Page size, pages of a block, blocks.
const SHAPES: [(u32, u32, u32); 7] =
    [(512, 8, 28), (2048, 8, 20), (512, 16, 20), (4096, 8, 16), (512, 32, 16), (2048, 16, 16), (512, 64, 16)];

/// How full a chip is when the power begins to fail, and whether pages are moved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fill {
    /// Few records on a chip that was just formatted: nothing is collected.
    Fresh,
    /// As many records as come and go, until blocks have to be emptied for each new one.
    Worn,
    /// Puts were refused.
    Full,
}

/// One store to be cut. Its number is the seed of all that is left to chance.
#[derive(Clone, Copy, Debug)]
struct World {
    number: u64,
    /// Page size, pages of a block, blocks.
    shape: (u32, u32, u32),
    durability: Durability,
    pending_size: usize,
    fill: Fill,
    /// Whether some values are cut up into pieces.
    has_large: bool,
    /// Pages of idle time in a recovery.
    idle: u32,
    /// Whether the calls go on after a cut and are checked again.
    resumes: bool,
}

/// Numbers of worlds after which each shape came with each durability and each fill.
const ROUND: u64 = 42;

impl World {
    fn new(number: u64) -> World {
        let round = number / ROUND;
        let durability = [Durability::Immediate, Durability::OnSync][(number % 2) as usize];
        World {
            number,
            shape: SHAPES[(number % 7) as usize],
            durability,
            pending_size: if durability == Durability::OnSync { [400, 1500, 60][(round % 3) as usize] } else { 0 },
            fill: [Fill::Worn, Fill::Fresh, Fill::Full][(number % 3) as usize],
            has_large: (number + round) % 5 < 2,
            idle: if (number + round).is_multiple_of(4) { 3 } else { 0 },
            resumes: (number / 2 + round).is_multiple_of(2),
        }
    }

    fn options(&self) -> Options {
        let World { durability, pending_size, .. } = *self;
        Options { cache_size: 512, durability, pending_size, ..Options::DEFAULT }
    }

    fn chip(&self) -> Chip {
        let (page_size, pages_per_block, blocks) = self.shape;
        let geometry = Geometry {
            page_size,
            program_unit: page_size,
            spare_size: 32,
            pages_per_block,
            ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
            ..Chip::TINY.with_blocks(blocks).geometry
        };
        Chip { name: "shaped", geometry, ..Chip::TINY }
    }

    fn memory(&self) -> Vec<u8> {
        vec![0; Store::<Sim>::memory_required(&self.chip().geometry, &self.options())]
    }

    fn open<'m, 'c>(&self, chip: &'c mut Sim, memory: &'m mut [u8]) -> Result<Store<'m, &'c mut Sim>, Error> {
        Store::open(chip, self.options(), memory)
    }

    /// A number that looks like chance and is the same in every run.
    fn mixed(&self, count: u32, salt: u32) -> u32 {
        let x = (count ^ salt.wrapping_mul(0x85EB_CA6B) ^ (self.number as u32).wrapping_mul(0xC2B2_AE35))
            .wrapping_mul(0x9E37_79B1);
        (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
    }

    /// Calls of a workload that is cut. The fuller a chip is, the more pages a call programs.
    fn calls(&self) -> u32 {
        match self.fill {
            Fill::Fresh => 20,
            Fill::Worn => 12,
            Fill::Full => 5,
        }
    }

    /// Keys that records may have.
    fn keys(&self) -> u32 {
        match self.fill {
            Fill::Fresh => 40,
            // With more of them large values bring a chip to its capacity, which the full ones are for.
            Fill::Worn if self.has_large => 80,
            Fill::Worn => 200,
            Fill::Full => 4_000,
        }
    }

    fn key(&self, count: u32, salt: u32) -> Vec<u8> {
        let number = self.mixed(count, salt) % self.keys();
        let mut key = number.wrapping_mul(0x9E37_79B1).to_be_bytes()[..3].to_vec();
        key.resize(3 + (number % 9) as usize, b'k');
        key
    }

    /// A value that fits a leaf, on larger pages a larger one, so that there are about as many leaves.
    fn small(&self, count: u32) -> Vec<u8> {
        let most = self.shape.0 / if self.fill == Fill::Full { 6 } else { 8 };
        pattern((self.mixed(count, 7) % most) as usize, count)
    }

    /// The change of this number: one record most often, a few at times, and a large value.
    fn change(&self, count: u32) -> Change {
        let (key, other) = (self.key(count, 1), self.key(count, 2));
        match self.mixed(count, 3) % 16 {
            0..4 => [(key, None)].into(),
            4 | 5 => {
                [(other, None), (key, Some(self.small(count))), (self.key(count, 5), Some(self.small(!count)))].into()
            }
            6 if self.has_large => {
                let size = self.shape.0 / 2 + self.mixed(count, 8) % (3 * self.shape.0);
                [(key, Some(pattern(size as usize, count)))].into()
            }
            _ => [(key, Some(self.small(count)))].into(),
        }
    }
}

/// What the store held when it was opened, and what it may hold now: that with so many of the changes since, and any number more.
#[derive(Clone, Default)]
struct Promise {
    /// `None`: what it was prepared with.
    base: Option<Rc<Records>>,
    changes: Vec<Change>,
    durable: usize,
    /// Calls begun, over all runs on this chip.
    count: u32,
}

fn make(records: &mut Records, change: &Change) {
    for (key, value) in change {
        match value {
            Some(value) => records.insert(key.clone(), value.clone()),
            None => records.remove(key),
        };
    }
}

impl Promise {
    /// Whether these records are promised.
    fn allows(&self, prepared: &Records, found: &Records) -> bool {
        let mut state = self.base.as_deref().unwrap_or(prepared).clone();
        self.changes[..self.durable].iter().for_each(|change| make(&mut state, change));
        let mut is_found = state == *found;
        for change in &self.changes[self.durable..] {
            make(&mut state, change);
            is_found |= state == *found;
        }
        is_found
    }

    fn all_is_durable(&mut self) {
        self.durable = self.changes.len();
    }
}

/// Makes the call of the next number and notes what it promises.
fn step(world: &World, store: &mut Store<'_, &mut Sim>, promise: &mut Promise) -> Result<(), Error> {
    let count = promise.count;
    promise.count += 1;
    match world.mixed(count, 4) % 16 {
        0..3 if world.durability == Durability::OnSync => {
            store.sync()?;
            promise.all_is_durable();
            return Ok(());
        }
        3 => return store.idle(4).map(drop),
        4 if world.mixed(count, 6).is_multiple_of(4) => {
            store.merge()?;
            promise.all_is_durable();
            return Ok(());
        }
        _ => {}
    }
    let change = world.change(count);
    promise.changes.push(change.clone());
    let edits: Vec<Edit<'_>> = change.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
    let done = match edits[..] {
        [Edit { key, value: None }] => store.delete(key).map(drop),
        [Edit { key, value: Some(value) }] => store.put(key, value).map(drop),
        ref edits => store.batch(edits),
    };
    match done {
        // On a chip that is full it has not happened.
        Err(nandu::Error::Full) => drop(promise.changes.pop()),
        other => other?,
    }
    if world.durability == Durability::Immediate {
        promise.all_is_durable();
    }
    Ok(())
}

/// Pages that were moved since the store was opened.
fn moves(store: &Store<'_, &mut Sim>) -> u64 {
    store.stats().programs_for(Cause::Gc)
}

/// A chip as its world fills it, what it holds, and the number of the next call.
fn prepared(world: &World) -> (Sim, Rc<Records>, u32) {
    let mut memory = world.memory();
    let sim = Sim::with_seed(world.chip(), world.number);
    let mut chip = Store::format(sim, world.options(), &mut memory).unwrap().unmount().unwrap();
    let mut promise = Promise { base: Some(Rc::default()), ..Promise::default() };
    let mut store = world.open(&mut chip, &mut memory).unwrap();
    let mut state = Records::new();
    if world.fill == Fill::Full {
        let mut number = 1 << 20;
        let refused = loop {
            let (key, value) = (world.key(number, 1), world.small(number));
            number += 1;
            assert!(number < 2 << 20, "{world:?} takes everything");
            match store.put(&key, &value) {
                Ok(_) => drop(state.insert(key, value)),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, nandu::Error::Full, "{world:?}");
        promise.base = Some(Rc::new(state));
    }
    let (least, most) = match world.fill {
        Fill::Fresh => (20, 20),
        Fill::Worn => (500, 20_000),
        Fill::Full => (60, 60),
    };
    while promise.count < least || promise.count < most && moves(&store) == 0 {
        step(world, &mut store, &mut promise).unwrap();
    }
    store.unmount().unwrap();
    let mut store = world.open(&mut chip, &mut memory).unwrap();
    let found = records(&mut store).unwrap();
    promise.all_is_durable();
    assert!(promise.allows(&Records::new(), &found), "{world:?}: lost without a cut");
    store.unmount().unwrap();
    (chip, Rc::new(found), promise.count)
}

/// How many chains of one, two and three cuts were tried.
#[derive(Debug, Default)]
struct Tried {
    chains: [u64; 3],
    worlds: u64,
    worlds_that_move: u64,
}

/// Says which world it was, when a case fails.
struct OnFailure(World);

impl Drop for OnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was {:?}", self.0);
            eprintln!(
                "run it with the seed and cuts above: cargo test -p nandu --test it -- --exact \
                 campaign::cuts_pairs_and_triples_lose_nothing"
            );
        }
    }
}

/// Cuts one store in every way, and in some of the ways that two and three cuts have.
fn run(number: u64, tried: &mut Tried, goals: [u64; 3]) {
    let world = World::new(number);
    let on_failure = OnFailure(world);
    let (chip, held, count) = prepared(&world);
    let moved = Cell::new(false);
    let workload = |chip: &mut Sim, promise: &mut Promise| -> Run {
        let mut memory = world.memory();
        let is_first = promise.count == 0;
        let mut store = world.open(chip, &mut memory)?;
        let base = if is_first { Rc::clone(&held) } else { Rc::new(records(&mut store)?) };
        let count = promise.count.max(count);
        *promise = Promise { base: Some(base), count, ..Promise::default() };
        for _ in 0..world.calls() {
            step(&world, &mut store, promise)?;
        }
        moved.set(moved.get() || moves(&store) > 0);
        store.unmount()?;
        promise.all_is_durable();
        Ok(())
    };
    let recover = |chip: &mut Sim| -> Run {
        let mut memory = world.memory();
        let mut store = world.open(chip, &mut memory)?;
        if world.idle > 0 {
            store.idle(world.idle)?;
        }
        Ok(())
    };
    let check = |chip: &mut Sim, promise: &Promise| {
        let mut memory = world.memory();
        let mut store = world.open(&mut *chip, &mut memory).unwrap();
        let mut violations = Vec::new();
        store.verify(&mut |violation| violations.push(violation)).unwrap();
        assert_eq!(violations, []);
        let found = records(&mut store).unwrap();
        assert!(
            promise.allows(&held, &found),
            "after {} changes, {} of them durable",
            promise.changes.len(),
            promise.durable
        );
        assert_eq!(store.record_count(), found.len() as u64);
        serves_again_sometimes(world.options(), chip);
        found
    };

    let driver = || {
        let driver = Driver::new(chip.clone()).seed(number);
        if world.resumes { driver.resume() } else { driver }
    };
    tried.chains[0] += driver().every(workload, check).chains[0];
    tried.worlds += 1;
    tried.worlds_that_move += u64::from(moved.get());
    // Singles, pairs and triples come in the same shares in each world.
    let singles = tried.chains[0];
    let missing = |length: usize, tried: &Tried| {
        (goals[length] * singles).div_ceil(goals[0].max(1)).saturating_sub(tried.chains[length])
    };
    let pairs = missing(1, tried);
    if pairs > 0 {
        tried.chains[1] += driver().limit(2 * pairs).pairs(workload, recover, check).chains[1];
    }
    let triples = missing(2, tried);
    if triples > 0 {
        tried.chains[2] += driver().limit(3 * triples).triples(workload, recover, check).chains[2];
    }
    drop(on_failure);
}

/// Worlds from this number on, until so many chains of each length were tried.
fn campaign(first: u64, goals: [u64; 3]) -> Tried {
    let mut tried = Tried::default();
    if std::env::var_os("NANDU_CUTS").is_some() {
        run(number("NANDU_SEED", first), &mut Tried::default(), goals);
        return tried;
    }
    let started = std::time::Instant::now();
    while (0..3).any(|length| tried.chains[length] < goals[length]) {
        run(first + tried.worlds, &mut tried, goals);
        let Tried { chains: [singles, pairs, triples], worlds, worlds_that_move } = tried;
        println!(
            "{worlds} stores, of which {worlds_that_move} move pages: {singles} cuts, {pairs} pairs, {triples} triples, {:.0} s",
            started.elapsed().as_secs_f64()
        );
    }
    tried
}

#[test]
fn cuts_pairs_and_triples_lose_nothing() {
    let tried = campaign(0, [2_500, 250, 25]);
    let is_replay = tried.worlds == 0;
    assert!(is_replay || (1..tried.worlds).contains(&tried.worlds_that_move), "{tried:?}");
}

/// The full form: as many cuts as somebody asks for, a tenth as many pairs, and a hundredth as many triples. See TESTING.md.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    let cuts = number("NANDU_SWARM_CASES", 1_000_000);
    let Tried { chains: [singles, pairs, triples], worlds, .. } =
        campaign(swarm_seed() * 1_000_000, [cuts, cuts / 10, cuts / 100]);
    let counts = [(worlds, "stores"), (singles, "cuts"), (pairs, "pairs"), (triples, "triples")];
    let what = "stores of every kind, cut at every operation with every tear";
    counts::Tried { promise: counts::KEPT, what, against: counts::CUTS, command: counts::SWARM, counts: &counts }
        .tell();
}
