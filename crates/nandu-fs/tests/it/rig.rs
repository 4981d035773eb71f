//! Chips, options and looking at everything.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use nandu_fs::{FileKind, Format, Fs, FsError, Ino, LogOptions, Options, Time};
use nandu_nand::{Ecc, ErrorType, Geometry, Nand};
use nandu_sim::{Chip, Sim, SimError};

/// The smallest pages that a file system goes on, in a chip of 384 KiB.
pub(crate) const SMALL: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 512,
        program_unit: 512,
        ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
        ..Chip::TINY.with_blocks(96).geometry
    },
    ..Chip::TINY
};

pub(crate) const OPTIONS: Options = Options {
    log: LogOptions { bare_streams: 1, ..LogOptions::DEFAULT },
    cache_size: 512,
    pending_size: 900,
    note_count: 16,
    open_max: 4,
    ..Options::DEFAULT
};

/// Sizes of pages that tests go through.
pub(crate) const PAGE_SIZES: [u32; 5] = [512, 2048, 4096, 8192, 16_384];

/// A chip with pages of this size, and so many blocks of 8 of them.
pub(crate) const fn sized(page_size: u32, blocks: u32) -> Chip {
    let ecc = Ecc { codeword_size: 512, correctable_bits: 4 };
    let geometry = Geometry { page_size, program_unit: page_size, ecc, ..SMALL.geometry };
    Chip { name: "sized", geometry, ..SMALL }.with_blocks(blocks)
}

/// What goes with pages of this size.
pub(crate) const fn options_for(page_size: u32) -> Options {
    if page_size == 512 {
        return OPTIONS;
    }
    Options { cache_size: page_size as usize, pending_size: page_size as usize + 2048, ..OPTIONS }
}

pub(crate) const FORMAT: Format =
    Format { hash_key: [7; 16], root_mode: 0o755, uid: 1, gid: 2, now: Time::from_seconds(1) };

pub(crate) fn memory(geometry: &Geometry, options: &Options) -> Vec<u8> {
    vec![0; Fs::<Sim>::memory_required(geometry, options)]
}

pub(crate) fn formatted_with(chip: Chip, options: Options) -> Sim {
    let sim = Sim::new(chip);
    let mut memory = memory(&chip.geometry, &options);
    Fs::format(sim, options, FORMAT, &mut memory).unwrap().unmount().unwrap()
}

/// What there is at a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) nlink: u32,
    /// Of a directory, the names in it.
    pub(crate) size: u64,
    /// atime, mtime, ctime, btime.
    pub(crate) times: [i64; 4],
    /// Of a file what is in it, of a symbolic link its target.
    pub(crate) content: Vec<u8>,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path in order with the same inode.
    pub(crate) same_as: Vec<u8>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Seen { mode, owner, nlink, size, times, content, xattrs, same_as } = self;
        let same_as = String::from_utf8_lossy(same_as);
        write!(f, "{mode:o} {owner:?} {nlink} links, {size} bytes, times {times:?}, like {same_as}, ")?;
        for part in content.chunk_by(|a, b| a == b || a.checked_add(1) == Some(*b)) {
            write!(f, "{}*{}..={} ", part.len(), part[0], part[part.len() - 1])?;
        }
        xattrs.iter().try_for_each(|(name, value)| write!(f, "{} of {} ", name.escape_ascii(), value.len()))
    }
}

/// Everything below the root, by path.
pub(crate) type Everything = BTreeMap<Vec<u8>, Seen>;

/// Bytes of a file that are compared.
const CONTENT_SIZE_MAX: u64 = 1 << 20;

/// What calls of the file system return.
type Outcome<T, N> = Result<T, FsError<<N as ErrorType>::Error>>;

/// The name, number and type of everything in a directory.
pub(crate) fn names<N: Nand>(fs: &mut Fs<'_, N>, directory: Ino) -> Outcome<Vec<(Vec<u8>, Ino, FileKind)>, N> {
    let mut names = Vec::new();
    fs.read_dir(directory, 2, |entry| {
        names.push((entry.name.to_vec(), entry.ino, entry.kind));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

pub(crate) fn content<N: Nand>(fs: &mut Fs<'_, N>, ino: Ino) -> Outcome<Vec<u8>, N> {
    let size = fs.stat(ino)?.size;
    // Of a file that a damaged inode makes very large, the beginning will do.
    let shown = size.min(CONTENT_SIZE_MAX) as usize;
    let mut content = vec![0xEE; shown + usize::from(size < CONTENT_SIZE_MAX)];
    let count = fs.read_at(ino, 0, &mut content)?;
    assert_eq!(count, shown);
    let size = shown;
    content.truncate(size);
    Ok(content)
}

pub(crate) fn xattrs<N: Nand>(fs: &mut Fs<'_, N>, ino: Ino) -> Outcome<BTreeMap<Vec<u8>, Vec<u8>>, N> {
    let mut names = Vec::new();
    fs.list_xattrs(ino, |name| names.push(name.to_vec()))?;
    let mut found = BTreeMap::new();
    for name in names {
        let mut value = vec![0; fs.get_xattr(ino, &name, &mut [])?];
        fs.get_xattr(ino, &name, &mut value)?;
        found.insert(name, value);
    }
    Ok(found)
}

pub(crate) fn everything<N: Nand>(fs: &mut Fs<'_, N>) -> Outcome<Everything, N> {
    let mut found = Everything::new();
    let mut first: BTreeMap<Ino, Vec<u8>> = BTreeMap::new();
    let mut left = vec![(Vec::new(), Ino::ROOT)];
    let mut inos = Vec::new();
    while let Some((path, ino)) = left.pop() {
        let stat = fs.stat(ino)?;
        let content = match stat.kind {
            FileKind::File => content(fs, ino)?,
            FileKind::Symlink => {
                let mut target = vec![0; 4096];
                let size = fs.read_link(ino, &mut target)?;
                target.truncate(size);
                target
            }
            FileKind::Directory => {
                for (name, child, kind) in names(fs, ino)? {
                    assert_eq!(fs.stat(child)?.kind, kind);
                    let mut below = path.clone();
                    below.push(b'/');
                    below.extend(name);
                    left.push((below, child));
                }
                assert_eq!(fs.lookup(ino, b".")?, ino);
                Vec::new()
            }
            _ => Vec::new(),
        };
        let seconds = |time: Time| time.seconds;
        let seen = Seen {
            mode: stat.mode,
            owner: (stat.uid, stat.gid),
            nlink: stat.nlink,
            size: stat.size,
            times: [stat.atime, stat.mtime, stat.ctime, stat.btime].map(seconds),
            content,
            xattrs: xattrs(fs, ino)?,
            same_as: Vec::new(),
        };
        let lowest = first.entry(ino).or_insert_with(|| path.clone());
        if path < *lowest {
            *lowest = path.clone();
        }
        inos.push((path.clone(), ino));
        found.insert(path, seen);
    }
    for (path, ino) in inos {
        found.get_mut(&path).unwrap().same_as = first[&ino].clone();
    }
    Ok(found)
}

/// Every violation, in words.
pub(crate) fn violations(fs: &mut Fs<'_, impl Nand<Error = SimError>>) -> Vec<String> {
    let mut found = Vec::new();
    fs.verify(&mut [], &mut |violation| found.push(violation.to_string())).unwrap();
    found
}
