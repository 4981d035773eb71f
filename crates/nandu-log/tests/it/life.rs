//! Long lives: write amplification, wear, and the end.

use nandu_log::{Append, Budget, Examined, Growth, Log, LogError, LogOptions, PageKind, Placement};
use nandu_nand::{Cause, PageAddr};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::toy::{Toy, memory};

/// An owner of so many pages that keeps its map in memory: for measuring, not for cuts.
struct Pages<'m> {
    log: Log<'m, Sim>,
    place: Vec<Option<PageAddr>>,
    /// Which entry each page of the chip was programmed for.
    owner: Vec<u32>,
    buffer: Vec<u8>,
    asked: u64,
}

impl Pages<'_> {
    fn update(&mut self, id: u32) -> Result<(), LogError<nandu_sim::SimError>> {
        let mut budget = self.log.instalment(1);
        loop {
            while let Some(examine) = self.log.next_work(&mut budget)? {
                let entry = self.owner[examine.page.0 as usize];
                let is_live = self.place.get(entry as usize).is_some_and(|&place| place == Some(examine.page));
                let outcome = match (is_live, examine.moves) {
                    (false, _) => Examined::Dead,
                    (true, false) => Examined::Live,
                    (true, true) => match self.append(entry, Placement::Survivor { from: examine.page }, examine.cause)
                    {
                        Err(LogError::Full) => Examined::Live,
                        result => {
                            result?;
                            Examined::Moved
                        }
                    },
                };
                self.log.examined(examine, outcome)?;
            }
            if self.log.reserve(1, Growth::Grows)? {
                break;
            }
            budget = Budget::room(16);
        }
        let placement = self.place[id as usize].map_or(Placement::New, |of| Placement::Update { of });
        self.asked += 1;
        self.append(id, placement, Cause::Host)
    }

    fn append(&mut self, id: u32, placement: Placement, cause: Cause) -> Result<(), LogError<nandu_sim::SimError>> {
        let append = Append { kind: PageKind::Tree, placement, is_commit: true, cause };
        let page = self.log.append(&mut self.buffer, append)?;
        if let Some(old) = self.place[id as usize].replace(page) {
            self.log.supersede(old);
        }
        self.owner[page.0 as usize] = id;
        Ok(())
    }
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ self.0 >> 33;
        (x.wrapping_mul(0xff51_afd7_ed55_8ccd)) >> 16
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 8 & 0xf_ffff_ffff) as f64 / f64::from(1_u32 << 18) / f64::from(1_u32 << 18)
    }
}

/// Ids with Zipf-like frequencies, by inversion of the harmonic sums.
fn zipf(count: u32, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums: Vec<f64> = (1..=count)
        .map(|rank| {
            sum += 1.0 / f64::from(rank).powf(exponent);
            sum
        })
        .collect();
    for value in &mut sums {
        *value /= sum;
    }
    sums
}

/// Write amplification and evenness (mean over highest erase count) after the chip was filled to a share of its pages and
/// then written this many times over.
fn measure(
    chip: Chip,
    options: LogOptions,
    share: f64,
    times: u64,
    draw: impl Fn(&mut Chance, u32) -> u32,
) -> (f64, f64) {
    let geometry = chip.geometry;
    let mut bytes = memory(&geometry, &options);
    let log = Log::format(Sim::new(chip), options, &mut bytes).unwrap();
    let count = (f64::from(geometry.page_count()) * share) as u32;
    let mut pages = Pages {
        buffer: vec![0; log.page_size()],
        log,
        place: vec![None; count as usize],
        owner: vec![u32::MAX; geometry.page_count() as usize],
        asked: 0,
    };
    for id in 0..count {
        pages.update(id).unwrap();
    }
    let mut chance = Chance(9);
    let programs = pages.log.nand().counters().programs;
    pages.asked = 0;
    for _ in 0..times * u64::from(geometry.page_count()) {
        let id = draw(&mut chance, count);
        pages.update(id).unwrap();
    }
    let stats = pages.log.stats();
    let programs = pages.log.nand().counters().programs - programs;
    let levelling = stats.programs_for(Cause::Levelling) as f64 / stats.programs_total() as f64;
    assert!(levelling <= 0.01, "levelling took {levelling}");
    let evenness = stats.erase_count_sum as f64 / f64::from(stats.data_blocks) / f64::from(stats.erase_count_max);
    (programs as f64 / pages.asked as f64, evenness)
}

fn hot_95_5(chance: &mut Chance, count: u32) -> u32 {
    let hot = count / 20;
    let pick = chance.next();
    if chance.next() % 100 < 95 { (pick % u64::from(hot)) as u32 } else { hot + (pick % u64::from(count - hot)) as u32 }
}

/// An owner may need more room to move a page than there is, where those of other blocks need less.
#[test]
fn a_block_in_which_pages_were_left_for_want_of_room_does_not_keep_others_from_being_emptied() {
    let sim = Sim::new(Chip::TINY);
    let geometry = *nandu_nand::Nand::geometry(&sim);
    let mut bytes = memory(&geometry, &LogOptions::DEFAULT);
    let log = Log::format(sim, LogOptions::DEFAULT, &mut bytes).unwrap();
    let mut pages = Pages {
        buffer: vec![0; log.page_size()],
        log,
        place: vec![None; geometry.page_count() as usize],
        owner: vec![u32::MAX; geometry.page_count() as usize],
        asked: 0,
    };
    // In each block two or three pages live, and hardly a block is left.
    for number in 0.. {
        if pages.log.stats().pool_blocks <= 2 {
            break;
        }
        let id = if number % 3 == 0 { number } else { 1 };
        pages.append(id, Placement::New, Cause::Host).unwrap();
    }
    let mut asked = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let Some(examine) = pages.log.next_work(&mut Budget::room(8)).unwrap() else { break };
        let is_live = pages.place[pages.owner[examine.page.0 as usize] as usize] == Some(examine.page);
        if is_live && examine.moves {
            asked.insert(geometry.block_of(examine.page));
        }
        pages.log.examined(examine, if is_live { Examined::Live } else { Examined::Dead }).unwrap();
    }
    assert!(asked.len() > 5, "{asked:?}");
}

/// An owner that fails while it is asked about a page, since it cannot read another one, gives no answer. The page may live.
#[test]
fn a_page_about_which_nobody_answered_stays_counted() {
    let mut sim = Sim::new(Chip::TINY);
    let mut bytes = memory(nandu_nand::Nand::geometry(&sim), &LogOptions::DEFAULT);
    let mut toy = Toy::format(&mut sim, LogOptions::DEFAULT, &mut bytes).unwrap();
    let entries = toy.len() as u32 * 3 / 4;
    let mut unanswered = 0;
    for round in 0..2_000_u32 {
        // Everything once, then some of it, so that what is asked about lives.
        let entry = if round < entries { round } else { round.wrapping_mul(0x9E37_79B1) >> 16 };
        toy.put(entry % if round < entries { entries } else { entries / 3 }, u64::from(round)).unwrap();
        if round % 5 == 0 {
            unanswered += u32::from(toy.log.next_work(&mut Budget::room(1)).unwrap().is_some());
        }
        toy.check_bounds();
    }
    assert!(unanswered > 100, "{unanswered}");
    assert_eq!(toy.values().unwrap().len(), entries as usize);
}

#[test]
fn skewed_updates_of_a_chip_that_is_eighty_percent_full_cost_little() {
    let chip = Chip {
        geometry: nandu_nand::Geometry {
            page_size: 256,
            program_unit: 256,
            programs_per_page: 1,
            ecc: Chip::TINY.geometry.ecc,
            ..Chip::W25N01GV.geometry
        },
        ..Chip::W25N01GV
    }
    .with_blocks(512);
    let (amplification, evenness) = measure(chip, LogOptions::DEFAULT, 0.8, 4, hot_95_5);
    println!("95/5: write amplification {amplification:.3}, evenness {evenness:.3}");
    assert!(amplification <= 1.38 && evenness / amplification >= 0.4, "{amplification}, {evenness}");
    let sums = zipf((chip.geometry.page_count() as f64 * 0.8) as u32, 0.99);
    let (amplification, evenness) = measure(chip, LogOptions::DEFAULT, 0.8, 4, |chance, count| {
        let draw = chance.unit();
        (sums.partition_point(|&sum| sum < draw) as u32).min(count - 1).wrapping_mul(40_503) % count
    });
    println!("Zipf 0.99: write amplification {amplification:.3}, evenness {evenness:.3}");
    assert!(amplification <= 2.0, "{amplification}, {evenness}");
}

#[test]
fn uniform_updates_of_a_chip_that_is_three_tenths_full_cost_little() {
    let chip = Chip {
        geometry: nandu_nand::Geometry {
            page_size: 1024,
            program_unit: 1024,
            programs_per_page: 1,
            ..Chip::W25N01GV.geometry
        },
        ..Chip::W25N01GV
    }
    .with_blocks(128);
    let uniform = |chance: &mut Chance, count: u32| (chance.next() % u64::from(count)) as u32;
    let (amplification, evenness) = measure(chip, LogOptions::DEFAULT, 0.279, 20, uniform);
    println!("uniform at 0.279: {amplification:.4} programs an update, evenness {evenness:.3}");
    // A model of the emptiest block first, with as many blocks held back, copies 0.041 pages; checkpoints are the rest.
    assert!(amplification <= 1.046, "{amplification}, {evenness}");
}

#[test]
fn a_second_format_keeps_the_erase_counts() {
    // With the block table in the anchor, and with pages of its own.
    for chip in [Chip::TINY, Chip::TINY.with_blocks(64)] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(&chip.geometry, &LogOptions::DEFAULT);
        let mut toy = Toy::format(&mut sim, LogOptions::DEFAULT, &mut bytes).unwrap();
        for round in 0..600_u32 {
            toy.put(round * 7 % 12, u64::from(round)).unwrap();
        }
        let before = toy.log.stats();
        assert!(before.erase_count_sum > 50, "{before:?}");
        toy.unmount().unwrap();
        let after = Toy::format(&mut sim, LogOptions::DEFAULT, &mut bytes).unwrap().log.stats();
        assert!(after.erase_count_sum >= before.erase_count_sum, "{before:?}, {after:?}");
        assert!(after.erase_count_max <= before.erase_count_max + 1, "{before:?}, {after:?}");
    }
}

#[test]
fn a_chip_worn_to_death_ends_read_only_with_everything_readable() {
    worn_to_death(Chip::TINY, LogOptions::DEFAULT);
    worn_to_death(Chip::TINY.with_blocks(19), LogOptions { bare_streams: 1, ..LogOptions::DEFAULT });
    let mlc = LogOptions { bare_streams: 2, mlc_streams: 1, ..LogOptions::DEFAULT };
    worn_to_death(Chip::TINY_MLC.with_blocks(26), mlc);
}

fn worn_to_death(chip: Chip, options: LogOptions) {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(&chip.geometry, &options);
    let mut values = std::collections::BTreeMap::new();
    let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
    let mut error = None;
    for round in 0..100_000_u32 {
        // From here on blocks die one after the other.
        if round % 50 == 49 {
            let fault = if round % 100 == 99 { Fault::EraseFails } else { Fault::ProgramFails };
            toy.log.nand_mut().inject(fault, Trigger::Nth(0));
        }
        let id = round * 7 % 12;
        let result = match toy.put(id, u64::from(round)) {
            // Room shrinks as blocks die. What is deleted makes room for the rest.
            Err(LogError::Full) => match values.pop_last() {
                Some((last, value)) => toy.delete(last).inspect_err(|_| {
                    values.insert(last, value);
                }),
                None => Err(LogError::Full),
            },
            result => result.map(|()| {
                values.insert(id, u64::from(round));
            }),
        };
        if let Err(found) = result {
            error = Some(found);
            break;
        }
    }
    let stats = toy.log.stats();
    assert!(error == Some(LogError::ReadOnly) && toy.log.is_read_only(), "{error:?}, {stats:?}");
    assert!(stats.bad_blocks >= 3, "{stats:?}");
    assert_eq!(toy.values().unwrap(), values);
    drop(toy);
    sim.withdraw_all();
    for _ in 0..2 {
        let mut toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
        assert_eq!(toy.values().unwrap(), values);
        assert_eq!(toy.put(0, 1), Err(LogError::ReadOnly));
    }
}

/// How many puts there are until a block is refreshed whose bits begin to flip: on a chip with so many blocks, full or not, after idle time
/// that does not come again or without. Every page of the block lives on, so that nothing else empties it.
fn puts_until_refresh(blocks: u32, held_max: u32, has_idle: bool) -> Option<u32> {
    let chip = Chip::TINY.with_blocks(blocks);
    let mut sim = Sim::new(chip);
    let mut bytes = memory(&chip.geometry, &LogOptions::DEFAULT);
    let mut toy = Toy::format(&mut sim, LogOptions::DEFAULT, &mut bytes).unwrap();
    let entries = Toy::<&mut Sim>::entries(&toy.log) as u32;
    let mut held = 0;
    while held < entries.min(held_max) && toy.put(held, 1).is_ok() {
        held += 1;
    }
    if has_idle {
        toy.work(&mut Budget::chosen(4)).unwrap();
    }
    toy.log.nand_mut().inject(Fault::BitFlips(4), Trigger::Nth(0));
    assert_eq!(toy.get(0).unwrap(), Some(1));
    let before = toy.log.stats().programs_for(Cause::Refresh);
    let is_refreshed = |round: &u32| {
        // A full chip refuses it now and then.
        let _ = toy.put(held - 1 - round % 4, u64::from(*round));
        toy.log.stats().programs_for(Cause::Refresh) > before
    };
    (0..20 * chip.geometry.page_count()).find(is_refreshed)
}

#[test]
fn a_block_whose_bits_flip_is_refreshed_where_idle_time_does_not_come_again() {
    let of = |blocks, held, idle| puts_until_refresh(blocks, held, idle);
    assert_eq!(of(24, 20, false), Some(0));
    let pages = Chip::TINY.with_blocks(24).geometry.page_count();
    assert!(of(24, 20, true).is_some_and(|puts| puts <= pages), "half full");
    assert!(of(24, 99, true).is_some_and(|puts| puts <= pages), "more of it");
    assert!(of(16, 99, true).is_some_and(|puts| puts <= pages), "full");
}
