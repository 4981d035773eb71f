//! What operations cost in reads, programs and erases: exactly, and beside the cost model.
//!
//! The model, for a block with `D` nodes of `g` pages and `k` log pages of `s` sectors in `g` pages each: a load is `g` reads for the node
//! and one for each programmed page of the log; `s k` flushes are a program each, and the one that finds the log full is a merge of
//! `g D + g k` reads, `g D` programs and an erase.

use nandu_inpage::{Cells, Edit, GroupSize, InPage, LogPages, LogRead, Options, Policy, Splits};
use nandu_nand::{BlockAddr, Ecc, Geometry, TearScope};
use nandu_sim::{Chip, Counters, Sim};

use crate::rig::{GRR, IPL, PAGES, SECTORS, in_pages, memory, with_two_pages};

/// The paper's chip, small: 4 KiB pages, 32 in a block.
const CHIP: Chip = {
    let chip = Chip::PAPER_GRR.with_blocks(40);
    Chip {
        geometry: Geometry {
            tear: TearScope::Range,
            ecc: Ecc { codeword_size: 512, correctable_bits: 1 },
            ..chip.geometry
        },
        ..chip
    }
};

const PAPER_GRR: Options = Options { buffer_size: 48 * 1024, ..Options::GRR };
const PAPER_IPL: Options = Options { buffer_size: 48 * 1024, ..Options::IPL };

fn key(number: u32) -> [u8; 8] {
    u64::from(number).to_be_bytes()
}

/// An index with records 0 to `count` loaded in order, and whatever that took forgotten.
fn loaded(chip: Chip, options: Options, count: u32, bytes: &mut [u8]) -> InPage<'_, Sim> {
    let mut index = InPage::format(Sim::new(chip), options, bytes).unwrap();
    for number in 0..count {
        index.put(&key(number), &key(number)).unwrap();
    }
    index.sync().unwrap();
    index
}

fn since<T>(index: &mut InPage<'_, Sim>, work: impl FnOnce(&mut InPage<'_, Sim>) -> T) -> Counters {
    let before = *index.nand().counters();
    work(index);
    index.nand().counters().since(&before)
}

/// A flush of one leaf after another, each found in the buffer: only flushes and merges touch the chip.
fn flushes(options: Options, rounds: u32) -> (Counters, u64, u64) {
    // Eight leaves and the root, in one block; all of them fit the buffer.
    let options = Options { group: GroupSize::Fixed(1), buffer_size: 128 * 1024, ..options };
    let chip = CHIP.with_blocks(12);
    let mut bytes = memory(&chip, &options);
    let mut index = loaded(chip, options, 9 * 125, &mut bytes);
    let nodes = u64::from(index.size().nodes);
    // Every block is taken once, which costs an erase more the first time.
    for _ in 0..12 {
        index.put(&key(0), &key(0)).unwrap();
        index.sync().unwrap();
        index.compact().unwrap();
    }
    let mut done = 0;
    let counters = since(&mut index, |index| {
        for round in 0..rounds {
            index.put(&key(round * 131 % 1000), &key(round)).unwrap();
            index.sync().unwrap();
            done += 1;
        }
    });
    assert_eq!(index.size().blocks_used, 1);
    (counters, nodes, done)
}

#[test]
fn flushes_and_merges_cost_what_the_model_says() {
    for (node_pages, log_pages) in [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 4), (4, 2)] {
        let log_pages_max = 16 / node_pages.max(2);
        let options = Options { node_pages, log_pages_max, log_pages: LogPages::Static(log_pages), ..PAPER_GRR };
        let (g, k) = (u64::from(node_pages), u64::from(log_pages));
        let per_cycle = 8 * g * k + 1;
        // The load has used some of the log already, so that a cycle may be begun or not: 40 cycles, give or take one.
        let (counters, nodes, flushes) = flushes(options, 40 * per_cycle as u32);
        let merges = flushes / per_cycle;
        let (programs, reads) = (flushes - merges + merges * g * nodes, merges * g * (nodes + k));
        let within = |found: u64, model: u64| (found as f64 / model as f64 - 1.0).abs() <= 0.05;
        assert!(within(counters.erases, merges), "g={g} k={k}: {} erases, model {merges}", counters.erases);
        assert!(within(counters.programs, programs), "g={g} k={k}: {counters:?}, model {programs} programs");
        assert!(within(counters.reads, reads), "g={g} k={k}: {counters:?}, model {reads} reads");
    }
}

/// In the long run, with updates of any record and hardly any hits: a load takes the node and half of the log pages, and a flush its
/// share of a merge.
#[test]
fn updates_cost_in_the_long_run_what_the_model_says() {
    for (node_pages, log_pages) in [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1), (2, 4)] {
        let options = Options {
            node_pages,
            log_pages: LogPages::Static(log_pages),
            group: GroupSize::Fixed(1),
            policy: Policy::Lru,
            buffer_size: usize::from(node_pages) * 24 * 1024,
            ..PAPER_GRR
        };
        let chip = CHIP.with_blocks(24);
        let mut bytes = memory(&chip, &options);
        let mut index = loaded(chip, options, 30_000, &mut bytes);
        let update = |index: &mut InPage<'_, Sim>, number: u32| {
            let number = (number.wrapping_mul(0x9E37_79B9) >> 8) % 30_000;
            index.put(&key(number), &key(number)).unwrap();
        };
        (0..4000).for_each(|number| update(&mut index, number));
        let before = *index.stats();
        let counters = since(&mut index, |index| (4000..16_000).for_each(|number| update(index, number)));
        let stats = *index.stats();
        let size = index.size();
        // A full block has D nodes; the last one may have fewer.
        let (g, k) = (f64::from(node_pages), f64::from(log_pages));
        let sectors = 8.0 * g * k;
        let nodes = f64::from(size.nodes) / f64::from(size.blocks_used);
        let flushes = (stats.log_programs - before.log_programs + stats.merges - before.merges) as f64;
        let loads = (stats.loads - before.loads) as f64;
        let merges = flushes / (sectors + 1.0);
        // Of a log page that is half programmed only the pages that are: with log pages read whole it would be g (k + 1) / 2.
        let lambda = (g * k + 1.0) / 2.0 * sectors / (sectors + 1.0);
        let reads = loads * (g + lambda) + merges * g * (nodes + k);
        let programs = flushes - merges + merges * g * nodes;
        let times = options.times;
        let time = reads * f64::from(times.read_ns)
            + programs * f64::from(times.program_ns)
            + merges * f64::from(times.erase_ns);
        let within = |found: u64, model: f64| (found as f64 / model - 1.0).abs() <= 0.05;
        let model =
            format!("g={g} k={k}: {reads:.0} reads, {programs:.0} programs, {merges:.0} erases, {:.0} ms", time / 1e6);
        assert!(loads > 9000.0, "{loads} loads of 12,000");
        assert!(within(counters.reads, reads), "{counters:?}, model {model}");
        assert!(within(counters.programs, programs), "{counters:?}, model {model}");
        assert!(within(counters.erases, merges), "{counters:?}, model {model}");
        assert!(within(counters.busy_ns, time), "{counters:?}, model {model}");
    }
}

#[test]
fn a_load_costs_the_pages_of_the_node_and_the_programmed_log_pages() {
    for (node_pages, log_read, expected) in [
        (1, LogRead::Used, 1 + 2),
        (1, LogRead::Smart, 1 + 1),
        (1, LogRead::All, 1 + 4),
        (2, LogRead::Used, 2 + 2),
        (2, LogRead::Smart, 2 + 1),
        (2, LogRead::All, 2 + 8),
    ] {
        let buffer_size = usize::from(node_pages) * PAPER_GRR.buffer_size;
        let options = Options { node_pages, log_read, group: GroupSize::Fixed(1), buffer_size, ..PAPER_GRR };
        // Records of a leaf that was split: half of what a node takes.
        let per_leaf = if node_pages == 1 { 125 } else { 252 };
        let mut bytes = memory(&CHIP, &options);
        let mut index = loaded(CHIP, options, 20 * per_leaf, &mut bytes);
        // Merged, so that the log is empty; then nine sectors: two log pages, the last sector in the second.
        let merges = index.stats().merges;
        let mut round = 0;
        while index.stats().merges == merges {
            index.put(&key(round % 100), &key(round)).unwrap();
            index.sync().unwrap();
            round += 1;
        }
        for (place, _) in (0..8).enumerate() {
            index.put(&key(place as u32 * per_leaf), &key(7)).unwrap();
            index.sync().unwrap();
        }
        index.put(&key(0), &key(8)).unwrap();
        index.sync().unwrap();
        // Out of the buffer, by way of all other leaves but those two.
        for leaf in 9..20 {
            index.get(&key(leaf * per_leaf + 60)).unwrap();
        }
        let counters = since(&mut index, |index| {
            assert_eq!(index.get(&key(5 * per_leaf)).unwrap(), Some(&key(7)[..]));
        });
        assert_eq!(counters.reads, expected, "g={node_pages}, {log_read:?}");
        assert_eq!((counters.programs, counters.erases), (0, 0));
    }
}

#[test]
fn ipl_and_grr_are_one_engine() {
    // Every difference but the name taken away: the same operations of the chip, one by one.
    let grr = Options {
        kind: PAPER_IPL.kind,
        log_pages: LogPages::Static(1),
        group: GroupSize::Fixed(1),
        policy: Policy::Lru,
        splits: Splits::EagerThree,
        ..PAPER_GRR
    };
    let run = |options: Options| {
        let mut bytes = memory(&CHIP, &options);
        let mut index = loaded(CHIP, options, 4000, &mut bytes);
        for number in 0..3000_u32 {
            let number = number.wrapping_mul(0x9E37_79B9) % 6000;
            index.put(&key(number), &key(number)).unwrap();
        }
        index.sync().unwrap();
        (*index.nand().counters(), index.nand().state_hash())
    };
    assert_eq!(run(grr), run(PAPER_IPL));
}

#[test]
fn ascending_keys_program_each_leaf_once() {
    for options in [PAPER_GRR, PAPER_IPL] {
        let mut bytes = memory(&CHIP, &options);
        let mut index = loaded(CHIP, options, 500, &mut bytes);
        let (nodes, programs) = (u64::from(index.size().nodes), index.stats().node_programs);
        for number in 500..12_500 {
            index.put(&key(number), &key(number)).unwrap();
        }
        index.sync().unwrap();
        let nodes = u64::from(index.size().nodes) - nodes;
        let programs = index.stats().node_programs - programs;
        assert!((95..=97).contains(&nodes) && programs <= nodes + 2, "{programs} programs for {nodes} nodes");
    }
}

/// The work whose costs are listed below: loading, changes, reads.
fn costs(name: &str, chip: Chip, options: Options, is_blind: bool) -> String {
    let mut bytes = memory(&chip, &options);
    let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
    let key = |number: u32| number.to_be_bytes();
    let load = since(&mut index, |index| {
        for number in 0..600 {
            index.put(&key(number * 7), &key(number)).unwrap();
        }
        index.sync().unwrap();
    });
    let change = since(&mut index, |index| {
        for number in 0..600_u32 {
            let number = number.wrapping_mul(0x9E37_79B9) >> 8;
            if is_blind {
                index.put_blind(&key(number % 600 * 7), &key(number)).unwrap();
            } else {
                index.put(&key(number % 600 * 7), &key(number)).unwrap();
            }
        }
        index.sync().unwrap();
    });
    let read = since(&mut index, |index| {
        for number in 0..600_u32 {
            index.get(&key(number.wrapping_mul(0x9E37_79B9) % 600 * 7)).unwrap();
        }
    });
    let line = |kind, counters: Counters| {
        format!("{name} {kind}: {} reads {} programs {} erases\n", counters.reads, counters.programs, counters.erases)
    };
    line("load", load) + &line("change", change) + &line("read", read)
}

#[test]
fn the_flash_costs_of_each_configuration_are_known() {
    let cells = Cells::Fixed { key: 4, value: 4 };
    let size = |options| Options { cells, buffer_size: 2560, ..options };
    let (sectors, pages) = (SECTORS.with_blocks(100), PAGES.with_blocks(100));
    let product =
        Options { log_pages: LogPages::Adaptive(2), log_read: LogRead::Smart, group: GroupSize::Dynamic(4), ..GRR };
    let mut found = String::new();
    for (name, chip, options) in [
        ("ipl", sectors, IPL),
        ("ipl-pages", pages, in_pages(IPL)),
        ("grr", sectors, GRR),
        ("grr-pages", pages, in_pages(GRR)),
        ("ipl-two", sectors, with_two_pages(IPL)),
        ("grr-two", sectors, with_two_pages(GRR)),
        ("grr-two-pages", pages, in_pages(with_two_pages(GRR))),
    ] {
        for (buffer, policy) in
            [("lru", Policy::Lru), ("clean-first", Policy::CleanFirst), ("semi-clean", Policy::SemiClean)]
        {
            found += &costs(&format!("{name} {buffer}"), chip, size(Options { policy, ..options }), false);
        }
    }
    found += &costs("grr-blind", sectors, size(GRR), true);
    found += &costs("product", sectors, size(product), true);
    found += &costs("product-pages", pages, size(in_pages(product)), true);
    insta::assert_snapshot!(found);
}

/// 320 changes, each alone or eight in a batch, with a sync behind every so many changes.
fn synced_costs(name: &str, chip: Chip, options: Options, batch: usize, sync_every: usize) -> String {
    let mut bytes = memory(&chip, &options);
    let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
    for number in 0..600_u32 {
        index.put(&(number * 7).to_be_bytes(), &number.to_be_bytes()).unwrap();
    }
    index.sync().unwrap();
    let mut numbers: Vec<[u8; 4]> =
        (0..320_u32).map(|number| ((number.wrapping_mul(0x9E37_79B9) >> 8) % 600 * 7).to_be_bytes()).collect();
    numbers.chunks_mut(batch).for_each(<[_]>::sort_unstable);
    let journal = index.stats().journal_programs;
    let counters = since(&mut index, |index| {
        for (place, keys) in numbers.chunks(batch).enumerate() {
            let mut edits: Vec<Edit<'_>> = keys.iter().map(|key| Edit { key, value: Some(&key[..]) }).collect();
            edits.dedup_by_key(|edit| edit.key);
            index.batch(&edits).unwrap();
            if ((place + 1) * batch).is_multiple_of(sync_every) {
                index.sync().unwrap();
            }
        }
    });
    let journal = index.stats().journal_programs - journal;
    let (reads, programs, erases) = (counters.reads, counters.programs, counters.erases);
    format!(
        "{name} batch {batch} sync {sync_every}: {reads} reads {programs} programs ({journal} journal) {erases} erases\n"
    )
}

#[test]
fn the_flash_costs_of_syncs_with_and_without_a_journal_are_known() {
    let mut found = String::new();
    let (sectors, pages) = (SECTORS.with_blocks(100), PAGES.with_blocks(100));
    for (name, chip, options) in [
        ("ipl", sectors, IPL),
        ("ipl-pages", pages, in_pages(IPL)),
        ("grr", sectors, GRR),
        ("grr-pages", pages, in_pages(GRR)),
    ] {
        let options = Options { buffer_size: 8192, ..options };
        let journal = Options { journal_blocks: 4, ..options };
        for sync_every in [1, 8] {
            found += &synced_costs(name, chip, options, 1, sync_every);
            found += &synced_costs(&format!("{name}-journal"), chip, journal, 1, sync_every);
        }
        found += &synced_costs(&format!("{name}-journal"), chip, journal, 8, 8);
    }
    insta::assert_snapshot!(found);
}

/// Changes of many leaves at once, in few blocks: a merge that takes them along saves their programs.
#[test]
fn merges_that_take_changes_along_save_programs() {
    let run = |absorb| {
        let options = Options { absorb, buffer_size: 8192, ..GRR };
        let chip = SECTORS.with_blocks(60);
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
        for round in 0..40_u32 {
            for number in 0..150_u32 {
                index.put(&(number * 7).to_be_bytes(), &round.to_be_bytes()).unwrap();
            }
            index.sync().unwrap();
        }
        (index.nand().counters().programs, index.stats().absorbed)
    };
    let (without, with) = (run(false), run(true));
    assert!(without.1 == 0 && with.1 > 100, "{with:?}");
    assert!(with.0 * 10 < without.0 * 9, "{with:?} against {without:?}");
}

/// As if every log page of a group took memory, which is off but to imitate the paper's hit ratios.
#[test]
fn a_reserve_for_log_pages_leaves_the_buffer_fewer_nodes() {
    let hits = |log_reserve, log_pages| {
        let options = Options {
            log_reserve,
            log_pages: LogPages::Static(log_pages),
            log_read: LogRead::Smart,
            buffer_size: 160 * 1024,
            ..PAPER_GRR
        };
        let mut bytes = memory(&CHIP, &options);
        let mut index = loaded(CHIP, options, 60 * 125, &mut bytes);
        let before = *index.stats();
        for number in 0..2000_u32 {
            index.get(&key(number.wrapping_mul(0x9E37_79B9) % 7500)).unwrap();
        }
        index.stats().leaf_hits - before.leaf_hits
    };
    // 32 log pages and 8 of them, each a whole node or half of one: 32, 8, 16 and 4 of 40 nodes.
    let found = [(0, 4), (50, 1), (100, 1), (50, 4), (100, 4)].map(|(reserve, log_pages)| hits(reserve, log_pages));
    assert!(found.is_sorted_by(|more, fewer| more > fewer), "{found:?}");
}

/// Most keys never change, and a few always do: without levelling the blocks of the former are never erased.
#[test]
fn blocks_that_nobody_writes_to_wear_as_well_where_that_is_wanted() {
    let run = |levelling_gap| {
        let options = Options { levelling_gap, ..GRR };
        let chip = SECTORS.with_blocks(40);
        let mut bytes = memory(&chip, &options);
        let mut index = InPage::format(Sim::new(chip), options, &mut bytes).unwrap();
        for number in 0..1800_u32 {
            index.put(&number.to_be_bytes(), &number.to_be_bytes()).unwrap();
        }
        for round in 0..6000_u32 {
            index.put(&(round % 40).to_be_bytes(), &round.to_be_bytes()).unwrap();
            index.sync().unwrap();
        }
        let erases: Vec<u32> =
            (3..40).map(|block| index.nand().block_state(BlockAddr(block)).counters.erases).collect();
        index.verify(&mut |violation| panic!("{violation}")).unwrap();
        (erases.iter().max().unwrap() - erases.iter().min().unwrap(), index.stats().levellings, index.stats().merges)
    };
    let (without, with) = (run(None), run(Some(10)));
    assert!(without.0 > 40 && without.1 == 0, "{without:?}");
    assert!(with.0 <= 14 && with.1 > 0, "{with:?} without {without:?}");
    // A block is moved once for each ten erases that it makes up for.
    assert!(with.1 * 8 < with.2, "{with:?}");
}
