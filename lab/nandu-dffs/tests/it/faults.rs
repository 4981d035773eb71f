//! Blocks that are bad or become so, and bits that flip.

use nandu_dffs::{Area, Dffs, Error, Options};
use nandu_nand::{BlockAddr, PageAddr};
use nandu_sim::{Fault, Sim, Trigger};

use crate::model::{Model, Op, apply, choose};
use crate::rig::{Chance, NEW, OPTIONS, SMALL, everything, memory, violations};

/// Operations by chance on a chip with faults; nothing that was done is lost. Returns the chip's bad blocks at the end.
fn endure(sim: Sim, options: Options, seed: u64, count: usize) -> u32 {
    let page_size = SMALL.geometry.page_size as usize;
    let mut memory = memory(&SMALL.geometry, &options);
    let mut chance = Chance::new(seed);
    let mut fs = Dffs::format(sim, options, &mut memory).unwrap();
    let size_max = fs.file_size_max() as usize;
    let mut model = Model::default();
    for number in 0..count {
        let op = choose(&model, &mut chance, 30, page_size);
        let is_made = model.clone().apply(&op, page_size, size_max);
        match apply(&mut fs, &op) {
            Ok(()) => assert!(is_made && model.apply(&op, page_size, size_max)),
            Err(Error::Full) => model = Model::of(&everything(&mut fs).unwrap()),
            Err(error) => assert!(!is_made, "{seed} {number} {op:?}: {error}"),
        }
        if number % 100 == 99 {
            assert_eq!(everything(&mut fs).unwrap(), model.now(), "{seed} {number}");
            assert_eq!(violations(&mut fs), Vec::<String>::new(), "{seed} {number}");
            let chip = if number % 200 == 99 {
                fs.sync().unwrap();
                fs.abandon()
            } else {
                fs.unmount().unwrap()
            };
            model.apply(&Op::Sync, page_size, size_max);
            fs = Dffs::mount(chip, options, &mut memory).unwrap();
            assert_eq!(everything(&mut fs).unwrap(), model.now(), "{seed} {number}, mounted");
        }
    }
    fs.blocks().filter(|block| block.area == Area::Bad).count() as u32
}

#[test]
fn factory_bad_blocks_are_left_alone() {
    for seed in 0..4 {
        let mut sim = Sim::with_seed(SMALL, seed);
        for block in [2, 9, 17, 40] {
            sim.mark_factory_bad(BlockAddr(block));
        }
        assert_eq!(endure(sim, OPTIONS, seed, 600), 4);
    }
}

#[test]
fn programs_and_erases_that_fail_lose_nothing() {
    let mut retired = 0;
    for seed in 0..12 {
        let mut sim = Sim::with_seed(SMALL, seed);
        sim.inject(Fault::ProgramFails, Trigger::Probability(0.0006));
        sim.inject(Fault::EraseFails, Trigger::Probability(0.002));
        retired += endure(sim, OPTIONS, seed, 800);
    }
    assert!(retired > 8, "{retired}");
}

#[test]
fn operations_whose_outcome_is_not_known_lose_nothing() {
    for seed in 0..8 {
        let mut sim = Sim::with_seed(SMALL, seed);
        for tear in [nandu_sim::Tear::Before, nandu_sim::Tear::Complete] {
            sim.inject(Fault::Bus(tear), Trigger::Probability(0.001));
        }
        endure(sim, OPTIONS, seed, 800);
    }
}

#[test]
fn pages_whose_bits_flip_are_moved() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let options = Options { cache_pages: 0, ..OPTIONS };
    let mut fs = Dffs::format(Sim::new(SMALL), options, &mut memory).unwrap();
    let root = fs.root();
    let file = fs.create(root, b"f", NEW).unwrap();
    fs.write(file, 0, &[7; 1500]).unwrap();
    fs.close(file).unwrap();
    let mut sim = fs.unmount().unwrap();
    // As many bits as can be corrected, in everything that stands outside of the checkpoints.
    let programmed = |sim: &Sim, page: &PageAddr| sim.page_state(*page).programs > 0;
    let pages = (6 * 8..SMALL.geometry.page_count()).map(PageAddr);
    let worn: Vec<PageAddr> = pages.filter(|page| programmed(&sim, page)).collect();
    for &page in &worn {
        sim.inject(Fault::BitFlips(4), Trigger::Page(page));
    }
    let mut fs = Dffs::mount(sim, options, &mut memory).unwrap();
    let found = everything(&mut fs).unwrap();
    fs.nand_mut().withdraw_all();
    for number in 0..30 {
        let name = format!("other{number}");
        fs.create(fs.root(), name.as_bytes(), NEW).unwrap();
    }
    assert!(fs.stats().collected.iter().sum::<u64>() >= 3, "{:?}", fs.stats());
    // Whatever stood in those pages stands elsewhere: they may be lost.
    let mut sim = fs.unmount().unwrap();
    for &page in &worn {
        sim.inject(Fault::Uncorrectable, Trigger::Page(page));
    }
    let mut fs = Dffs::mount(sim, options, &mut memory).unwrap();
    assert_eq!(everything(&mut fs).unwrap()["f"], found["f"]);
    assert_eq!(violations(&mut fs), Vec::<String>::new());
}

#[test]
fn a_page_that_is_lost_is_told_of_and_the_rest_goes_on() {
    let mut memory = memory(&SMALL.geometry, &OPTIONS);
    let mut fs = Dffs::format(Sim::new(SMALL), OPTIONS, &mut memory).unwrap();
    let root = fs.root();
    let mut files = Vec::new();
    for number in 0..12 {
        let file = fs.create(root, format!("f{number}").as_bytes(), NEW).unwrap();
        fs.write(file, 0, &[number as u8 + 1; 900]).unwrap();
        fs.close(file).unwrap();
        files.push(file);
    }
    let mut sim = fs.unmount().unwrap();
    // The inode of the fifth file.
    let page = (48..SMALL.geometry.page_count())
        .rev()
        .map(PageAddr)
        .find(|&page| {
            let bytes = sim.peek(page);
            nandu_media::dffs::Fields::read(&bytes).is_ok_and(|fields| fields.id == files[4].number())
                && nandu_media::dffs::word(&bytes, 300) != 0
        })
        .unwrap();
    sim.inject(Fault::Uncorrectable, Trigger::Page(page));
    let mut fs = Dffs::mount(sim, OPTIONS, &mut memory).unwrap();
    assert!(matches!(fs.lookup(root, b"f4"), Err(Error::Corrupt { .. })));
    assert!(!violations(&mut fs).is_empty());
    // Blocks are collected around it.
    for round in 0..400_u32 {
        let name = format!("g{}", round % 7);
        match fs.create(fs.root(), name.as_bytes(), NEW) {
            Ok(file) => {
                fs.write(file, 0, &[3; 700]).unwrap();
                fs.close(file).unwrap();
            }
            Err(Error::Exists) => fs.unlink(fs.root(), name.as_bytes()).unwrap(),
            Err(error) => panic!("{round}: {error}"),
        }
    }
    for number in (0..12).filter(|&number| number != 4) {
        let mut content = vec![0; 900];
        assert_eq!(fs.read(files[number], 0, &mut content), Ok(900));
        assert!(content.iter().all(|&byte| byte == number as u8 + 1));
    }
}
