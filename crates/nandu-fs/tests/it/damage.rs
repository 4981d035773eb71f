//! Volumes that say what no file system says: each violation is named, and nothing panics or goes on for long.

use std::ops::ControlFlow;

use nandu_fs::{Allocation, Format, Fs, Ino, RenameMode, XattrMode};
use nandu_index::{Direction, Entry};
use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Chance, SMALL, everything, violations};

use crate::records::{Records, checksum, edit};
use crate::rig::{FILE, OPTIONS, memory};

pub(crate) const CHIP: Chip = SMALL.with_blocks(32);

/// A file system with something of each kind; inodes: directory 64, file 65 in it (link in the root), symlink 2, file with holes 3.
pub(crate) fn volume() -> Sim {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::format(Sim::new(CHIP), OPTIONS, Format::default(), &mut memory).unwrap();
    let directory = fs.mkdir(Ino::ROOT, b"directory", FILE).unwrap();
    let file = fs.create(directory, b"file", FILE).unwrap();
    fs.write_at(file, 0, &[3; 1200]).unwrap();
    fs.sync().unwrap();
    fs.write_at(file, 600, &[4; 20]).unwrap();
    fs.set_xattr(file, b"user.x", &[1; 200], XattrMode::Set).unwrap();
    fs.link(file, Ino::ROOT, b"link").unwrap();
    fs.symlink(Ino::ROOT, b"symlink", b"directory/file", FILE).unwrap();
    let holes = fs.create(Ino::ROOT, b"holes", FILE).unwrap();
    fs.write_at(holes, 5000, b"data").unwrap();
    fs.allocate(holes, Allocation::KeepSize, 0, 10_000).unwrap();
    assert_eq!((directory, file, holes), (Ino(64), Ino(65), Ino(3)));
    fs.unmount().unwrap()
}

pub(crate) fn key(ino: u64, kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = ino.to_be_bytes()[2..].to_vec();
    key.push(kind);
    key.extend(rest);
    key
}

/// The keys of an inode's records of a kind.
pub(crate) fn keys_of(tree: &mut Records<'_>, ino: u64, kind: u8) -> Vec<Vec<u8>> {
    let (from, to) = (key(ino, kind, &[]), key(ino, kind + 1, &[]));
    let mut found = Vec::new();
    let bounds = (std::ops::Bound::Included(&from[..]), std::ops::Bound::Excluded(&to[..]));
    tree.range(bounds.0, bounds.1, Direction::Forward, |entry| {
        found.push(entry.key.to_vec());
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

pub(crate) fn value(tree: &mut Records<'_>, key: &[u8]) -> Vec<u8> {
    tree.get(key).unwrap().unwrap().to_vec()
}

/// Sets the numbers that a directory with one digit of each number has left.
pub(crate) fn set_numbers(tree: &mut Records<'_>, ino: u64, next: u8, end: u8) {
    let mut inode = value(tree, &key(ino, 0, &[]));
    // The parent's number is the last but these two, of which the end takes two bytes if it is a chunk behind the first.
    let parent = inode.len() - if ino == Ino::ROOT.0 { 3 } else { 4 };
    assert_eq!(inode[parent], 1);
    inode.truncate(parent + 1);
    inode.push(next);
    // Seven bits a byte, and a bit that says that more follow.
    inode.extend(if end < 0x80 { vec![end] } else { vec![end | 0x80, 1] });
    tree.put(&key(ino, 0, &[]), &inode).unwrap();
}

/// The root would give away numbers of the directory, and has gone further.
pub(crate) fn with_shared_chunk() -> Sim {
    edit(volume(), |tree| set_numbers(tree, Ino::ROOT.0, 70, 128))
}

/// The invariants that are violated.
fn violated(chip: Sim) -> Vec<String> {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
    let mut found = Vec::new();
    fs.verify(&mut [], &mut |violation| found.push(violation.to_string().split(' ').next().unwrap().to_owned()))
        .unwrap();
    found.sort();
    found.dedup();
    found
}

#[test]
fn each_violation_is_named() {
    assert_eq!(violated(volume()), Vec::<String>::new());
    // An inode goes, and its names, its records and its place in its directory are left.
    let chip = edit(volume(), |tree| assert!(tree.delete(&key(65, 0, &[])).unwrap()));
    assert_eq!(violated(chip), ["S2", "S3"]);
    // A name goes.
    let chip = edit(volume(), |tree| {
        let name = keys_of(tree, 64, 0x10).remove(0);
        assert!(tree.delete(&name).unwrap());
    });
    assert_eq!(violated(chip), ["S4", "S5"]);
    // A directory says that another one has its name.
    let chip = edit(volume(), |tree| {
        let mut inode = value(tree, &key(64, 0, &[]));
        let parent = inode.len() - 4;
        assert_eq!(inode[parent], 1);
        inode[parent] = 64;
        tree.put(&key(64, 0, &[]), &inode).unwrap();
    });
    assert_eq!(violated(chip), ["S5"]);
    // Two directories have the same numbers left, or one has what is no chunk.
    assert_eq!(violated(with_shared_chunk()), ["S9"]);
    let chip = edit(volume(), |tree| set_numbers(tree, 64, 66, 100));
    assert_eq!(violated(chip), ["S9"]);
    // A page goes.
    let chip = edit(volume(), |tree| assert!(tree.delete(&key(65, 0x20, &[0, 0, 0, 0])).unwrap()));
    assert_eq!(violated(chip), ["S6"]);
    // A page behind the end.
    let chip = edit(volume(), |tree| {
        tree.put(&key(65, 0x20, &[0, 0, 1, 0]), &[1, 0, 0, 7]).unwrap();
    });
    assert_eq!(violated(chip), ["S6"]);
    // A fragment over a hole.
    let chip = edit(volume(), |tree| {
        tree.put(&key(3, 0x20, &[0, 0, 0, 1, 0, 3]), &[0, 1, 2]).unwrap();
    });
    assert_eq!(violated(chip), ["S7"]);
    // A part of an attribute goes.
    let chip = edit(volume(), |tree| {
        let last = keys_of(tree, 65, 0x30).pop().unwrap();
        assert!(tree.delete(&last).unwrap());
    });
    assert_eq!(violated(chip), ["S8"]);
    // An inode with a number that nobody gave it.
    let chip = edit(volume(), |tree| {
        let inode = value(tree, &key(65, 0, &[]));
        tree.put(&key(90, 0, &[]), &inode).unwrap();
    });
    assert_eq!(violated(chip), ["S4", "S6", "S8", "S9"]);
    // A record that means nothing, an orphan's record that names none, and no root.
    let chip = edit(volume(), |tree| {
        tree.put(&key(65, 0x77, &[1]), b"what").unwrap();
        tree.put(&key(0, 1, &key(77, 0, &[])[..6]), &[]).unwrap();
        tree.delete(&key(1, 0, &[])).unwrap();
    });
    assert_eq!(violated(chip), ["S1", "S2", "S4"]);
}

/// What a cut truncation left of a file is noted until it is removed; where the file goes before that, the note goes with it.
#[test]
fn the_note_of_a_cut_truncation_goes_with_its_file() {
    let mut other = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::format(Sim::new(CHIP), OPTIONS, Format::default(), &mut other).unwrap();
    let files = [&b"a"[..], b"b"].map(|name| fs.create(Ino::ROOT, name, FILE).unwrap());
    let chip = edit(fs.unmount().unwrap(), |tree| {
        for ino in files {
            tree.put(&key(0, 1, &key(ino.0, 0, &[])[..6]), &[]).unwrap();
        }
    });
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
    // A change removes a step of what is noted first, so the note of the second file is still there.
    fs.unlink(Ino::ROOT, b"b").unwrap();
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

/// Does everything with whatever is there. It may fail, and must not panic or go on for long.
fn use_it(chip: Sim) -> bool {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let before = chip.operation_count();
    let Ok(mut fs) = Fs::mount(chip, OPTIONS, &mut memory) else { return false };
    let _ = fs.verify(&mut [], &mut |_| ());
    let mut out = [0; 700];
    for ino in [1, 2, 3, 64, 65].map(Ino) {
        let _ = fs.stat(ino);
        let _ = fs.read_at(ino, 300, &mut out);
        let _ = fs.read_link(ino, &mut out);
        let _ = fs.get_xattr(ino, b"user.x", &mut out);
        let _ = fs.list_xattrs(ino, |_| ());
        let _ = fs.read_dir(ino, 0, |_| ControlFlow::Continue(()));
        let _ = fs.seek_data(ino, 0);
        let _ = fs.seek_hole(ino, 0);
        let _ = fs.write_at(ino, 500, &[9; 700]);
        let _ = fs.append(ino, &[8; 30]);
        let _ = fs.allocate(ino, Allocation::PunchHole, 10, 600);
        let _ = fs.truncate(ino, 200);
        let _ = fs.set_xattr(ino, b"user.x", b"new", XattrMode::Set);
        let _ = fs.chmod(ino, 0o600);
        let _ = fs.create(ino, b"new", FILE);
        let _ = fs.mkdir(ino, b"new-directory", FILE);
        let _ = fs.sync();
    }
    for mode in [RenameMode::Exchange, RenameMode::Replace] {
        let _ = fs.rename(Ino(1), b"link", Ino(64), b"file", mode);
        let _ = fs.rename(Ino(1), b"directory", Ino(64), b"below", mode);
        let _ = fs.rename(Ino(1), b"directory", Ino(1), b"holes", mode);
    }
    for name in [&b"link"[..], b"symlink", b"holes", b"directory", b"new"] {
        let _ = fs.unlink(Ino(1), name);
        let _ = fs.rmdir(Ino(1), name);
    }
    let _ = fs.idle(4);
    let _ = fs.verify(&mut [], &mut |_| ());
    let count = fs.nand().operation_count() - before;
    assert!(count < 60_000, "{count} operations");
    let _ = everything(&mut fs);
    true
}

/// Every record in turn gets something else, of which some is understood and most is not.
#[test]
fn records_of_any_content_do_no_harm() {
    let volume = volume();
    let mut keys = Vec::new();
    let copy = edit(volume.clone(), |tree| {
        let visit = |entry: Entry<'_>| {
            keys.push((entry.key.to_vec(), entry.value.to_vec()));
            ControlFlow::Continue(())
        };
        tree.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, Direction::Forward, visit).unwrap();
    });
    assert!(keys.len() > 20);
    let mut chance = Chance::new(9);
    let mut mounted = 0;
    for (key, value) in &keys {
        for round in 0..6 {
            let chip = edit(copy.clone(), |tree| {
                let mut other = match round {
                    0 => Vec::new(),
                    1 => chance.bytes(30),
                    _ => value.clone(),
                };
                match round {
                    2 | 3 if !other.is_empty() => {
                        let at = chance.below(other.len());
                        other[at] ^= 1 << chance.below(8);
                    }
                    4 => other = keys[chance.below(keys.len())].1.clone(),
                    5 => other.truncate(chance.below(other.len() + 1)),
                    _ => {}
                }
                tree.put(key, &other).unwrap();
            });
            mounted += usize::from(use_it(chip));
        }
    }
    assert!(mounted > keys.len() * 5, "{mounted}");
}

/// Any byte of any page, with the page's checksum made right again.
#[test]
fn damaged_pages_do_no_harm() {
    let volume = volume();
    let programmed: Vec<(u32, Vec<u8>)> = (0..CHIP.geometry.page_count())
        .map(|page| (page, volume.peek(PageAddr(page))[..512].to_vec()))
        .filter(|(_, bytes)| bytes.iter().any(|&byte| byte != 0xFF))
        .collect();
    let mut chance = Chance::new(10);
    let mut mounted = 0;
    for _ in 0..300 {
        let mut chip = Sim::new(CHIP);
        for block in 0..CHIP.geometry.block_count {
            chip.erase(BlockAddr(block), CellMode::Slc).unwrap();
        }
        let damaged = chance.below(programmed.len());
        for (index, (page, bytes)) in programmed.iter().enumerate() {
            let mut bytes = bytes.clone();
            if index == damaged || chance.below(8) == 0 {
                for _ in 0..=chance.below(3) {
                    let at = 36 + chance.below(476);
                    bytes[at] = bytes[at].wrapping_add(1 + chance.below(255) as u8);
                }
                let crc = checksum(&bytes[4..]);
                bytes[..4].copy_from_slice(&crc.to_le_bytes());
            }
            chip.poke(PageAddr(*page), &bytes);
        }
        mounted += usize::from(use_it(chip));
    }
    assert!(mounted > 60, "{mounted}");
}
