//! Dumps of devices, as `nanddump` makes them, opened in the place of images. What `fs build` makes is written to a device as it is, so a
//! dump of that device holds the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::cargo_bin("nandu").unwrap().args(arguments).current_dir(folder).output().unwrap()
}

/// What a command that succeeds prints.
fn succeed(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = run(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A dump of a chip with two files, made with these arguments.
fn dump(folder: &Path, arguments: &[&str]) -> PathBuf {
    let root = folder.join("root");
    fs::create_dir_all(root.join("below")).unwrap();
    fs::write(root.join("first"), vec![7; 100_000]).unwrap();
    fs::write(root.join("below/second"), "two").unwrap();
    let output = folder.join("dump");
    let _ = fs::remove_file(&output);
    let line = ["fs", "build", "--chip", "w25n02kv", "-r", "root", "-o", "dump"];
    succeed(folder, &[&line[..], arguments].concat());
    output
}

#[test]
fn a_dump_opens_with_and_without_spare_areas_and_with_bad_blocks_left_out_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [&[&str]; 9] = [
        &[],
        &["--oob"],
        &["--bad", "0,1,7"],
        &["--bad", "0,2,3", "--oob"],
        &["--bad", "1,2", "--in-place", "--oob"],
        &["--blocks", "100"],
        // Bad blocks in front of what says nothing of itself.
        &["--bad", "7"],
        &["--bad", "6,8,9", "--oob"],
        &["--bad", "7", "--in-place"],
    ];
    for arguments in kinds {
        let _ = dump(folder.path(), arguments);
        assert_eq!(succeed(folder.path(), &["fs", "ls", "dump"]), b"below\nfirst\n", "{arguments:?}");
        assert_eq!(succeed(folder.path(), &["fs", "cat", "dump", "/below/second"]), b"two", "{arguments:?}");
        assert!(succeed(folder.path(), &["fs", "cat", "dump", "/first"]) == vec![7; 100_000], "{arguments:?}");
        succeed(folder.path(), &["check", "dump"]);
    }
}

#[test]
fn a_dump_can_only_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = dump(folder.path(), &["--oob"]);
    let before = fs::read(&path).unwrap();
    for line in [&["fs", "put", "dump", "/third", "root/first"][..], &["fs", "format", "--force", "dump"]] {
        let refused = run(folder.path(), line);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(said, "nandu: dump: a dump of a device, which can only be looked at\n", "{line:?}");
        assert_eq!(refused.status.code(), Some(1), "{line:?}");
    }
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn bytes_that_are_no_dump_are_no_image_and_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = dump(folder.path(), &[]);
    let whole = fs::read(&path).unwrap();
    // Cut short within a page, shifted, and with its blocks turned round.
    let mut turned = whole.clone();
    turned.rotate_left(whole.len() / 2);
    for bytes in [&whole[..whole.len() - 1000], &whole[64..], &turned, &[0x4e; 5000]] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(run(folder.path(), &["fs", "ls", "dump"]).status.code(), Some(1));
    }
}
