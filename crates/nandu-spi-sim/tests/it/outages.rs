//! A store and files through driver and wire while the wire fails: what was acknowledged stays.

use std::error::Error;

use nandu::Store;
use nandu_sim::Sim;
use nandu_spi::{Part, SpiNand};
use nandu_spi_sim::{SpiSim, WireFault, chip};
use nandu_suite::Opened;
use nandu_suite::System;
use nandu_suite::cuts::{Access, check_over, workload_over};

use crate::cuts::files::{self, Files};
use crate::cuts::{Lanes, row};
use crate::store::{self, Promise};

/// The driver on a wire where something goes wrong at so many transactions from one on.
#[derive(Clone, Copy)]
struct Failing {
    part: &'static Part,
    fault: WireFault,
    transaction: u64,
    length: u64,
}

impl Access for Failing {
    type Chip<'c> = SpiNand<SpiSim<&'c mut Sim>>;

    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<Self::Chip<'c>, Box<dyn Error>> {
        let mut spi = SpiSim::new(self.part, chip);
        for transaction in self.transaction..self.transaction + self.length {
            spi.fault_at(transaction, self.fault);
        }
        Ok(SpiNand::open_as(spi, self.part)?)
    }
}

/// Runs the workload with this fault at every so many-th transaction, and looks each time at what the next one to open the store finds.
/// Returns how often the workload was stopped.
fn outages(part: &'static Part, fault: WireFault, step: usize) -> u32 {
    let mut sim = Sim::new(chip(part));
    let mut memory = store::memory(&sim.chip().geometry);
    let formatted = Store::format(Lanes(part).reach(&mut sim).unwrap(), store::OPTIONS, &mut memory).unwrap();
    formatted.unmount().unwrap();
    let mut stopped = 0;
    for transaction in (0..900).step_by(step) {
        let (mut chip, mut promise) = (sim.clone(), Promise::default());
        let run = store::workload(Failing { part, fault, transaction, length: 1 }, 30)(&mut chip, &mut promise);
        stopped += u32::from(run.is_err());
        // Whoever opens it next works on.
        store::check(Lanes(part))(&mut chip, &promise);
        store::workload(Lanes(part), 10)(&mut chip, &mut promise).unwrap();
        store::check(Lanes(part))(&mut chip, &promise);
    }
    stopped
}

#[test]
fn nothing_acknowledged_is_lost_when_the_wire_fails() {
    for (name, step) in [("W25N01GV", 7), ("GD5F2GQ5UE", 11), ("MT29F2G01ABAGD", 13), ("MX35LF2GE4AD", 17)] {
        let part = row(name, 24);
        for fault in [
            WireFault::Refused,
            WireFault::Unreported,
            WireFault::Stuck,
            WireFault::PowerLost,
            WireFault::Dead(0x00),
            WireFault::Dead(0xFF),
        ] {
            let stopped = outages(part, fault, step);
            println!("{name}, {fault:?}: {stopped}");
            // A dead bus stops everything; of the others some fall where the driver or the store goes on.
            assert!(stopped > 0 || !matches!(fault, WireFault::Dead(_)), "{name}, {fault:?}");
        }
    }
}

/// Transactions that an outage takes away: those of a command, of all that the driver and the log try again, and more.
const LENGTHS: [u64; 5] = [4, 30, 120, 300, 1_000];

/// Runs operations of files with outages of every length, and looks each time at what is found when the wire is well again. Returns how
/// often the operations were stopped.
fn outages_of_files(part: &'static Part, fault: WireFault, step: usize) -> u32 {
    let system = Files::new(part);
    let sim = files::formatted(Lanes(part), system, Sim::new(chip(part)));
    let mut stopped = 0;
    for (nth, transaction) in (0..1_000).step_by(step).enumerate() {
        let length = LENGTHS[nth % LENGTHS.len()];
        let what = format!("{}, {fault:?}, {length} from {transaction} on", part.name);
        let (mut chip, mut promise) = (sim.clone(), nandu_suite::Promise::default());
        let run =
            workload_over(Failing { part, fault, transaction, length }, system, 20, Some(3))(&mut chip, &mut promise);
        if let Err(error) = run {
            stopped += 1;
            // Not that something else failed because of it. Where it met collecting behind a call, the next call says so, and not why.
            let told = error.to_string();
            assert!(["wire failed", "an earlier write failed"].iter().any(|it| told.contains(it)), "{what}: {error}");
        }
        check_over(Lanes(part), system)(&mut chip, &promise);
        workload_over(Lanes(part), system, 10, Some(3))(&mut chip, &mut promise).unwrap();
        check_over(Lanes(part), system)(&mut chip, &promise);
        assert_eq!(bad_blocks(part, system, &mut chip), 0, "{what}: a sound block was retired");
    }
    stopped
}

fn bad_blocks(part: &'static Part, system: Files, chip: &mut Sim) -> u32 {
    let mut memory = system.memory(&chip.chip().geometry);
    let fs: Opened<_> = system.mount(Lanes(part).reach(chip).unwrap(), &mut memory);
    fs.unwrap().stats().bad_blocks
}

#[test]
fn no_file_is_lost_when_the_wire_fails_for_a_while() {
    for (name, step) in [("W25N01GV", 13), ("GD5F2GQ5UE", 17), ("MT29F2G01ABAGD", 19), ("MX35LF2GE4AD", 23)] {
        let part = row(name, 40);
        for fault in [WireFault::Refused, WireFault::Unreported] {
            let stopped = outages_of_files(part, fault, step);
            println!("{name}, {fault:?}: {stopped}");
            assert!(stopped > 5, "{name}, {fault:?}: {stopped}");
        }
    }
}
