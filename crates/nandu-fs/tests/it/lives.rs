//! Lives of file systems in which the power goes at every program, see [`nandu_suite::lives`].

use nandu_fs::placement::{PlacementOptions, WearPromise};
use nandu_fs::{Attributes, Broken, Ino, LogOptions, Options};
use nandu_nand::{Geometry, Pairing, TearScope};
use nandu_sim::{Chip, Sim};
use nandu_suite::cuts::choose;
use nandu_suite::lives::{self, Count, OVERWRITTEN_PAGES, Way, choose_overwriting, live};
use nandu_suite::{Chance, Model, Op, SMALL};

use crate::rig::{Nandu, OPTIONS, formatted_with, fresh};

/// Every operation there is.
const VARIED: Way = Way::varied(SMALL.with_blocks(44));

/// Pages of two files are overwritten again and again (T14).
const OVERWRITING: Way = Way::overwriting(SMALL.with_blocks(26));

/// Pages are cut short and written over in small parts again and again, so that fragments lie over them and go.
const COVERING: Way = Way { choose: choose_covering, round_operations: 45, ..OVERWRITING };

/// A truncation lays zeros over a page, some bytes behind them are written, and now and then something else fills the memory for changes.
fn choose_covering(_: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::new(seed.wrapping_mul(1_000_033).wrapping_add(number));
    let name: &'static [u8] = [b"a", b"b"][chance.below(2)];
    let count = 1 + chance.below(page_size / 8);
    let small = chance.bytes(count);
    let first = page_size * chance.below(6);
    match chance.below(32) {
        0 => Op::Sync,
        1 => Op::Create(vec![name]),
        2 | 3 => Op::Write(vec![name], first as u64, chance.bytes(page_size)),
        4..=11 => Op::Truncate(vec![name], (first + chance.below(page_size / 4)) as u64),
        12..=19 => Op::Write(vec![name], (first + chance.below(page_size)) as u64, small),
        _ => Op::Write(vec![name], (first + page_size - 1 - chance.below(page_size / 8)) as u64, small),
    }
}

/// Blocks with one bit in a cell and with two: what is destroyed with a page are pages acknowledged long before.
pub(crate) const PAIRED_CHIP: Chip = {
    let geometry = Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, pages_per_block: 16, ..SMALL.geometry };
    Chip { name: "small-paired", geometry, ..SMALL }.with_blocks(44)
};

const PAIRED: Way = Way { chip: PAIRED_CHIP, choose: choose_pages, round_operations: 25, steps: (60, 40) };

/// The same on a chip that is worn unevenly ([`worn`]), with rests so long that wear is evened.
const WORN: Way = Way { choose: choose_overwriting, steps: (120, 80), ..PAIRED };

/// Erases of the most worn block of such a chip: more than the least difference that is evened. Lives alone wear a block four times at most.
const ERASES_WORN: u32 = 24;

/// A chip with a file that never changes, in blocks that were erased once, while others were erased for a file that was written over and over. There
/// was no time without requests in which that could have been evened.
fn worn() -> Sim {
    let (options, page_size) = (placed(), PAIRED_CHIP.geometry.page_size as usize);
    let mut fs = fresh(PAIRED_CHIP, options);
    let attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };
    let [kept, changed] = [b"c", b"a"].map(|name| fs.create(Ino::ROOT, name, attributes).unwrap());
    fs.write_at(kept, 0, &vec![7; 90 * page_size]).unwrap();
    fs.sync().unwrap();
    while fs.stats().erase_count_max < ERASES_WORN {
        fs.write_at(changed, 0, &vec![8; OVERWRITTEN_PAGES * page_size]).unwrap();
        fs.sync().unwrap();
    }
    fs.unmount().unwrap()
}

/// Placed by policy, with windows so short that all they decide happens within a life.
pub(crate) fn placed() -> Options {
    let options = Options { copy_count: 8, ..OPTIONS }.both_modes(&PAIRED_CHIP.geometry);
    let policies = PlacementOptions {
        window_pages: 12,
        free_blocks_min: 2,
        gc_free_blocks: 20,
        ..PlacementOptions::for_geometry(&PAIRED_CHIP.geometry)
    };
    let wear = Some(WearPromise::new(1 << 14, 20, 400, 10));
    Options { placement: Some(policies), wear, ..options }
}

/// Spare bytes for tags, so that a page that is written and synced says by itself whose it is.
pub(crate) const TAGGED: Way = Way {
    chip: Chip {
        name: "small-tagged",
        geometry: Geometry { spare_size: 64, tag_size: 16, pages_per_block: 16, ..SMALL.geometry },
        ..SMALL
    }
    .with_blocks(44),
    choose: choose_synced,
    round_operations: 40,
    steps: (60, 40),
};

/// The same on a chip that is nearly full.
const TAGGED_FULL: Way = Way { chip: TAGGED.chip.with_blocks(24), ..TAGGED };

pub(crate) const TAGGED_OPTIONS: Options = Options { log: LogOptions { tags: true, ..OPTIONS.log }, ..OPTIONS };

/// Runs of pages that are written and synced one by one, mostly; else any operation.
pub(crate) fn choose_synced(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::new(seed.wrapping_mul(6_151).wrapping_add(number / 8));
    let mut paths = model.all_paths();
    if chance.below(4) == 0 || paths.is_empty() {
        return choose(model, seed, number, page_size);
    }
    let (first, at, step) = (chance.below(paths.len()), chance.below(20), chance.below(3));
    paths.rotate_left(first);
    let mut chance = Chance::new(seed.wrapping_mul(7_919).wrapping_add(number));
    if number % 2 == 1 || chance.below(16) == 0 {
        return Op::Sync;
    }
    // Now and then one that is written in part, or twice.
    let at = (at + step * (number as usize % 8) / 2) * page_size;
    let (at, count) = if chance.below(8) == 0 { (at + 7, page_size - 9) } else { (at, page_size) };
    let bytes: Vec<u8> = (0..count).map(|_| 1 + chance.below(255) as u8).collect();
    let mut writes = paths.into_iter().map(|path| Op::Write(path, at as u64, bytes.clone()));
    let possible = writes.find(|op| model.clone().apply(op).is_ok());
    possible.unwrap_or_else(|| choose(model, seed, number, page_size))
}

/// Half of the time some whole pages of a file, if there is one; else any operation.
pub(crate) fn choose_pages(model: &Model, seed: u64, number: u64, page_size: usize) -> Op {
    let mut chance = Chance::new(seed.wrapping_mul(7_919).wrapping_add(number));
    let mut paths = model.all_paths();
    if chance.below(2) == 0 || paths.is_empty() {
        return choose(model, seed, number, page_size);
    }
    let first = chance.below(paths.len());
    paths.rotate_left(first);
    let (at, count) = (chance.below(24) * page_size, 1 + chance.below(6));
    let bytes: Vec<u8> = (0..count * page_size).map(|_| 1 + chance.below(255) as u8).collect();
    let mut writes = paths.into_iter().map(|path| Op::Write(path, at as u64, bytes.clone()));
    let possible = writes.find(|op| model.clone().apply(op).is_ok());
    possible.unwrap_or_else(|| choose(model, seed, number, page_size))
}

/// Chips as lives begin, and how they are lived.
struct World {
    formatted: Vec<Sim>,
    live: fn(&[Sim], u64) -> Count,
}

impl World {
    /// In every fourth life pages are overwritten.
    fn plain() -> World {
        World {
            formatted: [VARIED, OVERWRITING].map(|way| formatted_with(way.chip, OPTIONS)).into(),
            live: |formatted, seed| {
                let (way, chip) = if seed % 4 == 3 { (OVERWRITING, 1) } else { (VARIED, 0) };
                live(&Nandu(OPTIONS), way, &formatted[chip], seed)
            },
        }
    }

    /// Cells hold two bits, and a torn page takes another with it. In every fourth life wear is evened.
    fn paired() -> World {
        World {
            formatted: vec![formatted_with(PAIRED.chip, placed()), worn()],
            live: |formatted, seed| {
                let (way, chip) = if seed % 4 == 1 { (WORN, 1) } else { (PAIRED, 0) };
                live(&Nandu(placed()), way, &formatted[chip], seed)
            },
        }
    }

    /// Pages have tags.
    fn tagged() -> World {
        World {
            formatted: [TAGGED, TAGGED_FULL].map(|way| formatted_with(way.chip, TAGGED_OPTIONS)).into(),
            live: |formatted, seed| {
                let chip = seed as usize % 2;
                live(&Nandu(TAGGED_OPTIONS), [TAGGED, TAGGED_FULL][chip], &formatted[chip], seed)
            },
        }
    }

    /// Lives from this seed on until so many cuts were checked.
    fn lives(&self, first: u64, cuts: u64) -> Count {
        lives::lives(first, cuts, |seed| self.live(seed))
    }

    /// The life of a seed.
    fn live(&self, seed: u64) -> Count {
        (self.live)(&self.formatted, seed)
    }
}

/// Lives with any operations on a chip with pages of this size, until so many cuts were checked.
pub(crate) fn varied_lives(chip: Chip, options: Options, cuts: u64) {
    let formatted = formatted_with(chip, options);
    lives::lives(0, cuts, |seed| live(&Nandu(options), Way::varied(chip), &formatted, seed));
}

/// Half of the cuts that continuous integration makes; the other half is beside it, for a second core.
const CUTS: u64 = 100_000;

fn lives_of_half_the_cuts(first: u64) {
    let Count { cuts, erases, nested, .. } = World::plain().lives(first, CUTS);
    assert!(cuts >= CUTS && erases > CUTS / 20 && nested > CUTS / 10, "{cuts}, {erases}, {nested}");
}

#[test]
fn a_hundred_thousand_cuts() {
    lives_of_half_the_cuts(0);
}

#[test]
fn another_hundred_thousand_cuts() {
    lives_of_half_the_cuts(1 << 32);
}

/// A page and the fragments that it takes in change together: a sync between the two would leave old fragments over what was written.
#[test]
fn twenty_thousand_cuts_where_fragments_lie_over_pages() {
    let formatted = formatted_with(COVERING.chip, OPTIONS);
    let Count { cuts, .. } = lives::lives(0, 20_000, |seed| live(&Nandu(OPTIONS), COVERING, &formatted, seed));
    assert!(cuts >= 20_000, "{cuts}");
}

/// Cuts that continuous integration makes on a chip that tears pairs.
const PAIRED_CUTS: u64 = 20_000;

#[test]
fn twenty_thousand_cuts_where_cells_hold_two_bits() {
    let Count { cuts, erases, nested, levelling, .. } = World::paired().lives(0, PAIRED_CUTS);
    assert!(
        cuts >= PAIRED_CUTS && erases > PAIRED_CUTS / 20 && nested > PAIRED_CUTS / 10,
        "{cuts}, {erases}, {nested}"
    );
    assert!(levelling > PAIRED_CUTS / 40, "{levelling} while wear was evened");
}

/// Cuts that continuous integration makes where pages have tags.
const TAGGED_CUTS: u64 = 30_000;

#[test]
fn thirty_thousand_cuts_where_pages_have_tags() {
    let Count { cuts, erases, nested, tails, .. } = World::tagged().lives(0, TAGGED_CUTS);
    assert!(
        cuts >= TAGGED_CUTS && nested > TAGGED_CUTS / 10 && tails > TAGGED_CUTS / 10 && erases > 0,
        "{cuts}, {erases}, {nested}, {tails}"
    );
}

/// Seeds of lives with tags that a mistake ended which no life of continuous integration met: one mount read the torn last page of a tail,
/// and the next could not; and a mount that had merged a leaf found out, before it was done, that a change beside it was in its leaf already.
const ONCE_ENDED: [u64; 2] = [(1 << 40) + 5, (1 << 40) + 56];

#[test]
fn lives_that_once_ended_early() {
    let world = World::tagged();
    for seed in ONCE_ENDED {
        let cuts = world.live(seed).cuts;
        assert!(cuts > 500, "{cuts} cuts in life {seed}");
    }
}

#[test]
fn a_tail_that_is_not_taken_over_ends_a_life() {
    let broken = Broken { without_tail: true, ..Broken::default() };
    assert!(is_caught_with(TAGGED, Options { broken, ..TAGGED_OPTIONS }, TAGGED_OPTIONS));
}

/// Whether any of some lives ends early.
fn is_caught(way: Way, broken: Broken) -> bool {
    is_caught_with(way, Options { broken, ..OPTIONS }, OPTIONS)
}

/// The same with these options, on a chip formatted with others.
fn is_caught_with(way: Way, options: Options, kept: Options) -> bool {
    let formatted = formatted_with(way.chip, kept);
    let mut cuts = 0;
    let run = || (0..60).for_each(|seed| cuts += live(&Nandu(options), way, &formatted, seed).cuts);
    let is_caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
    println!("{:?}: caught is {is_caught}, with {cuts} cuts in lives before", options.broken);
    is_caught
}

/// Lives find out what is wrong: each rule left out within the cuts that continuous integration makes.
#[test]
fn each_rule_left_out_ends_a_life() {
    let kept = Broken::default();
    let tree = |tree| Broken { tree, ..kept };
    let rules = [
        ("T13", VARIED, tree(nandu_tree::Broken { commit_first: true, ..kept.tree })),
        ("S11", VARIED, Broken { without_sync: true, ..kept }),
        ("S12", VARIED, Broken { name_first: true, ..kept }),
        ("S13", VARIED, Broken { replace_in_parts: true, ..kept }),
        ("S14", VARIED, Broken { without_orphans: true, ..kept }),
        ("T14", OVERWRITING, tree(nandu_tree::Broken { supersede_first: true, ..kept.tree })),
        ("T15", OVERWRITING, tree(nandu_tree::Broken { move_stale: true, ..kept.tree })),
    ];
    let missed: Vec<&str> =
        rules.into_iter().filter(|&(_, way, broken)| !is_caught(way, broken)).map(|(rule, ..)| rule).collect();
    assert_eq!(missed, Vec::<&str>::new());
}

#[test]
fn each_protection_of_pairs_left_out_ends_a_life() {
    let kept = placed();
    let tree = nandu_tree::Broken { name_exposed: true, ..kept.broken.tree };
    let named = Options { broken: Broken { tree, ..kept.broken }, ..kept };
    let unprotected = Options { log: LogOptions { skip_pair_protection: true, ..kept.log }, ..kept };
    assert!(is_caught_with(PAIRED, named, kept), "copies are named before their partners are programmed");
    assert!(is_caught_with(PAIRED, unprotected, kept), "partners of pages that a sync promised are programmed");
}

/// As many cuts as somebody asks for, on every core; or one life alone.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    swarm_in(World::plain);
}

/// The same where cells hold two bits: experiment E11 of FlexFS's.
#[test]
#[ignore = "takes as long as it is told to"]
fn paired_swarm() {
    swarm_in(World::paired);
}

/// The same where pages have tags.
#[test]
#[ignore = "takes as long as it is told to"]
fn tagged_swarm() {
    swarm_in(World::tagged);
}

fn swarm_in(world: fn() -> World) {
    nandu_suite::swarm(|| {
        let world = world();
        move |seed| world.live(seed)
    });
}
