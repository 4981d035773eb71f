//! FORMAT: Pages of DFFS
//!
//! All pages but those of file data begin with the attributes of DFFS's inodes and end with a checksum. Inodes of directories and
//! files have a name and two links behind the attributes, then pointers.
//!
//! Block 0 is never used for an inode, so page 0 stands for no page. A pointer in a bucket is 0, a logical number below 65,536, or the
//! address of a page plus 65,536.

use core::mem::{offset_of, size_of};

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::checksum;
use crate::{Field, Malformed};

/// Version of the format that this crate writes and reads.
pub const VERSION: u8 = 1;

/// Added to the address of a page where it stands in a bucket.
pub const POINTER_BASE: u32 = 65_536;

/// Bytes of [`Attributes`].
pub const ATTRIBUTES_SIZE: usize = size_of::<Attributes>();

/// Bytes of a name with the zero behind it.
pub const NAME_SIZE: usize = 256;

/// Where the address or number in front of the buckets stands.
pub const PREVIOUS_AT: usize = ATTRIBUTES_SIZE + NAME_SIZE;

/// Where the second one stands.
pub const NEXT_AT: usize = PREVIOUS_AT + 4;

/// Bytes in front of the buckets of a directory and of the pointers of a file.
pub const FRONT_SIZE: usize = NEXT_AT + 4;

/// Bytes of the checksum at the end of a page.
pub const BACK_SIZE: usize = 4;

/// Bytes of a record in the summary of a block of data.
pub const OWNER_SIZE: usize = size_of::<OwnerRecord>();

/// Bytes of a block in a checkpoint.
pub const BLOCK_SIZE: usize = 5;

/// Flag of an inode: it was renamed by the program of this page.
pub const FLAG_RENAMED: u16 = 1;

/// Flag of a checkpoint: the volume was unmounted.
pub const FLAG_CLEAN: u16 = 2;

/// Flag of a checkpoint: how many pages of each block live is not exact.
pub const FLAG_ROUGH: u16 = 4;

/// Flag of a checkpoint: it repeats one with the same sequence.
pub const FLAG_COPY: u16 = 8;

/// Flag of an inode or a page of the map: a recovery programmed it, and it counts only with the checkpoint that ended that.
pub const FLAG_RECOVERY: u16 = 16;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A directory's inode and its buckets.
    Directory = 1,
    /// More buckets of a directory.
    Virtual = 2,
    /// A file's inode and its pointers.
    File = 3,
    /// Part of the map of logical numbers.
    Map = 4,
    /// Whose the pages of a block of data are.
    Summary = 5,
    /// What the volume is.
    Superblock = 6,
    /// Part of a checkpoint.
    Checkpoint = 7,
}

impl Kind {
    /// The kind with this number.
    pub const fn from_number(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::Directory,
            2 => Kind::Virtual,
            3 => Kind::File,
            4 => Kind::Map,
            5 => Kind::Summary,
            6 => Kind::Superblock,
            7 => Kind::Checkpoint,
            _ => return None,
        })
    }
}

/// First bytes of every page but those of data.
///
/// ```text
/// offset  size  field          meaning
///      0     4  id             logical number of a directory or of a page of its buckets; number of a file, from 65,536; index of a
///                              page of the map; part of a checkpoint
///      4     4  parent         logical number of the directory that holds the name; of the directory itself in a page of its
///                              buckets; id of the volume in a superblock and a checkpoint
///      8     2  mode           kind and permissions, as in POSIX
///     10     2  sequence_high  upper bits of the sequence
///     12     2  uid            owner
///     14     2  gid            group
///     16     4  size           bytes of a file; bytes of the content of a checkpoint; generation of a directory, which no other with its number
///                              had, 0 of the root
///     20     4  atime          seconds since 1970, unsigned
///     24     4  mtime          of the content
///     28     4  ctime          of the inode
///     32     2  nlink          1; parts of a checkpoint
///     34     2  used           buckets in use; pages with an owner in a summary
///     36     4  sequence_low   counts programs of these pages, never reused; the parts of a checkpoint have one in common
///     40     1  kind           1 directory, 2 virtual directory, 3 file, 4 map, 5 summary, 6 superblock, 7 checkpoint
///     41     1  version        of the format: 1
///     42     2  flags          bit 0 renamed, bit 1 unmounted, bit 2 live counts are rough, bit 3 copy of a checkpoint,
///                        bit 4 programmed by a recovery
/// ```
///
/// The last four bytes of the page are the CRC-32C of all before them, exclusive-or with the CRC-32C of eight bytes: the id of the
/// volume and the page's address. In a superblock and a checkpoint, 0 takes the place of the id.
///
/// An inode goes on like this; `end` is the size of the page:
///
/// ```text
/// offset  size  field     meaning
///     44   256  name      zero-terminated; of the directory itself in a virtual directory: empty
///    300     4  previous  directory: page of its inode before it was renamed, if flagged; virtual directory: logical number of the page
///                         before it in the chain; file: the page of its inode to which the directory's bucket points, or 0
///    304     4  next      directory, virtual directory: logical number of the next page of the chain, or 0; file: page of its inode
///                         before it was renamed, if flagged
///    308  4 * B  buckets  directory: a pointer each. B is the largest prime for which all fits
///           B  bytes      second hash of the name behind each pointer, 1 to 255; 0: the bucket is empty
///    308  ...  pointers   file: pages of its data, 0: a hole
/// ```
///
/// The bucket of a name is the first eight bytes of its SHA-1, little-endian, modulo B, and its second hash is 1 plus byte 9 (from 1)
/// modulo 255. A bucket is in use in the first pages of the chain and in none behind the first in which it is not.
///
/// A page of the map has the addresses of the pages with its logical numbers from offset 44 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Attributes {
    id: U32,
    parent: U32,
    mode: U16,
    sequence_high: U16,
    uid: U16,
    gid: U16,
    size: U32,
    atime: U32,
    mtime: U32,
    ctime: U32,
    nlink: U16,
    used: U16,
    sequence_low: U32,
    kind: u8,
    version: u8,
    flags: U16,
}

const _: () = {
    assert!(ATTRIBUTES_SIZE == 44);
    assert!(offset_of!(Attributes, sequence_low) == 36);
    assert!(FRONT_SIZE == 308);
};

/// What the first bytes of a page say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Number of what the page holds.
    pub id: u32,
    /// Directory that holds the name, or volume.
    pub parent: u32,
    /// Kind and permissions.
    pub mode: u16,
    /// Owner.
    pub uid: u16,
    /// Group.
    pub gid: u16,
    /// Bytes.
    pub size: u32,
    /// Seconds since 1970.
    pub atime: u32,
    /// Seconds since 1970.
    pub mtime: u32,
    /// Seconds since 1970.
    pub ctime: u32,
    /// Links, or parts.
    pub nlink: u16,
    /// Buckets in use.
    pub used: u16,
    /// Place in the order of programs, below 2^48.
    pub sequence: u64,
    /// What the page holds.
    pub kind: Kind,
    /// Flags.
    pub flags: u16,
}

impl Fields {
    /// Fields of a page of this kind, all zero.
    pub const fn new(kind: Kind) -> Fields {
        Fields {
            id: 0,
            parent: 0,
            mode: 0,
            uid: 0,
            gid: 0,
            size: 0,
            atime: 0,
            mtime: 0,
            ctime: 0,
            nlink: 1,
            used: 0,
            sequence: 0,
            kind,
            flags: 0,
        }
    }

    /// Writes them to the front of a page. A shorter buffer is a bug.
    pub fn write(&self, page: &mut [u8]) {
        let front = Attributes {
            id: U32::new(self.id),
            parent: U32::new(self.parent),
            mode: U16::new(self.mode),
            sequence_high: U16::new((self.sequence >> 32) as u16),
            uid: U16::new(self.uid),
            gid: U16::new(self.gid),
            size: U32::new(self.size),
            atime: U32::new(self.atime),
            mtime: U32::new(self.mtime),
            ctime: U32::new(self.ctime),
            nlink: U16::new(self.nlink),
            used: U16::new(self.used),
            sequence_low: U32::new(self.sequence as u32),
            kind: self.kind as u8,
            version: VERSION,
            flags: U16::new(self.flags),
        };
        page[..ATTRIBUTES_SIZE].copy_from_slice(front.as_bytes());
    }

    /// Reads them from the front of a page, without looking at the checksum.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Version`], [`Malformed::Kind`].
    pub fn read(page: &[u8]) -> Result<Fields, Malformed> {
        let (front, _) = Attributes::ref_from_prefix(page).map_err(|_| Malformed::Size)?;
        if front.version != VERSION {
            return Err(Malformed::Version(front.version));
        }
        Ok(Fields {
            id: front.id.get(),
            parent: front.parent.get(),
            mode: front.mode.get(),
            uid: front.uid.get(),
            gid: front.gid.get(),
            size: front.size.get(),
            atime: front.atime.get(),
            mtime: front.mtime.get(),
            ctime: front.ctime.get(),
            nlink: front.nlink.get(),
            used: front.used.get(),
            sequence: u64::from(front.sequence_high.get()) << 32 | u64::from(front.sequence_low.get()),
            kind: Kind::from_number(front.kind).ok_or(Malformed::Kind(front.kind))?,
            flags: front.flags.get(),
        })
    }
}

/// The salt of a page's checksum.
fn salt(volume: u32, page: u32) -> u32 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&volume.to_le_bytes());
    bytes[4..].copy_from_slice(&page.to_le_bytes());
    checksum(&bytes)
}

/// Writes the checksum of a page that is ready to be programmed at this address.
pub fn seal(bytes: &mut [u8], volume: u32, page: u32) {
    let end = bytes.len() - BACK_SIZE;
    let crc = checksum(&bytes[..end]) ^ salt(volume, page);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
}

/// Checks a page read from this address and reads its front.
///
/// # Errors
///
/// [`Malformed::Checksum`], then those of [`Fields::read`], and [`Malformed::Range`] for an inode whose name does not end, or of a file with more
/// bytes than its pointers can lead to.
pub fn open(bytes: &[u8], volume: u32, page: u32) -> Result<Fields, Malformed> {
    let (body, crc) = bytes.split_last_chunk::<BACK_SIZE>().ok_or(Malformed::Size)?;
    if checksum(body) ^ salt(volume, page) != u32::from_le_bytes(*crc) {
        return Err(Malformed::Checksum);
    }
    let fields = Fields::read(body)?;
    if matches!(fields.kind, Kind::Directory | Kind::Virtual | Kind::File) {
        let name = body.get(ATTRIBUTES_SIZE..PREVIOUS_AT).ok_or(Malformed::Size)?;
        if !name.contains(&0) {
            return Err(Malformed::Range(Field::Name));
        }
    }
    if fields.kind == Kind::File && fields.size as usize > pointer_count(bytes.len()) * bytes.len() {
        return Err(Malformed::Range(Field::Size));
    }
    Ok(fields)
}

/// The name in an inode.
pub fn name(page: &[u8]) -> &[u8] {
    let field = &page[ATTRIBUTES_SIZE..PREVIOUS_AT];
    let size = field.iter().position(|&byte| byte == 0).unwrap_or(NAME_SIZE);
    &field[..size]
}

/// Writes the name of an inode: at most 255 bytes, without a zero; a longer one is cut.
pub fn set_name(page: &mut [u8], name: &[u8]) {
    let field = &mut page[ATTRIBUTES_SIZE..PREVIOUS_AT];
    field.fill(0);
    let size = name.len().min(NAME_SIZE - 1);
    field[..size].copy_from_slice(&name[..size]);
}

/// Four bytes at an offset.
pub fn word(page: &[u8], at: usize) -> u32 {
    page[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Writes four bytes at an offset.
pub fn set_word(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Buckets of a directory on pages of this size; 0 if there is no room for two.
pub const fn bucket_count(page_size: usize) -> usize {
    let mut count = page_size.saturating_sub(FRONT_SIZE + BACK_SIZE) / 5;
    while count > 1 {
        let mut divisor = 2;
        while divisor * divisor <= count && !count.is_multiple_of(divisor) {
            divisor += 1;
        }
        if divisor * divisor > count {
            return count;
        }
        count -= 1;
    }
    0
}

/// Pointers of a file on pages of this size.
pub const fn pointer_count(page_size: usize) -> usize {
    page_size.saturating_sub(FRONT_SIZE + BACK_SIZE) / 4
}

/// Logical numbers in a page of the map.
pub const fn map_entries(page_size: usize) -> usize {
    page_size.saturating_sub(ATTRIBUTES_SIZE + BACK_SIZE) / 4
}

/// Whose a page of data is: a record of the summary, which is the last page of its block.
///
/// ```text
/// offset  size  field      meaning
///      0     4  number     of the file; 0: nobody's
///      4     2  directory  logical number of the directory that held the file's name when the page was programmed
///      6     2  bucket     of the name at that time
///      8     2  index      of the page in the file
///     10     2  reserved   zero
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct OwnerRecord {
    number: U32,
    directory: U16,
    bucket: U16,
    index: U16,
    reserved: U16,
}

/// Whose a page of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Number of the file.
    pub number: u32,
    /// Directory that held its name.
    pub directory: u32,
    /// Bucket of its name.
    pub bucket: u16,
    /// Index of the page in the file.
    pub index: u16,
}

/// Writes a record of a summary page.
pub fn set_owner(page: &mut [u8], nth: usize, owner: Owner) {
    let record = OwnerRecord {
        number: U32::new(owner.number),
        directory: U16::new(owner.directory as u16),
        bucket: U16::new(owner.bucket),
        index: U16::new(owner.index),
        reserved: U16::ZERO,
    };
    let at = ATTRIBUTES_SIZE + nth * OWNER_SIZE;
    page[at..at + OWNER_SIZE].copy_from_slice(record.as_bytes());
}

/// Reads a record of a summary page; `None` if the page is nobody's.
pub fn owner(page: &[u8], nth: usize) -> Option<Owner> {
    let bytes = page.get(ATTRIBUTES_SIZE + nth * OWNER_SIZE..)?;
    let (record, _) = OwnerRecord::ref_from_prefix(bytes).ok()?;
    (record.number.get() != 0).then(|| Owner {
        number: record.number.get(),
        directory: record.directory.get().into(),
        bucket: record.bucket.get(),
        index: record.index.get(),
    })
}

/// What the volume is: stands behind the front of a superblock, which is the first page of each block of checkpoints.
///
/// ```text
/// offset  size  field            meaning
///     44     4  magic            "DFFS"
///     48     4  volume           id of the volume
///     52     4  page_size        of the chip
///     56     4  pages_per_block  of the chip
///     60     4  block_count      of the chip
///     64     4  directory_max    logical numbers that the map has
/// ```
///
/// The parts of a checkpoint follow it in the block, each with a part of this content from offset 44 to the checksum:
///
/// ```text
/// offset  size  field        meaning
///      0     4  number       number that the next file gets
///      4     4  root         page of the root's inode when the checkpoint was made
///      8 5 * 8  heads        map, directories, virtual directories, files, data: block that is being filled, or none as 2^32 - 1, and
///                            the place of its next page
///     48   4*M  map          page of each page of the map, 0: nothing in it
///      .   5*C  blocks       each: state and marks (1): 0 free, 1 map, 2 directories, 3 virtual directories, 4 files, 5 data, 6
///                            checkpoints, 7 bad, plus 16: owners in the summary may be wrong, 32: to be moved soon, 64: a program failed, 128:
///                            not collected; live pages, 11 bits, times 2^21 plus erases, 21 bits (4)
///      . 12*P   owners       of the pages of the block of data that is being filled; only if the volume was unmounted
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Superblock {
    magic: [u8; 4],
    volume: U32,
    page_size: U32,
    pages_per_block: U32,
    block_count: U32,
    directory_max: U32,
}

/// What a superblock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperblockFields {
    /// Id of the volume.
    pub volume: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of a block.
    pub pages_per_block: u32,
    /// Blocks of the chip.
    pub block_count: u32,
    /// Logical numbers of the map.
    pub directory_max: u32,
}

impl SuperblockFields {
    /// Writes them behind the front.
    pub fn write(&self, page: &mut [u8]) {
        let block = Superblock {
            magic: *b"DFFS",
            volume: U32::new(self.volume),
            page_size: U32::new(self.page_size),
            pages_per_block: U32::new(self.pages_per_block),
            block_count: U32::new(self.block_count),
            directory_max: U32::new(self.directory_max),
        };
        page[ATTRIBUTES_SIZE..][..size_of::<Superblock>()].copy_from_slice(block.as_bytes());
    }

    /// Reads them from a page that [`open`] accepted.
    ///
    /// # Errors
    ///
    /// [`Malformed::Size`], [`Malformed::Magic`].
    pub fn read(page: &[u8]) -> Result<SuperblockFields, Malformed> {
        let bytes = page.get(ATTRIBUTES_SIZE..).ok_or(Malformed::Size)?;
        let (block, _) = Superblock::ref_from_prefix(bytes).map_err(|_| Malformed::Size)?;
        if block.magic != *b"DFFS" {
            return Err(Malformed::Magic);
        }
        Ok(SuperblockFields {
            volume: block.volume.get(),
            page_size: block.page_size.get(),
            pages_per_block: block.pages_per_block.get(),
            block_count: block.block_count.get(),
            directory_max: block.directory_max.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_pointers_are_those_of_the_paper() {
        assert_eq!((bucket_count(2048), bucket_count(4096)), (347, 751));
        assert_eq!(pointer_count(2048), 434);
        assert_eq!((bucket_count(512), bucket_count(256)), (37, 0));
    }

    #[test]
    fn the_front_of_a_page_is_frozen_and_every_flipped_bit_is_refused() {
        let fields = Fields {
            id: 0x0102_0304,
            parent: 0x0506,
            mode: 0o100_644,
            uid: 7,
            gid: 8,
            size: 9,
            atime: 10,
            mtime: 11,
            ctime: 12,
            nlink: 1,
            used: 13,
            sequence: 0x1112_1314_1516,
            kind: Kind::File,
            flags: FLAG_RENAMED,
        };
        let mut page = [0; 512];
        fields.write(&mut page);
        set_name(&mut page, b"name");
        seal(&mut page, 5, 6);
        let front = b"\x04\x03\x02\x01\x06\x05\0\0\xA4\x81\x12\x11\x07\0\x08\0\x09\0\0\0\x0A\0\0\0\x0B\0\0\0\x0C\0\0\0\x01\0\x0D\0\
            \x16\x15\x14\x13\x03\x01\x01\0name\0";
        assert_eq!(page[..49], front[..]);
        assert_eq!(open(&page, 5, 6), Ok(fields));
        assert_eq!(name(&page), b"name");
        assert!(open(&page, 5, 7).is_err() && open(&page, 6, 6).is_err());
        for bit in 0..512 * 8 {
            let mut bad = page;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&bad, 5, 6).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn owners_and_superblocks_are_read_as_written() {
        let mut page = [0; 512];
        let whose = Owner { number: 70_000, directory: 3, bucket: 300, index: 433 };
        set_owner(&mut page, 2, whose);
        assert_eq!((owner(&page, 2), owner(&page, 1)), (Some(whose), None));
        let block =
            SuperblockFields { volume: 1, page_size: 512, pages_per_block: 16, block_count: 64, directory_max: 99 };
        block.write(&mut page);
        assert_eq!(SuperblockFields::read(&page), Ok(block));
        page[44] = b'X';
        assert_eq!(SuperblockFields::read(&page), Err(Malformed::Magic));
    }
}
