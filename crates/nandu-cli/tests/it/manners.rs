//! How a mount behaves towards those who are used to file systems: what it says of itself, whom it lets in, how it ends.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;

use crate::mounted::{Mounted, succeed};

/// A chip of 8 MiB, which is soon full.
const SMALL: [&str; 4] = ["--chip", "w25n01gv", "--blocks", "64"];

/// What `df` calls available is what can be written, not what is free.
#[test]
fn what_is_available_can_be_written() {
    let Some(mut mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    let before = rustix::fs::statvfs(mounted.root()).unwrap();
    let mut file = File::create(mounted.root().join("large")).unwrap();
    let piece = [7; 65_536];
    let error = loop {
        if let Err(error) = file.write_all(&piece) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let written = file.metadata().unwrap().size();
    let after = rustix::fs::statvfs(mounted.root()).unwrap();
    let available = before.f_bavail * before.f_frsize;
    assert!(written >= available && written <= available + available / 10, "{written} of {available}");
    assert!(after.f_bavail <= before.f_bavail / 20, "{} of {}", after.f_bavail, before.f_bavail);
    // There is no table of inodes, so there is no number of them.
    assert_eq!((before.f_files, before.f_ffree), (0, 0));
    drop(file);
    mounted.unmount();
    let said = succeed(&["fs", "df", "c.nand", "--json"], mounted.directory.path());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(said["pages_available"].as_u64().unwrap() <= before.f_bavail / 20, "{said}");
}

/// The root belongs to whoever formats, or to whom that one says.
#[test]
fn the_root_belongs_to_who_formats_or_to_whom_that_one_says() {
    let root = |options: &[&str]| {
        let mounted = Mounted::with(&SMALL, options, &[])?;
        let metadata = fs::metadata(mounted.root()).unwrap();
        Some((metadata.uid(), metadata.gid(), metadata.mode()))
    };
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw(), 0o040_755);
    let Some(found) = root(&[]) else { return };
    assert_eq!(found, me);
    assert_eq!(root(&["--uid", "1000", "--gid", "100", "--mode", "1777"]), Some((1000, 100, 0o041_777)));
}
