//! File systems: what they are asked in the profiles with files.

use nandu::nand::{Geometry, NandErrorKind};

use crate::CACHE_SIZE;
use crate::chip::{Chip, Emulated};
use crate::random::Random;
use crate::stack::Stack;
use nandu::fs::{Attributes, Format, Fs, FsError, Ino, Options, RenameMode};

/// Choices of a file system without tags.
pub const OPTIONS: Options = Options {
    log: nandu::fs::LogOptions { has_tags: false, ..Options::DEFAULT.log },
    cache_size: CACHE_SIZE,
    pending_size: crate::PENDING_SIZE,
    open_max: 4,
    ..Options::DEFAULT
};

/// What the calls of a file system return.
pub type Outcome<T> = Result<T, FsError<NandErrorKind>>;

/// Lives that a file system is led through, each with other numbers.
const LIVES: u64 = 3;

/// Times that the power goes in a life.
const CUTS: u32 = 8;

/// Blocks of the part in these lives.
const BLOCK_COUNT: u32 = 32;

/// Measures the stack of every call, over lives with cuts, failures and full chips, and last on the whole part.
pub fn measure(stack: &mut Stack, whole: Geometry, options: Options, memory: &mut [u8]) {
    let few = Geometry { block_count: BLOCK_COUNT, bad_block_max: 4, ..whole };
    for seed in 0..LIVES {
        let mut random = Random::new(seed);
        format(few, options, memory);
        for _ in 0..CUTS {
            let chip = Emulated::on(few);
            let mut place = None;
            stack.open("mount", || Fs::mount_in(&mut place, chip, options, &mut *memory)).expect("mount");
            let fs = place.as_mut().expect("mounted");
            Emulated::cut_after(100 + random.below(300));
            if random.below(4) == 0 {
                Emulated::fail_after(random.below(100));
            }
            while !Emulated::is_dead() {
                allow(step(stack, fs, &mut random));
            }
            drop(place);
            // The next one is cut in the middle of its recovery.
            let chip = Emulated::on(few);
            Emulated::cut_after(random.below(4));
            let mut place = None;
            let _ = stack.open("mount", || Fs::mount_in(&mut place, chip, options, &mut *memory));
        }
    }
    format(whole, options, memory);
    let mut place = None;
    stack.open("mount", || Fs::mount_in(&mut place, Emulated::on(whole), options, &mut *memory)).expect("mount");
    let fs = place.as_mut().expect("mounted");
    let mut random = Random::new(LIVES);
    for _ in 0..500 {
        allow(step(stack, fs, &mut random));
    }
    place = None;
    stack.open("mount", || Fs::mount_in(&mut place, Emulated::on(whole), options, memory)).expect("mount");
}

fn format(geometry: Geometry, options: Options, memory: &mut [u8]) {
    let mut place = None;
    Fs::format_in(&mut place, Emulated::erased(geometry), options, &Format::default(), memory).expect("format");
    Fs::unmount_in(&mut place).expect("unmount");
}

/// What a call may say in such a life.
fn allow(outcome: Outcome<()>) {
    match outcome {
        Ok(())
        | Err(
            FsError::Full
            | FsError::NotFound { .. }
            | FsError::Exists { .. }
            | FsError::NotFile(_)
            | FsError::IsDirectory(_)
            | FsError::NotDirectory(_)
            | FsError::TooManyOpen { .. },
        ) => {}
        Err(error) => assert!(Emulated::is_dead(), "{error}"),
    }
}

/// A name of one of 60 files, some of them long.
fn name(number: u32, buffer: &mut [u8; 120]) -> &[u8] {
    buffer.fill(b'a' + (number % 20) as u8);
    &buffer[..1 + number as usize / 20 * 50]
}

/// A call by chance.
fn step(stack: &mut Stack, fs: &mut Fs<'_, Chip>, random: &mut Random) -> Outcome<()> {
    let mut bytes = [0; 120];
    let name_of_file = name(random.below(60), &mut bytes);
    let content = [0x5a; 5_000];
    let size = [100, 2_048, 5_000][random.below(3) as usize];
    let offset = u64::from(random.below(40)) * 1_000;
    if random.below(5) == 0 {
        return stack.call("create", || fs.create(Ino::ROOT, name_of_file, Attributes::default())).map(drop);
    }
    let file = stack.call("lookup", || fs.lookup(Ino::ROOT, name_of_file))?;
    match random.below(20) {
        0..7 => stack.call("write", || fs.write_at(file, offset, &content[..size])).map(drop),
        7..10 => stack.call("fsync", || fs.fsync(file)),
        10..12 => {
            let mut content = [0; 3_000];
            stack.call("read", || fs.read_at(file, offset, &mut content)).map(drop)
        }
        12..15 => {
            let mut bytes = [0; 120];
            let other = name(random.below(60), &mut bytes);
            stack.call("rename", || fs.rename(Ino::ROOT, name_of_file, Ino::ROOT, other, RenameMode::Replace))
        }
        15..18 => stack.call("unlink", || fs.unlink(Ino::ROOT, name_of_file)),
        #[cfg(feature = "all")]
        _ => every(stack, fs, random, file),
        #[cfg(not(feature = "all"))]
        _ => Ok(()),
    }
}

/// A call that the smallest profile with files does not have.
#[cfg(feature = "all")]
fn every(stack: &mut Stack, fs: &mut Fs<'_, Chip>, random: &mut Random, file: Ino) -> Outcome<()> {
    use core::ops::ControlFlow;

    use nandu::fs::{Allocation, SetAttributes, XattrMode};

    let offset = u64::from(random.below(40)) * 1_000;
    let mut buffer = [0; 64];
    match random.below(14) {
        0 => {
            stack.call("open", || fs.open(file))?;
            stack.call("close", || fs.close(file))
        }
        1 => stack.call("append", || fs.append(file, &[1; 300])).map(drop),
        2 => stack.call("allocate", || fs.allocate(file, Allocation::PunchHole, offset, 3_000)),
        3 => stack.call("truncate", || fs.truncate(file, offset)),
        4 => {
            let set = SetAttributes { mode: Some(0o600), ..SetAttributes::default() };
            stack.call("set_attributes", || fs.set_attributes(file, set)).map(drop)
        }
        5 => stack.call("set_xattr", || fs.set_xattr(file, b"user.a", &[1; 40], XattrMode::Set)),
        6 => match stack.call("get_xattr", || fs.get_xattr(file, b"user.a", &mut buffer)) {
            Err(FsError::NoXattr(_)) => Ok(()),
            outcome => outcome.map(drop),
        },
        7 => stack.call("link", || fs.link(file, Ino::ROOT, b"link")),
        8 => stack.call("symlink", || fs.symlink(Ino::ROOT, b"symlink", b"a/b", Attributes::default())).map(drop),
        9 => stack.call("mkdir", || fs.mkdir(Ino::ROOT, b"directory", Attributes::default())).map(drop),
        10 => stack.call("rmdir", || fs.rmdir(Ino::ROOT, b"directory")),
        11 => stack.call("read_dir", || fs.read_dir(Ino::ROOT, 0, |_| ControlFlow::Continue(()))).map(drop),
        12 => stack.call("unlink", || fs.unlink(Ino::ROOT, b"link")),
        _ => stack.call("idle", || fs.idle(8)).map(drop),
    }
}
