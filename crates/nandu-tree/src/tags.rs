//! Pages of values that are durable by their own program (feature `tags`).
//!
//! A raw page may have a tag, in which the user says what it belongs to ([`nandu_log`], "Tails"). Then its head, and what changes with it, are unsynced changes as any others, but nobody has
//! to commit them: a mount makes them in memory again. This rests on the rest:
//!
//! * (W7) A page is tagged where everything before it is durable, and nothing else has to be done for it: its changes have room in memory, in the next list, and in their leaves. So what a mount makes again has room there, too: it
//!   is what the memory held.
//! * Between the page and its changes there is no commit. A commit after both lists these changes, and its tail begins behind the page.
//! * Moves are unsynced changes that nobody waits for. A cut takes them back, and leaves the sources, which die with the next commit.
//! * The members of the window and the pages of the tail are [`TAIL_MAX`] together, fewer than the members may be without a tail, so that a mount reads no more.

use nandu_cells::Cells;
use nandu_index::Edit;
use nandu_log::{Claim, Kind, LogError, TAIL_MAX, Tag, Tagged};
use nandu_media::features::TAGS;
use nandu_nand::{CellMode, Nand, PageAddr};

use crate::division::raw_head;
use crate::edits::Edits;
use crate::error::{EngineError, Outcome};
use crate::keeper::{CLAIMS_MAX, Keeper};
use crate::list::changes_max;
use crate::options::Durability;
use crate::reader::raw_check;
use crate::sync::{has_all, set};
use crate::writer::{DEATHS, Need};

/// A page that a mount found behind the newest commit, and what its user said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedPage {
    /// What its tag says.
    pub tag: Tag,
    page: u32,
    check: u32,
}

/// The place in the tail that a raw page would have that is programmed next, if it would be durable by its tag, and by that alone; and how many members the window has.
pub(crate) fn tag_next<N: Nand, C: Cells>(keeper: &Keeper<'_, N, C>) -> Option<(u32, usize)> {
    let waiting = keeper.waiting();
    let is_owed = waiting.is_owed && !waiting.broken.is(|it| it.tags_unsynced);
    if !TAGS || waiting.durability != Durability::OnSync || is_owed {
        return None;
    }
    let (place, members) = (keeper.tree().log.tag_next()?, waiting.window.len());
    is_place(place as usize, members).then_some((place, members))
}

/// Whether a page may be tagged at this place of the tail, where the window has so many members.
fn is_place(place: usize, members: usize) -> bool {
    place + members < usize::from(TAIL_MAX)
}

/// Puts a value of a whole page at a key, and makes other changes with it, none of which is of this key; all of it is durable when this returns. False if that cannot be: nothing was changed then. 1 program.
pub(crate) fn put_tagged<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    key: &[u8],
    (bytes, tag): (&[u8], &Tag),
    beside: &[Edit<'_>],
) -> Outcome<bool, N> {
    keeper.check_writable()?;
    debug_assert!(bytes.len() == keeper.tree().log.page_size(), "a tag tells of a whole page");
    let mut head = raw_head(bytes.len(), (0, 0));
    if !has_all(keeper, &Edits::beside(Edit { key, value: Some(&head) }, beside), 0)? {
        return Ok(false);
    }
    let need = Need { want: Claim::Grow, pages: 2, live: 1, deaths: DEATHS + 1 };
    let mut change = match keeper.claim_for(need, Some(CellMode::Slc)) {
        Ok(Some(change)) if tag_next(keeper).is_some() => change,
        Ok(_) | Err(EngineError::Log(LogError::Full)) => return Ok(false),
        Err(error) => return Err(keeper.undo(error)),
    };
    let (tree, _) = keeper.parts();
    let out = tree.reader.lend();
    out.copy_from_slice(bytes);
    let check = raw_check(out);
    let appended = change.append(&mut tree.log, Kind::Tagged(key, tag), out);
    let page = *appended.as_ref().unwrap_or(&u32::MAX);
    keeper.keep(change, appended.map(drop))?;
    let (tree, waiting) = keeper.parts();
    tree.reader.programmed(page);
    debug_assert!(!waiting.is_owed || waiting.broken.is(|it| it.tags_unsynced), "what came before is durable");
    waiting.is_owed = !tree.log.is_tagged(PageAddr(page));
    head = raw_head(bytes.len(), (page, check));
    // All this was read before. If it cannot be read again, nothing more is made durable: a mount would make what the tag says.
    let edits = Edits::beside(Edit { key, value: Some(&head) }, beside);
    edits.iter().try_for_each(|edit| set(keeper, (&edits, &edit))).inspect_err(|_| keeper.breaks(true))?;
    Ok(true)
}

/// The next page of the tail that was found at the mount, from this place on, which goes behind it; the buffer gets its bytes, and keeps them where there is none. A read for each place where a page may have been tagged.
pub(crate) fn next_tagged<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    place: &mut u16,
    bytes: &mut [u8],
) -> Outcome<Option<TaggedPage>, N> {
    // No commit came since, so that the window is what it was.
    let members = keeper.waiting().window.len();
    while TAGS && is_place(usize::from(*place), members) {
        let (tree, _) = keeper.parts();
        let out = tree.reader.lend();
        let found = tree.log.read_tail(*place, out)?;
        *place += 1;
        match found {
            Tagged::End => return Ok(None),
            Tagged::Other | Tagged::Lost => {}
            Tagged::Of(PageAddr(page), tag) => {
                bytes.copy_from_slice(out);
                return Ok(Some(TaggedPage { tag, page, check: raw_check(out) }));
            }
        }
    }
    Ok(None)
}

/// Makes the changes in memory again that a page of the tail tells of, which comes in place of nothing, or of a value of this key that nobody has to look at: after a cut it is not known what lives, and that is counted before it matters.
/// Nothing is read or programmed.
pub(crate) fn adopt<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    key: &[u8],
    (tagged, is_new): (&TaggedPage, bool),
    beside: &[Edit<'_>],
) -> Outcome<(), N> {
    debug_assert!(!keeper.tree().path.is_dirty(), "a mount changes nothing else");
    let head = raw_head(keeper.tree().path.shape().page_size(), (tagged.page, tagged.check));
    keeper.head_waits(is_new.into());
    let max = changes_max(keeper.tree().path.shape().bare_room());
    let (_, waiting) = keeper.parts();
    let edits = Edits::beside(Edit { key, value: Some(&head) }, beside);
    let (memory, size) = waiting.changes.sizes(&edits);
    if waiting.listed_next() + size > max || waiting.changes.used() + memory > waiting.changes.size() {
        return Err(EngineError::PendingSize);
    }
    waiting.is_owed = true;
    for edit in edits.iter() {
        waiting.changes.set_unsynced(&edit, (is_new && edit.key == key).into());
    }
    Ok(())
}

/// Makes durable what was made again, and programs the last page of the tail, which is that of this key and was read to have these bytes, elsewhere: it may be torn, and read badly the next time. 1 program, and 1 for a commit, with which no member leaves
/// of which nobody knows whether it dies, so that a mount need not find out.
pub(crate) fn end_tail<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (last, key, bytes): (&TaggedPage, &[u8], &[u8]),
) -> Outcome<(), N> {
    let need = Need { want: Claim::Bury, pages: 2, live: 1, deaths: DEATHS + 1 };
    for _ in 0..CLAIMS_MAX {
        let Some(mut change) = keeper.claim_for(need, Some(CellMode::Slc))? else { continue };
        let (tree, waiting) = keeper.parts();
        let index = waiting.changes.find(key).ok();
        let is_named = |index: &usize| tree.path.shape().page_of(key, waiting.changes.value(*index)) == Some(last.page);
        let copied = index.filter(is_named).map_or(Ok(()), |index| {
            let out = tree.reader.lend();
            out.copy_from_slice(bytes);
            let new = change.append(&mut tree.log, Kind::Raw(key, CellMode::Slc), out)?;
            tree.reader.programmed(new);
            waiting.changes.set_page(index, new);
            tree.log.dies(PageAddr(last.page));
            Ok(())
        });
        keeper.count(true, (0, 0));
        return keeper.conclude(change, copied);
    }
    Err(keeper.refuse(Claim::Replace))
}
