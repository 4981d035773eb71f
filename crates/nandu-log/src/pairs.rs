//! Pages that share their cells.
//!
//! In a block with two bits a cell, the program of an MSB page goes over cells that hold an LSB page, programmed before. A cut in it may destroy that page, and so may its failure. An LSB page is **exposed** until its
//! partner is programmed, or left out until the next erase; with the usual pairings four at most are at a time.
//!
//! ```text
//! pages of the block    L0  L1  M0  L2  M1  L3  M2 ..
//! programmed so far     x   x   x   x                    L1 and L2 are exposed
//! a commit names L2     x   x   x   x   x   x   -  ..    M1 is programmed, M2 is left out
//! ```
//!
//! * (N12) From one erase to the next a block has one mode, that of the stream that opened it.
//! * (N13) No page that a commit names shares its cells with a page that is still to be programmed. What an owner appends a commit may name, so before each commit the partners of those pages are left out.
//! * A **copy** is named by no commit before its pair is settled: until then its owner keeps the source. So where blocks are emptied no page is left out.
//! * If the program of an MSB page fails, a copy in its cells is lost, and its source is there. A page that an owner appended has no source: its bytes are kept until its pair is settled, and it is programmed elsewhere.
//!
//! After a mount nobody knows what was named, so the partners of all exposed pages are left out.

use nandu_media::features::MLC;
use nandu_nand::{BlockAddr, Geometry, PageAddr};

use crate::partners::{EXPOSED_MAX, is_msb, partner};
use crate::raw::Owner;
use crate::shape::Shape;

/// What an exposed page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// The source of the copy is this page, and no commit names the copy.
    Copy(PageAddr),
    /// The next commit may name it, and nobody else has its bytes.
    Named,
    /// A commit named it, or may have: its partner is left out.
    Shielded,
}

/// A page of the open block that is exposed, or one of a block that was open, which is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed {
    pub(crate) page: PageAddr,
    pub(crate) owner: Owner,
    pub(crate) exposure: Exposure,
    /// The program of its partner failed.
    is_lost: bool,
}

/// The exposed pages of the one block that is open with two bits a cell. Takes no memory where these are not compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pairs {
    pages: [Option<Exposed>; PLACES],
    left_out: [u32; MLC as usize],
}

/// Places for exposed pages.
const PLACES: usize = if MLC { EXPOSED_MAX } else { 0 };

impl Pairs {
    pub(crate) const NONE: Pairs = Pairs { pages: [None; PLACES], left_out: [0; MLC as usize] };

    fn find(&self, page: PageAddr) -> Option<usize> {
        self.pages.iter().position(|it| it.is_some_and(|it| it.page == page))
    }

    /// Pages of the open block.
    fn open(&self) -> impl Iterator<Item = &Exposed> {
        self.pages.iter().flatten().filter(|it| !it.is_lost)
    }

    /// What this page is, if it is exposed.
    pub(crate) fn exposure(&self, page: PageAddr) -> Option<Exposure> {
        self.pages[self.find(page)?].map(|it| it.exposure)
    }

    /// Whether this page, which is the next one of the open block, is left out for the sake of its partner.
    pub(crate) fn is_left_out(&self, shape: &Shape, page: PageAddr) -> bool {
        partner(&shape.geometry, page).is_some_and(|lsb| self.exposure(lsb) == Some(Exposure::Shielded))
    }

    /// A page is left out.
    pub(crate) fn leave_out(&mut self) {
        debug_assert!(self.open().any(|it| it.exposure == Exposure::Shielded), "for the sake of one");
        self.left_out.iter_mut().for_each(|count| *count += 1);
    }

    /// Pages left out since the mount.
    pub(crate) fn left_out(&self) -> u32 {
        self.left_out.first().copied().unwrap_or(0)
    }

    /// A page was programmed. Returns the place in which its bytes are kept, if they are.
    pub(crate) fn programmed(&mut self, shape: &Shape, page: PageAddr, of: (Owner, Exposure)) -> Option<usize> {
        if is_msb(&shape.geometry, page) {
            self.passed(shape, page);
            return None;
        }
        let (owner, exposure) = of;
        let place = self.pages.iter().position(Option::is_none);
        debug_assert!(place.is_some(), "more pages are exposed than the pairing permits");
        self.pages[place?] = Some(Exposed { page, owner, exposure, is_lost: false });
        place.filter(|_| exposure == Exposure::Named)
    }

    /// The page after this one is next: it was left out, or was programmed.
    pub(crate) fn passed(&mut self, shape: &Shape, page: PageAddr) {
        let lsb = partner(&shape.geometry, page);
        if let Some(place) = lsb.and_then(|lsb| self.find(lsb)) {
            self.pages[place] = None;
        }
        debug_assert!(lsb.is_none_or(|lsb| self.exposure(lsb).is_none()));
    }

    /// The program of a page failed, or nobody knows, and its block is closed. What it may have destroyed is lost; all others are settled.
    pub(crate) fn failed(&mut self, shape: &Shape, page: PageAddr) {
        let lsb = partner(&shape.geometry, page);
        for place in self.pages.iter_mut() {
            if let Some(it) = place.as_mut().filter(|it| Some(it.page) == lsb && it.exposure != Exposure::Shielded) {
                it.is_lost = true;
            }
        }
        self.close();
    }

    /// A page that is lost, and the place in which its bytes are kept, if they are.
    pub(crate) fn lost(&self) -> Option<(usize, Exposed)> {
        let place = self.pages.iter().position(|it| it.is_some_and(|it| it.is_lost))?;
        Some((place, self.pages[place]?))
    }

    /// What is lost is dealt with.
    pub(crate) fn end_lost(&mut self, place: usize) {
        debug_assert!(self.lost().is_some_and(|(lost, _)| lost == place));
        self.pages[place] = None;
    }

    /// The block is closed: nothing in it can be damaged any more.
    pub(crate) fn close(&mut self) {
        for place in &mut self.pages {
            *place = place.filter(|it| it.is_lost);
        }
        debug_assert!(self.open().next().is_none(), "nothing is exposed in a block that is closed");
    }

    /// What is so is shielded from here on.
    fn shield_all(&mut self, is_meant: impl Fn(Exposure) -> bool) {
        let is_so = |it: &&mut Exposed| is_meant(it.exposure) && !it.is_lost;
        self.pages.iter_mut().flatten().filter(is_so).for_each(|it| it.exposure = Exposure::Shielded);
    }

    /// A commit comes, which may name what is named.
    pub(crate) fn shield(&mut self) {
        self.shield_all(|exposure| exposure == Exposure::Named);
        debug_assert!(self.open().all(|it| it.exposure != Exposure::Named), "nothing goes over what the commit names");
    }

    /// Copies are to be named although their partners were not programmed.
    pub(crate) fn name_copies(&mut self) {
        self.shield_all(|exposure| matches!(exposure, Exposure::Copy(_)));
        debug_assert!(self.open().all(|it| !matches!(it.exposure, Exposure::Copy(_))), "no copy waits");
    }

    /// Pages of a block of which the copies are exposed.
    pub(crate) fn sources_in(&self, geometry: &Geometry, block: BlockAddr) -> u16 {
        let is_in = |it: &&Exposed| matches!(it.exposure, Exposure::Copy(source) if geometry.block_of(source) == block);
        self.pages.iter().flatten().filter(is_in).count() as u16
    }

    /// After a mount: every page of the open block before this one may be named.
    pub(crate) fn resume(&mut self, shape: &Shape, next: PageAddr) {
        *self = Pairs::NONE;
        let (block, geometry) = (shape.block_of(next), &shape.geometry);
        let first = shape.geometry.first_page(block);
        for page in (first.0..next.0).map(PageAddr) {
            let is_exposed = || {
                (next.0..first.0 + geometry.pages_per_block).any(|msb| partner(geometry, PageAddr(msb)) == Some(page))
            };
            if !is_msb(geometry, page) && is_exposed() {
                let _ = self.programmed(shape, page, (Owner::NOBODY, Exposure::Shielded));
            }
        }
        debug_assert!(self.open().all(|it| it.exposure == Exposure::Shielded && it.page < next));
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use core::convert::Infallible;

    use nandu_nand::PageAddr;

    use super::{Exposure, Owner, Pairs, partner};
    use crate::options::LogOptions;
    use crate::partners::exposed_max;
    use crate::shape::Shape;

    const COPY: Exposure = Exposure::Copy(PageAddr(9_000));

    fn shape() -> Shape {
        let options = LogOptions { has_raw: true, has_mlc: true, ..LogOptions::DEFAULT };
        Shape::new::<Infallible>(&nandu_sim::Chip::PAPER_FLEX.geometry, &options).unwrap()
    }

    /// Block 0 up to its first MSB page, which is next; and what shares its cells.
    fn filled(exposure: Exposure) -> (Shape, Pairs, PageAddr, PageAddr) {
        let (shape, mut pairs) = (shape(), Pairs::NONE);
        let next = (0..).map(PageAddr).find(|&page| partner(&shape.geometry, page).is_some()).unwrap();
        assert!((1..=exposed_max(&shape.geometry)).contains(&(next.0 as usize)));
        for page in 0..next.0 {
            let kept = pairs.programmed(&shape, PageAddr(page), (Owner::NOBODY, exposure));
            assert_eq!(kept, (exposure == Exposure::Named).then_some(page as usize));
        }
        let lsb = partner(&shape.geometry, next).unwrap();
        (shape, pairs, next, lsb)
    }

    #[test]
    fn a_page_is_exposed_until_its_partner_is_programmed_or_left_out() {
        let (shape, mut pairs, next, lsb) = filled(Exposure::Named);
        assert!(!pairs.is_left_out(&shape, next));
        pairs.shield();
        assert!(pairs.is_left_out(&shape, next));
        pairs.passed(&shape, next);
        assert_eq!(pairs.exposure(lsb), None);
        let (shape, mut pairs, next, lsb) = filled(COPY);
        pairs.shield();
        assert!(!pairs.is_left_out(&shape, next), "no commit names a copy");
        assert_eq!(pairs.programmed(&shape, next, (Owner::NOBODY, COPY)), None);
        assert_eq!(pairs.exposure(lsb), None);
    }

    #[test]
    fn a_failure_loses_the_page_in_the_same_cells_and_settles_all_others() {
        for exposure in [Exposure::Named, COPY] {
            let (shape, mut pairs, next, lsb) = filled(exposure);
            pairs.failed(&shape, next);
            let (place, lost) = pairs.lost().unwrap();
            assert_eq!((lost.page, lost.exposure), (lsb, exposure));
            pairs.close();
            pairs.end_lost(place);
            assert!((0..next.0).all(|page| pairs.exposure(PageAddr(page)).is_none()));
        }
    }

    #[test]
    fn after_a_mount_every_exposed_page_is_shielded() {
        let shape = shape();
        let pages = u32::from(shape.pages_max());
        for next in 1..pages {
            let mut pairs = Pairs::NONE;
            pairs.resume(&shape, PageAddr(next));
            let is_shielded = |&page: &u32| pairs.exposure(PageAddr(page)) == Some(Exposure::Shielded);
            let behind = (next..pages).filter_map(|page| partner(&shape.geometry, PageAddr(page)));
            assert_eq!((0..next).filter(is_shielded).count(), behind.filter(|lsb| lsb.0 < next).count());
        }
    }
}
