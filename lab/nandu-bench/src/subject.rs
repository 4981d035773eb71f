//! The structures that experiments compare, behind one face.

use std::ops::ControlFlow;

use nandu::nand::{Cause, Pairing, TearScope};
use nandu::{Direction, Durability, FixedCells, Options, Store};
use nandu_baselines::{Cache, PaperOptions, PaperTree, TreeKind};
use nandu_index::OrderedIndex;
use nandu_sim::{Chip, Counters, Sim};

use crate::workload::Operation;
use crate::{BenchError, Context};

/// Which structure, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    /// A tree of the paper, as the paper did it.
    Paper(TreeKind, Cache),
    /// nandu's, durable at each return, with this many bytes of node cache.
    Nandu(usize),
    /// nandu's, durable at each sync.
    NanduOnSync {
        /// Bytes of node cache.
        cache_size: usize,
        /// Bytes for changes that are not in their place yet.
        pending_size: usize,
    },
}

/// An index of 32-bit keys and values on a simulated chip.
pub(crate) trait Subject {
    fn get(&mut self, key: u32) -> Result<Option<u32>, BenchError>;
    fn put(&mut self, key: u32, value: u32) -> Result<(), BenchError>;
    /// Says whether the key was there.
    fn delete(&mut self, key: u32) -> Result<bool, BenchError>;
    /// Reads so many entries from a key on, at most; returns how many.
    fn scan(&mut self, key: u32, count: u32) -> Result<u32, BenchError>;
    /// Makes every change durable.
    fn sync(&mut self) -> Result<(), BenchError>;
    /// What the chip did.
    fn counters(&self) -> Counters;
    /// Of these, reads for garbage collection.
    fn gc_reads(&self) -> u64;
    /// Blocks freed by garbage collection.
    fn gc_runs(&self) -> u64;
    /// Pages that hold something of the index.
    fn live_pages(&self) -> u64;
    /// Levels.
    fn height(&self) -> u32;
}

impl dyn Subject + '_ {
    /// Does an operation.
    pub(crate) fn apply(&mut self, operation: Operation) -> Result<(), BenchError> {
        match operation {
            Operation::Get { key } => self.get(key).map(drop),
            Operation::Put { key, value } => self.put(key, value),
            Operation::Delete { key } => self.delete(key).map(drop),
            Operation::Scan { key, count } => self.scan(key, count).map(drop),
        }
    }

    /// Does operations, one after the other, and says what the chip did for them.
    pub(crate) fn run(
        &mut self,
        operations: impl IntoIterator<Item = Operation>,
        mut tell: impl FnMut(u64),
    ) -> Result<Cost, BenchError> {
        let (before, gc_reads, gc_runs) = (self.counters(), self.gc_reads(), self.gc_runs());
        let mut count = 0_u64;
        for operation in operations {
            self.apply(operation)?;
            count += 1;
            if count.is_multiple_of(TELL_EVERY) {
                tell(count);
            }
        }
        Ok(Cost {
            counters: self.counters().since(&before),
            gc_reads: self.gc_reads() - gc_reads,
            gc_runs: self.gc_runs() - gc_runs,
            operations: count,
        })
    }
}

const TELL_EVERY: u64 = 8192;

/// What the chip did for some operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) counters: Counters,
    pub(crate) gc_reads: u64,
    pub(crate) gc_runs: u64,
    pub(crate) operations: u64,
}

impl Cost {
    /// Adds what other operations cost.
    pub(crate) fn add(&mut self, other: &Cost) {
        self.counters.add(&other.counters);
        self.gc_reads += other.gc_reads;
        self.gc_runs += other.gc_runs;
        self.operations += other.operations;
    }

    fn per_operation(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }

    pub(crate) fn reads_per_op(&self) -> f64 {
        self.per_operation(self.counters.reads)
    }

    pub(crate) fn gc_reads_per_op(&self) -> f64 {
        self.per_operation(self.gc_reads)
    }

    pub(crate) fn programs_per_op(&self) -> f64 {
        self.per_operation(self.counters.programs)
    }

    pub(crate) fn erases_per_op(&self) -> f64 {
        self.per_operation(self.counters.erases)
    }

    pub(crate) fn ms_per_op(&self) -> f64 {
        self.per_operation(self.counters.busy_ns) / 1e6
    }
}

/// The chip of the mu-Tree paper as the paper used it: every page, and a cut harms no other page than its own.
pub(crate) const PAPER_CHIP: Chip = {
    let mut chip = Chip::PAPER_MLC;
    chip.geometry.pairing = Pairing::None;
    chip.geometry.tear = TearScope::Page;
    chip
};

/// Makes a structure on a new chip and hands it to `work`.
pub(crate) fn with<T>(
    structure: Structure,
    chip: Chip,
    context: &mut Context<'_>,
    work: impl FnOnce(&mut dyn Subject, &mut Context<'_>) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let sim = Sim::with_seed(chip, context.seed);
    match structure {
        Structure::Paper(kind, cache) => {
            let tree = PaperTree::new(sim, PaperOptions::paper(kind, cache)).map_err(BenchError::structure)?;
            work(&mut OfPaper(tree), context)
        }
        Structure::Nandu(cache_size) => with_nandu(sim, context, Options { cache_size, ..Options::DEFAULT }, work),
        Structure::NanduOnSync { cache_size, pending_size } => {
            let durability = Durability::OnSync;
            let options = Options { cache_size, pending_size, durability, ..Options::DEFAULT };
            with_nandu(sim, context, options, work)
        }
    }
}

fn with_nandu<T>(
    sim: Sim,
    context: &mut Context<'_>,
    options: Options,
    work: impl FnOnce(&mut dyn Subject, &mut Context<'_>) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let mut memory = crate::rig::memory(sim.chip(), &options);
    let store = Store::format_with(sim, FixedCells, options, &mut memory)?;
    work(&mut OfNandu { store }, context)
}

struct OfPaper(PaperTree<Sim>);

impl Subject for OfPaper {
    fn get(&mut self, key: u32) -> Result<Option<u32>, BenchError> {
        self.0.get(key).map_err(BenchError::structure)
    }

    fn put(&mut self, key: u32, value: u32) -> Result<(), BenchError> {
        self.0.insert(key, value).map(drop).map_err(BenchError::structure)
    }

    fn delete(&mut self, key: u32) -> Result<bool, BenchError> {
        self.0.delete(key).map_err(BenchError::structure)
    }

    fn scan(&mut self, key: u32, count: u32) -> Result<u32, BenchError> {
        let (key, mut seen) = (key.to_be_bytes(), 0);
        let from = std::ops::Bound::Included(&key[..]);
        self.0
            .range(from, std::ops::Bound::Unbounded, Direction::Forward, &mut |_| {
                seen += 1;
                if seen < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(BenchError::structure)?;
        Ok(seen)
    }

    fn sync(&mut self) -> Result<(), BenchError> {
        self.0.sync().map_err(BenchError::structure)
    }

    fn counters(&self) -> Counters {
        *self.0.nand().counters()
    }

    fn gc_reads(&self) -> u64 {
        self.0.nand().ledger().of(Cause::Gc).reads
    }

    fn gc_runs(&self) -> u64 {
        self.0.stats().gc_runs
    }

    fn live_pages(&self) -> u64 {
        self.0.live_pages()
    }

    fn height(&self) -> u32 {
        self.0.height()
    }
}

struct OfNandu<'m> {
    store: Store<'m, Sim, FixedCells<4, 4>>,
}

impl Subject for OfNandu<'_> {
    fn get(&mut self, key: u32) -> Result<Option<u32>, BenchError> {
        let found = self.store.get(&key.to_be_bytes())?;
        Ok(found.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes))
    }

    fn put(&mut self, key: u32, value: u32) -> Result<(), BenchError> {
        Ok(self.store.put(&key.to_be_bytes(), &value.to_be_bytes()).map(drop)?)
    }

    fn delete(&mut self, key: u32) -> Result<bool, BenchError> {
        Ok(self.store.delete(&key.to_be_bytes())?)
    }

    fn scan(&mut self, key: u32, count: u32) -> Result<u32, BenchError> {
        let (key, mut seen) = (key.to_be_bytes(), 0);
        let from = std::ops::Bound::Included(&key[..]);
        self.store.range(from, std::ops::Bound::Unbounded, Direction::Forward, |_| {
            seen += 1;
            if seen < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(seen)
    }

    fn sync(&mut self) -> Result<(), BenchError> {
        Ok(self.store.sync()?)
    }

    fn counters(&self) -> Counters {
        *self.store.nand().counters()
    }

    fn gc_reads(&self) -> u64 {
        self.store.nand().ledger().of(Cause::Gc).reads
    }

    /// The log frees each block by one erase.
    fn gc_runs(&self) -> u64 {
        self.store.nand().counters().erases
    }

    fn live_pages(&self) -> u64 {
        self.store.stats().live_pages.into()
    }

    fn height(&self) -> u32 {
        self.store.height().into()
    }
}
