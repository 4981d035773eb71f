//! Images that are not what a log wrote (F22, F24).

use nandu_log::{Claim, Claimed, Fate, Kind, Log, LogError, LogOptions, TAIL_MAX};
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, PageAddr};
use nandu_sim::{Chip, Sim};

use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;
const RAW: LogOptions = LogOptions { has_raw: true, ..PLAIN };
const RAW_CHIP: Chip = Chip::TINY.with_blocks(20);
const MLC: LogOptions = LogOptions { has_mlc: true, ..RAW };
const MLC_CHIP: Chip = Chip::TINY_MLC.with_blocks(28);
const TAGGED: LogOptions = LogOptions { has_tags: true, ..RAW };
const TAGGED_CHIP: Chip = Chip { geometry: Geometry { spare_size: 32, tag_size: 16, ..RAW_CHIP.geometry }, ..RAW_CHIP };

fn volume(chip: Chip, options: LogOptions, is_clean: bool) -> Sim {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(sim.geometry(), &options);
    let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
    for round in 0..100_u32 {
        toy.put(round * 7 % 12, u64::from(round)).unwrap();
    }
    if is_clean {
        toy.unmount().unwrap();
    }
    sim
}

fn pages_of(sim: &Sim) -> Vec<Vec<u8>> {
    let geometry = sim.chip().geometry;
    // With its tag, if it has one.
    let size = if geometry.tag_size > 0 { usize::MAX } else { geometry.page_size as usize };
    let bytes = |page| sim.peek(PageAddr(page)).iter().copied().take(size).collect();
    (0..geometry.page_count()).map(bytes).collect()
}

/// A chip with these pages, as an image of it would be loaded.
fn chip_with(chip: Chip, pages: &[Vec<u8>]) -> Sim {
    let mut sim = Sim::new(chip);
    for block in 0..chip.geometry.block_count {
        sim.erase(BlockAddr(block), chip.full_mode()).unwrap();
    }
    for (page, bytes) in pages.iter().enumerate() {
        if bytes.iter().any(|&byte| byte != 0xff) {
            sim.poke(PageAddr(page as u32), bytes);
        }
    }
    sim
}

/// Mounts, uses and verifies an image. Whatever comes of it, it comes without a panic and soon.
fn use_it(mut sim: Sim, options: LogOptions, chance: &mut Chance) -> bool {
    let mut bytes = memory(sim.geometry(), &options);
    let before = sim.operation_count();
    let page_count = sim.geometry().page_count();
    let mounted = match crate::mounted(&mut sim, options, &mut bytes) {
        Ok(mut log) => {
            let mut count = 0;
            let _ = log.verify(&mut |_| count += 1);
            let mut page = vec![0; log.page_size()];
            for address in 0..page_count {
                let _ = log.read(PageAddr(address), &mut page);
            }
            for address in 0..page_count {
                let _ = log.read_raw(PageAddr(address), &mut page);
            }
            for place in 0..=TAIL_MAX {
                let _ = log.read_tail(place, &mut page);
            }
            write_it(&mut log, (&mut page, options.has_raw), chance);
            true
        }
        Err(_) => false,
    };
    // A tail is read besides; and of a block with two bits a cell each page behind which nothing may follow.
    let most = if options.has_mlc { 20_000 } else { 2000 + 100 * u64::from(options.has_tags) };
    assert!(sim.operation_count() - before < most, "{} operations: {options:?}", sim.operation_count() - before);
    mounted
}

/// Appends and gives up what an owner might that believes what it reads. The chip panics if that programs what is not erased.
fn write_it(log: &mut Log<'_, &mut Sim>, (page, has_raw): (&mut [u8], bool), chance: &mut Chance) {
    let page_count = log.geometry().page_count() as usize;
    for _ in 0..20 {
        let mut budget = log.instalment((2, 0), (4, 1));
        for _ in 0..20 {
            let pages = chance.below(3) as u32 + 1;
            let want = [Claim::Grow, Claim::Replace, Claim::Free][chance.below(3)];
            while let Ok(Some(victim)) = log.victim(&mut budget) {
                if log.is_raw(victim.page()) && log.whose(&victim).is_ok() {
                    log.found(PageAddr(chance.below(page_count) as u32), b"somebody");
                    let copy = log.copy(page, Kind::Raw(b"somebody", CellMode::Slc), &victim);
                    while let Ok(Some(_)) = log.rescue(page) {}
                    let is_settled = copy.as_ref().is_ok_and(|&copy| log.is_settled(copy));
                    let fate = match copy {
                        Ok(_) if is_settled || chance.below(2) == 0 => Fate::Values(1),
                        Ok(_) => Fate::Kept,
                        Err(_) => Fate::Stays,
                    };
                    log.answer(victim, fate, &mut budget);
                    continue;
                }
                let fate = [Fate::Dead, Fate::Stays, Fate::Unreadable][chance.below(3)];
                log.answer(victim, fate, &mut budget);
            }
            let raws = u32::from(has_raw && chance.below(2) == 0);
            let mode = if log.has_mlc() && chance.below(2) == 0 { CellMode::Mlc } else { CellMode::Slc };
            match log.claim_with(want, (pages, (raws > 0).then_some(mode)), 1) {
                Ok(Claimed::Granted(mut grant)) => {
                    let kind =
                        if chance.below(2) == 0 { Kind::Raw(b"somebody", mode) } else { Kind::Tagged(b"me", &[7; 12]) };
                    if raws > 0 && log.append(page, kind, &mut grant).is_err() {
                        return;
                    }
                    for _ in 1..pages {
                        if log.append(page, Kind::Node, &mut grant).is_err() {
                            return;
                        }
                    }
                    if chance.below(2) == 0 && log.dying_room() > 0 {
                        log.dies(PageAddr(chance.below(page_count) as u32));
                    }
                    if log.has_mlc() && chance.below(4) == 0 {
                        log.settle_copies();
                    }
                    if log.commit(page, grant).is_err() {
                        return;
                    }
                    break;
                }
                Ok(Claimed::Collect(urgent)) => budget = urgent,
                Ok(Claimed::Bury) => {
                    let Ok(Claimed::Granted(grant)) = log.claim(Claim::Bury, 1, 0) else { return };
                    if log.commit(page, grant).is_err() {
                        return;
                    }
                }
                Ok(Claimed::Recount) => {
                    if log.has_dying() {
                        break;
                    }
                    log.recount_begin();
                    for _ in 0..chance.below(60) {
                        log.found(PageAddr(chance.below(page_count) as u32), &[]);
                    }
                    log.found_all(chance.below(8) > 0);
                }
                Err(LogError::Full) => break,
                Err(_) => return,
            }
        }
    }
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

/// Gives a page the checksum of its bytes, so that damage behind it is looked at.
fn reseal(page: &mut [u8]) {
    let crc = nandu_media::checksum::page_checksum(&page[4..]);
    page[..4].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn damaged_images_are_refused_or_mounted_and_never_panic() {
    let mut chance = Chance(3);
    let mut mounted = 0;
    let streams = LogOptions { stream_count: Some(4), ready_max: Some(5), ..PLAIN };
    for (chip, options) in [
        (Chip::TINY, PLAIN),
        (Chip::TINY.with_blocks(64), PLAIN),
        (Chip::TINY.with_blocks(20), streams),
        (RAW_CHIP, RAW),
        (TAGGED_CHIP, TAGGED),
        (MLC_CHIP, MLC),
    ] {
        for is_clean in [true, false] {
            let pages = pages_of(&volume(chip, options, is_clean));
            for round in 0..3000 {
                let mut damaged = pages.clone();
                for _ in 0..=chance.below(3) {
                    // Half of the damage goes where it hurts most: to anchor blocks.
                    let page = if round % 2 == 0 { chance.below(32) } else { chance.below(pages.len()) };
                    match chance.below(4) {
                        0 => {
                            let other = chance.below(pages.len());
                            damaged.swap(page, other);
                        }
                        1 => damaged[page] = pages[chance.below(pages.len())].clone(),
                        _ => {
                            let bytes = &mut damaged[page];
                            let bound = if chance.below(2) == 0 { 60 } else { bytes.len() };
                            let at = chance.below(bound);
                            bytes[at] = chance.below(256) as u8;
                            if chance.below(4) > 0 {
                                reseal(bytes);
                            }
                        }
                    }
                }
                mounted += u32::from(use_it(chip_with(chip, &damaged), options, &mut chance));
            }
        }
    }
    assert!(mounted > 100, "{mounted} images were mounted: the damage is too heavy to try anything");
}

#[test]
fn a_chip_full_of_noise_is_not_formatted() {
    let mut chance = Chance(5);
    for _ in 0..50 {
        let pages: Vec<Vec<u8>> = (0..128).map(|_| (0..256).map(|_| chance.below(256) as u8).collect()).collect();
        assert!(!use_it(chip_with(Chip::TINY, &pages), PLAIN, &mut chance));
    }
}

#[test]
fn an_image_of_another_chip_is_refused_and_named() {
    let sim = volume(Chip::TINY, PLAIN, true);
    let larger = Chip::TINY.with_blocks(20);
    let mut sim = chip_with(larger, &pages_of(&sim));
    let mut bytes = memory(&larger.geometry, &PLAIN);
    let error = crate::mounted(&mut sim, PLAIN, &mut bytes).err();
    assert_eq!(error, Some(LogError::WrongFormat { what: &"block count" }));
}

#[test]
fn other_options_than_those_of_the_volume_are_refused_and_named() {
    let mut sim = volume(Chip::TINY, PLAIN, true);
    let mut bytes = memory(sim.geometry(), &PLAIN);
    let cases = [
        (LogOptions { volume: Some(77), ..PLAIN }, &"volume id"),
        (LogOptions { stream_count: Some(3), ..PLAIN }, &"stream count"),
        (LogOptions { ready_max: Some(5), ..PLAIN }, &"ready list"),
    ];
    for (options, what) in cases {
        let mut bytes_needed = memory(sim.geometry(), &options);
        let error = crate::mounted(&mut sim, options, &mut bytes_needed).err();
        assert_eq!(error, Some(LogError::WrongFormat { what }));
    }
    assert!(Toy::mount(&mut sim, PLAIN, &mut bytes).is_ok());
}
