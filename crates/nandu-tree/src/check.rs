//! Whether changes are such that a tree takes them. Nothing is read.

use core::error::Error;
use core::ops::Bound;

use nandu_cells::Cells;
use nandu_index::Edit;

use crate::error::{BESIDE_MAX, EngineError};
use crate::shape::TreeShape;

pub(crate) fn check_key<E: Error, C: Cells>(shape: &TreeShape<C>, key: &[u8]) -> Result<(), EngineError<E>> {
    if shape.may_be_given(key) {
        Ok(())
    } else if shape.is_reserved(key) {
        Err(EngineError::ReservedKey)
    } else {
        Err(EngineError::KeySize(key.len()))
    }
}

pub(crate) fn check_bound<E: Error, C: Cells>(shape: &TreeShape<C>, bound: Bound<&[u8]>) -> Result<(), EngineError<E>> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => check_key(shape, key),
        Bound::Unbounded => Ok(()),
    }
}

pub(crate) fn check_value<E: Error, C: Cells>(
    shape: &TreeShape<C>,
    key: &[u8],
    value: &[u8],
) -> Result<(), EngineError<E>> {
    if shape.value_fits(key, value) { Ok(()) } else { Err(EngineError::ValueSize(value.len())) }
}

/// Changes of a batch, whose keys ascend.
pub(crate) fn check_edits<E: Error, C: Cells>(shape: &TreeShape<C>, edits: &[Edit<'_>]) -> Result<(), EngineError<E>> {
    for (index, edit) in edits.iter().enumerate() {
        check_key(shape, edit.key)?;
        if let Some(value) = edit.value {
            check_value(shape, edit.key, value)?;
        }
        if index > 0 && edits[index - 1].key >= edit.key {
            return Err(EngineError::NotAscending(index));
        }
    }
    Ok(())
}

/// Changes that are made with one of this key, of which none is.
pub(crate) fn check_beside<E: Error, C: Cells>(
    shape: &TreeShape<C>,
    key: &[u8],
    beside: &[Edit<'_>],
) -> Result<(), EngineError<E>> {
    check_key(shape, key)?;
    let at = beside.partition_point(|edit| edit.key < key);
    match beside.get(at) {
        Some(edit) if edit.key == key => Err(EngineError::NotAscending(at)),
        _ if beside.len() > BESIDE_MAX => Err(EngineError::NotAscending(BESIDE_MAX)),
        _ => check_edits(shape, beside),
    }
}
