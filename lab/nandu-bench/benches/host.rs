//! What the host takes for puts and gets: nandu on a simulated chip in memory, with 64 KiB for everything that it keeps, on
//! one core; and redb on its backend in memory, with the cache it takes by default, in the same run.
//!
//! The time of the simulator is inside nandu's: two copies of a page for each operation of the chip. The two do not do
//! the same: each put of nandu is durable when it returns and pays its share of garbage collection and wear; a commit of
//! redb with `Durability::Immediate` promises the same of a file, here of memory, and with `Durability::None` nothing.
//!
//! The goals (300,000 puts and 1,000,000 gets a second) are printed and not enforced, since machines differ.

#![expect(clippy::unwrap_used, reason = "a chip without faults fails no operation")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group};
use nandu::{ByteCells, Cells, FixedCells, Options, Store};
use nandu_bench::workload::{Chooser, RandomKeys, Skew};
use nandu_sim::{Chip, Sim};
use redb::{Database, Durability, ReadableDatabase, TableDefinition, backends::InMemoryBackend};

const MEMORY_SIZE: usize = 64 * 1024;
const PUTS_GOAL: f64 = 300_000.0;
const GETS_GOAL: f64 = 1_000_000.0;
/// Rates are the middle of so many runs.
const RUNS: usize = 5;
const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("records");

/// Records with keys of four bytes.
#[derive(Clone, Copy)]
struct Set {
    name: &'static str,
    value_size: usize,
    record_count: u32,
}

/// Sets of which all inner nodes and leaves fit the cache, and sets of which not even the inner nodes do.
const FIXED_SETS: [Set; 2] = [
    Set { name: "8-byte, 5 thousand", value_size: 4, record_count: 5_000 },
    Set { name: "8-byte, 1 million", value_size: 4, record_count: 1_000_000 },
];
const BYTES_SETS: [Set; 2] = [
    Set { name: "100-byte, 3 hundred", value_size: 96, record_count: 300 },
    Set { name: "100-byte, 1 hundred thousand", value_size: 96, record_count: 100_000 },
];

/// Something with records that can be put and got.
trait Engine {
    fn put(&mut self, key: &[u8], value: &[u8]);
    fn get(&mut self, key: &[u8]) -> bool;
}

impl<C: Cells> Engine for Store<'_, Sim, C> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        Store::put(self, key, value).unwrap();
    }

    fn get(&mut self, key: &[u8]) -> bool {
        black_box(Store::get(self, key).unwrap()).is_some()
    }
}

struct Redb {
    database: Database,
    durability: Durability,
}

impl Engine for Redb {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        let mut transaction = self.database.begin_write().unwrap();
        transaction.set_durability(self.durability).unwrap();
        transaction.open_table(TABLE).unwrap().insert(key, value).unwrap();
        transaction.commit().unwrap();
    }

    fn get(&mut self, key: &[u8]) -> bool {
        let table = self.database.begin_read().unwrap().open_table(TABLE).unwrap();
        black_box(table.get(key).unwrap()).is_some()
    }
}

/// An engine with all records of a set in it, and which of them come next.
struct Bench<E> {
    engine: E,
    keys: RandomKeys,
    chooser: Chooser,
    value: Vec<u8>,
}

impl<E: Engine> Bench<E> {
    fn new(engine: E, set: &Set) -> Bench<E> {
        // Keys are in random order already.
        let chooser = Chooser::in_order(set.record_count, Skew::Uniform, 1).unwrap();
        Bench { engine, keys: RandomKeys::new(1), chooser, value: vec![0; set.value_size] }
    }

    fn put(&mut self) {
        let key = self.keys.at(self.chooser.choose()).to_be_bytes();
        self.value[0] = self.value[0].wrapping_add(1);
        self.engine.put(&key, &self.value);
    }

    fn get(&mut self) {
        let key = self.keys.at(self.chooser.choose()).to_be_bytes();
        assert!(self.engine.get(&key));
    }

    /// Operations in a second: the middle of some runs.
    fn rate(&mut self, count: u32, operation: fn(&mut Bench<E>)) -> f64 {
        let mut rates: Vec<f64> = (0..RUNS)
            .map(|_| {
                let start = Instant::now();
                (0..count).for_each(|_| operation(self));
                f64::from(count) / start.elapsed().as_secs_f64()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates[RUNS / 2]
    }
}

fn nandu<C: Cells>(set: &Set, cells: C) -> Bench<Store<'static, Sim, C>> {
    let chip = Chip::W25N01GV;
    let options = Options::DEFAULT.fit::<Sim>(&chip.geometry, MEMORY_SIZE).unwrap();
    // Lives as long as the process, as the store in it does.
    let memory = Box::leak(vec![0; MEMORY_SIZE].into_boxed_slice());
    let mut bench = Bench::new(Store::format_with(Sim::new(chip), cells, options, memory).unwrap(), set);
    for index in 0..set.record_count {
        let key = bench.keys.at(index).to_be_bytes();
        Engine::put(&mut bench.engine, &key, &bench.value);
    }
    bench
}

fn redb(set: &Set, durability: Durability) -> Bench<Redb> {
    let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
    let bench = Bench::new(Redb { database, durability }, set);
    let transaction = bench.engine.database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(TABLE).unwrap();
        for index in 0..set.record_count {
            let key = bench.keys.at(index).to_be_bytes();
            table.insert(&key[..], &bench.value[..]).unwrap();
        }
    }
    transaction.commit().unwrap();
    bench
}

fn print_rates<C: Cells>(set: &Set, cells: C) {
    let mut nandu = nandu(set, cells);
    let (puts, gets) = (nandu.rate(100_000, Bench::put), nandu.rate(200_000, Bench::get));
    let redb_puts = redb(set, Durability::Immediate).rate(3_000, Bench::put);
    let mut none = redb(set, Durability::None);
    let (redb_puts_none, redb_gets) = (none.rate(10_000, Bench::put), none.rate(200_000, Bench::get));
    println!("{}:", set.name);
    println!("  nandu puts {puts:>10.0} /s, {:.2} of the goal", puts / PUTS_GOAL);
    println!("  redb puts  {redb_puts:>10.0} /s immediate, ratio {:.1}", puts / redb_puts);
    println!("  redb puts  {redb_puts_none:>10.0} /s without durability, ratio {:.1}", puts / redb_puts_none);
    println!("  nandu gets {gets:>10.0} /s, {:.2} of the goal", gets / GETS_GOAL);
    println!("  redb gets  {redb_gets:>10.0} /s, ratio {:.2}", gets / redb_gets);
}

fn track<C: Cells + Copy>(criterion: &mut Criterion, sets: &[Set], cells: C) {
    let mut group = criterion.benchmark_group("host");
    group.sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    for set in sets {
        let mut bench = nandu(set, cells);
        group.bench_function(BenchmarkId::new("put", set.name), |bencher| bencher.iter(|| bench.put()));
        group.bench_function(BenchmarkId::new("get", set.name), |bencher| bencher.iter(|| bench.get()));
    }
    group.finish();
}

fn host(criterion: &mut Criterion) {
    track(criterion, &FIXED_SETS, FixedCells::<4, 4>);
    track(criterion, &BYTES_SETS, ByteCells);
}

criterion_group!(benches, host);

fn main() {
    println!("w25n01gv in memory, {} KiB for nandu, random keys, one core:", MEMORY_SIZE / 1024);
    FIXED_SETS.iter().for_each(|set| print_rates(set, FixedCells::<4, 4>));
    BYTES_SETS.iter().for_each(|set| print_rates(set, ByteCells));
    benches();
    Criterion::default().configure_from_args().final_summary();
}
