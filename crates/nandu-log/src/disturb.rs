//! Read disturb: reading a page wears, a little, on the other pages of its block, and error correction says nothing of them
//! until they are read. So a block that was read too often since its erase is emptied.
//!
//! Counting every read would take more memory than eight bytes a block leave, so reads are **drawn**: one of about every
//! so many, at distances that look like chance, counts for its block, and the third that is drawn has the block emptied. A
//! block is emptied after `reads_max` reads in the mean. That it is read eight times as often before that happens has a
//! probability of 1e-8, if its reads are few among many; if they are most of all reads, the distances between draws
//! are bounded and so is the count.
//!
//! A mount knows nothing of reads before it. It gives each block a number of drawn reads by chance, as blocks have that
//! are read evenly, so that many short sessions move a block as often as a long one does. That chance follows the
//! sequence; a session that programmed nothing and read much makes a checkpoint when it is unmounted, so that the next one
//! draws anew. Many sessions that read less than an eighth of `reads_max` each, or end with a power cut, and program nothing
//! ever, leave no trace.

use nandu_nand::{CellMode, Nand, PageAddr};

use crate::block_table::REFRESH;
use crate::log::Log;
use crate::sampler::Sampler;

/// Draws after which a block is emptied; what two bits can count.
const DRAWS_MAX: u8 = 3;

const READS_MAX_SLC: u32 = 131_072;
const READS_MAX_MLC: u32 = 16_384;

/// By how much fewer reads a block with two bits a cell bears than one with one.
const MLC_SHARE: u32 = READS_MAX_SLC / READS_MAX_MLC;

impl<N: Nand> Log<'_, N> {
    /// Reads after which the blocks that bear least of them are emptied.
    fn reads_max(&self) -> u32 {
        let base = self.options.reads_max.unwrap_or(match self.shape.mode {
            CellMode::Slc => READS_MAX_SLC,
            CellMode::Mlc => READS_MAX_MLC,
        });
        if self.shape.has_mlc() && base > 0 { (base / MLC_SHARE).max(1) } else { base }
    }

    /// Whether this session read so much that the next one should not begin like this one.
    pub(crate) fn has_read_much(&self) -> bool {
        self.reads_max() > 0 && self.sampler.session > self.reads_max() / 8
    }

    /// Begins to draw: distances and the numbers of reads drawn before follow the sequence.
    pub(crate) fn start_sampling(&mut self) {
        self.sampler = Sampler { state: (self.sequence as u32).wrapping_mul(0x9E37_79B1), ..Sampler::NEW };
        if self.reads_max() == 0 {
            return;
        }
        for block in self.blocks.addresses() {
            let drawn = self.sampler.draw() % u32::from(DRAWS_MAX);
            if self.blocks.state(block).holds_data() {
                self.blocks.set_reads(block, drawn as u8);
            }
        }
        self.draw_next();
    }

    fn draw_next(&mut self) {
        // From 1 to twice the mean.
        let mean = (self.reads_max() / u32::from(DRAWS_MAX)).max(1);
        self.sampler.ahead = self.sampler.draw() % (2 * mean);
    }

    /// A page is read.
    pub(crate) fn note_read(&mut self, page: PageAddr) {
        self.sampler.session = self.sampler.session.saturating_add(1);
        if self.sampler.ahead > 0 {
            self.sampler.ahead -= 1;
            return;
        }
        if self.reads_max() == 0 {
            return;
        }
        self.draw_next();
        let block = self.shape.geometry.block_of(page);
        if !self.blocks.state(block).holds_data() {
            return;
        }
        // Reads are drawn often enough for two bits a cell; of those where there is one, so many fewer count.
        let is_stronger = self.shape.has_mlc() && self.blocks.mode(block) == CellMode::Slc;
        if is_stronger && !self.sampler.draw().is_multiple_of(MLC_SHARE) {
            return;
        }
        let drawn = self.blocks.reads(block) + 1;
        if drawn < DRAWS_MAX {
            self.blocks.set_reads(block, drawn);
        } else {
            self.blocks.set(block, REFRESH, true);
        }
    }
}
