//! Values of exactly a page, on pages in memory that are strict about what lives.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_nand::PageAddr;
use nandu_tree::{
    ByteCells, Direction, Durability, Edit, Examine, Examined, FixedCells, Options, PAGE_KEY_SIZE_MAX, Pages, Stats,
    Tree, TreeError,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::medium::{Shared, memory};

const ON_SYNC: Options = Options {
    cache_size: 300,
    journal_pages: 256,
    durability: Durability::OnSync,
    pending_size: 900,
    note_count: 24,
    ..Options::DEFAULT
};
const IMMEDIATE: Options = Options { durability: Durability::Immediate, ..ON_SYNC };

type Records = BTreeMap<Vec<u8>, Vec<u8>>;
type TestTree = Tree<'static, Shared, ByteCells>;

fn create(medium: &Shared, options: Options) -> TestTree {
    Tree::create(medium.clone(), ByteCells, options, memory(medium.page_size(), &options)).unwrap()
}

fn open(medium: &Shared, options: Options) -> TestTree {
    Tree::open(medium.clone(), ByteCells, options, memory(medium.page_size(), &options)).unwrap()
}

fn records(tree: &mut TestTree) -> Records {
    let mut found = Records::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.large.map_or(entry.value.to_vec(), |size| vec![0; size]));
        ControlFlow::Continue(())
    })
    .unwrap();
    for (key, value) in &mut found {
        let size = value.len();
        assert_eq!(tree.read(key, 0, value).unwrap(), Some(size));
    }
    found
}

fn check_sound(tree: &mut TestTree, medium: &Shared) {
    let mut violations = Vec::new();
    tree.verify(&mut |violation| violations.push(violation)).unwrap();
    assert_eq!(violations, []);
    let mut live = Vec::new();
    tree.live_pages(&mut |page| live.push(page)).unwrap();
    live.sort();
    assert_eq!(live, medium.live_pages());
}

/// Has the medium ask about a page before the next change.
fn ask_about(medium: &Shared, random: &mut ChaCha8Rng) {
    let pages = medium.live_pages();
    let page = pages[random.random_range(0..pages.len())];
    medium.0.borrow_mut().to_examine.push(page);
}

/// How a workload is made.
#[derive(Clone, Copy)]
struct Shape {
    page_size: usize,
    pages_per_block: u32,
    key_count: u32,
    /// Bytes in front of the number in a key.
    prefix: usize,
    /// Whether programs of bare pages fail now and then.
    fails: bool,
    /// Whether values that are too large for a leaf and smaller than a page are put.
    has_residents: bool,
}

const SMALL: Shape =
    Shape { page_size: 256, pages_per_block: 8, key_count: 60, prefix: 0, fails: false, has_residents: false };

/// Page values and small ones, put, replaced and deleted, with syncs, moves, failing programs and cuts between any two
/// calls. After a cut the tree holds what it held at the last sync or after a change since then.
fn survive_cuts(options: Options, shape: Shape) {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut cuts, mut pages) = (0, 0);
    for round in 0..40 {
        let medium = Shared::with_bare(shape.page_size, 44, 4000, 400, shape.pages_per_block);
        let mut tree = create(&medium, options);
        // The states since the last sync, that one first.
        let mut states = vec![Records::new()];
        let key_count = shape.key_count / 4 + shape.key_count * (round % 4) / 4;
        for _ in 0..500 {
            let mut records_now = states.last().unwrap().clone();
            let number = random.random_range(0..key_count);
            let key = [&[9; PAGE_KEY_SIZE_MAX][..shape.prefix], &number.to_be_bytes()[2..]].concat();
            if shape.fails && random.random_range(0..40) == 0 {
                medium.fail_bare_after(random.random_range(0..12));
            }
            medium.0.borrow_mut().is_short = random.random_range(0..10) == 0;
            match random.random_range(0..60) {
                0..22 => {
                    let page: Vec<u8> = (0..shape.page_size).map(|_| random.random()).collect();
                    let existed = records_now.insert(key.clone(), page.clone()).is_some();
                    assert_eq!(tree.put_page(&key, &page).unwrap(), existed);
                    pages += 1;
                }
                22..26 if shape.has_residents => {
                    let size = shape.page_size * 3 / 10 + random.random_range(0..shape.page_size / 8);
                    let value: Vec<u8> = (0..size).map(|_| random.random()).collect();
                    let existed = records_now.insert(key.clone(), value.clone()).is_some();
                    let waits = tree.can_reside(&key, size);
                    assert_eq!(tree.put(&key, &value).unwrap(), existed);
                    if !waits {
                        // Durable when it returns, and all before it.
                        states.clear();
                    }
                }
                22..30 => {
                    let value = vec![random.random::<u8>(); random.random_range(0..=20)];
                    let existed = records_now.insert(key.clone(), value.clone()).is_some();
                    assert_eq!(tree.put(&key, &value).unwrap(), existed);
                }
                30..37 => {
                    let existed = records_now.remove(&key).is_some();
                    assert_eq!(tree.delete(&key).unwrap(), existed);
                }
                37..40 => {
                    let other = [&key[..key.len() - 1], &[255]].concat();
                    if other > key {
                        let value = vec![random.random::<u8>(); 5];
                        records_now.insert(key.clone(), value.clone());
                        records_now.remove(&other);
                        tree.batch(&[Edit { key: &key, value: Some(&value) }, Edit { key: &other, value: None }])
                            .unwrap();
                    }
                }
                40..50 => {
                    tree.sync().unwrap();
                    states = vec![states.pop().unwrap()];
                    continue;
                }
                50..54 => {
                    for _ in 0..4 {
                        ask_about(&medium, &mut random);
                    }
                    continue;
                }
                54 => {
                    let expected = records_now.get(&key);
                    assert_eq!(tree.value_len(&key).unwrap(), expected.map(Vec::len));
                    let mut part = [0; 100];
                    let offset = random.random_range(0..shape.page_size + 20);
                    let found = tree.read(&key, offset, &mut part).unwrap().map(|size| part[..size].to_vec());
                    let rest = |value: &Vec<u8>| value.iter().skip(offset).take(100).copied().collect::<Vec<_>>();
                    assert_eq!(found, expected.map(rest));
                    continue;
                }
                55 => {
                    check_sound(&mut tree, &medium);
                    continue;
                }
                _ => {
                    cuts += 1;
                    medium.0.borrow_mut().to_examine.clear();
                    drop(tree);
                    medium.cut();
                    tree = open(&medium, options);
                    if random.random_range(0..2) == 0 {
                        // Changes go on before anything was looked at.
                        let found = tree.record_count();
                        assert!(states.iter().any(|state| state.len() as u64 == found));
                        let page = medium.live_pages()[0];
                        tree.examine(Examine { page, moves: true, may_wait: false }).unwrap();
                    }
                    let found = records(&mut tree);
                    assert!(states.contains(&found), "round {round}");
                    assert_eq!(tree.record_count(), found.len() as u64);
                    states = vec![found];
                    continue;
                }
            }
            if options.durability == Durability::Immediate {
                states.clear();
            }
            states.push(records_now);
        }
        medium.0.borrow_mut().to_examine.clear();
        assert_eq!(records(&mut tree), *states.last().unwrap());
        tree.sync().unwrap();
        check_sound(&mut tree, &medium);
        tree.settle().unwrap();
        drop(tree);
        let immediate = Options { pending_size: 0, ..IMMEDIATE };
        assert_eq!(records(&mut open(&medium, immediate)), *states.last().unwrap());
    }
    assert!(cuts > 500 && pages > 3000, "{cuts} cuts, {pages} pages");
}

#[test]
fn a_cut_leaves_a_sync_of_page_values() {
    survive_cuts(ON_SYNC, SMALL);
    survive_cuts(ON_SYNC, Shape { page_size: 512, pages_per_block: 16, key_count: 200, prefix: 9, ..SMALL });
}

#[test]
fn a_cut_leaves_a_sync_of_values_in_its_page() {
    survive_cuts(ON_SYNC, Shape { has_residents: true, ..SMALL });
    let larger = Shape { page_size: 512, pages_per_block: 16, key_count: 200, prefix: 9, ..SMALL };
    survive_cuts(ON_SYNC, Shape { has_residents: true, ..larger });
}

/// A value of 2 KB and two small ones, each time in other leaves, are one program with the sync, and a read is one read.
#[test]
fn a_value_of_half_a_page_goes_into_the_page_of_its_sync() {
    let options = Options { cache_size: 8192, pending_size: 16_384, note_count: 64, ..ON_SYNC };
    let medium = Shared::with_bare(4096, 44, 4000, 40, 16);
    let mut tree = create(&medium, options);
    let key = |kind: u8, number: u32| [&number.wrapping_mul(0x9E37_79B1).to_be_bytes()[..], &[kind]].concat();
    let value = |number: u32| -> Vec<u8> { (0..2048).map(|at| (number * 7 + at) as u8).collect() };
    let round = |tree: &mut TestTree, number: u32| {
        tree.put(&key(0, number), &[1; 40]).unwrap();
        tree.put(&key(1, number), &[2; 40]).unwrap();
        assert!(number < 3 || tree.can_reside(&key(2, number), 2048), "{number}");
        tree.put(&key(2, number), &value(number)).unwrap();
        tree.sync().unwrap();
    };
    (0..500).for_each(|number| round(&mut tree, number));
    let before = medium.0.borrow().counts;
    (500..1000).for_each(|number| round(&mut tree, number));
    let programs = medium.0.borrow().counts.programs - before.programs;
    println!("{programs} programs for 500 syncs, {:?}", tree.stats());
    assert!(programs < 750, "{programs}");
    check_sound(&mut tree, &medium);
    let mut reads = 0;
    for number in 0..1000 {
        let mut found = vec![0; 2100];
        tree.value_len(&key(2, number)).unwrap();
        let before = medium.0.borrow().counts.reads;
        assert_eq!(tree.read(&key(2, number), 0, &mut found).unwrap(), Some(2048));
        reads += medium.0.borrow().counts.reads - before;
        assert_eq!(found[..2048], value(number));
    }
    assert!(reads <= 2000, "{reads}");
    // What is replaced and deleted leaves no page behind.
    for number in 0..1000 {
        tree.put(&key(2, number), b"small").unwrap();
        tree.delete(&key(1, number)).unwrap();
    }
    tree.settle().unwrap();
    check_sound(&mut tree, &medium);
    assert!(medium.live_pages().len() < 60, "{}", medium.live_pages().len());
}

#[test]
fn a_cut_leaves_every_page_value_that_is_durable_at_once() {
    survive_cuts(IMMEDIATE, SMALL);
    survive_cuts(IMMEDIATE, Shape { page_size: 512, pages_per_block: 16, key_count: 200, prefix: 9, ..SMALL });
}

#[test]
fn programs_of_bare_pages_may_fail() {
    survive_cuts(ON_SYNC, Shape { fails: true, ..SMALL });
    survive_cuts(IMMEDIATE, Shape { fails: true, pages_per_block: 16, ..SMALL });
}

#[test]
fn a_page_value_that_is_no_such_thing_is_refused() {
    let medium = Shared::with_bare(256, 44, 100, 20, 8);
    let mut tree = create(&medium, ON_SYNC);
    assert_eq!(tree.put_page(&[1; PAGE_KEY_SIZE_MAX + 1], &[0; 256]), Err(TreeError::KeySize(13)));
    assert_eq!(tree.put_page(b"key", &[0; 255]), Err(TreeError::ValueSize(255)));
    assert_eq!(tree.snapshot(), Err(TreeError::NoSnapshots));
    let without = Options { note_count: 0, ..ON_SYNC };
    let other = Shared::with_bare(256, 44, 100, 20, 8);
    assert_eq!(create(&other, without).put_page(b"key", &[0; 256]), Err(TreeError::NoPageValues));
    assert_eq!(create(&Shared::new(256, 44, 100), ON_SYNC).put_page(b"key", &[0; 256]), Err(TreeError::NoPageValues));
    let medium = Shared::with_bare(256, 44, 100, 20, 8);
    let mut fixed = Tree::create(medium, FixedCells::<4, 4>, ON_SYNC, memory(256, &ON_SYNC)).unwrap();
    assert_eq!(fixed.put_page(&[1; 4], &[0; 256]), Err(TreeError::NoPageValues));
}

#[test]
fn a_volume_with_notes_needs_memory_for_them() {
    let medium = Shared::with_bare(512, 44, 100, 20, 16);
    let mut tree = create(&medium, IMMEDIATE);
    for number in 0..12_u8 {
        tree.put_page(&[number * 20], &[number; 512]).unwrap();
    }
    drop(tree);
    let few = Options { note_count: 8, ..IMMEDIATE };
    let outcome = Tree::open(medium.clone(), ByteCells, few, memory(512, &few)).map(|_| ());
    assert_eq!(outcome, Err(TreeError::NoteCount(12)));
    let mut tree = open(&medium, IMMEDIATE);
    let mut page = [0; 512];
    assert_eq!(tree.read(&[220], 0, &mut page), Ok(Some(512)));
    assert_eq!(page, [11; 512]);
}

const HEADER: usize = 44;

fn violations(tree: &mut TestTree) -> Vec<&'static str> {
    let mut found = Vec::new();
    tree.verify(&mut |violation| found.push(violation.invariant)).unwrap();
    found
}

/// Twelve page values of which seven fill a block, and the page where its Summary stands.
fn filled() -> (Shared, TestTree, PageAddr) {
    let medium = Shared::with_bare(256, HEADER, 100, 20, 8);
    let mut tree = create(&medium, IMMEDIATE);
    for number in 0..12_u8 {
        tree.put_page(&[b'k', number], &[number; 256]).unwrap();
    }
    let first = medium.live_pages().into_iter().find(|&page| medium.is_bare(page)).unwrap();
    let last = medium.last_of_block(first);
    assert_eq!(violations(&mut tree), [""; 0]);
    (medium, tree, last)
}

#[test]
fn t9_a_page_that_does_not_have_its_checksum() {
    let (medium, mut tree, last) = filled();
    medium.patch(PageAddr(last.0 - 3), 100..101, &[77]);
    assert_eq!(violations(&mut tree), ["T9"]);
    let outcome = tree.read(&[b'k', 4], 0, &mut [0; 256]);
    assert!(matches!(outcome, Err(TreeError::Corrupt { page, .. }) if page.0 == last.0 - 3), "{outcome:?}");
}

#[test]
fn t9_a_summary_that_names_another_key() {
    let (medium, mut tree, last) = filled();
    // Behind header, front, skip, page, more and sizes of keys: the first key, with which all others go.
    let at = HEADER + 4 + 1 + 4 + 2;
    assert_eq!(medium.bytes(last)[at..at + 2], [b'k', 0]);
    medium.patch(last, at + 1..at + 2, &[100]);
    assert_eq!(violations(&mut tree), ["T9"; 7]);
}

#[test]
fn a_summary_that_once_reads_as_erased_still_names_its_pages() {
    let (medium, mut tree, last) = filled();
    medium.0.borrow_mut().erased_reads = 1;
    let page = PageAddr(last.0 - 3);
    assert_eq!(tree.examine(Examine { page, moves: false, may_wait: false }).unwrap(), Examined::Live);
    check_sound(&mut tree, &medium);
}

/// Cuts leave blocks behind that commits name a Summary of. They are emptied where there are many, also beside one whose Summary is lost.
#[test]
fn a_summary_that_is_lost_does_not_keep_other_blocks_from_being_emptied() {
    let medium = Shared::with_bare(512, HEADER, 400, 60, 64);
    let mut tree = create(&medium, IMMEDIATE);
    let mut lost = None;
    for round in 0..36_u8 {
        for number in 0..40_u8 {
            let key = [b'k', round % 12, number];
            tree.put_page(&key, &[round; 512]).unwrap_or_else(|error| panic!("round {round}, {number}: {error}"));
        }
        if lost.is_none() {
            lost = medium.summaries().first().copied();
            lost.into_iter().for_each(|page| medium.lose(page));
        }
        let medium = tree.close();
        medium.cut();
        tree = open(&medium, IMMEDIATE);
    }
    assert!(lost.is_some());
    let found = records(&mut tree);
    assert_eq!(found.len(), 12 * 40);
    assert!(found.iter().all(|(key, value)| *value == [24 + key[1]; 512]));
}

#[test]
fn pages_whose_summary_is_lost_are_found_in_the_leaves() {
    let (medium, mut tree, last) = filled();
    tree.delete(&[b'k', 2]).unwrap();
    medium.lose(last);
    let mut outcomes = Vec::new();
    for page in last.0 - 7..=last.0 {
        outcomes.push(tree.examine(Examine { page: PageAddr(page), moves: true, may_wait: false }).unwrap());
    }
    // The first one takes all of its leaf along.
    assert_eq!(outcomes[0], Examined::Moved);
    assert!(outcomes[1..].iter().all(|&outcome| outcome == Examined::Dead), "{outcomes:?}");
    let found = records(&mut tree);
    let expected: Records = (0..12).filter(|&n| n != 2).map(|n: u8| (vec![b'k', n], vec![n; 256])).collect();
    assert_eq!(found, expected);
    check_sound(&mut tree, &medium);
}

/// Programs that some calls cost.
fn programs(medium: &Shared, work: impl FnOnce()) -> u64 {
    let before = medium.counts().programs;
    work();
    medium.counts().programs - before
}

/// A file of 400 pages, on pages of 2 KiB and blocks of 64, with an entry for each of them in leaves.
fn file() -> (Shared, TestTree) {
    let medium = Shared::with_bare(2048, HEADER, 4000, 100, 64);
    let options = Options { cache_size: 8192, pending_size: 4096, note_count: 64, ..ON_SYNC };
    let mut tree = create(&medium, options);
    for index in 0..400 {
        tree.put_page(&page_key(index), &[index as u8; 2048]).unwrap();
    }
    tree.settle().unwrap();
    (medium, tree)
}

fn page_key(index: u32) -> Vec<u8> {
    [&[0, 0, 0, 0, 0, 7, 0x20][..], &index.to_be_bytes()].concat()
}

#[test]
fn a_page_put_and_synced_costs_two_programs() {
    let (medium, mut tree) = file();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut costs = BTreeMap::new();
    let before = *tree.stats();
    for round in 0..2000_u32 {
        let key = page_key(random.random_range(0..400));
        let cost = programs(&medium, || {
            tree.put_page(&key, &[round as u8; 2048]).unwrap();
            tree.sync().unwrap();
        });
        *costs.entry(cost).or_insert(0) += 1;
    }
    println!("{costs:?}");
    // A Summary for each 63 pages at the end of their block. No leaf was split; where one had no room for notes, a journal page took them.
    assert_eq!(costs, [(2, 1968), (3, 32)].into());
    let after = *tree.stats();
    assert_eq!(Stats { journals: before.journals, ..after }, before);
    assert!(after.journals > before.journals, "{after:?}");
}

#[test]
fn a_stream_of_pages_costs_a_program_each_and_a_sync_one() {
    let (medium, mut tree) = file();
    let mut costs = Vec::new();
    for round in 0..6_u8 {
        costs.push(programs(&medium, || {
            for index in 0..60 {
                tree.put_page(&page_key(60 * u32::from(round) + index), &[round; 2048]).unwrap();
            }
            tree.sync().unwrap();
        }));
    }
    println!("{costs:?}");
    // The pages, a Summary, the sync, and the leaf of earlier changes, which takes these.
    assert_eq!(costs, [63; 6]);
}

#[test]
fn deleting_a_page_and_reading_one_cost_one_operation() {
    let (medium, mut tree) = file();
    let cost = programs(&medium, || {
        assert!(tree.delete(&page_key(9)).unwrap());
        tree.sync().unwrap();
    });
    assert_eq!(cost, 1);
    let mut page = [0; 2048];
    assert_eq!(tree.read(&page_key(10), 0, &mut page).unwrap(), Some(2048));
    let before = medium.counts().reads;
    assert_eq!(tree.read(&page_key(11), 0, &mut page).unwrap(), Some(2048));
    assert_eq!((medium.counts().reads - before, page), (1, [11; 2048]));
}

#[test]
fn pages_of_one_leaf_are_moved_with_one_program_for_it() {
    let (medium, mut tree) = file();
    let victim = medium.live_pages().into_iter().find(|&page| medium.is_bare(page)).unwrap();
    let cost = programs(&medium, || {
        let outcome = tree.examine(Examine { page: victim, moves: true, may_wait: false });
        assert_eq!(outcome, Ok(Examined::Moved));
    });
    assert_eq!(cost, 33);
}

/// Notes take room from journal pages, so that two of these do not become one although their changes would fit: then a leaf is
/// merged. Were one of them programmed again instead, that would go on for ever.
#[test]
fn a_crowded_list_of_journal_pages_is_shortened_beside_many_notes() {
    let options = Options { pending_size: 4000, note_count: 64, ..ON_SYNC };
    let medium = Shared::with_bare(512, 44, 4000, 20, 64);
    let mut tree = Tree::create(medium.clone(), ByteCells, options, memory(512, &options)).unwrap();
    let key = |number: u32| number.wrapping_mul(0x9E37_79B1).to_be_bytes();
    for number in 0..3000_u32 {
        // More programs for one call than any has to make.
        medium.0.borrow_mut().fail_after = Some(100);
        if number % 60 < 20 && number < 1200 {
            tree.put_page(&key(number % 60), &[number as u8; 512]).unwrap();
        }
        tree.put(&key(100 + number % 900), &[number as u8; 24]).unwrap();
        if number % 5 == 0 {
            tree.sync().unwrap();
        }
    }
    medium.0.borrow_mut().fail_after = None;
}
