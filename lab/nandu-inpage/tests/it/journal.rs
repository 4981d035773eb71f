//! The write-ahead ring: batches, and that a cut leaves what the index held after one of the calls.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use nandu_index::suite::{Cuttable, KeyKind, Space, conformance, prefixes};
use nandu_inpage::{Broken, Cells, Direction, Durability, Edit, Error, GroupSize, InPage, LogPages, LogRead, Options};
use nandu_nand::{BlockAddr, Nand, PageAddr};
use nandu_sim::power_cut::{Driver, Run};
use nandu_sim::{Chip, Fault, Sim, SimError, Trigger};

use crate::rig::{GRR, Held, IPL, PAGES, SECTORS, in_pages, memory};

const fn with_journal(options: Options) -> Options {
    Options { journal_blocks: 2, ..options }
}

/// Both schemes in both layouts.
const KINDS: [(Chip, Options); 4] = [
    (SECTORS, with_journal(IPL)),
    (PAGES, with_journal(in_pages(IPL))),
    (SECTORS, with_journal(GRR)),
    (PAGES, with_journal(in_pages(GRR))),
];

const SPACE: Space =
    Space { keys: KeyKind::Fixed(4), key_count: 500, value_size_min: 4, value_size_max: 4, operations_max: 120 };

#[test]
fn ipl_and_grr_with_a_journal_conform_batches_included() {
    for (chip, options) in KINDS {
        conformance(SPACE, 40, || Held::new(chip.with_blocks(100), options));
    }
}

#[test]
fn byte_strings_with_a_journal_conform() {
    let space =
        Space { keys: KeyKind::Bytes(10), key_count: 300, value_size_min: 0, value_size_max: 16, operations_max: 120 };
    for (chip, options) in KINDS {
        let options = Options { cells: Cells::Bytes, journal_blocks: 3, ..options };
        conformance(space, 25, || Held::new(chip.with_blocks(200), options));
    }
}

impl Cuttable for Held {
    fn cut(&mut self) {
        self.reopen_with(|index| index.abandon());
    }
}

#[test]
fn a_cut_between_calls_leaves_the_history_up_to_one_of_them() {
    for (chip, options) in KINDS {
        prefixes(SPACE, 40, || Held::new(chip.with_blocks(100), options));
    }
    let small = Options { journal_blocks: 1, log_read: LogRead::Smart, log_pages: LogPages::Adaptive(1), ..GRR };
    prefixes(SPACE, 40, || Held::new(SECTORS.with_blocks(100), small));
}

type Values = BTreeMap<u32, u32>;

/// What was asked for.
#[derive(Clone, Default)]
struct History {
    is_open: bool,
    /// What the index held at the last sync, and after each call since.
    states: Vec<Values>,
    /// Calls done, over all runs.
    count: u32,
}

impl History {
    /// Notes what the call that comes now makes of the index.
    fn ask(&mut self, change: impl FnOnce(&mut Values)) {
        let mut state = self.states.last().cloned().unwrap_or_default();
        change(&mut state);
        self.states.push(state);
    }

    fn sync(&mut self) {
        self.states.drain(..self.states.len() - 1);
    }
}

fn chance(count: u32, salt: u32) -> u32 {
    let mut x = count.wrapping_mul(0x9e37_79b9) ^ salt.wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39) ^ x >> 15
}

fn contents<N: Nand>(index: &mut InPage<'_, N>) -> Result<Values, Error<N::Error>> {
    let mut values = Values::new();
    index.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, &mut |entry| {
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        values.insert(number(entry.key), number(entry.value));
        ControlFlow::Continue(())
    })?;
    Ok(values)
}

#[derive(Clone, Copy)]
struct Load {
    operations: u32,
    keys: u32,
    sync_every: u32,
    /// Most changes of a batch.
    batch_max: u32,
    ends_clean: bool,
}

const LOAD: Load = Load { operations: 24, keys: 70, sync_every: 6, batch_max: 30, ends_clean: true };

/// A batch of one to so many changes, deletes among them.
fn edits(count: u32, load: Load) -> BTreeMap<u32, Option<u32>> {
    let size = 1 + chance(count, 5) % load.batch_max;
    let edit = |place| {
        let draw = chance(count, 100 + place);
        (draw % load.keys, (!(draw >> 8).is_multiple_of(3)).then_some(count))
    };
    (0..size).map(edit).collect()
}

/// Makes of some values what a batch does.
fn apply(values: &mut Values, edits: &BTreeMap<u32, Option<u32>>) {
    for (key, value) in edits {
        match value {
            Some(value) => values.insert(*key, *value),
            None => values.remove(key),
        };
    }
}

fn batch<N: Nand>(index: &mut InPage<'_, N>, edits: &BTreeMap<u32, Option<u32>>) -> Result<(), Error<N::Error>> {
    let bytes: Vec<([u8; 4], Option<[u8; 4]>)> =
        edits.iter().map(|(key, value)| (key.to_be_bytes(), value.map(u32::to_be_bytes))).collect();
    let edits: Vec<Edit<'_>> =
        bytes.iter().map(|(key, value)| Edit { key, value: value.as_ref().map(|value| &value[..]) }).collect();
    index.batch(&edits)
}

fn workload(options: Options, load: Load) -> impl Fn(&mut Sim, &mut History) -> Run {
    move |chip, history| {
        let mut bytes = memory(chip.chip(), &options);
        let mut index = InPage::open(&mut *chip, options, &mut bytes)?;
        history.states = vec![contents(&mut index)?];
        history.is_open = true;
        for _ in 0..load.operations {
            let count = history.count;
            history.count += 1;
            let key = chance(count, 1) % load.keys;
            match chance(count, 3) % 8 {
                0 | 1 => {
                    let edits = edits(count, load);
                    history.ask(|state| apply(state, &edits));
                    batch(&mut index, &edits)?;
                }
                2 => {
                    history.ask(|state| {
                        state.remove(&key);
                    });
                    index.delete(&key.to_be_bytes())?;
                }
                _ => {
                    history.ask(|state| {
                        state.insert(key, count);
                    });
                    index.put(&key.to_be_bytes(), &count.to_be_bytes())?;
                }
            }
            if options.durability == Durability::Immediate {
                history.sync();
            } else if chance(count, 4).is_multiple_of(load.sync_every) {
                index.sync()?;
                history.sync();
            }
        }
        if load.ends_clean {
            index.unmount()?;
            history.sync();
        }
        Ok(())
    }
}

fn recover(options: Options) -> impl Fn(&mut Sim) -> Run {
    move |chip| {
        let mut bytes = memory(chip.chip(), &options);
        InPage::open(chip, options, &mut bytes)?;
        Ok(())
    }
}

/// The index holds what it held at the last sync, or after one of the calls since; and it is sound, and goes on working.
fn check(options: Options, start: &Sim) -> impl Fn(&mut Sim, &History) -> Values + use<> {
    let mut bytes = memory(start.chip(), &options);
    let before = contents(&mut InPage::open(start.clone(), options, &mut bytes).unwrap()).unwrap();
    move |chip, history| {
        let mut bytes = memory(chip.chip(), &options);
        let mut index = InPage::open(&mut *chip, options, &mut bytes).unwrap();
        let found = contents(&mut index).unwrap();
        let states = if history.is_open { &history.states[..] } else { std::slice::from_ref(&before) };
        assert!(states.contains(&found), "found {found:?}, which is none of {states:?}");
        index.verify(&mut |violation| panic!("{violation}")).unwrap();
        let mut index = InPage::open(chip.clone(), options, &mut bytes).unwrap();
        let edits: BTreeMap<u32, Option<u32>> = (0..30).map(|key| (key, Some(1))).collect();
        batch(&mut index, &edits).unwrap();
        index.sync().unwrap();
        index.verify(&mut |violation| panic!("{violation}")).unwrap();
        found
    }
}

fn formatted(chip: Chip, options: Options) -> Sim {
    let mut bytes = memory(&chip, &options);
    InPage::format(Sim::new(chip), options, &mut bytes).unwrap().unmount().unwrap()
}

fn used(chip: Chip, options: Options, load: Load) -> Sim {
    let mut sim = formatted(chip, options);
    let mut history = History { count: 5000, ..History::default() };
    workload(options, Load { operations: 80, ends_clean: true, ..load })(&mut sim, &mut history).unwrap();
    sim
}

#[test]
fn every_cut_leaves_the_history_up_to_one_of_the_calls() {
    for (chip, options) in KINDS {
        let sim = used(chip.with_blocks(20), options, LOAD);
        let check = check(options, &sim);
        let summary = Driver::new(sim).every(workload(options, LOAD), check);
        assert!(summary.operations > 60, "{summary:?}");
    }
}

#[test]
fn every_cut_of_a_ring_of_one_block_and_going_on_after_it() {
    for (chip, options) in [(SECTORS, GRR), (PAGES, in_pages(GRR))] {
        let options = Options { journal_blocks: 1, ..options };
        let load = Load { sync_every: 2, operations: 20, batch_max: 50, ends_clean: false, ..LOAD };
        let sim = used(chip.with_blocks(20), options, load);
        let check = check(options, &sim);
        Driver::new(sim).resume().every(workload(options, load), check);
    }
}

#[test]
fn every_cut_where_each_change_is_durable_at_once() {
    for (chip, options) in [(SECTORS, with_journal(IPL)), (PAGES, with_journal(in_pages(GRR)))] {
        let options = Options { durability: Durability::Immediate, ..options };
        let sim = used(chip.with_blocks(20), options, LOAD);
        let check = check(options, &sim);
        Driver::new(sim).every(workload(options, LOAD), check);
    }
}

#[test]
fn every_cut_and_every_cut_of_the_replay_after_it() {
    for (chip, options) in [(SECTORS, with_journal(GRR)), (PAGES, with_journal(in_pages(GRR)))] {
        let load = Load { operations: 10, ends_clean: false, ..LOAD };
        let sim = used(chip.with_blocks(20), options, load);
        let check = check(options, &sim);
        let summary = Driver::new(sim).limit(8_000).pairs(workload(options, load), recover(options), check);
        assert!(summary.cases > 1_000, "{summary:?}");
    }
}

/// `NANDU_CHAINS` sets how many chains are tried of each kind.
#[test]
fn chains_of_cuts_with_a_journal() {
    let count = std::env::var("NANDU_CHAINS").ok().and_then(|count| count.parse().ok()).unwrap_or(250);
    let product = Options { log_pages: LogPages::Adaptive(2), log_read: LogRead::Smart, journal_blocks: 1, ..GRR };
    let bytes = Options { cells: Cells::Bytes, group: GroupSize::Fixed(1), ..with_journal(in_pages(GRR)) };
    let more = [(SECTORS, product), (PAGES, in_pages(product)), (PAGES, bytes)];
    for (chip, options) in KINDS.into_iter().chain(more) {
        let load = Load { ends_clean: false, ..LOAD };
        let sim = used(chip.with_blocks(26), options, load);
        let check = check(options, &sim);
        Driver::new(sim).resume().seed(11).random(count, workload(options, load), recover(options), check);
    }
}

/// Whether the driver finds a loss, and only with cuts.
fn finds_a_loss(chip: Chip, options: Options, load: Load) -> bool {
    let sim = used(chip.with_blocks(20), Options { broken: Broken::NONE, ..options }, load);
    let check = check(options, &sim);
    let mut uncut = sim.clone();
    let mut history = History::default();
    workload(options, load)(&mut uncut, &mut history).unwrap();
    check(&mut uncut, &history);
    let run = std::panic::AssertUnwindSafe(|| {
        Driver::new(sim.clone()).every(workload(options, load), &check);
        Driver::new(sim).limit(20_000).pairs(workload(options, load), recover(options), check);
    });
    std::panic::catch_unwind(run).is_err()
}

#[test]
fn a_node_programmed_before_its_journal_page_is_found() {
    let broken = Broken { node_before_journal: true, ..Broken::NONE };
    assert!(finds_a_loss(SECTORS, Options { broken, ..with_journal(GRR) }, LOAD));
}

#[test]
fn a_ring_erased_before_flash_says_so_is_found() {
    let broken = Broken { release_undeclared: true, ..Broken::NONE };
    let load = Load { operations: 60, sync_every: 2, batch_max: 4, ..LOAD };
    assert!(finds_a_loss(SECTORS, Options { broken, ..with_journal(GRR) }, load));
}

#[test]
fn a_torn_page_made_again_without_a_copy_is_found() {
    let broken = Broken { replay_uncopied: true, ..Broken::NONE };
    let load = Load { operations: 12, ..LOAD };
    assert!(finds_a_loss(PAGES, Options { broken, ..with_journal(in_pages(GRR)) }, load));
}

/// Batches and single changes, held against what they should leave.
fn work(index: &mut InPage<'_, Sim>, count: u32, model: &mut Values) -> Result<(), Error<SimError>> {
    for number in 0..count {
        if number % 3 == 0 {
            let edits = edits(number, LOAD);
            batch(index, &edits)?;
            apply(model, &edits);
        } else {
            let key = chance(number, 9) % 70;
            index.put(&key.to_be_bytes(), &number.to_be_bytes())?;
            model.insert(key, number);
        }
        if number % 4 == 3 {
            index.sync()?;
        }
    }
    index.sync()
}

/// Runs the work with a fault at each operation that it fits, and cuts the power behind the last sync.
fn survives(fault: Fault, nth_max: u64) {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(26);
        for nth in 0..nth_max {
            let mut bytes = memory(&chip, &options);
            let mut sim = formatted(chip, options);
            sim.inject(fault, Trigger::Nth(nth));
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            let mut model = Values::new();
            work(&mut index, 40, &mut model).unwrap();
            assert_eq!(contents(&mut index).unwrap(), model);
            let sim = index.abandon();
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            assert_eq!(contents(&mut index).unwrap(), model, "fault {nth}");
            index.verify(&mut |violation| panic!("{violation}")).unwrap();
        }
    }
}

#[test]
fn a_program_that_fails_anywhere_with_a_journal_costs_its_block_and_nothing_else() {
    survives(Fault::ProgramFails, 120);
}

#[test]
fn an_erase_that_fails_anywhere_with_a_journal_costs_its_block_and_nothing_else() {
    survives(Fault::EraseFails, 60);
}

#[test]
fn a_fault_in_the_replay_costs_its_block_and_nothing_else() {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(26);
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::open(formatted(chip, options), options, &mut bytes).unwrap();
        let mut model = Values::new();
        work(&mut index, 40, &mut model).unwrap();
        let start = index.abandon();
        for fault in [Fault::ProgramFails, Fault::EraseFails] {
            for nth in 0..40 {
                let mut sim = start.clone();
                sim.inject(fault, Trigger::Nth(nth));
                let mut index = InPage::open(sim, options, &mut bytes).unwrap();
                assert_eq!(contents(&mut index).unwrap(), model);
                let sim = index.unmount().unwrap();
                let mut index = InPage::open(sim, options, &mut bytes).unwrap();
                assert_eq!(contents(&mut index).unwrap(), model);
            }
        }
    }
}

/// A page of the ring that is gone is said to be; but for the newest, which cannot be told from one that a cut tore.
#[test]
fn what_cannot_be_read_of_the_ring_is_an_error_and_never_other_data() {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(26);
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::open(formatted(chip, options), options, &mut bytes).unwrap();
        let mut states = vec![Values::new()];
        for number in 0..30 {
            let edits = edits(number, LOAD);
            batch(&mut index, &edits).unwrap();
            index.sync().unwrap();
            let mut state = states.last().cloned().unwrap();
            apply(&mut state, &edits);
            states.push(state);
        }
        let start = index.abandon();
        let (mut refused, mut opened) = (0, 0);
        for page in (0..chip.geometry.page_count()).map(PageAddr) {
            let content = start.peek(page);
            if content[4..6] != *b"GR" || content[7] != 4 {
                continue;
            }
            let mut sim = start.clone();
            sim.inject(Fault::Uncorrectable, Trigger::Page(page));
            match InPage::open(sim, options, &mut bytes) {
                Ok(mut index) => {
                    let found = contents(&mut index).unwrap();
                    assert!(states[states.len() - 2..].contains(&found), "page {page}");
                    opened += 1;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 0 && opened > 0, "{refused} {opened}");
    }
}

#[test]
fn a_batch_that_is_refused_changes_nothing() {
    let (chip, options) = KINDS[2];
    let mut index = Held::new(chip.with_blocks(60), options);
    let index = index.get_mut();
    index.put(&[0; 4], &[7; 4]).unwrap();
    let edit = |key: &'static [u8], value| Edit { key, value };
    let refusal = |index: &mut InPage<'static, Sim>, edits: &[Edit<'_>]| index.batch(edits).unwrap_err();
    let disordered = [edit(&[0, 0, 0, 1], Some(&[1; 4][..])), edit(&[0; 4], None)];
    assert_eq!(refusal(index, &disordered), Error::NotAscending(1));
    let twice = [edit(&[0; 4], None), edit(&[0; 4], None)];
    assert_eq!(refusal(index, &twice), Error::NotAscending(1));
    let long = [edit(&[0; 4], None), edit(&[0, 0, 0, 1], Some(&[1; 5][..]))];
    assert_eq!(refusal(index, &long), Error::ValueSize(5));
    let ascending = |count| (0..count).map(|key| (key, Some(1))).collect::<BTreeMap<u32, Option<u32>>>();
    assert_eq!(batch(index, &ascending(400)), Err(Error::BatchTooLarge));
    assert_eq!(contents(index).unwrap(), Values::from([(0, 0x0707_0707)]));
    // And as many as the ring takes are one batch.
    batch(index, &ascending(300)).unwrap();
    assert_eq!(index.count_records().unwrap(), 300);
    let mut without = Held::new(chip, GRR);
    assert_eq!(refusal(without.get_mut(), &[edit(&[1; 4], None), edit(&[2; 4], None)]), Error::BatchTooLarge);
}

/// Full, cut, opened: as often as one likes. The ring keeps its blocks, so a delete always finds room in it.
#[test]
fn a_full_chip_with_a_journal_can_be_opened_after_a_cut_and_takes_deletes() {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(22);
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::open(formatted(chip, options), options, &mut bytes).unwrap();
        let mut model = Values::new();
        loop {
            let key = model.len() as u32;
            match index.put(&key.to_be_bytes(), &key.to_be_bytes()) {
                Ok(_) => model.insert(key, key),
                Err(error) => {
                    assert_eq!(error, Error::Full);
                    break;
                }
            };
        }
        assert!(model.len() > 300, "{}", model.len());
        index.sync().unwrap();
        let mut sim = index.abandon();
        for _ in 0..4 {
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            assert_eq!(contents(&mut index).unwrap(), model);
            sim = index.abandon();
        }
        let mut index = InPage::open(sim, options, &mut bytes).unwrap();
        let edits: BTreeMap<u32, Option<u32>> = model.keys().take(40).map(|key| (*key, None)).collect();
        batch(&mut index, &edits).unwrap();
        for key in model.keys().skip(40) {
            assert!(index.delete(&key.to_be_bytes()).unwrap());
        }
        index.sync().unwrap();
        let sim = index.abandon();
        assert_eq!(contents(&mut InPage::open(sim, options, &mut bytes).unwrap()).unwrap(), Values::new());
    }
}

/// The ring is not part of the format: a volume may be opened with one and without, in any order.
#[test]
fn a_volume_is_opened_with_a_journal_and_without_one_in_turn() {
    for (chip, options) in KINDS {
        let chip = chip.with_blocks(26);
        let mut bytes = memory(&chip, &options);
        let mut sim = formatted(chip, Options { journal_blocks: 0, ..options });
        let mut model = Values::new();
        for round in 0..12_u32 {
            let options = Options { journal_blocks: [2, 0, 1, 0][round as usize % 4], ..options };
            let mut index = InPage::open(sim, options, &mut bytes).unwrap();
            assert_eq!(contents(&mut index).unwrap(), model, "round {round}");
            for number in 0..25 {
                let key = chance(number + round * 100, 1) % 70;
                index.put(&key.to_be_bytes(), &round.to_be_bytes()).unwrap();
                model.insert(key, round);
            }
            index.sync().unwrap();
            sim = if round % 3 == 0 { index.unmount().unwrap() } else { index.abandon() };
        }
    }
}

#[test]
fn factory_bad_blocks_are_left_alone_by_the_ring() {
    for (chip, options) in KINDS {
        for bad in 0..10 {
            let mut sim = Sim::new(chip.with_blocks(26));
            sim.mark_factory_bad(BlockAddr(bad));
            let mut bytes = memory(sim.chip(), &options);
            let mut index = InPage::format(sim, options, &mut bytes).unwrap();
            let mut model = Values::new();
            work(&mut index, 40, &mut model).unwrap();
            let sim = index.abandon();
            assert_eq!(contents(&mut InPage::open(sim, options, &mut bytes).unwrap()).unwrap(), model);
        }
    }
}
