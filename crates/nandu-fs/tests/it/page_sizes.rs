//! Every size of pages that a file system goes on.

use nandu_fs::{Allocation, Fs, FsError, Ino};
use nandu_sim::Sim;
use nandu_suite::{PAGE_SIZES, Pace, agree, content, sized, violations};

use crate::damage::key;
use crate::lives::varied_lives;
use crate::records::{ENTRY_FRONT, edit};
use crate::rig::{FILE, Nandu, formatted_with, fresh, memory, options_for};

/// Blocks of the chips.
const BLOCKS: u32 = 64;

/// Calls with a file system on pages of each size that has one empty file.
fn with_each(mut call: impl FnMut(&mut Fs<'_, Sim>, Ino, usize)) {
    for page_size in PAGE_SIZES {
        let (chip, options) = (sized(page_size, BLOCKS), options_for(page_size));
        let mut fs = fresh(chip, options);
        let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
        call(&mut fs, file, page_size as usize);
        assert_eq!(violations(&mut fs), Vec::<String>::new(), "pages of {page_size}");
    }
}

#[test]
fn random_operations_agree_with_the_model_on_pages_of_every_size() {
    for page_size in PAGE_SIZES {
        agree(&Nandu(options_for(page_size)), sized(page_size, 96), 300..302, Pace { operations: 500, mounted: 100 });
    }
}

#[test]
fn nothing_is_lost_by_cuts_on_pages_of_every_size() {
    for page_size in PAGE_SIZES {
        varied_lives(sized(page_size, 44), options_for(page_size), 6_000);
    }
}

/// What is left of both is large: no batch is too small for that.
#[test]
fn a_hole_is_punched_between_two_fragments() {
    with_each(|fs, file, page_size| {
        let size = 768.min(page_size / 8);
        let gap = size + size / 3;
        for (start, end) in [(size - 1, gap + 1), (1, gap + size - 1), (size / 2, gap + size / 2)] {
            let mut expected = vec![9; page_size];
            fs.write_at(file, 0, &expected).unwrap();
            fs.sync().unwrap();
            for (at, byte) in [(0, 1), (gap, 2)] {
                fs.write_at(file, at as u64, &vec![byte; size]).unwrap();
                fs.sync().unwrap();
                expected[at..at + size].fill(byte);
            }
            fs.allocate(file, Allocation::PunchHole, start as u64, (end - start) as u64).unwrap();
            expected[start..end].fill(0);
            assert!(content(fs, file).unwrap() == expected, "pages of {page_size}, {start}..{end}");
        }
    });
}

/// As many fragments as a page may have, and zeros behind them.
#[test]
fn a_page_with_many_fragments_is_cut_anywhere() {
    for end in [2, 15, 16, 17] {
        with_each(|fs, file, page_size| {
            let step = page_size / 20;
            let mut expected = vec![9; page_size];
            fs.write_at(file, 0, &expected).unwrap();
            fs.sync().unwrap();
            for at in (0..16).map(|number| number * step) {
                fs.write_at(file, at as u64, b"12345").unwrap();
                fs.sync().unwrap();
                expected[at..at + 5].copy_from_slice(b"12345");
            }
            let end = end * step + 3;
            fs.truncate(file, end as u64).unwrap();
            fs.truncate(file, page_size as u64).unwrap();
            expected[end..].fill(0);
            assert!(content(fs, file).unwrap() == expected, "pages of {page_size}, cut to {end}");
            assert_eq!(violations(fs), Vec::<String>::new());
            // And it is written and cut again.
            for (at, size) in [(page_size - 9, 3), (end - 2, 5)] {
                fs.write_at(file, at as u64, &vec![7; size]).unwrap();
                fs.sync().unwrap();
                expected[at..at + size].fill(7);
            }
            fs.truncate(file, end as u64 + 1).unwrap();
            expected.truncate(end + 1);
            assert!(content(fs, file).unwrap() == expected, "pages of {page_size}, cut to {end} again");
        });
    }
}

/// A record of a page, a fragment and an attribute that are larger than any that is written are refused, and nothing panics.
#[test]
fn records_that_are_too_large_are_refused() {
    for page_size in PAGE_SIZES {
        let (chip, options) = (sized(page_size, BLOCKS), options_for(page_size));
        let mut memory = memory(&chip.geometry, &options);
        let entry_max = (page_size as usize / 4).saturating_sub(ENTRY_FRONT);
        for kind in 0..4 {
            let mut fs = Fs::mount(formatted_with(chip, options), options, &mut memory).unwrap();
            let file = fs.create(Ino::ROOT, b"file", FILE).unwrap();
            let first = if kind == 0 { 30 } else { page_size as usize };
            fs.write_at(file, 0, &vec![9; first]).unwrap();
            fs.set_xattr(file, b"user.x", &[1; 200], Default::default()).unwrap();
            let ino = file.0;
            let chip = edit(fs.unmount().unwrap(), |tree| {
                let page = key(ino, 0x20, &[0; 4]);
                let mut xattr = Vec::new();
                tree.range(
                    std::ops::Bound::Included(&key(ino, 0x30, &[])),
                    std::ops::Bound::Unbounded,
                    nandu_index::Direction::Forward,
                    |entry| {
                        xattr = entry.key.to_vec();
                        std::ops::ControlFlow::Break(())
                    },
                )
                .unwrap();
                let size = if page_size < 8192 { entry_max } else { 3000.min(entry_max) };
                let fragment = |offset: u16| [&page[..], &offset.to_be_bytes()].concat();
                let bytes = |head: &[u8]| [head, &vec![5; size][..]].concat();
                match kind {
                    0 => drop(tree.put(&page, &bytes(&[1, 0, 0])).unwrap()),
                    1 => drop(tree.put(&fragment(10), &bytes(&[0])).unwrap()),
                    // Fragments over a record, which together are nearly a page.
                    2 => {
                        tree.put(&page, &[1, 0, 0, 7, 7]).unwrap();
                        for at in 0..4 {
                            let offset = at * (page_size as u16 / 4);
                            tree.put(&fragment(offset), &bytes(&[0])[..size.min(700)]).unwrap();
                        }
                    }
                    _ => drop(tree.put(&xattr, &[&[0, 16][..], b"user.x"].concat()).unwrap()),
                }
            });
            let mut fs = Fs::mount(chip, options, &mut memory).unwrap();
            let wrong = violations(&mut fs);
            // Smaller pages have no room for what is too large.
            assert!(!wrong.is_empty() || (kind < 2 && page_size < 8192), "pages of {page_size}, {kind}");
            let mut out = vec![0; page_size as usize];
            let outcomes = [
                fs.read_at(file, 0, &mut out).map(|_| ()),
                fs.write_at(file, 20, &[3; 200]).map(|_| ()),
                fs.sync(),
                fs.allocate(file, Allocation::PunchHole, 5, 20),
                fs.allocate(file, Allocation::ZeroKeepSize, 100, u64::from(page_size)),
                fs.set_xattr(file, b"user.x", b"new", Default::default()),
                fs.remove_xattr(file, b"user.x"),
                fs.truncate(file, 25),
            ];
            for outcome in outcomes {
                let is_expected = matches!(outcome, Ok(()) | Err(FsError::Corrupt { .. }));
                assert!(is_expected, "pages of {page_size}, {kind}: {outcome:?}");
            }
            fs.repair(&mut [], &mut |_| ()).unwrap();
            assert_eq!(violations(&mut fs), Vec::<String>::new(), "pages of {page_size}, {kind}");
        }
    }
}
