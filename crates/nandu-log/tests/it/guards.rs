//! Invariants that two guards hold, each shown where the other one cannot help.

use nandu_log::{
    Append, Budget, Due, Examined, Growth, Log, LogError, LogOptions, PageKind, Placement, TAG_OWNER_SIZE,
};
use nandu_nand::{BlockAddr, Cause, Geometry, PageAddr};
use nandu_sim::{Chip, Fault, Sim, SimError, Trigger};

use crate::toy::memory;

const PLAIN: LogOptions = LogOptions::DEFAULT;

const TAGS: LogOptions = LogOptions { bare_streams: 1, tags: true, ..LogOptions::DEFAULT };

/// Small blocks, so that few pages fill the chip.
const SMALL: Chip = Chip::TINY.with_blocks(16);

const SMALL_TAGGED: Chip =
    Chip { name: "tagged", geometry: Geometry { spare_size: 32, tag_size: 16, ..SMALL.geometry }, ..SMALL };

const TAGGED: Chip = Chip {
    name: "tagged",
    geometry: Geometry { tag_size: 16, ..Chip::W25N01GV.geometry },
    ..Chip::W25N01GV.with_blocks(64)
};

fn append(log: &mut Log<'_, Sim>, placement: Placement, is_commit: bool) -> Result<PageAddr, LogError<SimError>> {
    let append = Append { kind: PageKind::Tree, placement, is_commit, cause: Cause::Host };
    log.append(&mut vec![7; log.page_size()], append)
}

fn verify(log: &mut Log<'_, Sim>) {
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}

/// Fills the chip with commits that all live, by an owner that asks for no room; returns the last one.
fn fill(log: &mut Log<'_, Sim>, placement: Placement) -> PageAddr {
    let mut newest = None;
    loop {
        match append(log, placement, true) {
            Ok(page) => newest = Some(page),
            Err(LogError::Full) => return newest.unwrap(),
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// L6: the last commit takes no block that recovery needs for its copy. Where all others are full of pages that live, there is no other.
#[test]
fn a_commit_on_a_full_chip_leaves_recovery_a_block() {
    for stream in [0, 1] {
        let mut bytes = memory(&SMALL.geometry, &PLAIN);
        let mut log = Log::format(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
        let newest = fill(&mut log, Placement::Stream(stream));
        let mut log = Log::mount(log.abandon(), PLAIN, &mut bytes).unwrap();
        assert!(!log.is_read_only(), "no block was left for the copy of the newest commit");
        assert_ne!(log.committed(), Some(newest));
        let mut page = vec![0; log.page_size()];
        log.read(log.committed().unwrap(), &mut page).unwrap();
        assert_eq!(page.last(), Some(&7));
        verify(&mut log);
    }
}

/// L4: a block that was open at the newest checkpoint is not erased before the next one, though nothing in it lives and the blocks that
/// recovery tries before it fail.
#[test]
fn a_recovery_erases_no_block_that_was_open_at_the_newest_checkpoint() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = Log::format(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    append(&mut log, Placement::Stream(0), true).unwrap();
    let dead = append(&mut log, Placement::Stream(1), false).unwrap();
    log.supersede(dead);
    log.checkpoint().unwrap();
    let newest = append(&mut log, Placement::Stream(0), true).unwrap();
    let opened = SMALL.geometry.block_of(dead);
    let erases = log.nand().counters().erases;
    let mut sim = log.abandon();
    for block in 0..SMALL.geometry.block_count {
        if BlockAddr(block) != opened {
            sim.inject(Fault::EraseFails, Trigger::Block(BlockAddr(block)));
        }
    }
    let mut log = Log::mount(sim, PLAIN, &mut bytes).unwrap();
    assert!(log.nand().counters().erases > erases, "the recovery tried the blocks that it may erase");
    assert!(log.is_read_only());
    let mut page = vec![0; log.page_size()];
    log.read(dead, &mut page).unwrap();
    log.read(newest, &mut page).unwrap();
    assert_eq!(log.committed(), Some(newest));
}

/// L7: the block of the newest commit is not erased, though its owner needs no page of it and counts them all as dead.
#[test]
fn the_newest_commit_outlives_its_block_in_which_nothing_lives() {
    let mut bytes = memory(&SMALL.geometry, &PLAIN);
    let mut log = Log::format(Sim::new(SMALL), PLAIN, &mut bytes).unwrap();
    let commit = append(&mut log, Placement::Stream(0), true).unwrap();
    log.supersede(commit);
    let mut page = vec![0; log.page_size()];
    for _ in 0..40 {
        // Whole rounds of the chip: without the guard the block of the commit is one of those that are opened.
        for _ in 0..8 {
            while !log.reserve(1, Growth::Shrinks).unwrap() {
                while let Some(examine) = log.next_work(&mut Budget::room(16)).unwrap() {
                    log.examined(examine, Examined::Dead).unwrap();
                }
            }
            let dead = append(&mut log, Placement::Stream(0), false).unwrap();
            log.supersede(dead);
        }
        log.checkpoint().unwrap();
        assert_eq!(log.committed(), Some(commit));
        log.read(commit, &mut page).unwrap();
    }
    let mut log = Log::mount(log.abandon(), PLAIN, &mut bytes).unwrap();
    log.read(log.committed().unwrap(), &mut page).unwrap();
    assert_eq!(page.last(), Some(&7));
    verify(&mut log);
}

/// L14: a page gets no tag where the ready list is used up. Recovery would take back the moves that used it up, and with them the block in
/// which the page stands.
#[test]
fn no_page_has_a_tag_where_no_block_is_left_for_recovery() {
    let mut bytes = memory(&SMALL_TAGGED.geometry, &TAGS);
    let mut log = Log::format(Sim::new(SMALL_TAGGED), TAGS, &mut bytes).unwrap();
    let bare = log.bare_stream(Placement::New);
    let page = [1; 256];
    // Pages that live, half of them bare, up to the last block; then the bare block is filled, so that the next bare page opens the last one.
    let mut pages = Vec::new();
    while log.stats().pool_blocks > 1 {
        let is_last = log.stats().pool_blocks == 2;
        if log.bare_room(bare) == 1 {
            log.append_summary(&mut [0; 256], bare, Cause::Host).unwrap();
        }
        if (is_last && log.bare_room(bare) > 0) || (!is_last && pages.len().is_multiple_of(2)) {
            pages.push(log.append_bare(&page, Placement::New, Cause::Host).unwrap());
        } else {
            append(&mut log, Placement::Stream(0), true).unwrap();
        }
    }
    let promised = log.committed();
    let from = pages[0];
    log.append_bare(&page, Placement::Survivor { from }, Cause::Gc).unwrap();
    append(&mut log, Placement::Survivor { from }, true).unwrap();
    assert_eq!((log.stats().pool_blocks, log.bare_room(bare) > 1), (0, true));
    log.append_tagged(&page, Some(&[3; TAG_OWNER_SIZE]), Placement::New, Cause::Value).unwrap();
    assert_eq!(log.tail_len(), 0, "a page says by its tag that it is durable");
    let mut log = Log::mount(log.abandon(), TAGS, &mut bytes).unwrap();
    assert_eq!((log.is_read_only(), log.committed(), log.has_due_tail()), (false, promised, false));
    verify(&mut log);
}

/// L15: a tail is taken over by one mount after the other, each of which is cut behind a checkpoint, and each of which says of the same pages
/// that they are dead. The pages before the tail, in the same block, live on.
#[test]
fn a_tail_taken_over_again_and_again_makes_no_page_pass_for_dead() {
    const LIVING: usize = 10;
    let mut bytes = memory(&TAGGED.geometry, &TAGS);
    let mut log = Log::format(Sim::new(TAGGED), TAGS, &mut bytes).unwrap();
    let page = [1; 2048];
    append(&mut log, Placement::New, true).unwrap();
    let pages: Vec<_> = (0..=LIVING).map(|_| log.append_bare(&page, Placement::New, Cause::Value).unwrap()).collect();
    append(&mut log, Placement::New, true).unwrap();
    // Each page of the tail replaces the one before it, the first one the last of those.
    let mut replaced = vec![pages[LIVING]];
    while log.can_tag() {
        replaced.push(log.append_tagged(&page, Some(&[3; TAG_OWNER_SIZE]), Placement::New, Cause::Value).unwrap());
    }
    let block = TAGGED.geometry.block_of(pages[0]);
    assert!(replaced.iter().all(|&page| TAGGED.geometry.block_of(page) == block));
    let mut chip = log.abandon();
    for _ in 0..40 {
        let mut log = Log::mount(chip, TAGS, &mut bytes).unwrap();
        let mut read = page;
        for place in 0..replaced.len() - 1 {
            assert!(matches!(log.due_page(place as u16, &mut read), Ok(Some(Due::Whole { .. }))));
        }
        // The last page of the tail is programmed once more, and then it is dead, too.
        let copy = log.append_bare(&page, Placement::New, Cause::Value).unwrap();
        append(&mut log, Placement::New, true).unwrap();
        replaced.iter().for_each(|&page| log.supersede(page));
        log.checkpoint().unwrap();
        assert!(log.live_bound(block) >= LIVING as u32, "{} live, {LIVING} are needed", log.live_bound(block));
        log.supersede(copy);
        chip = log.abandon();
    }
}
