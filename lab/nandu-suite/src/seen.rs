//! Looking at everything that there is on a volume.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use nandu_files::{FileKind, FileSystem, Ino, Time};

/// What there is at a path.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    /// Type and permissions.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// How many names it has; 0 of a directory that does not count them.
    pub nlink: u32,
    /// Of a directory, the names in it, or 0 if it does not count them.
    pub size: u64,
    /// atime, mtime, ctime, btime, in seconds; 0 where they are not known.
    pub times: [i64; 4],
    /// Of a file what is in it, of a symbolic link its target.
    pub content: Vec<u8>,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first path in order with the same inode.
    pub same_as: Vec<u8>,
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
pub type Everything = BTreeMap<Vec<u8>, Seen>;

/// Bytes of a file that are compared.
const CONTENT_SIZE_MAX: u64 = 1 << 20;

/// The name, number and type of what is in a directory.
pub type Entry = (Vec<u8>, Ino, FileKind);

/// What is in a directory.
pub fn names<F: FileSystem>(fs: &mut F, directory: Ino) -> Result<Vec<Entry>, F::Error> {
    let mut names = Vec::new();
    fs.read_dir(directory, 2, &mut |entry| {
        names.push((entry.name.to_vec(), entry.ino, entry.kind));
        ControlFlow::Continue(())
    })?;
    Ok(names)
}

/// What is in a file, as far as it is compared.
pub fn content<F: FileSystem>(fs: &mut F, ino: Ino) -> Result<Vec<u8>, F::Error> {
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

/// The extended attributes of an inode.
pub fn xattrs<F: FileSystem>(fs: &mut F, ino: Ino) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, F::Error> {
    let mut names = Vec::new();
    fs.list_xattrs(ino, &mut |name| names.push(name.to_vec()))?;
    let mut found = BTreeMap::new();
    for name in names {
        let mut value = vec![0; fs.get_xattr(ino, &name, &mut [])?];
        fs.get_xattr(ino, &name, &mut value)?;
        found.insert(name, value);
    }
    Ok(found)
}

/// Looks at everything.
pub fn everything<F: FileSystem>(fs: &mut F) -> Result<Everything, F::Error> {
    let capabilities = fs.capabilities();
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
                    if kind == FileKind::Directory {
                        assert_eq!(fs.lookup(child, b"..")?, ino);
                    }
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
        let is_directory = stat.kind == FileKind::Directory;
        // What a directory does not say of itself is left out.
        let (nlink, size) = match is_directory && !capabilities.counted_names {
            true => (0, 0),
            false => (stat.nlink, stat.size),
        };
        let btime = if capabilities.birth_times { stat.btime } else { Time::EPOCH };
        let mut times = [stat.atime, stat.mtime, stat.ctime, btime].map(seconds);
        if is_directory && !capabilities.directory_times {
            times = [0; 4];
        }
        let seen = Seen {
            mode: stat.mode,
            owner: (stat.uid, stat.gid),
            nlink,
            size,
            times,
            content,
            xattrs: if capabilities.xattrs { xattrs(fs, ino)? } else { BTreeMap::new() },
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
pub fn violations(fs: &mut impl FileSystem) -> Vec<String> {
    let mut found = Vec::new();
    fs.check(&mut [], &mut |violation| found.push(violation.to_string())).unwrap();
    found
}
