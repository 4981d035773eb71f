//! Pulling the plug.

use anyhow::{anyhow, bail};
use nandu::{Options, Store};
use nandu_sim::{CutRecord, OperationKind, Sim, Tear};
use serde_json::{Map, Value, json};

use super::census::Census;
use super::facts::Facts;
use super::guide::Guide;
use super::update::TOUCHED_S;
use super::{Dice, Records, fail, query};
use crate::progress::Progress;
use crate::{record, units};

/// Rounds after the one that is shown: each thing a cut can leave eleven times. Every cut takes the open blocks out of
/// service until they are emptied, so thousands in a row, with hardly a change between, would crowd the chip.
const ROUNDS: usize = 187;

/// Pages that may be looked at in the idle time between two cuts: about the block that a cut takes out of service.
const IDLE_PAGES: u32 = 128;

/// Operations of the chip among which the one to cut is drawn.
const REACH: usize = 400;

/// The same for a cut of the recovery, which takes some forty.
const REACH_RECOVERY: usize = 50;

/// Changes that are tried before a cut, at most; one takes at least one operation.
const TOUCHES_MAX: usize = REACH + 21;

/// Where to cut: after so many changes, and then so many operations of the chip.
#[derive(Clone, Copy)]
struct Aim {
    changes: usize,
    operations: usize,
    /// Whether the next change has nothing to read any more, so that its program is among its first operations.
    is_warm: bool,
}

/// What is needed to cut, to recover and to check.
struct Rig<'a> {
    sim: &'a mut Sim,
    options: Options,
    memory: &'a mut [u8],
    census: &'a mut Census,
    keys: Vec<Vec<u8>>,
    dice: Dice,
    touches: i64,
    /// Changes acknowledged between two cuts.
    acknowledged: u64,
    /// Changes that a cut hit and that were found made, or not made.
    found: [u64; 2],
    cuts: u64,
    cuts_in_recovery: u64,
    mount_reads_max: u64,
    mount_ns_max: u64,
    /// The slowest of the first changes after a mount.
    first_ns_max: u64,
}

pub(super) fn run(
    guide: &mut Guide<'_>,
    sim: &mut Sim,
    options: Options,
    memory: &mut [u8],
    census: &mut Census,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let keys = census.records.keys().cloned().collect();
    let mut rig = Rig {
        sim,
        options,
        memory,
        census,
        keys,
        dice: Dice(3),
        touches: 0,
        acknowledged: 0,
        found: [0; 2],
        cuts: 0,
        cuts_in_recovery: 0,
        mount_reads_max: 0,
        mount_ns_max: 0,
        first_ns_max: 0,
    };
    guide.step("Pulling the plug")?;
    rig.show_one(guide)?;
    rig.many(guide)?;
    report.insert(
        "cuts".to_owned(),
        json!({
            "count": rig.cuts,
            "in_recovery": rig.cuts_in_recovery,
            "acknowledged_between": rig.acknowledged,
            "lost": 0,
            "mount_reads_max": rig.mount_reads_max,
            "mount_ns_max": rig.mount_ns_max,
            "first_update_ns_max": rig.first_ns_max,
            "found_made": rig.found[1],
            "found_not_made": rig.found[0],
        }),
    );
    Ok(())
}

impl Rig<'_> {
    /// One cut in the middle of a page program, told step by step.
    fn show_one(&mut self, guide: &mut Guide<'_>) -> anyhow::Result<()> {
        for ahead in 0..REACH {
            let (cut, pending) = self.cut(Aim { changes: 5, operations: ahead, is_warm: true }, Tear::MostBits)?;
            if cut.kind != OperationKind::Program || cut.tear != Tear::MostBits {
                self.recover(&pending, None)?;
                continue;
            }
            guide.say(&format!(
                "In the middle of the program of {} the power goes. Most bits of the page are there, a few are not, and \
                 error correction does not notice.",
                cut.address
            ))?;
            let was_made = self.recover(&pending, None)?;
            guide.say(&format!(
                "Power on, open: {}, {}. The change that was cut, to {}, is {}; every change that was acknowledged is \
                 there.",
                units::things(self.mount_reads_max, "page read"),
                units::duration_ns(self.mount_ns_max / 1000 * 1000),
                query::shortened(&self.census.path(&pending.0), guide.width() - 8),
                if was_made { "there, wholly" } else { "not there, not a bit of it" },
            ))?;
            return Ok(());
        }
        Ok(())
    }

    /// Cuts everywhere, with everything that a cut can leave.
    fn many(&mut self, guide: &mut Guide<'_>) -> anyhow::Result<()> {
        let mut progress = Progress::new("   cutting");
        for round in 0..ROUNDS {
            let tear = Tear::ALL[round % Tear::ALL.len()];
            let aim = match round % 3 {
                0 => Aim { changes: 0, operations: self.dice.below(REACH), is_warm: false },
                // The first change after a mount does much that later ones do not.
                _ => Aim { changes: 1 + self.dice.below(20), operations: self.dice.below(3), is_warm: true },
            };
            let (_, pending) = self.cut(aim, tear)?;
            // Every third recovery is cut as well.
            let second = round % 3 == 0;
            let second = second.then(|| (self.dice.below(REACH_RECOVERY), Tear::ALL[self.dice.below(Tear::ALL.len())]));
            self.recover(&pending, second)?;
            progress.set(round as u64, ROUNDS as u64);
        }
        drop(progress);
        guide.say(&format!(
            "Now {} more, in page programs and anywhere else, with each of the {} things that a cut can leave in turn: torn pages, \
             unstable bits, half-erased blocks; {} of them hit the recovery from the cut before.",
            units::count_of(self.cuts),
            Tear::ALL.len(),
            units::count_of(self.cuts_in_recovery)
        ))?;
        guide.conclude(&format!(
            "{} changes were acknowledged between the cuts, and none of them is lost. Of the {} that a cut hit, {} were \
             found made and {} not made; none was in between.",
            units::count_of(self.acknowledged),
            units::count_of(self.found[0] + self.found[1]),
            units::count_of(self.found[1]),
            units::count_of(self.found[0])
        ))?;
        guide.say(&format!(
            "Opening took {} at most. The first change after it, which pays for what the cut left to be looked through, \
             took {} at most.",
            units::things(self.mount_reads_max, "page read"),
            units::duration_ns(self.first_ns_max / 1000 * 1000)
        ))?;
        Ok(())
    }

    /// Touches records until the power goes; returns the cut and the change that was not acknowledged.
    fn cut(&mut self, aim: Aim, tear: Tear) -> anyhow::Result<(CutRecord, (Vec<u8>, Facts))> {
        let mut store = Store::open(&mut *self.sim, self.options, &mut *self.memory).map_err(fail)?;
        for touch in 0..TOUCHES_MAX {
            let key = &self.keys[self.dice.below(self.keys.len())];
            let Some(facts) = self.census.records.get_mut(key) else { continue };
            self.touches += 1;
            let changed = Facts { modified_s: TOUCHED_S + 86_400 * 365 + self.touches, ..*facts };
            if touch == aim.changes {
                if aim.is_warm {
                    store.get(key).map_err(fail)?;
                }
                let at = store.nand().operation_count() + aim.operations as u64;
                store.nand_mut().cut_at(at, tear);
            }
            let start_ns = store.nand().clock_ns();
            match store.put(key, &changed.to_bytes()) {
                Ok(_) => {
                    *facts = changed;
                    self.acknowledged += 1;
                    if touch == 0 {
                        self.first_ns_max = self.first_ns_max.max(store.nand().clock_ns() - start_ns);
                    }
                }
                Err(error) => {
                    let pending = (key.clone(), changed);
                    store.abandon();
                    let cut = self.sim.last_cut().filter(|_| self.sim.is_off());
                    self.cuts += 1;
                    return cut.map(|cut| (cut, pending)).ok_or_else(|| fail(error));
                }
            }
        }
        bail!("the power did not go")
    }

    /// Gives power and opens, perhaps cut once more; checks the change that was cut, and returns whether it was made.
    fn recover(&mut self, pending: &(Vec<u8>, Facts), again: Option<(usize, Tear)>) -> anyhow::Result<bool> {
        self.sim.power_on();
        if let Some((ahead, tear)) = again {
            self.sim.cut_at(self.sim.operation_count() + ahead as u64, tear);
            let outcome = Store::open(&mut *self.sim, self.options, &mut *self.memory).map(|_| ());
            self.sim.clear_cuts();
            match outcome {
                Ok(()) => {}
                Err(_) if self.sim.is_off() => {
                    self.cuts += 1;
                    self.cuts_in_recovery += 1;
                    self.sim.power_on();
                }
                Err(error) => return Err(fail(error)),
            }
        }
        let before = *self.sim.counters();
        let mut store = Store::open(&mut *self.sim, self.options, &mut *self.memory).map_err(fail)?;
        let cost = store.nand().counters().since(&before);
        self.mount_reads_max = self.mount_reads_max.max(cost.reads);
        self.mount_ns_max = self.mount_ns_max.max(cost.busy_ns);
        let (key, changed) = pending;
        let found = find(&mut store, key)?;
        store.idle(IDLE_PAGES).map_err(fail)?;
        // Every other time the store is left in order, so that cuts also fall on what comes after that.
        if self.cuts.is_multiple_of(2) {
            store.unmount().map_err(fail)?;
        } else {
            store.abandon();
        }
        let Some(acknowledged) = self.census.records.get_mut(key) else { bail!("a record that nobody put") };
        let was_made = found == *changed;
        if !was_made && found != *acknowledged {
            bail!("{} is neither as it was nor as it was to be", self.census.path(key));
        }
        *acknowledged = found;
        self.found[usize::from(was_made)] += 1;
        Ok(was_made)
    }
}

fn find(store: &mut Records<'_>, key: &[u8]) -> anyhow::Result<Facts> {
    let found = store.get(key).map_err(fail)?.and_then(Facts::from_bytes);
    found.ok_or_else(|| anyhow!("{} is gone", record::shown(key)))
}
