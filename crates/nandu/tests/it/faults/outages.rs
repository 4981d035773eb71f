//! Outages of the bus: from some operation on, none reaches the chip for a while. Blocks are sound all the time, so that nothing
//! may be retired and the volume stays writable.

use std::sync::{Arc, Mutex};

use nandu::nand::{NandError, NandErrorKind};
use nandu::{Options, Store};
use nandu_sim::{Fault, Observer, Operation, OperationKind, Sim, Tear, Trigger};

use super::enough_changes;
use super::scene::{CAREFUL, Error, PLAIN, Promise, Scene, Work, check_all_there, memory, used};
use crate::values::records;

/// Operations that an outage takes away: fewer and more than are tried again.
const LENGTHS: [u64; 6] = [2, 3, 4, 5, 7, 50];

/// Each outage begins so many operations behind the one before.
const STRIDE: usize = 11;

/// One life with an outage that begins at an operation of it.
struct Life {
    options: Options,
    scene: Scene,
    promise: Promise,
    changes: u32,
}

impl Life {
    /// Returns how many calls failed.
    fn run(&mut self, sim: &mut Sim, what: &str) -> u32 {
        let options = self.scene.options(self.options);
        let mut bytes = memory(sim, &options);
        let (mut failed, mut left) = (0, self.changes);
        loop {
            // Each attempt asks the chip for something, so that the outage ends.
            let mut store = match Store::open(&mut *sim, options, &mut bytes) {
                Ok(store) => store,
                Err(error) => {
                    assert_is_bus(&error, &format!("{what}, opening"));
                    failed += 1;
                    continue;
                }
            };
            match records(&mut store) {
                Ok(found) => self.promise.adopt(found, what),
                Err(error) => {
                    assert_is_bus(&error, &format!("{what}, reading"));
                    failed += 1;
                    continue;
                }
            }
            let mut work = Work { scene: self.scene, seed: 0, store: &mut store, promise: &mut self.promise };
            if failed > 0 {
                work.store.nand_mut().withdraw_all();
                assert_eq!(work.audit(what), 0, "{what}: not all can be read");
            }
            let mut is_poisoned = false;
            while left > 0 && !is_poisoned {
                left -= 1;
                let Err(error) = work.step() else { continue };
                failed += 1;
                assert_is_bus(&error, &format!("{what}, change {}", work.promise.count));
                for _ in 0..2 {
                    for again in [work.store.sync().err(), work.store.idle(4).err(), work.store.value_len(b"1").err()] {
                        let is_told = matches!(again, None | Some(Error::Chip(_) | Error::Poisoned));
                        assert!(is_told, "{what}: {again:?} in the outage");
                    }
                }
                work.store.nand_mut().withdraw_all();
                is_poisoned = match work.store.idle(0) {
                    Ok(_) => false,
                    Err(Error::Poisoned) => true,
                    Err(error) => panic!("{what}: {error} after the outage"),
                };
                if !is_poisoned {
                    assert_eq!(work.audit(what), 0, "{what}: not all can be read");
                }
            }
            if is_poisoned {
                continue;
            }
            assert_eq!(store.stats().bad_blocks, 0, "{what}: a sound block was retired");
            if self.scene.is_cut {
                return failed;
            }
            match store.unmount() {
                Ok(_) => self.promise.settle(),
                Err(error) => {
                    assert_is_bus(&error, &format!("{what}, unmounting"));
                    failed += 1;
                    sim.withdraw_all();
                }
            }
            return failed;
        }
    }
}

/// Where an outage met collecting behind a call that had done its work, the next call says so, and not why.
fn assert_is_bus(error: &Error, what: &str) {
    let is_bus = matches!(error, Error::Chip(error) if error.kind() == NandErrorKind::Bus);
    assert!(is_bus || *error == Error::Poisoned, "{what}: {error}");
}

/// An outage of every length from every eleventh operation on, of a mount and some changes.
fn try_outages(options: Options, first: Tear) {
    for scene in Scene::ALL.into_iter().flat_map(|scene| [scene, Scene { is_cut: true, ..scene }]) {
        let (chip, promise) = used(options, scene, 0);
        let (changes, seen) = enough_changes(&chip, options, scene, 0, &promise);
        let count = seen.erased.len() as u64;
        let mut failed = 0;
        for (nth, length) in LENGTHS.into_iter().enumerate() {
            for begin in (nth as u64..count).step_by(STRIDE) {
                let what = format!("{length} operations from {begin} on, {first:?}, {scene:?}");
                let mut sim = chip.clone();
                for operation in begin..begin + length {
                    let tear = if operation == begin { first } else { Tear::Before };
                    sim.inject(Fault::Bus(tear), Trigger::Operation(chip.operation_count() + operation));
                }
                let mut life = Life { options, scene, promise: promise.clone(), changes };
                failed += life.run(&mut sim, &what);
                sim.withdraw_all();
                check_all_there(&mut sim, options, scene, &mut life.promise, &what);
            }
        }
        assert!(failed > 0, "{scene:?}: no outage was noticed");
        println!("{first:?}, {scene:?}: {count} operations, {failed} calls failed");
    }
}

#[test]
fn an_outage_that_stops_an_operation_before_it_began_loses_and_retires_nothing() {
    try_outages(PLAIN, Tear::Before);
}

#[test]
fn an_outage_that_tears_an_operation_loses_and_retires_nothing() {
    try_outages(PLAIN, Tear::SomeBits);
    try_outages(CAREFUL, Tear::SomeBitsLost);
}

#[test]
fn an_outage_that_hides_the_end_of_an_operation_loses_and_retires_nothing() {
    try_outages(PLAIN, Tear::Complete);
    try_outages(CAREFUL, Tear::Complete);
}

/// Notes which operations are programs and erases.
struct Writes(Arc<Mutex<Vec<bool>>>);

impl Observer for Writes {
    fn operation(&mut self, operation: &Operation, _data: &[u8]) {
        self.0.lock().unwrap().push(operation.kind != OperationKind::Read);
    }
}

/// A recovery does not know what became of a program or an erase, goes on elsewhere, and is cut: then two copies of the newest page may
/// be there, one of them in a block that nothing on the chip tells of.
#[test]
fn a_bus_error_in_a_recovery_and_a_cut_behind_it_lose_nothing() {
    let mut runs = 0;
    for scene in Scene::ALL {
        let scene = Scene { is_cut: true, ..scene };
        let (chip, promise) = used(PLAIN, scene, 0);
        let options = scene.options(PLAIN);
        let mut bytes = memory(&chip, &options);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut sim = chip.clone();
        sim.set_observer(Some(Box::new(Writes(Arc::clone(&seen)))));
        assert!(Store::open(&mut sim, options, &mut bytes).is_ok());
        let writes = seen.lock().unwrap().clone();
        for hit in (0..writes.len()).filter(|&operation| writes[operation]) {
            for (first, torn) in [(Tear::SomeBits, Tear::SomeBits), (Tear::Complete, Tear::Before)] {
                // As far behind the end as the recovery may be longer for what it tries again.
                for cut in hit + 1..writes.len() + 8 {
                    let what = format!("{first:?} at operation {hit} of a mount, cut at {cut}: {scene:?}");
                    let mut sim = chip.clone();
                    let base = chip.operation_count();
                    sim.inject(Fault::Bus(first), Trigger::Operation(base + hit as u64));
                    sim.cut_at(base + cut as u64, torn);
                    let opened = Store::open(&mut sim, options, &mut bytes).map(|_| ());
                    assert!(opened.is_ok() || sim.is_off(), "{what}: {opened:?}");
                    sim.withdraw_all();
                    sim.clear_cuts();
                    sim.power_on();
                    check_all_there(&mut sim, PLAIN, scene, &mut promise.clone(), &what);
                    runs += 1;
                }
            }
        }
    }
    assert!(runs > 500, "{runs}");
}
