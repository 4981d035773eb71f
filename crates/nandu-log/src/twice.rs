//! Commits that are programmed twice, so that the newest one outlives a page that nobody can read.
//!
//! After a cut such a page passes for a torn one, and the commit before it counts: what was acknowledged last is gone, and no error says so. The second page says what the first one says, and
//! counts in its place. The first one needs no room: it is dead as soon as the second one is there, and stays readable, since a block is erased only when a checkpoint behind both lists it.

use nandu_media::PageKind;
use nandu_nand::{Cause, Nand, PageAddr};

use crate::volume::Volume;

/// Programs the newest commit again, if the options want that; returns the page that counts. A cut, or a chip that takes no more, leaves the first one, so that the commit is durable all the same.
pub(crate) fn commit_again<N: Nand>(
    volume: &mut Volume<'_, N>,
    bytes: &mut [u8],
    first: PageAddr,
    cause: Cause,
) -> PageAddr {
    debug_assert!(volume.committed() == Some(first));
    if volume.heads().commits() == 1 {
        return first;
    }
    let Ok(second) = volume.append(bytes, PageKind::Commit, (0, false), cause) else { return first };
    let block = volume.shape().block_of(first);
    volume.blocks_mut().lose(block);
    debug_assert!(volume.committed() == Some(second) && second != first);
    second
}
