//! `nandu fs build`: the image of a chip that holds the files of a directory, for a NAND writer.
//!
//! A writer erases the chip and programs the bytes of the image, block after block. What it does with erased bytes differs: it may program
//! them, or leave out pages or blocks that have nothing else. So the image is of a chip that lost its power, with an end in each block that was begun: whoever mounts it goes on in
//! none of these and erases every other one before it programs there, and nothing that looks erased is relied upon.
//!
//! Writers differ in what they do at a bad block of the target, too. Most leave it out and put what was to go there into the next good
//! block; their image has no bytes of the bad blocks. Others put the n-th block of the image into the n-th of the chip; theirs has
//! erased bytes there (`--in-place`).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;
use nandu::fs::{Format as FormatOptions, Fs, Options};
use nandu_dffs::Dffs;
use nandu_files::{FileSystem, Ino};
use nandu_media::Page as Header;
use nandu_nand::{BlockAddr, Nand, PageAddr};
use nandu_sim::{Chip, Sim};
use serde_json::json;

use super::format::{format, format_dffs, random_key};
use super::import::import;
use crate::files::{self, MemoryArgs};
use crate::flash::Flash;
use crate::output::Output;
use crate::progress::Progress;
use crate::units;
use crate::verbs::create::chip_names;
use crate::volume::{System, Volume, VolumeError};

/// What the spare area of a page without a mark holds.
const ERASED: u8 = 0xFF;

#[derive(Args, Debug)]
pub(crate) struct Build {
    /// The directory of this machine whose files come into the file system
    #[arg(short = 'r', long = "root", value_name = "DIR")]
    root: PathBuf,
    /// The image, a new file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The kind of chip; see `nandu chip list`
    #[arg(long, value_name = "NAME", value_parser = chip_names(), hide_possible_values = true)]
    chip: String,
    /// Blocks of the chip or of the partition of it, where these are not as many as the kind of chip has
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    blocks: Option<u32>,
    /// Which file system
    #[arg(long, value_enum, value_name = "SYSTEM", default_value_t = System::Nandu)]
    system: System,
    /// Each page is followed by its spare area, erased, as a NAND writer takes it
    #[arg(long)]
    oob: bool,
    /// Blocks of the chip that are bad, with commas between them; the writer leaves them out and goes on in the next good one
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',')]
    bad: Vec<u32>,
    /// The image has erased bytes for bad blocks, for a writer that puts its n-th block into the n-th of the chip
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

pub(crate) fn run(args: &Build, out: &mut Output) -> anyhow::Result<()> {
    let mut chip = Chip::preset(&args.chip).unwrap_or(Chip::DEFAULT);
    if let Some(count) = args.blocks {
        chip = chip.with_blocks(count);
    }
    // The spare area is not written.
    chip.geometry.tag_size = 0;
    let mut flash = Flash::from(Sim::new(chip));
    for &block in &args.bad {
        if !chip.geometry.contains_block(BlockAddr(block)) {
            return Err(anyhow!("the chip has no block {block}"));
        }
        flash.mark_bad(BlockAddr(block)).map_err(|error| anyhow!("block {block}: {error}"))?;
    }
    // The root gets what the directory has, with its files.
    let empty = FormatOptions { hash_key: random_key(), now: files::now(), ..FormatOptions::default() };
    let explain = |error| files::explain(&args.output, error);
    let mut memory;
    let mut fs = match args.system {
        System::Nandu => {
            format(&mut flash, &args.output, args.memory.options(), empty)?;
            // What waits for its place when the image is done has to fit the memory of whoever mounts the chip.
            let options = Options { pending_size: Options::DEFAULT.pending_size, ..args.memory.options() };
            memory = files::memory(&flash, &options);
            Fs::mount(&mut flash, options, &mut memory).map(Volume::Nandu).map_err(VolumeError::Nandu)
        }
        System::Dffs => {
            format_dffs(&mut flash, &args.output, empty)?;
            memory = files::volume_memory(&flash, System::Dffs, args.memory);
            Dffs::mount(&mut flash, files::DFFS, &mut memory).map(Volume::Dffs).map_err(VolumeError::Dffs)
        }
    }
    .map_err(explain)?;
    fs.set_now(files::now());
    let copied = import(&mut fs, &args.output, &args.root, Ino::ROOT)?;
    fs.sync().map_err(explain)?;
    // Left as by a power cut, so that nobody takes a block for erased, which the writer may have programmed.
    fs.abandon();
    if args.system == System::Nandu {
        end_blocks(&mut flash).with_context(|| args.output.display().to_string())?;
    }
    let size = write(args, &mut flash)?;
    if out.is_json() {
        out.json(&json!({
            "image": args.output.display().to_string(),
            "chip": chip.name,
            "size": size,
            "files": copied.files,
            "directories": copied.directories,
            "links": copied.links,
            "bytes": copied.bytes,
        }))?;
        return Ok(());
    }
    let how = if args.in_place { "each block in its place" } else { "bad blocks left out" };
    writeln!(
        out,
        "{}: {} of {} for {}, to be written from block 0 of the erased chip on, {how}",
        args.output.display(),
        units::things(copied.files, "file"),
        units::things(copied.bytes, "byte"),
        chip.name
    )?;
    Ok(())
}

/// Sees to it that nobody goes on in a block that was begun here: a writer may program its erased pages, too. A mount goes on in the block of the newest commit behind the page that the
/// cut may have torn, if the page there is erased; so that page gets zeros.
fn end_blocks(flash: &mut Flash) -> anyhow::Result<()> {
    let geometry = flash.chip().geometry;
    for block in (0..geometry.block_count).map(BlockAddr) {
        let state = flash.block_state(block);
        let first = Some(geometry.first_page(block)).filter(|_| state.pages_programmed > 0);
        let is_begun = first
            .and_then(|page| flash.content(page))
            .is_some_and(|bytes| Header::parse(&bytes).is_ok_and(|header| !header.kind().is_of_the_log()));
        if let Some(index) = geometry.nth_in_mode(state.mode, state.pages_programmed + 1).filter(|_| is_begun) {
            let zeros = vec![0; geometry.page_size as usize];
            flash.program(geometry.page_at(block, index), 0, &zeros)?;
        }
    }
    Ok(())
}

/// Writes the pages of a chip one after another, up to the last block that holds something; returns how many bytes these are.
fn write(args: &Build, flash: &mut Flash) -> anyhow::Result<u64> {
    let here = || args.output.display().to_string();
    let mut file = BufWriter::new(File::create_new(&args.output).with_context(here)?);
    let geometry = flash.chip().geometry;
    let used = |block: &u32| flash.block_state(BlockAddr(*block)).pages_programmed > 0;
    let blocks = (0..geometry.block_count).rev().find(used).map_or(0, |last| last + 1);
    let pages = blocks * geometry.pages_per_block;
    let mut progress = Progress::new("writing the image");
    let mut page = vec![0; geometry.page_size as usize];
    let spare = vec![ERASED; if args.oob { geometry.spare_size as usize } else { 0 }];
    let mut size = 0;
    for number in 0..pages {
        match (flash.is_bad(geometry.block_of(PageAddr(number)))?, args.in_place) {
            (true, false) => continue,
            (true, true) => page.fill(ERASED),
            // This chip was made a moment ago and is not kept.
            (false, _) => _ = flash.read(PageAddr(number), 0, &mut page)?,
        }
        file.write_all(&page).and_then(|()| file.write_all(&spare)).with_context(here)?;
        size += (page.len() + spare.len()) as u64;
        progress.set(number.into(), pages.into());
    }
    file.flush().with_context(here)?;
    Ok(size)
}
