//! Putting pages of files.

use nandu_index::Edit;
use nandu_nand::Nand;

use crate::FsError;
use crate::fs::Fs;
use crate::keys::Key;
use crate::page_records::Base;

impl<N: Nand> Fs<'_, N> {
    /// Makes a whole page the content of a page of a file, and other changes, none of which is of the record of that page. Programs it.
    ///
    /// The page is programmed before the commit that lists its record (H1), or stands in that commit (W8). The inode with its size goes with the same commit as the record: with the size first, a cut would leave zeros
    /// in place of the bytes, and with the page first, bytes behind the end of the file, which would come to light when it grows.
    ///
    /// One that replaces a page is possible on a full chip too.
    pub(crate) fn put_page(
        &mut self,
        place: (u64, u32),
        page: &[u8],
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        self.put_content(place, (page, page.len()), edits, before)
    }

    /// The same of a page that is zero behind so many bytes. One that a tag tells of has all of them.
    fn put_content(
        &mut self,
        (ino, index): (u64, u32),
        (page, size): (&[u8], usize),
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        let (key, how) = (Key::page(ino, index), (edits, before == Base::Page));
        #[cfg(feature = "tags")]
        if self.put_tagged((ino, index), page, edits, before)? {
            return Ok(());
        }
        let (page, mode) = (&page[..size], self.place_page(ino));
        match self.tree.put_page(key.as_slice(), page, how, mode).map_err(FsError::from) {
            Err(FsError::Full) if self.make_room()? => Ok(self.tree.put_page(key.as_slice(), page, how, mode)?),
            outcome => outcome,
        }
    }

    /// The same with the page that is being written.
    pub(crate) fn put_buffer(
        &mut self,
        place: (u64, u32),
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        self.put_front(place, self.page_size(), edits, before)
    }

    /// The same, where it is zero behind so many bytes.
    pub(crate) fn put_front(
        &mut self,
        place: (u64, u32),
        size: usize,
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<(), FsError<N::Error>> {
        self.with_memory(|fs, memory| fs.put_content(place, (memory, size), edits, before))
    }
}
