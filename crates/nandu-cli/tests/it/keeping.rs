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

use crate::mounted::{Mounted, nandu, succeed};

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

#[test]
fn a_mounted_image_is_copied_with_all_that_was_synced() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
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
            let copy = format!("copy{round}.nand");
            succeed(&["backup", "c.nand", &copy], mounted.directory.path());
            let said = succeed(&["check", &copy], mounted.directory.path());
            assert!(said.contains("no invariant is violated"), "{said}");
            let found = nandu(&["fs", "cat", &copy, "/synced"], mounted.directory.path());
            assert!(found.stdout == record(round), "{}", String::from_utf8_lossy(&found.stderr));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    mounted.unmount();
    mounted.check();
}

/// An image on a disk that is too small: who writes is told, whoever comes later too, and the process says why.
#[test]
fn a_disk_that_is_full_is_told_to_who_writes_and_to_the_log() {
    let disk = tempfile::tempdir().unwrap();
    let is_there = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"])
        .arg(disk.path())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("SKIPPED: a small disk cannot be made here");
        return;
    }
    let directory = tempfile::tempdir_in(disk.path()).unwrap();
    let log = directory.path().join("c.nand.log");
    if let Some(mut mounted) = Mounted::made_in(directory, &[], &[], &[]) {
        let file = File::create(mounted.root().join("large")).unwrap();
        let outcome = (0..30).try_for_each(|at| file.write_all_at(&vec![at as u8; 1 << 20], at << 20));
        let outcome = outcome.and_then(|()| file.sync_all());
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(5));
        let later = fs::write(mounted.root().join("later"), b"x").unwrap_err();
        assert_eq!(later.raw_os_error(), Some(5));
        drop(file);
        mounted.unmount();
        let said = fs::read_to_string(log).unwrap();
        assert!(said.contains("c.nand: No space left on device"), "{said}");
        // What was kept before is there.
        mounted.check();
    }
    let _ = Command::new("umount").arg("-l").arg(disk.path()).status();
}
