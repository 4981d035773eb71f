//! Tails: bare pages that promise something by their tags.

use nandu_log::{Append, Due, Log, LogError, LogOptions, PageKind, Placement, TAG_OWNER_SIZE, TAIL_MAX};
use nandu_media::checksum::checksum as page_checksum;
use nandu_nand::{Cause, Geometry, PageAddr};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::toy::memory;

const CHIP: Chip = Chip {
    name: "tagged",
    geometry: Geometry { tag_size: 16, ..Chip::W25N01GV.geometry },
    ..Chip::W25N01GV.with_blocks(64)
};

const TAGS: LogOptions = LogOptions { bare_streams: 1, tags: true, ..LogOptions::DEFAULT };

const PAGE: [u8; 2048] = [0x5A; 2048];

fn commit(log: &mut Log<'_, Sim>) -> PageAddr {
    let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: true, cause: Cause::Host };
    log.append(&mut [1; 2048], append).unwrap()
}

/// Appends a page that says its number; returns whether it has a tag.
fn put(log: &mut Log<'_, Sim>, number: u8) -> bool {
    let before = log.tail_len();
    log.append_tagged(&[number; 2048], Some(&[number; TAG_OWNER_SIZE]), Placement::New, Cause::Value).unwrap();
    log.tail_len() > before
}

/// A log with a commit and one bare page before it, so that a tail can follow.
fn begun(bytes: &mut [u8]) -> Log<'_, Sim> {
    let mut log = Log::format(Sim::new(CHIP), TAGS, bytes).unwrap();
    commit(&mut log);
    assert!(!log.can_tag() && !put(&mut log, 99), "no header says yet where a bare page will stand");
    commit(&mut log);
    log
}

/// What stands for a page that cannot be read, or whose tag cannot be.
const LOST: u8 = 255;

/// The numbers of the pages of the tail that is due.
fn due(log: &mut Log<'_, Sim>) -> Vec<u8> {
    let mut page = [0; 2048];
    let mut numbers = Vec::new();
    while let Some(due) = log.due_page(numbers.len() as u16, &mut page).unwrap() {
        numbers.push(match due {
            Due::Whole { owner, checksum } => {
                assert_eq!((page, owner), ([owner[0]; 2048], [owner[0]; TAG_OWNER_SIZE]));
                assert_eq!(checksum, page_checksum(&page));
                owner[0]
            }
            Due::Lost => LOST,
        });
    }
    assert_eq!(log.stats().tail_lost as usize, numbers.iter().filter(|&&number| number == LOST).count());
    numbers
}

/// What a mount after a cut here finds.
fn after_a_cut(log: &Log<'_, Sim>) -> Vec<u8> {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = Log::mount(log.nand().clone(), TAGS, &mut bytes).unwrap();
    assert!(log.stats().was_cut);
    let numbers = due(&mut log);
    assert_eq!(log.has_due_tail(), !numbers.is_empty());
    numbers
}

#[test]
fn what_tags_tell_of_is_found_after_a_cut_up_to_the_next_commit() {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = begun(&mut bytes);
    assert_eq!(after_a_cut(&log), []);
    for number in 0..TAIL_MAX as u8 {
        let before = *log.nand().counters();
        assert!(log.can_tag() && put(&mut log, number));
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.programs, cost.reads, cost.erases), (1, 0, 0));
        assert_eq!(after_a_cut(&log), Vec::from_iter(0..=number));
        // What a checkpoint says stands in the way of nothing.
        if number % 4 == 2 {
            log.checkpoint().unwrap();
            assert_eq!(after_a_cut(&log), Vec::from_iter(0..=number));
        }
    }
    assert!(!log.can_tag() && !put(&mut log, 50), "the tail is as long as it may be");
    assert_eq!(after_a_cut(&log).len(), usize::from(TAIL_MAX));
    commit(&mut log);
    assert_eq!(after_a_cut(&log), []);
    assert!(put(&mut log, 60));
    assert_eq!(after_a_cut(&log), [60]);
}

#[test]
fn a_page_that_would_not_be_found_has_no_tag() {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = begun(&mut bytes);
    assert!(put(&mut log, 0));
    // A page of the same stream between: what stands behind it would not be reached.
    log.append_bare(&PAGE, Placement::New, Cause::Value).unwrap();
    assert!(!log.can_tag() && !put(&mut log, 1));
    assert_eq!(after_a_cut(&log), [0]);
    commit(&mut log);
    // Up to the last page of the block, which is a summary's, and not in the next block.
    let stream = log.bare_stream(Placement::New);
    while log.bare_room(stream) > 1 {
        assert!(put(&mut log, 2) || log.tail_len() == TAIL_MAX);
        if log.tail_len() == TAIL_MAX {
            commit(&mut log);
        }
    }
    log.append_summary(&mut [3; 2048], stream, Cause::Value).unwrap();
    assert!(!log.can_tag() && !put(&mut log, 3));
    commit(&mut log);
    assert!(put(&mut log, 4));
    assert_eq!(after_a_cut(&log), [4]);
}

#[test]
fn a_tail_is_due_until_its_owner_says_that_it_is_not() {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = begun(&mut bytes);
    assert!((0..5).all(|number| put(&mut log, number)));
    let mut chip = log.abandon();
    // The owner commits some of it, and the power goes; and again.
    for _ in 0..3 {
        let mut log = Log::mount(chip, TAGS, &mut bytes).unwrap();
        assert_eq!(due(&mut log), [0, 1, 2, 3, 4]);
        assert!(!put(&mut log, 9), "no second tail begins");
        commit(&mut log);
        assert!(!put(&mut log, 9));
        commit(&mut log);
        log.checkpoint().unwrap();
        chip = log.abandon();
    }
    let mut log = Log::mount(chip, TAGS, &mut bytes).unwrap();
    log.end_tail().unwrap();
    let chip = log.abandon();
    let mut log = Log::mount(chip, TAGS, &mut bytes).unwrap();
    assert!(!log.has_due_tail() && due(&mut log).is_empty());
    commit(&mut log);
    put(&mut log, 9);
    commit(&mut log);
    assert!(put(&mut log, 10));
    assert_eq!(after_a_cut(&log), [10]);
}

#[test]
fn a_page_that_failed_ends_the_tail() {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = begun(&mut bytes);
    assert!(put(&mut log, 0));
    log.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(0));
    assert!(!put(&mut log, 1), "it stands in another block");
    assert_eq!(after_a_cut(&log), [0]);
    commit(&mut log);
    assert!(put(&mut log, 2) && put(&mut log, 3));
    assert_eq!(after_a_cut(&log), [2, 3]);
}

/// A tail of five pages, of which some have changed since: in the page, or in its tag.
fn decayed(in_page: &[u8], in_tag: &[u8]) -> Vec<u8> {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = begun(&mut bytes);
    let pages: Vec<_> = (0..5_u8)
        .map(|number| {
            let owner = [number; TAG_OWNER_SIZE];
            log.append_tagged(&[number; 2048], Some(&owner), Placement::New, Cause::Value).unwrap()
        })
        .collect();
    assert_eq!(log.tail_len(), 5);
    for (places, column) in [(in_page, 0), (in_tag, CHIP.geometry.tag_column())] {
        places.iter().for_each(|&place| log.nand_mut().corrupt(pages[usize::from(place)], 8 * column + 9));
    }
    after_a_cut(&log)
}

#[test]
fn a_page_that_decayed_is_told_of_where_a_tag_stands_behind_it() {
    assert_eq!(decayed(&[], &[]), [0, 1, 2, 3, 4]);
    assert_eq!(decayed(&[2], &[]), [0, 1, LOST, 3, 4]);
    assert_eq!(decayed(&[0], &[]), [LOST, 1, 2, 3, 4]);
    assert_eq!(decayed(&[], &[2]), [0, 1, LOST, 3, 4]);
    assert_eq!(decayed(&[], &[0]), [LOST, 1, 2, 3, 4]);
    assert_eq!(decayed(&[1, 2], &[3]), [0, LOST, LOST, LOST, 4]);
    assert_eq!(decayed(&[0, 1], &[0, 1, 2, 3]), [LOST, LOST, LOST, LOST, 4]);
    // The last page may be the one that was being programmed: nothing says that it ever was whole.
    assert_eq!(decayed(&[4], &[]), [0, 1, 2, 3]);
    assert_eq!(decayed(&[], &[4]), [0, 1, 2, 3]);
    // Nor of the one before, if the last cannot be read.
    assert_eq!(decayed(&[3, 4], &[]), [0, 1, 2]);
    assert_eq!(decayed(&[], &[3, 4]), [0, 1, 2]);
}

#[test]
fn a_volume_with_tags_is_refused_where_nobody_would_take_them_over() {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut chip = begun(&mut bytes).abandon();
    let without = LogOptions { tags: false, ..TAGS };
    let error = Log::mount(&mut chip, without, &mut bytes).err();
    assert_eq!(error, Some(LogError::WrongFormat { what: "tags" }));
    assert!(Log::mount(&mut chip, TAGS, &mut bytes).is_ok());
    // One without is mounted by an owner that would know of them, and goes without.
    Log::format(&mut chip, without, &mut bytes).unwrap();
    let mut log = Log::mount(chip, TAGS, &mut bytes).unwrap();
    for number in 0..4 {
        assert!(!put(&mut log, number));
        commit(&mut log);
    }
}

#[test]
fn an_unmount_that_no_commit_came_before_is_as_good_as_a_cut() {
    let mut bytes = memory(&CHIP.geometry, &TAGS);
    let mut log = begun(&mut bytes);
    assert!(put(&mut log, 7));
    let chip = log.unmount().map_err(|(error, _)| error).unwrap();
    let mut log = Log::mount(chip, TAGS, &mut bytes).unwrap();
    assert_eq!((log.stats().was_cut, due(&mut log)), (true, vec![7]));
    assert_eq!(log.geometry().tag_size, 16);
}
