//! Volumes of format 1, which are refused by name.

use std::fs;
use std::path::Path;

use nandu::fs::{Fs, FsError};
use nandu::{Error, Options, Store};
use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
use nandu_sim::Sim;
use nandu_sim::image::ImageFile;

use crate::store::{complaint, succeed};

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0x82F6_3B78 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}

/// The anchor that volumes of format 1 begin with: a header of version 1, and behind it what does not matter here.
fn anchor(page_size: usize) -> Vec<u8> {
    let mut page = vec![0; page_size];
    page[4..8].copy_from_slice(b"nd\x01\x01");
    page[8] = 9;
    page[20..24].copy_from_slice(&0xba07_7864_u32.to_le_bytes());
    page[24..28].fill(0xFF);
    page[28] = 1;
    page[34] = 2;
    page[36..40].fill(0xFF);
    let sum = crc32c(&page[4..]);
    page[..4].copy_from_slice(&sum.to_le_bytes());
    page
}

/// An image of a chip with a volume of format 1.
fn make(place: &Path) {
    succeed(&["create", "c.nand", "--chip", "w25n01gv", "--seed", "7"], place);
    let (mut image, mut sim) = ImageFile::open(place.join("c.nand")).unwrap();
    let page = anchor(sim.geometry().page_size as usize);
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    sim.program(PageAddr(0), 0, &page).unwrap();
    image.commit(&mut sim).unwrap();
}

const WHY: &str = "holds a volume of format 1: export it with a nandu 0.1 that was built before format 2, \
    and import it here; 'format --force' makes an empty volume in its place\n";

#[test]
fn every_verb_that_opens_a_volume_of_format_1_says_what_it_is_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    make(place);
    fs::create_dir(place.join("mnt")).unwrap();
    fs::write(place.join("file"), "bytes").unwrap();
    let before = fs::read(place.join("c.nand")).unwrap();
    let expected = format!("nandu: c.nand: {WHY}");
    let lines: [&[&str]; 14] = [
        &["kv", "get", "c.nand", "key"],
        &["kv", "put", "c.nand", "key", "value"],
        &["kv", "scan", "c.nand"],
        &["kv", "export", "c.nand"],
        &["kv", "stats", "c.nand"],
        &["kv", "snapshot", "c.nand"],
        &["fs", "ls", "c.nand"],
        &["fs", "put", "c.nand", "/file", "file"],
        &["fs", "df", "c.nand"],
        &["fs", "regions", "c.nand"],
        &["fs", "export", "c.nand", "out"],
        &["fs", "snapshot", "c.nand", "take"],
        &["mount", "c.nand", "mnt"],
        &["mount", "c.nand", "mnt", "--foreground", "--ro"],
    ];
    for line in lines {
        assert_eq!(complaint(line, place), (1, expected.clone()), "{line:?}");
    }
    for line in [&["check", "c.nand"][..], &["check", "c.nand", "-y"]] {
        assert_eq!(complaint(line, place), (8, expected.clone()), "{line:?}");
    }
    assert!(fs::read(place.join("c.nand")).unwrap() == before);
}

#[test]
fn what_looks_at_a_chip_tells_of_format_1() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    make(place);
    let says = |line: &[&str]| String::from_utf8(succeed(line, place)).unwrap();
    assert!(says(&["info", "c.nand"]).contains("holds       a volume of format 1, which only older versions open\n"));
    assert!(says(&["info", "c.nand", "--json"]).contains(r#""index":{"format":1}"#));
    assert!(says(&["dump", "page", "0", "c.nand"]).contains("nandu: a page of an anchor block of format 1\n"));
    says(&["map", "c.nand"]);
}

#[test]
fn a_format_makes_a_volume_in_place_of_one_of_format_1() {
    for kind in ["kv", "fs"] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        make(place);
        let (code, said) = complaint(&[kind, "format", "c.nand"], place);
        assert_eq!((code, said.contains("not blank")), (1, true), "{said}");
        succeed(&[kind, "format", "c.nand", "--force"], place);
        succeed(&["check", "c.nand"], place);
        let said = String::from_utf8(succeed(&["info", "c.nand"], place)).unwrap();
        assert!(!said.contains("format 1"), "{said}");
    }
}

#[test]
fn a_dump_of_a_device_with_a_volume_of_format_1_is_refused_too() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let mut bytes = vec![0xFF; 2 * 64 * 2112];
    bytes[64 * 2112..][..2048].copy_from_slice(&anchor(2048));
    fs::write(place.join("dump"), bytes).unwrap();
    assert_eq!(complaint(&["fs", "ls", "dump"], place), (1, format!("nandu: dump: {WHY}")));
}

/// The library says so, too, however many of the first blocks are bad.
#[test]
fn the_library_says_that_it_is_of_another_format() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    make(place);
    let (image, mut sim) = ImageFile::open(place.join("c.nand")).unwrap();
    let options = Options::DEFAULT;
    let mut memory = vec![0; Store::<Sim>::memory_required(sim.geometry(), &options)];
    let opened = Store::open(&mut sim, options, &mut memory);
    assert!(matches!(opened, Err(Error::OtherFormat { what: "format version" })));
    let options = nandu::fs::Options::DEFAULT;
    let mut memory = vec![0; Fs::<Sim>::memory_required(sim.geometry(), &options)];
    let mounted = Fs::mount(&mut sim, options, &mut memory);
    assert!(matches!(mounted, Err(FsError::OtherFormat { what: "format version" })));
    drop(image);
    // Erased, it is not formatted.
    let options = Options::DEFAULT;
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    let mut memory = vec![0; Store::<Sim>::memory_required(sim.geometry(), &options)];
    assert!(matches!(Store::open(&mut sim, options, &mut memory), Err(Error::NotFormatted)));
}
