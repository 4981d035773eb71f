//! Damage that a checksum does not show: each invariant is named when it is violated, and nothing panics.

use std::ops::{Bound, ControlFlow, Range};

use nandu_media::PageKind;
use nandu_media::checksum::page_checksum;
use nandu_media::path::PathBody;
use nandu_nand::PageAddr;
use nandu_sim::{Chip, Sim};
use nandu_tree::{Direction, FixedCells, Options, memory_required};

use crate::bench::Bench;

const OPTIONS: Options = Options { cache_size: 300, ..Options::DEFAULT };
const NO_PATH: [u8; 2] = [0xFF; 2];

/// A volume with a tree of three levels or more, to be damaged.
struct Damaged {
    chip: Sim,
    header_size: usize,
    root: PageAddr,
    pages: Vec<PageAddr>,
}

impl Damaged {
    fn new() -> Damaged {
        let mut bench = Bench::new(Sim::new(Chip::TINY.with_blocks(48)), FixedCells::<4, 4>, OPTIONS);
        for number in 0..900_u32 {
            let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
            bench.engine().put(&key, &number.to_be_bytes()).unwrap();
        }
        let engine = bench.engine();
        assert!(engine.height() >= 3);
        let (root, header_size) = (engine.root(), engine.log().header_size());
        let mut pages = Vec::new();
        engine.live_pages(&mut |page| pages.push(page)).unwrap();
        // Unmounted, so that the newest commit is not copied and stays where it is.
        let chip = bench.unmount();
        Damaged { chip, header_size, root, pages }
    }

    fn bytes(&self, page: PageAddr) -> Vec<u8> {
        self.chip.peek(page)[..256].to_vec()
    }

    fn body(&self, page: PageAddr) -> PathBody {
        let bytes = self.bytes(page);
        let kind = PageKind::from_number(bytes[7]).unwrap();
        PathBody::parse(&bytes, self.header_size, kind).unwrap()
    }

    /// A live page whose lowest node is a leaf, other than the root's.
    fn leaf_page(&self) -> (PageAddr, Range<usize>) {
        let is_leaf = |page: &PageAddr| *page != self.root && self.body(*page).lowest() == 0;
        let page = self.pages.iter().copied().find(is_leaf).unwrap();
        (page, self.body(page).node(0).unwrap())
    }

    /// Writes bytes into a page, and a checksum that fits.
    fn patch(&mut self, page: PageAddr, place: Range<usize>, bytes: &[u8]) {
        let mut whole = self.bytes(page);
        whole[place].copy_from_slice(bytes);
        let crc = page_checksum(&whole[4..]);
        whole[..4].copy_from_slice(&crc.to_le_bytes());
        self.chip.poke(page, &whole);
    }

    fn violations(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        let mut bench = Bench::on(self.chip.clone(), FixedCells::<4, 4>, OPTIONS);
        bench.engine().verify(&mut |violation| found.push(violation.invariant)).unwrap();
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
    damaged.patch(page, node.start + 7..node.start + 15, &[0; 8]);
    assert!(damaged.violations().contains(&"T1"));
}

#[test]
fn t2_separators_on_the_wrong_side_of_one_above_them() {
    let mut damaged = Damaged::new();
    let root = damaged.root;
    let node = damaged.body(root).node(1).unwrap();
    let first = damaged.bytes(root)[node.start + 6];
    damaged.patch(root, node.start + 6..node.start + 7, &[first ^ 0x80]);
    assert!(damaged.violations().contains(&"T2"));
}

#[test]
fn t2_a_leaf_whose_keys_are_on_the_wrong_side_of_a_separator() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    let first = damaged.bytes(page)[node.start + 3];
    damaged.patch(page, node.start + 3..node.start + 4, &[first ^ 0x80]);
    assert!(damaged.violations().contains(&"T2"));
}

#[test]
fn t3_a_node_that_has_no_child_in_its_page_and_is_not_the_lowest() {
    let mut damaged = Damaged::new();
    let root = damaged.root;
    let body = damaged.body(root);
    let node = body.node(body.height() - 1).unwrap();
    let mut bytes = damaged.bytes(root)[node.clone()].to_vec();
    let (count, path) = (usize::from(bytes[0]), usize::from(bytes[2]));
    let page_bits = usize::from(body.format().page_bits);
    // The child is named by its page, as if it stood in another: nothing is lost, but the page would outlive its leaf.
    let separators = ((count - 1) * usize::from(bytes[4])).div_ceil(8);
    for bit in 0..page_bits {
        let at = path * page_bits + bit;
        let byte = &mut bytes[10 + separators + at / 8];
        *byte = *byte & !(1 << (at % 8)) | ((root.0 >> bit & 1) as u8) << (at % 8);
    }
    bytes[2..4].copy_from_slice(&NO_PATH);
    damaged.patch(root, node, &bytes);
    assert_eq!(damaged.violations(), ["T3"]);
}

#[test]
fn t4_a_leaf_without_entries() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    let sizes = damaged.header_size + 10;
    damaged.patch(page, sizes..sizes + 2, &[7, 0]);
    damaged.patch(page, node.start..node.start + 3, &[0, 0, 0]);
    assert!(damaged.violations().contains(&"T4"));
}

#[test]
fn t5_a_wrong_number_of_entries() {
    let mut damaged = Damaged::new();
    let root = damaged.root;
    let at = damaged.header_size + 10 + 2 * usize::from(damaged.body(root).levels());
    damaged.patch(root, at..at + 1, &[7]);
    assert_eq!(damaged.violations(), ["T5"]);
}

#[test]
fn t6_a_node_whose_size_contradicts_its_content() {
    let mut damaged = Damaged::new();
    let (page, node) = damaged.leaf_page();
    damaged.patch(page, node.start..node.start + 2, &[200, 0]);
    assert_eq!(damaged.violations(), ["T6"]);
}

/// Looks at everything, and changes something, as far as that goes.
fn use_it(chip: &mut Sim) -> bool {
    let mut memory = vec![0; memory_required::<Sim>(&chip.chip().geometry, &OPTIONS)];
    let Ok(mut engine) = crate::bench::open(chip, FixedCells::<4, 4>, OPTIONS, &mut memory) else { return false };
    for number in 0..20_u32 {
        let _ = engine.get(&(number * 200_000_000).to_be_bytes());
    }
    let mut left = 40_000;
    for direction in [Direction::Forward, Direction::Backward] {
        let _ = engine.range(Bound::Unbounded, Bound::Unbounded, direction, |_| {
            left -= 1;
            ControlFlow::Continue(())
        });
    }
    assert!(left > 0, "a walk is bounded");
    let _ = engine.verify(&mut |_| ());
    let _ = engine.live_pages(&mut |_| ());
    for number in 0..40_u32 {
        let key = (number * 100_000_000).to_be_bytes();
        let _ = if number % 3 == 0 { engine.delete(&key) } else { engine.put(&key, &[1; 4]) };
    }
    let _ = engine.idle(64);
    true
}

#[test]
fn hostile_pages_are_refused_and_never_panic() {
    // Every byte of the front and the nodes of a few pages, with a few values each; lookups, ranges and changes.
    let mut damaged = Damaged::new();
    let (leaf, _) = damaged.leaf_page();
    let (mut opened, mut refused) = (0, 0);
    for page in [damaged.root, leaf] {
        let bytes = damaged.bytes(page);
        for place in damaged.header_size..bytes.len() {
            for value in [0, 1, 0x7F, 0xFF, bytes[place] ^ 4] {
                damaged.patch(page, place..place + 1, &[value]);
                match use_it(&mut damaged.chip.clone()) {
                    true => opened += 1,
                    false => refused += 1,
                }
                damaged.patch(page, place..place + 1, &bytes[place..place + 1]);
            }
        }
    }
    println!("{opened} images opened, {refused} refused");
    assert!(opened > 500 && refused > 50, "{opened} {refused}");
}
