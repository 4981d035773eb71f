//! Lives of a file system in which the power goes at every program: what the chip would hold is checked on a copy, and life goes on.
//!
//! A copy of the chip is made before each operation that changes it, cut in the middle of that operation, and mounted: what is found has to
//! be what the operations made up to one of them, not before the last that was acknowledged as durable. Some copies are cut again while
//! they recover, some rest, some go on for a while. From time to time the life itself goes on as one of these copies. So a life costs what
//! its operations cost once, and each cut a mount and a look at everything, where the driver runs the operations again for each cut.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use nandu_fs::placement::{Class, PlacementOptions, WearPromise};
use nandu_fs::{Attributes, Broken, Fs, Ino, LogOptions, Options, Time};
use nandu_nand::{BlockAddr, Cause, CellMode, ErrorType, Geometry, Nand, PageAddr, Pairing, ReadStatus, TearScope};
use nandu_sim::{Chip, Decay, OperationKind, Sim, SimError, Tear};

use crate::cuts::{choose, is_allowed};
use crate::model::Model;
use crate::operation::{Chance, Op, Slots, apply};
use crate::rig::{Everything, OPTIONS, SMALL, everything, formatted_with, memory, violations};

/// What is done in a life, and on which chip.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) chip: Chip,
    choose: fn(&Model, u64, u64, usize) -> Op,
    /// Operations between two mounts.
    round_operations: u64,
    /// Steps of background work after an operation, where policies place pages: a number below the first by chance, less the second.
    steps: (usize, usize),
}

/// Every operation there is, on few blocks, so that they are collected soon.
const VARIED: Way = Way { chip: SMALL.with_blocks(44), choose, round_operations: 25, steps: (60, 40) };

/// Pages of two files are overwritten again and again, and seldom synced: so between two syncs whole blocks of pages come to hold nothing
/// that is named by the newest state, and are erased although a cut would bring back what is in them, unless the log is told late (R5).
const OVERWRITING: Way =
    Way { chip: SMALL.with_blocks(26), choose: choose_overwriting, round_operations: 45, steps: (60, 40) };

/// Pages of a file that is overwritten.
const OVERWRITTEN_PAGES: usize = 12;

/// The operation of a number where pages are overwritten.
fn choose_overwriting(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::with_paths(seed.wrapping_mul(1_000_033).wrapping_add(number), model.all_paths());
    let name: &'static [u8] = [b"a", b"b"][chance.below(2)];
    match chance.below(24) {
        0 => Op::Sync,
        1 | 2 => Op::Create(vec![name]),
        3 => Op::Truncate(vec![name], (page_size * chance.below(OVERWRITTEN_PAGES)) as u64),
        4 => Op::Idle,
        _ => {
            let (at, count) = (chance.below(OVERWRITTEN_PAGES - 3), 1 + chance.below(3));
            Op::Write(vec![name], (page_size * at) as u64, chance.bytes(page_size * count))
        }
    }
}

/// Blocks with one bit in a cell and with two: what is destroyed with a page are pages acknowledged long before.
pub(crate) const PAIRED_CHIP: Chip = {
    let geometry = Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, pages_per_block: 16, ..SMALL.geometry };
    Chip { name: "small-paired", geometry, ..SMALL }.with_blocks(44)
};

const PAIRED: Way = Way { chip: PAIRED_CHIP, choose: choose_pages, round_operations: 25, steps: (60, 40) };

/// The same on a chip that is worn unevenly ([`worn`]), with rests so long that wear is evened.
const WORN: Way = Way { choose: choose_overwriting, steps: (120, 80), ..PAIRED };

/// Erases of the most worn block of such a chip: more than the least difference that is evened. Lives alone wear a block four times at most.
const ERASES_WORN: u32 = 24;

/// A chip with a file that never changes, in blocks that were erased once, while others were erased for a file that was written over and over. There
/// was no time without requests in which that could have been evened.
fn worn() -> Sim {
    let (options, page_size) = (placed(), PAIRED_CHIP.geometry.page_size as usize);
    let mut memory = memory(&PAIRED_CHIP.geometry, &options);
    let mut fs = Fs::mount(formatted_with(PAIRED_CHIP, options), options, &mut memory).unwrap();
    let attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };
    let [kept, changed] = [b"c", b"a"].map(|name| fs.create(Ino::ROOT, name, attributes).unwrap());
    fs.write_at(kept, 0, &vec![7; 90 * page_size]).unwrap();
    fs.sync().unwrap();
    while fs.stats().erase_count_max < ERASES_WORN {
        fs.write_at(changed, 0, &vec![8; OVERWRITTEN_PAGES * page_size]).unwrap();
        fs.sync().unwrap();
    }
    fs.unmount().unwrap()
}

/// Placed by policy, with windows so short that all they decide happens within a life.
pub(crate) fn placed() -> Options {
    let options = Options { copy_count: 8, ..OPTIONS }.both_modes(&PAIRED_CHIP.geometry);
    let policies = PlacementOptions {
        window_pages: 12,
        free_blocks_min: 2,
        gc_free_blocks: 20,
        ..PlacementOptions::for_geometry(&PAIRED_CHIP.geometry)
    };
    let wear = Some(WearPromise::new(1 << 14, 20, 400, 10));
    Options { placement: Some(policies), wear, ..options }
}

/// Spare bytes for tags, so that a page that is written and synced says by itself whose it is.
pub(crate) const TAGGED: Way = Way {
    chip: Chip {
        name: "small-tagged",
        geometry: Geometry { spare_size: 64, tag_size: 32, pages_per_block: 16, ..SMALL.geometry },
        ..SMALL
    }
    .with_blocks(44),
    choose: choose_synced,
    round_operations: 40,
    steps: (60, 40),
};

/// The same on a chip that is nearly full.
const TAGGED_FULL: Way = Way { chip: TAGGED.chip.with_blocks(24), ..TAGGED };

pub(crate) const TAGGED_OPTIONS: Options = Options { log: LogOptions { tags: true, ..OPTIONS.log }, ..OPTIONS };

/// Runs of pages that are written and synced one by one, mostly; else any operation.
pub(crate) fn choose_synced(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::new(seed.wrapping_mul(6_151).wrapping_add(number / 8));
    let mut paths = model.all_paths();
    if chance.below(4) == 0 || paths.is_empty() {
        return choose(model, seed, number, page_size);
    }
    let (first, at, step) = (chance.below(paths.len()), chance.below(20), chance.below(3));
    paths.rotate_left(first);
    let mut chance = Chance::new(seed.wrapping_mul(7_919).wrapping_add(number));
    if number % 2 == 1 || chance.below(16) == 0 {
        return Op::Sync;
    }
    // Now and then one that is written in part, or twice.
    let at = (at + step * (number as usize % 8) / 2) * page_size;
    let (at, count) = if chance.below(8) == 0 { (at + 7, page_size - 9) } else { (at, page_size) };
    let bytes: Vec<u8> = (0..count).map(|_| 1 + chance.below(255) as u8).collect();
    let mut writes = paths.into_iter().map(|path| Op::Write(path, at as u64, bytes.clone()));
    let possible = writes.find(|op| model.clone().apply(op).is_ok());
    possible.unwrap_or_else(|| choose(model, seed, number, page_size))
}

/// Half of the time some whole pages of a file, if there is one; else any operation.
pub(crate) fn choose_pages(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::new(seed.wrapping_mul(7_919).wrapping_add(number));
    let mut paths = model.all_paths();
    if chance.below(2) == 0 || paths.is_empty() {
        return choose(model, seed, number, page_size);
    }
    let first = chance.below(paths.len());
    paths.rotate_left(first);
    let (at, count) = (chance.below(24) * page_size, 1 + chance.below(6));
    let bytes: Vec<u8> = (0..count * page_size).map(|_| 1 + chance.below(255) as u8).collect();
    let mut writes = paths.into_iter().map(|path| Op::Write(path, at as u64, bytes.clone()));
    let possible = writes.find(|op| model.clone().apply(op).is_ok());
    possible.unwrap_or_else(|| choose(model, seed, number, page_size))
}

/// Rounds of a life.
const ROUNDS: u64 = 8;

/// Most cuts in a row on one copy.
const DEPTH_MAX: u32 = 3;

/// Copies that were cut and checked.
#[derive(Clone, Copy, Default)]
struct Count {
    cuts: u64,
    /// Of them, those in an erase.
    erases: u64,
    /// Of them, those while they recovered from another cut.
    nested: u64,
    /// Of the others, those in steps of background work that moved a page to even out wear, or made the checkpoint for that.
    levelling: u64,
    /// Of them, those after which tags told of pages that no commit named.
    tails: u64,
}

impl Count {
    fn outside_recoveries(&self) -> u64 {
        self.cuts - self.nested
    }

    fn in_words(&self, lives: u64) -> String {
        let Count { cuts, erases, nested, levelling, tails } = self;
        let of_them = format!("{erases} of erases, {nested} in recoveries, {levelling} while wear was evened");
        format!("{lives} lives of file systems, {cuts} cuts, {of_them}, {tails} with pages that only tags told of")
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.cuts += other.cuts;
        self.erases += other.erases;
        self.nested += other.nested;
        self.levelling += other.levelling;
        self.tails += other.tails;
    }
}

/// What may be found after a cut, and what was tried.
struct Tester {
    states: Vec<(Model, Everything)>,
    chance: Chance,
    options: Options,
    count: Count,
    /// A copy as which life may go on.
    heir: Option<(Sim, Everything)>,
    /// Where in the life this is, for whoever has to find out what went wrong.
    place: String,
}

/// A chip that is copied and cut before each operation that changes it.
struct Forking<'a> {
    chip: &'a mut Sim,
    tester: &'a RefCell<Tester>,
    depth: u32,
    is_on: bool,
}

impl Forking<'_> {
    fn fork(&self, kind: OperationKind, act: impl Fn(&mut Sim)) {
        if !self.is_on {
            return;
        }
        let geometry = self.chip.chip().geometry;
        let tears: Vec<Tear> = Tear::all_for(kind, &geometry).collect();
        let count = if self.depth == 0 { 4 } else { 1 };
        let first = self.tester.borrow_mut().chance.below(tears.len());
        // Neighbours in the list are alike, so steps of three.
        for nth in 0..count {
            let tear = tears[(first + 3 * nth) % tears.len()];
            let mut chip = self.chip.clone();
            let number = chip.operation_count();
            chip.cut_at(number, tear);
            act(&mut chip);
            chip.clear_cuts();
            chip.power_on();
            if chip.last_cut().is_some_and(|cut| cut.operation == number && cut.tear == tear) {
                let (erases, nested) = (u64::from(kind == OperationKind::Erase), u64::from(self.depth > 0));
                self.tester.borrow_mut().count += Count { cuts: 1, erases, nested, ..Count::default() };
                check_cut(self.tester, chip, tear, self.depth);
            }
        }
    }
}

impl ErrorType for Forking<'_> {
    type Error = SimError;
}

impl Nand for Forking<'_> {
    fn geometry(&self) -> &Geometry {
        Nand::geometry(&*self.chip)
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, SimError> {
        self.chip.read(page, column, buf)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), SimError> {
        self.fork(OperationKind::Program, |chip| {
            let _ = chip.program(page, column, data);
        });
        self.chip.program(page, column, data)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), SimError> {
        self.fork(OperationKind::Program, |chip| {
            let _ = chip.program_tagged(page, data, tag);
        });
        self.chip.program_tagged(page, data, tag)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), SimError> {
        self.fork(OperationKind::Erase, |chip| {
            let _ = chip.erase(block, mode);
        });
        self.chip.erase(block, mode)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, SimError> {
        self.chip.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), SimError> {
        self.fork(OperationKind::MarkBad, |chip| {
            let _ = chip.mark_bad(block);
        });
        self.chip.mark_bad(block)
    }
}

/// Mounts a copy that was cut, which may be cut again meanwhile, and holds what is found against what may be.
fn check_cut(tester: &RefCell<Tester>, mut chip: Sim, tear: Tear, depth: u32) {
    let draw = |one_in: usize| tester.borrow_mut().chance.below(one_in) == 0;
    let (nests, is_walked, goes_on, is_heir) = (depth < DEPTH_MAX && draw(10), draw(4), draw(40), draw(60));
    let is_unstable = matches!(tear, Tear::Unstable | Tear::LooksErased | Tear::WeaklyErased | Tear::FadingContent);
    let rests = is_unstable || draw(8);
    let options = tester.borrow().options;
    let geometry = chip.chip().geometry;
    let mut memory = memory(&geometry, &options);
    let fail = |why: &str| -> ! { panic!("{}, cut {}: {tear}: {why}", tester.borrow().place, depth + 1) };

    let forking = Forking { chip: &mut chip, tester, depth: depth + 1, is_on: nests };
    let mut fs = Fs::mount(forking, options, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
    fs.nand_mut().is_on = false;
    tester.borrow_mut().count.tails += u64::from(fs.stats().tail_pages > 0);
    let found = everything(&mut fs).unwrap_or_else(|error| fail(&error.to_string()));
    if !tester.borrow().allows(&found) {
        let states: Vec<_> = tester.borrow().states.iter().map(|(_, seen)| seen.clone()).collect();
        fail(&format!("found\n{found:?}\nallowed\n{states:?}"));
    }
    if is_walked {
        let wrong = violations(&mut fs);
        if !wrong.is_empty() {
            fail(&format!("{wrong:?}"));
        }
    }
    fs.abandon();
    if rests {
        chip.power_off();
        chip.power_on();
        chip.advance_ns(Decay::DEFAULT.time_ns);
        let mut fs = Fs::mount(&mut chip, options, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
        let later = everything(&mut fs).unwrap_or_else(|error| fail(&error.to_string()));
        if found != later {
            fail(&format!("found\n{found:?}\nand after a rest\n{later:?}"));
        }
    }
    if goes_on {
        let mut chip = chip.clone();
        let mut model = Model::of(&found);
        let mut fs = Fs::mount(&mut chip, options, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
        let mut slots = Slots::default();
        for number in 0..10 {
            let seed = tester.borrow_mut().chance.below(1 << 20) as u64;
            let op = choose(&model, seed, number, geometry.page_size as usize);
            model.now += 1;
            fs.set_now(Time::from_seconds(model.now));
            let (expected, outcome) = (model.apply(&op), apply(&mut fs, &mut slots, &op));
            if outcome.map_err(|error| error.errno()) != expected {
                fail(&format!("went on with {op:?}: {outcome:?} instead of {expected:?}"));
            }
        }
        let (there, wrong) = (everything(&mut fs), violations(&mut fs));
        if there.as_ref() != Ok(&model.everything()) || !wrong.is_empty() {
            fail(&format!("went on: found\n{there:?}\nexpected\n{:?}\n{wrong:?}", model.everything()));
        }
    }
    if is_heir {
        tester.borrow_mut().heir = Some((chip, found));
    }
}

impl Tester {
    fn allows(&self, found: &Everything) -> bool {
        if self.states.iter().rev().any(|(_, seen)| seen == found) {
            return true;
        }
        let models: Vec<Model> = self.states.iter().map(|(model, _)| model.clone()).collect();
        is_allowed(found, &models)
    }

    fn promise(&mut self, model: &Model, is_durable: bool) {
        if is_durable {
            self.states.clear();
        }
        let seen = model.everything();
        // What changes nothing that is seen does not stand between two writes either.
        if self.states.last().is_none_or(|(_, last)| *last != seen) {
            self.states.push((model.clone(), seen));
        }
    }
}

/// Pages programmed to even out wear since the mount, and checkpoints made for that.
fn levelled_by(fs: &Fs<'_, Forking<'_>>) -> u64 {
    let stats = fs.stats();
    stats.programs_for(Cause::Levelling) + stats.levelling_checkpoints
}

/// Sometimes nothing is asked for, and background work goes on, where policies place pages; returns for how many seconds.
fn rest(way: Way, fs: &mut Fs<'_, Forking<'_>>, tester: &RefCell<Tester>, now: i64) -> i64 {
    if fs.placement().is_none() {
        return 0;
    }
    let (range, none) = way.steps;
    let steps = tester.borrow_mut().chance.below(range).saturating_sub(none);
    let mut until = now;
    for step in 0..steps {
        let Some(due) = fs.step_due() else { break };
        // Each step comes a second after the one before, so that windows pass.
        let at = Time::from_seconds(now + 2 + step as i64).max(due);
        until = at.seconds;
        let (levelled, cuts) = (levelled_by(fs), tester.borrow().count.outside_recoveries());
        fs.step(at).unwrap();
        if levelled_by(fs) > levelled {
            let mut tester = tester.borrow_mut();
            tester.count.levelling += tester.count.outside_recoveries() - cuts;
        }
    }
    if steps > 0 { until + 1 - now } else { 0 }
}

/// Lives one life; returns which cuts were checked.
fn live(way: Way, formatted: &Sim, options: Options, seed: u64) -> Count {
    let mut chip = formatted.clone();
    let geometry = chip.chip().geometry;
    let chance = Chance::new(seed ^ 0x5EED);
    let place = String::new();
    let tester =
        RefCell::new(Tester { states: Vec::new(), chance, options, count: Count::default(), heir: None, place });
    let mut now = 1000;
    for round in 0..ROUNDS {
        let mut memory = memory(&geometry, &options);
        let mut fs = Fs::mount(&mut chip, options, &mut memory).unwrap();
        let mut model = Model::of(&everything(&mut fs).unwrap());
        let forking = Forking { chip: fs.abandon(), tester: &tester, depth: 0, is_on: true };
        tester.borrow_mut().promise(&model, true);
        tester.borrow_mut().place = format!("life {seed}, round {round}, mounting");
        let mut fs = Fs::mount(forking, options, &mut memory).unwrap();
        let mut slots = Slots::default();
        for number in 0..way.round_operations {
            let op = (way.choose)(&model, seed, round * way.round_operations + number, geometry.page_size as usize);
            now += 1;
            model.now = now;
            fs.set_class(if tester.borrow_mut().chance.below(2) == 0 { Class::Synced } else { Class::Normal });
            fs.request_begin(Time::from_seconds(now)).unwrap();
            let expected = model.apply(&op);
            tester.borrow_mut().promise(&model, false);
            tester.borrow_mut().place = format!("life {seed}, round {round}, operation {number}, {op:?}");
            match apply(&mut fs, &mut slots, &op) {
                outcome if outcome.map_err(|error| error.errno()) == expected => {}
                outcome => panic!("{}: {outcome:?}", tester.borrow().place),
            }
            if op.is_durable() && expected.is_ok() {
                tester.borrow_mut().promise(&model, true);
            }
            fs.request_end(Time::from_seconds(now));
            tester.borrow_mut().place = format!("life {seed}, round {round}, after operation {number}");
            now += rest(way, &mut fs, &tester, now);
        }
        tester.borrow_mut().place = format!("life {seed}, round {round}, unmounting");
        fs.unmount().unwrap();
        if let Some((heir, _)) = tester.borrow_mut().heir.take() {
            chip = heir;
        }
    }
    tester.into_inner().count
}

/// Chips as lives begin, and how they are lived.
struct World {
    formatted: Vec<Sim>,
    live: fn(&[Sim], u64) -> Count,
}

impl World {
    /// In every fourth life pages are overwritten.
    fn plain() -> World {
        World {
            formatted: [VARIED, OVERWRITING].map(|way| formatted_with(way.chip, OPTIONS)).into(),
            live: |formatted, seed| {
                let (way, chip) = if seed % 4 == 3 { (OVERWRITING, 1) } else { (VARIED, 0) };
                live(way, &formatted[chip], OPTIONS, seed)
            },
        }
    }

    /// Cells hold two bits, and a torn page takes another with it. In every fourth life wear is evened.
    fn paired() -> World {
        World {
            formatted: vec![formatted_with(PAIRED.chip, placed()), worn()],
            live: |formatted, seed| {
                let (way, chip) = if seed % 4 == 1 { (WORN, 1) } else { (PAIRED, 0) };
                live(way, &formatted[chip], placed(), seed)
            },
        }
    }

    /// Pages have tags.
    fn tagged() -> World {
        World {
            formatted: [TAGGED, TAGGED_FULL].map(|way| formatted_with(way.chip, TAGGED_OPTIONS)).into(),
            live: |formatted, seed| {
                let chip = seed as usize % 2;
                live([TAGGED, TAGGED_FULL][chip], &formatted[chip], TAGGED_OPTIONS, seed)
            },
        }
    }

    /// The life of a seed.
    fn live(&self, seed: u64) -> Count {
        (self.live)(&self.formatted, seed)
    }
}

/// Lives from this seed on until so many cuts were checked.
fn lives(world: &World, first: u64, cuts: u64) -> Count {
    let (mut seed, mut done) = (first, Count::default());
    while done.cuts < cuts {
        done += world.live(seed);
        seed += 1;
    }
    println!("{}: nothing was lost", done.in_words(seed - first));
    done
}

/// Lives with any operations on a chip with pages of this size, until so many cuts were checked.
pub(crate) fn varied_lives(chip: Chip, options: Options, cuts: u64) {
    let formatted = formatted_with(chip, options);
    let (mut seed, mut done) = (0, Count::default());
    while done.cuts < cuts {
        done += live(Way { chip, ..VARIED }, &formatted, options, seed);
        seed += 1;
    }
    println!("pages of {}: {}", chip.geometry.page_size, done.in_words(seed));
}

/// Half of the cuts that continuous integration makes; the other half is beside it, for a second core.
const CUTS: u64 = 100_000;

fn lives_of_half_the_cuts(first: u64) {
    let Count { cuts, erases, nested, .. } = lives(&World::plain(), first, CUTS);
    assert!(cuts >= CUTS && erases > CUTS / 20 && nested > CUTS / 10, "{cuts}, {erases}, {nested}");
}

#[test]
fn a_hundred_thousand_cuts() {
    lives_of_half_the_cuts(0);
}

#[test]
fn another_hundred_thousand_cuts() {
    lives_of_half_the_cuts(1 << 32);
}

/// Cuts that continuous integration makes on a chip that tears pairs.
const PAIRED_CUTS: u64 = 20_000;

#[test]
fn twenty_thousand_cuts_where_cells_hold_two_bits() {
    let Count { cuts, erases, nested, levelling, .. } = lives(&World::paired(), 0, PAIRED_CUTS);
    assert!(
        cuts >= PAIRED_CUTS && erases > PAIRED_CUTS / 20 && nested > PAIRED_CUTS / 10,
        "{cuts}, {erases}, {nested}"
    );
    assert!(levelling > PAIRED_CUTS / 40, "{levelling} while wear was evened");
}

/// Cuts that continuous integration makes where pages have tags.
const TAGGED_CUTS: u64 = 30_000;

#[test]
fn thirty_thousand_cuts_where_pages_have_tags() {
    let Count { cuts, erases, nested, tails, .. } = lives(&World::tagged(), 0, TAGGED_CUTS);
    assert!(
        cuts >= TAGGED_CUTS && nested > TAGGED_CUTS / 10 && tails > TAGGED_CUTS / 10 && erases > 0,
        "{cuts}, {erases}, {nested}, {tails}"
    );
}

#[test]
fn a_tail_that_is_not_taken_over_ends_a_life() {
    let broken = Broken { without_tail: true, ..Broken::default() };
    assert!(is_caught_with(TAGGED, Options { broken, ..TAGGED_OPTIONS }, TAGGED_OPTIONS));
}

/// Whether any of some lives ends early.
fn is_caught(way: Way, broken: Broken) -> bool {
    is_caught_with(way, Options { broken, ..OPTIONS }, OPTIONS)
}

/// The same with these options, on a chip formatted with others.
fn is_caught_with(way: Way, options: Options, kept: Options) -> bool {
    let formatted = formatted_with(way.chip, kept);
    let mut cuts = 0;
    let run = || (0..60).for_each(|seed| cuts += live(way, &formatted, options, seed).cuts);
    let is_caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
    println!("{:?}: caught is {is_caught}, with {cuts} cuts in lives before", options.broken);
    is_caught
}

/// Lives find out what is wrong: each rule left out within the cuts that continuous integration makes.
#[test]
fn each_rule_left_out_ends_a_life() {
    let kept = Broken::default();
    let tree = |tree| Broken { tree, ..kept };
    let rules = [
        ("R1", VARIED, tree(nandu_tree::Broken { commit_first: true, ..kept.tree })),
        ("R2", VARIED, Broken { without_sync: true, ..kept }),
        ("R3", VARIED, Broken { name_first: true, ..kept }),
        ("R4", VARIED, Broken { replace_in_parts: true, ..kept }),
        ("R5", VARIED, Broken { without_orphans: true, ..kept }),
        ("R5 of pages", OVERWRITING, tree(nandu_tree::Broken { supersede_first: true, ..kept.tree })),
        ("R7 of pages", OVERWRITING, tree(nandu_tree::Broken { move_stale: true, ..kept.tree })),
    ];
    let missed: Vec<&str> =
        rules.into_iter().filter(|&(_, way, broken)| !is_caught(way, broken)).map(|(rule, ..)| rule).collect();
    assert_eq!(missed, Vec::<&str>::new());
}

#[test]
fn each_protection_of_pairs_left_out_ends_a_life() {
    let kept = placed();
    let tree = nandu_tree::Broken { name_exposed: true, ..kept.broken.tree };
    let named = Options { broken: Broken { tree, ..kept.broken }, ..kept };
    let unprotected = Options { log: LogOptions { skip_pair_protection: true, ..kept.log }, ..kept };
    assert!(is_caught_with(PAIRED, named, kept), "copies are named before their partners are programmed");
    assert!(is_caught_with(PAIRED, unprotected, kept), "partners of pages that a sync promised are programmed");
}

/// Lives of every core, counted together.
struct Swarm {
    cases: u64,
    seed: u64,
    started: Instant,
    /// Lives begun.
    begun: AtomicU64,
    done: Mutex<Count>,
    /// Some life has failed: the others need not go on.
    has_failed: AtomicBool,
}

impl Swarm {
    /// Lives one life after another.
    fn run(&self, world: fn() -> World) {
        let stop = StopOthers(&self.has_failed);
        let world = world();
        while !self.has_failed.load(Ordering::Relaxed) && self.done.lock().unwrap().cuts < self.cases {
            let count = world.live((self.seed << 40) + self.begun.fetch_add(1, Ordering::Relaxed));
            let mut done = self.done.lock().unwrap();
            let step = (self.cases / 1_000).max(1);
            let is_shown = done.cuts / step < (done.cuts + count.cuts) / step;
            *done += count;
            // Once for each thousandth, so that a file that this goes to stays small.
            if is_shown {
                eprint!("\r{} of {} cuts, {:.0} s", done.cuts, self.cases, self.started.elapsed().as_secs_f64());
            }
        }
        drop(stop);
    }
}

/// Says so when a life fails.
struct StopOthers<'a>(&'a AtomicBool);

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// As many cuts as somebody asks for, on every core; or one life alone.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    swarm_in(World::plain);
}

/// The same where cells hold two bits: experiment E11 of FlexFS's.
#[test]
#[ignore = "takes as long as it is told to"]
fn paired_swarm() {
    swarm_in(World::paired);
}

/// The same where pages have tags.
#[test]
#[ignore = "takes as long as it is told to"]
fn tagged_swarm() {
    swarm_in(World::tagged);
}

fn swarm_in(world: fn() -> World) {
    let from_environment = |name| std::env::var(name).map(|value| value.parse::<u64>().unwrap());
    if let Ok(seed) = from_environment("NANDU_LIFE") {
        println!("{} cuts in life {seed}: nothing was lost", world().live(seed).cuts);
        return;
    }
    let swarm = Swarm {
        cases: from_environment("NANDU_SWARM_CASES").unwrap_or(1_000_000),
        seed: from_environment("NANDU_SWARM_SEED").unwrap_or(1),
        started: Instant::now(),
        begun: AtomicU64::new(0),
        done: Mutex::new(Count::default()),
        has_failed: AtomicBool::new(false),
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| swarm.run(world));
        }
    });
    eprintln!();
    let (lives, done) = (swarm.begun.into_inner(), swarm.done.into_inner().unwrap());
    println!("{}, seed {}: nothing acknowledged was lost", done.in_words(lives), swarm.seed);
}
