//! Every way to cut a commit, against what the container held before and after it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::container::{Container, NOTE_SIZE, Record, is_content};
use super::error::ImageProblem;
use super::medium::Medium;

#[derive(Clone, Debug)]
enum Event {
    Write(u64, Vec<u8>),
    SetSize(u64),
    Sync,
}

/// A medium in memory that keeps a record of what was done to it.
#[derive(Clone, Default)]
struct Recorder {
    bytes: Arc<Mutex<Vec<u8>>>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Recorder {
    fn holding(bytes: Vec<u8>) -> Recorder {
        Recorder { bytes: Arc::new(Mutex::new(bytes)), events: Arc::default() }
    }
}

fn apply(bytes: &mut Vec<u8>, event: &Event) {
    match event {
        Event::Write(offset, data) => {
            let end = *offset as usize + data.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset as usize..end].copy_from_slice(data);
        }
        Event::SetSize(size) => bytes.resize(*size as usize, 0),
        Event::Sync => {}
    }
}

impl Medium for Recorder {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        let from = bytes.get(offset as usize..offset as usize + buf.len());
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let event = Event::Write(offset, data.to_vec());
        apply(&mut self.bytes.lock().unwrap(), &event);
        self.events.lock().unwrap().push(event);
        Ok(())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        let event = Event::SetSize(size);
        apply(&mut self.bytes.lock().unwrap(), &event);
        self.events.lock().unwrap().push(event);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.events.lock().unwrap().push(Event::Sync);
        Ok(())
    }
}

/// Small numbers from a seed; the order in which a test tries things need not be better than this.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

/// Bytes of the content of a page in these tests.
const CONTENT_SIZE: usize = 100;

/// The note, the record and the contents of a block.
type Block = ([u8; NOTE_SIZE], Vec<u8>, Vec<Vec<u8>>);

/// What a container holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Content {
    state: Vec<u8>,
    blocks: BTreeMap<u32, Block>,
}

fn content_of(bytes: &[u8]) -> Result<Content, ImageProblem> {
    let recorder = Recorder::holding(bytes.to_vec());
    let container = Container::open(Arc::new(recorder.clone()))?;
    let mut content = Content { state: container.read_state()?, blocks: BTreeMap::new() };
    for (block, entry) in container.entries() {
        let mut record = Record::default();
        container.read_record(block, &mut record)?;
        let mut contents = Vec::new();
        for &place in &record.places {
            let mut bytes = vec![0; CONTENT_SIZE];
            if !is_content(&recorder, place, &mut bytes)? {
                return Err(ImageProblem::Damaged(super::ImagePart::Block(block)));
            }
            contents.push(bytes);
        }
        content.blocks.insert(block, (entry.note, record.bytes, contents));
    }
    Ok(content)
}

/// Commits a random change to what `bytes` holds; returns what was done, and what is held after it.
fn random_commit(bytes: &[u8], chance: &mut Chance) -> (Vec<Event>, Content) {
    let recorder = Recorder::holding(bytes.to_vec());
    let mut content = if bytes.is_empty() { Content::default() } else { content_of(bytes).unwrap() };
    let mut container = match bytes {
        [] => Container::create(Arc::new(recorder.clone()), CONTENT_SIZE as u32),
        _ => Container::open(Arc::new(recorder.clone())).unwrap(),
    };
    let old: BTreeMap<u32, Vec<_>> =
        container.entries().map(|(block, _)| (block, places_of(&container, block))).collect();
    let mut commit = container.begin(false).unwrap();
    let drops_all = chance.below(8) == 0;
    if drops_all {
        commit.leave_all().unwrap();
        content.blocks.clear();
    }
    for block in 0..6 {
        if chance.below(2) == 0 {
            continue;
        }
        let note = [chance.below(256) as u8; NOTE_SIZE];
        let held = content.blocks.entry(block).or_insert((note, Vec::new(), Vec::new()));
        let kept = if drops_all { &[][..] } else { old.get(&block).map_or(&[][..], |places| places) };
        let mut places = Vec::new();
        let mut contents = Vec::new();
        for (&place, bytes) in kept.iter().zip(&held.2) {
            match chance.below(3) {
                0 => commit.leave_content(place),
                _ => {
                    places.push(place);
                    contents.push(bytes.clone());
                }
            }
        }
        for _ in 0..chance.below(3) {
            let bytes: Vec<u8> = (0..CONTENT_SIZE).map(|_| chance.below(256) as u8).collect();
            places.push(commit.write_content(&bytes).unwrap());
            contents.push(bytes);
        }
        let record: Vec<u8> = (0..chance.below(300)).map(|_| chance.below(256) as u8).collect();
        commit.put(block, note, &places, &record).unwrap();
        *held = (note, record, contents);
    }
    content.state = (0..1 + chance.below(200)).map(|_| chance.below(256) as u8).collect();
    commit.finish(&content.state).unwrap();
    if chance.below(3) == 0 {
        container.settle().unwrap();
    }
    let events = recorder.events.lock().unwrap().clone();
    (events, content)
}

fn places_of(container: &Container<Recorder>, block: u32) -> Vec<crate::state::Place> {
    let mut record = Record::default();
    container.read_record(block, &mut record).unwrap();
    record.places
}

/// What may be on the medium if the machine stops after some events: all that was synced, and of the rest an arbitrary
/// part.
fn cut_states(before: &[u8], events: &[Event], chance: &mut Chance) -> Vec<Vec<u8>> {
    let mut states = Vec::new();
    for done in 0..=events.len() {
        let synced = events[..done].iter().rposition(|event| matches!(event, Event::Sync)).map_or(0, |at| at + 1);
        let mut sure = before.to_vec();
        events[..synced].iter().for_each(|event| apply(&mut sure, event));
        // A killed process: everything it wrote arrives, the write it died in perhaps in part.
        let mut prefix = sure.clone();
        events[synced..done].iter().for_each(|event| apply(&mut prefix, event));
        states.push(prefix.clone());
        if let Some(Event::Write(offset, data)) = events.get(done) {
            for torn in [1, 8, 9, 40, data.len() / 2, data.len().saturating_sub(1)] {
                let mut state = prefix.clone();
                apply(&mut state, &Event::Write(*offset, data[..torn.min(data.len())].to_vec()));
                states.push(state);
            }
        }
        // A machine that lost its power: any part of what was not synced is missing, in whole events or in bytes.
        for _ in 0..4 {
            let mut state = sure.clone();
            for event in &events[synced..(done + 1).min(events.len())] {
                match event {
                    _ if chance.below(3) == 0 => {}
                    Event::Write(offset, data) if chance.below(2) == 0 => {
                        let end = *offset as usize + data.len();
                        if state.len() < end {
                            state.resize(end, 0);
                        }
                        for (index, &byte) in data.iter().enumerate() {
                            if chance.below(2) == 0 {
                                state[*offset as usize + index] = byte;
                            }
                        }
                    }
                    event => apply(&mut state, event),
                }
            }
            states.push(state);
        }
    }
    states
}

fn replay(before: &[u8], events: &[Event]) -> Vec<u8> {
    let mut bytes = before.to_vec();
    events.iter().for_each(|event| apply(&mut bytes, event));
    bytes
}

#[test]
fn a_cut_commit_leaves_the_old_content_or_the_new() {
    for seed in 0..30 {
        let mut chance = Chance(seed);
        let (events, mut old) = random_commit(&[], &mut chance);
        let mut bytes = replay(&[], &events);
        assert_eq!(content_of(&bytes).unwrap(), old);
        for _ in 0..6 {
            let (events, new) = random_commit(&bytes, &mut chance);
            let mut seen = [false; 2];
            for state in cut_states(&bytes, &events, &mut chance) {
                let found = content_of(&state).unwrap();
                assert!(found == old || found == new, "seed {seed}: neither the old content nor the new");
                seen[usize::from(found == new)] = true;
            }
            assert_eq!(seen, [true; 2]);
            bytes = replay(&bytes, &events);
            old = new;
            assert_eq!(content_of(&bytes).unwrap(), old);
        }
    }
}

#[test]
fn a_commit_cut_after_another_cut_commit_is_as_safe() {
    for seed in 0..8 {
        let mut chance = Chance(seed);
        let (events, _) = random_commit(&[], &mut chance);
        let mut bytes = replay(&[], &events);
        let (events, _) = random_commit(&bytes, &mut chance);
        bytes = replay(&bytes, &events);
        let (events, _) = random_commit(&bytes, &mut chance);
        for first in cut_states(&bytes, &events, &mut chance) {
            let old = content_of(&first).unwrap();
            let (events, new) = random_commit(&first, &mut chance);
            for second in cut_states(&first, &events, &mut chance) {
                let found = content_of(&second).unwrap();
                assert!(found == old || found == new, "seed {seed}: neither the old content nor the new");
            }
        }
    }
}

/// A container at rest, of two blocks.
fn at_rest(is_settled: bool) -> Vec<u8> {
    let recorder = Recorder::default();
    let mut container = Container::create(Arc::new(recorder.clone()), CONTENT_SIZE as u32);
    for (block, size) in [(0, 100), (5, 33)] {
        let mut commit = container.begin(false).unwrap();
        let place = commit.write_content(&[3; CONTENT_SIZE]).unwrap();
        commit.put(block, [1; NOTE_SIZE], &[place], &vec![7; size]).unwrap();
        commit.finish(b"state").unwrap();
    }
    if is_settled {
        container.settle().unwrap();
    }
    recorder.bytes.lock().unwrap().clone()
}

#[test]
fn a_settled_file_is_refused_if_shortened_or_if_any_byte_in_use_is_flipped() {
    let mut chance = Chance(1);
    let bytes = at_rest(true);
    for size in 0..bytes.len() {
        let problem = content_of(&bytes[..size]).unwrap_err();
        let named = matches!(problem, ImageProblem::CutShort { .. });
        assert!(named, "{size} bytes of {}: {problem}", bytes.len());
    }
    let mut refused = 0;
    for place in 8192..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << chance.below(8);
        // Bytes between records belong to none and have no meaning.
        match content_of(&flipped) {
            Err(ImageProblem::Damaged(_)) => refused += 1,
            Err(problem) => panic!("byte {place}: {problem}"),
            Ok(content) => assert_eq!(content, content_of(&bytes).unwrap()),
        }
    }
    // The journal has one entry: the first commit made the directory.
    assert_eq!(refused, 2 * 64 + 2 * (12 + CONTENT_SIZE) + 100 + 33 + b"state".len());
}

#[test]
fn a_settled_file_outlives_damage_to_one_of_its_headers() {
    let bytes = at_rest(true);
    for place in 0..8192 {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        assert_eq!(content_of(&flipped).unwrap(), content_of(&bytes).unwrap(), "byte {place}");
        flipped[(place + 4096) % 8192] ^= 1;
        assert!(matches!(content_of(&flipped), Err(ImageProblem::NotAnImage | ImageProblem::Damaged(_))));
    }
    // One of the last commit before the one that was cut has no second header; it is the state before or after.
    let bytes = at_rest(false);
    let counts: Vec<usize> = [0, 4096]
        .map(|header: usize| {
            let mut damaged = bytes.clone();
            damaged[header + 100] ^= 1;
            content_of(&damaged).unwrap().blocks.len()
        })
        .into();
    assert_eq!(counts, [1, 2]);
}

/// A medium that takes so many more writes and then is full.
struct Failing {
    inner: Recorder,
    writes_left: Arc<AtomicUsize>,
    syncs: bool,
}

impl Medium for Failing {
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let taken = self.writes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.map_err(|_| io::ErrorKind::StorageFull)?;
        self.inner.write_at(offset, data)
    }
    fn set_size(&self, size: u64) -> io::Result<()> {
        self.inner.set_size(size)
    }
    fn sync(&self) -> io::Result<()> {
        if self.syncs { self.inner.sync() } else { Err(io::ErrorKind::Other.into()) }
    }
}

#[test]
fn a_failed_commit_closes_the_container_only_if_its_outcome_is_unknown() {
    let (events, old) = random_commit(&[], &mut Chance(3));
    let bytes = replay(&[], &events);
    // The writes of this commit: content, record, state, entries, header.
    for (writes, syncs) in [(0, true), (1, true), (2, true), (3, true), (4, true), (5, false)] {
        let inner = Recorder::holding(bytes.clone());
        let writes_left = Arc::new(AtomicUsize::new(writes));
        let medium = Failing { inner: inner.clone(), writes_left: Arc::clone(&writes_left), syncs };
        let mut container = Container::open(Arc::new(medium)).unwrap();
        let outcome = container.begin(false).and_then(|mut commit| {
            let place = commit.write_content(&[2; CONTENT_SIZE])?;
            commit.put(9, [1; NOTE_SIZE], &[place], b"one")?;
            commit.finish(b"new")
        });
        assert!(outcome.is_err());
        if syncs {
            assert_eq!(content_of(&inner.bytes.lock().unwrap()).unwrap(), old, "after {writes} writes");
        }
        writes_left.store(usize::MAX, Ordering::Relaxed);
        match container.begin(false) {
            Ok(commit) => commit.finish(b"later").unwrap(),
            Err(problem) => {
                assert!(writes >= 4 && matches!(problem, ImageProblem::Poisoned), "after {writes} writes: {problem}");
                continue;
            }
        }
        assert_eq!(content_of(&inner.bytes.lock().unwrap()).unwrap().state, b"later");
    }
}

#[test]
fn nothing_is_written_over_while_a_chip_may_read_it() {
    let recorder = Recorder::default();
    let mut container = Container::create(Arc::new(recorder.clone()), CONTENT_SIZE as u32);
    let mut commit = container.begin(false).unwrap();
    let first = commit.write_content(&[1; CONTENT_SIZE]).unwrap();
    commit.put(0, [0; NOTE_SIZE], &[first], b"").unwrap();
    commit.finish(b"state").unwrap();
    let mut last = first;
    for round in 0..200 {
        let mut commit = container.begin(true).unwrap();
        commit.leave_content(last);
        last = commit.write_content(&[2; CONTENT_SIZE]).unwrap();
        commit.put(0, [0; NOTE_SIZE], &[last], b"").unwrap();
        commit.finish(b"state").unwrap();
        assert!(is_content(&recorder, first, &mut [0; CONTENT_SIZE]).unwrap(), "round {round}");
    }
}
