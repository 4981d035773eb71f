//! What a simulated page operation costs, against copying the same bytes between buffers of the same size.
//!
//! The claim: a 2 KiB program or read costs at most twice the copy, so that ten million of them stay in seconds. The
//! ratios are taken in one run, in turns, because the speed of a machine drifts; criterion then tracks each by itself.

#![expect(clippy::unwrap_used, reason = "a chip without faults fails no operation")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, PageAddr};
use nandu_sim::{Chip, Sim};

/// Blocks in use: 132 KiB, which stays in a cache, 8 MiB, and the whole chip of 132 MiB.
const WORKING_SETS: [u32; 3] = [1, 64, 1024];

/// One operation of a bench.
type Step = fn(&mut Bench);

/// A chip that programs, reads or copies pages round and round over its first blocks.
struct Bench {
    sim: Sim,
    block_count: u32,
    next: u32,
    page: Vec<u8>,
    /// As large and laid out as the pages of the blocks in use.
    memory: Vec<u8>,
}

impl Bench {
    fn new(block_count: u32) -> Bench {
        let mut sim = Sim::new(Chip::W25N01GV);
        let geometry = *sim.geometry();
        let page: Vec<u8> = (0..geometry.page_size).map(|at| at as u8).collect();
        for block in 0..block_count {
            sim.erase(BlockAddr(block), CellMode::Slc).unwrap();
            for index in 0..geometry.pages_per_block {
                sim.program(geometry.page_at(BlockAddr(block), index), 0, &page).unwrap();
            }
        }
        let size = (block_count * geometry.pages_per_block * geometry.column_count()) as usize;
        Bench { sim, block_count, next: 0, page, memory: vec![1; size] }
    }

    fn geometry(&self) -> &Geometry {
        self.sim.geometry()
    }

    /// The next page, round and round.
    fn next_page(&mut self) -> PageAddr {
        let page = self.next;
        self.next = if page + 1 == self.block_count * self.geometry().pages_per_block { 0 } else { page + 1 };
        PageAddr(page)
    }

    /// One program, and the erase that every 64th of them needs.
    fn program(&mut self) {
        let page = self.next_page();
        if self.geometry().index_in_block(page) == 0 {
            let block = self.geometry().block_of(page);
            self.sim.erase(block, CellMode::Slc).unwrap();
        }
        self.sim.program(page, 0, black_box(&self.page)).unwrap();
    }

    fn read(&mut self) {
        let page = self.next_page();
        let _ = self.sim.read(page, 0, black_box(&mut self.page)).unwrap();
    }

    fn copy_in(&mut self) {
        let first = (self.next_page().0 * self.geometry().column_count()) as usize;
        self.memory[first..first + self.page.len()].copy_from_slice(black_box(&self.page));
    }

    fn copy_out(&mut self) {
        let first = (self.next_page().0 * self.geometry().column_count()) as usize;
        let length = self.page.len();
        black_box(&mut self.page).copy_from_slice(&self.memory[first..first + length]);
    }

    fn time(&mut self, operation: Step, count: u32) -> Duration {
        let start = Instant::now();
        for _ in 0..count {
            operation(self);
        }
        start.elapsed()
    }
}

/// The middle of 15 ratios, each of two runs made one after the other, and the nanoseconds of both.
fn ratio(bench: &mut Bench, operation: Step, copy: Step) -> (f64, f64, f64) {
    // Whole passes over the working set, so that both meet the same caches.
    let pages = bench.block_count * bench.geometry().pages_per_block;
    let count = pages * (65_536 / pages).max(1);
    let mut runs: Vec<(f64, f64, f64)> = (0..15)
        .map(|_| {
            bench.next = 0;
            let copied = bench.time(copy, count).as_secs_f64() * 1e9 / f64::from(count);
            bench.next = 0;
            let operated = bench.time(operation, count).as_secs_f64() * 1e9 / f64::from(count);
            (operated / copied, operated, copied)
        })
        .collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    runs[runs.len() / 2]
}

fn print_ratios() {
    println!("2 KiB page operations of the simulator against a copy of the page, same working set:");
    for block_count in WORKING_SETS {
        let mut bench = Bench::new(block_count);
        let kib = bench.memory.len() / 1024;
        let (program, program_ns, copy_in_ns) = ratio(&mut bench, Bench::program, Bench::copy_in);
        let (read, read_ns, copy_out_ns) = ratio(&mut bench, Bench::read, Bench::copy_out);
        println!("  {kib:>7} KiB: program {program_ns:5.0} ns / copy {copy_in_ns:5.0} ns = ratio {program:.2}");
        println!("  {kib:>7} KiB: read    {read_ns:5.0} ns / copy {copy_out_ns:5.0} ns = ratio {read:.2}");
    }
    let mut bench = Bench::new(64);
    let half = 5_000_000;
    let duration = bench.time(Bench::program, half) + bench.time(Bench::read, half);
    println!("ten million page operations (half programs, half reads): {:.2} s", duration.as_secs_f64());
}

fn page_operations(criterion: &mut Criterion) {
    let operations: [(&str, Step); 4] = [
        ("copy_in", Bench::copy_in),
        ("program", Bench::program),
        ("copy_out", Bench::copy_out),
        ("read", Bench::read),
    ];
    let mut group = criterion.benchmark_group("page_2048");
    group.sample_size(20).measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
    group.throughput(Throughput::Bytes(2048));
    let mut bench = Bench::new(64);
    for (name, operation) in operations {
        // A program must find its block erased, so each starts at the first page of one.
        bench.next = 0;
        group.bench_function(BenchmarkId::new(name, "64_blocks"), |bencher| bencher.iter(|| operation(&mut bench)));
    }
    group.finish();
}

criterion_group!(benches, page_operations);

fn main() {
    print_ratios();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
