//! Pulling the plug.

use anyhow::{anyhow, bail};
use nandu::{Options, Store};
use nandu_sim::{CutRecord, OperationKind, Sim, Tear};
use serde_json::{Map, Value, json};

use super::census::Census;
use super::facts::Facts;
use super::guide::Guide;
use super::update::TOUCHED_S;
use super::{Dice, fail};
use crate::progress::Progress;
use crate::store::Records;
use crate::{record, units};

/// Cuts after the one that is shown.
const ROUNDS: usize = 1_700;

/// Operations of the chip among which the one to cut is drawn.
const REACH: usize = 400;

/// The same for a cut of the recovery, which takes some forty.
const REACH_RECOVERY: usize = 50;

/// Changes that are tried before a cut, at most; one takes at least one operation.
const TOUCHES_MAX: usize = REACH + 1;

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
        }),
    );
    Ok(())
}

impl Rig<'_> {
    /// One cut in the middle of a page program, told step by step.
    fn show_one(&mut self, guide: &mut Guide<'_>) -> anyhow::Result<()> {
        for ahead in 0..REACH {
            let (cut, pending) = self.cut(ahead, Tear::MostBits)?;
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
                self.census.path(&pending.0),
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
            let ahead = self.dice.below(REACH);
            let (_, pending) = self.cut(ahead, tear)?;
            // Every third recovery is cut as well.
            let second = round % 3 == 0;
            let second = second.then(|| (self.dice.below(REACH_RECOVERY), Tear::ALL[self.dice.below(Tear::ALL.len())]));
            self.recover(&pending, second)?;
            progress.set(round as u64, ROUNDS as u64);
        }
        drop(progress);
        guide.say(&format!(
            "Now {} more, at random operations, with each of the {} things that a cut can leave in turn: torn pages, \
             unstable bits, half-erased blocks; {} of them hit the recovery from the cut before.",
            units::count_of(self.cuts),
            Tear::ALL.len(),
            units::count_of(self.cuts_in_recovery)
        ))?;
        guide.conclude(&format!(
            "{} acknowledged between the cuts, none lost. Of those that were cut, {} were found made and {} not made, \
             none in between. Opening took {} at most.",
            units::things(self.acknowledged, "change").replace(" change", " changes were").replace("weres", "were"),
            self.found[1],
            self.found[0],
            units::things(self.mount_reads_max, "page read")
        ))?;
        Ok(())
    }

    /// Touches records until the power goes; returns the cut and the change that was not acknowledged.
    fn cut(&mut self, ahead: usize, tear: Tear) -> anyhow::Result<(CutRecord, (Vec<u8>, Facts))> {
        let mut store = Store::open(&mut *self.sim, self.options, &mut *self.memory).map_err(fail)?;
        let at = store.nand().operation_count() + ahead as u64;
        store.nand_mut().cut_at(at, tear);
        for _ in 0..TOUCHES_MAX {
            let key = &self.keys[self.dice.below(self.keys.len())];
            let Some(facts) = self.census.records.get_mut(key) else { continue };
            self.touches += 1;
            let changed = Facts { modified_s: TOUCHED_S + 86_400 * 365 + self.touches, ..*facts };
            match store.put(key, &changed.to_bytes()) {
                Ok(_) => {
                    *facts = changed;
                    self.acknowledged += 1;
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
        store.abandon();
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
