//! Faults that are no power cut, at every operation of a mount and some changes: F4, F6 to F8 and F10 to F17 of `docs/fault-model.md`,
//! on chips with tags and without, mounted after an unmount and after a cut.
//!
//! `NANDU_FAULT_SEEDS` sets how many workloads are tried of each kind; one is the short form.

mod outages;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use nandu_fs::{FileKind, Fs, FsError, LogOptions, Options, Time};
use nandu_media::PageKind;
use nandu_nand::{Cause, Nand};
use nandu_sim::{Address, Chip, Fault, Observer, Operation, OperationKind, Sim, SimError, Tear, Trigger};
use nandu_suite::cuts::choose;
use nandu_suite::{
    Everything, Model, Op, SMALL, Seen, Slots, apply, content, everything, is_allowed, resolve, violations,
};

use crate::lives::{SYNCED_CHIP, choose_synced};
use crate::mlc_lives::{CHIP as PAIRED_CHIP, choose_pages, placed};
use crate::rig::{OPTIONS, capabilities, formatted_with, memory};

fn seeds() -> u64 {
    std::env::var("NANDU_FAULT_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// A kind of chip and of work on it.
#[derive(Clone, Copy)]
struct Scene {
    name: &'static str,
    chip: Chip,
    options: Options,
    choose: fn(&Model, u64, u64, usize) -> Op,
    /// Whether what mounts it first has to recover.
    is_cut: bool,
    seed: u64,
}

impl Scene {
    fn all(care: Care) -> Vec<Scene> {
        // A block that was read so often is emptied, so that pages are moved however little lives in each block.
        let careful = |options: Options| {
            let (read_back, commit_twice) = (care == Care::ReadBack, care == Care::Twice);
            let log = LogOptions { read_back, commit_twice, reads_max: Some(10), ..options.log };
            Options { log, ..options }
        };
        let plain = Scene {
            name: "plain",
            chip: SMALL.with_blocks(44),
            options: careful(OPTIONS),
            choose,
            is_cut: false,
            seed: 0,
        };
        let tagged = Scene {
            name: "tagged",
            chip: SYNCED_CHIP.with_blocks(30),
            options: careful(OPTIONS),
            choose: choose_synced,
            ..plain
        };
        let paired =
            Scene { name: "paired", chip: PAIRED_CHIP, options: careful(placed()), choose: choose_pages, ..plain };
        let seeded = |scene| (0..seeds()).map(move |seed| Scene { seed, ..scene });
        [plain, tagged, paired]
            .into_iter()
            .flat_map(|scene| [scene, Scene { is_cut: true, ..scene }])
            .flat_map(seeded)
            .collect()
    }
}

/// What is done against faults.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Care {
    Plain,
    /// What is programmed is read back.
    ReadBack,
    /// Commits are programmed twice.
    Twice,
}

/// How a run with a fault may end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Demand {
    /// Every operation succeeds, and everything is there.
    Survives,
    /// A call may fail with an error. Mounted again without the fault, everything is there.
    Heals,
    /// A call may fail with an error, again and again. Nothing is ever wrong, and nothing is missing without an error.
    NeverWrong,
}

/// What was acknowledged.
#[derive(Clone)]
struct Promise {
    /// What there was when something was durable last, and after each operation since, the one under way included.
    states: Vec<Model>,
    /// Operations begun.
    count: u64,
    /// Pages of which a mount said that they are lost, and that it does not know whose they were.
    told: u32,
    /// Operations of the chip when the last mount was done.
    mounted: u64,
}

impl Promise {
    /// Whether no more files are other than they should be than pages are lost.
    fn is_lost(&self, found: &Everything, expected: &Everything) -> bool {
        let others: Vec<_> = found.iter().filter(|(path, seen)| expected.get(*path) != Some(seen)).collect();
        let files: BTreeSet<_> = others.iter().map(|(_, seen)| &seen.same_as).collect();
        found.len() == expected.len()
            && files.len() <= self.told as usize
            && others.iter().all(|(path, seen)| expected.get(*path).is_some_and(|was| was.mode == seen.mode))
    }

    /// Takes over what was found at a mount.
    fn adopt<N: Nand<Error = SimError>>(&mut self, fs: &Fs<'_, N>, found: &Everything, what: &str) {
        self.told += fs.stats().tail.lost;
        let is_there =
            is_allowed(found, &self.states) || self.states.iter().any(|state| self.is_lost(found, &state.everything()));
        if !is_there {
            let last = self.states[self.states.len() - 1].everything();
            let differ = |path: &&Vec<u8>| found.get(*path) != last.get(*path);
            let paths: Vec<_> =
                found.keys().chain(last.keys()).filter(differ).map(|path| path.escape_ascii()).collect();
            let paths: Vec<String> = paths.into_iter().map(|path| path.to_string()).collect();
            panic!("{what}: {paths:?} is in none of {} states", self.states.len());
        }
        self.states = vec![Model::of(found, capabilities())];
    }
}

/// So many operations; then what there is is durable. The file system is left as it stands, or unmounted.
fn work(
    chip: &mut Sim,
    scene: Scene,
    changes: u64,
    unmounts: bool,
    promise: &mut Promise,
    what: &str,
) -> Result<(), FsError<SimError>> {
    let page_size = scene.chip.geometry.page_size as usize;
    let mut memory = memory(&scene.chip.geometry, &scene.options);
    let mut fs = Fs::mount(chip, scene.options, &mut memory)?;
    promise.mounted = fs.nand().operation_count();
    let found = everything(&mut fs)?;
    promise.adopt(&fs, &found, what);
    let mut model = promise.states[0].clone();
    let mut slots = Slots::default();
    for nth in 0..=changes {
        let op = match nth < changes {
            true => (scene.choose)(&model, scene.seed, promise.count, page_size),
            false => Op::Sync,
        };
        promise.count += u64::from(nth < changes);
        model.now = 1000 + promise.count as i64;
        fs.set_now(Time::from_seconds(model.now));
        let expected = model.apply(&op);
        promise.states.push(model.clone());
        match apply(&mut fs, &mut slots, &op) {
            Err(error) if expected != Err(error.errno()) => {
                if outages::is_bus(&error) {
                    outages::assert_told(&mut fs, what);
                }
                return Err(error);
            }
            outcome => assert_eq!(outcome.map_err(|error| error.errno()), expected, "{what}: {op:?}"),
        }
        if op.is_durable(&capabilities()) && expected.is_ok() {
            promise.states = vec![model.clone()];
        }
    }
    model.remount();
    if unmounts {
        promise.states.push(model.clone());
        fs.unmount()?;
    }
    promise.states = vec![model];
    Ok(())
}

/// A chip that was worked on until there is little room, and which pages were programmed last.
fn used(scene: Scene) -> (Sim, Promise, Newest) {
    let mut chip = formatted_with(scene.chip, scene.options);
    let watched = Watcher::watch(&mut chip, Newest::default());
    let mut promise = Promise { states: vec![Model::new(capabilities())], count: 0, told: 0, mounted: 0 };
    let changes = 120;
    work(&mut chip, scene, changes, !scene.is_cut, &mut promise, "before").unwrap();
    chip.set_observer(None);
    let newest = watched.lock().unwrap().programmed;
    (chip, promise, newest)
}

/// The page of a file programmed last, and the last page that is a commit.
type Newest = [Option<Address>; 2];

/// What a run without a fault did.
#[derive(Clone, Default)]
struct Watched {
    /// Of each operation, what it was, whether it read an erased page, and whether it is about one of the
    /// newest pages.
    kinds: Vec<OperationKind>,
    erased: Vec<bool>,
    newest: Vec<bool>,
    programmed: Newest,
    /// Operations of the mount.
    mount_count: usize,
    moved: u32,
}

struct Watcher(Arc<Mutex<Watched>>);

impl Watcher {
    fn watch(chip: &mut Sim, programmed: Newest) -> Arc<Mutex<Watched>> {
        let watched = Arc::new(Mutex::new(Watched { programmed, ..Watched::default() }));
        chip.set_observer(Some(Box::new(Watcher(Arc::clone(&watched)))));
        watched
    }
}

impl Observer for Watcher {
    fn operation(&mut self, operation: &Operation, data: &[u8]) {
        let mut watched = self.0.lock().unwrap();
        watched.kinds.push(operation.kind);
        watched.erased.push(operation.kind == OperationKind::Read && data.iter().all(|&byte| byte == 0xFF));
        let is_newest = watched.programmed.contains(&Some(operation.address));
        watched.newest.push(is_newest);
        if operation.kind == OperationKind::Program {
            if operation.cause == Cause::Value {
                watched.programmed[0] = Some(operation.address);
            }
            let kind = nandu_media::Page::parse(data).map(|page| page.kind());
            if matches!(kind, Ok(PageKind::Commit)) {
                watched.programmed[1] = Some(operation.address);
            }
        }
        let is_move = matches!(operation.cause, Cause::Gc | Cause::Refresh);
        watched.moved += u32::from(operation.kind == OperationKind::Program && is_move);
    }
}

/// Operations during which the collector moves something, or of some workloads many.
fn enough_changes(chip: &Sim, scene: Scene, promise: &Promise, newest: Newest) -> (u64, Watched) {
    let mut changes = 64;
    loop {
        let mut chip = chip.clone();
        let watched = Watcher::watch(&mut chip, newest);
        let (first, mut promise) = (chip.operation_count(), promise.clone());
        work(&mut chip, scene, changes, true, &mut promise, scene.name).unwrap();
        let mut watched = watched.lock().unwrap().clone();
        watched.mount_count = (promise.mounted - first) as usize;
        assert!(changes < 400 || scene.seed > 0, "{}: nothing is ever moved", scene.name);
        if watched.moved > 0 || changes >= 120 && scene.seed > 0 {
            return (changes, watched);
        }
        changes += 8;
    }
}

/// Whether nobody can tell what happened from a cut during the program of the newest page, as with stores.
fn is_beyond_help(fault: Fault, scene: Scene, watched: &Watched, operation: usize) -> bool {
    let is_mount_after_cut = scene.is_cut && operation < watched.mount_count;
    match fault {
        Fault::Uncorrectable if scene.options.log.commit_twice => false,
        Fault::Uncorrectable => {
            watched.newest[operation] || (watched.erased[operation] && !scene.options.log.read_back)
        }
        Fault::Stale | Fault::Misdirected(_) => is_mount_after_cut && !scene.options.log.read_back,
        _ => false,
    }
}

/// Everything that was promised is there, work goes on, and everything is there again.
fn check_all_there(chip: &mut Sim, scene: Scene, promise: &mut Promise, what: &str) {
    for changes in [0, 20] {
        let mut memory = memory(&scene.chip.geometry, &scene.options);
        let mut fs =
            Fs::mount(&mut *chip, scene.options, &mut memory).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(fs.stats().tail.lost, 0, "{what}");
        assert_eq!(violations(&mut fs), Vec::<String>::new(), "{what}");
        fs.abandon();
        work(chip, scene, changes, true, promise, what).unwrap();
    }
}

/// Whatever can be read is what was promised, and nothing is missing without an error. Returns whether there was one.
fn check_nothing_wrong(chip: &mut Sim, scene: Scene, promise: &mut Promise, what: &str) -> bool {
    let mut memory = memory(&scene.chip.geometry, &scene.options);
    let Ok(mut fs) = Fs::mount(&mut *chip, scene.options, &mut memory) else { return true };
    if let Ok(found) = everything(&mut fs) {
        promise.adopt(&fs, &found, what);
        return promise.told > 0;
    }
    promise.told += fs.stats().tail.lost;
    if promise.told > 0 {
        return true;
    }
    let states: Vec<Everything> = promise.states.iter().map(Model::everything).collect();
    for path in states.iter().flat_map(|state| state.keys()) {
        let may_be: Vec<Option<&Seen>> = states.iter().map(|state| state.get(path)).collect();
        let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').skip(1).collect();
        let found = resolve(&mut fs, &parts).and_then(|ino| Ok((ino, fs.stat(ino)?)));
        match found {
            Ok((ino, stat)) if stat.kind == FileKind::File => {
                let Ok(found) = content(&mut fs, ino) else { continue };
                let byte = |seen: &Seen, at: usize| seen.content.get(at).copied().unwrap_or(0);
                let is_some = |at: usize| may_be.iter().flatten().any(|seen| byte(seen, at) == found[at]);
                let sizes = may_be.iter().flatten().map(|seen| seen.content.len());
                let is_size = sizes.clone().min() <= Some(found.len()) && Some(found.len()) <= sizes.max();
                assert!(is_size && (0..found.len()).all(is_some), "{what}: {}", path.escape_ascii());
            }
            Ok(_) => assert!(may_be.iter().any(Option::is_some), "{what}: {}", path.escape_ascii()),
            Err(FsError::NotFound { .. }) => {
                assert!(may_be.iter().any(Option::is_none), "{what}: {} is missing", path.escape_ascii());
            }
            Err(_) => {}
        }
    }
    true
}

/// The fault at every operation of a mount and some changes to which it can happen. After an error the fault is over.
fn try_everywhere(fault: Fault, care: Care, demand: Demand) {
    for scene in Scene::all(care) {
        let (chip, promise, newest) = used(scene);
        let (changes, watched) = enough_changes(&chip, scene, &promise, newest);
        let name = format!("{fault:?}, {}, cut: {}, seed {}", scene.name, scene.is_cut, scene.seed);
        let (mut failed, mut told) = (0, 0);
        // Of thousands the short form tries every ninth.
        let stride = if watched.erased.len() > 400 && seeds() == 1 { 9 } else { 1 };
        let fitting = (0..watched.kinds.len()).filter(|&operation| fault.fits(watched.kinds[operation]));
        for operation in fitting.step_by(stride) {
            if is_beyond_help(fault, scene, &watched, operation) {
                continue;
            }
            let what = format!(
                "{name}, operation {operation} of {}, {} in the mount",
                watched.erased.len(),
                watched.mount_count
            );
            let (mut chip, mut promise) = (chip.clone(), promise.clone());
            chip.inject(fault, Trigger::Operation(chip.operation_count() + operation as u64));
            let result = work(&mut chip, scene, changes, true, &mut promise, &what);
            chip.withdraw_all();
            if let Err(error) = &result {
                assert!(demand != Demand::Survives, "{what}: {error}");
                failed += 1;
            }
            match demand {
                Demand::Survives | Demand::Heals => check_all_there(&mut chip, scene, &mut promise, &what),
                Demand::NeverWrong => told += u32::from(check_nothing_wrong(&mut chip, scene, &mut promise, &what)),
            }
        }
        println!("{name}: {} operations, {failed} runs failed, {told} told later", watched.erased.len());
    }
}

#[test]
fn bits_that_flip_within_what_can_be_corrected_cost_nothing() {
    try_everywhere(Fault::BitFlips(4), Care::Plain, Demand::Survives);
    try_everywhere(Fault::ReadDisturb(4), Care::Plain, Demand::Survives);
    try_everywhere(Fault::ErasedZeros(3), Care::Plain, Demand::Survives);
}

#[test]
fn a_program_or_an_erase_that_fails_anywhere_is_survived() {
    try_everywhere(Fault::ProgramFails, Care::Plain, Demand::Survives);
    try_everywhere(Fault::EraseFails, Care::Plain, Demand::Survives);
}

#[test]
fn an_operation_whose_outcome_nobody_knows_is_survived() {
    for tear in [Tear::Before, Tear::SomeBits, Tear::Complete] {
        try_everywhere(Fault::Bus(tear), Care::Plain, Demand::Survives);
    }
}

#[test]
fn a_program_or_an_erase_that_never_happened_is_survived_where_it_is_read_back() {
    try_everywhere(Fault::NothingHappens, Care::ReadBack, Demand::Survives);
}

#[test]
fn a_read_that_brings_what_was_read_before_is_never_taken_for_data_and_loses_nothing() {
    try_everywhere(Fault::Stale, Care::Plain, Demand::Heals);
    try_everywhere(Fault::Stale, Care::ReadBack, Demand::Heals);
}

/// Nor is the newest commit missing then, in a mount after a cut or before it.
#[test]
fn what_cannot_be_read_is_never_missing_where_commits_are_programmed_twice() {
    try_everywhere(Fault::Uncorrectable, Care::Twice, Demand::NeverWrong);
}

#[test]
fn what_cannot_be_read_or_went_elsewhere_is_never_taken_for_data() {
    try_everywhere(Fault::Uncorrectable, Care::Plain, Demand::NeverWrong);
    try_everywhere(Fault::Uncorrectable, Care::ReadBack, Demand::NeverWrong);
    try_everywhere(Fault::Misdirected(None), Care::ReadBack, Demand::NeverWrong);
}
