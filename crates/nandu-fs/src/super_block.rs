//! What a volume says of itself, and the directory that everything is in.
//!
//! FORMAT: Superblock of the file system
//!
//! A volume holds a file system if its tree has this record. Features of which a version knows not all are refused: incompatible
//! ones altogether, others when the volume is to be changed.
//!
//! ```text
//! offset  size  field         meaning
//!      0     4  magic         "nduF"
//!      4     1  version       1
//!      5     3  reserved      zero
//!      8     4  incompatible  features without which the volume cannot be read; low byte first
//!     12     4  read_only     features without which it cannot be changed
//!     16     4  compatible    features that may be ignored
//!     20    16  hash_key      of the hash of names
//!     36     8  chunk_next    first inode number that no directory's chunk has
//! ```

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::below::TreeError;
use crate::commit::Commit;
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{INO_END, Key};
use crate::{FileKind, FsError, Ino, Time};

const MAGIC: [u8; 4] = *b"nduF";
const VERSION: u8 = 1;
const SUPER_BLOCK_SIZE: usize = 44;

/// Numbers that a directory takes at a time for what is made in it.
pub(crate) const CHUNK_SIZE: u64 = 64;

/// What a file system begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// Key by which names are hashed: by chance, so that nobody can make names collide on purpose.
    pub hash_key: [u8; 16],
    /// Permissions of the root directory; 0 stands for 0o755.
    pub root_mode: u32,
    /// Owner of the root directory.
    pub uid: u32,
    /// Group of the root directory.
    pub gid: u32,
    /// The time at which it is made.
    pub now: Time,
}

struct SuperBlock {
    features: [u32; 3],
    hash_key: [u8; 16],
    chunk_next: u64,
}

impl SuperBlock {
    fn write(&self) -> [u8; SUPER_BLOCK_SIZE] {
        let mut bytes = [0; SUPER_BLOCK_SIZE];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        for (field, feature) in bytes[8..20].chunks_exact_mut(4).zip(self.features) {
            field.copy_from_slice(&feature.to_le_bytes());
        }
        bytes[20..36].copy_from_slice(&self.hash_key);
        bytes[36..].copy_from_slice(&self.chunk_next.to_le_bytes());
        bytes
    }

    /// `None` if it is none; the version if that is another.
    fn parse(bytes: &[u8]) -> Option<Result<SuperBlock, u8>> {
        let bytes: &[u8; SUPER_BLOCK_SIZE] = match bytes.get(..5)? {
            [magic @ .., version] if magic == MAGIC && *version != VERSION => return Some(Err(*version)),
            _ => bytes.try_into().ok()?,
        };
        if bytes[..4] != MAGIC || bytes[5..8] != [0; 3] {
            return None;
        }
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut hash_key = [0; 16];
        hash_key.copy_from_slice(&bytes[20..36]);
        let chunk_next = bytes[36..].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let is_sound = (1..=INO_END).contains(&chunk_next);
        is_sound.then_some(Ok(SuperBlock { features: [u32_at(8), u32_at(12), u32_at(16)], hash_key, chunk_next }))
    }
}

impl<N: Nand> Fs<'_, N> {
    /// Makes the root directory and what the volume says of itself, in an empty tree.
    pub(crate) fn make_root(&mut self, format: &Format) -> Result<(), FsError<N::Error>> {
        let permissions = if format.root_mode == 0 { 0o755 } else { format.root_mode };
        let root = Inode {
            mode: permissions & !FileKind::MASK | FileKind::Directory.mode(),
            uid: format.uid,
            gid: format.gid,
            nlink: 2,
            times: [format.now; 4],
            parent: Ino::ROOT.0,
            chunk_next: Ino::ROOT.0 + 1,
            chunk_end: CHUNK_SIZE,
            ..Inode::EMPTY
        };
        (self.hash_key, self.chunk_next, self.now) = (format.hash_key, CHUNK_SIZE, format.now);
        self.has_orphans = false;
        self.change(&[], &mut |fs, batch, _| {
            fs.put_super_block(batch, CHUNK_SIZE);
            batch.put_inode(Ino::ROOT, &root);
            Ok(Commit::Records)
        })?;
        self.tree.sync()?;
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn read_super_block(&mut self) -> Result<(), FsError<N::Error>> {
        let key = Key::super_block();
        let super_block = match self.tree.get(key.as_slice()) {
            Ok(Some(bytes)) if bytes.starts_with(&MAGIC) => SuperBlock::parse(bytes),
            Ok(_) | Err(TreeError::LargeValue(_)) => return Err(FsError::NoFileSystem),
            Err(error) => return Err(error.into()),
        };
        match super_block {
            None => return Err(FsError::Corrupt { ino: Ino(0), why: Damage::SuperBlock }),
            Some(Err(version)) => return Err(FsError::OtherVersion { version, features: 0 }),
            Some(Ok(SuperBlock { features: [incompatible, read_only, _], hash_key, chunk_next })) => {
                if incompatible != 0 {
                    return Err(FsError::OtherVersion { version: VERSION, features: incompatible });
                }
                self.options.read_only |= read_only != 0;
                (self.hash_key, self.chunk_next) = (hash_key, chunk_next);
            }
        }
        Ok(())
    }

    /// Puts the superblock with another first free number.
    pub(crate) fn put_super_block(&self, batch: &mut Batch<'_>, chunk_next: u64) {
        let super_block = SuperBlock { features: [0; 3], hash_key: self.hash_key, chunk_next };
        batch.put(Key::super_block(), &super_block.write(), &[]);
    }
}
