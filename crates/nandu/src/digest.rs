//! A digest of all entries.
//!
//! FORMAT: Digest of a store
//!
//! What a caller keeps elsewhere of a store, and another program can make of the same entries. It stands for these and for nothing else: neither for pages
//! nor for the order of changes. It begins as 0. Each entry, in the order of keys, makes of it the SipHash-2-4 of the bytes below, whose key is
//! `nandu records 1` and a zero byte. Numbers have their low byte first. So that of an empty store is 0.
//!
//! ```text
//! field       bytes
//! digest      8         of the entries before
//! key size    8
//! key         key size
//! value size  8
//! value       value size, wherever it stands
//! ```

use core::hash::Hasher;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Entry, KeyBuf};
use nandu_nand::Nand;
use nandu_tree::Cells;
use siphasher::sip::SipHasher24;

#[cfg(feature = "snapshots")]
use crate::At;
use crate::{Error, Store};

/// The key of the hash, which says whose digest it is and how it is made.
const KEY: [u8; 16] = *b"nandu records 1\0";

/// Bytes of a large value that are read at once; they stand on the stack.
const PIECE_SIZE: usize = 1024;

/// Whose entries they are.
trait Source<E: core::error::Error + 'static> {
    fn entries(
        &mut self,
        from: Bound<&[u8]>,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<E>>;

    fn part(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<E>>;
}

impl<N: Nand, C: Cells> Source<N::Error> for Store<'_, N, C> {
    fn entries(
        &mut self,
        from: Bound<&[u8]>,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<N::Error>> {
        self.range(from, Bound::Unbounded, Direction::Forward, visit)
    }

    fn part(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        self.read(key, offset, out)
    }
}

#[cfg(feature = "snapshots")]
impl<N: Nand, C: Cells> Source<N::Error> for At<'_, '_, N, C> {
    fn entries(
        &mut self,
        from: Bound<&[u8]>,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error<N::Error>> {
        self.range(from, Bound::Unbounded, Direction::Forward, visit)
    }

    fn part(&mut self, key: &[u8], offset: usize, out: &mut [u8]) -> Result<Option<usize>, Error<N::Error>> {
        self.read(key, offset, out)
    }
}

impl<N: Nand, C: Cells> Store<'_, N, C> {
    /// 64 bits over every key and every value: alike for the same entries, however they came about and on whatever chip, and different for others, but for
    /// one in 2^64. Kept elsewhere, on another chip or a server, it tells later whether anything was lost, or the whole chip put back to an older state, which
    /// [`verify`](Store::verify) cannot know.
    ///
    /// It is over what is read now, with changes that wait: call [`sync`](Store::sync) before for one that a power cut does not change. Snapshots do not count; each has [its own](crate::At::digest).
    /// It notices accidents and not attackers, who can make other entries with the same digest. How it is made stands in `FORMAT.md`, and stays so: a program elsewhere may make it of the same entries.
    ///
    /// Reads each leaf once, and each page of a large value once; where there are so many that they stand in groups, two or three pages for each KiB of the value. Where
    /// [`Options::cache_size`](crate::Options::cache_size) has no room for the leaf that names the pages, it reads that again for each KiB. Programs nothing. Takes 1 KiB of stack for the value.
    ///
    /// ```
    /// # use nandu::{Options, Store};
    /// # use nandu_sim::{Chip, Sim};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let options = Options::default();
    /// # let chip = Sim::new(Chip::W25N01GV);
    /// # let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    /// # let mut store = Store::format(chip, options, &mut memory)?;
    /// store.put(b"counter", b"41")?;
    /// store.put(b"counter", b"42")?;
    /// let kept_elsewhere = store.digest()?;
    /// # let chip = store.unmount()?;
    /// let mut store = Store::open(chip, options, &mut memory)?;
    /// assert_eq!(store.digest()?, kept_elsewhere);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A page that cannot be read, which [`Error::Corrupt`] names; errors of the chip. There is no digest of a part.
    pub fn digest(&mut self) -> Result<u64, Error<N::Error>> {
        digest(self)
    }
}

#[cfg(feature = "snapshots")]
impl<N: Nand, C: Cells> At<'_, '_, N, C> {
    /// As [`Store::digest`], of what the snapshot keeps: what the store's was when the snapshot was taken. Reads what [`range`](At::range) does, and each page of a large value.
    ///
    /// # Errors
    ///
    /// [`Error::NoSnapshot`]; as [`Store::digest`].
    pub fn digest(&mut self) -> Result<u64, Error<N::Error>> {
        digest(self)
    }
}

fn digest<E: core::error::Error + 'static>(source: &mut impl Source<E>) -> Result<u64, Error<E>> {
    let mut digest = 0;
    // A large value is not lent: the walk ends at its key, and goes on behind it.
    let (mut last, mut key) = (None, KeyBuf::EMPTY);
    loop {
        let mut large = None;
        let from = last.as_ref().map_or(Bound::Unbounded, |last: &KeyBuf| Bound::Excluded(last.as_slice()));
        source.entries(from, &mut |entry| {
            large = entry.large;
            if large.is_none() {
                let mut hash = begin(digest, entry.key, entry.value.len());
                hash.write(entry.value);
                digest = hash.finish();
                return ControlFlow::Continue(());
            }
            let is_whole = key.set(entry.key);
            debug_assert!(is_whole, "the key of an entry");
            ControlFlow::Break(())
        })?;
        let Some(size) = large else { return Ok(digest) };
        digest = hash_large(source, digest, key.as_slice(), size)?;
        last = Some(key);
    }
}

/// All but the value of an entry. Counts stand before what they count, so that it matters where that ends.
fn begin(digest: u64, key: &[u8], value_size: usize) -> SipHasher24 {
    let mut hash = SipHasher24::new_with_key(&KEY);
    hash.write(&digest.to_le_bytes());
    hash.write(&(key.len() as u64).to_le_bytes());
    hash.write(key);
    hash.write(&(value_size as u64).to_le_bytes());
    hash
}

/// The digest with an entry whose value is read in pieces.
#[inline(never)]
fn hash_large<E: core::error::Error + 'static>(
    source: &mut impl Source<E>,
    digest: u64,
    key: &[u8],
    size: usize,
) -> Result<u64, Error<E>> {
    let mut hash = begin(digest, key, size);
    let mut piece = [0; PIECE_SIZE];
    for offset in (0..size).step_by(PIECE_SIZE) {
        let piece = &mut piece[..PIECE_SIZE.min(size - offset)];
        if source.part(key, offset, piece)? != Some(piece.len()) {
            // Such a volume is not opened without it.
            return Err(Error::NotCompiled { feature: "blobs" });
        }
        hash.write(piece);
    }
    Ok(hash.finish())
}
