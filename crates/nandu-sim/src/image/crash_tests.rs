//! Every way to cut a commit, against what the container held before and after it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use super::container::{Container, NOTE_SIZE, RECORD_COUNT};
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
    bytes: Rc<RefCell<Vec<u8>>>,
    events: Rc<RefCell<Vec<Event>>>,
}

impl Recorder {
    fn holding(bytes: Vec<u8>) -> Recorder {
        Recorder { bytes: Rc::new(RefCell::new(bytes)), events: Rc::default() }
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
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.bytes.borrow().len() as u64)
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.borrow();
        let from = bytes.get(offset as usize..offset as usize + buf.len());
        buf.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let event = Event::Write(offset, data.to_vec());
        apply(&mut self.bytes.borrow_mut(), &event);
        self.events.borrow_mut().push(event);
        Ok(())
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        let event = Event::SetSize(size);
        apply(&mut self.bytes.borrow_mut(), &event);
        self.events.borrow_mut().push(event);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.events.borrow_mut().push(Event::Sync);
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

/// The note and the records of a block.
type Block = ([u8; NOTE_SIZE], [Vec<u8>; RECORD_COUNT]);

/// What a container holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Content {
    state: Vec<u8>,
    blocks: BTreeMap<u32, Block>,
}

fn content_of(bytes: &[u8]) -> Result<Content, ImageProblem> {
    let mut container = Container::open(Recorder::holding(bytes.to_vec()))?;
    let mut content = Content { state: container.read_state()?, blocks: BTreeMap::new() };
    let notes: Vec<_> = container.entries().map(|(block, entry)| (block, entry.note)).collect();
    for (block, note) in notes {
        let mut records = [Vec::new(), Vec::new()];
        for (which, record) in records.iter_mut().enumerate() {
            container.read_record(block, which, record)?;
        }
        content.blocks.insert(block, (note, records));
    }
    Ok(content)
}

/// Commits a random change to what `bytes` holds; returns what was done, and what is held after it.
fn random_commit(bytes: &[u8], chance: &mut Chance) -> (Vec<Event>, Content) {
    let recorder = Recorder::holding(bytes.to_vec());
    let mut content = if bytes.is_empty() { Content::default() } else { content_of(bytes).unwrap() };
    let mut container = match bytes {
        [] => Container::create(recorder.clone()),
        _ => Container::open(recorder.clone()).unwrap(),
    };
    let mut commit = container.begin().unwrap();
    for _ in 0..1 + chance.below(4) {
        let block = chance.below(6) as u32;
        let note = [chance.below(256) as u8; NOTE_SIZE];
        commit.put_note(block, note);
        let held = content.blocks.entry(block).or_insert((note, [Vec::new(), Vec::new()]));
        held.0 = note;
        for which in 0..chance.below(RECORD_COUNT + 1) {
            let record: Vec<u8> = (0..chance.below(300)).map(|_| chance.below(256) as u8).collect();
            commit.put_record(block, which, &record).unwrap();
            held.1[which] = record;
        }
    }
    content.state = (0..chance.below(200)).map(|_| chance.below(256) as u8).collect();
    commit.finish(&content.state).unwrap();
    let events = recorder.events.borrow().clone();
    (events, content)
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

#[test]
fn a_settled_file_is_refused_if_shortened_or_if_any_byte_in_use_is_flipped() {
    let mut chance = Chance(1);
    let recorder = Recorder::default();
    let mut container = Container::create(recorder.clone());
    let mut commit = container.begin().unwrap();
    for (block, size) in [(0, 100), (5, 33)] {
        commit.put_note(block, [1; NOTE_SIZE]);
        commit.put_record(block, 0, &vec![7; size]).unwrap();
        commit.put_record(block, 1, &vec![9; size]).unwrap();
    }
    commit.finish(b"state").unwrap();
    let bytes = recorder.bytes.borrow().clone();
    for size in 0..bytes.len() {
        let problem = content_of(&bytes[..size]).unwrap_err();
        let named = matches!(problem, ImageProblem::CutShort { .. });
        assert!(named, "{size} bytes of {}: {problem}", bytes.len());
    }
    for place in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << chance.below(8);
        // Bytes between records belong to none and have no meaning.
        match content_of(&flipped) {
            Err(ImageProblem::NotAnImage | ImageProblem::Damaged(_)) => {}
            Err(problem) => panic!("byte {place}: {problem}"),
            Ok(content) => {
                assert!(place >= 4096 && bytes[place] == 0, "byte {place} may be flipped");
                assert_eq!(content, content_of(&bytes).unwrap());
            }
        }
    }
}

#[test]
fn a_failed_commit_closes_the_container_only_if_its_outcome_is_unknown() {
    struct Failing {
        inner: Recorder,
        writes_left: Rc<RefCell<usize>>,
    }
    impl Medium for Failing {
        fn size(&mut self) -> io::Result<u64> {
            self.inner.size()
        }
        fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.inner.read_at(offset, buf)
        }
        fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
            let mut left = self.writes_left.borrow_mut();
            *left = left.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            self.inner.write_at(offset, data)
        }
        fn set_size(&mut self, size: u64) -> io::Result<()> {
            self.inner.set_size(size)
        }
        fn sync(&mut self) -> io::Result<()> {
            self.inner.sync()
        }
    }

    let (events, old) = random_commit(&[], &mut Chance(3));
    let bytes = replay(&[], &events);
    // The writes of this commit: block, directory, state, trailer, header.
    for writes in 0..5 {
        let inner = Recorder::holding(bytes.clone());
        let writes_left = Rc::new(RefCell::new(writes));
        let mut container =
            Container::open(Failing { inner: inner.clone(), writes_left: writes_left.clone() }).unwrap();
        let mut commit = container.begin().unwrap();
        let failed = commit.put_record(1, 0, b"one").is_err() || commit.finish(b"new").is_err();
        assert!(failed);
        assert_eq!(content_of(&inner.bytes.borrow()).unwrap(), old, "after {writes} writes");
        *writes_left.borrow_mut() = usize::MAX;
        match container.begin() {
            Ok(commit) => commit.finish(b"later").unwrap(),
            Err(problem) => {
                assert!(writes == 4 && matches!(problem, ImageProblem::Poisoned), "after {writes} writes: {problem}");
                continue;
            }
        }
        assert_eq!(content_of(&inner.bytes.borrow()).unwrap().state, b"later");
    }
}
