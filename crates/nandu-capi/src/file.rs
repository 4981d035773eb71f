//! Open files, with a position.

use core::ffi::c_int;

use nandu::fs::{Attributes, File, Ino, OpenOptions};

use crate::border::{Buffer, In, Kept, Out, Text, Word};
use crate::error::{Answer, Code, count, status};
use crate::fs::{Inner, counted};
use crate::volume::Handle;

const READ: c_int = 1;
const WRITE: c_int = 2;
const CREATE: c_int = 4;
const EXCLUSIVE: c_int = 8;
const TRUNCATE: c_int = 16;
const APPEND: c_int = 32;

/// What stands in a `nandu_file` of the header.
#[repr(C)]
pub(crate) struct CFile {
    word: u32,
    flags: c_int,
    fs: Handle<Inner>,
    ino: Ino,
    position: u64,
}

impl Word for CFile {
    const WORD: u32 = u32::from_le_bytes(*b"nduf");
}

/// Refuses flags that are none or make no sense together.
fn check_flags(flags: c_int) -> Answer<()> {
    let known = READ | WRITE | CREATE | EXCLUSIVE | TRUNCATE | APPEND;
    let changes = flags & (TRUNCATE | APPEND) != 0;
    let is_sound = flags & !known == 0 && flags & (READ | WRITE) != 0 && (!changes || flags & WRITE != 0);
    if is_sound { Ok(()) } else { Err(Code::ARGUMENT) }
}

fn keep(file: &Kept<CFile>, fs: &Handle<Inner>, ino: Ino, flags: c_int) -> Answer<()> {
    file.set(CFile { word: CFile::WORD, flags, fs: fs.clone(), ino, position: 0 })
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_open(file: Kept<CFile>, fs: Handle<Inner>, path: Text, flags: c_int) -> c_int {
    let ino = file.check().and_then(|()| {
        fs.with(|fs| {
            check_flags(flags)?;
            let how = OpenOptions {
                create: (flags & CREATE != 0).then_some(Attributes::FILE),
                new: flags & EXCLUSIVE != 0,
                truncate: flags & TRUNCATE != 0,
                append: false,
            };
            Ok(File::open(fs, path.bytes()?, how)?.ino())
        })
    });
    status(ino.and_then(|ino| keep(&file, &fs, ino, flags)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_open_at(file: Kept<CFile>, fs: Handle<Inner>, ino: u64, flags: c_int) -> c_int {
    let opened = file.check().and_then(|()| {
        fs.with(|fs| {
            check_flags(flags)?;
            if flags & (CREATE | EXCLUSIVE) != 0 {
                return Err(Code::ARGUMENT);
            }
            // Refuses what is no file with content, and changes nothing.
            fs.read_at(Ino(ino), 0, &mut [])?;
            if flags & TRUNCATE != 0 {
                fs.truncate(Ino(ino), 0)?;
            }
            Ok(fs.open(Ino(ino))?)
        })
    });
    status(opened.and_then(|()| keep(&file, &fs, Ino(ino), flags)))
}

/// Uses a file that is open for what the flag says.
fn with<R>(file: &mut Kept<CFile>, flag: c_int, f: impl FnOnce(&mut Inner, &mut At) -> Answer<R>) -> Answer<R> {
    let file = file.get()?;
    let mut at = At { ino: file.ino, position: file.position, append: file.flags & APPEND != 0 };
    let answer = file.fs.with(|fs| if file.flags & flag == flag { f(fs, &mut at) } else { Err(Code::ACCESS) })?;
    file.position = at.position;
    Ok(answer)
}

/// Where a file is.
struct At {
    ino: Ino,
    position: u64,
    append: bool,
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_close(mut file: Kept<CFile>) -> c_int {
    let closed = with(&mut file, 0, |fs, at| Ok(fs.close(at.ino)?));
    // One whose file system is being used stays open.
    if closed != Err(Code::BUSY) {
        file.clear();
    }
    status(closed)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_read(mut file: Kept<CFile>, mut buffer: Buffer, buffer_size: usize) -> i32 {
    count(with(&mut file, READ, |fs, at| {
        let count = fs.read_at(at.ino, at.position, buffer.bytes(counted(buffer_size))?)?;
        at.position += count as u64;
        Ok(count)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_write(mut file: Kept<CFile>, data: In, size: usize) -> i32 {
    count(with(&mut file, WRITE, |fs, at| {
        let bytes = data.bytes(counted(size))?;
        let offset = if at.append { fs.stat(at.ino)?.size } else { at.position };
        let count = fs.write_at(at.ino, offset, bytes)?;
        at.position = offset + count as u64;
        Ok(count)
    }))
}

/// A position or a size, which are below 2^63, or an error.
fn long(answer: Answer<u64>) -> i64 {
    answer.map_or_else(|code| code.0.into(), |value| value as i64)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_seek(mut file: Kept<CFile>, offset: i64, from: c_int) -> i64 {
    long(with(&mut file, 0, |fs, at| {
        let base = match from {
            0 => 0,
            1 => at.position,
            2 => fs.stat(at.ino)?.size,
            _ => return Err(Code::ARGUMENT),
        };
        let position = base.checked_add_signed(offset).filter(|&to| to <= i64::MAX as u64).ok_or(Code::RANGE)?;
        at.position = position;
        Ok(position)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_size(mut file: Kept<CFile>) -> i64 {
    long(with(&mut file, 0, |fs, at| Ok(fs.stat(at.ino)?.size)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_truncate(mut file: Kept<CFile>, size: u64) -> c_int {
    status(with(&mut file, WRITE, |fs, at| Ok(fs.truncate(at.ino, size)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_sync(mut file: Kept<CFile>) -> c_int {
    status(with(&mut file, 0, |fs, at| Ok(fs.fsync(at.ino)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_file_ino(mut file: Kept<CFile>, ino: Out<u64>) -> c_int {
    status(with(&mut file, 0, |_, at| ino.set(at.ino.0)))
}
