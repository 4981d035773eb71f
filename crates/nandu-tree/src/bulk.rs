//! Loading sorted entries.
//!
//! Entries that come in order fill one leaf after the other, so each leaf needs to be programmed once: a load goes on in
//! the assembly buffer like a batch does. It may be of any length, so unlike a batch it commits as it goes, every
//! [`PAGES_PER_COMMIT`] pages: a power cut leaves a prefix of it.

use nandu_index::KeyBuf;

use crate::TreeError;
use crate::pages::{Need, Pages};
use crate::tree::Tree;
use nandu_cells::Cells;

/// Pages that a load appends before it commits. More would save nothing, since commits are pages that are programmed
/// anyway; fewer would make the medium reserve room more often.
const PAGES_PER_COMMIT: u32 = 8;

impl<P: Pages, C: Cells> Tree<'_, P, C> {
    /// Puts entries whose keys strictly ascend; returns how many. Programs one page for each leaf that they fill, or
    /// that they change where the tree has entries already.
    ///
    /// Durable when it returns, as far as it went, whatever the tree was opened with: changes in memory go to their leaves
    /// first. After an error, and after a power cut, a prefix of the entries is in the tree. An entry out of order, or of a size
    /// that the tree does not take, is an error when it is reached; [`Tree::record_count`] tells how far that was.
    pub fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64, TreeError<P::Error>> {
        self.discard_value();
        self.settle()?;
        let mut last = KeyBuf::EMPTY;
        let mut count: u64 = 0;
        let mut is_open = false;
        for (key, value) in entries {
            let (key, value) = (key.as_ref(), value.as_ref());
            let mut fits = self.check_key(key).and_then(|()| self.check_value(key, value));
            if fits.is_ok() && count > 0 && key <= last.as_slice() {
                fits = Err(TreeError::NotAscending(usize::try_from(count).unwrap_or(usize::MAX)));
            }
            if let Err(error) = fits {
                self.conclude(Ok(()), None)?;
                return Err(error);
            }
            if is_open && self.pending.appended >= PAGES_PER_COMMIT {
                self.conclude(Ok(()), None)?;
                is_open = false;
            }
            if !is_open {
                // The entry that reaches the limit may still split what it changes.
                let pages_max = PAGES_PER_COMMIT + 1 + self.split_pages_max();
                self.prepare(Need { pages: PAGES_PER_COMMIT, pages_max, live_max: pages_max, shrinks: false })?;
                is_open = true;
            }
            if let Err(error) = self.edit_inline(key, Some(value)) {
                return self.conclude(Err(error), None);
            }
            last.set(key);
            count += 1;
        }
        self.conclude(Ok(count), None)
    }
}
