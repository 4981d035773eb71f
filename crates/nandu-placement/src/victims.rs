//! Which block is emptied next.
//!
//! Cold data in SLC blocks is migrated and hot data there dies by itself, so SLC blocks are never collected, only migrated; MLC
//! blocks are collected when they hold little. From FlexFS, sections 4.1.3 and 4.3 of its paper; the orders are ours. The caller walks its
//! blocks and keeps the one of the least key, so nothing is stored here for a block.

use core::cmp::Reverse;

use crate::{PlacementOptions, Share};

/// What is known of a block that is full and from which nothing is being moved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullBlock {
    /// Pages it holds in its mode.
    pub pages: u32,
    /// Of these, live ones.
    pub live_pages: u32,
    /// Of the live ones, pages of hot files.
    pub hot_pages: u32,
    /// When it was opened, as a number that rises with every block opened.
    pub birth: u64,
}

impl FullBlock {
    /// The share of its live pages that belong to hot files.
    pub const fn hotness(&self) -> Share {
        if self.live_pages == 0 { Share::ZERO } else { Share::of(self.hot_pages as u64, self.live_pages as u64) }
    }
}

/// A place in the order of victims: the least one is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(Reverse<bool>, Share, u32, u64);

/// The place of an SLC block; `None` if it is not to be emptied. Blocks without live pages are first, then those with the least of hot
/// files, then those with fewest live pages, then old ones. A block of which half is hot waits, unless blocks are urgently needed.
pub fn rank_slc(block: &FullBlock, is_urgent: bool) -> Option<Rank> {
    let hotness = block.hotness();
    let is_empty = block.live_pages == 0;
    let is_spared = !is_urgent && !is_empty && hotness >= Share::HALF;
    (!is_spared).then_some(Rank(Reverse(is_empty), hotness, block.live_pages, block.birth))
}

/// The place of an MLC block among those to be collected, fewest live pages first; `None` if collecting it is not worth it. In idle time
/// a block is worth it when free blocks are few and at most three quarters of it live; when blocks are urgently needed any page to
/// be won is worth it.
pub fn rank_mlc(block: &FullBlock, is_urgent: bool, free_blocks: u32, options: &PlacementOptions) -> Option<Rank> {
    let is_empty = block.live_pages == 0;
    let is_sparse = u64::from(block.live_pages) * 4 <= u64::from(block.pages) * 3;
    let is_worth =
        if is_urgent { block.live_pages < block.pages } else { free_blocks < options.gc_free_blocks && is_sparse };
    (is_empty || is_worth).then_some(Rank(Reverse(is_empty), Share::ZERO, block.live_pages, block.birth))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: FullBlock = FullBlock { pages: 64, live_pages: 40, hot_pages: 10, birth: 9 };

    #[test]
    fn slc_blocks_are_ordered_by_emptiness_hotness_live_pages_and_age() {
        let order = [
            FullBlock { live_pages: 0, hot_pages: 0, birth: 9, ..BLOCK },
            FullBlock { live_pages: 64, hot_pages: 0, birth: 1, ..BLOCK },
            FullBlock { live_pages: 20, hot_pages: 5, birth: 8, ..BLOCK },
            FullBlock { birth: 7, ..BLOCK },
            BLOCK,
        ];
        assert!(order.is_sorted_by_key(|block| rank_slc(block, false).unwrap()));
    }

    #[test]
    fn a_hot_block_waits_until_blocks_are_urgently_needed() {
        let hot = FullBlock { hot_pages: 20, ..BLOCK };
        assert_eq!(rank_slc(&hot, false), None);
        assert!(rank_slc(&hot, true) > rank_slc(&BLOCK, true));
        // Nothing in it lives: there is nothing to wait for.
        assert!(rank_slc(&FullBlock { live_pages: 0, hot_pages: 0, ..hot }, false).is_some());
    }

    #[test]
    fn mlc_blocks_are_collected_when_it_is_worth_it() {
        let options = PlacementOptions::DEFAULT;
        let with = |live_pages| FullBlock { pages: 128, live_pages, hot_pages: 0, birth: 0 };
        let is_taken = |live_pages, is_urgent, free_blocks| {
            rank_mlc(&with(live_pages), is_urgent, free_blocks, &options).is_some()
        };
        assert!(is_taken(96, false, 28) && !is_taken(97, false, 28) && !is_taken(96, false, 29));
        assert!(is_taken(127, true, 4) && !is_taken(128, true, 4));
        assert!(is_taken(0, false, 100), "it costs an erase and no page");
        assert!(rank_mlc(&with(10), true, 0, &options) < rank_mlc(&with(11), true, 0, &options));
    }
}
