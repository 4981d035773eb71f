//! How many pages of a bare block die together.

use nandu_nand::BlockAddr;

/// How many pages of a bare block die together, as a rule: those of a file that is deleted, or one that is overwritten.
///
/// Kept in memory alone: a mount knows nothing of it, and begins with pages that die one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    /// The block in which the last one died.
    block: BlockAddr,
    /// How many died there, one after the other.
    count: u32,
    /// Mean of the runs before, times 16.
    mean: u32,
}

impl Runs {
    pub(crate) const UNKNOWN: Runs = Runs { block: BlockAddr(u32::MAX), count: 1, mean: 16 };

    /// A page of a block died, and not because it was moved.
    pub(crate) fn note(&mut self, block: BlockAddr) {
        if self.block == block {
            self.count += 1;
            return;
        }
        self.mean = (self.mean * 15 + self.count * 16) / 16;
        (self.block, self.count) = (block, 1);
    }

    /// How little the history of a block of so many pages tells of the rate at which what is left of it dies, times 16: nothing is
    /// doubted where pages die one by one, and hardly anything is believed where a block is as full as a few of them.
    pub(crate) fn doubt(self, pages: u16) -> u64 {
        u64::from(DOUBT * (self.mean - 16)) / u64::from(pages.max(1))
    }
}

/// Weight of what is known of all blocks where those of a block die together, against its own history: 1 is what a block says that has
/// lost all but a fraction `1/e`. So a block that holds four files, which tells next to nothing, has a weight of eight for all.
const DOUBT: u32 = 32;

#[cfg(test)]
mod tests {
    use super::Runs;
    use nandu_nand::BlockAddr;

    #[test]
    fn what_dies_together_makes_blocks_doubtful_and_what_dies_alone_does_not() {
        let mut runs = Runs::UNKNOWN;
        for nth in 0..1000 {
            runs.note(BlockAddr(nth % 7));
        }
        assert_eq!(runs.doubt(128), 0);
        // Files of 32 pages.
        for nth in 0..1000 {
            runs.note(BlockAddr(nth / 32 * 5 % 7));
        }
        let files = runs.doubt(128);
        assert!((16 * 6..=16 * 8).contains(&files), "{files}");
        assert!(runs.doubt(1024) < files / 7);
        for nth in 0..60 {
            runs.note(BlockAddr(nth % 7));
        }
        assert!(runs.doubt(128) < files / 16, "{}", runs.doubt(128));
    }
}
