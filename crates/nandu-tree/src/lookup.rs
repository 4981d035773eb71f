//! What stands at keys and between them, of a user or of a snapshot.

use core::ops::{Bound, ControlFlow};

use nandu_cells::Cells;
use nandu_index::{Direction, Entry, KeyBuf};
use nandu_log::LogError;
use nandu_nand::Nand;

use crate::check::check_bound;
use crate::descend::{find_leaf, leaf_in, look};
use crate::error::{EngineError, Outcome};
use crate::keeper::Keeper;
use crate::range::range_of_user;
use crate::standing::value_of;
use crate::under_way::read_value;

/// The value of a record, lent.
pub(crate) fn lend<'k, N: Nand, C: Cells>(
    keeper: &'k mut Keeper<'_, N, C>,
    key: &[u8],
) -> Outcome<Option<&'k [u8]>, N> {
    let shape = *keeper.tree().path.shape();
    match value_of(keeper, key)? {
        Some(value) => match shape.head(key, value) {
            Some(division) => Err(EngineError::LargeValue(division.length())),
            None => Ok(Some(value)),
        },
        None => Ok(None),
    }
}

/// Copies what the value of a record has from `offset` on into `out`, as far as both go. Returns the bytes of the whole value; `None` if there is none.
pub(crate) fn copy<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (key, offset): (&[u8], usize),
    out: &mut [u8],
) -> Outcome<Option<usize>, N> {
    match lend(keeper, key) {
        Ok(Some(value)) => {
            let rest = value.get(offset..).unwrap_or_default();
            let size = rest.len().min(out.len());
            debug_assert!(offset + size <= value.len() || size == 0, "a part of the value");
            out[..size].copy_from_slice(&rest[..size]);
            Ok(Some(value.len()))
        }
        Err(EngineError::LargeValue(_)) => read_value(keeper, (key, offset), out),
        Ok(None) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether each page of a large value can be read, and has what its head says; `None` if the key has none.
pub(crate) fn verify_value<N: Nand, C: Cells>(keeper: &mut Keeper<'_, N, C>, key: &[u8]) -> Outcome<Option<bool>, N> {
    let Err(EngineError::LargeValue(size)) = lend(keeper, key) else { return Ok(None) };
    let Some(division) = keeper.tree().path.shape().division(key, size) else { return Ok(Some(false)) };
    for page in 0..division.pages() {
        // A leader that has no bytes is read for the pages before it.
        let Some(last) = division.part(page).last() else { continue };
        match read_value(keeper, (key, last), &mut [0]) {
            Ok(_) => {}
            Err(EngineError::Corrupt { .. } | EngineError::Log(LogError::Corrupt { .. })) => {
                return Ok(Some(false));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(true))
}

/// Visits the entries of a user between two bounds in order, until `visit` breaks off.
pub(crate) fn range<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (from, to, direction): (Bound<&[u8]>, Bound<&[u8]>, Direction),
    visit: &mut dyn FnMut(Entry<'_>) -> ControlFlow<()>,
) -> Outcome<(), N> {
    let (tree, waiting) = keeper.parts();
    let shape = *tree.path.shape();
    check_bound(&shape, from)?;
    check_bound(&shape, to)?;
    range_of_user(tree, &waiting.changes, (from, to, direction), &mut |entry| visit(shape.entry(entry)))
}

/// Copies the key of a user nearest to a bound. Returns whether there is one.
pub(crate) fn nearest<N: Nand, C: Cells>(
    keeper: &mut Keeper<'_, N, C>,
    (bound, direction): (Bound<&[u8]>, Direction),
    found: &mut KeyBuf,
) -> Outcome<bool, N> {
    let (from, to) = match direction {
        Direction::Forward => (bound, Bound::Unbounded),
        Direction::Backward => (Bound::Unbounded, bound),
    };
    let mut is_found = false;
    debug_assert!(!keeper.tree().path.is_dirty(), "nothing is under way");
    range(keeper, (from, to, direction), &mut |entry| {
        is_found = found.set(entry.key);
        ControlFlow::Break(())
    })?;
    Ok(is_found)
}

/// The entry of a record.
pub(crate) fn entry<'k, N: Nand, C: Cells>(
    keeper: &'k mut Keeper<'_, N, C>,
    key: &[u8],
) -> Outcome<Option<Entry<'k>>, N> {
    let (tree, waiting) = keeper.parts();
    let shape = *tree.path.shape();
    tree.path.lend(key);
    if let Ok(index) = waiting.changes.find(key) {
        let key = tree.path.separators()[0].as_slice();
        return Ok(waiting.changes.value(index).map(|value| shape.entry(Entry { key, value, large: None })));
    }
    let page = find_leaf(tree, key)?;
    let place = leaf_in(tree, page)?;
    let (cells, leaf, lent) = (tree.path.shape().cells(), look(tree, &place), tree.path.separators()[0].as_slice());
    let entry = |index| shape.entry(Entry { key: lent, value: cells.leaf_value(leaf, index), large: None });
    Ok(cells.leaf_find(leaf, lent).ok().map(entry))
}
