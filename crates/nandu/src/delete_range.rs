//! Deleting a range in steps of a bounded size.

use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, KEY_SIZE_MAX};
use nandu_nand::Nand;
use nandu_tree::Cells;

use crate::{Error, Store};

/// What a step of [`Store::delete_range`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeDeleted {
    /// Entries that this call deleted, the lowest of the range.
    pub count: usize,
    /// Whether the range still has entries.
    pub more: bool,
}

/// Entries that a step deletes, at most.
const STEP_COUNT_MAX: usize = 16;

/// Bytes of their keys: they stand on the stack.
const STEP_SIZE: usize = 256;

const _: () = assert!(KEY_SIZE_MAX <= STEP_SIZE, "a step takes one key at least");

/// The keys of a step.
struct Step {
    keys: [u8; STEP_SIZE],
    ends: [u16; STEP_COUNT_MAX],
    count: usize,
    more: bool,
}

impl Step {
    const EMPTY: Step = Step { keys: [0; STEP_SIZE], ends: [0; STEP_COUNT_MAX], count: 0, more: false };

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1].into() }
    }

    fn key(&self, index: usize) -> &[u8] {
        &self.keys[self.start(index)..self.ends[index].into()]
    }

    /// Takes a key in, or notes that one did not fit.
    fn take(&mut self, key: &[u8]) -> ControlFlow<()> {
        let start = self.start(self.count);
        match self.keys.get_mut(start..start + key.len()) {
            Some(room) if self.count < STEP_COUNT_MAX => {
                room.copy_from_slice(key);
                self.ends[self.count] = (start + key.len()) as u16;
                self.count += 1;
                ControlFlow::Continue(())
            }
            _ => {
                self.more = true;
                ControlFlow::Break(())
            }
        }
    }
}

impl<N: Nand, C: Cells> Store<'_, N, C> {
    /// Deletes the lowest entries of a range, 16 at most and keys of 256 bytes together, and says whether there are more: called until there are not, it
    /// deletes the range. Each step happens wholly or not at all, whenever the power goes, and is durable as a
    /// [`delete`](Store::delete) is; after a cut the same call goes on where the last step ended.
    ///
    /// Between two steps anything may be done with the store. What is put into the range meanwhile is deleted as well if a later step comes to it.
    ///
    /// Reads the leaves of these entries and programs about one page for each of them: two as a rule, where 16 deletes would program 16, and its
    /// [share of collection](Store#what-calls-cost). With
    /// [`Durability::OnSync`](crate::Durability::OnSync) the deletes wait in memory, and many steps become durable with one sync. Works on a full chip
    /// too, where a step may delete one entry only, as it may where entries have large values.
    ///
    /// ```
    /// # use core::ops::Bound;
    /// # use nandu::{Options, Store};
    /// # use nandu_sim::{Chip, Sim};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let options = Options::default();
    /// # let chip = Sim::new(Chip::W25N01GV);
    /// # let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    /// # let mut store = Store::format(chip, options, &mut memory)?;
    /// for second in 0..7200_u32 {
    ///     store.put(&second.to_be_bytes(), b"21.5 C")?;
    /// }
    /// // The oldest hour goes.
    /// let hour = 3600_u32.to_be_bytes();
    /// while store.delete_range(Bound::Unbounded, Bound::Excluded(&hour))?.more {}
    /// assert_eq!(store.record_count(), 3600);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`delete`](Store::delete), and then this step has deleted nothing.
    pub fn delete_range(&mut self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<RangeDeleted, Error<N::Error>> {
        let mut step = Step::EMPTY;
        self.range(from, to, Direction::Forward, |entry| step.take(entry.key))?;
        match self.delete_step(&step) {
            // One delete takes less room than several at once, and may replace a large value of any size.
            Err(Error::Full | Error::BatchSize) if step.count > 1 => {
                self.delete(step.key(0))?;
                Ok(RangeDeleted { count: 1, more: true })
            }
            Err(error) => Err(error),
            Ok(()) => Ok(RangeDeleted { count: step.count, more: step.more }),
        }
    }

    fn delete_step(&mut self, step: &Step) -> Result<(), Error<N::Error>> {
        match step.count {
            0 => Ok(()),
            1 => self.delete(step.key(0)).map(|_| ()),
            count => {
                let mut edits = [Edit { key: &[], value: None }; STEP_COUNT_MAX];
                edits.iter_mut().enumerate().take(count).for_each(|(index, edit)| edit.key = step.key(index));
                self.batch(&edits[..count])
            }
        }
    }
}
