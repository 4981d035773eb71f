//! The suite that every file system passes.

use nandu_fs::Options;
use nandu_sim::Chip;
use nandu_suite::conformance::{conformance, listings_while_names_come_and_go};
use nandu_suite::full::filled_again;
use nandu_suite::{Pace, SMALL, agree};

use crate::rig::{Nandu, OPTIONS};

#[test]
fn it_conforms() {
    conformance(&Nandu(OPTIONS), SMALL);
    conformance(&Nandu(Options::DEFAULT), Chip::W25N01GV.with_blocks(40));
}

#[test]
fn random_operations_agree_with_a_mount_after_each() {
    agree(&Nandu(OPTIONS), SMALL, 400..402, Pace { operations: 200, mounted: 1 });
}

#[test]
fn large_directories_are_listed_while_names_come_and_go() {
    listings_while_names_come_and_go(&Nandu(Options::DEFAULT), Chip::W25N01GV.with_blocks(40), 400);
}

#[test]
fn a_chip_is_filled_again_and_again() {
    filled_again(&Nandu(OPTIONS), SMALL, 4);
}
