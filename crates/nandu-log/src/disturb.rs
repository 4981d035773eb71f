//! Read disturb: reading a page wears, a little, on the other pages of its block, and error correction says nothing of them
//! until they are read. So a block that was read too often since its erase is emptied.
//!
//! Counting every read would take more memory than six bytes a block leave, so reads are **drawn**: one of about every so many, at distances that look like chance, counts for
//! its block, and the third that is drawn has the block emptied. A block is emptied after `reads_max` reads in the mean. That it is read eight times as often before that happens
//! has a probability of 1e-8, if its reads are few among many; if they are most of all reads, the distances between draws are bounded and so is the count.
//!
//! A mount knows nothing of reads before it. It gives each block a number of drawn reads by chance, as blocks have that are read evenly, so that many short sessions move a block as often as
//! a long one does. That chance follows the sequence; a session that programmed nothing and read much makes a checkpoint when it is unmounted, so that the next one draws anew.

use nandu_nand::BlockAddr;

use crate::blocks::{Blocks, Flag};

/// Draws after which a block is emptied; what two bits can count.
const DRAWS_MAX: u8 = 3;

const READS_MAX: u32 = 131_072;

/// Which reads count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disturb {
    /// Reads before the one that is drawn; 0: this one.
    ahead: u32,
    state: u32,
    /// Reads in this session.
    session: u32,
    /// Reads after which a block is emptied; 0: never.
    reads_max: u32,
}

impl Disturb {
    pub(crate) fn new(reads_max: Option<u32>) -> Disturb {
        Disturb { ahead: u32::MAX, state: 1, session: 0, reads_max: reads_max.unwrap_or(READS_MAX) }
    }

    /// Begins to draw: distances and the numbers of reads drawn before follow the sequence.
    pub(crate) fn start(&mut self, sequence: u64, blocks: &mut Blocks<'_>) {
        self.state = (sequence as u32).wrapping_mul(0x9E37_79B9) | 1;
        self.session = 0;
        if self.reads_max == 0 {
            return;
        }
        for block in blocks.addresses() {
            let drawn = self.draw() % u32::from(DRAWS_MAX);
            if blocks.state(block).holds_data() {
                blocks.set_reads(block, drawn as u8);
            }
        }
        self.draw_next();
    }

    /// Whether this session read so much that the next one should not begin like this one.
    pub(crate) fn has_read_much(&self) -> bool {
        self.reads_max > 0 && self.session > self.reads_max / 8
    }

    /// A page of a block is read.
    pub(crate) fn note(&mut self, block: BlockAddr, blocks: &mut Blocks<'_>) {
        self.session = self.session.saturating_add(1);
        if self.ahead > 0 {
            self.ahead -= 1;
            return;
        }
        if self.reads_max == 0 {
            return;
        }
        self.draw_next();
        if !blocks.state(block).holds_data() {
            return;
        }
        let drawn = blocks.reads(block) + 1;
        debug_assert!(drawn <= DRAWS_MAX);
        if drawn < DRAWS_MAX {
            blocks.set_reads(block, drawn);
        } else {
            blocks.set(block, Flag::Refresh, true);
        }
    }

    fn draw_next(&mut self) {
        // From 1 to twice the mean.
        let mean = (self.reads_max / u32::from(DRAWS_MAX)).max(1);
        self.ahead = self.draw() % (2 * mean);
    }

    /// A number that looks like chance (Marsaglia's 32-bit xorshift).
    fn draw(&mut self) -> u32 {
        let mut x = self.state;
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        self.state = x;
        x >> 1
    }
}
