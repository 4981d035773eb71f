//! Every violation that `verify` can find is found on an image damaged to show it.

use nandu_log::{Append, Budget, Growth, Log, LogOptions, PageKind, Placement, Violation};
use nandu_nand::{Cause, PageAddr};
use nandu_sim::{Chip, Sim};

use crate::toy::memory;

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// Runs on a log with 20 pages appended, given their addresses; returns the invariants that do not hold afterwards.
fn broken(damage: impl FnOnce(&mut Log<'_, Sim>, &[PageAddr])) -> Vec<u8> {
    let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
    let mut log = Log::format(Sim::new(Chip::TINY), PLAIN, &mut bytes).unwrap();
    let mut page = vec![0; 256];
    let mut pages = Vec::new();
    for _ in 0..20 {
        let mut budget = log.instalment(1);
        assert_eq!(log.next_work(&mut budget).unwrap(), None);
        while !log.reserve(1, Growth::Grows).unwrap() {
            assert_eq!(log.next_work(&mut Budget::room(16)).unwrap(), None);
        }
        let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: true, cause: Cause::Host };
        pages.push(log.append(&mut page, append).unwrap());
    }
    let mut found: Vec<Violation> = Vec::new();
    assert_eq!(log.verify(&mut |violation| found.push(violation)).unwrap(), 0, "{found:?}");
    let programs = log.nand().counters().programs;
    damage(&mut log, &pages);
    let count = log.verify(&mut |violation| found.push(violation)).unwrap();
    assert_eq!((count as usize, log.nand().counters().programs), (found.len(), programs));
    assert!(found.iter().all(|violation| violation.to_string().starts_with('L')));
    let mut numbers: Vec<u8> = found.iter().map(|violation| violation.invariant).collect();
    numbers.dedup();
    numbers
}

#[test]
fn an_intact_log_violates_nothing() {
    assert!(broken(|_, _| {}).is_empty());
}

#[test]
fn a_damaged_page_in_the_middle_of_a_block_violates_l1() {
    let found = broken(|log, pages| {
        let mut bytes = log.nand().peek(pages[2])[..256].to_vec();
        bytes[100] ^= 0xff;
        log.nand_mut().poke(pages[2], &bytes);
    });
    assert!(found.contains(&1), "{found:?}");
}

#[test]
fn a_page_that_stands_elsewhere_violates_l1() {
    let found = broken(|log, pages| {
        let bytes = log.nand().peek(pages[5])[..256].to_vec();
        log.nand_mut().poke(pages[2], &bytes);
    });
    assert!(found.contains(&1), "{found:?}");
}

#[test]
fn a_ready_block_that_is_not_erased_violates_l2() {
    let found = broken(|log, pages| {
        let bytes = log.nand().peek(pages[0])[..256].to_vec();
        for block in 0..16 {
            let page = log.geometry().first_page(nandu_nand::BlockAddr(block));
            if log.nand().peek(page).iter().all(|&byte| byte == 0xff) {
                log.nand_mut().poke(page, &bytes);
            }
        }
    });
    assert!(found.contains(&2), "{found:?}");
}

#[test]
fn a_bare_page_that_reads_as_a_page_of_the_log_violates_l10() {
    let options = LogOptions { bare_streams: 1, ..PLAIN };
    let mut bytes = memory(&Chip::TINY.geometry, &options);
    let mut log = Log::format(Sim::new(Chip::TINY), options, &mut bytes).unwrap();
    let mut page = vec![1; 256];
    let append = Append { kind: PageKind::Tree, placement: Placement::New, is_commit: true, cause: Cause::Host };
    let bare = log.append_bare(&page, Placement::New, Cause::Host).unwrap();
    let headed = log.append(&mut page, append).unwrap();
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
    let mut forged = log.nand().peek(headed)[..256].to_vec();
    forged[16..20].copy_from_slice(&bare.0.to_le_bytes());
    let crc = nandu_media::checksum::checksum(&forged[4..]);
    forged[..4].copy_from_slice(&crc.to_le_bytes());
    log.nand_mut().poke(bare, &forged);
    let mut found = Vec::new();
    log.verify(&mut |violation| found.push((violation.invariant, violation.page))).unwrap();
    assert_eq!(found, [(10, Some(bare))]);
}

#[test]
fn a_commit_page_that_is_gone_violates_l7() {
    let found = broken(|log, pages| {
        let last = *pages.last().unwrap();
        log.nand_mut().poke(last, &[0; 256]);
    });
    assert!(found.contains(&7), "{found:?}");
}
