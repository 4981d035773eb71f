//! FORMAT: Tree nodes, cells of any length
//!
//! Cells of any length.
//!
//! ```text
//! leaf    count u16, prefix_size u8; count ends u16; prefix; heap of entries: key_size u8, key, value
//! inner   count u16, path u16, prefix_size u8, end_size u8; count - 1 ends of end_size bytes each; prefix; heap of
//!         separators; count page numbers of `page_bits` bits, packed
//! ```
//!
//! The prefix is what all keys of the node begin with; it is cut off each key. An end counts from the start of the
//! heap. Entries stand in the order of their keys. A value that stands elsewhere is a head ("Heads of large values"). `end_size` is 1 where
//! the heap has fewer than 256 bytes, else 2. Separators have no size in front. Page numbers are packed with their lowest bit first, from the lowest bit
//! of a byte on. `path` is the index of the child in the same page, whose page number is all ones, or 65,535 for none.

use core::cmp::Ordering;
use core::ops::Range;

use nandu_index::KeyBuf;

use crate::bits::{self, get_u16, set_u16};
use crate::cells::{Cells, sealed::Sealed};
use crate::run::{InnerRun, LeafRun, NO_PATH, SELF};

/// Keys of any length up to a limit that depends on the page, and values of any length, in their leaf or elsewhere by their head.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteCells;

const LEAF_PREFIX: usize = 2;
const LEAF_ENDS: usize = 3;
const INNER_PATH: usize = 2;
const INNER_PREFIX: usize = 4;
const INNER_END_SIZE: usize = 5;
const INNER_ENDS: usize = 6;

/// Ends, prefix and heap of either kind of node: variable parts in order.
#[derive(Clone, Copy)]
struct Parts<'n> {
    ends: &'n [u8],
    /// Bytes of an end, 1 or 2.
    end_size: usize,
    prefix: &'n [u8],
    heap: &'n [u8],
}

impl<'n> Parts<'n> {
    fn new(rest: &'n [u8], count: usize, end_size: usize, prefix_size: usize) -> Option<Parts<'n>> {
        let (ends, rest) = rest.split_at_checked(end_size * count)?;
        let (prefix, heap) = rest.split_at_checked(prefix_size)?;
        Some(Parts { ends, end_size, prefix, heap })
    }

    /// Whether the ends ascend to the end of the heap.
    fn check(&self) -> bool {
        let mut last = 0;
        for index in 0..self.ends.len() / self.end_size {
            let end = self.start(index + 1);
            if end < last {
                return false;
            }
            last = end;
        }
        last == self.heap.len()
    }

    /// Where an item starts, which is where the one before it ends. Searches spend their time here.
    #[inline(always)]
    fn start(&self, index: usize) -> usize {
        match (index, self.end_size) {
            (0, _) => 0,
            (_, 1) => self.ends[index - 1].into(),
            _ => get_u16(self.ends, 2 * (index - 1)).into(),
        }
    }

    fn item(&self, index: usize) -> &'n [u8] {
        &self.heap[self.start(index)..self.start(index + 1)]
    }

    /// Index of the first item that is not before `key`, where `item_key` takes the key out of an item; and whether it
    /// equals it.
    fn search(&self, key: &[u8], item_key: impl Fn(&'n [u8]) -> &'n [u8]) -> Result<usize, usize> {
        let count = self.ends.len() / self.end_size;
        let shared = key.len().min(self.prefix.len());
        let rest = match key[..shared].cmp(&self.prefix[..shared]) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(count),
            Ordering::Equal if key.len() < self.prefix.len() => return Err(0),
            Ordering::Equal => &key[self.prefix.len()..],
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            match item_key(self.item(middle)).cmp(rest) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }
}

fn leaf(node: &[u8]) -> Parts<'_> {
    let count = get_u16(node, 0) as usize;
    let prefix_size = node[LEAF_PREFIX] as usize;
    let (ends, rest) = node[LEAF_ENDS..].split_at(2 * count);
    let (prefix, heap) = rest.split_at(prefix_size);
    Parts { ends, end_size: 2, prefix, heap }
}

/// Size of these entries in a leaf whose prefix has this size.
fn leaf_stretch_size(parts: Parts<'_>, entries: Range<usize>, prefix_size: usize) -> usize {
    let heap_size = parts.start(entries.end) - parts.start(entries.start);
    let size = 2 * entries.len() + heap_size;
    match prefix_size.checked_sub(parts.prefix.len()) {
        // Keys between two that begin with a longer prefix do so too, but on a hostile volume, where they do not ascend.
        Some(more) if more > 0 => {
            entries.fold(size, |size, index| size - more.min(leaf_item_key(parts.item(index)).len()))
        }
        _ => size + entries.len() * (parts.prefix.len() - prefix_size),
    }
}

/// The page numbers stand behind the heap.
fn inner(node: &[u8]) -> Parts<'_> {
    let count = get_u16(node, 0) as usize;
    let prefix_size = node[INNER_PREFIX] as usize;
    let end_size = node[INNER_END_SIZE] as usize;
    let (ends, rest) = node[INNER_ENDS..].split_at(end_size * (count - 1));
    let (prefix, heap) = rest.split_at(prefix_size);
    Parts { ends, end_size, prefix, heap }
}

/// Where the page numbers of an inner node stand.
fn inner_pages(node: &[u8]) -> usize {
    let parts = inner(node);
    let count = get_u16(node, 0) as usize;
    INNER_ENDS + parts.ends.len() + parts.prefix.len() + parts.start(count - 1)
}

fn inner_end_size(heap_size: usize) -> usize {
    if heap_size <= u8::MAX.into() { 1 } else { 2 }
}

fn leaf_item_key(item: &[u8]) -> &[u8] {
    match item.split_first() {
        Some((&size, rest)) => rest.get(..size as usize).unwrap_or(rest),
        None => &[],
    }
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// A key in two parts, as it stands in a node: its node's prefix, and what is behind that.
#[derive(Clone, Copy)]
struct Split<'n>(&'n [u8], &'n [u8]);

impl<'n> Split<'n> {
    fn len(self) -> usize {
        self.0.len() + self.1.len()
    }

    /// How many bytes both begin with.
    fn common(self, other: Split<'_>) -> usize {
        let bytes = self.0.iter().chain(self.1);
        bytes.zip(other.0.iter().chain(other.1)).take_while(|(a, b)| a == b).count()
    }

    /// What is behind the first bytes. On a hostile volume, where keys do not ascend, a key between two others may be shorter than what
    /// these have in common.
    #[inline(never)]
    fn behind(self, size: usize) -> Split<'n> {
        let of_second = size.saturating_sub(self.0.len());
        Split(self.0.get(size..).unwrap_or_default(), self.1.get(of_second..).unwrap_or_default())
    }

    /// Copies it to the front and returns its size.
    fn write(self, out: &mut [u8]) -> usize {
        let (first, second) = out.split_at_mut(self.0.len());
        first.copy_from_slice(self.0);
        second[..self.1.len()].copy_from_slice(self.1);
        self.len()
    }
}

impl ByteCells {
    fn leaf_split<'n>(run: &LeafRun<'n>, index: usize) -> Split<'n> {
        match run.locate(index) {
            Ok(edit) => Split(&[], edit.key),
            Err((node, index)) => {
                let parts = leaf(node);
                Split(parts.prefix, leaf_item_key(parts.item(index)))
            }
        }
    }

    fn inner_split<'n>(run: &InnerRun<'n>, index: usize) -> Split<'n> {
        match run.locate(index) {
            Ok(index) => Split(&[], run.separators[index].as_slice()),
            Err(index) => {
                let parts = inner(run.node);
                Split(parts.prefix, parts.item(index))
            }
        }
    }

    /// Size of the prefix of these entries' keys.
    fn leaf_prefix(run: &LeafRun<'_>, entries: &Range<usize>) -> usize {
        if entries.is_empty() {
            return 0;
        }
        Self::leaf_split(run, entries.start).common(Self::leaf_split(run, entries.end - 1))
    }

    /// Sizes of the prefix of these children's separators, and of the heap of what is behind it.
    fn inner_heap(run: &InnerRun<'_>, children: &Range<usize>) -> (usize, usize) {
        if children.len() < 2 {
            return (0, 0);
        }
        let separators = children.start..children.end - 1;
        let first = Self::inner_split(run, separators.start);
        let prefix_size = first.common(Self::inner_split(run, separators.end - 1));
        (prefix_size, separators.map(|index| Self::inner_split(run, index).behind(prefix_size).len()).sum())
    }
}

impl Sealed for ByteCells {}

impl Cells for ByteCells {
    const KIND: u8 = 2;

    fn key_size(&self) -> u8 {
        0
    }

    fn value_size(&self) -> u16 {
        0
    }

    fn entry_size(&self, key: &[u8], value: &[u8]) -> usize {
        3 + key.len() + value.len()
    }

    fn minimum(&self, out: &mut KeyBuf) {
        out.truncate(0);
    }

    fn separator(&self, below: &[u8], key: &mut KeyBuf) {
        key.truncate(common(below, key.as_slice()) + 1);
    }

    fn separator_cost(&self, separator: &[u8]) -> u32 {
        separator.len() as u32
    }

    fn leaf_check(&self, node: &[u8]) -> bool {
        if node.len() < LEAF_ENDS {
            return false;
        }
        let count = get_u16(node, 0) as usize;
        let Some(parts) = Parts::new(&node[LEAF_ENDS..], count, 2, node[LEAF_PREFIX] as usize) else {
            return false;
        };
        // One pass: this is done for each leaf that is read.
        let (ends, _) = parts.ends.as_chunks::<2>();
        let key_size_max = nandu_index::KEY_SIZE_MAX - parts.prefix.len();
        let mut start = 0;
        for &end in ends {
            let end = u16::from_le_bytes(end).into();
            match parts.heap.get(start) {
                Some(&size) if usize::from(size) <= key_size_max && start + usize::from(size) < end => start = end,
                _ => return false,
            }
        }
        start == parts.heap.len()
    }

    fn leaf_count(&self, node: &[u8]) -> usize {
        get_u16(node, 0) as usize
    }

    fn leaf_find(&self, node: &[u8], key: &[u8]) -> Result<usize, usize> {
        leaf(node).search(key, leaf_item_key)
    }

    fn leaf_key(&self, node: &[u8], index: usize, out: &mut KeyBuf) {
        let parts = leaf(node);
        out.set(parts.prefix);
        out.append(leaf_item_key(parts.item(index)));
    }

    fn leaf_value<'n>(&self, node: &'n [u8], index: usize) -> &'n [u8] {
        let item = leaf(node).item(index);
        &item[1 + item[0] as usize..]
    }

    fn leaf_put(
        &self,
        buf: &mut [u8],
        size: usize,
        at: Result<usize, usize>,
        key: &[u8],
        value: &[u8],
    ) -> Option<usize> {
        let count = get_u16(buf, 0) as usize;
        let parts = leaf(&buf[..size]);
        let rest = key.strip_prefix(parts.prefix)?;
        let prefix_size = parts.prefix.len();
        let heap = LEAF_ENDS + 2 * count + prefix_size;
        let (index, old_size, slots) = match at {
            Ok(index) => (index, parts.item(index).len(), 0),
            Err(index) => (index, 0, 1),
        };
        // An only entry that goes would leave a prefix nothing shares; encoding anew finds the right one.
        if count == 0 {
            return None;
        }
        let start = parts.start(index);
        let new_size = 1 + rest.len() + value.len();
        let size_after = size + 2 * slots + new_size - old_size;
        if size_after > buf.len() || size_after - heap > u16::MAX as usize {
            return None;
        }
        // From the back to the front, since everything moves up: entries behind, the entry, entries before and prefix.
        let heap_after = heap + 2 * slots;
        let tail = heap + start + old_size;
        buf.copy_within(tail..size, heap_after + start + new_size);
        if slots > 0 {
            buf.copy_within(LEAF_ENDS + 2 * index..heap + start, LEAF_ENDS + 2 * index + 2);
        }
        let item = &mut buf[heap_after + start..][..new_size];
        item[0] = rest.len() as u8;
        item[1..1 + rest.len()].copy_from_slice(rest);
        item[1 + rest.len()..].copy_from_slice(value);
        set_u16(buf, LEAF_ENDS + 2 * index, (start + new_size) as u16);
        for slot in index + 1..count + slots {
            let end = get_u16(buf, LEAF_ENDS + 2 * slot) as usize + new_size - old_size;
            set_u16(buf, LEAF_ENDS + 2 * slot, end as u16);
        }
        set_u16(buf, 0, (count + slots) as u16);
        Some(size_after)
    }

    fn leaf_remove(&self, buf: &mut [u8], size: usize, index: usize) -> usize {
        let count = get_u16(buf, 0) as usize;
        let parts = leaf(&buf[..size]);
        let heap = LEAF_ENDS + 2 * count + parts.prefix.len();
        let (start, old_size) = (parts.start(index), parts.item(index).len());
        for slot in index + 1..count {
            let end = get_u16(buf, LEAF_ENDS + 2 * slot) as usize - old_size;
            set_u16(buf, LEAF_ENDS + 2 * slot, end as u16);
        }
        buf.copy_within(LEAF_ENDS + 2 * index + 2..heap + start, LEAF_ENDS + 2 * index);
        buf.copy_within(heap + start + old_size..size, heap + start - 2);
        set_u16(buf, 0, count as u16 - 1);
        size - 2 - old_size
    }

    fn leaf_size(&self, run: &LeafRun<'_>, entries: Range<usize>) -> usize {
        let prefix_size = Self::leaf_prefix(run, &entries);
        let mut size = LEAF_ENDS + prefix_size;
        let mut index = entries.start;
        while index < entries.end {
            match run.stretch(index, entries.end) {
                Ok(edit) => {
                    size += 3 + edit.key.len().saturating_sub(prefix_size) + edit.value.len();
                    index += 1;
                }
                Err((node, stretch)) => {
                    index += stretch.len();
                    size += leaf_stretch_size(leaf(node), stretch, prefix_size);
                }
            }
        }
        size
    }

    fn leaf_encode(&self, run: &LeafRun<'_>, entries: Range<usize>, out: &mut [u8]) -> Option<usize> {
        let size = self.leaf_size(run, entries.clone());
        let out = out.get_mut(..size)?;
        let count = entries.len();
        let prefix_size = Self::leaf_prefix(run, &entries);
        set_u16(out, 0, count as u16);
        out[LEAF_PREFIX] = prefix_size as u8;
        let (ends, rest) = out[LEAF_ENDS..].split_at_mut(2 * count);
        if count > 0 {
            // What is behind the prefix is overwritten.
            Self::leaf_split(run, entries.start).write(rest);
        }
        let heap = &mut rest[prefix_size..];
        let mut at = 0;
        for (place, index) in entries.enumerate() {
            let size = Self::leaf_split(run, index).behind(prefix_size).write(&mut heap[at + 1..]);
            let value = run.value(*self, index);
            heap[at] = size as u8;
            at += 1 + size;
            heap[at..][..value.len()].copy_from_slice(value);
            at += value.len();
            set_u16(ends, 2 * place, at as u16);
        }
        debug_assert_eq!(LEAF_ENDS + 2 * count + prefix_size + at, size, "a leaf is as large as was said");
        Some(size)
    }

    fn leaf_prefixed(&self, node: &[u8], before: &[u8], out: &mut [u8]) -> Option<usize> {
        let parts = leaf(node);
        let prefix_size = u8::try_from(before.len() + parts.prefix.len()).ok()?;
        let out = out.get_mut(..node.len() + before.len())?;
        let (first, rest) = node.split_at(LEAF_ENDS + parts.ends.len());
        let at = first.len() + before.len();
        out[..first.len()].copy_from_slice(first);
        out[first.len()..at].copy_from_slice(before);
        out[at..].copy_from_slice(rest);
        out[LEAF_PREFIX] = prefix_size;
        Some(out.len())
    }

    fn inner_check(&self, node: &[u8], page_bits: u32) -> bool {
        if node.len() < INNER_ENDS {
            return false;
        }
        let count = get_u16(node, 0) as usize;
        let path = get_u16(node, INNER_PATH);
        let end_size = node[INNER_END_SIZE] as usize;
        if count == 0 || !(1..=2).contains(&end_size) || (path != NO_PATH && path as usize >= count) {
            return false;
        }
        let prefix_size = node[INNER_PREFIX] as usize;
        let Some(pages) = node.len().checked_sub(bits::column_size(count, page_bits)) else {
            return false;
        };
        let rest = node.get(INNER_ENDS..pages).unwrap_or_default();
        let Some(parts) = Parts::new(rest, count - 1, end_size, prefix_size) else {
            return false;
        };
        let size_fits = |index| parts.item(index).len() + prefix_size <= nandu_index::KEY_SIZE_MAX;
        // In this order: items can be looked at only where the ends are sound.
        parts.check() && (0..count - 1).all(size_fits)
    }

    fn inner_count(&self, node: &[u8]) -> usize {
        get_u16(node, 0) as usize
    }

    fn inner_path(&self, node: &[u8]) -> Option<usize> {
        let path = get_u16(node, INNER_PATH);
        (path != NO_PATH).then_some(path as usize)
    }

    fn inner_find(&self, node: &[u8], key: &[u8], before: bool) -> usize {
        match inner(node).search(key, |item| item) {
            Ok(index) => index + usize::from(!before),
            Err(index) => index,
        }
    }

    fn inner_child(&self, node: &[u8], index: usize, page_bits: u32) -> u32 {
        bits::read(&node[inner_pages(node)..], index * page_bits as usize, page_bits) as u32
    }

    fn inner_separator(&self, node: &[u8], index: usize, out: &mut KeyBuf) {
        let parts = inner(node);
        out.set(parts.prefix);
        out.append(parts.item(index));
    }

    fn inner_repath(&self, node: &mut [u8], page: u32, path: Option<usize>, page_bits: u32) {
        let old = self.inner_path(node);
        let pages_at = inner_pages(node);
        let pages = &mut node[pages_at..];
        if let Some(old) = old {
            bits::write(pages, old * page_bits as usize, page_bits, u64::from(page));
        }
        if let Some(path) = path {
            bits::write(pages, path * page_bits as usize, page_bits, u64::MAX);
        }
        set_u16(node, INNER_PATH, path.map_or(NO_PATH, |path| path as u16));
    }

    fn inner_size(&self, run: &InnerRun<'_>, children: Range<usize>) -> usize {
        let (prefix_size, heap_size) = Self::inner_heap(run, &children);
        let ends_size = inner_end_size(heap_size) * (children.len() - 1);
        let pages_size = bits::column_size(children.len(), run.page_bits);
        INNER_ENDS + ends_size + prefix_size + heap_size + pages_size
    }

    fn inner_encode(&self, run: &InnerRun<'_>, children: Range<usize>, out: &mut [u8]) -> Option<usize> {
        let (prefix_size, heap_size) = Self::inner_heap(run, &children);
        let end_size = inner_end_size(heap_size);
        let count = children.len();
        let heap_at = INNER_ENDS + end_size * (count - 1) + prefix_size;
        let pages_at = heap_at + heap_size;
        let size = pages_at + bits::column_size(count, run.page_bits);
        let out = out.get_mut(..size)?;
        set_u16(out, 0, count as u16);
        set_u16(out, INNER_PATH, NO_PATH);
        out[INNER_PREFIX] = prefix_size as u8;
        out[INNER_END_SIZE] = end_size as u8;
        if count > 1 {
            // What is behind the prefix is overwritten.
            Self::inner_split(run, children.start).write(&mut out[heap_at - prefix_size..]);
        }
        out[pages_at..].fill(0);
        let mut end = 0;
        for (place, index) in children.enumerate() {
            let child = run.child(*self, index);
            if child == SELF {
                set_u16(out, INNER_PATH, place as u16);
            }
            bits::write(&mut out[pages_at..], place * run.page_bits as usize, run.page_bits, u64::from(child));
            if place + 1 < count {
                end += Self::inner_split(run, index).behind(prefix_size).write(&mut out[heap_at + end..]);
                out[INNER_ENDS + place * end_size..][..end_size]
                    .copy_from_slice(&(end as u16).to_le_bytes()[..end_size]);
            }
        }
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::ByteCells;
    use crate::cells::Cells;
    use crate::run::{InnerRun, LeafRun, RunEdit, SELF, Stretch};
    use nandu_index::KeyBuf;

    #[test]
    fn the_bytes_of_a_leaf_are_frozen() {
        let expected = *b"\x02\0\x02\x03\0\x06\0ab\x011x\x0222";
        let edit = |at, key, value| Some(RunEdit { at, replaces: false, key, value });
        let mut one = [0; 32];
        let run = LeafRun::new(Stretch::NONE, Stretch::NONE, edit(0, &b"ab1"[..], &b"x"[..]));
        let size = ByteCells.leaf_encode(&run, 0..1, &mut one).unwrap();
        let mut two = [0; 32];
        let run = LeafRun::new(Stretch::whole(ByteCells, &one[..size]), Stretch::NONE, edit(1, &b"ab22"[..], &b""[..]));
        let size = ByteCells.leaf_encode(&run, 0..2, &mut two).unwrap();
        assert_eq!(two[..size], expected);
        assert!(ByteCells.leaf_check(&two[..size]));
        let size = ByteCells.leaf_put(&mut two, size, Err(1), b"ab2", b"yy").unwrap();
        assert_eq!(two[..size], *b"\x03\0\x02\x03\0\x07\0\x0A\0ab\x011x\x012yy\x0222");
        let size = ByteCells.leaf_put(&mut two, size, Ok(1), b"ab2", b"z").unwrap();
        assert_eq!(ByteCells.leaf_value(&two, 1), b"z");
        let size = ByteCells.leaf_remove(&mut two, size, 1);
        assert_eq!(two[..size], expected);
    }

    /// Where keys do not ascend, one in the middle may be shorter than what the outer ones have in common.
    #[test]
    fn a_leaf_is_as_large_as_was_said_on_a_hostile_volume_too() {
        let leaf = *b"\x03\0\0\x05\0\x07\0\x0C\0\x03abcx\x01z\x03abdy";
        assert!(ByteCells.leaf_check(&leaf));
        for (at, key) in [(0, &b"ab"[..]), (1, b"abcd"), (2, b"q"), (3, b"abz")] {
            let run_edit = RunEdit { at, replaces: false, key, value: b"v" };
            let run = LeafRun::new(Stretch::whole(ByteCells, &leaf), Stretch::NONE, Some(run_edit));
            for entries in [0..4, 0..3, 1..4, 2..3] {
                let mut out = [0; 64];
                let size = ByteCells.leaf_encode(&run, entries.clone(), &mut out);
                assert_eq!(size, Some(ByteCells.leaf_size(&run, entries)));
                assert!(ByteCells.leaf_check(&out[..size.unwrap()]));
            }
        }
    }

    #[test]
    fn the_bytes_of_an_inner_node_are_frozen() {
        let separators = [KeyBuf::new(b"m").unwrap(), KeyBuf::new(b"mz").unwrap()];
        let pages = [3, SELF, 9];
        let run =
            InnerRun { node: &[], page: 0, at: 0, removed: 0, pages: &pages, separators: &separators, page_bits: 12 };
        let mut node = [0; 32];
        let size = ByteCells.inner_encode(&run, 0..3, &mut node).unwrap();
        assert_eq!(node[..size], *b"\x03\0\x01\0\x01\x01\0\x01mz\x03\xF0\xFF\x09\0");
        assert!(ByteCells.inner_check(&node[..size], 12));
        let find = |key: &[u8], before| ByteCells.inner_find(&node, key, before);
        assert_eq!([&b"lz"[..], b"m", b"my", b"mz", b"n"].map(|key| find(key, false)), [0, 1, 1, 2, 2]);
        assert_eq!([&b""[..], b"m", b"ma", b"mz", b"mza"].map(|key| find(key, true)), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn children_are_found_whatever_size_their_ends_have() {
        for (size, end_size) in [(2, 1), (9, 2)] {
            let key = |index: usize| KeyBuf::new(&[2 * index as u8, 1, 2, 3, 4, 5, 6, 7, 8][..size]).unwrap();
            let separators: [KeyBuf; 100] = core::array::from_fn(key);
            let pages: [u32; 101] = core::array::from_fn(|index| if index == 50 { SELF } else { 3000 - index as u32 });
            let (at, removed) = (0, 0);
            let run =
                InnerRun { node: &[], page: 0, at, removed, pages: &pages, separators: &separators, page_bits: 12 };
            let mut node = [0; 2000];
            let encoded = ByteCells.inner_encode(&run, 0..101, &mut node).unwrap();
            let node = &mut node[..encoded];
            assert!(ByteCells.inner_check(node, 12) && usize::from(node[super::INNER_END_SIZE]) == end_size);
            ByteCells.inner_repath(node, 9, Some(20), 12);
            for (index, page) in pages.into_iter().enumerate() {
                let page = if index == 50 { 9 } else { page };
                let expected = if index == 20 { SELF & 0xFFF } else { page };
                assert_eq!(ByteCells.inner_child(node, index, 12), expected);
                let mut separator = KeyBuf::EMPTY;
                if index < 100 {
                    ByteCells.inner_separator(node, index, &mut separator);
                    assert_eq!(separator.as_slice(), separators[index].as_slice());
                    assert_eq!(ByteCells.inner_find(node, separator.as_slice(), false), index + 1);
                    assert_eq!(ByteCells.inner_find(node, separator.as_slice(), true), index);
                }
            }
        }
    }
}
