//! File systems under the fuzzer: damaged images, and records of any content in a sound tree.

use std::ops::{Bound, ControlFlow};
use std::sync::LazyLock;

use nandu::fs::{Allocation, Attributes, Format, Fs, Ino, LogOptions, Options, RenameMode, XattrMode};
use nandu::nand::{BlockAddr, CellMode, Ecc, Geometry, Nand, PageAddr};
use nandu::{ByteCells, Direction};
use nandu_log::Log;
use nandu_sim::{Chip, Sim};
use nandu_tree::{Engine, Parts};

use super::targets::damage;

/// The smallest pages that a file system goes on.
const CHIP: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 512,
        program_unit: 512,
        ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
        ..Chip::TINY.with_blocks(32).geometry
    },
    ..Chip::TINY
};

const OPTIONS: Options = Options {
    log: LogOptions { has_tags: true, ..LogOptions::DEFAULT },
    cache_size: 512,
    pending_size: 900,
    open_max: 4,
    ..Options::DEFAULT
};

/// The same with protected spare bytes.
const TAGGED: Chip = Chip { geometry: Geometry { spare_size: 64, tag_size: 32, ..CHIP.geometry }, ..CHIP };

/// Other sizes of pages, for records of any content.
const PAGE_SIZES: [u32; 5] = [512, 2048, 4096, 8192, 16_384];

/// The same chip with pages of this size.
const fn sized(page_size: u32) -> Chip {
    Chip { geometry: Geometry { page_size, program_unit: page_size, ..CHIP.geometry }, ..CHIP }
}

const FILE: Attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };

/// Operations on the chip that all calls together may take: an image that keeps the file system busy for longer has found a loop.
const OPERATIONS_MAX: u64 = 150_000;

/// Inodes of the volume: root, symbolic link, file with holes, directory, file in it.
const INODES: [u64; 5] = [1, 2, 3, 64, 65];

fn memory(chip: Chip) -> Vec<u8> {
    vec![0; Fs::<Sim>::memory_required(&chip.geometry, &OPTIONS)]
}

/// A file system with something of each kind, left cleanly or as if the power had gone.
fn volume(chip: Chip, is_clean: bool) -> Option<Sim> {
    let mut memory = memory(chip);
    let mut fs = Fs::format(Sim::new(chip), OPTIONS, Format::default(), &mut memory).ok()?;
    let directory = fs.mkdir(Ino::ROOT, b"directory", FILE).ok()?;
    let file = fs.create(directory, b"file", FILE).ok()?;
    fs.write_at(file, 0, &[3; 1200]).ok()?;
    fs.sync().ok()?;
    fs.write_at(file, 600, &[4; 20]).ok()?;
    fs.set_xattr(file, b"user.x", &[1; 200], XattrMode::Set).ok()?;
    fs.link(file, Ino::ROOT, b"link").ok()?;
    fs.symlink(Ino::ROOT, b"symlink", b"directory/file", FILE).ok()?;
    let holes = fs.create(Ino::ROOT, b"holes", FILE).ok()?;
    fs.write_at(holes, 5000, b"data").ok()?;
    fs.allocate(holes, Allocation::KeepSize, 0, 10_000).ok()?;
    fs.sync().ok()?;
    // An orphan, for which a mount finds a record.
    let gone = fs.create(Ino::ROOT, b"gone", FILE).ok()?;
    fs.write_at(gone, 0, &[7; 600]).ok()?;
    fs.open(gone).ok()?;
    fs.unlink(Ino::ROOT, b"gone").ok()?;
    fs.sync().ok()?;
    // Where there are tags, these have only them.
    if chip.geometry.tag_size > 0 {
        for page in [3, 4, 3, 9, 4, 10, 3, 9] {
            fs.write_at(file, 512 * page, &[5; 512]).ok()?;
            fs.sync().ok()?;
        }
    }
    if is_clean { fs.unmount().ok() } else { Some(fs.abandon()) }
}

fn pages_of(chip: Option<Sim>) -> Vec<Vec<u8>> {
    let Some(chip) = chip else { return Vec::new() };
    let geometry = chip.chip().geometry;
    let size = geometry.page_size + if geometry.tag_size > 0 { geometry.spare_size } else { 0 };
    (0..geometry.page_count()).map(|page| chip.peek(PageAddr(page))[..size as usize].to_vec()).collect()
}

static VOLUMES: LazyLock<[Vec<Vec<u8>>; 3]> =
    LazyLock::new(|| [volume(CHIP, true), volume(CHIP, false), volume(TAGGED, false)].map(pages_of));

/// Volumes with pages of each size, as if the power had gone.
static SIZED: LazyLock<[Vec<Vec<u8>>; PAGE_SIZES.len()]> =
    LazyLock::new(|| PAGE_SIZES.map(|page_size| pages_of(volume(sized(page_size), false))));

/// The pages of a volume, and the keys of its records.
type PagesAndKeys = [Vec<Vec<u8>>; 2];

/// Of volumes with pages of each size.
static RECORDS: LazyLock<Vec<Option<PagesAndKeys>>> = LazyLock::new(|| PAGE_SIZES.map(records).into());

fn records(page_size: u32) -> Option<PagesAndKeys> {
    let mut keys = Vec::new();
    let chip = edit(volume(sized(page_size), true)?, |tree| {
        let _ = tree.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |entry| {
            keys.push(entry.key.to_vec());
            ControlFlow::Continue(())
        });
    })?;
    Some([pages_of(Some(chip)), keys])
}

/// Damages the image of a file system as the bytes say (see [`damage`](super::targets::damage); the first byte chooses one of three, from
/// 192 on the one with tags, and from 128 to 159 one with pages of another size), and then mounts and uses it:
/// it may be refused and calls may fail, but nothing may panic or go on for long. Returns whether it could be mounted.
pub(crate) fn hostile_files(bytes: &[u8]) -> bool {
    let Some((&choice, changes)) = bytes.split_first() else { return false };
    let (chip, pages) = match choice {
        128..160 => {
            let size = choice as usize % PAGE_SIZES.len();
            (sized(PAGE_SIZES[size]), &SIZED[size])
        }
        192.. => (TAGGED, &VOLUMES[2]),
        _ => (CHIP, &VOLUMES[choice as usize % 2]),
    };
    use_it(chip_with(chip, &damage(pages, changes, chip.geometry.page_size as usize)))
}

fn chip_with(chip: Chip, pages: &[Vec<u8>]) -> Sim {
    let mut chip = Sim::new(chip);
    for block in 0..CHIP.geometry.block_count {
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

/// Puts records of any content into a sound tree, and then mounts and uses it, as [`hostile_files`] does. The first byte chooses the size
/// of pages, and the others are a list of records: one chooses an existing key, one a bit of it that is flipped if it is below its size, one
/// is the size of the value, in sixteenths of a page's share beyond 127, and then comes that, repeated as far as needed. So every parser of
/// the file system gets what the fuzzer likes.
pub(crate) fn hostile_records(bytes: &[u8]) -> bool {
    let Some((&choice, mut bytes)) = bytes.split_first() else { return false };
    let choice = usize::from(choice) % PAGE_SIZES.len();
    let Some([pages, keys]) = &RECORDS[choice] else { return false };
    let chip = edit(chip_with(sized(PAGE_SIZES[choice]), pages), |tree| {
        while let [choice, flip, size, rest @ ..] = bytes {
            let mut key = keys[usize::from(*choice) % keys.len()].clone();
            if let Some(byte) = key.get_mut(usize::from(*flip / 8)) {
                *byte ^= 1 << (flip % 8);
            }
            let (value, rest) = rest.split_at(usize::from(*size % 128).min(rest.len()));
            bytes = rest;
            // A value of some bytes that are repeated is as large as a record may be, or a part of that.
            let room = tree.entry_size_max().saturating_sub(key.len());
            let size_large = room * usize::from(*size % 128 % 16 + 1) / 16;
            let large: Vec<u8> = value.iter().copied().cycle().take(size_large).collect();
            let value = if *size > 127 { &large[..] } else { value };
            // A size of 255 takes the record away, and one that the tree does not take is its right.
            let _ = if *size == 255 { tree.delete(&key) } else { tree.put(&key, value) };
        }
    });
    chip.is_some_and(use_it)
}

/// Changes records behind the file system's back.
fn edit(chip: Sim, change: impl FnOnce(&mut Engine<'_, Sim, ByteCells>)) -> Option<Sim> {
    // It has fields besides where the tree is built for its own tests.
    let mut options = nandu_tree::Options::DEFAULT;
    options.log = OPTIONS.log;
    options.log.has_raw = true;
    options.cache_size = 512;
    options.pending_size = OPTIONS.pending_size;
    options.has_values = true;
    options.has_snapshots = true;
    let mut memory = vec![0; nandu_tree::memory_required::<Sim>(&chip.chip().geometry, &options)];
    let mut engine = Engine::unopened(Parts::new(chip, ByteCells, &options, &mut memory).ok()?);
    engine.begin(&options, Log::mount).ok()?;
    change(&mut engine);
    engine.merge().ok()?;
    engine.unmount().ok()
}

/// Does everything with whatever is there, and repairs it. Returns whether it could be mounted.
fn use_it(chip: Sim) -> bool {
    let mut memory = memory(*chip.chip());
    let before = chip.operation_count();
    let Ok(mut fs) = Fs::mount(chip, OPTIONS, &mut memory) else { return false };
    let _ = fs.verify(&mut [], &mut |_| ());
    let mut out = [0; 700];
    for ino in INODES.map(Ino) {
        let _ = fs.stat(ino);
        let _ = fs.open(ino);
        let _ = fs.read_at(ino, 300, &mut out);
        let _ = fs.read_link(ino, &mut out);
        let _ = fs.get_xattr(ino, b"user.x", &mut out);
        let _ = fs.list_xattrs(ino, |_| ());
        let _ = fs.read_dir(ino, 0, |_| ControlFlow::Continue(()));
        let _ = fs.lookup(ino, b"file");
        let _ = (fs.seek_data(ino, 0), fs.seek_hole(ino, 0));
        let _ = fs.write_at(ino, 500, &[9; 700]);
        let _ = fs.append(ino, &[8; 30]);
        let _ = fs.allocate(ino, Allocation::PunchHole, 10, 600);
        let _ = fs.allocate(ino, Allocation::ZeroKeepSize, 100, 900);
        let _ = fs.truncate(ino, 200);
        let _ = fs.set_xattr(ino, b"user.x", b"new", XattrMode::Set);
        let _ = fs.chmod(ino, 0o600);
        let _ = fs.create(ino, b"new", FILE);
        let _ = fs.mkdir(ino, b"new-directory", FILE);
        let _ = fs.link(Ino(65), ino, b"another");
        let _ = fs.close(ino);
        let _ = fs.sync();
    }
    for mode in [RenameMode::Exchange, RenameMode::Replace] {
        let _ = fs.rename(Ino(1), b"link", Ino(64), b"file", mode);
        let _ = fs.rename(Ino(1), b"directory", Ino(64), b"below", mode);
        let _ = fs.rename(Ino(1), b"directory", Ino(1), b"holes", mode);
    }
    for name in [&b"link"[..], b"symlink", b"holes"] {
        let _ = fs.remove_xattr(Ino(65), b"user.x");
        let _ = fs.unlink(Ino(1), name);
        let _ = fs.rmdir(Ino(1), name);
    }
    let _ = fs.idle(4);
    let repair = fs.repair(&mut [], &mut |_| ());
    let (mut in_tree, mut in_files) = (0, 0);
    let verify = fs.verify(&mut [], &mut |violation| match violation {
        nandu::fs::Violation::Fs { .. } => in_files += 1,
        _ => in_tree += 1,
    });
    // A tree that is damaged itself is beyond repair; a sound one is sound up to the top.
    if repair.is_ok() && verify.is_ok() && in_tree == 0 {
        assert_eq!(in_files, 0, "a repair left something");
    }
    for name in [&b"directory"[..], b"new", b"another"] {
        let _ = fs.unlink(Ino(1), name);
        let _ = fs.rmdir(Ino(1), name);
    }
    let _ = fs.idle(20);
    let count = fs.nand().operation_count() - before;
    assert!(count < OPERATIONS_MAX, "{count} operations");
    let _ = fs.unmount();
    true
}
