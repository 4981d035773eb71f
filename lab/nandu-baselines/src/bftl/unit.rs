//! Index units: one change of one node each, as they wait in memory and lie on flash.

use crate::entry::Entry;

/// Bytes of a unit on flash.
pub(super) const UNIT_SIZE: usize = 24;

/// No node is higher than this above the leaves: nodes hold six entries or more and keys have 32 bits.
pub(super) const LEVEL_MAX: u8 = 20;

/// No sequence is higher; numbers beyond it are left for counting on.
pub(super) const SEQUENCE_MAX: u64 = u64::MAX >> 1;

/// What a unit does to its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing: the only unit of a base without entries.
    Nothing,
    /// Puts an entry, in place of one with the same key.
    Put(Entry),
    /// Deletes the entry of a key.
    Delete(u32),
    /// Deletes the entries from a key on: the node was split there.
    Truncate(u32),
}

/// The units of one node that were committed together and lie in one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) node: u32,
    pub(super) level: u8,
    /// Place in the list of the node. The first is its base, which makes every group before it void.
    pub(super) ordinal: u8,
    pub(super) sequence: u64,
    pub(super) changes: Vec<Change>,
}

fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Writes the units of groups one behind the other.
pub(super) fn encode(groups: &[Group], body: &mut [u8]) {
    let units = groups.iter().flat_map(|group| group.changes.iter().map(move |change| (group, change)));
    for ((group, change), bytes) in units.zip(body.chunks_exact_mut(UNIT_SIZE)) {
        let (operation, key, value) = match *change {
            Change::Nothing => (0, 0, 0),
            Change::Put(entry) => (1, entry.key, entry.value),
            Change::Delete(key) => (2, key, 0),
            Change::Truncate(key) => (3, key, 0),
        };
        put_word(bytes, 0, group.node);
        put_word(bytes, 4, key);
        put_word(bytes, 8, value);
        bytes[12..16].copy_from_slice(&[operation, group.level, group.ordinal, 0]);
        bytes[16..24].copy_from_slice(&group.sequence.to_le_bytes());
    }
}

/// The groups of so many units; none if one of them cannot be.
pub(super) fn decode(body: &[u8], unit_count: usize) -> Option<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for bytes in body.get(..unit_count * UNIT_SIZE)?.chunks_exact(UNIT_SIZE) {
        let (node, key, value) = (word(bytes, 0), word(bytes, 4), word(bytes, 8));
        let [operation, level, ordinal, zero] = [bytes[12], bytes[13], bytes[14], bytes[15]];
        let sequence = u64::from(word(bytes, 16)) | u64::from(word(bytes, 20)) << 32;
        let change = match operation {
            0 => Change::Nothing,
            1 => Change::Put(Entry { key, value }),
            2 => Change::Delete(key),
            3 => Change::Truncate(key),
            _ => return None,
        };
        if zero != 0 || level > LEVEL_MAX || sequence > SEQUENCE_MAX || node == u32::MAX {
            return None;
        }
        match groups.last_mut().filter(|group| group.node == node && group.sequence == sequence) {
            Some(group) if group.level == level && group.ordinal == ordinal => group.changes.push(change),
            Some(_) => return None,
            None => groups.push(Group { node, level, ordinal, sequence, changes: vec![change] }),
        }
    }
    Some(groups)
}

/// A node as its units make it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) level: u8,
    /// In the order of their keys.
    pub(super) entries: Vec<Entry>,
}

impl Node {
    pub(super) fn find(&self, key: u32) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&key, |entry| entry.key)
    }

    pub(super) fn apply(&mut self, change: Change) {
        match change {
            Change::Nothing => {}
            Change::Put(entry) => match self.find(entry.key) {
                Ok(at) => self.entries[at] = entry,
                Err(at) => self.entries.insert(at, entry),
            },
            Change::Delete(key) => {
                if let Ok(at) = self.find(key) {
                    self.entries.remove(at);
                }
            }
            Change::Truncate(key) => {
                let (Ok(at) | Err(at)) = self.find(key);
                self.entries.truncate(at);
            }
        }
    }

    /// The place of the child in which a key belongs. Keys below all separators belong in the first child.
    pub(super) fn child_index(&self, key: u32) -> usize {
        self.entries.partition_point(|entry| entry.key <= key).saturating_sub(1)
    }

    /// The units that make the node from nothing.
    pub(super) fn base(&self) -> Vec<Change> {
        match self.entries[..] {
            [] => vec![Change::Nothing],
            ref entries => entries.iter().map(|&entry| Change::Put(entry)).collect(),
        }
    }
}
