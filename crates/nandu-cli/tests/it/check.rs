//! Damaged file systems, checked and repaired through the command.

use std::fs;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use nandu_nand::PageAddr;
use nandu_sim::image::ImageFile;

fn run(arguments: &[&str], directory: &Path) -> Output {
    Command::cargo_bin("nandu").unwrap().args(arguments).current_dir(directory).output().unwrap()
}

/// The exit code and what was printed.
fn ended(arguments: &[&str], directory: &Path) -> (i32, String) {
    let output = run(arguments, directory);
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// A page of a file cannot be read: a check names it by path and offset and leaves it, a repair gives it up, and the rest is there.
#[test]
fn a_page_that_cannot_be_read_is_named_and_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let bytes: Vec<u8> = (1..=5_u8).flat_map(|number| vec![number; 2048]).collect();
    fs::create_dir(root.join("tree")).unwrap();
    fs::write(root.join("tree/file"), &bytes).unwrap();
    fs::write(root.join("tree/other"), b"whole").unwrap();
    for arguments in [&["create", "c.nand"][..], &["fs", "format", "c.nand"], &["fs", "import", "tree", "c.nand"]] {
        let output = run(arguments, root);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(ended(&["check", "c.nand"], root).0, 0);
    let clean = fs::read(root.join("c.nand")).unwrap();
    assert_eq!(ended(&["check", "-y", "c.nand"], root).0, 0, "there is nothing to repair");
    assert!(clean == fs::read(root.join("c.nand")).unwrap(), "so nothing is written");

    let (mut image, mut sim) = ImageFile::open(root.join("c.nand")).unwrap();
    let page_count = sim.chip().geometry.page_count();
    let page = (0..page_count).map(PageAddr).find(|&page| sim.peek(page)[..2048] == [3; 2048]).unwrap();
    sim.corrupt(page, 77);
    image.commit(&mut sim).unwrap();
    drop((image, sim));
    // A process that another test is starting may still hold the lock of the image; of its copy it has none.
    fs::rename(root.join("c.nand"), root.join("locked.nand")).unwrap();
    fs::copy(root.join("locked.nand"), root.join("c.nand")).unwrap();

    let damaged = fs::read(root.join("c.nand")).unwrap();
    for arguments in [&["check", "c.nand"][..], &["check", "-n", "c.nand"]] {
        let (code, said) = ended(arguments, root);
        assert_eq!(code, 4, "{said}");
        assert!(said.contains("a page of it cannot be read, at byte 4096 (/file)"), "{said}");
        assert!(damaged == fs::read(root.join("c.nand")).unwrap());
    }
    assert_eq!(ended(&["fs", "cat", "c.nand", "/file"], root).0, 1);
    assert_eq!(ended(&["check", "-n", "-y", "c.nand"], root).0, 2);

    let output = run(&["check", "-y", "c.nand"], root);
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{complaint}");
    assert!(said.contains("): cannot be read, reads as zeros now: 2,048 bytes from 4096 on\n"), "{said}");
    assert!(said.contains("/file (inode "), "{said}");
    assert_eq!(complaint, "nandu: c.nand: repaired, something is lost\n");
    assert_eq!(ended(&["check", "c.nand"], root).0, 0);
    let output = run(&["fs", "cat", "c.nand", "/file"], root);
    let mut expected = bytes;
    expected[4096..6144].fill(0);
    assert!(output.stdout == expected);
    assert_eq!(ended(&["fs", "cat", "c.nand", "/other"], root), (0, "whole".to_owned()));
}

/// What is no image, or no index, is not checked.
#[test]
fn what_cannot_be_checked_ends_with_eight() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::write(root.join("text"), b"this is no image").unwrap();
    for arguments in [&["check", "text"][..], &["check", "-y", "text"], &["check", "-y", "nothing"]] {
        assert_eq!(ended(arguments, root).0, 8, "{arguments:?}");
    }
}
