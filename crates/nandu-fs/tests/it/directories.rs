//! Names: how long, how many, and listed while they come and go.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use nandu_fs::{FileKind, Fs, FsError, Ino, Options, XattrMode};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, SMALL, names, violations};

use crate::rig::{FILE, OPTIONS, formatted_with, fresh, memory};

/// 128 MiB, with the default memory.
fn mounted<'m>(memory: &'m mut Vec<u8>, options: Options) -> Fs<'m, Sim> {
    let chip = formatted_with(Chip::W25N01GV, options);
    *memory = crate::rig::memory(&chip.chip().geometry, &options);
    Fs::mount(chip, options, memory).unwrap()
}

#[test]
fn names_have_up_to_255_bytes_of_any_kind() {
    let mut memory = Vec::new();
    let mut fs = mounted(&mut memory, Options::DEFAULT);
    let longest: Vec<u8> = (0..255_u8).map(|byte| if byte == 0 || byte == b'/' { 0xFF } else { byte }).collect();
    let file = fs.create(Ino::ROOT, &longest, FILE).unwrap();
    assert_eq!(fs.lookup(Ino::ROOT, &longest), Ok(file));
    let too_long = [b'n'; 256];
    let error = FsError::NameSize { size: 256, size_max: 255 };
    assert_eq!(error.errno(), 36);
    assert_eq!(fs.create(Ino::ROOT, &too_long, FILE), Err(error));
    assert_eq!(fs.lookup(Ino::ROOT, &too_long), Err(error));
    assert_eq!(fs.rename(Ino::ROOT, &longest, Ino::ROOT, &too_long, Default::default()), Err(error));
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
        assert_eq!(fs.create(Ino::ROOT, name, FILE), Err(FsError::Name), "{name:?}");
    }
    assert_eq!(names(&mut fs, Ino::ROOT).unwrap(), [(longest, file, FileKind::File)]);
    fs.set_xattr(file, &[b'x'; 255], b"value", XattrMode::Set).unwrap();
    let error = FsError::NameSize { size: 256, size_max: 255 };
    assert_eq!(fs.set_xattr(file, &too_long, b"", XattrMode::Set), Err(error));
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

#[test]
fn names_that_are_there_all_the_time_are_listed_once() {
    let mut memory = Vec::new();
    let mut fs = mounted(&mut memory, Options::DEFAULT);
    let name = |number: usize| format!("name-{number}").into_bytes();
    let directory = fs.mkdir(Ino::ROOT, b"directory", FILE).unwrap();
    for number in 0..3_000 {
        fs.create(directory, &name(number), FILE).unwrap();
    }
    let mut chance = Chance::new(5);
    let mut there: BTreeSet<usize> = (0..3_000).collect();
    let mut stays = there.clone();
    let mut next = 3_000;
    let (mut seen, mut cookie) = (Vec::new(), 0);
    loop {
        let before = seen.len();
        fs.read_dir(directory, cookie, |entry| {
            seen.push(entry.name.to_vec());
            cookie = entry.cookie;
            if seen.len() - before == 37 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        if seen.len() == before {
            break;
        }
        for _ in 0..20 {
            let gone = *there.iter().nth(chance.below(there.len())).unwrap();
            fs.unlink(directory, &name(gone)).unwrap();
            there.remove(&gone);
            stays.remove(&gone);
            fs.create(directory, &name(next), FILE).unwrap();
            there.insert(next);
            next += 1;
        }
        if seen.len() % 5 == 0 {
            // A cookie is good for ever.
            let chip = fs.unmount().unwrap();
            fs = Fs::mount(chip, Options::DEFAULT, &mut memory).unwrap();
        }
    }
    assert_eq!(seen[..2], [b".".to_vec(), b"..".to_vec()]);
    let once: BTreeSet<&Vec<u8>> = seen.iter().collect();
    assert_eq!(once.len(), seen.len(), "no name is listed twice");
    assert!(stays.len() > 1_000);
    assert!(stays.iter().all(|&number| once.contains(&name(number))));
}

#[test]
fn names_with_one_hash_are_told_apart() {
    let mut options = OPTIONS;
    options.broken.hash_zeros = 40;
    let mut fs = fresh(SMALL, options);
    let name = |number: u32| format!("{number}").into_bytes();
    let inos: Vec<Ino> = (0..256).map(|number| fs.create(Ino::ROOT, &name(number), FILE).unwrap()).collect();
    assert_eq!(fs.create(Ino::ROOT, &name(256), FILE), Err(FsError::Full), "one byte tells them apart");
    fs.unlink(Ino::ROOT, &name(100)).unwrap();
    let again = fs.create(Ino::ROOT, &name(256), FILE).unwrap();
    assert_eq!(fs.lookup(Ino::ROOT, &name(256)), Ok(again));
    for number in (0..256).filter(|&number| number != 100) {
        assert_eq!(fs.lookup(Ino::ROOT, &name(number)), Ok(inos[number as usize]));
    }
    for number in 0..20 {
        let name = format!("user.{number}");
        fs.set_xattr(again, name.as_bytes(), name.as_bytes(), XattrMode::Create).unwrap();
    }
    let mut value = [0; 20];
    assert_eq!(fs.get_xattr(again, b"user.7", &mut value), Ok(6));
    assert_eq!(&value[..6], b"user.7");
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

#[test]
fn a_removed_directory_that_is_open_takes_no_names() {
    let mut fs = fresh(SMALL, OPTIONS);
    let directory = fs.mkdir(Ino::ROOT, b"d", FILE).unwrap();
    fs.open(directory).unwrap();
    fs.rmdir(Ino::ROOT, b"d").unwrap();
    assert_eq!(fs.create(directory, b"a", FILE), Err(FsError::NotFound { directory }));
    assert_eq!(names(&mut fs, directory).unwrap(), []);
    fs.close(directory).unwrap();
    assert_eq!(fs.stat(directory), Err(FsError::NoInode(directory)));
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

/// Numbers are never given twice, whatever is removed.
#[test]
fn numbers_are_given_once() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let mut fs = Fs::mount(formatted_with(SMALL, OPTIONS), OPTIONS, &mut memory).unwrap();
    let mut given = BTreeSet::new();
    for round in 0..300 {
        let ino = match round % 3 {
            0 => fs.mkdir(Ino::ROOT, b"x", FILE).unwrap(),
            _ => fs.create(Ino::ROOT, b"x", FILE).unwrap(),
        };
        assert!(given.insert(ino), "{ino}");
        if round % 3 == 0 {
            fs.rmdir(Ino::ROOT, b"x").unwrap()
        } else {
            fs.unlink(Ino::ROOT, b"x").unwrap()
        }
        if round % 50 == 0 {
            fs = Fs::mount(fs.unmount().unwrap(), OPTIONS, &mut memory).unwrap();
        }
    }
}
