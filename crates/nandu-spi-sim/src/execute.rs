//! What commands do to the array, and when.

use std::borrow::BorrowMut;

use nandu_nand::{CellMode, CopyRule, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_sim::{Fault, OperationKind, Sim, SimError, Tear, Trigger};
use nandu_spi::{DieSelect, MarkPages, PlaneSelect, command};

use crate::SpiSim;
use crate::encode::Found;
use crate::info;
use crate::unit::{CONFIG_OTP_LOCK, Cache, Filled, Pending, Work};

/// How long a reset takes when nothing goes on, nanoseconds.
const RESET_NS: u64 = 5_000;

/// How many times as long as usual a slow operation takes. Data sheets name two to three times the usual as the most.
const SLOW: u64 = 3;

/// How long a reset takes that ends a program or an erase, nanoseconds.
const RESET_BUSY_NS: u64 = 500_000;

impl<S: BorrowMut<Sim>> SpiSim<S> {
    /// Does what ended by now, in its order, and moves the chip's clock.
    pub(crate) fn settle(&mut self) {
        if self.sim().is_off() {
            self.lost_power = true;
            return;
        }
        loop {
            let pending = |index: usize| self.units[index].pending.filter(|pending| pending.end_ns <= self.now_ns);
            let ended = (0..self.units.len()).filter_map(|index| Some((index, pending(index)?)));
            let Some((index, pending)) = ended.min_by_key(|(_, pending)| pending.end_ns) else { break };
            self.units[index].pending = None;
            self.complete(index, pending);
            if self.lost_power {
                return;
            }
        }
        // The chip's clock stays where an operation began, since it counts the operation's time itself.
        let begins = self.units.iter().filter_map(|unit| unit.pending);
        let begins = begins.map(|pending| pending.end_ns - pending.duration_ns);
        let until_ns = begins.fold(self.now_ns, u64::min);
        let behind_ns = until_ns.saturating_sub(self.sim().clock_ns());
        self.sim_mut().advance_ns(behind_ns);
    }

    /// Does what a die was busy with.
    fn complete(&mut self, index: usize, pending: Pending) {
        let start_ns = pending.end_ns.min(self.now_ns).saturating_sub(pending.duration_ns);
        let early_ns = start_ns.saturating_sub(self.sim().clock_ns());
        self.sim_mut().advance_ns(early_ns);
        let (sim, unit) = (self.sim.borrow_mut(), &mut self.units[index]);
        let result = match pending.work {
            Work::Read(page) => {
                let result = sim.read(page, 0, &mut unit.cache.bytes);
                self.fill(index, page, result);
                result.map(|_| ())
            }
            Work::ReadInfo(row) => {
                let held = info::page(&self.part, &sim.chip().geometry, row);
                unit.cache.bytes.fill(0xFF);
                unit.cache.bytes[..held.len()].copy_from_slice(&held);
                unit.cache.refill(Filled::Info);
                // There is no parity on these pages: what the bits say has no meaning, and must not be believed.
                unit.found = if held.is_empty() { Found::Clean } else { Found::Uncorrectable };
                Ok(())
            }
            Work::Program { page, column, size } => {
                let data = &unit.cache.bytes[column as usize..(column + size) as usize];
                if !unit.has_ecc() {
                    self.uncoded.insert(page.0);
                }
                sim.program(page, column, data)
            }
            Work::Mark(block) => sim.mark_bad(block),
            Work::Erase(block) => {
                let first = sim.chip().geometry.first_page(block).0;
                let pages = first..first + sim.chip().geometry.pages_per_block;
                self.uncoded.retain(|page| !pages.contains(page));
                sim.erase(block, CellMode::Slc)
            }
            Work::Reset => {
                let (lock, config) = (unit.lock, unit.config);
                unit.wake(&self.part);
                if self.keeps_registers {
                    (unit.lock, unit.config) = (lock, config);
                }
                Ok(())
            }
        };
        let unit = &mut self.units[index];
        unit.after_read = matches!(pending.work, Work::Read(_) | Work::ReadInfo(_));
        if matches!(pending.work, Work::Program { .. } | Work::Mark(_) | Work::Erase(_)) {
            unit.write_enabled = false;
        }
        match result.map_err(|error| error.kind()) {
            Ok(()) | Err(NandErrorKind::Uncorrectable) => {}
            Err(NandErrorKind::ProgramFailed) => unit.program_failed = true,
            Err(NandErrorKind::EraseFailed) => unit.erase_failed = true,
            Err(NandErrorKind::Gone) => self.lost_power = true,
            Err(_) => unit.bus_failed = true,
        }
    }

    /// Finishes the cache after a page was read into it: the mark, and what error correction leaves.
    fn fill(&mut self, index: usize, page: PageAddr, result: Result<ReadStatus, SimError>) {
        let unit = &mut self.units[index];
        unit.cache.refill(Filled::Page(page));
        unit.found = match result.map_err(|error| error.kind()) {
            Ok(status) => match u8::try_from(status.corrected_bits()).unwrap_or(u8::MAX) {
                0 => Found::Clean,
                bits => Found::Corrected(bits),
            },
            Err(NandErrorKind::Uncorrectable) => Found::Uncorrectable,
            Err(_) => {
                unit.cache.filled = Filled::Nothing;
                return;
            }
        };
        if !unit.has_ecc() {
            // Nobody corrected anything, and nobody says so: the cells as they are, with the bits that flipped.
            let bits = match unit.found {
                Found::Clean => 0,
                Found::Corrected(bits) => usize::from(bits),
                Found::Uncorrectable => 2 * usize::from(self.part.ecc_bits) + 1,
            };
            unit.cache.bytes = self.sim.borrow().peek(page);
            (0..bits).for_each(|bit| unit.cache.bytes[(page.0 as usize * 7 + bit * 61) % 512] ^= 1);
            unit.found = Found::Clean;
        } else if self.uncoded.contains(&page.0) {
            unit.found = Found::Uncorrectable;
        } else if let (Found::Corrected(_), Some(protected)) = (unit.found, self.part.protected) {
            let spare = &mut unit.cache.bytes[self.part.page_size as usize..];
            for (at, byte) in (0u16..).zip(spare).skip(2) {
                if !protected.iter().any(|range| (range.offset..range.offset + range.size).contains(&at)) {
                    *byte ^= 1 << (page.0 % 8);
                }
            }
        }
        self.show_mark(index, page);
    }

    /// Shows the mark of a bad block where the part has it.
    fn show_mark(&mut self, index: usize, page: PageAddr) {
        let geometry = self.geometry();
        let (block, place) = (geometry.block_of(page), geometry.index_in_block(page));
        if place >= self.part.marks.count() {
            return;
        }
        let column = self.part.page_size as usize;
        let state = self.sim().block_state(block);
        if !state.reads_bad {
            if self.units[index].found == Found::Uncorrectable {
                // What a tear left of the page is not there: nobody programs the mark of a good block.
                self.units[index].cache.bytes[column] = 0xFF;
            }
            return;
        }
        // The factory marks one page of two, or both. Which is left to the block's number, so that each is met.
        let is_here = match (self.part.marks, state.factory_bad, block.0 % 3) {
            (MarkPages::First, ..) | (_, false, _) | (_, _, 2) => true,
            (_, _, only) => place == only,
        };
        self.units[index].cache.bytes[column] = if is_here { 0 } else { 0xFF };
    }

    /// The page of a row in the selected die.
    fn page(&self, row: u32) -> PageAddr {
        let count = self.geometry().page_count() / self.units.len() as u32;
        if row >= count {
            self.refuse(&format!("row {row} is outside the part, which has {count} pages in what is selected"));
        }
        PageAddr(self.selected as u32 * count + row)
    }

    fn begin(&mut self, work: Work, duration_ns: u64) {
        self.begun += 1;
        let is_slow = self.slow_every > 0 && self.begun.is_multiple_of(self.slow_every);
        let busy_ns = if is_slow { SLOW * duration_ns } else { duration_ns };
        let end_ns = if self.stuck { u64::MAX } else { self.now_ns + busy_ns };
        self.unit().pending = Some(Pending { work, duration_ns, end_ns });
    }

    /// Page read to cache.
    pub(crate) fn page_read(&mut self, row: u32) {
        let work = if self.unit().is_otp() { Work::ReadInfo(row) } else { Work::Read(self.page(row)) };
        let duration_ns = u64::from(self.sim().chip().timing.read_lsb_ns);
        self.begin(work, duration_ns);
    }

    /// Looks whether a program or an erase has what both need. Who may not know that it has not is not blamed: then the part does
    /// nothing, or reports a failure.
    fn may_write(&mut self, is_erase: bool) -> bool {
        let what = if is_erase { "erase" } else { "program" };
        let (lock, is_excused, unit) = (self.unit().lock, self.excused, self.unit());
        let reason = if !unit.write_enabled {
            format!("{what} without write enable")
        } else if unit.is_otp() {
            format!("{what} while the one-time pages stand in for the array (register B0h)")
        } else if unit.is_protected() {
            format!("{what} of a protected block (register A0h is {lock:02X}h)")
        } else {
            (unit.erase_failed, unit.program_failed) = (false, false);
            return true;
        };
        if !is_excused {
            self.refuse(&reason);
        }
        if unit.write_enabled {
            unit.write_enabled = false;
            (unit.erase_failed, unit.program_failed) = (is_erase, !is_erase);
        }
        false
    }

    /// Block erase.
    pub(crate) fn block_erase(&mut self, row: u32) {
        if !self.may_write(true) {
            return;
        }
        let block = self.geometry().block_of(self.page(row));
        if let Err(why) = self.sim().may_erase(block) {
            self.refuse_block(&format!("erase of block {block}: {why}"), block);
        }
        let duration_ns = u64::from(self.sim().chip().timing.erase_ns);
        self.begin(Work::Erase(block), duration_ns);
    }

    /// Program execute: a program of what was loaded, a copy of the page that was read, or a mark.
    pub(crate) fn program_execute(&mut self, row: u32) {
        if !self.may_write(false) {
            return;
        }
        let page = self.page(row);
        let geometry = *self.geometry();
        let block = geometry.block_of(page);
        let cache = &self.units[self.selected].cache;
        if self.excused && !matches!(cache.filled, Filled::Loaded) {
            // The load was not heard.
            return;
        }
        if let PlaneSelect::ColumnBit(bit) = self.part.plane_select
            && let Some(plane) = cache.planes.iter().find(|&&plane| plane != geometry.plane_of(block))
        {
            let right = geometry.plane_of(block);
            self.refuse(&format!("load with {plane} as plane bit {bit}, and row {row} is in plane {right}"));
        }
        let range = match cache.filled {
            Filled::Nothing => self.refuse("program of a cache that holds nothing since power-up or reset"),
            Filled::Info => self.refuse("program of a cache that holds a page from behind the array"),
            Filled::Page(from) => {
                if self.sim().may_copy(from, page).is_err() {
                    let place = |page| {
                        let block = geometry.block_of(page);
                        format!("block {block} (plane {} of die {})", geometry.plane_of(block), geometry.die_of(block))
                    };
                    let reason = format!(
                        "copy of page {from} in {} to page {page} in {}: the part copies {}",
                        place(from),
                        place(page),
                        copies(geometry.copies),
                    );
                    self.refuse_block(&reason, block);
                }
                (0, geometry.column_count())
            }
            Filled::Loaded => match cache.loaded {
                None => self.refuse("program although nothing was loaded"),
                // What was not loaded is what the cache held before.
                Some(_) if self.part.programs_per_page == 1 => (0, geometry.column_count()),
                Some(range) => range,
            },
        };
        let mark = cache.bytes[geometry.page_size as usize];
        let is_mark = mark != 0xFF && (range.0..range.1).contains(&geometry.page_size);
        let duration_ns = u64::from(self.sim().chip().timing.program_lsb_ns);
        if is_mark && geometry.index_in_block(page) < self.part.marks.count() {
            self.begin(Work::Mark(block), duration_ns);
            return;
        }
        if range.0 >= geometry.page_size {
            self.refuse_block("program of spare bytes alone: not simulated but for the mark of a block", block);
        }
        // Error correction takes whole codewords: what was not loaded of the first and the last is ones.
        let unit = geometry.program_unit;
        let column = range.0 / unit * unit;
        // Ones at the end of the spare area, which a driver loads because not every part does, program nothing.
        let spare = &cache.bytes[geometry.page_size as usize..range.1.max(geometry.page_size) as usize];
        let end = match spare.iter().rposition(|&byte| byte != 0xFF) {
            Some(last) => geometry.page_size + last as u32 + 1,
            None => range.1.min(geometry.page_size).next_multiple_of(unit),
        };
        if let Err(why) = self.sim().may_program(page, column, (end - column) as usize) {
            let index = geometry.index_in_block(page);
            let reason =
                format!("program of page {page} (page {index} of block {block}), columns {column}..{end}: {why}");
            self.refuse_block(&reason, block);
        }
        self.begin(Work::Program { page, column, size: end - column }, duration_ns);
    }

    /// The power is gone for a moment.
    pub(crate) fn lose_power(&mut self) {
        (0..self.units.len()).for_each(|index| {
            self.tear(index);
        });
        self.wake();
        self.excused = true;
    }

    /// Tears what a die is busy with; says whether that was a program or an erase.
    fn tear(&mut self, index: usize) -> bool {
        let pending = self.units[index].pending.take();
        let kind = pending.and_then(|pending| match pending.work {
            Work::Program { .. } => Some(OperationKind::Program),
            Work::Mark(_) => Some(OperationKind::MarkBad),
            Work::Erase(_) => Some(OperationKind::Erase),
            Work::Read(_) | Work::ReadInfo(_) | Work::Reset => None,
        });
        if let (Some(pending), Some(kind)) = (pending, kind) {
            let number = self.sim().operation_count();
            let tears: Vec<Tear> = Tear::all_for(kind, self.geometry()).collect();
            let tear = tears[(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % tears.len()];
            let fault = self.sim_mut().inject(Fault::Bus(tear), Trigger::Operation(number));
            self.complete(index, Pending { end_ns: self.now_ns, ..pending });
            self.sim_mut().withdraw(fault);
        }
        kind.is_some()
    }

    /// Reset: what goes on is torn.
    pub(crate) fn reset(&mut self) {
        let is_torn = self.tear(self.selected);
        self.excused = false;
        let unit = self.unit();
        unit.bus_failed = false;
        unit.cache.filled = Filled::Nothing;
        // A reset ends by itself, whatever went on before.
        self.stuck = false;
        self.begin(Work::Reset, if is_torn { RESET_BUSY_NS } else { RESET_NS });
    }

    /// Set feature.
    pub(crate) fn set_feature(&mut self, register: u8, value: u8) {
        let part = self.part;
        if register == command::REGISTER_CONFIG && value & CONFIG_OTP_LOCK != 0 {
            self.refuse("register B0h is set so that the one-time pages are locked for ever");
        }
        if register == command::REGISTER_DIE && part.die_select == DieSelect::Register {
            self.select(value >> 6 & 1);
        } else if !self.unit().set_register(&part, register, value) {
            self.refuse(&format!("register {register:02X}h of the part cannot be set, or there is none"));
        }
    }

    /// Selects a die.
    pub(crate) fn select(&mut self, die: u8) {
        if usize::from(die) >= self.units.len() {
            self.refuse(&format!("die {die} is selected, and the part has {}", self.units.len()));
        }
        self.selected = usize::from(die);
    }
}

impl Cache {
    /// Notes that the cache was filled anew.
    pub(crate) fn refill(&mut self, filled: Filled) {
        self.filled = filled;
        self.loaded = None;
        self.planes.clear();
    }

    /// Puts bytes into the cache, from a column on.
    pub(crate) fn load(&mut self, column: u32, bytes: &[u8]) {
        self.bytes[column as usize..column as usize + bytes.len()].copy_from_slice(bytes);
        let end = column + bytes.len() as u32;
        let (first, last) = self.loaded.unwrap_or((column, end));
        self.loaded = Some((first.min(column), last.max(end)));
    }
}

/// What a rule lets, in words.
const fn copies(rule: CopyRule) -> &'static str {
    match rule {
        CopyRule::Never => "nothing inside, or its sources do not say",
        CopyRule::Die => "inside a die",
        CopyRule::Plane => "inside a plane",
        CopyRule::Parity => "from even to even and from odd to odd blocks",
    }
}
