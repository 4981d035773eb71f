//! How a mount behaves towards those who are used to file systems: what it says of itself, whom it lets in, how it ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};

use crate::mounted::{Mounted, nandu, succeed};

/// A chip of 8 MiB, which is soon full.
const SMALL: [&str; 4] = ["--chip", "w25n01gv", "--blocks", "64"];

/// What `df` calls available is what can be written, not what is free, and all but growth goes on on the full chip.
#[test]
fn what_is_available_can_be_written() {
    fills_up(&SMALL);
}

/// The same on a whole chip of 128 MiB.
#[test]
fn what_is_available_on_a_whole_chip_can_be_written() {
    fills_up(&["--chip", "w25n01gv"]);
}

fn fills_up(chip: &[&str]) {
    let Some(mut mounted) = Mounted::with(chip, &[], &[]) else { return };
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
    mounted.shell(
        "
        dd if=/dev/zero of=large bs=4096 count=3 conv=notrunc,fsync 2> /dev/null
        mv large moved && chmod 600 moved && touch -d '2001-01-01 00:00:00.5' moved && ln moved linked && mkdir directory && : > directory/empty
        ",
    );
    rustix::fs::setxattr(mounted.root().join("moved"), "user.full", b"yes", XattrFlags::empty()).unwrap();
    for number in 0..1000_u64 {
        let place = number * 7919 * 4096 % (written - 4096);
        let outcome = file.write_all_at(&piece[..4096], place);
        assert!(outcome.is_ok(), "{number}: {outcome:?}");
        if number % 8 == 0 {
            file.sync_all().unwrap();
        }
    }
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

/// The line that the kernel has of a mount: what is mounted, its type and its options.
fn entry(mounted: &Mounted) -> (String, String, Vec<String>) {
    let root = mounted.root().canonicalize().unwrap().display().to_string();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == Some(&root)).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    (words[0].to_owned(), words[2].to_owned(), words[3].split(',').map(str::to_owned).collect())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// `mount` and `df` show what is mounted and what type it is of.
#[test]
fn the_list_of_mounts_names_image_and_type() {
    let Some(mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    let (image, kind, options) = entry(&mounted);
    let expected = mounted.directory.path().canonicalize().unwrap().join("c.nand");
    assert_eq!((image, kind.as_str()), (expected.display().to_string(), "fuse.nandu"));
    assert!(options.contains(&"nosuid".to_owned()) && options.contains(&"nodev".to_owned()), "{options:?}");
}

/// `mount(8)` calls a program with the name of the type, and gives it what stands in fstab.
#[test]
fn a_line_of_fstab_mounts_and_remounts() {
    let Some(mut mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    mounted.unmount();
    let directory = mounted.directory.path();
    let helper = directory.join("mount.fuse.nandu");
    std::os::unix::fs::symlink(assert_cmd::cargo::cargo_bin("nandu"), &helper).unwrap();
    let call = |options: &str| {
        let arguments = ["c.nand", "mnt", "-s", "-o", options, "--json"];
        let output = Command::new(&helper).args(arguments).current_dir(directory).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert!(!call("rw,sideways").0);
    let (is_mounted, said) = call("rw,noatime,noexec,nofail");
    assert!(is_mounted);
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    mounted.process = u32::try_from(said["process"].as_u64().unwrap()).unwrap();
    let (_, _, options) = entry(&mounted);
    let has = |word: &str| options.contains(&word.to_owned());
    assert!(has("rw") && has("noatime") && has("noexec"), "{options:?}");
    // For root as with every other type.
    assert_eq!((has("nosuid"), has("nodev")), (!is_root(), !is_root()), "{options:?}");
    fs::write(mounted.root().join("file"), b"content").unwrap();
    if is_root() {
        // With what `mount(8)` finds in the list of mounts.
        assert!(call(&format!("{},remount,ro", options.join(","))).0);
        let error = fs::write(mounted.root().join("file"), b"other").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(fs::read(mounted.root().join("file")).unwrap(), b"content");
    }
    mounted.unmount();
    mounted.check();
}

/// A mount that is in use stays when it is told to end, and ends when it is told once more.
#[test]
fn a_mount_that_was_in_use_ends_at_the_next_signal() {
    let Some(mut mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    mounted.unmount();
    let mut process = Command::new(assert_cmd::cargo::cargo_bin("nandu"))
        .args(["mount", "c.nand", "mnt", "--foreground"])
        .current_dir(mounted.directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "mounted\n");
    let id = process.id().to_string();
    let signal = || assert!(Command::new("kill").arg(&id).status().unwrap().success());
    let file = File::create(mounted.root().join("file")).unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap());
    for _ in 0..2 {
        signal();
        line.clear();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("stays mounted"), "{line}");
    }
    drop(file);
    // A process that another test begins may have the file open for a moment still.
    let start = Instant::now();
    let status = loop {
        signal();
        thread::sleep(Duration::from_millis(200));
        if let Some(status) = process.try_wait().unwrap() {
            break status;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "the mount does not end");
    };
    assert!(status.success());
    mounted.check();
}

/// `umount` returns before the image is written; who opens it then waits for it.
#[test]
fn an_image_can_be_opened_as_soon_as_it_is_unmounted() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    for round in 0..3_u8 {
        fs::write(mounted.root().join("large"), vec![round; 10_000_000]).unwrap();
        let process = mounted.process;
        mounted.leave();
        mounted.check();
        mounted.process = process;
        mounted.wait();
        mounted.mount_again();
    }
    // One that stays mounted is not waited for: it would be for nothing.
    let output = nandu(&["fs", "put", "c.nand", "/name", "/dev/null"], mounted.directory.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("in use by another process"), "{said}");
    assert!(!said.contains("waiting"), "{said}");
}

/// Times before 1970 are kept with their fractions.
#[test]
fn times_before_1970_are_kept() {
    let Some(mut mounted) = Mounted::with(&SMALL, &[], &[]) else { return };
    let path = mounted.root().join("file");
    fs::write(&path, b"old").unwrap();
    let times = |metadata: &fs::Metadata| {
        [(metadata.atime(), metadata.atime_nsec()), (metadata.mtime(), metadata.mtime_nsec())]
    };
    // The last two are the ends of what a time can say.
    for wanted in [[(-1, 500_000_000), (-86_401, 1)], [(i64::MIN, 0), (i64::MAX, 0)]] {
        let [atime, mtime] = wanted.map(|(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec });
        let set = Timestamps { last_access: atime, last_modification: mtime };
        rustix::fs::utimensat(CWD, &path, &set, AtFlags::empty()).unwrap();
        assert_eq!(times(&fs::metadata(&path).unwrap()), wanted);
        mounted.unmount();
        mounted.mount_again();
        assert_eq!(times(&fs::metadata(&path).unwrap()), wanted);
    }
}

/// Who takes an image of records for one of files, or the other way round, is told what it holds.
#[test]
fn an_image_says_what_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let complaint = |arguments: &[&str]| {
        let output = nandu(arguments, path);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for index in ["mutree", "grr", "ipl"] {
        succeed(&["create", "r.nand", "--blocks", "64", "--force"], path);
        succeed(&["kv", "format", "r.nand", "--index", index], path);
        fs::create_dir_all(path.join("mnt")).unwrap();
        for arguments in
            [&["fs", "ls", "r.nand"][..], &["mount", "r.nand", "mnt"], &["fs", "put", "r.nand", "/a", "/dev/null"]]
        {
            let said = complaint(arguments);
            assert_eq!(
                said, "nandu: r.nand: holds records and no file system: 'nandu kv scan r.nand' shows them\n",
                "{index}"
            );
        }
    }
    succeed(&["create", "f.nand", "--blocks", "64"], path);
    succeed(&["fs", "format", "f.nand"], path);
    let said = complaint(&["kv", "scan", "f.nand"]);
    assert_eq!(said, "nandu: f.nand: holds a file system and no records: 'nandu fs ls f.nand' shows it\n");
}
