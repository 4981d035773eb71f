//! The files of this machine as records.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::facts::{self, Facts};
use crate::progress::Progress;

/// Directories to count, in this order, until there are enough records. None of them is made up by the kernel.
const PLACES: [&str; 9] = ["/usr", "/etc", "/var", "/opt", "/srv", "/lib", "/bin", "/sbin", "/boot"];

/// File systems that are elsewhere or made up, by what their names begin with.
const FOREIGN: [&str; 12] =
    ["nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse", "autofs", "proc", "sysfs"];

/// How many records there are to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Enough of them: no further place is begun.
    pub(super) enough: usize,
    /// No more than these.
    pub(super) limit: usize,
}

/// Records found on this machine.
pub(super) struct Census {
    pub(super) records: BTreeMap<Vec<u8>, Facts>,
    /// Every directory by its number; the first stands for what the places are in.
    pub(super) directories: Vec<PathBuf>,
    /// The places, and how many records each gave.
    pub(super) places: Vec<(PathBuf, usize)>,
    /// Names longer than a key can be.
    pub(super) too_long: u64,
    /// Directories that could not be read.
    pub(super) unreadable: u64,
    key_size_max: usize,
    wanted: Wanted,
}

impl Census {
    pub(super) fn take(from: Option<&Path>, wanted: Wanted, key_size_max: usize) -> Census {
        let mut census = Census {
            records: BTreeMap::new(),
            directories: vec![PathBuf::new()],
            places: Vec::new(),
            too_long: 0,
            unreadable: 0,
            key_size_max,
            wanted,
        };
        let mut progress = Progress::new("   looking at files");
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = match from {
            Some(from) => vec![from.to_path_buf()],
            None => PLACES.map(PathBuf::from).into_iter().filter(|place| !is_foreign(place, &mounts)).collect(),
        };
        for place in places {
            let is_directory = fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_dir());
            if census.records.len() >= wanted.enough.min(wanted.limit) || !is_directory {
                continue;
            }
            let before = census.records.len();
            census.walk(&place, &mut progress);
            census.places.push((place, census.records.len() - before));
        }
        census
    }

    /// Takes in a directory and all below it, on the same file system.
    fn walk(&mut self, place: &Path, progress: &mut Progress) {
        let Ok(metadata) = fs::symlink_metadata(place) else { return };
        let device = device(&metadata);
        let Some(number) = self.add(0, place, place.as_os_str().as_encoded_bytes(), &metadata) else { return };
        let mut directories = vec![number];
        while let Some(directory) = directories.pop() {
            let Ok(entries) = fs::read_dir(&self.directories[directory as usize]) else {
                self.unreadable += 1;
                continue;
            };
            let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            // The same files give the same records, in whatever order the directory lists them.
            paths.sort();
            for path in &paths {
                // A file that is gone by now is no file of this machine.
                let Ok(metadata) = fs::symlink_metadata(path) else { continue };
                if self.records.len() == self.wanted.limit {
                    return;
                }
                let name = path.file_name().unwrap_or_default().as_encoded_bytes();
                let number = self.add(directory, path, name, &metadata);
                directories.extend(number.filter(|_| self::device(&metadata) == device));
            }
            progress.set(self.records.len().min(self.wanted.enough) as u64, self.wanted.enough as u64);
        }
    }

    /// Adds a record; returns the number of a directory.
    fn add(&mut self, directory: u32, path: &Path, name: &[u8], metadata: &Metadata) -> Option<u32> {
        let key = facts::key(directory, name);
        if key.len() > self.key_size_max {
            self.too_long += 1;
            return None;
        }
        let number = metadata.is_dir().then_some(self.directories.len() as u32);
        if number.is_some() {
            self.directories.push(path.to_path_buf());
        }
        let facts = Facts {
            size: metadata.len(),
            modified_s: modified_s(metadata),
            mode: mode(metadata),
            number: number.unwrap_or(0),
        };
        self.records.insert(key, facts);
        number
    }

    /// The path of a record.
    pub(super) fn path(&self, key: &[u8]) -> String {
        let (directory, name) = facts::parts(key);
        let directory = self.directories.get(directory as usize).map(|path| path.as_os_str().as_encoded_bytes());
        let slash: &[u8] = if directory.is_none_or(<[u8]>::is_empty) { b"" } else { b"/" };
        crate::record::shown(&[directory.unwrap_or_default(), slash, name].concat())
    }
}

/// Whether a place is mounted from elsewhere, by the system's list of mounts: device, place, kind, and more.
fn is_foreign(place: &Path, mounts: &str) -> bool {
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        let is_it = words.next().is_some_and(|mounted| Path::new(mounted) == place);
        is_it && words.next().is_some_and(|kind| FOREIGN.iter().any(|foreign| kind.starts_with(foreign)))
    })
}

fn modified_s(metadata: &Metadata) -> i64 {
    let Ok(modified) = metadata.modified() else { return 0 };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs() as i64,
        Err(before) => -(before.duration().as_secs() as i64),
    }
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(metadata)
}

#[cfg(not(unix))]
fn mode(metadata: &Metadata) -> u32 {
    u32::from(metadata.permissions().readonly())
}

#[cfg(unix)]
fn device(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(metadata)
}

#[cfg(not(unix))]
fn device(_metadata: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_from_elsewhere_are_known_by_their_kind() {
        let mounts = "server:/x /usr nfs4 rw 0 0\n/dev/sda1 /var ext4 rw 0 0\nsshfs /opt fuse.sshfs rw 0 0\n";
        let foreign = |place: &str| is_foreign(Path::new(place), mounts);
        assert_eq!((foreign("/usr"), foreign("/var"), foreign("/opt"), foreign("/etc")), (true, false, true, false));
    }

    #[test]
    fn a_directory_gives_a_record_for_each_path_up_to_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("a")).unwrap();
        fs::write(directory.path().join("a/b"), "four").unwrap();
        fs::write(directory.path().join("a").join("x".repeat(200)), "").unwrap();
        let census = |limit| Census::take(Some(directory.path()), Wanted { enough: 100, limit }, 199);
        let all = census(100);
        let key = facts::key(2, b"b");
        assert_eq!((all.records.len(), all.records[&key].size, all.too_long), (3, 4, 1));
        assert_eq!(all.path(&key), directory.path().join("a/b").display().to_string());
        assert_eq!(census(2).records.len(), 2);
    }
}
