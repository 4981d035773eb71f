//! Pages of files: what cannot be read is lost, and everything else is kept.

use core::ops::ControlFlow;

use nandu_nand::Nand;

use super::{Mended, Teller};
use crate::batch::{WholeRoom, batch_in};
use crate::commit::Commit;
use crate::error::Damage;
use crate::fragments::{FRAGMENTS_FOUND_MAX, parse as parse_fragment};
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{Key, Meaning};
use crate::page_records::{Base, UNWRITTEN_VALUE, base_of};
use crate::{FsError, Ino};

/// What the records of a page are, sound or not.
struct FoundRecords {
    /// `None` if its record cannot be understood.
    base: Option<Base>,
    fragments: usize,
    /// Offset of the first fragment that cannot be there, and its bytes as far as known.
    wrong: Option<(u16, u64)>,
}

impl<N: Nand> Fs<'_, N> {
    /// Repairs the pages of a file of this size; returns how many records of pages there are then.
    pub(super) fn repair_pages(
        &mut self,
        ino: u64,
        size: u64,
        teller: &mut Teller<'_>,
    ) -> Result<u64, FsError<N::Error>> {
        // What a truncation under way has not come to stands behind the end, rightly.
        let is_cut_off = self.has_orphan_record(ino)?;
        let (mut blocks, mut next) = (0, Some(0));
        while let Some(from) = next
            && let Some(index) = self.next_page(ino, from)?
        {
            let is_beyond = u64::from(index) * self.page_size() as u64 >= size;
            let base = self.repair_page(ino, index, size, is_beyond && !is_cut_off, teller)?;
            blocks += u64::from(base != Base::Hole);
            next = index.checked_add(1);
        }
        Ok(blocks)
    }

    fn repair_page(
        &mut self,
        ino: u64,
        index: u32,
        size: u64,
        is_beyond: bool,
        teller: &mut Teller<'_>,
    ) -> Result<Base, FsError<N::Error>> {
        let start = u64::from(index) * self.page_size() as u64;
        let whole = (start, (self.page_size() as u64).min(size.saturating_sub(start)));
        let found = self.look_at_page(ino, index)?;
        let key = Key::page(ino, index);
        if is_beyond && (found.base != Some(Base::Unwritten) || found.fragments > 0 || found.wrong.is_some()) {
            teller.tell_range(ino, (start, self.page_size() as u64), Mended::Beyond);
            self.remove_records((Key::page(ino, index), Self::page_end(ino, index)), |_| {})?;
            return Ok(Base::Hole);
        }
        let mut base = match found.base {
            Some(Base::Page) if !self.can_read_page(key)? => None,
            other => other,
        };
        if base.is_none() {
            teller.tell_range(ino, whole, Mended::PageLost);
            self.mend(|batch| batch.put(key, &UNWRITTEN_VALUE, &[]))?;
            base = Some(Base::Unwritten);
        }
        let mut found = found;
        let mut before = None;
        while let Some((offset, bytes)) = found.wrong {
            // Where a damaged tree keeps what was removed, this would go on for ever.
            if before.is_some_and(|before| offset <= before) {
                return Err(FsError::Corrupt { ino: Ino(ino), why: Damage::Page });
            }
            before = Some(offset);
            teller.tell_range(ino, (start + u64::from(offset), bytes), Mended::FragmentLost);
            self.mend(|batch| batch.delete(Key::fragment(ino, index, offset)))?;
            found = self.look_at_page(ino, index)?;
        }
        if found.fragments > 0 && base != Some(Base::Page) {
            let is_gone = base == Some(Base::Hole);
            teller.tell_range(ino, whole, if is_gone { Mended::PageMade } else { Mended::PageJoined });
            self.fold_page(ino, index)?;
            base = Some(Base::Page);
        }
        Ok(base.unwrap_or(Base::Hole))
    }

    fn look_at_page(&mut self, ino: u64, index: u32) -> Result<FoundRecords, FsError<N::Error>> {
        let page_size = self.page_size();
        let mut found = FoundRecords { base: Some(Base::Hole), fragments: 0, wrong: None };
        let mut end = 0;
        self.records((Key::page(ino, index), Self::page_end(ino, index)), |entry| {
            match Meaning::of(entry.key) {
                Some(Meaning::Page { .. }) => found.base = base_of(entry.value, entry.large, page_size),
                Some(Meaning::Fragment { offset, .. }) => {
                    let size = parse_fragment(entry.value).filter(|_| entry.large.is_none()).map(|(size, _)| size);
                    let start = usize::from(offset);
                    match size {
                        Some(size)
                            if end <= start && start + size <= page_size && found.fragments < FRAGMENTS_FOUND_MAX =>
                        {
                            end = start + size;
                            found.fragments += 1;
                        }
                        _ => {
                            found.wrong = Some((offset, size.unwrap_or(1) as u64));
                            return ControlFlow::Break(());
                        }
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Whether a page value is there and is what its entry says. Reads it.
    pub(in crate::check) fn can_read_page(&mut self, key: Key) -> Result<bool, FsError<N::Error>> {
        let page_size = self.page_size();
        let length = self.tree.value_len(key.as_slice())?;
        Ok(length.is_some_and(|length| length <= page_size) && self.tree.is_value_sound(key.as_slice())?)
    }

    /// Makes a page of what its records hold and zeros, and lets what lies over it go.
    fn fold_page(&mut self, ino: u64, index: u32) -> Result<(), FsError<N::Error>> {
        let state = self.page_state(ino, index)?;
        self.with_memory(|fs, memory| fs.read_page(ino, index, 0, memory))?;
        self.put_buffer((ino, index), &[], state.base)?;
        self.drop_fragments((ino, index), &state)
    }

    /// Bytes in the last page behind the end of a file become zeros.
    pub(super) fn repair_end(
        &mut self,
        ino: u64,
        inode: &Inode,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let page_size = self.page_size();
        let (index, start) = self.place(inode.size);
        if start == 0 || self.is_zero_from(ino, index, start)? {
            return Ok(());
        }
        batch_in!(batch: WholeRoom);
        self.zero_part(&mut batch, Ino(ino), index, start, page_size)?;
        self.commit(&batch, Commit::Freeing)?;
        teller.tell_range(ino, (inode.size, (page_size - start) as u64), Mended::Beyond);
        Ok(())
    }

    /// Whether a page holds nothing but zeros from a place on.
    pub(in crate::check) fn is_zero_from(
        &mut self,
        ino: u64,
        index: u32,
        start: usize,
    ) -> Result<bool, FsError<N::Error>> {
        self.with_memory(|fs, memory| {
            fs.read_page(ino, index, start, &mut memory[start..])?;
            Ok(memory[start..].iter().all(|&byte| byte == 0))
        })
    }
}
