//! The simulator: what it is made of, how it is set up, and what can be asked of it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nandu_nand::{BlockAddr, Cause, CellMode, PageAddr, PageGroup};

use crate::aging::Aging;
use crate::damage::Decay;
use crate::kept::Kept;
use crate::random::{Purpose, Stream};
use crate::schedule::{Fault, FaultId, Schedule, Trigger};
use crate::state::{BlockState, Mark, Store};
use crate::tear::{CutRecord, Tear};
use crate::{Chip, Counters, Ledger, Observer};

/// Erased blocks whose storage is kept for the next program instead of being freed.
const POOL_MAX: usize = 8;

/// A raw NAND chip, in memory or read from an image on demand. It implements [`Nand`](nandu_nand::Nand); the crate's front page tells what it checks.
///
/// A clone is a second chip with the same content, the same past and the same future: what is scheduled and what
/// chance will do are cloned too. Only the observer is not.
#[derive(Clone)]
pub struct Sim {
    pub(crate) chip: Chip,
    pub(crate) seed: u64,
    pub(crate) blocks: Vec<BlockState>,
    pub(crate) counters: Counters,
    pub(crate) ledger: Ledger,
    pub(crate) cause: Cause,
    pub(crate) clock_ns: u64,
    pub(crate) operations: u64,
    pub(crate) off: bool,
    pub(crate) cuts: BTreeMap<u64, Option<Tear>>,
    pub(crate) last_cut: Option<CutRecord>,
    pub(crate) schedule: Schedule,
    pub(crate) aging: Aging,
    pub(crate) decay: Decay,
    /// The page whose content the chip's page register holds, for stale reads.
    pub(crate) register: Option<PageAddr>,
    /// The number of the first operation that must not take the fast path.
    pub(crate) quiet_until: u64,
    pub(crate) roles: Arc<[PageRole]>,
    /// Binary logarithm of the pages per block, if that is a power of two.
    pub(crate) block_shift: Option<u32>,
    pub(crate) pool: Pool,
    pub(crate) observer: Watch,
    pub(crate) dirty: Vec<u32>,
    pub(crate) kept: Kept,
}

/// What a page is among those of its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRole {
    pub(crate) group: PageGroup,
    pub(crate) partner: Option<u32>,
}

/// Storage that no block uses.
pub(crate) type Stores = Vec<Box<Store>>;

/// Storage of erased blocks, for reuse. A clone starts without.
pub(crate) struct Pool {
    pub(crate) stores: Stores,
    /// How many are kept; more are freed.
    pub(crate) keep: usize,
    /// How often memory for the bytes of a block was taken since the image had them.
    pub(crate) taken: u32,
}

impl Default for Pool {
    fn default() -> Pool {
        Pool { stores: Stores::new(), keep: POOL_MAX, taken: 0 }
    }
}

impl Clone for Pool {
    fn clone(&self) -> Pool {
        Pool::default()
    }
}

impl Pool {
    pub(crate) fn take(&mut self, chip: &Chip) -> Box<Store> {
        self.taken += 1;
        match self.stores.pop() {
            Some(mut store) => {
                match store.pages.is_empty() {
                    true => store.pages = Store::without_data(chip).pages,
                    false => store.pages.fill(crate::state::PageState::ERASED),
                }
                store
            }
            None => Store::new(chip),
        }
    }

    /// Memory for the bytes of a block.
    #[cold]
    pub(crate) fn take_data(&mut self, chip: &Chip) -> Box<[u8]> {
        self.taken += 1;
        self.stores.pop().map_or_else(|| Store::new_data(chip), |store| store.data)
    }

    /// Takes memory for the bytes of a block.
    pub(crate) fn give_data(&mut self, data: Box<[u8]>) {
        if self.stores.len() < self.keep && !data.is_empty() {
            self.stores.push(Box::new(Store { pages: Box::default(), places: Box::default(), data }));
        }
    }

    /// Takes the storage of a block. What has no bytes is not worth keeping.
    pub(crate) fn give(&mut self, mut store: Box<Store>) {
        if self.stores.len() < self.keep && !store.data.is_empty() {
            store.places = Box::default();
            self.stores.push(store);
        }
    }
}

/// The observer. A clone of a chip is not observed.
#[derive(Default)]
pub(crate) struct Watch(pub(crate) Option<Box<dyn Observer + Send>>);

impl Clone for Watch {
    fn clone(&self) -> Watch {
        Watch(None)
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("chip", &self.chip.name)
            .field("seed", &self.seed)
            .field("operations", &self.operations)
            .field("clock_ns", &self.clock_ns)
            .field("off", &self.off)
            .finish_non_exhaustive()
    }
}

impl From<Chip> for Sim {
    fn from(chip: Chip) -> Sim {
        Sim::new(chip)
    }
}

impl Sim {
    /// A chip as it leaves the factory, without bad blocks, with seed 0.
    ///
    /// # Panics
    ///
    /// As [`with_seed`](Sim::with_seed).
    pub fn new(chip: Chip) -> Sim {
        Sim::with_seed(chip, 0)
    }

    /// A chip as it leaves the factory, without bad blocks. Whatever is left to chance later follows from the seed.
    ///
    /// # Panics
    ///
    /// If the geometry is not sound, or has more than 64 program units in a page: both are wrong use.
    #[expect(clippy::panic, reason = "a chip that cannot exist is a bug of the caller")]
    pub fn with_seed(chip: Chip, seed: u64) -> Sim {
        let geometry = &chip.geometry;
        if let Err(error) = geometry.validate() {
            panic!("chip {}: {error}", chip.name);
        }
        assert!(
            geometry.page_size / geometry.program_unit <= 64,
            "chip {}: more than 64 program units in a page are not simulated",
            chip.name
        );
        let roles = (0..geometry.pages_per_block)
            .map(|index| PageRole {
                group: geometry
                    .pairing
                    .pair_of(index, geometry.pages_per_block)
                    .map_or(PageGroup::Lsb, |(_, group)| group),
                partner: geometry.pairing.partner_of(index, geometry.pages_per_block),
            })
            .collect();
        let mut sim = Sim {
            chip,
            seed,
            blocks: vec![BlockState::FRESH; geometry.block_count as usize],
            counters: Counters::ZERO,
            ledger: Ledger::EMPTY,
            cause: Cause::Other,
            clock_ns: 0,
            operations: 0,
            off: false,
            cuts: BTreeMap::new(),
            last_cut: None,
            schedule: Schedule::default(),
            aging: Aging::NONE,
            decay: Decay::DEFAULT,
            register: None,
            quiet_until: 0,
            roles,
            block_shift: geometry
                .pages_per_block
                .is_power_of_two()
                .then_some(geometry.pages_per_block.trailing_zeros()),
            pool: Pool::default(),
            observer: Watch::default(),
            dirty: Vec::new(),
            kept: Kept::default(),
        };
        sim.settle();
        sim
    }

    /// Marks blocks as bad by the factory: as many as fit `percent` of the chip, placed by the seed, anywhere. With
    /// `spare_first_block`, block 0 stays good, as some data sheets promise.
    ///
    /// # Panics
    ///
    /// If `percent` is not from 0 to 100.
    pub fn with_factory_bad(mut self, percent: f64, spare_first_block: bool) -> Sim {
        assert!((0.0..=100.0).contains(&percent), "{percent} percent of bad blocks");
        let count = self.chip.geometry.block_count;
        let first = u32::from(spare_first_block);
        let bad_count = ((f64::from(count) * percent / 100.0) as u32).min(count - first);
        // Partial Fisher-Yates: each set of blocks is as likely as any other.
        let mut blocks: Vec<u32> = (first..count).collect();
        let mut stream = Stream::new(self.seed, Purpose::FactoryBad, 0, 0);
        for at in 0..bad_count as usize {
            let other = at + stream.below((blocks.len() - at) as u32) as usize;
            blocks.swap(at, other);
            self.mark_factory_bad(BlockAddr(blocks[at]));
        }
        self
    }

    /// Marks one block as bad by the factory, as if it had left it so.
    ///
    /// # Panics
    ///
    /// If the block is outside the chip.
    pub fn mark_factory_bad(&mut self, block: BlockAddr) {
        self.blocks[block.0 as usize].mark.0 |= Mark::FACTORY;
        self.touch(block.0, crate::state::Dirty::CONTENT);
    }

    /// The kind of chip.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What was done since the chip was made or the counters were reset.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The counters by cause; its entries sum to [`counters`](Sim::counters).
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Sets counters and ledger to zero. Clock, operation count, wear and the counters of blocks go on.
    pub fn reset_counters(&mut self) {
        self.counters = Counters::ZERO;
        self.ledger = Ledger::EMPTY;
    }

    /// The chip's clock, nanoseconds: the time all operations took, and the host's time from
    /// [`advance_ns`](Sim::advance_ns).
    pub fn clock_ns(&self) -> u64 {
        self.clock_ns
    }

    /// Lets time pass in which the host does nothing with the chip: bits leak, if [aging](Sim::set_aging) is on.
    pub fn advance_ns(&mut self, duration_ns: u64) {
        self.clock_ns += duration_ns;
    }

    /// How many operations were started on this chip: reads, programs, erases, copies, bad-block marks set or checked.
    /// It is the number of the next operation, by which [`cut_at`](Sim::cut_at) and [`inject`](Sim::inject) name it. It
    /// counts on over power cuts and is never reset. What is asked of a chip without power is no operation.
    pub fn operation_count(&self) -> u64 {
        self.operations
    }

    /// Cuts the power during the operation of this number, leaving this tear. Several cuts may wait at once; a cut at an
    /// operation that never comes never happens, nor does one in the past. After the cut, everything answers
    /// [`Gone`](nandu_nand::NandErrorKind::Gone) until [`power_on`](Sim::power_on).
    ///
    /// A tear that does not fit the operation is replaced by the nearest that does: see [`Tear`].
    pub fn cut_at(&mut self, operation: u64, tear: Tear) {
        self.cuts.insert(operation, Some(tear));
        self.settle();
    }

    /// [`cut_at`](Sim::cut_at), with a tear from the seed among those that fit the operation.
    pub fn cut_somehow_at(&mut self, operation: u64) {
        self.cuts.insert(operation, None);
        self.settle();
    }

    /// Forgets the cuts that did not happen yet.
    pub fn clear_cuts(&mut self) {
        self.cuts.clear();
        self.settle();
    }

    /// The last cut that happened.
    pub fn last_cut(&self) -> Option<CutRecord> {
        self.last_cut
    }

    /// Takes the power away between two operations.
    pub fn power_off(&mut self) {
        self.off = true;
        self.register = None;
        self.settle();
    }

    /// Gives power. Cells keep what they hold; the page register is empty.
    pub fn power_on(&mut self) {
        self.off = false;
        self.settle();
    }

    /// Whether the chip is without power.
    pub fn is_off(&self) -> bool {
        self.off
    }

    /// Schedules a fault. The number returned takes it back by [`withdraw`](Sim::withdraw).
    pub fn inject(&mut self, fault: Fault, trigger: Trigger) -> FaultId {
        let id = self.schedule.add(fault, trigger);
        self.settle();
        id
    }

    /// Takes a scheduled fault back; says whether it was still scheduled.
    pub fn withdraw(&mut self, id: FaultId) -> bool {
        let found = self.schedule.remove(id);
        self.settle();
        found
    }

    /// Takes all scheduled faults back.
    pub fn withdraw_all(&mut self) {
        self.schedule = Schedule::default();
        self.settle();
    }

    /// Sets how the chip ages: wear, retention, read disturb. [`Aging::NONE`] at first, so that costs are exact.
    pub fn set_aging(&mut self, aging: Aging) {
        self.aging = aging;
        self.settle();
    }

    /// How the chip ages.
    pub fn aging(&self) -> &Aging {
        &self.aging
    }

    /// Sets how fast unstable bits get worse.
    pub fn set_decay(&mut self, decay: Decay) {
        self.decay = decay;
    }

    /// How fast unstable bits get worse.
    pub fn decay(&self) -> &Decay {
        &self.decay
    }

    /// Sets who watches the operations, and returns who did. An observed chip is slower: it leaves the fast path.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer + Send>>) -> Option<Box<dyn Observer + Send>> {
        let before = std::mem::replace(&mut self.observer.0, observer);
        self.settle();
        before
    }

    /// The cause announced last.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Works out from which operation on the fast path must not be taken; called whenever something changed that
    /// matters for it.
    pub(crate) fn settle(&mut self) {
        let watched = self.off || self.kept.is_unreadable() || self.observer.0.is_some() || self.aging != Aging::NONE;
        let first_cut = self.cuts.range(self.operations..).next().map_or(u64::MAX, |(&operation, _)| operation);
        self.quiet_until = if watched { 0 } else { first_cut.min(self.schedule.first_operation(self.operations)) };
    }

    /// Notes that a block changed since an image had it.
    #[inline]
    pub(crate) fn touch(&mut self, block: u32, what: u8) {
        let state = &mut self.blocks[block as usize];
        if state.dirty == 0 {
            self.dirty.push(block);
        }
        state.dirty |= what;
    }

    pub(crate) fn role(&self, index: u32) -> PageRole {
        self.roles[index as usize]
    }

    /// Whether programming this page in this mode adds a second bit to cells that hold one.
    pub(crate) fn is_second_bit(&self, mode: CellMode, index: u32) -> bool {
        mode == CellMode::Mlc && self.role(index).group == PageGroup::Msb
    }

    /// The page's address as block and place in the block.
    ///
    /// # Panics
    ///
    /// If the page is outside the chip: a bug of the caller.
    #[inline]
    pub(crate) fn locate(&self, page: PageAddr) -> (u32, u32) {
        let geometry = &self.chip.geometry;
        // A division costs as much as the rest of the fast path together.
        let block = match self.block_shift {
            Some(shift) => page.0 >> shift,
            None => page.0 / geometry.pages_per_block,
        };
        assert!(block < geometry.block_count, "illegal use: page {page} is outside the chip");
        (block, page.0 - block * geometry.pages_per_block)
    }
}
