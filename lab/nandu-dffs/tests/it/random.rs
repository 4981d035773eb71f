//! Operations by chance, held against the model.

use nandu_dffs::{Dffs, Error, Options, ParentUpdate};
use nandu_sim::{Chip, Sim};

use crate::model::{Model, Op, Thing, apply, choose};
use crate::rig::{Chance, OPTIONS, SMALL, everything, memory, violations};

/// Many operations, with mounts in between, in order and not.
fn agree(chip: Chip, options: Options, seed: u64, count: usize, names: usize) {
    let (geometry, mut chance) = (chip.geometry, Chance::new(seed));
    let mut memory = memory(&geometry, &options);
    let page_size = geometry.page_size as usize;
    let mut model = Model::default();
    let mut fs = Dffs::format(Sim::with_seed(chip, seed), options, &mut memory).unwrap();
    let size_max = fs.file_size_max() as usize;
    let (mut full, mut collected, mut scans) = (0, [0; 8], 0);
    let mut note = |stats: nandu_dffs::Stats| {
        collected.iter_mut().zip(stats.collected).for_each(|(sum, count)| *sum += count);
        scans += stats.scans;
    };
    for number in 0..count {
        let op = choose(&model, &mut chance, names, page_size);
        let mut next = model.clone();
        let is_made = next.apply(&op, page_size, size_max);
        let outcome = apply(&mut fs, &op);
        match outcome {
            Ok(()) => assert!(is_made, "{seed} {number} {op:?}"),
            Err(Error::Full | Error::TooManyDirectories) => {
                full += 1;
                // What of a write was done, is seen.
                let found = everything(&mut fs).unwrap();
                model = Model::of(&found);
                let file = model.things.iter().find(|(_, thing)| matches!(thing, Thing::File(_)));
                if let Some(path) = file.map(|(path, _)| path.clone()) {
                    apply(&mut fs, &Op::Unlink(path.clone())).unwrap();
                    model.apply(&Op::Unlink(path), page_size, size_max);
                }
                continue;
            }
            Err(error) => assert!(!is_made, "{seed} {number} {op:?}: {error}"),
        }
        if is_made {
            model = next;
        }
        if number % 50 == 0 {
            assert_eq!(everything(&mut fs).unwrap(), model.now(), "{seed} {number}");
            assert_eq!(violations(&mut fs), Vec::<String>::new(), "{seed} {number} {op:?}");
        }
        if number % 170 == 100 {
            note(fs.stats());
            let chip = if number % 340 == 100 {
                fs.sync().unwrap();
                fs.abandon()
            } else {
                fs.unmount().unwrap()
            };
            fs = Dffs::mount(chip, options, &mut memory).unwrap();
            model.apply(&Op::Sync, page_size, size_max);
            assert_eq!(everything(&mut fs).unwrap(), model.now(), "{seed} {number}: found by the next mount");
            assert_eq!(violations(&mut fs), Vec::<String>::new(), "{seed} {number}: after a mount");
        }
    }
    note(fs.stats());
    eprintln!("{seed}: {full} refused, collected {collected:?}, {scans} by asking all files");
    assert!(collected[1..6].iter().all(|&count| count > 0) || count < 3000, "every area is collected: {collected:?}");
}

#[test]
fn operations_agree_with_the_model() {
    for seed in 0..40 {
        agree(SMALL, OPTIONS, seed, 3000, 60);
    }
}

#[test]
fn operations_agree_where_directories_follow_at_once() {
    for seed in 20..26 {
        agree(SMALL, Options { parent_update: ParentUpdate::Each, ..OPTIONS }, seed, 3000, 30);
    }
}

#[test]
fn operations_agree_on_larger_pages() {
    let options = Options { directory_max: 300, ..Options::DEFAULT };
    agree(Chip::W25N01GV.with_blocks(40), options, 1, 4000, 200);
}
