//! The calls of a file system.

use nandu::fs::{Attributes, Fs, Ino, Options, RenameMode};
use nandu::nand::Geometry;
use nandu_budget::files::{OPTIONS, Outcome};
use nandu_firmware_driver::{Pins, SpiNand};

const MEMORY_SIZE: usize = 40 * 1024;

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    let (geometry, options) = volume(number);
    files(&mut memory, number, geometry, options).unwrap_or(0)
}

#[cfg(feature = "files")]
fn volume(_: u32) -> (Geometry, Options) {
    (nandu_firmware_driver::ONE_BIT, OPTIONS)
}

#[cfg(feature = "all")]
fn volume(number: u32) -> (Geometry, Options) {
    use nandu_firmware_driver::{TAGGED, TWO_BITS};
    let tagged = Options { log: nandu::fs::LogOptions { has_tags: true, ..OPTIONS.log }, ..OPTIONS };
    if number & 1 == 0 { (TAGGED, tagged) } else { (TWO_BITS, tagged.both_modes(&TWO_BITS)) }
}

fn files(memory: &mut [u8], number: u32, geometry: Geometry, options: Options) -> Outcome<u32> {
    let mut place = None;
    Fs::mount_in(&mut place, SpiNand::new(geometry, Pins), options, memory)?;
    let Some(fs) = &mut place else { return Ok(0) };
    let mut content = [0; 64];
    let file = fs.create(Ino::ROOT, b"file", Attributes::default())?;
    fs.write_at(file, u64::from(number), &content)?;
    fs.fsync(file)?;
    fs.rename(Ino::ROOT, b"file", Ino::ROOT, b"moved", RenameMode::Replace)?;
    let file = fs.lookup(Ino::ROOT, b"moved")?;
    let count = fs.read_at(file, 0, &mut content)? as u32;
    fs.unlink(Ino::ROOT, b"moved")?;
    #[cfg(feature = "all")]
    let count = count + every(fs, number)?;
    #[cfg(feature = "all")]
    again(&mut place)?;
    Ok(count)
}

/// What the smallest profile with files does not have.
#[cfg(feature = "all")]
fn every(fs: &mut Fs<'_, SpiNand<Pins>>, number: u32) -> Outcome<u32> {
    use core::ops::ControlFlow;

    use nandu::fs::{Allocation, SetAttributes, Time, XattrMode};

    fs.set_now(Time::from_seconds(i64::from(number)));
    let directory = fs.mkdir(Ino::ROOT, b"directory", Attributes::default())?;
    let file = fs.create(directory, b"file", Attributes::default())?;
    fs.open(file)?;
    fs.append(file, b"more")?;
    fs.allocate(file, Allocation::PunchHole, 0, 3)?;
    fs.truncate(file, 5)?;
    fs.set_attributes(file, SetAttributes { mode: Some(0o600), ..SetAttributes::default() })?;
    fs.set_xattr(file, b"user.number", &number.to_be_bytes(), XattrMode::Set)?;
    fs.link(file, Ino::ROOT, b"link")?;
    fs.symlink(Ino::ROOT, b"symlink", b"directory/file", Attributes::default())?;
    let mut sum = fs.stat(file)?.nlink;
    fs.read_dir(Ino::ROOT, 0, |entry| {
        sum += entry.name.len() as u32;
        ControlFlow::Continue(())
    })?;
    let mut content = [0; 16];
    sum += fs.get_xattr(file, b"user.number", &mut content)? as u32;
    fs.rmdir(Ino::ROOT, b"directory")?;
    fs.close(file)?;
    fs.sync()?;
    fs.idle(1)?;
    Ok(sum)
}

/// Ends a file system and begins one.
#[cfg(feature = "all")]
fn again(place: &mut Option<Fs<'_, SpiNand<Pins>>>) -> Outcome<()> {
    use nandu::fs::Format;
    use nandu_firmware_driver::TAGGED;

    Fs::unmount_in(place)?;
    let mut memory = [0; MEMORY_SIZE];
    let mut place = None;
    Fs::format_in(&mut place, SpiNand::new(TAGGED, Pins), OPTIONS, &Format::default(), &mut memory)?;
    Fs::unmount_in(&mut place)
}
