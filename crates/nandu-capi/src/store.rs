//! Stores of records.

use core::ffi::{c_int, c_void};
use core::ops::Bound;

use nandu::nand::Nand;
use nandu::{ByteCells, Durability, Options, Store};

use crate::border::{Buffer, Edits, Given, In, Out, Report};
use crate::chip::{CChip, Chip};
use crate::error::{Answer, Code, count, status};
use crate::report::Reporter;
use crate::stats::CStats;
use crate::volume::{self, Handle, Kind, Volume};

/// A store whose memory stays where it is, see [`volume`].
pub(crate) type Inner = Store<'static, Chip>;

impl Kind for Inner {
    const MAGIC: u32 = u32::from_le_bytes(*b"nduS");
    const HANDLE_SIZES: [usize; 2] = [8192, 6144];
}

/// `nandu_store_options` of the header.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CStoreOptions {
    pub(crate) salt: u64,
    pub(crate) volume: u32,
    pub(crate) cache_size: u32,
    pub(crate) pending_size: u32,
    pub(crate) reads_max: u32,
    pub(crate) durability: u8,
    pub(crate) read_back: u8,
    pub(crate) aligned: u8,
    pub(crate) stream_count: u8,
    pub(crate) ready_max: u8,
    pub(crate) commit_twice: u8,
    pub(crate) reserved: [u8; 2],
}

/// Most of what an option may ask for, in bytes or counts, so that sizes of memory fit 32 bits.
const SIZE_MAX: u32 = 1 << 26;

/// A size or count, 0 for its default.
pub(crate) fn size_or(value: u32, default: usize) -> Answer<usize> {
    match value {
        0 => Ok(default),
        1..=SIZE_MAX => Ok(value as usize),
        _ => Err(Code::ARGUMENT),
    }
}

/// `reads_max` of the header.
pub(crate) fn reads_max(value: u32) -> Option<u32> {
    match value {
        0 => None,
        u32::MAX => Some(0),
        count => Some(count),
    }
}

pub(crate) fn unless_0<T: PartialEq + Default>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

pub(crate) fn flag(value: u8) -> Answer<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Code::ARGUMENT),
    }
}

/// The options, and whether page buffers are aligned for DMA.
fn options(given: &Given<CStoreOptions>) -> Answer<(Options, bool)> {
    let default = Options::DEFAULT;
    let Some(given) = given.get()? else { return Ok((default, false)) };
    if given.reserved != [0; 2] {
        return Err(Code::ARGUMENT);
    }
    let mut options = Options {
        volume: unless_0(given.volume),
        salt: given.salt,
        stream_count: unless_0(given.stream_count),
        ready_max: unless_0(given.ready_max),
        read_back: flag(given.read_back)?,
        commit_twice: flag(given.commit_twice)?,
        reads_max: reads_max(given.reads_max),
        cache_size: size_or(given.cache_size, default.cache_size)?,
        durability: if flag(given.durability)? { Durability::OnSync } else { Durability::Immediate },
        ..default
    };
    options.pending_size = size_or(given.pending_size, 0)?;
    Ok((options, flag(given.aligned)?))
}

pub(crate) fn chip_of(chip: &Given<CChip>) -> Answer<Chip> {
    Chip::new(&chip.get()?.ok_or(Code::ARGUMENT)?)
}

fn open(
    store: &Out<Handle<Inner>>,
    (chip, options_given): (&Given<CChip>, &Given<CStoreOptions>),
    memory: (&Buffer, usize),
    open: impl FnOnce(&mut Option<Inner>, Chip, Options, &'static mut [u8]) -> Answer<()>,
) -> Answer<()> {
    let (chip, (options, aligned)) = (chip_of(chip)?, options(options_given)?);
    let required = Inner::memory_required(chip.geometry(), &options);
    let lock = chip.lock();
    volume::place(store, lock, memory, (required, aligned), |place, memory| open(place, chip, options, memory))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_memory(chip: Given<CChip>, options_given: Given<CStoreOptions>) -> usize {
    let (Ok(chip), Ok((options, aligned))) = (chip_of(&chip), options(&options_given)) else { return 0 };
    Volume::<Inner>::memory_required(Inner::memory_required(chip.geometry(), &options), aligned)
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_format(
    store: Out<Handle<Inner>>,
    chip: Given<CChip>,
    options: Given<CStoreOptions>,
    memory: Buffer,
    memory_size: usize,
) -> c_int {
    status(open(&store, (&chip, &options), (&memory, memory_size), |place, chip, options, memory| {
        Ok(Inner::format_in(place, chip, ByteCells, options, memory)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_open(
    store: Out<Handle<Inner>>,
    chip: Given<CChip>,
    options: Given<CStoreOptions>,
    memory: Buffer,
    memory_size: usize,
) -> c_int {
    status(open(&store, (&chip, &options), (&memory, memory_size), |place, chip, options, memory| {
        Ok(Inner::open_in(place, chip, ByteCells, options, memory)?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_close(store: Handle<Inner>) -> c_int {
    status(store.close(|store| Ok(Inner::unmount_in(store)?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_abandon(store: Handle<Inner>) -> c_int {
    status(store.close(|store| {
        *store = None;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_put(store: Handle<Inner>, key: In, key_size: usize, value: In, value_size: usize) -> c_int {
    status(store.with(|store| {
        store.put(key.bytes(key_size)?, value.bytes(value_size)?)?;
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_get(
    store: Handle<Inner>,
    key: In,
    key_size: usize,
    mut buffer: Buffer,
    buffer_size: usize,
) -> i32 {
    count(store.with(|store| {
        let (key, buffer) = (key.bytes(key_size)?, buffer.bytes(buffer_size)?);
        match store.get(key) {
            Ok(value) => copy(value, buffer),
            Err(nandu::Error::LargeValue(size)) if size <= buffer.len() => {
                store.read(key, 0, buffer)?.ok_or(Code::NOT_FOUND)
            }
            Err(error) => Err(error.into()),
        }
    }))
}

/// Copies a value that is lent, if there is one.
pub(crate) fn copy(value: Option<&[u8]>, buffer: &mut [u8]) -> Answer<usize> {
    let value = value.ok_or(Code::NOT_FOUND)?;
    buffer.get_mut(..value.len()).ok_or(Code::BUFFER)?.copy_from_slice(value);
    Ok(value.len())
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_read(
    store: Handle<Inner>,
    key: In,
    key_size: usize,
    offset: usize,
    mut buffer: Buffer,
    buffer_size: usize,
) -> i32 {
    count(store.with(|store| {
        let buffer = buffer.bytes(buffer_size)?;
        store.read(key.bytes(key_size)?, offset, buffer)?.ok_or(Code::NOT_FOUND)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_value_size(store: Handle<Inner>, key: In, key_size: usize) -> i32 {
    count(store.with(|store| store.value_len(key.bytes(key_size)?)?.ok_or(Code::NOT_FOUND)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_delete(store: Handle<Inner>, key: In, key_size: usize) -> c_int {
    status(store.with(|store| match store.delete(key.bytes(key_size)?)? {
        true => Ok(()),
        false => Err(Code::NOT_FOUND),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_delete_range(
    store: Handle<Inner>,
    from: In,
    from_size: usize,
    to: In,
    to_size: usize,
    deleted: Out<u32>,
) -> c_int {
    count(store.with(|store| {
        let from = Bound::Included(from.bytes(from_size)?);
        let to = if to.is_null() { Bound::Unbounded } else { Bound::Excluded(to.bytes(to_size)?) };
        let step = store.delete_range(from, to)?;
        if !deleted.is_null() {
            deleted.set(step.count as u32)?;
        }
        Ok(u8::from(step.more))
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_batch(store: Handle<Inner>, mut edits: Edits, edit_count: usize) -> c_int {
    status(store.with(|store| edits.with(edit_count, |edits| Ok(store.batch(edits)?))))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_sync(store: Handle<Inner>) -> c_int {
    status(store.with(|store| Ok(store.sync()?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_merge(store: Handle<Inner>) -> c_int {
    status(store.with(|store| Ok(store.merge()?)))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_idle(store: Handle<Inner>, pages: u32) -> c_int {
    count(store.with(|store| Ok(u8::from(store.idle(pages)?))))
}

/// `nandu_store_info` of the header.
#[repr(C)]
pub(crate) struct CStoreInfo {
    pub(crate) record_count: u64,
    pub(crate) key_size_max: usize,
    pub(crate) entry_size_max: usize,
    pub(crate) value_size_max: usize,
    pub(crate) pending_count: usize,
    pub(crate) height: u32,
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_info_of(store: Handle<Inner>, info: Out<CStoreInfo>) -> c_int {
    status(store.with(|store| {
        info.set(CStoreInfo {
            record_count: store.record_count(),
            key_size_max: store.key_size_max(),
            entry_size_max: store.entry_size_max(),
            value_size_max: store.value_size_max(&[]),
            pending_count: store.pending_count(),
            height: store.height().into(),
        })
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_stats(store: Handle<Inner>, stats: Out<CStats>) -> c_int {
    status(store.with(|store| stats.set(CStats::of(&store.stats()))))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_verify(store: Handle<Inner>, report: Report, context: *mut c_void) -> i32 {
    count(store.with(|store| {
        let mut reporter = Reporter::new(report, context);
        Ok(store.verify(&mut |violation| reporter.report(&violation))?)
    }))
}

#[unsafe(no_mangle)]
extern "C" fn nandu_store_digest(store: Handle<Inner>, digest: Out<u64>) -> c_int {
    status(store.with(|store| {
        digest.check()?;
        digest.set(store.digest()?)
    }))
}
