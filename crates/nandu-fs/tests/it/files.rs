//! Content, sizes and holes of files, and files without a name.

use nandu_fs::{Allocation, Attributes, Fs, FsError, Ino, Options, Time};
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};
use nandu_suite::{SMALL, content, violations};

use crate::rig::{FILE, OPTIONS, formatted_with, fresh, memory};

/// Calls with a file system on small pages that has one empty file.
fn with_file(call: impl FnOnce(&mut Fs<'_, Sim>, Ino)) {
    let mut fs = fresh(SMALL, OPTIONS);
    let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
    call(&mut fs, file);
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

#[test]
fn a_file_with_holes_takes_room_for_its_data_only() {
    with_file(|fs, file| {
        fs.write_at(file, 10 * 512 + 5, &[1; 600]).unwrap();
        fs.write_at(file, 1 << 30, b"far").unwrap();
        assert_eq!(fs.seek_data(file, 0), Ok(10 * 512));
        assert_eq!(fs.seek_data(file, 10 * 512 + 7), Ok(10 * 512 + 7));
        assert_eq!(fs.seek_hole(file, 10 * 512), Ok(12 * 512));
        assert_eq!(fs.seek_hole(file, 3), Ok(3));
        assert_eq!(fs.seek_data(file, 12 * 512), Ok(1 << 30));
        assert_eq!(fs.seek_hole(file, 1 << 30), Ok((1 << 30) + 3), "one begins at the end");
        assert_eq!(fs.seek_data(file, (1 << 30) + 3), Err(FsError::NoMoreData));
        fs.sync().unwrap();
        assert_eq!(fs.seek_data(file, 12 * 512), Ok(1 << 30));
        assert_eq!(fs.stat(file).unwrap().allocated_size, 3 * 512);
        let mut bytes = [9; 1024];
        assert_eq!(fs.read_at(file, 10 * 512, &mut bytes), Ok(1024));
        assert_eq!((bytes[4], bytes[5], bytes[604], bytes[605]), (0, 1, 1, 0));
        assert_eq!(fs.read_at(file, (1 << 30) + 1, &mut bytes), Ok(2));
        assert_eq!(fs.read_at(file, (1 << 30) + 3, &mut bytes), Ok(0));
    });
}

#[test]
fn what_was_cut_off_does_not_come_back() {
    with_file(|fs, file| {
        fs.write_at(file, 0, &[0xAA; 1024]).unwrap();
        fs.truncate(file, 700).unwrap();
        fs.truncate(file, 1024).unwrap();
        let mut expected = vec![0xAA; 700];
        expected.resize(1024, 0);
        assert_eq!(content(fs, file).unwrap(), expected);
        // A second time, further to the front, over what lies there already.
        fs.write_at(file, 690, &[0xBB; 5]).unwrap();
        fs.truncate(file, 692).unwrap();
        fs.write_at(file, 1000, &[0xCC]).unwrap();
        expected.truncate(690);
        expected.extend([0xBB; 2]);
        expected.resize(1000, 0);
        expected.push(0xCC);
        assert_eq!(content(fs, file).unwrap(), expected);
    });
}

#[test]
fn holes_are_punched_and_room_is_given_back() {
    with_file(|fs, file| {
        fs.write_at(file, 0, &[7; 40 * 512]).unwrap();
        fs.sync().unwrap();
        fs.allocate(file, Allocation::PunchHole, 100, 39 * 512).unwrap();
        fs.sync().unwrap();
        assert_eq!(fs.stat(file).unwrap().allocated_size, 2 * 512);
        assert_eq!(fs.seek_hole(file, 0), Ok(512));
        let mut expected = vec![7; 100];
        expected.resize(100 + 39 * 512, 0);
        expected.resize(40 * 512, 7);
        assert_eq!(content(fs, file).unwrap(), expected);
        fs.allocate(file, Allocation::KeepSize, 0, 60 * 512).unwrap();
        assert_eq!(fs.stat(file).unwrap().size, 40 * 512);
        assert_eq!(fs.stat(file).unwrap().allocated_size, 60 * 512);
        assert_eq!(content(fs, file).unwrap(), expected);
        fs.allocate(file, Allocation::Zero, 0, 41 * 512).unwrap();
        assert_eq!(content(fs, file).unwrap(), [0; 41 * 512]);
        assert_eq!(fs.allocate(file, Allocation::Extend, 5, 0), Err(FsError::Range));
    });
}

#[test]
fn an_open_file_outlives_its_name() {
    with_file(|fs, file| {
        fs.write_at(file, 0, &[5; 40 * 512]).unwrap();
        fs.open(file).unwrap();
        fs.open(file).unwrap();
        fs.unlink(Ino::ROOT, b"file").unwrap();
        assert_eq!(fs.lookup(Ino::ROOT, b"file"), Err(FsError::NotFound { directory: Ino::ROOT }));
        assert_eq!(fs.stat(file).unwrap().nlink, 0);
        fs.write_at(file, 3, b"still here").unwrap();
        fs.close(file).unwrap();
        let mut bytes = [0; 10];
        fs.read_at(file, 3, &mut bytes).unwrap();
        assert_eq!(&bytes, b"still here");
        assert_eq!(fs.link(file, Ino::ROOT, b"again"), Err(FsError::NoInode(file)));
        fs.close(file).unwrap();
        assert_eq!(fs.stat(file), Err(FsError::NoInode(file)));
    });
}

/// Whatever is cut off it, and however the name was taken.
#[test]
fn an_open_file_without_a_name_is_cut_and_goes_on() {
    with_file(|fs, file| {
        for (round, new_size) in [0, 700, 5 * 512, 39 * 512 + 3].into_iter().enumerate() {
            let name = [b'n', round as u8 + 1];
            let file = if round == 0 { file } else { fs.create(Ino::ROOT, b"file", FILE).unwrap() };
            fs.write_at(file, 0, &[5; 60 * 512]).unwrap();
            fs.open(file).unwrap();
            if round % 2 == 0 {
                fs.unlink(Ino::ROOT, b"file").unwrap();
            } else {
                fs.create(Ino::ROOT, &name, FILE).unwrap();
                fs.rename(Ino::ROOT, &name, Ino::ROOT, b"file", Default::default()).unwrap();
                fs.unlink(Ino::ROOT, b"file").unwrap();
            }
            fs.truncate(file, new_size).unwrap();
            assert_eq!(fs.stat(file).unwrap().size, new_size);
            assert_eq!(fs.stat(file).unwrap().allocated_size, new_size.next_multiple_of(512));
            // What was cut off does not come to light when it grows.
            fs.truncate(file, 50 * 512).unwrap();
            let mut expected = vec![5; new_size as usize];
            expected.resize(50 * 512, 0);
            assert_eq!(content(fs, file).unwrap(), expected);
            fs.write_at(file, 10, b"hello").unwrap();
            fs.sync().unwrap();
            while fs.idle(8).unwrap() {}
            expected[10..15].copy_from_slice(b"hello");
            assert_eq!(content(fs, file).unwrap(), expected);
            assert_eq!(violations(fs), Vec::<String>::new());
            fs.close(file).unwrap();
            assert_eq!(fs.stat(file), Err(FsError::NoInode(file)));
        }
    });
}

/// As many pages as the chip has several times over go through files that are removed, in each way that there is.
#[test]
fn what_is_removed_is_free_again() {
    with_file(|fs, file| {
        for round in 0..60_u8 {
            let name = round.to_string().into_bytes();
            let other = fs.create(Ino::ROOT, &name, FILE).unwrap();
            for file in [file, other] {
                assert_eq!(fs.write_at(file, 0, &[round | 1; 40 * 512]), Ok(40 * 512), "round {round}");
            }
            match round % 4 {
                0 => fs.truncate(file, 3).unwrap(),
                1 => fs.allocate(file, Allocation::PunchHole, 0, 40 * 512).unwrap(),
                2 => fs.allocate(file, Allocation::Zero, 0, 40 * 512).unwrap(),
                _ => {}
            }
            if round % 2 == 0 {
                fs.unlink(Ino::ROOT, &name).unwrap();
            } else {
                fs.open(other).unwrap();
                fs.rename(Ino::ROOT, b"file", Ino::ROOT, &name, Default::default()).unwrap();
                fs.rename(Ino::ROOT, &name, Ino::ROOT, b"file", Default::default()).unwrap();
                fs.close(other).unwrap();
            }
        }
    });
}

#[test]
fn a_file_that_was_open_without_a_name_is_gone_after_a_cut() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let mut fs = Fs::mount(formatted_with(SMALL, OPTIONS), OPTIONS, &mut memory).unwrap();
    let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
    fs.write_at(file, 0, &[5; 70 * 512]).unwrap();
    fs.open(file).unwrap();
    fs.unlink(Ino::ROOT, b"file").unwrap();
    fs.sync().unwrap();
    let mut fs = Fs::mount(fs.abandon(), OPTIONS, &mut memory).unwrap();
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    while fs.idle(1).unwrap() {}
    assert_eq!(fs.stat(file), Err(FsError::NoInode(file)));
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

/// A truncation that failed half-way is brought to its end before the file grows, also if it lost its name meanwhile.
/// However much of what was cut off is left: it does not come to light when the file grows, and nothing goes that was written since.
#[test]
fn a_file_that_was_cut_off_grows_again() {
    with_file(|fs, file| {
        for new_size in [0, 700, 5 * 512] {
            fs.write_at(file, 0, &[5; 200 * 512]).unwrap();
            fs.sync().unwrap();
            fs.truncate(file, new_size).unwrap();
            let mut expected = vec![5; new_size as usize];
            // In memory, then behind it, with a hole between; within what is there; far behind.
            for (offset, size) in [(new_size, 100), (new_size + 3 * 512, 512), (new_size + 20, 30), (90 * 512, 1000)] {
                fs.write_at(file, offset, &vec![7; size]).unwrap();
                expected.resize(expected.len().max(offset as usize + size), 0);
                expected[offset as usize..][..size].fill(7);
                assert_eq!(content(fs, file).unwrap(), expected, "{new_size} {offset}");
            }
            fs.truncate(file, 150 * 512).unwrap();
            expected.resize(150 * 512, 0);
            assert_eq!(content(fs, file).unwrap(), expected, "{new_size}");
            fs.sync().unwrap();
            assert_eq!(violations(fs), Vec::<String>::new());
            assert_eq!(content(fs, file).unwrap(), expected, "{new_size}");
        }
    });
}

#[test]
fn what_a_failed_truncation_left_does_not_come_to_light() {
    let chip = formatted_with(SMALL, OPTIONS);
    let mut failed = 0;
    for (cut, is_named) in (0..50_u8).flat_map(|cut| [(cut, true), (cut, false)]) {
        let mut chip = chip.clone();
        let mut memory = memory(&SMALL.geometry, &OPTIONS);
        let mut fs = Fs::mount(&mut chip, OPTIONS, &mut memory).unwrap();
        let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
        fs.write_at(file, 0, &[5; 300 * 512]).unwrap();
        fs.sync().unwrap();
        fs.open(file).unwrap();
        if !is_named {
            fs.unlink(Ino::ROOT, b"file").unwrap();
        }
        // One that is not reported is begun again, so that it takes several.
        fs.nand_mut().inject(Fault::Bus(Tear::Before), Trigger::Probability(0.01 * f64::from(cut)));
        // What it leaves for later is removed when the file grows.
        let outcome =
            fs.truncate(file, 700).and_then(|()| fs.truncate(file, 250 * 512)).and_then(|()| fs.truncate(file, 700));
        fs.nand_mut().withdraw_all();
        if is_named && fs.unlink(Ino::ROOT, b"file").is_err() || fs.sync().is_err() {
            // It was a program, and nothing is programmed until the next mount.
            continue;
        }
        failed += usize::from(outcome.is_err());
        if fs.stat(file).unwrap().size != 700 {
            continue;
        }
        // An outage in the last step: what was truncated is durable, and the file system is to be mounted again.
        if matches!(fs.truncate(file, 300 * 512), Err(FsError::ReadOnly | FsError::Poisoned)) {
            continue;
        }
        let mut expected = vec![5; 700];
        expected.resize(300 * 512, 0);
        assert!(content(&mut fs, file).unwrap() == expected, "{cut}");
        assert_eq!(violations(&mut fs), Vec::<String>::new());
        fs.close(file).unwrap();
        assert_eq!(fs.stat(file), Err(FsError::NoInode(file)));
    }
    assert!(failed > 0, "{failed}");
}

#[test]
fn more_files_than_there_is_memory_for_cannot_be_open() {
    with_file(|fs, file| {
        for number in 0..4_u8 {
            let other = fs.create(Ino::ROOT, &[b'f', number + 1], FILE).unwrap();
            fs.open(other).unwrap();
        }
        assert_eq!(fs.open(file), Err(FsError::TooManyOpen { open_max: 4 }));
        assert_eq!(fs.open(file).unwrap_err().errno(), 23);
    });
}

#[test]
fn a_file_is_no_larger_than_its_pages_can_be_counted() {
    with_file(|fs, file| {
        let size_max = fs.file_size_max();
        assert_eq!(fs.truncate(file, size_max + 1), Err(FsError::FileSize { size_max }));
        assert_eq!(fs.write_at(file, size_max, b"x"), Err(FsError::FileSize { size_max }));
        assert_eq!(fs.write_at(file, u64::MAX, b"x"), Err(FsError::FileSize { size_max }));
        fs.write_at(file, size_max - 1, b"x").unwrap();
        assert_eq!(fs.stat(file).unwrap().size, size_max);
        let mut bytes = [0; 4];
        assert_eq!(fs.read_at(file, size_max - 2, &mut bytes), Ok(2));
        assert_eq!(bytes, [0, b'x', 0, 0]);
        fs.truncate(file, 0).unwrap();
    });
}

#[test]
fn a_mount_that_only_reads_changes_nothing() {
    let chip = formatted_with(SMALL, OPTIONS);
    let options = Options { read_only: true, ..OPTIONS };
    let mut memory = memory(&SMALL.geometry, &options);
    let mut fs = Fs::mount(chip, options, &mut memory).unwrap();
    let programs = fs.nand().counters().programs;
    assert_eq!(fs.create(Ino::ROOT, b"a", FILE), Err(FsError::ReadOnly));
    assert_eq!(fs.truncate(Ino::ROOT, 0), Err(FsError::ReadOnly));
    assert_eq!(fs.idle(8), Err(FsError::ReadOnly));
    assert_eq!(violations(&mut fs), Vec::<String>::new());
    let chip = fs.unmount().unwrap();
    assert_eq!(chip.counters().programs, programs);
}

#[test]
fn what_is_no_file_system_is_not_mounted() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let error = Fs::mount(Sim::new(SMALL), OPTIONS, &mut memory).err().unwrap();
    assert_eq!(error.to_string(), "the chip is not formatted");
    let error = Fs::mount(Sim::new(Chip::TINY), OPTIONS, &mut memory).err().unwrap();
    assert_eq!(error, FsError::PageSize(256));
    let error = Fs::mount(Sim::new(SMALL), OPTIONS, &mut memory[1..]).err().unwrap();
    assert!(matches!(error, FsError::Memory { .. }));
}

/// The figure that the options promise.
#[test]
fn a_gigabit_chip_takes_32_kib_of_memory() {
    let required = Fs::<Sim>::memory_required(&Chip::W25N01GV.geometry, &Options::DEFAULT);
    println!("{required} bytes");
    assert!(required <= 32 * 1024, "{required}");
}

/// The time of a read is noted once for each change, and once a day.
#[test]
fn reads_are_noted_where_somebody_may_want_to_know() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let mut fs = Fs::mount(formatted_with(SMALL, OPTIONS), OPTIONS, &mut memory).unwrap();
    let at = |fs: &mut Fs<'_, Sim>, seconds: i64, file: Ino| {
        fs.set_now(Time::from_seconds(seconds));
        fs.note_read(file).unwrap();
        fs.stat(file).unwrap().atime.seconds
    };
    fs.set_now(Time::from_seconds(1000));
    let file = fs.create(Ino::ROOT, b"a", Attributes::default()).unwrap();
    assert_eq!(at(&mut fs, 1010, file), 1010, "it was made since");
    assert_eq!(at(&mut fs, 1020, file), 1010);
    fs.write_at(file, 0, b"new").unwrap();
    assert_eq!(at(&mut fs, 1030, file), 1010, "what waits in memory is not written for this");
    fs.sync().unwrap();
    let programs = fs.nand().counters().programs;
    assert_eq!(at(&mut fs, 1040, file), 1040, "it was written since");
    assert_eq!(at(&mut fs, 1041 + 86_400, file), 1041 + 86_400, "a day later");
    assert_eq!(fs.nand().counters().programs, programs, "nothing is programmed for it");
    assert_eq!(fs.stat(file).unwrap().ctime.seconds, 1020);
    fs.sync().unwrap();
    let chip = fs.unmount().unwrap();
    let mut fs = Fs::mount(chip, Options { read_only: true, ..OPTIONS }, &mut memory).unwrap();
    assert_eq!(at(&mut fs, 900_000, file), 1041 + 86_400);
}
