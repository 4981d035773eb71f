//! A copy of an image that somebody else may be writing to.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Progress;
use super::container::{Commit, Container, Entry, Record, is_content};
use super::error::{ImageError, ImageProblem};
use super::medium::Medium;
use super::publish;
use crate::state::Place;

/// How often a state of the image is looked for. Each time less has changed than the time before, unless the image is
/// written to faster than it can be read.
const TRIES_MAX: u32 = 1000;

/// How long is waited between two tries that found the same commit.
const PAUSE: Duration = Duration::from_millis(5);

/// What was copied of a block.
struct Copied {
    from: Entry,
    places: Vec<Place>,
}

/// Copies an image to a name that nothing has yet, as a commit left it, while another process may work on it: that one is neither
/// waited for nor held up. The copy is what the image would be had the process been killed after that commit, and so may be older
/// than what was not asked to be durable.
///
/// # Errors
///
/// [`Exists`](ImageProblem::Exists); [`InUse`](ImageProblem::InUse) if the image changes faster than it can be read; else as
/// [`ImageFile::open`](super::ImageFile::open).
pub fn backup(path: impl AsRef<Path>, copy: impl AsRef<Path>, progress: Progress<'_>) -> Result<(), ImageError> {
    let (path, copy) = (path.as_ref(), copy.as_ref());
    let source = open(path).map_err(|problem| ImageError::new(path, problem))?;
    publish::publish(copy, false, |file, name| {
        copy_to(&source, file, progress)
            .map_err(|(is_source, problem)| ImageError::new(if is_source { path } else { name }, problem))
    })
}

fn open(path: &Path) -> Result<Arc<File>, ImageProblem> {
    // Opening a pipe would wait for someone at its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(ImageProblem::NotAnImage);
    }
    Ok(Arc::new(File::open(path)?))
}

/// Copies a state of the container. An error is one of the source, or else of the copy.
fn copy_to<M: Medium, O: Medium>(
    source: &Arc<M>,
    target: O,
    progress: Progress<'_>,
) -> Result<(), (bool, ImageProblem)> {
    let of_copy = |problem| (false, problem);
    let (mut from, mut state) = look(source).map_err(|problem| (true, problem))?;
    let mut copy = Container::create(Arc::new(target), from.content_size());
    let mut commit = copy.begin(false).map_err(of_copy)?;
    let mut copied = BTreeMap::new();
    for _ in 0..TRIES_MAX {
        let outcome = copy_blocks(&from, &**source, &mut commit, &mut copied, progress).map_err(of_copy)?;
        if outcome.is_none() {
            commit.finish(&state).map_err(of_copy)?;
            return copy.settle().map_err(of_copy);
        }
        let generation = from.generation();
        (from, state) = look(source).map_err(|problem| (true, problem))?;
        if let (Some(problem), true) = (outcome, from.generation() == generation) {
            // Nobody wrote to it.
            return Err((true, problem));
        }
    }
    Err((true, ImageProblem::InUse))
}

/// A state of the container: what it is besides the blocks, and where they are.
fn look<M: Medium>(source: &Arc<M>) -> Result<(Container<M>, Vec<u8>), ImageProblem> {
    let mut last = ImageProblem::InUse;
    for _ in 0..TRIES_MAX {
        let found = Container::open(Arc::clone(source)).and_then(|mut from| {
            from.leave();
            let state = from.read_state()?;
            Ok((from, state))
        });
        match found {
            Err(
                problem @ (ImageProblem::Damaged(_) | ImageProblem::Invalid { .. } | ImageProblem::CutShort { .. }),
            ) => {
                let is_same = problem.to_string() == last.to_string();
                last = problem;
                if is_same {
                    thread::sleep(PAUSE);
                }
            }
            other => return other,
        }
    }
    Err(last)
}

/// Copies the blocks that are not copied as they are yet. Returns what is wrong with the first that cannot be read: it was written over
/// since, or is damaged.
fn copy_blocks<M: Medium, O: Medium>(
    from: &Container<M>,
    source: &M,
    commit: &mut Commit<'_, O>,
    copied: &mut BTreeMap<u32, Copied>,
    progress: Progress<'_>,
) -> Result<Option<ImageProblem>, ImageProblem> {
    let total = from.entries().count() as u64;
    let mut record = Record::default();
    let mut content = vec![0; from.content_size() as usize];
    for (done, (block, entry)) in (0..).zip(from.entries()) {
        progress(done, total);
        if copied.get(&block).is_some_and(|copied| copied.from == *entry) {
            continue;
        }
        if let Err(problem) = from.read_record(block, &mut record) {
            return Ok(Some(problem));
        }
        for place in copied.remove(&block).into_iter().flat_map(|copied| copied.places) {
            commit.leave_content(place);
        }
        let mut places = Vec::new();
        for &place in &record.places {
            if !is_content(source, place, &mut content)? {
                places.into_iter().for_each(|place| commit.leave_content(place));
                return Ok(Some(ImageProblem::Damaged(super::ImagePart::Block(block))));
            }
            places.push(commit.write_content(&content)?);
        }
        commit.put(block, entry.note, &places, &record.bytes)?;
        copied.insert(block, Copied { from: *entry, places });
    }
    progress(total, total);
    Ok(None)
}
