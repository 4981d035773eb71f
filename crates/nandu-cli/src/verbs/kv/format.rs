//! `nandu kv format`: an empty index.

use anyhow::{Context, anyhow};
use clap::Args;
use nandu::Store;
use nandu_inpage::{Cells, InPage};
use nandu_nand::{CellMode, Nand};
use serde_json::json;

use crate::blank;
use crate::chance;
use crate::failure::usage;
use crate::flash::Flash;
use crate::index;
use crate::inpage;
use crate::kind::{self, Kind};
use crate::output::Output;
use crate::session::{Session, SessionArgs};
use crate::store::{self, CacheArgs};
use crate::units;

#[derive(Args, Debug)]
pub(crate) struct Format {
    #[command(flatten)]
    session: SessionArgs,
    /// Which index keeps the records; the image remembers it
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Kind::Mutree)]
    index: Kind,
    /// With grr and ipl: every key has so many bytes, and the index more room; else keys are byte strings of any length
    #[arg(long, value_name = "BYTES", requires = "value_size", value_parser = clap::value_parser!(u8).range(1..))]
    key_size: Option<u8>,
    /// With grr and ipl: every value has so many bytes
    #[arg(long, value_name = "BYTES", requires = "key_size")]
    value_size: Option<u8>,
    /// With grr and ipl: so many pages make a node; more are for small pages and keys that are read in order
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=8))]
    node_pages: u8,
    #[command(flatten)]
    cache: CacheArgs,
    /// Format a chip that holds something; all of that is lost
    #[arg(long)]
    force: bool,
    /// On an MTD device, keep tags in free bytes of the spare area: a synced page then costs one program. Only where the data sheet
    /// promises that error correction protects these bytes, of which 16 are needed
    #[arg(long)]
    tags: bool,
    /// Draw the volume's id from this number, so that the same commands make the same image; by default from chance
    #[arg(long, value_name = "NUMBER")]
    salt: Option<u64>,
}

impl Format {
    fn salt(&self) -> u64 {
        self.salt.unwrap_or_else(|| chance::number(0))
    }
}

/// What there is to say of an empty index.
struct Made {
    key_size_max: usize,
    entry_size_max: usize,
    bad_blocks: u32,
    memory_size: usize,
    /// Pages that records may fill; an index that logs in its blocks promises none.
    capacity_pages: Option<u32>,
    cells: Cells,
}

pub(crate) fn run(args: &Format, out: &mut Output) -> anyhow::Result<()> {
    let cells = match (args.key_size, args.value_size) {
        (Some(key), Some(value)) if args.index != Kind::Mutree => Cells::Fixed { key, value },
        (None, None) => Cells::Bytes,
        _ => return usage("a mutree index keeps byte strings; --key-size and --value-size are for grr and ipl"),
    };
    if args.index == Kind::Mutree && args.node_pages > 1 {
        return usage("a page of a mutree index holds a whole path; --node-pages is for grr and ipl");
    }
    let mut session = Session::open_blank(&args.session, args.tags)?;
    let name = args.session.image.display().to_string();
    if !args.force {
        blank::demand(&args.session.image, &session.flash)?;
    }
    session.flash.power_on();
    let before_ns = session.flash.clock_ns();
    for block in kind::blocks_of_others(&session.flash, args.index) {
        // One that cannot be erased would be found again, as the index that the chip does not hold.
        session.flash.erase(block, CellMode::Slc).with_context(|| format!("{name}: block {}", block.0))?;
    }
    let made = match args.index {
        Kind::Mutree => format_tree(args, &mut session.flash)?,
        kind => format_inpage(args, kind, cells, &mut session.flash)?,
    };
    let duration_ns = session.flash.clock_ns() - before_ns;
    let chip = *session.flash.chip();
    session.finish()?;
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "index": args.index.name(),
            "chip": chip.name,
            "capacity_pages": made.capacity_pages,
            "page_size": chip.geometry.page_size,
            "bad_blocks": made.bad_blocks,
            "key_size_max": made.key_size_max,
            "entry_size_max": made.entry_size_max,
            "memory_size": made.memory_size,
            "duration_ns": duration_ns,
        }))?;
        return Ok(());
    }
    let page_size = units::count_of(chip.geometry.page_size.into());
    match made.capacity_pages {
        Some(capacity) => {
            let pages = units::things(capacity.into(), "page");
            writeln!(out, "{name}: an empty store on {}, with room for {pages} of {page_size} bytes", chip.name)?;
        }
        None => {
            let blocks = units::things((chip.geometry.block_count - made.bad_blocks).into(), "block");
            writeln!(out, "{name}: an empty {} index on {}, in {blocks}", args.index, chip.name)?;
        }
    }
    let memory = units::count_of(made.memory_size as u64);
    match made.cells {
        Cells::Fixed { key, value } => {
            writeln!(out, "keys of {key} bytes, values of {value}; opened in {memory} bytes of memory")?;
        }
        Cells::Bytes => writeln!(
            out,
            "keys to {} bytes, a key and its value to {}; opened in {memory} bytes of memory",
            made.key_size_max, made.entry_size_max
        )?,
    }
    Ok(())
}

fn format_tree(args: &Format, flash: &mut Flash) -> anyhow::Result<Made> {
    let mut options = args.cache.options();
    options.salt = args.salt();
    let mut memory = store::memory(flash, &options);
    let explain = |error| store::explain(&args.session.image, error);
    let store = Store::format(flash, options, &mut memory).map_err(explain)?;
    let made = Made {
        key_size_max: store.key_size_max(),
        entry_size_max: store.entry_size_max(),
        bad_blocks: store.stats().bad_blocks,
        memory_size: 0,
        capacity_pages: Some(store.stats().capacity_pages),
        cells: Cells::Bytes,
    };
    store.unmount().map_err(explain)?;
    Ok(Made { memory_size: memory.len(), ..made })
}

fn format_inpage(args: &Format, kind: Kind, cells: Cells, flash: &mut Flash) -> anyhow::Result<Made> {
    let options = inpage::options(flash.chip(), kind, cells, args.node_pages, args.cache.cache);
    let options = nandu_inpage::Options { salt: args.salt(), ..options };
    let mut memory = vec![0; InPage::<Flash>::memory_required(&flash.chip().geometry, &options)];
    let explain = |error| match error {
        nandu_inpage::Error::Unsuitable { what } => {
            anyhow!("{}: no {kind} index is possible on this chip: {what}", args.session.image.display())
        }
        error => index::explain(&args.session.image, error),
    };
    let index = InPage::format(flash, options, &mut memory).map_err(explain)?;
    let made = Made {
        key_size_max: index.key_size_max(),
        entry_size_max: index.entry_size_max(),
        bad_blocks: index.size().blocks_bad,
        memory_size: 0,
        capacity_pages: None,
        cells,
    };
    index.unmount().map_err(explain)?;
    Ok(Made { memory_size: memory.len(), ..made })
}
