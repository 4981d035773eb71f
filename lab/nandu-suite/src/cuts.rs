//! Power cuts: what is found is what the operations made up to one of them, which is not before the last that was acknowledged as
//! durable. Of a write some bytes may be there and others not.

use std::error::Error;

use nandu_files::{FileError, FileSystem, Time};
use nandu_nand::Nand;
use nandu_sim::Sim;
use nandu_sim::power_cut::Run;

use crate::model::Model;
use crate::operation::{Chance, Op, Slots, apply};
use crate::promise::Promise;
use crate::seen::{Everything, everything, violations};
use crate::system::System;

/// What stands between a file system and the simulated chip.
pub trait Access: Clone + 'static {
    /// The chip as the file system sees it.
    type Chip<'c>: Nand;

    /// Reaches the chip, which has just been given power.
    ///
    /// # Errors
    ///
    /// If the chip does not answer, as when a cut comes.
    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<Self::Chip<'c>, Box<dyn Error>>;
}

/// Nothing stands between them.
#[derive(Clone, Copy, Debug)]
pub struct Direct;

impl Access for Direct {
    type Chip<'c> = &'c mut Sim;

    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<&'c mut Sim, Box<dyn Error>> {
        Ok(chip)
    }
}

/// The operation of a number: most often one that succeeds.
pub fn choose(model: &Model, seed: u64, count: u64, page_size: usize) -> Op {
    let mut chance = Chance::with_paths(seed.wrapping_mul(1_000_003).wrapping_add(count), model.all_paths());
    loop {
        let op = chance.op(page_size, model.capabilities());
        if model.clone().apply(&op).is_ok() || chance.below(6) == 0 {
            return op;
        }
    }
}

/// So many operations by the chip's seed, or by another.
pub fn workload<S: System>(system: S, count: u64, seed: Option<u64>) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    workload_over(Direct, system, count, seed)
}

/// The same over what stands between.
pub fn workload_over<S: System, A: Access>(
    access: A,
    system: S,
    count: u64,
    seed: Option<u64>,
) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    operations(access, system, count, move |model, chip_seed, number, page_size| {
        choose(model, seed.unwrap_or(chip_seed), number, page_size)
    })
}

/// These operations; those that a cut prevented come when the workload runs again.
pub fn fixed<S: System>(system: S, ops: Vec<Op>) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    fixed_over(Direct, system, ops)
}

/// The same over what stands between.
pub fn fixed_over<S: System, A: Access>(access: A, system: S, ops: Vec<Op>) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    operations(access, system, ops.len() as u64, move |_, _, number, _| ops[number as usize % ops.len()].clone())
}

fn operations<S: System, A: Access>(
    access: A,
    system: S,
    count: u64,
    choose: impl Fn(&Model, u64, u64, usize) -> Op,
) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let seed = chip.seed();
        let geometry = chip.chip().geometry;
        let mut memory = system.memory(&geometry);
        let mut fs = system.mount(access.reach(chip)?, &mut memory)?;
        let capabilities = fs.capabilities();
        let mut model = Model::of(&everything(&mut fs)?, capabilities);
        promise.begin(&model);
        let mut slots = Slots::default();
        for _ in 0..count {
            let op = choose(&model, seed, promise.count, geometry.page_size as usize);
            promise.count += 1;
            model.now = 1000 + promise.count as i64;
            fs.set_now(Time::from_seconds(model.now));
            let expected = model.apply(&op);
            promise.may_be(&model);
            match apply(&mut fs, &mut slots, &op) {
                Ok(()) => assert_eq!(expected, Ok(()), "{op:?}"),
                Err(error) if expected == Err(error.errno()) => {}
                // The chip no longer answers; the driver takes anything else for a fault.
                Err(error) => return Err(format!("{op:?}: {error}").into()),
            }
            if expected.is_ok() {
                promise.is_done(&op);
            }
        }
        fs.unmount()?;
        model.remount();
        promise.begin(&model);
        Ok(())
    }
}

/// Mounts, which recovers.
pub fn recover<S: System>(system: S) -> impl Fn(&mut Sim) -> Run {
    recover_over(Direct, system)
}

/// The same over what stands between.
pub fn recover_over<S: System, A: Access>(access: A, system: S) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut memory = system.memory(&chip.chip().geometry);
        system.mount(access.reach(chip)?, &mut memory)?;
        Ok(())
    }
}

/// Mounts, checks what is found against the promise and returns it.
pub fn check<S: System>(system: S) -> impl Fn(&mut Sim, &Promise) -> Everything {
    check_over(Direct, system)
}

/// The same over what stands between.
pub fn check_over<S: System, A: Access>(access: A, system: S) -> impl Fn(&mut Sim, &Promise) -> Everything {
    move |chip, promise| {
        let mut memory = system.memory(&chip.chip().geometry);
        let mut fs = system.mount(access.reach(chip).unwrap(), &mut memory).unwrap();
        let found = everything(&mut fs).unwrap();
        if let Err(differs) = promise.check(&found) {
            panic!("{differs}");
        }
        let wrong = violations(&mut fs);
        assert_eq!(wrong, Vec::<String>::new());
        found
    }
}
