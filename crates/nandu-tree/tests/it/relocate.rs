//! Which pages live, and moving them.

use nandu_index::suite::verify;
use nandu_nand::PageAddr;
use nandu_tree::{Examined, FixedCells, Options};

use crate::medium::{Bench, Shared};

const OPTIONS: Options = Options { cache_size: 300, journal_pages: 64, ..Options::DEFAULT };

fn scattered(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_be_bytes()
}

/// A tree of at least four levels, some of whose leaves vanished.
fn grown(medium: Shared) -> Bench<FixedCells<4, 4>> {
    let mut bench = Bench::new(medium, FixedCells::<4, 4>, OPTIONS);
    for number in 0..1500 {
        bench.tree().put(&scattered(number), &number.to_be_bytes()).unwrap();
    }
    let mut keys: Vec<[u8; 4]> = (0..1500).map(scattered).collect();
    keys.sort();
    for key in keys.iter().skip(300).take(200) {
        assert!(bench.tree().delete(key).unwrap());
    }
    assert!(bench.tree().height() >= 4, "height {}", bench.tree().height());
    bench
}

#[test]
fn every_live_page_can_be_moved_and_is_dead_then() {
    let medium = Shared::new(256, 44, 4000);
    let mut bench = grown(medium.clone());
    for round in 0..3 {
        for page in medium.live_pages() {
            // A page may have been superseded meanwhile, as the path of another.
            if medium.live_pages().contains(&page) {
                let programs = medium.counts().programs;
                assert!(bench.tree().relocate(page).unwrap(), "page {page} lives, round {round}");
                assert!(medium.counts().programs - programs <= 2);
            }
        }
        bench.check_lives();
        verify(&mut bench);
        assert_eq!(bench.tree().record_count(), 1300);
    }
}

#[test]
fn a_page_lives_exactly_while_its_lowest_node_does() {
    let medium = Shared::new(256, 44, 30_000);
    medium.0.borrow_mut().keeps_stale = true;
    let mut bench = grown(medium.clone());
    let appended = medium.counts().programs as u32;
    let mut live = Vec::new();
    bench.tree().live_pages(&mut |page| live.push(page)).unwrap();
    live.sort();
    assert_eq!(live, medium.live_pages());
    for page in (0..appended).map(PageAddr) {
        assert_eq!(bench.tree().is_live(page).unwrap(), live.binary_search(&page).is_ok(), "page {page}");
    }
}

#[test]
fn what_the_medium_asks_about_is_moved_before_the_next_change() {
    let medium = Shared::new(256, 44, 4000);
    let mut bench = grown(medium.clone());
    let pages: Vec<PageAddr> = medium.live_pages().into_iter().take(5).collect();
    medium.0.borrow_mut().to_examine = pages.clone();
    bench.tree().put(&[1; 4], &[2; 4]).unwrap();
    let examined = medium.0.borrow().examined.clone();
    assert_eq!(examined.len(), 5);
    for page in pages {
        assert!(examined.contains(&(page, Examined::Moved)));
    }
    bench.check_lives();
}

#[test]
fn ascending_and_descending_keys_lose_no_live_page() {
    for descending in [false, true] {
        let medium = Shared::new(256, 44, 4000);
        let mut bench = Bench::new(medium.clone(), FixedCells::<4, 4>, OPTIONS);
        let key = |number: u32| if descending { 100_000 - number } else { number }.to_be_bytes();
        for number in 0..3000_u32 {
            bench.tree().put(&key(number), &number.to_be_bytes()).unwrap();
            if number % 500 == 499 {
                bench.check_lives();
            }
        }
        verify(&mut bench);
        for number in 0..3000_u32 {
            assert_eq!(bench.tree().get(&key(number)).unwrap(), Some(&number.to_be_bytes()[..]));
        }
        for number in 0..3000_u32 {
            assert!(bench.tree().delete(&key(number)).unwrap());
        }
        assert_eq!((bench.tree().height(), medium.live_count()), (1, 1), "an empty tree is one page");
    }
}
