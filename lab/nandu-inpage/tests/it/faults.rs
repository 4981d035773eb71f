//! Bad blocks, unreadable pages, full chips, hostile bytes.

use std::collections::BTreeMap;

use nandu_inpage::{Error, InPage, Options};
use nandu_nand::{BlockAddr, PageAddr};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::rig::{GRR, PAGES, SECTORS, in_pages, memory, with_two_pages};

const KINDS: [(Chip, Options); 4] =
    [(SECTORS, GRR), (PAGES, in_pages(GRR)), (SECTORS, with_two_pages(GRR)), (PAGES, in_pages(with_two_pages(GRR)))];

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Puts records until one call fails or all are done; what was put, and the call that failed.
fn work(
    index: &mut InPage<'_, Sim>,
    count: u32,
    model: &mut BTreeMap<u32, u32>,
) -> Result<(), Error<nandu_sim::SimError>> {
    for number in 0..count {
        let place = number.wrapping_mul(0x9E37_79B9) % 70;
        if number % 5 == 4 {
            index.delete(&key(place))?;
            model.remove(&place);
        } else {
            index.put(&key(place), &key(number))?;
            model.insert(place, number);
        }
        if number % 9 == 8 {
            index.sync()?;
        }
    }
    index.sync()
}

fn assert_holds(index: &mut InPage<'_, Sim>, model: &BTreeMap<u32, u32>) {
    for place in 0..70 {
        let expected = model.get(&place).map(|number| key(*number));
        assert_eq!(index.get(&key(place)).unwrap(), expected.as_ref().map(|value| &value[..]), "key {place}");
    }
    index.verify(&mut |violation| panic!("{violation}")).unwrap();
}

/// Runs the work with a fault at each operation that it fits, on chips with blocks to spare.
fn survives(fault: Fault) {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(24);
        for nth in 0..150 {
            let mut bytes = memory(&chip, &options);
            let index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
            let mut sim = index.unmount().unwrap();
            sim.inject(fault, Trigger::Nth(nth));
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            let mut model = BTreeMap::new();
            work(&mut index, 120, &mut model).unwrap();
            assert_holds(&mut index, &model);
            let sim = index.abandon();
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            assert_holds(&mut index, &model);
        }
    }
}

#[test]
fn a_program_that_fails_costs_the_block_and_nothing_else() {
    survives(Fault::ProgramFails);
}

#[test]
fn an_erase_that_fails_costs_the_block_and_nothing_else() {
    survives(Fault::EraseFails);
}

#[test]
fn factory_bad_blocks_are_left_alone_wherever_they_are() {
    for (chip, options) in KINDS {
        for bad in 0..6 {
            let mut sim = Sim::new(chip.with_blocks(24));
            sim.mark_factory_bad(BlockAddr(bad));
            let mut bytes = memory(sim.chip(), &options);
            let mut index = InPage::format(sim, options, &mut bytes).unwrap();
            let mut model = BTreeMap::new();
            work(&mut index, 120, &mut model).unwrap();
            let sim = index.unmount().unwrap();
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            assert_holds(&mut index, &model);
            assert_eq!(index.size().blocks_bad, 1);
        }
    }
}

/// A block of anchors that cannot be erased any more keeps its old ones, and another takes its place, further back: those there are
/// the newest.
#[test]
fn the_newest_anchor_is_found_wherever_it_had_to_go() {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(24);
        let options = Options { journal_blocks: 1, ..options };
        for failing in [&[0][..], &[1], &[0, 1], &[0, 1, 2]] {
            let mut bytes = memory(&chip, &options);
            let mut sim = InPage::format(Sim::new(chip), options, &mut bytes).unwrap().unmount().unwrap();
            for &block in failing {
                sim.inject(Fault::EraseFails, Trigger::Block(BlockAddr(block)));
            }
            let mut model = BTreeMap::new();
            for session in 0..8 {
                let mut index = InPage::open(sim, options, &mut bytes).unwrap();
                assert!(!index.was_cut(), "{failing:?}, session {session}");
                assert_holds(&mut index, &model);
                work(&mut index, 50, &mut model).unwrap();
                sim = index.unmount().unwrap();
            }
        }
    }
}

#[test]
fn what_cannot_be_read_is_an_error_and_never_other_data() {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(24);
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
        let mut model = BTreeMap::new();
        work(&mut index, 120, &mut model).unwrap();
        let start = index.unmount().unwrap();
        for page in 0..chip.geometry.page_count() {
            let mut sim = start.clone();
            sim.inject(Fault::Uncorrectable, Trigger::Page(PageAddr(page)));
            let Ok(mut index) = InPage::open(sim, options, &mut bytes) else { continue };
            for place in 0..70 {
                // An older version of a node is no other data than the node: it would be wrong without a word.
                if let Ok(found) = index.get(&key(place)) {
                    let expected = model.get(&place).map(|number| key(*number));
                    assert_eq!(found, expected.as_ref().map(|value| &value[..]), "page {page}, key {place}");
                }
            }
        }
    }
}

#[test]
fn a_full_chip_says_so_keeps_what_it_has_and_takes_deletes() {
    for (chip, options) in KINDS {
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
        let mut count = 0;
        let error = loop {
            match index.put(&key(count), &key(count)) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, Error::Full);
        assert!(count > 300, "{count}");
        for number in 0..count {
            assert_eq!(index.get(&key(number)).unwrap(), Some(&key(number)[..]));
        }
        for number in 0..count {
            assert!(index.delete(&key(number)).unwrap(), "{number}");
        }
        index.sync().unwrap();
        assert_eq!(index.count_records().unwrap(), 0);
        index.verify(&mut |violation| panic!("{violation}")).unwrap();
        // What was deleted makes room for as much again.
        for number in 0..count / 2 {
            index.put(&key(number), &key(number)).unwrap();
        }
    }
}

#[test]
fn a_volume_of_other_options_or_of_none_is_refused() {
    let mut bytes = memory(&SECTORS, &GRR);
    assert_eq!(InPage::open(Sim::new(SECTORS), GRR, &mut bytes).err(), Some(Error::NotFormatted));
    let sim = InPage::format(Sim::new(SECTORS), GRR, &mut bytes).unwrap().unmount().unwrap();
    let other = Options { log_pages_max: 4, ..GRR };
    let mut more = memory(&SECTORS, &other);
    let refused = InPage::open(sim, other, &mut more).err();
    assert_eq!(refused, Some(Error::WrongFormat { what: "most log pages" }));
    let two = with_two_pages(GRR);
    let mut more = memory(&SECTORS, &two);
    let sim = InPage::format(Sim::new(SECTORS), two, &mut more).unwrap().unmount().unwrap();
    let one = Options { node_pages: 1, ..two };
    let mut more = memory(&SECTORS, &one);
    let refused = InPage::open(sim, one, &mut more).err();
    assert_eq!(refused, Some(Error::WrongFormat { what: "pages of a node" }));
    // Sectors need a chip that takes them.
    let mut bytes = memory(&PAGES, &GRR);
    let refused = InPage::format(Sim::new(PAGES), GRR, &mut bytes).err();
    assert!(matches!(refused, Some(Error::Unsuitable { .. })), "{refused:?}");
    let mut few = [0; 100];
    assert!(matches!(InPage::format(Sim::new(SECTORS), GRR, &mut few).err(), Some(Error::Memory { .. })));
}

/// Any bytes may be refused; none may panic or go on for long.
#[test]
fn hostile_bytes_do_no_harm() {
    let with_journal = KINDS.map(|(chip, options)| (chip.with_blocks(20), Options { journal_blocks: 2, ..options }));
    for (chip, options) in KINDS.into_iter().chain(with_journal) {
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
        work(&mut index, 150, &mut BTreeMap::new()).unwrap();
        // What is in a journal is read only if the power went.
        let start = if options.journal_blocks > 0 { index.abandon() } else { index.unmount().unwrap() };
        for seed in 0..1500_u32 {
            let mut sim = start.clone();
            let mut chance = seed.wrapping_mul(0x9E37_79B9) | 1;
            let mut draw = |below: u32| {
                chance ^= chance << 13;
                chance ^= chance >> 17;
                chance ^= chance << 5;
                chance % below
            };
            for _ in 0..1 + draw(4) {
                let page = PageAddr(draw(chip.geometry.page_count()));
                let mut content = sim.peek(page);
                let at = draw(chip.geometry.page_size) as usize;
                content[at] = draw(256) as u8;
                reseal(&mut content[..chip.geometry.page_size as usize]);
                sim.poke(page, &content);
            }
            let Ok(mut index) = InPage::open(sim, options, &mut bytes) else { continue };
            for place in 0..70 {
                let _ = index.get(&key(place));
                let _ = index.put(&key(place), &key(1));
            }
            let _ = index.sync();
            let _ = index.verify(&mut |_| {});
        }
    }
}

/// Makes the checksum of a page that begins as pages of an index do right again.
fn reseal(page: &mut [u8]) {
    let size = u32::from_le_bytes(page[28..32].try_into().unwrap()) as usize;
    if page[4..6] == *b"GR" && (32..=page.len()).contains(&size) {
        let crc = nandu_media::checksum::checksum(&page[4..size]);
        page[..4].copy_from_slice(&crc.to_le_bytes());
    }
}
