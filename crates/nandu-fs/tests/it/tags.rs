//! What tags say, whoever wrote them.

use nandu_fs::{Attributes, Fs, Ino, LogOptions, Options};
use nandu_log::{Append, Log, PageKind, Placement, TAG_OWNER_SIZE};
use nandu_nand::{Cause, Geometry};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, SMALL, content, violations};

use crate::rig::{OPTIONS, fresh, memory};

const CHIP: Chip =
    Chip { geometry: Geometry { spare_size: 64, tag_size: 16, pages_per_block: 16, ..SMALL.geometry }, ..SMALL };

const TAGGED: Options = Options { log: LogOptions { tags: true, ..OPTIONS.log }, ..OPTIONS };

/// A file of three pages, and a directory with a symbolic link.
fn volume() -> (Sim, Ino) {
    let mut fs = fresh(CHIP, TAGGED);
    let directory = fs.mkdir(Ino::ROOT, b"d", Attributes::default()).unwrap();
    fs.symlink(directory, b"s", b"target", Attributes::default()).unwrap();
    let file = fs.create(directory, b"f", Attributes::default()).unwrap();
    fs.write_at(file, 0, &[1; 3 * 512]).unwrap();
    (fs.unmount().unwrap(), file)
}

/// The volume as it would be if its newest commit had a tail with these tags behind it.
fn with_tail(chip: Sim, tags: &[[u8; TAG_OWNER_SIZE]]) -> Sim {
    let mut bytes = vec![0; Log::<Sim>::memory_required(&CHIP.geometry, &TAGGED.log)];
    let mut log = Log::mount(chip, TAGGED.log, &mut bytes).unwrap();
    for _ in 0..2 {
        let (mut page, committed) = ([0; 512], log.committed().unwrap());
        let kind = log.read(committed, &mut page).unwrap().kind;
        assert!(matches!(kind, PageKind::Tree | PageKind::Journal | PageKind::Notes));
        let append = Append { kind, placement: Placement::New, is_commit: true, cause: Cause::Host };
        log.append(&mut page, append).unwrap();
        if !log.can_tag() {
            log.append_bare(&[0; 512], Placement::New, Cause::Value).unwrap();
        }
    }
    for tag in tags {
        assert!(log.can_tag());
        log.append_tagged(&[2; 512], Some(tag), Placement::New, Cause::Value).unwrap();
    }
    log.abandon()
}

fn tag(ino: u64, index: u32, end: u32) -> [u8; TAG_OWNER_SIZE] {
    let index_bits = u32::BITS - (CHIP.geometry.page_count() - 1).leading_zeros();
    // 512 bytes are 9 bits; 10 bits of the time are below.
    let place = u64::from(end - 1) << 10 | u64::from(index) << 19 | ino << (19 + index_bits);
    let mut bytes = [0; TAG_OWNER_SIZE];
    bytes[4..].copy_from_slice(&place.to_le_bytes());
    bytes
}

#[test]
fn what_tags_say_is_done_in_their_order_and_what_they_cannot_say_is_not() {
    let (chip, file) = volume();
    let others = [Ino::ROOT.0, file.0 - 1, file.0 + 1, 999];
    // Of a directory, of a symbolic link, of nothing; then of the file.
    let tags: Vec<_> = others.into_iter().chain([file.0]).map(|ino| tag(ino, 1, 512)).collect();
    let mut bytes = memory(&CHIP.geometry, &TAGGED);
    let mut fs = Fs::mount(with_tail(chip.clone(), &tags), TAGGED, &mut bytes).unwrap();
    let expected = [[1; 512], [2; 512], [1; 512]].concat();
    assert_eq!((content(&mut fs, file).unwrap(), fs.stats().tail_pages), (expected, 5));
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    // One that is no tag ends the tail.
    let tags = [tag(file.0, 3, 100), [0; TAG_OWNER_SIZE], tag(file.0, 0, 512)];
    let mut fs = Fs::mount(with_tail(chip, &tags), TAGGED, &mut bytes).unwrap();
    let expected = [&[1; 3 * 512][..], &[2; 100]].concat();
    assert_eq!(content(&mut fs, file).unwrap(), expected);
}

#[test]
fn tags_of_any_content_do_no_harm() {
    let (chip, file) = volume();
    let mut bytes = memory(&CHIP.geometry, &TAGGED);
    let mut chance = Chance::new(7);
    for _ in 0..200 {
        let tags: Vec<_> = (0..1 + chance.below(5))
            .map(|_| {
                let ino = chance.below(file.0 as usize + 3) as u64;
                let mut tag = tag(ino, chance.below(40) as u32, 1 + chance.below(512) as u32);
                if chance.below(2) == 0 {
                    let at = chance.below(TAG_OWNER_SIZE);
                    tag[at] = chance.below(256) as u8;
                }
                tag
            })
            .collect();
        let mut fs = Fs::mount(with_tail(chip.clone(), &tags), TAGGED, &mut bytes).unwrap();
        // A page may have bytes behind the end that the tag states, and nothing else may be wrong.
        let wrong: Vec<String> = violations(&mut fs).into_iter().filter(|wrong| !wrong.starts_with("S6")).collect();
        assert_eq!(wrong, Vec::<String>::new(), "{tags:?}");
        fs.write_at(file, 700, &[3; 900]).unwrap();
        fs.unmount().unwrap();
    }
}

#[test]
fn a_mount_for_reading_shows_what_tags_say() {
    let (chip, file) = volume();
    let options = Options { read_only: true, ..TAGGED };
    let mut bytes = memory(&CHIP.geometry, &options);
    let mut fs = Fs::mount(with_tail(chip, &[tag(file.0, 0, 512)]), options, &mut bytes).unwrap();
    assert_eq!(content(&mut fs, file).unwrap()[..512], [2; 512]);
}

/// A volume whose newest commit has a tail of the pages 0 to 2 of the file, and the second of these after a bit of it has changed.
fn decayed(bit: u32) -> (Sim, Ino) {
    let (chip, file) = volume();
    let tags: Vec<_> = (0..3).map(|index| tag(file.0, index, 512)).collect();
    let mut chip = with_tail(chip, &tags);
    let mut bytes = vec![0; Log::<Sim>::memory_required(&CHIP.geometry, &TAGGED.log)];
    let log = Log::mount(chip.clone(), TAGGED.log, &mut bytes).unwrap();
    let page = log.due_address(1).unwrap();
    chip.corrupt(page, bit);
    (chip, file)
}

#[test]
fn a_page_that_decayed_in_a_tail_is_counted_as_lost_and_the_others_are_there() {
    // In the page, or in its tag.
    for bit in [77, 8 * CHIP.geometry.tag_column() + 77] {
        let (chip, file) = decayed(bit);
        let mut bytes = memory(&CHIP.geometry, &TAGGED);
        let mut fs = Fs::mount(chip, TAGGED, &mut bytes).unwrap();
        assert_eq!((fs.stats().tail_lost, fs.stats().tail_pages), (1, 3));
        assert_eq!(content(&mut fs, file).unwrap(), [[2; 512], [1; 512], [2; 512]].concat());
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        let mut fs = Fs::mount(fs.abandon(), TAGGED, &mut bytes).unwrap();
        assert_eq!((fs.stats().tail_lost, content(&mut fs, file).unwrap().len()), (0, 1536));
    }
}
