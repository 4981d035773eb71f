//! Random operations, held against a model.

use nandu_fs::Options;
use nandu_sim::Chip;
use nandu_suite::{Pace, SMALL, agree};

use crate::rig::{Nandu, OPTIONS};

#[test]
fn random_operations_agree_with_the_model() {
    agree(&Nandu(OPTIONS), SMALL, 0..12, Pace { operations: 800, mounted: 100 });
}

#[test]
fn random_operations_agree_on_pages_of_two_kilobytes() {
    agree(&Nandu(Options::DEFAULT), Chip::W25N01GV.with_blocks(40), 100..106, Pace { operations: 800, mounted: 100 });
}

#[test]
fn random_operations_agree_where_names_collide() {
    let mut options = OPTIONS;
    options.broken.hash_zeros = 39;
    agree(&Nandu(options), SMALL, 200..203, Pace { operations: 600, mounted: 100 });
}
