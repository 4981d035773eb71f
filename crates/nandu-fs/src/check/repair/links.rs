//! Links: every inode has as many names as it says, and the root is above all of them.

use nandu_nand::Nand;

use super::{Mended, Teller};
use crate::batch::{WholeRoom, batch_in};
use crate::check::walk::Tally;
use crate::commit::Commit;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::Key;
use crate::names::Search;
use crate::{Attributes, FileKind, FsError, Ino};

/// Where what has no name is put: the first of these that is a directory in the root, or can become one.
const LOST_FOUND: [&[u8]; 3] = [b"lost+found", b"lost+found.2", b"lost+found.3"];

/// Bytes of a number as a name.
const NUMBER_SIZE_MAX: usize = 20;

/// Names that are tried for something found.
const NAME_TRIES: u32 = 100;

impl<N: Nand> Fs<'_, N> {
    /// Repairs how many names each inode says it has. Counts as many inodes at a time as there is memory for.
    pub(super) fn repair_links(
        &mut self,
        mut tally: Tally<'_>,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let mut next = Some(1);
        while let Some(from) = next {
            next = self.count_names(from, &mut tally)?;
            for at in 0..tally.len() {
                let (ino, names) = tally.get(at);
                let Some(inode) = self.sound_inode(Ino(ino))? else { continue };
                match inode.is_directory() {
                    true => self.repair_directory_link(ino, inode, names, teller)?,
                    false => self.repair_file_links(ino, inode, names, teller)?,
                }
            }
        }
        Ok(())
    }

    fn repair_file_links(
        &mut self,
        ino: u64,
        inode: Inode,
        names: u32,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        match (inode.nlink, names) {
            (0, 0) => self.note_orphan(ino, teller),
            (_, 0) => self.attach(ino, Inode { nlink: 1, ..inode }, Mended::Attached, teller),
            (nlink, names) if nlink == names => Ok(()),
            _ => self.set_link_count(ino, inode, names, teller),
        }
    }

    /// Has an inode that has names say how many.
    fn set_link_count(
        &mut self,
        ino: u64,
        inode: Inode,
        nlink: u32,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        self.mend(|batch| {
            batch.put_inode(Ino(ino), &Inode { nlink, ..inode });
            if inode.nlink == 0 {
                // With a name it is no orphan.
                batch.delete(Key::orphan(ino));
            }
        })?;
        teller.has_returned |= inode.nlink == 0;
        teller.tell(ino, Mended::Counts);
        Ok(())
    }

    fn repair_directory_link(
        &mut self,
        ino: u64,
        inode: Inode,
        names: u32,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        if ino == Ino::ROOT.0 {
            return Ok(());
        }
        if names == 0 {
            // What is in a directory that was deleted would be lost with it: an empty one alone can have been.
            let was_deleted = inode.nlink == 0 && self.next_name(ino, 0)?.is_none();
            return match was_deleted {
                true => self.note_orphan(ino, teller),
                false => self.attach(ino, Inode { nlink: inode.nlink.max(2), ..inode }, Mended::Attached, teller),
            };
        }
        if inode.nlink == 0 {
            self.set_link_count(ino, inode, 2, teller)?;
        }
        if names > 1 { self.leave_one_name(ino, inode.parent, teller) } else { Ok(()) }
    }

    /// Removes the names of a directory but one in the directory that it says is above it.
    fn leave_one_name(&mut self, ino: u64, parent: u64, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        let Some(kept) = self.name_leading_to(parent, Ino(ino))? else { return Ok(()) };
        self.for_each_inode(|fs, directory| {
            if !fs.sound_inode(Ino(directory))?.is_some_and(|inode| inode.is_directory()) {
                return Ok(());
            }
            let mut next = 0;
            while let Some(at) = fs.next_name(directory, next)? {
                next = at.position + 1;
                if at.ino.0 != ino || (directory, at.position) == (parent, kept.position) {
                    continue;
                }
                fs.mend(|batch| batch.delete(Key::name(directory, at.position)))?;
                teller.tell_name(directory, at.name(), Mended::NameSurplus);
            }
            Ok(())
        })
    }

    /// What has no name and says so is removed with the next changes, if there is a record that says that too.
    fn note_orphan(&mut self, ino: u64, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        if self.has_orphan_record(ino)? {
            return Ok(());
        }
        batch_in!(batch: WholeRoom);
        batch.put(Key::orphan(ino), &[], &[]);
        self.commit(&batch, Commit::Records)?;
        teller.tell(ino, Mended::OrphanNoted);
        Ok(())
    }

    /// Moves a directory to `lost+found` from which the root is not reached. Every directory has one name by now, so it is in a loop, or
    /// below one.
    pub(super) fn cut_loop(&mut self, ino: u64, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        let Some(inode) = self.sound_inode(Ino(ino))?.filter(|inode| inode.is_directory() && inode.nlink > 0) else {
            return Ok(());
        };
        if ino == Ino::ROOT.0 || self.reaches_root(&inode)? {
            return Ok(());
        }
        // The name goes and comes with two commits: in between it is a directory without a name, which a repair attaches too.
        if let Some(at) = self.name_leading_to(inode.parent, Ino(ino))? {
            self.mend(|batch| batch.delete(Key::name(inode.parent, at.position)))?;
        }
        self.attach(ino, inode, Mended::LoopCut, teller)
    }

    /// Gives what has no name one in `lost+found`: its number.
    fn attach(
        &mut self,
        ino: u64,
        mut inode: Inode,
        what: Mended,
        teller: &mut Teller<'_>,
    ) -> Result<(), FsError<N::Error>> {
        let directory = self.lost_found(teller)?;
        let mut name = [0; NUMBER_SIZE_MAX + 4];
        for attempt in 0..NAME_TRIES {
            let name = number_name(&mut name, ino, attempt);
            let Search::Free(Some(position)) = self.search(directory, name)? else { continue };
            let mut parent = self.directory(directory)?;
            parent.size = parent.size.saturating_add(1);
            parent.nlink = parent.nlink.saturating_add(u32::from(inode.is_directory()));
            if inode.is_directory() {
                inode.parent = directory.0;
            }
            batch_in!(batch: WholeRoom);
            Self::put_name(&mut batch, directory, position, inode.kind(), Ino(ino), name);
            batch.put_inode(directory, &parent);
            batch.put_inode(Ino(ino), &inode);
            if !inode.is_file() {
                batch.delete(Key::orphan(ino));
                teller.has_returned = true;
            }
            self.commit(&batch, Commit::Records)?;
            teller.tell_name(ino, name, what);
            return Ok(());
        }
        Err(FsError::Exists { directory, ino: Ino(ino) })
    }

    fn lost_found(&mut self, teller: &mut Teller<'_>) -> Result<Ino, FsError<N::Error>> {
        if let Some(ino) = teller.lost_found {
            return Ok(ino);
        }
        for name in LOST_FOUND {
            let ino = match self.search(Ino::ROOT, name)? {
                Search::Found(found) if self.find_inode(found.ino)?.is_some_and(|inode| inode.is_directory()) => {
                    found.ino
                }
                Search::Found(_) => continue,
                Search::Free(_) => {
                    let mode = 0o700 | FileKind::Directory.mode();
                    self.make_lost_found(name, Attributes { mode, ..Attributes::default() })?
                }
            };
            teller.lost_found = Some(ino);
            return Ok(ino);
        }
        Err(FsError::NotDirectory(Ino::ROOT))
    }

    /// As [`Fs::mkdir`], while the memory that a change is lent holds what is counted.
    fn make_lost_found(&mut self, name: &[u8], attributes: Attributes) -> Result<Ino, FsError<N::Error>> {
        self.check_name(name)?;
        self.begin_change()?;
        batch_in!(batch: WholeRoom);
        let (ino, chunk_next) = self.prepare_make(&mut batch, Ino::ROOT, name, attributes, 0, &[])?;
        self.commit(&batch, Commit::Records)?;
        self.chunk_next = chunk_next;
        Ok(ino)
    }
}

/// `#` and the number, and for further attempts a point and which it is.
fn number_name(out: &mut [u8], number: u64, attempt: u32) -> &[u8] {
    let mut at = 0;
    put_digits(out, &mut at, b'#', number);
    if attempt > 0 {
        put_digits(out, &mut at, b'.', attempt.into());
    }
    &out[..at]
}

fn put_digits(out: &mut [u8], at: &mut usize, sign: u8, number: u64) {
    out[*at] = sign;
    *at += 1;
    for digit in (0..=number.checked_ilog10().unwrap_or(0)).rev() {
        out[*at] = b'0' + (number / 10_u64.pow(digit) % 10) as u8;
        *at += 1;
    }
}
