//! FORMAT: Tree nodes, cells of one width
//!
//! Cells of one width, packed in columns.
//!
//! ```text
//! leaf    count u16, width u8, base KEY bytes; count keys of `width` bits, each less `base`; count values
//! inner   count u16, path u16, width u8, shift u8, base KEY bytes; count - 1 separators of `width` bits, each less
//!         `base` and without its low `shift` bits; count page numbers of `page_bits` bits
//! ```
//!
//! `path` is the index of the child in the same page, whose page number is all ones, or 65,535 for none. `base` stands
//! with its high byte first. Each column begins at a byte; what is packed in it has its lowest bit first, from the lowest bit of a byte on. Values
//! stand as the owner gave them, and keys in lists stand whole, with their high byte first. Keys that do not compress take `8 * KEY` bits, so a packed node is never larger than
//! a plain one by more than its few bytes of header.

use core::ops::Range;

use nandu_index::KeyBuf;

use crate::bits::{self, column_size, get_u16, set_u16};
use crate::cells::{Cells, sealed::Sealed};
use crate::run::{InnerRun, LeafRun, NO_PATH, SELF};

/// Keys of `KEY` bytes, 1 to 8, that are big-endian numbers, and values of `VALUE` bytes.
///
/// `FixedCells<4, 4>` are the cells of the paper.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedCells<const KEY: usize, const VALUE: usize>;

const LEAF_WIDTH: usize = 2;
const LEAF_BASE: usize = 3;
const INNER_PATH: usize = 2;
const INNER_WIDTH: usize = 4;
const INNER_SHIFT: usize = 5;
const INNER_BASE: usize = 6;

#[inline]
fn width_of(span: u64) -> u32 {
    64 - span.leading_zeros()
}

impl<const KEY: usize, const VALUE: usize> FixedCells<KEY, VALUE> {
    const SIZES_FIT: () = assert!(KEY >= 1 && KEY <= 8 && VALUE <= u16::MAX as usize);
    const LEAF_KEYS: usize = LEAF_BASE + KEY;
    const INNER_SEPARATORS: usize = INNER_BASE + KEY;

    #[inline]
    fn number(key: &[u8]) -> u64 {
        let mut bytes = [0; 8];
        bytes[8 - KEY..].copy_from_slice(&key[..KEY]);
        u64::from_be_bytes(bytes)
    }

    fn set(out: &mut KeyBuf, number: u64) {
        out.set(&number.to_be_bytes()[8 - KEY..]);
    }

    #[inline]
    fn leaf_parts(node: &[u8]) -> (usize, u32, u64) {
        (get_u16(node, 0) as usize, u32::from(node[LEAF_WIDTH]), Self::number(&node[LEAF_BASE..]))
    }

    #[inline]
    fn leaf_number(node: &[u8], index: usize) -> u64 {
        let (_, width, base) = Self::leaf_parts(node);
        base.wrapping_add(bits::read(&node[Self::LEAF_KEYS..], index * width as usize, width))
    }

    fn inner_parts(node: &[u8]) -> (usize, u32, u32, u64) {
        let count = get_u16(node, 0) as usize;
        (count, u32::from(node[INNER_WIDTH]), u32::from(node[INNER_SHIFT]), Self::number(&node[INNER_BASE..]))
    }

    fn inner_number(node: &[u8], index: usize) -> u64 {
        let (_, width, shift, base) = Self::inner_parts(node);
        let packed = bits::read(&node[Self::INNER_SEPARATORS..], index * width as usize, width);
        base.wrapping_add(packed << shift)
    }

    fn run_number(run: &LeafRun<'_>, index: usize, key: &mut KeyBuf) -> u64 {
        run.key(Self, index, key);
        Self::number(key.as_slice())
    }

    /// Width, shift and base for the separators of these children.
    fn inner_shape(run: &InnerRun<'_>, children: &Range<usize>) -> (u32, u32, u64) {
        let mut key = KeyBuf::EMPTY;
        let (mut first, mut last, mut varying) = (0, 0, 0);
        for (place, index) in (children.start..children.end.saturating_sub(1)).enumerate() {
            run.separator(Self, index, &mut key);
            last = Self::number(key.as_slice());
            if place == 0 {
                first = last;
            }
            varying |= last.wrapping_sub(first);
        }
        if varying == 0 {
            return (0, 0, first);
        }
        let shift = varying.trailing_zeros();
        (width_of(last.wrapping_sub(first) >> shift), shift, first)
    }
}

impl<const KEY: usize, const VALUE: usize> Sealed for FixedCells<KEY, VALUE> {}

impl<const KEY: usize, const VALUE: usize> Cells for FixedCells<KEY, VALUE> {
    const KIND: u8 = 1;

    fn key_size(&self) -> u8 {
        const { Self::SIZES_FIT };
        KEY as u8
    }

    fn value_size(&self) -> u16 {
        VALUE as u16
    }

    fn entry_size(&self, _key: &[u8], _value: &[u8]) -> usize {
        KEY + VALUE + 1
    }

    fn minimum(&self, out: &mut KeyBuf) {
        Self::set(out, 0);
    }

    fn separator(&self, below: &[u8], key: &mut KeyBuf) {
        let (below, above) = (Self::number(below), Self::number(key.as_slice()));
        // Below the highest bit in which they differ nothing is needed to tell them apart.
        let highest = 63 - (below ^ above | 1).leading_zeros();
        Self::set(key, above & !((1 << highest) - 1));
    }

    fn separator_cost(&self, separator: &[u8]) -> u32 {
        64 - Self::number(separator).trailing_zeros()
    }

    fn leaf_check(&self, node: &[u8]) -> bool {
        if node.len() < Self::LEAF_KEYS {
            return false;
        }
        let (count, width, _) = Self::leaf_parts(node);
        width <= 8 * KEY as u32 && node.len() == Self::LEAF_KEYS + column_size(count, width) + count * VALUE
    }

    #[inline]
    fn leaf_count(&self, node: &[u8]) -> usize {
        get_u16(node, 0) as usize
    }

    #[inline]
    fn leaf_find(&self, node: &[u8], key: &[u8]) -> Result<usize, usize> {
        let (count, width, base) = Self::leaf_parts(node);
        let Some(wanted) = Self::number(key).checked_sub(base) else {
            return Err(0);
        };
        let keys = &node[Self::LEAF_KEYS..];
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            let found = bits::read(keys, middle * width as usize, width);
            if found < wanted {
                low = middle + 1;
            } else if found > wanted {
                high = middle;
            } else {
                return Ok(middle);
            }
        }
        Err(low)
    }

    fn leaf_key(&self, node: &[u8], index: usize, out: &mut KeyBuf) {
        Self::set(out, Self::leaf_number(node, index));
    }

    #[inline]
    fn leaf_value<'n>(&self, node: &'n [u8], index: usize) -> &'n [u8] {
        let (count, width, _) = Self::leaf_parts(node);
        let at = Self::LEAF_KEYS + column_size(count, width) + index * VALUE;
        &node[at..at + VALUE]
    }

    fn leaf_put(
        &self,
        buf: &mut [u8],
        size: usize,
        at: Result<usize, usize>,
        key: &[u8],
        value: &[u8],
    ) -> Option<usize> {
        let (count, width, base) = Self::leaf_parts(buf);
        let values = Self::LEAF_KEYS + column_size(count, width);
        let at = match at {
            Ok(index) => {
                buf[values + index * VALUE..][..VALUE].copy_from_slice(value);
                return Some(size);
            }
            Err(at) => at,
        };
        let packed = Self::number(key).checked_sub(base)?;
        if width_of(packed) > width {
            return None;
        }
        let values_after = Self::LEAF_KEYS + column_size(count + 1, width);
        let size_after = values_after + (count + 1) * VALUE;
        if size_after > buf.len() {
            return None;
        }
        let split = values + at * VALUE;
        buf.copy_within(split..values + count * VALUE, values_after + (at + 1) * VALUE);
        buf.copy_within(values..split, values_after);
        buf[values_after + at * VALUE..][..VALUE].copy_from_slice(value);
        let keys = &mut buf[Self::LEAF_KEYS..values_after];
        let bit = at * width as usize;
        bits::shift_up(keys, bit, count * width as usize, width);
        bits::write(keys, bit, width, packed);
        set_u16(buf, 0, count as u16 + 1);
        Some(size_after)
    }

    fn leaf_remove(&self, buf: &mut [u8], _size: usize, index: usize) -> usize {
        let (count, width, _) = Self::leaf_parts(buf);
        let values = Self::LEAF_KEYS + column_size(count, width);
        let values_after = Self::LEAF_KEYS + column_size(count - 1, width);
        let keys = &mut buf[Self::LEAF_KEYS..values];
        let bit = index * width as usize;
        bits::shift_down(keys, bit + width as usize, count * width as usize, width);
        let split = values + index * VALUE;
        buf.copy_within(values..split, values_after);
        buf.copy_within(split + VALUE..values + count * VALUE, values_after + index * VALUE);
        set_u16(buf, 0, count as u16 - 1);
        values_after + (count - 1) * VALUE
    }

    fn leaf_size(&self, run: &LeafRun<'_>, entries: Range<usize>) -> usize {
        let count = entries.len();
        let width = if count == 0 {
            0
        } else {
            let mut key = KeyBuf::EMPTY;
            let first = Self::run_number(run, entries.start, &mut key);
            width_of(Self::run_number(run, entries.end - 1, &mut key).wrapping_sub(first))
        };
        Self::LEAF_KEYS + column_size(count, width) + count * VALUE
    }

    fn leaf_encode(&self, run: &LeafRun<'_>, entries: Range<usize>, out: &mut [u8]) -> Option<usize> {
        let size = self.leaf_size(run, entries.clone());
        let out = out.get_mut(..size)?;
        let count = entries.len();
        let mut key = KeyBuf::EMPTY;
        let (mut base, mut last) = (0, 0);
        if count > 0 {
            base = Self::run_number(run, entries.start, &mut key);
            last = Self::run_number(run, entries.end - 1, &mut key);
        }
        let width = width_of(last.wrapping_sub(base));
        set_u16(out, 0, count as u16);
        out[LEAF_WIDTH] = width as u8;
        out[LEAF_BASE..Self::LEAF_KEYS].copy_from_slice(&base.to_be_bytes()[8 - KEY..]);
        let (keys, values) = out[Self::LEAF_KEYS..].split_at_mut(column_size(count, width));
        if let Some(end) = keys.last_mut() {
            *end = 0;
        }
        for (place, index) in entries.enumerate() {
            let number = Self::run_number(run, index, &mut key);
            bits::write(keys, place * width as usize, width, number.wrapping_sub(base));
            values[place * VALUE..][..VALUE].copy_from_slice(run.value(*self, index));
        }
        Some(size)
    }

    fn leaf_prefixed(&self, node: &[u8], before: &[u8], out: &mut [u8]) -> Option<usize> {
        let out = out.get_mut(..node.len()).filter(|_| before.is_empty())?;
        out.copy_from_slice(node);
        Some(node.len())
    }

    fn inner_check(&self, node: &[u8], page_bits: u32) -> bool {
        if node.len() < Self::INNER_SEPARATORS {
            return false;
        }
        let (count, width, shift, _) = Self::inner_parts(node);
        let path = get_u16(node, INNER_PATH);
        count > 0
            && (path == NO_PATH || (path as usize) < count)
            && width <= 8 * KEY as u32
            && shift < 64
            && node.len() == Self::INNER_SEPARATORS + column_size(count - 1, width) + column_size(count, page_bits)
    }

    fn inner_count(&self, node: &[u8]) -> usize {
        get_u16(node, 0) as usize
    }

    fn inner_path(&self, node: &[u8]) -> Option<usize> {
        let path = get_u16(node, INNER_PATH);
        (path != NO_PATH).then_some(path as usize)
    }

    fn inner_find(&self, node: &[u8], key: &[u8], before: bool) -> usize {
        let (count, width, shift, base) = Self::inner_parts(node);
        let Some(wanted) = Self::number(key).checked_sub(base) else {
            return 0;
        };
        let separators = &node[Self::INNER_SEPARATORS..];
        let (mut low, mut high) = (0, count - 1);
        while low < high {
            let middle = (low + high) / 2;
            let found = bits::read(separators, middle * width as usize, width) << shift;
            if found < wanted || (found == wanted && !before) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn inner_child(&self, node: &[u8], index: usize, page_bits: u32) -> u32 {
        let (count, width, _, _) = Self::inner_parts(node);
        let pages = &node[Self::INNER_SEPARATORS + column_size(count - 1, width)..];
        bits::read(pages, index * page_bits as usize, page_bits) as u32
    }

    fn inner_separator(&self, node: &[u8], index: usize, out: &mut KeyBuf) {
        Self::set(out, Self::inner_number(node, index));
    }

    fn inner_repath(&self, node: &mut [u8], page: u32, path: Option<usize>, page_bits: u32) {
        let (count, width, _, _) = Self::inner_parts(node);
        let old = self.inner_path(node);
        let pages = &mut node[Self::INNER_SEPARATORS + column_size(count - 1, width)..];
        if let Some(old) = old {
            bits::write(pages, old * page_bits as usize, page_bits, u64::from(page));
        }
        if let Some(path) = path {
            bits::write(pages, path * page_bits as usize, page_bits, u64::MAX);
        }
        set_u16(node, INNER_PATH, path.map_or(NO_PATH, |path| path as u16));
    }

    fn inner_size(&self, run: &InnerRun<'_>, children: Range<usize>) -> usize {
        let (width, _, _) = Self::inner_shape(run, &children);
        Self::INNER_SEPARATORS + column_size(children.len() - 1, width) + column_size(children.len(), run.page_bits)
    }

    fn inner_encode(&self, run: &InnerRun<'_>, children: Range<usize>, out: &mut [u8]) -> Option<usize> {
        let count = children.len();
        let (width, shift, base) = Self::inner_shape(run, &children);
        let pages_at = Self::INNER_SEPARATORS + column_size(count - 1, width);
        let size = pages_at + column_size(count, run.page_bits);
        let out = out.get_mut(..size)?;
        out.fill(0);
        set_u16(out, 0, count as u16);
        set_u16(out, INNER_PATH, NO_PATH);
        out[INNER_WIDTH] = width as u8;
        out[INNER_SHIFT] = shift as u8;
        out[INNER_BASE..Self::INNER_SEPARATORS].copy_from_slice(&base.to_be_bytes()[8 - KEY..]);
        let mut key = KeyBuf::EMPTY;
        for (place, index) in children.enumerate() {
            if place + 1 < count {
                run.separator(*self, index, &mut key);
                let packed = Self::number(key.as_slice()).wrapping_sub(base) >> shift;
                bits::write(&mut out[Self::INNER_SEPARATORS..pages_at], place * width as usize, width, packed);
            }
            let child = run.child(*self, index);
            if child == SELF {
                set_u16(out, INNER_PATH, place as u16);
            }
            let pages = &mut out[pages_at..];
            bits::write(pages, place * run.page_bits as usize, run.page_bits, u64::from(child));
        }
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::FixedCells;
    use crate::cells::Cells;
    use crate::run::{InnerRun, LeafRun, RunEdit, SELF, Stretch};
    use nandu_index::KeyBuf;

    const CELLS: FixedCells<4, 2> = FixedCells::<4, 2>;

    #[test]
    fn the_bytes_of_a_leaf_are_frozen_however_it_came_about() {
        let expected = [3, 0, 4, 0, 0, 1, 0, 0x30, 0x0A, 1, 1, 2, 2, 3, 3];
        let low: ([u8; 4], [u8; 2]) = ([0, 0, 1, 0], [1, 1]);
        let high = ([0, 0, 1, 10], [3, 3]);
        let (key, value) = ([0, 0, 1, 3], [2, 2]);
        let mut one = [0; 16];
        let run = |first, key, value, at| {
            LeafRun::new(first, Stretch::NONE, Some(RunEdit { at, replaces: false, key, value }))
        };
        let size = CELLS.leaf_encode(&run(Stretch::NONE, &low.0, &low.1, 0), 0..1, &mut one).unwrap();
        let mut two = [0; 16];
        let first = Stretch::whole(CELLS, &one[..size]);
        let size = CELLS.leaf_encode(&run(first, &high.0, &high.1, 1), 0..2, &mut two).unwrap();
        let mut encoded = [0; 16];
        let first = Stretch::whole(CELLS, &two[..size]);
        let after = CELLS.leaf_encode(&run(first, &key, &value, 1), 0..3, &mut encoded).unwrap();
        assert_eq!(encoded[..after], expected);
        let after = CELLS.leaf_put(&mut two, size, Err(1), &key, &value).unwrap();
        assert_eq!(two[..after], expected, "put in place");
        assert!(CELLS.leaf_check(&two[..after]));
        assert_eq!(CELLS.leaf_find(&two, &key), Ok(1));
        let after = CELLS.leaf_remove(&mut two, after, 1);
        assert_eq!((after, two[0]), (12, 2));
        assert_eq!(CELLS.leaf_value(&two, 1), high.1);
    }

    #[test]
    fn the_bytes_of_an_inner_node_are_frozen() {
        let separators = [KeyBuf::new(&[0, 0, 0x10, 0]).unwrap(), KeyBuf::new(&[0, 0, 0x30, 0]).unwrap()];
        let pages = [5, SELF, 7];
        let run =
            InnerRun { node: &[], page: 0, at: 0, removed: 0, pages: &pages, separators: &separators, page_bits: 4 };
        let mut node = [0; 16];
        let size = CELLS.inner_encode(&run, 0..3, &mut node).unwrap();
        assert_eq!(node[..size], [3, 0, 1, 0, 1, 13, 0, 0, 0x10, 0, 0x02, 0xF5, 0x07]);
        assert!(CELLS.inner_check(&node[..size], 4));
        let find = |key: u16, before| CELLS.inner_find(&node, &u32::from(key).to_be_bytes(), before);
        assert_eq!([0x0FFF, 0x1000, 0x2FFF, 0x3000].map(|key| find(key, false)), [0, 1, 1, 2]);
        assert_eq!([0x1000, 0x1001, 0x3000, 0x3001].map(|key| find(key, true)), [0, 1, 1, 2]);
    }

    #[test]
    fn a_separator_tells_neighbours_apart_with_as_few_bits_as_can_be() {
        for (below, above, expected) in [(1, 2, 2), (5, 9, 8), (0x0FFF_FFFF, 0x1234_5678, 0x1000_0000), (6, 7, 7)] {
            let (below, above): (u32, u32) = (below, above);
            let mut separator = KeyBuf::new(&above.to_be_bytes()).unwrap();
            CELLS.separator(&below.to_be_bytes(), &mut separator);
            assert_eq!(separator.as_slice(), u32::to_be_bytes(expected));
        }
    }
}
