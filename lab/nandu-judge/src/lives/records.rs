//! Lives of stores.

use std::collections::BTreeMap;

use nandu::{Durability, Edit, Error, Options};
use nandu_bench::BenchError;
use nandu_bench::records::{self, Cells, Outcome, Records};
use nandu_sim::{Chip, Counters, Sim, SimError};
use nandu_suite::{Chance, liveness};

use super::kept::Kept;
use super::stores::Stores;
use super::tally::{Tally, Whose};
use super::{chip, cut_soon, is_asked, pending, power_on};
use crate::measure::Form;

/// Bytes of a page of a large value that are not the value's or its key's, at most.
const FRONT: usize = 64;

/// Blocks of the smallest chip.
const BLOCKS_LEAST: usize = 8;

/// A value: how long it is, and what all its bytes are; 0 where it has none, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    byte: u8,
    size: usize,
}

impl Content {
    fn of(bytes: &[u8]) -> Content {
        let first = bytes.first().copied().unwrap_or(0);
        Content { byte: if bytes.iter().all(|&byte| byte == first) { first } else { 0 }, size: bytes.len() }
    }

    fn bytes(self) -> Vec<u8> {
        vec![self.byte; self.size]
    }
}

pub(super) type Model = BTreeMap<Vec<u8>, Content>;

/// What may be there after a cut.
#[derive(Default)]
struct Known {
    now: Model,
    /// As the last call left it that made everything durable.
    durable: Model,
    /// Whatever each key was since.
    since: BTreeMap<Vec<u8>, Vec<Option<Content>>>,
}

impl Known {
    /// Such a change begins, which a cut may leave done.
    fn may_be(&mut self, key: &[u8], content: Option<Content>) {
        self.since.entry(key.to_vec()).or_default().push(content);
    }

    fn is_done(&mut self, key: &[u8], content: Option<Content>) {
        match content {
            Some(content) => drop(self.now.insert(key.to_vec(), content)),
            None => drop(self.now.remove(key)),
        }
    }

    fn is_durable(&mut self) {
        for (key, _) in std::mem::take(&mut self.since) {
            match self.now.get(&key) {
                Some(content) => drop(self.durable.insert(key, *content)),
                None => drop(self.durable.remove(&key)),
            }
        }
    }

    /// Holds what was found against what may be; then it is what there is.
    fn found(&mut self, found: Model) -> Result<(), String> {
        for key in found.keys().chain(self.durable.keys()) {
            let mut possible =
                self.since.get(key).into_iter().flatten().copied().chain([self.durable.get(key).copied()]);
            if possible.all(|it| it != found.get(key).copied()) {
                return Err(format!("found {:?} of key {}", found.get(key), key.escape_ascii()));
            }
        }
        *self = Known { now: found.clone(), durable: found, since: BTreeMap::new() };
        Ok(())
    }
}

/// What this life does, and how often.
struct Habits {
    keys: usize,
    key_max: usize,
    value_max: usize,
    /// Of 16 changes, those that delete.
    deletes: usize,
    /// One of so many calls is a sync.
    sync_one_in: usize,
    /// Whether snapshots are taken.
    has_snapshots: bool,
    /// Steps between cuts, about.
    cut_one_in: usize,
    steps: usize,
}

impl Habits {
    fn new(chance: &mut Chance, chip: &Chip, form: Form) -> Habits {
        let geometry = &chip.geometry;
        let pages = (geometry.block_count * geometry.pages_per_block) as usize;
        let page_size = geometry.page_size as usize;
        let value_max = [20, 100, page_size / 4, page_size][chance.below(4)];
        // More than there is room for, or a few that are changed again and again.
        let room = pages * page_size / (value_max / 2 + 12);
        Habits {
            keys: [room * 2, room * 2, room / 2, 200][chance.below(4)].max(50),
            key_max: [4, 4, 16, 40][chance.below(4)],
            value_max,
            deletes: [1, 3, 6][chance.below(3)],
            sync_one_in: [2, 8, 40, 400][chance.below(4)],
            has_snapshots: chance.below(3) == 0,
            cut_one_in: [60, 400, 1_500][chance.below(3)],
            steps: form.pick(1_500, 3_000) + (pages * 2).min(form.pick(2_000, 20_000)),
        }
    }

    fn key(&self, chance: &mut Chance) -> Vec<u8> {
        let number = chance.below(self.keys) as u32;
        let mut key = number.wrapping_mul(0x9E37_79B1).to_be_bytes().to_vec();
        key.resize(4 + number as usize % (self.key_max - 3), number as u8);
        key
    }

    fn content(&self, chance: &mut Chance) -> Content {
        let size = match chance.below(4) {
            0 => chance.below(20),
            1 => self.value_max,
            _ => chance.below(self.value_max + 1),
        };
        // One of no bytes has none to be known by.
        Content { byte: if size == 0 { 0 } else { 1 + chance.below(255) as u8 }, size }
    }
}

/// Lives a life; what was wrong if something was.
pub(super) fn live(form: Form, seed: u64) -> Result<Tally, String> {
    let mut chance = Chance::new(seed ^ 0x5_7043);
    let chip = chip(&mut chance, form, BLOCKS_LEAST);
    let durability = if chance.below(3) == 0 { Durability::Immediate } else { Durability::OnSync };
    let pending_size = pending(&mut chance);
    let cache_size = [0, 512, 8_192][chance.below(3)];
    let options = Options { cache_size, durability, pending_size, ..Options::DEFAULT };
    let habits = Habits::new(&mut chance, &chip, form);
    let mut sim = Sim::with_seed(chip, seed);
    let mut memory = vec![0; records::memory_required(&sim, &options)];
    let tally = Tally::default();
    let (known, kept, is_asked) = (Known::default(), Kept::default(), is_asked(form, seed));
    let mut life = Life { seed, step: 0, options, chance, habits, known, kept, tally, is_asked };
    match records::format(&mut sim, Cells::Bytes, options, &mut memory) {
        Ok(store) => {
            life.habits.key_max = life.habits.key_max.min(store.key_size_max());
        }
        // Such a chip is too small.
        Err(BenchError::Store(Error::Unsuitable { .. } | Error::Geometry(_) | Error::Full)) => return Ok(life.tally),
        Err(error) => return Err(life.place(&format!("format: {error}"))),
    }
    life.tally.begin_life(Whose::Records);
    let lived = life.live(&mut sim, &mut memory);
    lived.map_err(|what| {
        life.place(&format!(
            "{what}; {} blocks of {} pages of {}, pending {pending_size}, {durability:?}",
            chip.geometry.block_count, chip.geometry.pages_per_block, chip.geometry.page_size
        ))
    })?;
    Ok(life.tally)
}

struct Life {
    seed: u64,
    step: usize,
    options: Options,
    chance: Chance,
    habits: Habits,
    known: Known,
    kept: Kept,
    tally: Tally,
    /// Whether the life ends with liveness.
    is_asked: bool,
}

impl Life {
    fn place(&self, what: &str) -> String {
        format!("life {} of records, step {}: {what}", self.seed, self.step)
    }

    fn live(&mut self, chip: &mut Sim, memory: &mut [u8]) -> Result<(), String> {
        while self.step < self.habits.steps {
            let store = self.open(chip, memory)?;
            if let Some(before) = self.until_it_ends(store)? {
                let done = chip.counters().since(&before);
                self.tally.call((self.whose(), "unmount"), &done, 1, &self.here());
            }
            power_on(chip);
        }
        let mut store = self.open(chip, memory)?;
        match store.verify() {
            Ok(0) => {}
            Ok(count) => return Err(format!("{count} invariants are violated")),
            Err(error) => return Err(error.to_string()),
        }
        drop(store);
        if !self.is_asked {
            return Ok(());
        }
        let found = liveness::measured(&Stores(self.options), chip)?;
        self.tally.liveness(self.whose(), &found, &self.here());
        Ok(())
    }

    /// Mounts, with cuts in the recovery by chance, and compares what is there.
    fn open<'m>(&mut self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Result<Box<dyn Records + 'm>, String> {
        while self.chance.below(3) == 0 {
            cut_soon(chip, &mut self.chance, 60);
            let outcome = records::open(chip, Cells::Bytes, self.options, memory).map(drop);
            if let Err(error) = outcome
                && !chip.is_off()
            {
                return Err(error.to_string());
            }
            power_on(chip);
        }
        let before = *chip.counters();
        let mut store = records::open(chip, Cells::Bytes, self.options, memory).map_err(|error| error.to_string())?;
        let reads = store.nand().counters().since(&before).reads;
        self.tally.mount(Whose::Records, reads, &self.here());
        let (mut found, mut large) = (Model::new(), Vec::new());
        let visited = store.visit(&mut |key, value| match value {
            Some(value) => drop(found.insert(key.to_vec(), Content::of(value))),
            None => large.push(key.to_vec()),
        });
        visited.map_err(|error| error.to_string())?;
        // One byte more than any value has, so that one that is too long shows.
        let mut buffer = vec![0; self.habits.value_max + 1];
        for key in large {
            let size = store.read(&key, &mut buffer).map_err(|error| format!("{}: {error}", key.escape_ascii()))?;
            let size = size.ok_or_else(|| format!("key {} is visited and cannot be read", key.escape_ascii()))?;
            found.insert(key, Content::of(&buffer[..size]));
        }
        self.known.found(found)?;
        self.kept.end(None, &store.snapshots())?;
        self.check_kept(&mut *store)?;
        Ok(store)
    }

    /// One of the snapshots has kept what it has to.
    fn check_kept(&self, store: &mut dyn Records) -> Result<(), String> {
        let Some((index, number, expected)) = self.kept.any(self.step) else { return Ok(()) };
        let of = |key: &[u8]| format!("key {} in snapshot {number}", key.escape_ascii());
        let (mut found, mut large) = (Model::new(), Vec::new());
        let visited = store.visit_at(index, &mut |key, value| match value {
            Some(value) => drop(found.insert(key.to_vec(), Content::of(value))),
            None => large.push(key.to_vec()),
        });
        visited.map_err(|error| format!("snapshot {number}: {error}"))?;
        for key in large {
            let value = store.value_at(index, &key).map_err(|error| format!("{}: {error}", of(&key)))?;
            let value = value.ok_or_else(|| format!("{} is visited and cannot be read", of(&key)))?;
            found.insert(key, Content::of(&value));
        }
        match found.keys().chain(expected.keys()).find(|&key| found.get(key) != expected.get(key)) {
            Some(key) => Err(format!("found {:?} for {:?} of {}", found.get(key), expected.get(key), of(key))),
            None => Ok(()),
        }
    }

    /// Calls until the power goes or the store is unmounted; then what the chip had done before that.
    fn until_it_ends(&mut self, mut store: Box<dyn Records + '_>) -> Result<Option<Counters>, String> {
        let mut cut_in = 1 + self.chance.below(2 * self.habits.cut_one_in);
        loop {
            self.step += 1;
            cut_in -= 1;
            let is_over = self.step >= self.habits.steps;
            if is_over || cut_in == 0 {
                if !is_over && self.chance.below(4) > 0 {
                    // It goes in one of the next operations, and the calls go on until then.
                    cut_soon(store.nand_mut(), &mut self.chance, 40);
                    self.tally.cut();
                    cut_in = usize::MAX;
                } else {
                    store.nand_mut().clear_cuts();
                    let before = *store.nand().counters();
                    let outcome = store.unmount();
                    self.seen("unmounts of stores", outcome == Err(Error::Full));
                    return match outcome {
                        Ok(()) => {
                            self.known.is_durable();
                            Ok(Some(before))
                        }
                        Err(Error::Full) => Ok(None),
                        Err(error) => Err(error.to_string()),
                    };
                }
            }
            self.call(&mut *store)?;
            if store.nand().is_off() {
                return Ok(None);
            }
        }
    }

    fn whose(&self) -> Whose {
        if self.habits.has_snapshots { Whose::Kept } else { Whose::Records }
    }

    /// Where this is, for whoever wants to look.
    fn here(&self) -> impl Fn() -> String + use<> {
        let (seed, step) = (self.seed, self.step);
        move || format!("life {seed}, step {step}")
    }

    fn seen(&mut self, what: &'static str, is_refused: bool) {
        self.tally.tried(what, is_refused, &self.here());
    }

    /// One call of any kind.
    fn call(&mut self, store: &mut dyn Records) -> Result<(), String> {
        if self.chance.below(self.habits.sync_one_in) == 0 {
            let outcome = self.count(store, ("sync", 1), |store| store.sync());
            return self.durable(store, outcome);
        }
        match self.chance.below(64) {
            0 => {
                self.count(store, ("idle", 1), |store| store.idle(1)).map_or_else(|error| end(store, error), |_| Ok(()))
            }
            1 if self.habits.has_snapshots => {
                self.kept.begin_take(&self.known.now);
                let outcome = self.count(store, ("snapshot", 1), |store| store.snapshot());
                self.took_or_released(store, outcome.is_ok())?;
                self.durable(store, outcome)
            }
            2 | 3 if !store.snapshots().is_empty() => {
                let numbers = store.snapshots();
                let index = self.chance.below(numbers.len());
                self.kept.begin_release(numbers[index]);
                let outcome = self.count(store, ("release", 1), |store| store.release(index));
                self.took_or_released(store, outcome.is_ok())?;
                self.seen("releases of snapshots", outcome == Err(Error::Full));
                outcome.or_else(|error| end(store, error))
            }
            4..7 => self.batch(store),
            7..9 => self.get(store),
            number if number % 16 < self.habits.deletes => self.delete(store),
            _ => self.put(store),
        }
    }

    /// After a call that was to take or to release a snapshot; what a cut left of it shows at the next mount.
    fn took_or_released(&mut self, store: &dyn Records, is_done: bool) -> Result<(), String> {
        if store.nand().is_off() { Ok(()) } else { self.kept.end(Some(is_done), &store.snapshots()) }
    }

    /// What a call takes, if it was not cut.
    fn count<T>(
        &mut self,
        store: &mut dyn Records,
        (kind, pages): (&'static str, u64),
        call: impl FnOnce(&mut dyn Records) -> Outcome<T>,
    ) -> Outcome<T> {
        let before = *store.nand().counters();
        let outcome = call(store);
        if !store.nand().is_off() {
            let done = store.nand().counters().since(&before);
            self.tally.call((self.whose(), kind), &done, pages, &self.here());
        }
        outcome
    }

    /// Pages that a value takes which is larger than an entry; 1 for all others.
    fn pages_of(&self, store: &dyn Records, key: &[u8], content: Content) -> u64 {
        let page_size = store.nand().chip().geometry.page_size as usize;
        let is_large = key.len() + content.size > store.entry_size_max();
        if is_large { (key.len() + content.size + FRONT).div_ceil(page_size) as u64 } else { 1 }
    }

    /// After a call that makes everything durable.
    fn durable(&mut self, store: &mut dyn Records, outcome: Outcome<()>) -> Result<(), String> {
        match outcome {
            Ok(()) => {
                self.known.is_durable();
                Ok(())
            }
            Err(error) => end(store, error),
        }
    }

    /// After a change, which may be durable when it returns.
    fn changed(&mut self) {
        if self.options.durability == Durability::Immediate {
            self.known.is_durable();
        }
    }

    fn put(&mut self, store: &mut dyn Records) -> Result<(), String> {
        let (key, content) = (self.habits.key(&mut self.chance), self.habits.content(&mut self.chance));
        self.known.may_be(&key, Some(content));
        let pages = self.pages_of(store, &key, content);
        match self.count(store, ("put", pages), |store| store.put(&key, &content.bytes())) {
            Ok(_) => {
                self.known.is_done(&key, Some(content));
                self.changed();
                Ok(())
            }
            Err(error) => end(store, error),
        }
    }

    fn delete(&mut self, store: &mut dyn Records) -> Result<(), String> {
        let key = self.habits.key(&mut self.chance);
        self.known.may_be(&key, None);
        let outcome = self.count(store, ("delete", 1), |store| store.delete(&key));
        self.seen("deletes", outcome == Err(Error::Full));
        match outcome {
            Ok(was_there) if was_there != self.known.now.contains_key(&key) => {
                Err(format!("key {} was there: {was_there}", key.escape_ascii()))
            }
            Ok(_) => {
                self.known.is_done(&key, None);
                self.changed();
                Ok(())
            }
            Err(error) => end(store, error),
        }
    }

    /// Up to eight changes that fit a page.
    fn batch(&mut self, store: &mut dyn Records) -> Result<(), String> {
        let (mut edits, mut size) = (BTreeMap::new(), 0);
        for _ in 0..1 + self.chance.below(8) {
            let key = self.habits.key(&mut self.chance);
            let content = (self.chance.below(4) > 0).then(|| self.habits.content(&mut self.chance));
            size += key.len() + content.map_or(0, |content| content.size) + 8;
            if size > store.entry_size_max() {
                break;
            }
            edits.insert(key, content);
        }
        for (key, content) in &edits {
            self.known.may_be(key, *content);
        }
        let values: Vec<Option<Vec<u8>>> = edits.values().map(|it| it.map(|content| content.bytes())).collect();
        let lent: Vec<Edit<'_>> =
            edits.keys().zip(&values).map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
        match self.count(store, ("batch", 1), |store| store.batch(&lent)) {
            Ok(()) => {
                for (key, content) in edits {
                    self.known.is_done(&key, content);
                }
                self.changed();
                Ok(())
            }
            Err(error) => end(store, error),
        }
    }

    fn get(&mut self, store: &mut dyn Records) -> Result<(), String> {
        let key = self.habits.key(&mut self.chance);
        let expected = self.known.now.get(&key).copied();
        let mut buffer = vec![0; self.habits.value_max + 1];
        match self.count(store, ("get", 1), |store| store.read(&key, &mut buffer)) {
            Ok(size) if size.map(|size| Content::of(&buffer[..size])) == expected => Ok(()),
            Ok(size) => Err(format!("get of {}: {size:?} bytes, not {expected:?}", key.escape_ascii())),
            Err(error) => end(store, error),
        }
    }
}

/// A call that failed: a cut and a lack of room are no fault.
fn end(store: &dyn Records, error: Error<SimError>) -> Result<(), String> {
    match error {
        Error::Full | Error::TooManySnapshots | Error::BatchSize => Ok(()),
        _ if store.nand().is_off() => Ok(()),
        error => Err(error.to_string()),
    }
}
