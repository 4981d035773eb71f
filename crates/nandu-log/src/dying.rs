//! Pages that die with the next commit (R3).
//!
//! A page that is replaced or moved is needed until the commit that leads elsewhere is durable: if the power goes before, the commit before it
//! counts, and leads to that page. So a death is noted and takes effect with the next commit, and a checkpoint in between still counts the page.

use nandu_nand::{BlockAddr, Geometry, PageAddr};

/// Most pages that die with one commit.
pub const DYING_MAX: usize = 64;

/// The pages that die with the next commit.
pub(crate) struct Dying {
    pages: [PageAddr; DYING_MAX],
    count: usize,
}

impl Dying {
    pub(crate) const NONE: Dying = Dying { pages: [PageAddr(0); DYING_MAX], count: 0 };

    /// Notes a death. There has to be room. Returns false if the page is dying already: then whoever owns it is wrong, as about a damaged tree.
    pub(crate) fn add(&mut self, page: PageAddr) -> bool {
        if self.pages().contains(&page) {
            return false;
        }
        assert!(self.count < DYING_MAX, "more pages die than a commit can have");
        self.pages[self.count] = page;
        self.count += 1;
        true
    }

    /// The commit is durable: calls for each page, and none is dying any more.
    pub(crate) fn apply(&mut self, mut dies: impl FnMut(PageAddr)) {
        self.pages().iter().for_each(|&page| dies(page));
        self.count = 0;
        debug_assert!(self.pages().is_empty());
    }

    pub(crate) fn pages(&self) -> &[PageAddr] {
        &self.pages[..self.count]
    }

    /// How many of them are in a block.
    pub(crate) fn count_in(&self, block: BlockAddr, geometry: &Geometry) -> u16 {
        self.pages().iter().filter(|&&page| geometry.block_of(page) == block).count() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::{DYING_MAX, Dying};
    use nandu_nand::{BlockAddr, PageAddr};

    #[test]
    fn a_death_takes_effect_once_and_with_the_commit() {
        let mut dying = Dying::NONE;
        assert!((0..DYING_MAX as u32).all(|page| dying.add(PageAddr(page))));
        assert_eq!(dying.count_in(BlockAddr(1), &nandu_sim::Chip::TINY.geometry), 8);
        let mut count = 0;
        dying.apply(|_| count += 1);
        dying.apply(|_| count += 1);
        assert_eq!(count, DYING_MAX);
    }

    #[test]
    fn a_page_does_not_die_twice() {
        let mut dying = Dying::NONE;
        assert!(dying.add(PageAddr(1)) && !dying.add(PageAddr(1)));
        assert_eq!(dying.pages(), [PageAddr(1)]);
    }
}
