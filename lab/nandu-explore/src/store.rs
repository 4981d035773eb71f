//! A store of records on the smallest chip that it takes.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash};
use std::ops::{Bound, ControlFlow};

use nandu::nand::{Ecc, Geometry};
use nandu::{Direction, Durability, Edit, Error, Options, Snapshot, Store};
use nandu_sim::{Chip, Sim, SimError};

use crate::system::{Ending, Played, System};

/// Blocks: four of anchors, one that may go bad, eight that are kept back, and five of data.
const BLOCKS: u32 = 18;

/// Pages of a block: as few as make the chip take records. Changes that wait leave room for pages that list them.
const PAGES: (u32, u32) = (4, 8);

/// A call of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Puts a value of this size at a key.
    Put(u8, u16),
    /// Deletes a key.
    Delete(u8),
    /// Puts one key and deletes another, together.
    Batch(u8, u8),
    /// Makes durable what waits.
    Sync,
    /// Brings what waits to its place.
    Merge,
    /// Takes a snapshot, where there is room for one more.
    Snapshot,
    /// Releases the oldest snapshot.
    Release,
    /// Releases the newest one of several.
    ReleaseNewest,
    /// Idle time of so many pages.
    Idle(u32),
    /// Leaves the store in order.
    Unmount,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Put(key, size) => write!(f, "put-{}-{size}", char::from(*key)),
            Call::Delete(key) => write!(f, "delete-{}", char::from(*key)),
            Call::Batch(put, deleted) => write!(f, "batch-{}-{}", char::from(*put), char::from(*deleted)),
            Call::Sync => f.write_str("sync"),
            Call::Merge => f.write_str("merge"),
            Call::Snapshot => f.write_str("snapshot"),
            Call::Release => f.write_str("release"),
            Call::ReleaseNewest => f.write_str("release-newest"),
            Call::Idle(pages) => write!(f, "idle-{pages}"),
            Call::Unmount => f.write_str("unmount"),
        }
    }
}

/// What a chip holds when sequences start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// It was formatted.
    Fresh,
    /// Records came and went until blocks had to be emptied.
    Worn,
    /// It takes no more records.
    Full,
    /// Its power went when the window was full, and changes waited that the oldest member lists.
    Pending,
    /// Two snapshots were taken, and what they keep was changed.
    Kept,
}

/// Records by key: the size of the value and its first byte.
type Records = BTreeMap<u8, (u16, u8)>;

/// Records, and those of the snapshots, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Content {
    records: Records,
    snapshots: Vec<Records>,
}

/// A store in one durability, with one past.
#[derive(Debug)]
pub struct Stores {
    name: &'static str,
    options: Options,
    past: Past,
    pages_per_block: u32,
    calls: Vec<Call>,
}

/// Keys of records that fill a chip; those that are called are lower.
const FILLERS: std::ops::RangeInclusive<u8> = b'k'..=b'z';

/// Keys of which some have changes that wait, in as many leaves as a commit lists.
const LISTED: std::ops::RangeInclusive<u8> = b'k'..=b'k' + 39;

/// Commits that a window has.
const MEMBERS: u8 = 12;

/// Size of a value of which a leaf has several.
const SMALL: u16 = 60;

/// Size of a value that stands in a page of its own.
const LARGE: u16 = 700;

/// Snapshots at a time, where there are several.
const SNAPSHOTS: usize = 2;

/// Size of a value that fills.
const FILLER: u16 = 150;

impl Stores {
    /// Changes that are durable when the call returns.
    pub fn immediate(past: Past) -> Stores {
        let name = match past {
            Past::Fresh => "store",
            Past::Worn => "store-worn",
            Past::Full => "store-full",
            Past::Pending => "store-pending",
            Past::Kept => "store-kept",
        };
        let mut calls = vec![
            Call::Put(b'a', 8),
            Call::Put(b'b', 300),
            Call::Delete(b'a'),
            Call::Delete(b'k'),
            Call::Batch(b'c', b'a'),
            Call::Snapshot,
            Call::Release,
            Call::Idle(4),
            Call::Unmount,
        ];
        match past {
            // What a snapshot keeps of a value that was changed, and which one goes.
            Past::Kept => calls.extend([Call::Put(b'k', SMALL), Call::ReleaseNewest]),
            // What members list of a key that gets a value in its leaf, and one in a page of its own.
            Past::Pending => calls.extend([Call::Put(b's', LARGE), Call::Batch(b's', b't'), Call::Put(b'l', 8)]),
            _ => {}
        }
        let options = Options { cache_size: 512, ..Options::DEFAULT };
        Stores { name, options, past, pages_per_block: PAGES.0, calls }
    }

    /// Changes that wait for a sync.
    pub fn waiting(past: Past) -> Stores {
        let name = match past {
            Past::Fresh => "store-sync",
            Past::Worn => "store-sync-worn",
            Past::Full => "store-sync-full",
            Past::Pending => "store-sync-pending",
            Past::Kept => "store-sync-kept",
        };
        let mut of_immediate = Stores::immediate(past);
        of_immediate.calls.extend([Call::Sync, Call::Merge]);
        let options = Options {
            durability: Durability::OnSync,
            pending_size: if past == Past::Pending { 1_200 } else { 600 },
            ..of_immediate.options
        };
        Stores { name, options, pages_per_block: PAGES.1, ..of_immediate }
    }

    /// Commits are programmed twice.
    pub fn twice() -> Stores {
        let fresh = Stores::immediate(Past::Fresh);
        Stores { name: "store-twice", options: Options { commit_twice: true, ..fresh.options }, ..fresh }
    }

    /// The same with other options.
    pub fn with(mut self, change: impl FnOnce(&mut Options)) -> Stores {
        change(&mut self.options);
        self
    }

    fn snapshots_max(&self) -> usize {
        if self.past == Past::Kept { SNAPSHOTS } else { 1 }
    }

    fn memory(&self, chip: &Sim) -> Vec<u8> {
        vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &self.options)]
    }
}

/// A small chip, with pages of 512 bytes.
pub(crate) fn chip(pages_per_block: u32) -> Chip {
    let geometry = Geometry {
        page_size: 512,
        program_unit: 512,
        spare_size: 32,
        pages_per_block,
        block_count: BLOCKS,
        bad_block_max: 1,
        ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
        ..Chip::TINY.geometry
    };
    Chip { name: "small", geometry, ..Chip::TINY }
}

/// A value of this size, whose first byte tells it from the value before.
fn value(size: u16, first: u8) -> Vec<u8> {
    vec![first; size.into()]
}

/// The first byte of the value that takes the place of another one.
fn next(records: &Records, key: u8) -> u8 {
    records.get(&key).map_or(0, |&(_, first)| 1 - first)
}

impl System for Stores {
    type Call = Call;
    type Content = Content;
    /// What is durable, and what each call behind it made, in their order; the last one is what is there.
    type Owed = Vec<Content>;

    fn name(&self) -> &'static str {
        self.name
    }

    #[expect(clippy::expect_used, reason = "a chip without faults takes a store")]
    fn start(&self) -> Sim {
        let mut sim = Sim::new(chip(self.pages_per_block));
        let mut memory = self.memory(&sim);
        let options = Options { volume: Some(7), ..self.options };
        let mut store = Store::format(&mut sim, options, &mut memory).expect("the chip is large enough");
        let fillers = match self.past {
            Past::Fresh => b'k'..=b'k',
            Past::Worn => b'k'..=b'n',
            Past::Full | Past::Kept => FILLERS,
            Past::Pending => LISTED,
        };
        let size = if matches!(self.past, Past::Pending | Past::Kept) { SMALL } else { FILLER };
        for key in fillers {
            match store.put(&[key], &value(size, 0)) {
                Ok(_) => {}
                Err(Error::Full) => break,
                Err(error) => unreachable!("a put without a fault: {error}"),
            }
        }
        for turn in 0..if matches!(self.past, Past::Worn | Past::Full) { 97 } else { 0 } {
            store.put(b"k", &value(FILLER, 1 - turn % 2)).expect("what replaces is not refused");
        }
        if self.past == Past::Kept {
            for _ in 0..SNAPSHOTS {
                store.snapshot().expect("there is room");
            }
            for key in FILLERS {
                store.put(&[key], &value(SMALL, 1)).expect("there is room");
            }
        }
        if self.past == Past::Pending {
            store.sync().expect("there is room");
            // Each in another leaf: one goes there with the commit, the others wait.
            for key in LISTED.step_by(8) {
                store.put(&[key], &value(8, 1)).expect("there is room");
            }
            store.sync().expect("there is room");
            // They wait while one key changes, whose leaf goes along, until the commit that lists them is the oldest member.
            for turn in 1..MEMBERS {
                store.put(b"l", &value(8, turn % 2)).expect("there is room");
                store.sync().expect("there is room");
            }
            store.abandon();
            return sim;
        }
        store.unmount().expect("a chip without faults");
        sim
    }

    fn calls(&self) -> &[Call] {
        &self.calls
    }

    fn begin(&self, found: &Content) -> Vec<Content> {
        vec![found.clone()]
    }

    fn under_way(&self, owed: &Vec<Content>, call: Call) -> Option<Vec<Content>> {
        let mut owed = owed.clone();
        let mut after = self.there(&owed);
        let records = &mut after.records;
        match call {
            Call::Put(key, size) => drop(records.insert(key, (size, next(records, key)))),
            Call::Delete(key) => drop(records.remove(&key)),
            Call::Batch(put, deleted) => {
                records.insert(put, (8, next(records, put)));
                records.remove(&deleted);
            }
            Call::Snapshot if after.snapshots.len() < self.snapshots_max() => after.snapshots.push(records.clone()),
            Call::Release if !after.snapshots.is_empty() => drop(after.snapshots.remove(0)),
            Call::ReleaseNewest if after.snapshots.len() > 1 => drop(after.snapshots.pop()),
            Call::Snapshot | Call::Release | Call::ReleaseNewest => return None,
            Call::Sync | Call::Merge | Call::Idle(_) | Call::Unmount => {}
        }
        if owed.last() != Some(&after) {
            owed.push(after);
        }
        Some(owed)
    }

    fn done(&self, under_way: &Vec<Content>, call: Call) -> Vec<Content> {
        let is_durable = match call {
            Call::Idle(_) => false,
            Call::Unmount | Call::Sync | Call::Merge => true,
            Call::Snapshot | Call::Release | Call::ReleaseNewest => true,
            Call::Put(..) | Call::Delete(_) | Call::Batch(..) => self.options.durability == Durability::Immediate,
        };
        if is_durable { vec![self.there(under_way)] } else { under_way.clone() }
    }

    fn there(&self, owed: &Vec<Content>) -> Content {
        debug_assert!(!owed.is_empty(), "something is durable");
        owed.last().cloned().unwrap_or_default()
    }

    fn allows(&self, owed: &Vec<Content>, found: &Content) -> bool {
        owed.contains(found)
    }

    fn hash(&self, owed: &Vec<Content>, hash: &mut DefaultHasher) {
        owed.hash(hash);
    }

    fn leaves(&self, call: Call) -> bool {
        call == Call::Unmount
    }

    fn play(&self, chip: &mut Sim, calls: &[Call]) -> Played<Content> {
        let mut memory = self.memory(chip);
        let mut place = match Store::open(&mut *chip, self.options, &mut memory) {
            Ok(store) => Some(store),
            Err(error) => {
                let opened = chip.operation_count();
                return Played { opened, begun: opened, ending: Ending::Failed(error.to_string()), content: None };
            }
        };
        let count =
            |place: &Option<Store<'_, &mut Sim>>| place.as_ref().map_or(0, |store| store.nand().operation_count());
        let opened = count(&place);
        let (mut begun, mut ending) = (opened, Ending::Done);
        for &call in calls {
            begun = count(&place);
            let done = if call == Call::Unmount {
                Store::unmount_in(&mut place)
            } else {
                place.as_mut().map_or(Ok(()), |store| make(store, call))
            };
            ending = match done {
                Ok(()) => Ending::Done,
                Err(Error::Full) if matches!(call, Call::Put(..) | Call::Batch(..) | Call::Snapshot) => Ending::Refused,
                Err(error) => Ending::Failed(error.to_string()),
            };
        }
        let mut content = None;
        if let (Some(store), Ending::Done | Ending::Refused) = (&mut place, &ending) {
            match read(store) {
                Ok(found) => content = Some(found),
                Err(error) => ending = Ending::Failed(format!("read afterwards: {error}")),
            }
        }
        Played { opened, begun, ending, content }
    }

    fn look(&self, chip: &mut Sim) -> Result<Content, String> {
        let before = chip.counters().reads;
        let mut memory = self.memory(chip);
        let mut store = Store::open(chip, self.options, &mut memory).map_err(|error| format!("open: {error}"))?;
        let reads = store.nand().counters().reads - before;
        if reads > crate::MOUNT_READS_MAX {
            return Err(format!("the open read {reads} pages"));
        }
        let mut violation = None;
        store
            .verify(&mut |found| {
                violation.get_or_insert_with(|| found.to_string());
            })
            .map_err(|error| format!("verify: {error}"))?;
        match violation {
            Some(violation) => Err(format!("verify: {violation}")),
            None => read(&mut store).map_err(|error| format!("read: {error}")),
        }
    }

    fn has_headers(&self) -> bool {
        true
    }
}

fn make(store: &mut Store<'_, &mut Sim>, call: Call) -> Result<(), Error<SimError>> {
    let first = |store: &mut Store<'_, &mut Sim>, key: u8| -> Result<u8, Error<SimError>> {
        let mut byte = [0];
        Ok(store.read(&[key], 0, &mut byte)?.map_or(0, |_| 1 - byte[0]))
    };
    match call {
        Call::Put(key, size) => {
            let value = value(size, first(store, key)?);
            store.put(&[key], &value).map(drop)
        }
        Call::Delete(key) => store.delete(&[key]).map(drop),
        Call::Batch(put, deleted) => {
            let value = value(8, first(store, put)?);
            let mut edits = [Edit { key: &[put], value: Some(&value[..]) }, Edit { key: &[deleted], value: None }];
            edits.sort_by_key(|edit| edit.key);
            store.batch(&edits)
        }
        Call::Sync => store.sync(),
        Call::Merge => store.merge(),
        Call::Snapshot => store.snapshot().map(drop),
        Call::Release => snapshots(store).first().map_or(Ok(()), |&snapshot| store.release(snapshot)),
        Call::ReleaseNewest => snapshots(store).last().map_or(Ok(()), |&snapshot| store.release(snapshot)),
        Call::Idle(pages) => store.idle(pages).map(drop),
        Call::Unmount => Ok(()),
    }
}

/// The snapshots, the oldest first.
fn snapshots(store: &Store<'_, &mut Sim>) -> Vec<Snapshot> {
    store.snapshots().collect()
}

fn read(store: &mut Store<'_, &mut Sim>) -> Result<Content, Error<SimError>> {
    let mut content = Content::default();
    let mut keys = Vec::new();
    store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        keys.push(entry.key.to_vec());
        ControlFlow::Continue(())
    })?;
    for key in keys {
        let mut value = vec![0; store.value_len(&key)?.unwrap_or_default()];
        store.read(&key, 0, &mut value)?;
        content.records.insert(key[0], seen(&value));
    }
    for snapshot in snapshots(store) {
        let mut keys = Vec::new();
        let mut view = store.at(&snapshot);
        view.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            keys.push(entry.key.to_vec());
            ControlFlow::Continue(())
        })?;
        let mut kept = Records::new();
        for key in keys {
            let mut value = vec![0; view.value_len(&key)?.unwrap_or_default()];
            view.read(&key, 0, &mut value)?;
            kept.insert(key[0], seen(&value));
        }
        content.snapshots.push(kept);
    }
    Ok(content)
}

/// The size of a value and its first byte; a byte that no value has where it is not all of one.
fn seen(value: &[u8]) -> (u16, u8) {
    let first = value.first().copied().unwrap_or_default();
    (value.len() as u16, if value.iter().all(|&byte| byte == first) { first } else { u8::MAX })
}
