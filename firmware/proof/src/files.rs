//! Files: what a file system is asked, without and with power cuts.

use nandu::fs::{Attributes, Format, Fs, FsError, Ino, Options, RenameMode};
use nandu::nand::Nand;
use nandu_budget::host::say;
use nandu_budget::random::Random;
use nandu_budget::stack::Stack;

use crate::part::{self, Chip, ChipError};

const OPTIONS: Options = Options { open_max: 8, ..Options::DEFAULT };

/// Cuts of the file system's power.
const CUTS: u32 = if cfg!(feature = "short") { 24 } else { 120 };

/// Files while the power is cut.
const FILES: usize = 12;

/// Bytes of the largest file.
const SIZE_MAX: usize = 6_000;

/// The name under which a file is written before it takes the place of another.
const DRAFT: &[u8] = b"draft";

type Outcome<T> = Result<T, FsError<ChipError>>;

/// Uses a file system; what it says wrongly or loses is a panic.
pub(crate) fn prove(memory: &mut [u8]) {
    let chip = part::open();
    let required = Fs::<Chip>::memory_required(chip.geometry(), &OPTIONS);
    let memory = &mut memory[..required];
    let before = part::cut_count();
    let mut stack = Stack::new();
    calls(&mut stack, chip, memory);
    cuts(&mut stack, memory, before + CUTS);
    stack.report_of("files_");
    say(format_args!("files_memory {required}"));
    say(format_args!("files_struct {}", size_of::<Fs<'_, Chip>>()));
    say(format_args!("files_cuts {}", part::cut_count() - before));
}

/// The content of a version of a file, in a buffer.
fn content(file: usize, version: u32, buffer: &mut [u8; SIZE_MAX]) -> &[u8] {
    let size = 1 + (version as usize * 1_237 + file * 101) % (SIZE_MAX - 1);
    for (index, byte) in buffer[..size].iter_mut().enumerate() {
        *byte = (index / 64 + file * 7) as u8 ^ version as u8;
    }
    &buffer[..size]
}

/// Whether a file is there with this content, or not there.
fn is_at(fs: &mut Fs<'_, Chip>, name: &[u8], expected: Option<&[u8]>) -> bool {
    let ino = match fs.lookup(Ino::ROOT, name) {
        Ok(ino) => ino,
        Err(FsError::NotFound { .. }) => return expected.is_none(),
        Err(error) => panic!("lookup: {error}"),
    };
    let mut found = [0; SIZE_MAX];
    let size = fs.read_at(ino, 0, &mut found).expect("read");
    fs.stat(ino).expect("stat").size == size as u64 && expected == Some(&found[..size])
}

/// Every call once.
fn calls(stack: &mut Stack, chip: Chip, memory: &mut [u8]) {
    let mut fs =
        stack.open("format", || Fs::format(chip, OPTIONS, Format::default(), &mut *memory)).expect("a new file system");
    let mut buffer = [0; SIZE_MAX];
    let bytes = content(0, 4, &mut buffer);
    let directory = stack.call("mkdir", || fs.mkdir(Ino::ROOT, b"etc", Attributes::default())).expect("mkdir");
    let file = stack.call("create", || fs.create(directory, b"new", Attributes::default())).expect("create");
    let written = stack.call("write", || fs.write_at(file, 0, bytes)).expect("write");
    assert_eq!(written, bytes.len(), "bytes written");
    stack.call("fsync", || fs.fsync(file)).expect("fsync");
    let rename = |fs: &mut Fs<'_, Chip>| fs.rename(directory, b"new", Ino::ROOT, b"settings", RenameMode::Replace);
    stack.call("rename", || rename(&mut fs)).expect("rename");
    fs.create(directory, b"other", Attributes::default()).expect("create");
    stack.call("unlink", || fs.unlink(directory, b"other")).expect("unlink");
    assert!(is_at(&mut fs, b"settings", Some(bytes)), "the file is read back");
    drop(fs.unmount().expect("unmount"));

    let mut fs = stack.open("mount", || Fs::mount(part::open(), OPTIONS, memory)).expect("mount");
    assert!(is_at(&mut fs, b"settings", Some(bytes)), "the file is read back after a mount");
    let directory = fs.lookup(Ino::ROOT, b"etc").expect("lookup");
    for name in [&b"new"[..], b"other"] {
        assert!(matches!(fs.lookup(directory, name), Err(FsError::NotFound { .. })), "the name is gone");
    }
    drop(fs.unmount().expect("unmount"));
}

/// A change under way: a file and its next version, 0 if it goes.
#[derive(Clone, Copy)]
struct Change {
    file: usize,
    version: u32,
}

fn name(file: usize) -> [u8; 6] {
    let mut name = *b"file-a";
    name[5] += file as u8;
    name
}

fn cuts(stack: &mut Stack, memory: &mut [u8], end: u32) {
    let mut random = Random::new(2);
    let mut held = [0; FILES];
    let mut version = 0;
    let mut buffer = [0; SIZE_MAX];
    while part::cut_count() < end {
        let mut fs = stack.open("mount", || Fs::mount(part::open(), OPTIONS, &mut *memory)).expect("mount");
        part::cut_after(Some(random.below(60)));
        let mut change;
        let outcome = loop {
            version += 1;
            let is_removal = random.below(5) == 0;
            change =
                Change { file: random.below(FILES as u32) as usize, version: if is_removal { 0 } else { version } };
            let outcome = step(stack, &mut fs, change, &mut buffer);
            if outcome.is_err() || part::is_off() {
                break outcome;
            }
            held[change.file] = change.version;
        };
        match outcome {
            Ok(()) => held[change.file] = change.version,
            Err(error) => assert!(part::is_off(), "{error}"),
        }
        drop(fs.abandon());
        if random.below(3) == 0 {
            let chip = part::open();
            part::cut_after(Some(random.below(3)));
            // The power goes in the middle of the recovery, where that changes as much.
            if let Ok(fs) = stack.open("mount", || Fs::mount(chip, OPTIONS, &mut *memory)) {
                drop(fs.abandon());
            }
        }
        let mut fs = stack.open("mount", || Fs::mount(part::open(), OPTIONS, &mut *memory)).expect("mount");
        compare(&mut fs, &mut held, change, &mut buffer);
        drop(fs.abandon());
    }
}

/// A change by chance, which is durable when it returns: a file is replaced by another, or it goes.
fn step(stack: &mut Stack, fs: &mut Fs<'_, Chip>, change: Change, buffer: &mut [u8; SIZE_MAX]) -> Outcome<()> {
    let name = name(change.file);
    if change.version == 0 {
        return match stack.call("unlink", || fs.unlink(Ino::ROOT, &name)) {
            Err(FsError::NotFound { .. }) => Ok(()),
            outcome => outcome.and_then(|()| stack.call("sync", || fs.sync())),
        };
    }
    match fs.unlink(Ino::ROOT, DRAFT) {
        // A cut may have left one.
        Ok(()) | Err(FsError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let bytes = content(change.file, change.version, buffer);
    let draft = stack.call("create", || fs.create(Ino::ROOT, DRAFT, Attributes::default()))?;
    let written = stack.call("write", || fs.write_at(draft, 0, bytes))?;
    assert_eq!(written, bytes.len(), "bytes written");
    stack.call("fsync", || fs.fsync(draft))?;
    stack.call("rename", || fs.rename(Ino::ROOT, DRAFT, Ino::ROOT, &name, RenameMode::Replace))
}

/// Holds a file system against what was acknowledged. The last change is there wholly or not at all, and is known from then on.
fn compare(fs: &mut Fs<'_, Chip>, held: &mut [u32; FILES], change: Change, buffer: &mut [u8; SIZE_MAX]) {
    for (file, held) in held.iter_mut().enumerate() {
        let mut found = |version: u32| {
            let expected = if version == 0 { None } else { Some(content(file, version, buffer)) };
            is_at(fs, &name(file), expected)
        };
        if file == change.file && found(change.version) {
            *held = change.version;
            continue;
        }
        assert!(found(*held), "cut {}: file {file} is not at version {held}", part::cut_count());
    }
}
