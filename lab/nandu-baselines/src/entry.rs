//! Entries of a node: a key and either a record's value or the page of a child, four bytes each, as the paper has them.

/// Bytes of an entry in a page.
pub(crate) const ENTRY_SIZE: usize = 8;

/// A key and what stands at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The key; in an index node the lowest key that was in the child when the entry was made.
    pub(crate) key: u32,
    /// The record's value, or the page of the child.
    pub(crate) value: u32,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The entry at a place of a node.
pub(crate) fn entry_at(node: &[u8], index: usize) -> Entry {
    Entry { key: word(node, index * ENTRY_SIZE), value: word(node, index * ENTRY_SIZE + 4) }
}

/// All entries of a node.
pub(crate) fn decode(node: &[u8]) -> impl Iterator<Item = Entry> + '_ {
    (0..node.len() / ENTRY_SIZE).map(|index| entry_at(node, index))
}

/// Writes entries to the beginning of `node`.
pub(crate) fn encode(entries: &[Entry], node: &mut [u8]) {
    for (entry, bytes) in entries.iter().zip(node.chunks_exact_mut(ENTRY_SIZE)) {
        bytes[..4].copy_from_slice(&entry.key.to_le_bytes());
        bytes[4..].copy_from_slice(&entry.value.to_le_bytes());
    }
}

/// How many entries of a node have a key below this one, or up to this one where `inclusive`.
fn rank(node: &[u8], key: u32, inclusive: bool) -> usize {
    let (mut low, mut high) = (0, node.len() / ENTRY_SIZE);
    while low < high {
        let middle = (low + high) / 2;
        let found = word(node, middle * ENTRY_SIZE);
        if found < key || (inclusive && found == key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The value at a key of a leaf.
pub(crate) fn find(node: &[u8], key: u32) -> Option<u32> {
    let index = rank(node, key, false);
    let entry = (index < node.len() / ENTRY_SIZE).then(|| entry_at(node, index))?;
    (entry.key == key).then_some(entry.value)
}

/// The place of the child of an index node in which a key belongs. Keys below all entries belong in the first child.
pub(crate) fn child_index(node: &[u8], key: u32) -> usize {
    rank(node, key, true).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(keys: &[u32]) -> Vec<u8> {
        let entries: Vec<Entry> = keys.iter().map(|&key| Entry { key, value: key + 1 }).collect();
        let mut bytes = vec![0; keys.len() * ENTRY_SIZE];
        encode(&entries, &mut bytes);
        bytes
    }

    #[test]
    fn a_record_is_found_by_its_key_alone() {
        let leaf = node(&[3, 5, u32::MAX - 1]);
        assert_eq!(
            [3, 4, 5, u32::MAX - 1, u32::MAX].map(|key| find(&leaf, key)),
            [Some(4), None, Some(6), Some(u32::MAX), None]
        );
        assert_eq!(find(&[], 3), None);
    }

    #[test]
    fn a_key_belongs_in_the_child_whose_entry_is_not_above_it_or_in_the_first() {
        let inner = node(&[10, 20, 30]);
        assert_eq!([0, 10, 19, 20, 29, 30, u32::MAX].map(|key| child_index(&inner, key)), [0, 0, 0, 1, 1, 2, 2]);
    }
}
