//! Pages of files placed and moved by policy, on a chip whose blocks hold one bit in a cell or two.

use nandu_fs::placement::{Class, PlacementOptions, Policy, Share, WearPromise};
use nandu_fs::{Fs, FsError, Ino, Options, Regions, Time};
use nandu_nand::Cause;
use nandu_sim::{Chip, Fault, Sim, Trigger};
use nandu_suite::violations;

use crate::rig::{FILE, FORMAT, formatted_with, memory};

const CHIP: Chip = Chip::PAPER_FLEX.with_blocks(64);
const PAGE: usize = 4096;

fn options() -> Options {
    Options { cache_size: 16_384, pending_size: 16_384, ..Options::DEFAULT }.both_modes(&CHIP.geometry)
}

fn with_policy(policy: Policy) -> Options {
    let policies = PlacementOptions { policy, ..PlacementOptions::for_geometry(&CHIP.geometry) };
    Options { placement: Some(policies), ..options() }
}

fn at(milliseconds: i64) -> Time {
    Time { seconds: milliseconds / 1000, nanoseconds: (milliseconds % 1000) as u32 * 1_000_000 }
}

/// A file system and the time.
struct Bench<'m> {
    fs: Fs<'m, Sim>,
    now: i64,
}

impl Bench<'_> {
    /// Writes whole pages of a file in one request, which takes no time.
    fn write(&mut self, ino: Ino, first: usize, count: usize, class: Class) {
        self.fs.request_begin(at(self.now)).unwrap();
        self.fs.set_class(class);
        for page in first..first + count {
            let bytes = [page as u8 ^ ino.0 as u8 | 1; PAGE];
            assert_eq!(self.fs.write_at(ino, (page * PAGE) as u64, &bytes), Ok(PAGE));
        }
        if class == Class::Synced {
            self.fs.sync().unwrap();
        }
        self.fs.request_end(at(self.now));
    }

    /// Nothing is asked for meanwhile; returns how many steps of background work there were.
    fn rest(&mut self, milliseconds: i64) -> u32 {
        let until = self.now + milliseconds;
        let mut steps = 0;
        while let Some(due) = self.fs.step_due()
            && due <= at(until)
        {
            self.now = self.now.max(due.seconds * 1000 + i64::from(due.nanoseconds.div_ceil(1_000_000)));
            steps += u32::from(self.fs.step(at(self.now)).unwrap());
        }
        self.now = until;
        steps
    }

    fn create(&mut self, name: &[u8]) -> Ino {
        self.fs.create(Ino::ROOT, name, FILE).unwrap()
    }

    fn check(&mut self, ino: Ino, pages: usize) {
        let mut bytes = [0; PAGE];
        for page in 0..pages {
            self.fs.read_at(ino, (page * PAGE) as u64, &mut bytes).unwrap();
            assert_eq!(bytes, [page as u8 ^ ino.0 as u8 | 1; PAGE], "page {page}");
        }
    }
}

fn run<T>(options: Options, work: impl FnOnce(&mut Bench<'_>) -> T) -> T {
    let mut bytes = memory(&CHIP.geometry, &options);
    let fs = Fs::format(Sim::new(CHIP), options, FORMAT, &mut bytes).unwrap();
    let mut bench = Bench { fs, now: 1000 };
    let result = work(&mut bench);
    bench.fs.sync().unwrap();
    assert_eq!(violations(&mut bench.fs), [""; 0]);
    result
}

#[test]
fn what_is_written_moves_to_two_bits_a_cell_in_idle_time_and_nothing_else_does() {
    run(options(), |bench| {
        let file = bench.create(b"film");
        bench.write(file, 0, 1000, Class::Normal);
        let before = bench.fs.regions();
        assert!(before.slc_pages >= 1000 && before.mlc_pages == 0, "{before:?}");
        assert_eq!(bench.rest(900), 0, "a second without requests comes first");
        let steps = bench.rest(60_000);
        let after = bench.fs.regions();
        println!("{before:?} {after:?} {steps} steps");
        // Blocks that are still open stay.
        assert!(after.mlc_pages > 900 && after.slc_pages < 70, "{after:?}");
        assert!(
            after.free_blocks >= before.free_blocks + 5,
            "fourteen blocks become eight, one of the tree more: {before:?} {after:?}"
        );
        assert!((after.mlc_pages..after.mlc_pages + 100).contains(&steps), "a page a step, and leaves: {steps}");
        assert_eq!(bench.rest(3_600_000), 0, "there is nothing left to do");
        bench.check(file, 1000);
    });
}

#[test]
fn each_policy_decides_what_it_says() {
    let moved = |policy: Policy| {
        run(with_policy(policy), |bench| {
            let file = bench.create(b"a");
            bench.write(file, 0, 1024, Class::Normal);
            bench.rest(900);
            // The window before saw no idle time, so the next one goes to two bits a cell, if anything is decided.
            bench.write(file, 1024, 512, Class::Normal);
            let written = bench.fs.regions();
            bench.rest(60_000);
            let stats = bench.fs.stats();
            bench.check(file, 1536);
            (written.mlc_pages, stats.programs_for(Cause::Migration))
        })
    };
    let found = [Policy::BASELINE, Policy::BACKGROUND, Policy::DYNAMIC].map(moved);
    println!("{found:?}");
    let [(baseline, unmoved), (background, all), (dynamic, rest)] = found;
    assert_eq!((baseline, unmoved), (0, 0));
    assert_eq!(background, 0);
    assert!(all > 1400, "{all}");
    assert!(dynamic >= 500 && (900..1100).contains(&rest), "{dynamic}, {rest}");
}

#[test]
fn synced_pages_are_written_with_one_bit_a_cell_whatever_idle_time_there_is() {
    run(options(), |bench| {
        let file = bench.create(b"a");
        bench.write(file, 0, 1024, Class::Normal);
        bench.write(file, 1024, 1, Class::Normal);
        assert!(bench.fs.placement().unwrap().allocation().alpha().is_zero());
        let before = bench.fs.regions();
        for page in 0..40 {
            bench.write(file, 1100 + page, 1, Class::Synced);
        }
        let after = bench.fs.regions();
        assert_eq!((after.mlc_pages, after.slc_pages), (before.mlc_pages, before.slc_pages + 40));
        // A sync of pages with two bits a cell leaves out their partners, and nothing else does.
        let left_out = bench.fs.stats().left_out;
        assert!(left_out <= 4, "{left_out}");
    });
}

#[test]
fn pages_of_hot_files_are_not_moved() {
    let migrated = |policy: Policy| {
        run(with_policy(policy), |bench| {
            let hot = bench.create(b"hot");
            for round in 0..20 {
                bench.write(hot, 0, 60, Class::Normal);
                let cold = bench.create(&[b'c', b'a' + round]);
                bench.write(cold, 0, 10, Class::Normal);
                bench.rest(8_000);
                bench.check(cold, 10);
            }
            bench.check(hot, 60);
            bench.fs.stats().programs_for(Cause::Migration)
        })
    };
    let (with, without) = (migrated(Policy::LOCALITY), migrated(Policy::DYNAMIC));
    println!("{with} {without}");
    // Of 1,400 pages 200 are cold, and those of the last blocks still stand beside hot ones.
    assert!((100..=280).contains(&with), "{with}");
    assert!(without > with + 500, "{without} {with}");
}

/// How many pages of a file that a mount finds now have what was written, if the power goes.
fn pages_after_a_cut(chip: Sim, name: &[u8], pages: usize) -> usize {
    let options = options();
    let mut bytes = memory(&CHIP.geometry, &options);
    let mut fs = Fs::mount(chip, options, &mut bytes).unwrap();
    let Ok(file) = fs.lookup(Ino::ROOT, name) else { return 0 };
    let mut found = [0; PAGE];
    let mut is_there = |page: &usize| {
        fs.read_at(file, (page * PAGE) as u64, &mut found).unwrap() == PAGE
            && found == [*page as u8 ^ file.0 as u8 | 1; PAGE]
    };
    (0..pages).filter(&mut is_there).count()
}

#[test]
fn what_nobody_synced_is_durable_after_half_a_minute_at_the_latest() {
    run(options(), |bench| {
        let file = bench.create(b"a");
        bench.write(file, 0, 10, Class::Normal);
        bench.rest(29_000);
        assert_eq!(
            pages_after_a_cut(bench.fs.nand().clone(), b"a", 10),
            0,
            "a commit for each burst would cost MLC blocks pages"
        );
        bench.rest(1_100);
        assert_eq!(pages_after_a_cut(bench.fs.nand().clone(), b"a", 10), 10);
        assert_eq!(bench.rest(3_600_000), 0);
        // Without a second of idle time: the step comes between two requests.
        for page in 10..71 {
            bench.write(file, page, 1, Class::Normal);
            bench.rest(500);
        }
        assert_eq!(pages_after_a_cut(bench.fs.nand().clone(), b"a", 70), 70);
        // What somebody syncs does not wait, and what waited before it does not either.
        bench.write(file, 71, 1, Class::Normal);
        bench.write(file, 72, 1, Class::Synced);
        assert_eq!(pages_after_a_cut(bench.fs.nand().clone(), b"a", 73), 73);
        assert_eq!(bench.fs.step_due(), Some(at(bench.now + 1000)), "nothing waits any more");
    });
}

#[test]
fn a_page_whose_bits_flip_is_moved_in_idle_time_and_not_by_requests() {
    for moves_first in [false, true] {
        run(options(), |bench| {
            let file = bench.create(b"old");
            bench.write(file, 0, 200, Class::Normal);
            let other = bench.create(b"new");
            if moves_first {
                bench.rest(60_000);
            } else {
                // Idle time that is over before anything is moved: the file system knows that there is some.
                bench.write(other, 0, 1, Class::Normal);
                bench.rest(1_040);
            }
            let flips = CHIP.geometry.ecc.correctable_bits;
            bench.fs.nand_mut().inject(Fault::BitFlips(flips), Trigger::Nth(0));
            // In the third of the blocks with one bit a cell, while the first is emptied; or in one with two.
            let page = if moves_first { 0 } else { 150 };
            assert_eq!(bench.fs.read_at(file, page * PAGE as u64, &mut [0; PAGE]), Ok(PAGE));
            let refreshed = |bench: &Bench<'_>| bench.fs.stats().programs_for(Cause::Refresh);
            for page in 0..40 {
                bench.write(other, page, 1, Class::Synced);
            }
            assert_eq!(refreshed(bench), 0);
            bench.rest(60_000);
            let moved = refreshed(bench);
            println!("{moved} pages programmed");
            assert!((1..=140).contains(&moved), "{moved}");
            bench.check(file, 200);
            assert_eq!(bench.rest(3_600_000), 0, "it is over then");
        });
    }
}

#[test]
fn nearly_the_whole_capacity_of_two_bits_a_cell_is_offered_and_can_be_filled() {
    let one_bit =
        Options { log: nandu_fs::LogOptions { has_mlc: false, ..options().log }, placement: None, ..options() };
    let offered = |options: Options| run(options, |bench| bench.fs.statfs().unwrap());
    let (one, two) = (offered(one_bit), offered(options()));
    println!("{one:?} {two:?}");
    // A sixth of the blocks is kept for the collector, not a twelfth, since its examinations are worth half as much.
    assert!(two.blocks * 100 > one.blocks * 165, "{} of {}", two.blocks, one.blocks);
    run(options(), |bench| {
        let available = bench.fs.statfs().unwrap().blocks_available;
        let file = bench.create(b"all");
        let mut written = 0;
        loop {
            bench.fs.request_begin(at(bench.now)).unwrap();
            match bench.fs.write_at(file, written * PAGE as u64, &[1 | written as u8 ^ file.0 as u8; PAGE]) {
                Ok(PAGE) => written += 1,
                other => break assert_eq!(other, Err(FsError::Full)),
            }
            bench.fs.request_end(at(bench.now));
            if written % 256 == 0 {
                bench.fs.sync().unwrap();
                bench.rest(3_000);
            }
        }
        println!("{written} of {available}: {:?}", bench.fs.regions());
        assert!(written >= available, "{written} of {available}");
        bench.check(file, 300);
    });
}

#[test]
fn a_promised_lifetime_bounds_what_is_written_with_one_bit_a_cell_and_outlasts_mounts_and_formats() {
    // So little may be worn in each ten seconds that a burst uses up the share of the next.
    let promise = WearPromise::new(64 * 128, 1, 1000, 10);
    let options = Options { wear: Some(promise), ..options() };
    let mut bytes = memory(&CHIP.geometry, &options);
    let fs = Fs::format(Sim::new(CHIP), options, FORMAT, &mut bytes).unwrap();
    let mut bench = Bench { fs, now: 1000 };
    let file = bench.create(b"a");
    for window in 0..6 {
        bench.write(file, 0, 600, Class::Normal);
        bench.rest(10_000);
        let wear = bench.fs.placement().unwrap().wear().unwrap();
        println!("{window}: {:?} {}", wear.used(), wear.delta());
    }
    let wear = bench.fs.placement().unwrap().wear().unwrap();
    let (used, delta) = (wear.used(), wear.delta());
    assert_eq!(delta, Share::ZERO);
    assert!(used.windows >= 5 && used.pages > 3000, "{used:?}");
    let chip = bench.fs.unmount().unwrap();
    let fs = Fs::mount(chip, options, &mut bytes).unwrap();
    let after = fs.placement().unwrap().wear().unwrap().used();
    assert!(after.windows == used.windows && after.pages >= used.pages, "{used:?} {after:?}");
    let chip = fs.unmount().unwrap();
    let fs = Fs::format(chip, options, FORMAT, &mut bytes).unwrap();
    let again = fs.placement().unwrap().wear().unwrap().used();
    assert!(again.pages >= after.pages, "a format does not make the chip younger: {after:?} {again:?}");
}

#[test]
fn memory_is_what_it_says_and_a_volume_goes_without_policies_too() {
    let options = options();
    let required = Fs::<Sim>::memory_required(&CHIP.geometry, &options);
    let mut bytes = vec![0; required - 1];
    let refused = Fs::format(Sim::new(CHIP), options, FORMAT, &mut bytes).err();
    assert_eq!(refused, Some(FsError::Memory { required }));
    let plain = Options { placement: None, ..options };
    assert_eq!(required - Fs::<Sim>::memory_required(&CHIP.geometry, &plain), 2560);
    // Mounted without policies, pages are written with one bit a cell, and move when the collector needs room.
    let chip = formatted_with(CHIP, options);
    let mut bytes = memory(&CHIP.geometry, &plain);
    let mut fs = Fs::mount(chip, plain, &mut bytes).unwrap();
    let file = fs.create(Ino::ROOT, b"a", FILE).unwrap();
    assert_eq!(fs.write_at(file, 0, &[7; 10 * PAGE]), Ok(10 * PAGE));
    assert_eq!((fs.step_due(), fs.regions().slc_pages), (None, 10));
    assert_eq!(Regions { slc_pages: 0, ..fs.regions() }.mlc_pages, 0);
}
