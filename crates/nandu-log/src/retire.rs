//! Blocks that failed.

use nandu_nand::{BlockAddr, Cause, Nand, NandError, NandErrorKind};

use crate::block_table::{State, UNMARKED};
use crate::error::LogError;
use crate::log::Log;

impl<N: Nand> Log<'_, N> {
    /// Takes a block out of use. Its mark is put on the chip after the next checkpoint.
    pub(crate) fn retire(&mut self, block: BlockAddr) {
        self.blocks.set_state(block, State::Bad);
        self.blocks.set(block, UNMARKED, true);
    }

    /// Marks the blocks that the newest checkpoint calls bad.
    ///
    /// After the checkpoint, not before: a block whose mark is on the chip and whose record says that it can be used would
    /// be erased after a cut, and a marked block must not be. The other way round, the record alone is enough.
    pub(crate) fn mark_retired(&mut self) -> Result<(), LogError<N::Error>> {
        for block in self.blocks.addresses() {
            if self.blocks.state(block) == State::Bad && self.blocks.has(block, UNMARKED) {
                self.mark(block)?;
            }
        }
        Ok(())
    }

    /// Marks a retired block. A mark that cannot be put is not needed where the block table remembers.
    pub(crate) fn mark(&mut self, block: BlockAddr) -> Result<(), LogError<N::Error>> {
        let result = self.for_cause(Cause::Retire, |log| log.nand.mark_bad(block));
        self.blocks.set(block, UNMARKED, false);
        match result {
            Err(error) if error.kind() == NandErrorKind::Gone => Err(self.chip_error(error)),
            _ => Ok(()),
        }
    }

    /// A failing block was emptied.
    pub(crate) fn condemn(&mut self, block: BlockAddr) {
        debug_assert!(self.blocks.state(block) == State::Failing && self.blocks.live(block) == 0);
        self.retire(block);
    }
}
