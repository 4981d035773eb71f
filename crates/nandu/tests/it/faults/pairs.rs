//! Two faults in one session, of eight kinds: one soon behind the other, or anywhere.
//!
//! Pairs that the fault model leaves out are not tried: those that take what says the same. So what hides a page from a read is not tried in or soon behind a mount together with another such fault, nor, if the page stays lost, there after a cut.
//!
//! `NANDU_PAIRS` sets how many pairs are tried, `NANDU_PAIR` names one of them.

use nandu_sim::{Fault, Sim, Tear, Trigger};
use nandu_suite::Chance;
use nandu_suite::counts::Tried;

use super::scene::{CAREFUL, Promise, Scene, Values, check_all_there, check_nothing_wrong, used, work, work_through};
use super::{Seen, enough_changes, is_beyond_help};
use crate::cuts::number;

/// The kinds. What is written is read back, so that one that never happened is found.
const KINDS: [Fault; 8] = [
    Fault::Cut(None),
    Fault::BitFlips(4),
    Fault::Uncorrectable,
    Fault::ProgramFails,
    Fault::EraseFails,
    Fault::NothingHappens,
    Fault::Stale,
    Fault::Bus(Tear::SomeBits),
];

/// How far behind the first fault the second one comes in three pairs of four, in operations that it fits.
const NEAR: usize = 4;

/// Operations that the handling of a fault takes, about.
const MORE: usize = 100;

/// Changes that are made after both.
const AFTER: u32 = 30;

/// A scene that is tried with many pairs.
struct Stage {
    scene: Scene,
    seed: u32,
    chip: Sim,
    promise: Promise,
    changes: u32,
    seen: Seen,
}

impl Stage {
    fn new(scene: Scene, seed: u32) -> Stage {
        let (chip, promise) = used(CAREFUL, scene, seed);
        let (changes, seen) = enough_changes(&chip, CAREFUL, scene, seed, &promise);
        Stage { scene, seed, chip, promise, changes, seen }
    }

    /// Operations that a fault fits, and at which somebody could help.
    fn places(&self, fault: Fault) -> Vec<usize> {
        let fits = |&operation: &usize| {
            fault.fits(self.seen.kinds[operation]) && !is_beyond_help(fault, CAREFUL, self.scene, &self.seen, operation)
        };
        (0..self.seen.kinds.len()).filter(fits).collect()
    }

    /// Whether it may be in a mount, also where the other fault makes that longer.
    fn may_mount(&self, operation: usize) -> bool {
        self.seen.mounting[operation.saturating_sub(MORE)..=operation].contains(&true)
    }

    /// Whether the fault model leaves these two out: both take what says the same. That is the newest commit and the checkpoint behind it, or, after a cut, both readings of the newest page; or a program, and the read that looks whether it
    /// happened.
    fn is_outside(&self, [(one, at), (other, then)]: [(Fault, usize); 2]) -> bool {
        let hides = |fault| matches!(fault, Fault::Uncorrectable | Fault::BitFlips(_) | Fault::Stale);
        let is_unread = hides(one) && hides(other);
        let agree = [one, other].contains(&Fault::NothingHappens) && [one, other].contains(&Fault::Stale);
        let is_lost = self.scene.is_cut
            && [(one, at), (other, then)]
                .iter()
                .any(|&(fault, operation)| fault == Fault::Uncorrectable && self.may_mount(operation));
        is_lost || is_unread && self.may_mount(at) && self.may_mount(then) || agree && at.abs_diff(then) <= NEAR
    }

    /// Two faults that the model does not leave out.
    fn choose_inside(&self, chance: &mut Chance) -> [(Fault, usize); 2] {
        loop {
            let pair = self.choose(chance);
            if !self.is_outside(pair) {
                return pair;
            }
        }
    }

    /// Two faults and their places, in operations that they fit; the second as if the first had changed nothing.
    fn choose(&self, chance: &mut Chance) -> [(Fault, usize); 2] {
        let kinds = [(); 2].map(|()| KINDS[chance.below(KINDS.len())]);
        let [first, second] = kinds.map(|kind| self.places(kind));
        let one = first[chance.below(first.len())];
        let behind = second.partition_point(|&place| place <= one);
        let near = behind + chance.below(NEAR);
        let other = if near < second.len() && chance.below(4) > 0 { near } else { chance.below(second.len()) };
        [(kinds[0], one), (kinds[1], second[other])]
    }

    fn run(&self, pair: [(Fault, usize); 2], what: &str) {
        let mut sim = self.chip.clone();
        let mut promise = self.promise.clone();
        for (fault, operation) in pair {
            let nth = (0..operation).filter(|&before| fault.fits(self.seen.kinds[before])).count();
            sim.inject(fault, Trigger::Nth(nth as u64));
        }
        let Stage { scene, seed, changes, .. } = *self;
        let _ = work_through(&mut sim, CAREFUL, scene, seed, changes, &mut promise, what);
        sim.withdraw_all();
        sim.power_off();
        sim.power_on();
        // Bits that flip twice in a page cannot be corrected.
        let may_be_lost = pair.iter().any(|(fault, _)| matches!(fault, Fault::Uncorrectable))
            || pair.iter().all(|(fault, _)| matches!(fault, Fault::BitFlips(_)));
        if may_be_lost {
            check_nothing_wrong(&mut sim, CAREFUL, scene, &mut promise, what);
            return;
        }
        check_all_there(&mut sim, CAREFUL, scene, &mut promise, what);
        // And goes on, as far as a chip has room that may have lost two blocks.
        if let Err(error) = work(&mut sim, CAREFUL, scene, seed, AFTER, &mut promise) {
            assert!(matches!(error, nandu::Error::ReadOnly | nandu::Error::Full), "{what}: {error}");
        }
        check_all_there(&mut sim, CAREFUL, scene, &mut promise, what);
    }
}

/// A read that brings another page hides the newest checkpoint from a mount, and the power goes in the recovery from the one before. The block in which that programmed is not erased, whatever the checkpoint says.
#[test]
fn a_recovery_that_was_begun_by_mistake_and_cut_leaves_no_block_that_passes_for_erased() {
    let stage = Stage::new(Scene { values: Values::Pages, waits: true, ..Scene::SMALL }, 0);
    let mount = stage.seen.mounting.iter().take_while(|&&is_mounting| is_mounting).count();
    for hidden in 0..mount {
        for cut in hidden + 1..mount + 24 {
            let pair = [(Fault::Cut(None), cut), (Fault::Stale, hidden)];
            stage.run(pair, &format!("{pair:?}"));
        }
    }
}

#[test]
fn two_faults_in_one_session_lose_nothing_without_an_error() {
    let count = number("NANDU_PAIRS", 2_000);
    let scenes: Vec<Scene> =
        Scene::ALL.into_iter().flat_map(|scene| [scene, Scene { is_cut: true, ..scene }]).collect();
    let stages: Vec<Stage> = scenes.into_iter().map(|scene| Stage::new(scene, 0)).collect();
    let mut chance = Chance::new(1);
    let mut failed = Vec::new();
    let alone = std::env::var("NANDU_PAIR").ok().and_then(|at| at.parse::<u64>().ok());
    for at in 0..count {
        let stage = &stages[at as usize % stages.len()];
        let pair = stage.choose_inside(&mut chance);
        if alone.is_some_and(|alone| alone != at) {
            continue;
        }
        let what = format!("pair {at}: {pair:?}, {:?}", stage.scene);
        let run = std::panic::AssertUnwindSafe(|| stage.run(pair, &what));
        if std::panic::catch_unwind(run).is_err() {
            failed.push(what);
        }
    }
    assert!(failed.is_empty(), "{} of {count}:\n{}", failed.len(), failed.join("\n"));
    if alone.is_some() {
        return;
    }
    Tried {
        promise: "No value is ever wrong, and none is missing without an error",
        what: "stores of nine kinds, two faults of eight kinds in one session",
        against: "F1, F3, F6, F7, F10, F11, F14, F16, F17",
        command: "cargo test --release -p nandu --test it faults::pairs",
        counts: &[(count, "pairs")],
    }
    .tell();
}
