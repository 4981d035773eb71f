//! Pages of files that are durable by their tags: what they cost, what tags say whoever wrote them, and what a mount tells of.

use nandu_fs::{Attributes, Fs, FsError, Ino, LogOptions, Options};
use nandu_log::{Claim, Claimed, Kind, Log, Tag};
use nandu_nand::{CellMode, Geometry, PageAddr};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, SMALL, content, violations};

use crate::rig::{OPTIONS, fresh, memory};

const CHIP: Chip =
    Chip { geometry: Geometry { spare_size: 64, tag_size: 16, pages_per_block: 16, ..SMALL.geometry }, ..SMALL };

const LOG: LogOptions = LogOptions { has_raw: true, ..OPTIONS.log };

/// A file of three pages, and a directory with a symbolic link.
fn volume() -> (Sim, Ino) {
    let mut fs = fresh(CHIP, OPTIONS);
    let directory = fs.mkdir(Ino::ROOT, b"d", Attributes::default()).unwrap();
    fs.symlink(directory, b"s", b"target", Attributes::default()).unwrap();
    let file = fs.create(directory, b"f", Attributes::default()).unwrap();
    fs.write_at(file, 0, &[1; 3 * 512]).unwrap();
    (fs.unmount().unwrap(), file)
}

/// The volume as it would be if its newest commit had a tail with these tags behind it; and where the pages are.
fn with_tail(chip: Sim, tags: &[Tag]) -> (Sim, Vec<PageAddr>) {
    let mut bytes = vec![0; Log::<Sim>::memory_required(&CHIP.geometry, &LOG)];
    let parts = nandu_log::Parts::new(chip, &LOG, &mut bytes).unwrap();
    let mut log = Log::unopened(parts);
    log.mount(&LOG).unwrap();
    let mut page = [0; 512];
    // One that knows where raw pages go.
    let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
        panic!("no room")
    };
    log.append(&mut [0; 512], Kind::Raw(b"nobody", CellMode::Slc), &mut grant).unwrap();
    log.read(log.committed().unwrap(), &mut page).unwrap();
    log.commit(&mut page, grant).unwrap();
    let mut pages = Vec::new();
    for tag in tags {
        let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
            panic!("no room")
        };
        let page = log.append(&mut [2; 512], Kind::Tagged(b"somebody", tag), &mut grant).unwrap();
        assert!(log.is_tagged(page));
        pages.push(page);
    }
    (log.abandon_log(), pages)
}

/// The tag of a page that comes in place of one.
fn tag(ino: u64, index: u32, end: u32) -> Tag {
    let index_bits = u32::BITS - (CHIP.geometry.page_count() - 1).leading_zeros();
    // 512 bytes are 9 bits; 10 bits of the time are below.
    let place = u64::from(end - 1) << 10 | u64::from(index) << 19 | (2 * ino) << (19 + index_bits);
    let mut bytes = Tag::default();
    bytes[4..].copy_from_slice(&place.to_le_bytes());
    bytes
}

/// The same of one that comes in place of a hole.
fn tag_of_new(ino: u64, index: u32, end: u32) -> Tag {
    let index_bits = u32::BITS - (CHIP.geometry.page_count() - 1).leading_zeros();
    let mut bytes = tag(ino, index, end);
    let place = u64::from_le_bytes(bytes[4..].try_into().unwrap()) | 1 << (19 + index_bits);
    bytes[4..].copy_from_slice(&place.to_le_bytes());
    bytes
}

#[test]
fn a_page_that_is_written_and_synced_takes_a_program() {
    let chip = Chip::W25N01GV.with_blocks(40);
    let options = Options { cache_size: 4096, ..OPTIONS };
    let mut fs = fresh(chip, options);
    let file = fs.create(Ino::ROOT, b"f", Attributes::default()).unwrap();
    let mut programs = Vec::new();
    for page in 0..31 {
        let before = fs.nand().counters().programs;
        fs.write_at(file, page * 2048, &[page as u8; 2048]).unwrap();
        fs.fsync(file).unwrap();
        programs.push(fs.nand().counters().programs - before);
    }
    // After nine a commit follows.
    let commits: Vec<_> = (0..31).filter(|&page| programs[page] > 1).collect();
    assert_eq!(commits, [0, 10, 20, 30], "{programs:?}");
    assert_eq!(programs[10..].iter().sum::<u64>(), 21 + 3, "{programs:?}");
    let mut bytes = memory(&chip.geometry, &options);
    let mut fs = Fs::mount(fs.abandon(), options, &mut bytes).unwrap();
    let expected: Vec<u8> = (0..31 * 2048).map(|at| (at / 2048) as u8).collect();
    assert_eq!(content(&mut fs, file).unwrap(), expected);
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

#[test]
fn what_tags_say_is_done_in_their_order_and_what_they_cannot_say_is_not() {
    let (chip, file) = volume();
    let others = [Ino::ROOT.0, file.0 - 1, file.0 + 1, 999];
    // Of a directory, of a symbolic link, of nothing; then of the file.
    let tags: Vec<_> = others.into_iter().chain([file.0]).map(|ino| tag(ino, 1, 512)).collect();
    let mut bytes = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(with_tail(chip.clone(), &tags).0, OPTIONS, &mut bytes).unwrap();
    assert_eq!(content(&mut fs, file).unwrap(), [[1; 512], [2; 512], [1; 512]].concat());
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    // One that says nothing of a file is passed over.
    let tags = [tag_of_new(file.0, 3, 100), Tag::default(), tag(file.0, 0, 512)];
    let mut fs = Fs::mount(with_tail(chip, &tags).0, OPTIONS, &mut bytes).unwrap();
    assert_eq!(content(&mut fs, file).unwrap(), [&[2; 512][..], &[1; 1024], &[2; 100]].concat());
    assert_eq!((fs.stat(file).unwrap().size, fs.stats().tail.pages), (1636, 3));
}

#[test]
fn tags_of_any_content_do_no_harm() {
    let (chip, file) = volume();
    let mut bytes = memory(&CHIP.geometry, &OPTIONS);
    let mut chance = Chance::new(7);
    for _ in 0..200 {
        let tags: Vec<_> = (0..1 + chance.below(5))
            .map(|_| {
                let ino = chance.below(file.0 as usize + 3) as u64;
                let mut tag = tag(ino, chance.below(40) as u32, 1 + chance.below(512) as u32);
                if chance.below(2) == 0 {
                    let at = chance.below(tag.len());
                    tag[at] = chance.below(256) as u8;
                }
                tag
            })
            .collect();
        let mut fs = Fs::mount(with_tail(chip.clone(), &tags).0, OPTIONS, &mut bytes).unwrap();
        // The other pages are as they were.
        content(&mut fs, file).unwrap();
        violations(&mut fs);
        match fs.write_at(file, 700, &[3; 900]) {
            Ok(_) | Err(FsError::Full) => {}
            Err(error) => panic!("{error}"),
        }
        fs.unmount().unwrap();
    }
}

#[test]
fn a_mount_for_reading_shows_what_tags_say() {
    let (chip, file) = volume();
    let options = Options { read_only: true, ..OPTIONS };
    let mut bytes = memory(&CHIP.geometry, &options);
    let mut fs = Fs::mount(with_tail(chip, &[tag(file.0, 0, 512)]).0, options, &mut bytes).unwrap();
    assert_eq!(content(&mut fs, file).unwrap()[..512], [2; 512]);
}

#[test]
fn a_page_that_decayed_in_a_tail_is_counted_as_lost_and_the_others_are_there() {
    let mut bytes = memory(&CHIP.geometry, &OPTIONS);
    // In the page, or in its tag.
    for bit in [77, 8 * CHIP.geometry.tag_column() + 77] {
        let (chip, file) = volume();
        let tags: Vec<_> = (0..3).map(|index| tag(file.0, index, 512)).collect();
        let (mut chip, pages) = with_tail(chip, &tags);
        chip.corrupt(pages[1], bit);
        let mut fs = Fs::mount(chip, OPTIONS, &mut bytes).unwrap();
        assert_eq!(fs.stats().tail.lost, 1);
        assert_eq!(content(&mut fs, file).unwrap(), [[2; 512], [1; 512], [2; 512]].concat());
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        let mut fs = Fs::mount(fs.abandon(), OPTIONS, &mut bytes).unwrap();
        assert_eq!((fs.stats().tail.lost, content(&mut fs, file).unwrap().len()), (0, 1536));
    }
}
