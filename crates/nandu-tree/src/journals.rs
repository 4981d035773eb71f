//! The journal pages that are still needed.

use core::ops::Range;

use nandu_media::features::GROUP;
use nandu_media::journal::{CHANGE_COUNT_MAX, OLDER_MAX, front_size, older_size};
use nandu_media::tree::CellFormat;

use crate::changes::{Changes, UNSYNCED};

/// Most journal pages at a time.
pub(crate) const LISTED_MAX: usize = if GROUP { OLDER_MAX + 1 } else { 0 };

/// Part of a journal page, as a divisor, that naming older ones may take. With a third, pages of 4 KiB name 30 of 299 small
/// changes each, which is more than offsets of two bytes reach in memory.
const LIST_SHARE: usize = 3;

/// Changes there may be in memory, as a part of what all journal pages hold. Changes leave their pages here and there as leaves
/// take them; with all pages nearly full no two of them would become one.
const FILL: (usize, usize) = (3, 4);

/// Most journal pages that a sync leaves beside page values, without those newer than the newest by itself: a mount reads each of them, and
/// that of a file system takes 40 reads with the 21 of the log on a chip of 1,024 blocks that was unmounted.
const BESIDE_PAGES_MAX: usize = 18;

/// Journal pages with as many changes as there can be that can always be named.
const LISTED_MIN: usize = 3;

/// Journal pages there can always be that sections name, where there are sections.
const RECENT_MIN: usize = 2;

/// Bytes that an entry of any length is taken to have, where the number of them in a page is limited.
const TYPICAL_SIZE: usize = 16;

/// What else a journal page is for: a page of the tree for its node, one by itself for a resident value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// Nothing: a page by itself without such a value.
    Absent,
    /// What lives there.
    Live,
    /// What is superseded there.
    Dead,
    /// One or the other: a mount found it.
    Unknown,
}

#[derive(Clone, Copy)]
pub(crate) struct Listed {
    pub(crate) page: u32,
    pub(crate) sequence: u64,
    /// Changes in it, needed or not.
    pub(crate) count: u16,
    pub(crate) node: Node,
    /// Whether it is no page of the tree.
    pub(crate) is_by_itself: bool,
    /// Whether it came after the newest page by itself, so that sections name it.
    pub(crate) is_recent: bool,
    /// If not, its place among that one, which is the first, and those that it names.
    pub(crate) order: u8,
}

/// What is still to be known of a journal page that leaves the list.
#[derive(Clone, Copy)]
pub(crate) struct Stood {
    pub(crate) page: u32,
    pub(crate) node: Node,
    pub(crate) is_by_itself: bool,
}

impl Listed {
    pub(crate) fn stood(&self) -> Stood {
        Stood { page: self.page, node: self.node, is_by_itself: self.is_by_itself }
    }

    fn map_size(&self) -> usize {
        usize::from(self.count).div_ceil(8)
    }
}

/// Changes in memory that a journal page holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) count: usize,
    /// Bytes of them in a journal page.
    pub(crate) size: usize,
    /// Bytes of them in memory.
    pub(crate) memory: usize,
    pub(crate) unproved: usize,
}

pub(crate) struct Journals {
    pub(crate) listed: [Option<Listed>; LISTED_MAX],
    /// The page that names the others.
    newest: Option<u8>,
    /// What the next page with the root says of it.
    named: Option<u32>,
    /// The newest page by itself: what it names is needed as long as it is.
    base: Option<u8>,
    /// Bytes in memory of the changes that a mount takes from that one and from those it names.
    base_memory: usize,
    /// Changes under way to a leaf whose page is to be a journal page too.
    riding: Option<Range<usize>>,
    /// A journal page whose changes must go into the next one.
    forced: Option<u8>,
    /// Most pages that a page can name, itself included.
    pub(crate) listed_max: usize,
    /// Most bytes that naming every page takes.
    pub(crate) list_size_max: usize,
    /// Most pages, without those newer than the newest by itself, that this tree lets there be when a sync begins.
    pub(crate) wanted_max: usize,
    /// Bytes for changes in a page, however many others it names.
    pub(crate) capacity: usize,
    /// Bytes for changes in memory, beyond which more of them cost more than they save.
    pub(crate) memory_max: usize,
    /// By how much this is less where sections are written, whose pages take places in the list.
    pub(crate) recent_memory: usize,
    /// Most changes in a page.
    pub(crate) count_max: usize,
}

impl Journals {
    /// Of a tree that does not know its medium yet.
    pub(crate) const NONE: Journals = Journals {
        listed: [None; LISTED_MAX],
        newest: None,
        named: None,
        base: None,
        base_memory: 0,
        riding: None,
        forced: None,
        listed_max: 0,
        list_size_max: 0,
        wanted_max: 0,
        capacity: 0,
        memory_max: 0,
        recent_memory: 0,
        count_max: 0,
    };

    pub(crate) fn new(
        page_size: usize,
        header_size: usize,
        format: &CellFormat,
        pending_size: usize,
        has_bare: bool,
    ) -> Journals {
        let body = page_size.saturating_sub(front_size(header_size));
        let typical = match format.key_size {
            0 => TYPICAL_SIZE,
            key_size => 1 + usize::from(key_size) + usize::from(format.value_size),
        };
        // Beside page values fewer are named, most of which hold less than they could: resident values leave little room, and the more of
        // the changes of older pages go beside them, the fewer pages there are.
        let half_full = BESIDE_PAGES_MAX * older_size(body / typical / 2);
        let for_list = if has_bare { half_full.min(body / LIST_SHARE) } else { body / LIST_SHARE };
        let count_max = ((body - for_list) / typical).clamp(1, CHANGE_COUNT_MAX);
        let older = older_size(count_max);
        let for_list = for_list.max((LISTED_MIN - 1) * older);
        let shortest = if has_bare { older_size(1) } else { older };
        // At least one, also where no list is compiled.
        let listed_max = (1 + for_list / shortest).min(LISTED_MAX.max(1));
        let list_size_max = (for_list + older).min(listed_max * older);
        let capacity = body.saturating_sub(list_size_max - older);
        // A page of many changes of few bytes is full before its bytes are.
        let filled = capacity.min(count_max * typical);
        let most = if has_bare { listed_max.min(BESIDE_PAGES_MAX) } else { listed_max };
        let memory_max = most * filled * FILL.0 / FILL.1;
        let recent_memory = RECENT_MIN * filled * FILL.0 / FILL.1;
        let full = pending_size.min(memory_max) * FILL.1 / FILL.0 / filled.max(1);
        // Resident values leave part of each page for changes, so it takes more of them to hold as many.
        let wanted_max = full + 2 + if has_bare { full / 3 } else { 0 };
        Journals {
            listed_max,
            list_size_max,
            wanted_max: wanted_max.max(2).min(most),
            capacity,
            memory_max,
            recent_memory,
            count_max,
            ..Journals::NONE
        }
    }

    /// What the next page with the root says of the newest page.
    #[inline]
    pub(crate) fn named(&self) -> Option<u32> {
        if GROUP { self.named } else { None }
    }

    /// The page is the one that the next page with the root names.
    pub(crate) fn set_named(&mut self, page: Option<u32>) {
        self.named = page;
    }

    /// The page in this place is the newest, and names the others.
    pub(crate) fn set_newest(&mut self, place: u8, page: u32) {
        (self.newest, self.named) = (Some(place), Some(page));
    }

    /// Whether there are journal pages that are needed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !GROUP || self.newest.is_none()
    }

    /// A journal page whose changes must go into the next one.
    #[inline]
    pub(crate) fn forced(&self) -> Option<u8> {
        if GROUP { self.forced } else { None }
    }

    pub(crate) fn force(&mut self, place: Option<u8>) {
        self.forced = place;
    }

    /// Whether changes are under way to a leaf whose page is to be a journal page too.
    #[inline]
    pub(crate) fn is_riding(&self) -> bool {
        GROUP && self.riding.is_some()
    }

    pub(crate) fn set_riding(&mut self, merged: Option<Range<usize>>) {
        self.riding = merged;
    }

    /// Which changes the leaf under way takes.
    pub(crate) fn merged(&self) -> Range<usize> {
        self.riding.clone().unwrap_or(0..0)
    }

    /// A page by itself is the newest; a mount takes changes of so many bytes of memory from it and those that it names.
    pub(crate) fn rebase(&mut self, place: u8, memory: usize) {
        self.base = Some(place);
        self.base_memory = memory;
        for listed in self.listed.iter_mut().flatten() {
            listed.is_recent = false;
        }
    }

    /// Nothing of the newest page by itself is needed any more.
    pub(crate) fn drop_base(&mut self) {
        self.base = None;
        self.base_memory = 0;
    }

    pub(crate) fn base_page(&self) -> Option<u32> {
        self.listed[usize::from(self.base?)].map(|listed| listed.page)
    }

    /// Whether what a mount takes fits the memory for changes: it finds the changes that the base names as they were when
    /// that was written, and all that came since.
    pub(crate) fn fits_mount(&self, tallies: &Tallies, size: usize) -> bool {
        let is_recent = |place: usize| match self.listed.get(place) {
            Some(listed) => listed.is_some_and(|listed| listed.is_recent),
            None => true,
        };
        let recent: usize = (0..=LISTED_MAX).filter(|&place| is_recent(place)).map(|place| tallies[place].memory).sum();
        self.base_memory + recent <= size
    }

    /// Bytes of a map of each page that is not recent.
    pub(crate) fn maps_size(&self) -> usize {
        self.listed.iter().flatten().filter(|listed| !listed.is_recent).map(Listed::map_size).sum()
    }

    /// Where the map of each of these is among all of them.
    pub(crate) fn map_places(&self) -> [usize; LISTED_MAX] {
        let mut places = [0; LISTED_MAX];
        for (place, listed) in places.iter_mut().zip(&self.listed) {
            let Some(listed) = listed else { continue };
            let others = self.listed.iter().flatten().filter(|other| !other.is_recent && other.order < listed.order);
            *place = others.map(Listed::map_size).sum();
        }
        places
    }

    /// No journal page is needed any more.
    pub(crate) fn clear(&mut self) {
        self.newest = None;
        self.drop_base();
        self.listed.fill(None);
    }

    pub(crate) fn count(&self) -> usize {
        self.listed.iter().flatten().count()
    }

    /// Bytes that naming every page takes.
    pub(crate) fn list_size(&self) -> usize {
        self.listed.iter().flatten().map(|listed| older_size(usize::from(listed.count))).sum()
    }

    /// Journal pages newer than the newest by itself.
    pub(crate) fn recent_count(&self) -> usize {
        self.listed.iter().flatten().filter(|listed| listed.is_recent).count()
    }

    /// Whether there are so many pages that two have to become one.
    pub(crate) fn is_crowded(&self, has_sections: bool) -> bool {
        // Two at least, so that there are two that can become one.
        let most = (self.listed_max - if has_sections { RECENT_MIN } else { 0 }).max(2);
        let is_long = self.list_size() > self.list_size_max - older_size(self.count_max);
        is_long || self.count() - self.recent_count() >= self.wanted_max.min(most) || self.count() >= self.listed_max
    }

    pub(crate) fn newest_page(&self) -> Option<u32> {
        let newest = self.newest.filter(|_| GROUP)?;
        self.listed[usize::from(newest)].map(|listed| listed.page)
    }

    pub(crate) fn place_of(&self, page: u32) -> Option<u8> {
        let place = self.listed.iter().position(|listed| listed.is_some_and(|listed| listed.page == page))?;
        Some(place as u8)
    }

    pub(crate) fn find_mut(&mut self, page: u32) -> Option<&mut Listed> {
        self.listed.iter_mut().flatten().find(|listed| listed.page == page)
    }

    /// Whether changes of these numbers and bytes fit a page together.
    pub(crate) fn fit(&self, count: usize, size: usize) -> bool {
        count <= self.count_max && size <= self.capacity
    }
}

/// What each journal page holds of the changes in memory; the last is of those that none holds.
pub(crate) type Tallies = [Tally; LISTED_MAX + 1];

/// Counts the changes but those of a range, where the tallies stay: returned, they would be on the stack twice.
#[inline(never)]
pub(crate) fn count_changes(changes: &Changes<'_>, without: &Range<usize>, tallies: &mut Tallies) {
    for index in (0..changes.len()).filter(|index| !without.contains(index)) {
        let (home, change) = (changes.home(index), changes.change(index));
        let tally = &mut tallies[usize::from(home.journal)];
        tally.count += 1;
        tally.size += changes.journal_size(&change);
        tally.memory += changes.required(&change);
        tally.unproved += usize::from(home.is_unproved);
    }
}

const _: () = assert!(!GROUP || UNSYNCED as usize == LISTED_MAX);

#[cfg(test)]
mod tests {
    use super::{Journals, LISTED_MAX, LISTED_MIN};
    use nandu_media::journal::{front_size, older_size};
    use nandu_media::tree::CellFormat;

    /// However many pages are named, a page holds what is in another one, so that the collector can move it.
    #[test]
    fn a_page_holds_the_longest_list_and_the_most_changes() {
        let format = |key_size, value_size| CellFormat { cells: 2, key_size, value_size, page_bits: 16 };
        for page_size in (8..=16).map(|bits| 1 << bits) {
            for (format, has_bare) in [(format(0, 0), false), (format(0, 0), true), (format(8, 8), false)] {
                let journals = Journals::new(page_size, 56, &format, 65_535, has_bare);
                let longest = older_size(journals.count_max);
                let others = journals.list_size_max - longest;
                assert!(front_size(56) + others + journals.capacity <= page_size, "{page_size}");
                assert!((LISTED_MIN..=LISTED_MAX).contains(&journals.listed_max), "{page_size}");
                assert!((LISTED_MIN - 1) * longest <= others, "{page_size}");
                assert!(journals.capacity * 2 >= page_size - front_size(56), "{page_size}");
            }
        }
    }
}
