//! A store through driver and wire while the wire fails: what was acknowledged stays.

use std::error::Error;

use nandu::Store;
use nandu_sim::Sim;
use nandu_spi::{Part, SpiNand};
use nandu_spi_sim::{SpiSim, WireFault, chip};
use nandu_suite::cuts::Access;

use crate::cuts::{Lanes, row};
use crate::store::{self, Promise};

/// The driver on a wire where something goes wrong at one transaction.
#[derive(Clone, Copy)]
struct Failing {
    part: &'static Part,
    fault: WireFault,
    transaction: u64,
}

impl Access for Failing {
    type Chip<'c> = SpiNand<SpiSim<&'c mut Sim>>;

    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<Self::Chip<'c>, Box<dyn Error>> {
        let mut spi = SpiSim::new(self.part, chip);
        spi.fault_at(self.transaction, self.fault);
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
        let run = store::workload(Failing { part, fault, transaction }, 30)(&mut chip, &mut promise);
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
