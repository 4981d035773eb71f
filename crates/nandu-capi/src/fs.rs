//! File systems: mounting, names, inodes and attributes.

use core::ffi::{c_int, c_void};

use nandu::fs::{Attributes, Format, Fs, Ino, LogOptions, Options, RenameMode, Stat, Time, XattrMode};
use nandu::nand::{Geometry, Nand};

use crate::border::{Buffer, Given, In, Out, Report, Text};
use crate::chip::{CChip, Chip};
use crate::error::{Answer, Code, count, status};
use crate::report::Reporter;
#[cfg(feature = "snapshots")]
use crate::snapshots::tell_numbers;
use crate::stats::CStats;
use crate::store::{chip_of, flag, reads_max, size_or, unless_0};
use crate::volume::{self, Handle, Kind, Volume};

/// A file system whose memory stays where it is, see [`volume`].
pub(crate) type Inner = Fs<'static, Chip>;

impl Kind for Inner {
    const MAGIC: u32 = u32::from_le_bytes(*b"nduF");
    const HANDLE_SIZES: [usize; 2] = [8192, 7168];
}

/// `nandu_time` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CTime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
    pub(crate) reserved: u32,
}

impl CTime {
    fn of(time: Time) -> CTime {
        CTime { seconds: time.seconds, nanoseconds: time.nanoseconds, reserved: 0 }
    }

    fn time(self) -> Answer<Time> {
        let CTime { seconds, nanoseconds, reserved } = self;
        if nanoseconds < 1_000_000_000 && reserved == 0 {
            Ok(Time { seconds, nanoseconds })
        } else {
            Err(Code::ARGUMENT)
        }
    }
}

/// `nandu_fs_options` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CFsOptions {
    pub(crate) salt: u64,
    pub(crate) volume: u32,
    pub(crate) cache_size: u32,
    pub(crate) pending_size: u32,
    pub(crate) open_max: u32,
    pub(crate) snapshot: u32,
    pub(crate) reads_max: u32,
    pub(crate) both_modes: u8,
    pub(crate) without_tags: u8,
    pub(crate) read_only: u8,
    pub(crate) read_back: u8,
    pub(crate) aligned: u8,
    pub(crate) stream_count: u8,
    pub(crate) ready_max: u8,
    pub(crate) commit_twice: u8,
}

/// `nandu_fs_format_options` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CFormat {
    pub(crate) hash_key: [u8; 16],
    pub(crate) root_mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) reserved: u32,
    pub(crate) now: CTime,
}

#[cfg(feature = "mlc")]
fn both_modes(options: Options, geometry: &Geometry) -> Answer<Options> {
    Ok(options.both_modes(geometry))
}

#[cfg(not(feature = "mlc"))]
fn both_modes(_: Options, _: &Geometry) -> Answer<Options> {
    Err(Code::NOT_COMPILED)
}

/// The options, and whether page buffers are aligned for DMA.
fn options(given: &Given<CFsOptions>, geometry: &Geometry) -> Answer<(Options, bool)> {
    let default = Options::DEFAULT;
    let Some(given) = given.get()? else { return Ok((default, false)) };
    let options = Options {
        log: LogOptions {
            volume: unless_0(given.volume),
            salt: given.salt,
            stream_count: unless_0(given.stream_count),
            ready_max: unless_0(given.ready_max),
            read_back: flag(given.read_back)?,
            commit_twice: flag(given.commit_twice)?,
            reads_max: reads_max(given.reads_max),
            has_tags: default.log.has_tags && !flag(given.without_tags)?,
            ..default.log
        },
        cache_size: size_or(given.cache_size, default.cache_size)?,
        pending_size: size_or(given.pending_size, default.pending_size)?,
        open_max: size_or(given.open_max, default.open_max)?,
        read_only: flag(given.read_only)?,
        snapshot: unless_0(given.snapshot),
        ..default
    };
    let options = if flag(given.both_modes)? { both_modes(options, geometry)? } else { options };
    Ok((options, flag(given.aligned)?))
}

fn open(
    fs: &Out<Handle<Inner>>,
    (chip, options_given): (&Given<CChip>, &Given<CFsOptions>),
    memory: (&Buffer, usize),
    open: impl FnOnce(&mut Option<Inner>, Chip, Options, &'static mut [u8]) -> Answer<()>,
) -> Answer<()> {
    let chip = chip_of(chip)?;
    let (options, aligned) = options(options_given, chip.geometry())?;
    let required = Inner::memory_required(chip.geometry(), &options);
    let lock = chip.lock();
    volume::place(fs, lock, memory, (required, aligned), |place, memory| open(place, chip, options, memory))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_memory(chip: Given<CChip>, options_given: Given<CFsOptions>) -> usize {
    let Ok(chip) = chip_of(&chip) else { return 0 };
    let Ok((options, aligned)) = options(&options_given, chip.geometry()) else { return 0 };
    Volume::<Inner>::memory_required(Inner::memory_required(chip.geometry(), &options), aligned)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_format(
    fs: Out<Handle<Inner>>,
    chip: Given<CChip>,
    options: Given<CFsOptions>,
    format: Given<CFormat>,
    memory: Buffer,
    memory_size: usize,
) -> c_int {
    let format = format.get().and_then(|given| match given {
        None => Ok(Format::default()),
        Some(CFormat { hash_key, root_mode, uid, gid, reserved: 0, now }) => {
            Ok(Format { hash_key, root_mode, uid, gid, now: now.time()? })
        }
        Some(_) => Err(Code::ARGUMENT),
    });
    status(format.and_then(|format| {
        open(&fs, (&chip, &options), (&memory, memory_size), |place, chip, options, memory| {
            Ok(Inner::format_in(place, chip, options, &format, memory)?)
        })
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_mount(
    fs: Out<Handle<Inner>>,
    chip: Given<CChip>,
    options: Given<CFsOptions>,
    memory: Buffer,
    memory_size: usize,
) -> c_int {
    status(open(&fs, (&chip, &options), (&memory, memory_size), |place, chip, options, memory| {
        Ok(Inner::mount_in(place, chip, options, memory)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_unmount(fs: Handle<Inner>) -> c_int {
    status(fs.close(|fs| Ok(Inner::unmount_in(fs)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_abandon(fs: Handle<Inner>) -> c_int {
    status(fs.close(|fs| {
        *fs = None;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_set_now(fs: Handle<Inner>, seconds: i64, nanoseconds: u32) -> c_int {
    status(fs.with(|fs| {
        fs.set_now(CTime { seconds, nanoseconds, reserved: 0 }.time()?);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_sync(fs: Handle<Inner>) -> c_int {
    status(fs.with(|fs| Ok(fs.sync()?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_idle(fs: Handle<Inner>, pages: u32) -> c_int {
    count(fs.with(|fs| Ok(u8::from(fs.idle(pages)?))))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_stats(fs: Handle<Inner>, stats: Out<CStats>) -> c_int {
    status(fs.with(|fs| stats.set(CStats::of(&fs.stats()))))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_verify(
    fs: Handle<Inner>,
    mut scratch: Buffer,
    scratch_size: usize,
    report: Report,
    context: *mut c_void,
) -> i32 {
    count(fs.with(|fs| {
        let mut reporter = Reporter::new(report, context);
        Ok(fs.verify(scratch.bytes(scratch_size)?, &mut |violation| reporter.report(&violation))?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_digest(fs: Handle<Inner>, digest: Out<u64>) -> c_int {
    status(fs.with(|fs| {
        digest.check()?;
        digest.set(fs.digest()?)
    }))
}

#[cfg(feature = "snapshots")]
#[unsafe(no_mangle)]
extern "C" fn nandu_fs_snapshot(fs: Handle<Inner>, snapshot: Out<u32>) -> c_int {
    status(fs.with(|fs| {
        snapshot.check()?;
        snapshot.set(fs.snapshot()?)
    }))
}

#[cfg(feature = "snapshots")]
#[unsafe(no_mangle)]
extern "C" fn nandu_fs_release(fs: Handle<Inner>, snapshot: u32) -> c_int {
    status(fs.with(|fs| Ok(fs.release_snapshot(snapshot)?)))
}

#[cfg(feature = "snapshots")]
#[unsafe(no_mangle)]
extern "C" fn nandu_fs_snapshots(fs: Handle<Inner>, mut snapshots: Out<u32>, capacity: usize) -> c_int {
    count(fs.with(|fs| tell_numbers(fs.snapshots(), &mut snapshots, capacity)))
}

/// `nandu_statfs` of the header.
#[repr(C)]
pub(crate) struct CStatFs {
    pub(crate) blocks: u64,
    pub(crate) blocks_free: u64,
    pub(crate) blocks_available: u64,
    pub(crate) files_free: u64,
    pub(crate) block_size: u32,
    pub(crate) name_size_max: u32,
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_statfs(fs: Handle<Inner>, statfs: Out<CStatFs>) -> c_int {
    status(fs.with(|fs| {
        let stat = fs.statfs()?;
        statfs.set(CStatFs {
            blocks: stat.blocks,
            blocks_free: stat.blocks_free,
            blocks_available: stat.blocks_available,
            files_free: stat.files_free,
            block_size: stat.block_size,
            name_size_max: stat.name_size_max,
        })
    }))
}

/// `nandu_stat` of the header.
#[repr(C)]
pub(crate) struct CStat {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) allocated_size: u64,
    pub(crate) atime: CTime,
    pub(crate) mtime: CTime,
    pub(crate) ctime: CTime,
    pub(crate) btime: CTime,
    pub(crate) mode: u32,
    pub(crate) r#type: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) reserved: u32,
}

impl CStat {
    fn of(stat: &Stat) -> CStat {
        CStat {
            ino: stat.ino.0,
            size: stat.size,
            allocated_size: stat.allocated_size,
            atime: CTime::of(stat.atime),
            mtime: CTime::of(stat.mtime),
            ctime: CTime::of(stat.ctime),
            btime: CTime::of(stat.btime),
            mode: stat.mode,
            r#type: stat.kind as u32,
            uid: stat.uid,
            gid: stat.gid,
            nlink: stat.nlink,
            reserved: 0,
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_stat(fs: Handle<Inner>, path: Text, stat: Out<CStat>) -> c_int {
    status(fs.with(|fs| {
        let ino = fs.lookup_path(path.bytes()?)?;
        stat.set(CStat::of(&fs.stat(ino)?))
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_stat_at(fs: Handle<Inner>, ino: u64, stat: Out<CStat>) -> c_int {
    status(fs.with(|fs| stat.set(CStat::of(&fs.stat(Ino(ino))?))))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_lookup(fs: Handle<Inner>, path: Text, ino: Out<u64>) -> c_int {
    status(fs.with(|fs| ino.set(fs.lookup_path(path.bytes()?)?.0)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_lookup_at(fs: Handle<Inner>, directory: u64, name: Text, ino: Out<u64>) -> c_int {
    status(fs.with(|fs| ino.set(fs.lookup(Ino(directory), name.bytes()?)?.0)))
}

/// Tells a number to whoever wants it.
fn tell(ino: Ino, out: &Out<u64>) -> Answer<()> {
    if out.is_null() { Ok(()) } else { out.set(ino.0) }
}

/// Permissions that a caller may give something new.
fn attributes(mode: u32) -> Answer<Attributes> {
    if mode > 0o7777 { Err(Code::ARGUMENT) } else { Ok(Attributes { mode, ..Attributes::default() }) }
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_create_at(fs: Handle<Inner>, directory: u64, name: Text, mode: u32, ino: Out<u64>) -> c_int {
    status(fs.with(|fs| tell(fs.create(Ino(directory), name.bytes()?, attributes(mode)?)?, &ino)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_mkdir(fs: Handle<Inner>, path: Text, mode: u32) -> c_int {
    status(fs.with(|fs| {
        let (directory, name) = fs.lookup_parent(path.bytes()?)?;
        fs.mkdir(directory, name, attributes(mode)?)?;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_mkdir_at(fs: Handle<Inner>, directory: u64, name: Text, mode: u32, ino: Out<u64>) -> c_int {
    status(fs.with(|fs| tell(fs.mkdir(Ino(directory), name.bytes()?, attributes(mode)?)?, &ino)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_unlink(fs: Handle<Inner>, path: Text) -> c_int {
    status(fs.with(|fs| {
        let (directory, name) = fs.lookup_parent(path.bytes()?)?;
        Ok(fs.unlink(directory, name)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_unlink_at(fs: Handle<Inner>, directory: u64, name: Text) -> c_int {
    status(fs.with(|fs| Ok(fs.unlink(Ino(directory), name.bytes()?)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_rmdir(fs: Handle<Inner>, path: Text) -> c_int {
    status(fs.with(|fs| {
        let (directory, name) = fs.lookup_parent(path.bytes()?)?;
        Ok(fs.rmdir(directory, name)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_rmdir_at(fs: Handle<Inner>, directory: u64, name: Text) -> c_int {
    status(fs.with(|fs| Ok(fs.rmdir(Ino(directory), name.bytes()?)?)))
}

fn rename_mode(mode: c_int) -> Answer<RenameMode> {
    match mode {
        0 => Ok(RenameMode::Replace),
        1 => Ok(RenameMode::NoReplace),
        2 => Ok(RenameMode::Exchange),
        _ => Err(Code::ARGUMENT),
    }
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_rename(fs: Handle<Inner>, from: Text, to: Text, mode: c_int) -> c_int {
    status(fs.with(|fs| {
        let (directory, name) = fs.lookup_parent(from.bytes()?)?;
        let (new_directory, new_name) = fs.lookup_parent(to.bytes()?)?;
        Ok(fs.rename(directory, name, new_directory, new_name, rename_mode(mode)?)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_rename_at(
    fs: Handle<Inner>,
    from_directory: u64,
    from: Text,
    to_directory: u64,
    to: Text,
    mode: c_int,
) -> c_int {
    status(fs.with(|fs| {
        let (from, to) = ((Ino(from_directory), from.bytes()?), (Ino(to_directory), to.bytes()?));
        Ok(fs.rename(from.0, from.1, to.0, to.1, rename_mode(mode)?)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_read_at(
    fs: Handle<Inner>,
    ino: u64,
    offset: u64,
    mut buffer: Buffer,
    buffer_size: usize,
) -> i32 {
    count(fs.with(|fs| Ok(fs.read_at(Ino(ino), offset, buffer.bytes(counted(buffer_size))?)?)))
}

/// As many bytes as a count can say.
pub(crate) fn counted(size: usize) -> usize {
    size.min(i32::MAX as usize)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_write_at(fs: Handle<Inner>, ino: u64, offset: u64, data: In, size: usize) -> i32 {
    count(fs.with(|fs| Ok(fs.write_at(Ino(ino), offset, data.bytes(counted(size))?)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_truncate_at(fs: Handle<Inner>, ino: u64, size: u64) -> c_int {
    status(fs.with(|fs| Ok(fs.truncate(Ino(ino), size)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_get_xattr(
    fs: Handle<Inner>,
    ino: u64,
    name: Text,
    mut buffer: Buffer,
    buffer_size: usize,
) -> i32 {
    count(fs.with(|fs| Ok(fs.get_xattr(Ino(ino), name.bytes()?, buffer.bytes(buffer_size)?)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_set_xattr(
    fs: Handle<Inner>,
    ino: u64,
    name: Text,
    value: In,
    value_size: usize,
    mode: c_int,
) -> c_int {
    status(fs.with(|fs| {
        let mode = match mode {
            0 => XattrMode::Set,
            1 => XattrMode::Create,
            2 => XattrMode::Replace,
            _ => return Err(Code::ARGUMENT),
        };
        Ok(fs.set_xattr(Ino(ino), name.bytes()?, value.bytes(value_size)?, mode)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_remove_xattr(fs: Handle<Inner>, ino: u64, name: Text) -> c_int {
    status(fs.with(|fs| Ok(fs.remove_xattr(Ino(ino), name.bytes()?)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_fs_list_xattrs(fs: Handle<Inner>, ino: u64, mut buffer: Buffer, buffer_size: usize) -> i32 {
    count(fs.with(|fs| {
        let buffer = buffer.bytes(buffer_size)?;
        let mut size = 0;
        fs.list_xattrs(Ino(ino), |name| {
            if let Some(([rest @ .., zero], _)) =
                buffer.get_mut(size..).and_then(|it| it.split_at_mut_checked(name.len() + 1))
            {
                rest.copy_from_slice(name);
                *zero = 0;
            }
            size += name.len() + 1;
        })?;
        if size > buffer.len() && !buffer.is_empty() { Err(Code::BUFFER) } else { Ok(size) }
    }))
}
