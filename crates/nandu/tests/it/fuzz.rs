//! What the fuzzer runs, over random bytes that are the same in every run, and over what it once found.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

#[path = "../../../../fuzz/files.rs"]
mod files;
#[path = "../../../../fuzz/targets.rs"]
mod targets;

#[test]
fn a_damaged_image_never_panics_and_never_takes_long() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut opened = 0;
    for _ in 0..8_000 {
        let mut bytes = vec![0; 1 + 5 * random.random_range(1..6)];
        random.fill(&mut bytes[..]);
        opened += u32::from(targets::hostile_image(&bytes));
    }
    assert!(opened > 800, "{opened} images were opened: the damage is too heavy to try anything");
}

#[test]
fn an_image_without_damage_opens() {
    for image in 0..4 {
        for extra in [0, 128, 192] {
            assert!(targets::hostile_image(&[extra + image]), "image {image} of those from {extra} on");
        }
    }
    for size in 96..101 {
        assert!(targets::hostile_image(&[size]), "image {size}, with pages of another size");
    }
}

#[test]
fn a_damaged_file_system_never_panics_and_never_takes_long() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    let mut mounted = 0;
    for _ in 0..1_500 {
        let mut bytes = vec![0; 1 + 5 * random.random_range(1..6)];
        random.fill(&mut bytes[..]);
        mounted += u32::from(files::hostile_files(&bytes));
    }
    assert!(mounted > 300, "{mounted} images were mounted: the damage is too heavy to try anything");
}

#[test]
fn a_file_system_with_records_of_any_content_never_panics_and_is_repaired() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut mounted = 0;
    for _ in 0..1_500 {
        // The size of pages.
        let mut bytes = vec![random.random()];
        for _ in 0..random.random_range(1..4) {
            let size: u8 = match random.random_range(0..8) {
                0 => 255,
                1 | 2 => 128 + random.random_range(0..40),
                _ => random.random_range(0..40),
            };
            let flip: u8 = if random.random_range(0..3) == 0 { random.random() } else { 255 };
            bytes.extend([random.random(), flip, size]);
            let mut value = vec![0; if size == 255 { 0 } else { usize::from(size % 128) }];
            random.fill(&mut value[..]);
            if let Some(first) = value.first_mut() {
                // So that what comes behind the first byte is looked at.
                *first %= 16;
            }
            bytes.extend(value);
        }
        mounted += u32::from(files::hostile_records(&bytes));
    }
    assert!(mounted > 1_000, "{mounted}");
    assert!(
        (0..5).all(|size| files::hostile_records(&[size]))
            && [0, 1, 128, 129, 130, 131, 132, 192].iter().all(|&choice| files::hostile_files(&[choice]))
    );
}

#[test]
fn what_was_found_once_stays_mended() {
    let found: [&[u8]; 3] = [
        // Ends of items in an inner node that lie beyond the node.
        &[117, 87, 135, 118, 190, 141, 36, 178, 150, 81, 95, 73, 47, 15, 245, 217],
        &[40, 240, 21, 241, 122, 142, 171, 142, 206, 69, 126, 73, 86, 8, 239, 224],
        &[16, 136, 102, 101, 157, 214, 73, 182, 224, 247, 32, 31, 40, 54, 99, 112],
    ];
    for bytes in found {
        targets::hostile_image(bytes);
    }
    // Keys out of order in an inner node, below which no repair finds what is wrong.
    files::hostile_files(&[0x2C, 0x2D, 0x2D, 0x01, 0x34, 0xC6]);
    // The same, where a truncation found again and again what it had deleted.
    files::hostile_files(&[0xB7, b',', b'?', 0xB7, b'A', b'.', b'.', 5]);
    // The same in a repair.
    files::hostile_files(&[0xB7, 0x2C, 0xB7, 0x2E, 0xD5, 5]);
}
