//! DFFS: everything it can do, through its trait and beside it.

use core::ops::ControlFlow;

use nandu_dffs::{Changes, Dffs, Error, Node, Options, Permissions};
use nandu_nand::NandErrorKind;

use nandu_firmware_driver::{ONE_BIT, Pins, SpiNand};

/// Enough for the options below; the exact number depends on the part.
const MEMORY_SIZE: usize = 96 * 1024;

const OPTIONS: Options = Options { directory_max: 512, open_files: 4, cache_pages: 2, ..Options::DEFAULT };

pub(crate) fn exercise(number: u32) -> u32 {
    let mut memory = [0; MEMORY_SIZE];
    files(&mut memory, number).unwrap_or(0)
}

fn files(memory: &mut [u8], number: u32) -> Result<u32, Error<NandErrorKind>> {
    let mut fs = match number & 2 {
        0 => Dffs::format(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
        _ => Dffs::mount(SpiNand::new(ONE_BIT, Pins), OPTIONS, memory)?,
    };
    fs.set_time(number);
    let (root, name) = (fs.root(), number.to_be_bytes());
    let permissions = Permissions { mode: 0o644, uid: 0, gid: 0 };
    let directory = fs.mkdir(root, b"directory", permissions)?;
    let file = fs.create(directory, &name, permissions)?;
    fs.open(file)?;
    fs.write(file, u64::from(number), &name)?;
    fs.truncate(file, 2)?;
    fs.fsync(file)?;
    fs.close(file)?;
    let node = fs.rename(directory, &name, root, b"other", true)?;
    fs.set_attributes(node, Changes { mode: Some(0o600), ..Changes::default() })?;
    let mut count = fs.stat(node)?.size as u32;
    if let Node::File(file) = node {
        count += fs.read(file, 0, &mut [0; 4])? as u32;
    }
    fs.read_dir(root, 0, &mut |entry| {
        count += entry.name.len() as u32;
        ControlFlow::Continue(())
    })?;
    fs.unlink(root, b"other")?;
    fs.rmdir(root, b"directory")?;
    count += fs.verify(&mut |_| ())? as u32 + fs.space().pages as u32;
    fs.unmount()?;
    Ok(count)
}
