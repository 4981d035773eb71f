//! Changes of records that happen together: put into a batch, and made.

use nandu_nand::Nand;

use crate::batch::{Batch, EDIT_COUNT_MAX, InodeRoom, NO_EDIT, batch_in};
use crate::fs::Fs;
use crate::inode::Inode;
use crate::{FsError, Ino};

/// Part of what is kept, as a divisor, that is left by changes that add records. The collector gets on with a sixteenth of the capacity where
/// an eighth is kept, and with nothing where a sixteenth is.
const ADDED_SHARE: u32 = 2;

/// The same by changes of records that are there: an inode becomes some bytes longer when its times come to differ.
const CHANGED_SHARE: u32 = 4;

/// What changes of records take more than what they replace.
struct RecordGrowth {
    bytes: isize,
    /// Whether there is a record more.
    adds: bool,
}

/// What changes take on a full chip.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// They are of records, and may take what is kept for them ([`FsStat`](crate::FsStat)).
    Records,
    /// They are of the content of files, for which there is less room: else it would take what changes of records need.
    Data,
    /// They leave no less room than there was, and are possible on a full chip.
    Freeing,
}

/// Puts changes into a batch.
type Prepare<'p, F, E> = dyn for<'a> FnMut(&mut F, &mut Batch<'a>, Lent<'a>) -> Result<Commit, FsError<E>> + 'p;

/// Names and values that a change lends to its records: those of attributes, or the target of a link.
pub(crate) type Lent<'a> = &'a [(&'a [u8], &'a [u8])];

impl<N: Nand> Fs<'_, N> {
    /// A change of nothing but an inode.
    pub(crate) fn commit_inode(&mut self, ino: Ino, inode: &Inode) -> Result<(), FsError<N::Error>> {
        batch_in!(batch: InodeRoom);
        batch.put_inode(ino, inode);
        self.commit(&batch, Commit::Records)
    }

    /// Makes what `prepare` puts into a batch, and nothing where that is nothing. No page is being written meanwhile: its memory holds keys and values.
    /// What `prepare` needs of the stack is free again when the changes are made.
    #[inline(never)]
    pub(crate) fn change(
        &mut self,
        lent: Lent<'_>,
        prepare: &mut Prepare<'_, Self, N::Error>,
    ) -> Result<(), FsError<N::Error>> {
        let memory = core::mem::take(&mut self.buffer.memory);
        let mut edits = [NO_EDIT; EDIT_COUNT_MAX];
        let mut batch = Batch::new(&mut edits, memory);
        let outcome = match prepare(self, &mut batch, lent) {
            Ok(_) if batch.is_empty() => Ok(()),
            Ok(how) => self.commit(&batch, how),
            Err(error) => Err(error),
        };
        self.buffer.memory = memory;
        outcome
    }

    /// Makes all these changes or none.
    #[inline(never)]
    pub(crate) fn commit(&mut self, batch: &Batch<'_>, how: Commit) -> Result<(), FsError<N::Error>> {
        let mut has_more = true;
        let mut frees = how == Commit::Freeing;
        while !frees {
            match self.tree.batch(batch.edits()).map_err(FsError::from) {
                Err(FsError::Full) => {}
                other => return other,
            }
            frees = self.has_kept_room(batch, how == Commit::Data)?;
            if !(frees || has_more && self.make_room()?) {
                return Err(FsError::Full);
            }
            has_more = false;
        }
        match self.tree.batch_freeing(batch.edits()).map_err(FsError::from) {
            Err(FsError::Full) if self.make_all_room()? => Ok(self.tree.batch_freeing(batch.edits())?),
            other => other,
        }
    }

    /// Whether changes for which there is no room may take what is kept: those of records as long as enough of it is left, and whatever leaves
    /// no less room than there was.
    fn has_kept_room(&mut self, batch: &Batch<'_>, is_data: bool) -> Result<bool, FsError<N::Error>> {
        let growth = self.growth(batch)?;
        let share = if growth.adds { ADDED_SHARE } else { CHANGED_SHARE };
        Ok(growth.bytes <= 0 || !is_data && self.has_kept(share)?)
    }

    /// What changes of records take more than there is. Reads the leaves concerned.
    fn growth(&mut self, batch: &Batch<'_>) -> Result<RecordGrowth, FsError<N::Error>> {
        let mut growth = RecordGrowth { bytes: 0, adds: false };
        for edit in batch.edits() {
            let size = |value: usize| (edit.key.len() + value) as isize;
            let before = self.tree.value_len(edit.key)?;
            growth.adds |= before.is_none() && edit.value.is_some();
            growth.bytes += edit.value.map_or(0, |value| size(value.len())) - before.map_or(0, size);
        }
        Ok(growth)
    }
}
