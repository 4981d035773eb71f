//! Explores every state of a small volume: all sequences of calls, cuts and faults to a depth.
//!
//! **For** `cargo xtask explore`, which prints one table: system, depth, states, cuts, violations, and for each violation a test to paste.
//!
//! * `system.rs`: what is explored: calls, what each makes, what is promised.
//! * `store.rs`, `files.rs`: stores of records and file systems on the smallest chips.
//! * `search.rs`: the search. `digest.rs`: which states are the same.
//! * `brown_out.rs`: cuts before which the supply sagged.
//! * `moves.rs`: sequences in words. `report.rs`: what was found.
//!
//! **The key decision** is that what runs is the store and the file system themselves, on the simulated chip, and not a model of them: an open system cannot be cloned, so a state is the chip it
//! was opened on and the calls since, which are made again. On a chip of 28 KB that costs less than a model would hide. A checker from a library (stateright) was weighed: it takes a
//! transition at a time, and each would open the chip anew to learn which operations there are to cut; here the calls that are cut are played once.

mod brown_out;
mod digest;
mod files;
mod moves;
mod report;
mod search;
mod store;
mod system;

pub use brown_out::BrownOuts;
pub use files::{Files, Nandu, Published};
pub use report::{Report, Violation, merge, table};
pub use search::{Bounds, explore, replay_in};
pub use store::{Past, Stores};
pub use system::{Ending, Played, System};

/// Most reads of a mount, as promised.
pub(crate) const MOUNT_READS_MAX: u64 = 40;

/// Something that explores: a system, whatever its calls are.
pub trait Explored {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Explores it as far as the bounds go.
    fn explore(&self, bounds: Bounds) -> Report;

    /// Makes the moves of one sequence.
    ///
    /// # Errors
    ///
    /// What was wrong, or that the moves are none of this system.
    fn replay(&self, moves: &str) -> Result<(), String>;
}

impl<S: System> Explored for S {
    fn name(&self) -> &'static str {
        System::name(self)
    }

    fn explore(&self, bounds: Bounds) -> Report {
        explore(self, bounds)
    }

    fn replay(&self, moves: &str) -> Result<(), String> {
        replay_in(self, moves)
    }
}

/// Every system.
pub fn systems() -> Vec<Box<dyn Explored>> {
    let mut all: Vec<Box<dyn Explored>> = Vec::new();
    for past in [Past::Fresh, Past::Worn, Past::Full] {
        all.push(Box::new(Stores::immediate(past)));
        all.push(Box::new(Stores::waiting(past)));
    }
    all.push(Box::new(Stores::waiting(Past::Pending)));
    all.push(Box::new(Stores::waiting(Past::Kept)));
    all.push(Box::new(Stores::twice()));
    all.push(Box::new(Files::nandu(0)));
    all.push(Box::new(Files::nandu(600)));
    all.push(Box::new(Files::tagged()));
    all.push(Box::new(Files::twice()));
    all.push(Box::new(Files::dffs()));
    all
}

/// Makes the moves of one sequence of a system, with all checks.
///
/// # Errors
///
/// What was wrong, or that there is no such system or move.
pub fn replay(system: &str, moves: &str) -> Result<(), String> {
    let all = systems();
    let found = all.iter().find(|of| of.name() == system);
    found.ok_or_else(|| format!("there is no system '{system}'"))?.replay(moves)
}
