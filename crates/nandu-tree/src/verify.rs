//! The whole tree, walked once.

use nandu_cells::Cells;
use nandu_index::{KeyBuf, Violation};
use nandu_media::tree::HEIGHT_MAX;
use nandu_nand::{Nand, PageAddr};

use crate::changes::Changes;
use crate::descend::{descend, load_root};
use crate::error::{EngineError, Outcome};
use crate::path::Path;
use crate::slots::{PENDING, Seek};
use crate::tree::Tree;

/// The bounds between which the keys of a node must lie: not below the first, below the second.
struct Fences {
    low: Option<KeyBuf>,
    high: Option<KeyBuf>,
}

impl Fences {
    fn of<C: Cells>(path: &Path<'_, C>, level: u8) -> Fences {
        let fence = |is_above| {
            let mut key = KeyBuf::EMPTY;
            path.fence(level, is_above, &mut key).then_some(key)
        };
        Fences { low: fence(false), high: fence(true) }
    }

    fn hold(&self, key: &[u8]) -> bool {
        self.low.is_none_or(|low| key >= low.as_slice()) && self.high.is_none_or(|high| key < high.as_slice())
    }
}

/// Checks T1 to T6 and reports each violation; with what waits the tree has so many entries. Reads each live page once, a page whose nodes serve several paths again when it no longer is the page read
/// last, and nothing from memory.
pub(crate) fn verify<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (changes, count): (&Changes<'_>, u64),
    report: &mut dyn FnMut(Violation),
) -> Outcome<(), N> {
    let state = tree.path.state();
    tree.path.begin(state);
    tree.reader.clear();
    let outcome = walk(tree, (changes, count), report);
    // What was loaded on the way may be unsound; nothing of it is used on.
    tree.path.begin(state);
    tree.reader.clear();
    match outcome {
        Err(EngineError::Corrupt { page, .. }) => report(Violation { invariant: "T6", page, level: 0, index: 0 }),
        // The log found a page of the tree unreadable, or no page of the tree.
        Err(EngineError::Log(nandu_log::LogError::Corrupt { page, .. })) => {
            report(Violation { invariant: "T6", page, level: 0, index: 0 });
        }
        other => other?,
    }
    Ok(())
}

fn walk<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    (changes, count): (&Changes<'_>, u64),
    report: &mut dyn FnMut(Violation),
) -> Outcome<(), N> {
    load_root(tree)?;
    let mut key = KeyBuf::EMPTY;
    tree.path.shape().cells().minimum(&mut key);
    let mut seen = [PENDING; HEIGHT_MAX];
    let (mut records, mut at) = (0, 0);
    for _ in 0..tree.path.shape().page_count() {
        descend(tree, Seek::At(key.as_slice()), 1)?;
        for level in (1..=tree.path.top()).rev() {
            let page = tree.path.page_of(level);
            if seen[usize::from(level)] != page {
                seen[usize::from(level)] = page;
                let lowest = tree.reader.body(&mut tree.log, page)?.lowest();
                check_inner(&tree.path, level, lowest, report);
            }
        }
        let page = tree.path.child(0);
        let place = tree.reader.read_node(&mut tree.log, page, 0)?;
        let leaf = tree.reader.at(&place);
        records += check_leaf(&tree.path, (page, leaf), report);
        let before = key;
        let is_last = !tree.path.fence(0, true, &mut key);
        // What waits for this leaf counts as if it were there.
        let end = if is_last { changes.len() } else { changes.lower(key.as_slice()).max(at) };
        for edit in changes.edits(at..end) {
            let is_there = tree.path.shape().cells().leaf_find(leaf, edit.key).is_ok();
            let gain = i64::from(edit.value.is_some()) - i64::from(is_there);
            let is_counted = tree.path.shape().counted(true, edit.key) > 0;
            records = records.saturating_add_signed(if is_counted { gain } else { 0 });
        }
        at = end;
        if is_last {
            break;
        }
        if before.as_slice() >= key.as_slice() {
            // Separators that do not ascend would lead in circles; they were reported.
            return Ok(());
        }
    }
    if records != count {
        let page = PageAddr(tree.path.state().root);
        report(Violation { invariant: "T5", page, level: tree.path.top(), index: 0 });
    }
    Ok(())
}

fn check_inner<C: Cells>(path: &Path<'_, C>, level: u8, lowest: u8, report: &mut dyn FnMut(Violation)) {
    let cells = path.shape().cells();
    let page = PageAddr(path.page_of(level));
    let mut violated = |invariant, index: usize| report(Violation { invariant, page, level, index: index as u32 });
    let node = path.inner(level);
    let count = cells.inner_count(node);
    let here = cells.inner_path(node);
    if level == path.top() && count < 2 {
        violated("T4", 0);
    }
    if here.is_none() != (lowest == level) {
        violated("T3", here.unwrap_or(0));
    }
    let fences = Fences::of(path, level);
    let (mut separator, mut before) = (KeyBuf::EMPTY, KeyBuf::EMPTY);
    for index in 0..count - 1 {
        cells.inner_separator(node, index, &mut separator);
        if index > 0 && separator.as_slice() <= before.as_slice() {
            violated("T1", index);
        }
        let above_low = fences.low.is_none_or(|low| separator.as_slice() > low.as_slice());
        if !above_low || !fences.hold(separator.as_slice()) {
            violated("T2", index);
        }
        before = separator;
    }
    for index in (0..count).filter(|&index| Some(index) != here) {
        if path.child_at(level, index) >= path.shape().page_count() {
            violated("T6", index);
        }
    }
}

/// Checks the leaf of the path and returns the number of its entries, without those of snapshots.
fn check_leaf<C: Cells>(path: &Path<'_, C>, (page, leaf): (u32, &[u8]), report: &mut dyn FnMut(Violation)) -> u64 {
    let cells = path.shape().cells();
    let mut violated = |invariant, index: usize| {
        report(Violation { invariant, page: PageAddr(page), level: 0, index: index as u32 });
    };
    let count = cells.leaf_count(leaf);
    if count == 0 && path.top() > 0 {
        violated("T4", 0);
    }
    let fences = Fences::of(path, 0);
    let (mut key, mut before, mut records) = (KeyBuf::EMPTY, KeyBuf::EMPTY, 0);
    for index in 0..count {
        cells.leaf_key(leaf, index, &mut key);
        records += path.shape().counted(true, key.as_slice());
        if index > 0 && key.as_slice() <= before.as_slice() {
            violated("T1", index);
        }
        if !fences.hold(key.as_slice()) {
            violated("T2", index);
        }
        before = key;
    }
    records
}
