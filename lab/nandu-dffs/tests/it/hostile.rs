//! Damaged images: the fuzz target of this crate over bytes by chance.

#[path = "../../../../fuzz/dffs.rs"]
mod target;

use crate::rig::Chance;
use target::hostile_dffs;

/// Images in `cargo test`; `NANDU_HOSTILE=100000` tries as many, from the seed `NANDU_HOSTILE_SEED` on.
const IMAGES: u64 = 1000;

#[test]
fn a_damaged_volume_never_panics_and_never_takes_long() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(or);
    let (first, images) = (number("NANDU_HOSTILE_SEED", 0), number("NANDU_HOSTILE", IMAGES));
    let mut mounted = 0;
    for seed in first..first + images {
        let mut chance = Chance::new(seed);
        let changes = 1 + chance.below(8);
        let bytes: Vec<u8> = (0..1 + 6 * changes).map(|_| chance.below(256) as u8).collect();
        let outcome = std::panic::catch_unwind(|| hostile_dffs(&bytes));
        mounted += u64::from(outcome.unwrap_or_else(|_| panic!("seed {seed}: {bytes:?}")));
    }
    assert!(mounted > images / 4, "{mounted}");
}

#[test]
fn a_volume_without_damage_mounts() {
    assert!(hostile_dffs(&[0]) && hostile_dffs(&[1]));
}
