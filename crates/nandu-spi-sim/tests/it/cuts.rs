//! Power cuts of a store and of a file system through the driver and the wire, on four parts of different makers.
//!
//! The power goes at the operations of the array, as in the tests without the wire; the driver finds registers and cache as after power-up.

use std::error::Error;

use nandu::Store;
use nandu_fs::{Format, Fs, LogOptions, Options, Time};
use nandu_nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};
use nandu_sim::Sim;
use nandu_sim::power_cut::{Driver, Run, Summary};
use nandu_spi::{HalWire, Part, SpiNand};
use nandu_spi_sim::{Delay, SpiSim, chip};
use nandu_suite::cuts::{Access, check_over, fixed_over, recover_over, workload_over};
use nandu_suite::{Op, Opened, ROOT, System};

use crate::small::part;
use crate::store;

/// Cuts of each of the eight tests, at least: 9,600 in all.
const CUTS_MIN: u64 = 1_200;

/// Chains of cuts of each test; a chain has two and a half on average.
const CHAINS: u64 = 520;

/// A row with blocks so few and small that the collector works all the time.
pub(crate) fn row(name: &str, block_count: u32) -> &'static Part {
    Box::leak(Box::new(Part { pages_per_block: 8, ..part(name, block_count) }))
}

/// The driver, as on a board with a QSPI controller.
#[derive(Clone, Copy)]
pub(crate) struct Lanes(pub(crate) &'static Part);

impl Access for Lanes {
    type Chip<'c> = SpiNand<SpiSim<&'c mut Sim>>;

    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<Self::Chip<'c>, Box<dyn Error>> {
        Ok(SpiNand::open_as(SpiSim::new(self.0, chip), self.0)?)
    }
}

/// The driver over the traits of embedded-hal, as on a board with plain SPI.
#[derive(Clone, Copy)]
struct Hal(&'static Part);

impl Access for Hal {
    type Chip<'c> = SpiNand<HalWire<SpiSim<&'c mut Sim>, Delay>>;

    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<Self::Chip<'c>, Box<dyn Error>> {
        let spi = SpiSim::new(self.0, chip);
        let delay = spi.delay();
        Ok(SpiNand::open_as(HalWire::new(spi, delay), self.0)?)
    }
}

/// Chains of cuts on a part; blocks bad from the factory are among the first.
fn store_chains<A: Access>(access: A, part: &Part, seed: u64, chains: u64) -> Summary {
    let mut sim = Sim::with_seed(chip(part), seed);
    sim.mark_factory_bad(BlockAddr(3));
    let mut memory = store::memory(&sim.chip().geometry);
    let formatted = Store::format(access.reach(&mut sim).unwrap(), store::OPTIONS, &mut memory).unwrap();
    formatted.unmount().unwrap();
    let workload = store::workload(access.clone(), 60);
    let sim = lived_in(sim, &workload);
    Driver::new(sim).seed(seed).resume().random(chains, workload, store::recover(access.clone()), store::check(access))
}

pub(crate) mod files {
    use super::*;

    const FORMAT: Format = Format {
        hash_key: [7; 16],
        root_mode: ROOT.mode,
        uid: ROOT.uid,
        gid: ROOT.gid,
        now: Time::from_seconds(ROOT.seconds),
    };

    /// The file system, with tags on parts that have room for them.
    #[derive(Clone, Copy)]
    pub(crate) struct Files {
        tags: bool,
        page_size: u32,
    }

    impl Files {
        pub(crate) fn new(part: &Part) -> Files {
            Files { tags: part.tag_size() >= 16, page_size: part.page_size }
        }

        fn options(self) -> Options {
            let log = LogOptions { has_tags: self.tags, ..LogOptions::DEFAULT };
            let page_size = self.page_size as usize;
            Options { log, cache_size: page_size, pending_size: page_size + 2048, open_max: 4, ..Options::DEFAULT }
        }
    }

    impl System for Files {
        type Mounted<'m, N: Nand + 'm> = Fs<'m, N>;

        fn memory_size(&self, geometry: &Geometry) -> usize {
            Fs::<Sim>::memory_required(geometry, &self.options())
        }

        fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
            Fs::format(chip, self.options(), FORMAT, memory)
        }

        fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
            Fs::mount(chip, self.options(), memory)
        }
    }

    /// Chains of cuts on a part, among random operations.
    pub(super) fn chains<A: Access>(access: A, part: &Part, seed: u64) -> Summary {
        let mut sim = Sim::with_seed(chip(part), seed);
        sim.mark_factory_bad(BlockAddr(4));
        let system = Files::new(part);
        let sim = formatted(access.clone(), system, sim);
        let workload = workload_over(access.clone(), system, 30, None);
        let sim = lived_in(sim, &workload);
        let recover = recover_over(access.clone(), system);
        Driver::new(sim).seed(seed).resume().random(CHAINS, workload, recover, check_over(access, system))
    }

    pub(crate) fn formatted<A: Access>(access: A, system: Files, mut sim: Sim) -> Sim {
        let mut memory = system.memory(&sim.chip().geometry);
        system.format(access.reach(&mut sim).unwrap(), &mut memory).unwrap().unmount().unwrap();
        sim
    }

    /// Pages that are written and synced one by one, cut at each operation: with tags a page says by itself whose it is.
    pub(super) fn synced_pages<A: Access>(access: A, part: &Part) -> Summary {
        let system = Files { tags: true, page_size: part.page_size };
        let sim = formatted(access.clone(), system, Sim::new(chip(part)));
        let page = |number: u64| {
            let bytes = (0..part.page_size).map(|at| 1 + (at / 64 + number as u32) as u8 % 200).collect();
            Op::Write(vec![b"a"], number * u64::from(part.page_size), bytes)
        };
        let ops = [Op::Create(vec![b"a"]), Op::Sync].into_iter();
        let ops: Vec<Op> = ops.chain((0..12).flat_map(|number| [page(number % 7), Op::Sync])).collect();
        let workload = fixed_over(access.clone(), system, ops);
        Driver::new(sim).resume().every(workload, check_over(access, system))
    }
}

/// A chip on which the workload ran until the collector had erased blocks, so that it works in each run to come.
fn lived_in<P: Default>(mut sim: Sim, workload: &impl Fn(&mut Sim, &mut P) -> Run) -> Sim {
    let before = sim.counters().erases;
    let mut promise = P::default();
    while sim.counters().erases < before + 12 {
        workload(&mut sim, &mut promise).unwrap();
    }
    sim
}

fn many(summary: Summary) {
    println!("{summary:?}");
    assert!(summary.cuts >= CUTS_MIN, "{summary:?}");
}

#[test]
fn a_store_on_winbond() {
    let part = row("W25N01GV", 24);
    many(store_chains(Lanes(part), part, 1, CHAINS));
}

#[test]
fn a_store_on_gigadevice() {
    let part = row("GD5F2GQ5UE", 24);
    many(store_chains(Hal(part), part, 2, CHAINS));
}

#[test]
fn a_store_on_micron() {
    let part = row("MT29F2G01ABAGD", 24);
    many(store_chains(Lanes(part), part, 3, CHAINS));
}

#[test]
fn a_store_on_macronix() {
    let part = row("MX35LF2GE4AD", 24);
    many(store_chains(Hal(part), part, 4, CHAINS));
}

/// The row of the table as it is, but for the number of blocks.
#[test]
fn a_store_on_blocks_of_their_size() {
    let part: &'static Part = Box::leak(Box::new(part("MT29F4G01ABAFD", 24)));
    let summary = store_chains(Lanes(part), part, 9, 60);
    assert!(summary.cuts > 120, "{summary:?}");
}

#[test]
fn files_on_winbond() {
    let part = row("W25N01GV", 40);
    many(files::chains(Hal(part), part, 5));
}

#[test]
fn files_on_gigadevice() {
    let part = row("GD5F2GQ5UE", 40);
    many(files::chains(Lanes(part), part, 6));
}

#[test]
fn files_on_micron() {
    let part = row("MT29F2G01ABAGD", 40);
    many(files::chains(Hal(part), part, 7));
}

#[test]
fn files_on_macronix() {
    let part = row("MX35LF2GE4AD", 40);
    many(files::chains(Lanes(part), part, 8));
}

#[test]
fn synced_pages_with_tags() {
    let mut cases = 0;
    for name in ["GD5F2GQ5UE", "MT29F2G01ABAGD"] {
        let part = row(name, 24);
        cases += files::synced_pages(Lanes(part), part).cases;
    }
    assert!(cases > 400, "{cases}");
}

/// A driver that leaves the tag out.
struct Untagged<N>(N);

impl<N: Nand> ErrorType for Untagged<N> {
    type Error = N::Error;
}

impl<N: Nand> Nand for Untagged<N> {
    fn geometry(&self) -> &Geometry {
        self.0.geometry()
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, N::Error> {
        self.0.read(page, column, buf)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), N::Error> {
        self.0.program(page, column, data)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], _tag: &[u8]) -> Result<(), N::Error> {
        self.0.program(page, 0, data)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), N::Error> {
        self.0.erase(block, mode)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, N::Error> {
        self.0.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), N::Error> {
        self.0.mark_bad(block)
    }
}

#[derive(Clone, Copy)]
struct WithoutTags(Lanes);

impl Access for WithoutTags {
    type Chip<'c> = Untagged<SpiNand<SpiSim<&'c mut Sim>>>;

    fn reach<'c>(&self, chip: &'c mut Sim) -> Result<Self::Chip<'c>, Box<dyn Error>> {
        Ok(Untagged(self.0.reach(chip)?))
    }
}

/// The tests above would see a driver that loses what was acknowledged.
#[test]
fn a_driver_that_leaves_the_tag_out_is_caught() {
    let part = row("MT29F2G01ABAGD", 24);
    let run = std::panic::catch_unwind(|| files::synced_pages(WithoutTags(Lanes(part)), part));
    assert!(run.is_err());
}
