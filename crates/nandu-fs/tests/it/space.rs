//! A full chip: every operation says so and changes nothing, and deleting works.

use nandu_fs::{Fs, FsError, Ino, Options, SetAttributes, Time};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, Model, NAMES, Op, PAGE_SIZES, SMALL, Slots, apply, content, everything, sized, violations};

use crate::rig::{FILE, OPTIONS, capabilities, formatted_with, fresh, memory, options_for};

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
    let mut model = Model::new(capabilities());
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
                    model = Model::of(&everything(&mut fs).unwrap(), capabilities()).at(model.now);
                }
            }
            assert!(*round < 20_000, "the chip is small");
        }
        // Whatever is tried on the full chip, nothing half-done is left.
        for _ in 0..120 {
            let mut op = chance.op(512, &capabilities());
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
    let mut fs = fresh(CHIP, OPTIONS);
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
    let mut fs = fresh(CHIP, options);
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

/// Every call that says that there is no room leaves what there was, after a cut too.
#[test]
fn what_was_refused_does_not_come_back_after_a_cut() {
    let mut refused = 0;
    for seed in 0..4 {
        let mut memory = [memory(&CHIP.geometry, &OPTIONS), memory(&CHIP.geometry, &OPTIONS)];
        let [memory, other] = &mut memory;
        let mut fs = Fs::mount(formatted_with(CHIP, OPTIONS), OPTIONS, memory).unwrap();
        let mut chance = Chance::new(seed);
        let files: Vec<Ino> = NAMES.iter().map(|name| fs.create(Ino::ROOT, name, FILE).unwrap()).collect();
        let until = refused + 60;
        while refused < until {
            let file = files[chance.below(files.len())];
            let size = [30, 200, 512, 1500, 3000][chance.below(5)];
            let bytes = chance.bytes(size);
            let before = everything(&mut fs).unwrap();
            let outcome = match chance.below(3) {
                0 => fs.append(file, &bytes).map(|_| ()),
                _ => fs.write_at(file, 256 * chance.below(300) as u64, &bytes).map(|_| ()),
            };
            if outcome.is_ok() {
                fs.sync().unwrap();
                continue;
            }
            assert_eq!(outcome, Err(FsError::Full));
            refused += 1;
            let mut copy = fs.nand().clone();
            copy.power_off();
            copy.power_on();
            let mut found = Fs::mount(copy, OPTIONS, other).unwrap();
            let (found, there) = (everything(&mut found).unwrap(), everything(&mut fs).unwrap());
            for (path, seen) in &before {
                // What was appended and cut off again changed times.
                assert!(found[path].content == seen.content, "seed {seed}: {path:?} after a cut");
                assert!(there[path].content == seen.content, "seed {seed}: {path:?}");
            }
            if chance.below(3) == 0 {
                fs.truncate(file, 0).unwrap();
                fs.sync().unwrap();
            }
        }
    }
}

/// Writes files of so many bytes until there is no room for more; returns them.
fn fill(fs: &mut Fs<'_, Sim>, size: usize, name: &[u8]) -> Vec<Ino> {
    let mut files = Vec::new();
    loop {
        let name = [name, format!("-{}", files.len()).as_bytes()].concat();
        let file = fs.create(Ino::ROOT, &name, FILE).unwrap();
        files.push(file);
        let bytes = vec![files.len() as u8 | 1; size];
        match fs.write_at(file, 0, &bytes) {
            Ok(count) if count == size => {}
            Ok(_) | Err(FsError::Full) => return files,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Everything but growth works on a full chip, whatever size pages and files have, and `statfs` says that no data finds room.
#[test]
fn a_full_chip_takes_all_that_is_no_growth() {
    for (page_size, large) in PAGE_SIZES
        .into_iter()
        .flat_map(|size| [(size, false), (size, true)])
        .filter(|&(size, large)| large || size < 8192)
    {
        let (chip, options) = (sized(page_size, 60), options_for(page_size));
        let mut memory = memory(&chip.geometry, &options);
        let mut fs = Fs::mount(formatted_with(chip, options), options, &mut memory).unwrap();
        let size = if large { 5 * page_size as usize + 9 } else { 40 };
        fs.set_now(Time::from_seconds(1_700_000_000));
        let files = fill(&mut fs, size, b"file");
        fs.sync().unwrap();
        let case = format!("pages of {page_size}, files of {size} bytes: {} files", files.len());
        // The first change of an inode makes it longer, and there are a thousand of them.
        let changed: Vec<Ino> = files[..files.len() - 1].iter().copied().step_by(1 + files.len() / 50).collect();
        let stat = fs.statfs().unwrap();
        println!("{case}, {stat:?}");
        assert!(stat.blocks_available * 50 <= stat.blocks, "{case}: {stat:?}");
        for round in 0..3_u8 {
            for (number, &file) in changed.iter().enumerate() {
                fs.set_now(Time::from_seconds(1_700_000_000 + number as i64));
                let (at, byte) = (number % size, round + 1);
                let outcomes = [
                    fs.chmod(file, 0o600 + u32::from(round)),
                    fs.write_at(file, at as u64, &[byte]).map(|_| ()),
                    fs.write_at(file, 0, &vec![byte; size]).map(|count| assert_eq!(count, size, "{case}")),
                ];
                assert_eq!(outcomes, [Ok(()); 3], "{case}, round {round}, {number}");
                if number % 5 == 0 {
                    fs.sync().unwrap();
                }
            }
            let [name, linked, renamed] = [b'n', b'l', b'r'].map(|first| vec![first, round + b'0']);
            let file = fs.create(Ino::ROOT, &name, FILE).unwrap();
            fs.rename(Ino::ROOT, &name, Ino::ROOT, &renamed, Default::default()).unwrap();
            fs.link(file, Ino::ROOT, &linked).unwrap();
            fs.set_xattr(file, b"user.x", &[round; 50], Default::default()).unwrap();
            fs.mkdir(Ino::ROOT, &[b'd', round + b'0'], FILE).unwrap();
            fs.symlink(Ino::ROOT, &[b's', round + b'0'], b"target", FILE).unwrap();
            fs.set_attributes(file, SetAttributes { mtime: Some(Time::from_seconds(5)), ..Default::default() })
                .unwrap();
            assert_eq!(violations(&mut fs), Vec::<String>::new(), "{case}");
            fs = Fs::mount(fs.abandon(), options, &mut memory).unwrap();
        }
        for &file in &changed {
            assert!(content(&mut fs, file).unwrap() == vec![3; size], "{case}");
        }
        // What is kept for records has an end, and even then what takes no more room works.
        let mut made = 0;
        while fs.create(Ino::ROOT, format!("empty-{made}").as_bytes(), FILE).is_ok() {
            made += 1;
            assert!(made < 20_000, "{case}");
        }
        println!("{case}, {made} more without data");
        for (number, &file) in changed.iter().enumerate() {
            fs.chmod(file, 0o641).unwrap();
            fs.write_at(file, 0, &vec![4; size]).unwrap();
            if number % 3 == 0 {
                fs.sync().unwrap();
            }
        }
        fs.sync().unwrap();
        for number in 0..files.len() {
            fs.unlink(Ino::ROOT, format!("file-{number}").as_bytes()).unwrap();
        }
        fs.sync().unwrap();
        assert_eq!(violations(&mut fs), Vec::<String>::new(), "{case}");
        assert!(fill(&mut fs, size, b"again").len() * 3 > files.len() * 2, "{case}");
    }
}
