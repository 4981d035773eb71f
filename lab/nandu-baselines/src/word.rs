//! Keys and values of the index, as the trees have them: numbers whose order is that of the bytes.

use core::ops::Bound;

use crate::BaselineError;
use crate::pages::Result;

/// A key or value.
pub(crate) fn word<E: core::error::Error + 'static>(bytes: &[u8]) -> Result<u32, E> {
    bytes.try_into().map(u32::from_be_bytes).map_err(|_| BaselineError::Width { size: bytes.len() })
}

/// The bound of a range.
pub(crate) fn bound<E: core::error::Error + 'static>(bound: Bound<&[u8]>) -> Result<Bound<u32>, E> {
    Ok(match bound {
        Bound::Included(bytes) => Bound::Included(word(bytes)?),
        Bound::Excluded(bytes) => Bound::Excluded(word(bytes)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}
