//! Lives of a file system in which the power goes at every program: what the chip would hold is checked on a copy, and life goes on.
//!
//! A copy of the chip is made before each operation that changes it, cut in the middle of that operation, and mounted: what is found has to
//! be what the operations made up to one of them, not before the last that was acknowledged as durable. Some copies are cut again while
//! they recover, some rest, some go on for a while. From time to time the life itself goes on as one of these copies. So a life costs what
//! its operations cost once, and each cut a mount and a look at everything, where the driver runs the operations again for each cut.

use std::cell::RefCell;

use nandu_files::{Capabilities, FileSystem, Time};
use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};
use nandu_sim::{Chip, Decay, OperationKind, Sim, SimError, Tear};

use crate::cuts::choose;
use crate::liveness::{Files, serves_again};
use crate::model::Model;
use crate::operation::{Chance, NAMES, Op, Slots, apply_errno};
use crate::promise::Promise;
use crate::seen::{Everything, everything, violations};
use crate::system::System;

/// What is done in a life, and on which chip.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The chip.
    pub chip: Chip,
    /// The operation of a number, where the model is what there is: by seed, number and size of pages.
    pub choose: fn(&Model, u64, u64, usize) -> Op,
    /// Operations between two mounts.
    pub round_operations: u64,
    /// Steps of background work after an operation, where a system has some: a number below the first by chance, less the second.
    pub steps: (usize, usize),
}

impl Way {
    /// Every operation there is, on a chip with few blocks, so that they are collected soon.
    pub const fn varied(chip: Chip) -> Way {
        Way { chip, choose, round_operations: 25, steps: (60, 40) }
    }

    /// Pages of two files are overwritten again and again, and seldom synced: so between two syncs whole blocks of pages come to hold nothing
    /// that is named by the newest state, and are erased although a cut would bring back what is in them, unless the log is told late.
    pub const fn overwriting(chip: Chip) -> Way {
        Way { chip, choose: choose_overwriting, round_operations: 45, steps: (60, 40) }
    }

    /// Files of less than a page come and go, most of them synced: content that a commit may have room for, and that lives long among commits that die soon.
    pub const fn small_files(chip: Chip) -> Way {
        Way { chip, choose: choose_small_files, round_operations: 60, steps: (60, 40) }
    }
}

/// The operation of a number where files are smaller than a page: of four numbers in a row one makes a file, one writes it, and one syncs it.
fn choose_small_files(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::with_paths(seed.wrapping_mul(1_000_033).wrapping_add(number / 4), model.all_paths());
    // One large file, two directories, and small files elsewhere.
    let [large, first, second, others @ ..] = NAMES;
    let (folder, name) = (chance.below(5), chance.below(NAMES.len()));
    let path = match folder {
        0 | 1 => vec![first, NAMES[name]],
        2 | 3 => vec![second, NAMES[name]],
        _ => vec![others[name % others.len()]],
    };
    let kind = chance.below(8);
    let size = page_size / 4 + page_size * chance.below(400) / 1_000;
    let bytes = chance.bytes(size);
    match (number % 4, kind) {
        (0, 0 | 1) => Op::Unlink(path),
        (0, _) => Op::Create(path),
        (1, 0) => Op::Truncate(path, (page_size / 3) as u64),
        (1, _) => Op::Write(path, 0, bytes),
        (2, 0 | 1) => Op::Idle,
        (2, _) => Op::Fsync(path),
        (_, 0) => Op::Sync,
        (_, 1) => Op::Append(path, bytes),
        (_, 2) => Op::Create(vec![large]),
        (_, 3) => Op::Mkdir(vec![[first, second][folder % 2]]),
        _ => Op::Write(vec![large], (page_size * chance.below(8)) as u64, chance.bytes(page_size)),
    }
}

/// Pages of a file that is overwritten.
pub const OVERWRITTEN_PAGES: usize = 12;

/// The operation of a number where pages are overwritten.
pub fn choose_overwriting(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
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

/// Rounds of a life.
const ROUNDS: u64 = 8;

/// Most cuts in a row on one copy.
const DEPTH_MAX: u32 = 3;

/// Copies that were cut and checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    /// All of them.
    pub cuts: u64,
    /// Of them, those in an erase.
    pub erases: u64,
    /// Of them, those while they recovered from another cut.
    pub nested: u64,
    /// Of the others, those in steps of background work that moved a page to even out wear, or made the checkpoint for that.
    pub levelling: u64,
    /// Of them, those after which pages told of themselves that no commit named.
    pub tails: u64,
}

impl Count {
    fn outside_recoveries(&self) -> u64 {
        self.cuts - self.nested
    }

    /// What was done in so many lives.
    pub fn in_words(&self, lives: u64) -> String {
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
struct Tester<S> {
    promise: Promise,
    chance: Chance,
    system: S,
    capabilities: Capabilities,
    count: Count,
    /// A copy as which life may go on.
    heir: Option<(Sim, Everything)>,
    /// Where in the life this is, for whoever has to find out what went wrong.
    place: String,
}

/// A chip that is copied and cut before each operation that changes it.
struct Forking<'a, S> {
    chip: &'a mut Sim,
    tester: &'a RefCell<Tester<S>>,
    depth: u32,
    is_on: bool,
}

impl<S: System> Forking<'_, S> {
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

impl<S: System> ErrorType for Forking<'_, S> {
    type Error = SimError;
}

impl<S: System> Nand for Forking<'_, S> {
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
fn check_cut<S: System>(tester: &RefCell<Tester<S>>, mut chip: Sim, tear: Tear, depth: u32) {
    let draw = |one_in: usize| tester.borrow_mut().chance.below(one_in) == 0;
    let (nests, is_walked, goes_on, is_heir) = (depth < DEPTH_MAX && draw(10), draw(4), draw(40), draw(60));
    let is_unstable = matches!(tear, Tear::Unstable | Tear::LooksErased | Tear::WeaklyErased | Tear::FadingContent);
    let rests = is_unstable || draw(8);
    let (system, capabilities) = (tester.borrow().system.clone(), tester.borrow().capabilities);
    let geometry = chip.chip().geometry;
    let mut memory = system.memory(&geometry);
    let fail = |why: &str| -> ! { panic!("{}, cut {}: {tear}: {why}", tester.borrow().place, depth + 1) };

    let forking = Forking { chip: &mut chip, tester, depth: depth + 1, is_on: nests };
    let mut fs = system.mount(forking, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
    fs.nand_mut().is_on = false;
    tester.borrow_mut().count.tails += u64::from(system.has_tail(&fs));
    let found = everything(&mut fs).unwrap_or_else(|error| fail(&error.to_string()));
    if let Err(differs) = tester.borrow().promise.check(&found) {
        fail(&differs);
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
        let mut fs = system.mount(&mut chip, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
        let later = everything(&mut fs).unwrap_or_else(|error| fail(&error.to_string()));
        if found != later {
            fail(&format!("found\n{found:?}\nand after a rest\n{later:?}"));
        }
    }
    if goes_on {
        let mut chip = chip.clone();
        let mut model = Model::of(&found, capabilities);
        let mut fs = system.mount(&mut chip, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
        let mut slots = Slots::default();
        for number in 0..10 {
            let seed = tester.borrow_mut().chance.below(1 << 20) as u64;
            let op = choose(&model, seed, number, geometry.page_size as usize);
            model.now += 1;
            fs.set_now(Time::from_seconds(model.now));
            let (expected, outcome) = (model.apply(&op), apply_errno(&mut fs, &mut slots, &op));
            if outcome != expected {
                fail(&format!("went on with {op:?}: {outcome:?} instead of {expected:?}"));
            }
        }
        let (there, wrong) = (everything(&mut fs).ok(), violations(&mut fs));
        if there.as_ref() != Some(&model.everything()) || !wrong.is_empty() {
            fail(&format!("went on: found\n{there:?}\nexpected\n{:?}\n{wrong:?}", model.everything()));
        }
    }
    if is_heir {
        tester.borrow_mut().heir = Some((chip, found));
    }
}

/// Sometimes nothing is asked for, and background work goes on, where the system has some; returns for how many seconds.
fn rest<S: System>(way: Way, fs: &mut S::Mounted<'_, Forking<'_, S>>, tester: &RefCell<Tester<S>>, now: i64) -> i64 {
    let system = tester.borrow().system.clone();
    if !system.has_steps() {
        return 0;
    }
    let (range, none) = way.steps;
    let steps = tester.borrow_mut().chance.below(range).saturating_sub(none);
    let mut until = now;
    for step in 0..steps {
        let cuts = tester.borrow().count.outside_recoveries();
        // Each step comes a second after the one before, so that windows pass.
        let Some(stepped) = system.step(fs, Time::from_seconds(now + 2 + step as i64)) else { break };
        until = stepped.at.seconds;
        if stepped.levelled {
            let mut tester = tester.borrow_mut();
            tester.count.levelling += tester.count.outside_recoveries() - cuts;
        }
    }
    if steps > 0 { until + 1 - now } else { 0 }
}

/// Lives one life on a formatted chip; returns which cuts were checked. Panics if one leaves what may not be.
pub fn live<S: System>(system: &S, way: Way, formatted: &Sim, seed: u64) -> Count {
    let mut chip = formatted.clone();
    let geometry = chip.chip().geometry;
    let chance = Chance::new(seed ^ 0x5EED);
    let place = String::new();
    let system = system.clone();
    let capabilities = system.mount(&mut chip.clone(), &mut system.memory(&geometry)).unwrap().capabilities();
    let tester = Tester {
        promise: Promise::default(),
        chance,
        system: system.clone(),
        capabilities,
        count: Count::default(),
        heir: None,
        place,
    };
    let tester = RefCell::new(tester);
    let mut now = 1000;
    for round in 0..ROUNDS {
        let mut memory = system.memory(&geometry);
        let mut fs = system.mount(&mut chip, &mut memory).unwrap();
        let mut model = Model::of(&everything(&mut fs).unwrap(), capabilities);
        let forking = Forking { chip: fs.abandon(), tester: &tester, depth: 0, is_on: true };
        tester.borrow_mut().promise.begin(&model);
        tester.borrow_mut().place = format!("life {seed}, round {round}, mounting");
        let mut fs = system.mount(forking, &mut memory).unwrap();
        let mut slots = Slots::default();
        for number in 0..way.round_operations {
            let op = (way.choose)(&model, seed, round * way.round_operations + number, geometry.page_size as usize);
            now += 1;
            model.now = now;
            let is_synced = tester.borrow_mut().chance.below(2) == 0;
            system.begin(&mut fs, Time::from_seconds(now), is_synced);
            let expected = model.apply(&op);
            tester.borrow_mut().promise.may_be(&model);
            tester.borrow_mut().place = format!("life {seed}, round {round}, operation {number}, {op:?}");
            match apply_errno(&mut fs, &mut slots, &op) {
                outcome if outcome == expected => {}
                outcome => panic!("{}: {outcome:?} instead of {expected:?}", tester.borrow().place),
            }
            if expected.is_ok() {
                tester.borrow_mut().promise.is_done(&op);
            }
            system.end(&mut fs, Time::from_seconds(now));
            tester.borrow_mut().place = format!("life {seed}, round {round}, after operation {number}");
            now += rest(way, &mut fs, &tester, now);
        }
        tester.borrow_mut().place = format!("life {seed}, round {round}, unmounting");
        fs.unmount().unwrap();
        if let Some((heir, _)) = tester.borrow_mut().heir.take() {
            chip = heir;
        }
    }
    if system.promises_liveness()
        && let Err(what) = serves_again(&Files(&system), &mut chip)
    {
        panic!("life {seed}, at the end: {what}");
    }
    tester.into_inner().count
}

/// Lives from this seed on until so many cuts were checked.
pub fn lives(first: u64, cuts: u64, live: impl Fn(u64) -> Count) -> Count {
    let (mut seed, mut done) = (first, Count::default());
    while done.cuts < cuts {
        done += live(seed);
        seed += 1;
    }
    println!("{}: nothing was lost", done.in_words(seed - first));
    done
}
