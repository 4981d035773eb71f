//! Images that `cargo xtask reader` holds the reader for boot loaders against: chips as sessions and power cuts leave them.
//!
//! `reader_images DIRECTORY LIVES SEED` writes, for each life, some images `KIND-SEED-NUMBER.img`. What the command line cannot print stands beside them: records of
//! integer maps in `.hex`, a line each, key and value, high byte of the key first; and what snapshots keep of files in `.NUMBER.sums`, a line for each file.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use nandu::fs::{Format, Fs, Options as FsOptions};
use nandu::{Durability, Map, Options, Store};
use nandu_files::{Capabilities, FileKind, Time};
use nandu_media::checksum::checksum;
use nandu_nand::{Geometry, Nand, Pairing, TearScope};
use nandu_sim::image::ImageFile;
use nandu_sim::{Fault, Sim, Trigger};
use nandu_suite::cuts::fixed;
use nandu_suite::{Chance, Op, Opened, Promise, ROOT, System, sized};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// What kinds of volumes there are, one life after the other.
const KINDS: [(&str, Life); 7] = [
    ("store", store),
    ("files", files),
    ("map", map),
    ("tags", tags),
    ("two-bits", two_bits),
    ("bulk", bulk),
    ("kept", kept),
];

type Life = fn(&mut Images, &mut Chance) -> Outcome;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, lives, seed] = words.as_slice() else {
        return Err("usage: reader_images DIRECTORY LIVES SEED".into());
    };
    fs::create_dir_all(directory)?;
    let (lives, first): (u64, u64) = (lives.parse()?, seed.parse()?);
    for seed in first..first + lives {
        for (kind, life) in KINDS {
            let mut images = Images { directory: Path::new(directory), life: format!("{kind}-{seed}"), count: 0 };
            life(&mut images, &mut Chance::new(seed)).map_err(|error| format!("{}: {error}", images.life))?;
        }
    }
    Ok(())
}

/// Where images go.
struct Images<'d> {
    directory: &'d Path,
    life: String,
    count: u32,
}

impl Images<'_> {
    /// Writes what the chip holds now; returns the path without its ending.
    fn keep(&mut self, chip: &Sim) -> Outcome<PathBuf> {
        let path = self.directory.join(format!("{}-{}", self.life, self.count));
        self.count += 1;
        // Whoever looks at it next must not meet what was to come.
        let mut chip = chip.clone();
        chip.power_on();
        chip.clear_cuts();
        ImageFile::replace(path.with_extension("img"), &mut chip)?;
        Ok(path)
    }
}

/// A chip of some page size, some of whose blocks are bad and some of whose programs fail.
fn chip(chance: &mut Chance, page_sizes: &[u32], blocks: u32, change: impl FnOnce(Geometry) -> Geometry) -> Sim {
    let mut chip = sized(page_sizes[chance.below(page_sizes.len())], blocks);
    if chip.geometry.page_size < 512 {
        chip.geometry.ecc.codeword_size = chip.geometry.page_size;
    }
    chip.geometry = change(chip.geometry);
    let percent = [0.0, 0.0, 2.0][chance.below(3)];
    let mut sim = Sim::with_seed(chip, chance.below(1 << 30) as u64).with_factory_bad(percent, false);
    if chance.below(4) == 0 {
        sim.inject(Fault::ProgramFails, Trigger::Nth(50 + chance.below(300) as u64));
    }
    sim
}

/// Gives power, and lets it go somewhere in what follows, or not.
fn begin(sim: &mut Sim, chance: &mut Chance, operations: usize) {
    sim.power_on();
    sim.clear_cuts();
    if chance.below(6) > 0 {
        // Recoveries are short, so that every third cut is soon.
        let operations = if chance.below(3) == 0 { 60 } else { operations };
        sim.cut_somehow_at(sim.operation_count() + chance.below(operations) as u64);
    }
}

const SESSIONS: usize = 7;

fn store(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let durability = if chance.below(3) == 0 { Durability::Immediate } else { Durability::OnSync };
    let options = Options {
        cache_size: 8192,
        durability,
        pending_size: [1000, 4000, 16_000][chance.below(3)],
        salt: chance.below(1000) as u64,
        ..Options::DEFAULT
    };
    let is_paired = chance.below(4) == 0;
    let mut sim = chip(chance, &[256, 512, 2048, 4096, 16_384], 48, |geometry| match is_paired {
        true => Geometry { pairing: Pairing::SchemeA, tear: TearScope::Pair, pages_per_block: 16, ..geometry },
        false => geometry,
    });
    let mut memory = vec![0; Store::<Sim>::memory_required(&sim.chip().geometry, &options)];
    sim = Store::format(sim, options, &mut memory)?.unmount()?;
    let keys = [30, 300, 3000][chance.below(3)];
    for _ in 0..SESSIONS {
        begin(&mut sim, chance, 400);
        // A session that is cut ends with an error.
        drop(store_session(&mut sim, options, &mut memory, chance, keys));
        images.keep(&sim)?;
    }
    Ok(())
}

fn store_session(sim: &mut Sim, options: Options, memory: &mut [u8], chance: &mut Chance, keys: usize) -> Outcome {
    let mut store = Store::open(sim, options, memory)?;
    let page_size = store.nand().geometry().page_size as usize;
    for _ in 0..chance.below(600) {
        let mut key = format!("{}/{:04}", ["a", "lamp", "sensor"][chance.below(3)], chance.below(keys)).into_bytes();
        if chance.below(8) == 0 {
            key = vec![key[key.len() - 1]; 1 + chance.below(store.key_size_max())];
        }
        let outcome = match chance.below(40) {
            0..28 => {
                let size_max = if chance.below(5) == 0 { page_size / 4 } else { 24 };
                let size = chance.below(size_max);
                store.put(&key, &chance.bytes(size)).map(drop)
            }
            28 => {
                // What looks like the head of a large value, and may be as long as one.
                let mut value = vec![0x7F, 0x48, 0xD6, 0x9B + chance.below(4) as u8];
                if chance.below(4) > 0 {
                    value.extend((chance.below(9 * page_size) as u32).to_le_bytes());
                    let size = 4 * chance.below(10) + [0, chance.below(97)][chance.below(2)];
                    value.extend(chance.bytes(size));
                }
                store.put(&key, &value).map(drop)
            }
            29 => {
                let size = chance.below(store.value_size_max(&key).min(12 * page_size));
                store.put(&key, &chance.bytes(size)).map(drop)
            }
            30..35 => store.delete(&key).map(drop),
            35..38 => store.sync(),
            38 if store.snapshots().len() < 4 && chance.below(4) == 0 => store.snapshot().map(drop),
            39 if chance.below(6) == 0 => match store.snapshots().next() {
                Some(snapshot) => store.release(snapshot),
                None => Ok(()),
            },
            _ => store.idle(4).map(drop),
        };
        // What does not fit is refused, and the session goes on.
        if store.nand().is_off() {
            outcome?;
        }
    }
    // What waits for a sync is lost where a session ends so.
    if chance.below(2) == 0 {
        if chance.below(3) == 0 {
            store.snapshot()?;
        }
        store.abandon();
        return Ok(());
    }
    store.unmount()?;
    Ok(())
}

fn map(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let durability = if chance.below(3) == 0 { Durability::Immediate } else { Durability::OnSync };
    // With little memory leaves ride with syncs.
    let pending_size = [500, 1500, 4000][chance.below(3)];
    let options = Options { cache_size: 8192, durability, pending_size, ..Options::DEFAULT };
    let mut sim = chip(chance, &[512, 2048, 4096], 48, |geometry| geometry);
    let mut memory = vec![0; Map::<Sim, u32, 4, u64, 8>::memory_required(&sim.chip().geometry, &options)];
    sim = Map::<Sim, u32, 4, u64, 8>::format(sim, options, &mut memory)?.unmount()?;
    let (base, step) = (chance.below(1 << 30) as u32, 1 << chance.below(14));
    for _ in 0..SESSIONS {
        begin(&mut sim, chance, 1500);
        drop(map_session(&mut sim, options, &mut memory, chance, base, step));
        let path = images.keep(&sim)?;
        let mut seen = sim.clone();
        seen.power_on();
        seen.clear_cuts();
        let mut lines = String::new();
        let mut open = Map::<&mut Sim, u32, 4, u64, 8>::open(&mut seen, options, &mut memory)?;
        open.range(.., |key, value| {
            writeln!(lines, "{key:08x} {value:016x}").unwrap_or_default();
        })?;
        fs::write(path.with_extension("hex"), lines)?;
    }
    Ok(())
}

fn map_session(
    sim: &mut Sim,
    options: Options,
    memory: &mut [u8],
    chance: &mut Chance,
    base: u32,
    step: u32,
) -> Outcome {
    let mut map = Map::<&mut Sim, u32, 4, u64, 8>::open(sim, options, memory)?;
    for _ in 0..chance.below(3000) {
        let key = base + step * chance.below(2000) as u32;
        let outcome = match chance.below(20) {
            0..15 => map.put(key, chance.below(usize::MAX) as u64).map(drop),
            15 => map.delete(key).map(drop),
            _ => map.sync(),
        };
        if map.nand().is_off() {
            outcome?;
        }
    }
    if chance.below(2) == 0 {
        map.abandon();
        return Ok(());
    }
    map.unmount()?;
    Ok(())
}

/// File systems of nandu, with these options on any chip.
#[derive(Clone, Copy)]
struct Files {
    options: FsOptions,
    both_modes: bool,
}

impl Files {
    fn options(&self, geometry: &Geometry) -> FsOptions {
        if self.both_modes { self.options.both_modes(geometry) } else { self.options }
    }
}

impl System for Files {
    type Mounted<'m, N: Nand + 'm> = Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Fs::<Sim>::memory_required(geometry, &self.options(geometry))
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        let options = self.options(chip.geometry());
        let now = Time { seconds: ROOT.seconds, nanoseconds: 0 };
        let format = Format { hash_key: [3; 16], root_mode: ROOT.mode, uid: ROOT.uid, gid: ROOT.gid, now };
        Fs::format(chip, options, format, memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        let options = self.options(chip.geometry());
        Fs::mount(chip, options, memory)
    }
}

/// Uses a new file system on a chip, in sessions of some operations of the chip, and keeps what each leaves; what its snapshots keep stands beside it.
fn sessions(
    images: &mut Images<'_>,
    chance: &mut Chance,
    (sim, system, operations): (Sim, Files, usize),
    session: impl Fn(&mut Fs<'_, &mut Sim>, &mut Chance, usize) -> Outcome,
) -> Outcome {
    let mut memory = system.memory(&sim.chip().geometry);
    let mut sim = system.format(sim, &mut memory)?.unmount()?;
    for number in 0..SESSIONS {
        begin(&mut sim, chance, operations);
        // A session that is cut ends with an error.
        drop(mounted(system.mount(&mut sim, &mut memory), chance, |fs, chance| session(fs, chance, number)));
        let path = images.keep(&sim)?;
        let mut seen = sim.clone();
        seen.power_on();
        seen.clear_cuts();
        let numbers: Vec<u32> = system.mount(&mut seen, &mut memory)?.snapshots().collect();
        for number in numbers {
            let options = FsOptions { snapshot: Some(number), ..system.options };
            let mut fs = Fs::mount(&mut seen, options, &mut memory)?;
            let mut lines = String::new();
            sums(&mut fs, nandu::fs::Ino::ROOT, "", &mut lines)?;
            fs::write(path.with_extension(format!("{number}.sums")), lines)?;
        }
    }
    Ok(())
}

/// Uses a file system, and unmounts it or not.
fn mounted(
    fs: Opened<Fs<'_, &mut Sim>>,
    chance: &mut Chance,
    session: impl FnOnce(&mut Fs<'_, &mut Sim>, &mut Chance) -> Outcome,
) -> Outcome {
    let mut fs = fs?;
    session(&mut fs, chance)?;
    if chance.below(2) == 0 {
        fs.abandon();
    } else {
        fs.unmount()?;
    }
    Ok(())
}

/// So many operations, but for attributes, of which some are not anybody's to set on the machine to which they are exported.
fn operations(chance: &mut Chance, count: usize, page_size: usize, capabilities: &Capabilities) -> Vec<Op> {
    let is_wanted = |op: &Op| {
        !matches!(op, Op::SetXattr(..) | Op::SetBoth(..) | Op::CreateWith(..) | Op::MkdirWith(..) | Op::Set(..))
    };
    std::iter::repeat_with(|| chance.op(page_size, capabilities)).filter(is_wanted).take(count).collect()
}

fn files_life(images: &mut Images<'_>, chance: &mut Chance, mut sim: Sim, both_modes: bool) -> Outcome {
    let pending_size = [3000, 8000, 30_000][chance.below(3)];
    let system = Files { options: FsOptions { pending_size, ..FsOptions::DEFAULT }, both_modes };
    let mut memory = system.memory(&sim.chip().geometry);
    sim = system.format(sim, &mut memory)?.unmount()?;
    let capabilities = system.capabilities(*sim.chip());
    let mut promise = Promise::default();
    for _ in 0..SESSIONS {
        begin(&mut sim, chance, 400);
        let count = 20 + chance.below(200);
        let ops = operations(chance, count, sim.chip().geometry.page_size as usize, &capabilities);
        promise.count = 0;
        drop(fixed(system, ops)(&mut sim, &mut promise));
        images.keep(&sim)?;
    }
    Ok(())
}

fn files(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let sim = chip(chance, &[512, 2048, 4096, 8192, 16_384], 96, |geometry| geometry);
    files_life(images, chance, sim, false)
}

fn tags(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let sim = chip(chance, &[512, 2048, 4096], 96, |geometry| Geometry { spare_size: 64, tag_size: 16, ..geometry });
    let system = Files { options: FsOptions { pending_size: 8000, ..FsOptions::DEFAULT }, both_modes: false };
    if chance.below(3) == 0 {
        return files_life(images, chance, sim, false);
    }
    // Writes that are synced one by one, which are what tags are for.
    sessions(images, chance, (sim, system, 150), |fs, chance, _| tagged_session(fs, chance))
}

fn tagged_session(fs: &mut Fs<'_, &mut Sim>, chance: &mut Chance) -> Outcome {
    let page_size = fs.nand().geometry().page_size as usize;
    let root = nandu::fs::Ino::ROOT;
    for now in 0..chance.below(120) {
        fs.set_now(Time { seconds: 1_700_000_000 + now as i64, nanoseconds: 123_000_000 });
        let name = [b'f', b'0' + chance.below(4) as u8];
        let outcome = match fs.lookup(root, &name) {
            Ok(ino) => {
                let page = chance.below(12) * page_size;
                let (offset, size) = match chance.below(12) {
                    0 => (page + chance.below(page_size), chance.below(100)),
                    1 => (page, chance.below(page_size)),
                    2 => (page, 3 * page_size),
                    _ => (page, page_size),
                };
                fs.write_at(ino, offset as u64, &chance.bytes(size)).and_then(|_| match chance.below(8) {
                    0 => Ok(()),
                    _ => fs.fsync(ino),
                })
            }
            Err(_) => fs.create(root, &name, nandu::fs::Attributes::FILE).map(drop),
        };
        if fs.nand().is_off() {
            outcome?;
        }
    }
    Ok(())
}

/// Files of many pages between two syncs, so that what says whose pages they are has no room in other commits.
fn bulk(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let sim = chip(chance, &[512, 1024, 2048], 128, |geometry| Geometry { pages_per_block: 32, ..geometry });
    let pending_size = [1000, 4000][chance.below(2)];
    let system = Files { options: FsOptions { pending_size, ..FsOptions::DEFAULT }, both_modes: false };
    sessions(images, chance, (sim, system, 1000), |fs, chance, _| bulk_session(fs, chance))
}

fn bulk_session(fs: &mut Fs<'_, &mut Sim>, chance: &mut Chance) -> Outcome {
    let page_size = fs.nand().geometry().page_size as usize;
    let root = nandu::fs::Ino::ROOT;
    for now in 0..chance.below(60) {
        fs.set_now(Time { seconds: 1_600_000_000 + now as i64, nanoseconds: 7 });
        let name = format!("file-{}", chance.below(40));
        let outcome = match fs.lookup(root, name.as_bytes()) {
            Ok(ino) => {
                let (page, pages) = (chance.below(40), 1 + chance.below(40));
                let size = pages * page_size + chance.below(2) * 100;
                let bytes = chance.bytes(size);
                fs.write_at(ino, (page * page_size) as u64, &bytes).and_then(|_| match chance.below(3) {
                    0 => fs.sync(),
                    1 => fs.truncate(ino, (chance.below(60) * page_size + 17) as u64),
                    _ => Ok(()),
                })
            }
            Err(_) => fs.create(root, name.as_bytes(), nandu::fs::Attributes::FILE).map(drop),
        };
        if fs.nand().is_off() {
            outcome?;
        }
    }
    Ok(())
}

fn two_bits(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let pairing = if chance.below(3) == 0 { Pairing::Dist3 } else { Pairing::SchemeA };
    let sim = chip(chance, &[2048, 4096], 96, |geometry| Geometry {
        pairing,
        tear: TearScope::Pair,
        pages_per_block: 16,
        ..geometry
    });
    if chance.below(3) == 0 {
        return files_life(images, chance, sim, true);
    }
    let system = Files { options: FsOptions { pending_size: 8000, ..FsOptions::DEFAULT }, both_modes: true };
    sessions(images, chance, (sim, system, 600), two_bits_session)
}

/// Requests with pauses, in which pages move to two bits a cell.
fn two_bits_session(fs: &mut Fs<'_, &mut Sim>, chance: &mut Chance, number: usize) -> Outcome {
    let page_size = fs.nand().geometry().page_size as usize;
    let mut seconds = 1_500_000_000 + 100_000 * number as i64;
    let root = nandu::fs::Ino::ROOT;
    for _ in 0..chance.below(60) {
        let now = |seconds| Time { seconds, nanoseconds: 5_000_000 };
        fs.request_begin(now(seconds))?;
        let name = format!("file-{}", chance.below(12));
        let outcome = match fs.lookup(root, name.as_bytes()) {
            Ok(ino) => {
                let (page, size) = (chance.below(30), (1 + chance.below(20)) * page_size - chance.below(2) * 99);
                let bytes = chance.bytes(size);
                fs.write_at(ino, (page * page_size) as u64, &bytes).and_then(|_| match chance.below(2) {
                    0 => fs.fsync(ino),
                    _ => Ok(()),
                })
            }
            Err(_) => fs.create(root, name.as_bytes(), nandu::fs::Attributes::FILE).map(drop),
        };
        fs.request_end(now(seconds));
        if fs.nand().is_off() {
            outcome?;
        }
        seconds += 1;
        for _ in 0..chance.below(40) {
            seconds = fs.step_due().map_or(seconds, |due| seconds.max(due.seconds + 1));
            if !fs.step(now(seconds))? {
                break;
            }
        }
    }
    Ok(())
}

/// Files of which snapshots are taken and released.
fn kept(images: &mut Images<'_>, chance: &mut Chance) -> Outcome {
    let sim = chip(chance, &[512, 2048, 4096], 96, |geometry| geometry);
    let system = Files { options: FsOptions { pending_size: 8000, ..FsOptions::DEFAULT }, both_modes: false };
    sessions(images, chance, (sim, system, 400), |fs, chance, _| kept_session(fs, chance))
}

fn kept_session(fs: &mut Fs<'_, &mut Sim>, chance: &mut Chance) -> Outcome {
    let page_size = fs.nand().geometry().page_size as usize;
    let root = nandu::fs::Ino::ROOT;
    for now in 0..chance.below(120) {
        fs.set_now(Time { seconds: 1_400_000_000 + now as i64, nanoseconds: 9 });
        let name = format!("file-{}", chance.below(20));
        let directory = match chance.below(3) {
            0 => fs.lookup(root, b"directory").unwrap_or(root),
            _ => root,
        };
        let outcome = match (fs.lookup(directory, name.as_bytes()), chance.below(24)) {
            (_, 0) if fs.snapshots().len() < 4 => fs.snapshot().map(drop),
            (_, 1) => {
                let number = fs.snapshots().nth(chance.below(4));
                number.map_or(Ok(()), |number| fs.release_snapshot(number))
            }
            (_, 2) => fs.mkdir(root, b"directory", nandu::fs::Attributes::DIRECTORY).map(drop),
            (_, 3) => fs.symlink(directory, name.as_bytes(), b"../target", nandu::fs::Attributes::FILE).map(drop),
            (_, 4 | 5) => fs.sync(),
            (_, 6) => fs.idle(4).map(drop),
            (Ok(_), 7 | 8) => fs.unlink(directory, name.as_bytes()),
            (Ok(ino), 9 | 10) => fs.truncate(ino, (chance.below(9) * page_size + chance.below(page_size)) as u64),
            (Ok(ino), 11..16) => {
                let at = chance.below(8 * page_size) as u64;
                let size = chance.below(200);
                fs.write_at(ino, at, &chance.bytes(size)).and_then(|_| fs.fsync(ino))
            }
            (Ok(ino), _) => {
                let (page, size) = (chance.below(8), (1 + chance.below(3)) * page_size - chance.below(2) * 99);
                fs.write_at(ino, (page * page_size) as u64, &chance.bytes(size)).map(drop)
            }
            (Err(_), _) => fs.create(directory, name.as_bytes(), nandu::fs::Attributes::FILE).map(drop),
        };
        if fs.nand().is_off() {
            outcome?;
        }
    }
    Ok(())
}

/// A line for each file below a directory, in the order of listings: path, mode, size, time of change, and the CRC-32C of its content.
fn sums<N: Nand>(fs: &mut Fs<'_, N>, directory: nandu::fs::Ino, path: &str, lines: &mut String) -> Outcome {
    let mut entries = Vec::new();
    fs.read_dir(directory, 2, |entry| {
        entries.push((String::from_utf8_lossy(entry.name).into_owned(), entry.ino));
        ControlFlow::Continue(())
    })
    .map_err(|error| error.to_string())?;
    for (name, ino) in entries {
        let path = format!("{path}/{name}");
        let stat = fs.stat(ino).map_err(|error| error.to_string())?;
        let mut bytes = vec![0; stat.size as usize];
        let size = match stat.kind {
            FileKind::File => fs.read_at(ino, 0, &mut bytes).map_err(|error| error.to_string())?,
            FileKind::Symlink => fs.read_link(ino, &mut bytes).map_err(|error| error.to_string())?,
            _ => 0,
        };
        let (sum, Time { seconds, nanoseconds }) = (checksum(&bytes[..size]), stat.mtime);
        writeln!(lines, "{path} {:o} {} {seconds}.{nanoseconds:09} {sum:08x}", stat.mode, stat.size)?;
        if stat.kind == FileKind::Directory {
            sums(fs, ino, &path, lines)?;
        }
    }
    Ok(())
}
