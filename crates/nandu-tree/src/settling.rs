//! Raw pages with two bits a cell: copied, named once no cut can destroy them, and told of where a program that failed took them along ([`unsettled`](crate::unsettled)).

use nandu_cells::Cells;
use nandu_index::{Edit, KeyBuf};
use nandu_log::Victim;
use nandu_media::tree::Malformed;
use nandu_nand::{Nand, PageAddr};

use crate::changes::Changes;
use crate::commit::tell;
use crate::division::{SINGLE_MAX, name_raw};
use crate::error::{Outcome, corrupt};
use crate::large::{Namer, find_namer, head_in_path, head_mut, load_named, program_copy};
use crate::list::Waiting;
use crate::reserved::set_kept;
use crate::siblings::write_moved;
use crate::tree::Tree;
use crate::unsettled::RawCopy;
use crate::values::Values;

/// Programs a raw page elsewhere, which is named so: its record has this key. The copy waits until it may be named, or is given up where too many wait.
pub(crate) fn copy_later<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (waiting, values): (&Waiting<'_>, &mut Values<'_>),
    (key, named): (&[u8], Namer),
    victim: &Victim,
) -> Outcome<(), N> {
    debug_assert!(!tree.path.is_dirty() && tree.log.has_mlc(), "copies go to two bits a cell");
    let source = victim.page();
    let check = load_named(tree, &waiting.changes, (key, named), source.0)?;
    let page = program_copy(tree, (key, true), victim)?;
    let user_key = tree.path.shape().user_key(key);
    let copy = RawCopy::new(user_key, (source.0, tree.log.erases(source)), (page, check));
    if !copy.is_some_and(|copy| values.copies_mut().add(copy)) {
        tree.log.forget(PageAddr(page));
    }
    Ok(())
}

/// Names a copy that may be named in the place of its source: in memory, if that may be, or else in the leaf, with all others that may be named there; the leaf is moved with that where a page is, or left in the path to be committed. If nothing names the source any more, the copy is given up.
pub(crate) fn name_copy<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (waiting, values): (&mut Waiting<'_>, &mut Values<'_>),
    (copy, waits): (&RawCopy, bool),
    victim: Option<&Victim>,
) -> Outcome<(), N> {
    debug_assert!(!tree.path.is_dirty() && tree.log.is_settled(PageAddr(copy.page)), "a commit may name it");
    let source = PageAddr(copy.source);
    // Filled again since, the block has another page there.
    let is_there = tree.log.erases(source) == copy.erases;
    let mut key = KeyBuf::EMPTY;
    key.set(copy.key());
    let mut find = || find_namer(tree, (&waiting.changes, values.snapshots()), (copy.source, 0), &mut key);
    let Some(namer) = (if is_there { find()? } else { None }) else {
        tree.log.forget(PageAddr(copy.page));
        tree.log.goes_late(source);
        return Ok(());
    };
    let key = key.as_slice();
    match (namer, waiting.changes.find(key)) {
        (Namer::Change, Ok(index)) => {
            waiting.changes.set_raw(index, (copy.page, copy.check));
            tree.log.dies(source);
        }
        (Namer::Leaf(_), _) if waits && head_in_path(tree, key).is_some() => {
            let index = head_in_path(tree, key).unwrap_or_default();
            let mut room = [0; SINGLE_MAX];
            let value = tree.path.shape().cells().leaf_value(tree.path.held_leaf(), index);
            let head = &mut room[..value.len()];
            head.copy_from_slice(value);
            name_raw(head, (copy.page, copy.check));
            waiting.changes.set_unsynced(&Edit { key, value: Some(head) }, 0);
            tree.log.dies(source);
        }
        _ => {
            let index = head_in_path(tree, key).ok_or_else(|| corrupt(copy.source, Malformed::Node))?;
            tree.path.replace(copy.source);
            name_raw(head_mut(tree, index), (copy.page, copy.check));
            name_others(tree, &waiting.changes, values);
            tree.path.touch(0);
            if let Some(victim) = victim {
                write_moved(tree, victim, 0)?;
                let is_all = tell(tree, waiting, None);
                debug_assert!(is_all, "a copy is named where there is room for the deaths");
            }
        }
    }
    tree.log.goes_late(source);
    tree.path.stats_mut().moves += 1;
    Ok(())
}

/// Names the copies that may be named and of which the records stand in the leaf in the path: it is programmed once for all of them.
fn name_others<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, changes: &Changes<'_>, values: &mut Values<'_>) {
    values.copies_mut().set_named(|copy| {
        let source = PageAddr(copy.source);
        let may_be = tree.log.is_settled(PageAddr(copy.page)) && tree.log.erases(source) == copy.erases;
        // What waits of a key is newer than its leaf.
        let is_in_leaf = may_be && changes.find(copy.key()).is_err();
        let Some(index) = (if is_in_leaf { head_in_path(tree, copy.key()) } else { None }) else { return false };
        let shape = tree.path.shape();
        let head = shape.cells().leaf_value(tree.path.held_leaf(), index);
        if shape.page_of(copy.key(), Some(head)) != Some(copy.source) {
            return false;
        }
        tree.path.replace(copy.source);
        name_raw(head_mut(tree, index), (copy.page, copy.check));
        true
    });
}

/// The leaf was programmed: the copies that it names wait no longer.
pub(crate) fn end_named<N: Nand, C: Cells>(tree: &mut Tree<'_, N, C>, values: &mut Values<'_>) {
    debug_assert!(!tree.path.is_dirty(), "what it names is programmed");
    while let Some(copy) = values.copies_mut().take_named() {
        tree.log.goes_late(PageAddr(copy.source));
        tree.path.stats_mut().moves += 1;
    }
}

/// Deals with what shared its cells with a program that failed: copies are given up, and of other pages their records, which wait, name another page from now on. 1 program for each of these.
pub(crate) fn rescue<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    waiting: &mut Waiting<'_>,
    values: &mut Values<'_>,
) -> Outcome<(), N> {
    debug_assert!(!tree.path.is_dirty(), "a page was appended, and nothing else");
    while let Some(rescued) = tree.log.rescue(tree.reader.lend())? {
        let (from, Some(to)) = (rescued.from, rescued.to) else {
            if values.copies_mut().take(|copy| copy.page == rescued.from.0).is_some() {
                tree.log.forget(rescued.from);
            }
            continue;
        };
        tree.reader.programmed(to.0);
        let key = rescued.owner.key().unwrap_or_default();
        let names = |key: &[u8]| {
            let index = waiting.changes.find(key).ok()?;
            let page = tree.path.shape().page_of(key, waiting.changes.value(index));
            page.filter(|&page| page == from.0).map(|_| index)
        };
        let mut record = KeyBuf::EMPTY;
        let kept = || values.snapshots().iter().find_map(|it| names(set_kept(&mut record, it.slot, key)));
        match names(key).or_else(kept) {
            Some(index) => waiting.changes.set_page(index, to.0),
            None if values.has_raw(from.0) => values.move_raw(to.0),
            // What named it was changed since, and it dies with the next commit.
            None => {
                tree.log.forget(to);
                continue;
            }
        }
        tree.log.forget(from);
    }
    Ok(())
}
