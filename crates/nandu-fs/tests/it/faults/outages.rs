//! Outages of the bus: from some operation on, none reaches the chip for a while. Blocks are sound all the time, so that nothing may be
//! retired and the volume stays writable.

use nandu_fs::{Fs, FsError, Ino};
use nandu_nand::{Nand, NandError, NandErrorKind};
use nandu_sim::{Fault, Sim, SimError, Tear, Trigger};

use super::{Care, Promise, Scene, check_all_there, enough_changes, seeds, used, work};
use crate::rig::memory;

/// Operations that an outage takes away: fewer and more than are tried again.
const LENGTHS: [u64; 6] = [2, 3, 4, 5, 7, 50];

/// Each outage begins so many operations behind the one before, and where there are thousands of them so many.
const STRIDES: [usize; 2] = [5, 37];

pub(super) fn is_bus(error: &FsError<SimError>) -> bool {
    matches!(error, FsError::Chip(error) if error.kind() == NandErrorKind::Bus)
}

/// Whatever is asked for while the outage goes on, and behind it without another mount, is done or says that it is not.
pub(super) fn assert_told<N: Nand<Error = SimError>>(fs: &mut Fs<'_, N>, what: &str) {
    for _ in 0..2 {
        for again in [fs.sync().err(), fs.idle(4).err(), fs.stat(Ino::ROOT).err()] {
            let is_told = again.as_ref().is_none_or(|error| is_bus(error) || *error == FsError::Poisoned);
            assert!(is_told, "{what}: {again:?} in the outage");
        }
    }
}

/// Mounts and works until all that was to be done is done, and mounts again whenever a call fails. Each attempt asks the chip for
/// something, so that the outage ends. Returns how many calls failed.
fn live(chip: &mut Sim, scene: Scene, changes: u64, promise: &mut Promise, what: &str) -> u32 {
    let end = promise.count + changes;
    for failed in 0.. {
        let Err(error) = work(chip, scene, end - promise.count, true, promise, what) else { return failed };
        // Where an outage met collecting behind a call that had done its work, the next call says so.
        assert!(is_bus(&error) || error == FsError::Poisoned, "{what}: {error:?}");
        assert!(failed < 60, "{what}: the outage does not end");
    }
    0
}

fn try_outages(first: Tear) {
    for scene in Scene::all(Care::Plain) {
        let (chip, promise, newest) = used(scene);
        let (changes, watched) = enough_changes(&chip, scene, &promise, newest);
        let name = format!("{first:?}, {}, cut: {}, seed {}", scene.name, scene.is_cut, scene.seed);
        let count = watched.erased.len();
        let stride = if seeds() == 1 { STRIDES[usize::from(count > 400)] } else { 1 };
        let mut failed = 0;
        for (nth, begin) in (0..count).step_by(stride).enumerate() {
            let length = LENGTHS[nth % LENGTHS.len()];
            let what = format!("{length} operations from {begin} of {count} on, {name}");
            let (mut chip, mut promise) = (chip.clone(), promise.clone());
            let begin = chip.operation_count() + begin as u64;
            for operation in begin..begin + length {
                let tear = if operation == begin { first } else { Tear::Before };
                chip.inject(Fault::Bus(tear), Trigger::Operation(operation));
            }
            failed += live(&mut chip, scene, changes, &mut promise, &what);
            chip.withdraw_all();
            let mut memory = memory(&scene.chip.geometry, &scene.options);
            let fs = Fs::mount(&mut chip, scene.options, &mut memory).unwrap();
            assert_eq!(fs.stats().bad_blocks, 0, "{what}: a sound block was retired");
            fs.abandon();
            check_all_there(&mut chip, scene, &mut promise, &what);
        }
        assert!(failed > 0, "{name}: no outage was noticed");
        println!("{name}: {count} operations, {failed} calls failed");
    }
}

#[test]
fn an_outage_that_stops_an_operation_before_it_began_loses_and_retires_nothing() {
    try_outages(Tear::Before);
}

#[test]
fn an_outage_that_tears_an_operation_loses_and_retires_nothing() {
    try_outages(Tear::SomeBits);
}

#[test]
fn an_outage_that_hides_the_end_of_an_operation_loses_and_retires_nothing() {
    try_outages(Tear::Complete);
}
