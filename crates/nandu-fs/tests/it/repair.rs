//! Repairs: what contradicts itself is put right, what is lost is named, and everything else stays.

use std::ops::{Bound, ControlFlow};

use nandu_fs::{Fs, Ino, Time};
use nandu_nand::{Nand, PageAddr};
use nandu_sim::Sim;
use nandu_sim::power_cut::Driver;
use nandu_suite::{Chance, Everything, content, everything, violations};

use crate::damage::{CHIP, key, keys_of, set_numbers, value, volume, with_shared_chunk};
use crate::records::{Records, edit, is_full_of, may_be_of_dead_page};
use crate::rig::{FILE, OPTIONS, memory};

const NOW: Time = Time::from_seconds(77);

/// Repairs a volume; returns what was told, in words, and what there is then.
fn repaired(chip: Sim) -> (Vec<String>, Everything) {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
    fs.set_now(NOW);
    let told = repair(&mut fs);
    assert_eq!(wrong(&mut fs), Vec::<String>::new(), "{told:?}");
    assert_eq!(repair(&mut fs), Vec::<String>::new(), "once is enough");
    // What was deleted goes with the next changes, and then nothing is wrong either.
    while fs.idle(64).unwrap() {}
    let found = everything(&mut fs).unwrap();
    assert_eq!(wrong(&mut fs), Vec::<String>::new(), "{told:?}");
    (told, found)
}

/// What is wrong with a volume, but for pages that cannot be read and that nothing leads to.
fn wrong(fs: &mut Fs<'_, Sim>) -> Vec<String> {
    violations(fs).into_iter().filter(|violation| !may_be_of_dead_page(violation)).collect()
}

fn repair<N: Nand>(fs: &mut Fs<'_, N>) -> Vec<String> {
    let mut told = Vec::new();
    let count = fs
        .repair(&mut [], &mut |repair| {
            let name = String::from_utf8_lossy(repair.name).into_owned();
            let range = repair.range.map_or(String::new(), |(offset, size)| format!(" {offset}+{size}"));
            let loss = if repair.what.is_loss() { " LOST" } else { "" };
            told.push(format!("{} {:?} {name}{range}{loss}", repair.ino, repair.what).replace("  ", " "));
        })
        .unwrap();
    assert_eq!(count, told.len() as u64);
    told.iter().map(|line| line.trim_end().to_owned()).collect()
}

fn path(found: &Everything, path: &str) -> bool {
    found.contains_key(path.as_bytes())
}

/// The page of a name's record in which the first byte of the number is, and the name.
fn name_value(kind: u8, ino: u8, name: &[u8]) -> Vec<u8> {
    [&[kind, ino][..], name].concat()
}

#[test]
fn nothing_is_repaired_where_nothing_is_wrong() {
    let mut memory = memory(&CHIP.geometry, &OPTIONS);
    let mut fs = Fs::mount(volume(), OPTIONS, &mut memory).unwrap();
    let (before, programs) = (everything(&mut fs).unwrap(), fs.nand().counters().programs);
    assert_eq!(repair(&mut fs), Vec::<String>::new());
    assert_eq!(fs.nand().counters().programs, programs, "and nothing is programmed");
    assert_eq!(everything(&mut fs).unwrap(), before);
}

#[test]
fn an_inode_that_is_gone_is_made_anew_from_its_records() {
    let (_, before) = repaired(volume());
    let chip = edit(volume(), |tree| assert!(tree.delete(&key(65, 0, &[])).unwrap()));
    let (told, found) = repaired(chip);
    assert_eq!(told, ["65 InodeMade LOST", "65 Counts", "65 Counts"]);
    // How long the file was is not known, but to the page; the bytes are there, and so are both names and the attribute.
    let (was, is) = (&before[&b"/directory/file"[..]], &found[&b"/directory/file"[..]]);
    assert_eq!(is.content[..1200], was.content[..]);
    assert_eq!(is.content.len(), 1536);
    assert_eq!((is.mode, is.nlink, &is.xattrs), (0o100_600, 2, &was.xattrs));
    assert_eq!(found[&b"/link"[..]].same_as, b"/directory/file");
    // A directory is made anew from its names.
    let (told, found) = repaired(edit(volume(), |tree| assert!(tree.delete(&key(64, 0, &[])).unwrap())));
    assert_eq!(told, ["64 InodeMade LOST", "64 Counts"]);
    assert_eq!(found[&b"/directory/file"[..]], was.clone());
    assert_eq!(found[&b"/directory"[..]].mode, 0o40_700);
    // So is the root.
    let (told, found) = repaired(edit(volume(), |tree| assert!(tree.delete(&key(1, 0, &[])).unwrap())));
    assert_eq!(told, ["1 InodeMade LOST", "1 Counts"]);
    assert_eq!(found.len(), before.len());
}

#[test]
fn a_name_that_leads_to_nothing_goes_and_what_has_none_is_in_lost_found() {
    let (_, before) = repaired(volume());
    // An empty file is its inode alone, so nothing is left of it.
    let chip = edit(volume(), |tree| {
        for records in [0x10, 0x20, 0x30, 0x40].map(|kind| keys_of(tree, 2, kind)) {
            records.iter().for_each(|record| assert!(tree.delete(record).unwrap()));
        }
        assert!(tree.delete(&key(2, 0, &[])).unwrap());
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["1 NameLost symlink LOST", "1 Counts"]);
    assert_eq!(found.len(), before.len() - 1);
    // A directory without a name, and what is in it.
    let chip = edit(volume(), |tree| {
        let name = keys_of(tree, 1, 0x10).into_iter().find(|name| value(tree, name)[2..] == b"directory"[..]).unwrap();
        assert!(tree.delete(&name).unwrap());
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["1 Counts", "64 Attached #64"]);
    assert_eq!(found[&b"/lost+found/#64/file"[..]].content, before[&b"/directory/file"[..]].content);
    assert!(!path(&found, "/directory"));
    // A file one of whose two names is gone has one then; with both gone it is found too.
    let unnamed = |directories: &'static [u64]| {
        edit(volume(), move |tree| {
            for &directory in directories {
                for name in keys_of(tree, directory, 0x10) {
                    if value(tree, &name)[1] == 65 {
                        assert!(tree.delete(&name).unwrap());
                    }
                }
            }
        })
    };
    let (told, found) = repaired(unnamed(&[64]));
    assert_eq!(told, ["64 Counts", "65 Counts"]);
    assert_eq!(found[&b"/link"[..]].nlink, 1);
    let (told, found) = repaired(unnamed(&[1, 64]));
    assert_eq!(told, ["1 Counts", "64 Counts", "65 Attached #65"]);
    assert_eq!(found[&b"/lost+found/#65"[..]].content, before[&b"/link"[..]].content);
}

#[test]
fn what_was_deleted_and_not_noted_is_removed_and_a_wrong_note_is_not_believed() {
    let (_, before) = repaired(volume());
    // A file with the names of its directory entries gone, that says itself that it has none.
    let chip = edit(volume(), |tree| {
        let mut inode = value(tree, &key(3, 0, &[]));
        // Flags, mode, owner, group, links: of these only the mode takes more than a byte.
        let nlink = 1 + 3 + 1 + 1;
        assert_eq!(inode[nlink], 1);
        inode[nlink] = 0;
        tree.put(&key(3, 0, &[]), &inode).unwrap();
        let name = keys_of(tree, 1, 0x10).into_iter().find(|name| value(tree, name)[1] == 3).unwrap();
        assert!(tree.delete(&name).unwrap());
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["1 Counts", "3 OrphanNoted"]);
    assert!(!path(&found, "/holes") && !path(&found, "/lost+found"));
    // Notes about a directory with a name, about nothing, and about what cannot be.
    let chip = edit(volume(), |tree| {
        for ino in [0, 64, 77] {
            tree.put(&key(0, 1, &key(ino, 0, &[])[..6]), &[]).unwrap();
        }
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["0 Record LOST", "64 OrphanRecord", "77 OrphanRecord"]);
    assert_eq!(found, before);
}

#[test]
fn directories_have_one_place_and_the_root_above_them() {
    let (_, before) = repaired(volume());
    // A second name, in another directory or the same.
    let put = |directory: u64, position: u8, value: Vec<u8>| {
        edit(volume(), move |tree| {
            tree.put(&key(directory, 0x10, &[0, 0, 0, 0, 1, position]), &value).unwrap();
        })
    };
    let (told, found) = repaired(put(64, 0, name_value(4, 64, b"itself")));
    assert_eq!(told, ["64 NameSurplus itself"]);
    assert_eq!(found, before);
    let (told, found) = repaired(put(1, 0, name_value(4, 64, b"again")));
    assert_eq!(told[0], "1 NameSet again");
    assert!(
        told[1..].contains(&"1 NameSurplus again".to_owned())
            || told[1..].contains(&"1 NameSurplus directory".to_owned())
    );
    assert_eq!(found.len(), before.len());
    // A name of the root.
    let (told, found) = repaired(put(64, 0, name_value(4, 1, b"up")));
    assert_eq!(told, ["64 NameSurplus up"]);
    assert_eq!(found, before);
    // A directory in itself, and nowhere else.
    let chip = edit(volume(), |tree| {
        let name = keys_of(tree, 1, 0x10).into_iter().find(|name| value(tree, name)[1] == 64).unwrap();
        assert!(tree.delete(&name).unwrap());
        tree.put(&key(64, 0x10, &[0, 0, 0, 0, 1, 0]), &name_value(4, 64, b"itself")).unwrap();
    });
    let (told, found) = repaired(chip);
    let expected = ["64 Parent", "64 NameSet itself", "1 Counts", "64 Counts", "64 LoopCut #64", "64 Counts"];
    assert_eq!(told, expected);
    assert_eq!(found[&b"/lost+found/#64/file"[..]].content, before[&b"/link"[..]].content);
}

#[test]
fn names_stand_once_and_where_they_are_looked_for() {
    let (_, before) = repaired(volume());
    let chip = edit(volume(), |tree| {
        let name = keys_of(tree, 1, 0x10).into_iter().find(|name| value(tree, name)[1] == 3).unwrap();
        let entry = value(tree, &name);
        // The same name behind itself, a name of the wrong type, and one that is no name.
        let mut behind = name.clone();
        *behind.last_mut().unwrap() += 1;
        tree.put(&behind, &entry).unwrap();
        let link = keys_of(tree, 1, 0x10).into_iter().find(|name| value(tree, name)[1] == 65).unwrap();
        let mut wrong = value(tree, &link);
        wrong[0] = 4;
        tree.put(&link, &wrong).unwrap();
        tree.put(&key(1, 0x10, &[0, 0, 0, 0, 1, 0]), b"\x08\x02a/b").unwrap();
    });
    let (mut told, found) = repaired(chip);
    told.sort();
    assert_eq!(told, ["1 NameSet link", "1 NameSurplus holes", "1 Record LOST"]);
    assert_eq!(found, before);
}

#[test]
fn counts_are_counted_again() {
    let (_, before) = repaired(volume());
    let chip = edit(volume(), |tree| {
        // The last byte of how many pages a file has, of 4 flags and sizes: searched for by what it is.
        let mut inode = value(tree, &key(3, 0, &[]));
        let blocks = 1 + 3 + 1 + 1 + 1 + 2;
        assert_eq!(inode[blocks], 20);
        inode[blocks] = 7;
        tree.put(&key(3, 0, &[]), &inode).unwrap();
        // The size of a directory.
        let mut inode = value(tree, &key(64, 0, &[]));
        assert_eq!(inode[1 + 3 + 1 + 1 + 1], 1);
        inode[1 + 3 + 1 + 1 + 1] = 9;
        tree.put(&key(64, 0, &[]), &inode).unwrap();
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["3 Counts", "64 Counts"]);
    assert_eq!(found, before);
    // An inode with a number that nobody gave it: no other gets that number.
    let chip = edit(volume(), |tree| {
        let inode = value(tree, &key(2, 0, &[]));
        tree.put(&key(1000, 0, &[]), &inode).unwrap();
        tree.put(&key(1000, 0x40, &[0]), b"directory/file").unwrap();
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["0 Numbers", "1000 Attached #1000"]);
    assert_eq!(found[&b"/lost+found/#1000"[..]].content, b"directory/file");
}

/// Of directories with the same numbers left the one that has gone furthest keeps them, so nobody gets a number twice.
#[test]
fn no_two_directories_give_the_same_numbers() {
    let (_, before) = repaired(volume());
    // Where they have gone as far, any will do.
    let as_far = edit(with_shared_chunk(), |tree| set_numbers(tree, 64, 70, 128));
    for chip in [with_shared_chunk(), as_far] {
        let (told, found) = repaired(chip.clone());
        assert_eq!(told, ["64 Numbers"]);
        assert_eq!(found, before);
        let mut memory = memory(&CHIP.geometry, &OPTIONS);
        let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
        repair(&mut fs);
        assert_eq!(fs.create(Ino(64), b"new", FILE).unwrap(), Ino(128));
        assert_eq!(fs.create(Ino::ROOT, b"new", FILE).unwrap(), Ino(70));
        assert_eq!(violations(&mut fs), Vec::<String>::new());
    }
}

#[test]
fn what_of_a_file_is_lost_is_named_and_the_rest_stays() {
    let (_, before) = repaired(volume());
    let file = |found: &Everything| found[&b"/link"[..]].content.clone();
    let was = file(&before);
    // Behind the end, and a record that is none of a page.
    let chip = edit(volume(), |tree| {
        tree.put(&key(65, 0x20, &[0, 0, 1, 0]), &[1, 0, 0, 7]).unwrap();
        tree.put(&key(65, 0x20, &[0, 0, 0, 0]), &[9, 9]).unwrap();
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["65 PageLost 0+512 LOST", "65 Beyond 131072+512"]);
    assert_eq!(file(&found), [&[0; 512][..], &was[512..]].concat());
    // The page under a fragment is gone: what the fragment says is kept.
    let chip = edit(volume(), |tree| assert!(tree.delete(&key(65, 0x20, &[0, 0, 0, 1])).unwrap()));
    let (told, found) = repaired(chip);
    assert_eq!(told, ["65 PageMade 512+512 LOST"]);
    let mut expected = was.clone();
    expected[512..600].fill(0);
    expected[620..1024].fill(0);
    assert_eq!(file(&found), expected);
    // A fragment that overlaps another, and one that says nothing.
    let chip = edit(volume(), |tree| {
        assert_eq!(keys_of(tree, 65, 0x20).len(), 4);
        tree.put(&key(65, 0x20, &[0, 0, 0, 1, 0, 90]), &[0, 1, 2]).unwrap();
        tree.put(&key(65, 0x20, &[0, 0, 0, 1, 1, 0]), &[7]).unwrap();
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["65 FragmentLost 602+2 LOST", "65 FragmentLost 768+1 LOST"]);
    assert_eq!(file(&found), was);
    // Bytes behind the end come to light nowhere.
    let chip = edit(volume(), |tree| {
        tree.put(&key(3, 0x20, &[0, 0, 0, 9]), &[1, 0x88, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]).unwrap();
    });
    let (told, found) = repaired(chip);
    assert_eq!(told, ["3 Beyond 5004+116"]);
    assert_eq!(found[&b"/holes"[..]].content.len(), 5004);
    // An attribute, and the target of a link.
    let chip = edit(volume(), |tree| {
        let last = keys_of(tree, 65, 0x30).pop().unwrap();
        assert!(tree.delete(&last).unwrap());
        tree.put(&key(2, 0x40, &[0]), b"directory").unwrap();
    });
    let (told, found) = repaired(chip);
    let expected =
        ["2 TargetLost LOST", "65 XattrLost user.x LOST", "65 Counts", "1 NameLost symlink LOST", "1 Counts"];
    assert_eq!(told, expected);
    assert!(found[&b"/link"[..]].xattrs.is_empty() && !path(&found, "/symlink"));
}

/// Pages that the chip cannot read any more.
#[test]
fn pages_that_cannot_be_read_are_lost_and_named() {
    let (_, before) = repaired(volume());
    let mut chip = volume();
    let pages: Vec<PageAddr> =
        (0..CHIP.geometry.page_count()).map(PageAddr).filter(|&page| is_full_of(&chip.peek(page), 3)).collect();
    assert_eq!(pages.len(), 2);
    for &page in &pages {
        for bit in 0..64 {
            chip.corrupt(page, bit * 8);
        }
    }
    {
        let mut memory = memory(&CHIP.geometry, &OPTIONS);
        let mut fs = Fs::mount(chip.clone(), OPTIONS, &mut memory).unwrap();
        let wrong = violations(&mut fs);
        for offset in [0, 512] {
            let words = format!("S10 violated by inode 65: a page of it cannot be read, at byte {offset}");
            assert!(wrong.contains(&words), "{wrong:?}");
        }
        assert!(content(&mut fs, Ino(65)).is_err());
    }
    let (told, found) = repaired(chip);
    // What was written over the second one later is kept.
    assert_eq!(told, ["65 PageLost 0+512 LOST", "65 PageLost 512+512 LOST", "65 PageJoined 512+512"]);
    let mut expected = before[&b"/link"[..]].content.clone();
    expected[..600].fill(0);
    expected[620..1024].fill(0);
    assert_eq!(found[&b"/link"[..]].content, expected);
}

/// A type that the content contradicts is set, rather than the content thrown away.
#[test]
fn content_says_what_something_is() {
    let (_, before) = repaired(volume());
    let chip = edit(volume(), |tree| {
        let file = value(tree, &key(65, 0, &[]));
        tree.put(&key(64, 0, &[]), &file).unwrap();
    });
    let (told, found) = repaired(chip);
    assert_eq!(told[0], "64 Kind");
    assert_eq!(found[&b"/directory/file"[..]].content, before[&b"/link"[..]].content);
}

/// Key and value.
type Record = (Vec<u8>, Vec<u8>);

/// All records of a volume.
fn records(chip: Sim) -> (Sim, Vec<Record>) {
    let mut records = Vec::new();
    let chip = edit(chip, |tree| {
        let visit = |entry: nandu_index::Entry<'_>| {
            records.push((entry.key.to_vec(), entry.value.to_vec()));
            ControlFlow::Continue(())
        };
        tree.range(Bound::Unbounded, Bound::Unbounded, nandu_index::Direction::Forward, visit).unwrap();
    });
    (chip, records)
}

/// Damages some records by chance.
fn damage(tree: &mut Records<'_>, records: &[Record], chance: &mut Chance) {
    for _ in 0..=chance.below(3) {
        // Not the superblock: without it there is no file system to be repaired.
        let (key, value) = &records[1 + chance.below(records.len() - 1)];
        let (mut key, mut value) = (key.clone(), value.clone());
        match chance.below(7) {
            0 => {
                let _ = tree.delete(&key).unwrap();
                continue;
            }
            1 => value = chance.bytes(30),
            2 | 3 if !value.is_empty() => {
                let at = chance.below(value.len());
                value[at] ^= 1 << chance.below(8);
            }
            4 => value = records[1 + chance.below(records.len() - 1)].1.clone(),
            5 => {
                let at = chance.below(key.len());
                key[at] ^= 1 << chance.below(8);
            }
            _ => value.truncate(chance.below(value.len() + 1)),
        }
        if key != crate::damage::key(0, 0, &[]) {
            tree.put(&key, &value).unwrap();
        }
    }
}

/// Whatever is wrong with the records, afterwards nothing is.
#[test]
fn any_damage_is_repaired() {
    let rounds = std::env::var("NANDU_FS_CHAINS").map_or(1500, |count| count.parse().unwrap());
    let (copy, records) = records(volume());
    let mut chance = Chance::new(21);
    let mut mended = 0;
    for round in 0..rounds {
        let chip = edit(copy.clone(), |tree| damage(tree, &records, &mut chance));
        let mut memory = memory(&CHIP.geometry, &OPTIONS);
        let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
        fs.set_now(NOW);
        let wrong = violations(&mut fs);
        let told = repair(&mut fs);
        assert_eq!(violations(&mut fs), Vec::<String>::new(), "round {round}: {wrong:?}, {told:?}");
        assert!(wrong.is_empty() || !told.is_empty(), "round {round}: {wrong:?}");
        assert!(!wrong.is_empty() || told.is_empty(), "round {round}: {told:?}");
        mended += u64::from(!told.is_empty());
        everything(&mut fs).unwrap();
    }
    assert!(mended * 2 > rounds, "{mended} of {rounds}");
}

/// The power goes while a volume is repaired: the next repair brings it to where the first would have.
#[test]
fn a_repair_that_is_cut_off_is_finished_by_the_next() {
    let (copy, records) = records(volume());
    let mut chance = Chance::new(5);
    let mut cases = 0;
    for _ in 0..40 {
        let chip = edit(copy.clone(), |tree| damage(tree, &records, &mut chance));
        let (_, expected) = repaired(chip.clone());
        let work = |chip: &mut Sim, _: &mut ()| {
            let mut memory = memory(&CHIP.geometry, &OPTIONS);
            let mut fs = Fs::mount(chip, OPTIONS, &mut memory)?;
            fs.set_now(NOW);
            fs.repair(&mut [], &mut |_| ())?;
            fs.unmount()?;
            Ok(())
        };
        let check = |chip: &mut Sim, _: &()| {
            let mut memory = memory(&CHIP.geometry, &OPTIONS);
            let mut fs = Fs::mount(chip, OPTIONS, &mut memory).unwrap();
            fs.set_now(NOW);
            fs.repair(&mut [], &mut |_| ()).unwrap();
            while fs.idle(64).unwrap() {}
            assert_eq!(violations(&mut fs), Vec::<String>::new());
            let found = everything(&mut fs).unwrap();
            assert_eq!(found, expected);
            found
        };
        cases += Driver::new(chip).every(work, check).cases;
    }
    assert!(cases > 1000, "{cases}");
}
