//! What is kept back, and for what.
//!
//! | kept back | blocks | for |
//! |---|---|---|
//! | heads | one a stream | each stream has a block that is not full yet |
//! | recovery | 2 | an entry of the ready list that a mount after a cut erases to copy the newest commit there (N6), and the same for a cut after that |
//! | moves | 2 | a block for survivors while another one is emptied, and the same after a cut in the middle of it |
//! | shares | 1 | a block for survivors that the shares of operations fill, one after the other, before the emptied one is free |
//! | slack | a tenth of the good blocks without the one before, at least 1 | dead pages, so that a block that is emptied yields something |
//!
//! An operation that grows is refused with `Full` when what lives would take more than the other blocks. One that replaces or frees is not asked: what lives is below the capacity, so that
//! dead pages are left, and emptying a block yields more than it takes. Only a chip that lost more good blocks than that is at its end: it can be read and not written.
//!
//! That counts on a program for each page that is moved. An owner whose page no longer fits what leads to it takes two, and where many do, a block full of dead pages is used up
//! by emptying three others: then nothing is gained, for ever. So the log counts what moves took of late, and moving all that lives may take a sixteenth of the slack at most, or half a block where that is more.
//!
//! Raw pages stand in blocks of their own. What names one that is moved is programmed among pages that die soon, so it takes a program and no room that lasts: it is not counted. With two bits a cell as many pages are kept back as naming the pages of the slack took of late: else a block yields less than what names its pages takes.
//!
//! An operation that opens a block for commits leaves the block for shares, too; one that opens none goes on without it, and what one opens for nodes is that
//! block. So a block is emptied over as many operations as it takes, and none has to wait for the end of it.
//!
//! Why four blocks stay in any case: a cut takes a block for the copy, and leaves those of survivors to be emptied, into the one that commits were in. That may take a block, and the commit
//! that makes it count may be cut, too, again and again. Of lives on full chips that are cut every few operations, 190 times, 2 of 491 ended read-only with four; 6 of 510 with three, when it was 1 of 492 with four.

/// Blocks of the pool that stay behind every operation: two for recoveries, two for moves.
pub(crate) const FLOOR: u32 = 4;

/// Blocks of the pool that stay when an operation opened a block for commits: one more, which the shares of the operations after it may open for survivors.
pub(crate) const OPENED_FLOOR: u32 = FLOOR + 1;

/// Of so many good blocks, those that data never fill.
pub(crate) const fn kept_back(good: u32, streams: u8) -> u32 {
    streams as u32 + OPENED_FLOOR + slack(good)
}

/// Blocks of dead pages among them.
pub(crate) const fn slack(good: u32) -> u32 {
    if good < 20 { 1 } else { (good + 2) / 11 }
}

#[cfg(test)]
mod tests {
    use super::kept_back;

    /// The promised part of all pages, with four anchor blocks and, of 1,024, twenty bad ones.
    #[test]
    fn the_reserve_leaves_the_promised_room() {
        for (blocks, bad, streams, percent) in
            [(16, 0, 2, 25), (24, 0, 2, 45), (40, 0, 2, 65), (128, 2, 3, 80), (1024, 20, 4, 86)]
        {
            let good = blocks - 4 - bad;
            let room = good - kept_back(good, streams);
            assert!(room * 100 >= blocks * percent, "{room} of {blocks} blocks");
        }
    }
}
