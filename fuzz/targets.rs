//! What the fuzzer runs, as plain functions of bytes: the fuzz targets call them, and so do tests of the crate `nandu`
//! over random bytes, on a stable compiler.

use std::ops::{Bound, ControlFlow};
use std::sync::LazyLock;

use nandu::nand::{BlockAddr, CellMode, Ecc, Geometry, Nand, PageAddr};
use nandu::{ByteCells, Cells, Direction, Durability, Edit, FixedCells, Options, Snapshot, Store};
use nandu_sim::{Chip, Sim};

const OPTIONS: Options = Options { cache_size: 300, ..Options::DEFAULT };

/// The same with changes that wait for syncs.
const ON_SYNC: Options = Options { durability: Durability::OnSync, pending_size: 600, ..OPTIONS };

/// Other sizes of pages, for images with changes that wait.
const PAGE_SIZES: [u32; 5] = [512, 2048, 4096, 8192, 16_384];

/// The chip of all images, with pages of this size.
const fn sized(page_size: u32) -> Chip {
    let ecc = Ecc { codeword_size: page_size, correctable_bits: 4 };
    Chip { geometry: Geometry { page_size, program_unit: page_size, ecc, ..Chip::TINY.geometry }, ..Chip::TINY }
}

/// What an image holds beside records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Nothing,
    Snapshots,
    Waiting,
}

impl Extra {
    fn options(self) -> Options {
        if self == Extra::Waiting { ON_SYNC } else { OPTIONS }
    }

    /// Blocks of the chip; with changes that wait and large values the store needs more of them, with snapshots more still.
    fn block_count(self) -> u32 {
        match self {
            Extra::Nothing => 24,
            Extra::Snapshots => 40,
            Extra::Waiting => 40,
        }
    }
}

type Used<'m, C> = Store<'m, Sim, C>;

/// Operations on the chip that a call may take: an image that keeps the store busy for longer has found a loop.
const OPERATIONS_PER_CALL_MAX: u64 = 4_000;

/// A chip that holds records, left cleanly or as if the power had gone.
fn volume<C: Cells>(chip: Chip, cells: C, value_size: usize, extra: Extra, is_clean: bool) -> Vec<Vec<u8>> {
    let options = extra.options();
    let chip = Sim::new(chip.with_blocks(extra.block_count()));
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let chip = Store::format_with(chip, cells, options, &mut memory).and_then(|mut store| {
        for number in 0..90_u32 {
            let key = (number * 37 % 61).to_be_bytes();
            store.put(&key, &[number as u8; 8][..value_size])?;
            if number % 6 == 0 {
                store.sync()?;
            }
            // Keys of one size have none.
            if extra == Extra::Snapshots && value_size == 8 && number % 30 == 20 {
                store.snapshot()?;
            }
            // Two of the records have pages of their own, one of them several. Changes that wait come after them.
            if value_size == 8 && number == 70 {
                store.put(&7_u32.to_be_bytes(), &[7; 900])?;
                store.put(&14_u32.to_be_bytes(), &[14; 300])?;
                if options.durability == Durability::OnSync {
                    // Soon hidden by a change that waits.
                    store.put(&21_u32.to_be_bytes(), &[21; 300])?;
                }
            }
        }
        if is_clean { store.unmount() } else { Ok(store.abandon()) }
    });
    let Ok(chip) = chip else { return Vec::new() };
    let geometry = chip.chip().geometry;
    let main = geometry.page_size as usize;
    (0..geometry.page_count()).map(|page| chip.peek(PageAddr(page))[..main].to_vec()).collect()
}

/// The images with something beside records, or with nothing, in four forms.
fn volumes(extra: Extra) -> [Vec<Vec<u8>>; 4] {
    [
        volume(Chip::TINY, ByteCells, 8, extra, true),
        volume(Chip::TINY, ByteCells, 8, extra, false),
        volume(Chip::TINY, FixedCells::<4, 4>, 4, extra, true),
        volume(Chip::TINY, FixedCells::<4, 4>, 4, extra, false),
    ]
}

static PLAIN: LazyLock<[Vec<Vec<u8>>; 4]> = LazyLock::new(|| volumes(Extra::Nothing));
static WITH_SNAPSHOTS: LazyLock<[Vec<Vec<u8>>; 4]> = LazyLock::new(|| volumes(Extra::Snapshots));
static WITH_CHANGES: LazyLock<[Vec<Vec<u8>>; 4]> = LazyLock::new(|| volumes(Extra::Waiting));

/// Those with pages of each size, as if the power had gone.
static SIZED: LazyLock<[Vec<Vec<u8>>; PAGE_SIZES.len()]> =
    LazyLock::new(|| PAGE_SIZES.map(|page_size| volume(sized(page_size), ByteCells, 8, Extra::Waiting, false)));

/// Damages the image of a store as the bytes say, and then opens and uses it: it may be refused and calls may fail, but nothing may
/// panic or go on for long. Returns whether it could be opened.
///
/// The first byte chooses one of 17 images: from 96 on one with pages of another size, from 128 on one with snapshots, from 192 on one with
/// changes that wait. The others are changes, see [`damage`].
pub(crate) fn hostile_image(bytes: &[u8]) -> bool {
    let Some((&choice, changes)) = bytes.split_first() else { return false };
    let (form, size) = (choice as usize % 4, choice as usize % PAGE_SIZES.len());
    let (extra, chip, originals) = match choice {
        0..96 => (Extra::Nothing, Chip::TINY, &PLAIN[form]),
        96..128 => (Extra::Waiting, sized(PAGE_SIZES[size]), &SIZED[size]),
        128..192 => (Extra::Snapshots, Chip::TINY, &WITH_SNAPSHOTS[form]),
        192.. => (Extra::Waiting, Chip::TINY, &WITH_CHANGES[form]),
    };
    let options = extra.options();
    let pages = damage(originals, changes, chip.geometry.page_size as usize);
    let chip = chip_with(chip, &pages);
    let has_any_keys = form < 2 || (96..128).contains(&choice);
    if has_any_keys { use_it(chip, ByteCells, 8, options) } else { use_it(chip, FixedCells::<4, 4>, 4, options) }
}

/// Changes the pages of an image, and repairs checksums of main areas where the bytes say so: five bytes are one change, a page, what to do
/// with it, and three bytes of detail.
pub(crate) fn damage(originals: &[Vec<u8>], mut changes: &[u8], main: usize) -> Vec<Vec<u8>> {
    let mut pages = originals.to_vec();
    let page_count = pages.len();
    while let [page, what, high, low, value, rest @ ..] = changes {
        changes = rest;
        let page = *page as usize % page_count;
        let at = (usize::from(*high) << 8 | usize::from(*low)) % pages[page].len();
        match what % 8 {
            0 => pages.swap(page, *value as usize % page_count),
            1 => pages[page] = originals[*value as usize % page_count].clone(),
            2 => pages[page].fill(0xFF),
            3 => pages[page][at] ^= value,
            // The front of a page and the end of its header, where most of the structure is.
            4 => reseal(&mut pages[page][..main], at % 64, *value),
            5 => reseal(&mut pages[page][..main], 32 + at % 64, *value),
            _ => reseal(&mut pages[page][..main], at % main, *value),
        }
    }
    pages
}

/// Changes a byte of a page and gives the page the checksum of what it holds now.
fn reseal(page: &mut [u8], at: usize, value: u8) {
    page[at] = value;
    let checksum = nandu_media::checksum::page_checksum(&page[4..]);
    page[..4].copy_from_slice(&checksum.to_le_bytes());
}

fn chip_with(chip: Chip, pages: &[Vec<u8>]) -> Sim {
    let block_count = pages.len() as u32 / chip.geometry.pages_per_block;
    let mut chip = Sim::new(chip.with_blocks(block_count));
    for block in 0..block_count {
        // Cannot fail: the chip is new.
        let _ = chip.erase(BlockAddr(block), CellMode::Slc);
    }
    for (page, bytes) in (0..).map(PageAddr).zip(pages) {
        if bytes.iter().any(|&byte| byte != 0xFF) {
            chip.poke(page, bytes);
        }
    }
    chip
}

fn use_it<C: Cells>(chip: Sim, cells: C, value_size: usize, options: Options) -> bool {
    let mut memory = vec![0; Store::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let start = chip.operation_count();
    let Ok(mut store) = Store::open_with(chip, cells, options, &mut memory) else { return false };
    let mut since = start;
    let mut bounded = |store: &Used<'_, C>, call: &str| {
        let now = store.nand().operation_count();
        assert!(now - since <= OPERATIONS_PER_CALL_MAX, "{call} took {} operations", now - since);
        since = now;
    };
    bounded(&store, "open");
    let _ = store.verify(&mut |_| {});
    bounded(&store, "verify");
    for direction in [Direction::Forward, Direction::Backward] {
        let _ = store.range(Bound::Unbounded, Bound::Unbounded, direction, |_| ControlFlow::Continue(()));
        bounded(&store, "range");
    }
    let _ = (store.first().is_ok(), store.last().is_ok());
    let value = [0x5A; 8];
    for number in 0..40_u32 {
        let key = (number * 7).to_be_bytes();
        let _ = store.get(&key).is_ok();
        bounded(&store, "get");
        let _ = store.read(&key, 100, &mut [0; 500]);
        bounded(&store, "read");
        let _ = store.put(&key, &value[..value_size]);
        bounded(&store, "put");
        if number % 3 == 0 {
            let _ = store.delete(&(number * 5).to_be_bytes());
            bounded(&store, "delete");
        }
        if number % 8 == 0 {
            let _ = store.sync();
            bounded(&store, "sync");
        }
    }
    let (low, high) = (1_u32.to_be_bytes(), 60_u32.to_be_bytes());
    let edits = [Edit { key: &low, value: Some(&value[..value_size]) }, Edit { key: &high, value: None }];
    let _ = store.batch(&edits);
    bounded(&store, "batch");
    use_snapshots(&mut store, &value[..value_size], &mut bounded);
    let _ = store.put(&high, &[0x5A; 1500]);
    bounded(&store, "put of a large value");
    let _ = store.idle(20);
    bounded(&store, "idle");
    let _ = store.merge();
    let _ = store.unmount();
    true
}

/// Reads at the snapshots that the image has and at one more, among changes, and releases all of them.
fn use_snapshots<C: Cells>(store: &mut Used<'_, C>, value: &[u8], bounded: &mut impl FnMut(&Used<'_, C>, &str)) {
    let _ = store.snapshot().is_ok();
    bounded(store, "snapshot");
    for number in 0..20_u32 {
        let _ = store.put(&(number * 5).to_be_bytes(), value);
        bounded(store, "put beside a snapshot");
    }
    let snapshots: Vec<Snapshot> = store.snapshots().collect();
    for snapshot in &snapshots {
        for number in 0..20_u32 {
            let _ = store.at(snapshot).get(&(number * 7).to_be_bytes()).is_ok();
            bounded(store, "get at a snapshot");
        }
        let _ = store
            .at(snapshot)
            .range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |_| ControlFlow::Continue(()));
        bounded(store, "range at a snapshot");
    }
    for snapshot in snapshots {
        let _ = store.release(snapshot);
        bounded(store, "release");
    }
}
