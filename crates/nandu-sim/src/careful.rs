//! The same operations where something may go wrong: a cut or a fault is due, someone watches, or the block is not plain.

use nandu_nand::{BlockAddr, CellMode, NandErrorKind, PageAddr, ReadStatus, TearScope};

use crate::damage::{Harm, HarmKind};
use crate::random::{Purpose, Stream};
use crate::schedule::{Fault, Fired, Target};
use crate::state::{Condition, Dirty, Mark};
use crate::tear::{CutRecord, Tear};
use crate::{Address, Operation, OperationKind, Outcome, Sim, SimError};

/// An operation under way.
struct Step {
    number: u64,
    kind: OperationKind,
    block: BlockAddr,
    page: Option<PageAddr>,
    from: Option<PageAddr>,
    column: u32,
    /// Bytes that go over the bus.
    length: usize,
    mode: CellMode,
    fired: Vec<Fired>,
    /// The tear of a power cut during this operation.
    cut: Option<Tear>,
}

impl Step {
    fn address(&self) -> Address {
        self.page.map_or(Address::Block(self.block), Address::Page)
    }

    fn faults(&self) -> impl Iterator<Item = Fault> {
        self.fired.iter().map(|fired| fired.fault)
    }

    /// The tear of a lost report or a reset in the middle.
    fn bus_tear(&self) -> Option<Tear> {
        self.faults().find_map(|fault| match fault {
            Fault::Bus(tear) => Some(tear),
            _ => None,
        })
    }

    fn has(&self, fault: Fault) -> bool {
        self.faults().any(|other| other == fault)
    }
}

impl Sim {
    pub(crate) fn read_carefully(
        &mut self,
        page: PageAddr,
        column: u32,
        buf: &mut [u8],
    ) -> Result<ReadStatus, SimError> {
        let step = self.begin(OperationKind::Read, Address::Page(page), None, column, buf.len())?;
        let at = self.locate(page);
        self.book_read(at.1, buf.len());
        let mut cut = None;
        let result = if step.cut.is_some() {
            cut = Some(Tear::Before);
            Err(NandErrorKind::Gone)
        } else if step.bus_tear().is_some() {
            Err(NandErrorKind::Bus)
        } else {
            self.harm_by_read(&step, at);
            let source = self.read_source(&step, page);
            self.fetch(source, column, buf)
        };
        self.end(step, cut, result.map(Outcome::from), buf)?;
        Ok(result.unwrap_or(ReadStatus::Clean))
    }

    pub(crate) fn recover_carefully(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, SimError> {
        let at = self.locate(page);
        let step = self.begin(OperationKind::Read, Address::Page(page), None, 0, buf.len())?;
        self.book_read(at.1, buf.len());
        let mut cut = None;
        let result = if step.cut.is_some() {
            cut = Some(Tear::Before);
            Err(NandErrorKind::Gone)
        } else {
            // The procedure finds what a lost MSB partner left in the cells; other harm it cannot heal.
            let partner_lost = self.role(at.1).partner.is_some_and(|partner| {
                let harms = self.blocks[at.0 as usize].harm(partner);
                harms.iter().any(|harm| harm.kind == HarmKind::Lost)
            });
            if partner_lost {
                self.fetch_raw(at, 0, buf);
                self.note_page_read(at);
                Ok(ReadStatus::from_bits(1, self.chip.geometry.ecc.correctable_bits))
            } else {
                self.fetch(page, 0, buf)
            }
        };
        self.end(step, cut, result.map(Outcome::from), buf)?;
        Ok(result.ok())
    }

    pub(crate) fn program_carefully(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), SimError> {
        let at = self.locate(page);
        if !self.off {
            self.check_program(at, column, data.len());
        }
        let step = self.begin(OperationKind::Program, Address::Page(page), None, column, data.len())?;
        let (cut, result) = self.program_cells(&step, page, column, data);
        self.book_program(at, data.len());
        self.end(step, cut, result.map(|()| Outcome::Done { corrected_bits: 0 }), data)
    }

    pub(crate) fn copy_carefully(&mut self, from: PageAddr, to: PageAddr) -> Result<ReadStatus, SimError> {
        let at = self.locate(to);
        let page_size = self.chip.geometry.page_size as usize;
        if !self.off {
            self.check_program(at, 0, page_size);
        }
        let step = self.begin(OperationKind::Copy, Address::Page(to), Some(from), 0, 0)?;
        let mut data = vec![0; page_size];
        let source = self.locate(from);
        for fired in &step.fired {
            self.harm_page_read(&step, source, fired);
        }
        let fetched = self.fetch(from, 0, &mut data);
        let (cut, result) = match fetched {
            // A cut is a cut, even if the page would not have been copied.
            Err(kind) if step.cut.is_none() => (None, Err(kind)),
            _ => self.program_cells(&step, to, 0, &data),
        };
        self.book_copy(source.1, at.1);
        let status = fetched.unwrap_or(ReadStatus::Clean);
        self.end(step, cut, result.map(|()| Outcome::from(status)), &[])?;
        Ok(status)
    }

    pub(crate) fn erase_carefully(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), SimError> {
        if !self.off {
            self.check_erase(block);
        }
        let mut step = self.begin(OperationKind::Erase, Address::Block(block), None, 0, 0)?;
        step.mode = mode;
        let mut cut = None;
        let result = if let Some(tear) = step.cut {
            cut = Some(self.tear_erase(step.number, block, mode, tear));
            Err(NandErrorKind::Gone)
        } else if self.erase_fails(&step, block) {
            self.half_erase(step.number, block.0, mode);
            self.blocks[block.0 as usize].condition = Condition::EraseFailed;
            Err(NandErrorKind::EraseFailed)
        } else if let Some(tear) = step.bus_tear() {
            self.tear_erase(step.number, block, mode, tear);
            Err(NandErrorKind::Bus)
        } else if step.has(Fault::NothingHappens) {
            self.forget_programs(block.0, mode);
            Ok(())
        } else {
            self.erase_cells(block.0, mode);
            self.harm_by_erase(&step, block);
            Ok(())
        };
        self.book_erase();
        self.end(step, cut, result.map(|()| Outcome::Done { corrected_bits: 0 }), &[])
    }

    pub(crate) fn check_bad_carefully(&mut self, block: BlockAddr) -> Result<bool, SimError> {
        let step = self.begin(OperationKind::CheckBad, Address::Block(block), None, 0, 1)?;
        let mut cut = None;
        if step.has(Fault::MarkInverted) {
            self.blocks[block.0 as usize].mark.0 |= Mark::INVERTED;
            self.touch(block.0, Dirty::CONTENT);
        }
        let reads_bad = self.blocks[block.0 as usize].mark.reads_bad();
        let result = if step.cut.is_some() {
            cut = Some(Tear::Before);
            Err(NandErrorKind::Gone)
        } else if step.bus_tear().is_some() {
            Err(NandErrorKind::Bus)
        } else if reads_bad {
            Ok(Outcome::Bad)
        } else {
            Ok(Outcome::Done { corrected_bits: 0 })
        };
        self.note_array_read(block.0);
        self.book_mark_check();
        self.end(step, cut, result, &[])?;
        Ok(reads_bad)
    }

    pub(crate) fn mark_bad_carefully(&mut self, block: BlockAddr) -> Result<(), SimError> {
        let step = self.begin(OperationKind::MarkBad, Address::Block(block), None, 0, 1)?;
        let mut cut = None;
        let (happens, result) = if let Some(tear) = step.cut {
            let applied = if tear == Tear::Before { tear } else { Tear::Complete };
            cut = Some(applied);
            (applied == Tear::Complete, Err(NandErrorKind::Gone))
        } else if step.has(Fault::ProgramFails) {
            (false, Err(NandErrorKind::ProgramFailed))
        } else if let Some(tear) = step.bus_tear() {
            (tear != Tear::Before, Err(NandErrorKind::Bus))
        } else {
            (!step.has(Fault::NothingHappens), Ok(()))
        };
        if happens {
            let mark = &mut self.blocks[block.0 as usize].mark;
            mark.0 = (mark.0 | Mark::GROWN) & !Mark::INVERTED;
        }
        let state = &mut self.blocks[block.0 as usize];
        state.counters.programs += 1;
        self.touch(block.0, Dirty::CONTENT);
        self.book_mark();
        self.end(step, cut, result.map(|()| Outcome::Done { corrected_bits: 0 }), &[])
    }

    /// Takes the next operation number and asks what is due.
    fn begin(
        &mut self,
        kind: OperationKind,
        address: Address,
        from: Option<PageAddr>,
        column: u32,
        length: usize,
    ) -> Result<Step, SimError> {
        let number = self.operations;
        if self.off || self.kept.is_unreadable() {
            return Err(SimError { number, operation: kind, address, kind: NandErrorKind::Gone });
        }
        self.operations += 1;
        let (block, page) = match address {
            Address::Page(page) => (self.chip.geometry.block_of(page), Some(page)),
            Address::Block(block) => (block, None),
        };
        let target = Target { number, kind, block, page };
        let fired = self.schedule.fire(self.seed, self.chip.geometry.pages_per_block, &target);
        let by_fault = fired.iter().find_map(|fired| match fired.fault {
            Fault::Cut(tear) => Some(tear),
            _ => None,
        });
        let cut = self.cuts.remove(&number).or(by_fault);
        let cut = cut.map(|tear| tear.unwrap_or_else(|| self.choose_tear(number, kind)));
        let mode = self.blocks[block.0 as usize].mode;
        Ok(Step { number, kind, block, page, from, column, length, mode, fired, cut })
    }

    /// Records how an operation ended.
    fn end(
        &mut self,
        step: Step,
        cut: Option<Tear>,
        result: Result<Outcome, NandErrorKind>,
        data: &[u8],
    ) -> Result<(), SimError> {
        let address = step.address();
        if let Some(tear) = cut {
            self.last_cut = Some(CutRecord { operation: step.number, kind: step.kind, address, tear });
            self.off = true;
            self.register = None;
        }
        if !matches!(step.kind, OperationKind::Read | OperationKind::CheckBad) {
            let index = step.page.map_or(0, |page| self.chip.geometry.index_in_block(page));
            let at = (step.block.0, index);
            self.note_history(at, step.kind, step.number, (step.column, step.length), result.err());
        }
        if let Some(mut observer) = self.observer.0.take() {
            let outcome = result.unwrap_or_else(Outcome::Failed);
            let delivered = step.kind != OperationKind::Read || result.is_ok();
            let operation = Operation {
                number: step.number,
                kind: step.kind,
                address,
                from: step.from,
                column: step.column,
                length: step.length as u32,
                mode: step.mode,
                cause: self.cause,
                outcome,
                clock_ns: self.clock_ns,
            };
            observer.operation(&operation, if delivered { data } else { &[] });
            self.observer.0 = Some(observer);
        }
        self.settle();
        match result {
            Ok(_) => Ok(()),
            Err(kind) => Err(SimError { number: step.number, operation: step.kind, address, kind }),
        }
    }

    /// Programs cells with whatever cut or fault is due; returns the tear applied and what the caller is told.
    fn program_cells(
        &mut self,
        step: &Step,
        page: PageAddr,
        column: u32,
        data: &[u8],
    ) -> (Option<Tear>, Result<(), NandErrorKind>) {
        let at = self.locate(page);
        if let Some(tear) = step.cut {
            return (Some(self.tear_program(step.number, at, column, data, tear)), Err(NandErrorKind::Gone));
        }
        let had_parts = self.blocks[at.0 as usize].page(at.1).is_held();
        let truly_bad = self.blocks[at.0 as usize].mark.is_bad();
        if truly_bad || step.has(Fault::ProgramFails) || self.program_wears_out(at.0, at.1) {
            // What a failed program leaves is what a cut would have left, partner and all.
            self.tear_program(step.number, at, column, data, self.failed_program());
            return (None, Err(NandErrorKind::ProgramFailed));
        }
        if let Some(tear) = step.bus_tear() {
            let before = self.blocks[at.0 as usize].page(at.1).programs;
            self.tear_program(step.number, at, column, data, tear);
            if self.blocks[at.0 as usize].page(at.1).programs == before {
                // Nothing is known of the page, so for the caller it is used up.
                self.note_program(at, column, data.len());
            }
            return (None, Err(NandErrorKind::Bus));
        }
        self.note_program(at, column, data.len());
        if step.has(Fault::NothingHappens) {
            return (None, Ok(()));
        }
        let target = self.locate(self.misdirected(step, page).unwrap_or(page));
        self.place(target, column, data);
        self.register = Some(page);
        self.harm_by_program(step, target, column, data.len(), had_parts);
        (None, Ok(()))
    }

    /// The tear that stands for what a failed program leaves.
    fn failed_program(&self) -> Tear {
        if self.chip.geometry.tear == TearScope::Pair { Tear::PairLost } else { Tear::SomeBitsLost }
    }

    /// Whether an erase fails: by a fault, for good after it failed once, by wear, or because the block is bad and only
    /// its mark does not say so.
    fn erase_fails(&self, step: &Step, block: BlockAddr) -> bool {
        let state = &self.blocks[block.0 as usize];
        state.condition == Condition::EraseFailed
            || state.mark.is_bad()
            || step.has(Fault::EraseFails)
            || self.erase_wears_out(block.0)
    }

    /// The page that a misdirected operation hits.
    fn misdirected(&self, step: &Step, page: PageAddr) -> Option<PageAddr> {
        let to = step.faults().find_map(|fault| match fault {
            Fault::Misdirected(to) => Some(to),
            _ => None,
        })?;
        to.or_else(|| {
            // One address line read wrongly; those that would lead out of the chip are not there.
            let geometry = &self.chip.geometry;
            let neighbours: Vec<PageAddr> =
                (0..32).map(|bit| PageAddr(page.0 ^ 1 << bit)).filter(|&other| geometry.contains_page(other)).collect();
            let mut stream = Stream::new(self.seed, Purpose::Target, step.number, 0);
            neighbours.get(stream.below(neighbours.len() as u32) as usize).copied()
        })
    }

    /// The page whose content a read delivers.
    fn read_source(&mut self, step: &Step, page: PageAddr) -> PageAddr {
        let source = if step.has(Fault::Stale) {
            self.register.unwrap_or(page)
        } else {
            self.misdirected(step, page).unwrap_or(page)
        };
        self.register = Some(source);
        source
    }

    fn harm_by_read(&mut self, step: &Step, at: (u32, u32)) {
        for fired in &step.fired {
            self.harm_page_read(step, at, fired);
            if let Fault::ReadDisturb(bits) = fired.fault {
                let state = &self.blocks[at.0 as usize];
                let pages = self.chip.geometry.pages_per_block;
                let others: Vec<u32> = (0..pages).filter(|&i| i != at.1 && state.page(i).is_held()).collect();
                let choice = Stream::new(self.seed, Purpose::Target, step.number, 1).below(others.len() as u32);
                if let Some(&other) = others.get(choice as usize) {
                    self.harm_once(at.0, other, self.in_one_codeword(step.number, other, HarmKind::Flips(bits)), fired);
                }
            }
        }
    }

    /// Does the lasting harm to a page that is read or copied.
    fn harm_page_read(&mut self, step: &Step, at: (u32, u32), fired: &Fired) {
        let (block, index) = at;
        let held = self.blocks[block as usize].page(index).is_held();
        let flips = |bits| self.in_one_codeword(step.number, index, HarmKind::Flips(bits));
        let harm = match fired.fault {
            Fault::BitFlips(bits) if held => flips(bits),
            Fault::ErasedZeros(bits) if !held => flips(bits),
            Fault::Uncorrectable => self.whole_page(HarmKind::Lost),
            Fault::Unstable if step.kind == OperationKind::Read => {
                self.whole_page(HarmKind::Unstable { since_ns: self.clock_ns, reads: 0 })
            }
            _ => return,
        };
        self.harm_once(block, index, harm, fired);
    }

    fn harm_by_program(&mut self, step: &Step, at: (u32, u32), column: u32, length: usize, had_parts: bool) {
        let (block, index) = at;
        let unstable = HarmKind::Unstable { since_ns: self.clock_ns, reads: 0 };
        let programmed = Harm { from: column, to: column + length as u32, kind: unstable };
        let state = &self.blocks[block as usize];
        let weak = state.condition == Condition::WeaklyErased
            || state.harm(index).iter().any(|harm| matches!(harm.kind, HarmKind::Weak | HarmKind::Unstable { .. }));
        if weak || step.has(Fault::Unstable) {
            self.harm(block, index, programmed);
        }
        for fired in &step.fired {
            if let (Fault::PartialDisturb(bits), true) = (fired.fault, had_parts) {
                // The first codeword that this program did not touch, of those programmed before.
                let size = self.chip.geometry.ecc.codeword_size;
                let from = if column > 0 { column - size.min(column) } else { column + length as u32 };
                self.harm_once(block, index, Harm { from, to: from + size, kind: HarmKind::Flips(bits) }, fired);
            }
        }
    }

    fn harm_by_erase(&mut self, step: &Step, block: BlockAddr) {
        for fired in &step.fired {
            let Fault::ErasedZeros(bits) = fired.fault else { continue };
            let geometry = self.chip.geometry;
            for index in 0..geometry.pages_per_block {
                if fired.page.is_none_or(|page| geometry.index_in_block(page) == index) {
                    self.harm(block.0, index, self.in_one_codeword(step.number, index, HarmKind::Flips(bits)));
                }
            }
        }
    }

    /// Harm to one codeword of a page, chosen by the seed.
    fn in_one_codeword(&self, number: u64, index: u32, kind: HarmKind) -> Harm {
        let geometry = &self.chip.geometry;
        let size = geometry.ecc.codeword_size;
        let mut stream = Stream::new(self.seed, Purpose::Target, number, u64::from(index) << 8 | 2);
        let from = size * stream.below(geometry.page_size / size);
        Harm { from, to: from + size, kind }
    }

    /// Does harm, but not again if the fault stands and did it before.
    fn harm_once(&mut self, block: u32, index: u32, harm: Harm, fired: &Fired) {
        let same = |other: &Harm| std::mem::discriminant(&other.kind) == std::mem::discriminant(&harm.kind);
        if !(fired.standing && self.blocks[block as usize].harm(index).iter().any(same)) {
            self.harm(block, index, harm);
        }
    }

    /// Notes that other data was in the way of a program. Error correction notices three times out of four.
    #[cold]
    pub(crate) fn note_collision(&mut self, at: (u32, u32), column: u32, length: usize) {
        let mut stream = Stream::new(self.seed, Purpose::Garbage, self.operations, 0);
        if stream.below(4) != 0 {
            self.harm(at.0, at.1, Harm { from: column, to: column + length as u32, kind: HarmKind::Lost });
        }
    }
}

impl From<ReadStatus> for Outcome {
    fn from(status: ReadStatus) -> Outcome {
        Outcome::Done { corrected_bits: status.corrected_bits() }
    }
}
