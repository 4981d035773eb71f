//! Batches: changes that are made together or not at all.
//!
//! All of a batch is noted in the journal before any of it is done, and the page with the last of it makes it hold. So a cut
//! finds it noted whole, or no node that knows of it.

use nandu_index::Edit;
use nandu_media::inpage::record::Record;
use nandu_nand::{Cause, Nand};

use crate::error::Error;
use crate::inpage::{InPage, Result};
use crate::options::Durability;

/// An edit as the journal notes it.
fn record<'a>(edit: &Edit<'a>) -> Record<'a> {
    match edit.value {
        Some(value) => Record::Put(edit.key, value),
        None => Record::Delete(edit.key),
    }
}

impl<N: Nand> InPage<'_, N> {
    /// Makes changes together, all or none of them, whatever happens to the power. The keys strictly ascend.
    ///
    /// They are noted in the journal first, so without one only a batch of one change can be had. A batch takes at most as many
    /// pages as the journal has. Costs what its changes cost one by one, and the journal pages that it fills.
    ///
    /// # Errors
    ///
    /// [`Error::BatchTooLarge`], [`Error::NotAscending`], [`Error::KeySize`], [`Error::ValueSize`], [`Error::Full`]: nothing was
    /// changed. After any other the index has to be opened again, and holds all of the batch or nothing.
    pub fn batch(&mut self, edits: &[Edit<'_>]) -> Result<(), N> {
        match edits {
            [] => Ok(()),
            [Edit { key, value: Some(value) }] => self.put(key, value).map(drop),
            [Edit { key, value: None }] => self.delete(key).map(drop),
            _ if self.options.journal_blocks == 0 => Err(Error::BatchTooLarge),
            several => self.batch_of_several(several),
        }
    }

    fn batch_of_several(&mut self, edits: &[Edit<'_>]) -> Result<(), N> {
        for (number, edit) in edits.iter().enumerate() {
            if number > 0 && edits[number - 1].key >= edit.key {
                return Err(Error::NotAscending(number));
            }
            self.check_key(edit.key)?;
            edit.value.map_or(Ok(()), |value| self.check_value(edit.key, value))?;
        }
        for _ in edits {
            self.note_operation(true);
        }
        let result = self.guarded(|index| index.for_cause(Cause::Host, |index| index.do_batch(edits)));
        // Half done, or noted and not done: what memory says is not what the index holds when it is opened again.
        self.is_poisoned |= result.is_err() && self.journal.batch.is_some();
        self.journal.batch = None;
        self.journal.is_noted = false;
        result
    }

    fn do_batch(&mut self, edits: &[Edit<'_>]) -> Result<(), N> {
        self.note_batch(edits.iter().map(record))?;
        for edit in edits {
            self.buffer.unpin();
            self.change(record(edit), false)?;
        }
        self.journal.batch = None;
        self.journal.is_noted = false;
        if self.options.durability == Durability::Immediate { self.write_journal() } else { Ok(()) }
    }

    /// Notes a batch whole, before any of it is done.
    ///
    /// # Errors
    ///
    /// [`Error::BatchTooLarge`], [`Error::Full`]: nothing was noted or changed.
    pub(crate) fn note_batch<'a>(&mut self, changes: impl Iterator<Item = Record<'a>> + Clone) -> Result<(), N> {
        let cells = self.options.cells;
        self.open_for_writing()?;
        self.make_journal_room(0)?;
        let (mut pages, mut puts, mut total, mut room) = (1, 0_u32, 0, self.journal.room());
        for change in changes.clone() {
            let size = change.size(cells);
            if room < size {
                (pages, room) = (pages + 1, self.journal.capacity());
            }
            room -= size;
            total += size;
            puts += u32::from(matches!(change, Record::Put(..)));
        }
        if pages > u64::from(self.options.journal_blocks) * u64::from(self.geometry.pages_per_block) {
            return Err(Error::BatchTooLarge);
        }
        self.make_ring_room(pages)?;
        if puts > 0 {
            self.make_places_for(puts - 1, total)?;
        }
        self.journal.batch = Some((self.journal.number, self.journal.count));
        for change in changes {
            if self.journal.room() < change.size(cells) {
                self.write_journal()?;
                self.release_journal()?;
            }
            self.append_journal(change)?;
        }
        // From here on the page in memory, once programmed, makes the batch hold.
        self.journal.is_noted = true;
        Ok(())
    }
}
