//! Putting pages of files.

use nandu_index::Edit;
use nandu_nand::Nand;
use nandu_tree::{PagePut, TreeError};

use crate::FsError;
use crate::fs::Fs;
use crate::keys::Key;
use crate::page_records::Base;

/// Part of what is kept, as a divisor, that is left by pages that replace pages.
const OVERWRITTEN_SHARE: u32 = 8;

impl<N: Nand> Fs<'_, N> {
    /// Makes a whole page the content of a page of a file, and other changes, none of which is of the record of that page. Programs it.
    ///
    /// The page is programmed before the commit that holds its record (T13): otherwise a cut between the two would leave a record
    /// that leads to nothing. The inode with its size goes with the same commit as the record: with the size first, a cut would leave zeros
    /// in place of the bytes, and with the page first, bytes behind the end of the file, which would come to light when it grows.
    ///
    /// One that replaces a page is possible on a full chip too.
    pub(crate) fn put_page(
        &mut self,
        (ino, index): (u64, u32),
        page: &[u8],
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        let owner = self.tagging.take();
        let mut put = PagePut { edits, owner: owner.as_ref(), ..PagePut::default() };
        if owner.is_some() {
            match self.try_put_page((ino, index), page, &put) {
                Err(FsError::Full) => self.tagging.give_up(),
                other => return other,
            }
        }
        (put.owner, put.stream) = (None, self.place_page(ino));
        let mut has_more = true;
        loop {
            let mut outcome = self.try_put_page((ino, index), page, &put);
            if matches!(outcome, Err(FsError::Full)) && before == Base::Page && self.has_room_to_overwrite() {
                put.frees = true;
                outcome = self.try_put_page((ino, index), page, &put);
                put.frees = false;
            }
            match outcome {
                Err(FsError::Full) if has_more && self.make_room()? => has_more = false,
                outcome => return outcome,
            }
        }
    }

    /// What is overwritten takes its room twice until it is synced, and where it stood beside others for as long as they live.
    fn has_room_to_overwrite(&self) -> bool {
        self.tree.pages().has_capacity_for_records(1, OVERWRITTEN_SHARE)
    }

    #[inline(never)]
    fn try_put_page(
        &mut self,
        (ino, index): (u64, u32),
        page: &[u8],
        put: &PagePut<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let key = Key::page(ino, index);
        match self.tree.put_page_with(key.as_slice(), page, put) {
            Err(TreeError::NotesFull) if put.owner.is_none() => {
                // Recoveries that were cut have left blocks half full, whose pages are noted until the collector has been there.
                self.collect_all()?;
                self.tree.put_page_with(key.as_slice(), page, put)?;
            }
            outcome => drop(outcome?),
        }
        Ok(())
    }

    /// The same with the page that is being written.
    pub(crate) fn put_buffer(
        &mut self,
        place: (u64, u32),
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        self.with_memory(|fs, memory| fs.put_page(place, memory, edits, before))
    }

    /// The same, where behind so many bytes it is zero: these go into the page of the next sync, if they have room there.
    #[inline(never)]
    pub(crate) fn put_front(
        &mut self,
        (ino, index): (u64, u32),
        size: usize,
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        let key = Key::page(ino, index);
        let outcome = self.tree.put_resident_with(key.as_slice(), &self.buffer.page()[..size], edits);
        match outcome.map_err(FsError::from) {
            Ok(Some(_)) => Ok(()),
            Ok(None) | Err(FsError::Full) => self.put_buffer((ino, index), edits, before),
            Err(error) => Err(error),
        }
    }
}
