//! The digest: alike for the same files, other for others, and none of what cannot be read.

use std::collections::BTreeMap;
use std::hash::Hasher;

use nandu_fs::{Allocation, Attributes, Format, Fs, FsError, Ino, RenameMode, SetAttributes, Time, XattrMode};
use nandu_nand::PageAddr;
use nandu_sim::{Chip, Fault, Sim, Trigger};
use nandu_suite::cuts::choose;
use nandu_suite::{Everything, Model, PAGE_SIZES, SMALL, Slots, System, apply_errno, everything, sized};
use siphasher::sip::SipHasher24;

use crate::damage;
use crate::lives::TAGGED;
use crate::records::edit;
use crate::rig::{FILE, Nandu, OPTIONS, fresh, memory, options_for};

const DIRECTORY: Attributes = Attributes { mode: 0o755, ..FILE };

fn hash(of: u64, numbers: &[u64], bytes: &[&[u8]]) -> u64 {
    let mut hash = SipHasher24::new_with_key(b"nandu files 1\0\0\0");
    [of].iter().chain(numbers).for_each(|number| hash.write(&number.to_le_bytes()));
    bytes.iter().for_each(|bytes| hash.write(bytes));
    hash.finish()
}

fn sum(hashes: impl Iterator<Item = u64>) -> u64 {
    hashes.fold(0, u64::wrapping_add)
}

/// What `FORMAT.md` says of what is seen.
fn as_documented(fs: &mut Fs<'_, Sim>, seen: &Everything) -> u64 {
    let place = |path: &[u8]| {
        let names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        names.fold(0_u64, |place, name| {
            (place ^ hash(2, &[], &[name])).rotate_left(23).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        })
    };
    let mut places: BTreeMap<&[u8], u64> = BTreeMap::new();
    for (path, it) in seen {
        let sum = places.entry(&it.same_as).or_default();
        *sum = sum.wrapping_add(place(path));
    }
    sum(places.into_iter().map(|(path, place)| {
        let it = &seen[path];
        let content = match it.mode >> 12 {
            8 => sum(it.content.chunks(256).enumerate().map(|(number, block)| {
                let mut whole = [0; 256];
                whole[..block.len()].copy_from_slice(block);
                if whole == [0; 256] { 0 } else { hash(3, &[number as u64], &[&whole]) }
            })),
            10 => hash(4, &[], &[&it.content]),
            _ => 0,
        };
        let attributes = sum(it.xattrs.iter().map(|(name, value)| {
            let size = (value.len() as u64).to_le_bytes();
            hash(5, &[name.len() as u64], &[name, &size, value])
        }));
        let ino = fs.lookup_path(path).unwrap();
        let rdev = fs.stat(ino).unwrap().rdev;
        let (mode, uid, gid) = (it.mode.into(), it.owner.0.into(), it.owner.1.into());
        hash(1, &[place, mode, uid, gid, rdev, it.content.len() as u64, content, attributes], &[])
    }))
}

/// The digest of what is there, which nothing else has a part in.
fn checked(fs: &mut Fs<'_, Sim>) -> u64 {
    let digest = fs.digest().unwrap();
    let seen = everything(fs).unwrap();
    assert_eq!(digest, as_documented(fs, &seen));
    digest
}

/// Unmounts, or is cut, and mounts again.
fn again(fs: Fs<'static, Sim>, options: nandu_fs::Options, is_cut: bool) -> Fs<'static, Sim> {
    let chip = if is_cut { fs.abandon() } else { fs.unmount().unwrap() };
    let memory = memory(&chip.chip().geometry, &options).leak();
    Fs::mount(chip, options, memory).unwrap()
}

#[test]
fn whatever_was_done_the_digest_is_that_of_what_is_seen() {
    let chips = PAGE_SIZES.map(|page_size| (sized(page_size, 96), options_for(page_size)));
    for (chip, options) in chips.into_iter().chain([(TAGGED, OPTIONS)]) {
        let mut model = Model::new(Nandu(options).capabilities(chip));
        let mut slots = Slots::default();
        let mut fs = fresh(chip, options);
        for count in 0..240 {
            model.now = 1000 + count as i64;
            fs.set_now(Time::from_seconds(model.now));
            let op = choose(&model, 5, count, chip.geometry.page_size as usize);
            let _ = (apply_errno(&mut fs, &mut slots, &op), model.apply(&op));
            if count % 60 == 59 {
                fs.sync().unwrap();
                let digest = checked(&mut fs);
                // What was kept for a snapshot is no part of it.
                let number = fs.snapshot().unwrap();
                assert_eq!(fs.digest(), Ok(digest));
                fs = again(fs, options, count % 120 == 59);
                slots = Slots::default();
                model = Model::of(&everything(&mut fs).unwrap(), *model.capabilities());
                assert_eq!(fs.digest(), Ok(digest));
                fs.release_snapshot(number).unwrap();
            } else if count % 20 == 0 {
                checked(&mut fs);
            }
        }
    }
}

/// Some files, made in one order or the other, by detours or straight on.
fn made(chip: Chip, hash_key: u8, is_straight: bool) -> Fs<'static, Sim> {
    let options = options_for(chip.geometry.page_size);
    let memory = memory(&chip.geometry, &options).leak();
    let format = Format { hash_key: [hash_key; 16], ..Format::default() };
    let mut fs = Fs::format(Sim::new(chip), options, format, memory).unwrap();
    let text: Vec<u8> = (0..9000_u32).map(|at| (at / 5) as u8).collect();
    if is_straight {
        let log = fs.mkdir(Ino::ROOT, b"log", DIRECTORY).unwrap();
        let today = fs.create(log, b"today", FILE).unwrap();
        fs.write_at(today, 0, &text).unwrap();
        fs.link(today, Ino::ROOT, b"latest").unwrap();
        let sparse = fs.create(Ino::ROOT, b"sparse", FILE).unwrap();
        fs.truncate(sparse, 300_000).unwrap();
        fs.write_at(sparse, 100_000, b"data").unwrap();
        fs.symlink(Ino::ROOT, b"now", b"log/today", FILE).unwrap();
        fs.set_xattr(today, b"user.a", &[1; 5000], XattrMode::Set).unwrap();
        fs.set_xattr(today, b"user.b", b"2", XattrMode::Set).unwrap();
    } else {
        fs.set_now(Time::from_seconds(5));
        fs.symlink(Ino::ROOT, b"now", b"log/today", FILE).unwrap();
        let sparse = fs.create(Ino::ROOT, b"thick", FILE).unwrap();
        fs.write_at(sparse, 0, &[0; 60_000]).unwrap();
        fs.write_at(sparse, 90_000, &[7; 20_000]).unwrap();
        fs.allocate(sparse, Allocation::PunchHole, 90_000, 10_000).unwrap();
        fs.write_at(sparse, 100_000, b"data").unwrap();
        fs.write_at(sparse, 100_004, &[0; 9996]).unwrap();
        fs.truncate(sparse, 300_000).unwrap();
        fs.allocate(sparse, Allocation::KeepSize, 0, 400_000).unwrap();
        fs.rename(Ino::ROOT, b"thick", Ino::ROOT, b"sparse", RenameMode::Replace).unwrap();
        let first = fs.create(Ino::ROOT, b"first", FILE).unwrap();
        for (at, piece) in text.chunks(700).enumerate().collect::<Vec<_>>().into_iter().rev() {
            fs.write_at(first, at as u64 * 700, piece).unwrap();
        }
        fs.set_xattr(first, b"user.b", b"2", XattrMode::Set).unwrap();
        fs.set_xattr(first, b"user.a", &[3; 200], XattrMode::Set).unwrap();
        fs.set_xattr(first, b"user.a", &[1; 5000], XattrMode::Set).unwrap();
        let log = fs.mkdir(Ino::ROOT, b"logs", DIRECTORY).unwrap();
        fs.rename(Ino::ROOT, b"logs", Ino::ROOT, b"log", RenameMode::Replace).unwrap();
        fs.link(first, Ino::ROOT, b"latest").unwrap();
        fs.rename(Ino::ROOT, b"first", log, b"today", RenameMode::Replace).unwrap();
        let gone = fs.create(Ino::ROOT, b"gone", FILE).unwrap();
        fs.write_at(gone, 0, &text).unwrap();
        fs.unlink(Ino::ROOT, b"gone").unwrap();
    }
    fs
}

#[test]
fn the_same_files_have_one_digest_whatever_their_history_and_the_chip() {
    let expected = checked(&mut made(sized(2048, 120), 1, true));
    for (page_size, blocks) in [(512, 400), (2048, 120), (8192, 64)] {
        for (hash_key, is_straight) in [(1, true), (2, false), (3, true)] {
            let mut fs = made(sized(page_size, blocks), hash_key, is_straight);
            assert_eq!(fs.digest(), Ok(expected), "pages of {page_size}");
            fs.sync().unwrap();
            let mut fs = again(fs, options_for(page_size), hash_key == 2);
            while fs.idle(8).unwrap() {}
            assert_eq!(checked(&mut fs), expected);
        }
    }
}

#[test]
fn every_change_that_can_be_seen_but_of_times_is_another_digest() {
    let mut fs = made(sized(2048, 120), 1, true);
    let log = fs.lookup(Ino::ROOT, b"log").unwrap();
    let [today, sparse] = [&b"log/today"[..], b"sparse"].map(|path| fs.lookup_path(path).unwrap());
    let mut digests = vec![fs.digest().unwrap()];
    let mut changed = |fs: &mut Fs<'_, Sim>| {
        let digest = checked(fs);
        assert!(!digests.contains(&digest), "change {}", digests.len());
        digests.push(digest);
    };
    fs.write_at(today, 4321, b"!").unwrap();
    changed(&mut fs);
    fs.truncate(sparse, 300_001).unwrap();
    changed(&mut fs);
    fs.write_at(sparse, 100_001, b"\0").unwrap();
    changed(&mut fs);
    fs.chmod(log, 0o700).unwrap();
    changed(&mut fs);
    fs.chown(Ino::ROOT, None, Some(7)).unwrap();
    changed(&mut fs);
    fs.chown(today, Some(7), None).unwrap();
    changed(&mut fs);
    fs.set_xattr(today, b"user.b", b"3", XattrMode::Replace).unwrap();
    changed(&mut fs);
    fs.set_xattr(log, b"user.b", b"", XattrMode::Create).unwrap();
    changed(&mut fs);
    fs.set_xattr(today, b"user.a", &[[1; 4999].as_slice(), &[2]].concat(), XattrMode::Replace).unwrap();
    changed(&mut fs);
    fs.unlink(Ino::ROOT, b"now").unwrap();
    changed(&mut fs);
    fs.symlink(Ino::ROOT, b"now", b"log/todaY", FILE).unwrap();
    changed(&mut fs);
    fs.rename(log, b"today", log, b"Today", RenameMode::Replace).unwrap();
    changed(&mut fs);
    fs.create(log, b"pipe", Attributes { mode: 0o010_644, ..FILE }).unwrap();
    changed(&mut fs);
    let device = Attributes { mode: 0o020_644, rdev: 5, ..FILE };
    fs.create(log, b"device", device).unwrap();
    changed(&mut fs);
    fs.unlink(log, b"device").unwrap();
    fs.create(log, b"device", Attributes { rdev: 6, ..device }).unwrap();
    changed(&mut fs);
    fs.rename(Ino::ROOT, b"log", Ino::ROOT, b"logs", RenameMode::Replace).unwrap();
    changed(&mut fs);
    fs.create(Ino::ROOT, b"empty", FILE).unwrap();
    changed(&mut fs);

    let last = fs.digest().unwrap();
    let time = Some(Time::from_seconds(77));
    fs.set_attributes(today, SetAttributes { atime: time, mtime: time, ..SetAttributes::default() }).unwrap();
    assert_eq!(fs.digest(), Ok(last));
}

/// Contents and links that change places are all there, and elsewhere.
#[test]
fn what_changed_places_is_noticed() {
    let mut fs = fresh(sized(2048, 64), options_for(2048));
    for (name, byte) in [(b"a", 1), (b"b", 2)] {
        let file = fs.create(Ino::ROOT, name, FILE).unwrap();
        fs.write_at(file, 0, &[byte; 5000]).unwrap();
        fs.set_xattr(file, b"user.x", &[byte], XattrMode::Set).unwrap();
    }
    let before = checked(&mut fs);
    fs.rename(Ino::ROOT, b"a", Ino::ROOT, b"b", RenameMode::Exchange).unwrap();
    assert_ne!(checked(&mut fs), before);
    fs.rename(Ino::ROOT, b"a", Ino::ROOT, b"b", RenameMode::Exchange).unwrap();
    assert_eq!(checked(&mut fs), before);

    // Four names of two files with the same bytes: which belong together is seen.
    let mut of_pairs = |pairs: [[&[u8]; 2]; 2]| {
        for [first, second] in pairs {
            let file = fs.create(Ino::ROOT, first, FILE).unwrap();
            fs.write_at(file, 0, b"same").unwrap();
            fs.link(file, Ino::ROOT, second).unwrap();
        }
        let digest = checked(&mut fs);
        pairs.as_flattened().iter().for_each(|name| fs.unlink(Ino::ROOT, name).unwrap());
        digest
    };
    let straight = of_pairs([[b"k", b"l"], [b"m", b"n"]]);
    assert_ne!(of_pairs([[b"k", b"m"], [b"l", b"n"]]), straight);
    assert_eq!(of_pairs([[b"n", b"m"], [b"l", b"k"]]), straight);
}

#[test]
fn many_linked_files_and_deep_directories_take_no_more_memory() {
    let mut fs = fresh(SMALL.with_blocks(400), OPTIONS);
    let mut directory = Ino::ROOT;
    for level in 0..40_u32 {
        // Directories on both sides, so that the walk comes back up and goes on.
        for name in [&b"before"[..], b"behind"] {
            let side = fs.mkdir(directory, name, DIRECTORY).unwrap();
            fs.create(side, b"file", Attributes { uid: level, ..FILE }).unwrap();
        }
        let file = fs.create(directory, b"linked", FILE).unwrap();
        fs.write_at(file, 0, &level.to_le_bytes()).unwrap();
        fs.link(file, Ino::ROOT, format!("link{level}").as_bytes()).unwrap();
        directory = fs.mkdir(directory, b"down", DIRECTORY).unwrap();
    }
    let before = checked(&mut fs);
    fs.create(directory, b"at the bottom", FILE).unwrap();
    assert_ne!(checked(&mut fs), before);
}

#[test]
fn a_chip_that_was_put_back_and_what_was_not_synced_are_noticed() {
    let mut fs = fresh(sized(2048, 64), options_for(2048));
    let file = fs.create(Ino::ROOT, b"counter", FILE).unwrap();
    fs.write_at(file, 0, b"41").unwrap();
    fs.sync().unwrap();
    let old = fs.digest().unwrap();
    let put_back = fs.nand().clone();
    fs.write_at(file, 0, b"42").unwrap();
    let kept_elsewhere = fs.digest().unwrap();
    assert_ne!(kept_elsewhere, old);
    // It is over what is read, and that was not synced.
    let mut lost = again(fs, options_for(2048), true);
    assert_eq!(lost.digest(), Ok(old));
    let file = lost.lookup(Ino::ROOT, b"counter").unwrap();
    lost.write_at(file, 0, b"42").unwrap();
    lost.sync().unwrap();
    assert_eq!(again(lost, options_for(2048), true).digest(), Ok(kept_elsewhere));

    let mut bytes = memory(&put_back.chip().geometry, &options_for(2048));
    let mut fs = Fs::mount(put_back, options_for(2048), &mut bytes).unwrap();
    assert_eq!(fs.verify(&mut [], &mut |_| {}), Ok(0), "it is sound, and old");
    assert_ne!(fs.digest().unwrap(), kept_elsewhere);
}

#[test]
fn a_snapshot_has_the_digest_that_there_was() {
    let options = options_for(2048);
    let mut fs = made(sized(2048, 120), 1, true);
    let then = fs.digest().unwrap();
    let number = fs.snapshot().unwrap();
    let sparse = fs.lookup(Ino::ROOT, b"sparse").unwrap();
    fs.write_at(sparse, 0, &[9; 5000]).unwrap();
    fs.unlink(Ino::ROOT, b"latest").unwrap();
    for name in 0..40_u8 {
        fs.unlink(Ino::ROOT, b"now").ok();
        fs.create(Ino::ROOT, &[name + 48], FILE).unwrap();
    }
    assert_ne!(fs.digest().unwrap(), then);
    let options = nandu_fs::Options { snapshot: Some(number), ..options };
    assert_eq!(checked(&mut again(fs, options, false)), then);
}

/// Each page in turn: it is not needed, or it is named.
#[test]
fn a_page_that_cannot_be_read_is_named_and_no_other_digest() {
    let options = options_for(2048);
    let mut fs = made(sized(2048, 120), 1, false);
    let expected = fs.digest().unwrap();
    let chip = fs.unmount().unwrap();
    let geometry = chip.chip().geometry;
    let mut bytes = memory(&geometry, &options);
    let (mut named, mut programs) = (0, 0);
    for page in 0..geometry.block_count * geometry.pages_per_block {
        let mut sim = chip.clone();
        sim.inject(Fault::Uncorrectable, Trigger::Page(PageAddr(page)));
        let Ok(mut fs) = Fs::mount(sim, options, &mut bytes) else { continue };
        let before = fs.stats().programs_total();
        match fs.digest() {
            Ok(digest) => assert_eq!(digest, expected, "page {page}"),
            Err(FsError::CorruptPage { page: it, .. }) => {
                assert_eq!(it, PageAddr(page));
                named += 1;
            }
            Err(error) => panic!("page {page}: {error}"),
        }
        programs += fs.stats().programs_total() - before;
    }
    assert!(named > 10, "{named} pages are needed");
    assert_eq!(programs, 0);
}

/// What says what no file system says is refused, soon, or seen as it is.
#[test]
fn records_that_lead_in_circles_or_are_missing_end_in_an_error() {
    let digest = |chip: Sim| {
        let mut bytes = memory(&damage::CHIP.geometry, &OPTIONS);
        Fs::mount(chip, OPTIONS, &mut bytes).unwrap().digest()
    };
    let expected = digest(damage::volume()).unwrap();
    let keys_of = |ino: u64, kind: u8| {
        let mut found = Vec::new();
        let chip = edit(damage::volume(), |tree| found = damage::keys_of(tree, ino, kind));
        assert_eq!(digest(chip), Ok(expected));
        found
    };
    // The directory's own name comes into the directory, where its file is.
    let name = keys_of(1, 0x10).into_iter().map(|key| (key.clone(), key[7..].to_vec())).collect::<Vec<_>>();
    let chip = edit(damage::volume(), |tree| {
        for (key, position) in &name {
            let value = damage::value(tree, key);
            tree.put(&damage::key(64, 0x10, position), &value).unwrap();
        }
    });
    assert!(matches!(digest(chip), Err(FsError::Corrupt { .. } | FsError::Inconsistent)));
    // A name leads to nothing; an attribute lacks a part, as does a target.
    for (ino, kind, index) in [(65, 0, 0), (64, 0, 0), (65, 0x30, 1), (65, 0x30, 0), (2, 0x40, 0)] {
        let key = keys_of(ino, kind)[index].clone();
        let found = digest(edit(damage::volume(), |tree| assert!(tree.delete(&key).unwrap())));
        assert!(matches!(found, Err(FsError::Corrupt { .. })), "{ino} {kind:#x}: {found:?}");
    }
}

/// What the documentation of the call says of its cost.
#[test]
fn a_digest_reads_a_page_and_a_leaf_for_each_page_of_a_file() {
    let mut fs = fresh(sized(2048, 200), options_for(2048));
    let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
    fs.write_at(file, 0, &vec![5; 200 * 2048]).unwrap();
    fs.sync().unwrap();
    let before = fs.nand().counters().reads;
    fs.digest().unwrap();
    let reads = fs.nand().counters().reads - before;
    assert!((200..=2 * 200 + 40).contains(&reads), "{reads}");
}
