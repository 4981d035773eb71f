//! What every file system does, one thing after another.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use nandu_files::errno::{EFBIG, EINVAL, ENAMETOOLONG, ENOENT, ESTALE};
use nandu_files::{
    Allocation, Attributes, Feature, FileError, FileKind, FileSystem, Ino, RenameMode, SetAttributes, XattrMode,
};
use nandu_sim::{Chip, Sim};

use crate::operation::NEW;
use crate::seen::{content, everything, names, violations};
use crate::system::System;

/// The number of the error; `None` if there was none.
fn errno<T, E: FileError>(outcome: Result<T, E>) -> Option<i32> {
    outcome.err().map(|error| error.errno())
}

/// What is done with a file system between two mounts.
type Part<'p, S> = &'p dyn Fn(&mut <S as System>::Mounted<'_, Sim>);

/// Calls with an empty file system, holds that it is sound afterwards, and that the next mount finds the same.
fn with_empty<S: System, const PARTS: usize>(system: &S, chip: Chip, parts: [Part<'_, S>; PARTS]) {
    let mut memory = system.memory(&chip.geometry);
    let mut fs = system.format(Sim::new(chip), &mut memory).unwrap();
    for part in parts {
        part(&mut fs);
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        let found = everything(&mut fs).unwrap();
        let sim = fs.unmount().unwrap();
        fs = system.mount(sim, &mut memory).unwrap();
        assert_eq!(everything(&mut fs).unwrap(), found, "found by the next mount");
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    }
}

/// A name of so many bytes, of all values that a name can have; those of neighbouring lengths begin alike.
fn name(size: usize) -> Vec<u8> {
    let bytes = (0..=255_u8).rev().filter(|&byte| byte != 0 && byte != b'/').cycle();
    bytes.take(size).collect()
}

/// Names of every length there is, and those that are none.
pub fn names_of_all_lengths<S: System>(system: &S, chip: Chip) {
    let size_max = system.capabilities(chip).name_size_max as usize;
    let make = |fs: &mut S::Mounted<'_, Sim>| {
        let directory = fs.mkdir(Ino::ROOT, &name(size_max), NEW).unwrap();
        for size in 1..=size_max {
            let file = fs.create(directory, &name(size), NEW).unwrap();
            assert_eq!(fs.stat(file).unwrap().kind, FileKind::File);
        }
        refuse_names(fs, size_max);
    };
    let find = |fs: &mut S::Mounted<'_, Sim>| {
        let directory = fs.lookup(Ino::ROOT, &name(size_max)).unwrap();
        assert_eq!(names(fs, directory).unwrap().len(), size_max);
        for size in 1..=size_max {
            fs.lookup(directory, &name(size)).unwrap();
        }
        // Half of them get another length and go to the root, which has the longest already.
        for size in (1..size_max).filter(|size| size % 2 == 1) {
            let renamed = fs.rename(directory, &name(size), Ino::ROOT, &name(size_max - size), RenameMode::Replace);
            assert_eq!(errno(renamed), None, "{size}");
            assert_eq!(errno(fs.lookup(directory, &name(size))), Some(ENOENT));
            fs.lookup(Ino::ROOT, &name(size_max - size)).unwrap();
        }
    };
    let remove = |fs: &mut S::Mounted<'_, Sim>| {
        let directory = fs.lookup(Ino::ROOT, &name(size_max)).unwrap();
        for above in [directory, Ino::ROOT] {
            for (name, _, kind) in names(fs, above).unwrap() {
                match kind {
                    FileKind::Directory => fs.rmdir(above, &name).unwrap(),
                    _ => fs.unlink(above, &name).unwrap(),
                }
            }
        }
        assert_eq!(names(fs, Ino::ROOT).unwrap(), []);
    };
    with_empty(system, chip, [&make, &find, &remove]);
}

/// What is no name is refused by everything that takes one.
fn refuse_names<F: FileSystem>(fs: &mut F, size_max: usize) {
    let refused: [(&[u8], i32); 6] = [
        (&name(size_max + 1), ENAMETOOLONG),
        (b"", EINVAL),
        (b".", EINVAL),
        (b"..", EINVAL),
        (b"a/b", EINVAL),
        (b"a\0b", EINVAL),
    ];
    for (name, number) in refused {
        let outcomes = [
            errno(fs.create(Ino::ROOT, name, NEW)),
            errno(fs.mkdir(Ino::ROOT, name, NEW)),
            errno(fs.unlink(Ino::ROOT, name)),
            errno(fs.rmdir(Ino::ROOT, name)),
            errno(fs.rename(Ino::ROOT, name, Ino::ROOT, b"b", RenameMode::Replace)),
        ];
        assert_eq!(outcomes, [Some(number); 5], "{}", name.escape_ascii());
    }
    assert_eq!(errno(fs.lookup(Ino::ROOT, &name(size_max + 1))), Some(ENAMETOOLONG));
}

/// A directory with so many names, listed in pieces while names come and go: what was there all the time is visited once.
pub fn listings_while_names_come_and_go<S: System>(system: &S, chip: Chip, count: usize) {
    let stays = |number: usize| format!("stays-{number}").into_bytes();
    let make = |fs: &mut S::Mounted<'_, Sim>| {
        let directory = fs.mkdir(Ino::ROOT, b"d", NEW).unwrap();
        for number in 0..count {
            fs.create(directory, &stays(number), NEW).unwrap();
            fs.create(directory, format!("goes-{number}").as_bytes(), NEW).unwrap();
        }
    };
    let list = |fs: &mut S::Mounted<'_, Sim>| {
        let directory = fs.lookup(Ino::ROOT, b"d").unwrap();
        let (mut cookie, mut visited, mut piece) = (0, Vec::new(), 0);
        loop {
            let mut left = 1 + piece % 5;
            let before = visited.len();
            let list = fs.read_dir(directory, cookie, &mut |entry| {
                visited.push(entry.name.to_vec());
                cookie = entry.cookie;
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            list.unwrap();
            if visited.len() == before {
                break;
            }
            piece += 1;
            if piece <= count {
                fs.unlink(directory, format!("goes-{}", piece - 1).as_bytes()).unwrap();
                fs.create(directory, format!("comes-{piece}").as_bytes(), NEW).unwrap();
            }
        }
        assert_eq!(visited[..2], [&b"."[..], b".."]);
        let all: BTreeSet<_> = visited.iter().collect();
        assert_eq!(all.len(), visited.len(), "nothing is visited twice");
        for number in 0..count {
            assert!(all.contains(&stays(number)), "{number} was there all the time");
        }
    };
    with_empty(system, chip, [&make, &list]);
}

/// What a file was never given reads as zeros, and takes flash only if the system says so.
pub fn holes<S: System>(system: &S, chip: Chip) {
    let page = chip.geometry.page_size as usize;
    let make = |fs: &mut S::Mounted<'_, Sim>| {
        let is_sparse = fs.capabilities().sparse;
        let file = fs.create(Ino::ROOT, b"a", NEW).unwrap();
        fs.open(file).unwrap();
        let mut expected = vec![0; 9 * page + 7];
        fs.write_at(file, 9 * page as u64 + 2, b"-end-").unwrap();
        expected[9 * page + 2..].copy_from_slice(b"-end-");
        assert!(content(fs, file).unwrap() == expected);
        fs.sync().unwrap();
        let allocated = fs.stat(file).unwrap().allocated_size;
        assert_eq!(is_sparse, allocated <= 2 * page as u64, "{allocated} bytes");
        fs.write_at(file, 3 * page as u64 - 2, &[5; 4]).unwrap();
        expected[3 * page - 2..3 * page + 2].fill(5);
        fs.truncate(file, 9 * page as u64 + 4).unwrap();
        expected.truncate(9 * page + 4);
        assert!(content(fs, file).unwrap() == expected);
        // What was cut off does not come back.
        fs.truncate(file, 3 * page as u64 - 1).unwrap();
        fs.truncate(file, 6 * page as u64).unwrap();
        expected.truncate(3 * page - 1);
        expected.resize(6 * page, 0);
        assert!(content(fs, file).unwrap() == expected);
        fs.close(file).unwrap();
    };
    with_empty(system, chip, [&make, &|_| ()]);
}

/// What is open stays when its name goes, until it is closed.
pub fn open_files_without_names<S: System>(system: &S, chip: Chip) {
    let make = |fs: &mut S::Mounted<'_, Sim>| {
        for is_replaced in [false, true] {
            let file = fs.create(Ino::ROOT, b"a", NEW).unwrap();
            fs.open(file).unwrap();
            fs.open(file).unwrap();
            fs.write_at(file, 0, &[7; 3000]).unwrap();
            if is_replaced {
                fs.create(Ino::ROOT, b"b", NEW).unwrap();
                fs.rename(Ino::ROOT, b"b", Ino::ROOT, b"a", RenameMode::Replace).unwrap();
            } else {
                fs.unlink(Ino::ROOT, b"a").unwrap();
            }
            fs.close(file).unwrap();
            fs.write_at(file, 2990, &[8; 20]).unwrap();
            let found = content(fs, file).unwrap();
            assert!(found.len() == 3010 && found[..2990] == [7; 2990] && found[2990..] == [8; 20]);
            assert_eq!(fs.stat(file).unwrap().nlink, 0);
            fs.sync().unwrap();
            fs.close(file).unwrap();
            assert_eq!(errno(fs.stat(file)), Some(ESTALE));
        }
        fs.unlink(Ino::ROOT, b"a").unwrap();
        // One that is never closed goes with the mount.
        let file = fs.create(Ino::ROOT, b"c", NEW).unwrap();
        fs.open(file).unwrap();
        fs.write_at(file, 0, &[9; 3000]).unwrap();
        fs.unlink(Ino::ROOT, b"c").unwrap();
    };
    with_empty(system, chip, [&make, &|fs| assert_eq!(names(fs, Ino::ROOT).unwrap(), [])]);
}

/// What a system says that it lacks is refused with the number that users expect, and what it does not say works.
pub fn what_is_lacking_is_refused<S: System>(system: &S, chip: Chip) {
    let make = |fs: &mut S::Mounted<'_, Sim>| {
        let capabilities = fs.capabilities();
        let expected = |feature: Feature| if capabilities.has(feature) { None } else { Some(feature.errno()) };
        let file = fs.create(Ino::ROOT, b"a", NEW).unwrap();
        fs.create(Ino::ROOT, b"b", NEW).unwrap();
        assert_eq!(errno(fs.link(file, Ino::ROOT, b"l")), expected(Feature::HardLinks));
        assert_eq!(errno(fs.symlink(Ino::ROOT, b"s", b"a", NEW)), expected(Feature::Symlinks));
        for kind in [FileKind::Fifo, FileKind::Socket, FileKind::CharDevice, FileKind::BlockDevice] {
            let attributes = Attributes { mode: kind.mode() | 0o600, ..NEW };
            let name = format!("{kind:?}").into_bytes();
            assert_eq!(errno(fs.create(Ino::ROOT, &name, attributes)), expected(Feature::SpecialFiles));
        }
        assert_eq!(errno(fs.set_xattr(file, b"user.x", b"1", XattrMode::Set)), expected(Feature::Xattrs));
        assert_eq!(errno(fs.list_xattrs(file, &mut |_| ())), expected(Feature::Xattrs));
        assert_eq!(errno(fs.allocate(file, Allocation::Extend, 0, 10)), expected(Feature::Allocation));
        let exchanged = fs.rename(Ino::ROOT, b"a", Ino::ROOT, b"b", RenameMode::Exchange);
        assert_eq!(errno(exchanged), expected(Feature::Exchange));
        let file = fs.lookup(Ino::ROOT, b"a").unwrap();
        let size_max = capabilities.file_size_max;
        assert_eq!(errno(fs.truncate(file, size_max + 1)), Some(EFBIG));
        assert_eq!(errno(fs.write_at(file, size_max, b"a")), Some(EFBIG));
        if let Some(owner) = capabilities.owner_max.checked_add(1) {
            for set in [(Some(owner), None), (None, Some(owner))] {
                let set = SetAttributes { uid: set.0, gid: set.1, ..SetAttributes::default() };
                assert_eq!(errno(fs.set_attributes(file, set)), Some(EINVAL));
            }
        }
    };
    with_empty(system, chip, [&make]);
}

/// All of these, on one kind of chip.
pub fn conformance<S: System>(system: &S, chip: Chip) {
    names_of_all_lengths(system, chip);
    listings_while_names_come_and_go(system, chip, 12);
    holes(system, chip);
    open_files_without_names(system, chip);
    what_is_lacking_is_refused(system, chip);
}
