//! Volumes in the caller's memory, and the handles that lead to them.
//!
//! ```text
//! memory      | unused | Volume: word, store or file system | what the store or file system is handed |
//! handle ---------------^
//! ```
//!
//! A store borrows its memory and owns its chip, and both lie beside it in one buffer of the caller's; so the borrow is said to last for ever.
//! That is true as long as the caller leaves the buffer alone until the volume is closed, which the header demands.
//!
//! The word tells an open volume from anything else: it is made of the kind and of the address, so that a handle of another kind, a volume
//! that was closed and a copy elsewhere are refused. During a call the word is another one: a callback that calls its own volume finds it
//! in use, and there are never two references to it.
//!
//! Where the program has a lock, the word is looked at twice: before the lock is taken, since only an open volume has one, and after it, since
//! another task may have been in a call or have closed the volume meanwhile.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::border::{Buffer, Out};
use crate::chip::Lock;
use crate::error::{Answer, Code};

/// What a volume can be.
pub(crate) trait Kind: Sized {
    /// Tells the kinds apart.
    const MAGIC: u32;

    /// Most bytes of a volume, with pointers of 64 bits and of 32: what the header counts for static memory.
    const HANDLE_SIZES: [usize; 2];
}

/// A volume where the caller's memory has it.
#[repr(C, align(8))]
pub(crate) struct Volume<T: Kind> {
    word: AtomicU32,
    lock: Lock,
    /// Opened in its place: it takes kilobytes, and would take them on the stack otherwise.
    inner: Option<T>,
}

/// Whether a call is using a volume.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    Busy,
}

/// Leads to a volume; `nandu_store *` or `nandu_fs *` of the header.
#[repr(transparent)]
pub(crate) struct Handle<T: Kind>(*mut Volume<T>);

impl<T: Kind> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        Handle(self.0)
    }
}

/// Multiples of this many bytes from the beginning of the memory, or of so many where pages are aligned for DMA.
const fn alignment(aligned: bool) -> usize {
    if aligned { nandu::nand::ALIGNMENT } else { 8 }
}

impl<T: Kind> Volume<T> {
    const FITS: () = {
        assert!(size_of::<Volume<T>>() <= T::HANDLE_SIZES[if size_of::<usize>() == 8 { 0 } else { 1 }]);
        assert!(align_of::<Volume<T>>() == 8, "`divide` puts it at a multiple of 8");
    };

    /// Bytes for a volume that is handed so many, wherever they begin.
    pub(crate) const fn memory_required(required: usize, aligned: bool) -> usize {
        let () = Self::FITS;
        alignment(aligned) - 1 + size_of::<Volume<T>>().next_multiple_of(alignment(aligned)) + required
    }
}

impl<T: Kind> Handle<T> {
    fn word_of(volume: *mut Volume<T>) -> u32 {
        T::MAGIC ^ volume.addr() as u32
    }

    /// What the word of the volume says, and the word itself.
    fn look(&self) -> Answer<(Use, &AtomicU32)> {
        let volume = self.0;
        if volume.is_null() {
            return Err(Code::ARGUMENT);
        }
        if !volume.is_aligned() {
            return Err(Code::HANDLE);
        }
        // SAFETY: C promises that a handle leads to memory that can be read, also after the volume was closed. The word comes first.
        let word = unsafe { &*volume.cast::<AtomicU32>() };
        match word.load(Ordering::Relaxed) ^ Self::word_of(volume) {
            0 => Ok((Use::Free, word)),
            u32::MAX => Ok((Use::Busy, word)),
            _ => Err(Code::HANDLE),
        }
    }

    /// The volume's lock, and whether the volume can be used once that is held.
    fn lock(&self) -> Answer<Lock> {
        let (found, _) = self.look()?;
        // SAFETY: the word says that a volume was made here; its lock stays as it is.
        let lock = unsafe { (*self.0).lock };
        if found == Use::Free || lock.is_there() { Ok(lock) } else { Err(Code::BUSY) }
    }

    /// Whether it can be used.
    pub(crate) fn check(&self) -> Answer<()> {
        self.lock().map(|_| ())
    }

    /// Uses the volume.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> Answer<R>) -> Answer<R> {
        self.enter(|inner| inner.as_mut().map_or(Err(Code::HANDLE), f), Self::word_of(self.0))
    }

    /// Closes the volume; `close` empties its place.
    #[inline(always)]
    pub(crate) fn close(&self, close: impl FnOnce(&mut Option<T>) -> Answer<()>) -> Answer<()> {
        self.enter(close, 0)
    }

    /// Uses the place of the volume; the word is this one afterwards.
    #[inline(always)]
    fn enter<R>(&self, f: impl FnOnce(&mut Option<T>) -> Answer<R>, word_after: u32) -> Answer<R> {
        self.begin()?;
        // SAFETY: an open volume, whose memory C leaves alone. While the word says that it is in use, no other call gets here.
        let answer = f(unsafe { &mut (*self.0).inner });
        self.end(word_after);
        answer
    }

    /// Takes the lock, and lets the word say that the volume is in use. Apart from the calls, of which there are many.
    #[inline(never)]
    fn begin(&self) -> Answer<()> {
        let lock = self.lock()?;
        lock.take()?;
        let outcome = match self.look() {
            Ok((Use::Free, word)) => {
                word.store(!Self::word_of(self.0), Ordering::Relaxed);
                return Ok(());
            }
            Ok((Use::Busy, _)) => Err(Code::BUSY),
            Err(code) => Err(code),
        };
        lock.give();
        outcome
    }

    /// Ends what `begin` began.
    #[inline(never)]
    fn end(&self, word_after: u32) {
        if let Ok((_, word)) = self.look() {
            // SAFETY: the word says that a volume was made here; its lock stays as it is.
            let lock = unsafe { (*self.0).lock };
            word.store(word_after, Ordering::Relaxed);
            lock.give();
        }
    }
}

/// Makes a volume at the front of the memory, with as many bytes behind it as it requires, and tells where.
#[inline(always)]
pub(crate) fn place<T: Kind>(
    out: &Out<Handle<T>>,
    lock: Lock,
    (memory, size): (&Buffer, usize),
    (required, aligned): (usize, bool),
    open: impl FnOnce(&mut Option<T>, &'static mut [u8]) -> Answer<()>,
) -> Answer<()> {
    out.set(Handle(ptr::null_mut()))?;
    lock.take()?;
    let outcome = place_locked(lock, (memory, size), (required, aligned), open);
    lock.give();
    out.set(outcome?)
}

/// The same while the lock is held.
#[inline(always)]
fn place_locked<T: Kind>(
    lock: Lock,
    (memory, size): (&Buffer, usize),
    (required, aligned): (usize, bool),
    open: impl FnOnce(&mut Option<T>, &'static mut [u8]) -> Answer<()>,
) -> Answer<Handle<T>> {
    let (volume, rest) = divide::<T>(memory, size, required, aligned)?;
    // SAFETY: `divide` gives memory for a volume, which C leaves to it.
    let place = unsafe { &raw mut (*volume).lock };
    // SAFETY: the same. What lay here was no value.
    unsafe { place.write(lock) };
    // SAFETY: the same.
    let inner = unsafe { &raw mut (*volume).inner };
    // SAFETY: the same.
    unsafe { inner.write(None) };
    // SAFETY: it is one now, and the only reference: the word does not say that the volume is open.
    open(unsafe { &mut *inner }, rest)?;
    // SAFETY: as above.
    unsafe { volume.cast::<u32>().write(Handle::word_of(volume)) };
    Ok(Handle(volume))
}

/// Memory for a volume, and the bytes that it is handed.
fn divide<T: Kind>(
    memory: &Buffer,
    size: usize,
    required: usize,
    aligned: bool,
) -> Answer<(*mut Volume<T>, &'static mut [u8])> {
    let memory = memory.memory()?;
    if size < Volume::<T>::memory_required(required, aligned) {
        return Err(Code::MEMORY);
    }
    let alignment = alignment(aligned);
    let start = memory.addr().next_multiple_of(alignment) - memory.addr();
    // SAFETY: within the memory, as `memory_required` counts.
    let volume = unsafe { memory.add(start) };
    // SAFETY: the same.
    let rest = unsafe { volume.add(size_of::<Volume<T>>().next_multiple_of(alignment)) };
    // SAFETY: C promises `size` bytes, of which these are some. Whatever was in them, they are zeros now.
    unsafe { rest.write_bytes(0, required) };
    // SAFETY: the same. C leaves them to the volume until it is closed, and nobody reaches them but through it.
    let rest = unsafe { core::slice::from_raw_parts_mut(rest, required) };
    let volume = volume.cast::<Volume<T>>();
    // SAFETY: as above, at a multiple of 8. Until the volume is made it is not open.
    unsafe { volume.cast::<u32>().write(0) };
    Ok((volume, rest))
}
