//! The end of a chip's life: what is there can be read, and who wants to change something is told that the volume can only be read.

use nandu_fs::{Fs, FsError, Ino, Options};
use nandu_sim::{Aging, Chip, Sim, SimError};
use nandu_suite::{sized, violations};

use crate::rig::{FILE, formatted_with, memory, options_for};

/// Files of these numbers are written over and over.
const FILES: u32 = 12;

fn write(fs: &mut Fs<'_, &mut Sim>, number: u32, content: &[u8]) -> Result<(), FsError<SimError>> {
    let name = [b'a' + number as u8];
    let file = match fs.lookup(Ino::ROOT, &name) {
        Err(FsError::NotFound { .. }) => fs.create(Ino::ROOT, &name, FILE)?,
        found => found?,
    };
    let written = fs.write_at(file, 0, content)?;
    fs.sync()?;
    if written < content.len() { Err(FsError::Full) } else { Ok(()) }
}

/// Removes what there is, and rests.
fn empty(fs: &mut Fs<'_, &mut Sim>) -> Result<(), FsError<SimError>> {
    for number in 0..FILES {
        match fs.unlink(Ino::ROOT, &[b'a' + number as u8]) {
            Err(FsError::NotFound { .. }) => {}
            outcome => outcome?,
        }
    }
    fs.sync()?;
    while fs.idle(64)? {}
    Ok(())
}

/// Writes files until the volume can only be read. Where there is no room all of them are removed, and then a file without content has to have room.
fn wear_out(chip: Chip, options: Options, size: usize) {
    let mut sim = formatted_with(chip, options);
    sim.set_aging(Aging { failure: 0.5, ..Aging::NONE });
    let mut memory = memory(&chip.geometry, &options);
    let mut fs = Fs::mount(&mut sim, options, &mut memory).unwrap();
    let end = (0..100_000_u32).find_map(|round| {
        let outcome = match write(&mut fs, (round.wrapping_mul(0x9E37_79B1) >> 16) % FILES, &vec![round as u8; size]) {
            Err(FsError::Full) => empty(&mut fs).and_then(|_| fs.create(Ino::ROOT, b"a", FILE)).map(|_| ()),
            outcome => outcome,
        };
        outcome.err()
    });
    let stats = fs.stats();
    assert_eq!(end, Some(FsError::ReadOnly), "{size} bytes, {chip:?}: {stats:?}");
    assert!(stats.bad_blocks >= 3, "{stats:?}");
    let _ = fs.abandon();
    for _ in 0..2 {
        let mut fs = Fs::mount(&mut sim, options, &mut memory).unwrap();
        assert_eq!(fs.create(Ino::ROOT, b"more", FILE), Err(FsError::ReadOnly));
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    }
}

/// On blocks of 8 pages the last one that data may fill has no room for a change, so that nothing that could be removed makes room.
#[test]
fn a_worn_out_chip_is_no_full_one_even_where_it_holds_nothing() {
    for page_size in [512, 2048] {
        for (blocks, size) in [(20, 3000), (24, 100), (32, 3000)] {
            wear_out(sized(page_size, blocks), options_for(page_size), size);
        }
    }
}
