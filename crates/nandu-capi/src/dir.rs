//! Names of directories, one after the other.

use core::ffi::c_int;
use core::ops::ControlFlow;

use nandu::fs::Ino;

use crate::border::{Kept, Out, Text, Word};
use crate::error::{Answer, count, status};
use crate::fs::Inner;
use crate::volume::Handle;

/// What stands in a `nandu_dir` of the header.
#[repr(C)]
pub(crate) struct CDir {
    word: u32,
    fs: Handle<Inner>,
    ino: Ino,
    cookie: u64,
}

impl Word for CDir {
    const WORD: u32 = u32::from_le_bytes(*b"ndud");
}

/// Bytes of a name and of the zero behind it.
const NAME_SIZE: usize = 256;

/// `nandu_dirent` of the header.
#[repr(C)]
pub(crate) struct CDirent {
    pub(crate) ino: u64,
    pub(crate) r#type: u32,
    pub(crate) name: [u8; NAME_SIZE],
}

fn open(dir: &Kept<CDir>, handle: &Handle<Inner>, find: impl FnOnce(&mut Inner) -> Answer<Ino>) -> Answer<()> {
    dir.check()?;
    let ino = handle.with(|fs| {
        let ino = find(fs)?;
        // Refuses what is no directory.
        fs.read_dir(ino, 0, |_| ControlFlow::Break(()))?;
        Ok(ino)
    })?;
    dir.set(CDir { word: CDir::WORD, fs: handle.clone(), ino, cookie: 0 })
}

#[unsafe(no_mangle)]
extern "C" fn nandu_dir_open(dir: Kept<CDir>, fs: Handle<Inner>, path: Text) -> c_int {
    status(open(&dir, &fs, |fs| Ok(fs.lookup_path(path.bytes()?)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_dir_open_at(dir: Kept<CDir>, fs: Handle<Inner>, ino: u64) -> c_int {
    status(open(&dir, &fs, |_| Ok(Ino(ino))))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_dir_read(mut dir: Kept<CDir>, entry: Out<CDirent>) -> c_int {
    count(dir.get().and_then(|dir| {
        entry.check()?;
        let mut cookie = None;
        let mut told = Ok(());
        dir.fs.with(|fs| {
            fs.read_dir(dir.ino, dir.cookie, |found| {
                let mut name = [0; NAME_SIZE];
                // No name has more bytes than fit beside the zero.
                let size = found.name.len().min(NAME_SIZE - 1);
                name[..size].copy_from_slice(&found.name[..size]);
                told = entry.set(CDirent { ino: found.ino.0, r#type: found.kind as u32, name });
                cookie = Some(found.cookie);
                ControlFlow::Break(())
            })?;
            told
        })?;
        dir.cookie = cookie.unwrap_or(dir.cookie);
        Ok(u8::from(cookie.is_some()))
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_dir_rewind(mut dir: Kept<CDir>) -> c_int {
    status(dir.get().and_then(|dir| {
        dir.fs.check()?;
        dir.cookie = 0;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_dir_close(mut dir: Kept<CDir>) -> c_int {
    status(dir.get().map(|_| ()).inspect(|()| dir.clear()))
}
