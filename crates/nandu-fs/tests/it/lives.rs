//! Lives of file systems: the power goes at every program, memory for changes is of any size, chips are nearly full.

use nandu_fs::{Broken, Fs, Ino, Options};
use nandu_nand::Geometry;
use nandu_sim::{Chip, Sim};
use nandu_suite::counts::SWARM;
use nandu_suite::cuts::choose;
use nandu_suite::idle::comes_to_rest;
use nandu_suite::lives::{self, Count, Way, live};
use nandu_suite::{Chance, Model, Op, Refused, SMALL, full, live_all, lives_asked_for};

use crate::rig::{FILE, FORMAT, Nandu, OPTIONS, formatted_with, memory};

/// Every operation there is.
const VARIED: Way = Way::varied(SMALL.with_blocks(44));

/// Pages have room for tags.
pub(crate) const TAGGED: Chip = Chip { geometry: Geometry { spare_size: 32, tag_size: 16, ..SMALL.geometry }, ..SMALL };

/// Every operation there is, where pages are durable by their tags.
const TAGGED_VARIED: Way = Way::varied(TAGGED.with_blocks(44));

/// Pages of two files are overwritten again and again.
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

/// Pages that are written and synced one by one, on a chip with room and on one that is nearly full.
const SYNCED: Way = Way { chip: SYNCED_CHIP, choose: choose_synced, round_operations: 40, steps: (60, 40) };
const SYNCED_FULL: Way = Way { chip: SYNCED_CHIP.with_blocks(24), ..SYNCED };

pub(crate) const SYNCED_CHIP: Chip =
    Chip { geometry: Geometry { pages_per_block: 16, ..TAGGED.geometry }, ..TAGGED }.with_blocks(44);

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

/// Lives with any operations on a chip with pages of this size, until so many cuts were checked.
pub(crate) fn varied_lives(chip: Chip, options: Options, cuts: u64) {
    let formatted = formatted_with(chip, options);
    lives::lives(0, cuts, |seed| live(&Nandu(options), Way::varied(chip), &formatted, seed));
}

/// Cuts that continuous integration makes.
const CUTS: u64 = 60_000;

/// In every fourth life pages are overwritten, in every fourth files are small; in half of them pages have tags.
fn world() -> impl Fn(u64) -> Count {
    let tagged_overwriting = Way::overwriting(TAGGED.with_blocks(26));
    let small_files = Way::small_files(SMALL.with_blocks(26));
    let tagged_small_files = Way::small_files(TAGGED.with_blocks(26));
    let ways = [
        VARIED,
        TAGGED_VARIED,
        small_files,
        tagged_overwriting,
        VARIED,
        tagged_small_files,
        TAGGED_VARIED,
        OVERWRITING,
    ];
    let formatted = ways.map(|way| formatted_with(way.chip, OPTIONS));
    move |seed| {
        let way = seed as usize % ways.len();
        live(&Nandu(OPTIONS), ways[way], &formatted[way], seed)
    }
}

#[test]
fn sixty_thousand_cuts() {
    let world = world();
    let Count { cuts, erases, nested, tails, .. } = lives::lives(0, CUTS, world);
    assert!(cuts >= CUTS && erases > CUTS / 20 && nested > CUTS / 10, "{cuts}, {erases}, {nested}");
    assert!(tails > CUTS / 50, "{tails}");
}

/// A page and the fragments that it takes in change together: a sync between the two would leave old fragments over what was written.
#[test]
fn twenty_thousand_cuts_where_fragments_lie_over_pages() {
    let formatted = formatted_with(COVERING.chip, OPTIONS);
    let Count { cuts, .. } = lives::lives(0, 20_000, |seed| live(&Nandu(OPTIONS), COVERING, &formatted, seed));
    assert!(cuts >= 20_000, "{cuts}");
}

/// Cuts that continuous integration makes where each page is synced.
const SYNCED_CUTS: u64 = 30_000;

fn synced_world() -> impl Fn(u64) -> Count {
    let ways = [SYNCED, SYNCED_FULL];
    let formatted = ways.map(|way| formatted_with(way.chip, OPTIONS));
    move |seed| {
        let way = seed as usize % ways.len();
        live(&Nandu(OPTIONS), ways[way], &formatted[way], seed)
    }
}

#[test]
fn thirty_thousand_cuts_where_pages_have_tags() {
    let Count { cuts, erases, nested, tails, .. } = lives::lives(0, SYNCED_CUTS, synced_world());
    assert!(
        cuts >= SYNCED_CUTS && nested > SYNCED_CUTS / 10 && tails > SYNCED_CUTS / 10 && erases > 0,
        "{cuts}, {erases}, {nested}, {tails}"
    );
}

/// As many cuts as somebody asks for, on every core; or one life alone.
#[test]
#[ignore = "takes as long as it is told to"]
fn tagged_swarm() {
    nandu_suite::swarm(("files with tags, in lives", SWARM), synced_world);
}

/// A mount after a cut knows of the blocks that the last checkpoint listed, and of no others that hold nothing. In this life that was one too few for the last page of a tail, which may be torn.
#[test]
fn a_tail_is_taken_over_where_a_mount_knows_of_few_blocks() {
    world()(34_455_395_879_616_669);
}

/// As many cuts as somebody asks for, on every core; or one life alone.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    nandu_suite::swarm(("files, in lives", SWARM), world);
}

/// Whether any of some lives ends early.
fn is_caught(broken: Broken) -> bool {
    let options = Options { broken, ..OPTIONS };
    let way = if broken.without_tail { TAGGED_VARIED } else { VARIED };
    let formatted = formatted_with(way.chip, OPTIONS);
    let run = || (0..60).for_each(|seed| _ = live(&Nandu(options), way, &formatted, seed));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err()
}

/// Lives find out what is wrong: each rule left out within the cuts that continuous integration makes.
#[test]
fn each_rule_left_out_ends_a_life() {
    let kept = Broken::default();
    assert!(is_caught(Broken { without_sync: true, ..kept }), "S11");
    assert!(is_caught(Broken { name_first: true, ..kept }), "S12");
    assert!(is_caught(Broken { replace_in_parts: true, ..kept }), "S13");
    assert!(is_caught(Broken { without_orphans: true, ..kept }), "S14");
    assert!(is_caught(Broken { without_tail: true, ..kept }), "tags");
}

/// A part with blocks of 8 pages, and memory for changes of a size by chance.
fn full_life(pending: (usize, usize), seed: u64) -> Refused {
    let mut chip = Chip::W25N01GV.with_blocks(38);
    chip.geometry.pages_per_block = 8;
    let mut chance = Chance::new(seed);
    let pending_size = pending.0 + chance.below(pending.1 - pending.0 + 1);
    let options = Options { cache_size: 512, pending_size, open_max: 4, ..Options::DEFAULT };
    full::live(&Nandu(options), chip, seed, &mut chance, 800)
}

#[test]
fn names_are_never_refused_to_go() {
    live_all(0..20, full::WRITES, |seed| full_life((200, 4000), seed));
}

/// A page that is written over takes the place of the one before, on a chip that is full too, for as long as one likes.
#[test]
fn pages_are_written_over_on_a_full_chip() {
    for pending_size in [300, 4096] {
        full::pages_are_written_over(&Nandu(Options { pending_size, ..OPTIONS }), SMALL);
    }
}

/// As many lives as somebody lets run, with memory for changes of any size.
#[test]
#[ignore = "as many as NANDU_LIVES says"]
fn many_lives() {
    live_all(lives_asked_for(), full::WRITES, |seed| full_life((0, 8192), seed));
}

#[test]
fn files_come_to_rest() {
    for seed in 0..4 {
        comes_to_rest(&Nandu(OPTIONS), SMALL.with_blocks(44), seed);
        comes_to_rest(&Nandu(Options { pending_size: 8000, ..OPTIONS }), SMALL.with_blocks(120), seed);
        comes_to_rest(&Nandu(OPTIONS), SYNCED_CHIP, seed);
    }
}

/// A file system that lies in a place is unmounted there: the place is empty then, and the next mount has nothing to recover.
#[test]
fn an_unmount_in_a_place_leaves_a_clean_volume() {
    let (mut sim, mut memory) = (Sim::new(SMALL), memory(&SMALL.geometry, &OPTIONS));
    let mut place = None;
    Fs::format_in(&mut place, &mut sim, OPTIONS, &FORMAT, &mut memory).unwrap();
    let fs = place.as_mut().unwrap();
    let ino = fs.create(Ino::ROOT, b"a", FILE).unwrap();
    fs.write_at(ino, 0, b"not synced").unwrap();
    Fs::unmount_in(&mut place).unwrap();
    assert!(place.is_none() && Fs::unmount_in(&mut place) == Ok(()));
    let mut fs = Fs::mount(&mut sim, OPTIONS, &mut memory).unwrap();
    let mut bytes = [0; 10];
    assert_eq!((fs.read_at(ino, 0, &mut bytes), &bytes, fs.stats().was_cut), (Ok(10), b"not synced", false));
}

/// Reads of a mount after a cut, at most.
const MOUNT_MAX: u64 = 40;

/// What is cut at random is mounted with few reads, however much there is.
#[test]
fn a_mount_stays_short() {
    let mut most = 0;
    let paired = [(5, Chip::PAPER_FLEX.with_blocks(40)), (6, Chip::PAPER_FLEX.with_blocks(400))];
    let single =
        [(1, 16), (2, 40), (3, 128), (4, 400)].map(|(seed, blocks)| (seed, Chip::W25N01GV.with_blocks(blocks)));
    for (seed, chip) in single.into_iter().chain(paired) {
        let plain = Options { pending_size: 8192, ..Options::DEFAULT };
        let options = if seed < 5 { plain } else { plain.both_modes(&chip.geometry) };
        let mut memory = memory(&chip.geometry, &options);
        let mut chance = Chance::new(seed);
        let mut sim: Sim = formatted_with(chip, options);
        for _ in 0..60 {
            let before = sim.counters().reads;
            let mut fs = Fs::mount(sim, options, &mut memory).unwrap();
            most = most.max(fs.nand().counters().reads - before);
            for _ in 0..chance.below(40) {
                let name = chance.below(200).to_string();
                let found = fs.lookup(Ino::ROOT, name.as_bytes());
                let Ok(ino) = found.or_else(|_| fs.create(Ino::ROOT, name.as_bytes(), FILE)) else { break };
                let (at, size) = (chance.below(20_000) as u64, 1 + chance.below(6000));
                let bytes = chance.bytes(size);
                if fs.write_at(ino, at, &bytes).is_err() || fs.fsync(ino).is_err() {
                    fs.unlink(Ino::ROOT, name.as_bytes()).unwrap();
                }
            }
            sim = fs.abandon();
        }
    }
    assert!(most <= MOUNT_MAX, "{most} reads");
}
