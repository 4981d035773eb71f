//! Exact costs: totals, and the same per cause.

use nandu_nand::Cause;

/// What a chip was asked to do and how long it took. Failed and cut operations count: they were asked for and took time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Array reads, those of copies and of checks for a bad-block mark included.
    pub reads: u64,
    /// Programs, partial ones, those of copies and of bad-block marks included.
    pub programs: u64,
    /// Programs that took less than the main area of a page; bad-block marks are not among them.
    pub partial_programs: u64,
    /// Erases.
    pub erases: u64,
    /// Copies inside the chip, each of which is an array read and a program as well.
    pub copies: u64,
    /// Checks for a bad-block mark.
    pub mark_checks: u64,
    /// Bad-block marks set.
    pub marks: u64,
    /// Bytes moved out of the chip.
    pub bytes_out: u64,
    /// Bytes moved into the chip.
    pub bytes_in: u64,
    /// Time the operations took, nanoseconds.
    pub busy_ns: u64,
}

impl Counters {
    /// Everything zero.
    pub const ZERO: Counters = Counters {
        reads: 0,
        programs: 0,
        partial_programs: 0,
        erases: 0,
        copies: 0,
        mark_checks: 0,
        marks: 0,
        bytes_out: 0,
        bytes_in: 0,
        busy_ns: 0,
    };

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Counters) {
        self.reads += other.reads;
        self.programs += other.programs;
        self.partial_programs += other.partial_programs;
        self.erases += other.erases;
        self.copies += other.copies;
        self.mark_checks += other.mark_checks;
        self.marks += other.marks;
        self.bytes_out += other.bytes_out;
        self.bytes_in += other.bytes_in;
        self.busy_ns += other.busy_ns;
    }

    /// What was counted since `before` was copied from the same counters.
    pub fn since(&self, before: &Counters) -> Counters {
        Counters {
            reads: self.reads - before.reads,
            programs: self.programs - before.programs,
            partial_programs: self.partial_programs - before.partial_programs,
            erases: self.erases - before.erases,
            copies: self.copies - before.copies,
            mark_checks: self.mark_checks - before.mark_checks,
            marks: self.marks - before.marks,
            bytes_out: self.bytes_out - before.bytes_out,
            bytes_in: self.bytes_in - before.bytes_in,
            busy_ns: self.busy_ns - before.busy_ns,
        }
    }
}

/// The counters, by the cause that the caller announced with [`Nand::attribute`](nandu_nand::Nand::attribute).
///
/// Every operation is booked to exactly one cause, so the entries sum to the chip's [`Counters`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub(crate) entries: [Counters; Cause::COUNT],
}

impl Ledger {
    /// Nothing booked.
    pub const EMPTY: Ledger = Ledger { entries: [Counters::ZERO; Cause::COUNT] };

    /// What was done for a cause.
    pub fn of(&self, cause: Cause) -> &Counters {
        &self.entries[cause as usize]
    }

    /// Books what was done for a cause, for whoever keeps a ledger of another chip.
    pub fn book(&mut self, cause: Cause, done: &Counters) {
        self.entries[cause as usize].add(done);
    }

    /// Every cause with what was done for it, in the order of the causes' numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, &Counters)> {
        Cause::ALL.into_iter().zip(&self.entries)
    }

    /// The sum over all causes; equals [`Sim::counters`](crate::Sim::counters).
    pub fn total(&self) -> Counters {
        let mut total = Counters::ZERO;
        for entry in &self.entries {
            total.add(entry);
        }
        total
    }
}

/// What a block went through, besides its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockCounters {
    /// Erases over the block's life: its wear. Never reset.
    pub erases: u32,
    /// Programs over the block's life.
    pub programs: u64,
    /// Array reads over the block's life.
    pub reads: u64,
    /// Array reads since the last erase.
    pub reads_since_erase: u32,
}
