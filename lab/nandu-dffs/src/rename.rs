//! Renaming.

use nandu_media::dffs::{self as media, FLAG_RENAMED, Kind, POINTER_BASE, PREVIOUS_AT};
use nandu_nand::{Nand, PageAddr};

use crate::blocks::SCAN;
use crate::chain::{Fold, Found};
use crate::dffs::{Dffs, ROOT, Result};
use crate::error::Error;
use crate::lag::Lag;
use crate::node::{Directory, File, Node};
use crate::pages::NODE;
use crate::room::Demand;
use crate::slots::SlotEntry;

impl<N: Nand> Dffs<'_, N> {
    /// Gives what has a name another name, in the same directory or another; what has that is replaced, unless it must not be. Returns what
    /// the new name leads to. Costs three programs: the inode with its new name, the new directory's page, the old one's; more where chains
    /// grow or holes are filled.
    ///
    /// Durable when this returns, with what was written to the file before. A cut in it leaves the old name or the new one: once the new
    /// directory has the name, the next mount takes the old one away; before that the inode with the new name counts for nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::Exists`]; [`Error::IsDirectory`], [`Error::NotDirectory`] and [`Error::NotEmpty`] of what is to be
    /// replaced; [`Error::Invalid`] where a directory would come below itself; those of [`create`](Dffs::create).
    pub fn rename(
        &mut self,
        directory: Directory,
        name: &[u8],
        new_directory: Directory,
        new_name: &[u8],
        may_replace: bool,
    ) -> Result<Node, N> {
        Self::check_name(name)?;
        Self::check_name(new_name)?;
        self.change(|fs| {
            let (directory, new_directory) = (fs.number_of(directory)?, fs.number_of(new_directory)?);
            fs.rename_inner(directory, name, new_directory, new_name, may_replace)
        })
    }

    fn rename_inner(
        &mut self,
        directory: u32,
        name: &[u8],
        new_directory: u32,
        new_name: &[u8],
        may_replace: bool,
    ) -> Result<Node, N> {
        let found = self.find(directory, name)?.ok_or(Error::NotFound)?;
        let is_directory = found.fields.kind == Kind::Directory;
        self.load_head(new_directory)?;
        if is_directory {
            self.expect_outside(found.fields.id, new_directory)?;
        }
        let target = self.find(new_directory, new_name)?;
        if let Some(target) = &target {
            let is_same = directory == new_directory && name == new_name;
            match (is_directory, target.fields.kind == Kind::Directory) {
                _ if !may_replace => return Err(Error::Exists),
                _ if is_same => return Ok(Node::of(&found.fields, directory, found.place)),
                (false, true) => return Err(Error::IsDirectory),
                (true, false) => return Err(Error::NotDirectory),
                (true, true) => self.expect_empty()?,
                (false, false) => {}
            }
        }
        let place = self.place_of(new_name);
        let is_new_page = target.is_none() && !self.has_bucket(new_directory, place.bucket)?;
        self.need_logical(usize::from(is_new_page))?;
        self.prepare(Demand::More)?;
        if !is_directory {
            // Bringing it into memory may program others.
            let found = self.find(directory, name)?.ok_or(Error::NotFound)?;
            self.slot_of(File::at(directory, found.fields.id, found.place))?;
        }
        // All of it may have moved.
        let target = self.find(new_directory, new_name)?;
        let found = self.find(directory, name)?.ok_or(Error::NotFound)?;
        let slot = self.find_slot(found.fields.id).filter(|_| !is_directory);
        let known = slot.map(|slot| (slot, self.slots[slot]));
        let (node, pointer) = match is_directory {
            true => (Node::Directory(Directory::of(&found.fields)), found.pointer),
            false => {
                let file = File::at(new_directory, found.fields.id, place);
                (Node::File(file), self.rename_file(&found, directory, file, new_name)?)
            }
        };
        if is_directory {
            self.rename_directory(found.pointer, new_directory, new_name)?;
        }
        // O5: the inode, then the new name, then the old one goes. Cut after the first, nothing leads to the inode with the new name, and
        // the one with the old name is what it was: a file's by its address, and a directory's recovery goes back to. Cut after
        // the second, both names lead to it, and recovery takes the old one away. The old name first would leave none.
        let removal_first = crate::options::broken!(self, removal_first);
        if removal_first {
            self.remove(directory, found.place, found.pointer)?;
        }
        let linked = match &target {
            Some(target) => self.replace(new_directory, place, target.pointer, pointer),
            None => self.insert(new_directory, place, pointer),
        };
        if linked.is_err() {
            self.keep_old_name(&found, directory, known);
        }
        linked?;
        if !removal_first {
            let removed = self.remove(directory, found.place, found.pointer);
            if let (Err(_), Some((slot, _))) = (&removed, known) {
                // Who asks by the old name meets the inode that has the new one, which is not it.
                self.redirect(&found, directory, PageAddr(self.slots[slot].page));
            }
            removed?;
        }
        match target {
            Some(target) if target.fields.kind == Kind::Directory => self.release(target.pointer),
            Some(target) => self.bury(&target)?,
            None => {}
        }
        Ok(node)
    }

    /// Nothing leads to the new name, and nothing is programmed any more: memory knows what was to be renamed as before.
    fn keep_old_name(&mut self, found: &Found, directory: u32, known: Option<(usize, SlotEntry)>) {
        match known {
            Some((slot, entry)) => {
                self.slots[slot] = entry;
                self.redirect(found, directory, found.page);
            }
            None => self.set_mapped(found.pointer, found.page),
        }
    }

    /// The bucket that leads to a file is behind: the inode is at this page. Where no more may be behind, it leads to what was synced last.
    fn redirect(&mut self, found: &Found, directory: u32, page: PageAddr) {
        let behind = found.pointer.saturating_sub(POINTER_BASE);
        if behind != page.0 {
            self.lags.set(Lag { behind, current: page.0, directory, bucket: found.place.bucket.into() });
        }
    }

    /// Programs the inode of a file with its new name, and what was written to it; returns the pointer to it.
    fn rename_file(&mut self, found: &Found, directory: u32, file: File, name: &[u8]) -> Result<u32, N> {
        let slot = self.slot_of(File { directory, ..File::at(directory, found.fields.id, found.place) })?;
        self.flush_data(slot)?;
        for index in 0..self.pointer_count as u32 {
            // The summaries name the old directory and bucket.
            let page = self.data_pointer(slot, index);
            if page.0 != 0 && self.geometry.contains_page(page) {
                self.blocks.update(self.geometry.block_of(page), |entry| entry.flags |= SCAN);
            }
        }
        let frame = self.inode_frame(slot);
        let mut fields = self.fields(frame)?;
        fields.parent = file.directory;
        fields.ctime = self.now;
        self.set_fields(frame, &fields);
        media::set_name(self.pages.get_mut(frame), name);
        self.write_inode(slot, true)?;
        // The old bucket leads where it led, until it is cleared.
        self.lags.remove(found.pointer - POINTER_BASE);
        let place = crate::hash::Place { bucket: file.bucket, second: file.second };
        self.rename_slot(slot, file.directory, place);
        Ok(self.slots[slot].page + POINTER_BASE)
    }

    /// Programs the inode of a directory with its new name.
    fn rename_directory(&mut self, id: u32, parent: u32, name: &[u8]) -> Result<(), N> {
        let mut fields = self.load_chain(id, NODE)?;
        fields.parent = parent;
        fields.ctime = self.now;
        fields.flags |= FLAG_RENAMED;
        self.set_fields(NODE, &fields);
        let old = self.mapped(id);
        self.set_word(NODE, PREVIOUS_AT, old.0);
        media::set_name(self.pages.get_mut(NODE), name);
        self.program_chain(NODE, Fold::None)
    }

    /// A directory must not come below itself.
    fn expect_outside(&mut self, id: u32, new_parent: u32) -> Result<(), N> {
        let mut above = new_parent;
        for _ in 0..self.map.len() {
            if above == id {
                return Err(Error::Invalid);
            }
            if above == ROOT {
                return Ok(());
            }
            above = self.load_head(above)?.parent;
        }
        Err(Error::Corrupt { page: PageAddr(0), why: nandu_media::Malformed::Range(nandu_media::Field::Parent) })
    }
}
