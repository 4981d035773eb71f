//! Entries in order.

use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Edit, Entry, KeyBuf};
use nandu_media::features::SNAPSHOTS;
use nandu_media::tree::Malformed;
use nandu_nand::Nand;

use crate::changes::Changes;
use crate::descend::{Leaf, descend, leaf_in};
use crate::error::{Outcome, corrupt};
use crate::reserved::{END, FIRST};
use crate::slots::Seek;
use crate::tree::Tree;

/// Changes that wait, on the way through the leaves.
struct Overlay<'w, 'm> {
    changes: &'w Changes<'m>,
    /// Upwards the change that comes next, downwards the one above it.
    at: usize,
    end: Bound<&'w [u8]>,
    is_forward: bool,
}

impl<'w> Overlay<'w, '_> {
    /// The change that comes next, unless it is past the end.
    fn peek(&self) -> Option<Edit<'w>> {
        let index = if self.is_forward { self.at } else { self.at.checked_sub(1)? };
        let edit = (index < self.changes.len()).then(|| self.changes.edit(index))?;
        (!is_past(edit.key, self.end, self.is_forward)).then_some(edit)
    }

    fn step(&mut self) {
        self.at = if self.is_forward { self.at + 1 } else { self.at - 1 };
        debug_assert!(self.at <= self.changes.len(), "a change was there");
    }

    /// Visits what is put before a key, on the way, or before this end of a leaf.
    fn visit_before(
        &mut self,
        bound: Bound<&[u8]>,
        visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while let Some(edit) = self.peek().filter(|edit| !is_past(edit.key, bound, self.is_forward)) {
            self.step();
            if let Some(value) = edit.value {
                visit(Entry { key: edit.key, value, large: None })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Visits an entry of a leaf, or what takes its place.
    fn visit_at(&mut self, entry: Entry<'_>, visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.visit_before(Bound::Excluded(entry.key), visit)?;
        match self.peek().filter(|edit| edit.key == entry.key) {
            Some(edit) => {
                self.step();
                edit.value.map_or(ControlFlow::Continue(()), |value| visit(Entry { value, ..entry }))
            }
            None => visit(entry),
        }
    }
}

/// Visits the entries of a user between two bounds as [`range`] does: records of snapshots stand between others, and are left out. Searches twice where both bounds are not on one side of them.
pub(crate) fn range_of_user<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    (from, to, direction): (Bound<&[u8]>, Bound<&[u8]>, Direction),
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> Outcome<(), N> {
    let begins_below = !matches!(from, Bound::Included(key) | Bound::Excluded(key) if *key >= FIRST[..]);
    let ends_above = !matches!(to, Bound::Included(key) | Bound::Excluded(key) if *key < FIRST[..]);
    if !SNAPSHOTS || !tree.path.state().counts.has_snapshots || !begins_below || !ends_above {
        return range(tree, changes, (from, to, direction), visit);
    }
    let mut parts = [(from, Bound::Excluded(&FIRST[..])), (Bound::Included(&END[..]), to)];
    if direction == Direction::Backward {
        parts.reverse();
    }
    let mut is_over = false;
    for (from, to) in parts {
        if !is_over {
            range(tree, changes, (from, to, direction), &mut |entry| {
                let flow = visit(entry);
                is_over = flow.is_break();
                flow
            })?;
        }
    }
    Ok(())
}

/// Visits the entries between two bounds in order, with what waits, until `visit` breaks off. Reads each leaf concerned once, and each inner node above them once.
pub(crate) fn range<N: Nand, C: Cells>(
    tree: &mut Tree<'_, N, C>,
    changes: &Changes<'_>,
    (from, to, direction): (Bound<&[u8]>, Bound<&[u8]>, Direction),
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> Outcome<(), N> {
    let is_forward = direction == Direction::Forward;
    let cells = tree.path.shape().cells();
    let mut fence;
    let mut key = KeyBuf::EMPTY;
    cells.minimum(&mut key);
    // Where the walk goes on, and where it ends.
    let (mut bound, end) = if is_forward { (from, to) } else { (to, from) };
    let at = match bound {
        Bound::Included(key) => changes.find(key).map_or_else(|at| at, |at| at + usize::from(!is_forward)),
        Bound::Excluded(key) => changes.find(key).map_or_else(|at| at, |at| at + usize::from(is_forward)),
        Bound::Unbounded if is_forward => 0,
        Bound::Unbounded => changes.len(),
    };
    let mut overlay = Overlay { changes, at, end, is_forward };
    // Each leaf is a page of its own, so there are no more of them than pages.
    for _ in 0..tree.path.shape().page_count() {
        let seek = match bound {
            Bound::Included(key) => Seek::At(key),
            Bound::Excluded(key) if is_forward => Seek::At(key),
            Bound::Excluded(key) => Seek::Before(key),
            Bound::Unbounded if is_forward => Seek::At(key.as_slice()),
            Bound::Unbounded => Seek::Last,
        };
        descend(tree, seek, 1)?;
        let page = tree.path.child(0);
        let leaf = match leaf_in(tree, page)? {
            Leaf::OfPath => tree.path.held_leaf(),
            Leaf::Elsewhere(place) => tree.reader.at(&place),
        };
        let count = cells.leaf_count(leaf);
        let cut = match bound {
            Bound::Included(key) => cells.leaf_find(leaf, key).map_or_else(|at| at, |at| at + usize::from(!is_forward)),
            Bound::Excluded(key) => cells.leaf_find(leaf, key).map_or_else(|at| at, |at| at + usize::from(is_forward)),
            Bound::Unbounded if is_forward => 0,
            Bound::Unbounded => count,
        };
        let steps = if is_forward { count - cut } else { cut };
        for step in 0..steps {
            let index = if is_forward { cut + step } else { cut - 1 - step };
            cells.leaf_key(leaf, index, &mut key);
            if is_past(key.as_slice(), end, is_forward) {
                let _ = overlay.visit_before(Bound::Unbounded, visit);
                return Ok(());
            }
            // Who goes on behind the key found last relies on finding none before it, or goes in circles.
            if is_past(key.as_slice(), bound, !is_forward) {
                return Err(corrupt(page, Malformed::Node));
            }
            let entry = Entry { key: key.as_slice(), value: cells.leaf_value(leaf, index), large: None };
            if overlay.visit_at(entry, visit).is_break() {
                return Ok(());
            }
        }
        // The key is now where the next leaf is.
        if !tree.path.fence(0, is_forward, &mut key) {
            let _ = overlay.visit_before(Bound::Unbounded, visit);
            return Ok(());
        }
        let fence_at = if is_forward { Bound::Excluded(key.as_slice()) } else { Bound::Included(key.as_slice()) };
        if overlay.visit_before(fence_at, visit).is_break() {
            return Ok(());
        }
        // What ends with this leaf is not looked for in the next one.
        let is_last = match end {
            Bound::Included(last) | Bound::Excluded(last) if !is_forward => key.as_slice() <= last,
            end => is_past(key.as_slice(), end, is_forward),
        };
        if is_last {
            return Ok(());
        }
        // Separators that do not ascend would lead in circles.
        let is_on = match bound {
            Bound::Included(first) | Bound::Excluded(first) if is_forward => key.as_slice() > first,
            bound => !is_past(key.as_slice(), bound, true),
        };
        if !is_on {
            return Err(corrupt(tree.path.page_of(1), Malformed::Node));
        }
        fence = key;
        bound = if is_forward { Bound::Included(fence.as_slice()) } else { Bound::Excluded(fence.as_slice()) };
    }
    Ok(())
}

/// Whether a walk in this direction has gone past a bound with a key.
fn is_past(key: &[u8], bound: Bound<&[u8]>, is_forward: bool) -> bool {
    let order = |bound: &[u8]| if is_forward { key.cmp(bound) } else { bound.cmp(key) };
    match bound {
        Bound::Included(bound) => order(bound).is_gt(),
        Bound::Excluded(bound) => order(bound).is_ge(),
        Bound::Unbounded => false,
    }
}
