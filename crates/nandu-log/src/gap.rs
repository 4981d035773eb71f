//! Pages that a cut left out (N9), told from pages that were lost by what stands beside them.
//!
//! ```text
//!   commit   torn     commit                    the second commit names the first as the one before
//!   commit   torn     survivor  survivor        the newest commit was copied to another block, and survivors follow in this one
//!   lost     erased   survivor                  that commit itself, of which the copy counts
//!   commit   torn     lost      erased survivor   both, one after the other
//!   commit   erased   lost      survivor        a survivor that counted: not left out
//! ```

use nandu_media::PageKind;
use nandu_nand::{Nand, PageAddr};

use crate::error::LogError;
use crate::medium::{Medium, Probe};
use crate::shape::Shape;

/// Whether a page that cannot be read is one that a cut left out.
pub(crate) fn is_left_out<N: Nand>(
    medium: &mut Medium<'_, N>,
    shape: &Shape,
    page: PageAddr,
) -> Result<bool, LogError<N::Error>> {
    let (block, nth) = (shape.block_of(page), shape.nth_of(page));
    // The nearest page that is valid, how far it is, and whether one between is erased, and the one beside it. Before the first page of a block the place wraps.
    let mut nearest = |step| {
        let (mut place, mut distance, mut is_erased) = (nth, 0_u16, (false, false));
        loop {
            (place, distance) = (place.wrapping_add_signed(step), distance + 1);
            if place >= shape.pages {
                return Ok(None);
            }
            match medium.probe(shape.page(block, place))? {
                Probe::Valid(found) => return Ok(Some((found, distance, is_erased))),
                Probe::Erased => is_erased = (true, true),
                Probe::Garbage => is_erased.1 = false,
            }
        }
    };
    let before = nearest(-1)?.filter(|(before, ..)| before.kind == PageKind::Commit);
    let Some((behind, distance, (_, is_beside_erased))) = nearest(1)? else { return Ok(false) };
    Ok(match before {
        Some((_, _, (false, _))) if behind.stream != 0 && is_beside_erased => true,
        _ if behind.stream != 0 && is_beside_erased => distance == 2,
        _ if behind.stream != 0 => distance == 1 && before.is_some_and(|(_, distance, _)| distance == 1),
        Some((before, ..)) => behind.committed == Some(before.page),
        None => false,
    })
}
