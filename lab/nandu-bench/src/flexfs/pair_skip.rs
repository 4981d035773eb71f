//! Acknowledged pages in an MLC block: the partner of such a page is left out.
//!
//! A cut during the program of an MSB page may destroy the LSB page of the same cells. So once a sync has promised an LSB page whose
//! partner is still to come, that partner is never programmed before the next erase. It costs at most as many pages for each sync
//! as LSB pages wait for their partner: four with scheme A, two with dist3.

use nandu::nand::{PageGroup, Pairing};

/// The place in an open MLC block, and what in it was promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairSkip {
    next: u32,
    /// Pages before this one were promised. Pages are programmed in rising order, so a page at or behind it came later, and this
    /// one number says of each pair whether it is protected.
    synced_below: u32,
    skipped: u32,
}

impl PairSkip {
    /// A block in which nothing is programmed.
    pub(crate) const fn new() -> PairSkip {
        PairSkip { next: 0, synced_below: 0, skipped: 0 }
    }

    /// Takes the page to be programmed next, leaving out those that would endanger a promised one; `None` when the block is full.
    pub(crate) fn take(&mut self, pairing: &Pairing, pages_per_block: u32) -> Option<u32> {
        while self.next < pages_per_block {
            let page = self.next;
            self.next += 1;
            // The tear: this program, cut, could garble a page that fsync has answered for.
            if !self.endangers(pairing, page, pages_per_block) {
                return Some(page);
            }
            self.skipped += 1;
        }
        None
    }

    /// Every page programmed so far is promised from now on.
    pub(crate) fn sync(&mut self) {
        self.synced_below = self.next;
    }

    /// Pages left out.
    #[cfg(test)]
    pub(crate) fn skipped(&self) -> u32 {
        self.skipped
    }

    fn endangers(&self, pairing: &Pairing, page: u32, pages_per_block: u32) -> bool {
        let Some((_, PageGroup::Msb)) = pairing.pair_of(page, pages_per_block) else { return false };
        pairing.partner_of(page, pages_per_block).is_some_and(|partner| partner < self.synced_below)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn no_promised_page_is_ever_endangered() {
        for pairing in [Pairing::SchemeA, Pairing::Dist3] {
            for sync_every in [1, 2, 3, 4, 7, 16, 1000] {
                let mut skip = PairSkip::new();
                let mut promised = Vec::new();
                let mut programmed = Vec::new();
                while let Some(page) = skip.take(&pairing, 128) {
                    let partner = pairing.partner_of(page, 128).unwrap();
                    assert!(partner > page || !promised.contains(&partner), "{pairing:?}: {page} endangers {partner}");
                    programmed.push(page);
                    if programmed.len() % sync_every == 0 {
                        skip.sync();
                        promised.clone_from(&programmed);
                    }
                }
                assert_eq!(programmed.len() as u32 + skip.skipped(), 128);
                assert!(programmed.is_sorted());
            }
        }
    }

    #[test]
    fn a_sync_costs_at_most_the_pages_that_wait() {
        for (pairing, most) in [(Pairing::SchemeA, 4), (Pairing::Dist3, 2)] {
            for at in 1..128 {
                let mut skip = PairSkip::new();
                for _ in 0..at {
                    skip.take(&pairing, 128);
                }
                skip.sync();
                while skip.take(&pairing, 128).is_some() {}
                assert!(skip.skipped() <= most, "{pairing:?} synced at {at}: {}", skip.skipped());
            }
        }
    }
}
