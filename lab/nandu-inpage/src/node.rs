//! A node as bytes: the page as it is programmed, with all its entries.
//!
//! In memory a node may be larger than a page by the records that are still to be flushed; so its buffer is larger, and the
//! size that the front states may be, too. Everything is checked once, when a page was read; after that accessors cannot fail.

use nandu_media::inpage::record::{Cells, Record};
use nandu_media::inpage::{FLAG_UNBOUNDED, NODE_SIZE, NodeFields};
use nandu_media::{Field, Malformed};

const SIZE_AT: usize = 28;
const COUNT_AT: usize = 44;
const LEVEL_AT: usize = 46;
const FLAGS_AT: usize = 47;
const LOW_SIZE_AT: usize = 50;
const HIGH_SIZE_AT: usize = 51;

/// One entry, and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) key: &'a [u8],
    /// Value, or number of the child.
    pub(crate) content: &'a [u8],
    pub(crate) at: usize,
    pub(crate) size: usize,
}

impl Cell<'_> {
    pub(crate) fn child(&self) -> u32 {
        match self.content {
            [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => 0,
        }
    }
}

/// A node to be looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    bytes: &'a [u8],
    cells: Cells,
}

/// The bound of a node from above.
pub(crate) type High<'a> = Option<&'a [u8]>;

impl<'a> Node<'a> {
    /// A node in memory, or one that was checked.
    pub(crate) fn new(bytes: &'a [u8], cells: Cells) -> Node<'a> {
        Node { bytes, cells }
    }

    /// Checks the content of a page whose front was checked.
    pub(crate) fn parse(bytes: &'a [u8], size: u32, cells: Cells) -> Result<(Node<'a>, NodeFields), Malformed> {
        let bytes = bytes.get(..size as usize).ok_or(Malformed::Size)?;
        let fields = NodeFields::parse(bytes)?;
        let node = Node { bytes, cells };
        node.check()?;
        Ok((node, fields))
    }

    /// Whether entries are whole and strictly ascend.
    pub(crate) fn check(&self) -> Result<(), Malformed> {
        let mut at = self.first();
        let end = self.size();
        let mut before: Option<&[u8]> = None;
        for _ in 0..self.count() {
            let cell = self.read(at).ok_or(Malformed::Range(Field::Entries))?;
            if before.is_some_and(|before| before >= cell.key) {
                return Err(Malformed::Range(Field::Order));
            }
            before = Some(cell.key);
            at += cell.size;
        }
        if at != end {
            return Err(Malformed::Range(Field::EntryCount));
        }
        if self.level() > 0 && self.count() == 0 {
            return Err(Malformed::Range(Field::Children));
        }
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        u32::from_le_bytes([self.bytes[32], self.bytes[33], self.bytes[34], self.bytes[35]])
    }

    pub(crate) fn size(&self) -> usize {
        let bytes = &self.bytes[SIZE_AT..];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(u16::from_le_bytes([self.bytes[COUNT_AT], self.bytes[COUNT_AT + 1]]))
    }

    pub(crate) fn level(&self) -> u8 {
        self.bytes[LEVEL_AT]
    }

    pub(crate) fn low(&self) -> &'a [u8] {
        &self.bytes[NODE_SIZE..NODE_SIZE + usize::from(self.bytes[LOW_SIZE_AT])]
    }

    pub(crate) fn high(&self) -> High<'a> {
        let from = NODE_SIZE + usize::from(self.bytes[LOW_SIZE_AT]);
        let to = from + usize::from(self.bytes[HIGH_SIZE_AT]);
        (self.bytes[FLAGS_AT] & FLAG_UNBOUNDED == 0).then(|| &self.bytes[from..to])
    }

    /// Where the first entry stands.
    pub(crate) fn first(&self) -> usize {
        NODE_SIZE + usize::from(self.bytes[LOW_SIZE_AT]) + usize::from(self.bytes[HIGH_SIZE_AT])
    }

    /// Bytes of an entry if all have the same.
    fn stride(&self) -> Option<usize> {
        match self.cells {
            Cells::Fixed { key, value } => {
                Some(usize::from(key) + if self.level() == 0 { usize::from(value) } else { 4 })
            }
            Cells::Bytes => None,
        }
    }

    /// The entry at a place; `None` at the end, or if it is cut off.
    pub(crate) fn read(&self, at: usize) -> Option<Cell<'a>> {
        let bytes = self.bytes.get(at..self.size())?;
        let (head, key_size, content_size) = match self.cells {
            Cells::Fixed { key, value } => {
                (0, usize::from(key), if self.level() == 0 { usize::from(value) } else { 4 })
            }
            Cells::Bytes if self.level() == 0 => {
                let head = bytes.get(..3)?;
                (3, usize::from(head[0]), usize::from(u16::from_le_bytes([head[1], head[2]])))
            }
            Cells::Bytes => (1, usize::from(*bytes.first()?), 4),
        };
        let size = head + key_size + content_size;
        let bytes = bytes.get(head..size)?;
        let (key, content) = bytes.split_at_checked(key_size)?;
        Some(Cell { key, content, at, size })
    }

    /// All entries from a place on.
    pub(crate) fn cells_from(self, at: usize) -> impl Iterator<Item = Cell<'a>> {
        let mut at = at;
        core::iter::from_fn(move || {
            let cell = self.read(at).filter(|cell| cell.size > 0)?;
            at += cell.size;
            Some(cell)
        })
    }

    /// All entries.
    pub(crate) fn cells(self) -> impl Iterator<Item = Cell<'a>> {
        self.cells_from(self.first())
    }

    /// Where the first entry with a key not below this one stands.
    pub(crate) fn lower_bound(&self, key: &[u8]) -> usize {
        let first = self.first();
        let Some(stride) = self.stride() else {
            return self.cells().find(|cell| cell.key >= key).map_or(self.size(), |cell| cell.at);
        };
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            let at = first + middle * stride;
            if self.bytes[at..at + self.key_width()] < *key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        first + low * stride
    }

    fn key_width(&self) -> usize {
        match self.cells {
            Cells::Fixed { key, .. } => usize::from(key),
            Cells::Bytes => 0,
        }
    }

    /// The entry with this key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<Cell<'a>> {
        self.read(self.lower_bound(key)).filter(|cell| cell.key == key)
    }

    /// The last entry with a key below this one, or not above it.
    pub(crate) fn floor(&self, key: &[u8], strictly: bool) -> Option<Cell<'a>> {
        let at = self.lower_bound(key);
        if !strictly && let Some(cell) = self.read(at).filter(|cell| cell.key == key) {
            return Some(cell);
        }
        self.before(at)
    }

    /// The entry before a place.
    pub(crate) fn before(&self, at: usize) -> Option<Cell<'a>> {
        match self.stride() {
            Some(stride) if at >= self.first() + stride => self.read(at - stride),
            Some(_) => None,
            None => self.cells().take_while(|cell| cell.at < at).last(),
        }
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Option<Cell<'a>> {
        self.before(self.size())
    }

    /// Where the upper half begins: the first entry at which the bytes in front are not fewer than half, but neither the
    /// first nor the end. `None` with fewer than two entries.
    pub(crate) fn middle(&self) -> Option<usize> {
        let half = self.first() + (self.size() - self.first()) / 2;
        let last = self.last()?.at;
        let at = self.cells().map(|cell| cell.at).find(|&at| at >= half).unwrap_or(last);
        (at > self.first()).then_some(at).or_else(|| {
            let second = self.first() + self.read(self.first())?.size;
            (second <= last).then_some(second)
        })
    }
}

/// A node to be changed.
#[derive(Debug)]
pub(crate) struct NodeMut<'a> {
    bytes: &'a mut [u8],
    cells: Cells,
}

impl<'a> NodeMut<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], cells: Cells) -> NodeMut<'a> {
        NodeMut { bytes, cells }
    }

    /// Makes a node without entries.
    pub(crate) fn create(bytes: &'a mut [u8], cells: Cells, id: u32, level: u8, low: &[u8], high: High<'_>) -> Self {
        let high_bytes = high.unwrap_or_default();
        let fields = NodeFields {
            node: id,
            level,
            flags: if high.is_none() { FLAG_UNBOUNDED } else { 0 },
            low_size: low.len() as u8,
            high_size: high_bytes.len() as u8,
            ..NodeFields::default()
        };
        fields.write(bytes);
        let low_end = NODE_SIZE + low.len();
        bytes[NODE_SIZE..low_end].copy_from_slice(low);
        bytes[low_end..low_end + high_bytes.len()].copy_from_slice(high_bytes);
        let mut node = NodeMut { bytes, cells };
        node.set_size(low_end + high_bytes.len());
        node
    }

    pub(crate) fn view(&self) -> Node<'_> {
        Node { bytes: self.bytes, cells: self.cells }
    }

    pub(crate) fn set_size(&mut self, size: usize) {
        self.bytes[SIZE_AT..SIZE_AT + 4].copy_from_slice(&(size as u32).to_le_bytes());
    }

    fn set_count(&mut self, count: usize) {
        self.bytes[COUNT_AT..COUNT_AT + 2].copy_from_slice(&(count as u16).to_le_bytes());
    }

    /// Puts an entry. `None` if the buffer has no room; then nothing has changed.
    pub(crate) fn put(&mut self, key: &[u8], content: &[u8]) -> Option<()> {
        let node = self.view();
        let (at, size, count) = (node.lower_bound(key), node.size(), node.count());
        let old = node.read(at).filter(|cell| cell.key == key).map_or(0, |cell| cell.size);
        let head = match self.cells {
            Cells::Fixed { .. } => 0,
            Cells::Bytes if node.level() == 0 => 3,
            Cells::Bytes => 1,
        };
        let new = head + key.len() + content.len();
        if size - old + new > self.bytes.len() {
            return None;
        }
        self.bytes.copy_within(at + old..size, at + new);
        let entry = &mut self.bytes[at..at + new];
        if head > 0 {
            entry[0] = key.len() as u8;
        }
        if head == 3 {
            entry[1..3].copy_from_slice(&(content.len() as u16).to_le_bytes());
        }
        entry[head..head + key.len()].copy_from_slice(key);
        entry[head + key.len()..].copy_from_slice(content);
        self.set_size(size - old + new);
        self.set_count(count + usize::from(old == 0));
        Some(())
    }

    /// Removes an entry. Whether it was there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let node = self.view();
        let Some(cell) = node.find(key) else { return false };
        let (at, cell_size, size, count) = (cell.at, cell.size, node.size(), node.count());
        self.bytes.copy_within(at + cell_size..size, at);
        self.set_size(size - cell_size);
        self.set_count(count - 1);
        true
    }

    /// Drops all entries with keys from this one on.
    pub(crate) fn truncate(&mut self, key: &[u8]) {
        let node = self.view();
        let at = node.lower_bound(key);
        let dropped = node.cells_from(at).count();
        let count = node.count() - dropped;
        self.set_size(at);
        self.set_count(count);
    }

    /// Does what a record says. `None` if it does not fit this node.
    pub(crate) fn apply(&mut self, record: Record<'_>) -> Option<()> {
        let is_leaf = self.view().level() == 0;
        match record {
            Record::Put(key, value) if is_leaf => self.put(key, value),
            Record::Delete(key) if is_leaf => {
                self.remove(key);
                Some(())
            }
            Record::Link(key, child) if !is_leaf => self.put(key, &child.to_le_bytes()),
            Record::Unlink(key) if !is_leaf => {
                self.remove(key);
                Some(())
            }
            Record::Truncate(key, _) => {
                self.truncate(key);
                Some(())
            }
            Record::Clear => {
                let first = self.view().first();
                self.set_size(first);
                self.set_count(0);
                Some(())
            }
            _ => None,
        }
    }

    /// Sets the upper fence. `None` if the buffer has no room.
    pub(crate) fn set_high(&mut self, high: High<'_>) -> Option<()> {
        let node = self.view();
        let (first, size, low_end) = (node.first(), node.size(), NODE_SIZE + node.low().len());
        let bytes = high.unwrap_or_default();
        let new_first = low_end + bytes.len();
        let new_size = new_first + (size - first);
        if new_size > self.bytes.len() {
            return None;
        }
        self.bytes.copy_within(first..size, new_first);
        self.bytes[low_end..new_first].copy_from_slice(bytes);
        self.bytes[HIGH_SIZE_AT] = bytes.len() as u8;
        let flags = self.bytes[FLAGS_AT] & !FLAG_UNBOUNDED;
        self.bytes[FLAGS_AT] = flags | if high.is_none() { FLAG_UNBOUNDED } else { 0 };
        self.set_size(new_size);
        Some(())
    }

    /// Keeps keys below the bound, and makes it the upper fence.
    pub(crate) fn clip(&mut self, high: High<'_>) -> Option<()> {
        if let Some(high) = high {
            self.truncate(high);
        }
        self.set_high(high)
    }

    /// Takes over the entries of another node from a place on, behind those that are there.
    pub(crate) fn append(&mut self, other: Node<'_>, from: usize) -> Option<()> {
        let (size, count) = (self.view().size(), self.view().count());
        let bytes = other.bytes.get(from..other.size())?;
        self.bytes.get_mut(size..size + bytes.len())?.copy_from_slice(bytes);
        let added = other.cells_from(from).count();
        self.set_size(size + bytes.len());
        self.set_count(count + added);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Cells = Cells::Fixed { key: 2, value: 1 };

    fn keys(node: Node<'_>) -> [u8; 8] {
        let mut keys = [0; 8];
        for (place, cell) in keys.iter_mut().zip(node.cells()) {
            *place = cell.key[cell.key.len() - 1];
        }
        keys
    }

    #[test]
    fn entries_stay_in_order_whatever_the_order_in_which_they_come() {
        for cells in [FIXED, Cells::Bytes] {
            let mut bytes = [0; 128];
            let mut node = NodeMut::create(&mut bytes, cells, 1, 0, b"", None);
            for key in [5, 1, 9, 3, 7] {
                node.put(&[0, key], &[key]).unwrap();
            }
            node.put(&[0, 3], &[33]).unwrap();
            node.view().check().unwrap();
            assert_eq!(keys(node.view()), [1, 3, 5, 7, 9, 0, 0, 0]);
            assert_eq!(node.view().find(&[0, 3]).map(|cell| cell.content[0]), Some(33));
            assert_eq!(node.view().floor(&[0, 5], true).map(|cell| cell.key[1]), Some(3));
            assert_eq!(node.view().floor(&[0, 5], false).map(|cell| cell.key[1]), Some(5));
            assert_eq!(node.view().floor(&[0, 1], true).map(|cell| cell.at), None);
            assert!(node.remove(&[0, 5]) && !node.remove(&[0, 5]));
            node.clip(Some(&[0, 9])).unwrap();
            assert_eq!(keys(node.view()), [1, 3, 7, 0, 0, 0, 0, 0]);
            assert_eq!(node.view().high(), Some(&[0, 9][..]));
            node.clip(None).unwrap();
            node.view().check().unwrap();
            assert_eq!((node.view().high(), node.view().count()), (None, 3));
        }
    }

    #[test]
    fn a_node_without_room_is_left_as_it_was() {
        let mut bytes = [0; NODE_SIZE + 7];
        let mut node = NodeMut::create(&mut bytes, FIXED, 1, 0, b"", None);
        node.put(b"ab", b"x").unwrap();
        node.put(b"cd", b"x").unwrap();
        assert_eq!(node.put(b"ef", b"x"), None);
        assert_eq!(node.set_high(Some(b"zz")), None);
        node.view().check().unwrap();
        assert_eq!(node.view().count(), 2);
    }

    #[test]
    fn the_middle_leaves_entries_on_both_sides() {
        let mut bytes = [0; 256];
        let mut node = NodeMut::create(&mut bytes, Cells::Bytes, 1, 0, b"", None);
        node.put(b"a", &[0; 100]).unwrap();
        assert_eq!(node.view().middle(), None);
        node.put(b"b", b"").unwrap();
        let second = node.view().find(b"b").map(|cell| cell.at);
        assert_eq!(node.view().middle(), second);
        node.remove(b"a");
        node.put(b"c", &[0; 100]).unwrap();
        assert_eq!(node.view().middle(), node.view().find(b"c").map(|cell| cell.at));
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let mut bytes = [0; 128];
        let mut node = NodeMut::create(&mut bytes, FIXED, 1, 0, b"", None);
        node.put(b"ab", b"x").unwrap();
        node.put(b"cd", b"x").unwrap();
        let size = node.view().size() as u32;
        assert!(Node::parse(&bytes, size, FIXED).is_ok());
        assert!(Node::parse(&bytes, 200, FIXED).is_err());
        bytes[COUNT_AT] = 3;
        assert_eq!(Node::parse(&bytes, size, FIXED).map(drop), Err(Malformed::Range(Field::Entries)));
        bytes[COUNT_AT] = 1;
        assert_eq!(Node::parse(&bytes, size, FIXED).map(drop), Err(Malformed::Range(Field::EntryCount)));
        bytes[COUNT_AT] = 2;
        bytes[NODE_SIZE] = b'z';
        assert_eq!(Node::parse(&bytes, size, FIXED).map(drop), Err(Malformed::Range(Field::Order)));
    }
}
