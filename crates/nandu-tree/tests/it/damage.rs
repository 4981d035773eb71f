//! Damage that a checksum does not show: each invariant is named when it is violated.

use std::ops::Range;

use nandu_media::journal::SectionBody;
use nandu_media::section::{SECTION_FRONT_SIZE, SectionKind};
use nandu_nand::PageAddr;
use nandu_tree::{Durability, FixedCells, Options, Pages, TreeBody};

use crate::medium::{Bench, Shared};

const HEADER: usize = 44;
const NO_PATH: [u8; 2] = [0xFF; 2];

struct Damaged {
    medium: Shared,
    bench: Bench<FixedCells<4, 4>>,
}

impl Damaged {
    fn new() -> Damaged {
        let medium = Shared::new(256, HEADER, 4000);
        let mut bench = Bench::new(
            medium.clone(),
            FixedCells::<4, 4>,
            Options { cache_size: 300, journal_pages: 64, ..Options::DEFAULT },
        );
        for number in 0..400_u32 {
            let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
            bench.tree().put(&key, &number.to_be_bytes()).unwrap();
        }
        assert!(bench.tree().height() >= 3);
        Damaged { medium, bench }
    }

    fn body(&self, page: PageAddr) -> TreeBody {
        TreeBody::parse(&self.medium.bytes(page), HEADER).unwrap()
    }

    /// A live page whose lowest node is a leaf, other than the root's.
    fn leaf_page(&mut self) -> (PageAddr, Range<usize>) {
        let root = self.bench.tree().root();
        let page = self.medium.live_pages().into_iter().find(|&page| page != root && self.body(page).lowest == 0);
        let page = page.unwrap();
        (page, self.body(page).node(0).unwrap())
    }

    fn reopen(&mut self) {
        self.bench.tree = None;
        let memory = crate::medium::memory(256, &self.bench.options);
        let tree = nandu_tree::Tree::open(self.medium.clone(), FixedCells::<4, 4>, self.bench.options, memory);
        self.bench.tree = Some(tree.unwrap());
    }

    fn violations(&mut self) -> Vec<&'static str> {
        let mut found = Vec::new();
        self.bench.tree().verify(&mut |violation| found.push(violation.invariant)).unwrap();
        found
    }
}

#[test]
fn a_sound_tree_has_no_violation() {
    assert_eq!(Damaged::new().violations(), [""; 0]);
}

#[test]
fn t1_keys_that_do_not_ascend() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    damaged.medium.patch(page, node.start + 7..node.start + 15, &[0; 8]);
    assert!(damaged.violations().contains(&"T1"));
}

#[test]
fn t2_separators_on_the_wrong_side_of_one_above_them() {
    let mut damaged = Damaged::new();
    let root = damaged.bench.tree().root();
    let node = damaged.body(root).node(1).unwrap();
    let first = damaged.medium.bytes(root)[node.start + 6];
    damaged.medium.patch(root, node.start + 6..node.start + 7, &[first ^ 0x80]);
    damaged.reopen();
    assert!(damaged.violations().contains(&"T2"));
}

#[test]
fn t12_a_leaf_whose_entries_are_on_the_wrong_side_of_a_separator() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    let first = damaged.medium.bytes(page)[node.start + 3];
    damaged.medium.patch(page, node.start + 3..node.start + 4, &[first ^ 0x80]);
    assert!(damaged.violations().contains(&"T12"));
}

#[test]
fn t3_a_node_that_has_no_child_in_its_page_and_is_not_the_lowest() {
    let mut damaged = Damaged::new();
    let root = damaged.bench.tree().root();
    let body = damaged.body(root);
    let node = body.node(body.height - 1).unwrap();
    let mut bytes = damaged.medium.bytes(root)[node.clone()].to_vec();
    let (count, path) = (usize::from(bytes[0]), usize::from(bytes[2]));
    // The child is named by its page, as if it stood in another: nothing is lost, but the page would outlive its leaf.
    let separators = ((count - 1) * usize::from(bytes[4])).div_ceil(8);
    for bit in 0..12 {
        let at = path * 12 + bit;
        let byte = &mut bytes[10 + separators + at / 8];
        *byte = *byte & !(1 << (at % 8)) | ((root.0 >> bit & 1) as u8) << (at % 8);
    }
    bytes[2..4].copy_from_slice(&NO_PATH);
    damaged.medium.patch(root, node, &bytes);
    assert_eq!(damaged.violations(), ["T3"]);
}

#[test]
fn t4_a_leaf_without_entries() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    damaged.medium.patch(page, HEADER + 10..HEADER + 12, &[7, 0]);
    damaged.medium.patch(page, node.start..node.start + 2, &[0, 0]);
    damaged.medium.patch(page, node.start + 2..node.start + 3, &[0]);
    assert!(damaged.violations().contains(&"T4"));
}

#[test]
fn t5_a_wrong_number_of_entries() {
    let mut damaged = Damaged::new();
    let root = damaged.bench.tree().root();
    let at = HEADER + 10 + 2 * usize::from(damaged.body(root).levels);
    damaged.medium.patch(root, at..at + 1, &[7]);
    damaged.reopen();
    assert_eq!(damaged.violations(), ["T5"]);
}

#[test]
fn t6_a_node_whose_size_contradicts_its_content() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    damaged.medium.patch(page, node.start..node.start + 2, &[200, 0]);
    assert_eq!(damaged.violations(), ["T6"]);
}

#[test]
fn hostile_pages_are_refused_and_never_panic() {
    // Every byte of the front and the nodes of a few pages, with a few values each; lookups, ranges and changes.
    let mut damaged = Damaged::new();
    let root = damaged.bench.tree().root();
    let (leaf, _) = damaged.leaf_page();
    for page in [root, leaf] {
        let bytes = damaged.medium.bytes(page);
        for place in HEADER..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                damaged.medium.patch(page, place..place + 1, &[value]);
                let memory = crate::medium::memory(256, &damaged.bench.options);
                let options = damaged.bench.options;
                damaged.medium.0.borrow_mut().keeps_stale = true;
                let mut left = 40_000;
                if let Ok(mut tree) =
                    nandu_tree::Tree::open(damaged.medium.clone(), FixedCells::<4, 4>, options, memory)
                {
                    for number in 0..20_u32 {
                        let _ = tree.get(&(number * 200_000_000).to_be_bytes());
                    }
                    for direction in [nandu_tree::Direction::Forward, nandu_tree::Direction::Backward] {
                        let _ = tree.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, direction, |_| {
                            left -= 1;
                            std::ops::ControlFlow::Continue(())
                        });
                    }
                    let _ = tree.verify(&mut |_| ());
                    let _ = tree.is_live(leaf);
                }
                assert!(left > 0, "a walk is bounded");
                damaged.medium.patch(page, place..place + 1, &bytes[place..place + 1]);
            }
        }
    }
}

/// Pages of leaves that carry changes of others, with and without a journal page by itself behind them and maps of it: every
/// byte of what they carry, with a few values each.
#[test]
fn hostile_sections_are_refused_and_never_panic() {
    let mut seen = [0; 3];
    let (mut opened, mut refused) = (0, 0);
    for (page_size, pending_size) in [(512, 1200), (1024, 300), (1024, 500)] {
        let options = Options { cache_size: 300, durability: Durability::OnSync, pending_size, ..Options::DEFAULT };
        let medium = Shared::new(page_size, HEADER, 4000);
        let mut bench = Bench::new(medium.clone(), FixedCells::<4, 4>, options);
        let (mut tried, mut last) = ([0; 3], PageAddr(0));
        for number in 0..2000_u32 {
            // Small groups and such that fill the memory; and now and then no journal page is needed any more.
            let mixed = number.wrapping_mul(0x85EB_CA6B) >> 7;
            let key = (mixed % 700).wrapping_mul(2_654_435_761).to_be_bytes();
            bench.tree().put(&key, &number.to_be_bytes()).unwrap();
            if mixed % [3, 20, 50][number as usize / 100 % 3] == 0 {
                bench.tree().sync().unwrap();
                if mixed % 7 == 0 {
                    bench.tree().settle().unwrap();
                }
            }
            // A sync may also come by itself, when the memory is full.
            let page = medium.committed().unwrap();
            if page == std::mem::replace(&mut last, page) {
                continue;
            }
            let bytes = medium.bytes(page);
            let Some(body) = TreeBody::parse(&bytes, HEADER).ok().filter(|body| body.root_present()) else { continue };
            let Some(section) = body.sections.find(SectionKind::Changes) else { continue };
            let said = SectionBody::parse(&bytes, section.clone(), body.format).unwrap();
            let kind = usize::from(said.base.is_some()) + usize::from(said.maps.0 < said.maps.1);
            seen[kind] += 1;
            tried[kind] += 1;
            if tried[kind] > 3 {
                continue;
            }
            for place in section.start - SECTION_FRONT_SIZE..section.end {
                for value in [0, 1, 0x7F, 0xFF, bytes[place] ^ 4] {
                    medium.patch(page, place..place + 1, &[value]);
                    medium.0.borrow_mut().keeps_stale = true;
                    let memory = crate::medium::memory(page_size, &options);
                    match nandu_tree::Tree::open(medium.clone(), FixedCells::<4, 4>, options, memory) {
                        Err(_) => refused += 1,
                        Ok(mut tree) => {
                            opened += 1;
                            for number in 0..20_u32 {
                                let _ = tree.get(&number.wrapping_mul(2_654_435_761).to_be_bytes());
                            }
                            let _ = tree.verify(&mut |_| ());
                        }
                    }
                    medium.0.borrow_mut().keeps_stale = false;
                    medium.patch(page, place..place + 1, &bytes[place..place + 1]);
                }
            }
        }
    }
    println!("{seen:?} sections without base, with one, with maps; {opened} images opened, {refused} refused");
    assert!(seen.iter().all(|&count| count >= 4), "{seen:?}");
    assert!(opened > 100 && refused > 100, "{opened} {refused}");
}
