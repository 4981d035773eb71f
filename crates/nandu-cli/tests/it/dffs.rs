//! DFFS through every door: the verbs, and where FUSE can be used a mount.

use std::fs;
use std::path::Path;
use std::process::Command;

use nandu_media::dffs::{Fields, Kind};
use nandu_nand::PageAddr;
use nandu_sim::image::ImageFile;

use crate::mount::{FSX_WEIGHTS, run_fsx};
use crate::mounted::{Mounted, Random, has, nandu, succeed};

/// A tree of so many files of which none has more bytes than this, in directories of 50.
fn make_tree(root: &Path, files: u64, size_max: u64) {
    let mut random = Random(11);
    for number in 0..files {
        let directory = root.join(format!("d{}/e{}", number / 500, number / 50 % 10));
        if number % 50 == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        let size = random.below(size_max);
        let bytes: Vec<u8> = (0..size).map(|_| random.below(256) as u8).collect();
        fs::write(directory.join(format!("file-{number}")), bytes).unwrap();
    }
}

fn refuse(arguments: &[&str], directory: &Path) -> String {
    let output = nandu(arguments, directory);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn assert_same(one: &Path, other: &Path) {
    let output = Command::new("diff").arg("-r").arg(one).arg(other).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn every_verb_works_on_a_volume_of_dffs() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    make_tree(&here.join("tree"), 120, 9_000);
    succeed(&["create", "d.nand", "--chip", "paper-onenand", "--factory-bad", "1", "--seed", "5"], here);
    let said = succeed(&["fs", "format", "d.nand", "--system", "dffs"], here);
    assert!(said.contains("file system of DFFS"), "{said}");
    assert!(succeed(&["info", "d.nand"], here).contains("holds       a file system of DFFS"));
    succeed(&["fs", "import", "tree", "d.nand"], here);
    assert_eq!(succeed(&["fs", "ls", "d.nand", "/d0/e1"], here).lines().count(), 50);
    succeed(&["fs", "put", "d.nand", "/d0/new", "tree/d0/e0/file-3"], here);
    assert_eq!(
        nandu(&["fs", "cat", "d.nand", "/d0/new"], here).stdout,
        fs::read(here.join("tree/d0/e0/file-3")).unwrap()
    );
    fs::copy(here.join("tree/d0/e0/file-3"), here.join("tree/d0/new")).unwrap();
    succeed(&["fs", "export", "d.nand", "out"], here);
    assert_same(&here.join("tree"), &here.join("out"));
    assert!(succeed(&["fs", "df", "d.nand"], here).contains("available to files"));
    let said = succeed(&["check", "d.nand"], here);
    assert!(
        said.contains("a file system of DFFS; was left cleanly\n") && said.contains("no invariant is violated"),
        "{said}"
    );
    let map = succeed(&["map", "d.nand", "--json"], here);
    for area in ["checkpoint", "map", "directory", "file", "data"] {
        assert!(map.contains(&format!("\"area\":\"{area}\"")), "{area}");
    }
    assert!(succeed(&["map", "d.nand"], here).contains("partly programmed: inodes of files"));

    assert!(refuse(&["fs", "regions", "d.nand"], here).contains("DFFS has no regions"));
    assert!(refuse(&["check", "-y", "d.nand"], here).contains("a mount of DFFS puts right what a cut left"));
    assert!(refuse(&["kv", "get", "d.nand", "key"], here).contains("not formatted"));
    assert!(refuse(&["fs", "format", "d.nand", "--system", "dffs", "--slc"], here).contains("not for it"));
    // A link is refused in words, and the image stays as it was.
    fs::create_dir(here.join("links")).unwrap();
    std::os::unix::fs::symlink("x", here.join("links/link")).unwrap();
    assert!(refuse(&["fs", "import", "links", "d.nand"], here).contains("this file system has no symbolic links"));
    let said = succeed(&["check", "d.nand"], here);
    assert!(said.contains("no invariant is violated"), "{said}");

    // Either file system takes the chip over from the other, and is found.
    for (system, words) in
        [("nandu", "a file system; was left cleanly"), ("dffs", "a file system of DFFS; was left cleanly")]
    {
        succeed(&["fs", "format", "d.nand", "--system", system, "--force"], here);
        assert_eq!(succeed(&["fs", "ls", "d.nand"], here), "");
        succeed(&["fs", "put", "d.nand", "/a", "tree/d0/new"], here);
        assert!(succeed(&["check", "d.nand"], here).contains(words), "{system}");
    }
}

/// An image for a NAND writer holds what the directory held.
#[test]
fn an_image_is_built_with_dffs() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    make_tree(&here.join("tree"), 60, 3_000);
    let arguments = ["fs", "build", "-r", "tree", "-o", "d.bin", "--chip", "paper-onenand", "--system", "dffs"];
    let said = succeed(&arguments, here);
    assert!(said.contains("60 files"), "{said}");
    assert!(fs::metadata(here.join("d.bin")).unwrap().len() > 60 * 2048);
}

/// What DFFS is for: a tree is copied to it, and a repository is used on it. What it lacks is refused with the numbers that programs expect.
#[test]
fn a_tree_and_a_repository_are_on_a_mount_of_dffs() {
    let create = ["--chip", "paper-onenand", "--factory-bad", "1", "--seed", "3"];
    let Some(mut mounted) = Mounted::with(&create, &["--system", "dffs"], &[]) else { return };
    let tree = mounted.directory.path().join("tree");
    make_tree(&tree, 5_000, 3_000);
    let copied = Command::new("cp").arg("-a").arg(&tree).arg(mounted.root()).output().unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    assert_same(&tree, &mounted.root().join("tree"));
    if has("git") {
        mounted.shell(
            "git init -q r; cd r; git config user.email a@b; git config user.name n; mkdir s; \
             for i in 1 2 3 4 5 6 7 8; do echo $i > s/f$i; done; git add .; git commit -qm one; \
             git mv s/f1 s/g1; echo more >> s/f2; git commit -qam two; git status --porcelain > ../status; \
             test ! -s ../status; git fsck --strict",
        );
    }
    mounted.shell(
        "echo one > a; ! ln a b; ! ln -s a b; ! mkfifo b; ! chown 70000 a; ! truncate -s 1M a; test ! -e b; \
         mv a c; echo two >> c; test \"$(cat c)\" = \"one\ntwo\"; exec 3<c; rm c; test \"$(cat <&3)\" = \"one\ntwo\"; exec 3<&-",
    );
    mounted.unmount();
    mounted.check();
    mounted.mount_again();
    assert_same(&tree, &mounted.root().join("tree"));
    if has("git") {
        mounted.shell("cd r; test -z \"$(git status --porcelain)\"");
    }
    mounted.unmount();
    mounted.check();
}

/// A file that is open when it is renamed, or is renamed and opened later, is the same file for whoever holds it.
#[test]
fn renamed_files_stay_the_same_on_a_mount_of_dffs() {
    let Some(mut mounted) = Mounted::with(&["--chip", "paper-onenand"], &["--system", "dffs"], &[]) else { return };
    mounted.shell(
        "mkdir d e; echo 1 > d/a; exec 3>>d/a; mv d/a e/b; echo 2 >&3; mv e/b d/c; echo 3 >&3; exec 3>&-; echo 4 >> d/c; \
         test \"$(cat d/c)\" = \"$(printf '1\\n2\\n3\\n4')\"; before=$(stat -c %i d/c); mv d/c e/f; \
         test $before = $(stat -c %i e/f); echo 5 > d/x; mv d/x e/f; test \"$(cat e/f)\" = 5; test ! -e d/x; \
         for i in $(seq 30); do echo $i > d/n$i; mv d/n$i e/m$i; echo x >> e/m$i; done; test $(cat e/m* | wc -l) = 60; \
         mv e d/; test \"$(cat d/e/m7)\" = \"$(printf '7\\nx')\"; rm -r d; test -z \"$(ls)\"",
    );
    mounted.unmount();
    mounted.check();
}

/// A directory that is gone while somebody is in it is not the next one that gets its number.
#[test]
fn whoever_is_in_a_directory_that_is_gone_is_in_no_other_on_a_mount_of_dffs() {
    let Some(mut mounted) = Mounted::with(&["--chip", "paper-onenand"], &["--system", "dffs"], &[]) else { return };
    mounted.shell(
        "mkdir d; cd d; rmdir ../d; mkdir ../e; echo 1 > ../e/x; test \"$(ls ../e)\" = x; ! touch y; ! ls x; \
         mkdir ../e/f; echo 2 > ../e/f/z; test \"$(cat ../e/f/z)\" = 2; test \"$(ls ../e)\" = \"$(printf 'f\\nx')\"",
    );
    mounted.unmount();
    mounted.check();
}

#[test]
fn what_was_synced_is_there_after_a_mount_of_dffs_is_killed() {
    let Some(mut mounted) = Mounted::with(&["--chip", "paper-onenand"], &["--system", "dffs"], &[]) else { return };
    mounted.shell("mkdir d; seq 2000 > d/a; sync d/a; seq 3 > d/b; mv d/b d/c");
    mounted.kill();
    let said = succeed(&["check", "c.nand"], mounted.directory.path());
    assert!(said.contains("the power was cut") && said.contains("no invariant is violated"), "{said}");
    mounted.mount_again();
    mounted.shell("seq 2000 | cmp - d/a; seq 3 | cmp - d/c; test ! -e d/b; echo on >> d/a");
    mounted.unmount();
    mounted.check();
}

#[test]
fn fsx_finds_nothing_on_a_mount_of_dffs() {
    let Some(mut mounted) = Mounted::with(&["--chip", "paper-onenand"], &["--system", "dffs"], &[]) else { return };
    // What DFFS lacks is left out.
    let weights =
        FSX_WEIGHTS.replace("posix_fallocate = 2", "posix_fallocate = 0").replace("punch_hole = 5", "punch_hole = 0");
    run_fsx(&mounted, "kept", "20000", &format!("nomsyncafterwrite = true\n{weights}"));
    mounted.unmount();
    mounted.check();
}

/// `dump page` shows the fields of a page of each kind.
#[test]
fn a_page_of_dffs_says_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::create_dir_all(here.join("tree/letters")).unwrap();
    fs::write(here.join("tree/letters/first"), vec![7; 200_000]).unwrap();
    succeed(&["create", "d.nand", "--chip", "paper-onenand"], here);
    succeed(&["fs", "format", "d.nand", "--system", "dffs"], here);
    succeed(&["fs", "import", "tree", "d.nand"], here);
    // An image that is open is in use.
    fs::copy(here.join("d.nand"), here.join("copy.nand")).unwrap();
    let (_, sim) = ImageFile::open(here.join("copy.nand")).unwrap();
    let pages = (0..sim.chip().geometry.page_count()).map(PageAddr);
    let fields: Vec<(PageAddr, Fields, Vec<u8>)> = pages
        .filter(|&page| sim.page_state(page).programs > 0)
        .filter_map(|page| {
            let bytes = sim.peek(page)[..2048].to_vec();
            // Data is all sevens, which is no version.
            Some((page, Fields::read(&bytes).ok()?, bytes))
        })
        .collect();
    let newest = |kind: Kind, id: u32| {
        let pages = fields.iter().filter(|(_, fields, _)| fields.kind == kind && (id == 0 || fields.id == id));
        pages.max_by_key(|(_, fields, _)| fields.sequence).unwrap()
    };
    let dump = |page: PageAddr| succeed(&["dump", "page", &page.0.to_string(), "d.nand"], here);
    let json = |page: PageAddr| -> serde_json::Value {
        serde_json::from_str(&succeed(&["dump", "page", &page.0.to_string(), "d.nand", "--json"], here)).unwrap()
    };

    let (page, file, bytes) = newest(Kind::File, 0);
    let said = dump(*page);
    assert!(said.contains(&format!("dffs: file page, sequence {}", file.sequence)), "{said}");
    let first = nandu_media::dffs::word(bytes, nandu_media::dffs::FRONT_SIZE);
    assert!(said.contains(&format!("file {} in directory 2, name 'first', 200,000 bytes", file.id)), "{said}");
    assert!(said.contains(&format!("pages of data: 0 to page {first}, 1 to page {}", first + 1)), "{said}");
    let header = &json(*page)["header"];
    assert_eq!((&header["kind"], &header["name"], &header["size"]), (&"file".into(), &"first".into(), &200_000.into()));
    assert_eq!(header["pages"]["0"], first);

    let said = dump(PageAddr(first));
    assert!(said.contains(&format!("dffs: data of file {}, its page 0;", file.id)), "{said}");
    let (page, letters, _) = newest(Kind::Directory, 2);
    let said = dump(*page);
    assert!(said.contains("directory 2 in directory 1, name 'letters'"), "{said}");
    assert!(said.contains("1 buckets in use: ") && letters.used == 1, "{said}");
    for (kind, words) in [
        (Kind::Map, "dffs: map page"),
        (Kind::Summary, "dffs: summary page"),
        (Kind::Superblock, "dffs: superblock page"),
        (Kind::Checkpoint, "dffs: checkpoint page"),
    ] {
        let said = dump(newest(kind, 0).0);
        assert!(said.contains(words), "{said}");
    }
    assert!(dump(newest(Kind::Checkpoint, 0).0).contains(", unmounted\n"));
    assert!(dump(newest(Kind::Superblock, 0).0).contains("pages of 2048 bytes, 64 in a block"));
}
