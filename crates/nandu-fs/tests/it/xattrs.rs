//! Extended attributes whose values are too long for one batch.

use nandu_fs::{Attributes, Fs, FsError, Ino, Options, XattrMode};
use nandu_sim::power_cut::Driver;
use nandu_sim::{Chip, Sim};
use nandu_suite::cuts::{check, fixed, recover};
use nandu_suite::{Op, PAGE_SIZES, SMALL, everything, sized, violations, xattrs};

use crate::cuts::chains;
use crate::damage::{CHIP, key, keys_of, value};
use crate::records::{Records, edit};
use crate::rig::{FILE, Nandu, OPTIONS, formatted_with, fresh, memory, options_for};

const LONGEST: usize = 65_536;

fn bytes(size: usize, first: u8) -> Vec<u8> {
    (0..size).map(|at| (at / 7) as u8 ^ first).collect()
}

/// Unmounts, and mounts again in the same memory.
fn again(fs: Fs<'static, Sim>, options: Options) -> Fs<'static, Sim> {
    let chip = fs.unmount().unwrap();
    let memory = memory(&chip.chip().geometry, &options).leak();
    Fs::mount(chip, options, memory).unwrap()
}

fn read(fs: &mut Fs<'_, Sim>, ino: Ino, name: &[u8]) -> Vec<u8> {
    let mut value = vec![0; fs.get_xattr(ino, name, &mut []).unwrap()];
    assert_eq!(fs.get_xattr(ino, name, &mut value), Ok(value.len()));
    value
}

#[test]
fn values_have_up_to_64_kilobytes_on_pages_of_every_size() {
    for page_size in PAGE_SIZES {
        let options = options_for(page_size);
        let mut fs = fresh(sized(page_size, if page_size == 512 { 600 } else { 120 }), options);
        let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
        let directory = fs.mkdir(Ino::ROOT, b"directory", FILE).unwrap();
        let sizes = [0, 300, 3_000, 3_001, 4_090, 4_091, 5_000, LONGEST - 1, LONGEST];
        let name = |size: usize| format!("user.{size}").into_bytes();
        for ino in [file, directory] {
            for size in sizes {
                fs.set_xattr(ino, &name(size), &bytes(size, 1), XattrMode::Create).unwrap();
            }
        }
        let error = FsError::XattrSize { size_max: LONGEST };
        assert_eq!(fs.set_xattr(file, b"user.x", &bytes(LONGEST + 1, 1), XattrMode::Set), Err(error));
        assert_eq!(fs.set_xattr(file, &name(LONGEST), b"", XattrMode::Create), Err(FsError::XattrExists(file)));
        assert_eq!(fs.set_xattr(file, b"user.x", &bytes(9_000, 1), XattrMode::Replace), Err(FsError::NoXattr(file)));
        let mut small = [0; 4999];
        let required = FsError::BufferSize { required: 5_000 };
        assert_eq!(fs.get_xattr(file, b"user.5000", &mut small), Err(required));
        let mut fs = again(fs, options);
        for ino in [file, directory] {
            let found = xattrs(&mut fs, ino).unwrap();
            assert_eq!(found.len(), sizes.len(), "pages of {page_size}");
            sizes.iter().for_each(|&size| assert!(found[&name(size)] == bytes(size, 1), "{size}"));
        }
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        // Longer and shorter ones in their places.
        for (size, other) in [(5_000, 6_000), (LONGEST, 10), (0, LONGEST), (300, 4_091), (4_091, 0)] {
            fs.set_xattr(file, &name(size), &bytes(other, 2), XattrMode::Replace).unwrap();
            assert!(read(&mut fs, file, &name(size)) == bytes(other, 2), "{size} to {other}");
        }
        fs.remove_xattr(directory, &name(LONGEST)).unwrap();
        assert_eq!(fs.remove_xattr(directory, &name(LONGEST)), Err(FsError::NoXattr(directory)));
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        let before = everything(&mut fs).unwrap();
        let mut fs = again(fs, options);
        assert_eq!(everything(&mut fs).unwrap(), before);
        // Nothing stays behind of what is removed, at once or in idle time.
        fs.unlink(Ino::ROOT, b"file").unwrap();
        fs.rmdir(Ino::ROOT, b"directory").unwrap();
        while fs.idle(8).unwrap() {}
        let chip = fs.unmount().unwrap();
        if page_size == 512 {
            edit(chip, |tree| {
                [file, directory].iter().for_each(|ino| assert_eq!(keys_of(tree, ino.0, 0x31), Vec::<Vec<u8>>::new()));
                assert_eq!(keys_of(tree, 0, 0x01), Vec::<Vec<u8>>::new());
            });
        }
    }
}

/// What is found is the old value or the new one, and nothing is left of the other, whatever is cut: on a file, a directory, and a file that is
/// open and has no name.
#[test]
fn a_cut_leaves_the_old_value_or_the_new_one() {
    let (file, directory) = (vec![&b"a"[..]], vec![&b"d"[..]]);
    let ops = vec![
        Op::Create(file.clone()),
        Op::SetXattr(file.clone(), b"user.x", bytes(4_500, 1)),
        Op::SetXattr(file.clone(), b"user.yy", bytes(5_200, 2)),
        Op::SetXattr(file.clone(), b"user.x", bytes(6_000, 3)),
        Op::SetXattr(file.clone(), b"user.yy", bytes(20, 4)),
        Op::Sync,
        Op::Mkdir(directory.clone()),
        Op::SetXattr(directory.clone(), b"user.x", bytes(4_400, 5)),
        Op::RemoveXattr(directory, b"user.x"),
        Op::Open(file.clone(), 0),
        Op::Unlink(file),
        Op::Close(0),
        Op::Sync,
    ];
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).resume();
    let summary = driver.every(fixed(Nandu(OPTIONS), ops.clone()), check(Nandu(OPTIONS)));
    assert!(summary.cases > 400, "{summary:?}");
    let driver = Driver::new(formatted_with(SMALL, OPTIONS)).seed(41).resume();
    let summary =
        driver.random(chains(60), fixed(Nandu(OPTIONS), ops.clone()), recover(Nandu(OPTIONS)), check(Nandu(OPTIONS)));
    assert!(summary.cuts >= summary.cases, "{summary:?}");
    let chip = formatted_with(Chip::W25N01GV.with_blocks(24), Options::DEFAULT);
    let options = Options::DEFAULT;
    let summary = Driver::new(chip).resume().every(fixed(Nandu(options), ops), check(Nandu(options)));
    assert!(summary.cases > 40, "{summary:?}");
}

/// Where there is no room for a value, the old one stays, and what was written of the new one is free again.
#[test]
fn a_value_without_room_changes_nothing() {
    for (page_size, blocks) in [(512, 200), (2048, 60)] {
        let options = options_for(page_size);
        let mut fs = fresh(sized(page_size, blocks), options);
        let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
        fs.set_xattr(file, b"user.x", &bytes(8_000, 1), XattrMode::Set).unwrap();
        let mut count = 0;
        let refused = loop {
            let name = format!("user.{count}").into_bytes();
            match fs.set_xattr(file, &name, &bytes(LONGEST, 2), XattrMode::Set) {
                Ok(()) => count += 1,
                Err(error) => break (name, error),
            }
        };
        assert_eq!(refused.1, FsError::Full);
        assert_eq!(fs.set_xattr(file, b"user.x", &bytes(LONGEST, 3), XattrMode::Set), Err(FsError::Full));
        assert_eq!(fs.get_xattr(file, &refused.0, &mut []), Err(FsError::NoXattr(file)));
        assert!(read(&mut fs, file, b"user.x") == bytes(8_000, 1));
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        // One goes, and there is room for another.
        let mut fs = again(fs, options);
        assert!(count > 0);
        for round in 0..3 {
            fs.remove_xattr(file, b"user.0").unwrap();
            fs.set_xattr(file, b"user.0", &bytes(LONGEST - 100, round), XattrMode::Create).unwrap();
        }
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    }
}

/// A file with a long value and a short one, and a directory with a long value: inodes 2 and 64.
fn volume() -> Sim {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(formatted_with(CHIP, OPTIONS), OPTIONS, &mut memory).unwrap();
    let file = fs.create(Ino::ROOT, b"file", Attributes::FILE).unwrap();
    fs.set_xattr(file, b"user.long", &bytes(5_000, 1), XattrMode::Set).unwrap();
    fs.set_xattr(file, b"user.short", &bytes(50, 2), XattrMode::Set).unwrap();
    let directory = fs.mkdir(Ino::ROOT, b"directory", Attributes::DIRECTORY).unwrap();
    fs.set_xattr(directory, b"user.long", &bytes(6_000, 3), XattrMode::Set).unwrap();
    assert_eq!((file, directory), (Ino(2), Ino(64)));
    fs.unmount().unwrap()
}

/// What verify says of a volume, what repair does, and the attributes of the file and the directory then.
fn repaired(chip: Sim) -> (Vec<String>, Vec<String>, [usize; 2]) {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
    let wrong = violations(&mut fs);
    let mut told = Vec::new();
    fs.repair(&mut [], &mut |repair| told.push(format!("{} {:?}", repair.ino, repair.what))).unwrap();
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    fs.sync().unwrap();
    let left = [Ino(2), Ino(64)].map(|ino| xattrs(&mut fs, ino).unwrap().len());
    (wrong, told, left)
}

#[test]
fn long_values_that_are_damaged_are_named_and_repaired() {
    let unowned = |ino| format!("S8 violated by inode {ino}: no attribute names a long value of it");
    let broken = |ino| format!("S8 violated by inode {ino}: its attributes have another size than it says");
    assert_eq!(repaired(volume()), (vec![], vec![], [2, 1]));
    let part = |number: u32, part: u16| [&number.to_be_bytes()[..], &part.to_be_bytes()].concat();
    // A part of one goes; what is left of it goes with its attribute.
    for gone in [1, 7] {
        let chip = edit(volume(), |tree| assert!(tree.delete(&key(2, 0x31, &part(0, gone))).unwrap()));
        assert_eq!(repaired(chip), (vec![broken(2)], vec!["2 XattrLost".into(), "2 Counts".into()], [1, 1]));
    }
    // The record that says whose it is goes, or says another place.
    let lost = (vec![broken(2), unowned(2)], vec!["2 XattrLost".to_owned(), "2 Counts".to_owned()], [1, 1]);
    let chip = edit(volume(), |tree| assert!(tree.delete(&key(2, 0x31, &part(0, 0))).unwrap()));
    assert_eq!(repaired(chip), lost);
    let chip = edit(volume(), |tree| assert!(tree.put(&key(2, 0x31, &part(0, 0)), &[1, 2, 3, 4, 5]).unwrap()));
    assert_eq!(repaired(chip), lost);
    // There is a part too many.
    let last = |tree: &mut Records<'_>| keys_of(tree, 2, 0x31).len() as u16;
    let chip = edit(volume(), |tree| {
        let next = last(tree);
        tree.put(&key(2, 0x31, &part(0, next)), &[1]).unwrap();
    });
    assert_eq!(repaired(chip), (vec![broken(2)], vec!["2 XattrLost".into(), "2 Counts".into()], [1, 1]));
    // A value that nothing names, and an orphan's record that says so: then nothing is wrong.
    let stray = |number: u32| {
        edit(volume(), move |tree| {
            for (at, bytes) in [(0, &[1, 2, 3, 4, 5][..]), (1, b"piece")] {
                tree.put(&key(64, 0x31, &part(number, at)), bytes).unwrap();
            }
        })
    };
    for number in [9, u32::MAX] {
        assert_eq!(repaired(stray(number)), (vec![unowned(64)], vec!["64 Record".into()], [2, 1]));
        let chip = edit(stray(number), |tree| assert!(!tree.put(&key(0, 1, &key(64, 0, &[])[..6]), &[]).unwrap()));
        assert_eq!(repaired(chip), (vec![], vec![], [2, 1]));
    }
    // A value that an attribute names, and an orphan's record that stood there before: a cut right behind the change that names it leaves that.
    let chip = edit(volume(), |tree| assert!(!tree.put(&key(0, 1, &key(64, 0, &[])[..6]), &[]).unwrap()));
    assert_eq!(repaired(chip), (vec![], vec![], [2, 1]));
    // An attribute names the value of none.
    let chip = edit(volume(), |tree| {
        let first = keys_of(tree, 64, 0x30).remove(0);
        let mut record = value(tree, &first);
        record[6] = 5;
        tree.put(&first, &record).unwrap();
    });
    let expected = (vec![broken(64), unowned(64)], vec!["64 XattrLost".into(), "64 Counts".into()], [2, 0]);
    assert_eq!(repaired(chip), expected);
}
