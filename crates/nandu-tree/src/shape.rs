//! What does not change while a tree is open: cells, sizes, limits.

use nandu_cells::{Cells, Limits};
use nandu_index::{Entry, KEY_SIZE_MAX};
use nandu_media::features::{BLOBS, FILES, GROUP};
use nandu_media::path::{PathBody, PathFront, flag_sections};
use nandu_media::tree::CellFormat;

use crate::division::{Division, VALUE_SIZE_MAX, length_in, names_own_page, number_in};
use crate::reserved::{NOTHING, PREFIX, is_reserved, user_key};

/// Part of a page, as a divisor, that a leaf leaves free where changes wait. A commit takes along the leaf with most changes, of those that have room for what it lists beside them, so that full leaves would be left over, and take a page each without one.
const LIST_SHARE: usize = 16;

/// Cells, sizes and limits of a tree.
#[derive(Clone, Copy)]
pub(crate) struct TreeShape<C> {
    cells: C,
    format: CellFormat,
    header_size: u16,
    page_size: usize,
    page_count: u32,
    limits: Limits,
    /// Whether records may name pages of values.
    has_values: bool,
    /// Bytes of a key that may own a raw page, at most; 0 where there are none. Where there are, all values have one.
    owner_max: u8,
    /// Bytes that a leaf leaves free beside its ancestors, for what a commit lists.
    list_room: u16,
}

impl<C: Cells> TreeShape<C> {
    /// `None` if the page is too small, or too large, for a tree with these cells.
    pub(crate) fn new(
        cells: C,
        page_size: usize,
        header_size: usize,
        page_count: u32,
        cache_size: usize,
    ) -> Option<Self> {
        // One value more than there are pages, all bits set, stands for "in this page".
        let page_bits = (32 - page_count.leading_zeros()) as u8;
        let format =
            CellFormat { cells: C::KIND, key_size: cells.key_size(), value_size: cells.value_size(), page_bits };
        let limits = Limits::new(
            (page_size, header_size),
            |levels, locator| PathBody::front(header_size, levels, true, locator),
            cells.key_size(),
            cache_size,
        )?
        .with_even_levels();
        let fixed_entry = usize::from(cells.key_size()) + usize::from(cells.value_size());
        (fixed_entry <= limits.entry_size_max).then_some(TreeShape {
            cells,
            format,
            header_size: header_size as u16,
            page_size,
            page_count,
            limits,
            has_values: false,
            owner_max: 0,
            list_room: 0,
        })
    }

    /// With large values, where keys have any length.
    pub(crate) fn with_values(self, has_values: bool) -> Self {
        TreeShape { has_values: BLOBS && has_values && self.cells.key_size() == 0, ..self }
    }

    /// With raw pages for values of keys of so many bytes.
    pub(crate) fn with_raw(self, owner_max: Option<usize>) -> Self {
        TreeShape { owner_max: owner_max.map_or(0, |most| most as u8), ..self }
    }

    /// With room for a list beside each leaf that is divided.
    pub(crate) fn with_list_room(self, has_list: bool) -> Self {
        let list_room = if has_list { self.page_size / LIST_SHARE } else { 0 };
        TreeShape { list_room: list_room as u16, ..self }
    }

    /// Bytes that a leaf leaves free for a list.
    pub(crate) fn list_room(&self) -> usize {
        if GROUP { self.list_room.into() } else { 0 }
    }

    pub(crate) fn has_raw(&self) -> bool {
        FILES && self.owner_max > 0
    }

    pub(crate) fn has_values(&self) -> bool {
        BLOBS && self.has_values
    }

    /// Whether keys have any length, so that some are kept for records of snapshots.
    fn has_any_keys(&self) -> bool {
        self.cells.key_size() == 0
    }

    /// Whether a key is that of a record of a snapshot.
    pub(crate) fn is_reserved(&self, key: &[u8]) -> bool {
        self.has_any_keys() && is_reserved(key)
    }

    /// The key that a user gave to what stands at a key.
    pub(crate) fn user_key<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        if self.has_any_keys() { user_key(key) } else { key }
    }

    /// How many entries one of this key is for a user.
    pub(crate) fn counted(&self, is_more: bool, key: &[u8]) -> u64 {
        u64::from(is_more && !self.is_reserved(key))
    }

    /// Bytes of the longest key of a user. Records of snapshots have longer ones, which share what they begin with.
    pub(crate) fn key_size_max(&self) -> usize {
        let most = if self.has_any_keys() { KEY_SIZE_MAX - PREFIX } else { KEY_SIZE_MAX };
        self.limits.key_size_max.min(most)
    }

    /// Bytes that key and value of a user's entry may have together. That of a snapshot's record may have [`PREFIX`] more: a leaf of the largest entries is three of four full.
    pub(crate) fn entry_size_max(&self) -> usize {
        self.limits.entry_size_max
    }

    /// Whether a user may give a key to a record.
    pub(crate) fn may_be_given(&self, key: &[u8]) -> bool {
        self.key_fits(key) && !self.is_reserved(key)
    }

    /// How a value of a key is divided; `None` if it is too large.
    pub(crate) fn division(&self, key: &[u8], length: usize) -> Option<Division> {
        let key = self.user_key(key);
        if self.has_raw() {
            return Division::raw(self.page_size, length)
                .filter(|_| (1..=usize::from(self.owner_max)).contains(&key.len()));
        }
        let head_max = self.entry_size_max().checked_sub(key.len())?;
        Division::new(self.page_size - self.header_size(), head_max, key.len(), length)
    }

    /// An entry as it is handed out: of a large value only its size.
    pub(crate) fn entry<'e>(&self, entry: Entry<'e>) -> Entry<'e> {
        match self.head(entry.key, entry.value) {
            Some(division) => Entry { value: &[], large: Some(division.length()), ..entry },
            None => entry,
        }
    }

    /// Bytes of the largest value that a key may have.
    pub(crate) fn value_size_max(&self, key: &[u8]) -> usize {
        let small = self.entry_size_max().saturating_sub(key.len());
        if !self.has_values {
            return small;
        }
        let (mut low, mut high) = (small, VALUE_SIZE_MAX);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.division(key, middle).is_some() { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// What a record of a leaf says of pages, if it is a head.
    pub(crate) fn head(&self, key: &[u8], value: &[u8]) -> Option<Division> {
        if self.has_values() { self.as_head(key, value) } else { None }
    }

    /// The page that a change names, if its value is the head of a value of one page; only such wait.
    pub(crate) fn page_of(&self, key: &[u8], value: Option<&[u8]>) -> Option<u32> {
        let head = value.filter(|value| self.head(key, value).is_some_and(|it| it.pages() == 1))?;
        Some(number_in(head, 0))
    }

    /// Whether a change may wait that has this value.
    pub(crate) fn may_wait(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        let is_page = |it, page| page < self.page_count || self.has_raw() && names_own_page(it);
        let is_nothing = value == Some(&NOTHING) && self.is_reserved(key);
        value.is_none_or(|it| {
            is_nothing || self.value_fits(key, it) || self.page_of(key, value).is_some_and(|page| is_page(it, page))
        })
    }

    /// What a value says of pages, if it looks like a head.
    fn as_head(&self, key: &[u8], value: &[u8]) -> Option<Division> {
        let (length, form) = length_in(value)?;
        self.division(key, length)?.in_form(form).filter(|it| it.head_size() == value.len())
    }

    pub(crate) fn cells(&self) -> C {
        self.cells
    }

    pub(crate) fn format(&self) -> CellFormat {
        self.format
    }

    pub(crate) fn page_bits(&self) -> u32 {
        u32::from(self.format.page_bits)
    }

    pub(crate) fn header_size(&self) -> usize {
        self.header_size.into()
    }

    pub(crate) fn page_size(&self) -> usize {
        self.page_size
    }

    pub(crate) fn page_count(&self) -> u32 {
        self.page_count
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn key_fits(&self, key: &[u8]) -> bool {
        match self.cells.key_size() {
            0 => self.user_key(key).len() <= self.key_size_max(),
            size => key.len() == usize::from(size),
        }
    }

    pub(crate) fn value_fits(&self, key: &[u8], value: &[u8]) -> bool {
        match self.cells.value_size() {
            0 if self.cells.key_size() == 0 => {
                // Whether large values are compiled or not, nothing else looks like a head, nor as if there was nothing.
                let key = self.user_key(key);
                key.len() + value.len() <= self.entry_size_max()
                    && self.as_head(key, value).is_none()
                    && value != NOTHING
            }
            size => value.len() == usize::from(size),
        }
    }

    /// Whether a node read from flash is safe to use.
    pub(crate) fn is_sound(&self, level: u8, node: &[u8]) -> bool {
        match level {
            0 => self.cells.leaf_check(node),
            _ => self.cells.inner_check(node, self.page_bits()),
        }
    }

    /// Where the leaf of a path stands in the page of the path.
    pub(crate) fn front(&self, height: u8) -> usize {
        PathBody::front(self.header_size(), usize::from(height), true, 0)
    }

    /// Where a leaf stands in a page of its own, that is not the root's.
    pub(crate) fn own_front(&self) -> usize {
        PathBody::front(self.header_size(), 1, false, 0)
    }

    /// Bytes of a leaf in a page of its own. It may become the root, whose page has a longer front.
    pub(crate) fn own_room(&self) -> usize {
        self.page_size - self.front(1)
    }

    /// Makes a leaf that stands at [`TreeShape::own_front`] a page of its own. What is behind it is filled up to `end`.
    pub(crate) fn seal_leaf(&self, height: u8, bytes: &mut [u8], size: usize, end: usize) {
        debug_assert!(self.own_front() + size <= end && end <= bytes.len(), "the leaf fits");
        // A page of its own never has the root, not even the page of a root that is being split.
        let front = PathFront {
            height: height.max(2),
            lowest: 0,
            format: self.format,
            records: 0,
            root: None,
            locator: &[],
            sizes: &[size as u16],
        };
        let at = front.write(bytes, self.header_size());
        debug_assert!(at == self.own_front(), "the leaf stands behind the front");
        bytes[at + size..end].fill(0xFF);
    }

    /// Makes an inner node that stands at the front of a buffer a page of its own; `locator` is a key in its range. `None` if it does not fit.
    pub(crate) fn seal_inner(
        &self,
        (height, level): (u8, u8),
        bytes: &mut [u8],
        size: usize,
        locator: &[u8],
    ) -> Option<()> {
        debug_assert!(level > 0 && bytes.len() == self.page_size, "an inner node in a page");
        let at = bytes.len().checked_sub(size)?;
        if PathBody::front(self.header_size(), 1, false, locator.len()) > at {
            return None;
        }
        bytes.copy_within(..size, at);
        let front = PathFront {
            height: height.max(level + 2),
            lowest: level,
            format: self.format,
            records: 0,
            root: None,
            locator,
            sizes: &[size as u16],
        };
        let end = front.write(bytes, self.header_size());
        debug_assert!(end <= at, "front and node do not overlap");
        bytes[end..at].fill(0xFF);
        Some(())
    }

    /// Makes a buffer a bare commit.
    pub(crate) fn seal_bare(&self, state: TreeState, bytes: &mut [u8]) {
        debug_assert!(state.root < self.page_count, "the root is on flash");
        let front = PathFront {
            height: state.height,
            lowest: 0,
            format: self.format,
            records: state.written_records(),
            root: Some(state.root),
            locator: &[],
            sizes: &[],
        };
        let end = front.write(bytes, self.header_size());
        debug_assert!(end == self.bare_front(), "the front ends where sections stand");
        bytes[end..].fill(0xFF);
    }

    fn bare_front(&self) -> usize {
        PathBody::front(self.header_size(), 0, true, 0)
    }

    /// Bytes for sections in a bare commit.
    pub(crate) fn bare_room(&self) -> usize {
        self.page_size - self.bare_front()
    }

    /// The place for sections in a bare commit, which says from here on that it has some.
    pub(crate) fn sections_of_bare<'b>(&self, bytes: &'b mut [u8]) -> &'b mut [u8] {
        flag_sections(bytes, self.header_size());
        &mut bytes[self.bare_front()..]
    }
}

/// What a commit says of the tree: where the root is, how many levels there are, and how many entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeState {
    pub(crate) root: u32,
    pub(crate) height: u8,
    pub(crate) counts: Counts,
}

/// How many entries a tree has, and what they name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    /// Whether some of them may name pages of values.
    pub(crate) has_heads: bool,
    /// Whether there may be records of snapshots, which do not count.
    pub(crate) has_snapshots: bool,
    /// How many pages they name, about.
    pub(crate) value_pages: u32,
}

/// Bits of the number of entries, where a page says how many there are.
const RECORDS_BITS: u32 = 39;

/// Bits of the number of pages of values, which stands above.
const PAGES_BITS: u32 = 23;

/// Above both: there may be records of snapshots.
const SNAPSHOTS: u64 = 1 << 62;

/// Some entries may name pages of values.
const HEADS: u64 = 1 << 63;

impl Counts {
    /// Whether some entries may name pages of values, where such are compiled.
    pub(crate) fn may_have_heads(self) -> bool {
        BLOBS && self.has_heads
    }
}

impl TreeState {
    /// Of a tree that is not on flash yet.
    pub(crate) const NONE: TreeState = TreeState {
        root: u32::MAX,
        height: 1,
        counts: Counts { records: 0, has_heads: false, has_snapshots: false, value_pages: 0 },
    };

    /// What a page says of its entries.
    pub(crate) fn read(root: u32, height: u8, records: u64) -> TreeState {
        let value_pages = (records >> RECORDS_BITS & ((1 << PAGES_BITS) - 1)) as u32;
        let has_heads = records & HEADS != 0;
        let has_snapshots = records & SNAPSHOTS != 0;
        let counts = Counts { records: records & ((1 << RECORDS_BITS) - 1), has_heads, has_snapshots, value_pages };
        TreeState { root, height, counts }
    }

    /// The number of entries as a page says it.
    pub(crate) fn written_records(self) -> u64 {
        let Counts { records, has_heads, has_snapshots, value_pages } = self.counts;
        let pages = u64::from(value_pages).min((1 << PAGES_BITS) - 1) << RECORDS_BITS;
        let flags = if has_heads { HEADS } else { 0 } | if has_snapshots { SNAPSHOTS } else { 0 };
        records.min((1 << RECORDS_BITS) - 1) | pages | flags
    }
}

#[cfg(test)]
mod tests {
    use nandu_cells::FixedCells;
    use nandu_media::PageKind;
    use nandu_media::path::PathBody;

    use super::{Counts, TreeShape, TreeState};

    fn shape() -> TreeShape<FixedCells<4, 4>> {
        TreeShape::new(FixedCells::<4, 4>, 256, 40, 128, 0).unwrap()
    }

    #[test]
    fn a_leaf_and_an_inner_node_in_pages_of_their_own_are_found_there() {
        let shape = shape();
        let mut page = [0xEE; 256];
        let own = shape.own_front();
        page[own..own + 7].fill(7);
        shape.seal_leaf(1, &mut page, 7, 256);
        let body = PathBody::parse(&page, 40, PageKind::Node).unwrap();
        assert_eq!((body.height(), body.lowest(), body.node(0), body.root_present()), (2, 0, Ok(own..own + 7), false));
        assert_eq!((page[own + 6], page[own + 7], page[255]), (7, 0xFF, 0xFF));
        page[..9].fill(9);
        assert_eq!(shape.seal_inner((3, 1), &mut page, 9, b"key!"), Some(()));
        let body = PathBody::parse(&page, 40, PageKind::Node).unwrap();
        assert_eq!((body.lowest(), body.node(1), &page[body.locator()]), (1, Ok(247..256), &b"key!"[..]));
        assert_eq!(page[247..], [9; 9]);
        assert_eq!(shape.seal_inner((3, 1), &mut page, 250, b"key!"), None, "it does not fit beside its front");
    }

    #[test]
    fn a_bare_commit_names_the_root() {
        let mut page = [0xEE; 256];
        let state = TreeState {
            root: 77,
            height: 3,
            counts: Counts { records: 500, has_heads: true, has_snapshots: true, value_pages: 9 },
        };
        shape().seal_bare(state, &mut page);
        let body = PathBody::parse(&page, 40, PageKind::Commit).unwrap();
        assert_eq!((body.named_root(), body.height(), body.levels()), (Some(77), 3, 0));
        assert_eq!(TreeState::read(77, 3, body.records()), state);
    }

    #[test]
    fn pages_that_are_too_small_are_refused() {
        assert!(TreeShape::new(FixedCells::<8, 60>, 256, 40, 128, 0).is_none(), "a leaf holds four entries");
        assert!(TreeShape::new(FixedCells::<4, 4>, 128, 40, 128, 0).is_none());
        assert!(shape().key_fits(&[0; 4]) && !shape().key_fits(&[0; 3]));
        assert!(shape().value_fits(&[0; 4], &[0; 4]) && !shape().value_fits(&[0; 4], &[0; 5]));
    }
}
