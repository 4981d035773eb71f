//! Lives of a file system in which the power goes at every program and erase: what the chip would hold is checked on a copy, and life
//! goes on.
//!
//! A copy of the chip is made before each operation that changes it, cut in the middle of that operation, and mounted. What is found has to be
//! what the model allows: everything acknowledged, and the operation that was cut wholly or not. Some copies are cut again while they
//! recover, some rest until unstable bits are lost, some go on for a while; and now and then the life itself goes on as one of them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use nandu_dffs::{Broken, Dffs, Options, ParentUpdate};
use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};
use nandu_sim::{Chip, Decay, OperationKind, Sim, SimError, Tear};

use crate::model::{Model, Op, apply, choose};
use crate::rig::{Chance, Everything, OPTIONS, SMALL, everything, memory, violations};

/// Cuts within recoveries from cuts, at most.
const DEPTH_MAX: u32 = 3;

/// What may be found after a cut, and what was tried.
struct Tester {
    allowed: Vec<Model>,
    chance: Chance,
    options: Options,
    /// Whether the first cut of each chain leaves a page unstable, a recovery from it is always cut, and the page has faded by the next.
    fades: bool,
    cuts: u64,
    nested: u64,
    /// A copy as which life may go on.
    heir: Option<(Sim, Everything)>,
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
        let fades = self.tester.borrow().fades && self.depth == 0;
        let tears = Tear::all_for(kind, &geometry).filter(|&tear| !fades || tear == Tear::Unstable);
        let tears: Vec<Tear> = tears.collect();
        if tears.is_empty() {
            return;
        }
        let count = if self.depth == 0 && !fades { 3 } else { 1 };
        let first = self.tester.borrow_mut().chance.below(tears.len());
        for nth in 0..count {
            let tear = tears[(first + 3 * nth) % tears.len()];
            let mut chip = self.chip.clone();
            let number = chip.operation_count();
            chip.cut_at(number, tear);
            act(&mut chip);
            chip.clear_cuts();
            chip.power_on();
            if chip.last_cut().is_some_and(|cut| cut.operation == number && cut.tear == tear) {
                self.tester.borrow_mut().cuts += 1;
                self.tester.borrow_mut().nested += u64::from(self.depth > 0);
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
    let fades = tester.borrow().fades;
    let (nests, is_walked, goes_on, is_heir) = (depth < DEPTH_MAX && draw(20), draw(4), draw(20), draw(60));
    let is_unstable = matches!(tear, Tear::Unstable | Tear::LooksErased | Tear::WeaklyErased | Tear::FadingContent);
    let rests = is_unstable || draw(8);
    let options = tester.borrow().options;
    let geometry = chip.chip().geometry;
    let mut memory = memory(&geometry, &options);
    let fail = |why: &str| -> ! { panic!("{}, cut {}: {tear}: {why}", tester.borrow().place, depth + 1) };

    let nests = if fades { depth == 0 } else { nests };
    if depth > 0 && (fades || draw(3)) {
        // What the cut before this one left fades before anybody looks.
        chip.advance_ns(Decay::DEFAULT.time_ns);
    }
    let forking = Forking { chip: &mut chip, tester, depth: depth + 1, is_on: nests };
    let mut fs = Dffs::mount(forking, options, &mut memory).unwrap_or_else(|error| fail(&format!("mounting: {error}")));
    fs.nand_mut().is_on = false;
    if fs.is_read_only() {
        fail("no room to recover");
    }
    let found = everything(&mut fs).unwrap_or_else(|error| fail(&format!("listing: {error}")));
    if !tester.borrow().allowed.iter().any(|model| model.allows(&found)) {
        let show = |all: &Everything| {
            all.iter()
                .map(|(path, content)| format!("{path} {:?} ", content.as_ref().map(Vec::len)))
                .collect::<String>()
        };
        let allowed: Vec<_> = tester.borrow().allowed.iter().map(|model| show(&model.now())).collect();
        fail(&format!("found\n{}\nallowed\n{allowed:#?}", show(&found)));
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
        let mut fs = Dffs::mount(&mut chip, options, &mut memory)
            .unwrap_or_else(|error| fail(&format!("mounting after a rest: {error}")));
        let later = everything(&mut fs).unwrap_or_else(|error| fail(&format!("after a rest: {error}")));
        if found != later {
            fail("after a rest something else is found");
        }
    }
    if goes_on {
        let mut fs = Dffs::mount(&mut chip, options, &mut memory).unwrap_or_else(|error| fail(&error.to_string()));
        let mut model = Model::of(&found);
        let size_max = fs.file_size_max() as usize;
        for _ in 0..30 {
            let op = choose(&model, &mut tester.borrow_mut().chance, 20, geometry.page_size as usize);
            let mut next = model.clone();
            let is_made = next.apply(&op, geometry.page_size as usize, size_max);
            match apply(&mut fs, &op) {
                Ok(()) if is_made => model = next,
                Err(nandu_dffs::Error::Full) => model = Model::of(&everything(&mut fs).unwrap()),
                Err(_) if !is_made => {}
                outcome => fail(&format!("going on: {op:?}: {outcome:?}")),
            }
        }
        let later = everything(&mut fs).unwrap_or_else(|error| fail(&format!("going on: {error}")));
        if later != model.now() {
            fail("going on, something else is found");
        }
        let wrong = violations(&mut fs);
        if !wrong.is_empty() {
            fail(&format!("going on: {wrong:?}"));
        }
        return;
    }
    if is_heir && depth == 0 {
        tester.borrow_mut().heir = Some((chip, found));
    }
}

/// What is done in lives.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) chip: Chip,
    pub(crate) options: Options,
    pub(crate) operations: u64,
    pub(crate) names: usize,
    pub(crate) fades: bool,
}

/// One life; returns its cuts, and those within recoveries.
pub(crate) fn live(way: &Way, seed: u64) -> (u64, u64) {
    let Way { chip, options, operations, names, fades } = *way;
    let (geometry, page_size) = (chip.geometry, chip.geometry.page_size as usize);
    let mut memory = memory(&geometry, &options);
    let unbroken = Options { broken: Broken::default(), ..options };
    let mut sim = Dffs::format(Sim::with_seed(chip, seed), unbroken, &mut memory).unwrap().unmount().unwrap();
    let tester = RefCell::new(Tester {
        allowed: vec![Model::default()],
        chance: Chance::new(seed ^ 0xabcd),
        options,
        fades,
        cuts: 0,
        nested: 0,
        heir: None,
        place: String::new(),
    });
    let mut chance = Chance::new(seed);
    let mut model = Model::default();
    let mut number = 0;
    while number < operations {
        // Between two mounts. Half of a life makes room for collections first, without cuts.
        let forking = Forking { chip: &mut sim, tester: &tester, depth: 0, is_on: false };
        let mut fs = Dffs::mount(forking, options, &mut memory).unwrap();
        let size_max = fs.file_size_max() as usize;
        let warm_up = if number == 0 { chance.below(400) } else { 0 };
        let round = 15 + chance.below(40);
        for step in 0..warm_up + round {
            let op = choose(&model, &mut chance, names, page_size);
            let mut next = model.clone();
            let is_made = next.apply(&op, page_size, size_max);
            {
                let mut tester = tester.borrow_mut();
                tester.allowed = if is_made { vec![model.clone(), next.clone()] } else { vec![model.clone()] };
                // A write that finds no room half way leaves what was written: all of its steps are in the versions.
                if let (Op::Write(path, ..) | Op::Truncate(path, _), true) = (&op, is_made) {
                    let after = next.things[path].clone();
                    tester.allowed[0].things.insert(path.clone(), after);
                }
                tester.place = format!("seed {seed}, operation {} {op:?}", number + step as u64);
            }
            fs.nand_mut().is_on = step >= warm_up;
            let outcome = apply(&mut fs, &op);
            fs.nand_mut().is_on = false;
            match outcome {
                Ok(()) => assert!(is_made, "{op:?}"),
                Err(nandu_dffs::Error::Full | nandu_dffs::Error::TooManyDirectories) => {
                    let found = everything(&mut fs).unwrap();
                    // What is not durable yet may still be any of what it was.
                    let is_written = is_made && matches!(op, Op::Write(..) | Op::Truncate(..));
                    let mut now = if is_written { next.clone() } else { model.clone() };
                    now.things.retain(|path, _| found.contains_key(path));
                    for (path, content) in &found {
                        let known = model.things.get(path).cloned();
                        let mut thing = now.things.remove(path).or(known).unwrap();
                        if let (crate::model::Thing::File(versions), Some(content)) = (&mut thing, content) {
                            versions.push(content.clone());
                        }
                        now.things.insert(path.clone(), thing);
                    }
                    model = now;
                    continue;
                }
                Err(error) => assert!(!is_made, "{} {op:?} {error}", tester.borrow().place),
            }
            if is_made {
                model = next;
            }
        }
        let is_in_order = chance.below(3) == 0;
        let allowed = vec![model.clone()];
        tester.borrow_mut().allowed = allowed;
        tester.borrow_mut().place = format!("seed {seed}, unmount");
        fs.nand_mut().is_on = true;
        if is_in_order {
            fs.unmount().unwrap();
        } else {
            fs.sync().unwrap();
            fs.abandon();
        }
        model.apply(&Op::Sync, page_size, size_max);
        number += round as u64;
        if let Some((heir, found)) = tester.borrow_mut().heir.take()
            && chance.below(2) == 0
        {
            sim = heir;
            model = Model::of(&found);
        }
        tester.borrow_mut().allowed = vec![model.clone()];
    }
    let tester = tester.into_inner();
    (tester.cuts, tester.nested)
}

/// Lives, one after another, until there were so many cuts; as many as `NANDU_DFFS_CUTS` says if that is set.
fn live_until(ways: &[Way], cuts: u64, seed: u64) {
    let asked = std::env::var("NANDU_DFFS_CUTS").ok().and_then(|count| count.parse().ok());
    let cuts = asked.unwrap_or(cuts);
    let seed = std::env::var("NANDU_DFFS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seed);
    let (done, nested, next) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(seed));
    std::thread::scope(|scope| {
        let life = || {
            while done.load(Ordering::Relaxed) < cuts {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                let (all, within) = live(&ways[seed as usize % ways.len()], seed);
                done.fetch_add(all, Ordering::Relaxed);
                nested.fetch_add(within, Ordering::Relaxed);
            }
        };
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(life)).collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    eprintln!("{} cuts, {} of them in recoveries", done.load(Ordering::Relaxed), nested.load(Ordering::Relaxed));
    assert!(done.load(Ordering::Relaxed) >= cuts);
}

pub(crate) const VARIED: Way = Way { chip: SMALL, options: OPTIONS, operations: 100, names: 60, fades: false };
const EACH: Way = Way { options: Options { parent_update: ParentUpdate::Each, ..OPTIONS }, names: 25, ..VARIED };
pub(crate) const FEW_NAMES: Way = Way { names: 8, options: Options { checkpoint_interval: 12, ..OPTIONS }, ..VARIED };
/// Few blocks, which are used again soon.
pub(crate) const FEW_BLOCKS: Way = Way {
    chip: SMALL.with_blocks(26),
    options: Options { checkpoint_interval: 9, open_files: 3, lag_max: 2, ..OPTIONS },
    ..FEW_NAMES
};

/// The same where recoveries find pages that fade meanwhile.
pub(crate) const FADING: Way = Way { fades: true, ..FEW_BLOCKS };

#[test]
fn whatever_was_acknowledged_survives_every_cut() {
    live_until(&[VARIED, EACH, FEW_NAMES, FEW_BLOCKS, FADING], 20_000, 1);
}
