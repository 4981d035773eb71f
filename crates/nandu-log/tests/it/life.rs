//! Long lives: write amplification, wear, and the end.

use nandu_log::{Budget, LogError, LogOptions};
use nandu_nand::{Cause, Geometry};
use nandu_sim::{Chip, Fault, Sim, Trigger};

use crate::pages::Pages;
use crate::toy::{Toy, memory};

const PLAIN: LogOptions = LogOptions::DEFAULT;

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

/// Write amplification and evenness (mean over highest erase count) after so many entries were put and the chip then written this many times
/// over.
fn measure(chip: Chip, count: u32, times: u64, draw: impl Fn(&mut Chance, u32) -> u32) -> (f64, f64) {
    let geometry = chip.geometry;
    let mut bytes = memory(&geometry, &PLAIN);
    let mut pages = Pages::format(Sim::new(chip), PLAIN, &mut bytes);
    for id in 0..count {
        pages.put(id).unwrap();
    }
    let mut chance = Chance(9);
    let before = pages.log.nand().counters().programs;
    let asked = times * u64::from(geometry.page_count());
    for _ in 0..asked {
        let id = draw(&mut chance, count);
        pages.put(id).unwrap();
    }
    let stats = pages.log.stats();
    let programs = pages.log.nand().counters().programs - before;
    let levelling = stats.programs_for(Cause::Levelling) as f64 / stats.programs_total() as f64;
    assert!(levelling <= 0.01, "levelling took {levelling}");
    let (most, sum) = (stats.erase_count_max, stats.erase_count_sum);
    let data = geometry.block_count - stats.bad_blocks - 4;
    let evenness = sum as f64 / f64::from(data) / f64::from(most);
    (programs as f64 / asked as f64, evenness)
}

fn hot_95_5(chance: &mut Chance, count: u32) -> u32 {
    let hot = count / 20;
    let pick = chance.next();
    if chance.next() % 100 < 95 { (pick % u64::from(hot)) as u32 } else { hot + (pick % u64::from(count - hot)) as u32 }
}

/// W25N01GV with smaller pages.
fn with_pages_of(page_size: u32, blocks: u32) -> Chip {
    let geometry = Geometry {
        page_size,
        program_unit: page_size,
        programs_per_page: 1,
        ecc: Chip::TINY.geometry.ecc,
        ..Chip::W25N01GV.geometry
    };
    Chip { geometry, ..Chip::W25N01GV }.with_blocks(blocks)
}

fn capacity(chip: Chip) -> u32 {
    let mut bytes = memory(&chip.geometry, &PLAIN);
    Pages::format(Sim::new(chip), PLAIN, &mut bytes).log.capacity_pages()
}

/// At 80 % of the capacity, and of all pages.
#[test]
fn skewed_updates_of_a_chip_that_is_eighty_percent_full_cost_little() {
    let chip = with_pages_of(256, 512);
    let all = chip.geometry.page_count();
    // At 80 % of all pages, which is 91 % of the capacity, the limits are the figures as they are.
    for (what, count, hot_max, zipf_max) in
        [("the capacity", capacity(chip) * 4 / 5, 1.45, 2.3), ("all pages", all / 5 * 4, 1.54, 2.47)]
    {
        let (hot, evenness) = measure(chip, count, 4, hot_95_5);
        println!("80 % of {what}: 95/5: write amplification {hot:.3}, evenness {evenness:.3}");
        let sums = zipf(count, 0.99);
        let (zipf, zipf_evenness) = measure(chip, count, 4, |chance, count| {
            let draw = chance.unit();
            (sums.partition_point(|&sum| sum < draw) as u32).min(count - 1).wrapping_mul(40_503) % count
        });
        println!("80 % of {what}: Zipf 0.99: write amplification {zipf:.3}, evenness {zipf_evenness:.3}");
        assert!(hot <= hot_max && zipf <= zipf_max, "80 % of {what}: {hot:.3}, {zipf:.3}");
        assert!(evenness / hot >= 0.4, "80 % of {what}: evenness {evenness:.3}");
    }
}

#[test]
fn uniform_updates_of_a_chip_that_is_three_tenths_full_cost_little() {
    let chip = with_pages_of(1024, 128);
    let uniform = |chance: &mut Chance, count: u32| (chance.next() % u64::from(count)) as u32;
    let count = (f64::from(chip.geometry.page_count()) * 0.279) as u32;
    let (amplification, evenness) = measure(chip, count, 20, uniform);
    println!("uniform at 0.279: {amplification:.4} programs an update, evenness {evenness:.3}");
    // A model of the emptiest block first, with some blocks held back, copies 0.041 pages; checkpoints are the rest.
    assert!(amplification <= 1.05, "{amplification}, {evenness}");
}

#[test]
fn a_second_format_keeps_the_erase_counts() {
    // With the block table in the anchor, and with pages of its own.
    for chip in [Chip::TINY, Chip::TINY.with_blocks(64)] {
        let mut sim = Sim::new(chip);
        let mut bytes = memory(&chip.geometry, &PLAIN);
        let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
        for round in 0..600_u32 {
            toy.put(round * 7 % 12, u64::from(round)).unwrap();
        }
        let stats = toy.log.stats();
        let (most, sum) = (stats.erase_count_max, stats.erase_count_sum);
        assert!(sum > 50, "{sum}");
        toy.unmount().unwrap();
        let after = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap().log.stats();
        let (most_after, sum_after) = (after.erase_count_max, after.erase_count_sum);
        assert!(sum_after >= sum && most_after <= most + 1, "{sum}, {most}, then {sum_after}, {most_after}");
    }
}

#[test]
fn a_chip_worn_to_death_ends_read_only_with_everything_readable() {
    for chip in [Chip::TINY, Chip::TINY.with_blocks(40), Chip::TINY_MLC.with_blocks(24)] {
        worn_to_death(chip);
    }
}

fn worn_to_death(chip: Chip) {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(&chip.geometry, &PLAIN);
    let mut values = std::collections::BTreeMap::new();
    let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
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
        let mut toy = Toy::mount(&mut sim, PLAIN, &mut bytes).unwrap();
        assert_eq!(toy.values().unwrap(), values);
        assert_eq!(toy.put(0, 1), Err(LogError::ReadOnly));
    }
}

/// How many puts there are until a block is refreshed whose bits begin to flip: on a chip with so many blocks, full or not, after idle time
/// that does not come again or without. Every page of the block lives on, so that nothing else empties it.
fn puts_until_refresh(blocks: u32, held_max: u32, has_idle: bool) -> Option<u32> {
    let chip = Chip::TINY.with_blocks(blocks);
    let mut sim = Sim::new(chip);
    let mut bytes = memory(&chip.geometry, &PLAIN);
    let mut toy = Toy::format(&mut sim, PLAIN, &mut bytes).unwrap();
    let entries = toy.len() as u32;
    let mut held = 0;
    while held < entries.min(held_max) && toy.put(held, 1).is_ok() {
        held += 1;
    }
    if has_idle {
        toy.work(&mut Budget::idle(4)).unwrap();
    }
    toy.log.nand_mut().inject(Fault::BitFlips(4), Trigger::Nth(0));
    assert_eq!(toy.get(0).unwrap(), Some(1));
    let before = toy.log.stats().programs_for(Cause::Refresh);
    let is_refreshed = |round: &u32| {
        toy.put(held - 1 - round % 4, u64::from(*round)).unwrap();
        toy.log.stats().programs_for(Cause::Refresh) > before
    };
    (0..20 * chip.geometry.page_count()).find(is_refreshed)
}

/// F6.
#[test]
fn a_block_whose_bits_flip_is_refreshed_where_idle_time_does_not_come_again() {
    let of = |blocks, held, idle| puts_until_refresh(blocks, held, idle);
    assert_eq!(of(24, 20, false), Some(0));
    let pages = Chip::TINY.with_blocks(24).geometry.page_count();
    assert!(of(24, 20, true).is_some_and(|puts| puts <= pages), "half full");
    assert!(of(24, 99, true).is_some_and(|puts| puts <= pages), "more of it");
    assert!(of(16, 99, true).is_some_and(|puts| puts <= pages), "full");
}

/// F8: a block that is read too often is emptied, by an estimate of its reads.
#[test]
fn a_block_that_is_read_too_often_is_emptied() {
    let options = LogOptions { reads_max: Some(300), ..PLAIN };
    let mut sim = Sim::new(Chip::TINY);
    let mut bytes = memory(&Chip::TINY.geometry, &options);
    let mut toy = Toy::format(&mut sim, options, &mut bytes).unwrap();
    for id in 0..24 {
        toy.put(id, 1).unwrap();
    }
    let mut reads = 0;
    while toy.log.stats().programs_for(Cause::Refresh) == 0 {
        assert_eq!(toy.get(3).unwrap(), Some(1));
        toy.idle().unwrap();
        reads += 1;
        assert!(reads < 8 * 300, "the block was read {reads} times");
    }
    assert!(reads > 50, "{reads}");
}
