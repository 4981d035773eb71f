//! FORMAT: Pages of the durable baselines
//!
//! What the wandering B+-tree and the paper's mu-Tree of `nandu-baselines` put on flash when they are to be found again.
//! All numbers are little-endian. "None" is all ones.

use nandu_media::checksum::checksum;
use nandu_nand::{BlockAddr, PageAddr};

use crate::TreeKind;
use crate::layout::FACTS_SIZE;

/// Bytes of the header.
pub(super) const HEADER_SIZE: usize = 56;

/// Where the layout keeps what it has to say of the nodes.
pub(super) const FACTS_COLUMN: usize = 38;

/// Stands for no page and no block.
pub(super) const NONE: u32 = u32::MAX;

/// Most blocks that are named as erased and next to be filled.
pub(super) const READY_MAX: usize = 8;

/// Anchor blocks.
pub(super) const ANCHOR_COUNT: usize = 3;

const MAGIC: [u8; 4] = *b"nduB";
const VERSION: u8 = 1;

/// No page has a higher sequence; numbers beyond it are left for counting on.
const SEQUENCE_MAX: u64 = u64::MAX >> 1;

/// Fixed part of the body of a page of the chain.
const LINK_SIZE: usize = 76;

const _: () = assert!(FACTS_COLUMN + FACTS_SIZE <= HEADER_SIZE);

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nodes of the tree.
    Tree = 1,
    /// In an anchor block: the beginning of the chain, or a superblock.
    Anchor = 2,
    /// Names the block with the superblocks.
    Pointer = 3,
    /// The tree's root and the state of the blocks.
    Superblock = 4,
}

/// First bytes of every page.
///
/// ```text
/// offset  size  field        meaning
///      0     4  magic        "nduB"
///      4     4  crc          CRC-32C from `sequence` to the last byte of the page
///      8     8  sequence     of a tree page among tree pages, of any other among those
///     16     8  records      in the tree, once the operation that the page belongs to is done
///     24     4  volume       chosen at format
///     28     4  page         address of this page
///     32     1  kind         1 tree, 2 anchor, 3 pointer, 4 superblock
///     33     1  version      1
///     34     1  tree         0 mu-Tree, 1 B+-tree
///     35     1  flags        bit 0: last page of an operation; bit 1: holds the root; bit 2: programmed by a mount, and to be
///                            reached from its superblock alone
///     36     2  group_index  place among the pages of the operation; 0 begins a new try
///     38     1  height       levels of the tree that a tree page was made for; where the root lies follows from it
///     39     1  lowest       lowest level in a tree page, leaves are 1
///     40    16  counts       entries at each level, 2 bytes each
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) sequence: u64,
    pub(super) records: u64,
    pub(super) volume: u32,
    pub(super) page: PageAddr,
    pub(super) kind: Kind,
    pub(super) tree: TreeKind,
    pub(super) is_last: bool,
    pub(super) has_root: bool,
    pub(super) is_repair: bool,
    pub(super) group_index: u16,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_long(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

impl Header {
    /// Writes the header to a page that is complete but for it.
    pub(super) fn seal(&self, page: &mut [u8]) {
        page[..4].copy_from_slice(&MAGIC);
        put_long(page, 8, self.sequence);
        put_long(page, 16, self.records);
        put_word(page, 24, self.volume);
        put_word(page, 28, self.page.0);
        page[32] = self.kind as u8;
        page[33] = VERSION;
        page[34] = u8::from(self.tree == TreeKind::BPlus);
        page[35] = u8::from(self.is_last) | u8::from(self.has_root) << 1 | u8::from(self.is_repair) << 2;
        page[36..38].copy_from_slice(&self.group_index.to_le_bytes());
        let crc = checksum(&page[8..]);
        put_word(page, 4, crc);
    }

    /// The header of a page that verifies: what was read at an address is what was programmed there.
    pub(super) fn parse(page: &[u8], at: PageAddr) -> Option<Header> {
        if page[..4] != MAGIC || word(page, 4) != checksum(&page[8..]) || page[33] != VERSION {
            return None;
        }
        let kind = [Kind::Tree, Kind::Anchor, Kind::Pointer, Kind::Superblock];
        let kind = kind.into_iter().find(|&kind| kind as u8 == page[32])?;
        let tree = match page[34] {
            0 => TreeKind::Mu,
            1 => TreeKind::BPlus,
            _ => return None,
        };
        let header = Header {
            sequence: long(page, 8),
            records: long(page, 16),
            volume: word(page, 24),
            page: PageAddr(word(page, 28)),
            kind,
            tree,
            is_last: page[35] & 1 != 0,
            has_root: page[35] & 2 != 0,
            is_repair: page[35] & 4 != 0,
            group_index: u16::from_le_bytes([page[36], page[37]]),
        };
        (header.page == at && page[35] < 8 && header.sequence <= SEQUENCE_MAX).then_some(header)
    }
}

/// Body of the pages of the chain, behind the header.
///
/// ```text
/// offset  size  field          meaning
///      0    12  anchors        the three anchor blocks
///     12     4  stable         anchor block whose newest page is known not to have been torn; never erased next
///     16     4  target         block that this page points to; none: this is a superblock and the rest counts
///     20     4  root           page of the root; none: the tree is empty
///     24     4  open_block     block being filled; none: there is none
///     28     4  open_index     next page in it, counting those that are used
///     32     8  next_sequence  of the next tree page
///     40     1  height         levels of the tree
///     41     1  zero           zero
///     42     2  ready_count    entries of `ready` that count
///     44    32  ready          blocks that were erased, in the order in which they will be filled
///     76     -  bad            a bit for each block, lowest first: not to be used
///      -     -  safe           a bit for each block: nothing that this superblock or the one before needs is in it
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) anchors: [BlockAddr; ANCHOR_COUNT],
    pub(super) stable: BlockAddr,
    pub(super) target: Option<BlockAddr>,
    pub(super) root: Option<PageAddr>,
    pub(super) open: Option<(BlockAddr, u32)>,
    pub(super) next_sequence: u64,
    pub(super) height: u8,
    pub(super) ready: Vec<BlockAddr>,
    pub(super) bad: Vec<bool>,
    pub(super) safe: Vec<bool>,
}

fn bits_size(block_count: u32) -> usize {
    (block_count as usize).div_ceil(8)
}

impl Link {
    /// Bytes of a page that the body takes on a chip with so many blocks, header included.
    pub(super) fn page_size(block_count: u32) -> usize {
        HEADER_SIZE + LINK_SIZE + 2 * bits_size(block_count)
    }

    pub(super) fn encode(&self, page: &mut [u8]) {
        let body = &mut page[HEADER_SIZE..];
        body.fill(0);
        for (at, anchor) in self.anchors.iter().enumerate() {
            put_word(body, 4 * at, anchor.0);
        }
        put_word(body, 12, self.stable.0);
        put_word(body, 16, self.target.map_or(NONE, |block| block.0));
        put_word(body, 20, self.root.map_or(NONE, |page| page.0));
        put_word(body, 24, self.open.map_or(NONE, |(block, _)| block.0));
        put_word(body, 28, self.open.map_or(0, |(_, index)| index));
        put_long(body, 32, self.next_sequence);
        body[40] = self.height;
        body[42..44].copy_from_slice(&(self.ready.len() as u16).to_le_bytes());
        for (at, block) in self.ready.iter().enumerate() {
            put_word(body, 44 + 4 * at, block.0);
        }
        let size = bits_size(self.bad.len() as u32);
        for (bits, first) in [(&self.bad, LINK_SIZE), (&self.safe, LINK_SIZE + size)] {
            for (number, _) in bits.iter().enumerate().filter(|(_, is_set)| **is_set) {
                body[first + number / 8] |= 1 << (number % 8);
            }
        }
    }

    /// The body of a page that verified; none if it says what cannot be on a chip with so many blocks.
    pub(super) fn parse(page: &[u8], block_count: u32) -> Option<Link> {
        let body = &page[HEADER_SIZE..];
        let block = |at: usize| Some(BlockAddr(word(body, at))).filter(|block| block.0 < block_count);
        let optional = |at: usize| match word(body, at) {
            NONE => Some(None),
            number => (number < block_count).then_some(Some(BlockAddr(number))),
        };
        let ready_count = usize::from(u16::from_le_bytes([body[42], body[43]]));
        if ready_count > READY_MAX {
            return None;
        }
        let bits = |first: usize| -> Vec<bool> {
            (0..block_count as usize).map(|number| body[first + number / 8] >> (number % 8) & 1 != 0).collect()
        };
        Some(Link {
            anchors: [block(0)?, block(4)?, block(8)?],
            stable: block(12)?,
            target: optional(16)?,
            root: Some(word(body, 20)).filter(|&page| page != NONE).map(PageAddr),
            open: optional(24)?.map(|block| (block, word(body, 28))),
            next_sequence: Some(long(body, 32)).filter(|&sequence| sequence <= SEQUENCE_MAX)?,
            height: body[40],
            ready: (0..ready_count).map(|at| block(44 + 4 * at)).collect::<Option<Vec<BlockAddr>>>()?,
            bad: bits(LINK_SIZE),
            safe: bits(LINK_SIZE + bits_size(block_count)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_with_any_bit_flipped_or_at_another_address_is_refused() {
        let header = Header {
            sequence: 7,
            records: 9,
            volume: 3,
            page: PageAddr(5),
            kind: Kind::Tree,
            tree: TreeKind::Mu,
            is_last: true,
            has_root: true,
            is_repair: false,
            group_index: 0,
        };
        let mut page = vec![0xA5; 256];
        header.seal(&mut page);
        let read = Header::parse(&page, PageAddr(5)).map(|read| (read.sequence, read.records, read.is_last));
        assert_eq!(read, Some((7, 9, true)));
        assert!(Header::parse(&page, PageAddr(6)).is_none());
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::parse(&page, PageAddr(5)).is_none(), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_superblock_says_what_it_was_told_and_no_block_beyond_the_chip() {
        let link = Link {
            anchors: [BlockAddr(0), BlockAddr(2), BlockAddr(3)],
            stable: BlockAddr(2),
            target: None,
            root: Some(PageAddr(77)),
            open: Some((BlockAddr(9), 3)),
            next_sequence: 1 << 40,
            height: 3,
            ready: vec![BlockAddr(11), BlockAddr(12)],
            bad: (0..16).map(|number| number == 1).collect(),
            safe: (0..16).map(|number| number > 10).collect(),
        };
        let mut page = vec![0; Link::page_size(16)];
        link.encode(&mut page);
        assert_eq!(Link::parse(&page, 16), Some(link));
        assert_eq!(Link::parse(&page, 12), None, "a ready block is outside this chip");
    }
}
