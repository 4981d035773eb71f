//! Cell modes, and which pages of a multi-level chip share their cells.

use core::fmt;

/// How the cells of a block are used, from one erase to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CellMode {
    /// One bit a cell. On a chip with two bits a cell only the LSB pages are programmed: the block holds half as much,
    /// is programmed faster, and no page in it can be damaged by a partner.
    Slc,
    /// Two bits a cell: LSB and MSB pages, in rising order.
    Mlc,
}

/// Which of the two bits of its cells a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageGroup {
    /// The bit programmed first.
    Lsb,
    /// The bit programmed second, into cells that hold an LSB page already.
    Msb,
}

/// Which pages of a block are the two bits of the same cells.
///
/// Holds for every scheme: each page belongs to exactly one pair and group, and the LSB page of a pair comes before its
/// MSB page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pairing {
    /// One bit a cell: every page is a pair of its own, an LSB page without partner.
    None,
    /// Pages 0-4, 1-5, 2-8, 3-9, 6-12 and so on: at most 4 LSB pages wait for their partner.
    SchemeA,
    /// Pages 0-2, 1-4, 3-6, 5-8 and so on: at most 2 LSB pages wait for their partner.
    Dist3,
    /// Any other order: the pages of pair `p` are `table[p]`, LSB first. One table serves every block.
    Table(&'static [(u16, u16)]),
}

/// Why a pairing does not fit a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PairingError {
    /// A built-in scheme needs a number of pages that is a multiple of four.
    PageCount(u32),
    /// A table needs as many pairs as half the pages of a block.
    TableLength(usize),
    /// A table names this page twice or not at all, or it lies outside the block.
    TablePage(u16),
    /// In this pair of a table the LSB page does not come before the MSB page.
    TableOrder(usize),
}

impl fmt::Display for PairingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairingError::PageCount(pages) => write!(f, "{pages} pages in a block cannot be paired"),
            PairingError::TableLength(pairs) => write!(f, "a pairing table of {pairs} pairs does not fit the block"),
            PairingError::TablePage(page) => write!(f, "page {page} does not occur exactly once in the pairing table"),
            PairingError::TableOrder(pair) => write!(f, "pair {pair} of the pairing table has its MSB page first"),
        }
    }
}

impl core::error::Error for PairingError {}

impl Pairing {
    /// Whether pages have partners at all.
    pub const fn is_paired(&self) -> bool {
        !matches!(self, Pairing::None)
    }

    /// Checks that the scheme fits a block of this many pages.
    pub fn validate(&self, pages_per_block: u32) -> Result<(), PairingError> {
        match self {
            Pairing::None => Ok(()),
            Pairing::SchemeA | Pairing::Dist3 => {
                if pages_per_block >= 4 && pages_per_block.is_multiple_of(4) {
                    Ok(())
                } else {
                    Err(PairingError::PageCount(pages_per_block))
                }
            }
            Pairing::Table(table) => {
                if table.len() * 2 != pages_per_block as usize {
                    return Err(PairingError::TableLength(table.len()));
                }
                // Half as many pairs as pages and every page present means that every page is there once.
                for page in 0..pages_per_block {
                    let page = page as u16;
                    if !table.iter().any(|&(lsb, msb)| lsb == page || msb == page) {
                        return Err(PairingError::TablePage(page));
                    }
                }
                match table.iter().position(|&(lsb, msb)| lsb >= msb) {
                    Some(pair) => Err(PairingError::TableOrder(pair)),
                    None => Ok(()),
                }
            }
        }
    }

    /// Number of pairs in a block of `pages_per_block` pages.
    pub const fn pair_count(&self, pages_per_block: u32) -> u32 {
        match self {
            Pairing::None => pages_per_block,
            _ => pages_per_block / 2,
        }
    }

    /// The page of a block that is this group of this pair. For [`Pairing::None`] there are LSB pages only.
    pub fn page_of(&self, pair: u32, group: PageGroup, pages_per_block: u32) -> Option<u32> {
        if pair >= self.pair_count(pages_per_block) {
            return None;
        }
        let last = pages_per_block - 1;
        match (self, group) {
            (Pairing::None, PageGroup::Lsb) => Some(pair),
            (Pairing::None, PageGroup::Msb) => None,
            (Pairing::SchemeA, PageGroup::Lsb) => Some(match pair {
                0 | 1 => pair,
                _ => 2 + 4 * ((pair - 2) / 2) + (pair - 2) % 2,
            }),
            (Pairing::SchemeA, PageGroup::Msb) => {
                let page = 4 + 4 * (pair / 2) + pair % 2;
                Some(if page > last { page - 2 } else { page })
            }
            (Pairing::Dist3, PageGroup::Lsb) => Some(if pair == 0 { 0 } else { 2 * pair - 1 }),
            (Pairing::Dist3, PageGroup::Msb) => Some((2 * pair + 2).min(last)),
            (Pairing::Table(table), PageGroup::Lsb) => Some(u32::from(table.get(pair as usize)?.0)),
            (Pairing::Table(table), PageGroup::Msb) => Some(u32::from(table.get(pair as usize)?.1)),
        }
    }

    /// The pair and group of a page of a block.
    pub const fn pair_of(&self, page: u32, pages_per_block: u32) -> Option<(u32, PageGroup)> {
        if page >= pages_per_block {
            return None;
        }
        let last = pages_per_block - 1;
        match self {
            Pairing::None => Some((page, PageGroup::Lsb)),
            Pairing::SchemeA => Some(match page {
                0 | 1 => (page, PageGroup::Lsb),
                _ if page >= last - 1 => (pages_per_block / 2 - 2 + (page - (last - 1)), PageGroup::Msb),
                _ if page % 4 >= 2 => (2 * (page / 4) + 2 + page % 2, PageGroup::Lsb),
                _ => (2 * (page / 4 - 1) + page % 2, PageGroup::Msb),
            }),
            Pairing::Dist3 => Some(match page {
                0 => (0, PageGroup::Lsb),
                _ if page == last => (pages_per_block / 2 - 1, PageGroup::Msb),
                _ if page % 2 == 1 => (page.div_ceil(2), PageGroup::Lsb),
                _ => (page / 2 - 1, PageGroup::Msb),
            }),
            Pairing::Table(table) => {
                let mut pair = 0;
                while pair < table.len() {
                    let (lsb, msb) = table[pair];
                    if lsb as u32 == page {
                        return Some((pair as u32, PageGroup::Lsb));
                    }
                    if msb as u32 == page {
                        return Some((pair as u32, PageGroup::Msb));
                    }
                    pair += 1;
                }
                None
            }
        }
    }

    /// The other page of a page's pair; `None` where pages have no partner.
    pub fn partner_of(&self, page: u32, pages_per_block: u32) -> Option<u32> {
        let (pair, group) = self.pair_of(page, pages_per_block)?;
        let other = match group {
            PageGroup::Lsb => PageGroup::Msb,
            PageGroup::Msb => PageGroup::Lsb,
        };
        self.page_of(pair, other, pages_per_block)
    }
}

#[cfg(test)]
mod tests {
    use super::{PageGroup, Pairing, PairingError};

    static REVERSED_HALVES: [(u16, u16); 4] = [(3, 4), (2, 5), (1, 6), (0, 7)];

    fn schemes() -> impl Iterator<Item = (Pairing, u32)> {
        let sizes = [4, 8, 12, 64, 128, 256, 1024];
        sizes
            .into_iter()
            .flat_map(|pages| [Pairing::None, Pairing::SchemeA, Pairing::Dist3].map(|pairing| (pairing, pages)))
            .chain([(Pairing::Table(&REVERSED_HALVES), 8)])
    }

    #[test]
    fn every_page_is_in_exactly_one_pair_and_lsb_comes_first() {
        for (pairing, pages) in schemes() {
            pairing.validate(pages).unwrap();
            for page in 0..pages {
                let (pair, group) = pairing.pair_of(page, pages).unwrap();
                assert_eq!(pairing.page_of(pair, group, pages), Some(page), "{pairing:?} of {pages}, page {page}");
                if let Some(partner) = pairing.partner_of(page, pages) {
                    assert_eq!(pairing.partner_of(partner, pages), Some(page));
                    assert_eq!(group == PageGroup::Lsb, page < partner);
                }
            }
            assert_eq!(pairing.pair_of(pages, pages), None);
            assert_eq!(pairing.page_of(pairing.pair_count(pages), PageGroup::Lsb, pages), None);
        }
    }

    #[test]
    fn scheme_a_and_dist3_match_their_published_pairs() {
        let pair = |pairing: Pairing, pair, pages| {
            (
                pairing.page_of(pair, PageGroup::Lsb, pages).unwrap(),
                pairing.page_of(pair, PageGroup::Msb, pages).unwrap(),
            )
        };
        assert_eq!(pair(Pairing::SchemeA, 127, 256), (251, 255));
        assert_eq!(pair(Pairing::SchemeA, 2, 256), (2, 8));
        assert_eq!([0, 1, 2, 3].map(|p| pair(Pairing::Dist3, p, 64)), [(0, 2), (1, 4), (3, 6), (5, 8)]);
        assert_eq!(pair(Pairing::Dist3, 31, 64), (61, 63));
    }

    #[test]
    fn open_lsb_pages_stay_within_the_published_bound() {
        for (pairing, bound) in [(Pairing::SchemeA, 4), (Pairing::Dist3, 2)] {
            let mut most = 0;
            for written in 1..=128 {
                let open = (0..written)
                    .filter(|&page| pairing.partner_of(page, 128).is_some_and(|partner| partner >= written))
                    .count();
                most = most.max(open);
            }
            assert_eq!(most, bound, "{pairing:?}");
        }
    }

    #[test]
    fn a_table_that_does_not_fit_is_refused_and_named() {
        static TWICE: [(u16, u16); 2] = [(0, 1), (1, 3)];
        static BACKWARDS: [(u16, u16); 2] = [(0, 2), (3, 1)];
        assert_eq!(Pairing::Table(&TWICE).validate(4), Err(PairingError::TablePage(2)));
        assert_eq!(Pairing::Table(&BACKWARDS).validate(4), Err(PairingError::TableOrder(1)));
        assert_eq!(Pairing::Table(&TWICE).validate(8), Err(PairingError::TableLength(2)));
        assert_eq!(Pairing::SchemeA.validate(6), Err(PairingError::PageCount(6)));
    }
}
