//! Streams with two bits a cell among streams with one.

use nandu_log::{Append, Budget, Examined, Growth, INSTALMENT_MAX, Log, LogError, LogOptions, PageKind, Placement};
use nandu_nand::{Cause, CellMode, Geometry, PageAddr, PageGroup, Pairing};
use nandu_sim::{Chip, Fault, Sim, SimError, Trigger};

use crate::toy::memory;

const OPTIONS: LogOptions = LogOptions { bare_streams: 2, mlc_streams: 1, ..LogOptions::DEFAULT };
/// Of the four streams of small chips.
const SLC: u8 = 2;
const MLC: u8 = 3;
const SMALL: Chip = Chip::TINY_MLC.with_blocks(26);

/// Blocks of 128 small pages.
const LONG: Chip = {
    let geometry = Geometry {
        page_size: 256,
        program_unit: 256,
        programs_per_page: 1,
        ecc: Chip::TINY.geometry.ecc,
        ..Chip::PAPER_FLEX.geometry
    };
    Chip { geometry, ..Chip::PAPER_FLEX }.with_blocks(64)
};

fn formatted(chip: Chip, bytes: &mut [u8]) -> Log<'_, Sim> {
    Log::format(Sim::new(chip), OPTIONS, bytes).unwrap()
}

/// Appends a bare page, after a summary where there is room for nothing else.
fn bare(log: &mut Log<'_, Sim>, value: u8, placement: Placement) -> Result<PageAddr, LogError<SimError>> {
    let stream = log.bare_stream(placement);
    if log.bare_room(stream) == 1 {
        let mut summary = vec![3; log.page_size()];
        log.append_summary(&mut summary, stream, Cause::Value)?;
    }
    log.append_bare(&vec![value; log.page_size()], placement, Cause::Value)
}

fn commit(log: &mut Log<'_, Sim>) -> Result<PageAddr, LogError<SimError>> {
    while let Some(stream) = log.summary_due() {
        let mut summary = vec![3; log.page_size()];
        log.append_summary(&mut summary, stream, Cause::Value)?;
    }
    let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: true, cause: Cause::Host };
    log.append(&mut vec![7; log.page_size()], append)
}

fn content(log: &mut Log<'_, Sim>, page: PageAddr) -> u8 {
    let mut read = vec![0; log.page_size()];
    let _ = log.read_bare(page, 0, &mut read).unwrap();
    assert!(read.iter().all(|&byte| byte == read[0]));
    read[0]
}

fn verify(log: &mut Log<'_, Sim>) {
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}

/// The share of the pages of blocks with two bits a cell that are used, if every so many pages a commit comes.
fn usable_share(every: u32) -> f64 {
    let mut bytes = memory(&LONG.geometry, &OPTIONS);
    let mut log = formatted(LONG, &mut bytes);
    let stream = log.stream_count() - 1;
    let (mut root, mut pages) = (None, std::collections::VecDeque::new());
    let (mut blocks, mut used, mut open) = (0, 0, None);
    for count in 1..=2048 {
        let mut budget = log.instalment(2);
        assert_eq!(log.next_work(&mut budget).unwrap(), None);
        while !log.reserve(2, Growth::Grows).unwrap() {
            assert_eq!(log.next_work(&mut Budget::steps(4)).unwrap(), None);
        }
        // Whole blocks die, so that nothing has to be moved.
        let page = bare(&mut log, 1, Placement::Stream(stream)).unwrap();
        pages.push_back(page);
        if pages.len() > 200 {
            pages.pop_front().into_iter().for_each(|page| log.supersede(page));
        }
        let block = log.geometry().block_of(page);
        if let Some(full) = open.replace(block).filter(|&full| full != block) {
            let pages = (0..128).map(|index| log.geometry().page_at(full, index));
            used += pages.filter(|&page| log.nand().peek(page)[0] != 0xff).count() as i32;
            blocks += 1;
        }
        if count % every == 0 {
            let new = commit(&mut log).unwrap();
            root.replace(new).into_iter().for_each(|page| log.supersede(page));
        }
    }
    // Of each block one is a summary.
    f64::from(used - blocks) / f64::from(blocks * 128)
}

#[test]
fn a_commit_of_every_few_pages_leaves_the_published_share_of_a_block_to_be_used() {
    for (every, published) in [(4, 0.50), (8, 0.69), (16, 0.81), (32, 0.89), (64, 0.94)] {
        let share = usable_share(every);
        println!("a commit every {every} pages: {share:.4} of the pages are used, published {published}");
        assert!((share - published).abs() <= 0.01, "{every}: {share}");
    }
}

#[test]
fn blocks_have_the_mode_of_the_stream_that_opened_them_also_after_a_mount() {
    let mut bytes = memory(&LONG.geometry, &OPTIONS);
    let mut log = formatted(LONG, &mut bytes);
    let (slc, mlc) = (log.stream_count() - 2, log.stream_count() - 1);
    assert_eq!((log.mlc_streams(), log.mode_of(0), log.mode_of(slc)), (1, CellMode::Slc, CellMode::Slc));
    assert_eq!(log.mode_of(mlc), CellMode::Mlc);
    let one = bare(&mut log, 1, Placement::Stream(slc)).unwrap();
    let two: Vec<_> = (0..10).map(|value| bare(&mut log, value, Placement::Stream(mlc)).unwrap()).collect();
    let root = commit(&mut log).unwrap();
    assert_eq!(
        (log.bare_room(slc), log.last_page(one).0 % 128),
        (63, LONG.geometry.nth_in_mode(CellMode::Slc, 63).unwrap())
    );
    // Pages 6 and 7 are exposed and named, so 12 and 13 will be left out.
    assert_eq!((log.bare_room(mlc), log.last_page(two[0]).0 % 128), (128 - 10 - 2, 127));
    let sim = log.unmount().map_err(|(error, _)| error).unwrap();
    let mut log = Log::mount(sim, OPTIONS, &mut bytes).unwrap();
    let modes = [root, one, two[0]].map(|page| log.mode_of_page(page).unwrap());
    assert_eq!(modes, [CellMode::Slc, CellMode::Slc, CellMode::Mlc]);
    assert_eq!((log.bare_room(slc), log.bare_room(mlc)), (63, 116));
    for (value, &page) in two.iter().enumerate() {
        assert_eq!(content(&mut log, page), value as u8);
    }
    let places: Vec<u32> = (0..4).map(|_| bare(&mut log, 9, Placement::Stream(mlc)).unwrap().0 - two[0].0).collect();
    assert_eq!(places, [10, 11, 14, 15]);
    verify(&mut log);
    // The same after a cut: the block is known, and appended to no more.
    commit(&mut log).unwrap();
    let log = Log::mount(log.abandon(), OPTIONS, &mut bytes).unwrap();
    assert_eq!((log.mode_of_page(two[0]), log.mode_of_page(one)), (Some(CellMode::Mlc), Some(CellMode::Slc)));
    assert_eq!((log.bare_room(slc), log.bare_room(mlc)), (0, 0));
}

#[test]
fn a_volume_is_refused_to_an_owner_that_knows_of_other_modes_and_made_only_where_they_can_be_had() {
    let mut bytes = memory(&SMALL.geometry, &OPTIONS);
    let mut sim = formatted(SMALL, &mut bytes).abandon();
    let none = LogOptions { mlc_streams: 0, ..OPTIONS };
    let error = Log::mount(&mut sim, none, &mut bytes).err();
    assert_eq!(error, Some(LogError::WrongFormat { what: "streams with two bits a cell" }));
    let mut plain = memory(&SMALL.geometry, &none);
    assert!(Log::format(&mut sim, none, &mut plain).is_ok());
    let error = Log::mount(&mut sim, OPTIONS, &mut bytes).err();
    assert_eq!(error, Some(LogError::WrongFormat { what: "streams with two bits a cell" }));
    for options in [
        LogOptions { mlc_streams: 2, ..OPTIONS },
        LogOptions { mode: CellMode::Mlc, ..OPTIONS },
        LogOptions { ready_max: Some(3), ..OPTIONS },
    ] {
        let error = Log::format(Sim::new(SMALL), options, &mut bytes).err();
        assert!(matches!(error, Some(LogError::Unsuitable { .. })), "{error:?}");
    }
    let error = Log::format(Sim::new(Chip::TINY.with_blocks(26)), OPTIONS, &mut bytes).err();
    assert_eq!(error, Some(LogError::Unsuitable { what: "streams with two bits a cell" }));
}

#[test]
fn memory_holds_the_pages_that_may_be_exposed_and_not_a_byte_more() {
    let plain = Log::<Sim>::memory_required(&LONG.geometry, &LogOptions { mlc_streams: 0, ..OPTIONS });
    for (pairing, exposed) in [(Pairing::SchemeA, 4), (Pairing::Dist3, 2)] {
        let geometry = Geometry { pairing, ..LONG.geometry };
        let required = Log::<Sim>::memory_required(&geometry, &OPTIONS);
        assert_eq!(required - plain, exposed * (256 + 8));
        let mut bytes = vec![0; required];
        let error = Log::format(Sim::new(Chip { geometry, ..LONG }), OPTIONS, &mut bytes[1..]).err();
        assert_eq!(error, Some(LogError::Memory { required }));
        assert!(Log::format(Sim::new(Chip { geometry, ..LONG }), OPTIONS, &mut bytes).is_ok());
    }
}

#[test]
fn a_copy_is_settled_when_its_partner_is_programmed_or_its_block_is_closed() {
    let mut bytes = memory(&SMALL.geometry, &OPTIONS);
    let mut log = formatted(SMALL, &mut bytes);
    let from = bare(&mut log, 1, Placement::Stream(SLC)).unwrap();
    assert!(log.is_settled(from));
    // On blocks of 8 pages the first four have their partners behind them.
    let copies: Vec<_> = (0..4).map(|_| bare(&mut log, 1, Placement::Survivor { from }).unwrap()).collect();
    let block = log.geometry().block_of(copies[0]);
    assert!(copies.iter().all(|&page| !log.is_settled(page)) && !log.is_complete(block));
    // A commit protects what it may name, and these it may not.
    commit(&mut log).unwrap();
    assert!(copies.iter().all(|&page| !log.is_settled(page)));
    let fifth = bare(&mut log, 1, Placement::Survivor { from }).unwrap();
    assert_eq!(fifth, PageAddr(copies[0].0 + 4));
    assert!(log.is_settled(fifth) && log.is_settled(copies[0]) && !log.is_settled(copies[1]));
    assert_eq!(log.bare_room(MLC), 3);
    let summary = log.seal(&mut [0; 256], MLC, Cause::Gc).unwrap();
    assert_eq!((summary, log.bare_room(MLC)), (Some(PageAddr(fifth.0 + 1)), 0));
    assert!(copies.iter().all(|&page| log.is_settled(page)) && log.is_complete(block));
    assert_eq!((log.seal(&mut [0; 256], MLC, Cause::Gc), log.stats().skipped), (Ok(None), 0));
    verify(&mut log);
}

#[test]
fn a_summary_is_due_before_the_commit_that_would_leave_no_room_for_it() {
    let mut bytes = memory(&SMALL.geometry, &OPTIONS);
    let mut log = formatted(SMALL, &mut bytes);
    let pages: Vec<_> = (0..4).map(|value| bare(&mut log, value, Placement::Stream(MLC)).unwrap()).collect();
    assert_eq!(log.summary_due(), Some(MLC));
    let summary = log.append_summary(&mut [0; 256], MLC, Cause::Value).unwrap();
    assert_eq!((summary, log.summary_due(), log.bare_room(MLC)), (Some(PageAddr(pages[0].0 + 4)), None, 0));
    // Without one the block is closed, and nothing is lost.
    let pages: Vec<_> = (0..4).map(|value| bare(&mut log, value, Placement::Stream(MLC)).unwrap()).collect();
    let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: true, cause: Cause::Host };
    log.append(&mut [7; 256], append).unwrap();
    assert_eq!((log.bare_room(MLC), log.left_out(MLC), log.stats().skipped), (0, 4, 4));
    for (value, &page) in pages.iter().enumerate() {
        assert_eq!(content(&mut log, page), value as u8);
    }
    verify(&mut log);
}

#[test]
fn where_the_program_of_a_partner_fails_the_page_is_moved_and_its_owner_told() {
    for placed in 4..8 {
        for is_copy in [false, true] {
            let mut bytes = memory(&SMALL.geometry, &OPTIONS);
            let mut log = formatted(SMALL, &mut bytes);
            let from = bare(&mut log, 100, Placement::Stream(SLC)).unwrap();
            let placement = if is_copy { Placement::Survivor { from } } else { Placement::Stream(MLC) };
            let mut pages = Vec::new();
            for value in 0..placed.min(7) {
                pages.push(log.append_bare(&[value; 256], placement, Cause::Value).unwrap());
                assert_eq!(log.rescue(), Ok(None));
            }
            log.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(0));
            if placed == 7 {
                // The last page is for the summary: the block goes without it.
                assert_eq!(log.append_summary(&mut [0; 256], MLC, Cause::Value), Ok(None));
            } else {
                pages.push(log.append_bare(&[placed; 256], placement, Cause::Value).unwrap());
            }
            let lost = usize::from(placed) - 4;
            assert!(!log.is_settled(pages[lost]));
            let rescued = log.rescue().unwrap().unwrap();
            assert_eq!((rescued.from, log.rescue()), (pages[lost], Ok(None)));
            let old = log.geometry().block_of(pages[lost]);
            assert_eq!(
                (log.live_bound(old), log.mode_of_page(rescued.to)),
                (u32::from(placed) - 1, Some(CellMode::Mlc))
            );
            pages[lost] = rescued.to;
            for (value, &page) in pages.iter().enumerate() {
                assert_eq!(content(&mut log, page), value as u8);
            }
            assert_eq!((log.stats().program_failures, log.is_complete(old)), (1, true));
            // The failed block takes no commit with it, and neither does a cut.
            commit(&mut log).unwrap();
            if !is_copy {
                let mut log = Log::mount(log.abandon(), OPTIONS, &mut bytes).unwrap();
                for (value, &page) in pages.iter().enumerate() {
                    assert_eq!(content(&mut log, page), value as u8);
                }
                verify(&mut log);
            }
        }
    }
}

#[test]
fn a_page_that_finds_no_other_place_stays_in_memory_and_no_commit_may_name_it() {
    let mut bytes = memory(&SMALL.geometry, &OPTIONS);
    let mut log = formatted(SMALL, &mut bytes);
    let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: false, cause: Cause::Host };
    let mut pages = Vec::new();
    for value in 0..4 {
        pages.push(bare(&mut log, value, Placement::Stream(MLC)).unwrap());
    }
    let mut fillers = Vec::new();
    // Without asking for room, until one block is left for recovery.
    while let Ok(page) = log.append(&mut [7; 256], append) {
        fillers.push(page);
    }
    while log.bare_stream(Placement::Stream(SLC)) == SLC && bare(&mut log, 1, Placement::Stream(SLC)).is_ok() {}
    log.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(0));
    assert_eq!(bare(&mut log, 4, Placement::Stream(MLC)), Err(LogError::Full));
    assert_eq!(log.rescue(), Err(LogError::Full));
    assert_eq!((content(&mut log, pages[0]), log.is_settled(pages[0])), (0, false));
    assert_eq!(log.append(&mut [7; 256], Append { is_commit: true, ..append }), Err(LogError::Full));
    // With room it is moved.
    let first = log.geometry().block_of(fillers[0]);
    for page in fillers {
        if log.geometry().block_of(page).0 <= first.0 + 6 {
            log.supersede(page);
        }
    }
    let rescued = log.rescue().unwrap().unwrap();
    assert_eq!((rescued.from, content(&mut log, rescued.to)), (pages[0], 0));
    assert!(commit(&mut log).is_ok());
    verify(&mut log);
}

#[test]
fn what_is_given_up_is_not_moved() {
    let mut bytes = memory(&SMALL.geometry, &OPTIONS);
    let mut log = formatted(SMALL, &mut bytes);
    let pages: Vec<_> = (0..4).map(|value| bare(&mut log, value, Placement::Stream(MLC)).unwrap()).collect();
    log.nand_mut().inject(Fault::ProgramFails, Trigger::Nth(0));
    let fifth = bare(&mut log, 4, Placement::Stream(MLC)).unwrap();
    // Said before the owner asked where it is: it is dead where it is now.
    let there = log.geometry().block_of(fifth);
    assert_eq!(log.live_bound(there), 2);
    log.supersede(pages[0]);
    assert_eq!((log.rescue(), log.live_bound(there)), (Ok(None), 1));
}

#[test]
fn the_owner_chooses_what_moves_to_two_bits_a_cell_and_two_blocks_become_one() {
    let mut bytes = memory(&LONG.geometry, &OPTIONS);
    let mut log = formatted(LONG, &mut bytes);
    let (slc, mlc) = (log.stream_count() - 2, log.stream_count() - 1);
    let mut pages: Vec<_> = (0..126).map(|value| bare(&mut log, value, Placement::Stream(slc)).unwrap()).collect();
    log.append_summary(&mut [0; 256], slc, Cause::Value).unwrap();
    let mut root = commit(&mut log).unwrap();
    assert_eq!(log.candidates(CellMode::Mlc).count(), 0);
    let full: Vec<_> = log.candidates(CellMode::Slc).collect();
    assert!(full.len() == 2 && full.iter().all(|one| (one.live, one.live_max) == (63, 63)), "{full:?}");
    let pool = log.stats().pool_blocks;
    // Not the one that the collector would take.
    log.empty_next(full[1].block, Cause::Migration);
    let (mut copies, mut examined) = (Vec::new(), 0);
    while copies.len() < pages.len() {
        let examine = log.next_work(&mut Budget::room(1)).unwrap().unwrap();
        let is_chosen = log.geometry().block_of(examine.page) == full[1].block;
        assert_eq!((is_chosen, examine.moves), (examined < 64, true));
        examined += 1;
        assert_eq!(examine.cause, if is_chosen { Cause::Migration } else { Cause::Gc });
        let outcome = match pages.iter().position(|&page| page == examine.page) {
            Some(at) => {
                let value = content(&mut log, examine.page);
                copies.push((at, bare(&mut log, value, Placement::Survivor { from: examine.page }).unwrap()));
                Examined::Copied
            }
            None if examine.page == root => Examined::Live,
            None => Examined::Dead,
        };
        log.examined(examine, outcome).unwrap();
    }
    // What was copied is left alone, and is needed as long as nothing names the copies.
    assert_eq!((log.candidates(CellMode::Slc).count(), log.live_bound(full[1].block)), (0, 63));
    assert_eq!(log.seal(&mut [0; 256], mlc, Cause::Gc).map(|page| page.is_some()), Ok(true));
    assert!(copies.iter().all(|&(_, copy)| log.is_settled(copy) && log.mode_of_page(copy) == Some(CellMode::Mlc)));
    root = commit(&mut log).unwrap();
    for (at, copy) in copies {
        log.supersede(std::mem::replace(&mut pages[at], copy));
    }
    assert_eq!((log.stats().pool_blocks, log.committed()), (pool + 1, Some(root)));
    for (value, &page) in pages.iter().enumerate() {
        assert_eq!(content(&mut log, page), value as u8);
    }
    verify(&mut log);
}

/// Fills a block of a stream in which one page stays, and returns that.
fn fill_block(log: &mut Log<'_, Sim>, stream: u8) -> PageAddr {
    let stays = bare(log, 1, Placement::Stream(stream)).unwrap();
    while log.bare_room(stream) > 1 {
        let page = bare(log, 1, Placement::Stream(stream)).unwrap();
        log.supersede(page);
    }
    log.seal(&mut vec![3; log.page_size()], stream, Cause::Value).unwrap();
    stays
}

#[test]
fn the_most_worn_block_is_the_next_one_where_pages_are_to_rest_and_the_choice_after_it_is_as_ever() {
    // Lists of one and of several blocks for two bits a cell.
    for ready_max in [4, 9] {
        let options = LogOptions { ready_max: Some(ready_max), ..OPTIONS };
        let chip = Chip::TINY_MLC.with_blocks(48);
        let mut bytes = memory(&chip.geometry, &options);
        let mut log = Log::format(Sim::new(chip), options, &mut bytes).unwrap();
        commit(&mut log).unwrap();
        // Some blocks wear while others hold pages, of which a few go.
        let kept: Vec<PageAddr> = (0..20).map(|_| fill_block(&mut log, SLC)).collect();
        for _ in 0..100 {
            let page = fill_block(&mut log, SLC);
            log.supersede(page);
        }
        kept.into_iter().take(12).for_each(|page| log.supersede(page));
        let most = log.levelling_destination().unwrap();
        let before = log.stats();
        log.list_most_worn().unwrap();
        assert_eq!(log.levelling_destination(), Some(most));
        assert_eq!(log.stats().checkpoints, before.checkpoints + 1);
        assert_eq!(log.stats().levelling_checkpoints, 1);
        // It is the next one already.
        log.list_most_worn().unwrap();
        assert_eq!(log.stats().checkpoints, before.checkpoints + 1);
        let opened = [(); 3].map(|()| {
            let page = fill_block(&mut log, MLC);
            log.nand().block_state(log.geometry().block_of(page)).counters.erases
        });
        assert_eq!(opened[0], most + 1, "erased before it is opened");
        assert!(opened[1] < most && opened[2] < most, "{opened:?}");
        verify(&mut log);
    }
}

#[test]
fn blocks_with_two_bits_a_cell_bear_an_eighth_of_the_reads() {
    let options = LogOptions { reads_max: Some(8000), ..OPTIONS };
    let reads_of = |stream: u8, seed: u32| {
        let mut bytes = memory(&SMALL.geometry, &options);
        let mut log = Log::format(Sim::new(SMALL), options, &mut bytes).unwrap();
        // The draws follow the sequence.
        for _ in 0..seed {
            log.checkpoint().unwrap();
        }
        let sim = log.unmount().map_err(|(error, _)| error).unwrap();
        let mut log = Log::mount(sim, options, &mut bytes).unwrap();
        let page = bare(&mut log, 1, Placement::Stream(stream)).unwrap();
        log.seal(&mut [0; 256], stream, Cause::Value).unwrap();
        let mut reads = 0;
        loop {
            content(&mut log, page);
            reads += 1;
            if let Some(examine) = log.next_work(&mut Budget::room(1)).unwrap() {
                let cause = examine.cause;
                log.examined(examine, Examined::Live).unwrap();
                if cause == Cause::Refresh {
                    return reads;
                }
            }
            assert!(reads < 80_000, "never refreshed");
        }
    };
    let mean = |stream| (0..24).map(|seed| reads_of(stream, seed)).sum::<u32>() / 24;
    let (slc, mlc) = (mean(SLC), mean(MLC));
    println!("emptied after {slc} reads with one bit a cell, after {mlc} with two");
    assert!((5000..11_000).contains(&slc) && (600..1400).contains(&mlc), "{slc}, {mlc}");
}

#[test]
fn a_programmed_msb_page_where_there_is_one_bit_a_cell_violates_l12() {
    let mut bytes = memory(&SMALL.geometry, &OPTIONS);
    let mut log = formatted(SMALL, &mut bytes);
    let page = bare(&mut log, 1, Placement::Stream(SLC)).unwrap();
    verify(&mut log);
    let stray = PageAddr(page.0 + 4);
    assert_eq!(SMALL.geometry.pairing.pair_of(4, 8), Some((0, PageGroup::Msb)));
    log.nand_mut().poke(stray, &[0; 256]);
    let mut found = Vec::new();
    log.verify(&mut |violation| found.push((violation.invariant, violation.page))).unwrap();
    assert_eq!(found, [(12, Some(stray))]);
}

/// An owner of bare pages that keeps its map in memory: for measuring, not for cuts. What is written goes to one bit a cell, what is
/// moved to two, and is named when no cut can destroy it any more.
struct Archive<'m> {
    log: Log<'m, Sim>,
    place: Vec<Option<PageAddr>>,
    owner: Vec<usize>,
    /// Copies that wait, with where they come from.
    copies: Vec<(usize, PageAddr, PageAddr)>,
    root: Option<PageAddr>,
    /// How often an operation found no room after its instalment.
    waits: u32,
}

impl Archive<'_> {
    fn commit(&mut self, placement: Placement, cause: Cause) -> Result<(), LogError<SimError>> {
        while let Some(stream) = self.log.summary_due() {
            self.log.append_summary(&mut [3; 256], stream, cause)?;
        }
        let append = Append { kind: PageKind::Tree, placement, is_commit: true, cause };
        let root = self.log.append(&mut [7; 256], append)?;
        self.root.replace(root).into_iter().for_each(|old| self.log.supersede(old));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), LogError<SimError>> {
        let (settled, rest): (Vec<_>, Vec<_>) =
            self.copies.iter().copied().partition(|&(_, _, to): &(usize, PageAddr, PageAddr)| self.log.is_settled(to));
        if settled.is_empty() {
            return Ok(());
        }
        self.commit(Placement::Passing, Cause::Gc)?;
        self.copies = rest;
        for (file, from, to) in settled {
            self.log.supersede(from);
            self.place[file] = Some(to);
        }
        Ok(())
    }

    fn examine(&mut self, page: PageAddr, moves: bool, cause: Cause) -> Examined {
        let file = self.owner[page.0 as usize];
        let is_live = self.place.get(file).is_some_and(|&place| place == Some(page));
        if self.root == Some(page)
            || (is_live && !moves)
            || self.copies.iter().any(|&(_, from, to)| from == page || to == page)
        {
            return Examined::Live;
        }
        if !is_live {
            return Examined::Dead;
        }
        match bare(&mut self.log, 1, Placement::Survivor { from: page }) {
            Ok(to) => {
                assert!(cause != Cause::Recovery);
                self.owner[to.0 as usize] = file;
                self.copies.push((file, page, to));
                Examined::Copied
            }
            Err(error) => {
                assert_eq!(error, LogError::Full);
                Examined::Live
            }
        }
    }

    fn update(&mut self, file: usize) {
        let mut budget = self.log.instalment(2);
        loop {
            while let Some(examine) = self.log.next_work(&mut budget).unwrap() {
                let outcome = self.examine(examine.page, examine.moves, examine.cause);
                self.log.examined(examine, outcome).unwrap();
            }
            if self.copies.len() >= 16 {
                self.settle().unwrap();
            }
            match self.log.reserve(2, Growth::Grows) {
                Ok(true) => break,
                Err(LogError::Full) if !self.copies.is_empty() => self.settle().unwrap(),
                result => assert_eq!(result, Ok(false)),
            }
            self.waits += 1;
            budget = Budget::room(16);
        }
        let new = bare(&mut self.log, 1, Placement::New).unwrap();
        self.commit(Placement::Stream(0), Cause::Host).unwrap();
        self.place[file].replace(new).into_iter().for_each(|old| self.log.supersede(old));
        let outdated =
            self.copies.iter().position(|&(other, _, _)| other == file).map(|at| self.copies.swap_remove(at));
        outdated.into_iter().for_each(|(_, _, copy)| self.log.supersede(copy));
        self.owner[new.0 as usize] = file;
    }
}

#[test]
fn a_chip_full_of_pages_with_two_bits_a_cell_that_all_change_is_collected_within_the_bound() {
    let chip = LONG.with_blocks(48);
    let mut bytes = memory(&chip.geometry, &OPTIONS);
    let log = formatted(chip, &mut bytes);
    let pages = chip.geometry.page_count() as usize;
    let (place, owner) = (vec![None; pages], vec![usize::MAX; pages]);
    let mut archive = Archive { log, place, owner, copies: Vec::new(), root: None, waits: 0 };
    let mut count = 0;
    while archive.log.has_capacity_for(24) {
        archive.update(count);
        count += 1;
    }
    let filled = archive.log.stats();
    let plain = LogOptions { mlc_streams: 0, ..OPTIONS };
    let mut bytes = memory(&chip.geometry, &plain);
    let with_one_bit = Log::format(Sim::new(chip), plain, &mut bytes).unwrap().capacity_pages() as usize;
    println!("{count} of {pages} pages, {with_one_bit} would be live with one bit a cell, {} waits", archive.waits);
    assert!(count * 10 > with_one_bit * 16, "{count} of {pages}: {filled:?}");
    let programs = archive.log.nand().counters().programs;
    for round in 0..2 * pages {
        archive.update(round * 40_503 % count);
    }
    let programs = (archive.log.nand().counters().programs - programs) as f64 / (2 * pages) as f64;
    let stats = archive.log.stats();
    println!("{programs:.2} programs an update, {} waits, {} pages left out", archive.waits, stats.skipped);
    assert!(stats.instalment_max <= INSTALMENT_MAX + 1, "{stats:?}");
    verify(&mut archive.log);
}
