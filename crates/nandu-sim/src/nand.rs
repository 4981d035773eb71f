//! The contract, with the fast path: a few comparisons and one copy, when nothing can go wrong.

use nandu_nand::{
    BlockAddr, Cause, CellMode, CopyRule, ErrorType, Geometry, Nand, NandErrorKind, PageAddr, PageGroup, ProgramOrder,
    ReadStatus,
};

use crate::history::{History, HistoryEntry};
use crate::state::{Condition, Dirty, PageState};
use crate::{Address, Counters, OperationKind, Sim, SimError};

impl ErrorType for Sim {
    type Error = SimError;
}

impl Nand for Sim {
    fn geometry(&self) -> &Geometry {
        &self.chip.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, SimError> {
        let (block, index) = self.locate(page);
        self.check_columns(page, column, buf.len());
        let state = &mut self.blocks[block as usize];
        if self.operations >= self.quiet_until || !state.is_plain() {
            return self.read_carefully(page, column, buf);
        }
        self.operations += 1;
        match state.store.as_deref_mut() {
            Some(store) => {
                let held = &mut store.pages[index as usize];
                held.reads += 1;
                match held.flags & (PageState::HELD | PageState::AWAY) {
                    0 => buf.fill(0xFF),
                    PageState::HELD => {
                        let first = index as usize * self.chip.geometry.column_count() as usize + column as usize;
                        buf.copy_from_slice(&store.data[first..first + buf.len()]);
                    }
                    _ => {
                        self.kept.read(block, store.place(index), column, buf);
                        if self.kept.is_unreadable() {
                            return Err(self.gone(OperationKind::Read, page));
                        }
                    }
                }
            }
            None => buf.fill(0xFF),
        }
        state.counters.reads += 1;
        state.counters.reads_since_erase += 1;
        self.register = Some(page);
        self.touch(block, Dirty::COUNTERS);
        self.book_read(index, buf.len());
        Ok(ReadStatus::Clean)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), SimError> {
        let at = self.locate(page);
        if self.operations >= self.quiet_until || !self.blocks[at.0 as usize].is_plain() {
            return self.program_carefully(page, column, data);
        }
        let number = self.operations;
        if column > 0 || !self.program_whole(at, data) {
            self.check_program(at, column, data.len());
            self.note_program(at, column, data.len());
            self.place(at, column, data);
        }
        self.operations += 1;
        self.register = Some(page);
        self.note_history(at, OperationKind::Program, number, (column, data.len()), None);
        self.book_program(at, data.len());
        Ok(())
    }

    fn read_tagged(&mut self, page: PageAddr, data: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, SimError> {
        let geometry = &self.chip.geometry;
        let is_sound = data.len() == geometry.page_size as usize && tag.len() <= geometry.tag_size as usize;
        assert!(is_sound, "illegal use: page {page} is read with a tag that the chip does not have");
        let column = geometry.tag_column() as usize;
        let mut columns = vec![0; column + tag.len()];
        let status = self.read(page, 0, &mut columns)?;
        data.copy_from_slice(&columns[..data.len()]);
        tag.copy_from_slice(&columns[column..]);
        Ok(status)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), SimError> {
        let geometry = &self.chip.geometry;
        let is_sound = data.len() == geometry.page_size as usize && tag.len() <= geometry.tag_size as usize;
        assert!(is_sound, "illegal use: page {page} is programmed with a tag that the chip does not have");
        // One program from the first column on: the mark between the two stays as it is.
        let mut columns = vec![0xFF; geometry.tag_column() as usize + tag.len()];
        columns[..data.len()].copy_from_slice(data);
        columns[geometry.tag_column() as usize..].copy_from_slice(tag);
        self.program(page, 0, &columns)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), SimError> {
        self.locate_block(block);
        if !self.chip.geometry.supports(mode) && !self.off {
            // A caller can know the modes beforehand, but the contract lets it try: nothing happens.
            return Err(SimError {
                number: self.operations,
                operation: OperationKind::Erase,
                address: Address::Block(block),
                kind: NandErrorKind::Unsupported,
            });
        }
        if self.operations >= self.quiet_until || !self.blocks[block.0 as usize].is_plain() {
            return self.erase_carefully(block, mode);
        }
        let number = self.operations;
        self.operations += 1;
        self.erase_cells(block.0, mode);
        self.note_history((block.0, 0), OperationKind::Erase, number, (0, 0), None);
        self.book_erase();
        Ok(())
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, SimError> {
        self.locate_block(block);
        self.check_bad_carefully(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), SimError> {
        self.locate_block(block);
        self.mark_bad_carefully(block)
    }

    fn copy(&mut self, from: PageAddr, to: PageAddr) -> Result<Option<ReadStatus>, SimError> {
        self.locate(from);
        self.locate(to);
        if self.chip.geometry.copies == CopyRule::Never {
            return Ok(None);
        }
        self.check_copy(from, to);
        self.copy_carefully(from, to).map(Some)
    }

    fn recover_lsb(&mut self, page: PageAddr, buf: &mut [u8]) -> Result<Option<ReadStatus>, SimError> {
        self.locate(page);
        self.check_columns(page, 0, buf.len());
        if !self.chip.lsb_recovery {
            return Ok(None);
        }
        self.recover_carefully(page, buf)
    }

    fn attribute(&mut self, cause: Cause) -> Cause {
        std::mem::replace(&mut self.cause, cause)
    }
}

impl Sim {
    /// Programs the main area of an untouched page of a plain block, if that is what is asked and it is legal. What
    /// [`check_program`](Sim::check_program), [`note_program`](Sim::note_program) and [`place`](Sim::place) would do,
    /// at once: nearly all programs are such.
    #[inline]
    fn program_whole(&mut self, at: (u32, u32), data: &[u8]) -> bool {
        let (block, index) = at;
        let geometry = &self.chip.geometry;
        let state = &mut self.blocks[block as usize];
        let in_order = index >= state.next_index || geometry.order == ProgramOrder::Any;
        let in_mode = state.mode == CellMode::Mlc || self.roles[index as usize].group == PageGroup::Lsb;
        if data.len() != geometry.page_size as usize || !in_order || !in_mode {
            return false;
        }
        let store = state.store.get_or_insert_with(|| self.pool.take(&self.chip));
        if store.data.is_empty() {
            store.data = self.pool.take_data(&self.chip);
        }
        let page = &mut store.pages[index as usize];
        if page.written != 0 || page.programs != 0 || page.flags != 0 {
            return false;
        }
        page.written = u64::MAX;
        page.programmed_ns = self.clock_ns;
        page.programs = 1;
        page.flags = PageState::HELD;
        let columns = geometry.column_count() as usize;
        let (main, spare) = store.data[index as usize * columns..][..columns].split_at_mut(data.len());
        main.copy_from_slice(data);
        spare.fill(0xFF);
        state.counters.programs += 1;
        state.next_index = state.next_index.max(index + 1);
        self.touch(block, Dirty::CONTENT);
        true
    }

    /// Notes a program in the caller's view of the page.
    #[inline]
    pub(crate) fn note_program(&mut self, at: (u32, u32), column: u32, length: usize) {
        let (units, spare) = self.units(column, length);
        let state = &mut self.blocks[at.0 as usize];
        if state.store.is_none() {
            state.store = Some(self.pool.take(&self.chip));
        }
        state.counters.programs += 1;
        state.next_index = state.next_index.max(at.1 + 1);
        if let Some(store) = state.store.as_deref_mut() {
            let page = &mut store.pages[at.1 as usize];
            page.written |= units;
            page.programs = page.programs.saturating_add(1);
            page.programmed_ns = self.clock_ns;
            page.flags |= spare;
        }
        self.touch(at.0, Dirty::CONTENT);
    }

    /// Programs cells: ones become what the data says, zeros stay. Where other data was in the way, error correction
    /// may notice.
    #[inline]
    pub(crate) fn place(&mut self, at: (u32, u32), column: u32, data: &[u8]) {
        let (first, end) = (column as usize, column as usize + data.len());
        let was_held = self.blocks[at.0 as usize].page(at.1).is_held();
        let bytes = self.content_mut(at);
        if was_held {
            let cells = &mut bytes[first..end];
            for (cell, byte) in cells.iter_mut().zip(data) {
                *cell &= byte;
            }
            if cells != data {
                self.note_collision(at, column, data.len());
            }
        } else {
            bytes[..first].fill(0xFF);
            bytes[first..end].copy_from_slice(data);
            bytes[end..].fill(0xFF);
            self.note_held(at);
        }
        self.touch(at.0, Dirty::CONTENT);
    }

    /// Notes that the cells of a page hold what the store says.
    pub(crate) fn note_held(&mut self, at: (u32, u32)) {
        if let Some(store) = &mut self.blocks[at.0 as usize].store {
            store.pages[at.1 as usize].flags |= PageState::HELD;
        }
    }

    /// What an operation says whose page the image does not have any more; as all after it.
    #[cold]
    fn gone(&mut self, operation: OperationKind, page: PageAddr) -> SimError {
        self.settle();
        let address = Address::Page(page);
        SimError { number: self.operations - 1, operation, address, kind: NandErrorKind::Gone }
    }

    /// Makes a block erased, for the caller and in its cells.
    pub(crate) fn erase_cells(&mut self, block: u32, mode: CellMode) {
        let state = &mut self.blocks[block as usize];
        if let Some(store) = state.store.take() {
            self.kept.leave(&store);
            self.pool.give(store);
        }
        state.damage = None;
        state.next_index = 0;
        state.mode = mode;
        state.condition = Condition::Erased;
        state.counters.erases += 1;
        state.counters.reads_since_erase = 0;
        self.touch(block, Dirty::CONTENT);
    }

    /// Makes a block erased for the caller; its cells keep what they hold.
    pub(crate) fn forget_programs(&mut self, block: u32, mode: CellMode) {
        let state = &mut self.blocks[block as usize];
        if let Some(store) = state.store.as_deref_mut() {
            for page in &mut store.pages {
                let flags = page.flags & (PageState::HELD | PageState::AWAY);
                *page = PageState { flags, ..PageState::ERASED };
            }
        }
        state.next_index = 0;
        state.mode = mode;
        state.condition = Condition::Erased;
        state.counters.reads_since_erase = 0;
        self.touch(block, Dirty::CONTENT);
    }

    /// The program units in a range of columns, and the flag of the spare area if it reaches there.
    #[inline]
    pub(crate) fn units(&self, column: u32, length: usize) -> (u64, u8) {
        let geometry = &self.chip.geometry;
        let end = column + length as u32;
        let spare = if end > geometry.page_size { PageState::SPARE_WRITTEN } else { 0 };
        if length as u32 >= geometry.page_size {
            return (u64::MAX, spare);
        }
        let first = column.min(geometry.page_size) / geometry.program_unit;
        let count = end.min(geometry.page_size) / geometry.program_unit - first;
        // A whole page was dealt with above, so that there are fewer than 64 units here.
        (if count == 0 { 0 } else { ((1 << count) - 1) << first }, spare)
    }

    /// Keeps an operation in the history of its block.
    #[inline]
    pub(crate) fn note_history(
        &mut self,
        at: (u32, u32),
        kind: OperationKind,
        number: u64,
        range: (u32, usize),
        error: Option<NandErrorKind>,
    ) {
        let cause = self.cause;
        let state = &mut self.blocks[at.0 as usize];
        let mode = state.mode;
        state.history.get_or_insert_with(|| Box::new(History::EMPTY)).note(HistoryEntry {
            number,
            column: range.0,
            length: range.1 as u32,
            index: at.1 as u16,
            kind,
            cause,
            mode,
            error,
        });
    }

    #[inline]
    fn book(&mut self, duration_ns: u64, count: impl Fn(&mut Counters)) {
        self.clock_ns += duration_ns;
        for counters in [&mut self.counters, &mut self.ledger.entries[self.cause as usize]] {
            counters.busy_ns += duration_ns;
            count(counters);
        }
    }

    #[inline]
    pub(crate) fn book_read(&mut self, index: u32, length: usize) {
        let timing = &self.chip.timing;
        let duration_ns =
            u64::from(timing.read_ns(self.roles[index as usize].group)) + timing.bus.transfer_ns(length as u64);
        self.book(duration_ns, |counters| {
            counters.reads += 1;
            counters.bytes_out += length as u64;
        });
    }

    #[inline]
    pub(crate) fn book_program(&mut self, at: (u32, u32), length: usize) {
        let timing = &self.chip.timing;
        let duration_ns =
            u64::from(timing.program_ns(self.roles[at.1 as usize].group)) + timing.bus.transfer_ns(length as u64);
        let partial = u64::from((length as u32) < self.chip.geometry.page_size);
        self.book(duration_ns, |counters| {
            counters.programs += 1;
            counters.partial_programs += partial;
            counters.bytes_in += length as u64;
        });
    }

    pub(crate) fn book_erase(&mut self) {
        let timing = &self.chip.timing;
        self.book(u64::from(timing.erase_ns) + timing.bus.transfer_ns(0), |counters| counters.erases += 1);
    }

    pub(crate) fn book_mark_check(&mut self) {
        let timing = &self.chip.timing;
        self.book(u64::from(timing.read_lsb_ns) + timing.bus.transfer_ns(1), |counters| {
            counters.reads += 1;
            counters.mark_checks += 1;
            counters.bytes_out += 1;
        });
    }

    pub(crate) fn book_mark(&mut self) {
        let timing = &self.chip.timing;
        self.book(u64::from(timing.program_lsb_ns) + timing.bus.transfer_ns(1), |counters| {
            counters.programs += 1;
            counters.marks += 1;
            counters.bytes_in += 1;
        });
    }

    pub(crate) fn book_copy(&mut self, from: u32, to: u32) {
        let timing = &self.chip.timing;
        let duration_ns = u64::from(timing.read_ns(self.roles[from as usize].group))
            + u64::from(timing.program_ns(self.roles[to as usize].group))
            + timing.bus.transfer_ns(0);
        self.book(duration_ns, |counters| {
            counters.reads += 1;
            counters.programs += 1;
            counters.copies += 1;
        });
    }
}
