//! Volumes of DFFS whose chip fails: they can be read, and every door says that they can be no more than that.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use nandu_dffs::{Area, Dffs, Options, Permissions};
use nandu_nand::{BlockAddr, Nand};
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;

use crate::mounted::{Mounted, mount, nandu, succeed};

const READ_ONLY: &str = "can only be read: too few of its blocks can still be erased and programmed";

const EROFS: i32 = 30;

/// Makes blocks of the chip in an image bad that the volume chooses, without unmounting it, in the middle of making a file.
fn spoil(image: &Path, choose: impl FnOnce(&Dffs<'_, &mut Sim>) -> Vec<BlockAddr>) {
    let (mut file, mut sim) = ImageFile::open(image).unwrap();
    sim.power_on();
    let mut memory = vec![0; Dffs::<Sim>::memory_required(&sim.chip().geometry, &Options::DEFAULT)];
    let mut volume = Dffs::mount(&mut sim, Options::DEFAULT, &mut memory).unwrap();
    let permissions = Permissions { mode: 0o644, uid: 0, gid: 0 };
    volume.create(volume.root(), b"last", permissions).unwrap();
    let blocks = choose(&volume);
    volume.abandon();
    for block in blocks {
        sim.mark_bad(block).unwrap();
    }
    file.commit(&mut sim).unwrap();
}

fn free_blocks(volume: &Dffs<'_, &mut Sim>) -> Vec<BlockAddr> {
    let blocks = (0..).map(BlockAddr).zip(volume.blocks());
    blocks.filter(|(_, block)| block.area == Area::Free).map(|(address, _)| address).collect()
}

/// An image whose recovery finds no free block.
fn make(directory: &Path) {
    succeed(&["create", "c.nand", "--chip", "paper-onenand"], directory);
    succeed(&["fs", "format", "c.nand", "--system", "dffs"], directory);
    fs::write(directory.join("file"), "content\n").unwrap();
    succeed(&["fs", "put", "c.nand", "/kept", "file"], directory);
    let said = succeed(&["check", "c.nand", "--json"], directory);
    assert!(said.contains("\"read_only\":false"), "{said}");
    spoil(&directory.join("c.nand"), free_blocks);
}

#[test]
fn every_verb_says_that_a_volume_can_only_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    make(here);
    let before = fs::read(here.join("c.nand")).unwrap();
    let error = |arguments: &[&str]| String::from_utf8(nandu(arguments, here).stderr).unwrap();

    assert!(succeed(&["info", "c.nand"], here).contains("holds       a file system of DFFS; it can only be read\n"));
    assert!(succeed(&["info", "c.nand", "--json"], here).contains("\"read_only\":true"));
    let said = succeed(&["check", "c.nand"], here);
    assert!(said.contains(&format!("a file system of DFFS; {READ_ONLY}\n")), "{said}");
    assert!(succeed(&["check", "c.nand", "--json"], here).contains("\"read_only\":true"));

    assert_eq!(succeed(&["fs", "cat", "c.nand", "/kept"], here), "content\n");
    assert_eq!(succeed(&["fs", "ls", "c.nand"], here).lines().count(), 2);
    assert!(error(&["fs", "ls", "c.nand"]).contains(READ_ONLY));
    succeed(&["fs", "export", "c.nand", "out"], here);
    assert_eq!(fs::read(here.join("out/kept")).unwrap(), b"content\n");
    for arguments in [&["fs", "put", "c.nand", "/more", "file"][..], &["fs", "import", "out", "c.nand"]] {
        let output = nandu(arguments, here);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("nandu: c.nand: {READ_ONLY}\n"));
    }
    assert!(fs::read(here.join("c.nand")).unwrap() == before, "the image changed");
}

#[test]
fn a_mount_of_such_a_volume_says_so_and_is_read_only() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path());
    fs::create_dir(directory.path().join("mnt")).unwrap();
    let Some(process) = mount(directory.path(), &[]) else { return };
    let mut mounted = Mounted { directory, process };
    assert_eq!(fs::read(mounted.root().join("kept")).unwrap(), b"content\n");
    let error = fs::write(mounted.root().join("more"), "x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(EROFS));
    let options = Command::new("findmnt").args(["-no", "OPTIONS"]).arg(mounted.root()).output();
    if let Ok(options) = options {
        assert!(String::from_utf8_lossy(&options.stdout).starts_with("ro,"), "{options:?}");
    }
    mounted.unmount();
    let output = nandu(&["mount", "c.nand", "mnt"], mounted.directory.path());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("nandu: c.nand: {READ_ONLY}\n"));
    // Its number was not said; it ends with the mount.
    mounted.leave();
}

/// The blocks for checkpoints fail one after the other while the volume is in use.
#[test]
fn a_mount_that_can_write_no_more_says_so_and_goes_on_to_be_read() {
    let Some(mut mounted) = Mounted::with(&["--chip", "paper-onenand"], &["--system", "dffs"], &[]) else { return };
    fs::write(mounted.root().join("kept"), "content\n").unwrap();
    mounted.unmount();
    let image = mounted.directory.path().join("c.nand");
    // One block is left beside that with the newest checkpoint: the mount goes on in it until it is full.
    spoil(&image, |volume| {
        let blocks = (0..6).map(BlockAddr).zip(volume.blocks());
        blocks.filter(|(_, block)| !block.is_head).map(|(address, _)| address).skip(1).collect()
    });
    mounted.mount_again();
    let mut synced = 0_u32;
    let error = loop {
        let outcome = (|| {
            let mut file = fs::File::create(mounted.root().join(format!("f{}", synced % 20)))?;
            file.write_all(&synced.to_le_bytes())?;
            file.sync_all()
        })();
        match outcome {
            Ok(()) => synced += 1,
            Err(error) => break error,
        }
        assert!(synced < 10_000, "nothing was refused");
    };
    assert_eq!(error.raw_os_error(), Some(EROFS), "{error}");
    assert!(synced > 20);
    let check = |root: &Path| {
        assert_eq!(fs::read(root.join("kept")).unwrap(), b"content\n");
        for number in synced - 19..synced {
            assert_eq!(fs::read(root.join(format!("f{}", number % 20))).unwrap(), number.to_le_bytes());
        }
    };
    check(&mounted.root());
    let error = fs::create_dir(mounted.root().join("more")).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(EROFS));
    let log = fs::read_to_string(mounted.directory.path().join("c.nand.log")).unwrap();
    assert_eq!(log.matches("can only be read from here on").count(), 1, "{log}");
    mounted.unmount();
    mounted.mount_again();
    check(&mounted.root());
    mounted.unmount();
}
