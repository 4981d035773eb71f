//! Finding files by path.

use nandu_nand::Nand;

use crate::fs::Fs;
use crate::{FsError, Ino};

impl<N: Nand> Fs<'_, N> {
    /// What a path leads to, from the root of the file system on: `a/b` and `/a//b/` are the same, and an empty path is the root. A name
    /// `..` leads to the directory above. Symbolic links are not followed: what they lead to is [`Fs::read_link`]'s to say. Reads what
    /// [`Fs::lookup`] does for each name.
    ///
    /// # Errors
    ///
    /// As [`Fs::lookup`].
    pub fn lookup_path(&mut self, path: &[u8]) -> Result<Ino, FsError<N::Error>> {
        let mut names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty());
        names.try_fold(Ino::ROOT, |directory, name| self.lookup(directory, name))
    }

    /// The directory that the last name of a path is in, and that name, whether it is there or not: for [`Fs::mkdir`], [`Fs::unlink`],
    /// [`Fs::rename`] and all else that takes both. Reads what [`Fs::lookup`] does for each name but the last.
    ///
    /// # Errors
    ///
    /// [`FsError::Name`] if the path has no last name; as [`Fs::lookup`].
    pub fn lookup_parent<'p>(&mut self, path: &'p [u8]) -> Result<(Ino, &'p [u8]), FsError<N::Error>> {
        let end = path.iter().rposition(|&byte| byte != b'/').ok_or(FsError::Name)?;
        let path = &path[..=end];
        let (directory, name) = match path.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&path[..0], path),
        };
        Ok((self.lookup_path(directory)?, name))
    }
}
