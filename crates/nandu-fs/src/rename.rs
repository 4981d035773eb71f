//! Renaming.

use nandu_nand::Nand;

use crate::batch::Batch;
use crate::commit::Commit;
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::{CTIME, Inode};
use crate::keys::Key;
use crate::links::Ending;
use crate::names::{FoundName, Search};
use crate::{FsError, Ino, RenameMode, Time};

/// Most directories above one another that are walked to find out whether one is above another.
const DEPTH_MAX: u32 = 1 << 20;

/// A name's directory and the inode of that.
struct Side {
    directory: Ino,
    inode: Inode,
}

impl Side {
    fn shift(&mut self, delta: Delta, now: Time) {
        self.inode.size = self.inode.size.saturating_add_signed(delta.names.into());
        self.inode.nlink = self.inode.nlink.saturating_add_signed(delta.links);
        self.inode.modify(now);
    }
}

/// What a directory has more.
#[derive(Clone, Copy, Default)]
struct Delta {
    names: i32,
    /// Directories among them.
    links: i32,
}

impl<N: Nand> Fs<'_, N> {
    /// Gives what has a name another name, in the same directory or another, and replaces what has that, all at once: after a cut
    /// either name and everything else are as they were, or as they are to be. Durable when it returns, and with it all that was written to
    /// the file before. Programs 1 page and its [share of collection](Fs#what-calls-cost).
    ///
    /// # Errors
    ///
    /// [`FsError::NotFound`]; [`FsError::Exists`] with [`RenameMode::NoReplace`]; [`FsError::IsDirectory`],
    /// [`FsError::NotDirectory`] and [`FsError::NotEmpty`] of what is to be replaced; [`FsError::Loop`]; those of directories and
    /// names as [`Fs::lookup`] has them; [`FsError::Full`].
    pub fn rename(
        &mut self,
        directory: Ino,
        name: &[u8],
        new_directory: Ino,
        new_name: &[u8],
        mode: RenameMode,
    ) -> Result<(), FsError<N::Error>> {
        self.check_name(name)?;
        self.check_name(new_name)?;
        let renamed = self.move_name((directory, name), (new_directory, new_name), mode);
        self.ended(renamed)
    }

    fn move_name(&mut self, from: (Ino, &[u8]), to: (Ino, &[u8]), mode: RenameMode) -> Result<(), FsError<N::Error>> {
        self.begin_change()?;
        let mut replaced = None;
        self.change(&[], &mut |fs, batch, _| fs.prepare_rename(batch, from, to, mode, &mut replaced))?;
        self.sync_names()?;
        match replaced {
            Some((ino, ending)) => self.conclude_ending(ino, ending),
            None => Ok(()),
        }
    }

    /// Puts a renaming into a batch; says what was replaced, if anything was, and what becomes of it.
    fn prepare_rename(
        &mut self,
        batch: &mut Batch<'_>,
        (directory, name): (Ino, &[u8]),
        (new_directory, new_name): (Ino, &[u8]),
        mode: RenameMode,
        ended: &mut Option<(Ino, Ending)>,
    ) -> Result<Commit, FsError<N::Error>> {
        let mut sides = [directory, new_directory].map(|directory| Side { directory, inode: Inode::EMPTY });
        for side in &mut sides {
            self.load_side(side)?;
        }
        if sides[1].inode.nlink == 0 {
            return Err(FsError::NotFound { directory: new_directory });
        }
        let moved = self.found(directory, name)?;
        let mut inode = Inode::EMPTY;
        self.load_named(moved.ino, &mut inode)?;
        if inode.is_directory() {
            self.check_not_above(moved.ino, new_directory)?;
        }
        let links = i32::from(inode.is_directory());
        let mut deltas = [Delta { names: -1, links: -links }, Delta { names: 1, links }];
        let mut how = Commit::Records;
        let position = match (mode, self.search(new_directory, new_name)?) {
            (RenameMode::Exchange, Search::Free(_)) => return Err(FsError::NotFound { directory: new_directory }),
            (RenameMode::NoReplace, Search::Found(FoundName { ino, .. })) => {
                return Err(FsError::Exists { directory: new_directory, ino });
            }
            // Two names of one inode: POSIX has it that nothing happens.
            (_, Search::Found(FoundName { ino, .. })) if ino == moved.ino => return Ok(how),
            (RenameMode::Exchange, Search::Found(other)) => {
                let more = self.put_exchanged(batch, other.ino, (directory, moved.position, name))? - links;
                deltas = [Delta { names: 0, links: more }, Delta { names: 0, links: -more }];
                other.position
            }
            (_, Search::Found(other)) => {
                // The second directory loses a name and gets one, and the same of directories.
                deltas[1] = Delta::default();
                *ended = Some((other.ino, self.replace_name(batch, other.ino, inode.is_directory())?));
                batch.delete(Key::name(directory.0, moved.position));
                how = Commit::Freeing;
                other.position
            }
            (_, Search::Free(position)) => {
                batch.delete(Key::name(directory.0, moved.position));
                position.ok_or(FsError::Full)?
            }
        };
        self.put_sides(batch, &mut sides, deltas);
        self.put_moved(batch, moved.ino, &mut inode, new_directory);
        // S13: the replaced name goes with the batch with which the new one comes. With two, a cut between them would leave neither.
        #[cfg(feature = "_broken")]
        if self.options.broken.replace_in_parts && ended.is_some() {
            batch.delete(Key::name(new_directory.0, position));
            self.commit(batch, how)?;
            self.tree.sync()?;
            batch.clear();
        }
        Self::put_name(batch, new_directory, position, inode.kind(), moved.ino, new_name);
        Ok(how)
    }

    /// Apart from who renames, as what follows is: of what each of them loads one is on the stack at a time.
    #[inline(never)]
    fn load_side(&mut self, side: &mut Side) -> Result<(), FsError<N::Error>> {
        side.inode = self.directory(side.directory)?;
        Ok(())
    }

    #[inline(never)]
    fn load_named(&mut self, ino: Ino, inode: &mut Inode) -> Result<(), FsError<N::Error>> {
        *inode = self.named_inode(ino)?;
        Ok(())
    }

    /// Puts an inode that takes the name of another into a batch, with that name. Returns how many directories there are with it.
    #[inline(never)]
    fn put_exchanged(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        (directory, position, name): (Ino, u64, &[u8]),
    ) -> Result<i32, FsError<N::Error>> {
        let mut inode = self.named_inode(ino)?;
        if inode.is_directory() {
            self.check_not_above(ino, directory)?;
        }
        self.put_moved(batch, ino, &mut inode, directory);
        Self::put_name(batch, directory, position, inode.kind(), ino, name);
        Ok(i32::from(inode.is_directory()))
    }

    /// Puts into a batch what becomes of an inode whose name another inode takes.
    #[inline(never)]
    fn replace_name(
        &mut self,
        batch: &mut Batch<'_>,
        ino: Ino,
        by_directory: bool,
    ) -> Result<Ending, FsError<N::Error>> {
        let mut replaced = self.named_inode(ino)?;
        match (by_directory, replaced.is_directory()) {
            (true, _) => self.check_empty_directory(ino, &replaced)?,
            (false, true) => return Err(FsError::IsDirectory(ino)),
            (false, false) => {}
        }
        self.drop_name(batch, ino, &mut replaced)
    }

    /// Refuses to move a directory below itself. Reads a leaf for each directory above the other.
    fn check_not_above(&mut self, moved: Ino, directory: Ino) -> Result<(), FsError<N::Error>> {
        let mut at = directory;
        for _ in 0..DEPTH_MAX {
            match at {
                _ if at == moved => return Err(FsError::Loop(moved)),
                Ino::ROOT => return Ok(()),
                _ => at = Ino(self.named_inode(at)?.parent),
            }
        }
        Err(FsError::Corrupt { ino: directory, why: Damage::Parent })
    }

    /// Puts the inodes of the directories concerned, once if they are the same.
    fn put_sides(&self, batch: &mut Batch<'_>, sides: &mut [Side; 2], [loss, gain]: [Delta; 2]) {
        let [from, to] = sides;
        from.shift(loss, self.now);
        if from.directory == to.directory {
            from.shift(gain, self.now);
        } else {
            to.shift(gain, self.now);
            batch.put_inode(to.directory, &to.inode);
        }
        batch.put_inode(from.directory, &from.inode);
    }

    /// The inode that moves, with its new parent.
    fn put_moved(&self, batch: &mut Batch<'_>, moved: Ino, inode: &mut Inode, directory: Ino) {
        inode.times[CTIME] = self.now;
        if inode.is_directory() {
            inode.parent = directory.0;
        }
        batch.put_inode(moved, inode);
    }
}
