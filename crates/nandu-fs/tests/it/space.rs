//! A full chip: every operation says so and changes nothing, and deleting works.

use nandu_fs::{Fs, FsError, Ino, Options, Time};
use nandu_sim::{Chip, Sim};

use crate::model::Model;
use crate::operation::{Chance, NAMES, Op, Slots, apply};
use crate::rig::{OPTIONS, SMALL, everything, formatted_with, memory, violations};

const CHIP: Chip = SMALL.with_blocks(40);

#[derive(PartialEq, Eq, Debug)]
enum Outcome {
    Done,
    /// Neither the file system nor the model does it.
    Refused,
    Full,
}

/// Applies an operation to both, of which the file system may say that there is no room, and then nothing has changed.
fn both(fs: &mut Fs<'_, Sim>, slots: &mut Slots, model: &mut Model, op: &Op) -> Outcome {
    model.now += 1;
    fs.set_now(Time::from_seconds(model.now));
    let before = model.clone();
    let expected = model.apply(op);
    match apply(fs, slots, op) {
        Err(FsError::Full) => {
            let now = model.now;
            *model = before;
            model.now = now;
            Outcome::Full
        }
        outcome => {
            assert_eq!(outcome.map_err(|error| error.errno()), expected, "{op:?}");
            if expected.is_ok() { Outcome::Done } else { Outcome::Refused }
        }
    }
}

/// Fills the chip with small files or large ones, tries everything, empties it, and fills it again.
fn life(seed: u64, size: usize) {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(formatted_with(CHIP, OPTIONS), OPTIONS, &mut memory).unwrap();
    let mut model = Model::new();
    let mut slots = Slots::default();
    let mut chance = Chance::new(seed);
    let mut filled = [0; 3];
    for round in &mut filled {
        let mut refused = 0;
        while refused < 40 {
            let path = vec![NAMES[chance.below(5)], NAMES[chance.below(6)], NAMES[chance.below(6)]];
            for depth in 1..3 {
                both(&mut fs, &mut slots, &mut model, &Op::Mkdir(path[..depth].to_vec()));
            }
            both(&mut fs, &mut slots, &mut model, &Op::Create(path.clone()));
            let bytes = chance.bytes(size);
            match both(&mut fs, &mut slots, &mut model, &Op::Append(path, bytes)) {
                Outcome::Done => *round += 1,
                Outcome::Refused => {}
                // It was written in part and cut off again, which changed times.
                Outcome::Full => {
                    refused += 1;
                    model = Model::of(&everything(&mut fs).unwrap()).at(model.now);
                }
            }
            assert!(*round < 20_000, "the chip is small");
        }
        // Whatever is tried on the full chip, nothing half-done is left.
        for _ in 0..120 {
            let mut op = chance.op(512);
            if matches!(op, Op::Write(..) | Op::WriteOpen(..) | Op::Append(..) | Op::Open(..)) {
                op = Op::Sync;
            }
            both(&mut fs, &mut slots, &mut model, &op);
            assert_eq!(everything(&mut fs).unwrap(), model.everything(), "{op:?}");
        }
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        let chip = fs.unmount().unwrap();
        fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
        // Everything can be removed.
        let mut paths = model.all_paths();
        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
        for path in paths {
            let op =
                if model.clone().apply(&Op::Unlink(path.clone())).is_ok() { Op::Unlink(path) } else { Op::Rmdir(path) };
            assert_eq!(both(&mut fs, &mut slots, &mut model, &op), Outcome::Done, "{op:?} needs no room");
        }
        fs.sync().unwrap();
        assert_eq!(fs.stat(Ino::ROOT).unwrap().size, 0);
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    }
    println!("files of {size} bytes: {filled:?}");
    // What was removed is free again.
    assert!(filled[2] * 10 > filled[0] * 8, "{filled:?}");
}

#[test]
fn a_chip_full_of_small_files_is_emptied_and_filled_again() {
    life(1, 20);
}

#[test]
fn a_chip_full_of_large_files_is_emptied_and_filled_again() {
    life(2, 3000);
}

/// Cutting files takes no room either.
#[test]
fn files_are_cut_on_a_full_chip() {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(formatted_with(CHIP, OPTIONS), OPTIONS, &mut memory).unwrap();
    let mut files = Vec::new();
    'full: for number in 0..1000_u32 {
        let Ok(file) = fs.create(Ino::ROOT, &number.to_string().into_bytes(), Default::default()) else { break };
        files.push(file);
        for at in 0..6 {
            match fs.write_at(file, at * 500, &[number as u8 | 1; 500]) {
                Ok(500) => {}
                Ok(_) | Err(FsError::Full) => break 'full,
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(files.len() > 10);
    assert!(fs.statfs().unwrap().blocks_available < 24, "{:?}", fs.statfs());
    for &file in &files {
        fs.truncate(file, 700).unwrap();
    }
    fs.sync().unwrap();
    for &file in &files {
        fs.write_at(file, 700, &[1; 1500]).unwrap();
    }
    fs.sync().unwrap();
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

/// What was removed is free at once, however many changes have memory to wait in: until a leaf has lost the entries of removed pages,
/// they are counted as live.
#[test]
fn room_is_there_as_soon_as_files_are_removed() {
    let options = Options { pending_size: 16_384, ..OPTIONS };
    let mut memory = memory(&CHIP.geometry, &options);
    let mut fs = Fs::mount(formatted_with(CHIP, options), options, &mut memory).unwrap();
    let write = |fs: &mut Fs<'_, Sim>, number: u32| {
        let file = fs.create(Ino::ROOT, &number.to_string().into_bytes(), Default::default())?;
        let count = fs.write_at(file, 0, &[number as u8 | 1; 512])?;
        if count == 512 { fs.fsync(file) } else { Err(FsError::Full) }
    };
    let mut filled = 0;
    while write(&mut fs, filled).is_ok() {
        filled += 1;
    }
    for number in 0..filled / 4 {
        fs.unlink(Ino::ROOT, &number.to_string().into_bytes()).unwrap();
    }
    let mut again = 0;
    while write(&mut fs, 1000 + again).is_ok() {
        again += 1;
    }
    println!("{filled} files, {again} in place of {}", filled / 4);
    assert!(again * 10 > filled / 4 * 9, "{again} of {}", filled / 4);
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}
