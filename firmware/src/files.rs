//! Files and directories: everything that the file system can do.

use core::ops::ControlFlow;

use nandu::nand::NandErrorKind;
use nandu_files::FileSystem;
use nandu_fs::{Allocation, Attributes, Format, Fs, FsError, Ino, Options, RenameMode, SetAttributes, Time, XattrMode};

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};

const MEMORY_SIZE: usize = 32 * 1024;

const OPTIONS: Options = Options { cache_size: 1024, ..Options::DEFAULT };

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    files(&mut memory, number).unwrap_or(0)
}

fn files(memory: &mut [u8], number: u32) -> Result<u32, FsError<NandErrorKind>> {
    let mut fs = match number & 1 {
        0 => Fs::format(SpiNand::new(ONE_BIT, Pins), OPTIONS, Format::default(), memory)?,
        _ => Fs::mount(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
    };
    fs.set_now(Time::from_seconds(i64::from(number)));
    let directory = fs.mkdir(Ino::ROOT, b"directory", Attributes::default())?;
    let file = fs.create(directory, b"file", Attributes::default())?;
    fs.open(file)?;
    fs.write_at(file, u64::from(number), b"content")?;
    fs.append(file, b"more")?;
    fs.allocate(file, Allocation::PunchHole, 0, 3)?;
    fs.truncate(file, 5)?;
    fs.set_attributes(file, SetAttributes { mode: Some(0o600), ..SetAttributes::default() })?;
    fs.set_xattr(file, b"user.number", &number.to_be_bytes(), XattrMode::Set)?;
    fs.link(file, Ino::ROOT, b"link")?;
    fs.symlink(Ino::ROOT, b"symlink", b"directory/file", Attributes::default())?;
    fs.rename(directory, b"file", Ino::ROOT, b"moved", RenameMode::Replace)?;
    let mut sum = 0;
    fs.read_dir(Ino::ROOT, 0, |entry| {
        sum += entry.name.len() as u32;
        ControlFlow::Continue(())
    })?;
    let mut content = [0; 16];
    sum += fs.read_at(file, 0, &mut content)? as u32 + fs.stat(file)?.nlink;
    sum += fs.get_xattr(file, b"user.number", &mut content)? as u32;
    fs.unlink(Ino::ROOT, b"moved")?;
    fs.rmdir(Ino::ROOT, b"directory")?;
    fs.close(file)?;
    fs.idle(1)?;
    sum += fs.capabilities().name_size_max;
    fs.unmount()?;
    Ok(sum)
}
