//! What is done while a fault strikes, what was promised on the way, and what must be there afterwards.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu::nand::Nand;
use nandu::{At, Direction, Durability, Edit, Options, Snapshot, Store};
use nandu_sim::{Chip, Sim, SimError};

use crate::values::{Records, check_sound, pattern, read_all, records};

pub(super) type Error = nandu::Error<SimError>;

pub(super) const PLAIN: Options = Options { cache_size: 512, ..Options::DEFAULT };
pub(super) const CAREFUL: Options = Options { read_back: true, ..PLAIN };
pub(super) const TWICE: Options = Options { commit_twice: true, ..PLAIN };

/// Most snapshots at a time.
const KEPT_MAX: usize = 3;

/// Keys that have large values.
const LARGE_KEYS: u32 = 5;

/// What is put.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Values {
    /// Small values and batches of them.
    Small,
    /// Values of one page or a few, beside small ones.
    Pages,
    /// Values of several pages each, beside small ones.
    Several,
}

/// A kind of store and of work on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scene {
    pub(super) values: Values,
    /// Whether snapshots are taken, read and released.
    pub(super) has_snapshots: bool,
    /// Whether changes wait for a sync.
    pub(super) waits: bool,
    /// Whether the store is left as by a cut, so that what opens it next has to recover.
    pub(super) is_cut: bool,
}

impl Scene {
    pub(super) const SMALL: Scene = Scene { values: Values::Small, has_snapshots: false, waits: false, is_cut: false };
    pub(super) const SEVERAL: Scene = Scene { values: Values::Several, ..Scene::SMALL };
    pub(super) const ALL: [Scene; 9] = [
        Scene::SMALL,
        Scene { values: Values::Pages, ..Scene::SMALL },
        Scene::SEVERAL,
        Scene { has_snapshots: true, ..Scene::SMALL },
        Scene { values: Values::Pages, has_snapshots: true, ..Scene::SMALL },
        Scene { waits: true, ..Scene::SMALL },
        Scene { values: Values::Pages, waits: true, ..Scene::SMALL },
        Scene { has_snapshots: true, waits: true, ..Scene::SMALL },
        Scene { values: Values::Several, has_snapshots: true, waits: true, is_cut: false },
    ];

    pub(super) fn chip(self) -> Chip {
        match (self.values, self.has_snapshots) {
            (Values::Small, false) => Chip::TINY,
            (Values::Small, true) => Chip::TINY.with_blocks(28),
            (_, false) => Chip::TINY.with_blocks(32),
            (_, true) => Chip::TINY.with_blocks(56),
        }
    }

    /// A block that was read so often is emptied, so that pages are moved however little lives in each block.
    pub(super) fn options(self, plain: Options) -> Options {
        let plain = Options { reads_max: Some(10), ..plain };
        match self.waits {
            true => Options { durability: Durability::OnSync, pending_size: 500, ..plain },
            false => plain,
        }
    }

    fn value_size(self, draw: u32) -> usize {
        match (self.values, draw % 4) {
            (Values::Small, _) => draw as usize % 24,
            (_, 0) => draw as usize % 40,
            (Values::Pages, _) => draw as usize % (4 * 199) + 60,
            (Values::Several, _) => draw as usize % (4 * 199) + 4 * 199,
        }
    }

    pub(super) fn keys(self) -> u32 {
        match (self.values, self.waits) {
            (_, true) => 40,
            (Values::Small, false) if !self.has_snapshots => 150,
            (Values::Small, false) => 20,
            _ => 5,
        }
    }
}

pub(super) fn memory(chip: &Sim, options: &Options) -> Vec<u8> {
    vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, options)]
}

/// A number that looks like chance and is the same in every run.
fn mixed(count: u32, salt: u32) -> u32 {
    let x = (count ^ salt.wrapping_mul(0x85EB_CA6B)).wrapping_mul(0x9E37_79B1);
    (x ^ (x >> 15)).wrapping_mul(0x2C1B_3C6D) >> 12
}

/// What was acknowledged, and what was under way.
#[derive(Clone)]
pub(super) struct Promise {
    /// What the store may hold after a cut: what was durable last, and what each change since then made of it, the one under
    /// way included. The last is what the store holds now.
    states: Vec<Records>,
    kept: BTreeMap<u32, Records>,
    pending: Option<Pending>,
    /// Changes begun, over all runs.
    pub(super) count: u32,
}

/// What is being done to the list of snapshots.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pending {
    Take,
    Release(u32),
}

impl Default for Promise {
    fn default() -> Promise {
        Promise { states: vec![Records::new()], kept: BTreeMap::new(), pending: None, count: 0 }
    }
}

impl Promise {
    fn now(&self) -> Records {
        self.states.last().unwrap().clone()
    }

    /// What the store holds now is durable.
    pub(super) fn settle(&mut self) {
        self.states.drain(..self.states.len() - 1);
    }

    /// A store that was opened holds one of the states, and that is durable.
    pub(super) fn adopt(&mut self, found: Records, what: &str) {
        assert!(self.states.contains(&found), "{what}: opened with what it never held");
        self.states = vec![found];
    }

    /// Values that a key may have.
    fn allows(&self, key: &[u8], found: Option<&Vec<u8>>) -> bool {
        self.states.iter().any(|state| state.get(key) == found)
    }

    /// Whether these snapshots may be there.
    fn allows_snapshots(&self, found: &[u32]) -> bool {
        let kept: Vec<u32> = self.kept.keys().copied().collect();
        let without = |gone: u32| kept.iter().copied().filter(|&number| number != gone).collect::<Vec<_>>();
        found == kept
            || match self.pending {
                Some(Pending::Take) => found.len() == kept.len() + 1 && found[..kept.len()] == kept,
                Some(Pending::Release(number)) => found == without(number),
                None => false,
            }
    }
}

/// All that a snapshot holds, with large values read to their ends.
fn records_at(mut at: At<'_, '_, impl Nand<Error = SimError>>) -> Result<Records, Error> {
    let (mut found, mut large) = (Records::new(), Vec::new());
    at.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        large.extend(entry.large.map(|length| (entry.key.to_vec(), length)));
        found.insert(entry.key.to_vec(), entry.value.to_vec());
        ControlFlow::Continue(())
    })?;
    for (key, length) in large {
        let mut value = vec![0; length];
        assert_eq!(at.read(&key, 0, &mut value)?, Some(length));
        found.insert(key, value);
    }
    Ok(found)
}

/// The work of a scene, on one store.
pub(super) struct Work<'a, 's, 'm> {
    pub(super) scene: Scene,
    pub(super) seed: u32,
    pub(super) store: &'a mut Store<'m, &'s mut Sim>,
    pub(super) promise: &'a mut Promise,
}

impl Work<'_, '_, '_> {
    fn draw(&self, salt: u32) -> u32 {
        mixed(self.promise.count, salt + 16 * self.seed)
    }

    /// One of the keys, one of the first few for a large value.
    fn key(&self, salt: u32, is_large: bool) -> Vec<u8> {
        let keys = if is_large { self.scene.keys().min(LARGE_KEYS) } else { self.scene.keys() };
        format!("{}", self.draw(salt) % keys).into_bytes()
    }

    /// One change, and whatever comes after it. What is read on the way has to be right.
    pub(super) fn step(&mut self) -> Result<(), Error> {
        let outcome = self.change();
        let count = self.promise.count;
        self.promise.count += 1;
        outcome?;
        if count.is_multiple_of(5) {
            let key = format!("{}", mixed(count, 4 + 16 * self.seed) % self.scene.keys()).into_bytes();
            let found = read_all(self.store, &key)?;
            assert!(
                found == self.promise.now().get(&key).cloned(),
                "{:?}, change {count}, seed {}",
                self.scene,
                self.seed
            );
        }
        if self.scene.has_snapshots
            && count.is_multiple_of(6)
            && let Some(snapshot) = self.store.snapshots().nth(count as usize % KEPT_MAX)
        {
            assert!(records_at(self.store.at(&snapshot))? == self.promise.kept[&snapshot.number()]);
        }
        if count.is_multiple_of(7) {
            self.store.idle(8)?;
        }
        Ok(())
    }

    fn change(&mut self) -> Result<(), Error> {
        let oldest = self.store.snapshots().next();
        let kept = self.promise.kept.len();
        match (self.draw(9) % 7, oldest) {
            (0 | 1, _) if self.scene.has_snapshots && kept < KEPT_MAX => return self.take(),
            (1, Some(oldest)) if kept == KEPT_MAX => return self.release(oldest),
            (2, Some(oldest)) => return self.release(oldest),
            (3 | 4, _) if self.scene.waits => {
                self.store.sync()?;
                self.promise.settle();
                return Ok(());
            }
            _ => {}
        }
        let value = pattern(self.scene.value_size(self.draw(7)), self.promise.count);
        let is_large = value.len() + 2 > self.store.entry_size_max();
        let (key, other) = (self.key(1, is_large), [self.key(2, false), self.key(5, false)]);
        let mut after = self.promise.now();
        match self.draw(3) % 8 {
            0 | 1 => {
                after.remove(&key);
                self.promise.states.push(after);
                self.store.delete(&key)?;
            }
            2 => {
                let small = value[..value.len().min(20)].to_vec();
                let [gone, second] = other;
                let changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
                    [(key, Some(small.clone())), (gone, None), (second, Some(small))].into();
                for (key, value) in &changed {
                    match value {
                        Some(value) => after.insert(key.clone(), value.clone()),
                        None => after.remove(key),
                    };
                }
                self.promise.states.push(after);
                let edits: Vec<Edit<'_>> =
                    changed.iter().map(|(key, value)| Edit { key, value: value.as_deref() }).collect();
                self.store.batch(&edits)?;
            }
            _ => {
                after.insert(key.clone(), value.clone());
                self.promise.states.push(after);
                self.store.put(&key, &value)?;
                // One of one page waits as any other change does.
                if value.len() > self.scene.chip().geometry.page_size as usize {
                    self.promise.settle();
                }
            }
        }
        if !self.scene.waits {
            self.promise.settle();
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), Error> {
        self.promise.pending = Some(Pending::Take);
        let snapshot = self.store.snapshot()?;
        self.promise.pending = None;
        self.promise.settle();
        self.promise.kept.insert(snapshot.number(), self.promise.now());
        Ok(())
    }

    fn release(&mut self, snapshot: Snapshot) -> Result<(), Error> {
        self.promise.pending = Some(Pending::Release(snapshot.number()));
        self.store.release(snapshot)?;
        self.promise.pending = None;
        self.promise.kept.remove(&snapshot.number());
        // Releasing programs a commit, so that what was before it is durable.
        Ok(())
    }

    /// Reads everything. What can be read has to be right, and nothing may be missing without an error; returns how many reads
    /// failed. What is found out of several possible states is what there is from now on.
    pub(super) fn audit(&mut self, what: &str) -> u32 {
        let mut errors = 0;
        let mut found = self.promise.now();
        for number in 0..self.scene.keys() {
            let key = format!("{number}").into_bytes();
            match read_all(self.store, &key) {
                Ok(value) => {
                    assert!(
                        self.promise.allows(&key, value.as_ref()),
                        "{what}: key {number} is wrong {value:?} {:?}",
                        self.promise.states.iter().map(|s| s.get(&key)).collect::<Vec<_>>()
                    );
                    match value {
                        Some(value) => found.insert(key, value),
                        None => found.remove(&key),
                    };
                }
                Err(_) => errors += 1,
            }
        }
        if errors == 0 {
            assert!(self.promise.states.contains(&found), "{what}: some of a batch, or a change without one before it");
            self.promise.states.push(found);
        }
        let snapshots: Vec<Snapshot> = self.store.snapshots().collect();
        let numbers: Vec<u32> = snapshots.iter().map(Snapshot::number).collect();
        assert!(self.promise.allows_snapshots(&numbers), "{what}: {numbers:?}, not {:?}", self.promise.kept.keys());
        self.promise.kept.retain(|number, _| numbers.contains(number));
        self.promise.pending = None;
        for snapshot in snapshots {
            let found = records_at(self.store.at(&snapshot));
            match (found, self.promise.kept.get(&snapshot.number())) {
                (Ok(found), Some(kept)) => assert!(found == *kept, "{what}: a snapshot is not what it was"),
                (Ok(found), None) => {
                    assert!(self.promise.states.contains(&found), "{what}: a new snapshot is of nothing");
                    self.promise.kept.insert(snapshot.number(), found);
                }
                (Err(_), kept) => {
                    errors += 1;
                    // What it was cannot be found out; nothing is demanded of it any more.
                    if kept.is_none() {
                        self.promise.kept.insert(snapshot.number(), self.promise.now());
                    }
                }
            }
        }
        errors
    }
}

/// Opens the store and changes it; half of the runs end with an unmount.
pub(super) fn work(
    chip: &mut Sim,
    plain: Options,
    scene: Scene,
    seed: u32,
    changes: u32,
    promise: &mut Promise,
) -> Result<(), Error> {
    let options = scene.options(plain);
    let mut bytes = memory(chip, &options);
    let mut store = Store::open(&mut *chip, options, &mut bytes)?;
    promise.adopt(records(&mut store)?, &format!("{scene:?}"));
    for _ in 0..changes {
        Work { scene, seed, store: &mut store, promise: &mut *promise }.step()?;
    }
    if !scene.is_cut {
        store.unmount()?;
        promise.settle();
    }
    Ok(())
}

/// The same with faults that strike; after the first error nothing strikes any more, everything is read, and the work goes on with
/// the same store, unless the power went or nothing can be written any more. Returns the first error.
pub(super) fn work_through(
    chip: &mut Sim,
    plain: Options,
    scene: Scene,
    seed: u32,
    changes: u32,
    promise: &mut Promise,
    what: &str,
) -> Result<(), Error> {
    let options = scene.options(plain);
    let mut bytes = memory(chip, &options);
    let mut store = Store::open(&mut *chip, options, &mut bytes)?;
    promise.adopt(records(&mut store)?, what);
    let mut first = Ok(());
    for _ in 0..changes {
        let mut work = Work { scene, seed, store: &mut store, promise: &mut *promise };
        if let Err(error) = work.step() {
            if work.store.nand_mut().is_off() || error == nandu::Error::ReadOnly {
                // What was done to snapshots is not durable, and may be seen in this session.
                return Err(error);
            }
            work.store.nand_mut().withdraw_all();
            // It is released in this session, and durably so with the next commit.
            if matches!(work.promise.pending, Some(Pending::Release(_))) && work.store.sync().is_err() {
                return Err(error);
            }
            let errors = work.audit(&format!("{what}, in the session in which a call failed with '{error}'"));
            first = first.and(Err(error));
            if errors > 0 {
                // What there is now may stand where nobody can read it. Not left as by a cut: if it is the newest page of all that
                // cannot be read, a mount would take it for torn.
                let _ = store.unmount();
                return first;
            }
        }
    }
    if !scene.is_cut {
        store.unmount()?;
        promise.settle();
    }
    first
}

/// A chip on which every block was used, so that what follows collects garbage.
pub(super) fn used(plain: Options, scene: Scene, seed: u32) -> (Sim, Promise) {
    let mut chip = Sim::new(scene.chip());
    let options = scene.options(plain);
    let mut bytes = memory(&chip, &options);
    chip = Store::format(chip, options, &mut bytes).unwrap().unmount().unwrap();
    let mut promise = Promise::default();
    let rounds = if scene.has_snapshots || scene.waits { 6 } else { 3 };
    for _ in 0..rounds {
        work(&mut chip, plain, scene, seed, 80, &mut promise).unwrap();
    }
    (chip, promise)
}

/// Every record is one that it may be, or reading it is an error; returns how many errors there were.
pub(super) fn check_nothing_wrong(
    chip: &mut Sim,
    plain: Options,
    scene: Scene,
    promise: &mut Promise,
    what: &str,
) -> u32 {
    let options = scene.options(plain);
    let mut bytes = memory(chip, &options);
    let mut store = match Store::open(chip, options, &mut bytes) {
        Ok(store) => store,
        Err(error) => {
            assert!(!matches!(error, nandu::Error::NotFormatted), "{what}: {error}");
            return scene.keys();
        }
    };
    Work { scene, seed: 0, store: &mut store, promise }.audit(what)
}

pub(super) fn check_all_there(chip: &mut Sim, plain: Options, scene: Scene, promise: &mut Promise, what: &str) {
    let options = scene.options(plain);
    let mut bytes = memory(chip, &options);
    let mut store = match Store::open(chip, options, &mut bytes) {
        Ok(store) => store,
        Err(error) => panic!("{what}: {error}"),
    };
    let found = records(&mut store).unwrap();
    assert!(promise.states.contains(&found), "{what}: neither before nor after");
    assert_eq!(store.record_count(), found.len() as u64, "{what}");
    assert_eq!(Work { scene, seed: 0, store: &mut store, promise }.audit(what), 0, "{what}: not all can be read");
    check_sound(&mut store);
}
