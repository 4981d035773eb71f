//! The promises of the log, in random lives: nothing that does not grow is refused, what one call costs, how idle time ends, and what a mount
//! reads.

use nandu_log::{LogError, LogOptions};
use nandu_sim::{Chip, Sim};

use crate::cuts::chance;
use crate::mounts::READS_MAX;
use crate::pages::{Pages, chip};
use crate::toy::{Toy, Values, memory};

/// Most programs and erases of a put or delete of one entry, when nothing failed.
const PROGRAMS_MAX: u64 = 6;
const ERASES_MAX: u64 = 2;

/// Most programs of idle time after the last change: a tenth of the live pages; the rest of a block that was being emptied; a commit for each
/// eight copies, and a few.
fn idle_max(live: u64, pages: u32) -> u64 {
    live / 10 + u64::from(pages + pages / 8) + 8
}

/// Blocks that hold nothing when what a cut took is made good: as many as the collector keeps on a small chip.
const POOL_GOOD: u32 = 7;

/// Rounds of idle time, at most, until nothing more is done.
const IDLE_ROUNDS: u32 = 2_000;

const PLAIN: LogOptions = LogOptions::DEFAULT;

/// The dearest calls.
#[derive(Clone, Copy, Debug, Default)]
struct Worst {
    programs: u64,
    erases: u64,
    /// The dearest call behind a cut, until what that took is made good.
    after_cut: u64,
    /// Programs in idle time, beyond a tenth of the live pages.
    idle: u64,
    mount_reads: u64,
}

impl Worst {
    fn call(&mut self, programs: u64, erases: u64, what: &str) {
        if programs > self.programs.max(PROGRAMS_MAX) || erases > self.erases.max(ERASES_MAX) {
            println!("{what}: {programs} programs, {erases} erases");
        }
        self.programs = self.programs.max(programs);
        self.erases = self.erases.max(erases);
    }

    fn join(self, other: Worst) -> Worst {
        Worst {
            programs: self.programs.max(other.programs),
            erases: self.erases.max(other.erases),
            after_cut: self.after_cut.max(other.after_cut),
            idle: self.idle.max(other.idle),
            mount_reads: self.mount_reads.max(other.mount_reads),
        }
    }
}

/// Blocks and pages of a block of the lives without cuts. A block table of its own does not fit the smallest blocks.
const SHAPES: [(u32, u32); 14] = [
    (14, 4),
    (14, 8),
    (14, 64),
    (15, 16),
    (15, 5),
    (16, 8),
    (18, 32),
    (20, 4),
    (24, 8),
    (29, 11),
    (32, 16),
    (40, 7),
    (50, 4),
    (64, 32),
];

fn options_of(seed: u32, blocks: u32) -> LogOptions {
    match seed % 3 {
        0 => PLAIN,
        1 if blocks >= 24 => LogOptions { stream_count: Some(4), ready_max: Some(6), ..PLAIN },
        _ => LogOptions { ready_max: Some(3 + (seed % 4) as u8), ..PLAIN },
    }
}

/// A life to the brim, without cuts.
fn life(blocks: u32, pages: u32, seed: u32) -> Worst {
    let options = options_of(seed, blocks);
    let chip = chip(blocks, pages, 512);
    let what = format!("{blocks} blocks of {pages} pages, seed {seed}");
    let mut bytes = memory(&chip.geometry, &options);
    let mut owner = Pages::format(Sim::new(chip), options, &mut bytes);
    let mut worst = Worst::default();
    let capacity = owner.log.capacity_pages();
    let mut draw = (0..).map(|count| chance(count, seed * 2 + 1));
    let mut draw = |bound: u32| draw.next().unwrap() % bound;
    for phase in 0..6 {
        // To the brim.
        let mut is_full = false;
        for id in 0..=capacity {
            if owner.holds(id) {
                continue;
            }
            let (result, cost) = owner.cost(|owner| owner.put(id));
            match result {
                Ok(()) => worst.call(cost.programs, cost.erases, &format!("{what}: growing to {}", owner.count())),
                Err(LogError::Full) => {
                    is_full = true;
                    break;
                }
                Err(error) => panic!("{what}: {error}"),
            }
        }
        assert!(is_full && owner.count() >= capacity, "{what}: {} of {capacity}", owner.count());
        // Over what is there, in one of three ways; nothing is refused. Now and then a delete, and what was deleted comes again.
        let held = owner.count();
        for round in 0..4 * chip.geometry.page_count() {
            let id = match phase % 3 {
                0 => draw(held),
                1 => round % held,
                _ => draw(held.div_ceil(10)),
            };
            let (result, cost) =
                owner.cost(|owner| if owner.holds(id) && draw(12) == 0 { owner.delete(id) } else { owner.put(id) });
            if let Err(error) = result {
                panic!("{what}, phase {phase}, round {round}, {} of {capacity}: {error}", owner.count());
            }
            worst.call(cost.programs, cost.erases, &format!("{what}, phase {phase}, round {round}"));
        }
        owner.check();
        if phase % 2 == 1 {
            // Some of it goes, the more so later.
            for id in 0..held {
                if owner.holds(id) && draw(6) < phase {
                    let (result, cost) = owner.cost(|owner| owner.delete(id));
                    result.unwrap();
                    worst.call(cost.programs, cost.erases, &format!("{what}, phase {phase}: deleting {id}"));
                }
            }
        }
        // Idle time comes to rest.
        let live = u64::from(owner.log.live_pages());
        let (mut programs, mut quiet) = (0, 0);
        for round in 0..IDLE_ROUNDS {
            let (result, cost) = owner.cost(Pages::idle);
            result.unwrap();
            programs += cost.programs;
            quiet = if cost.programs + cost.erases == 0 { quiet + 1 } else { 0 };
            assert!(round < IDLE_ROUNDS - 100 || quiet > 0, "{what}, phase {phase}: idle time does not end");
        }
        assert!(quiet >= 100, "{what}, phase {phase}: idle time does not end");
        let bound = idle_max(live, pages);
        assert!(programs <= bound, "{what}, phase {phase}: {programs} programs in idle time, {live} pages live");
        worst.idle = worst.idle.max(programs.saturating_sub(live / 10));
        owner.check();
    }
    worst
}

#[test]
fn lives_of_all_shapes() {
    let mut worst = Worst::default();
    for (blocks, pages) in SHAPES {
        for seed in 0..3 {
            let found = life(blocks, pages, seed);
            println!("{blocks} blocks of {pages} pages, seed {seed}: {found:?}");
            worst = worst.join(found);
        }
    }
    println!("worst calls of all lives without cuts: {worst:?}");
    assert!(worst.programs <= PROGRAMS_MAX && worst.erases <= ERASES_MAX, "{worst:?}");
}

/// Blocks, pages of a block and bytes of a page of the lives with cuts: the toy's map has more entries than fit.
const CUT_SHAPES: [(u32, u32, u32); 9] = [
    (14, 4, 256),
    (14, 8, 512),
    (15, 16, 512),
    (16, 5, 256),
    (16, 8, 512),
    (20, 8, 1024),
    (24, 11, 1024),
    (36, 4, 1024),
    (64, 5, 2048),
];

/// A life to the brim with cuts at any moment, also in recoveries.
fn life_with_cuts(chip: Chip, seed: u32, read_back: bool) -> Worst {
    let options = LogOptions { read_back, ..options_of(seed, chip.geometry.block_count) };
    let what = format!("{} blocks of {} pages, seed {seed}", chip.geometry.block_count, chip.geometry.pages_per_block);
    let mut sim = Sim::with_seed(chip, seed.into());
    let mut bytes = memory(&chip.geometry, &options);
    drop(Toy::format(&mut sim, options, &mut bytes).unwrap());
    let mut worst = Worst::default();
    let mut draw = (0..).map(|count| chance(count, seed * 2 + 1));
    let mut draw = |bound: u32| draw.next().unwrap() % bound;
    let mut values = Values::new();
    // The change that a cut hit: it is there or not.
    let mut pending: Option<(u32, Option<u64>)> = None;
    let mut count = 0_u64;
    // Whether what the cuts took is made good.
    let mut is_good = true;
    for session in 0..60 {
        let reads = sim.counters().reads;
        let mut toy = Toy::mount(&mut sim, options, &mut bytes).unwrap();
        // The toy reads the newest commit once more.
        worst.mount_reads = worst.mount_reads.max(toy.log.nand().counters().reads - reads - 1);
        assert!(!toy.log.is_read_only(), "{what}, session {session}: read-only");
        let found = toy.values().unwrap();
        if found != values {
            let (id, value) = pending.unwrap_or_else(|| panic!("{what}, session {session}: lost"));
            match value {
                Some(value) => values.insert(id, value),
                None => values.remove(&id),
            };
            assert_eq!(found, values, "{what}, session {session}");
        }
        pending = None;
        toy.verify().unwrap();
        let length = if draw(3) == 0 { draw(8) } else { draw(200) };
        let has_cut = draw(4) > 0;
        if has_cut {
            let at = toy.log.nand().operation_count() + u64::from(draw(4 * length + 8));
            toy.log.nand_mut().cut_somehow_at(at);
        }
        let entries = toy.len() as u32;
        let grows = session % 6 < 4;
        let mut is_cut = false;
        is_good &= !toy.log.stats().was_cut;
        for _ in 0..length {
            count += 1;
            let id = draw(entries);
            let is_there = values.contains_key(&id);
            let change = if is_there && draw(if grows { 12 } else { 2 }) == 0 { None } else { Some(count) };
            let pool = toy.log.stats().pool_blocks;
            let before = *toy.log.nand().counters();
            let result = toy.batch(&[(id, change)]);
            let cost = toy.log.nand().counters().since(&before);
            match result {
                Ok(()) => {
                    match change {
                        Some(value) => values.insert(id, value),
                        None => values.remove(&id),
                    };
                }
                Err(LogError::Full) => {
                    assert!(!is_there, "{what}, session {session}: a change that does not grow was refused");
                    continue;
                }
                Err(error) => {
                    assert!(toy.log.nand().is_off(), "{what}, session {session}: {error}");
                    pending = Some((id, change));
                    is_cut = true;
                    break;
                }
            }
            is_good |= pool >= POOL_GOOD;
            if !is_good {
                // What the cut took is made good: a block is emptied, or some.
                worst.after_cut = worst.after_cut.max(cost.programs);
                assert!(cost.erases <= ERASES_MAX + 2, "{what}, session {session}: {} erases after a cut", cost.erases);
                let most = PROGRAMS_MAX + u64::from(chip.geometry.pages_per_block);
                assert!(cost.programs <= most, "{what}, session {session}: {} programs after a cut", cost.programs);
            } else {
                worst.call(cost.programs, cost.erases, &format!("{what}, session {session}, change {count}"));
            }
            if draw(16) == 0 && toy.idle().is_err() {
                is_cut = true;
                break;
            }
        }
        if is_cut {
            toy.log.abandon_log();
            sim.power_on();
            sim.clear_cuts();
            // Cuts in the recoveries, too.
            for _ in 0..draw(4) {
                sim.cut_somehow_at(sim.operation_count() + u64::from(draw(60)));
                let result = Toy::mount(&mut sim, options, &mut bytes).map(|toy| toy.len());
                if sim.is_off() {
                    sim.power_on();
                } else {
                    result.unwrap();
                }
                sim.clear_cuts();
            }
        } else {
            toy.log.nand_mut().clear_cuts();
            if draw(2) == 0 {
                let live = u64::from(toy.log.live_pages());
                let before = toy.log.nand().counters().programs;
                for _ in 0..300 {
                    toy.idle().unwrap();
                }
                let programs = toy.log.nand().counters().programs - before;
                let bound = idle_max(live, chip.geometry.pages_per_block);
                assert!(programs <= bound, "{what}, session {session}: {programs} in idle time, {live} live");
                let before = *toy.log.nand().counters();
                for _ in 0..20 {
                    toy.idle().unwrap();
                }
                let cost = toy.log.nand().counters().since(&before);
                assert_eq!((cost.programs, cost.erases), (0, 0), "{what}, session {session}: idle time does not end");
            }
            if draw(2) == 0 {
                toy.unmount().unwrap();
            } else {
                toy.log.abandon_log();
            }
        }
    }
    worst
}

/// Lives of each shape with cuts; `NANDU_LIVES` sets another number.
fn lives() -> u32 {
    std::env::var("NANDU_LIVES").ok().and_then(|count| count.parse().ok()).unwrap_or(24)
}

#[test]
fn lives_of_all_shapes_with_cuts() {
    let mut worst = Worst::default();
    for (blocks, pages, page_size) in CUT_SHAPES {
        for seed in 0..lives() {
            for read_back in [false, true] {
                worst = worst.join(life_with_cuts(chip(blocks, pages, page_size), seed, read_back));
            }
        }
        println!("{blocks} blocks of {pages} pages: {worst:?} so far");
    }
    println!("worst calls of all lives with cuts: {worst:?}");
    assert!(worst.mount_reads <= READS_MAX, "{worst:?}");
    assert!(worst.programs <= PROGRAMS_MAX && worst.erases <= ERASES_MAX, "{worst:?}");
}
