//! Pages that tags tell of: put, and after a cut made again, in memory, in order, and then committed together.
//!
//! A mount makes the record of the page and the inode again and looks at no leaf but that of the inode. Only a page that comes in place of a
//! hole or of a page, with nothing over it, has a tag.

use nandu_index::Edit;
use nandu_log::{LogError, TAIL_MAX};
use nandu_nand::{Geometry, Nand};

use crate::batch::{PageRoom, batch_in};
use crate::below::{TAG_OWNER_SIZE, TaggedPage, TreeError};
use crate::fs::Fs;
use crate::keys::Key;
use crate::page_records::Base;
use crate::tag::PageTag;
use crate::{FsError, Ino};

/// What a tag says of a page: the write, with the file's own number, and whether it comes in place of a hole.
fn parse(bytes: &[u8; TAG_OWNER_SIZE], geometry: &Geometry) -> Option<(PageTag, bool)> {
    let tag = PageTag::parse(bytes, geometry)?;
    let (ino, is_new) = (tag.ino >> 1, tag.ino & 1 == 1);
    (ino > 0).then_some((PageTag { ino, ..tag }, is_new))
}

impl<N: Nand> Fs<'_, N> {
    /// Puts a whole page by a tag that tells of all that changes with it; `false` if none can, or the tree cannot tag it now.
    pub(crate) fn put_tagged(
        &mut self,
        (ino, index): (u64, u32),
        page: &[u8],
        edits: &[Edit<'_>],
        before: Base,
    ) -> Result<bool, FsError<N::Error>> {
        let is_new = before == Base::Hole;
        let tells_all = (is_new || before == Base::Page) && edits.len() <= 1;
        let Some(tag) = self.tagging.take().filter(|_| tells_all) else { return Ok(false) };
        debug_assert!((tag.ino, tag.index) == (ino, index), "the page that is written");
        let said = PageTag { ino: 2 * ino + u64::from(is_new), ..tag };
        let Some(bytes) = said.sealed(self.tree.log().geometry()) else { return Ok(false) };
        Ok(self.tree.put_tagged(ino, (Key::page(ino, index).as_slice(), page), &bytes, edits)?)
    }

    /// Makes the changes again that tags tell of. Reads each page of the tail, and what its changes concern, and programs the last page elsewhere, and a commit; nothing if there is no tail.
    #[inline(never)]
    pub(crate) fn take_over_tail(&mut self) -> Result<(), FsError<N::Error>> {
        #[cfg(feature = "_broken")]
        if self.options.broken.without_tail {
            return Ok(());
        }
        let (mut pages, mut count, mut place) = ([None; TAIL_MAX as usize], 0, 0);
        while let Some(found) = self.with_memory(|fs, memory| fs.tree.next_tagged(&mut place, memory))? {
            pages[count] = Some(found);
            count += 1;
        }
        let mut key = None;
        for found in pages[..count].iter().flatten() {
            key = match self.make_again(found) {
                Ok(key) => key,
                // A file that is damaged, or an image that says anything: the others are not.
                Err(FsError::NoInode(_) | FsError::NotFile(_) | FsError::IsDirectory(_)) => None,
                Err(FsError::Corrupt { .. } | FsError::CorruptPage { .. }) => None,
                Err(error) => return Err(error),
            };
        }
        let (Some(found), Some(key)) = (pages[..count].last().copied().flatten(), key) else { return Ok(()) };
        // The memory has its bytes yet.
        match self.with_memory(|fs, memory| fs.tree.end_tail((&found, key.as_slice(), memory))) {
            // Of a chip that can only be read it stays in memory.
            Err(TreeError::Log(LogError::Full | LogError::ReadOnly)) => Ok(()),
            ended => Ok(ended?),
        }
    }

    /// Makes the changes again that a tag tells of: the page and the inode. `None` if it tells of none.
    fn make_again(&mut self, found: &TaggedPage) -> Result<Option<Key>, FsError<N::Error>> {
        let Some((tag, is_new)) = parse(&found.tag, self.tree.log().geometry()) else { return Ok(None) };
        let mut inode = self.file(Ino(tag.ino))?;
        let size = u64::from(tag.index) * self.page_size() as u64 + u64::from(tag.end);
        inode.size = inode.size.max(size);
        inode.modify(tag.now);
        inode.blocks = inode.blocks.saturating_add(u64::from(is_new));
        batch_in!(batch: PageRoom);
        batch.put_inode(Ino(tag.ino), &inode);
        let key = Key::page(tag.ino, tag.index);
        self.tree.adopt(key.as_slice(), (found, is_new), batch.edits())?;
        Ok(Some(key))
    }
}
