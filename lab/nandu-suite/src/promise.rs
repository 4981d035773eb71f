//! What may be found after a cut, as the file system declares it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nandu_files::Order;

use crate::model::Model;
use crate::operation::Op;
use crate::seen::{Everything, Seen};

/// What may be found after a cut.
#[derive(Clone, Debug, Default)]
pub struct Promise {
    /// What there was when everything was durable last, and after each operation since, the one under way included.
    states: Vec<(Model, Everything)>,
    /// Which of these is the first whose names may be found.
    names_from: usize,
    /// And of an inode, the first whose content and attributes may be.
    from: BTreeMap<usize, usize>,
    /// Operations begun, over all runs on this chip.
    pub count: u64,
}

impl Promise {
    /// Everything is durable.
    pub fn begin(&mut self, model: &Model) {
        *self = Promise { states: vec![(model.clone(), model.everything())], count: self.count, ..Promise::default() };
    }

    /// An operation is under way that makes this.
    pub fn may_be(&mut self, model: &Model) {
        let seen = model.everything();
        // What changes nothing that is seen does not stand between two writes either.
        if self.states.last().is_none_or(|(_, last)| *last != seen) {
            self.states.push((model.clone(), seen));
        }
    }

    /// An operation has succeeded, after which the volume is what may be last.
    pub fn is_done(&mut self, op: &Op) {
        let Some((model, seen)) = self.states.last() else { return };
        let capabilities = model.capabilities();
        if !op.is_durable(capabilities) {
            return;
        }
        if capabilities.cuts.order == Order::Volume || matches!(op, Op::Sync | Op::Idle) {
            let last = (model.clone(), seen.clone());
            *self = Promise { states: vec![last], count: self.count, ..Promise::default() };
            return;
        }
        let last = self.states.len() - 1;
        self.names_from = last;
        let concerned = match op {
            // Nothing is done.
            Op::Rename(from, to, _) if from == to => None,
            Op::Fsync(path) | Op::Create(path) | Op::Mkdir(path) | Op::Rename(_, path, _) => model.id(path),
            _ => None,
        };
        if let Some(id) = concerned {
            self.from.insert(id, last);
        }
    }

    /// Whether this may be found.
    pub fn allows(&self, found: &Everything) -> bool {
        let Some((model, last)) = self.states.last() else { return true };
        match model.capabilities().cuts.order {
            _ if found == last => true,
            Order::Volume => {
                self.states.iter().any(|(_, seen)| seen == found) || {
                    let states: Vec<Model> = self.states.iter().map(|(model, _)| model.clone()).collect();
                    is_allowed(found, &states)
                }
            }
            Order::Names => self.states[self.names_from..].iter().any(|(model, _)| self.allows_names(found, model)),
        }
    }

    /// What differs, in words, if this may not be found.
    pub fn check(&self, found: &Everything) -> Result<(), String> {
        if self.allows(found) {
            return Ok(());
        }
        let (first, last) = (&self.states[0].1, &self.states[self.states.len() - 1].1);
        let differs = |path: &&Vec<u8>| found.get(*path) != first.get(*path) || found.get(*path) != last.get(*path);
        let paths: BTreeSet<&Vec<u8>> = found.keys().chain(first.keys()).chain(last.keys()).collect();
        let mut text = String::from("found is not what may be");
        for path in paths.into_iter().filter(differs) {
            let (found, first, last) = (found.get(path), first.get(path), last.get(path));
            let _ = write!(text, "\n{}: found {found:?}\n  first {first:?}\n  last {last:?}", path.escape_ascii());
        }
        let (names_from, from, count) = (self.names_from, &self.from, self.states.len());
        let _ = write!(text, "\n{count} states, names from {names_from} on, inodes from {from:?}");
        Err(text)
    }

    /// Whether this has the names of a model, and at each of them what may be found of the inode.
    fn allows_names(&self, found: &Everything, model: &Model) -> bool {
        let expected = model.everything();
        let is_same =
            |path: &Vec<u8>, there: &Seen| expected.get(path).is_some_and(|seen| seen.same_as == there.same_as);
        let ids = model.ids();
        found.len() == ids.len()
            && found.iter().all(|(path, there)| is_same(path, there) && self.allows_inode(there, ids[path]))
    }

    /// Whether this may be found of an inode, wherever its name was meanwhile.
    fn allows_inode(&self, there: &Seen, id: usize) -> bool {
        let from = self.from.get(&id).copied().unwrap_or(0);
        let there = Seen { same_as: Vec::new(), ..there.clone() };
        let versions: Vec<(Option<Seen>, bool)> =
            self.states[from..].iter().map(|(model, _)| (model.seen(id), model.written == Some(id))).collect();
        let is_version = |seen: &Option<Seen>| seen.as_ref() == Some(&there);
        let is_between = |pair: &[(Option<Seen>, bool)]| match pair {
            [(Some(before), _), (Some(after), true)] => is_seen_between(&there, &[before, after]),
            _ => false,
        };
        versions.iter().any(|(seen, _)| is_version(seen)) || versions.windows(2).any(is_between)
    }
}

/// Whether a write that made the last of these versions of the others can have left this.
fn is_seen_between(there: &Seen, versions: &[&Seen]) -> bool {
    // A size is never without its bytes, so that zeros are there only if somebody wrote them or left a hole.
    let has = |version: &[u8], at: usize, found: u8| version.get(at) == Some(&found);
    let mut rest = there.clone();
    let last = versions[versions.len() - 1];
    (rest.content, rest.size) = (last.content.clone(), last.size);
    (rest.times[1], rest.times[2]) = (last.times[1], last.times[2]);
    let sizes = versions.iter().map(|version| version.content.len());
    rest == *last
        && versions.iter().any(|version| version.times == there.times)
        && there.size == there.content.len() as u64
        && sizes.clone().min() <= Some(there.content.len())
        && Some(there.content.len()) <= sizes.max()
        && there
            .content
            .iter()
            .enumerate()
            .all(|(at, &found)| versions.iter().any(|version| has(&version.content, at, found)))
}

/// Whether a write between two states, in which nothing else changed, can have left this.
fn is_between(found: &Everything, states: &[Model], written: usize) -> bool {
    let (Some(first), Some(last)) = (states.first(), states.last()) else { return false };
    let paths = last.paths(written);
    let seen: Vec<Everything> = states.iter().map(Model::everything).collect();
    let expected = last.everything();
    let is_same = |path: &Vec<u8>| paths.contains(path) || found.get(path) == expected.get(path);
    if found.len() != expected.len() || !expected.keys().all(is_same) || first.paths(written) != paths {
        return false;
    }
    paths.iter().all(|path| {
        let versions: Vec<_> = seen.iter().map(|state| &state[path]).collect();
        found.get(path).is_some_and(|there| is_seen_between(there, &versions))
    })
}

/// Whether this may be found where these are the states since the last that was durable, and changes come to be there in the order of the volume.
pub fn is_allowed(found: &Everything, states: &[Model]) -> bool {
    if states.iter().any(|state| state.everything() == *found) {
        return true;
    }
    states.windows(2).any(|pair| pair[1].written.is_some_and(|written| is_between(found, pair, written)))
}
