//! FORMAT: Pages of the in-page-logging index
//!
//! A volume of this kind is no log: nodes stand in blocks, and what changed in them stands in log sectors of the same
//! block. All its pages begin alike.

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::checksum;
use crate::{Field, Malformed};

pub mod anchor;
pub mod journal;
pub mod record;
pub mod sector;

/// Magic of every page of such a volume, "GR" in memory order.
pub const MAGIC: u16 = u16::from_le_bytes(*b"GR");

/// Version of the format that this crate writes and reads.
pub const VERSION: u8 = 1;

/// Bytes of [`Front`].
pub const FRONT_SIZE: usize = size_of::<Front>();

/// Bytes in front of the fences of a node.
pub const NODE_SIZE: usize = FRONT_SIZE + size_of::<NodeFront>();

/// Flag of a node: it was made by splitting `origin`.
pub const FLAG_SPLIT: u8 = 1;

/// Flag of a node: a merge moved it here.
pub const FLAG_MOVED: u8 = 2;

/// Flag of a node: no fence bounds it above.
pub const FLAG_UNBOUNDED: u8 = 4;

/// Flags of nodes that this version knows.
pub const FLAGS_KNOWN: u8 = FLAG_SPLIT | FLAG_MOVED | FLAG_UNBOUNDED;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A node.
    Node = 1,
    /// Runs of log records, of several nodes of the block.
    Log = 2,
    /// What the volume is.
    Anchor = 3,
    /// Changes, ahead of the nodes they belong to.
    Journal = 4,
    /// What a node has beyond its first page.
    Part = 5,
}

impl Kind {
    /// The kind with this number.
    pub const fn from_number(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Node,
            2 => Kind::Log,
            3 => Kind::Anchor,
            4 => Kind::Journal,
            5 => Kind::Part,
            _ => return None,
        })
    }
}

/// First bytes of every page but those of log sectors.
///
/// ```text
/// offset  size  field        meaning
///      0     4  crc          CRC-32C of the page from `magic` to the last byte of its content
///      4     2  magic        "GR"
///      6     1  version      of the format: 1
///      7     1  kind         1 node, 2 log page, 3 anchor, 4 journal, 5 further page of a node
///      8     8  sequence     counts programs of the volume, sectors included, never reused; gaps are allowed. The pages of a
///                            node have one in common
///     16     4  page         the page's own address
///     20     4  volume       id of the volume
///     24     4  erase_count  erases of the block when the page was programmed
///     28     4  size         bytes of the page that have a meaning, this front included; the rest is erased
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Front {
    crc: U32,
    magic: U16,
    version: u8,
    kind: u8,
    sequence: U64,
    page: U32,
    volume: U32,
    erase_count: U32,
    size: U32,
}

const _: () = {
    assert!(size_of::<Front>() == 32);
    assert!(offset_of!(Front, sequence) == 8);
    assert!(offset_of!(Front, size) == 28);
};

/// What the front of a page says, to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontFields {
    /// What the page holds.
    pub kind: Kind,
    /// The page's place in the order of programs.
    pub sequence: u64,
    /// The page's own address.
    pub page: u32,
    /// Id of the volume.
    pub volume: u32,
    /// Erases of the block.
    pub erase_count: u32,
    /// Bytes that have a meaning.
    pub size: u32,
}

impl FrontFields {
    /// Writes the front of a page whose content is in place, and makes the rest look erased. The caller guarantees a size
    /// that the buffer has; anything else is a bug.
    pub fn seal(&self, bytes: &mut [u8]) {
        let size = self.size as usize;
        assert!((FRONT_SIZE..=bytes.len()).contains(&size));
        bytes[size..].fill(0xFF);
        let front = Front {
            crc: U32::ZERO,
            magic: U16::new(MAGIC),
            version: VERSION,
            kind: self.kind as u8,
            sequence: U64::new(self.sequence),
            page: U32::new(self.page),
            volume: U32::new(self.volume),
            erase_count: U32::new(self.erase_count),
            size: U32::new(self.size),
        };
        bytes[..FRONT_SIZE].copy_from_slice(front.as_bytes());
        let crc = checksum(&bytes[4..size]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Checks a whole page: magic, checksum, version, kind. Whether it stands at the right place and belongs to the right
    /// volume, only the caller knows: [`FrontFields::expect`].
    ///
    /// # Errors
    ///
    /// The first check that fails, in the order above.
    pub fn parse(bytes: &[u8]) -> Result<FrontFields, Malformed> {
        let (front, _) = Front::ref_from_prefix(bytes).map_err(|_| Malformed::Size)?;
        if front.magic.get() != MAGIC {
            return Err(Malformed::Magic);
        }
        let size = front.size.get();
        let content = bytes.get(4..size as usize).filter(|_| size as usize >= FRONT_SIZE).ok_or(Malformed::Size)?;
        if front.crc.get() != checksum(content) {
            return Err(Malformed::Checksum);
        }
        if front.version != VERSION {
            return Err(Malformed::Version(front.version));
        }
        let kind = Kind::from_number(front.kind).ok_or(Malformed::Kind(front.kind))?;
        Ok(FrontFields {
            kind,
            sequence: front.sequence.get(),
            page: front.page.get(),
            volume: front.volume.get(),
            erase_count: front.erase_count.get(),
            size,
        })
    }

    /// Checks that the page belongs to this volume and stands at this address.
    ///
    /// # Errors
    ///
    /// [`Malformed::Volume`], [`Malformed::Misplaced`].
    pub fn expect(self, volume: u32, page: u32) -> Result<FrontFields, Malformed> {
        if self.volume != volume {
            return Err(Malformed::Volume);
        }
        if self.page != page {
            return Err(Malformed::Misplaced);
        }
        Ok(self)
    }
}

/// What stands behind the front of a page that holds a node.
///
/// ```text
/// offset  size  field        meaning
///     32     4  node         id of the node, from 1, never reused; 1 is the root
///     36     4  origin       the node that was split to make this one, or 0
///     40     4  group        number of the group that the block belongs to
///     44     2  entry_count  entries
///     46     1  level        0: leaf
///     47     1  flags        bit 0 made by a split, bit 1 moved by a merge, bit 2 not bounded above
///     48     1  position     of the block in its group
///     49     1  log_pages    granted to the block when the page was programmed
///     50     1  low_size     bytes of the lower fence
///     51     1  high_size    bytes of the upper fence
///     52        low          no key of the node is below
///               high         every key of the node is below
///               entries      ascending. Fixed width: key, then value or child. Byte strings: a leaf's are size of the key
///                            (1), size of the value (2), key, value; an inner node's size of the key (1), key, child
/// ```
///
/// A child is the number of a node (4 bytes), and its key the lower fence of that node.
///
/// Where a node has several pages, its bytes go on behind the front of each further page, which follow the first one in the
/// block. The node counts if all of them verify and have its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct NodeFront {
    node: U32,
    origin: U32,
    group: U32,
    entry_count: U16,
    level: u8,
    flags: u8,
    position: u8,
    log_pages: u8,
    low_size: u8,
    high_size: u8,
}

const _: () = {
    assert!(NODE_SIZE == 52);
    assert!(offset_of!(NodeFront, entry_count) == 12);
    assert!(offset_of!(NodeFront, high_size) == 19);
};

/// What a node's page says of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFields {
    /// Id of the node.
    pub node: u32,
    /// The node that was split to make this one, or 0.
    pub origin: u32,
    /// Number of the block's group.
    pub group: u32,
    /// Entries.
    pub entry_count: u16,
    /// Level; leaves are 0.
    pub level: u8,
    /// [`FLAG_SPLIT`], [`FLAG_MOVED`], [`FLAG_UNBOUNDED`].
    pub flags: u8,
    /// Place of the block in its group.
    pub position: u8,
    /// Log pages granted to the block.
    pub log_pages: u8,
    /// Bytes of the lower fence.
    pub low_size: u8,
    /// Bytes of the upper fence.
    pub high_size: u8,
}

impl NodeFields {
    /// Writes them behind the front. A buffer that is too short is a bug.
    pub fn write(&self, bytes: &mut [u8]) {
        let front = NodeFront {
            node: U32::new(self.node),
            origin: U32::new(self.origin),
            group: U32::new(self.group),
            entry_count: U16::new(self.entry_count),
            level: self.level,
            flags: self.flags,
            position: self.position,
            log_pages: self.log_pages,
            low_size: self.low_size,
            high_size: self.high_size,
        };
        bytes[FRONT_SIZE..NODE_SIZE].copy_from_slice(front.as_bytes());
    }

    /// Reads them from a page, without looking at the front.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Range`].
    pub fn parse(bytes: &[u8]) -> Result<NodeFields, Malformed> {
        let rest = bytes.get(FRONT_SIZE..).ok_or(Malformed::Size)?;
        let (front, _) = NodeFront::ref_from_prefix(rest).map_err(|_| Malformed::Size)?;
        if front.node.get() == 0 {
            return Err(Malformed::Range(Field::Node));
        }
        if front.flags & !FLAGS_KNOWN != 0 || (front.flags & FLAG_UNBOUNDED != 0 && front.high_size != 0) {
            return Err(Malformed::Range(Field::Flags));
        }
        if NODE_SIZE + usize::from(front.low_size) + usize::from(front.high_size) > bytes.len() {
            return Err(Malformed::Range(Field::Fences));
        }
        Ok(NodeFields {
            node: front.node.get(),
            origin: front.origin.get(),
            group: front.group.get(),
            entry_count: front.entry_count.get(),
            level: front.level,
            flags: front.flags,
            position: front.position,
            log_pages: front.log_pages,
            low_size: front.low_size,
            high_size: front.high_size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: FrontFields = FrontFields {
        kind: Kind::Node,
        sequence: 0x0102_0304_0506_0708,
        page: 0x1112_1314,
        volume: 0x2122_2324,
        erase_count: 0x31,
        size: 60,
    };

    fn page() -> [u8; 64] {
        let mut page = [0; 64];
        let node = NodeFields {
            node: 9,
            origin: 7,
            group: 0x0A0B,
            entry_count: 2,
            level: 1,
            flags: FLAG_SPLIT | FLAG_UNBOUNDED,
            position: 3,
            log_pages: 4,
            low_size: 2,
            high_size: 0,
        };
        node.write(&mut page);
        page[NODE_SIZE..60].copy_from_slice(b"lowentry");
        FIELDS.seal(&mut page);
        page
    }

    #[test]
    fn the_bytes_of_a_node_page_are_frozen() {
        let page = page();
        let front = b"GR\x01\x01\x08\x07\x06\x05\x04\x03\x02\x01\x14\x13\x12\x11\x24\x23\x22\x21\x31\0\0\0\x3C\0\0\0";
        assert_eq!(page[4..32], front[..]);
        let node = b"\x09\0\0\0\x07\0\0\0\x0B\x0A\0\0\x02\0\x01\x05\x03\x04\x02\0lowentry\xFF\xFF\xFF\xFF";
        assert_eq!(page[32..], node[..]);
        assert_eq!(page[..4], checksum(&page[4..60]).to_le_bytes());
        assert_eq!(FrontFields::parse(&page), Ok(FIELDS));
        assert_eq!(FIELDS.expect(0x2122_2324, 0x1112_1314), Ok(FIELDS));
        assert_eq!(FIELDS.expect(1, 0x1112_1314), Err(Malformed::Volume));
        assert_eq!(FIELDS.expect(0x2122_2324, 1), Err(Malformed::Misplaced));
        let fields = NodeFields::parse(&page).unwrap();
        assert_eq!((fields.node, fields.level, fields.entry_count, fields.low_size), (9, 1, 2, 2));
    }

    #[test]
    fn every_flipped_bit_of_the_content_is_refused() {
        let good = page();
        for bit in 0..60 * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(FrontFields::parse(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn fields_out_of_range_are_refused() {
        let with = |at: usize, value: u8| {
            let mut page = page();
            page[at] = value;
            NodeFields::parse(&page)
        };
        assert_eq!(with(32, 0), Err(Malformed::Range(Field::Node)));
        assert_eq!(with(47, 8), Err(Malformed::Range(Field::Flags)));
        assert_eq!(with(51, 1), Err(Malformed::Range(Field::Flags)));
        assert_eq!(with(50, 200), Err(Malformed::Range(Field::Fences)));
        assert_eq!(NodeFields::parse(&page()[..40]), Err(Malformed::Size));
    }
}
