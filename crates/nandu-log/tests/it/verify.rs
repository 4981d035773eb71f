//! Every violation that `verify` can find is found on an image damaged to show it.

use nandu_log::{Claim, Claimed, Log, LogOptions, Violation};
use nandu_nand::{BlockAddr, PageAddr};
use nandu_sim::{Chip, Sim};

use crate::toy::memory;

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// Runs on a log with 20 pages appended, given their addresses; returns the invariants that do not hold afterwards.
fn broken(damage: impl FnOnce(&mut Log<'_, Sim>, &[PageAddr])) -> Vec<u8> {
    let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
    let mut log = crate::formatted(Sim::new(Chip::TINY), PLAIN, &mut bytes).unwrap();
    let mut page = vec![0; 256];
    let mut pages = Vec::new();
    for _ in 0..20 {
        let mut budget = log.instalment((1, 0), (4, 1));
        assert!(log.victim(&mut budget).unwrap().is_none());
        let Claimed::Granted(grant) = log.claim(Claim::Grow, 1, 1).unwrap() else { panic!("no room") };
        pages.push(log.commit(&mut page, grant).unwrap());
    }
    let mut found: Vec<Violation> = Vec::new();
    assert_eq!(log.verify(&mut |violation| found.push(violation)).unwrap(), 0, "{found:?}");
    let programs = log.nand().counters().programs;
    damage(&mut log, &pages);
    let count = log.verify(&mut |violation| found.push(violation)).unwrap();
    assert_eq!((count as usize, log.nand().counters().programs), (found.len(), programs));
    assert!(found.iter().all(|violation| violation.to_string().starts_with('N')));
    let mut numbers: Vec<u8> = found.iter().map(|violation| violation.invariant).collect();
    numbers.dedup();
    numbers
}

#[test]
fn an_intact_log_violates_nothing() {
    assert!(broken(|_, _| {}).is_empty());
}

#[test]
fn a_damaged_page_in_the_middle_of_a_block_violates_n1() {
    let found = broken(|log, pages| {
        let mut bytes = log.nand().peek(pages[2])[..256].to_vec();
        bytes[100] ^= 0xff;
        log.nand_mut().poke(pages[2], &bytes);
    });
    assert!(found.contains(&1), "{found:?}");
}

#[test]
fn a_page_that_stands_elsewhere_violates_n1() {
    let found = broken(|log, pages| {
        let bytes = log.nand().peek(pages[5])[..256].to_vec();
        log.nand_mut().poke(pages[2], &bytes);
    });
    assert!(found.contains(&1), "{found:?}");
}

#[test]
fn a_ready_block_that_is_not_erased_violates_n2() {
    let found = broken(|log, pages| {
        let bytes = log.nand().peek(pages[0])[..256].to_vec();
        for block in 0..16 {
            let page = log.geometry().first_page(BlockAddr(block));
            if log.nand().peek(page).iter().all(|&byte| byte == 0xff) {
                log.nand_mut().poke(page, &bytes);
            }
        }
    });
    assert!(found.contains(&2), "{found:?}");
}

/// A page that is gone can be none of those that live.
#[test]
fn fewer_pages_than_live_violate_n5() {
    let found = broken(|log, pages| log.nand_mut().poke(pages[2], &[0; 256]));
    assert!(found.contains(&5), "{found:?}");
}

#[test]
fn a_commit_page_that_is_gone_violates_n7() {
    let found = broken(|log, pages| {
        let last = *pages.last().unwrap();
        log.nand_mut().poke(last, &[0; 256]);
    });
    assert!(found.contains(&7), "{found:?}");
}
