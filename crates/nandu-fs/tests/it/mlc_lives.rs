//! Lives of file systems with blocks of both modes: what a cut destroys with a page are pages acknowledged long before.

use nandu_fs::placement::{PlacementOptions, WearPromise};
use nandu_fs::{LogOptions, Options};
use nandu_log::Broken;
use nandu_nand::{Geometry, Pairing, TearScope};
use nandu_sim::Chip;
use nandu_suite::counts::SWARM;
use nandu_suite::cuts::choose;
use nandu_suite::idle::comes_to_rest;
use nandu_suite::lives::{self, Count, Way, live};
use nandu_suite::{Chance, Model, Op, Refused, SMALL, full, live_all, lives_asked_for};

use crate::rig::{Nandu, OPTIONS, formatted_with};

/// Pages that share their cells, and are torn with them.
pub(crate) const CHIP: Chip = {
    let geometry = Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, pages_per_block: 16, ..SMALL.geometry };
    Chip { name: "small-paired", geometry, ..SMALL }.with_blocks(48)
};

const WAY: Way = Way { chip: CHIP, choose: choose_pages, round_operations: 25, steps: (60, 40) };

/// Placed by policy, with windows so short that all they decide happens within a life.
pub(crate) fn placed() -> Options {
    let policies = PlacementOptions {
        window_pages: 12,
        free_blocks_min: 2,
        gc_free_blocks: 20,
        ..PlacementOptions::for_geometry(&CHIP.geometry)
    };
    let wear = Some(WearPromise::new(1 << 14, 20, 400, 10));
    Options { placement: Some(policies), wear, ..OPTIONS.both_modes(&CHIP.geometry) }
}

/// The same without policies: pages move when the collector needs room.
fn collected() -> Options {
    Options { placement: None, wear: None, ..placed() }
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

/// Every third life is one without policies, every third with little memory for changes.
fn world() -> impl Fn(u64) -> Count {
    let options = [placed(), collected(), Options { pending_size: 300, ..placed() }];
    let formatted = options.map(|options| formatted_with(CHIP, options));
    move |seed| {
        let kind = seed as usize % options.len();
        live(&Nandu(options[kind]), WAY, &formatted[kind], seed)
    }
}

const CUTS: u64 = 30_000;

#[test]
fn thirty_thousand_cuts_where_cells_hold_two_bits() {
    let Count { cuts, erases, nested, .. } = lives::lives(0, CUTS, world());
    assert!(cuts >= CUTS && erases > CUTS / 20 && nested > CUTS / 10, "{cuts}, {erases}, {nested}");
}

/// As many cuts as somebody asks for, on every core; or one life alone.
#[test]
#[ignore = "takes as long as it is told to"]
fn mlc_swarm() {
    nandu_suite::swarm(("files with two bits a cell, in lives", SWARM), world);
}

/// Whether any of some lives ends early.
fn is_caught(broken: Broken) -> bool {
    // So little may be worn that pages are written with two bits a cell at once.
    let worn = Options { wear: Some(WearPromise::new(16, 1, 1000, 10)), ..placed() };
    let options = Options { log: LogOptions { broken, ..worn.log }, ..worn };
    let formatted = formatted_with(CHIP, worn);
    let run = || (0..60).for_each(|seed| _ = live(&Nandu(options), WAY, &formatted, seed));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err()
}

#[test]
fn each_protection_of_pairs_left_out_ends_a_life() {
    assert!(
        is_caught(Broken { early: true, ..Broken::NOTHING }),
        "copies are named before their partners are programmed"
    );
    assert!(
        is_caught(Broken { shield: true, ..Broken::NOTHING }),
        "partners of pages that a sync promised are programmed"
    );
}

/// A chip that has room for a part of what is written, and memory for changes of a size by chance.
fn full_life(pending: (usize, usize), seed: u64) -> Refused {
    let mut chance = Chance::new(seed);
    let pending_size = pending.0 + chance.below(pending.1 - pending.0 + 1);
    let kind = if seed.is_multiple_of(2) { placed() } else { collected() };
    let options = Options { pending_size, ..kind };
    let part = Chip::W25N01GV.with_blocks(40);
    let geometry = Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, pages_per_block: 16, ..part.geometry };
    full::live(&Nandu(options), Chip { geometry, ..part }, seed, &mut chance, 800)
}

#[test]
fn names_are_never_refused_to_go_with_two_bits_a_cell() {
    live_all(0..12, full::WRITES, |seed| full_life((200, 4000), seed));
}

/// As many lives as somebody lets run, with memory for changes of any size.
#[test]
#[ignore = "as many as NANDU_LIVES says"]
fn many_mlc_lives() {
    live_all(lives_asked_for(), full::WRITES, |seed| full_life((0, 8192), seed));
}

#[test]
fn files_with_two_bits_a_cell_come_to_rest() {
    for seed in 0..4 {
        // A promised lifetime is accounted for window by window, which is written down.
        comes_to_rest(&Nandu(Options { wear: None, ..placed() }), CHIP, seed);
        comes_to_rest(&Nandu(collected()), CHIP.with_blocks(120), seed);
    }
}
