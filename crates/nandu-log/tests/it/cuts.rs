//! Power cuts: at every operation, with everything a cut can leave, and in the recoveries after it.

use nandu_log::{Append, Budget, Examined, Growth, Log, LogError, LogOptions, PageKind, Placement};
use nandu_media::header::FLAG_COMMIT;
use nandu_media::{PageFields, Position};
use nandu_nand::{BlockAddr, Cause, CellMode, Nand, PageAddr};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Sim};

use crate::toy::{Toy, Values, memory};

/// What was acknowledged, and the operation that was under way.
#[derive(Clone, Default)]
pub(crate) struct Promise {
    /// Whether the chip was opened, so that the rest has a meaning.
    pub(crate) is_open: bool,
    values: Values,
    pending: Vec<(u32, Option<u64>)>,
    /// Operations done, over all runs.
    count: u32,
}

impl Promise {
    fn apply(values: &mut Values, changes: &[(u32, Option<u64>)]) {
        for &(id, value) in changes {
            match value {
                Some(value) => values.insert(id, value),
                None => values.remove(&id),
            };
        }
    }
}

/// A small generator, so that workloads are the same every time.
pub(crate) fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

/// Opens the chip and changes entries: mostly puts, some deletes, some batches, over so few entries that blocks empty.
pub(crate) fn workload(
    options: LogOptions,
    operations: u32,
    entries: u32,
    ends_clean: bool,
) -> impl Fn(&mut Sim, &mut Promise) -> Run {
    move |chip, promise| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        let mut toy = Toy::mount(&mut *chip, options, &mut bytes)?;
        toy.is_hostile = true;
        // What was under way at a cut is there or not; what follows goes on from what is there.
        let found = toy.values()?;
        promise.values = found;
        promise.pending.clear();
        promise.is_open = true;
        for _ in 0..operations {
            let count = promise.count;
            promise.count += 1;
            let id = chance(count, 1) % entries;
            let value = u64::from(count) + 1000;
            let changes = match chance(count, 2) % 8 {
                0 => vec![(id, None)],
                1 => vec![(id, Some(value)), ((id + 1) % entries, Some(value)), ((id + 2) % entries, None)],
                _ => vec![(id, Some(value))],
            };
            promise.pending = changes;
            toy.batch(&promise.pending)?;
            Promise::apply(&mut promise.values, &promise.pending);
            promise.pending.clear();
            if options.bare_streams > 0 && chance(count, 4).is_multiple_of(8) {
                match toy.waste(chance(count, 5) % 20) {
                    Err(LogError::Full) => {}
                    result => result?,
                }
            }
            if chance(count, 3).is_multiple_of(32) {
                toy.log.checkpoint()?;
            }
            // Replaces a block of the ready list, where some have two bits a cell.
            if chance(count, 6).is_multiple_of(8) {
                toy.log.list_most_worn()?;
            }
        }
        if ends_clean {
            toy.unmount()?;
        }
        Ok(())
    }
}

pub(crate) fn recover(options: LogOptions) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        Toy::mount(chip, options, &mut bytes)?;
        Ok(())
    }
}

/// Everything acknowledged is there, and of what was under way all or nothing.
pub(crate) fn check(options: LogOptions, start: &Sim) -> impl Fn(&mut Sim, &Promise) -> Values + use<> {
    let before = contents(&mut start.clone(), options);
    move |chip, promise| {
        let mut bytes = memory(&chip.chip().geometry, &options);
        let mut toy = Toy::mount(chip, options, &mut bytes).unwrap();
        assert!(!toy.log.is_read_only(), "read-only: {:?}", toy.log.stats());
        let found = toy.values().unwrap();
        if !promise.is_open {
            assert_eq!(found, before);
        } else if found != promise.values {
            let mut after = promise.values.clone();
            Promise::apply(&mut after, &promise.pending);
            assert_eq!(found, after, "before: {:?}", promise.values);
        }
        toy.verify().unwrap();
        found
    }
}

fn contents(chip: &mut Sim, options: LogOptions) -> Values {
    let mut bytes = memory(&chip.chip().geometry, &options);
    Toy::mount(chip, options, &mut bytes).unwrap().values().unwrap()
}

pub(crate) fn formatted(chip: Chip, options: LogOptions) -> Sim {
    let mut sim = Sim::new(chip);
    let mut bytes = memory(&chip.geometry, &options);
    drop(Toy::format(&mut sim, options, &mut bytes).unwrap());
    sim
}

/// A chip on which every block was used, so that what follows collects garbage.
pub(crate) fn used(chip: Chip, options: LogOptions, entries: u32) -> Sim {
    let mut sim = formatted(chip, options);
    let mut promise = Promise::default();
    workload(options, 150, entries, true)(&mut sim, &mut promise).unwrap();
    sim
}

const PLAIN: LogOptions = LogOptions::DEFAULT;

#[test]
fn every_cut_of_a_fresh_volume() {
    let chip = formatted(Chip::TINY, PLAIN);
    let check = check(PLAIN, &chip);
    let summary = Driver::new(chip).every(workload(PLAIN, 30, 10, true), check);
    assert!(summary.operations > 40, "{summary:?}");
}

#[test]
fn every_cut_with_garbage_collection() {
    let chip = used(Chip::TINY, PLAIN, 30);
    let check = check(PLAIN, &chip);
    let summary = Driver::new(chip).every(workload(PLAIN, 40, 30, true), check);
    assert!(summary.operations > 100, "{summary:?}");
}

#[test]
fn every_cut_with_garbage_collection_and_paired_pages() {
    let chip = used(Chip::TINY_MLC, PLAIN, 14);
    let check = check(PLAIN, &chip);
    let summary = Driver::new(chip).every(workload(PLAIN, 30, 14, true), check);
    assert!(summary.operations > 60, "{summary:?}");
}

#[test]
fn every_cut_and_going_on_after_it() {
    let chip = used(Chip::TINY, PLAIN, 24);
    let check = check(PLAIN, &chip);
    Driver::new(chip).resume().every(workload(PLAIN, 25, 24, false), check);
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_after_it() {
    let chip = used(Chip::TINY, PLAIN, 24);
    let check = check(PLAIN, &chip);
    Driver::new(chip).limit(40_000).pairs(workload(PLAIN, 12, 24, false), recover(PLAIN), check);
}

/// A tiny chip whose block table does not fit an anchor.
const WIDE: Chip = Chip::TINY.with_blocks(64);
/// Many streams on a tiny chip.
const STREAMS: LogOptions = LogOptions { stream_count: Some(4), ready_max: Some(5), ..PLAIN };

#[test]
fn every_cut_where_the_block_table_has_pages_of_its_own() {
    let chip = used(WIDE, PLAIN, 40);
    let check = check(PLAIN, &chip);
    Driver::new(chip).resume().every(workload(PLAIN, 60, 40, true), check);
}

#[test]
fn every_cut_with_many_streams() {
    let chip = used(Chip::TINY.with_blocks(20), STREAMS, 40);
    let check = check(STREAMS, &chip);
    Driver::new(chip).resume().every(workload(STREAMS, 40, 40, true), check);
}

#[test]
fn every_cut_and_every_cut_of_the_recovery_with_many_streams_and_table_pages() {
    let chip = used(WIDE, STREAMS, 40);
    let check = check(STREAMS, &chip);
    Driver::new(chip).limit(20_000).pairs(workload(STREAMS, 30, 40, false), recover(STREAMS), check);
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
    let cases = [
        (Chip::TINY, PLAIN, 30),
        (Chip::TINY_MLC, PLAIN, 14),
        (WIDE, PLAIN, 40),
        (Chip::TINY.with_blocks(20), STREAMS, 40),
    ];
    for (chip, options, entries) in cases {
        let chip = used(chip, options, entries);
        let check = check(options, &chip);
        let driver = Driver::new(chip).resume().seed(7);
        driver.random(count, workload(options, 30, entries, true), recover(options), check);
    }
}

/// Power that comes back only to go again within a few operations must not use up the chip.
#[test]
fn a_chip_cut_again_and_again_after_few_operations_stays_usable() {
    stays_usable(&[(Chip::TINY, PLAIN, 24), (Chip::TINY_MLC, PLAIN, 12), (WIDE, STREAMS, 40)]);
}

pub(crate) fn stays_usable(cases: &[(Chip, LogOptions, u32)]) {
    for &(chip, options, entries) in cases {
        let start = used(chip, options, entries);
        for seed in 0..40 {
            let mut sim = start.clone();
            let mut promise = Promise::default();
            let check = check(options, &start);
            for cut in 0..60 {
                let after = chance(cut, seed) % (10 + seed * 4);
                sim.cut_somehow_at(sim.operation_count() + u64::from(after));
                let result = workload(options, 20, entries, true)(&mut sim, &mut promise);
                if sim.is_off() {
                    sim.power_on();
                } else {
                    result.unwrap();
                }
                sim.clear_cuts();
                if promise.is_open {
                    check(&mut sim.clone(), &promise);
                }
            }
            workload(options, 60, entries, true)(&mut sim, &mut promise).unwrap();
            check(&mut sim, &promise);
        }
    }
}

#[test]
fn a_chip_whose_format_was_cut_has_the_new_volume_or_none() {
    let format = |chip: &mut Sim, _: &mut ()| -> Run {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        drop(Toy::format(chip, PLAIN, &mut bytes)?);
        Ok(())
    };
    let check = |chip: &mut Sim, _: &()| {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        match Toy::mount(&mut *chip, PLAIN, &mut bytes) {
            Ok(mut toy) => {
                assert_eq!(toy.values().unwrap(), Values::new());
                toy.put(0, 1).unwrap();
                toy.delete(0).unwrap();
                toy.verify().unwrap();
            }
            Err(error) => {
                assert_eq!(error, LogError::NotFormatted);
                drop(Toy::format(&mut *chip, PLAIN, &mut bytes).unwrap());
            }
        }
    };
    Driver::new(Sim::new(Chip::TINY)).every(format, check);
    Driver::new(Sim::new(Chip::TINY_MLC)).every(format, check);
}

#[test]
fn a_chip_whose_second_format_was_cut_is_not_half_of_each() {
    let mut old = formatted(Chip::TINY, PLAIN);
    workload(PLAIN, 50, 12, true)(&mut old, &mut Promise::default()).unwrap();
    let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
    let mut toy = Toy::mount(&mut old, PLAIN, &mut bytes).unwrap();
    let (values, volume) = (toy.values().unwrap(), toy.log.volume());
    drop(toy);
    let format = |chip: &mut Sim, _: &mut ()| -> Run {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        drop(Toy::format(chip, PLAIN, &mut bytes)?);
        Ok(())
    };
    Driver::new(old).every(format, |chip, _| {
        let mut bytes = memory(&chip.chip().geometry, &PLAIN);
        match Toy::mount(chip, PLAIN, &mut bytes) {
            Ok(mut toy) => match toy.log.volume() {
                found if found == volume => assert_eq!(toy.values().unwrap(), values),
                _ => assert_eq!(toy.values().unwrap(), Values::new()),
            },
            Err(error) => assert!(matches!(error, LogError::NotFormatted | LogError::Corrupt { .. }), "{error}"),
        }
    });
}

/// Whether the driver finds a loss with these options, on a volume that was made with those.
pub(crate) fn finds_a_loss(chip: Chip, options: LogOptions, whole: LogOptions) -> bool {
    finds_a_loss_among(chip, options, whole, 24)
}

/// The same with so many entries.
pub(crate) fn finds_a_loss_among(chip: Chip, options: LogOptions, whole: LogOptions, entries: u32) -> bool {
    let run = std::panic::AssertUnwindSafe(|| {
        let chip = used(chip, whole, entries);
        let check = check(options, &chip);
        Driver::new(chip).resume().every(workload(options, 25, entries, false), check);
    });
    let Err(payload) = std::panic::catch_unwind(run) else { return false };
    let message = payload.downcast_ref::<String>().cloned().unwrap_or_default();
    // A volume that can be read only has lost nothing.
    assert!(!message.contains("read-only"), "{message}");
    true
}

#[test]
fn without_quarantine_the_driver_finds_a_loss() {
    assert!(finds_a_loss(Chip::TINY, LogOptions { skip_quarantine: true, ..PLAIN }, PLAIN));
}

#[test]
fn without_proof_of_erasure_the_driver_finds_a_loss() {
    assert!(finds_a_loss(Chip::TINY, LogOptions { skip_erase_proof: true, ..PLAIN }, PLAIN));
}

/// Pages that are only moved may go to every block of the ready list. Where recovery takes them back, none of these blocks is erased.
#[test]
fn blocks_in_which_moves_were_undone_do_not_count_as_erased() {
    let mut bytes = memory(&Chip::TINY.geometry, &PLAIN);
    let mut log = Log::format(Sim::new(Chip::TINY), PLAIN, &mut bytes).unwrap();
    let mut page = vec![7; log.page_size()];
    let mut appended = |log: &mut Log<'_, Sim>, placement| {
        let append = Append { kind: PageKind::Tree, placement, is_commit: true, cause: Cause::Host };
        log.append(&mut page, append)
    };
    let mut promised = PageAddr(0);
    while log.stats().pool_blocks > 3 {
        promised = appended(&mut log, Placement::Stream(0)).unwrap();
        assert_eq!(log.next_work(&mut Budget::steps(4)).unwrap(), None);
    }
    log.checkpoint().unwrap();
    let mut moves = 0;
    while appended(&mut log, Placement::Survivor { from: promised }).is_ok() {
        moves += 1;
    }
    assert!(log.stats().pool_blocks == 0 && moves >= 3 * 8, "{moves}");
    let mut log = Log::mount(log.abandon(), PLAIN, &mut bytes).unwrap();
    assert_eq!((log.is_read_only(), log.committed(), log.stats().pool_blocks), (false, Some(promised), 3));
    assert_eq!(log.verify(&mut |violation| panic!("{violation}")).unwrap(), 0);
}

/// Appends a commit that replaces the one before it.
fn replace_commit(log: &mut Log<'_, Sim>, value: u8) {
    let append = |log: &mut Log<'_, Sim>, placement, value| {
        let append = Append { kind: PageKind::Tree, placement, is_commit: true, cause: Cause::Host };
        let before = log.committed();
        log.append(&mut vec![value; log.page_size()], append).unwrap();
        before.into_iter().for_each(|page| log.supersede(page));
    };
    while !log.reserve(1, Growth::Grows).unwrap() {
        let mut budget = Budget::room(16);
        while let Some(examine) = log.next_work(&mut budget).unwrap() {
            let outcome = match (log.committed() == Some(examine.page), examine.moves) {
                (false, _) => Examined::Dead,
                (true, false) => Examined::Live,
                (true, true) => {
                    let mut page = vec![0; log.page_size()];
                    log.read(examine.page, &mut page).unwrap();
                    append(log, Placement::Survivor { from: examine.page }, page[255]);
                    Examined::Moved
                }
            };
            log.examined(examine, outcome).unwrap();
        }
    }
    append(log, Placement::New, value);
}

/// Formats a chip on which old pages stand, and has the new volume cut and mounted until every block was opened.
fn lives_after_format(sim: Sim, options: LogOptions) {
    let mut bytes = memory(&Chip::TINY.geometry, &options);
    let mut log = Log::format(sim, options, &mut bytes).unwrap();
    for round in 0..60 {
        (0..3).for_each(|_| replace_commit(&mut log, round));
        let sim = log.abandon();
        log = Log::mount(sim, options, &mut bytes).unwrap();
        let mut read = vec![0; log.page_size()];
        log.read(log.committed().unwrap(), &mut read).unwrap();
        assert_eq!(read.last(), Some(&round));
    }
}

/// Blocks are erased when they are opened, so pages of a volume that a cut format left behind stand in those that the next one lists.
#[test]
fn pages_of_a_volume_before_are_not_taken_for_those_of_a_new_one() {
    for volume in [None, Some(1)] {
        let options = LogOptions { volume, ..PLAIN };
        let mut bytes = memory(&Chip::TINY.geometry, &options);
        let mut log = Log::format(Sim::new(Chip::TINY), options, &mut bytes).unwrap();
        (0..1000).for_each(|_| replace_commit(&mut log, 200));
        let mut sim = log.abandon();
        // The anchors are what a format erases first.
        (0..4).for_each(|block| sim.erase(BlockAddr(block), CellMode::Slc).unwrap());
        lives_after_format(sim, options);
    }
}

#[test]
fn pages_with_the_last_of_all_sequences_do_not_outlive_a_format() {
    let mut sim = Sim::new(Chip::TINY);
    let mut page = vec![0; 256];
    for block in 4..16 {
        sim.erase(BlockAddr(block), CellMode::Slc).unwrap();
        let mut positions = [Position::NONE; 2];
        positions[0] = Position::new(0, 0).unwrap();
        PageFields {
            kind: PageKind::Tree,
            sequence: u64::MAX,
            page: block * 8,
            volume: 1,
            committed: None,
            checkpoint: 9,
            stream: 0,
            flags: FLAG_COMMIT,
            positions: &positions,
        }
        .seal(&mut page);
        sim.program(PageAddr(block * 8), 0, &page).unwrap();
    }
    lives_after_format(sim, LogOptions { volume: Some(1), ..PLAIN });
}
