//! Changes that become durable together.
//!
//! A change goes to memory; a sync programs one commit that lists all changes since the last one. Its page is that of a leaf, with all changes that wait for that leaf in it, if the
//! page has room for the list beside them. Leaves that no sync takes along are programmed when memory is nearly full, as pages that promise nothing, behind a sync.
//! So `k` changes cost one program, or a third or so of a program each where that is more.
//!
//! * (W3) What is unsynced fits one commit without a path, however many members the window has, beside what waits of one that has to leave: before a change that would not, there is a sync.
//! * (W6) Changes for which memory or such a page has no room go to their leaves at once, and the commit lists that they are there. So they program a few pages, however many changes wait. Those whose keys are too many
//!   even for that, or all of one length, go behind all that waits, when the window is empty.
//! * (W4) What members list stays in memory until they leave, also what is in its leaf meanwhile: a mount makes it there. A sync lets members leave before memory is full of it.
//! * What is unsynced is in no leaf but that of the commit which lists it, and every commit lists it all. So undoing a move needs no thought.
//! * What waits fits its leaf. A change that does not is made durable at once, with all that is unsynced: its leaf is divided, and a full chip refuses it before it was accepted.

use core::ops::Range;

use nandu_cells::Cells;
use nandu_index::{Edit, KeyBuf};
use nandu_log::{Claim, LogError};
use nandu_media::features::SNAPSHOTS;
use nandu_nand::Nand;

use crate::batch::{apply, of_leaf};
use crate::changes::{Changes, UNSYNCED};
use crate::descend::{descend, leaf_in, look, value_at};
use crate::division::SINGLE_MAX;
use crate::edits::Edits;
use crate::error::{BATCH_PAGES_MAX, EngineError, Outcome};
use crate::fit::{ascending_size_max, inner_splits_max, is_at_end, list_room, size_with, splits_by};
use crate::growth::claim_growth;
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::large::{is_kept_by, keeps, pages_named, replace_waiting};
use crate::list::{Waiting, changes_max, has_room, marks_max, members_left, size_beside, waiting_max};
use crate::shape::TreeShape;
use crate::slots::{Growth, Seek};
use crate::standing::{Made, is_stale, value_of};
use crate::tree::Tree;
use crate::writer::{BATCH_DEATHS, Change, DEATHS, Need};

/// Leaves looked at for the one with most changes. All of them would not make it much better.
const CANDIDATES: usize = 64;

/// Leaves that a sync programs besides, so that changes have room; what is left is done when a change needs it.
pub(crate) const RELIEVED_MAX: usize = 12;

/// Leaves that a put programs besides where memory is full: so many changes find room then that the commit before them costs little for each.
const MERGED_BY_PUT: usize = 2;

/// The same where the put has programmed the page of its value.
const MERGED_BY_VALUE: usize = 1;

/// Programs of a put behind which it merges no leaf more: of six, one more leaf takes two, and its entry two where it goes to its leaf at once.
const MERGING_MAX: u64 = 2;

/// Leaves that are asked whether their page has room.
const TRIES: usize = 3;

/// How often a put makes room for its entry in memory, before that goes to its leaf at once.
const WAYS: u32 = 1;

/// Bytes of changes that fit a commit.
fn list_max<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>) -> usize {
    changes_max(keeper.tree().path.shape().bare_room())
}

/// Where changes went, or have to go.
pub(crate) enum Way {
    /// They wait in memory.
    Waits(Made),
    /// They are to go to their leaves at once, by [`pass`] (W6).
    Passes,
    /// The same behind all that waits.
    Behind,
}

/// Changes in memory, all to be synced together; where a leaf has to be divided for them, by this claim. Reads the leaves that are not in memory.
pub(crate) fn change<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
    want: Claim,
) -> Outcome<Way, N> {
    keeper.check_writable()?;
    let ((memory, size), max) = (keeper.waiting().changes.sizes(edits), list_max(keeper));
    let passes = may_pass(keeper, edits);
    let leaves = if keeper.values().done() > 0 { MERGED_BY_VALUE } else { MERGED_BY_PUT };
    let is_too_large = memory > waiting_max(keeper.waiting(), keeper.tree().path.shape()) / 2 || size > max;
    if is_too_large || names_several(keeper.tree().path.shape(), edits) {
        return Ok(if passes { Way::Passes } else { Way::Behind });
    }
    let (mut existed, mut changes_any, mut deaths) = (false, false, 0);
    let shape = *keeper.tree().path.shape();
    for edit in edits.iter() {
        let before = value_of(keeper, edit.key)?;
        existed = before.is_some();
        deaths += usize::from(before.is_some_and(|value| shape.head(edit.key, value).is_some()));
        changes_any |= existed || edit.value.is_some();
    }
    if !changes_any {
        return Ok(Way::Waits(Made::Existed(existed)));
    }
    if passes
        && !has_way(keeper, takes(keeper, edits), 0)
        && (tightness_of(keeper, edits)?.pages > 0
            || !make_way(keeper, &|keeper| takes(keeper, edits), (WAYS, leaves))?)
    {
        return Ok(Way::Passes);
    }
    let mut tight = None;
    for _ in 0..CLAIMS_MAX {
        if !make_way(keeper, &|keeper| takes(keeper, edits), (CLAIMS_MAX, leaves))? {
            return Err(keeper.refuse(Claim::Replace));
        }
        let pages = make_room(keeper, want, &|keeper| tightness_of(keeper, edits))?;
        keeper.ready()?;
        keeper.make_list_room(size)?;
        make_dying_room(keeper, deaths)?;
        // Pages that were moved for the room of pages may have taken that in memory.
        if has_way(keeper, takes(keeper, edits), usize::MAX) {
            tight = Some(pages);
            break;
        }
    }
    let Some(tight) = tight else { return Err(keeper.refuse(Claim::Replace)) };
    if is_stale(keeper, edits)? {
        return Ok(Way::Waits(Made::Stale));
    }
    keeper.parts().1.is_owed = true;
    for (index, edit) in edits.iter().enumerate() {
        // All this was read before. If it cannot be read again, a batch is not left half done: nothing more is made durable.
        set(keeper, (edits, &edit)).inspect_err(|_| keeper.breaks(index > 0))?;
    }
    if tight > 0 {
        let divided = divide(keeper, edits, tight);
        // What was accepted waits, if a leaf beside it cannot be read.
        if keeper.is_broken() {
            divided?;
        }
    }
    Ok(Way::Waits(Made::Existed(existed)))
}

/// Whether a change has a head that names several pages: it cannot wait (W6).
fn names_several<C: Cells>(shape: &TreeShape<C>, edits: &Edits<'_>) -> bool {
    let pages = |edit: Edit<'_>| edit.value.and_then(|value| shape.head(edit.key, value)).map_or(0, |it| it.pages());
    SNAPSHOTS && edits.iter().any(|edit| pages(edit) > 1)
}

/// Bytes that changes take of memory and of the next list, beyond what they take the place of.
fn takes<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, edits: &Edits<'_>) -> (usize, usize) {
    let changes = &keeper.waiting().changes;
    let (memory, size) = changes.sizes(edits);
    debug_assert!(memory > 0 && size > 0, "a change takes room");
    // Of several one may come before another one goes.
    let Some(edit) = edits.get(0).filter(|_| edits.len() == 1) else { return (memory, size) };
    let (memory_gone, size_gone) = changes.sizes_of(edit.key);
    (memory.saturating_sub(memory_gone), size.saturating_sub(size_gone))
}

/// The same of changes that go to their leaves at once.
fn at_once_takes<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, edits: &Edits<'_>) -> (usize, usize) {
    let sizes = edits.iter().map(|edit| keeper.waiting().changes.at_once_sizes(edit.key));
    sizes.fold((0, 0), |sum, (memory, size)| (sum.0 + memory, sum.1 + size))
}

/// Whether changes may go to their leaves at once: memory has room for what a commit lists of their keys. Where all have one length, a list has no word for it, and room for one is soon made.
pub(crate) fn may_pass<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, edits: &Edits<'_>) -> bool {
    let (waiting, shape) = (keeper.waiting(), keeper.tree().path.shape());
    let memory: usize = edits.iter().map(|edit| waiting.changes.at_once_size(edit.key)).sum();
    shape.cells().key_size() == 0 && memory <= marks_max(waiting, shape)
}

/// Whether memory and the next list have room for what takes so many bytes of them; where so much may wait in any case, that is enough.
fn has_way<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, (memory, size): (usize, usize), waits: usize) -> bool {
    keeper.waiting().changes.bytes_in(UNSYNCED) + size <= list_max(keeper)
        && has_room(keeper.waiting(), keeper.tree().path.shape(), (memory, waits))
}

/// Whether changes have room in memory and in their leaves, in the next list beside so many bytes, and a page with them: so that nothing is to be done for them.
pub(crate) fn has_all<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
    beside: usize,
) -> Outcome<bool, N> {
    keeper.ready()?;
    let Tightness { pages, is_sure, .. } = tightness_of(keeper, edits)?;
    if !has_way(keeper, takes(keeper, edits), 0) || pages > 0 && !is_sure {
        return Ok(false);
    }
    let (_, size) = keeper.waiting().changes.sizes(edits);
    let has_list_room = keeper.waiting().listed_next() + size + beside <= list_max(keeper);
    Ok(has_list_room && keeper.has_room(1, members_left(keeper.waiting()))?)
}

/// Bytes that something takes of memory and of the next list.
type Takes<'t, 'm, N, C> = &'t dyn Fn(&Keeper<'m, N, C>) -> (usize, usize);

/// How something fits its leaves.
type Fit<'t, 'm, N, C> = &'t dyn Fn(&mut Keeper<'m, N, C>) -> Outcome<Tightness, N>;

/// Makes room for changes in memory and in the next list, in so many rounds at most, each with so many leaves behind a commit, or one more if they are two and none is made. Returns whether there is. After a mount more may wait than is let in, since what members list waits again: then a round has to make as much room as the changes take, no more.
fn make_way<'m, N: Nand, C: Cells>(
    keeper: &mut Keeper<'m, N, C>,
    takes: Takes<'_, 'm, N, C>,
    (most, leaves): (u32, usize),
) -> Outcome<bool, N> {
    let (max, before) = (list_max(keeper), keeper.waiting().changes.waiting());
    for _ in 0..most {
        if has_way(keeper, takes(keeper), before) {
            return Ok(true);
        }
        let ((memory, size), spent) = (takes(keeper), keeper.tree().log.spent().0);
        debug_assert!(size <= max, "a page has room for what is to be listed");
        let is_short =
            keeper.waiting().changes.waiting() + memory > waiting_max(keeper.waiting(), keeper.tree().path.shape());
        if keeper.waiting().changes.bytes_in(UNSYNCED) + size > max {
            commit_some(keeper)?;
        } else if !is_short {
            keeper.ready()?;
            keeper.bury()?;
        } else if keeper.waiting().changes.unsynced() > 0 {
            commit_some(keeper)?;
            merge_leaves(keeper, leaves, spent)?;
        } else {
            merge_leaves(keeper, 2 * leaves - 1, spent)?;
        }
    }
    Ok(has_way(keeper, takes(keeper), before))
}

/// A change in memory, which has room there; one of these, which are made together.
pub(crate) fn set<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (edits, edit): (&Edits<'_>, &Edit<'_>),
) -> Outcome<(), N> {
    let existed = value_of(keeper, edit.key)?.is_some();
    let shape = keeper.tree().path.shape();
    let (gain, dies) = (gain(shape, edit, existed), !is_kept_by(shape, edits, edit.key));
    let names_more = shape.page_of(edit.key, edit.value).is_some() && !keeps(shape, edit);
    if dies {
        keeper.head_dies(edit.key)?;
    }
    if names_more {
        keeper.head_waits(1);
    }
    keeper.parts().1.changes.set_unsynced(edit, gain);
    Ok(())
}

/// How many entries more a user has by a change of a key that was there or not.
fn gain<C: Cells>(shape: &TreeShape<C>, edit: &Edit<'_>, existed: bool) -> i64 {
    let counted = |is_there| shape.counted(is_there, edit.key) as i64;
    counted(edit.value.is_some()) - counted(existed)
}

/// The changes that wait for the leaf of a key. The path above it is present then.
fn group_of<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    key: &[u8],
) -> Outcome<Range<usize>, N> {
    descend(tree, Seek::At(key), 1)?;
    let mut fence = KeyBuf::EMPTY;
    let from = if tree.path.fence(0, false, &mut fence) { changes.lower(fence.as_slice()) } else { 0 };
    let to = if tree.path.fence(0, true, &mut fence) { changes.lower(fence.as_slice()) } else { changes.len() };
    // Separators that do not ascend are damage, and no group.
    Ok(from..to.max(from))
}

/// Whether something waits for the leaf of a key.
pub(crate) fn waits_beside<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<bool, N> {
    if keeper.waiting().changes.is_empty() {
        return Ok(false);
    }
    let (tree, waiting) = keeper.parts();
    let group = group_of(tree, &waiting.changes, key)?;
    Ok(waiting.changes.waits_in(group) > 0)
}

/// How changes fit their leaves, with what waits for these.
pub(crate) struct Tightness {
    /// Pages that the leaves are divided into; 0 if all fit.
    pub(crate) pages: u32,
    /// Pages that are programmed then, with leaves that are divided for want of room for a list alone.
    programs: u32,
    /// Whether they may stay as they are on a full chip, where a leaf that has a page of its own takes what it has room for.
    pub(crate) is_sure: bool,
    /// Leaves that are concerned.
    leaves: u32,
}

/// How these changes fit.
fn tightness<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    edits: &Edits<'_>,
) -> Outcome<Tightness, N> {
    let (mut pages, mut is_sure, mut tight, mut leaves, mut at) = (0, true, 0, 0, 0);
    let kept = list_room(tree);
    while let Some(first) = edits.get(at) {
        let waits = group_of(tree, changes, first.key)?;
        let here = of_leaf(&tree.path, edits, at);
        (at, leaves) = (here.end, leaves + 1);
        let child = tree.path.child(0);
        let place = leaf_in(tree, child)?;
        let leaf = look(tree, &place);
        let shape = tree.path.shape();
        let (room, roomy) = rooms(tree, kept);
        let before = size_with(shape.cells(), leaf, changes.edits(waits.clone()));
        let size = size_with(shape.cells(), leaf, merged(changes.edits(waits), edits, here.clone()));
        // What takes no more room than what it replaces is never refused.
        if size > roomy && size > before {
            let more = splits_by(&tree.path, leaf, edits.part(here)).saturating_sub(1);
            let parts = (4 + 2 * more + inner_splits_max(&tree.path)).min(BATCH_PAGES_MAX);
            let fits = size <= room;
            (pages, tight) = if fits { (pages, tight + parts) } else { (pages + parts, tight) };
            is_sure &= fits || before > room && size <= shape.own_room();
        }
    }
    // Leaves that only leave no room for a list are divided where no other is.
    Ok(Tightness { pages: if pages > 0 { pages } else { tight }, programs: pages + tight, is_sure, leaves })
}

/// Bytes that the leaf of the path takes, and that it takes where so many are kept for a list beside it.
fn rooms<N: Nand, C: Cells>(tree: &Tree<'_, N, C>, kept: usize) -> (usize, usize) {
    let room = tree.path.room();
    let most = if is_at_end(&tree.path) { room.min(ascending_size_max(tree)) } else { room };
    (most, most.min(room.saturating_sub(kept)))
}

/// Claims room for what leaves are divided into, of which this says how many pages that are. Returns how many are programmed; 0 if all fit. Nothing is in the buffers then.
fn make_room<'m, N: Nand, C: Cells>(
    keeper: &mut Keeper<'m, N, C>,
    want: Claim,
    tightness: Fit<'_, 'm, N, C>,
) -> Outcome<u32, N> {
    for _ in 0..CLAIMS_MAX {
        let Tightness { pages, programs, is_sure, .. } = tightness(keeper)?;
        if pages == 0 {
            return Ok(0);
        }
        if programs > BATCH_PAGES_MAX {
            return Err(EngineError::BatchTooLarge { pages: programs });
        }
        match claim_growth(keeper, Need { want, pages: programs, live: pages, deaths: BATCH_DEATHS }) {
            Ok(Some(_)) => return Ok(programs),
            Ok(None) => {}
            Err(EngineError::Log(LogError::Full) | EngineError::TooHigh) if is_sure => return Ok(0),
            Err(error) => return Err(keeper.undo(error)),
        }
    }
    Err(EngineError::Log(LogError::Full))
}

/// As [`tightness`], of changes that are to wait.
pub(crate) fn tightness_of<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    edits: &Edits<'_>,
) -> Outcome<Tightness, N> {
    let (tree, waiting) = keeper.parts();
    tightness(tree, &waiting.changes, edits)
}

/// Some of these changes, and those that wait and are not replaced by one of them.
fn merged<'e>(
    waits: impl Iterator<Item = Edit<'e>>,
    edits: &'e Edits<'e>,
    here: Range<usize>,
) -> impl Iterator<Item = Edit<'e>> {
    waits.filter(|edit| edits.find(edit.key).is_none()).chain(edits.part(here))
}

/// Merges what waits for leaves of these changes: of those that have no room for it, or of all. Returns whether there was any.
fn merge_groups<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &Edits<'_>, is_all: bool) -> Outcome<bool, N> {
    let (tree, waiting) = keeper.parts();
    let (kept, mut any) = (list_room(tree), false);
    for edit in edits.iter() {
        let group = group_of(tree, &waiting.changes, edit.key)?;
        let child = tree.path.child(0);
        let place = leaf_in(tree, child)?;
        let cells = tree.path.shape().cells();
        let size = size_with(cells, look(tree, &place), waiting.changes.edits(group.clone()));
        if is_all || size > rooms(tree, kept).1 {
            waiting.changes.merge(group);
            any = true;
        }
    }
    Ok(any)
}

/// Makes these changes durable, which were set, with all that is unsynced: those of leaves that have no room for them there, with all that waits for these. So many pages were found to be room for it.
fn divide<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, edits: &Edits<'_>, mut pages: u32) -> Outcome<(), N> {
    for _ in 0..CLAIMS_MAX {
        keeper.ready()?;
        let need = Need { want: Claim::Replace, pages, live: 0, deaths: BATCH_DEATHS };
        let Some(mut change) = keeper.claim(need)? else { continue };
        let groups = merge_groups(keeper, edits, false)
            .and_then(|any| if any { Ok(any) } else { merge_groups(keeper, edits, true) });
        let (tree, waiting) = keeper.parts();
        let applied =
            groups.and_then(|_| apply(tree, &mut change, waiting.changes.merged(&Edits::of(&[])), Growth::Early));
        keeper.count(true, (0, 0));
        match keeper.conclude(change, applied) {
            // Something else has to be merged than was thought.
            Err(EngineError::BatchTooLarge { .. }) if pages < BATCH_PAGES_MAX => pages *= 2,
            outcome => return outcome,
        }
    }
    Err(keeper.refuse(Claim::Replace))
}

/// Puts the value under way: the head of one of one page waits, where there is room; any other goes to its leaf at once (W6).
pub(crate) fn put_head<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Made, N> {
    debug_assert!(keeper.values().part().is_none(), "the value is whole");
    let mut room = [0; SINGLE_MAX];
    if let Some(head) = keeper.values().single_head(&mut room)
        && let Way::Waits(existed) =
            change(keeper, &Edits::of(&[Edit { key, value: Some(head) }]), keeper.values().claim())?
    {
        return Ok(existed);
    }
    pass(keeper, &Edits::of_head(key), Claim::Grow)
}

/// Calls with the tree, what waits, and changes, of which a head that stands for that of the value under way is that one.
fn with_head<'m, N: Nand, C: Cells, T>(
    keeper: &mut Keeper<'m, N, C>,
    edits: &Edits<'_>,
    call: impl FnOnce(&mut Tree<'m, N, C>, &mut Waiting<'m>, &Edits<'_>) -> T,
) -> T {
    let (tree, waiting, head) = keeper.with_head(None);
    call(tree, waiting, &if edits.is_head() { edits.with_head(head) } else { *edits })
}

/// Puts changes, or the head of the value under way, into their leaves, with what waits for those leaves, and makes them durable with all that is unsynced; where a leaf has to be divided, by this claim. Returns whether the key of the last was there.
///
/// The commit lists of each that it is in its leaf, so that nothing that an older member has of the key hides it at a mount.
pub(crate) fn pass<'m, N: Nand, C: Cells>(
    keeper: &mut Keeper<'m, N, C>,
    edits: &Edits<'_>,
    want: Claim,
) -> Outcome<Made, N> {
    let (mut pages, mut growth) = (0, Growth::Own);
    for _ in 0..CLAIMS_MAX {
        // A commit may take it along. Then a member lists what is there of the key, and comes before this.
        if edits.iter().any(|edit| keeper.waiting().changes.is_unsynced_at(edit.key)) {
            commit_some(keeper)?;
            continue;
        }
        // One takes little room, of that which is kept for what is in its leaf, and goes there with some programs yet.
        let fits = edits.len() == 1 && has_way(keeper, at_once_takes(keeper, edits), usize::MAX);
        if !fits && !make_way(keeper, &|keeper| at_once_takes(keeper, edits), (CLAIMS_MAX, 1))? {
            return Err(keeper.refuse(Claim::Replace));
        }
        if pages == 0 {
            let tightness = |keeper: &mut Keeper<'m, N, C>| {
                with_head(keeper, edits, |tree, waiting, edits| tightness(tree, &waiting.changes, edits))
            };
            let (room, leaves) = (make_room(keeper, want, &tightness)?, tightness(keeper)?.leaves);
            (pages, growth) = if room > 0 { (room + leaves, Growth::Early) } else { (2 * leaves, Growth::Own) };
            pages = pages.min(BATCH_PAGES_MAX);
        }
        keeper.ready()?;
        let (memory, size) = at_once_takes(keeper, edits);
        keeper.make_list_room(size)?;
        // As in `change`; and where room was made a page of the key may have moved.
        let is_unsynced = edits.iter().any(|edit| keeper.waiting().changes.is_unsynced_at(edit.key));
        if is_unsynced || !has_way(keeper, (memory, size), usize::MAX) {
            continue;
        }
        let need = Need { want: Claim::Replace, pages, live: 0, deaths: BATCH_DEATHS };
        let Some(mut change) = keeper.claim(need)? else { continue };
        if is_stale(keeper, edits)? {
            return Ok(Made::Stale);
        }
        let applied =
            with_head(keeper, edits, |tree, waiting, edits| put_through(tree, waiting, &mut change, (edits, growth)));
        let applied = applied.map(|(existed, pages)| {
            keeper.count(true, pages);
            Made::Existed(existed)
        });
        match keeper.conclude(change, applied) {
            Err(EngineError::BatchTooLarge { .. }) if pages < BATCH_PAGES_MAX => {
                pages = (2 * pages).min(BATCH_PAGES_MAX)
            }
            outcome => return outcome,
        }
    }
    Err(keeper.refuse(Claim::Replace))
}

/// Makes changes in their leaves, with what waits for those. Returns whether the key of the last was there, and how many pages of values there are more and fewer.
fn put_through<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    change: &mut Change,
    (edits, growth): (&Edits<'_>, Growth),
) -> Outcome<(bool, (u32, u32)), N> {
    let (mut existed, mut more, mut fewer) = (false, 0, 0);
    for edit in edits.iter() {
        if !is_kept_by(tree.path.shape(), edits, edit.key) {
            fewer += replace_waiting(tree, &waiting.changes, edit.key)?;
        }
        more += pages_named(tree.path.shape(), &edit);
        let group = group_of(tree, &waiting.changes, edit.key)?;
        waiting.changes.merge(group);
    }
    for edit in edits.iter() {
        existed = value_at(tree, &waiting.changes, edit.key)?.is_some();
        waiting.changes.set_at_once(edit.key, gain(tree.path.shape(), &edit, existed));
    }
    apply(tree, change, waiting.changes.merged(edits), growth)?;
    Ok((existed, (more, fewer)))
}

/// Makes every change so far durable. Programs one page, or nothing if there is no change since the last sync; and where memory is nearly full as many leaves
/// as room for as many changes again takes, of which each has three or more in the mean.
pub(crate) fn sync<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    let group = keeper.waiting().changes.unsynced();
    if group == 0 {
        return Ok(());
    }
    commit_all(keeper)?;
    relieve(keeper, group, RELIEVED_MAX)
}

/// The same, and no more: who asks next makes room for what he needs.
pub(crate) fn commit_all<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    for _ in 0..CLAIMS_MAX {
        if keeper.waiting().changes.unsynced() == 0 {
            return Ok(());
        }
        commit_some(keeper)?;
    }
    Err(keeper.refuse(Claim::Replace))
}

/// A commit of all that is unsynced, which takes a leaf along if one has room for the list. Or room is made for it: something is unsynced yet then.
fn commit_some<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    keeper.ready()?;
    // A leaf that cannot be read is no reason to lose what is to be made durable.
    let ride = find_ride(keeper).map_err(|error| keeper.undo(error)).unwrap_or(None);
    let pages = if ride.is_some() { 2 } else { 1 };
    let need = Need { want: Claim::Replace, pages, live: 0, deaths: DEATHS };
    let Some(mut change) = keeper.claim(need)? else { return Ok(()) };
    let applied = match ride {
        Some(group) => merge(keeper, &mut change, group),
        None => Ok(()),
    };
    keeper.count(true, (0, 0));
    match keeper.conclude(change, applied) {
        Err(error) if ride_failed(keeper, &error) => {
            let Some(change) = keeper.claim(need)? else { return Ok(()) };
            keeper.count(true, (0, 0));
            keeper.conclude(change, Ok(()))
        }
        outcome => outcome,
    }
}

/// Whether a sync goes on without a leaf.
fn ride_failed<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>, error: &EngineError<N::Error>) -> bool {
    !keeper.is_broken() && matches!(error, EngineError::Corrupt { .. } | EngineError::BatchTooLarge { .. })
}

/// Makes changes of one leaf in the buffers. A leaf that does not fit beside its ancestors then gets a page of its own: what was accepted asks for no more room.
fn merge<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, change: &mut Change, group: Range<usize>) -> Outcome<(), N> {
    let (tree, waiting) = keeper.parts();
    debug_assert!(waiting.changes.waits_in(group.clone()) > 0, "changes of a leaf");
    waiting.changes.merge(group);
    apply(tree, change, waiting.changes.merged(&Edits::of(&[])), Growth::Own)
}

/// Leaves with most changes, of those that are looked at; the densest first.
fn densest<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<[Range<usize>; TRIES], N> {
    const { assert!(TRIES > 0) };
    let mut best = [const { 0..0 }; TRIES];
    let (tree, waiting) = keeper.parts();
    let count = waiting.changes.len();
    let (mut at, mut left, mut candidates) = (waiting.next, count, CANDIDATES);
    while left > 0 && candidates > 0 {
        at = if at < count { at } else { 0 };
        if waiting.changes.waits_in(at..at + 1) == 0 {
            (at, left) = (at + 1, left - 1);
            continue;
        }
        candidates -= 1;
        let group = group_of(tree, &waiting.changes, waiting.changes.key(at))?;
        let mut other = group.clone();
        for place in &mut best {
            let (more, fewer) = (waiting.changes.waits_in(other.clone()), waiting.changes.waits_in(place.clone()));
            if more > fewer && *place != other {
                core::mem::swap(place, &mut other);
            }
        }
        at = group.end.max(at + 1);
        left = left.saturating_sub(group.len().max(1));
    }
    waiting.next = at;
    Ok(best)
}

/// The leaf that a sync takes along: one with many changes, whose page has room for the list.
fn find_ride<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<Option<Range<usize>>, N> {
    for group in densest(keeper)? {
        if group.is_empty() {
            break;
        }
        let (tree, waiting) = keeper.parts();
        descend(tree, Seek::At(waiting.changes.key(group.start)), 1)?;
        let child = tree.path.child(0);
        let place = leaf_in(tree, child)?;
        let size = size_with(tree.path.shape().cells(), look(tree, &place), waiting.changes.edits(group.clone()));
        if size + size_beside(waiting, &group) <= tree.path.room() {
            return Ok(Some(group));
        }
    }
    Ok(None)
}

/// Merges so many leaves at most into pages that promise nothing, of those with most changes, unless something is unsynced; in a round at whose begin the log had spent this.
fn merge_leaves<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, count: usize, spent: u64) -> Outcome<(), N> {
    for nth in 0..count {
        let changes = &keeper.waiting().changes;
        let is_enough = nth > 0 && keeper.tree().log.spent().0 > spent + MERGING_MAX;
        if is_enough || changes.unsynced() > 0 || changes.waiting() == 0 {
            break;
        }
        merge_leaf(keeper, Which::Densest)?;
    }
    Ok(())
}

/// Makes so many bytes of memory free: merges leaves into pages that promise nothing, and lets members leave. Nothing is unsynced.
pub(crate) fn relieve<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    memory: usize,
    mut leaves: usize,
) -> Outcome<(), N> {
    debug_assert!(keeper.waiting().changes.unsynced() == 0, "what is unsynced is in no leaf");
    // With as many commits each of today's members has left, and memory holds of what is merged only what newer ones list.
    let mut members = keeper.waiting().window.len();
    while leaves > 0 {
        let (tree, waiting) = keeper.parts();
        // Less may wait where the tree grows meanwhile.
        let max = waiting_max(waiting, tree.path.shape());
        let memory = memory.min(max / 2);
        if waiting.changes.waiting() + memory > max {
            leaves -= 1;
            merge_leaf(keeper, Which::Densest)?;
        } else if members == 0 || has_room(waiting, tree.path.shape(), (memory, 0)) {
            break;
        } else {
            members -= 1;
            keeper.ready()?;
            keeper.bury()?;
        }
    }
    Ok(())
}

/// A leaf for which changes wait.
#[derive(Clone, Copy)]
enum Which {
    First,
    /// The one with most changes, of those that are looked at.
    Densest,
}

/// The changes of a leaf.
fn group_for<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, which: Which) -> Outcome<Range<usize>, N> {
    let (tree, waiting) = keeper.parts();
    match (which, waiting.changes.first_waiting()) {
        (_, None) => Ok(0..0),
        (Which::Densest, _) => densest(keeper).map(|[group, ..]| group),
        (Which::First, Some(first)) => group_of(tree, &waiting.changes, waiting.changes.key(first)),
    }
}

/// Brings the changes of a leaf there, in a page that promises nothing, or in a commit where one of them is unsynced; or some of them, where it is to be divided and there is no room for that many pages at once. Which these are is asked again
/// whenever something had to be done for their room: what is in its leaf may have left memory.
fn merge_leaf<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, which: Which) -> Outcome<(), N> {
    keeper.ready()?;
    let (mut more, mut most) = (0, usize::MAX);
    for _ in 0..CLAIMS_MAX {
        let group = group_for(keeper, which)?;
        let (group, count) = keeper.waiting().changes.first_of(group, most);
        if count == 0 {
            return Ok(());
        }
        let (pages, deaths) = pages_of(keeper, &group)?;
        let pages = (pages + more).min(BATCH_PAGES_MAX);
        let mut change = match keeper.claim(Need { want: Claim::Replace, pages, live: 0, deaths }) {
            Ok(Some(change)) => change,
            Ok(None) => continue,
            Err(EngineError::Log(LogError::Full)) if count > 1 => {
                most = count / 2;
                continue;
            }
            Err(error) => return Err(error),
        };
        // A page of a value may have moved for the room, and a change that names it is unsynced: if it is of this leaf, that is the leaf of a commit.
        let is_unsynced = keeper.waiting().changes.has_unsynced(group.clone());
        let applied = merge(keeper, &mut change, group);
        keeper.count(is_unsynced, (0, 0));
        let kept = if is_unsynced { keeper.conclude(change, applied) } else { keeper.keep(change, applied) };
        match kept {
            Err(EngineError::BatchTooLarge { pages }) if pages < BATCH_PAGES_MAX => more = 2 * more + pages,
            outcome => return outcome,
        }
    }
    Err(keeper.refuse(Claim::Replace))
}

/// Pages that bringing the changes of a leaf there takes, with one to spare for a commit, and how many die.
fn pages_of<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, group: &Range<usize>) -> Outcome<(u32, usize), N> {
    let (tree, waiting) = keeper.parts();
    descend(tree, Seek::At(waiting.changes.key(group.start)), 1)?;
    let child = tree.path.child(0);
    let place = leaf_in(tree, child)?;
    let (leaf, edits) = (look(tree, &place), waiting.changes.edits(group.clone()));
    let shape = tree.path.shape();
    if size_with(shape.cells(), leaf, edits.clone()) <= shape.own_room() {
        return Ok((3, DEATHS));
    }
    let splits = if group.len() > 1 { splits_by(&tree.path, leaf, edits).max(1) } else { 1 };
    Ok((3 + 2 * splits + inner_splits_max(&tree.path), BATCH_DEATHS))
}

/// Brings changes to their leaves, and lets members leave, until the user's call has taken so many programs. Returns whether anything waited. A page for each leaf concerned.
pub(crate) fn flush_some<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, most: u32) -> Outcome<bool, N> {
    let mut any = false;
    while !keeper.waiting().is_idle() && keeper.spent().0 < most {
        any = true;
        if keeper.waiting().changes.unsynced() > 0 {
            commit_some(keeper)?;
        } else if keeper.waiting().changes.first_waiting().is_some() {
            merge_leaf(keeper, Which::First)?;
        } else {
            // What is merged is listed by a member yet.
            keeper.ready()?;
            keeper.bury()?;
        }
    }
    Ok(any)
}

/// Brings every change to its leaf, and lets all members leave.
pub(crate) fn flush<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>) -> Outcome<(), N> {
    flush_some(keeper, u32::MAX)?;
    debug_assert!(keeper.waiting().is_idle(), "nothing waits");
    Ok(())
}

/// So many pages of values more can be told to die with the next commit, if no more die with one than can: else live counts would be too high, and be made anew with a read of every leaf.
fn make_dying_room<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, pages: usize) -> Outcome<(), N> {
    let log = &keeper.tree().log;
    let needed = DEATHS + keeper.waiting().window.len() + pages;
    if keeper.working().counts.may_have_heads() && log.has_dying() && log.dying_room() < needed {
        keeper.bury()?;
    }
    Ok(())
}
