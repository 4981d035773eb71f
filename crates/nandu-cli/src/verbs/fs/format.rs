//! `nandu fs format`: an empty file system.

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use nandu::fs::{Format as FormatOptions, Fs, Options};
use nandu_dffs::Dffs;
use nandu_files::{FileSystem, Ino, SetAttributes};
use nandu_nand::{CellMode, Nand};
use serde_json::json;

use crate::blank;
use crate::chance;
use crate::failure::usage;
use crate::files::{self, MemoryArgs};
use crate::flash::Flash;
use crate::output::Output;
use crate::session::{Session, SessionArgs};
use crate::volume::{System, VolumeError};
use crate::{report, units};

#[derive(Args, Debug)]
pub(crate) struct Format {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Which file system
    #[arg(long, value_enum, value_name = "SYSTEM", default_value_t = System::Nandu)]
    system: System,
    /// Format a chip that holds something; all of that is lost
    #[arg(long)]
    force: bool,
    /// On an MTD device, keep tags in free bytes of the spare area: a synced page then costs one program. Only where the data sheet
    /// promises that error correction protects these bytes, of which 16 are needed
    #[arg(long)]
    tags: bool,
    /// Write with one bit a cell only, on a chip whose cells hold two: half the capacity, and nothing moves in idle time
    #[arg(long)]
    slc: bool,
    /// Key by which names are hashed, 32 hexadecimal digits; by default it is drawn by chance
    #[arg(long, value_name = "HEX", value_parser = parse_key)]
    hash_key: Option<[u8; 16]>,
    /// Number of the user who owns the root directory; by default it is who runs this
    #[arg(long, value_name = "UID")]
    uid: Option<u32>,
    /// Number of the group of the root directory; by default it is that of who runs this
    #[arg(long, value_name = "GID")]
    gid: Option<u32>,
    /// Permissions of the root directory, octal
    #[arg(long, value_name = "MODE", default_value = "755", value_parser = parse_mode)]
    mode: u32,
}

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| (1..=0o7777).contains(mode));
    mode.ok_or_else(|| "permissions are octal, from 1 to 7777".to_owned())
}

fn parse_key(text: &str) -> Result<[u8; 16], String> {
    let digits = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    digits.map(u128::to_be_bytes).ok_or_else(|| "32 hexadecimal digits are needed".to_owned())
}

/// A key by chance.
pub(super) fn random_key() -> [u8; 16] {
    let mut key = [0; 16];
    for (index, half) in key.chunks_mut(8).enumerate() {
        half.copy_from_slice(&chance::number(index).to_le_bytes());
    }
    key
}

/// What a chip is formatted with: both modes of its cells, if it has two and nobody says otherwise.
fn options(flash: &Flash, memory: MemoryArgs, is_slc: bool) -> Options {
    let geometry = &flash.chip().geometry;
    let has_both = geometry.pairing.is_paired() && geometry.supports(CellMode::Slc) && geometry.supports(CellMode::Mlc);
    if has_both && !is_slc { memory.options().both_modes(geometry) } else { memory.options() }
}

/// Makes an empty file system on a chip and leaves it cleanly; returns its pages.
pub(super) fn format(flash: &mut Flash, image: &Path, options: Options, format: FormatOptions) -> anyhow::Result<u64> {
    let mut memory = files::memory(flash, &options);
    let explain = |error| files::explain(image, VolumeError::Nandu(error));
    let mut fs = Fs::format(flash, options, format, &mut memory).map_err(explain)?;
    let pages = fs.statfs().map_err(explain)?.blocks;
    fs.unmount().map_err(explain)?;
    Ok(pages)
}

/// The same with DFFS.
pub(super) fn format_dffs(flash: &mut Flash, image: &Path, format: FormatOptions) -> anyhow::Result<u64> {
    // DFFS erases a block when it takes it, and an anchor of what was there before would be found until then.
    let programmed: Vec<_> = report::blocks(flash).filter(|(_, state)| state.pages_programmed > 0).collect();
    for (block, state) in programmed {
        if !state.reads_bad {
            flash.erase(block, CellMode::Slc).map_err(|error| anyhow!("{}: {error}", image.display()))?;
        }
    }
    let salt = u64::from_le_bytes(format.hash_key[..8].try_into().unwrap_or_default());
    let options = nandu_dffs::Options { salt, ..files::DFFS };
    let mut memory = vec![0; Dffs::<Flash>::memory_required(&flash.chip().geometry, &options)];
    let explain = |error| files::explain(image, VolumeError::Dffs(error));
    let mut fs = Dffs::format(flash, options, &mut memory).map_err(explain)?;
    FileSystem::set_now(&mut fs, format.now);
    let root = SetAttributes {
        mode: Some(if format.root_mode == 0 { 0o755 } else { format.root_mode }),
        uid: Some(format.uid),
        gid: Some(format.gid),
        ..SetAttributes::default()
    };
    FileSystem::set_attributes(&mut fs, Ino::ROOT, root).map_err(explain)?;
    let pages = FileSystem::statfs(&mut fs).map_err(explain)?.blocks;
    FileSystem::unmount(fs).map_err(explain)?;
    Ok(pages)
}

pub(crate) fn run(args: &Format, out: &mut Output) -> anyhow::Result<()> {
    if args.system == System::Dffs && (args.slc || args.hash_key.is_some()) {
        return usage("DFFS writes one bit a cell and hashes names without a key: --slc and --hash-key are not for it");
    }
    let mut session = Session::open_blank(&args.session, args.tags)?;
    let name = args.session.image.display().to_string();
    if !args.force {
        blank::demand(&args.session.image, &session.flash)?;
    }
    session.flash.power_on();
    let before_ns = session.flash.clock_ns();
    let hash_key = args.hash_key.unwrap_or_else(random_key);
    let root = FormatOptions {
        hash_key,
        root_mode: args.mode,
        uid: args.uid.unwrap_or_else(|| rustix::process::geteuid().as_raw()),
        gid: args.gid.unwrap_or_else(|| rustix::process::getegid().as_raw()),
        now: files::now(),
    };
    let image = &args.session.image;
    let pages = match args.system {
        System::Nandu => {
            let options = options(&session.flash, args.memory, args.slc);
            format(&mut session.flash, image, options, root)?
        }
        System::Dffs => format_dffs(&mut session.flash, image, root)?,
    };
    let duration_ns = session.flash.clock_ns() - before_ns;
    let (chip, page_size) = (session.flash.chip().name, u64::from(session.flash.chip().geometry.page_size));
    session.finish()?;
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "chip": chip,
            "system": args.system.name(),
            "capacity_pages": pages,
            "page_size": page_size,
            "duration_ns": duration_ns,
        }))?;
        return Ok(());
    }
    let (room, size) = (units::things(pages, "page"), units::count_of(page_size));
    let kind = match args.system {
        System::Nandu => "an empty file system",
        System::Dffs => "an empty file system of DFFS",
    };
    writeln!(out, "{name}: {kind} on {chip}, with room for {room} of {size} bytes")?;
    Ok(())
}
