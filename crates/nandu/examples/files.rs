//! Files and directories: a configuration that is replaced so that a power cut leaves the old one or the new one, and a log that is appended to.
//!
//! `cargo run -p nandu --example files`

use std::error::Error;
use std::ops::ControlFlow;

use nandu::fs::{Attributes, File, Format, Fs, Ino, OpenOptions, Options, RenameMode};
use nandu_sim::{Chip, Sim};

fn main() -> Result<(), Box<dyn Error>> {
    let chip = Sim::new(Chip::W25N01GV);
    let options = Options::default();
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options)];

    // Names are found by a hash with this key. Take random bytes, or anybody can choose names that collide.
    let format = Format { hash_key: *b"take random ones", ..Format::default() };
    let mut fs = Fs::format(chip, options, format, &mut memory)?;
    let etc = fs.mkdir(Ino::ROOT, b"etc", Attributes::DIRECTORY)?;
    let create = OpenOptions { create: Some(Attributes::FILE), ..OpenOptions::default() };

    // Replaced as everywhere: written beside, then renamed over it. No sync between: a rename is durable when it returns,
    // and so is everything before it.
    for generation in 1..=3_u32 {
        let mut file = File::open(&mut fs, b"/etc/device.new", create)?;
        file.write_all(&mut fs, format!("generation = {generation}\n").as_bytes())?;
        file.close(&mut fs)?;
        fs.rename(etc, b"device.new", etc, b"device", RenameMode::Replace)?;
    }

    // Appended to. What is written is durable at the next sync, or earlier.
    let mut log = File::open(&mut fs, b"/log", create)?;
    log.write_all(&mut fs, b"started\n")?;
    log.write_all(&mut fs, b"ready\n")?;
    log.sync(&mut fs)?;
    log.write_all(&mut fs, b"never synced\n")?;

    // The power goes.
    let chip = fs.abandon();
    let mut fs = Fs::mount(chip, options, &mut memory)?;

    let mut text = [0; 64];
    let mut file = File::open(&mut fs, b"/etc/device", OpenOptions::default())?;
    let size = file.read(&mut fs, &mut text)?;
    assert_eq!(&text[..size], b"generation = 3\n");
    file.close(&mut fs)?;

    let mut log = File::open(&mut fs, b"/log", OpenOptions::default())?;
    let size = log.read(&mut fs, &mut text)?;
    assert!(text[..size].starts_with(b"started\nready\n"));
    log.close(&mut fs)?;

    // Directories are listed by a visitor.
    let mut names = Vec::new();
    fs.read_dir(Ino::ROOT, 0, |entry| {
        names.push(String::from_utf8_lossy(entry.name).into_owned());
        ControlFlow::Continue(())
    })?;
    names.sort();
    println!("{names:?}, and {size} bytes in the log");
    assert!(names.contains(&"etc".to_owned()) && names.contains(&"log".to_owned()));
    Ok(())
}
