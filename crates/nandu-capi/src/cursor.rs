//! Cursors over stores.

use core::ffi::{c_int, c_void};
use core::ptr;

use nandu::{Cursor, Entry};

use crate::border::{In, Kept, Out, Word};
use crate::error::{Answer, Code, count, status};
use crate::store::Inner;
use crate::volume::Handle;

/// What stands in a `nandu_cursor` of the header.
#[repr(C)]
pub(crate) struct CCursor {
    word: u32,
    /// Whose state it goes over; `None`: the store's own.
    #[cfg(feature = "snapshots")]
    snapshot: Option<u32>,
    store: Handle<Inner>,
    cursor: Cursor,
}

impl Word for CCursor {
    const WORD: u32 = u32::from_le_bytes(*b"nduC");
}

/// `nandu_entry` of the header.
#[repr(C)]
pub(crate) struct CEntry {
    pub(crate) key: *const c_void,
    pub(crate) key_size: usize,
    pub(crate) value: *const c_void,
    pub(crate) value_size: usize,
}

fn open(cursor: &Kept<CCursor>, store: &Handle<Inner>, _snapshot: Option<u32>) -> Answer<()> {
    store.check()?;
    cursor.set(CCursor {
        word: CCursor::WORD,
        #[cfg(feature = "snapshots")]
        snapshot: _snapshot,
        store: store.clone(),
        cursor: Cursor::START,
    })
}

#[unsafe(no_mangle)]
extern "C" fn nandu_cursor_open(cursor: Kept<CCursor>, store: Handle<Inner>) -> c_int {
    status(open(&cursor, &store, None))
}

#[cfg(feature = "snapshots")]
#[unsafe(no_mangle)]
extern "C" fn nandu_cursor_open_at(cursor: Kept<CCursor>, store: Handle<Inner>, snapshot: u32) -> c_int {
    status(open(&cursor, &store, Some(snapshot)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_cursor_seek(mut cursor: Kept<CCursor>, place: c_int, key: In, key_size: usize) -> c_int {
    status(cursor.get().and_then(|cursor| {
        cursor.store.check()?;
        cursor.cursor = match place {
            0 => Cursor::START,
            1 => Cursor::END,
            2 => Cursor::below(key.bytes(key_size)?),
            3 => Cursor::above(key.bytes(key_size)?),
            _ => return Err(Code::ARGUMENT),
        };
        Ok(())
    }))
}

fn step(cursor: &mut Kept<CCursor>, out: &Out<CEntry>, forward: bool) -> c_int {
    count(cursor.get().and_then(|it| {
        out.check()?;
        let cursor = &mut it.cursor;
        it.store.with(|store| {
            #[cfg(feature = "snapshots")]
            if let Some(number) = it.snapshot {
                let snapshot = crate::snapshots::snapshot_of(store, number)?;
                let mut at = store.at(&snapshot);
                return lend(if forward { at.next(cursor)? } else { at.previous(cursor)? }, out);
            }
            lend(if forward { store.next(cursor)? } else { store.previous(cursor)? }, out)
        })
    }))
}

/// Tells where a record lies in the store's memory, which stays so until the store is used again.
fn lend(entry: Option<Entry<'_>>, out: &Out<CEntry>) -> Answer<u8> {
    let Some(entry) = entry else { return Ok(0) };
    out.set(CEntry {
        key: entry.key.as_ptr().cast(),
        key_size: entry.key.len(),
        value: if entry.large.is_some() { ptr::null() } else { entry.value.as_ptr().cast() },
        value_size: entry.large.unwrap_or(entry.value.len()),
    })?;
    Ok(1)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_cursor_next(mut cursor: Kept<CCursor>, entry: Out<CEntry>) -> c_int {
    step(&mut cursor, &entry, true)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_cursor_previous(mut cursor: Kept<CCursor>, entry: Out<CEntry>) -> c_int {
    step(&mut cursor, &entry, false)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_cursor_close(mut cursor: Kept<CCursor>) -> c_int {
    status(cursor.get().map(|_| ()).inspect(|()| cursor.clear()))
}
