//! What waits, found again when a volume is opened.
//!
//! The newest commit names the members of the window, the oldest first; what they list is made in memory in their order, and then what it lists itself. A leaf that holds a change
//! already is none the worse: a replay may be made any number of times.

use core::error::Error;
use core::ops::Range;

use nandu_cells::Cells;
use nandu_media::features::GROUP;
use nandu_media::path::WINDOW_MAX;
use nandu_media::section::SectionKind;
use nandu_media::tree::Malformed;
use nandu_nand::{Nand, PageAddr};

use crate::descend::load_root;
use crate::error::{EngineError, Outcome, corrupt};
use crate::list::Waiting;
use crate::shape::{TreeShape, TreeState};
use crate::tree::Tree;
use crate::window::Leaf;

/// Finds the tree of the newest commit, and what waits. Returns where it stands, and the commit, if that is to die with the next one.
pub(crate) fn load_newest<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    committed: PageAddr,
) -> Outcome<(TreeState, Option<PageAddr>), N> {
    let foreign = |error| match error {
        EngineError::Corrupt { why: Malformed::Cells, .. } => EngineError::OtherFormat,
        error => error,
    };
    let body = tree.reader.body(&mut tree.log, committed.0).map_err(foreign)?;
    let (height, records, named) = (body.height(), body.records(), body.named_root());
    // An inner root in the same page is read now, and leaves room beside it for what the page lists.
    let is_here = GROUP && named.is_none() && height > 1;
    let mut is_member = if is_here { false } else { replay(tree, waiting, committed)? };
    let root = named.unwrap_or(committed.0);
    let body = tree.reader.body(&mut tree.log, root)?;
    let is_root = body.root_present() && body.height() == height;
    if !is_root || usize::from(height) > tree.path.shape().limits().height_max() {
        return Err(corrupt(committed.0, Malformed::Levels));
    }
    let state = TreeState::read(root, height, records);
    if state.counts.has_heads && !tree.path.shape().has_values() {
        return Err(EngineError::NotCompiled { feature: &"blobs" });
    }
    debug_assert!(height > 0 && root < tree.path.shape().page_count(), "what was read was checked");
    tree.path.begin(state);
    load_root(tree)?;
    if is_here {
        is_member = replay(tree, waiting, committed)?;
    }
    Ok((state, named.map(|_| committed).filter(|_| !is_member)))
}

/// Reads what the commit in a page says besides its path, and every member of the window. Returns whether the commit lists changes. Reads a page for each member.
fn replay<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    committed: PageAddr,
) -> Outcome<bool, N> {
    let sections = tree.reader.sections(&mut tree.log, committed.0)?;
    let own = sections.find(SectionKind::Changes);
    let has_changes = own.is_some();
    if !GROUP {
        let is_idle = !has_changes && sections.find(SectionKind::Window).is_none();
        return if is_idle { Ok(false) } else { Err(EngineError::NotCompiled { feature: &"group" }) };
    }
    let mut pages = [0; WINDOW_MAX];
    let mut count = 0;
    if let Some(range) = sections.find(SectionKind::Window) {
        let (numbers, rest) = tree.reader.lent(range).as_chunks::<4>();
        if numbers.len() > WINDOW_MAX || !rest.is_empty() {
            return Err(corrupt(committed.0, Malformed::Short));
        }
        count = numbers.len();
        pages.iter_mut().zip(numbers).for_each(|(page, number)| *page = u32::from_le_bytes(*number));
    }
    debug_assert!(waiting.window.is_empty(), "a volume is opened once");
    // What it lists itself is made last, and waits beside the root, so that the page is not read again.
    let own_size = own.as_ref().map_or(0, Range::len);
    tree.path.beside()[..own_size].copy_from_slice(tree.reader.lent(own.unwrap_or_default()));
    for &page in &pages[..count] {
        if waiting.window.contains(page) || page == committed.0 {
            return Err(corrupt(committed.0, Malformed::PageNumber));
        }
        let sections = tree.reader.sections(&mut tree.log, page)?;
        let Some(range) = sections.find(SectionKind::Changes) else {
            return Err(corrupt(page, Malformed::LevelMissing));
        };
        replay_list(tree.path.shape(), waiting, (page, tree.reader.lent(range)))?;
    }
    if has_changes {
        let shape = *tree.path.shape();
        replay_list(&shape, waiting, (committed.0, &tree.path.beside()[..own_size]))?;
    }
    debug_assert!(waiting.window.len() <= WINDOW_MAX + 1, "no more members than there can be");
    Ok(has_changes)
}

/// Makes the changes that a page lists. It is the newest member then.
fn replay_list<E: Error, C: Cells>(
    shape: &TreeShape<C>,
    waiting: &mut Waiting<'_>,
    (page, list): (u32, &[u8]),
) -> Result<(), EngineError<E>> {
    let Waiting { changes, window, broken, .. } = waiting;
    let is_sound = |key: &[u8], value: Option<&[u8]>| shape.key_fits(key) && shape.may_wait(key, value);
    let slot = window.next_slot();
    window.push(page, Leaf::Unknown);
    let heeds_heads = !broken.is(|it| it.hides_heads);
    let is_made = changes.replay(list, (slot, heeds_heads), is_sound).map_err(|why| corrupt(page, why))?;
    if shape.has_raw() {
        changes.name_own_page(page);
    }
    if is_made { Ok(()) } else { Err(EngineError::PendingSize) }
}
