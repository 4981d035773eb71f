//! Chips, options, and an index that can be kept in a variable.

use std::ops::{Bound, ControlFlow};

use nandu_index::suite::Subject;
use nandu_inpage::{
    Cells, Direction, Edit, Entry, Error, GroupSize, InPage, Layout, LogPages, LogRead, Options, OrderedIndex, Policy,
    Splits, Violation,
};
use nandu_nand::{Ecc, Geometry, ProgramOrder, TearScope};
use nandu_sim::{Chip, Sim, SimError};

/// The toy chip, with sectors of 64 bytes that are programmed in any order and tear alone.
pub(crate) const SECTORS: Chip = Chip {
    geometry: Geometry {
        order: ProgramOrder::Any,
        programs_per_page: 4,
        program_unit: 64,
        tear: TearScope::Range,
        ecc: Ecc { codeword_size: 64, correctable_bits: 1 },
        ..Chip::TINY.geometry
    },
    ..Chip::TINY
};

/// The toy chip as it is: whole pages, in order.
pub(crate) const PAGES: Chip = Chip::TINY;

pub(crate) const GRR: Options = Options {
    layout: Layout::Sectors,
    cells: Cells::Fixed { key: 4, value: 4 },
    sector_size: 64,
    log_pages: LogPages::Static(2),
    log_pages_max: 3,
    group: GroupSize::Fixed(2),
    log_read: LogRead::Used,
    policy: Policy::SemiClean,
    splits: Splits::LazyTwo,
    buffer_size: 1280,
    ..Options::GRR
};

pub(crate) const IPL: Options = Options {
    log_pages: LogPages::Static(1),
    group: GroupSize::Fixed(1),
    policy: Policy::Lru,
    splits: Splits::EagerThree,
    ..GRR
};

/// The same in whole pages.
pub(crate) const fn in_pages(options: Options) -> Options {
    Options { layout: Layout::Pages, ..options }
}

/// The same with nodes of two pages, and half as many log pages, each twice as large.
pub(crate) const fn with_two_pages(options: Options) -> Options {
    Options {
        node_pages: 2,
        log_pages_max: 2,
        log_pages: LogPages::Static(1),
        buffer_size: 2 * options.buffer_size,
        ..options
    }
}

/// The same chip with blocks of twice as many pages, so that nodes of three pages leave some over.
pub(crate) const fn with_long_blocks(chip: Chip) -> Chip {
    Chip { geometry: Geometry { pages_per_block: 2 * chip.geometry.pages_per_block, ..chip.geometry }, ..chip }
}

pub(crate) fn memory(chip: &Chip, options: &Options) -> Vec<u8> {
    vec![0; InPage::<Sim>::memory_required(&chip.geometry, options)]
}

/// An index that owns its memory: leaked, since nothing else lends it for as long as a test likes.
pub(crate) struct Held {
    index: Option<InPage<'static, Sim>>,
    options: Options,
}

impl Held {
    pub(crate) fn new(chip: Chip, options: Options) -> Held {
        let memory = Box::leak(memory(&chip, &options).into_boxed_slice());
        Held { index: Some(InPage::format(Sim::new(chip), options, memory).unwrap()), options }
    }

    pub(crate) fn reopen_with(&mut self, leave: impl FnOnce(InPage<'static, Sim>) -> Sim) {
        let chip = leave(self.index.take().unwrap());
        let memory = Box::leak(memory(chip.chip(), &self.options).into_boxed_slice());
        self.index = Some(InPage::open(chip, self.options, memory).unwrap());
    }

    pub(crate) fn get_mut(&mut self) -> &mut InPage<'static, Sim> {
        self.index.as_mut().unwrap()
    }
}

impl Subject for Held {
    type Error = Error<SimError>;

    fn index(&mut self) -> &mut dyn OrderedIndex<Error = Error<SimError>> {
        self
    }

    fn reopen(&mut self) {
        // Now left in order, now as if the power had gone behind a sync.
        self.reopen_with(|mut index| {
            if index.stats().references.is_multiple_of(2) {
                return index.unmount().unwrap();
            }
            index.sync().unwrap();
            index.abandon()
        });
    }
}

/// As the index, but that batches are made one by one where there is no journal.
impl OrderedIndex for Held {
    type Error = Error<SimError>;

    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>, Self::Error> {
        self.get_mut().get(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool, Self::Error> {
        self.get_mut().put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Self::Error> {
        self.get_mut().delete(key)
    }

    fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), Self::Error> {
        if self.options.journal_blocks > 0 {
            return self.get_mut().batch(edits);
        }
        edits.iter().try_for_each(|edit| self.get_mut().batch(std::slice::from_ref(edit)))
    }

    fn range(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        direction: Direction,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> Result<(), Self::Error> {
        self.get_mut().range(from, to, direction, visit)
    }

    fn first(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        self.get_mut().first()
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>, Self::Error> {
        self.get_mut().last()
    }

    fn count(&mut self) -> Result<u64, Self::Error> {
        self.get_mut().count_records()
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        self.get_mut().sync()
    }

    fn verify(&mut self, report: &mut dyn FnMut(Violation)) -> Result<(), Self::Error> {
        self.get_mut().verify(report)
    }
}
