//! Bare streams: pages that are their owner's bytes as they are.

use nandu_log::{Budget, Growth, Log, LogError, LogOptions, PageKind, Placement};
use nandu_nand::{Cause, Nand, PageAddr};
use nandu_sim::{Chip, Sim};

use crate::toy::memory;

const ONE: LogOptions = LogOptions { bare_streams: 1, ..LogOptions::DEFAULT };

/// Makes room for pages of an owner that needs none of those before.
fn make_room(log: &mut Log<'_, Sim>, pages: u32) {
    while !log.reserve(pages, Growth::Grows).unwrap() {
        assert_eq!(log.next_work(&mut Budget::idle(16)).unwrap(), None);
    }
}

fn formatted(chip: Chip, bytes: &mut [u8]) -> Log<'_, Sim> {
    Log::format(Sim::new(chip), ONE, bytes).unwrap()
}

#[test]
fn a_bare_page_is_one_program_of_all_its_bytes_and_is_read_in_parts() {
    let mut bytes = memory(&Chip::W25N01GV.geometry, &ONE);
    let mut log = formatted(Chip::W25N01GV, &mut bytes);
    assert_eq!((log.stream_count(), log.bare_streams()), (7, 1));
    let mut pages = Vec::new();
    for count in 0..1000_u32 {
        make_room(&mut log, 1);
        let stream = log.bare_stream(Placement::New);
        if log.bare_room(stream) == 1 {
            let mut summary = vec![3; 2048];
            let before = log.nand().counters().programs;
            let at = log.append_summary(&mut summary, stream, Cause::Value).unwrap().unwrap();
            assert_eq!((log.nand().counters().programs - before, log.bare_room(stream)), (1, 0));
            assert_eq!(log.read(at, &mut summary).unwrap().kind, PageKind::Summary);
            assert_eq!(at.0 % 64, 63);
        }
        let page: Vec<u8> = (0..2048).map(|at| (at * 7 + count) as u8).collect();
        let before = *log.nand().counters();
        let at = log.append_bare(&page, Placement::New, Cause::Value).unwrap();
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.programs, cost.reads, cost.erases, cost.bytes_in), (1, 0, 0, 2048));
        assert!(log.is_bare(at));
        pages.push((at, page));
    }
    for (at, page) in &pages {
        let mut read = vec![0; 2048];
        let _ = log.read_bare(*at, 0, &mut read).unwrap();
        assert_eq!(&read, page);
        let before = *log.nand().counters();
        let _ = log.read_bare(*at, 600, &mut read[..100]).unwrap();
        let cost = log.nand().counters().since(&before);
        assert_eq!((cost.reads, cost.bytes_out), (1, 100));
        assert_eq!(read[..100], page[600..700]);
    }
    let beyond = log.read_bare(pages[0].0, 2000, &mut [0; 49]);
    assert!(matches!(beyond, Err(LogError::Corrupt { .. })), "{beyond:?}");
}

#[test]
fn which_blocks_are_bare_and_how_far_they_are_programmed_is_known_after_a_mount() {
    // With the block table in the anchor, and with pages of its own.
    for chip in [Chip::TINY, Chip::TINY.with_blocks(64)] {
        let mut bytes = memory(&chip.geometry, &ONE);
        let mut log = formatted(chip, &mut bytes);
        let mut pages = Vec::new();
        for value in 0..11 {
            make_room(&mut log, 1);
            if log.bare_room(2) == 1 {
                log.append_summary(&mut [0; 256], 2, Cause::Value).unwrap();
            }
            pages.push(log.append_bare(&[value; 256], Placement::New, Cause::Value).unwrap());
        }
        let rooms: Vec<u16> = (0..4).map(|stream| log.bare_room(stream)).collect();
        assert_eq!(rooms, [0, 0, 4, 0]);
        let sim = log.unmount().map_err(|(error, _)| error).unwrap();
        let mut log = Log::mount(sim, ONE, &mut bytes).unwrap();
        assert!(!log.stats().was_cut);
        assert_eq!(log.bare_room(2), 4);
        for (value, &page) in pages.iter().enumerate() {
            let mut read = [0; 256];
            let _ = log.read_bare(page, 0, &mut read).unwrap();
            assert_eq!(read, [value as u8; 256]);
        }
        let bare: u32 = (0..log.page_count()).map(|page| u32::from(log.is_bare(PageAddr(page)))).sum();
        assert_eq!(bare, 2 * 8);
        let next = log.append_bare(&[99; 256], Placement::New, Cause::Value).unwrap();
        assert_eq!((next, log.bare_room(2)), (PageAddr(pages[10].0 + 1), 3));
        assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
    }
}

#[test]
fn a_volume_with_bare_streams_is_refused_to_an_owner_that_does_not_know_of_them() {
    let mut bytes = memory(&Chip::TINY.geometry, &ONE);
    let mut sim = formatted(Chip::TINY, &mut bytes).abandon();
    for bare_streams in [0, 2] {
        let options = LogOptions { bare_streams, ..ONE };
        let mut bytes = memory(sim.geometry(), &options);
        let error = Log::mount(&mut sim, options, &mut bytes).err();
        assert_eq!(error, Some(LogError::WrongFormat { what: "bare streams" }));
    }
    for (stream_count, bare_streams) in [(Some(3), 2), (Some(8), 7), (None, 7)] {
        let options = LogOptions { stream_count, bare_streams, ..ONE };
        let error = Log::format(&mut sim, options, &mut bytes).err();
        assert!(matches!(error, Some(LogError::Unsuitable { .. })), "{error:?}");
    }
    assert!(Log::mount(&mut sim, ONE, &mut bytes).is_ok());
}

/// A page that is a page of the log to whoever reads it at this address.
fn disguised(log: &Log<'_, Sim>, page: PageAddr) -> Vec<u8> {
    let mut bytes = vec![0; log.page_size()];
    nandu_media::PageFields {
        kind: PageKind::Tree,
        sequence: 1 << 30,
        page: page.0,
        volume: log.volume(),
        committed: None,
        checkpoint: 1,
        stream: 0,
        flags: nandu_media::header::FLAG_COMMIT,
        positions: &[nandu_media::Position::NONE; 3],
    }
    .seal(&mut bytes);
    bytes
}

#[test]
fn bytes_that_look_like_a_page_of_the_log_never_stand_where_they_say() {
    let mut bytes = memory(&Chip::TINY.geometry, &ONE);
    let mut log = formatted(Chip::TINY, &mut bytes);
    let first = log.append_bare(&[1; 256], Placement::New, Cause::Value).unwrap();
    for next in [first.0 + 1, first.0 + 3] {
        // Skipped, with a program of its own; what is skipped reads as nothing.
        let before = log.nand().counters().programs;
        let page = disguised(&log, PageAddr(next));
        let at = log.append_bare(&page, Placement::New, Cause::Value).unwrap();
        assert_eq!((at.0, log.nand().counters().programs - before), (next + 1, 2));
        let mut read = [0; 256];
        let _ = log.read_bare(at, 0, &mut read).unwrap();
        assert_eq!(read[..], page);
        assert_eq!(log.nand().peek(PageAddr(next))[..256], [0; 256]);
    }
    // There is no room to skip one here, so it goes to another block.
    let at = log.append_bare(&[1; 256], Placement::New, Cause::Value).unwrap();
    assert_eq!((at.0, log.bare_room(2)), (first.0 + 5, 2));
    make_room(&mut log, 1);
    let page = disguised(&log, PageAddr(at.0 + 1));
    let elsewhere = log.append_bare(&page, Placement::New, Cause::Value).unwrap();
    assert_ne!(log.geometry().block_of(elsewhere), log.geometry().block_of(at));
    assert_eq!(log.live_bound(log.geometry().block_of(first)), 4);
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}
