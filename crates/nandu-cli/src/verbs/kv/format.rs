//! `nandu kv format`: an empty store.

use anyhow::bail;
use clap::Args;
use nandu::Store;
use serde_json::json;

use crate::output::Output;
use crate::session::{Session, SessionArgs};
use crate::store::{self, CacheArgs};
use crate::{report, units};

#[derive(Args, Debug)]
pub(crate) struct Format {
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    cache: CacheArgs,
    /// Format a chip that holds something; all of that is lost
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Format, out: &mut Output) -> anyhow::Result<()> {
    let mut session = Session::open(&args.session)?;
    let name = args.session.image.display().to_string();
    if !args.force && report::blocks(&session.sim).any(|(_, state)| state.pages_programmed > 0) {
        bail!("{name}: the chip is not blank; --force formats it and loses what it holds");
    }
    session.sim.power_on();
    let options = args.cache.options();
    let mut memory = store::memory(&session.sim, &options);
    let before_ns = session.sim.clock_ns();
    let explain = |error| store::explain(&args.session.image, error);
    let store = Store::format(&mut session.sim, options, &mut memory).map_err(explain)?;
    let (capacity, bad) = (store.stats().capacity_pages, store.stats().bad_blocks);
    let (key_size_max, entry_size_max) = (store.key_size_max(), store.entry_size_max());
    store.unmount().map_err(explain)?;
    let duration_ns = session.sim.clock_ns() - before_ns;
    let chip = session.sim.chip().name;
    let page_size = u64::from(session.sim.chip().geometry.page_size);
    session.finish()?;
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "chip": chip,
            "capacity_pages": capacity,
            "page_size": page_size,
            "bad_blocks": bad,
            "key_size_max": key_size_max,
            "entry_size_max": entry_size_max,
            "memory_size": memory.len(),
            "duration_ns": duration_ns,
        }))?;
        return Ok(());
    }
    writeln!(
        out,
        "{name}: an empty store on {chip}, with room for {} of {} bytes",
        units::things(capacity.into(), "page"),
        units::count_of(page_size)
    )?;
    writeln!(
        out,
        "keys to {key_size_max} bytes, a key and its value to {entry_size_max}; opened in {} bytes of memory",
        units::count_of(memory.len() as u64)
    )?;
    Ok(())
}
