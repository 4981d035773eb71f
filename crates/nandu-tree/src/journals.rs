//! The journal pages that are still needed.

use nandu_media::journal::{CHANGE_COUNT_MAX, OLDER_MAX, front_size, older_size};
use nandu_media::tree::CellFormat;

use crate::changes::{Changes, UNSYNCED};

/// Most journal pages at a time.
pub(crate) const LISTED_MAX: usize = OLDER_MAX + 1;

/// Part of a journal page, as a divisor, that naming older ones may take. With a third, pages of 4 KiB name 30 of 299 small
/// changes each, which is more than offsets of two bytes reach in memory.
const LIST_SHARE: usize = 3;

/// Changes there may be in memory, as a part of what all journal pages hold. Changes leave their pages here and there as leaves
/// take them; with all pages nearly full no two of them would become one.
const FILL: (usize, usize) = (3, 4);

/// Bytes that an entry of any length is taken to have, where the number of them in a page is limited.
const TYPICAL_SIZE: usize = 16;

#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) page: u32,
    pub(crate) sequence: u64,
    /// Changes in it, needed or not.
    pub(crate) count: u16,
}

/// Changes in memory that a journal page holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) count: usize,
    /// Bytes of them in a journal page.
    pub(crate) size: usize,
    pub(crate) unproved: usize,
}

pub(crate) struct Journals {
    pub(crate) listed: [Option<Listed>; LISTED_MAX],
    /// The page that names the others.
    pub(crate) newest: Option<u8>,
    /// What the next page with the root says of it.
    pub(crate) named: Option<u32>,
    /// Most pages that a page can name, itself included.
    pub(crate) listed_max: usize,
    /// Most pages that this tree lets there be when a sync begins.
    pub(crate) wanted_max: usize,
    /// Bytes for changes in a page, however many others it names.
    pub(crate) capacity: usize,
    /// Bytes for changes in memory, beyond which more of them cost more than they save.
    pub(crate) memory_max: usize,
    /// Most changes in a page.
    pub(crate) count_max: usize,
}

impl Journals {
    pub(crate) fn new(page_size: usize, header_size: usize, format: &CellFormat, pending_size: usize) -> Journals {
        let body = page_size.saturating_sub(front_size(header_size));
        let typical = match format.key_size {
            0 => TYPICAL_SIZE,
            key_size => 1 + usize::from(key_size) + usize::from(format.value_size),
        };
        let count_max = ((body - body / LIST_SHARE) / typical).clamp(1, CHANGE_COUNT_MAX);
        let older = older_size(count_max);
        let listed_max = (1 + body / LIST_SHARE / older).clamp(3, LISTED_MAX);
        let capacity = body.saturating_sub((listed_max - 1) * older);
        // A page of many changes of few bytes is full before its bytes are.
        let filled = capacity.min(count_max * typical);
        let memory_max = listed_max * filled * FILL.0 / FILL.1;
        let wanted_max = (pending_size.min(memory_max) * FILL.1 / FILL.0 / filled.max(1) + 3).min(listed_max);
        let listed = [None; LISTED_MAX];
        Journals { listed, newest: None, named: None, listed_max, wanted_max, capacity, memory_max, count_max }
    }

    pub(crate) fn count(&self) -> usize {
        self.listed.iter().flatten().count()
    }

    pub(crate) fn newest_page(&self) -> Option<u32> {
        let newest = self.newest?;
        self.listed[usize::from(newest)].map(|listed| listed.page)
    }

    pub(crate) fn place_of(&self, page: u32) -> Option<u8> {
        let place = self.listed.iter().position(|listed| listed.is_some_and(|listed| listed.page == page))?;
        Some(place as u8)
    }

    /// Whether changes of these numbers and bytes fit a page together.
    pub(crate) fn fit(&self, count: usize, size: usize) -> bool {
        count <= self.count_max && size <= self.capacity
    }
}

/// What each journal page holds of the changes in memory; the last is of those that none holds.
pub(crate) fn tallies(changes: &Changes<'_>) -> [Tally; LISTED_MAX + 1] {
    let mut tallies = [Tally::default(); LISTED_MAX + 1];
    for index in 0..changes.len() {
        let home = changes.home(index);
        let tally = &mut tallies[usize::from(home.journal)];
        tally.count += 1;
        tally.size += changes.journal_size(&changes.change(index));
        tally.unproved += usize::from(home.is_unproved);
    }
    tallies
}

const _: () = assert!(UNSYNCED as usize == LISTED_MAX);
