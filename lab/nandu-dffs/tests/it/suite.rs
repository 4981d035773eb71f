//! The suite that every file system passes.

use nandu_dffs::{Dffs, Options, ParentUpdate};
use nandu_files::{FileSystem, Ino, SetAttributes, Time};
use nandu_nand::{Geometry, Nand};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Sim};
use nandu_suite::conformance::{conformance, listings_while_names_come_and_go};
use nandu_suite::cuts::{check, recover, workload};
use nandu_suite::full::{filled_again, live as live_full};
use nandu_suite::idle::comes_to_rest;
use nandu_suite::lives::{self, Count, Way, live};
use nandu_suite::{Chance, Opened, Pace, ROOT, SMALL, System, agree, full, live_all, sized};

use crate::rig::OPTIONS;

/// DFFS with these options.
#[derive(Clone, Copy, Debug)]
struct Published(Options);

impl System for Published {
    type Mounted<'m, N: Nand + 'm> = Dffs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Dffs::<Sim>::memory_required(geometry, &self.0)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Dffs<'m, N>> {
        let mut fs = Dffs::format(chip, self.0, memory)?;
        FileSystem::set_now(&mut fs, Time::from_seconds(ROOT.seconds));
        let set = SetAttributes {
            mode: Some(ROOT.mode),
            uid: Some(ROOT.uid),
            gid: Some(ROOT.gid),
            ..SetAttributes::default()
        };
        FileSystem::set_attributes(&mut fs, Ino::ROOT, set)?;
        Ok(fs)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Dffs<'m, N>> {
        Dffs::mount(chip, self.0, memory)
    }
}

/// Small, with room for what the suite holds open.
const SUITED: Options = Options { open_files: 6, ..OPTIONS };

/// With pages as the paper has them.
const LARGE: Options = Options { open_files: 8, directory_max: 1024, ..Options::DEFAULT };

#[test]
fn it_conforms() {
    conformance(&Published(SUITED), SMALL);
    conformance(&Published(LARGE), Chip::W25N01GV.with_blocks(60));
}

#[test]
fn large_directories_are_listed_while_names_come_and_go() {
    listings_while_names_come_and_go(&Published(LARGE), Chip::W25N01GV.with_blocks(60), 400);
}

#[test]
fn random_operations_agree_with_the_model() {
    agree(&Published(SUITED), SMALL, 0..12, Pace { operations: 800, mounted: 100 });
    let each = Options { parent_update: ParentUpdate::Each, ..SUITED };
    agree(&Published(each), SMALL, 100..106, Pace { operations: 800, mounted: 100 });
}

#[test]
fn random_operations_agree_with_a_mount_after_each() {
    agree(&Published(SUITED), SMALL, 400..402, Pace { operations: 200, mounted: 1 });
}

#[test]
fn random_operations_agree_on_pages_of_other_sizes() {
    for page_size in [2048, 4096] {
        agree(&Published(LARGE), sized(page_size, 96), 300..302, Pace { operations: 500, mounted: 100 });
    }
}

#[test]
fn a_chip_is_filled_again_and_again() {
    filled_again(&Published(SUITED), SMALL, 3);
}

#[test]
fn names_are_never_refused_to_go() {
    let mut chip = Chip::W25N01GV.with_blocks(48);
    chip.geometry.pages_per_block = 8;
    live_all(0..8, full::WRITES, |seed| live_full(&Published(LARGE), chip, seed, &mut Chance::new(seed), 600));
}

#[test]
fn every_operation_with_every_tear() {
    let system = Published(SUITED);
    let driver = Driver::new(system.formatted(SMALL)).resume();
    let summary = driver.every(workload(system, 60, Some(1)), check(system));
    assert!(summary.cases > 400, "{summary:?}");
}

#[test]
fn a_cut_in_the_recovery_from_a_cut() {
    let system = Published(SUITED);
    let driver = Driver::new(system.formatted(SMALL)).limit(600);
    let summary = driver.pairs(workload(system, 40, Some(3)), recover(system), check(system));
    assert!(summary.cases > 300, "{summary:?}");
}

/// Lives with every operation, and in every fourth with pages that are overwritten, on few blocks.
fn of_a_seed() -> impl Fn(u64) -> Count {
    let system = Published(SUITED);
    let chips = [SMALL.with_blocks(40), SMALL.with_blocks(34)].map(|chip| (chip, system.formatted(chip)));
    move |seed| {
        let (chip, formatted) = &chips[usize::from(seed % 4 == 3)];
        let way = if seed % 4 == 3 { Way::overwriting(*chip) } else { Way::varied(*chip) };
        live(&system, way, formatted, seed)
    }
}

/// Cuts that continuous integration makes.
const CUTS: u64 = 20_000;

#[test]
fn twenty_thousand_cuts() {
    let Count { cuts, nested, erases, .. } = lives::lives(0, CUTS, of_a_seed());
    assert!(cuts >= CUTS && nested > CUTS / 20 && erases > CUTS / 50, "{cuts}, {nested}, {erases}");
}

/// As many cuts as somebody asks for, on every core; or one life alone.
#[test]
#[ignore = "takes as long as it is told to"]
fn swarm() {
    let command = "cargo test --release -p nandu-dffs --test it suite::swarm -- --ignored";
    nandu_suite::swarm(("DFFS, in lives", command), of_a_seed);
}

/// DFFS collects when blocks are needed, and never in idle time.
#[test]
fn idle_time_comes_to_rest() {
    comes_to_rest(&Published(SUITED), SMALL, 1);
    comes_to_rest(&Published(LARGE), Chip::W25N01GV.with_blocks(40), 2);
}
