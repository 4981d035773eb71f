//! The simulator: what it is made of and what can be asked of it.

use std::borrow::BorrowMut;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nandu_nand::{BlockAddr, Geometry};
use nandu_sim::{Bus, Chip, Sim, Timing};
use nandu_spi::{DieSelect, Part};

use crate::history::History;
use crate::unit::Unit;

/// Time of a bit on one lane at 50 MHz, picoseconds.
const BIT_PS: u64 = 20_000;

/// How often an operation takes longer than usual, unless somebody says otherwise.
const SLOW_EVERY: u64 = 7;

/// What goes wrong between processor and part. See [`SpiSim::fault_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireFault {
    /// Nothing of the transaction reaches the part, and it fails.
    Refused,
    /// The part does what it is told, and the transaction fails.
    Unreported,
    /// What the transaction begins never ends: the part stays busy until a reset.
    Stuck,
    /// From this transaction on the bus is dead, as by [`SpiSim::set_dead`].
    Dead(u8),
    /// The power is gone for a moment before the transaction: what the part was busy with is torn, and it is as after power-up.
    PowerLost,
}

/// A part on the wire, over a chip of its own or a borrowed one (`SpiSim<&mut Sim>`). The crate's front page says what it checks.
///
/// A borrowed chip keeps what it holds when this is dropped; registers and cache are lost, as with the power. What the part was still busy
/// with is then never done.
pub struct SpiSim<S = Sim> {
    pub(crate) part: Part,
    pub(crate) sim: S,
    /// One for each die that has registers of its own.
    pub(crate) units: Vec<Unit>,
    pub(crate) selected: usize,
    pub(crate) now_ns: u64,
    /// What [`Delay`]s waited since the last transaction.
    waited_ns: Arc<AtomicU64>,
    pub(crate) lost_power: bool,
    pub(crate) transactions: u64,
    pub(crate) faults: BTreeMap<u64, WireFault>,
    /// Whether the operation that this transaction begins never ends.
    pub(crate) stuck: bool,
    pub(crate) history: History,
    /// Operations begun that take their time.
    pub(crate) begun: u64,
    /// What all bytes from the part are while the bus is dead.
    pub(crate) dead: Option<u8>,
    /// Whether the part lost power or heard nothing for a while, and was not reset since: nobody is blamed for not knowing its state.
    pub(crate) excused: bool,
    /// Whether a reset leaves protection and configuration as they are.
    pub(crate) keeps_registers: bool,
    /// How often one of them takes longer than usual; 0 for never.
    pub(crate) slow_every: u64,
    /// Pages programmed without error correction: with it they cannot be read.
    pub(crate) uncoded: BTreeSet<u32>,
    pub(crate) sleep: Sleep,
}

/// Deep power-down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    Awake,
    /// Nothing is heard but the command that wakes it, and that not before this time.
    Asleep {
        from_ns: u64,
    },
    /// Nothing may be said before this time.
    Waking {
        until_ns: u64,
    },
}

/// Waits on the clock of a [`SpiSim`], for drivers that take bus and delay apart.
#[derive(Clone, Debug)]
pub struct Delay(Arc<AtomicU64>);

impl embedded_hal::delay::DelayNs for Delay {
    fn delay_ns(&mut self, ns: u32) {
        self.0.fetch_add(u64::from(ns), Ordering::Relaxed);
    }
}

/// The chip behind a part: its shape, its busy times, and no time for the bus, which [`SpiSim`] counts itself.
pub const fn chip(part: &Part) -> Chip {
    let times = &part.times;
    Chip {
        name: part.name,
        source: "the row of the part in nandu-spi",
        geometry: part.geometry(),
        timing: Timing::slc(times.read_us * 1000, times.program_us * 1000, times.erase_us * 1000, Bus::INCLUDED),
        lsb_recovery: false,
    }
}

impl SpiSim<Sim> {
    /// A part as it leaves the factory, without bad blocks, with seed 0.
    ///
    /// # Panics
    ///
    /// If the row does not fit itself.
    pub fn blank(part: &Part) -> SpiSim<Sim> {
        SpiSim::new(part, Sim::new(chip(part)))
    }
}

impl<S: BorrowMut<Sim>> SpiSim<S> {
    /// A part over a chip, which has the part's shape; [`chip`] makes one. Its power has just come on.
    ///
    /// # Panics
    ///
    /// If the chip has another shape than the part.
    pub fn new(part: &Part, sim: S) -> SpiSim<S> {
        let geometry = &sim.borrow().chip().geometry;
        let shape = |geometry: &Geometry| {
            let Geometry { page_size, spare_size, pages_per_block, block_count, .. } = *geometry;
            (page_size, spare_size, pages_per_block, block_count)
        };
        assert_eq!(shape(geometry), shape(&part.geometry()), "the chip does not have the shape of {}", part.name);
        let count = match part.die_select {
            DieSelect::Single | DieSelect::Row => 1,
            DieSelect::Command | DieSelect::Register => usize::from(part.die_count),
        };
        SpiSim {
            part: *part,
            now_ns: sim.borrow().clock_ns(),
            sim,
            units: vec![Unit::new(part); count],
            selected: 0,
            waited_ns: Arc::default(),
            lost_power: false,
            transactions: 0,
            faults: BTreeMap::new(),
            stuck: false,
            history: History::default(),
            begun: 0,
            dead: None,
            excused: false,
            keeps_registers: false,
            slow_every: SLOW_EVERY,
            uncoded: BTreeSet::new(),
            sleep: Sleep::Awake,
        }
    }

    /// The part.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The chip behind the wire.
    pub fn sim(&self) -> &Sim {
        self.sim.borrow()
    }

    /// The chip behind the wire, to schedule faults and cuts and to look into it. Its operations are those of the array: a page read is a
    /// read of all columns, a program execute a program of what was loaded, or a mark.
    pub fn sim_mut(&mut self) -> &mut Sim {
        self.sim.borrow_mut()
    }

    /// The chip, after what the part is still busy with.
    pub fn into_sim(mut self) -> S {
        self.advance(0);
        let end = self.units.iter().filter_map(|unit| unit.pending).map(|pending| pending.end_ns);
        let end = end.filter(|&end_ns| end_ns < u64::MAX).max().unwrap_or(self.now_ns);
        self.advance(end.saturating_sub(self.now_ns));
        self.sim
    }

    /// The time, nanoseconds: it moves with bytes on the wire, with delays and with nothing else.
    pub fn now_ns(&self) -> u64 {
        self.now_ns + self.waited_ns.load(Ordering::Relaxed)
    }

    /// How many transactions there were: the number of the next one.
    pub fn transaction_count(&self) -> u64 {
        self.transactions
    }

    /// Lets something go wrong with the transaction of this number, counted from 0.
    pub fn fault_at(&mut self, transaction: u64, fault: WireFault) {
        self.faults.insert(transaction, fault);
    }

    /// Takes back what was to go wrong and did not yet.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Cuts the bus, or mends it. While it is cut the part hears nothing, transactions succeed, and all bytes from the part are this one: 00h or
    /// FFh, as the pin is pulled.
    pub fn set_dead(&mut self, level: Option<u8>) {
        self.dead = level;
    }

    /// Lets a reset leave the registers of protection and configuration as they are, or bring back those of power-up, as at first. Parts do
    /// either, so a driver has to live with both.
    pub fn set_reset_keeps_registers(&mut self, keeps: bool) {
        self.keeps_registers = keeps;
    }

    /// Lets every so many-th operation take three times as long as usual, as data sheets permit: a driver that waits a fixed time instead of
    /// looking at the status is caught. At first every seventh; with 0 none, for measurements.
    pub fn set_slow_every(&mut self, operations: u32) {
        self.slow_every = operations.into();
    }

    /// Waits on the clock of this part.
    pub fn delay(&self) -> Delay {
        Delay(Arc::clone(&self.waited_ns))
    }

    /// Whether the part is in deep power-down, or on its way there.
    pub fn is_asleep(&self) -> bool {
        matches!(self.sleep, Sleep::Asleep { .. })
    }

    /// Takes the power away and gives it again: registers and cache are as after power-up, and what the part was busy with is not done.
    /// For a tear, schedule a cut at the chip ([`Sim::cut_at`]).
    pub fn power_cycle(&mut self) {
        self.sim_mut().power_off();
        self.sim_mut().power_on();
        self.wake();
    }

    /// The state after power-up.
    pub(crate) fn wake(&mut self) {
        self.lost_power = false;
        self.sleep = Sleep::Awake;
        self.selected = 0;
        let part = self.part;
        self.units.iter_mut().for_each(|unit| unit.wake(&part));
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.sim.borrow().chip().geometry
    }

    pub(crate) fn unit(&mut self) -> &mut Unit {
        &mut self.units[self.selected]
    }

    /// Lets time pass. What ends in it happens.
    pub(crate) fn advance(&mut self, duration_ns: u64) {
        self.now_ns += duration_ns + self.waited_ns.swap(0, Ordering::Relaxed);
        self.settle();
    }

    /// The time of so many bytes on so many lanes.
    pub(crate) fn byte_ns(count: usize, lanes: u64) -> u64 {
        count as u64 * 8 * BIT_PS / lanes / 1000
    }

    /// Panics with the last transactions.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse(&self, reason: &str) -> ! {
        self.panic(reason, None)
    }

    /// Panics with the last transactions and the history of a block.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse_block(&self, reason: &str, block: BlockAddr) -> ! {
        self.panic(reason, Some(block))
    }

    #[expect(clippy::panic, reason = "illegal use is a bug of the caller, which must not go on")]
    fn panic(&self, reason: &str, block: Option<BlockAddr>) -> ! {
        let unit = &self.units[self.selected];
        let mut text = format!("illegal use: {reason}\n{}", self.part.name);
        // Writing to a string cannot fail.
        if self.units.len() > 1 {
            let _ = write!(text, ", die {}", self.selected);
        }
        let _ = write!(text, ": A0h {:02X}, B0h {:02X}, C0h {:02X}", unit.lock, unit.config, unit.status(&self.part));
        if let Some(pending) = unit.pending {
            let _ = write!(text, ", busy with {:?}", pending.work);
        }
        if let Some(block) = block {
            let state = self.sim().block_state(block);
            let _ = write!(
                text,
                "; block {block}: {:?}, {} erases; its last operations:",
                state.condition, state.counters.erases
            );
            self.sim().block_history(block).iter().for_each(|entry| {
                let _ = write!(text, "\n  {entry}");
            });
            text.push_str("\nlast transactions:");
        } else {
            text.push_str("; last transactions:");
        }
        panic!("{text}{}", self.history)
    }
}

impl<S: BorrowMut<Sim>> fmt::Debug for SpiSim<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpiSim")
            .field("part", &self.part.name)
            .field("sim", self.sim())
            .field("transactions", &self.transactions)
            .field("now_ns", &self.now_ns)
            .finish_non_exhaustive()
    }
}
