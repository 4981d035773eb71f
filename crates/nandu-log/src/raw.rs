//! FORMAT: Raw pages
//!
//! A raw page is its owner's bytes and nothing else, so that a page of a file fits a page. Raw pages stand in blocks of their own, and the block table says which these are. Whose a raw
//! page is says the last page of its group, the **summary**, of the kind `Summary`.
//!
//! ```text
//! block    raw pages, and a summary behind each so many of them as it has room for: (page size - 52) / 12; the last page of a block is a summary
//! body     12 bytes for each page of the group, in their order: bytes of the key (0: nobody's; 255: this summary, behind which nothing follows), key (11)
//! ```
//!
//! A summary is a hint. While its group is filled the owners are in memory, and a cut loses them; then whoever empties the block asks the owner which keys name pages of it.
//! Where there are blocks with two bits a cell, one of them is one group, and its last pages may be left out: then the last page before these says that it is the last.
//! When a volume is unmounted a summary is programmed early, in the place of a raw page, and the group goes on behind it.
//!
//! What a raw page holds comes from anywhere, so it may be made to look like a page of the log. Such a page has to state its own address: it is programmed at the next one.

use nandu_media::PageKind;
use nandu_media::header::MAGIC;
use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::LogError;
use crate::medium::Medium;
use crate::options::{OWNER_MAX, OWNER_SIZE};
use crate::partners::EXPOSED_MAX;
use crate::shape::Shape;

/// Whose a page is: its key, and how long that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Owner {
    size: u8,
    key: [u8; OWNER_MAX],
}

const _: () = assert!(size_of::<Owner>() == OWNER_SIZE);

impl Owner {
    /// Nobody's.
    pub const NOBODY: Owner = Owner { size: 0, key: [0; OWNER_MAX] };

    /// What stands for a summary behind which nothing was programmed.
    const END: Owner = Owner { size: u8::MAX, key: [0; OWNER_MAX] };

    /// `None` for a key that is too long, or empty.
    pub fn new(key: &[u8]) -> Option<Owner> {
        let mut owner = Owner { size: key.len() as u8, ..Owner::NOBODY };
        owner.key.get_mut(..key.len())?.copy_from_slice(key);
        (owner.size > 0).then_some(owner)
    }

    /// The key; `None` if it is nobody's, or says what cannot be.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.get(..usize::from(self.size)).filter(|key| !key.is_empty())
    }
}

/// A page that was programmed elsewhere, since what shares its cells failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// Where it was.
    pub from: PageAddr,
    /// Where it is; `None` for a copy, of which the source is where it was.
    pub to: Option<PageAddr>,
    /// Whose it is.
    pub owner: Owner,
}

/// What is known of whose a page is in a block of raw pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It was programmed for this owner, which may have another page in its place now.
    Of(Owner),
    /// It is dead: nobody's, or a summary.
    Nobodys,
    /// Nobody knows: its owner has to be found.
    Unknown,
}

/// Which group the owners are of: its block, how often that was erased, its first page, and whether of each of its pages it is known whose it is.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Group {
    block: U32,
    erases: U32,
    first: U16,
    is_known: u8,
    is_there: u8,
}

const _: () = assert!(size_of::<Group>() == OWNER_SIZE);

/// The owners of the pages of one group. The first place says which that is: so where there are no raw pages this takes no memory to speak of.
pub(crate) struct Owners<'m> {
    places: &'m mut [Owner],
}

impl<'m> Owners<'m> {
    /// Those of the group that is filled in blocks with so many bits in a cell.
    pub(crate) fn filled(places: &'m mut [Owner], shape: &Shape, mode: CellMode) -> Owners<'m> {
        Owners::nth(places, shape, 1 + usize::from(mode == CellMode::Mlc))
    }

    /// Those of the group that is emptied.
    pub(crate) fn emptied(places: &'m mut [Owner], shape: &Shape) -> Owners<'m> {
        Owners::nth(places, shape, 0)
    }

    fn nth(places: &'m mut [Owner], shape: &Shape, nth: usize) -> Owners<'m> {
        let size = places.len() / groups(shape.has_mlc());
        Owners { places: places.get_mut(nth * size..(nth + 1) * size).unwrap_or_default() }
    }

    fn group(&self) -> Option<Group> {
        let group = Group::read_from_bytes(self.places.first()?.as_bytes()).ok()?;
        Some(group).filter(|group| group.is_there == 1)
    }

    fn set_group(&mut self, group: Group) {
        if let Some(place) = self.places.first_mut() {
            place.as_mut_bytes().copy_from_slice(group.as_bytes());
        }
        debug_assert!(self.group() == Some(group), "there are places where there are raw pages");
    }

    fn owners(&self) -> &[Owner] {
        self.places.get(1..).unwrap_or_default()
    }

    fn owners_mut(&mut self) -> &mut [Owner] {
        self.places.get_mut(1..).unwrap_or_default()
    }

    /// The group from here on is this one, and of no page is known whose it is, unless it is this one already. Returns whether it is.
    pub(crate) fn begin(&mut self, BlockAddr(block): BlockAddr, erases: u32, first: u16) -> bool {
        let group = Group { block: block.into(), erases: erases.into(), first: first.into(), is_known: 0, is_there: 1 };
        let is_same = self.group().is_some_and(|it| Group { is_known: 0, ..it } == group);
        if !is_same {
            self.owners_mut().fill(Owner::NOBODY);
            self.set_group(group);
        }
        debug_assert!(self.group().is_some());
        is_same
    }

    /// Of each page of the group it is known whose it is.
    pub(crate) fn set_known(&mut self) {
        if let Some(group) = self.group() {
            self.set_group(Group { is_known: 1, ..group });
        }
    }

    /// A page of the group is of this owner.
    pub(crate) fn set(&mut self, shape: &Shape, (mode, nth): (CellMode, u16), owner: Owner) {
        debug_assert!(self.group().is_some() && !shape.is_summary((mode, nth)));
        if let Some(place) = self.owners_mut().get_mut(usize::from(nth % shape.raw_span(mode))) {
            *place = owner;
        }
    }

    /// Whose a page of the group is.
    pub(crate) fn whose(&self, shape: &Shape, (mode, nth): (CellMode, u16)) -> Whose {
        let owner = self.owners().get(usize::from(nth % shape.raw_span(mode)));
        match owner.filter(|owner| owner.key().is_some()) {
            _ if self.group().is_none_or(|group| group.is_known == 0) => Whose::Unknown,
            Some(&owner) => Whose::Of(owner),
            None => Whose::Nobodys,
        }
    }

    /// The summary of the group stands at this place, and nothing behind it.
    pub(crate) fn end_at(&mut self, nth: u16) {
        if let Some(place) = self.owners_mut().get_mut(usize::from(nth)) {
            *place = Owner::END;
        }
    }

    /// Whether it stands there and says so.
    pub(crate) fn ends_at(&self, nth: u16) -> bool {
        self.owners().get(usize::from(nth)) == Some(&Owner::END)
    }

    /// It is not known whose the pages of the group are.
    pub(crate) fn forget(&mut self) {
        self.owners_mut().fill(Owner::NOBODY);
        if let Some(group) = self.group() {
            self.set_group(Group { is_known: 0, ..group });
        }
        debug_assert!(self.is_empty());
    }

    /// Whether no page of a group is known to be anybody's.
    pub(crate) fn is_empty(&self) -> bool {
        self.owners().iter().all(|owner| *owner == Owner::NOBODY)
    }

    /// A page in a block with so many bits in a cell, which may be of the group, is of this key.
    pub(crate) fn found(&mut self, shape: &Shape, (mode, page): (CellMode, PageAddr), key: &[u8]) {
        let Some(group) = self.group() else { return };
        let (BlockAddr(block), nth, span) = (shape.block_of(page), shape.nth_in(mode, page), shape.raw_span(mode));
        let is_here = block == group.block.get() && nth / span == group.first.get() / span;
        if let Some(owner) = Owner::new(key).filter(|_| is_here && !shape.is_summary((mode, nth))) {
            self.set(shape, (mode, nth), owner);
        }
    }

    /// Writes the body of the summary.
    pub(crate) fn write(&self, body: &mut [u8]) {
        let bytes = self.owners().as_bytes();
        debug_assert!(bytes.len() <= body.len(), "a summary has room for its group");
        body[..bytes.len()].copy_from_slice(bytes);
    }

    /// Takes over whose the pages of the group are from a page, if that is a summary. Returns whether it is. One read.
    pub(crate) fn read_from<N: Nand>(
        &mut self,
        medium: &mut Medium<'_, N>,
        (shape, page): (&Shape, PageAddr),
    ) -> Result<bool, LogError<N::Error>> {
        let is_there = medium.probe(page)?.valid().is_some_and(|found| found.kind == PageKind::Summary);
        if is_there {
            self.read(&medium.bytes()[shape.header_size()..]);
        }
        Ok(is_there)
    }

    /// Takes over the body of a summary.
    fn read(&mut self, body: &[u8]) {
        self.set_known();
        for (owner, bytes) in self.owners_mut().iter_mut().zip(body.chunks_exact(size_of::<Owner>())) {
            *owner = Owner::read_from_bytes(bytes).unwrap_or(Owner::NOBODY);
        }
    }
}

/// Whose a raw page is, in a block with so many bits in a cell that was erased so often. Reads the summary of its group, unless that is the one that is emptied: one read, or with two bits a cell one for each page behind it.
pub(crate) fn whose<N: Nand>(
    (medium, shape): (&mut Medium<'_, N>, &Shape),
    places: &mut [Owner],
    page: PageAddr,
    (mode, erases): (CellMode, u32),
) -> Result<Whose, LogError<N::Error>> {
    debug_assert!(shape.has_raw() && !places.is_empty(), "a page of a block of raw pages");
    let mut emptied = Owners::emptied(places, shape);
    let (block, nth) = (shape.block_of(page), shape.nth_in(mode, page));
    if shape.is_summary((mode, nth)) {
        return Ok(Whose::Nobodys);
    }
    let first = nth - nth % shape.raw_span(mode);
    if !emptied.begin(block, erases, first) {
        let last = (first + shape.raw_span(mode)).min(shape.pages_in(mode)) - 1;
        // Behind it pages may be left out.
        let tried = if mode == CellMode::Mlc { EXPOSED_MAX + 1 } else { 1 };
        for place in (first..=last).rev().take(tried) {
            if emptied.read_from(medium, (shape, shape.page_in(mode, block, place)))? {
                if place < last && !emptied.ends_at(place) {
                    // It came with an unmount, and the group went on behind it.
                    emptied.forget();
                }
                break;
            }
        }
    }
    Ok(emptied.whose(shape, (mode, nth)))
}

/// Groups of which the owners are in memory: of each stream the one that is filled, and the one that is emptied.
pub(crate) const fn groups(has_mlc: bool) -> usize {
    2 + has_mlc as usize
}

/// Whether bytes begin as those of a page of any volume would that stands at this address.
pub(crate) fn is_disguised(bytes: &[u8], page: PageAddr) -> bool {
    bytes.get(4..6) == Some(&MAGIC.to_le_bytes()) && bytes.get(16..20) == Some(&page.0.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use nandu_nand::{BlockAddr, CellMode, PageAddr};

    use super::{Owner, Owners, Whose, is_disguised};
    use crate::options::{LogOptions, OWNER_MAX};
    use crate::shape::{Shape, owners_max};

    #[test]
    fn a_summary_brings_the_owners_of_its_group_back() {
        let geometry = nandu_sim::Chip::TINY.geometry;
        let options = LogOptions { has_raw: true, ..LogOptions::DEFAULT };
        let shape = Shape::new::<core::convert::Infallible>(&geometry, &options).unwrap();
        let mut memory = [[Owner::NOBODY; 16]; 2];
        let [first, second] = &mut memory;
        let at = |nth| (CellMode::Slc, nth);
        assert_eq!(
            (owners_max(&geometry, false), shape.summaries(CellMode::Slc), shape.is_summary(at(7))),
            (7, 1, true)
        );
        let (mut owners, mut again) = (Owners::filled(first, &shape, CellMode::Slc), Owners::emptied(second, &shape));
        assert!(!owners.begin(BlockAddr(3), 5, 0) && owners.is_empty());
        owners.found(&shape, (CellMode::Slc, PageAddr(25)), b"one");
        owners.found(&shape, (CellMode::Slc, PageAddr(33)), b"of another block");
        owners.found(&shape, (CellMode::Slc, PageAddr(31)), b"summary");
        let mut body = [0; 100];
        owners.write(&mut body);
        again.begin(BlockAddr(3), 5, 0);
        assert_eq!(again.whose(&shape, at(1)), Whose::Unknown);
        again.read(&body);
        assert_eq!(again.whose(&shape, at(1)), Whose::Of(Owner::new(b"one").unwrap()));
        assert_eq!([2, 6].map(|nth| again.whose(&shape, at(nth))), [Whose::Nobodys; 2]);
        assert!(again.begin(BlockAddr(3), 5, 0) && !again.is_empty());
        assert!(!again.begin(BlockAddr(3), 6, 0) && again.is_empty(), "the block was filled anew");
        assert_eq!(Owner::new(&[1; OWNER_MAX + 1]), None);
    }

    #[test]
    fn a_page_that_states_its_address_is_disguised() {
        let mut page = [0; 64];
        page[4..6].copy_from_slice(b"nd");
        page[16..20].copy_from_slice(&77_u32.to_le_bytes());
        assert!(is_disguised(&page, PageAddr(77)) && !is_disguised(&page, PageAddr(78)));
    }
}
