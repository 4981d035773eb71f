//! Where pages of files go, as the policies decide, and what the policies begin with.

use nandu_nand::{Cause, CellMode, Nand};

use crate::fs::Fs;
use crate::keys::{Key, WEAR};
use crate::placement::{Class, Placement, PlacementOptions, Region, WearUsed};
use crate::placing::{Placing, microseconds};
use crate::{FsError, Ino};

impl<'m, N: Nand> Fs<'m, N> {
    /// Begins to place pages by policy, if the options say so and the volume has blocks of both modes, so many windows after a promise began.
    pub(crate) fn begin_placing(&mut self, memory: &'m mut [u8], windows: u64) {
        let (references, _) = memory.as_chunks_mut();
        let Some(options) = self.options.placement.filter(|_| self.tree.log().has_mlc()) else { return };
        let used = WearUsed { pages: self.worn_pages(&options), windows };
        let now_us = microseconds(self.now);
        let wear = self.options.wear.map(|promise| (promise, used));
        let policies = Placement::new(options, wear, references, now_us);
        self.placing = Some(Placing { policies, class: Class::Normal, now_us, waiting_since_us: None });
    }

    /// What of the wear budget is used: the erases of all blocks, which the log keeps across formats.
    pub(crate) fn worn_pages(&self, options: &PlacementOptions) -> u64 {
        let erases = self.stats().erase_count_sum;
        erases.saturating_mul(u64::from(options.mlc_pages_per_block))
    }

    /// The windows of a promised lifetime that are over. Reads the leaf that says it, where somebody wants to know.
    pub(crate) fn wear_windows(&mut self) -> Result<u64, FsError<N::Error>> {
        if self.options.wear.is_none() || self.options.placement.is_none() {
            return Ok(0);
        }
        let bytes = self.tree.get(Key::of_volume(WEAR).as_slice())?;
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes))
    }

    /// Whether nothing was changed since the mount, on a volume with blocks of both modes: then nothing is moved. A session that changes nothing wears nothing, however often there is one.
    pub(crate) fn is_unchanged(&self) -> bool {
        let stats = self.stats();
        self.tree.log().has_mlc() && stats.programs_for(Cause::Host) + stats.programs_for(Cause::Value) == 0
    }

    /// Free blocks as the policies count them, who are to leave as many as the log wants before it makes operations wait.
    pub(crate) fn free_blocks(&mut self, options: &PlacementOptions) -> u32 {
        let (free, wanted) = self.tree.choice().free_blocks();
        (free + options.free_blocks_min).saturating_sub(wanted)
    }

    /// How many bits a cell of a page of a file is to have.
    pub(crate) fn place_page(&mut self, ino: u64) -> CellMode {
        let Some(options) = self.placing.as_ref().map(|placing| *placing.policies.options()) else {
            return CellMode::Slc;
        };
        let free_blocks = self.free_blocks(&options);
        let Some(placing) = &mut self.placing else { return CellMode::Slc };
        let head = placing.policies.place(ino, placing.class, placing.now_us, free_blocks);
        if head.region() == Region::Mlc { CellMode::Mlc } else { CellMode::Slc }
    }

    pub(crate) fn forget_hotness(&mut self, ino: Ino) {
        if let Some(placing) = &mut self.placing {
            placing.policies.deleted(ino.0);
        }
    }
}
