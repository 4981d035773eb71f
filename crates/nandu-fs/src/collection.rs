//! Collecting garbage when nobody waits, or to make room.

use nandu_log::Budget;
use nandu_nand::Nand;

use crate::FsError;
use crate::fs::Fs;

impl<N: Nand> Fs<'_, N> {
    /// Has the collector work as far as the budget goes, after a sync: it moves nothing while changes wait for one. Whether it had
    /// anything to do.
    pub(crate) fn collect(&mut self, mut budget: Budget) -> Result<bool, FsError<N::Error>> {
        let mut worked = false;
        self.tree.sync()?;
        while let Some(examine) = self.tree.pages_mut().next_idle(&mut budget)? {
            let outcome = self.tree.examine(examine)?;
            nandu_tree::Pages::examined(self.tree.pages_mut(), examine, outcome)?;
            worked = true;
        }
        Ok(worked)
    }

    /// Has the collector make what room it can.
    #[inline(never)]
    pub(crate) fn collect_all(&mut self) -> Result<(), FsError<N::Error>> {
        let pages = self.tree.pages().log().page_count();
        match self.collect(Budget::room(pages)) {
            Ok(_) | Err(FsError::Full) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
