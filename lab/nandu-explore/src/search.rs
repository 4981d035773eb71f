//! Tries all sequences of calls, cuts and faults to a depth.
//!
//! A **node** is a chip that holds a system which was left in order or lost its power, the calls that were made since it was opened, and what a cut may leave. From each node every call is made; in each of them every change of the chip is cut with every tear, and each program and erase fails once. Where the chip was
//! not opened yet, the changes of the opening are cut, too. So cuts stand in recoveries, and in recoveries from these.
//!
//! Each torn chip has to be recovered to one of the contents that are allowed, with a `verify` that finds nothing, also if it rests first, so that unstable bits go bad; a second recovery has to find the same, and so has a third one after
//! a rest. What is found is what is durable from there on.
//!
//! Nodes are known by what is [on the chip](crate::digest) and what a cut may leave, and whether they are open. What an open system has in memory beside that is not told apart.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use nandu_nand::Geometry;
use nandu_sim::{Fault, Observer, Operation, OperationKind, Sag, Sim, Tear, Trigger};

use crate::brown_out::{self, BrownOuts, Found};
use crate::digest;
use crate::moves::{self, Event, Move};
use crate::report::{Report, Violation};
use crate::system::{Ending, Played, System};

/// Violations after which a search ends.
const VIOLATIONS_MAX: usize = 8;

/// How far is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Calls and cuts of a sequence.
    pub depth: u8,
    /// Which share of the sequences, of how many: those whose first move leads to a state with such a number.
    pub shard: (u64, u64),
    /// Whether programs and erases fail.
    pub has_faults: bool,
    /// How many of the last programs and erases before a cut may be weak; with 0 none is.
    pub sag_max: u8,
}

struct Node<S: System + ?Sized> {
    /// The chip when it was opened. Sims cannot be read by two threads at a time.
    chip: Arc<Mutex<Sim>>,
    /// Number of its next operation.
    first: u64,
    since: Vec<Step<S::Call>>,
    /// What may be found after a cut in the next call; behind a cut, what was found.
    owed: S::Owed,
    /// What else an opening may find, if it was cut and rests: nothing is durable before the opening ends.
    else_found: Option<S::Content>,
    /// What was owed before each call so far, and the number of the first operation behind that call.
    past: Vec<(u64, S::Owed)>,
    moves: Vec<Move<S::Call>>,
    left: u8,
}

/// A call, and the operation that failed in it.
#[derive(Clone, Copy)]
struct Step<C> {
    call: C,
    fails: Option<(u64, Fault)>,
}

impl<S: System + ?Sized> Node<S> {
    /// A system that is not open.
    fn closed(chip: Sim, owed: S::Owed, moves: Vec<Move<S::Call>>, left: u8) -> Node<S> {
        let first = chip.operation_count();
        let (since, past) = (Vec::new(), Vec::new());
        Node { chip: Arc::new(Mutex::new(chip)), first, since, owed, else_found: None, past, moves, left }
    }
}

/// Kinds of the operations that a chip did, from a number on.
#[derive(Clone, Default)]
struct Kinds(Arc<Mutex<Vec<(u64, OperationKind)>>>);

impl Observer for Kinds {
    fn operation(&mut self, operation: &Operation, _: &[u8]) {
        if matches!(operation.kind, OperationKind::Read | OperationKind::CheckBad) {
            return;
        }
        locked(&self.0).push((operation.number, operation.kind));
    }
}

impl Kinds {
    /// The changes from this operation on.
    fn from(&self, first: u64) -> Vec<(u64, OperationKind)> {
        let all = locked(&self.0);
        all.iter().copied().filter(|&(number, _)| number >= first).collect()
    }
}

/// A search under way, on all cores.
struct Search<'s, S: System + ?Sized> {
    system: &'s S,
    bounds: Bounds,
    geometry: Geometry,
    /// The first operation behind the start: what was there before is not known.
    first: u64,
    brown_outs: Mutex<Vec<BrownOuts>>,
    /// Digests of nodes, and to which depth each was searched.
    known: Vec<Mutex<HashMap<u64, u8>>>,
    open: Mutex<Vec<Node<S>>>,
    /// Nodes that are open or searched right now.
    under_way: AtomicUsize,
    counts: Counts,
    violations: Mutex<Vec<Violation>>,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    cuts: AtomicU64,
    cuts_in_recovery: AtomicU64,
    faults: AtomicU64,
    refused: AtomicU64,
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// Explores a system as far as the bounds go.
pub fn explore<S: System + ?Sized>(system: &S, bounds: Bounds) -> Report {
    let (search, chip) = Search::new(system, bounds);
    let bar = ProgressBar::new_spinner();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| search.work());
        }
        while search.under_way.load(Ordering::Acquire) > 0 {
            let cuts = search.counts.cuts.load(Ordering::Relaxed);
            bar.set_message(format!("{}: {} states, {cuts} cuts", system.name(), search.states()));
            bar.tick();
            thread::sleep(Duration::from_millis(20));
        }
    });
    bar.finish_and_clear();
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let counts = &search.counts;
    // Which thread found it first does not matter.
    let mut violations = locked(&search.violations).clone();
    violations.sort();
    Report {
        system: system.name().to_owned(),
        chip: chip_words(&chip),
        calls: system.calls().iter().map(ToString::to_string).collect(),
        depth: bounds.depth,
        shards: 1,
        states: search.states(),
        played: count(&counts.calls),
        cuts: count(&counts.cuts),
        cuts_in_recovery: count(&counts.cuts_in_recovery),
        faults: count(&counts.faults),
        refused: count(&counts.refused),
        brown_outs: brown_out::sorted(locked(&search.brown_outs).clone()),
        violations,
    }
}

/// Makes the moves of one sequence, with all checks.
///
/// # Errors
///
/// What was wrong, or that a word is no move of this system.
pub fn replay_in<S: System + ?Sized>(system: &S, text: &str) -> Result<(), String> {
    let moves = moves::parse(system.calls(), text)
        .ok_or_else(|| format!("'{text}' has a word that is no move of {}", system.name()))?;
    let bounds = Bounds { depth: moves.len() as u8, shard: (0, 1), has_faults: true, sag_max: 0 };
    let (search, _) = Search::new(system, bounds);
    for next in moves {
        // A sequence that ends before its last move has shown nothing.
        let node = locked(&search.open).pop();
        let node = node.ok_or_else(|| search.wrong().unwrap_or_else(|| format!("nothing comes before '{next}'")))?;
        search.make(&node, next);
    }
    search.wrong().map_or(Ok(()), Err)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn chip_words(chip: &Sim) -> String {
    let geometry = &chip.chip().geometry;
    format!("{} blocks of {} pages of {} B", geometry.block_count, geometry.pages_per_block, geometry.page_size)
}

impl<'s, S: System + ?Sized> Search<'s, S> {
    #[expect(clippy::expect_used, reason = "there is nothing to explore")]
    fn new(system: &'s S, bounds: Bounds) -> (Search<'s, S>, Sim) {
        let chip = system.start();
        let found = system.look(&mut chip.clone()).expect("what starts is sound");
        let first = Node::closed(chip.clone(), system.begin(&found), Vec::new(), bounds.depth);
        let search = Search {
            system,
            bounds,
            geometry: chip.chip().geometry,
            first: chip.operation_count(),
            brown_outs: Mutex::default(),
            known: (0..64).map(|_| Mutex::default()).collect(),
            open: Mutex::new(vec![first]),
            under_way: AtomicUsize::new(1),
            counts: Counts::default(),
            violations: Mutex::default(),
        };
        (search, chip)
    }

    fn states(&self) -> u64 {
        self.known.iter().map(|known| locked(known).len() as u64).sum()
    }

    /// What was wrong first.
    fn wrong(&self) -> Option<String> {
        locked(&self.violations).first().map(|violation| violation.what.clone())
    }

    /// Makes one move from a node.
    fn make(&self, node: &Node<S>, next: Move<S::Call>) {
        let first = node.first;
        match (next.call, next.event) {
            (Some(call), Event::Sag(at, sag)) => {
                if self.brown_out(node, (call, &self.under_way(node, call)), first + at, [sag]) == 0 {
                    let moves = node.with(Move { call: Some(call), event: next.event });
                    self.violates::<()>(
                        moves,
                        "the brown-out reaches behind the start, or there is no such operation".to_owned(),
                    );
                }
            }
            (call, Event::Cut(at, tear)) => {
                let under_way = call.map(|call| (call, self.under_way(node, call)));
                self.cut(node, under_way.as_ref().map(|(call, owed)| (*call, owed)), first + at, tear);
            }
            (Some(call), event) => {
                let (chip, played) = self.play(node, Some(call), |chip| {
                    if let Event::Fails(at, fault) = event {
                        chip.inject(fault, Trigger::Operation(first + at));
                    }
                });
                self.called(node, call, event, chip, played);
            }
            (None, _) => debug_assert!(false, "an opening is a move only where it is cut"),
        }
    }

    fn work(&self) {
        while self.under_way.load(Ordering::Acquire) > 0 {
            let next = locked(&self.open).pop();
            match next {
                Some(node) => {
                    if locked(&self.violations).len() < VIOLATIONS_MAX {
                        self.expand(&node);
                    }
                    self.under_way.fetch_sub(1, Ordering::Release);
                }
                None => thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Makes each move from a node.
    fn expand(&self, node: &Node<S>) {
        if node.since.is_empty() {
            self.cut_the_opening(node);
        }
        for &call in self.system.calls() {
            if self.system.under_way(&node.owed, call).is_some() {
                self.call(node, call);
            }
        }
    }

    /// Plays the calls since the chip was opened, and one more, on a chip of its own.
    fn play(
        &self,
        node: &Node<S>,
        call: Option<S::Call>,
        prepare: impl FnOnce(&mut Sim),
    ) -> (Sim, Result<Played<S::Content>, String>) {
        add(&self.counts.calls);
        let mut chip = locked(&node.chip).clone();
        for (number, fault) in node.since.iter().filter_map(|step| step.fails) {
            chip.inject(fault, Trigger::Operation(number));
        }
        prepare(&mut chip);
        let calls: Vec<_> = node.since.iter().map(|step| step.call).chain(call).collect();
        let played = catch(|| self.system.play(&mut chip, &calls));
        chip.set_observer(None);
        chip.withdraw_all();
        (chip, played)
    }

    fn cut_the_opening(&self, node: &Node<S>) {
        let kinds = Kinds::default();
        let (_, played) = self.play(node, None, |chip| watch(chip, &kinds));
        let Ok(played) = played else { return };
        for (number, kind) in kinds.from(0) {
            if number >= played.opened {
                break;
            }
            for tear in Tear::all_for(kind, &self.geometry) {
                add(&self.counts.cuts_in_recovery);
                self.cut(node, None, number, tear);
            }
        }
    }

    /// What is owed while a call is under way.
    fn under_way(&self, node: &Node<S>, call: S::Call) -> S::Owed {
        self.system.under_way(&node.owed, call).unwrap_or_else(|| node.owed.clone())
    }

    fn call(&self, node: &Node<S>, call: S::Call) {
        let kinds = Kinds::default();
        let (chip, played) = self.play(node, Some(call), |chip| watch(chip, &kinds));
        let Some(begun) = self.called(node, call, Event::Nothing, chip, played) else { return };
        let under_way = self.under_way(node, call);
        debug_assert!(node.moves.len() < usize::from(self.bounds.depth));
        for (number, kind) in kinds.from(begun) {
            for tear in Tear::all_for(kind, &self.geometry) {
                self.cut(node, Some((call, &under_way)), number, tear);
            }
            let fault = if kind == OperationKind::Erase { Fault::EraseFails } else { Fault::ProgramFails };
            if self.bounds.sag_max > 0 {
                self.brown_out(node, (call, &under_way), number, brown_out::sags(self.bounds.sag_max));
            }
            // One at a time: the chip has one block to lose.
            if self.bounds.has_faults && node.moves.iter().all(|moved| !moved.is_fault()) && fault.fits(kind) {
                add(&self.counts.faults);
                let (chip, played) = self.play(node, Some(call), |chip| {
                    chip.inject(fault, Trigger::Operation(number));
                });
                self.called(node, call, Event::Fails(number - node.first, fault), chip, played);
            }
        }
    }

    /// Checks how a call ended and goes on from there. Returns its first operation.
    fn called(
        &self,
        node: &Node<S>,
        call: S::Call,
        event: Event,
        chip: Sim,
        played: Result<Played<S::Content>, String>,
    ) -> Option<u64> {
        let system = self.system;
        let moves = node.with(Move { call: Some(call), event });
        let played = match played {
            Ok(played) => played,
            Err(panic) => return self.violates(moves, panic),
        };
        let owed = match &played.ending {
            Ending::Done => system.done(&self.under_way(node, call), call),
            Ending::Refused => {
                add(&self.counts.refused);
                node.owed.clone()
            }
            Ending::Failed(error) => return self.violates(moves, format!("the call failed: {error}")),
        };
        let there = system.there(&owed);
        if let Some(content) = played.content.filter(|content| *content != there) {
            return self.violates(moves, format!("a reader sees {content:?} and not {there:?}"));
        }
        let left = node.left - 1;
        let mut past = node.past_at(played.opened);
        past.push((chip.operation_count(), node.owed.clone()));
        if system.leaves(call) {
            self.meet(Node { past, ..Node::closed(chip, owed, moves, left) }, None);
        } else {
            let fails = match event {
                Event::Fails(at, fault) => Some((node.first + at, fault)),
                _ => None,
            };
            let mut since = node.since.clone();
            since.push(Step { call, fails });
            let (shared, first) = (Arc::clone(&node.chip), node.first);
            self.meet(Node { chip: shared, first, since, owed, else_found: None, past, moves, left }, Some(&chip));
        }
        Some(played.begun)
    }

    /// Cuts the power in a call, or in the opening, and goes on from what is found.
    fn cut(&self, node: &Node<S>, call: Option<(S::Call, &S::Owed)>, number: u64, tear: Tear) {
        add(&self.counts.cuts);
        let (mut chip, played) = self.play(node, call.map(|(call, _)| call), |chip| chip.cut_at(number, tear));
        let moves = node.with(Move { call: call.map(|(call, _)| call), event: Event::Cut(number - node.first, tear) });
        if let Err(panic) = played {
            self.violates::<()>(moves, panic);
            return;
        }
        if !chip.is_off() {
            self.violates::<()>(moves, "the power was not cut: there is no such operation".to_owned());
            return;
        }
        chip.power_on();
        let is_allowed = |found: &S::Content| match call {
            Some((_, owed)) => self.system.allows(owed, found),
            None => self.system.allows(&node.owed, found) || node.else_found.as_ref() == Some(found),
        };
        match self.recovered(&chip, is_allowed) {
            Ok((found, late)) => {
                let owed = call.map_or(&node.owed, |(_, owed)| owed);
                let mut past = node.past_at(number);
                past.extend([&node.owed, owed].map(|owed| (chip.operation_count(), owed.clone())));
                let closed = Node::closed(chip, self.system.begin(&found), moves, node.left - 1);
                self.meet(Node { else_found: Some(late).filter(|late| *late != found), past, ..closed }, None);
            }
            Err(what) => {
                self.violates::<()>(moves, what);
            }
        }
    }

    /// Cuts the power before an operation, with each brown-out before it that reaches no further than the start; how many these are.
    fn brown_out(
        &self,
        node: &Node<S>,
        (call, owed): (S::Call, &S::Owed),
        number: u64,
        sags: impl IntoIterator<Item = Sag>,
    ) -> usize {
        let (mut chip, played) = self.play(node, Some(call), |chip| chip.cut_at(number, Tear::Before));
        let Some(played) = played.ok().filter(|_| chip.is_off()) else { return 0 };
        chip.power_on();
        let past = node.past_at(played.opened);
        let was_cut = node.moves.iter().any(|before| matches!(before.event, Event::Cut(..)));
        let mut tried = 0;
        for sag in sags {
            let mut chip = chip.clone();
            let Some(weak) = chip.sag(sag).filter(|&weak| weak >= self.first) else { continue };
            let was_there = |found: &S::Content| {
                past.iter().any(|(end, owed)| weak < *end && self.system.allows(owed, found))
                    || self.system.allows(&node.owed, found)
            };
            let (found, what) = self.found(chip, |found| match () {
                () if self.system.allows(owed, found) => Found::All,
                () if was_there(found) => Found::Older,
                () => Found::Wrong,
            });
            tried += 1;
            brown_out::count(&mut locked(&self.brown_outs), (sag, was_cut), found);
            if found == Found::Wrong {
                let event = Event::Sag(number - node.first, sag);
                self.violates::<()>(node.with(Move { call: Some(call), event }), what);
            }
        }
        tried
    }

    /// What is found on a chip after a brown-out, and in words what was wrong.
    fn found(&self, mut chip: Sim, of: impl Fn(&S::Content) -> Found) -> (Found, String) {
        let mut rested = chip.clone();
        rest(&mut rested);
        let (mut first, mut worst, mut what) = (None, Found::All, String::new());
        let mut note = |looked: Result<Result<S::Content, String>, String>, is_later: bool| {
            let (found, words) = match looked {
                Err(panic) => (Found::Wrong, panic),
                Ok(Err(damage)) => (Found::Damage, damage),
                Ok(Ok(content)) => {
                    let is_other = first.as_ref().is_some_and(|first| *first != content);
                    let found = if is_later && is_other { Found::Fading } else { of(&content) };
                    let words = format!("a brown-out leaves {content:?}");
                    if is_later {
                        first.get_or_insert(content);
                    }
                    (found, words)
                }
            };
            if found > worst {
                (worst, what) = (found, words);
            }
        };
        note(catch(|| self.system.look(&mut rested)), false);
        note(catch(|| self.system.look(&mut chip)), true);
        note(catch(|| self.system.look(&mut chip)), true);
        rest(&mut chip);
        note(catch(|| self.system.look(&mut chip)), true);
        (worst, what)
    }

    /// What is found on a torn chip, which is the same in a second recovery, and in one after a rest; and if the chip rests before the first one, something else that is allowed may be found.
    fn recovered(
        &self,
        torn: &Sim,
        is_allowed: impl Fn(&S::Content) -> bool,
    ) -> Result<(S::Content, S::Content), String> {
        let mut rested = torn.clone();
        rest(&mut rested);
        let late = catch(|| self.system.look(&mut rested))??;
        let mut chip = torn.clone();
        let found = catch(|| self.system.look(&mut chip))??;
        if let Some(wrong) = [&found, &late].into_iter().find(|&found| !is_allowed(found)) {
            return Err(format!("a recovery finds {wrong:?}, which no call made"));
        }
        let again = catch(|| self.system.look(&mut chip))??;
        rest(&mut chip);
        let later = catch(|| self.system.look(&mut chip))??;
        if let Some(other) = [again, later].into_iter().find(|other| *other != found) {
            return Err(format!("a recovery finds {found:?}, and a later one {other:?}"));
        }
        Ok((found, late))
    }

    /// Goes on from a node, unless it is known. `played` is the chip as it is now, where calls were made since it was opened.
    fn meet(&self, node: Node<S>, played: Option<&Sim>) {
        let mut hash = DefaultHasher::new();
        match played {
            Some(chip) => digest::of_chip(chip.clone(), self.system.has_headers(), &mut hash),
            None => digest::of_chip(locked(&node.chip).clone(), self.system.has_headers(), &mut hash),
        }
        self.system.hash(&node.owed, &mut hash);
        if let Some(found) = &node.else_found {
            self.system.hash(&self.system.begin(found), &mut hash);
        }
        node.since.is_empty().hash(&mut hash);
        node.moves.iter().any(Move::is_fault).hash(&mut hash);
        let digest = hash.finish();
        let (shard, shards) = self.bounds.shard;
        if node.moves.len() == 1 && digest % shards != shard {
            return;
        }
        let mut known = locked(&self.known[digest as usize % self.known.len()]);
        let searched = known.get(&digest).copied();
        if searched.is_none_or(|depth| depth < node.left) {
            known.insert(digest, node.left);
            drop(known);
            if node.left > 0 {
                self.under_way.fetch_add(1, Ordering::AcqRel);
                locked(&self.open).push(node);
            }
        }
    }

    fn violates<T>(&self, moves: Vec<Move<S::Call>>, what: String) -> Option<T> {
        let moves = moves.iter().map(ToString::to_string).collect();
        let violation = Violation { system: self.system.name().to_owned(), moves, what };
        let mut violations = locked(&self.violations);
        // One call may have many.
        if violations.len() < VIOLATIONS_MAX {
            violations.push(violation);
        }
        None
    }
}

impl<S: System + ?Sized> Node<S> {
    /// The past, where the opening ended before this operation: a recovery that is weak may be undone, and what it found with it.
    fn past_at(&self, opened: u64) -> Vec<(u64, S::Owed)> {
        let past = self.past.iter().cloned();
        past.map(|(end, owed)| (if end == self.first { opened } else { end }, owed)).collect()
    }

    fn with(&self, next: Move<S::Call>) -> Vec<Move<S::Call>> {
        self.moves.iter().copied().chain([next]).collect()
    }
}

/// Bits that a cut left unstable go bad.
fn rest(chip: &mut Sim) {
    chip.advance_ns(chip.decay().time_ns);
}

fn watch(chip: &mut Sim, kinds: &Kinds) {
    chip.set_observer(Some(Box::new(kinds.clone())));
}

/// A panic, as an error in words.
fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panicked: {}", text.unwrap_or("without words"))
    })
}
