//! What the chip holds: blocks and pages, sparse.
//!
//! A block that was never touched is [`BlockState::FRESH`]: 56 bytes, no allocation. Storage for its pages comes
//! with its first program and goes to a small pool, or is freed, when it is erased. Of a chip that was opened from an image, the
//! bytes of a page are in memory only from when it is programmed until the image has them.
//!
//! Two views of a page are kept apart, because faults make them differ. The *caller's* view ([`PageState::written`],
//! [`PageState::programs`], [`BlockState::next_index`]) is what the caller did as far as it can know; illegal use is
//! judged by it. The *cells'* view ([`PageState::HELD`] and the bytes) is what is there; reads see it. A lost program
//! is in the first and not in the second, a misdirected one the reverse.

use std::collections::BTreeMap;

use nandu_nand::CellMode;

use crate::damage::Harm;
use crate::history::History;
use crate::{BlockCounters, Chip};

/// Whether a block's cells are fit to be programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Condition {
    /// As it left the factory: it reads as ones, and no caller may trust that.
    NeverErased = 0,
    /// The last erase succeeded.
    Erased = 1,
    /// The last erase was cut and left cells that look erased; what is programmed into them decays.
    WeaklyErased = 2,
    /// The last erase failed, as all later ones will.
    EraseFailed = 3,
}

impl Condition {
    /// The condition with this number.
    pub const fn from_index(index: u8) -> Option<Condition> {
        match index {
            0 => Some(Condition::NeverErased),
            1 => Some(Condition::Erased),
            2 => Some(Condition::WeaklyErased),
            3 => Some(Condition::EraseFailed),
            _ => None,
        }
    }
}

/// The bad-block mark of a block: the truth, and how faults made it read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mark(pub(crate) u8);

impl Mark {
    pub(crate) const NONE: Mark = Mark(0);
    /// Bad when the chip was made.
    pub(crate) const FACTORY: u8 = 1;
    /// Marked by the caller.
    pub(crate) const GROWN: u8 = 2;
    /// The mark's bits flipped: it reads as the opposite of the truth.
    pub(crate) const INVERTED: u8 = 4;

    /// Whether the block is bad in truth.
    pub(crate) const fn is_bad(self) -> bool {
        self.0 & (Mark::FACTORY | Mark::GROWN) != 0
    }

    /// Whether the mark says bad.
    pub(crate) const fn reads_bad(self) -> bool {
        self.is_bad() != (self.0 & Mark::INVERTED != 0)
    }
}

/// One page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageState {
    /// Program units of the main area that the caller programmed since the erase, a bit each.
    pub(crate) written: u64,
    /// Virtual time of the last program.
    pub(crate) programmed_ns: u64,
    /// Array reads since the last erase.
    pub(crate) reads: u32,
    /// Programs since the last erase.
    pub(crate) programs: u8,
    pub(crate) flags: u8,
}

impl PageState {
    pub(crate) const ERASED: PageState = PageState { written: 0, programmed_ns: 0, reads: 0, programs: 0, flags: 0 };
    /// The caller programmed the spare area.
    pub(crate) const SPARE_WRITTEN: u8 = 1;
    /// The cells hold the bytes in the store; without it the page reads as ones.
    pub(crate) const HELD: u8 = 2;
    /// The bytes that the cells hold are in the image and not in the store.
    pub(crate) const AWAY: u8 = 4;

    pub(crate) const fn is_held(&self) -> bool {
        self.flags & PageState::HELD != 0
    }

    pub(crate) const fn is_away(&self) -> bool {
        self.flags & PageState::AWAY != 0
    }

    /// The flags without what says only where the bytes are.
    pub(crate) const fn lasting_flags(&self) -> u8 {
        self.flags & !PageState::AWAY
    }
}

/// Where the content of a page is in an image, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// In units of 64 bytes.
    pub(crate) unit: u32,
    pub(crate) crc: u32,
}

impl Place {
    /// Nowhere: what is in the image of this page, if anything, is not what it holds.
    pub(crate) const NONE: Place = Place { unit: 0, crc: 0 };
    /// Bytes of a place in an image.
    pub(crate) const SIZE: usize = 8;

    pub(crate) const fn is_none(&self) -> bool {
        self.unit == 0
    }

    /// Place in the file, bytes.
    pub(crate) const fn offset(&self) -> u64 {
        self.unit as u64 * 64
    }
}

/// Pages and bytes of a block that was programmed.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) pages: Box<[PageState]>,
    /// Where the pages are in the image, as far as they are there as they are here; empty if none is.
    pub(crate) places: Box<[Place]>,
    /// Main and spare area of each page, one after the other. Those of a page that is not held, or away, have no meaning; empty
    /// if all are.
    pub(crate) data: Box<[u8]>,
}

impl Store {
    pub(crate) fn new(chip: &Chip) -> Box<Store> {
        Box::new(Store { data: Store::new_data(chip), ..Store::without_data(chip) })
    }

    /// A store that holds nothing yet.
    pub(crate) fn without_data(chip: &Chip) -> Store {
        let pages = chip.geometry.pages_per_block as usize;
        Store { pages: vec![PageState::ERASED; pages].into(), places: Box::default(), data: Box::default() }
    }

    pub(crate) fn new_data(chip: &Chip) -> Box<[u8]> {
        let (pages, columns) = (chip.geometry.pages_per_block, chip.geometry.column_count());
        vec![0; pages as usize * columns as usize].into_boxed_slice()
    }

    pub(crate) fn place(&self, index: u32) -> Place {
        self.places.get(index as usize).copied().unwrap_or(Place::NONE)
    }

    /// Forgets where a page is in the image, since it will be other than there; returns what was forgotten.
    pub(crate) fn forget_place(&mut self, index: u32) -> Option<Place> {
        let place = self.places.get_mut(index as usize)?;
        Some(std::mem::replace(place, Place::NONE)).filter(|place| !place.is_none())
    }
}

/// One block.
#[derive(Clone, Debug)]
pub(crate) struct BlockState {
    pub(crate) store: Option<Box<Store>>,
    pub(crate) history: Option<Box<History>>,
    /// Harm done to pages, by place in the block. Never an empty map. Boxed, since nearly no block has any.
    #[expect(clippy::box_collection, reason = "a block without harm must stay small: there are many")]
    pub(crate) damage: Option<Box<BTreeMap<u32, Vec<Harm>>>>,
    pub(crate) counters: BlockCounters,
    /// The lowest page not programmed by the caller such that none above it is either.
    pub(crate) next_index: u32,
    pub(crate) mode: CellMode,
    pub(crate) condition: Condition,
    pub(crate) mark: Mark,
    /// What changed since an image had the block: [`Dirty`] bits.
    pub(crate) dirty: u8,
}

// An untouched chip of 8 GB, 16,384 blocks, is to cost less than a megabyte.
const _: () = assert!(size_of::<BlockState>() <= 56);

/// Bits of [`BlockState::dirty`].
pub(crate) struct Dirty;

impl Dirty {
    /// Counters only.
    pub(crate) const COUNTERS: u8 = 1;
    /// Content, mode, marks or harm.
    pub(crate) const CONTENT: u8 = 2;
}

impl BlockState {
    pub(crate) const FRESH: BlockState = BlockState {
        store: None,
        history: None,
        damage: None,
        counters: BlockCounters { erases: 0, programs: 0, reads: 0, reads_since_erase: 0 },
        next_index: 0,
        mode: CellMode::Slc,
        condition: Condition::NeverErased,
        mark: Mark::NONE,
        dirty: 0,
    };

    /// Whether nothing but the content has to be looked at: the fast path asks this one question.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.condition as u8 == Condition::Erased as u8 && self.mark.0 == 0 && self.damage.is_none()
    }

    pub(crate) fn page(&self, index: u32) -> PageState {
        self.store.as_ref().map_or(PageState::ERASED, |store| store.pages[index as usize])
    }

    /// The harm done to a page.
    pub(crate) fn harm(&self, index: u32) -> &[Harm] {
        self.damage.as_ref().and_then(|damage| damage.get(&index)).map_or(&[], |harms| harms)
    }

    pub(crate) fn add_harm(&mut self, index: u32, harm: Harm) {
        self.damage.get_or_insert_default().entry(index).or_default().push(harm);
    }
}

/// What a page looks like to someone who may look into the chip; from [`Sim::page_state`](crate::Sim::page_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageInfo {
    /// Programs since the last erase, as far as the caller knows.
    pub programs: u8,
    /// Whether its cells hold anything but ones.
    pub held: bool,
    /// Whether a cut, a fault or an address rule harmed it.
    pub harmed: bool,
    /// Array reads since the last erase; not counted while nothing in the block is programmed.
    pub reads: u32,
    /// Virtual time of the last program, nanoseconds.
    pub programmed_ns: u64,
}

/// What a block looks like to someone who may look into the chip; from [`Sim::block_state`](crate::Sim::block_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// Whether its cells are fit to be programmed.
    pub condition: Condition,
    /// The mode of its last erase.
    pub mode: CellMode,
    /// Bad when the chip was made.
    pub factory_bad: bool,
    /// Marked by the caller.
    pub grown_bad: bool,
    /// Whether the mark reads as bad. A fault may have made it lie.
    pub reads_bad: bool,
    /// Pages programmed since the last erase.
    pub pages_programmed: u32,
    /// Erases, programs, reads.
    pub counters: BlockCounters,
}
