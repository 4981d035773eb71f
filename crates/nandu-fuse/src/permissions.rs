//! Who may do what with an inode: permissions, access lists and the bits of programs, kept in step. The kernel checks them.

use fuser::{Errno, Request};
use nandu_files::errno::ENODATA;
use nandu_files::{Attributes, FileError, Ino, SetAttributes, XattrMode};

use crate::acl::{ACCESS, Acl, DEFAULT};
use crate::privileges;
use crate::served::{State, errno};
use crate::{Keeper, Volume};

/// Most bytes of an access list: what is made in a directory gets its lists with one change.
const LIST_SIZE_MAX: usize = 4096;

/// What is to be made.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    pub(crate) mode: u32,
    pub(crate) umask: u32,
    pub(crate) rdev: u32,
    pub(crate) is_directory: bool,
}

impl<F: Volume, K: Keeper<F::Chip>> State<F, K> {
    /// The list of an inode, where it has one.
    fn acl(&mut self, ino: Ino, name: &[u8]) -> Result<Option<Acl>, Errno> {
        if !self.fs.capabilities().xattrs {
            return Ok(None);
        }
        let mut value = [0; LIST_SIZE_MAX];
        match self.fs.get_xattr(ino, name, &mut value) {
            Ok(size) => Acl::parse(&value[..size]).map(Some).ok_or(Errno::EIO),
            Err(error) if error.errno() == ENODATA => Ok(None),
            Err(error) => Err(errno(error)),
        }
    }

    fn set_mode(&mut self, ino: Ino, mode: u32) -> Result<(), Errno> {
        self.fs.set_attributes(ino, SetAttributes { mode: Some(mode), ..SetAttributes::default() }).map_err(errno)
    }

    /// Makes something in a directory, with the permissions that its default list gives, or else those that the umask leaves. It is there
    /// with its lists, or not at all: a file without its list would let in whom that keeps out.
    pub(crate) fn make(
        &mut self,
        parent: Ino,
        request: &Request,
        made: Made,
        make: impl FnOnce(&mut F, Attributes, &[(&[u8], &[u8])]) -> Result<Ino, F::Error>,
    ) -> Result<Ino, Errno> {
        let Made { mode, umask, rdev, is_directory } = made;
        let attributes = |mode| Attributes { mode, uid: request.uid(), gid: request.gid(), rdev: rdev.into() };
        let Some(default) = self.acl(parent, DEFAULT)? else {
            return make(&mut self.fs, attributes(mode & !umask), &[]).map_err(errno);
        };
        let mut acl = default.clone();
        acl.inherit(mode);
        let (list, default) = (acl.bytes(), default.bytes());
        let mut lists: Vec<(&[u8], &[u8])> = Vec::new();
        if is_directory {
            lists.push((DEFAULT, &default));
        }
        if !acl.is_plain() {
            lists.push((ACCESS, &list));
        }
        make(&mut self.fs, attributes(acl.mode(mode)), &lists).map_err(errno)
    }

    /// Takes over a list, which the kernel has found sound and allowed, together with the permissions that say what they can of it. A list that
    /// says no more than they do is not kept.
    pub(crate) fn set_acl(&mut self, ino: Ino, request: &Request, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        if value.len() > LIST_SIZE_MAX {
            return Err(Errno::ENOSPC);
        }
        let acl = Acl::parse(value).ok_or(Errno::EINVAL)?;
        if name == DEFAULT {
            return self.fs.set_xattr(ino, name, &acl.bytes(), XattrMode::Set).map_err(errno);
        }
        let stat = self.fs.stat(ino).map_err(errno)?;
        let mode = privileges::without_foreign_group(acl.mode(stat.mode), stat.gid, request);
        let set = SetAttributes { mode: Some(mode), ..SetAttributes::default() };
        if !acl.is_plain() {
            return self.fs.set_xattr_with(ino, ACCESS, &acl.bytes(), XattrMode::Set, set).map_err(errno);
        }
        match self.fs.remove_xattr_with(ino, ACCESS, set) {
            Err(error) if error.errno() == ENODATA && mode == stat.mode => Ok(()),
            Err(error) if error.errno() == ENODATA => self.set_mode(ino, mode),
            other => other.map_err(errno),
        }
    }

    /// Sets owner, permissions and times, and what follows from them: with permissions the list that says the same, in one step.
    pub(crate) fn set_attributes(&mut self, ino: Ino, request: &Request, mut set: SetAttributes) -> Result<(), Errno> {
        if (set.uid.is_some() || set.gid.is_some()) && set.mode.is_none() {
            set.mode = privileges::without(&self.fs.stat(ino).map_err(errno)?, request);
        }
        if let Some(mode) = set.mode
            && let Some(mut acl) = self.acl(ino, ACCESS)?
        {
            acl.set_mode(mode);
            return self.fs.set_xattr_with(ino, ACCESS, &acl.bytes(), XattrMode::Set, set).map_err(errno);
        }
        self.fs.set_attributes(ino, set).map_err(errno)
    }

    /// Takes the bits of programs from a file whose content is about to be changed by who may not keep them. First, so that no tear leaves
    /// other content with them.
    pub(crate) fn drop_privileges(&mut self, ino: Ino, request: &Request) -> Result<(), Errno> {
        match privileges::without(&self.fs.stat(ino).map_err(errno)?, request) {
            Some(mode) => self.set_mode(ino, mode),
            None => Ok(()),
        }
    }
}
