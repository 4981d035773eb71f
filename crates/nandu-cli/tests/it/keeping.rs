//! What of a mount is in its image, and when: after its process was killed, and where the image cannot be written.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::mounted::{Mounted, nandu, succeed};

// What Linux calls it.
const EIO: i32 = 5;

/// FUSE does not hear of `sync(2)`, and somebody who looks something up every tenth of a second leaves no idle time.
#[test]
fn a_plain_write_is_in_the_image_five_seconds_later_while_lookups_go_on() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    thread::sleep(Duration::from_millis(1700));
    let bytes: Vec<u8> = (0..100_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(mounted.root().join("file"), &bytes).unwrap();
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < Duration::from_secs(5) {
        assert!(fs::metadata(mounted.root().join(format!("none{count}"))).is_err());
        count += 1;
        thread::sleep(Duration::from_millis(100));
    }
    mounted.kill();
    let output = nandu(&["fs", "cat", "c.nand", "/file"], mounted.directory.path());
    assert!(output.status.success() && output.stdout == bytes, "{}", String::from_utf8_lossy(&output.stderr));
    mounted.mount_again();
}

/// Bytes of a record of the next test.
const RECORD: usize = 200;

fn record(number: u64) -> [u8; RECORD] {
    let mut bytes = [number as u8; RECORD];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Writes numbered records, each synced in one of three ways, until something fails; returns how many were acknowledged of each file.
fn write_until_killed(root: &Path, begin: [u64; 3]) -> [u64; 3] {
    let mut done = begin;
    let Ok(directory) = File::open(root) else { return done };
    // By its descriptor: once the dead mount is gone, the path leads to the directory below it.
    let root = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    let open = |name: &str| OpenOptions::new().create(true).truncate(false).write(true).open(root.join(name));
    let Ok(appended) = open("appended") else { return done };
    loop {
        let step = (|| {
            appended.write_all_at(&record(done[0]), done[0] * RECORD as u64)?;
            appended.sync_data()?;
            done[0] += 1;
            // A new file in place of the old one, as editors do it.
            let mut new = File::create(root.join("new"))?;
            new.write_all(&record(done[1]))?;
            new.sync_all()?;
            drop(new);
            fs::rename(root.join("new"), root.join("replaced"))?;
            done[1] += 1;
            let number = done[2];
            let mut new = File::create(root.join(format!("file{}", number % 50)))?;
            new.write_all(&record(number))?;
            new.sync_all()?;
            done[2] += 1;
            std::io::Result::Ok(())
        })();
        if step.is_err() {
            return done;
        }
    }
}

/// Five kills, or as many as `NANDU_KILLS` says: what was acknowledged before is there after each.
#[test]
fn what_was_synced_outlives_a_killed_mount() {
    let kills = std::env::var("NANDU_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    let mut done = [0; 3];
    for round in 0..kills {
        let root = mounted.root();
        let writer = thread::spawn(move || write_until_killed(&root, done));
        thread::sleep(Duration::from_millis(20 + round * 37 % 200));
        mounted.kill();
        done = writer.join().unwrap();
        mounted.mount_again();
        let root = mounted.root();
        let appended = fs::read(root.join("appended")).unwrap_or_default();
        let acknowledged = done[0] as usize * RECORD;
        assert!(appended.len() >= acknowledged, "kill {round}: {} bytes of {acknowledged}", appended.len());
        for (number, bytes) in (0..done[0]).zip(appended.chunks(RECORD)) {
            assert_eq!(bytes, record(number), "kill {round}: record {number}");
        }
        if done[1] > 0 {
            let replaced = fs::read(root.join("replaced")).unwrap();
            let number = u64::from_le_bytes(replaced[..8].try_into().unwrap());
            let is_last = (done[1] - 1..=done[1]).contains(&number);
            assert!(replaced == record(number) && is_last, "kill {round}: {number} of {done:?}");
        }
        for number in done[2].saturating_sub(50)..done[2] {
            let bytes = fs::read(root.join(format!("file{}", number % 50))).unwrap();
            // The file of the record that was not acknowledged may be anything.
            let is_next = number % 50 == done[2] % 50;
            assert!(is_next || bytes == record(number), "kill {round}: file of {number}");
        }
    }
    assert!(kills < 5 || done[2] > 0, "nothing was done");
    mounted.unmount();
    mounted.check();
}

/// Calls five times, each after a record was synced, while files are written and synced all the time.
fn while_files_are_written(mounted: &Mounted, mut call: impl FnMut(u64)) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let root = mounted.root();
        let is_over = &is_over;
        scope.spawn(move || {
            let mut number = 0_u32;
            while !is_over.load(Ordering::Relaxed) {
                fs::write(root.join(format!("busy{}", number % 20)), vec![number as u8; 50_000]).unwrap();
                File::open(root.join(format!("busy{}", number % 20))).unwrap().sync_all().unwrap();
                number += 1;
            }
        });
        for round in 0..5 {
            let mut file = File::create(mounted.root().join("synced")).unwrap();
            file.write_all(&record(round)).unwrap();
            file.sync_all().unwrap();
            call(round);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Whether a copy is as a mount that was killed just then would have left the image, with the record of this round.
fn is_sound(mounted: &Mounted, copy: &str, round: u64) -> bool {
    let checked = nandu(&["check", copy], mounted.directory.path());
    if !checked.status.success() {
        // It cannot be opened, or not be read: nothing is taken for right that is not.
        let said = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.code() == Some(8) && said.contains("nandu: copy"), "{said}");
        return false;
    }
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(said.contains("no invariant is violated"), "{said}");
    let found = nandu(&["fs", "cat", copy, "/synced"], mounted.directory.path());
    assert!(found.stdout == record(round), "{}", String::from_utf8_lossy(&found.stderr));
    true
}

#[test]
fn a_mounted_image_is_copied_with_all_that_was_synced() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    while_files_are_written(&mounted, |round| {
        let copy = format!("copy{round}.nand");
        succeed(&["backup", "c.nand", &copy], mounted.directory.path());
        assert!(is_sound(&mounted, &copy, round));
    });
    mounted.unmount();
    mounted.check();
}

/// What another program copies while the image is written to may be of several commits, and is refused then. Once nothing is written it is sound,
/// mounted or not.
#[test]
fn a_plain_copy_of_a_mounted_image_is_sound_or_refused() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    let copy =
        || fs::copy(mounted.directory.path().join("c.nand"), mounted.directory.path().join("copy.nand")).unwrap();
    let mut sound = 0;
    while_files_are_written(&mounted, |round| {
        copy();
        sound += u32::from(is_sound(&mounted, "copy.nand", round));
    });
    println!("{sound} of 5 copies are sound");
    File::open(mounted.root().join("busy0")).unwrap().sync_all().unwrap();
    // What was written last and not synced goes to the image by itself.
    thread::sleep(Duration::from_secs(6));
    copy();
    assert!(is_sound(&mounted, "copy.nand", 4));
    mounted.unmount();
    mounted.check();
}

/// A small disk for images; `None`, with a word, where it cannot be had.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn new() -> Option<SmallDisk> {
        let disk = tempfile::tempdir().unwrap();
        let is_there = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"])
            .arg(disk.path())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !is_there {
            eprintln!("SKIPPED: a small disk cannot be made here");
        }
        is_there.then_some(SmallDisk(disk))
    }

    fn mounted(&self) -> Option<Mounted> {
        Mounted::made_in(tempfile::tempdir_in(self.0.path()).unwrap(), &[], &[], &[])
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Writes so many MiB, more than a small disk holds; returns what the end of it says.
fn write_too_much(file: &File, count: u64) -> Option<i32> {
    let outcome = (0..count).try_for_each(|at| file.write_all_at(&vec![at as u8; 1 << 20], at << 20));
    outcome.and_then(|()| file.sync_all()).unwrap_err().raw_os_error()
}

/// An image on a disk that is too small: who writes is told, whoever comes later too, and the process says why.
#[test]
fn a_disk_that_is_full_is_told_to_who_writes_and_to_the_log() {
    let Some(disk) = SmallDisk::new() else { return };
    let Some(mut mounted) = disk.mounted() else { return };
    let log = mounted.directory.path().join("c.nand.log");
    let file = File::create(mounted.root().join("large")).unwrap();
    assert_eq!(write_too_much(&file, 30), Some(EIO));
    let later = fs::write(mounted.root().join("later"), b"x").unwrap_err();
    assert_eq!(later.raw_os_error(), Some(EIO));
    drop(file);
    mounted.unmount();
    let said = fs::read_to_string(log).unwrap();
    assert!(said.contains("c.nand: No space left on device"), "{said}");
    // What was kept before is there.
    mounted.check();
}

/// While the image cannot be written what there is can be read, and a closing counts: a file without a name is gone then.
#[test]
fn files_are_read_and_closed_while_the_image_cannot_be_written() {
    let Some(disk) = SmallDisk::new() else { return };
    let Some(mut mounted) = disk.mounted() else { return };
    let root = mounted.root();
    let filler = disk.0.path().join("filler");
    fs::write(&filler, vec![1; 6 << 20]).unwrap();
    fs::create_dir(root.join("directory")).unwrap();
    let content: Vec<u8> = (0..100_000_u32).map(|at| (at / 3) as u8).collect();
    fs::write(root.join("directory/kept"), &content).unwrap();
    let nameless = File::create(root.join("nameless")).unwrap();
    (&nameless).write_all(&vec![7; 2 << 20]).unwrap();
    nameless.sync_all().unwrap();
    fs::remove_file(root.join("nameless")).unwrap();
    let large = File::create(root.join("large")).unwrap();
    assert_eq!(write_too_much(&large, 5), Some(EIO));
    assert_eq!(fs::read(root.join("directory/kept")).unwrap(), content);
    let names = fs::read_dir(root.join("directory")).unwrap().count();
    assert_eq!(names, 1);
    let refused = fs::rename(root.join("directory/kept"), root.join("moved")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(EIO));
    let free = || rustix::fs::statvfs(&root).map(|stat| stat.f_bfree * stat.f_frsize).unwrap();
    let before = free();
    drop(nameless);
    drop(large);
    fs::remove_file(&filler).unwrap();
    // The image is written again within five seconds.
    let begin = Instant::now();
    while fs::write(root.join("after"), b"x").is_err() {
        assert!(begin.elapsed() < Duration::from_secs(20), "the image is not written again");
        thread::sleep(Duration::from_millis(100));
    }
    while free() < before + (1 << 20) {
        assert!(begin.elapsed() < Duration::from_secs(20), "a closed file counts as open: {before}, {}", free());
        thread::sleep(Duration::from_millis(100));
    }
    mounted.unmount();
    mounted.check();
}
