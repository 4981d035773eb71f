//! Bare streams: pages that are their owner's bytes as they are.

use std::collections::BTreeSet;

use nandu_log::{Append, Budget, Examined, Growth, INSTALMENT_MAX, Log, LogError, LogOptions, PageKind, Placement};
use nandu_nand::{Cause, Nand, PageAddr};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::toy::memory;

const ONE: LogOptions = LogOptions { bare_streams: 1, ..LogOptions::DEFAULT };

/// Makes room for pages of an owner that needs none of those before.
fn make_room(log: &mut Log<'_, Sim>, pages: u32) {
    let mut budget = log.instalment(pages);
    assert_eq!(log.next_work(&mut budget).unwrap(), None);
    while !log.reserve(pages, Growth::Grows).unwrap() {
        assert_eq!(log.next_work(&mut Budget::room(16)).unwrap(), None);
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

#[test]
fn an_open_bare_block_that_was_programmed_after_a_clean_checkpoint_is_not_programmed_further() {
    let mut bytes = memory(&Chip::TINY.geometry, &ONE);
    let mut log = formatted(Chip::TINY, &mut bytes);
    let first = log.append_bare(&[1; 256], Placement::New, Cause::Value).unwrap();
    let mut sim = log.unmount().map_err(|(error, _)| error).unwrap();
    sim.poke(PageAddr(first.0 + 1), &[2; 256]);
    let mut log = Log::mount(sim, ONE, &mut bytes).unwrap();
    assert_eq!((log.stats().was_cut, log.bare_room(2)), (false, 0));
    let next = log.append_bare(&[3; 256], Placement::New, Cause::Value).unwrap();
    assert_ne!(log.geometry().block_of(next), log.geometry().block_of(first));
}

#[test]
fn what_is_read_back_is_the_whole_page() {
    let options = LogOptions { read_back: true, ..ONE };
    let mut bytes = memory(&Chip::TINY.geometry, &options);
    let mut log = Log::format(Sim::new(Chip::TINY), options, &mut bytes).unwrap();
    // As its first bytes are those of an erased page, nothing less tells whether it was programmed.
    let mut page = [0xff; 256];
    page[200] = 0;
    let first = log.append_bare(&page, Placement::New, Cause::Value).unwrap();
    log.nand_mut().inject(Fault::NothingHappens, Trigger::Nth(0));
    let at = log.append_bare(&page, Placement::New, Cause::Value).unwrap();
    assert_ne!(log.geometry().block_of(first), log.geometry().block_of(at));
    let mut read = [0; 256];
    let _ = log.read_bare(at, 0, &mut read).unwrap();
    assert_eq!((read, log.stats().program_failures), (page, 1));
}

/// An owner of bare pages that keeps its map in memory: for measuring, not for cuts.
struct Files<'m> {
    log: Log<'m, Sim>,
    place: Vec<Option<PageAddr>>,
    owner: Vec<usize>,
    commit: Option<PageAddr>,
}

impl Files<'_> {
    fn append(&mut self, file: usize, placement: Placement, cause: Cause) -> Result<(), LogError<nandu_sim::SimError>> {
        let mut page = vec![file as u8; self.log.page_size()];
        let stream = self.log.bare_stream(placement);
        if self.log.bare_room(stream) == 1 {
            self.log.append_summary(&mut page.clone(), stream, cause)?;
        }
        let new = self.log.append_bare(&page, placement, cause)?;
        let moved = matches!(placement, Placement::Survivor { .. });
        let commit = if moved { Placement::Passing } else { Placement::Stream(0) };
        let append = Append { kind: PageKind::Tree, placement: commit, is_commit: true, cause };
        let commit = self.log.append(&mut page, append)?;
        let old = [self.place[file].replace(new), self.commit.replace(commit)];
        old.into_iter().flatten().for_each(|page| self.log.supersede(page));
        self.owner[new.0 as usize] = file;
        Ok(())
    }

    fn update(&mut self, file: usize) {
        let mut budget = self.log.instalment(2);
        loop {
            while let Some(examine) = self.log.next_work(&mut budget).unwrap() {
                let file = self.owner[examine.page.0 as usize];
                let is_live = self.place.get(file).is_some_and(|&place| place == Some(examine.page));
                let outcome = if self.commit == Some(examine.page) || (is_live && !examine.moves) {
                    Examined::Live
                } else if is_live {
                    self.append(file, Placement::Survivor { from: examine.page }, examine.cause).unwrap();
                    Examined::Moved
                } else {
                    Examined::Dead
                };
                self.log.examined(examine, outcome).unwrap();
            }
            if self.log.reserve(2, Growth::Grows).unwrap() {
                break;
            }
            budget = Budget::room(16);
        }
        self.append(file, Placement::New, Cause::Host).unwrap();
    }
}

/// A recovery erases a block for the copy of the newest commit, and where that block was bare, reads the beginnings of two pages to see that it is erased.
#[test]
fn a_recovery_that_reads_back_copies_the_commit_to_a_block_that_was_bare() {
    let options = LogOptions { read_back: true, ..ONE };
    let mut bytes = memory(&Chip::TINY.geometry, &options);
    let mut chip = Log::format(Sim::new(Chip::TINY), options, &mut bytes).unwrap().abandon();
    let pages = Chip::TINY.geometry.page_count();
    let (mut place, mut owner) = (vec![None; 5], vec![usize::MAX; pages as usize]);
    let (mut bare, mut copied_to_bare) = (BTreeSet::new(), 0);
    for round in 0..60 {
        let log = Log::mount(chip, options, &mut bytes).unwrap();
        let commit = log.committed();
        let mut files = Files { log, place, owner, commit };
        if let Some(commit) = commit {
            let mut page = [0; 256];
            let found = files.log.read(commit, &mut page).map(|found| found.kind);
            assert_eq!((found, page[255]), (Ok(PageKind::Tree), 4), "round {round}");
            copied_to_bare += u32::from(bare.contains(&files.log.geometry().block_of(commit)));
        }
        (0..5).for_each(|file| files.update(file));
        let block_of = |page: &PageAddr| files.log.geometry().block_of(*page);
        bare.extend(files.place.iter().flatten().map(block_of));
        Files { place, owner, .. } = files;
        chip = files.log.abandon();
    }
    assert!(copied_to_bare > 3, "{copied_to_bare}");
}

#[test]
fn bare_blocks_are_collected_and_levelled_as_others_are() {
    let geometry = nandu_nand::Geometry {
        page_size: 256,
        program_unit: 256,
        programs_per_page: 1,
        ecc: Chip::TINY.geometry.ecc,
        ..Chip::W25N01GV.geometry
    };
    let chip = Chip { geometry, ..Chip::W25N01GV }.with_blocks(128);
    let options = LogOptions { bare_streams: 2, ..LogOptions::DEFAULT };
    let mut bytes = memory(&chip.geometry, &options);
    let log = Log::format(Sim::new(chip), options, &mut bytes).unwrap();
    let count = geometry.pages_per_block as usize * 128 * 7 / 10;
    let pages = chip.geometry.page_count() as usize;
    let mut files = Files { log, place: vec![None; count], owner: vec![usize::MAX; pages], commit: None };
    (0..count).for_each(|file| files.update(file));
    let before = files.log.nand().counters().programs;
    let mut seed = 9_u64;
    let mut draw = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    // A twentieth of the files takes 95 of 100 updates; most of the others stay where they are.
    let updates = 16 * pages;
    for _ in 0..updates {
        let file = if draw(100) < 95 { draw(count / 20) } else { draw(count) };
        files.update(file);
    }
    let stats = files.log.stats();
    let programs = (files.log.nand().counters().programs - before) as f64 / updates as f64;
    let evenness = stats.erase_count_sum as f64 / f64::from(stats.data_blocks) / f64::from(stats.erase_count_max);
    let levelling = stats.programs_for(Cause::Levelling) as f64 / stats.programs_total() as f64;
    println!("bare 95/5: {programs:.3} programs an update, evenness {evenness:.3}, levelling {levelling:.4}");
    assert!(programs <= 4.0 && evenness >= 0.5 && levelling <= 0.011, "{programs}, {evenness}, {levelling}");
    assert_eq!(files.log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}

#[test]
fn a_chip_full_of_bare_pages_that_all_change_is_collected_within_the_bound() {
    let geometry = nandu_nand::Geometry {
        page_size: 256,
        program_unit: 256,
        programs_per_page: 1,
        ecc: Chip::TINY.geometry.ecc,
        ..Chip::W25N01GV.geometry
    };
    let chip = Chip { geometry, ..Chip::W25N01GV }.with_blocks(48);
    for bare_streams in [1, 2] {
        let options = LogOptions { bare_streams, ..LogOptions::DEFAULT };
        let mut bytes = memory(&chip.geometry, &options);
        let log = Log::format(Sim::new(chip), options, &mut bytes).unwrap();
        let pages = chip.geometry.page_count() as usize;
        let mut files = Files { log, place: vec![None; pages], owner: vec![usize::MAX; pages], commit: None };
        let mut count = 0;
        while files.log.has_capacity_for(4) {
            files.update(count);
            count += 1;
        }
        assert!(count > pages * 6 / 10, "{count} of {pages}");
        let before = files.log.nand().counters().programs;
        for round in 0..2 * pages {
            files.update(round * 40_503 % count);
        }
        let programs = (files.log.nand().counters().programs - before) as f64 / (2 * pages) as f64;
        println!("full of bare pages: {programs:.2} programs an update");
        let stats = files.log.stats();
        assert!(stats.instalment_max <= INSTALMENT_MAX + 1, "{stats:?}");
        assert_eq!(files.log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
    }
}
