//! File systems on the smallest chips that they take: short sequences of calls, after ACE, each cut everywhere.

use std::fmt;
use std::hash::{DefaultHasher, Hash};

use nandu::fs::{Format, Fs, LogOptions};
use nandu::nand::{Geometry, Nand};
use nandu_dffs::Dffs;
use nandu_files::errno::ENOSPC;
use nandu_files::{Allocation, FileSystem, Ino, RenameMode, SetAttributes, Time};
use nandu_sim::{Chip, Sim};
use nandu_suite::{Everything, Model, Op, Opened, Promise, ROOT, Slots, apply, everything};

use crate::system::{Ending, Played, System};

/// The time of all calls, so that what happened is told by nothing else.
const NOW: i64 = 1_000;

/// A call of a file system, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    at: usize,
    name: &'static str,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What is done where no operation is.
const UNMOUNT: &str = "unmount";

/// A file system that passes the suite, on a chip.
#[derive(Debug)]
pub struct Files<S> {
    name: &'static str,
    system: S,
    chip: Chip,
    ops: Vec<Op>,
    calls: Vec<Call>,
    /// Whether a mount keeps the promise of this project.
    promises_mounts: bool,
}

/// What is done to files, with a page of so many bytes.
fn ops(page_size: usize, lacks: impl Fn(&Op) -> bool) -> Vec<(&'static str, Op)> {
    let (a, b, d): (&'static [u8], &'static [u8], &'static [u8]) = (b"a", b"b", b"dd");
    let bytes = |byte: u8, size: usize| vec![byte; size];
    let all = vec![
        ("create-a", Op::Create(vec![a])),
        ("mkdir-d", Op::Mkdir(vec![d])),
        ("create-d/b", Op::Create(vec![d, b])),
        ("link-a-d/b", Op::Link(vec![a], vec![d, b])),
        ("rename-a-b", Op::Rename(vec![a], vec![b], RenameMode::Replace)),
        ("rename-a-d/b", Op::Rename(vec![a], vec![d, b], RenameMode::NoReplace)),
        ("exchange-a-b", Op::Rename(vec![a], vec![b], RenameMode::Exchange)),
        ("rename-d/b-a", Op::Rename(vec![d, b], vec![a], RenameMode::Replace)),
        ("unlink-a", Op::Unlink(vec![a])),
        ("unlink-d/b", Op::Unlink(vec![d, b])),
        ("rmdir-d", Op::Rmdir(vec![d])),
        ("write-a", Op::Write(vec![a], 0, bytes(1, page_size + 10))),
        ("overwrite-a", Op::Write(vec![a], 5, bytes(2, 20))),
        ("append-a", Op::Append(vec![a], bytes(3, 50))),
        ("append-b", Op::Append(vec![b], bytes(4, page_size))),
        ("page-b", Op::Write(vec![b], 0, bytes(6, page_size))),
        ("truncate-a", Op::Truncate(vec![a], 7)),
        ("punch-a", Op::Allocate(vec![a], Allocation::PunchHole, 3, page_size as u64)),
        ("xattr-a", Op::SetXattr(vec![a], b"user.x", bytes(5, 9))),
        ("fsync-a", Op::Fsync(vec![a])),
        ("fsync-b", Op::Fsync(vec![b])),
        ("fsync-root", Op::Fsync(vec![])),
        ("sync", Op::Sync),
        ("idle", Op::Idle),
    ];
    all.into_iter().filter(|(_, op)| !lacks(op)).collect()
}

impl<S: nandu_suite::System> Files<S> {
    /// The same with other options.
    pub fn with(mut self, change: impl FnOnce(&mut S)) -> Files<S> {
        change(&mut self.system);
        self
    }

    fn new(name: &'static str, system: S, chip: Chip, promises_mounts: bool) -> Files<S> {
        let capabilities = system.capabilities(chip);
        let lacks = |op: &Op| op.feature().is_some_and(|feature| !capabilities.has(feature));
        let (names, ops): (Vec<_>, Vec<_>) = ops(chip.geometry.page_size as usize, lacks).into_iter().unzip();
        let calls = names.into_iter().chain([UNMOUNT]).enumerate().map(|(at, name)| Call { at, name }).collect();
        Files { name, system, chip, ops, calls, promises_mounts }
    }

    /// The operation of a call; `None`: the unmount.
    fn op(&self, call: Call) -> Option<&Op> {
        self.ops.get(call.at)
    }
}

impl Files<Nandu> {
    /// nandu's own, with so many bytes for changes that wait.
    pub fn nandu(pending_size: usize) -> Files<Nandu> {
        let name = if pending_size == 0 { "files" } else { "files-wait" };
        Files::new(name, Nandu::new(pending_size, false), small(FILE_BLOCKS, 0), true)
    }

    /// The same with tags in protected spare bytes.
    pub fn tagged() -> Files<Nandu> {
        Files::new("files-tags", Nandu::new(600, true), small(FILE_BLOCKS, 16), true)
    }

    /// The same where commits are programmed twice, so that no page has a tag.
    pub fn twice() -> Files<Nandu> {
        let mut system = Nandu::new(600, true);
        system.0.log.commit_twice = true;
        Files::new("files-twice", system, small(FILE_BLOCKS, 16), true)
    }
}

impl Files<Published> {
    /// DFFS as its paper has it.
    pub fn dffs() -> Files<Published> {
        // A checkpoint has to fit a block.
        let mut chip = small(DFFS_BLOCKS, 0);
        chip.geometry.pages_per_block = 16;
        Files::new("dffs", Published(DFFS_OPTIONS), chip, false)
    }
}

/// Blocks of the chips.
const FILE_BLOCKS: u32 = 18;
const DFFS_BLOCKS: u32 = 32;

/// A small chip with pages of 512 bytes.
fn small(block_count: u32, tag_size: u32) -> Chip {
    let mut chip = crate::store::chip(8);
    chip.geometry.block_count = block_count;
    chip.geometry.tag_size = tag_size;
    if tag_size > 0 {
        chip.geometry.spare_size = 64;
    }
    chip
}

/// nandu's file system as the suite knows it.
#[derive(Clone, Copy, Debug)]
pub struct Nandu(pub nandu::fs::Options);

impl Nandu {
    fn new(pending_size: usize, has_tags: bool) -> Nandu {
        let default = nandu::fs::Options::DEFAULT;
        let log = LogOptions { has_tags, volume: Some(7), ..default.log };
        Nandu(nandu::fs::Options { log, cache_size: 1_024, pending_size, open_max: 2, ..default })
    }
}

impl nandu_suite::System for Nandu {
    type Mounted<'m, N: Nand + 'm> = Fs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Fs::<Sim>::memory_required(geometry, &self.0)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        Fs::format(chip, self.0, Format::default(), memory)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Fs<'m, N>> {
        Fs::mount(chip, self.0, memory)
    }
}

/// DFFS as the suite knows it.
#[derive(Clone, Copy, Debug)]
pub struct Published(pub nandu_dffs::Options);

const DFFS_OPTIONS: nandu_dffs::Options = nandu_dffs::Options {
    directory_max: 16,
    checkpoint_interval: 8,
    open_files: 3,
    lag_max: 2,
    cache_pages: 8,
    ..nandu_dffs::Options::DEFAULT
};

impl nandu_suite::System for Published {
    type Mounted<'m, N: Nand + 'm> = Dffs<'m, N>;

    fn memory_size(&self, geometry: &Geometry) -> usize {
        Dffs::<Sim>::memory_required(geometry, &self.0)
    }

    fn format<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Dffs<'m, N>> {
        let mut fs = Dffs::format(chip, self.0, memory)?;
        FileSystem::set_now(&mut fs, Time::from_seconds(ROOT.seconds));
        let (mode, uid, gid) = (Some(ROOT.mode), Some(ROOT.uid), Some(ROOT.gid));
        FileSystem::set_attributes(&mut fs, Ino::ROOT, SetAttributes { mode, uid, gid, ..SetAttributes::default() })?;
        Ok(fs)
    }

    fn mount<'m, N: Nand + 'm>(&self, chip: N, memory: &'m mut [u8]) -> Opened<Dffs<'m, N>> {
        Dffs::mount(chip, self.0, memory)
    }
}

/// What is owed of a file system: the model of what is there, and what may be found.
#[derive(Clone)]
pub struct Owed {
    model: Model,
    promise: Promise,
}

impl fmt::Debug for Owed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.model.everything().fmt(f)
    }
}

impl<S: nandu_suite::System + Sync> System for Files<S> {
    type Call = Call;
    type Content = Everything;
    type Owed = Owed;

    fn name(&self) -> &'static str {
        self.name
    }

    #[expect(clippy::expect_used, reason = "a chip without faults takes a file")]
    fn start(&self) -> Sim {
        let mut sim = self.system.formatted(self.chip);
        let mut memory = self.system.memory(&self.chip.geometry);
        let mut fs = self.system.mount(&mut sim, &mut memory).expect("it was formatted");
        fs.set_now(Time::from_seconds(NOW));
        for op in [Op::Create(vec![b"b"]), Op::Append(vec![b"b"], vec![9; 30])] {
            apply(&mut fs, &mut Slots::default(), &op).expect("there is room");
        }
        fs.unmount().expect("a chip without faults");
        sim
    }

    fn calls(&self) -> &[Call] {
        &self.calls
    }

    fn begin(&self, found: &Everything) -> Owed {
        let model = Model::of(found, self.system.capabilities(self.chip)).at(NOW);
        let mut promise = Promise::default();
        promise.begin(&model);
        Owed { model, promise }
    }

    fn under_way(&self, owed: &Owed, call: Call) -> Option<Owed> {
        let mut owed = owed.clone();
        if let Some(op) = self.op(call) {
            // What is refused by name is tested elsewhere.
            owed.model.apply(op).ok()?;
            owed.promise.may_be(&owed.model);
        }
        Some(owed)
    }

    fn done(&self, under_way: &Owed, call: Call) -> Owed {
        let mut owed = under_way.clone();
        match self.op(call) {
            Some(op) => owed.promise.is_done(op),
            None => {
                owed.model.remount();
                owed.promise.begin(&owed.model);
            }
        }
        owed
    }

    fn there(&self, owed: &Owed) -> Everything {
        owed.model.everything()
    }

    fn allows(&self, owed: &Owed, found: &Everything) -> bool {
        owed.promise.allows(found)
    }

    fn hash(&self, owed: &Owed, hash: &mut DefaultHasher) {
        format!("{:?}", owed.promise).hash(hash);
    }

    fn leaves(&self, call: Call) -> bool {
        self.op(call).is_none()
    }

    fn play(&self, chip: &mut Sim, calls: &[Call]) -> Played<Everything> {
        let mut memory = self.system.memory(&self.chip.geometry);
        let mounted = self.system.mount(&mut *chip, &mut memory);
        let failed = |number, error: String| Played {
            opened: number,
            begun: number,
            ending: Ending::Failed(error),
            content: None,
        };
        let mut fs = match mounted {
            Ok(fs) => fs,
            Err(error) => return failed(u64::MAX, error.to_string()),
        };
        let opened = fs.nand().operation_count();
        let (mut begun, mut ending, mut slots) = (opened, Ending::Done, Slots::default());
        for &call in calls {
            begun = fs.nand().operation_count();
            fs.set_now(Time::from_seconds(NOW));
            let Some(op) = self.op(call) else {
                return match fs.unmount() {
                    Ok(_) => Played { opened, begun, ending: Ending::Done, content: None },
                    Err(error) => failed(begun, error.to_string()),
                };
            };
            ending = match apply(&mut fs, &mut slots, op) {
                Ok(()) => Ending::Done,
                Err(error) if nandu_files::FileError::errno(&error) == ENOSPC && grows(op) => Ending::Refused,
                Err(error) => Ending::Failed(error.to_string()),
            };
        }
        let mut content = None;
        if matches!(ending, Ending::Done | Ending::Refused) {
            match everything(&mut fs) {
                Ok(found) => content = Some(found),
                Err(error) => ending = Ending::Failed(format!("read afterwards: {error}")),
            }
        }
        Played { opened, begun, ending, content }
    }

    fn look(&self, chip: &mut Sim) -> Result<Everything, String> {
        let before = chip.counters().reads;
        let mut memory = self.system.memory(&self.chip.geometry);
        let mut fs = self.system.mount(chip, &mut memory).map_err(|error| format!("mount: {error}"))?;
        let reads = fs.nand().counters().reads - before;
        if self.promises_mounts && reads > crate::MOUNT_READS_MAX {
            return Err(format!("the mount read {reads} pages"));
        }
        let mut violation = None;
        fs.check(&mut [], &mut |found| {
            violation.get_or_insert_with(|| found.to_string());
        })
        .map_err(|error| format!("check: {error}"))?;
        match violation {
            Some(violation) => Err(format!("check: {violation}")),
            None => everything(&mut fs).map_err(|error| format!("read: {error}")),
        }
    }

    fn has_headers(&self) -> bool {
        // Pages of files have none.
        false
    }
}

/// Whether an operation may be refused for room.
fn grows(op: &Op) -> bool {
    !matches!(op, Op::Unlink(_) | Op::Rmdir(_) | Op::Truncate(..) | Op::Fsync(_) | Op::Sync | Op::Idle)
}
