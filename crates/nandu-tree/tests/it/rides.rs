//! Leaves whose pages carry changes of other leaves, on the log over a simulated chip: power cuts at every operation, in
//! recoveries and in chains, with a collector at work among such pages, beside page values and large values.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_log::{Log, LogError, LogOptions};
use nandu_nand::{BlockAddr, CellMode, Ecc, Geometry, Nand, PageAddr};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};
use nandu_tree::{
    Broken, ByteCells, Direction, Durability, Edit, Examine, OnLog, Options, PageKind, Pages, Stats, Tree,
};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::medium::{Shared, memory};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;
type BoxError = Box<dyn std::error::Error>;
type ChipTree<'m, 'c> = Tree<'m, OnLog<'m, &'c mut Sim>, ByteCells>;

/// What is put besides small values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    PageValues,
    LargeValues,
    /// Values that go into the page of a sync, and page values.
    Residents,
    /// Keys beside those that stay, which come one by one and go many at a time: leaves are parted, and vanish.
    Clusters,
}

/// A chip, and what is done on it.
#[derive(Clone, Copy, Debug)]
struct Scene {
    page_size: u32,
    blocks: u32,
    pending_size: usize,
    beside: Beside,
    keys: u32,
    /// Bytes of values that stay, two in three, so that there are some leaves.
    kept_size: usize,
    is_paired: bool,
    /// Of sixteen calls, how many are syncs.
    sync_count: u32,
    broken: Broken,
}

const KEPT: Broken = Broken::NONE;

const PLAIN: Scene = Scene {
    page_size: 1024,
    blocks: 22,
    pending_size: 700,
    beside: Beside::Nothing,
    keys: 390,
    kept_size: 90,
    is_paired: false,
    sync_count: 5,
    broken: KEPT,
};

/// What was acknowledged as durable, and the states after each call since, that of the call under way too.
#[derive(Clone, Default)]
struct Promise {
    states: Vec<Records>,
    count: u32,
}

fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

fn bytes_of(count: u32, size: usize) -> Vec<u8> {
    (0..size as u32).map(|at| chance(count, at) as u8).collect()
}

impl Scene {
    fn chip(&self) -> Chip {
        let (page_size, ecc) = (self.page_size, Ecc { codeword_size: 256, correctable_bits: 4 });
        let tiny = if self.is_paired { Chip::TINY_MLC } else { Chip::TINY }.with_blocks(self.blocks);
        let geometry = Geometry { page_size, program_unit: page_size, ecc, endurance: 10_000, ..tiny.geometry };
        Chip { geometry, ..tiny }
    }

    fn log(&self) -> LogOptions {
        let bare_streams = if self.has_pages() { 2 } else { 0 };
        LogOptions { bare_streams, ..LogOptions::DEFAULT }
    }

    fn options(&self) -> Options {
        let note_count = if self.has_pages() { 16 } else { 0 };
        let (durability, pending_size) = (Durability::OnSync, self.pending_size);
        let parts_leaves = matches!(self.beside, Beside::PageValues | Beside::Residents | Beside::Clusters);
        Options { cache_size: 512, durability, pending_size, note_count, parts_leaves, ..Options::DEFAULT }
    }

    fn has_pages(&self) -> bool {
        matches!(self.beside, Beside::PageValues | Beside::Residents)
    }

    fn key(&self, number: u32) -> Vec<u8> {
        (number % self.keys).wrapping_mul(0x9E37_79B1).to_be_bytes()[..3].to_vec()
    }

    fn with_tree<T>(
        &self,
        chip: &mut Sim,
        work: impl FnOnce(&mut ChipTree<'_, '_>) -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        let mut log_bytes = vec![0; Log::<Sim>::memory_required(&chip.chip().geometry, &self.log())];
        let mut tree_bytes = vec![0; nandu_tree::memory_required(self.page_size as usize, &self.options())];
        let log = match Log::mount(&mut *chip, self.log(), &mut log_bytes) {
            Err(LogError::NotFormatted) => Err(()),
            other => Ok(other?),
        };
        let log = match log {
            Ok(log) => log,
            Err(()) => Log::format(&mut *chip, self.log(), &mut log_bytes)?,
        };
        let pages = OnLog::new(log);
        let mut tree = match pages.log().committed() {
            None => Tree::create(pages, ByteCells, self.options(), &mut tree_bytes)?,
            Some(_) => Tree::open(pages, ByteCells, self.options(), &mut tree_bytes)?,
        };
        tree.set_broken(self.broken);
        work(&mut tree)
    }

    /// A chip whose leaves have many keys each, whose memory for changes is full, and whose collector is at work.
    fn prepared(&self) -> (Sim, Stats) {
        let mut chip = Sim::new(self.chip());
        let start = Scene { broken: KEPT, ..*self };
        let stats = Cell::new(Stats::default());
        start
            .with_tree(&mut chip, |tree| {
                for number in 0..self.keys {
                    let size = if number.is_multiple_of(3) { 12 } else { self.kept_size };
                    tree.put(&self.key(number), &bytes_of(number, size))?;
                }
                tree.sync()?;
                Ok(())
            })
            .unwrap();
        let mut promise = Promise::default();
        start.work(&mut chip, &mut promise, 1200, &stats).unwrap();
        (chip, stats.get())
    }

    /// Groups of small changes in several leaves, each group synced, and now and then something else.
    fn work(&self, chip: &mut Sim, promise: &mut Promise, calls: u32, stats: &Cell<Stats>) -> Run {
        self.with_tree(chip, |tree| {
            promise.states = vec![contents(tree)?];
            let mut commits = Vec::new();
            for _ in 0..calls {
                let count = promise.count;
                promise.count += 1;
                // Some keys stand in one leaf, which is programmed again and again.
                let key = match chance(count, 5) % 5 {
                    0 | 1 => vec![0xFF, 0xFF, 0xFF, (chance(count, 6) % 30) as u8],
                    _ => self.key(chance(count, 1) / 3 * 3),
                };
                let mut after = promise.states.last().unwrap().clone();
                let mut is_durable = false;
                match chance(count, 2) % 16 {
                    draw if draw < self.sync_count => {
                        tree.sync()?;
                        is_durable = true;
                        commits.extend(tree.pages().committed());
                        if draw < self.sync_count / 2 + 1 {
                            // What the collector does now and then with pages as new as these.
                            let newest = commits.len() - 1;
                            let page = commits[newest.saturating_sub(draw as usize % 2)];
                            tree.examine(Examine { page, moves: true, may_wait: false })?;
                        }
                    }
                    5 => {
                        after.remove(&key);
                        promise.states.push(after);
                        tree.delete(&key)?;
                    }
                    6 => {
                        let other = self.key(chance(count, 3) / 3 * 3);
                        let changed: Records =
                            [(key, bytes_of(count, 8)), (other, bytes_of(count + 1, 16))].into_iter().collect();
                        after.extend(changed.clone());
                        promise.states.push(after);
                        let edits: Vec<Edit<'_>> =
                            changed.iter().map(|(key, value)| Edit { key, value: Some(value) }).collect();
                        tree.batch(&edits)?;
                    }
                    7 | 9 | 10 if self.beside == Beside::Residents => {
                        let key = self.key(chance(count, 1) % 12 * 3);
                        let value = bytes_of(count, self.page_size as usize * 3 / 10 + count as usize % 200);
                        after.insert(key.clone(), value.clone());
                        promise.states.push(after);
                        // One that finds no room there is durable when it returns, and all before it.
                        is_durable = !tree.can_reside(&key, value.len());
                        tree.put(&key, &value)?;
                    }
                    7 | 8 if self.has_pages() => {
                        let key = self.key(chance(count, 1) % 12 * 3);
                        let page = bytes_of(count, self.page_size as usize);
                        after.insert(key.clone(), page.clone());
                        promise.states.push(after);
                        tree.put_page(&key, &page)?;
                    }
                    7..14 if self.beside == Beside::Clusters => {
                        let cluster = self.key(chance(count, 3) % 2 * 3);
                        let is_of_it = |key: &&Vec<u8>| key.len() == 4 && key.starts_with(&cluster);
                        let keys: Vec<Vec<u8>> = after.keys().filter(is_of_it).take(14).cloned().collect();
                        if keys.len() == 14 && chance(count, 4).is_multiple_of(3) {
                            keys.iter().for_each(|key| drop(after.remove(key)));
                            promise.states.push(after);
                            let edits: Vec<Edit<'_>> = keys.iter().map(|key| Edit { key, value: None }).collect();
                            tree.batch(&edits)?;
                        } else {
                            let key = [&cluster[..], &[chance(count, 1) as u8]].concat();
                            let value = bytes_of(count, 50 + count as usize % 60);
                            after.insert(key.clone(), value.clone());
                            promise.states.push(after);
                            tree.put(&key, &value)?;
                        }
                    }
                    7 if self.beside == Beside::LargeValues => {
                        let key = self.key(chance(count, 1) % 6 * 3);
                        let value = bytes_of(count, self.page_size as usize * 2 - 300);
                        after.insert(key.clone(), value.clone());
                        promise.states.push(after);
                        tree.put(&key, &value)?;
                        // Durable when it returns, and all before it.
                        is_durable = true;
                    }
                    _ => {
                        let value = bytes_of(count, 4 + count as usize % 13);
                        after.insert(key.clone(), value.clone());
                        promise.states.push(after);
                        tree.put(&key, &value)?;
                    }
                }
                if is_durable {
                    promise.states.drain(..promise.states.len() - 1);
                }
            }
            stats.set(*tree.stats());
            Ok(())
        })
    }

    fn workload(self, calls: u32) -> impl Fn(&mut Sim, &mut Promise) -> Run {
        move |chip, promise| self.work(chip, promise, calls, &Cell::default())
    }

    /// What was promised is there, page by page as memory has it; and is there when every change has gone to its leaf.
    fn check(self, settles: bool) -> impl Fn(&mut Sim, &Promise) -> Option<Records> {
        move |chip, promise| {
            if promise.states.is_empty() {
                return None;
            }
            let kept = Scene { broken: KEPT, ..self };
            let found = kept.with_tree(chip, |tree| {
                let mut violations = Vec::new();
                tree.verify(&mut |violation| violations.push(violation))?;
                assert_eq!(violations, []);
                let found = contents(tree)?;
                if settles {
                    tree.settle()?;
                    assert!(contents(tree)? == found, "it is other when all changes are in leaves");
                }
                Ok(found)
            });
            let found = found.unwrap();
            assert!(promise.states.contains(&found), "{} states", promise.states.len());
            Some(found)
        }
    }
}

fn contents(tree: &mut ChipTree<'_, '_>) -> Result<Records, BoxError> {
    let mut found = Records::new();
    tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
        found.insert(entry.key.to_vec(), entry.large.map_or(entry.value.to_vec(), |size| vec![0; size]));
        ControlFlow::Continue(())
    })?;
    for (key, value) in &mut found {
        let size = value.len();
        assert_eq!(tree.read(key, 0, value)?, Some(size));
    }
    assert_eq!(found.len() as u64, tree.record_count());
    Ok(found)
}

const PAGE_VALUES: Scene = Scene { beside: Beside::PageValues, blocks: 34, ..PLAIN };
const LARGE_VALUES: Scene = Scene { beside: Beside::LargeValues, blocks: 27, sync_count: 3, ..PLAIN };
const RESIDENTS: Scene = Scene { beside: Beside::Residents, blocks: 40, pending_size: 1400, ..PLAIN };
const CLUSTERS: Scene = Scene { beside: Beside::Clusters, ..PLAIN };
/// With fewer blocks changes go to their leaves before they can ride, since the chip is nearly full.
const LARGE_PAGES: Scene =
    Scene { page_size: 2048, blocks: 25, pending_size: 1200, sync_count: 2, keys: 600, kept_size: 150, ..PLAIN };

/// What a run does that is not cut: leaves ride, some find no room, and the collector moves pages that carry changes.
fn is_worth_cutting(scene: Scene, chip: &Sim, calls: u32) {
    let stats = Cell::new(Stats::default());
    scene.work(&mut chip.clone(), &mut Promise::default(), calls, &stats).unwrap();
    let stats = stats.get();
    println!("{stats:?}");
    if scene.beside == Beside::Clusters {
        assert!(stats.parted >= 4 && stats.rides >= 4, "{scene:?}: {stats:?}");
        return;
    }
    assert!(stats.rides >= 8, "{scene:?}: {stats:?}");
    assert!(stats.moved_rides >= 1 && stats.outlived >= 2, "{scene:?}: {stats:?}");
}

fn every_cut(scene: Scene, calls: u32) {
    let (chip, _) = scene.prepared();
    is_worth_cutting(scene, &chip, calls);
    let summary = Driver::new(chip).every(scene.workload(calls), scene.check(true));
    println!("{summary:?}");
    assert!(summary.cases > 300, "{summary:?}");
}

#[test]
fn every_cut_among_rides() {
    every_cut(PLAIN, 80);
}

#[test]
fn every_cut_among_rides_on_larger_pages() {
    every_cut(LARGE_PAGES, 80);
}

#[test]
fn every_cut_among_leaves_that_are_parted_and_that_vanish() {
    every_cut(CLUSTERS, 200);
}

#[test]
fn every_cut_among_rides_and_page_values() {
    every_cut(PAGE_VALUES, 120);
}

#[test]
fn every_cut_among_values_in_the_pages_of_syncs() {
    let (chip, stats) = RESIDENTS.prepared();
    println!("{stats:?}");
    assert!(stats.residents > 50 && stats.moved_residents > 3, "{stats:?}");
    let summary = Driver::new(chip).every(RESIDENTS.workload(80), RESIDENTS.check(true));
    println!("{summary:?}");
    assert!(summary.cases > 300, "{summary:?}");
}

#[test]
fn every_cut_among_rides_and_large_values() {
    every_cut(LARGE_VALUES, 80);
}

#[test]
fn every_cut_among_rides_on_a_chip_whose_pages_are_paired() {
    let scene = Scene { is_paired: true, blocks: 48, ..PLAIN };
    let (chip, _) = scene.prepared();
    is_worth_cutting(scene, &chip, 80);
    let summary = Driver::new(chip).resume().every(scene.workload(80), scene.check(false));
    println!("{summary:?}");
    assert!(summary.cases > 300, "{summary:?}");
}

/// The second cut is in what opens the tree, in the merges before the first change, or in a sync that takes a leaf along.
#[test]
fn a_cut_among_rides_and_another_in_what_follows() {
    let go_on = |scene: Scene| {
        move |chip: &mut Sim| -> Run {
            scene.with_tree(chip, |tree| {
                for key in [&b"a"[..], b"z"] {
                    tree.put(key, b"")?;
                }
                tree.sync()?;
                for key in [&b"a"[..], b"z"] {
                    tree.delete(key)?;
                }
                tree.sync()?;
                Ok(())
            })
        }
    };
    for scene in [PLAIN, PAGE_VALUES, RESIDENTS, CLUSTERS] {
        let (chip, _) = scene.prepared();
        let driver = Driver::new(chip).limit(1_500);
        let summary = driver.pairs(scene.workload(60), go_on(scene), scene.check(false));
        println!("{summary:?}");
        assert!(summary.cases > 1_000, "{summary:?}");
    }
}

fn recover(scene: Scene) -> impl Fn(&mut Sim) -> Run {
    move |chip| scene.with_tree(chip, |_| Ok(()))
}

/// Chains of cuts, `NANDU_CHAINS` of each kind; sixty are the short form.
#[test]
fn chains_of_cuts_among_rides() {
    let count: u64 = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    for (scene, seed) in
        [(PLAIN, 3), (LARGE_PAGES, 4), (PAGE_VALUES, 5), (LARGE_VALUES, 6), (RESIDENTS, 7), (CLUSTERS, 8)]
    {
        let (chip, _) = scene.prepared();
        let driver = Driver::new(chip).resume().seed(seed);
        let summary = driver.random(count, scene.workload(100), recover(scene), scene.check(false));
        println!("{summary:?}");
        assert!(summary.cuts > 2 * count, "{summary:?}");
    }
}

/// A page whose leaf is programmed elsewhere stays as long as the changes in it are needed. The medium sees to it that no page
/// superseded is read.
#[test]
fn a_page_that_is_forgotten_although_its_changes_are_needed_is_found_out() {
    let found = |broken: Broken| {
        let run = || {
            let options = Options { pending_size: 2500, ..PLAIN.options() };
            let scene = Scene { keys: 3000, ..PLAIN };
            let (mut rides, mut outlived) = (0, 0);
            let medium = Shared::new(1024, 44, 4000);
            let bytes = || memory(1024, &options);
            let mut tree = Tree::create(medium.clone(), ByteCells, options, bytes()).unwrap();
            for number in 0..8000 {
                tree.set_broken(broken);
                // Half of the keys stand in one leaf, which is programmed again and again.
                let hot = vec![0xFF, 0xFF, 0xFF, (chance(number, 6) % 30) as u8];
                let key = if chance(number, 7).is_multiple_of(2) { hot } else { scene.key(chance(number, 1)) };
                tree.put(&key, &bytes_of(number, 12)).unwrap();
                if chance(number, 2).is_multiple_of(9) {
                    tree.sync().unwrap();
                }
                if number % 500 == 499 {
                    rides += tree.stats().rides;
                    outlived += tree.stats().outlived;
                    drop(tree);
                    tree = Tree::open(medium.clone(), ByteCells, options, bytes()).unwrap();
                }
            }
            println!("{rides} leaves rode, {outlived} pages were needed longer than their leaves");
            assert!(outlived > 20, "{outlived}");
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).err()
    };
    assert!(found(KEPT).is_none());
    let payload = found(Broken { forget_rides: true, ..KEPT });
    let message = payload.and_then(|payload| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    assert!(["is read after it was superseded", "Corrupt"].iter().any(|loss| message.contains(loss)), "{message}");
}

/// The pages of a chip.
fn image(chip: &Sim) -> Vec<Vec<u8>> {
    let geometry = chip.chip().geometry;
    let main = geometry.page_size as usize;
    (0..geometry.page_count()).map(|page| chip.peek(PageAddr(page))[..main].to_vec()).collect()
}

fn chip_with(scene: Scene, pages: &[Vec<u8>]) -> Sim {
    let mut chip = Sim::new(scene.chip());
    for block in 0..scene.blocks {
        chip.erase(BlockAddr(block), CellMode::Slc).unwrap();
    }
    for (page, bytes) in (0..).map(PageAddr).zip(pages) {
        if bytes.iter().any(|&byte| byte != 0xFF) {
            chip.poke(page, bytes);
        }
    }
    chip
}

/// Where pages of the tree say what is in journal pages, bytes are changed and pages swapped, with checksums that are right.
#[test]
fn hostile_images_with_rides_do_no_harm() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut opened = 0;
    for scene in [PLAIN, PAGE_VALUES, RESIDENTS, CLUSTERS] {
        let (chip, _) = scene.prepared();
        let original = image(&chip);
        let is_tree = |bytes: &[u8]| {
            nandu_media::Page::parse(bytes).is_ok_and(|page| matches!(page.kind(), PageKind::Tree | PageKind::Journal))
        };
        let trees: Vec<usize> = (0..original.len()).filter(|&page| is_tree(&original[page])).collect();
        for _ in 0..400 {
            let mut pages = original.clone();
            for _ in 0..random.random_range(1..5) {
                let page = trees[random.random_range(0..trees.len())];
                let other = trees[random.random_range(0..trees.len())];
                match random.random_range(0..8) {
                    0 => pages[page] = original[other].clone(),
                    1 => pages[page].fill(0xFF),
                    _ => {
                        let at = random.random_range(44..pages[page].len());
                        pages[page][at] = random.random();
                        let crc = nandu_media::checksum::checksum(&pages[page][4..]).to_le_bytes();
                        pages[page][..4].copy_from_slice(&crc);
                    }
                }
            }
            let mut chip = chip_with(scene, &pages);
            let outcome = scene.with_tree(&mut chip, |tree| {
                let before = tree.pages().log().nand().operation_count();
                let _ = tree.verify(&mut |_| ());
                for number in 0..30 {
                    let _ = tree.get(&scene.key(number)).is_ok();
                    let _ = tree.put(&scene.key(7 * number), &[1; 9]).is_ok();
                    if number % 4 == 0 {
                        let _ = tree.sync();
                    }
                }
                let _ = tree.settle();
                let operations = tree.pages().log().nand().operation_count() - before;
                assert!(operations < 200_000, "{operations} operations");
                Ok(())
            });
            opened += u32::from(outcome.is_ok());
        }
    }
    println!("{opened} opened");
    assert!(opened > 150, "{opened}");
}
