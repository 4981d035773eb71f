//! Repairing what contradicts itself.
//!
//! What a cut can leave needs no repair; this is for volumes that lost pages, or that something else wrote to. It repairs what can be
//! repaired without guessing: what the records that are left say is taken for true, what is counted is counted again, what cannot be
//! read or understood is given up and named. Whatever lost its name is found in `lost+found`, by its number.
//!
//! Each step is a batch that takes away a contradiction and makes none that the next repair would not find: the record that
//! stays is put before or with the one that goes. So a cut at any time leaves a volume that the next repair brings to the same end.

mod links;
mod names;
mod pages;
mod records;

use core::fmt;
use core::ops::{Bound, ControlFlow};

use nandu_index::{Direction, Edit, Entry, KeyBuf};
use nandu_nand::Nand;

use super::chunks::ChunkClaim;
use crate::batch::{Batch, WholeRoom, batch_in};
use crate::check::walk::Tally;
use crate::commit::Commit;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{INO_END, Key, Meaning};
use crate::super_block::CHUNK_SIZE;
use crate::{FsError, Ino};

/// What was done to an inode, or what of it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mended {
    /// A record that means nothing was removed.
    Record,
    /// An inode was gone, and made anew from what is left of it.
    InodeMade,
    /// An inode cannot be understood and has nothing else: it was removed.
    InodeLost,
    /// Its type is what its records say now.
    Kind,
    /// Content that something of its type cannot have was removed.
    Misfit,
    /// A page of a file cannot be read: it reads as zeros now.
    PageLost,
    /// A page of a file was gone: but for later changes, which are kept, it reads as zeros now.
    PageMade,
    /// Changes over a part of a file that is no page were joined with it.
    PageJoined,
    /// A change over a page of a file cannot be understood: the page is as it was before.
    FragmentLost,
    /// What stood behind the end of a file was removed.
    Beyond,
    /// Pages, attributes, names or sizes were counted again.
    Counts,
    /// An attribute was not whole, and removed.
    XattrLost,
    /// The target of a symbolic link was not whole, and the link was removed.
    TargetLost,
    /// A name led to nothing, and was removed.
    NameLost,
    /// A name too many of a directory, or one that was there twice, was removed.
    NameSurplus,
    /// A name was brought to where it is looked for, or says the right type now.
    NameSet,
    /// A directory says the right parent now.
    Parent,
    /// What had no name is in `lost+found`.
    Attached,
    /// A directory stood below itself; it is in `lost+found`.
    LoopCut,
    /// What was deleted, with nothing that said so, is going to be removed.
    OrphanNoted,
    /// A note that something is to be removed was wrong, and was removed itself.
    OrphanRecord,
    /// Numbers for new inodes begin behind those in use, and belong to no other directory.
    Numbers,
}

impl Mended {
    /// Whether something is lost with it that users had put there.
    pub fn is_loss(self) -> bool {
        matches!(
            self,
            Mended::Record
                | Mended::InodeMade
                | Mended::InodeLost
                | Mended::Misfit
                | Mended::PageLost
                | Mended::PageMade
                | Mended::FragmentLost
                | Mended::XattrLost
                | Mended::TargetLost
                | Mended::NameLost
        )
    }
}

impl fmt::Display for Mended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mended::Record => "a record that means nothing was removed",
            Mended::InodeMade => "it was made anew from what is left of it; mode, owner and times are lost",
            Mended::InodeLost => "it cannot be understood and was removed",
            Mended::Kind => "its type was set to what its records are",
            Mended::Misfit => "content that its type cannot have was removed",
            Mended::PageLost => "cannot be read, reads as zeros now",
            Mended::PageMade => "was gone, reads as zeros now but for what was written last",
            Mended::PageJoined => "what was written last was joined with what it lies over",
            Mended::FragmentLost => "what was written last cannot be understood, it is as before",
            Mended::Beyond => "what stood behind its end was removed",
            Mended::Counts => "its counts were set right",
            Mended::XattrLost => "an attribute that is not whole was removed",
            Mended::TargetLost => "a link whose target is not whole was removed",
            Mended::NameLost => "a name that leads to nothing was removed",
            Mended::NameSurplus => "a name too many was removed",
            Mended::NameSet => "a name was set right",
            Mended::Parent => "the directory above it was set right",
            Mended::Attached => "it had no name and is in lost+found",
            Mended::LoopCut => "it stood below itself and is in lost+found",
            Mended::OrphanNoted => "it was deleted and is removed with the next changes",
            Mended::OrphanRecord => "a wrong note that it is to be removed was removed",
            Mended::Numbers => "numbers for new inodes were set right",
        })
    }
}

/// Something that a repair did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair<'a> {
    /// The inode concerned, of a name its directory; 0 is the volume.
    pub ino: Ino,
    /// The name or attribute concerned; empty if it is none.
    pub name: &'a [u8],
    /// The bytes of the file concerned: offset and how many.
    pub range: Option<(u64, u64)>,
    /// What was done.
    pub what: Mended,
}

/// Where a repair tells what it does.
struct Teller<'a> {
    to: &'a mut dyn FnMut(Repair<'_>),
    count: u64,
    lost_found: Option<Ino>,
    /// Whether something that was noted as an orphan has a name.
    has_returned: bool,
}

impl Teller<'_> {
    fn tell(&mut self, ino: u64, what: Mended) {
        self.tell_name(ino, &[], what);
    }

    fn tell_name(&mut self, ino: u64, name: &[u8], what: Mended) {
        self.count += 1;
        (self.to)(Repair { ino: Ino(ino), name, range: None, what });
    }

    fn tell_range(&mut self, ino: u64, range: (u64, u64), what: Mended) {
        self.count += 1;
        (self.to)(Repair { ino: Ino(ino), name: &[], range: Some(range), what });
    }
}

impl<N: Nand> Fs<'_, N> {
    /// Repairs what can be repaired without guessing, and reports each repair; returns how many. Afterwards [`Fs::verify`] finds nothing
    /// wrong with the file system, unless it failed; what is wrong with a leaf of the tree or with the log is not repaired. Durable when
    /// it returns. Open no files before it.
    ///
    /// Reads everything there is several times, as [`Fs::verify`] does, and takes `scratch` as that does.
    ///
    /// # Errors
    ///
    /// [`FsError::ReadOnly`]; [`FsError::Full`]; [`FsError::CorruptPage`] if a leaf cannot be read; errors
    /// of the chip. What was repaired by then stays repaired.
    pub fn repair(&mut self, scratch: &mut [u8], report: &mut dyn FnMut(Repair<'_>)) -> Result<u64, FsError<N::Error>> {
        self.check_writable()?;
        self.flush()?;
        // What is named as an orphan may be none: nothing is removed before that is known.
        self.has_orphans = false;
        let mut teller = Teller { to: report, count: 0, lost_found: None, has_returned: false };
        let outcome = self.repair_all(scratch, &mut teller);
        self.has_orphans = true;
        outcome?;
        self.tree.sync()?;
        Ok(teller.count)
    }

    fn repair_all(&mut self, scratch: &mut [u8], teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        self.remove_foreign_records(teller)?;
        self.repair_numbers(teller)?;
        self.repair_orphan_records(teller)?;
        self.for_each_inode(|fs, ino| fs.repair_records(ino, teller))?;
        self.with_larger(scratch, |fs, scratch| fs.repair_chunks(scratch, teller))?;
        self.for_each_inode(|fs, ino| fs.repair_directory_names(ino, teller))?;
        // Before anything gets a name in a directory, the counts that it changes are right.
        self.for_each_inode(|fs, ino| fs.repair_directory_counts(ino, teller))?;
        self.with_larger(scratch, |fs, scratch| fs.repair_links(Tally::new(scratch), teller))?;
        if teller.has_returned {
            // What was taken for an orphan may be incomplete, which only now is wrong.
            self.for_each_inode(|fs, ino| fs.repair_records(ino, teller))?;
            self.for_each_inode(|fs, ino| fs.repair_directory_names(ino, teller))?;
        }
        self.for_each_inode(|fs, ino| fs.cut_loop(ino, teller))?;
        self.for_each_inode(|fs, ino| fs.repair_directory_counts(ino, teller))
    }

    /// Calls with the root and then with every other inode of which there is a record.
    fn for_each_inode(
        &mut self,
        mut call: impl FnMut(&mut Self, u64) -> Result<(), FsError<N::Error>>,
    ) -> Result<(), FsError<N::Error>> {
        call(self, Ino::ROOT.0)?;
        let mut next = Ino::ROOT.0 + 1;
        while next < INO_END
            && let Some(ino) = self.next_inode(next)?
        {
            call(self, ino)?;
            self.tree.end_call();
            next = ino + 1;
        }
        Ok(())
    }

    /// Removes the records between two bounds about which something is to be told, one after the other.
    fn remove_where(
        &mut self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mut is_doomed: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<(), FsError<N::Error>> {
        let mut at: Option<KeyBuf> = None;
        loop {
            let mut found = None;
            let start = at.as_ref().map_or(from, |at| Bound::Excluded(at.as_slice()));
            self.tree.range(start, to, Direction::Forward, |entry| {
                if !is_doomed(&entry) {
                    return ControlFlow::Continue(());
                }
                found = KeyBuf::new(entry.key);
                ControlFlow::Break(())
            })?;
            let Some(key) = found else { return Ok(()) };
            self.tree.batch_freeing(&[Edit { key: key.as_slice(), value: None }])?;
            self.tree.end_call();
            at = Some(key);
        }
    }

    /// Records whose keys belong to nothing.
    fn remove_foreign_records(&mut self, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        self.remove_where(Bound::Unbounded, Bound::Unbounded, |entry| {
            let is_foreign = Meaning::of(entry.key).is_none();
            if is_foreign {
                teller.tell(Key::owner(entry.key), Mended::Record);
            }
            is_foreign
        })
    }

    /// Numbers of new inodes are above all that are in use.
    fn repair_numbers(&mut self, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        let last = self.tree.last()?.map_or(0, |entry| Key::owner(entry.key));
        if last < self.chunk_next {
            return Ok(());
        }
        let chunk_next = ((last / CHUNK_SIZE + 1) * CHUNK_SIZE).min(INO_END);
        batch_in!(batch: WholeRoom);
        self.put_super_block(&mut batch, chunk_next);
        self.commit(&batch, Commit::Freeing)?;
        self.chunk_next = chunk_next;
        teller.tell(0, Mended::Numbers);
        Ok(())
    }

    /// Numbers that several directories would give away are left to the one that has gone furthest, so that none is given twice, whichever
    /// of them gave one before. After a cut it is the same one. The others take a new chunk when they need one.
    fn repair_chunks(&mut self, scratch: &mut [u8], teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        self.for_each_shared_chunk(scratch, |fs, ino, inode, claim| {
            if claim == ChunkClaim::Yields {
                fs.mend(|batch| batch.put_inode(Ino(ino), &Inode { chunk_next: 0, chunk_end: 0, ..*inode }))?;
                teller.tell(ino, Mended::Numbers);
            }
            Ok(())
        })
    }

    /// Notes of what is to be removed that name nothing of the kind.
    fn repair_orphan_records(&mut self, teller: &mut Teller<'_>) -> Result<(), FsError<N::Error>> {
        let mut next = 0;
        while let Some(ino) = self.next_orphan(next)? {
            next = ino + 1;
            match self.find_inode(Ino(ino)) {
                Ok(Some(inode)) if self.may_be_orphan(ino, &inode)? => continue,
                Ok(Some(_)) => {
                    self.mend(|batch| batch.delete(Key::orphan(ino)))?;
                }
                // It was to be removed anyway: so is what is left of it.
                Ok(None) | Err(FsError::Corrupt { .. }) => self.remove_inode(ino)?,
                Err(error) => return Err(error),
            }
            teller.tell(ino, Mended::OrphanRecord);
        }
        Ok(())
    }

    /// Commits changes of records that leave no less room than there was.
    fn mend(&mut self, change: impl FnOnce(&mut Batch<'_>)) -> Result<(), FsError<N::Error>> {
        batch_in!(batch: WholeRoom);
        change(&mut batch);
        self.commit(&batch, Commit::Freeing)
    }

    /// Removes the records from one key up to another, in steps; `conclude` adds to the last of them.
    fn remove_records(
        &mut self,
        range: (Key, Key),
        conclude: impl Fn(&mut Batch<'_>),
    ) -> Result<(), FsError<N::Error>> {
        let mut last = Key::EMPTY;
        loop {
            batch_in!(batch: WholeRoom);
            let doomed = self.doom_next(&mut batch, &mut last, range)?;
            if doomed.is_all {
                conclude(&mut batch);
            }
            self.commit(&batch, Commit::Freeing)?;
            if doomed.is_all {
                return Ok(());
            }
        }
    }

    /// Removes every record of an inode. The first batch says that it is to go: after a cut what is left of it is not taken for
    /// something that lost its inode.
    fn remove_inode(&mut self, ino: u64) -> Result<(), FsError<N::Error>> {
        self.mend(|batch| {
            batch.delete(Key::inode(ino));
            batch.put(Key::orphan(ino), &[], &[]);
        })?;
        self.remove_records((Key::behind_inode(ino), Key::end(ino)), |batch| batch.delete(Key::orphan(ino)))
    }
}
