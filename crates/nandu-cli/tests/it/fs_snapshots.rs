//! Snapshots of a file system through the command: what was there is there, whatever became of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use nandu::fs::{FileKind, Fs, Ino, Options, RenameMode, Time};
use nandu_nand::Nand;
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;

use crate::mounted::{Mounted, Random, nandu, succeed};
use crate::store::complaint;

const DIRECTORIES: u64 = 5;
const FILES: u64 = 60;

fn options(sim: &Sim) -> Options {
    let geometry = sim.geometry();
    let options = Options { pending_size: 65_535, cache_size: 1 << 20, ..Options::DEFAULT };
    let has_both = geometry.pairing.is_paired();
    if has_both { options.both_modes(geometry) } else { options }
}

/// Changes the file system of an image in so many steps of every kind, and leaves it cleanly, or as a power cut does.
fn change(place: &Path, random: &mut Random, steps: u64, is_cut: bool) {
    let (mut image, mut sim) = ImageFile::open(place.join("c.nand")).unwrap();
    let options = options(&sim);
    let mut memory = vec![0; Fs::<Sim>::memory_required(sim.geometry(), &options)];
    let mut fs = Fs::mount(&mut sim, options, &mut memory).unwrap();
    let root = nandu::fs::Attributes { mode: 0o755, ..Default::default() };
    for step in 0..steps {
        fs.set_now(Time { seconds: 1_000_000 + (random.below(1_000_000)) as i64, nanoseconds: 0 });
        let directory = format!("d{}", random.below(DIRECTORIES));
        let directory = match fs.lookup(Ino::ROOT, directory.as_bytes()) {
            Ok(found) => found,
            Err(_) => fs.mkdir(Ino::ROOT, directory.as_bytes(), root).unwrap(),
        };
        let name = format!("f{}", random.below(FILES));
        let found = fs.lookup(directory, name.as_bytes()).ok();
        let file = || nandu::fs::Attributes { mode: 0o640, ..Default::default() };
        let ino = found.unwrap_or_else(|| fs.create(directory, name.as_bytes(), file()).unwrap());
        match random.below(7) {
            0 => fs.unlink(directory, name.as_bytes()).unwrap(),
            1 => fs.truncate(ino, random.below(30_000)).unwrap(),
            2 => {
                let other = format!("f{}", random.below(FILES));
                if other != name {
                    fs.rename(directory, name.as_bytes(), directory, other.as_bytes(), RenameMode::Replace).unwrap();
                }
            }
            3 => fs.set_xattr(ino, b"user.step", &step.to_le_bytes(), nandu::fs::XattrMode::Set).unwrap(),
            _ => {
                let bytes: Vec<u8> = (0..random.below(12_000)).map(|_| random.below(256) as u8).collect();
                let mut offset = random.below(20_000);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let written = fs.write_at(ino, offset, rest).unwrap();
                    (offset, rest) = (offset + written as u64, &rest[written..]);
                }
            }
        }
        assert_eq!(fs.stat(directory).unwrap().kind, FileKind::Directory);
        if random.below(10) == 0 {
            fs.sync().unwrap();
        }
    }
    fs.sync().unwrap();
    if is_cut {
        fs.abandon();
    } else {
        fs.unmount().unwrap();
    }
    image.commit(&mut sim).unwrap();
}

/// Everything that a tree of this machine has: names, types, permissions, times, sizes, attributes, bytes.
fn listing(root: &Path) -> String {
    let script = "find . -printf '%P %y %m %T@ %s %l\\n' | sort; find . -type f -exec sha256sum {} + | sort -k 2; \
        getfattr -R -d -m 'user.*' . 2>/dev/null | sort || true";
    let output = Command::new("sh").args(["-e", "-c", script]).current_dir(root).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a verb exports, of now or of a snapshot.
fn export(place: &Path, at: Option<&str>) -> String {
    let _ = fs::remove_dir_all(place.join("out"));
    let line = ["fs", "export", "c.nand", "out"];
    match at {
        None => succeed(&line, place),
        Some(number) => succeed(&[&line[..], &["--at", number]].concat(), place),
    };
    listing(&place.join("out"))
}

fn take(place: &Path) -> String {
    let said: serde_json::Value =
        serde_json::from_str(&succeed(&["fs", "snapshot", "c.nand", "take", "--json"], place)).unwrap();
    assert!(said["programs_asked"].as_u64().unwrap() > 0);
    said["snapshot"].to_string()
}

fn what_was_there_is_there(chip: &[&str], seed: u64) {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    succeed(&[&["create", "c.nand", "--factory-bad", "1", "--seed", "5"], chip].concat(), place);
    succeed(&["fs", "format", "c.nand"], place);
    let mut random = Random(seed);
    let mut kept: Vec<(String, String)> = Vec::new();
    for round in 0..6 {
        change(place, &mut random, 150, round % 2 == 1);
        let now = export(place, None);
        for (number, then) in &kept {
            assert!(export(place, Some(number)) == *then, "round {round}: snapshot {number}");
            assert!(now != *then, "round {round}: nothing changed behind snapshot {number}");
        }
        let number = take(place);
        assert!(export(place, Some(&number)) == now, "round {round}");
        kept.push((number, now));
        if kept.len() == 3 {
            let (number, _) = kept.remove(round % 2);
            let said = succeed(&["fs", "snapshot", "c.nand", "release", &number], place);
            assert!(said.starts_with(&format!("released snapshot {number}: ")), "{said}");
            let gone = format!("nandu: c.nand: there is no snapshot {number}\n");
            assert_eq!(complaint(&["fs", "ls", "c.nand", "--at", &number], place), (1, gone.clone()));
            assert_eq!(complaint(&["fs", "snapshot", "c.nand", "release", &number], place), (1, gone));
        }
        let listed: Vec<String> = kept.iter().map(|(number, _)| format!("snapshot {number}\n")).collect();
        assert_eq!(succeed(&["fs", "snapshot", "c.nand"], place), listed.concat());
        succeed(&["check", "c.nand"], place);
    }
    let now = export(place, None);
    for (number, _) in &kept {
        succeed(&["fs", "snapshot", "c.nand", "release", number], place);
    }
    assert_eq!(succeed(&["fs", "snapshot", "c.nand", "list"], place), "");
    assert!(export(place, None) == now);
    succeed(&["check", "c.nand"], place);
}

#[test]
fn what_a_snapshot_keeps_is_there_over_changes_remounts_and_cuts() {
    what_was_there_is_there(&["--chip", "w25n01gv"], 3);
}

#[test]
fn what_a_snapshot_keeps_is_there_with_two_bits_a_cell() {
    what_was_there_is_there(&["--chip", "mlc-4k", "--blocks", "256"], 4);
}

#[test]
fn every_verb_that_looks_takes_a_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    succeed(&["create", "c.nand", "--chip", "w25n01gv"], place);
    succeed(&["fs", "format", "c.nand"], place);
    for text in ["one", "two"] {
        fs::write(place.join("file"), text).unwrap();
        succeed(&["fs", "put", "c.nand", "/file", "file"], place);
        if text == "one" {
            assert!(succeed(&["fs", "snapshot", "c.nand", "take"], place).starts_with("snapshot 1; "));
        }
    }
    succeed(&["fs", "put", "c.nand", "/other", "file"], place);
    assert_eq!(succeed(&["fs", "cat", "c.nand", "/file", "--at", "1"], place), "one");
    assert_eq!(succeed(&["fs", "cat", "c.nand", "/file"], place), "two");
    assert_eq!(succeed(&["fs", "ls", "c.nand", "--at", "1"], place), "file\n");
    assert_eq!(succeed(&["fs", "ls", "c.nand"], place), "file\nother\n");
    let (code, said) = complaint(&["fs", "cat", "c.nand", "/other", "--at", "1"], place);
    assert_eq!((code, said.contains("there is no such file")), (1, true), "{said}");
}

#[test]
fn a_snapshot_is_mounted_to_be_read() {
    let Some(mut mounted) = Mounted::new("w25n01gv") else { return };
    mounted.shell("mkdir sub; echo one > sub/file; ln -s sub/file link");
    mounted.unmount();
    let place = mounted.directory.path().to_owned();
    succeed(&["fs", "snapshot", "c.nand", "take"], &place);
    mounted.mount_again();
    mounted.shell("echo two > sub/file; rm link; touch new");
    mounted.unmount();
    for words in [["--at", "1"], ["-o", "at=1"]] {
        mounted.mount_with(&words);
        mounted
            .shell("test \"$(cat sub/file)\" = one; test \"$(readlink link)\" = sub/file; test ! -e new; ! touch new");
        mounted.shell("! sh -c 'echo three > sub/file'; ! rm link; test \"$(ls)\" = \"link\nsub\"");
        mounted.unmount();
    }
    let output = nandu(&["mount", "c.nand", "mnt", "--at", "7"], &place);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "nandu: c.nand: there is no snapshot 7\n");
    mounted.mount_again();
    mounted.shell("test \"$(cat sub/file)\" = two; test ! -e link; test -e new");
    mounted.unmount();
    mounted.check();
}

#[test]
fn dffs_has_no_snapshots() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    succeed(&["create", "c.nand", "--chip", "paper-onenand"], place);
    succeed(&["fs", "format", "c.nand", "--system", "dffs"], place);
    let why = "nandu: c.nand: holds a file system of DFFS, which has no snapshots\n".to_owned();
    for line in
        [&["fs", "snapshot", "c.nand"][..], &["fs", "snapshot", "c.nand", "take"], &["fs", "ls", "c.nand", "--at", "1"]]
    {
        assert_eq!(complaint(line, place), (1, why.clone()), "{line:?}");
    }
}
