//! What a commit says besides its path: the changes that it lists, and the window.
//!
//! * (W1) With no other member and all changes in the commit's own leaf, nothing. Else *every* change that becomes durable with it, also those of the leaf in the same page: otherwise an
//!   older member's value of the same key would come back at a mount and hide what the leaf has. Where keys have any length, the list says of such only that they are in their leaf.
//! * Every commit makes all changes durable that are not yet, also one that only lets deaths count: a change that replaced one of a member is all that is left of that key in memory. If the
//!   member left and the change stayed out, a cut would leave neither.
//! * (W2) What still waits of the oldest members is listed again, *carried*, and they leave, in their order.

use core::ops::Range;

use nandu_cells::Cells;
use nandu_log::OWNER_MAX;
use nandu_media::features::GROUP;
use nandu_media::path::WINDOW_MAX;
use nandu_media::section::{SECTION_FRONT_SIZE, SectionKind, SectionWriter};
use nandu_nand::PageAddr;

use crate::changes::{AT_ONCE_MAX, Changes, Listing, UNSYNCED};
use crate::division::RAW_HEAD_SIZE;
use crate::options::{Broken, Durability, PENDING_MIN};
use crate::order::{Carried, Committed};
use crate::reserved::PREFIX;
use crate::shape::TreeShape;
use crate::window::{Leaf, Window};

/// Bytes of a member in a list of them.
const PAGE_SIZE: usize = 4;

/// Changes that wait, and the commits that list them.
pub(crate) struct Waiting<'m> {
    pub(crate) changes: Changes<'m>,
    pub(crate) window: Window,
    /// Whether changes are to wait.
    pub(crate) durability: Durability,
    /// Whether something is unsynced that a sync has to make durable: more than moves, and what tags tell of.
    pub(crate) is_owed: bool,
    /// Where leaves are looked at next for the one with most changes.
    pub(crate) next: usize,
    pub(crate) broken: Broken,
}

/// Part of memory and of a list, as a divisor, that what is put at once takes at most.
const MARKS_SHARE: usize = 2;

/// Bytes of memory, and of a list, that what is put at once takes at most.
pub(crate) fn marks_max<C: Cells>(waiting: &Waiting<'_>, shape: &TreeShape<C>) -> usize {
    waiting_max(waiting, shape).min(changes_max(shape.bare_room())) / MARKS_SHARE
}

/// Whether a change of the longest key may go to its leaf beside what waits (W6), if anything may wait.
pub(crate) fn may_longest_pass<C: Cells>(waiting: &Waiting<'_>, shape: &TreeShape<C>) -> bool {
    let longest = waiting.changes.at_once_size(&[]) + shape.key_size_max();
    waiting.changes.size() == 0 || shape.cells().key_size() > 0 || longest <= marks_max(waiting, shape)
}

impl Waiting<'_> {
    /// Whether a commit has nothing to say of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.changes.is_empty() && self.window.is_empty()
    }

    /// Bytes of changes that the next commit has to list: what is unsynced, and what still waits of a member that has to leave.
    pub(crate) fn listed_next(&self) -> usize {
        let oldest = self.window.slots().next().filter(|_| self.window.is_full());
        self.changes.bytes_in(UNSYNCED) + oldest.map_or(0, |slot| self.changes.bytes_in(slot))
    }
}

/// Part of the memory, as a divisor, that is kept for what is merged and still listed.
const RESERVE_SHARE: usize = 8;

const _: () = assert!(
    (PENDING_MIN - PENDING_MIN / RESERVE_SHARE) / MARKS_SHARE >= AT_ONCE_MAX,
    "the least memory has room for the longest key at once"
);

/// Part of the pages that the window has, as a divisor, that what waits takes at most, where they are full of it: then most commits hold a leaf, and few are made to list again what waits.
const WAITING_SHARE: usize = 2;

/// Bytes of memory that what waits may take.
pub(crate) fn waiting_max<C: Cells>(waiting: &Waiting<'_>, shape: &TreeShape<C>) -> usize {
    let cells = shape.cells();
    let largest = match cells.key_size() {
        0 => shape.entry_size_max() + PREFIX + 4,
        size => usize::from(size) + usize::from(cells.value_size()) + 1,
    };
    let size = waiting.changes.size();
    // All that waits can be carried into fewer pages than the window has members, whatever their sizes are.
    let pages = waiting.window.most() / WAITING_SHARE * changes_max(shape.bare_room()).saturating_sub(largest);
    (size - size / RESERVE_SHARE).min(pages)
}

/// Whether memory has room for so many bytes of changes more (W4), where so much may wait in any case.
pub(crate) fn has_room<C: Cells>(waiting: &Waiting<'_>, shape: &TreeShape<C>, (memory, waits): (usize, usize)) -> bool {
    let changes = &waiting.changes;
    changes.waiting() + memory <= waiting_max(waiting, shape).max(waits) && changes.used() + memory <= changes.size()
}

/// Bytes of memory, and of a list, that the head of a raw page takes as a change, at most.
pub(crate) const HEAD_MEMORY: usize = RAW_HEAD_SIZE + PREFIX + OWNER_MAX + 8;

/// Whether the head of a raw page that is moved may wait. Where nothing waits, not while an operation is under way: then changes go to their leaves at once, and would be hidden by it.
pub(crate) fn has_head_room<C: Cells>(waiting: &Waiting<'_>, shape: &TreeShape<C>, may_begin: bool) -> bool {
    let may_wait = waiting.durability == Durability::OnSync && shape.has_raw();
    debug_assert!(!may_wait || HEAD_MEMORY >= waiting.changes.at_once_size(&[]) + OWNER_MAX + RAW_HEAD_SIZE);
    may_wait && (may_begin || !waiting.is_idle()) && has_room(waiting, shape, (HEAD_MEMORY, 0))
}

/// Pages that members of the window may need yet.
pub(crate) fn members_left(waiting: &Waiting<'_>) -> u32 {
    let may_wait = waiting.durability == Durability::OnSync;
    if may_wait { waiting.window.lonely_left() as u32 } else { 0 }
}

/// What is merged is in its leaf.
pub(crate) fn merged_is_in_leaf(waiting: &mut Waiting<'_>) {
    waiting.changes.merged_is_in_leaf(!waiting.broken.is(|it| it.forgets_merged));
}

/// What a commit will say.
#[derive(Debug)]
pub(crate) struct List<'b> {
    /// Bytes of changes.
    size: usize,
    carried: Carried,
    /// Members that it names.
    named: usize,
    /// A value, if it has bytes, which a change names that is listed.
    blob: &'b [u8],
}

/// Bytes of sections with so many members and so many bytes of changes.
fn sections_size(members: usize, changes: usize) -> usize {
    let section = |size| if size > 0 { SECTION_FRONT_SIZE + size } else { 0 };
    section(PAGE_SIZE * members) + section(changes)
}

/// Bytes of changes that always fit a commit with so much room for sections, however many members there are.
pub(crate) const fn changes_max(room: usize) -> usize {
    room.saturating_sub(2 * SECTION_FRONT_SIZE + PAGE_SIZE * WINDOW_MAX)
}

/// Bytes that a value of so many takes in a commit.
pub(crate) const fn blob_size(bytes: usize) -> usize {
    if bytes > 0 { SECTION_FRONT_SIZE + bytes } else { 0 }
}

/// Bytes that a commit lists at least beside a leaf with these changes.
pub(crate) fn size_beside(waiting: &Waiting<'_>, group: &Range<usize>) -> usize {
    let Waiting { changes, window, .. } = waiting;
    let own: usize = changes.edits(group.clone()).map(|edit| changes.list_size(&edit)).sum();
    if window.is_empty() && own == changes.bytes_in(UNSYNCED) && changes.is_unsynced(group.clone()) {
        return 0;
    }
    let spared = changes.merging_spares(group.clone());
    sections_size(window.len().min(WINDOW_MAX), waiting.listed_next().saturating_sub(spared))
}

/// Chooses what a commit says that has so much room for it, with so many bytes of changes at most, and may tell so many deaths of members. `None` if there is too
/// little: then nothing is chosen. No member has more changes than a commit without a path has room for beside a full window, so that each can leave.
pub(crate) fn choose<'b>(
    waiting: &mut Waiting<'_>,
    (room, max): (usize, usize),
    (deaths, blob): (usize, &'b [u8]),
) -> Option<List<'b>> {
    let room = room.checked_sub(blob_size(blob.len()))?;
    let Waiting { changes, window, broken, .. } = waiting;
    let mut choice = Listing { unsynced: true, carried: 0, part: None };
    // With no other member, nothing is said of changes that are all in the leaf of the page (W1).
    let is_own = window.is_empty() && !changes.has_others();
    let mut used = if !is_own { changes.bytes_in(UNSYNCED) } else { 0 };
    let (mut leaving, members) = (0, window.len());
    for slot in window.slots() {
        let waits = if broken.is(|it| it.skips_carrying) { 0 } else { changes.bytes_in(slot) };
        let is_last = used + waits > max || sections_size(members - leaving - 1, used + waits) > room;
        if is_last || window.lonely(leaving + 1).count() > deaths || !window.is_known(leaving + 1) {
            // What goes along of it takes less of the next commit.
            let left = room.checked_sub(sections_size(members - leaving, used.max(1)));
            choice.part = left.map(|left| (slot, left.min(max.saturating_sub(used))));
            break;
        }
        choice.carried |= u16::from(!broken.is(|it| it.skips_carrying)) << slot;
        (used, leaving) = (used + waits, leaving + 1);
    }
    let named = members - leaving;
    if window.is_full() && leaving == 0 || used > max || sections_size(named, used) > room {
        return None;
    }
    if named == 0 && carries_nothing(&choice, changes) && !changes.has_others() {
        choice.unsynced = false;
    }
    if broken.is(|it| it.lists_others_only) {
        choice.unsynced = changes.has_others();
    }
    let size = changes.choose(choice);
    debug_assert!(size <= max, "what is listed can be carried whole");
    debug_assert!(sections_size(named, size) <= room, "what was chosen fits");
    debug_assert!(blob.is_empty() || size > 0, "what names a value is listed");
    Some(List { size, carried: Carried::of(leaving), named, blob })
}

/// Whether nothing of older members is listed again.
fn carries_nothing(choice: &Listing, changes: &Changes<'_>) -> bool {
    (0..UNSYNCED).all(|slot| choice.carried >> slot & 1 == 0 || changes.bytes_in(slot) == 0)
}

impl List<'_> {
    /// Whether the page has no sections.
    pub(crate) fn is_empty(&self) -> bool {
        !GROUP || self.size == 0 && self.named == 0
    }

    /// Members that leave with the commit.
    pub(crate) fn leaving(&self) -> usize {
        self.carried.count()
    }

    /// Writes the sections into their room in a page.
    pub(crate) fn write(&self, waiting: &Waiting<'_>, room: &mut [u8]) {
        debug_assert!(
            sections_size(self.named, self.size) + blob_size(self.blob.len()) <= room.len(),
            "it fits its page"
        );
        let mut writer = SectionWriter::new(room);
        if self.size > 0 {
            waiting.changes.write_listed(writer.add(SectionKind::Changes, self.size));
        }
        if !self.blob.is_empty() {
            writer.add(SectionKind::Value, self.blob.len()).copy_from_slice(self.blob);
        }
        if self.named > 0 {
            let out = writer.add(SectionKind::Window, PAGE_SIZE * self.named);
            for (place, page) in out.chunks_exact_mut(PAGE_SIZE).zip(waiting.window.pages().skip(self.leaving())) {
                place.copy_from_slice(&page.to_le_bytes());
            }
        }
        writer.finish();
    }

    /// The commit is durable: what it lists is recorded in it, and it is a member if it lists anything. Returns whether it is.
    pub(crate) fn committed(self, waiting: &mut Waiting<'_>, commit: &Committed, leaf: Leaf) -> bool {
        waiting.is_owed = false;
        let Waiting { changes, window, broken, .. } = waiting;
        let PageAddr(page) = commit.page();
        let is_member = self.size > 0;
        let mut leaf = leaf;
        if !self.blob.is_empty() {
            changes.name_own_page(page);
            leaf = if broken.is(|it| it.blobs_leave) { Leaf::Dead } else { Leaf::Lives };
        }
        let leaving = window.slots().take(self.leaving()).fold(0, |slots, slot| slots | 1 << slot);
        changes.committed(window.next_slot(), (leaving, !broken.is(|it| it.forgets_merged)));
        window.leave(&self.carried.with(commit));
        if is_member {
            window.push(page, leaf);
        }
        debug_assert!(!window.is_empty() || changes.is_empty(), "a member lists what is here");
        is_member
    }
}
