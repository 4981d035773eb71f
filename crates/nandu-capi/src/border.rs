//! Pointers as they come from C.
//!
//! Each type here is what C passes, byte by byte, and only C can make one: no code of this crate does. So what the header demands of a
//! caller is known of every value: a pointer is null, or good for what its function says, while the call lasts, and the buffers of one
//! call do not overlap. A method looks for null and turns the rest into what Rust has.

// Without a feature some of it is not used.
#![cfg_attr(not(all(feature = "sim", feature = "files", feature = "snapshots")), allow(dead_code))]

use core::ffi::{CStr, c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;

use crate::error::{Answer, Code};

/// Bytes that are read during the call, of which the size comes beside.
#[repr(transparent)]
pub(crate) struct In(*const c_void);

impl In {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn bytes(&self, size: usize) -> Answer<&[u8]> {
        match size {
            0 if self.0.is_null() => Ok(&[]),
            _ if self.0.is_null() || size > isize::MAX as usize => Err(Code::ARGUMENT),
            // SAFETY: not null, so that C promises `size` bytes that stay as they are during the call, which `self` does not outlive.
            _ => Ok(unsafe { core::slice::from_raw_parts(self.0.cast(), size) }),
        }
    }
}

/// Bytes that are written during the call.
#[repr(transparent)]
pub(crate) struct Buffer(*mut c_void);

impl Buffer {
    pub(crate) fn bytes(&mut self, size: usize) -> Answer<&mut [u8]> {
        match size {
            0 => Ok(&mut []),
            _ if self.0.is_null() || size > isize::MAX as usize => Err(Code::ARGUMENT),
            // SAFETY: not null, so that C promises `size` bytes that nobody else uses during the call, which `self` does not outlive.
            _ => Ok(unsafe { core::slice::from_raw_parts_mut(self.0.cast(), size) }),
        }
    }

    /// Where a volume is to lie, which outlives the call.
    pub(crate) fn memory(&self) -> Answer<*mut u8> {
        if self.0.is_null() { Err(Code::ARGUMENT) } else { Ok(self.0.cast()) }
    }
}

/// A text that ends with a zero.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn bytes(&self) -> Answer<&[u8]> {
        if self.0.is_null() {
            return Err(Code::ARGUMENT);
        }
        // SAFETY: not null, so that C promises bytes with a zero behind them, which stay as they are during the call.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
}

/// Where a value goes.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Refuses null, before anything has happened.
    pub(crate) fn check(&self) -> Answer<()> {
        if self.0.is_null() || !self.0.is_aligned() { Err(Code::ARGUMENT) } else { Ok(()) }
    }

    pub(crate) fn set(&self, value: T) -> Answer<()> {
        self.check()?;
        // SAFETY: not null and aligned, so that C promises room for a `T` that nobody else uses during the call. What lies there is no value yet.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// So many values, none of which is one yet.
    pub(crate) fn slice(&mut self, size: usize) -> Answer<&mut [MaybeUninit<T>]> {
        if size == 0 {
            return Ok(&mut []);
        }
        self.check()?;
        if size > isize::MAX as usize / size_of::<T>() {
            return Err(Code::ARGUMENT);
        }
        // SAFETY: as in `set`, for so many of them.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.0.cast(), size) })
    }
}

/// A struct that is read during the call.
#[repr(transparent)]
pub(crate) struct Given<T>(*const T);

impl<T: Copy> Given<T> {
    /// A copy; `None` of null.
    pub(crate) fn get(&self) -> Answer<Option<T>> {
        if self.0.is_null() {
            return Ok(None);
        }
        if !self.0.is_aligned() {
            return Err(Code::ARGUMENT);
        }
        // SAFETY: not null and aligned, so that C promises a `T`. Its fields are numbers and pointers, so that any bytes are one.
        Ok(Some(unsafe { self.0.read() }))
    }
}

/// A struct of the caller's that keeps what a call leaves in it for the next one: a cursor, an open file, a directory. It has a word by which
/// it is known.
#[repr(transparent)]
pub(crate) struct Kept<T>(*mut T);

/// What stands in such a struct: repr(C), its first field the word.
pub(crate) trait Word: Sized {
    const WORD: u32;
}

impl<T: Word> Kept<T> {
    /// Refuses null, before anything has happened.
    pub(crate) fn check(&self) -> Answer<()> {
        Out(self.0).check()
    }

    /// Fills it.
    pub(crate) fn set(&self, value: T) -> Answer<()> {
        Out(self.0).set(value)
    }

    /// What it holds, if it holds something.
    pub(crate) fn get(&mut self) -> Answer<&mut T> {
        self.check()?;
        // SAFETY: not null and aligned, so that C promises memory that can be read; the first field is a number of 32 bits.
        let word = unsafe { self.0.cast::<u32>().read() };
        if word != T::WORD {
            return Err(Code::HANDLE);
        }
        // SAFETY: the word says that `set` filled it; C promises to leave it alone.
        Ok(unsafe { &mut *self.0 })
    }

    /// Nothing is in it from now on.
    pub(crate) fn clear(&mut self) {
        if self.check().is_ok() {
            // SAFETY: as in `get`.
            unsafe { self.0.cast::<u32>().write(0) };
        }
    }
}

/// Memory of a batch, see [`Edits::with`].
#[repr(transparent)]
pub(crate) struct Edits(*mut CEdit);

/// `nandu_edit` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CEdit {
    pub(crate) key: *const u8,
    pub(crate) key_size: usize,
    pub(crate) value: *const u8,
    pub(crate) value_size: usize,
}

const _: () = assert!(size_of::<CEdit>() == size_of::<nandu::Edit<'_>>(), "an edit takes the place of another");
const _: () = assert!(align_of::<CEdit>() == align_of::<nandu::Edit<'_>>(), "an edit takes the place of another");

impl Edits {
    /// Turns the array into one of Rust's in its place, since there is no other memory for it, and turns it back afterwards.
    pub(crate) fn with<R>(&mut self, count: usize, f: impl FnOnce(&[nandu::Edit<'_>]) -> Answer<R>) -> Answer<R> {
        if count == 0 {
            return f(&[]);
        }
        Out(self.0).check()?;
        if count > isize::MAX as usize / size_of::<CEdit>() {
            return Err(Code::ARGUMENT);
        }
        let mut turned = 0;
        let mut outcome = Ok(());
        while turned < count && outcome.is_ok() {
            outcome = self.turn(turned);
            turned += usize::from(outcome.is_ok());
        }
        let result = outcome.and_then(|()| {
            // SAFETY: each of them was turned; nobody else uses them during the call.
            f(unsafe { core::slice::from_raw_parts(self.0.cast::<nandu::Edit<'_>>(), count) })
        });
        for index in 0..turned {
            self.turn_back(index);
        }
        result
    }

    fn turn(&self, index: usize) -> Answer<()> {
        // SAFETY: C promises as many as it says, and `index` is below that.
        let place = unsafe { self.0.add(index) };
        // SAFETY: it was not turned yet.
        let CEdit { key, key_size, value, value_size } = unsafe { place.read() };
        let (key, value_bytes) = (In(key.cast()), In(value.cast()));
        let edit = nandu::Edit {
            key: key.bytes(key_size)?,
            value: if value.is_null() { None } else { Some(value_bytes.bytes(value_size)?) },
        };
        // SAFETY: of the same size and alignment, which is asserted above.
        unsafe { place.cast::<nandu::Edit<'_>>().write(edit) };
        Ok(())
    }

    fn turn_back(&self, index: usize) {
        // SAFETY: C promises as many as it says, and `index` is below that.
        let place = unsafe { self.0.add(index) };
        // SAFETY: it was turned.
        let edit = unsafe { place.cast::<nandu::Edit<'_>>().read() };
        let (value, value_size) = edit.value.map_or((ptr::null(), 0), |value| (value.as_ptr(), value.len()));
        // Null with a size of 0 was turned into a pointer to nothing.
        let key = if edit.key.as_ptr() == ptr::dangling() { ptr::null() } else { edit.key.as_ptr() };
        let edit = CEdit { key, key_size: edit.key.len(), value, value_size };
        // SAFETY: of the same size and alignment, which is asserted above.
        unsafe { place.write(edit) };
    }
}

/// A function that is told of violations.
pub(crate) type Report = Option<unsafe extern "C" fn(*mut c_void, *const c_char)>;

/// Tells it.
pub(crate) fn tell(report: Report, context: *mut c_void, text: &CStr) {
    if let Some(report) = report {
        // SAFETY: the header has the C side promise a function of this type, to be called with its context.
        unsafe { report(context, text.as_ptr()) };
    }
}
