//! Which pages of a block share their cells.

use nandu_nand::{Geometry, PageAddr, PageGroup};

/// Most pages of a block that may wait for their partners at a time.
pub(crate) const EXPOSED_MAX: usize = 8;

/// Whether a page is the second one of its cells.
pub(crate) fn is_msb(geometry: &Geometry, page: PageAddr) -> bool {
    let nth = geometry.index_in_block(page);
    geometry.pairing.pair_of(nth, geometry.pages_per_block).is_some_and(|(_, group)| group == PageGroup::Msb)
}

/// The LSB page over whose cells the program of this page goes.
pub(crate) fn partner(geometry: &Geometry, page: PageAddr) -> Option<PageAddr> {
    let nth = geometry.index_in_block(page);
    let lsb = geometry.pairing.partner_of(nth, geometry.pages_per_block).filter(|_| is_msb(geometry, page))?;
    Some(geometry.page_at(geometry.block_of(page), lsb))
}

/// Most pages of a block that are exposed at a time, of a chip with two bits a cell.
pub(crate) const fn exposed_max(geometry: &Geometry) -> usize {
    let pages = geometry.pages_per_block;
    let (mut exposed, mut most, mut page) = (0, 0, 0);
    while page < pages {
        match geometry.pairing.pair_of(page, pages) {
            Some((_, PageGroup::Lsb)) => exposed += 1,
            Some((_, PageGroup::Msb)) => exposed = usize::saturating_sub(exposed, 1),
            None => {}
        }
        most = if exposed > most { exposed } else { most };
        page += 1;
    }
    most
}
