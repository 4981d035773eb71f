//! Power cuts over volumes with bare streams. The toy's bare pages are dressed up as commits of the log, and operations that
//! are given up leave bare blocks that no header tells of.

use nandu_log::{Append, Log, LogError, LogOptions, PageKind, Placement};
use nandu_media::header::FLAG_COMMIT;
use nandu_media::{PageFields, Position};
use nandu_nand::{Cause, PageAddr};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Sim, SimError};

use crate::cuts::{check, finds_a_loss, formatted, recover, stays_usable, used, workload};
use crate::toy::memory;

const ONE: LogOptions = LogOptions { bare_streams: 1, ..LogOptions::DEFAULT };
/// Room for the smallest of volumes with a bare stream, and few blocks more.
const SMALL: Chip = Chip::TINY.with_blocks(18);
const SMALL_MLC: Chip = Chip::TINY_MLC.with_blocks(20);

/// Two bare streams, a ready list in which several blocks can be opened from each end, a block table with pages of its own.
const TWO: LogOptions =
    LogOptions { bare_streams: 2, stream_count: Some(5), ready_max: Some(7), ..LogOptions::DEFAULT };
const WIDE: Chip = Chip::TINY.with_blocks(64);

#[test]
fn every_cut_of_a_fresh_volume() {
    let chip = formatted(SMALL, ONE);
    let check = check(ONE, &chip);
    let summary = Driver::new(chip).every(workload(ONE, 30, 10, true), check);
    assert!(summary.operations > 60, "{summary:?}");
}

#[test]
fn every_cut_with_garbage_collection() {
    for (chip, options, entries) in [(SMALL, ONE, 22), (SMALL_MLC, ONE, 14), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let summary = Driver::new(chip).every(workload(options, 40, entries, true), check);
        assert!(summary.operations > 100, "{summary:?}");
    }
}

#[test]
fn every_cut_and_going_on_after_it() {
    for (chip, options, entries) in [(SMALL, ONE, 24), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).resume().every(workload(options, 25, entries, false), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_after_it() {
    for (chip, options, entries) in [(SMALL, ONE, 24), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        Driver::new(chip).limit(20_000).pairs(workload(options, 12, entries, false), recover(options), check);
    }
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(1000);
    for (chip, options, entries) in [(SMALL, ONE, 22), (SMALL_MLC, ONE, 14), (WIDE, TWO, 40)] {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let driver = Driver::new(chip).resume().seed(7);
        driver.random(count, workload(options, 30, entries, true), recover(options), check);
    }
}

#[test]
fn a_chip_cut_again_and_again_after_few_operations_stays_usable() {
    stays_usable(&[(SMALL, ONE, 24), (SMALL_MLC, ONE, 12), (WIDE, TWO, 40)]);
}

#[test]
fn the_driver_finds_a_loss_where_untraced_blocks_count_as_erased() {
    assert!(finds_a_loss(SMALL, LogOptions { skip_bare_erase: true, ..ONE }, ONE));
}

fn appended(log: &mut Log<'_, Sim>, placement: Placement) -> Result<PageAddr, LogError<SimError>> {
    let append = Append { kind: PageKind::Tree, placement, is_commit: true, cause: Cause::Host };
    log.append(&mut vec![7; log.page_size()], append)
}

/// The last byte of what a mount takes for the newest commit, where bare blocks that no header tells of are full of forged ones.
fn commit_among_forged_ones(options: LogOptions) -> Option<u8> {
    let mut bytes = memory(&WIDE.geometry, &options);
    let mut log = Log::format(Sim::new(WIDE), options, &mut bytes).unwrap();
    appended(&mut log, Placement::Stream(0)).unwrap();
    let mut page = vec![0; log.page_size()];
    // Blocks are opened from the back of the ready list, which are those behind the anchors, and pages in their order.
    let mut guess = PageAddr((4 + 6) * 8);
    // Stream 0 would stand in the first block of the list.
    let mut positions = [Position::NONE; 5];
    positions[0] = Position::new(0, 1).unwrap();
    for _ in 0..30 {
        if log.bare_room(3) == 1 {
            log.append_summary(&mut page, 3, Cause::Host).unwrap();
            guess = PageAddr(log.geometry().block_of(guess).0 * 8 - 8);
        }
        PageFields {
            kind: PageKind::Tree,
            sequence: log.sequence() + 5,
            page: guess.0,
            volume: log.volume(),
            committed: None,
            checkpoint: 1,
            stream: 0,
            flags: FLAG_COMMIT,
            positions: &positions,
        }
        .seal(&mut page);
        guess = PageAddr(log.append_bare(&page, Placement::Stream(3), Cause::Host).unwrap().0 + 1);
    }
    let mut log = Log::mount(log.abandon(), options, &mut bytes).ok()?;
    log.read(log.committed()?, &mut page).unwrap();
    page.last().copied()
}

#[test]
fn a_mount_takes_no_forged_page_for_a_commit() {
    assert_eq!(commit_among_forged_ones(TWO), Some(7));
    let forged = commit_among_forged_ones(LogOptions { skip_disguise: true, ..TWO });
    assert_ne!(forged, Some(7), "the test forges nothing");
}

/// Pages that are only moved may go to the last block of the ready list. A cut takes them back, since recovery needs the block.
#[test]
fn moves_into_the_last_block_are_undone_if_no_other_is_left() {
    let chip = Chip::TINY.with_blocks(16);
    let mut bytes = memory(&chip.geometry, &ONE);
    let mut log = Log::format(Sim::new(chip), ONE, &mut bytes).unwrap();
    // Without asking for room, blocks fill up with pages that live, half of them bare; then the bare block is filled, and one more
    // is opened for pages with headers.
    let mut bare = Vec::new();
    let mut promised = None;
    while log.stats().pool_blocks > 1 {
        let is_last = log.stats().pool_blocks == 2;
        if log.bare_room(2) == 1 {
            log.append_summary(&mut [0; 256], 2, Cause::Host).unwrap();
        }
        if (is_last && log.bare_room(2) > 0) || (!is_last && bare.len().is_multiple_of(2)) {
            let value = bare.len() as u8;
            bare.push((log.append_bare(&[value; 256], Placement::New, Cause::Host).unwrap(), value));
        } else {
            promised = Some(appended(&mut log, Placement::Stream(0)).unwrap());
        }
    }
    assert_eq!(log.stats().pool_blocks, 1);
    let from = bare[0].0;
    let moved = log.append_bare(&[bare[0].1; 256], Placement::Survivor { from }, Cause::Gc).unwrap();
    let commit = appended(&mut log, Placement::Survivor { from });
    assert_eq!((log.stats().pool_blocks, commit.is_ok(), log.is_bare(moved)), (0, true, true));
    log.supersede(from);
    let mut log = Log::mount(log.abandon(), ONE, &mut bytes).unwrap();
    assert!(!log.is_read_only() && !log.is_bare(moved));
    assert_eq!((log.committed(), log.stats().pool_blocks), (promised, 1));
    for (page, value) in bare {
        let mut read = [0; 256];
        let _ = log.read_bare(page, 0, &mut read).unwrap();
        assert_eq!(read, [value; 256]);
    }
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}
