//! Where pages of files go, as the policies decide, and what the policies begin with.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::keys::{Key, WEAR};
use crate::placement::{Class, Head, Placement, PlacementOptions, WearUsed};
use crate::placing::{Placing, microseconds};
use crate::{FsError, Ino};

impl<'m, N: Nand> Fs<'m, N> {
    /// Begins to place pages by policy, if the options say so and the volume has blocks of both modes.
    #[inline(never)]
    pub(crate) fn begin_placing(&mut self, memory: &'m mut [u8], windows: u64) {
        let (references, _) = memory.as_chunks_mut();
        let log = self.tree.pages().log();
        let Some(options) = self.options.placement.filter(|_| log.mlc_streams() > 0) else { return };
        let used = WearUsed { pages: self.worn_pages(&options), windows };
        let now_us = microseconds(self.now);
        let wear = self.options.wear.map(|promise| (promise, used));
        let policies = Placement::new(options, wear, references, now_us);
        self.placing =
            Some(Placing { policies, class: Class::Normal, now_us, waiting_since_us: None, is_to_level: false });
    }

    /// What of the wear budget is used: the erases of all blocks, which the log keeps across formats, and those that may follow before the next
    /// account although nothing is written, of all blocks that can be erased ahead. So at the end they are not beyond what was promised.
    pub(crate) fn worn_pages(&self, options: &PlacementOptions) -> u64 {
        let log = self.tree.pages().log();
        let erases = log.stats().erase_count_sum + u64::from(log.erased_ahead_max());
        erases.saturating_mul(u64::from(options.mlc_pages_per_block))
    }

    /// The windows of a promised lifetime that are over. Reads the leaf that says it, where somebody wants to know.
    #[inline(never)]
    pub(crate) fn wear_windows(&mut self) -> Result<u64, FsError<N::Error>> {
        if self.options.wear.is_none() || self.options.placement.is_none() {
            return Ok(0);
        }
        let bytes = self.tree.get(Key::of_volume(WEAR).as_slice())?;
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes))
    }

    /// Free blocks as the policies count them, who are to leave as many as the collector wants before it makes operations wait.
    pub(crate) fn free_blocks(&self, options: &PlacementOptions) -> u32 {
        let log = self.tree.pages().log();
        (log.pool_blocks() + options.free_blocks_min).saturating_sub(log.pool_wanted())
    }

    /// Which bare stream a page of a file goes to.
    pub(crate) fn place_page(&mut self, ino: u64) -> Option<u8> {
        let options = *self.placing.as_ref()?.policies.options();
        let free_blocks = self.free_blocks(&options);
        let placing = self.placing.as_mut()?;
        Some(stream_of(placing.policies.place(ino, placing.class, placing.now_us, free_blocks)))
    }

    pub(crate) fn forget_hotness(&mut self, ino: Ino) {
        if let Some(placing) = &mut self.placing {
            placing.policies.deleted(ino.0);
        }
    }
}

/// Which of the bare streams a head is.
pub(crate) fn stream_of(head: Head) -> u8 {
    match head {
        Head::SlcCold => 0,
        Head::SlcHot => 1,
        Head::Mlc => 2,
    }
}
