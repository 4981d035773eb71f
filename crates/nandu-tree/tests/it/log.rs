//! The tree on the log, over a simulated chip: conformance with reopening, a chip kept busy, power cuts.

use std::collections::BTreeMap;

use nandu_index::OrderedIndex;
use nandu_index::suite::{KeyKind, Space, Subject, conformance};
use nandu_log::{Log, LogError, LogOptions};
use nandu_nand::Cause;
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim, SimError};
use nandu_tree::{ByteCells, Cells, Edit, FixedCells, OnLog, Options, Pages, Tree, TreeError};

use crate::medium::memory;

type Error = TreeError<LogError<SimError>>;

const OPTIONS: Options = Options { cache_size: 512, journal_pages: 128, ..Options::DEFAULT };

fn log_memory(chip: &Sim) -> &'static mut [u8] {
    vec![0; Log::<Sim>::memory_required(&chip.chip().geometry, &LogOptions::DEFAULT)].leak()
}

fn create<C: Cells>(chip: Sim, cells: C) -> Tree<'static, OnLog<'static, Sim>, C> {
    let bytes = log_memory(&chip);
    let log = Log::format(chip, LogOptions::DEFAULT, bytes).unwrap();
    let bytes = memory(log.page_size(), &OPTIONS);
    Tree::create(OnLog::new(log), cells, OPTIONS, bytes).unwrap()
}

struct Bench<C: Cells> {
    tree: Option<Tree<'static, OnLog<'static, Sim>, C>>,
    cells: C,
}

impl<C: Cells> Bench<C> {
    fn new(chip: Sim, cells: C) -> Bench<C> {
        Bench { tree: Some(create(chip, cells)), cells }
    }
}

impl<C: Cells> Subject for Bench<C> {
    type Error = Error;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error> {
        self.tree.as_mut().unwrap()
    }

    fn reopen(&mut self) {
        let chip = self.tree.take().unwrap().close().into_log().unmount().map_err(|(error, _)| error).unwrap();
        let bytes = log_memory(&chip);
        let log = Log::mount(chip, LogOptions::DEFAULT, bytes).unwrap();
        let bytes = memory(log.page_size(), &OPTIONS);
        self.tree = Some(Tree::open(OnLog::new(log), self.cells, OPTIONS, bytes).unwrap());
    }
}

fn fixed() -> Space {
    Space { keys: KeyKind::Fixed(4), key_count: 400, value_size_min: 4, value_size_max: 4, operations_max: 150 }
}

#[test]
fn fixed_cells_conform_on_a_chip() {
    conformance(fixed(), 60, || Bench::new(Sim::new(Chip::TINY.with_blocks(64)), FixedCells::<4, 4>));
}

#[test]
fn byte_cells_conform_on_a_chip() {
    let space = Space { keys: KeyKind::Bytes(10), key_count: 200, value_size_min: 0, value_size_max: 20, ..fixed() };
    conformance(space, 60, || Bench::new(Sim::new(Chip::TINY.with_blocks(64)), ByteCells));
}

#[test]
fn a_chip_written_many_times_over_keeps_what_lives() {
    let mut tree = create(Sim::new(Chip::W25N01GV.with_blocks(24)), FixedCells::<4, 4>);
    let mut model = BTreeMap::new();
    for round in 0..150_000_u32 {
        let key = (round.wrapping_mul(2_654_435_761) >> 8) % 110_000;
        tree.put(&key.to_be_bytes(), &round.to_be_bytes()).unwrap();
        model.insert(key, round);
    }
    for (key, value) in &model {
        assert_eq!(tree.get(&key.to_be_bytes()).unwrap(), Some(&value.to_be_bytes()[..]));
    }
    let mut violations = Vec::new();
    tree.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
    let stats = tree.pages().log().stats();
    println!(
        "{} records, {} live pages of {}, programs host {} tree {} gc {} checkpoint {}, erases {}",
        tree.record_count(),
        stats.live_pages,
        stats.capacity_pages,
        stats.programs_for(Cause::Host),
        stats.programs_for(Cause::Tree),
        stats.programs_for(Cause::Gc),
        stats.programs_for(Cause::Checkpoint),
        stats.erases
    );
    assert!(stats.erases > 100, "the chip was written several times over");
    let mut live = 0;
    tree.live_pages(&mut |_| live += 1).unwrap();
    assert_eq!(live, tree.pages().log().stats().live_pages, "tree and log agree on what lives");
}

#[test]
fn a_full_chip_refuses_and_still_deletes() {
    let mut tree = create(Sim::new(Chip::TINY), FixedCells::<4, 4>);
    let mut count = 0_u32;
    let refused = loop {
        match tree.put(&count.wrapping_mul(2_654_435_761).to_be_bytes(), &count.to_be_bytes()) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, TreeError::Pages(LogError::Full)), "{refused}");
    println!("full at {count} records");
    assert!(count > 200);
    assert_eq!(tree.record_count(), u64::from(count));
    for number in 0..count {
        let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
        assert_eq!(tree.get(&key).unwrap(), Some(&number.to_be_bytes()[..]), "a put refused changed nothing");
    }
    for number in 0..count {
        assert!(tree.delete(&number.wrapping_mul(2_654_435_761).to_be_bytes()).unwrap());
    }
    assert_eq!(tree.record_count(), 0);
    tree.put(&[1; 4], &[2; 4]).unwrap();
}

/// What was acknowledged, and the batch under way.
#[derive(Clone, Default)]
struct Promise {
    is_open: bool,
    values: BTreeMap<u32, u32>,
    pending: Vec<(u32, Option<u32>)>,
    count: u32,
}

fn apply(values: &mut BTreeMap<u32, u32>, changes: &[(u32, Option<u32>)]) {
    for &(key, value) in changes {
        match value {
            Some(value) => values.insert(key, value),
            None => values.remove(&key),
        };
    }
}

fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

type BoxError = Box<dyn std::error::Error>;

/// Mounts the chip, formatting it only if it was never opened, and gives the tree to `work`.
fn with_tree<T>(
    chip: &mut Sim,
    may_create: bool,
    work: impl FnOnce(&mut Tree<'_, OnLog<'_, &mut Sim>, FixedCells<4, 4>>) -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let mut log_bytes = vec![0; Log::<Sim>::memory_required(&chip.chip().geometry, &LogOptions::DEFAULT)];
    let mut tree_bytes = vec![0; nandu_tree::memory_required(256, &OPTIONS)];
    let log = match Log::mount(&mut *chip, LogOptions::DEFAULT, &mut log_bytes) {
        Err(LogError::NotFormatted) if may_create => Err(()),
        other => Ok(other?),
    };
    let log = match log {
        Ok(log) => log,
        Err(()) => Log::format(&mut *chip, LogOptions::DEFAULT, &mut log_bytes)?,
    };
    let pages = OnLog::new(log);
    let cells = FixedCells::<4, 4>;
    let mut tree = if pages.log().committed().is_none() && may_create {
        Tree::create(pages, cells, OPTIONS, &mut tree_bytes)?
    } else {
        Tree::open(pages, cells, OPTIONS, &mut tree_bytes)?
    };
    work(&mut tree)
}

fn contents(tree: &mut Tree<'_, OnLog<'_, &mut Sim>, FixedCells<4, 4>>) -> Result<BTreeMap<u32, u32>, BoxError> {
    use std::ops::{Bound, ControlFlow};
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let mut found = BTreeMap::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, nandu_tree::Direction::Forward, |entry| {
        found.insert(number(entry.key), number(entry.value));
        ControlFlow::Continue(())
    })?;
    assert_eq!(found.len() as u64, tree.record_count());
    Ok(found)
}

/// Puts, deletes and batches, over a few hundred keys.
fn workload(operations: u32, keys: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let may_create = !promise.is_open;
        with_tree(chip, may_create, |tree| {
            promise.values = contents(tree)?;
            promise.pending.clear();
            promise.is_open = true;
            for _ in 0..operations {
                let count = promise.count;
                promise.count += 1;
                let key = chance(count, 1) % keys * 1000;
                promise.pending = match chance(count, 2) % 8 {
                    0 => vec![(key, None)],
                    1 => (0..6).map(|n| (key + n * 7000, (n % 3 != 2).then_some(count))).collect(),
                    _ => vec![(key, Some(count))],
                };
                match promise.pending[..] {
                    [(key, Some(value))] => drop(tree.put(&key.to_be_bytes(), &value.to_be_bytes())?),
                    [(key, None)] => drop(tree.delete(&key.to_be_bytes())?),
                    ref list => {
                        let bytes: Vec<([u8; 4], Option<[u8; 4]>)> =
                            list.iter().map(|(key, value)| (key.to_be_bytes(), value.map(u32::to_be_bytes))).collect();
                        let edits: Vec<Edit<'_>> = bytes
                            .iter()
                            .map(|(key, value)| Edit { key, value: value.as_ref().map(|value| &value[..]) })
                            .collect();
                        tree.batch(&edits)?;
                    }
                }
                apply(&mut promise.values, &promise.pending);
                promise.pending.clear();
            }
            Ok(())
        })
    }
}

/// What was acknowledged is there; what was under way is wholly there or wholly not.
fn check(chip: &mut Sim, promise: &Promise) -> Option<BTreeMap<u32, u32>> {
    if !promise.is_open {
        return None;
    }
    let found = with_tree(chip, false, |tree| {
        let mut violations = Vec::new();
        tree.verify(&mut |violation| violations.push(violation))?;
        assert_eq!(violations, []);
        contents(tree)
    });
    let found = found.unwrap();
    let mut after = promise.values.clone();
    apply(&mut after, &promise.pending);
    assert!(found == promise.values || found == after, "neither before nor after {:?}", promise.pending);
    Some(found)
}

#[test]
fn every_cut_leaves_what_was_acknowledged() {
    let summary = Driver::new(Chip::TINY).every(workload(130, 200), check);
    println!("{summary:?}");
    assert!(summary.cases > 1500);
}

#[test]
fn chains_of_cuts_leave_what_was_acknowledged() {
    let recover = |chip: &mut Sim| -> Run { with_tree(chip, true, |_| Ok(())) };
    let summary = Driver::new(Chip::TINY).resume().seed(7).random(400, workload(80, 200), recover, check);
    println!("{summary:?}");
}

#[test]
fn a_tree_that_is_opened_again_knows_that_room_is_kept_for_values() {
    let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(32)), ByteCells);
    bench.tree.as_mut().unwrap().put(b"small", b"value").unwrap();
    bench.reopen();
    assert!(!bench.tree.as_ref().unwrap().pages().has_values());
    bench.tree.as_mut().unwrap().put(b"large", &[7; 700]).unwrap();
    bench.reopen();
    // Nothing but the root's page was read, and room has to be kept from the first change on.
    assert!(bench.tree.as_ref().unwrap().pages().has_values());
}
