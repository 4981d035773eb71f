//! Volumes of DFFS under the fuzzer: damaged images.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use nandu_dffs::{Changes, Dffs, Directory, Node, Options, Permissions};
use nandu_media::dffs::{self as media, Fields, Kind};
use nandu_nand::{BlockAddr, CellMode, Ecc, Geometry, Nand, PageAddr};
use nandu_sim::{Chip, Sim};

/// Small pages and blocks, and few of them.
const CHIP: Chip = Chip {
    name: "small",
    geometry: Geometry {
        page_size: 512,
        program_unit: 512,
        ecc: Ecc { codeword_size: 512, correctable_bits: 4 },
        ..Chip::TINY.with_blocks(48).geometry
    },
    ..Chip::TINY
};

const OPTIONS: Options = Options {
    directory_max: 48,
    checkpoint_interval: 20,
    open_files: 5,
    lag_max: 4,
    cache_pages: 4,
    ..Options::DEFAULT
};

const NEW: Permissions = Permissions { mode: 0o644, uid: 0, gid: 0 };

/// Operations on the chip that all calls together may take: an image that keeps the file system busy for longer has found a loop.
const OPERATIONS_MAX: u64 = 150_000;

/// Names in the volume, of a directory, of one in it, and of files; and one that is not there.
const NAMES: [&[u8]; 6] = [b"directory", b"below", b"file", b"n1", b"n9", b"none"];

/// A volume with chains, files that are behind, renamed ones, and collected blocks; left cleanly or as if the power had gone.
fn volume(is_clean: bool) -> Vec<Vec<u8>> {
    let chip = (|| {
        let mut memory = vec![0; Dffs::<Sim>::memory_required(&CHIP.geometry, &OPTIONS)];
        let mut fs = Dffs::format(Sim::new(CHIP), OPTIONS, &mut memory).ok()?;
        let root = fs.root();
        let directory = fs.mkdir(root, b"directory", NEW).ok()?;
        let below = fs.mkdir(directory, b"below", NEW).ok()?;
        let file = fs.create(below, b"file", NEW).ok()?;
        // Names enough for a chain of some pages.
        for number in 0..70 {
            let parent = if number < 50 { directory } else { root };
            let small = fs.create(parent, format!("n{number}").as_bytes(), NEW).ok()?;
            if number % 9 == 0 {
                fs.write(small, 0, &[number as u8; 700]).ok()?;
                fs.fsync(small).ok()?;
            }
        }
        for round in 0..40 {
            fs.write(file, round * 100, &[round as u8; 900]).ok()?;
            fs.fsync(file).ok()?;
        }
        for number in 0..12 {
            fs.unlink(directory, format!("n{}", number * 4).as_bytes()).ok()?;
        }
        fs.rename(below, b"file", root, b"file", true).ok()?;
        fs.rename(directory, b"below", root, b"below", true).ok()?;
        if is_clean { fs.unmount().ok() } else { Some(fs.abandon()) }
    })();
    let Some(chip) = chip else { return Vec::new() };
    let pages = (0..CHIP.geometry.page_count()).map(PageAddr);
    pages.map(|page| chip.peek(page)[..CHIP.geometry.page_size as usize].to_vec()).collect()
}

static VOLUMES: LazyLock<[Vec<Vec<u8>>; 2]> = LazyLock::new(|| [volume(true), volume(false)]);

/// Damages the image of a volume as the bytes say, and then mounts and uses it: it may be refused and calls may fail, but nothing may panic or
/// go on for long. Returns whether it could be mounted.
///
/// The first byte chooses one of two images. The others are changes: six bytes are one, a page (2), what to do with it, and three bytes of detail.
/// Most give the page the checksum of what it holds then.
pub(crate) fn hostile_dffs(bytes: &[u8]) -> bool {
    let Some((&choice, mut changes)) = bytes.split_first() else { return false };
    let originals = &VOLUMES[choice as usize % 2];
    let superblock = originals.iter().find_map(|page| media::SuperblockFields::read(page).ok());
    let volume = superblock.map_or(0, |superblock| superblock.volume);
    let mut pages = originals.clone();
    let used: Vec<usize> = (0..pages.len()).filter(|&page| pages[page].iter().any(|&byte| byte != 0xFF)).collect();
    while let [page_high, page_low, what, high, low, value, rest @ ..] = changes {
        changes = rest;
        // Mostly pages that hold something.
        let page = usize::from(*page_high) << 8 | usize::from(*page_low);
        let page = if what & 0x80 == 0 { used[page % used.len()] } else { page % pages.len() };
        let at = usize::from(*high) << 8 | usize::from(*low);
        let size = pages[page].len();
        match what % 16 {
            0 => pages[page] = originals[(at * 256 + usize::from(*value)) % originals.len()].clone(),
            1 => pages[page].fill(0xFF),
            2 => pages[page][at % size] ^= value,
            // A page that says that it belongs here.
            3 => {
                pages[page] = originals[used[(at * 256 + usize::from(*value)) % used.len()]].clone();
                reseal(&mut pages[page], volume, page);
            }
            // The front, links, and what leads on: a pointer, or bytes of a checkpoint.
            4..7 => change(&mut pages[page], at % media::ATTRIBUTES_SIZE, *value, volume, page),
            7..9 => change(&mut pages[page], media::PREVIOUS_AT + at % 8, *value, volume, page),
            9 => {
                // The address of a page that there is, or of a directory.
                let pointer = if *value & 1 == 0 { media::POINTER_BASE + (at as u32 % 300) } else { at as u32 % 30 };
                let bucket = media::FRONT_SIZE + usize::from(*value / 2) % 37 * 4;
                media::set_word(&mut pages[page], bucket, pointer);
                reseal(&mut pages[page], volume, page);
            }
            10 => change(&mut pages[page], media::ATTRIBUTES_SIZE + at % 100, *value, volume, page),
            _ => change(&mut pages[page], at % size, *value, volume, page),
        }
    }
    use_it(chip_with(&pages))
}

fn change(bytes: &mut [u8], at: usize, value: u8, volume: u32, page: usize) {
    bytes[at] = value;
    reseal(bytes, volume, page);
}

fn reseal(bytes: &mut [u8], volume: u32, page: usize) {
    let is_unsalted = matches!(Fields::read(bytes), Ok(Fields { kind: Kind::Superblock | Kind::Checkpoint, .. }));
    media::seal(bytes, if is_unsalted { 0 } else { volume }, page as u32);
}

fn chip_with(pages: &[Vec<u8>]) -> Sim {
    let mut chip = Sim::new(CHIP);
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

/// Does everything with whatever is there. Returns whether it could be mounted.
fn use_it(chip: Sim) -> bool {
    let mut memory = vec![0; Dffs::<Sim>::memory_required(&CHIP.geometry, &OPTIONS)];
    let mut last = chip.operation_count();
    let begun = last;
    let mut bounded = |fs: &Dffs<'_, Sim>, call: &str| {
        let now = fs.nand().operation_count();
        assert!(now - last < OPERATIONS_MAX / 4, "{call} took {} operations", now - last);
        last = now;
    };
    let Ok(mut fs) = Dffs::mount(chip, OPTIONS, &mut memory) else { return false };
    bounded(&fs, "mount");
    let _ = fs.verify(&mut |_| ());
    bounded(&fs, "verify");
    let mut nodes = vec![Node::Directory(fs.root())];
    let mut at = 0;
    // What can be reached; hostile directories may hold each other.
    while at < nodes.len().min(40) {
        if let Node::Directory(directory) = nodes[at] {
            let _ = fs.read_dir(directory, 0, &mut |entry| {
                if nodes.len() < 100 && !nodes.contains(&entry.node) {
                    nodes.push(entry.node);
                }
                ControlFlow::Continue(())
            });
            bounded(&fs, "read_dir");
        }
        at += 1;
    }
    let mut out = [0; 900];
    for &node in nodes.iter().take(30) {
        let _ = fs.stat(node);
        match node {
            Node::Directory(directory) => use_directory(&mut fs, directory),
            Node::File(file) => {
                let _ = fs.open(file);
                let _ = fs.read(file, 300, &mut out);
                let _ = fs.read(file, 40_000, &mut out);
                let _ = fs.write(file, 600, &[9; 700]);
                let _ = fs.truncate(file, 5000);
                let _ = fs.truncate(file, 200);
                let _ = fs.set_attributes(node, Changes { mode: Some(0o600), ..Changes::default() });
                let _ = fs.fsync(file);
                let _ = fs.close(file);
            }
        }
        bounded(&fs, "use");
    }
    // Enough for blocks to be collected.
    for round in 0..30_u64 {
        let name = format!("new{}", round % 5);
        let file = match fs.create(fs.root(), name.as_bytes(), NEW) {
            Ok(file) => Some(file),
            Err(_) => match fs.lookup(fs.root(), name.as_bytes()) {
                Ok(Node::File(file)) => Some(file),
                _ => None,
            },
        };
        if let Some(file) = file {
            let _ = fs.write(file, round * 50, &[1; 1500]);
            let _ = fs.close(file);
        }
        bounded(&fs, "write");
    }
    let _ = fs.sync();
    let _ = fs.verify(&mut |_| ());
    let _ = (fs.space(), fs.stats(), fs.blocks().count());
    let count = fs.nand().operation_count() - begun;
    assert!(count < OPERATIONS_MAX, "{count} operations");
    let Ok(chip) = fs.unmount() else { return true };
    let _ = Dffs::mount(chip, OPTIONS, &mut memory).is_ok();
    true
}

fn use_directory(fs: &mut Dffs<'_, Sim>, directory: Directory) {
    let root = fs.root();
    let _ = fs.parent(directory);
    for name in NAMES {
        let _ = fs.lookup(directory, name);
        let _ = fs.rename(directory, name, root, b"moved", true);
        let _ = fs.rename(root, b"moved", directory, name, false);
        let _ = fs.unlink(directory, name);
        let _ = fs.rmdir(directory, name);
        let _ = fs.mkdir(directory, name, NEW);
    }
    for number in 0..10 {
        let _ = fs.create(directory, format!("m{number}").as_bytes(), NEW);
    }
    let _ = fs.set_attributes(Node::Directory(directory), Changes { uid: Some(4), ..Changes::default() });
}
