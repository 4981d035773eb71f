//! Raw pages that are durable by their tags: what they cost, and whether a mount after a cut finds them all.

use nandu_log::{Claim, Claimed, Kind, Log, LogOptions, TAIL_MAX, Tagged};
use nandu_nand::{CellMode, Geometry, Nand, PageAddr};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Sim};

use crate::cuts::{check, formatted, recover, stays_usable, used, workload};
use crate::toy::{Toy, memory};

const TAGGED: LogOptions = LogOptions { has_raw: true, has_tags: true, ..LogOptions::DEFAULT };
const STREAMS: LogOptions = LogOptions { stream_count: Some(4), ready_max: Some(5), ..TAGGED };
const CHIP: Chip = tagged(8);
/// Blocks that take several summaries.
const LONG: Chip = tagged(32);

const fn tagged(pages_per_block: u32) -> Chip {
    let chip = Chip::TINY.with_blocks(if pages_per_block > 8 { 20 } else { 28 });
    Chip { geometry: Geometry { pages_per_block, spare_size: 32, tag_size: 16, ..chip.geometry }, ..chip }
}

#[test]
fn every_cut_with_tags() {
    for (chip, options, operations) in [(CHIP, TAGGED, 40), (LONG, STREAMS, 120)] {
        let sim = formatted(chip, options);
        let check = check(options, &sim);
        let summary = Driver::new(sim).every(workload(options, operations, 24, true), check);
        assert!(summary.operations > 50, "{summary:?}");
    }
}

#[test]
fn every_cut_with_tags_where_pages_are_moved() {
    for (chip, options, entries) in [(CHIP, TAGGED, 40), (CHIP, STREAMS, 30), (LONG, TAGGED, 44)] {
        let sim = used(chip, options, entries);
        let check = check(options, &sim);
        Driver::new(sim).resume().every(workload(options, 40, entries, true), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_with_tags() {
    for entries in [10, 30] {
        let sim = used(CHIP, TAGGED, entries);
        let check = check(TAGGED, &sim);
        Driver::new(sim).limit(20_000).pairs(workload(TAGGED, 16, entries, false), recover(TAGGED), check);
    }
}

#[test]
fn chains_of_cuts_with_tags() {
    for (chip, options, entries) in [(CHIP, TAGGED, 40), (LONG, STREAMS, 48)] {
        let sim = used(chip, options, entries);
        let check = check(options, &sim);
        Driver::new(sim).resume().seed(3).random(600, workload(options, 30, entries, true), recover(options), check);
    }
    stays_usable(&[(CHIP, TAGGED, 24), (LONG, STREAMS, 40)]);
}

/// Puts a raw page, by a tag if it can have one; returns where it is, and whether it has one.
fn put<N: Nand>(log: &mut Log<'_, N>, bytes: &mut [u8], id: u8) -> (PageAddr, bool) {
    let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
        panic!("no room")
    };
    let page = log.append(bytes, Kind::Tagged(&[id], &[id; 12]), &mut grant).unwrap();
    let is_tagged = log.is_tagged(page);
    if !is_tagged {
        log.commit(&mut vec![0; bytes.len()], grant).unwrap();
    }
    (page, is_tagged)
}

/// A new volume with a raw page, and with as many blocks on the ready list as a tagged page asks for: as the share of a call leaves it.
fn begun(chip: Chip, bytes: &mut [u8]) -> Log<'_, Sim> {
    let mut log = crate::formatted(Sim::new(chip), TAGGED, bytes).unwrap();
    let mut page = vec![0; log.page_size()];
    // Before a commit knows where raw pages go there is no tail.
    assert!(!put(&mut log, &mut page, 0).1);
    assert_eq!(log.tag_next(), None, "the list is short");
    log.checkpoint().unwrap();
    log
}

/// What a mount finds of the tail: what each tag says, by its place.
fn tail(log: &mut Log<'_, Sim>) -> Vec<(u16, u8)> {
    let mut bytes = vec![0; log.page_size()];
    let mut found = Vec::new();
    for place in 0..TAIL_MAX {
        match log.read_tail(place, &mut bytes).unwrap() {
            Tagged::End => break,
            Tagged::Other | Tagged::Lost => {}
            Tagged::Of(_, tag) => {
                assert_eq!((tag, bytes[7]), ([tag[0]; 12], tag[0]));
                found.push((place, tag[0]));
            }
        }
    }
    found
}

#[test]
fn nine_pages_follow_a_commit_with_a_program_each_and_a_mount_finds_them() {
    let chip = Chip::W25N01GV.with_blocks(40);
    let mut bytes = memory(&chip.geometry, &TAGGED);
    let mut log = begun(chip, &mut bytes);
    let mut page = vec![0; log.page_size()];
    for nth in 1..25 {
        page.fill(nth);
        let before = log.nand().counters().programs;
        let (_, is_tagged) = put(&mut log, &mut page, nth);
        assert_eq!(is_tagged, nth % 10 != 0, "{nth}");
        if is_tagged {
            assert_eq!(log.nand().counters().programs, before + 1);
        }
    }
    // What is written now no mount found.
    assert_eq!(tail(&mut log), []);
    let sim = log.abandon_log();
    let mut log = crate::mounted(sim, TAGGED, &mut bytes).unwrap();
    assert_eq!(tail(&mut log), [(0, 21), (1, 22), (2, 23), (3, 24)]);
    // Nobody committed: the next mount finds the same.
    let sim = log.abandon_log();
    let mut log = crate::mounted(sim, TAGGED, &mut bytes).unwrap();
    assert_eq!(tail(&mut log), [(0, 21), (1, 22), (2, 23), (3, 24)]);
    // Nor does who unmounts without a commit lose it.
    let sim = log.unmount().map_err(|(error, _)| error).unwrap();
    let mut log = crate::mounted(sim, TAGGED, &mut bytes).unwrap();
    assert_eq!(tail(&mut log), [(0, 21), (1, 22), (2, 23), (3, 24)]);
    put(&mut log, &mut page, 30);
    let sim = log.abandon_log();
    let mut log = crate::mounted(sim, TAGGED, &mut bytes).unwrap();
    assert_eq!(tail(&mut log), []);
}

#[test]
fn a_page_of_the_tail_that_decayed_is_told_of_and_the_others_are_found() {
    let chip = Chip::W25N01GV.with_blocks(40);
    let mut bytes = memory(&chip.geometry, &TAGGED);
    let mut log = begun(chip, &mut bytes);
    let mut page = vec![0; log.page_size()];
    let mut pages = vec![PageAddr(0)];
    for nth in 1..5 {
        page.fill(nth);
        pages.push(put(&mut log, &mut page, nth).0);
    }
    let sim = log.abandon_log();
    let places =
        |skipped: u8| (0..4).map(|place| (place, place as u8 + 1)).filter(|it| it.1 != skipped).collect::<Vec<_>>();
    // In the page, or in its tag; and of the last one nobody knows whether it was complete.
    for (nth, bit, lost) in [(2, 77, 1), (2, 8 * chip.geometry.tag_column() + 77, 1), (4, 77, 0)] {
        let mut sim = sim.clone();
        sim.corrupt(pages[nth], bit);
        let mut log = crate::mounted(sim, TAGGED, &mut bytes).unwrap();
        assert_eq!((tail(&mut log), log.stats().tail.lost), (places(nth as u8), lost));
    }
}

/// A page without a tag that looks erased would hide what comes behind it.
#[test]
fn nothing_is_tagged_behind_a_page_that_looks_erased() {
    let mut bytes = memory(&CHIP.geometry, &TAGGED);
    let mut log = begun(CHIP, &mut bytes);
    let mut page = vec![1; log.page_size()];
    assert!(log.tag_next().is_some());
    let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
        panic!("no room")
    };
    log.append(&mut page, Kind::Raw(b"as a copy", CellMode::Slc), &mut grant).unwrap();
    assert_eq!(log.tag_next(), Some(1));
    let Ok(Claimed::Granted(mut grant)) = log.claim_with(Claim::Grow, (1, Some(CellMode::Slc)), 1) else {
        panic!("no room")
    };
    page.fill(0xFF);
    log.append(&mut page, Kind::Raw(b"as a copy", CellMode::Slc), &mut grant).unwrap();
    assert_eq!(log.tag_next(), None);
}

#[test]
fn a_chip_without_room_has_no_tags_and_a_volume_with_some_needs_it() {
    let plain = Chip { geometry: Geometry { tag_size: 0, ..CHIP.geometry }, ..CHIP };
    let mut bytes = memory(&CHIP.geometry, &TAGGED);
    let mut log = crate::formatted(Sim::new(plain), TAGGED, &mut bytes).unwrap();
    let mut page = vec![1; log.page_size()];
    assert!(!log.has_tags());
    put(&mut log, &mut page, 1);
    assert!(!put(&mut log, &mut page, 2).1);
    // Whether there are tags says the volume, not who mounts it.
    for (options, has_tags) in [(TAGGED, true), (LogOptions { has_tags: false, ..TAGGED }, false)] {
        let sim = crate::formatted(Sim::new(CHIP), options, &mut bytes).unwrap().unmount().unwrap();
        let other = LogOptions { has_tags: !has_tags, ..options };
        assert_eq!(crate::mounted(sim, other, &mut bytes).unwrap().has_tags(), has_tags);
    }
}

#[test]
fn a_toy_writes_by_tags_and_finds_what_it_wrote() {
    let mut bytes = memory(&LONG.geometry, &TAGGED);
    let mut toy = Toy::format(Sim::new(LONG), TAGGED, &mut bytes).unwrap();
    let mut found = 0;
    for round in 0..400_u32 {
        toy.put(2 * (round.wrapping_mul(7) % 20), round.into()).unwrap();
        if round % 13 == 12 {
            let before = toy.values().unwrap();
            toy = Toy::mount(toy.log.abandon_log(), TAGGED, &mut bytes).unwrap();
            assert_eq!(toy.values().unwrap(), before);
            found += toy.tail;
            toy.verify().unwrap();
        }
    }
    assert!(found > 60, "{found} pages of tails");
}
