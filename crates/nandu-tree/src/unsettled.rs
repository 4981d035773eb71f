//! Copies of raw pages with two bits a cell, as long as a cut could destroy them (W9).
//!
//! What survives in a block goes to blocks with two bits a cell, where the program of a later page goes over the cells of an earlier one. So a copy is named only when its pair is settled
//! ([`Log::is_settled`](nandu_log::Log::is_settled)); until then its record names the source, and the source lives. A cut forgets the copies, and nothing else.

use nandu_log::Owner;
use nandu_media::features::MLC;

/// Copies that wait at once, at most: as many as pages may be exposed, and one.
pub(crate) const COPIES_MAX: usize = 9;

/// A copy that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawCopy {
    /// The key that a user gave to the value.
    owner: Owner,
    pub(crate) source: u32,
    /// Erases of the block of the source: once there are more, its page is another.
    pub(crate) erases: u32,
    pub(crate) page: u32,
    /// Checksum of the page.
    pub(crate) check: u32,
    /// The leaf in the path names it.
    is_named: bool,
}

impl RawCopy {
    /// A copy of a page of this key; `None` for a key that no raw page has.
    pub(crate) fn new(key: &[u8], (source, erases): (u32, u32), (page, check): (u32, u32)) -> Option<RawCopy> {
        Owner::new(key).map(|owner| RawCopy { owner, source, erases, page, check, is_named: false })
    }

    /// Whether it is this page, or one of it.
    pub(crate) fn concerns(&self, page: u32) -> bool {
        self.source == page || self.page == page
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.owner.key().unwrap_or_default()
    }
}

/// The copies that wait. Takes no memory where two bits a cell are not compiled.
pub(crate) struct Unsettled {
    copies: [Option<RawCopy>; if MLC { COPIES_MAX } else { 0 }],
}

impl Unsettled {
    pub(crate) const NONE: Unsettled = Unsettled { copies: [None; if MLC { COPIES_MAX } else { 0 }] };

    pub(crate) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RawCopy> {
        self.copies.iter().flatten()
    }

    /// Whether no other copy has a place: as not all are exposed then, one may be named.
    pub(crate) fn is_full(&self) -> bool {
        self.iter().count() == self.copies.len()
    }

    /// The leaf in the path names those for which this holds, and no others.
    pub(crate) fn set_named(&mut self, mut is_named: impl FnMut(&RawCopy) -> bool) {
        self.copies.iter_mut().flatten().for_each(|copy| copy.is_named = is_named(copy));
    }

    /// Takes a copy that the leaf in the path names, if there is one.
    pub(crate) fn take_named(&mut self) -> Option<RawCopy> {
        self.take(|copy| copy.is_named)
    }

    /// Whether a page was copied, and what names it does not name the copy yet; or is such a copy.
    pub(crate) fn concerns(&self, page: u32) -> bool {
        self.iter().any(|copy| copy.concerns(page))
    }

    /// A copy waits. Returns whether there is a place for it.
    #[must_use]
    pub(crate) fn add(&mut self, copy: RawCopy) -> bool {
        debug_assert!(!self.concerns(copy.source), "a page is copied once");
        let place = self.copies.iter_mut().find(|place| place.is_none());
        place.map(|place| *place = Some(copy)).is_some()
    }

    /// Takes a copy for which this holds, if there is one.
    pub(crate) fn take(&mut self, is_it: impl Fn(&RawCopy) -> bool) -> Option<RawCopy> {
        self.copies.iter_mut().find_map(|place| place.take_if(|copy| is_it(copy)))
    }
}

#[cfg(test)]
mod tests {
    use super::{COPIES_MAX, RawCopy, Unsettled};

    #[test]
    fn copies_wait_until_they_are_taken() {
        let mut unsettled = Unsettled::NONE;
        let copy = |page| RawCopy::new(b"key", (page, 1), (page + 100, 7)).unwrap();
        assert!((0..COPIES_MAX as u32).all(|page| unsettled.add(copy(page))));
        assert!(
            !unsettled.add(copy(50)) && unsettled.concerns(3) && unsettled.concerns(103) && !unsettled.concerns(50)
        );
        assert_eq!(unsettled.take(|copy| copy.page == 103), Some(copy(3)));
        assert!(!unsettled.concerns(3) && unsettled.iter().count() == COPIES_MAX - 1);
        while unsettled.take(|_| true).is_some() {}
        assert!(unsettled.is_empty());
        assert_eq!((copy(1).key(), RawCopy::new(&[0; 12], (0, 0), (0, 0))), (&b"key"[..], None));
    }
}
