//! Renaming.

use nandu_nand::Nand;

use crate::batch::{Batch, INODE_ROOM, Room};
use crate::error::Damage;
use crate::fs::Fs;
use crate::inode::Inode;
use crate::keys::{KEY_SIZE_MAX, Key};
use crate::links::Ending;
use crate::names::{Found, NAME_ROOM, Search};
use crate::orphans::REMOVED_COUNT;
use crate::{FsError, Ino, RenameMode, Time};

/// Most directories above one another that are walked to find out whether one is above another.
const DEPTH_MAX: u32 = 1 << 20;

/// Room for a name, the one that goes, and three inodes.
type MoveRoom<'a> = Room<'a, 5, { KEY_SIZE_MAX + NAME_ROOM + 3 * INODE_ROOM }>;

/// Room for two names and four inodes.
type SwapRoom<'a> = Room<'a, 6, { 2 * NAME_ROOM + 4 * INODE_ROOM }>;

/// Room for a name, the one it replaces, four inodes and the records of one that is replaced.
type ReplaceRoom<'a> =
    Room<'a, { REMOVED_COUNT + 10 }, { (REMOVED_COUNT + 2) * KEY_SIZE_MAX + NAME_ROOM + 4 * INODE_ROOM }>;

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
    /// the file before. Programs 1 page.
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
        self.begin_change()?;
        let ending = self.rename_now((directory, name), (new_directory, new_name), mode)?;
        self.sync_names()?;
        match ending {
            Some((_, Ending::Gone)) | None => Ok(()),
            Some((ino, ending)) => self.conclude_ending(ino, ending),
        }
    }

    /// What was replaced, if anything was, and what becomes of it.
    #[inline(never)]
    fn rename_now(
        &mut self,
        (directory, name): (Ino, &[u8]),
        (new_directory, new_name): (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<Option<(Ino, Ending)>, FsError<N::Error>> {
        let mut sides = [
            Side { directory, inode: self.directory(directory)? },
            Side { directory: new_directory, inode: self.directory(new_directory)? },
        ];
        if sides[1].inode.nlink == 0 {
            return Err(FsError::NotFound { directory: new_directory });
        }
        let moved = self.found(directory, name)?;
        let mut inode = self.named_inode(moved.ino)?;
        if inode.is_directory() {
            self.check_not_above(moved.ino, new_directory)?;
        }
        let search = self.search(new_directory, new_name)?;
        match (mode, search) {
            (RenameMode::Exchange, Search::Free(_)) => Err(FsError::NotFound { directory: new_directory }),
            (RenameMode::NoReplace, Search::Found(Found { ino, .. })) => {
                Err(FsError::Exists { directory: new_directory, ino })
            }
            // Two names of one inode: POSIX has it that nothing happens.
            (_, Search::Found(Found { ino, .. })) if ino == moved.ino => Ok(None),
            (RenameMode::Exchange, Search::Found(other)) => {
                self.exchange(&mut sides, (name, moved, &mut inode), (new_name, other)).map(|()| None)
            }
            (_, Search::Found(other)) => {
                let ending = self.replace(&mut sides, (moved, &mut inode), (new_name, other))?;
                Ok(Some((other.ino, ending)))
            }
            (_, Search::Free(position)) => {
                let position = position.ok_or(FsError::Full)?;
                self.move_name(&mut sides, (moved, &mut inode), (new_name, position)).map(|()| None)
            }
        }
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
            Self::put_inode(batch, to.directory, &to.inode);
        }
        Self::put_inode(batch, from.directory, &from.inode);
    }

    /// The inode that moves, with its new parent.
    fn put_moved(&self, batch: &mut Batch<'_>, moved: Ino, inode: &mut Inode, directory: Ino) {
        inode.ctime = self.now;
        if inode.is_directory() {
            inode.parent = directory.0;
        }
        Self::put_inode(batch, moved, inode);
    }

    #[inline(never)]
    fn move_name(
        &mut self,
        sides: &mut [Side; 2],
        (moved, inode): (Found, &mut Inode),
        (new_name, position): (&[u8], u64),
    ) -> Result<(), FsError<N::Error>> {
        let links = i32::from(inode.is_directory());
        let mut room = MoveRoom::new();
        let mut batch = room.batch();
        let deltas = [Delta { names: -1, links: -links }, Delta { names: 1, links }];
        self.put_sides(&mut batch, sides, deltas);
        let [from, to] = &*sides;
        self.put_moved(&mut batch, moved.ino, inode, to.directory);
        batch.delete(Key::name(from.directory.0, moved.position));
        Self::put_name(&mut batch, to.directory, position, inode.kind(), moved.ino, new_name);
        self.commit(&batch)
    }

    #[inline(never)]
    fn replace(
        &mut self,
        sides: &mut [Side; 2],
        (moved, inode): (Found, &mut Inode),
        (new_name, other): (&[u8], Found),
    ) -> Result<Ending, FsError<N::Error>> {
        let mut replaced = self.named_inode(other.ino)?;
        match (inode.is_directory(), replaced.is_directory()) {
            (true, _) => self.check_empty_directory(other.ino, &replaced)?,
            (false, true) => return Err(FsError::IsDirectory(other.ino)),
            (false, false) => {}
        }
        let links = i32::from(inode.is_directory());
        let mut room = ReplaceRoom::new();
        let mut batch = room.batch();
        // The second directory loses a name and gets one, and the same of directories.
        self.put_sides(&mut batch, sides, [Delta { names: -1, links: -links }, Delta::default()]);
        let [from, to] = &*sides;
        // S13: the replaced name goes with the batch with which the new one comes. With two, a cut between them would leave neither.
        let ending = self.drop_name(&mut batch, other.ino, &mut replaced)?;
        #[cfg(feature = "_broken")]
        if self.options.broken.replace_in_parts {
            batch.delete(Key::name(to.directory.0, other.position));
            self.commit(&batch)?;
            self.tree.sync()?;
            batch.clear();
        }
        self.put_moved(&mut batch, moved.ino, inode, to.directory);
        batch.delete(Key::name(from.directory.0, moved.position));
        Self::put_name(&mut batch, to.directory, other.position, inode.kind(), moved.ino, new_name);
        self.commit_freeing(&batch).map(|()| ending)
    }

    #[inline(never)]
    fn exchange(
        &mut self,
        sides: &mut [Side; 2],
        (name, moved, inode): (&[u8], Found, &mut Inode),
        (new_name, other): (&[u8], Found),
    ) -> Result<(), FsError<N::Error>> {
        let mut other_inode = self.named_inode(other.ino)?;
        if other_inode.is_directory() {
            self.check_not_above(other.ino, sides[0].directory)?;
        }
        let more = i32::from(other_inode.is_directory()) - i32::from(inode.is_directory());
        let mut room = SwapRoom::new();
        let mut batch = room.batch();
        self.put_sides(&mut batch, sides, [Delta { names: 0, links: more }, Delta { names: 0, links: -more }]);
        let [from, to] = &*sides;
        self.put_moved(&mut batch, moved.ino, inode, to.directory);
        self.put_moved(&mut batch, other.ino, &mut other_inode, from.directory);
        Self::put_name(&mut batch, from.directory, moved.position, other_inode.kind(), other.ino, name);
        Self::put_name(&mut batch, to.directory, other.position, inode.kind(), moved.ino, new_name);
        self.commit(&batch)
    }
}
