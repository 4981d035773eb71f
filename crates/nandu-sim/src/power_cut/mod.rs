//! Cuts the power at every operation of a piece of code, with everything a cut can leave.
//!
//! The driver knows nothing of what it tests. It takes
//! * a **chip**: blank, or a [`Sim`] that was prepared without cuts;
//! * a **workload** that uses the chip and notes in a value of its own whatever was acknowledged to it;
//! * a **check** that gets the chip after the cut and what was acknowledged before it, and panics if something of it is
//!   missing. What it returns is compared, see below;
//! * for [`pairs`], [`Driver::triples`] and [`random`], a **recovery**: what the code does first when it finds the chip again.
//!
//! First the workload runs without a cut, which counts its operations and has to pass the check. Then each case gets a
//! fresh clone of the chip, runs the workload, cuts the power in the middle of one operation, gives power again, and
//! checks. The workload is to return when the chip no longer answers, with an error or not; an error although nothing
//! was cut, and any panic, is a failure.
//!
//! **Every case is checked twice**: once right away and once after a rest, in which unstable bits go bad, see
//! [`Driver::rest_ns`]. What the check returns must be the same both times. So a check that returns all it can see also
//! finds data that was not acknowledged, was there after the cut, and is gone later.
//!
//! **Code that writes on after a cut** must not build on what the cut left. [`Driver::resume`] runs the workload once more
//! between the checks, for workloads that can.
//!
//! ```
//! use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
//! use nandu_sim::{Chip, power_cut};
//!
//! // Each number goes to a block of its own: whatever is torn, the numbers before it are whole.
//! let summary = power_cut::every(
//!     Chip::TINY,
//!     |chip, acknowledged: &mut Vec<u8>| {
//!         for number in 0..4 {
//!             let block = BlockAddr(u32::from(number));
//!             chip.erase(block, CellMode::Slc)?;
//!             chip.program(chip.geometry().first_page(block), 0, &[number; 256])?;
//!             acknowledged.push(number);
//!         }
//!         Ok(())
//!     },
//!     |chip, acknowledged| {
//!         for &number in acknowledged {
//!             let mut page = [0; 256];
//!             let status = chip.read(PageAddr(u32::from(number) * 8), 0, &mut page);
//!             assert!(status.is_ok() && page == [number; 256], "{number} was acknowledged");
//!         }
//!     },
//! );
//! assert_eq!(summary.operations, 8);
//! ```
//!
//! A failure panics with one line that names the seed and the cuts, and one to paste into a shell, which sets
//! `NANDU_SEED` and `NANDU_CUTS`: with these set, every driver runs that case alone. The cuts stand in the order in which
//! they happened, each as the number of the operation it hit and the [tear](Tear) it left. Numbers count from 0 from the
//! moment the chip got power.
//!
//! **The key decision** is that a case is a run of its own, on a clone, from the same start. The alternative, one long run
//! with cuts thrown in, costs less and hides one fault behind another. So a workload of n operations costs about n * n / 2
//! of them for each tear; one of several hundred takes seconds.

mod case;
mod cuts;
mod sample;
mod spare;

use std::cell::RefCell;
use std::fmt::Debug;

use crate::{Sim, Tear};
use case::{Case, Check, Recovery, Workload};
use cuts::Replay;
use spare::Spare;

/// Most cuts of a chain.
const CHAIN_MAX: usize = 4;

/// How a workload or a recovery ends; `?` works on every error.
pub type Run = Result<(), Box<dyn std::error::Error>>;

/// What a driver did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Chips that were checked after at least one cut.
    pub cases: u64,
    /// Operations of the workload without a cut; for [`random`], of its first case.
    pub operations: u64,
    /// Cuts that were made.
    pub cuts: u64,
    /// The cases again: those of one cut, of two, of three and of four.
    pub chains: [u64; CHAIN_MAX],
}

impl Summary {
    /// Counts a case of so many cuts; one of none is none.
    fn count(&mut self, cuts: usize) {
        self.cases += u64::from(cuts > 0);
        self.cuts += cuts as u64;
        if let Some(of_length) = cuts.checked_sub(1).and_then(|place| self.chains.get_mut(place)) {
            *of_length += 1;
        }
    }
}

/// Cuts each operation of the workload with each tear that the chip permits there.
///
/// # Panics
///
/// If a case fails.
#[track_caller]
pub fn every<A: Default + Clone, O: PartialEq + Debug>(
    chip: impl Into<Sim>,
    workload: impl Fn(&mut Sim, &mut A) -> Run,
    check: impl Fn(&mut Sim, &A) -> O,
) -> Summary {
    Driver::new(chip).every(workload, check)
}

/// Cuts each operation of the workload, and then each operation of the recovery that follows, each with each tear.
///
/// See [`Driver::pairs`] for what is left out, and [`Driver::limit`] to bound it.
///
/// # Panics
///
/// If a case fails.
#[track_caller]
pub fn pairs<A: Default + Clone, O: PartialEq + Debug>(
    chip: impl Into<Sim>,
    workload: impl Fn(&mut Sim, &mut A) -> Run,
    recover: impl Fn(&mut Sim) -> Run,
    check: impl Fn(&mut Sim, &A) -> O,
) -> Summary {
    Driver::new(chip).pairs(workload, recover, check)
}

/// Tries so many chains of one to four cuts: the first in the workload, the others in the recoveries after it.
///
/// Each case sets the [seed](Sim::seed) of its chip, from which a workload may take what it leaves to chance.
///
/// # Panics
///
/// If a case fails.
#[track_caller]
pub fn random<A: Default + Clone, O: PartialEq + Debug>(
    chip: impl Into<Sim>,
    seed: u64,
    count: u64,
    workload: impl Fn(&mut Sim, &mut A) -> Run,
    recover: impl Fn(&mut Sim) -> Run,
    check: impl Fn(&mut Sim, &A) -> O,
) -> Summary {
    Driver::new(chip).seed(seed).random(count, workload, recover, check)
}

/// A driver with its settings. Each of its methods that run cases panics if one fails.
pub struct Driver {
    chip: Sim,
    seed: u64,
    tears: Vec<Tear>,
    rest_ns: u64,
    resume: bool,
    limit: u64,
    progress: Box<dyn Fn(u64, u64)>,
    replay: Option<Replay>,
}

impl Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("chip", &self.chip).field("seed", &self.seed).finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver for this chip: with its seed, with every tear, and with a rest in which unstable bits go bad entirely.
    ///
    /// # Panics
    ///
    /// If `NANDU_SEED` or `NANDU_CUTS` is set to something that is none.
    pub fn new(chip: impl Into<Sim>) -> Driver {
        let chip = chip.into();
        Driver {
            seed: chip.seed(),
            tears: Tear::ALL.to_vec(),
            rest_ns: chip.decay.time_ns,
            resume: false,
            limit: u64::MAX,
            progress: Box::new(|_, _| {}),
            replay: Replay::from_environment(),
            chip,
        }
    }

    /// The seed of the chips: it decides which bytes a tear leaves, and for [`random`](Driver::random) which cuts are
    /// tried.
    pub fn seed(mut self, seed: u64) -> Driver {
        self.seed = seed;
        self
    }

    /// Leaves these tears only.
    pub fn tears(mut self, tears: &[Tear]) -> Driver {
        self.tears = tears.to_vec();
        self
    }

    /// How long the chip rests between the two checks of a case, in nanoseconds of its clock. At first the
    /// [decay](crate::Decay) of unstable bits, so that all of them are lost after it; 0 leaves the second check out.
    pub fn rest_ns(mut self, duration_ns: u64) -> Driver {
        self.rest_ns = duration_ns;
        self
    }

    /// Runs the workload again, without a cut, after the first check of each case: it finds the chip as the recovery
    /// left it and goes on with what it noted. Then the chip is checked, rests, and is checked once more. In
    /// [`random`](Driver::random), later cuts fall into such workloads too.
    ///
    /// The workload must be fit to start on any chip that it left: it opens what is there and formats nothing. Finds code
    /// that programs pages which a cut only made look erased.
    pub fn resume(mut self) -> Driver {
        self.resume = true;
        self
    }

    /// Lets [`pairs`](Driver::pairs) and [`triples`](Driver::triples) try about so many cases, spread evenly over the first cuts, and
    /// over the further cuts after each. No first cut is tried without a further one: with few cases there are fewer first cuts.
    pub fn limit(mut self, cases: u64) -> Driver {
        self.limit = cases;
        self
    }

    /// Calls this with how much is done and how much there is, from time to time: operations of the workload, for
    /// [`random`](Driver::random) cases.
    pub fn progress(mut self, report: impl Fn(u64, u64) + 'static) -> Driver {
        self.progress = Box::new(report);
        self
    }

    /// Runs only the case of this seed with these cuts, as a failure printed them: `3:prefix,12:unstable`, or `none`.
    /// The environment variables `NANDU_SEED` and `NANDU_CUTS` do the same.
    ///
    /// # Panics
    ///
    /// If these are no cuts.
    pub fn replay(mut self, seed: u64, cuts: &str) -> Driver {
        self.replay = Some(Replay::new(seed, cuts));
        self
    }

    fn case<'a, A, O>(
        &'a self,
        workload: Workload<'a, A>,
        recover: Option<Recovery<'a>>,
        check: Check<'a, A, O>,
    ) -> Case<'a, A, O> {
        Case { driver: self, chip: RefCell::new(self.chip.clone()), workload, recover, check, spare: Spare::default() }
    }

    /// Cuts each operation of the workload with each tear that the chip permits there. See [`every`].
    ///
    /// # Panics
    ///
    /// If a case fails.
    #[track_caller]
    pub fn every<A: Default + Clone, O: PartialEq + Debug>(
        &self,
        workload: impl Fn(&mut Sim, &mut A) -> Run,
        check: impl Fn(&mut Sim, &A) -> O,
    ) -> Summary {
        self.case(&workload, None, &check).every()
    }

    /// Cuts each operation of the workload that changes the chip, and after each of these cuts, in chips of their own,
    /// each operation of the recovery that changes the chip; each with each tear. After the second cut the recovery runs
    /// to its end, and must succeed.
    ///
    /// A cut during a read leaves the chip as a cut before the next change does, so reads are not tried here; and the
    /// case of the first cut alone is tried as well.
    ///
    /// # Panics
    ///
    /// If a case fails.
    #[track_caller]
    pub fn pairs<A: Default + Clone, O: PartialEq + Debug>(
        &self,
        workload: impl Fn(&mut Sim, &mut A) -> Run,
        recover: impl Fn(&mut Sim) -> Run,
        check: impl Fn(&mut Sim, &A) -> O,
    ) -> Summary {
        self.case(&workload, Some(&recover), &check).nested(2)
    }

    /// As [`pairs`](Driver::pairs), and after each pair each operation of the recovery from the second cut that changes the chip, with
    /// each tear. That is many: [`limit`](Driver::limit) bounds it.
    ///
    /// # Panics
    ///
    /// If a case fails.
    #[track_caller]
    pub fn triples<A: Default + Clone, O: PartialEq + Debug>(
        &self,
        workload: impl Fn(&mut Sim, &mut A) -> Run,
        recover: impl Fn(&mut Sim) -> Run,
        check: impl Fn(&mut Sim, &A) -> O,
    ) -> Summary {
        self.case(&workload, Some(&recover), &check).nested(3)
    }

    /// Tries `count` chains of one to four cuts. See [`random`].
    ///
    /// # Panics
    ///
    /// If a case fails.
    #[track_caller]
    pub fn random<A: Default + Clone, O: PartialEq + Debug>(
        &self,
        count: u64,
        workload: impl Fn(&mut Sim, &mut A) -> Run,
        recover: impl Fn(&mut Sim) -> Run,
        check: impl Fn(&mut Sim, &A) -> O,
    ) -> Summary {
        self.case(&workload, Some(&recover), &check).random(count)
    }
}
