//! The digest through the command: what a backup script compares.

use std::fs;
use std::path::Path;

use crate::store::{complaint, json, succeed};

/// What the command says of an image, with these arguments besides.
fn digest(image: &str, more: &[&str], place: &Path) -> String {
    let said = String::from_utf8(succeed(&[&["digest", image], more].concat(), place)).unwrap();
    let (digest, name) = said.trim_end().split_once("  ").unwrap();
    assert_eq!(name, image);
    assert!(digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    let found = json(&succeed(&[&["digest", image, "--json"], more].concat(), place));
    assert_eq!((&found["digest"], &found["image"]), (&digest.into(), &image.into()));
    digest.to_owned()
}

fn make(image: &str, chip: &str, what: &str, place: &Path) {
    succeed(&["create", image, "--chip", chip], place);
    succeed(&[what, "format", image], place);
}

#[test]
fn records_that_went_to_another_chip_have_the_same_digest_and_an_old_copy_has_not() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    make("c.nand", "w25n01gv", "kv", place);
    for (key, value) in [("b", "2"), ("a", "0"), ("c", &"long ".repeat(2_000)), ("a", "1")] {
        succeed(&["kv", "put", "c.nand", key, value], place);
    }
    let first = digest("c.nand", &[], place);
    let image = fs::read(place.join("c.nand")).unwrap();
    assert_eq!(digest("c.nand", &[], place), first);
    assert!(fs::read(place.join("c.nand")).unwrap() == image, "it was only looked at");

    fs::write(place.join("all.jsonl"), succeed(&["kv", "export", "c.nand", "--json"], place)).unwrap();
    make("d.nand", "mt29f4g01", "kv", place);
    succeed(&["kv", "import", "d.nand", "all.jsonl"], place);
    assert_eq!(digest("d.nand", &[], place), first);

    succeed(&["kv", "snapshot", "c.nand", "take"], place);
    succeed(&["kv", "put", "c.nand", "a", "3"], place);
    let second = digest("c.nand", &[], place);
    assert_ne!(second, first);
    assert_eq!(digest("c.nand", &["--at", "1"], place), first);
    let (code, text) = complaint(&["digest", "c.nand", "--at", "2"], place);
    assert_eq!(code, 1);
    assert!(text.contains("there is no snapshot 2"), "{text}");
    // The image is put back as it was.
    fs::write(place.join("c.nand"), image).unwrap();
    assert_ne!(digest("c.nand", &[], place), second);
}

#[test]
fn files_that_were_copied_have_the_same_digest_whatever_their_times() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::create_dir_all(place.join("tree/sub")).unwrap();
    fs::write(place.join("tree/one"), vec![7; 100_000]).unwrap();
    fs::hard_link(place.join("tree/one"), place.join("tree/sub/two")).unwrap();
    std::os::unix::fs::symlink("sub/two", place.join("tree/link")).unwrap();
    make("f.nand", "w25n01gv", "fs", place);
    succeed(&["fs", "import", "tree", "f.nand"], place);
    let first = digest("f.nand", &[], place);

    succeed(&["fs", "export", "f.nand", "copy"], place);
    fs::write(place.join("copy/one"), vec![7; 100_000]).unwrap();
    make("g.nand", "mt29f4g01", "fs", place);
    succeed(&["fs", "import", "copy", "g.nand"], place);
    assert_eq!(digest("g.nand", &[], place), first);

    succeed(&["fs", "snapshot", "f.nand", "take"], place);
    fs::write(place.join("eight"), vec![8; 100_000]).unwrap();
    succeed(&["fs", "put", "f.nand", "one", "eight"], place);
    assert_ne!(digest("f.nand", &[], place), first);
    assert_eq!(digest("f.nand", &["--at", "1"], place), first);
    assert_eq!(json(&succeed(&["digest", "f.nand", "--at", "1", "--json"], place))["kind"], "files");
}

#[test]
fn what_has_no_digest_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    succeed(&["create", "c.nand", "--chip", "w25n01gv"], place);
    assert_eq!(complaint(&["digest", "nothing.nand"], place).0, 1);
    let (code, text) = complaint(&["digest", "c.nand"], place);
    assert!(code == 1 && text.contains("not formatted"), "{text}");
    succeed(&["fs", "format", "c.nand", "--system", "dffs"], place);
    let (code, text) = complaint(&["digest", "c.nand"], place);
    assert!(code == 1 && text.contains("which has no digest"), "{text}");
    succeed(&["kv", "format", "c.nand", "--force", "--index", "grr"], place);
    let (code, text) = complaint(&["digest", "c.nand"], place);
    assert!(code == 1 && text.contains("only a mutree one has a digest"), "{text}");
}
