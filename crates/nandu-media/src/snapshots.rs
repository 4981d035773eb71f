//! FORMAT: Snapshot table
//!
//! Old roots that are kept reachable. A commit page: like a page with the root it says what the tree is, so that taking
//! and releasing a snapshot costs one program. The pages with the root that follow name it.

use core::mem::size_of;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::tree::HEIGHT_MAX;
use crate::{Field, Malformed};

/// Most snapshots there are at a time. A table of them fits a page of 256 bytes.
pub const SNAPSHOT_COUNT_MAX: usize = 8;

const FLAG_VALUES: u8 = 1;

/// Front of a snapshot table, behind the header that every page has.
///
/// ```text
/// offset  size  field     meaning
///      0     4  root      page of the root of the tree when the table was written
///      4     8  records   entries in that tree
///     12     1  height    levels in it, 1 to 8
///     13     1  flags     1: values were put that have pages of their own
///     14     1  count     snapshots, 0 to 8
///     15     1  reserved  zero
///     16     4  shared    pages of that tree that snapshots reach, at most
///     20  20*n  entries   numbers differ
///   then        filling   erased bytes (0xFF) to the end of the page
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SnapshotFront {
    root: U32,
    records: U64,
    height: u8,
    flags: u8,
    count: u8,
    reserved: u8,
    shared: U32,
}

/// An entry of a snapshot table.
///
/// ```text
/// offset  size  field     meaning
///      0     4  number    names the snapshot; no two at a time have the same
///      4     4  root      page of the root
///      8     8  records   entries in the tree
///     16     1  height    levels in the tree, 1 to 8
///     17     3  reserved  zero
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct SnapshotEntry {
    number: U32,
    root: U32,
    records: U64,
    height: u8,
    reserved: [u8; 3],
}

const _: () = assert!(size_of::<SnapshotFront>() == 20 && size_of::<SnapshotEntry>() == 20);

/// A tree as a snapshot table names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Root {
    /// Page of the root.
    pub page: u32,
    /// Levels in the tree.
    pub height: u8,
    /// Entries in the tree.
    pub records: u64,
}

/// A snapshot as its table names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// Names the snapshot.
    pub number: u32,
    /// Its tree.
    pub root: Root,
}

/// A snapshot table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotTable {
    /// The tree when the table was written.
    pub current: Root,
    /// Whether values were put that have pages of their own.
    pub has_values: bool,
    /// Pages of that tree that snapshots reach, at most.
    pub shared: u32,
    records: [SnapshotRecord; SNAPSHOT_COUNT_MAX],
    count: u8,
}

impl SnapshotTable {
    /// A table with these snapshots; more than it has room for are a bug.
    pub fn new(current: Root, has_values: bool, shared: u32, snapshots: &[SnapshotRecord]) -> SnapshotTable {
        let mut records = [SnapshotRecord::default(); SNAPSHOT_COUNT_MAX];
        records[..snapshots.len()].copy_from_slice(snapshots);
        SnapshotTable { current, has_values, shared, records, count: snapshots.len() as u8 }
    }

    /// The snapshots.
    pub fn snapshots(&self) -> &[SnapshotRecord] {
        &self.records[..self.count as usize]
    }

    /// Bytes of a page that the largest table takes, header included.
    pub const fn size_max(header_size: usize) -> usize {
        header_size + size_of::<SnapshotFront>() + SNAPSHOT_COUNT_MAX * size_of::<SnapshotEntry>()
    }

    /// Checks what stands behind the header of a page.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Range`].
    pub fn parse(page: &[u8], header_size: usize) -> Result<SnapshotTable, Malformed> {
        let body = page.get(header_size..).ok_or(Malformed::Size)?;
        let (front, rest) = SnapshotFront::ref_from_prefix(body).map_err(|_| Malformed::Size)?;
        if front.reserved != 0 || front.flags > FLAG_VALUES {
            return Err(Malformed::Range(Field::Reserved));
        }
        if front.count as usize > SNAPSHOT_COUNT_MAX {
            return Err(Malformed::Range(Field::Count));
        }
        let count = front.count as usize;
        let (entries, _) = <[SnapshotEntry]>::ref_from_prefix_with_elems(rest, count).map_err(|_| Malformed::Size)?;
        let mut records = [SnapshotRecord::default(); SNAPSHOT_COUNT_MAX];
        for (place, entry) in entries.iter().enumerate() {
            if entry.reserved != [0; 3] {
                return Err(Malformed::Range(Field::Reserved));
            }
            let number = entry.number.get();
            if records[..place].iter().any(|earlier| earlier.number == number) {
                return Err(Malformed::Range(Field::Number));
            }
            let root = Self::root(entry.root.get(), entry.height, entry.records.get())?;
            records[place] = SnapshotRecord { number, root };
        }
        let current = Self::root(front.root.get(), front.height, front.records.get())?;
        let has_values = front.flags & FLAG_VALUES != 0;
        Ok(SnapshotTable { current, has_values, shared: front.shared.get(), records, count: front.count })
    }

    fn root(page: u32, height: u8, records: u64) -> Result<Root, Malformed> {
        if (1..=HEIGHT_MAX as u8).contains(&height) {
            Ok(Root { page, height, records })
        } else {
            Err(Malformed::Range(Field::Height))
        }
    }

    /// Writes the table behind the header of a page, and the filling.
    pub fn write(&self, page: &mut [u8], header_size: usize) {
        let front = SnapshotFront {
            root: U32::new(self.current.page),
            records: U64::new(self.current.records),
            height: self.current.height,
            flags: if self.has_values { FLAG_VALUES } else { 0 },
            count: self.count,
            reserved: 0,
            shared: U32::new(self.shared),
        };
        let mut at = header_size + size_of::<SnapshotFront>();
        page[header_size..at].copy_from_slice(front.as_bytes());
        for record in self.snapshots() {
            let entry = SnapshotEntry {
                number: U32::new(record.number),
                root: U32::new(record.root.page),
                records: U64::new(record.root.records),
                height: record.root.height,
                reserved: [0; 3],
            };
            page[at..at + size_of::<SnapshotEntry>()].copy_from_slice(entry.as_bytes());
            at += size_of::<SnapshotEntry>();
        }
        page[at..].fill(0xFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> SnapshotTable {
        let root = Root { page: 0x0102_0304, height: 3, records: 0x0506_0708_090A };
        let older = SnapshotRecord { number: 0x0B0C, root: Root { page: 7, height: 2, records: 5 } };
        SnapshotTable::new(root, true, 0x0D0E, &[older, SnapshotRecord { number: 9, root }])
    }

    #[test]
    fn the_bytes_of_a_snapshot_table_are_frozen() {
        let mut page = [0_u8; 72];
        table().write(&mut page, 8);
        let expected = [
            4, 3, 2, 1, 0x0A, 9, 8, 7, 6, 5, 0, 0, 3, 1, 2, 0, 0x0E, 0x0D, 0, 0, // front
            0x0C, 0x0B, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, // older
            9, 0, 0, 0, 4, 3, 2, 1, 0x0A, 9, 8, 7, 6, 5, 0, 0, 3, 0, 0, 0, // newer
            0xFF, 0xFF, 0xFF, 0xFF,
        ];
        assert_eq!(page[8..], expected);
        assert_eq!(SnapshotTable::parse(&page, 8), Ok(table()));
    }

    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        let mut page = [0_u8; 72];
        table().write(&mut page, 8);
        let with = |at: usize, value: u8| {
            let mut page = page;
            page[at] = value;
            SnapshotTable::parse(&page, 8).map(|_| ())
        };
        for at in [8 + 15, 8 + 20 + 17, 8 + 20 + 19] {
            assert_eq!(with(at, 1), Err(Malformed::Range(Field::Reserved)), "byte {at}");
        }
        assert_eq!(with(8 + 13, 2), Err(Malformed::Range(Field::Reserved)));
        assert_eq!(with(8 + 14, 9), Err(Malformed::Range(Field::Count)));
        // Three entries would take more bytes than there are.
        assert_eq!(with(8 + 14, 3), Err(Malformed::Size));
        for height in [8 + 12, 8 + 20 + 16, 8 + 40 + 16] {
            assert_eq!(with(height, 0), Err(Malformed::Range(Field::Height)));
            assert_eq!(with(height, 9), Err(Malformed::Range(Field::Height)));
        }
        let mut twice = page;
        twice.copy_within(28..32, 48);
        assert_eq!(SnapshotTable::parse(&twice, 8), Err(Malformed::Range(Field::Number)));
        assert_eq!(SnapshotTable::parse(&page[..20], 8), Err(Malformed::Size));
        assert_eq!(SnapshotTable::parse(&page[..4], 8), Err(Malformed::Size));
    }
}
