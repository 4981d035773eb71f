//! The simulator against a reference model of a chip, over random legal sequences.

use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, PageAddr, ProgramOrder, ReadStatus};
use nandu_sim::{Chip, Sim};
use proptest::collection::vec;
use proptest::prelude::*;

/// A chip, as simply as it can be said: bytes that a program sets and an erase makes ones.
struct Model(Vec<Vec<u8>>);

impl Model {
    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) {
        self.0[page.0 as usize][column as usize..][..data.len()].copy_from_slice(data);
    }
    fn erase(&mut self, pages: std::ops::Range<u32>) {
        pages.for_each(|page| self.0[page as usize].fill(0xFF));
    }
    fn read(&self, page: PageAddr, column: u32, length: usize) -> &[u8] {
        &self.0[page.0 as usize][column as usize..][..length]
    }
}

/// Raw numbers, which [`Run`] turns into an operation that is legal at that moment.
#[derive(Clone, Copy, Debug)]
struct Action {
    kind: u8,
    block: u32,
    place: u32,
    column: u32,
    byte: u8,
}

/// What the caller has to remember of a block in order to stay within the rules.
#[derive(Clone)]
struct Rules {
    mode: Option<CellMode>,
    next: u32,
    programs: Vec<u8>,
    written: Vec<Vec<bool>>,
}

struct Run {
    sim: Sim,
    model: Model,
    rules: Vec<Rules>,
    geometry: Geometry,
    programs: u64,
    erases: u64,
}

impl Run {
    fn new(chip: Chip) -> Run {
        let geometry = chip.geometry;
        let units = (geometry.page_size / geometry.program_unit) as usize;
        let pages = geometry.pages_per_block as usize;
        let fresh = Rules { mode: None, next: 0, programs: vec![0; pages], written: vec![vec![false; units]; pages] };
        Run {
            sim: Sim::new(chip),
            model: Model(vec![vec![0xFF; geometry.column_count() as usize]; geometry.page_count() as usize]),
            rules: vec![fresh; geometry.block_count as usize],
            geometry,
            programs: 0,
            erases: 0,
        }
    }

    fn act(&mut self, action: Action) {
        let block = BlockAddr(action.block % self.geometry.block_count);
        match action.kind {
            0 => self.erase(block, action),
            1..=6 => self.program(block, action),
            7 => self.copy(block, action),
            _ => self.read(block, action),
        }
    }

    fn erase(&mut self, block: BlockAddr, action: Action) {
        let mode = if action.byte.is_multiple_of(2) || !self.geometry.supports(CellMode::Mlc) {
            CellMode::Slc
        } else {
            CellMode::Mlc
        };
        self.sim.erase(block, mode).unwrap();
        let first = self.geometry.first_page(block).0;
        self.model.erase(first..first + self.geometry.pages_per_block);
        let rules = &mut self.rules[block.0 as usize];
        rules.mode = Some(mode);
        rules.next = 0;
        rules.programs.fill(0);
        rules.written.iter_mut().for_each(|units| units.fill(false));
        self.erases += 1;
    }

    /// A page of the block that may be programmed, and the columns of it that may.
    fn legal(&self, block: BlockAddr, action: Action) -> Option<(u32, u32, u32)> {
        let rules = &self.rules[block.0 as usize];
        let mode = rules.mode?;
        let low = if self.geometry.order == ProgramOrder::Any { 0 } else { rules.next.saturating_sub(1) };
        let candidates: Vec<u32> = (low..self.geometry.pages_per_block)
            .filter(|&index| self.geometry.is_used_in_mode(mode, index))
            .filter(|&index| rules.programs[index as usize] < self.geometry.programs_per_page)
            .filter(|&index| rules.written[index as usize].contains(&false))
            .collect();
        // Near the frontier, so that blocks fill up.
        let index = *candidates.get(action.place as usize % 3)?;
        let units = &rules.written[index as usize];
        let free: Vec<usize> = (0..units.len()).filter(|&unit| !units[unit]).collect();
        let first = free[action.column as usize % free.len()];
        let count = units[first..].iter().take_while(|&&written| !written).count();
        let count = 1 + action.byte as usize % count;
        Some((index, first as u32, count as u32))
    }

    fn program(&mut self, block: BlockAddr, action: Action) {
        let Some((index, first, count)) = self.legal(block, action) else { return self.erase(block, action) };
        let page = self.geometry.page_at(block, index);
        let unit = self.geometry.program_unit;
        let data: Vec<u8> = (0..count * unit).map(|at| action.byte ^ (at * 31) as u8).collect();
        self.sim.program(page, first * unit, &data).unwrap();
        self.model.program(page, first * unit, &data);
        let rules = &mut self.rules[block.0 as usize];
        rules.next = rules.next.max(index + 1);
        rules.programs[index as usize] += 1;
        rules.written[index as usize][first as usize..][..count as usize].fill(true);
        self.programs += 1;
    }

    fn copy(&mut self, block: BlockAddr, action: Action) {
        let Some((index, ..)) = self.legal(block, action) else { return };
        let to = self.geometry.page_at(block, index);
        let from = PageAddr(action.column % self.geometry.page_count());
        if self.rules[block.0 as usize].written[index as usize].contains(&true) || from == to {
            return;
        }
        if self.sim.copy(from, to).unwrap().is_some() {
            let main = self.model.read(from, 0, self.geometry.page_size as usize).to_vec();
            self.model.program(to, 0, &main);
            let rules = &mut self.rules[block.0 as usize];
            rules.next = rules.next.max(index + 1);
            rules.programs[index as usize] += 1;
            rules.written[index as usize].fill(true);
            self.programs += 1;
        }
    }

    fn read(&mut self, block: BlockAddr, action: Action) {
        let page = self.geometry.page_at(block, action.place % self.geometry.pages_per_block);
        let column = action.column % self.geometry.column_count();
        let length = (usize::from(action.byte) * 5 + 1).min((self.geometry.column_count() - column) as usize);
        let mut buf = vec![0; length];
        assert_eq!(self.sim.read(page, column, &mut buf).unwrap(), ReadStatus::Clean);
        assert_eq!(buf, self.model.read(page, column, length), "page {page}, column {column}");
    }
}

/// A chip with pages of eight units, of which three programs may be made.
const PARTIAL: Chip = {
    let geometry = Geometry {
        page_size: 512,
        program_unit: 64,
        programs_per_page: 3,
        ecc: nandu_nand::Ecc { codeword_size: 64, correctable_bits: 1 },
        copies: nandu_nand::CopyRule::Die,
        ..Chip::TINY.geometry
    };
    Chip { name: "partial", geometry, ..Chip::TINY }
};

const ANY_ORDER: Chip = Chip { geometry: Geometry { order: ProgramOrder::Any, ..PARTIAL.geometry }, ..PARTIAL };

fn chips() -> impl Strategy<Value = Chip> {
    prop::sample::select(vec![Chip::TINY, Chip::TINY_MLC, PARTIAL, ANY_ORDER].leak() as &[Chip])
        .prop_map(|chip| chip.with_blocks(4))
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = (0u8..10, 0u32..4, any::<u32>(), any::<u32>(), any::<u8>())
        .prop_map(|(kind, block, place, column, byte)| Action { kind, block, place, column, byte });
    vec(action, 1..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_legal_sequence_reads_as_the_model_says(chip in chips(), actions in actions(), watched: bool) {
        let mut run = Run::new(chip);
        if watched {
            // A fault that never comes keeps the chip off its fast path.
            run.sim.inject(nandu_sim::Fault::Stale, nandu_sim::Trigger::Nth(u64::MAX));
        }
        for action in actions {
            run.act(action);
        }
        for page in (0..run.geometry.page_count()).map(PageAddr) {
            let columns = run.geometry.column_count() as usize;
            prop_assert_eq!(run.sim.peek(page), run.model.read(page, 0, columns));
        }
        prop_assert_eq!(run.sim.counters().programs, run.programs);
        prop_assert_eq!(run.sim.counters().erases, run.erases);
        prop_assert_eq!(run.sim.ledger().total(), *run.sim.counters());
    }
}
