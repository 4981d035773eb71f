//! How much room there is, and that all of it can be used.

use nandu_log::{LogError, LogOptions};
use nandu_nand::BlockAddr;
use nandu_sim::{Chip, Sim};

use crate::pages::Pages;
use crate::toy::memory;

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// W25N01GV with so many blocks, so many of them bad; its promised share of all pages, in percent.
const SHARES: [(u32, u32, u32); 5] = [(16, 0, 25), (24, 0, 45), (40, 0, 65), (128, 2, 80), (1024, 20, 86)];

fn chip(blocks: u32, bad: u32) -> Sim {
    let mut sim = Sim::new(Chip::W25N01GV.with_blocks(blocks));
    for nth in 0..bad {
        sim.mark_factory_bad(BlockAddr(blocks / 2 + nth));
    }
    sim
}

#[test]
fn the_promised_share_of_a_chip_can_be_used() {
    for (blocks, bad, percent) in SHARES {
        let sim = chip(blocks, bad);
        let geometry = sim.chip().geometry;
        let mut bytes = memory(&geometry, &PLAIN);
        let pages = Pages::format(sim, PLAIN, &mut bytes);
        let share = f64::from(pages.log.capacity_pages()) * 100.0 / f64::from(geometry.page_count());
        println!("{blocks} blocks, {bad} of them bad: {share:.1} % of all pages");
        assert!(share >= f64::from(percent), "{blocks} blocks: {share:.1} %");
    }
}

/// Puts until nothing more grows; returns how many entries there are.
fn fill(pages: &mut Pages<'_>) -> u32 {
    for id in 0.. {
        match pages.put(id) {
            Ok(()) => {}
            Err(LogError::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    pages.count()
}

#[test]
fn all_the_room_is_filled_read_emptied_and_filled_again() {
    let shapes = [(16, 25), (24, 45), (40, 65)].map(|(blocks, percent)| (Chip::W25N01GV.with_blocks(blocks), percent));
    let small = [crate::pages::chip(14, 4, 512), crate::pages::chip(64, 16, 512), Chip::TINY].map(|chip| (chip, 10));
    for (chip, percent) in shapes.into_iter().chain(small) {
        let geometry = chip.geometry;
        let mut bytes = memory(&geometry, &PLAIN);
        let mut pages = Pages::format(Sim::new(chip), PLAIN, &mut bytes);
        for round in 0..3 {
            let count = fill(&mut pages);
            let what =
                format!("{} blocks, round {round}: {count} entries, {:?}", geometry.block_count, pages.log.stats());
            assert_eq!(count, pages.log.capacity_pages(), "{what}");
            assert!(count * 100 >= geometry.page_count() * percent, "{what}");
            pages.check();
            // On the full chip, over what is there.
            for id in 0..count {
                pages.put(id.wrapping_mul(7) % count).unwrap();
            }
            pages.check();
            for id in 0..count {
                pages.delete(if round == 1 { count - 1 - id } else { id }).unwrap();
            }
            assert_eq!(pages.count(), 0);
            pages.check();
        }
    }
}
