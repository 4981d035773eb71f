//! Faults that are no power cut, at every operation: F4 and F6 to F17 of `docs/fault-model.md`, on stores with small values, with
//! values of one page and of several, with snapshots, and with changes that wait for a sync.
//!
//! `NANDU_FAULT_SEEDS` sets how many workloads are tried of each kind; one is the short form.

mod deaf;
mod outages;
mod pairs;
mod scene;

use std::sync::{Arc, Mutex};

use nandu::nand::{BlockAddr, Cause, Nand, NandError, NandErrorKind};
use nandu::{Options, Store};
use nandu_sim::{Address, Chip, Fault, Observer, Operation, OperationKind, Sim, Tear, Trigger};

use scene::{
    CAREFUL, Error, PLAIN, Promise, Scene, TWICE, check_all_there, check_nothing_wrong, memory, used, work,
    work_through,
};

/// How many workloads are tried of each kind.
fn seeds() -> u32 {
    std::env::var("NANDU_FAULT_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// How a run with a fault may end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Demand {
    /// Every operation succeeds, and everything is there.
    Survives,
    /// A call may fail with an error. Opened again without the fault, the store holds everything.
    Heals,
    /// A call may fail with an error, again and again. No value is ever wrong, and none is missing without an error.
    NeverWrong,
}

/// What a run without a fault did.
#[derive(Clone, Default)]
struct Seen {
    /// Of each operation, what it was, whether it read an erased page, whether it read the page that was programmed last, and whether it is
    /// part of a mount.
    kinds: Vec<OperationKind>,
    erased: Vec<bool>,
    newest: Vec<bool>,
    mounting: Vec<bool>,
    /// The page that was programmed last.
    programmed: Option<Address>,
    /// Pages programmed that the collector moved.
    moved: u32,
}

struct Watcher(Arc<Mutex<Seen>>);

impl Observer for Watcher {
    fn operation(&mut self, operation: &Operation, data: &[u8]) {
        let mut seen = self.0.lock().unwrap();
        seen.kinds.push(operation.kind);
        seen.erased.push(operation.kind == OperationKind::Read && data.iter().all(|&byte| byte == 0xFF));
        let is_newest = operation.kind == OperationKind::Read && seen.programmed == Some(operation.address);
        seen.newest.push(is_newest);
        seen.mounting.push(matches!(operation.cause, Cause::Mount | Cause::Recovery));
        if operation.kind == OperationKind::Program {
            seen.programmed = Some(operation.address);
            seen.moved += u32::from(matches!(operation.cause, Cause::Gc | Cause::Refresh));
        }
    }
}

/// Changes after which the collector has moved something.
fn enough_changes(chip: &Sim, options: Options, scene: Scene, seed: u32, promise: &Promise) -> (u32, Seen) {
    for changes in (16..400).step_by(8) {
        let mut sim = chip.clone();
        let seen = Arc::new(Mutex::new(Seen::default()));
        sim.set_observer(Some(Box::new(Watcher(Arc::clone(&seen)))));
        work(&mut sim, options, scene, seed, changes, &mut promise.clone()).unwrap();
        let seen = seen.lock().unwrap().clone();
        if seen.moved > 0 {
            return (changes, seen);
        }
    }
    panic!("{scene:?}, seed {seed}: nothing is ever moved");
}

/// Whether nobody can tell what happened from a cut during the program of the newest page of all, so that the page before it is
/// what there is: the newest page is lost, or was lost before it was programmed; or, unless everything is read twice, a mount after
/// a cut reads something else in its place.
fn is_beyond_help(fault: Fault, options: Options, scene: Scene, seen: &Seen, operation: usize) -> bool {
    let is_mount_after_cut = scene.is_cut && seen.mounting[operation];
    match fault {
        Fault::Uncorrectable if options.commit_twice => false,
        Fault::Uncorrectable => {
            is_mount_after_cut || seen.newest[operation] || (seen.erased[operation] && !options.read_back)
        }
        Fault::Stale | Fault::Misdirected(_) => is_mount_after_cut && !options.read_back,
        _ => false,
    }
}

/// The fault at every operation of a mount and some changes to which it can happen. After an error the fault is over, and the work goes on.
fn try_everywhere(fault: Fault, options: Options, demand: Demand) {
    let scenes = Scene::ALL.into_iter().flat_map(|scene| [scene, Scene { is_cut: true, ..scene }]);
    for (scene, seed) in scenes.flat_map(|scene| (0..seeds()).map(move |seed| (scene, seed))) {
        let (chip, promise) = used(options, scene, seed);
        let (changes, seen) = enough_changes(&chip, options, scene, seed, &promise);
        let count = seen.erased.len() as u64;
        let mut failed = 0;
        for operation in 0..count {
            let index = operation as usize;
            if !fault.fits(seen.kinds[index]) || is_beyond_help(fault, options, scene, &seen, index) {
                continue;
            }
            let what = format!("{fault:?} at operation {operation}, {scene:?}, seed {seed}");
            let mut sim = chip.clone();
            let mut promise = promise.clone();
            sim.inject(fault, Trigger::Operation(chip.operation_count() + operation));
            let result = work_through(&mut sim, options, scene, seed, changes, &mut promise, &what);
            sim.withdraw_all();
            if let Err(error) = &result {
                assert!(demand != Demand::Survives, "{what}: {error}");
                failed += 1;
            }
            match demand {
                Demand::Survives | Demand::Heals => check_all_there(&mut sim, options, scene, &mut promise, &what),
                Demand::NeverWrong => drop(check_nothing_wrong(&mut sim, options, scene, &mut promise, &what)),
            }
        }
        println!("{fault:?}, {scene:?}: {count} operations, {failed} runs failed with an error");
    }
}

#[test]
fn bits_that_flip_within_what_can_be_corrected_cost_nothing() {
    try_everywhere(Fault::BitFlips(4), PLAIN, Demand::Survives);
    try_everywhere(Fault::ReadDisturb(4), PLAIN, Demand::Survives);
    try_everywhere(Fault::ErasedZeros(3), PLAIN, Demand::Survives);
}

#[test]
fn a_program_or_an_erase_that_fails_anywhere_is_survived() {
    try_everywhere(Fault::ProgramFails, PLAIN, Demand::Survives);
    try_everywhere(Fault::EraseFails, PLAIN, Demand::Survives);
}

#[test]
fn an_operation_whose_outcome_nobody_knows_is_survived() {
    for tear in [Tear::Before, Tear::SomeBits, Tear::Complete] {
        try_everywhere(Fault::Bus(tear), PLAIN, Demand::Survives);
    }
}

#[test]
fn a_program_or_an_erase_that_never_happened_is_survived_where_it_is_read_back() {
    try_everywhere(Fault::NothingHappens, CAREFUL, Demand::Survives);
}

#[test]
fn a_read_that_brings_what_was_read_before_is_never_taken_for_data_and_loses_nothing() {
    try_everywhere(Fault::Stale, PLAIN, Demand::Heals);
    try_everywhere(Fault::Stale, CAREFUL, Demand::Heals);
}

/// Nor is the newest commit missing then, in a mount after a cut or before it.
#[test]
fn what_cannot_be_read_is_never_missing_where_commits_are_programmed_twice() {
    try_everywhere(Fault::Uncorrectable, TWICE, Demand::NeverWrong);
}

#[test]
fn what_cannot_be_read_or_went_elsewhere_is_never_taken_for_data() {
    try_everywhere(Fault::Uncorrectable, PLAIN, Demand::NeverWrong);
    try_everywhere(Fault::Uncorrectable, CAREFUL, Demand::NeverWrong);
    try_everywhere(Fault::Misdirected(None), CAREFUL, Demand::NeverWrong);
}

/// F12 and F13: marks that are wrong from the factory on, or become wrong.
#[test]
fn blocks_that_are_bad_or_look_so_are_left_alone() {
    for scene in [Scene::SMALL, Scene::SEVERAL] {
        for bad in 0..scene.chip().geometry.block_count {
            let mut chip = Sim::new(scene.chip());
            chip.mark_factory_bad(BlockAddr(bad));
            let mut bytes = memory(&chip, &scene.options(PLAIN));
            chip = Store::format(chip, scene.options(PLAIN), &mut bytes).unwrap().unmount().unwrap();
            let mut promise = Promise::default();
            work(&mut chip, PLAIN, scene, 1, 60, &mut promise).unwrap();
            // What was good looks bad from here on: it is asked for, and never again written.
            chip.invert_mark(BlockAddr((bad + 3) % scene.chip().geometry.block_count));
            let result = work(&mut chip, PLAIN, scene, 0, 60, &mut promise);
            assert!(result.is_ok(), "{scene:?}, block {bad}: {result:?}");
            check_all_there(&mut chip, PLAIN, scene, &mut promise, "marks");
        }
    }
}

/// Several faults of all kinds in one life, by chance.
#[test]
fn faults_by_chance_are_survived() {
    let faults = [
        // Two of these in one page can be corrected; before a third one comes the page is to be moved.
        (Fault::BitFlips(2), 0.002),
        (Fault::ReadDisturb(2), 0.002),
        (Fault::ProgramFails, 0.0002),
        (Fault::EraseFails, 0.0005),
        (Fault::Bus(Tear::Complete), 0.002),
        (Fault::Bus(Tear::SomeBits), 0.0005),
    ];
    for (scene, seed) in Scene::ALL.into_iter().flat_map(|scene| (0..8 * seeds()).map(move |seed| (scene, seed))) {
        let blocks = scene.chip().geometry.block_count.max(40);
        let mut chip = Sim::with_seed(scene.chip().with_blocks(blocks), u64::from(seed));
        let mut bytes = memory(&chip, &scene.options(PLAIN));
        chip = Store::format(chip, scene.options(PLAIN), &mut bytes).unwrap().unmount().unwrap();
        for (fault, probability) in faults {
            chip.inject(fault, Trigger::Probability(probability));
        }
        let mut promise = Promise::default();
        for round in 0..10 {
            let result = work(&mut chip, PLAIN, scene, seed, 60, &mut promise);
            assert!(result.is_ok(), "{scene:?}, seed {seed}, round {round}: {result:?}");
        }
        chip.withdraw_all();
        check_all_there(&mut chip, PLAIN, scene, &mut promise, &format!("{scene:?}, seed {seed}"));
    }
}

/// F22: the image of a chip on one whose bad blocks are others.
#[test]
fn an_image_on_a_chip_with_other_bad_blocks_loses_what_stood_there_and_says_so() {
    for scene in [Scene::SMALL, Scene::SEVERAL] {
        let (chip, promise) = used(PLAIN, scene, 0);
        let mut harmless = 0;
        for bad in 0..scene.chip().geometry.block_count {
            let what = format!("{scene:?}, block {bad} is bad on the other chip");
            let mut target = Sim::new(scene.chip());
            target.mark_factory_bad(BlockAddr(bad));
            let mut moved = chip.transplant(target);
            let mut promise = promise.clone();
            let errors = check_nothing_wrong(&mut moved, PLAIN, scene, &mut promise, &what);
            if errors > 0 {
                continue;
            }
            // Nothing needed stood there: the store goes on, and leaves the block alone.
            harmless += 1;
            let result = work(&mut moved, PLAIN, scene, 0, 100, &mut promise);
            assert!(result.is_ok(), "{what}: {result:?}");
            check_all_there(&mut moved, PLAIN, scene, &mut promise, &what);
        }
        assert!(harmless > 4, "{scene:?}: {harmless}");
    }
}

/// F22: the image of a chip on one of another size, and one that holds another volume.
#[test]
fn an_image_on_a_chip_of_another_size_or_of_another_volume_is_refused_and_named() {
    let plain = Scene::SMALL.options(PLAIN);
    let (chip, _) = used(PLAIN, Scene::SMALL, 0);
    let mut larger = chip.transplant(Sim::new(Chip::TINY.with_blocks(20)));
    let mut bytes = memory(&larger, &plain);
    let refused = Store::open(&mut larger, plain, &mut bytes).err();
    assert_eq!(refused, Some(nandu::Error::OtherFormat { what: "block count" }));
    let options = Options { volume: Some(9), ..plain };
    let mut same = chip.clone();
    let mut bytes = memory(&same, &options);
    let refused = Store::open(&mut same, options, &mut bytes).err();
    assert_eq!(refused, Some(nandu::Error::OtherFormat { what: "volume id" }));
    // Pages of another volume are not taken for one's own: two formats with one life between them.
    let mut again = chip.clone();
    let mut bytes = memory(&again, &plain);
    again = Store::format(again, plain, &mut bytes).unwrap().unmount().unwrap();
    check_all_there(&mut again, PLAIN, Scene::SMALL, &mut Promise::default(), "formatted again");
}

/// Gives every page that says a sequence a higher one, as if the volume had lived that long.
fn aged(chip: &Sim, sequences: u64, checkpoints: u32) -> Sim {
    // Places in the header, as FORMAT.md has them.
    const SEQUENCE_AT: usize = 8;
    const CHECKPOINT_AT: usize = 28;
    let mut aged = chip.clone();
    for page in 0..chip.chip().geometry.page_count() {
        let page = nandu::nand::PageAddr(page);
        let mut bytes = chip.peek(page)[..chip.chip().geometry.page_size as usize].to_vec();
        if nandu_media::Page::parse(&bytes).is_err() {
            continue;
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let sequence = word(SEQUENCE_AT) + sequences;
        let checkpoint = u32::from_le_bytes(bytes[CHECKPOINT_AT..CHECKPOINT_AT + 4].try_into().unwrap()) + checkpoints;
        bytes[SEQUENCE_AT..SEQUENCE_AT + 8].copy_from_slice(&sequence.to_le_bytes());
        bytes[CHECKPOINT_AT..CHECKPOINT_AT + 4].copy_from_slice(&checkpoint.to_le_bytes());
        let crc = nandu_media::checksum::page_checksum(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        aged.poke(page, &bytes);
    }
    aged
}

/// Highest number of a checkpoint that a page on the chip states.
fn newest_checkpoint(chip: &Sim) -> u32 {
    let geometry = chip.chip().geometry;
    let number = |page| {
        let bytes = &chip.peek(nandu::nand::PageAddr(page))[..geometry.page_size as usize];
        nandu_media::Page::parse(bytes).map_or(0, |page| page.checkpoint())
    };
    (0..geometry.page_count()).map(number).max().unwrap()
}

/// F20: the sequence, and the number of checkpoints, near their ends.
#[test]
fn a_volume_whose_numbers_run_out_becomes_read_only_and_stays_readable() {
    for scene in [Scene::SMALL, Scene::SEVERAL] {
        for seed in 0..2 {
            let (chip, promise) = used(PLAIN, scene, seed);
            let sequence_end = u64::MAX - (1 << 40);
            let checkpoint_end = u32::MAX - newest_checkpoint(&chip);
            for (sequences, checkpoints, is_beyond) in [
                (sequence_end - 2_000_000, 0, false),
                (sequence_end - 6000, 0, false),
                (sequence_end - 1, 0, true),
                (0, checkpoint_end - 100, false),
                (0, checkpoint_end - 10, false),
            ] {
                let what = format!("{scene:?}, {sequences} and {checkpoints} more, seed {seed}");
                let mut chip = aged(&chip, sequences, checkpoints);
                let mut promise = promise.clone();
                let mut error = None;
                for _ in 0..200 {
                    if let Err(found) = work(&mut chip, PLAIN, scene, seed, 8, &mut promise) {
                        error = Some(found);
                        break;
                    }
                }
                // So far from the end nothing is noticed; at the end there is one error, and it is clear.
                let is_far = sequences == sequence_end - 2_000_000;
                assert_eq!(error.is_none(), is_far, "{what}: {error:?}");
                assert!(error.is_none() || error == Some(nandu::Error::ReadOnly), "{what}: {error:?}");
                assert!(!is_beyond || promise.count <= 242, "{what}: {} changes", promise.count);
                for _ in 0..3 {
                    check_all_there(&mut chip, PLAIN, scene, &mut promise, &what);
                }
            }
        }
    }
}

/// A chip that the medium took away in the middle of everything is an error and no panic.
#[test]
fn a_chip_that_is_gone_is_said_to_be_gone() {
    let scene = Scene::SEVERAL;
    let (mut chip, mut promise) = used(PLAIN, Scene::SEVERAL, 0);
    let mut bytes = memory(&chip, &scene.options(PLAIN));
    let mut store = Store::open(&mut chip, scene.options(PLAIN), &mut bytes).unwrap();
    store.nand_mut().power_off();
    let gone = |error: Error| matches!(error, nandu::Error::Chip(error) if error.kind() == NandErrorKind::Gone);
    assert!(store.put(b"1", b"x").is_err_and(gone));
    assert_eq!(store.put(b"1", b"x"), Err(nandu::Error::Poisoned));
    let _ = store.abandon();
    chip.power_on();
    check_all_there(&mut chip, PLAIN, scene, &mut promise, "back again");
    assert_eq!(chip.geometry().block_count, 32);
}
