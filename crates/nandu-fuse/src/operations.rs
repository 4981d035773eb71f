//! The kernel's requests, one method each.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use nandu_files::{Allocation, Attributes, Capabilities, FileKind, Ino, RenameMode, SetAttributes, Stat, XattrMode};

use crate::acl::{ACCESS, DEFAULT};
use crate::attributes::{attributes, file_type};
use crate::permissions::Made;
use crate::served::{Served, State, errno, from_kernel, now};
use crate::{HEALTH_XATTR, Keeper, REGIONS_XATTR, Volume, privileges};

/// How long the kernel may take what it was told for true. Nobody but the kernel changes anything.
const VALID: Duration = Duration::from_secs(1);

/// Numbers are never given to another inode, so there are no generations.
const GENERATION: Generation = Generation(0);

// What Linux calls them.
const O_DSYNC: i32 = 0o10_000;
const FALLOC_KEEP_SIZE: i32 = 1;
const FALLOC_PUNCH_HOLE: i32 = 2;
const FALLOC_ZERO_RANGE: i32 = 16;
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;
const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;
const FS_IOC_GETFLAGS: u32 = 0x8008_6601;
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FS_IOC_FSGETXATTR: u32 = 0x801C_581F;
const FS_IOC_FSSETXATTR: u32 = 0x401C_5820;
const FSXATTR_SIZE: usize = 28;

/// What the kernel is asked to do, or to leave to us: file handles that outlive its memory of an inode, access lists, the umask, which a
/// default list overrides, and taking the bits of programs away. It does without what it does not know, and is not told of what the file system
/// lacks.
fn wanted(has: &Capabilities) -> InitFlags {
    let mut flags = InitFlags::FUSE_DONT_MASK | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    flags.set(InitFlags::FUSE_EXPORT_SUPPORT, has.lasting_numbers);
    flags.set(InitFlags::FUSE_POSIX_ACL, has.xattrs);
    flags
}

/// Bytes that the target of a symbolic link has at most.
const TARGET_SIZE_MAX: usize = 4096;

/// The mounted file system, as the kernel's requests reach it.
pub(crate) struct Mounted<F, K> {
    served: Arc<Served<F, K>>,
}

impl<F: Volume, K: Keeper<F::Chip>> Mounted<F, K> {
    pub(crate) fn new(served: Arc<Served<F, K>>) -> Mounted<F, K> {
        Mounted { served }
    }

    fn with<T>(&self, request: impl FnOnce(&mut State<F, K>) -> Result<T, Errno>) -> Result<T, Errno> {
        self.served.with(request)
    }

    fn look<T>(&self, request: impl FnOnce(&mut State<F, K>) -> Result<T, Errno>) -> Result<T, Errno> {
        self.served.look(request)
    }
}

impl<F: Volume, K: Keeper<F::Chip>> State<F, K> {
    fn attributes_of(&mut self, ino: Ino) -> Result<FileAttr, Errno> {
        let stat = self.fs.stat(ino).map_err(errno)?;
        Ok(attributes(&Stat { ino: self.numbers.outside(ino), ..stat }))
    }

    /// What a name leads to. Who has a file handle asks by these two, which are in no directory.
    fn find(&mut self, directory: Ino, name: &[u8]) -> Result<Ino, Errno> {
        match name {
            b"." => Ok(directory),
            b".." => self.parent(directory),
            _ => self.fs.lookup(directory, name).map_err(errno),
        }
    }

    fn make_file(&mut self, directory: Ino, name: &OsStr, request: &Request, made: Made) -> Result<Ino, Errno> {
        let name = name.as_bytes();
        self.make(directory, request, made, |fs, attributes, lists| fs.create_with(directory, name, attributes, lists))
    }

    /// The inode that the kernel means.
    fn at(&self, number: INodeNo) -> Ino {
        self.numbers.inside(Ino(number.0))
    }

    /// Renames, and notes how a file is known then that the kernel goes on to know as before.
    fn rename(
        &mut self,
        (from, name): (Ino, &[u8]),
        (to, new_name): (Ino, &[u8]),
        mode: RenameMode,
    ) -> Result<(), Errno> {
        if self.fs.capabilities().lasting_numbers {
            return self.fs.rename(from, name, to, new_name, mode).map_err(errno);
        }
        let before = self.fs.lookup(from, name).map_err(errno)?;
        self.fs.rename(from, name, to, new_name, mode).map_err(errno)?;
        let after = self.fs.lookup(to, new_name).map_err(errno)?;
        if (from, name) == (to, new_name) {
            return Ok(());
        }
        self.numbers.remove(to, new_name);
        if self.fs.stat(after).map_err(errno)?.kind != FileKind::Directory {
            self.numbers.rename(before, after, to, new_name);
        }
        Ok(())
    }

    /// Undoes an opening, after which a file that was renamed may be known by another number.
    fn close(&mut self, number: Ino) -> Result<(), Errno> {
        self.fs.close(self.numbers.inside(number)).map_err(errno)?;
        if let Some((directory, name)) = self.numbers.place(number) {
            let inside = self.fs.lookup(directory, &name).map_err(errno)?;
            self.numbers.set_inside(number, inside);
        }
        Ok(())
    }

    fn parent(&mut self, directory: Ino) -> Result<Ino, Errno> {
        let mut parent = None;
        let visited = self.fs.read_dir(directory, 0, &mut |entry| {
            if entry.name != b".." {
                return ControlFlow::Continue(());
            }
            parent = Some(entry.ino);
            ControlFlow::Break(())
        });
        visited.map_err(errno)?;
        parent.ok_or(Errno::ENOENT)
    }
}

fn reply_entry(outcome: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match outcome {
        Ok(attributes) => reply.entry(&VALID, &attributes, GENERATION),
        Err(error) => reply.error(error),
    }
}

fn reply_attr(outcome: Result<FileAttr, Errno>, reply: ReplyAttr) {
    match outcome {
        Ok(attributes) => reply.attr(&VALID, &attributes),
        Err(error) => reply.error(error),
    }
}

fn reply_empty(outcome: Result<(), Errno>, reply: ReplyEmpty) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn reply_data(outcome: Result<Vec<u8>, Errno>, reply: ReplyData) {
    match outcome {
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(error),
    }
}

/// A list or a value: its size if that was asked for, else all of it.
fn reply_xattr(outcome: Result<Vec<u8>, Errno>, size: u32, reply: ReplyXattr) {
    match outcome {
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() <= size as usize => reply.data(&bytes),
        Ok(_) => reply.error(Errno::ERANGE),
        Err(error) => reply.error(error),
    }
}

/// Whether an attribute is one that nobody can set.
fn is_fixed(name: &OsStr) -> bool {
    [REGIONS_XATTR, HEALTH_XATTR].iter().any(|fixed| name.as_bytes() == fixed.as_bytes())
}

impl<F: Volume, K: Keeper<F::Chip>> Filesystem for Mounted<F, K> {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let has = self.served.capabilities();
        for flag in wanted(&has).iter() {
            let _ = config.add_capabilities(flag);
        }
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let outcome = self.look(|state| {
            let ino = state.find(Ino(parent.0), name.as_bytes())?;
            state.attributes_of(ino)
        });
        reply_entry(outcome, reply);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply_attr(self.look(|state| state.attributes_of(state.at(ino))), reply);
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let time = |wanted: TimeOrNow| match wanted {
            TimeOrNow::SpecificTime(time) => from_kernel(time),
            TimeOrNow::Now => now(),
        };
        let set = SetAttributes { mode, uid, gid, atime: atime.map(time), mtime: mtime.map(time) };
        let outcome = self.with(|state| {
            let ino = state.at(ino);
            if let Some(size) = size {
                if !privileges::may_keep(req) {
                    state.drop_privileges(ino, req)?;
                }
                state.fs.truncate(ino, size).map_err(errno)?;
            }
            if set != SetAttributes::default() {
                state.set_attributes(ino, req, set)?;
            }
            state.attributes_of(ino)
        });
        reply_attr(outcome, reply);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        let outcome = self.look(|state| {
            let mut target = vec![0; TARGET_SIZE_MAX];
            let size = state.fs.read_link(state.at(ino), &mut target).map_err(errno)?;
            target.truncate(size);
            state.note_read(state.at(ino));
            Ok(target)
        });
        reply_data(outcome, reply);
    }

    fn mknod(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, rdev: u32, reply: ReplyEntry) {
        let outcome = self.with(|state| {
            let ino = state.make_file(Ino(parent.0), name, req, Made { mode, umask, rdev, is_directory: false })?;
            state.attributes_of(ino)
        });
        reply_entry(outcome, reply);
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let outcome = self.with(|state| {
            let (directory, name) = (Ino(parent.0), name.as_bytes());
            let made = Made { mode, umask, rdev: 0, is_directory: true };
            let ino = state.make(directory, req, made, |fs, attributes, lists| {
                fs.mkdir_with(directory, name, attributes, lists)
            })?;
            state.attributes_of(ino)
        });
        reply_entry(outcome, reply);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let outcome = self.with(|state| {
            state.fs.unlink(Ino(parent.0), name.as_bytes()).map_err(errno)?;
            state.numbers.remove(Ino(parent.0), name.as_bytes());
            Ok(())
        });
        reply_empty(outcome, reply);
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(self.with(|state| state.fs.rmdir(Ino(parent.0), name.as_bytes()).map_err(errno)), reply);
    }

    fn symlink(&self, req: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        let outcome = self.with(|state| {
            let (name, target) = (link_name.as_bytes(), target.as_os_str().as_bytes());
            let attributes = Attributes { mode: 0o777, uid: req.uid(), gid: req.gid(), rdev: 0 };
            let made = state.fs.symlink(Ino(parent.0), name, target, attributes);
            state.attributes_of(made.map_err(errno)?)
        });
        reply_entry(outcome, reply);
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let mode = match flags {
            flags if flags.is_empty() => RenameMode::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameMode::NoReplace,
            RenameFlags::RENAME_EXCHANGE => RenameMode::Exchange,
            _ => return reply.error(Errno::EINVAL),
        };
        let outcome = self.with(|state| {
            let (from, to) = (Ino(parent.0), Ino(newparent.0));
            state.rename((from, name.as_bytes()), (to, newname.as_bytes()), mode)?;
            state.keep_or_fail()
        });
        reply_empty(outcome, reply);
    }

    fn link(&self, _req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let outcome = self.with(|state| {
            let ino = state.at(ino);
            state.fs.link(ino, Ino(newparent.0), newname.as_bytes()).map_err(errno)?;
            state.attributes_of(ino)
        });
        reply_entry(outcome, reply);
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let outcome = self.look(|state| {
            state.fs.open(state.at(ino)).map_err(errno)?;
            Ok(flags.acc_mode() == OpenAccMode::O_WRONLY || !state.wants_read(state.at(ino)))
        });
        // Who only reads has nothing to be told of at the end.
        let is_read_only = flags.acc_mode() == OpenAccMode::O_RDONLY;
        let options = if is_read_only { FopenFlags::FOPEN_NOFLUSH } else { FopenFlags::empty() };
        match outcome {
            // What the kernel has of the file stays right: nobody else changes it.
            Ok(true) => reply.opened(FileHandle(0), options | FopenFlags::FOPEN_KEEP_CACHE),
            // The kernel is to forget it, so that the next read, which has to be noted, is heard of.
            Ok(false) => reply.opened(FileHandle(0), options),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let outcome = self.look(|state| {
            let mut bytes = vec![0; size as usize];
            let count = state.fs.read_at(state.at(ino), offset, &mut bytes).map_err(errno)?;
            bytes.truncate(count);
            state.note_read(state.at(ino));
            Ok(bytes)
        });
        reply_data(outcome, reply);
    }

    fn write(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let outcome = self.with(|state| {
            let ino = state.at(ino);
            if write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID) {
                state.drop_privileges(ino, req)?;
            }
            let is_synced = flags.0 & O_DSYNC != 0;
            state.fs.set_synced(is_synced);
            let count = state.fs.write_at(ino, offset, data).map_err(errno)?;
            if is_synced {
                state.fs.fsync(ino).map_err(errno)?;
                state.keep_or_fail()?;
            }
            Ok(count)
        });
        match outcome {
            Ok(count) => reply.written(count as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _lock_owner: LockOwner, reply: ReplyEmpty) {
        // A close promises nothing, but many programs look only here whether what they wrote could be.
        reply_empty(self.with(|_| Ok(())), reply);
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        reply_empty(self.look(|state| state.close(Ino(ino.0))), reply);
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let outcome = self.with(|state| {
            state.fs.fsync(state.at(ino)).map_err(errno)?;
            state.keep_or_fail()
        });
        reply_empty(outcome, reply);
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.look(|state| state.fs.open(state.at(ino)).map_err(errno)) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let outcome = self.look(|state| {
            let State { fs, numbers, .. } = &mut *state;
            let visited = fs.read_dir(Ino(ino.0), offset, &mut |entry| {
                let (number, kind) = (INodeNo(numbers.outside(entry.ino).0), file_type(entry.kind));
                let is_full = reply.add(number, entry.cookie, kind, OsStr::from_bytes(entry.name));
                if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            state.note_read(state.at(ino));
            visited.map_err(errno)
        });
        match outcome {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        }
    }

    fn releasedir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        reply_empty(self.look(|state| state.close(Ino(ino.0))), reply);
    }

    fn fsyncdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let outcome = self.with(|state| {
            state.fs.fsync(state.at(ino)).map_err(errno)?;
            state.keep_or_fail()
        });
        reply_empty(outcome, reply);
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.served.watch(|state| state.fs.statfs().map_err(errno)) {
            Ok(stat) => {
                let (size, free, available) = (stat.block_size, stat.blocks_free, stat.blocks_available);
                // Inodes have no table that could be full: without a number of them `df -i` shows none, as elsewhere where that is so.
                reply.statfs(stat.blocks, free, available, 0, 0, size, stat.name_size_max, size);
            }
            Err(error) => reply.error(error),
        }
    }

    fn setxattr(
        &self,
        req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if is_fixed(name) {
            return reply.error(Errno::EPERM);
        }
        let mode = match flags {
            0 => XattrMode::Set,
            XATTR_CREATE => XattrMode::Create,
            XATTR_REPLACE => XattrMode::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let outcome = self.with(|state| match name.as_bytes() {
            name @ (ACCESS | DEFAULT) => state.set_acl(state.at(ino), req, name, value),
            name => state.fs.set_xattr(state.at(ino), name, value, mode).map_err(errno),
        });
        reply_empty(outcome, reply);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if is_fixed(name) {
            let is_health = name.as_bytes() == HEALTH_XATTR.as_bytes();
            let text = if is_health { self.served.health() } else { self.served.regions() };
            return reply_xattr(text.ok_or(Errno::ENODATA), size, reply);
        }
        let outcome = self.look(|state| {
            let (ino, name) = (state.at(ino), name.as_bytes());
            let mut value = vec![0; state.fs.get_xattr(ino, name, &mut []).map_err(errno)?];
            state.fs.get_xattr(ino, name, &mut value).map_err(errno)?;
            Ok(value)
        });
        reply_xattr(outcome, size, reply);
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let outcome = self.look(|state| {
            let mut names = Vec::new();
            let listed = state.fs.list_xattrs(state.at(ino), &mut |name| {
                // An import may have brought one of this name, which nobody could read.
                if !is_fixed(OsStr::from_bytes(name)) {
                    names.extend_from_slice(name);
                    names.push(0);
                }
            });
            listed.map_err(errno)?;
            Ok(names)
        });
        reply_xattr(outcome, size, reply);
    }

    fn removexattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(self.with(|state| state.fs.remove_xattr(state.at(ino), name.as_bytes()).map_err(errno)), reply);
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let outcome = self.with(|state| {
            let ino = state.make_file(Ino(parent.0), name, req, Made { mode, umask, rdev: 0, is_directory: false })?;
            if let Err(error) = state.fs.open(ino) {
                // The name would stay behind a call that failed.
                let _ = state.fs.unlink(Ino(parent.0), name.as_bytes());
                return Err(errno(error));
            }
            state.attributes_of(ino)
        });
        match outcome {
            Ok(attributes) => {
                reply.created(&VALID, &attributes, GENERATION, FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
            }
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        const PUNCH: i32 = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE;
        const ZERO_KEEP: i32 = FALLOC_ZERO_RANGE | FALLOC_KEEP_SIZE;
        let what = match mode {
            // The promise would be that a write does not fail later. Nothing is set aside on a log, and the C library writes zeros instead.
            0 => return reply.error(Errno::EOPNOTSUPP),
            FALLOC_KEEP_SIZE => Allocation::KeepSize,
            PUNCH => Allocation::PunchHole,
            FALLOC_ZERO_RANGE => Allocation::Zero,
            ZERO_KEEP => Allocation::ZeroKeepSize,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let outcome = self.with(|state| {
            if !privileges::may_keep(req) {
                state.drop_privileges(state.at(ino), req)?;
            }
            state.fs.allocate(state.at(ino), what, offset, length).map_err(errno)
        });
        reply_empty(outcome, reply);
    }

    fn ioctl(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: IoctlFlags,
        command: u32,
        in_data: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        match command {
            // Flags as `chattr` sets them: there are none.
            FS_IOC_GETFLAGS => reply.ioctl(0, &0_u32.to_ne_bytes()),
            FS_IOC_FSGETXATTR => reply.ioctl(0, &[0; FSXATTR_SIZE]),
            FS_IOC_SETFLAGS | FS_IOC_FSSETXATTR if in_data.iter().all(|&byte| byte == 0) => reply.ioctl(0, &[]),
            FS_IOC_SETFLAGS | FS_IOC_FSSETXATTR => reply.error(Errno::EOPNOTSUPP),
            _ => reply.error(Errno::ENOTTY),
        }
    }

    fn lseek(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let Ok(from) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        let wants_data = match whence {
            SEEK_DATA => true,
            SEEK_HOLE => false,
            _ => return reply.error(Errno::EINVAL),
        };
        let outcome = self.look(|state| {
            let found = state.fs.seek(state.at(ino), from, wants_data).map_err(errno)?;
            found.ok_or(Errno::ENXIO)
        });
        match outcome {
            Ok(found) => reply.offset(found as i64),
            Err(error) => reply.error(error),
        }
    }
}
