//! `nandu tour`: what the store does, with real records, in half a minute.
//!
//! Each step is a file: what there is to store ([`census`]), putting it ([`load`]), reading ([`query`]), changing
//! ([`update`]), pulling the plug ([`cuts`]), and the bill ([`costs`]). Beside the store a map in ordinary memory is kept
//! of everything that was acknowledged; at the end the two are compared record by record.

mod census;
mod costs;
mod cuts;
mod facts;
mod guide;
mod load;
mod query;
mod update;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{anyhow, bail};
use clap::Args;
use nandu::{Options, Store};
use nandu_sim::{Chip, Sim, SimError};
use serde_json::{Map, Value, json};

use crate::output::Output;
use crate::units;
use census::{Census, Wanted};
use facts::Facts;
use guide::Guide;

/// Memory that the store may use in all.
const MEMORY_SIZE: usize = 65_536;

const FACTORY_BAD_PERCENT: f64 = 2.0;
const SEED: u64 = 7;

/// Records after which no further place is begun, and after which none is added.
const RECORDS_ENOUGH: usize = 100_000;
const RECORDS_MAX: usize = 300_000;

#[derive(Args, Debug)]
pub(crate) struct Tour {
    /// So many records at most; if not given, whole directories until there are 100,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=400_000))]
    records: Option<u32>,
    /// Take the paths below this directory as records, instead of those of the system
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

/// What was acknowledged.
type Model = BTreeMap<Vec<u8>, Facts>;

/// What the store has to say, as the end of the tour.
/// A store on the chip of the tour, which is simulated.
type Records<'m> = Store<'m, &'m mut Sim>;

fn fail(error: nandu::Error<SimError>) -> anyhow::Error {
    anyhow!("the store failed: {error}")
}

pub(crate) fn run(args: &Tour, out: &mut Output) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut guide = Guide::new(out);
    let mut report = Map::new();
    welcome(&mut guide)?;

    let mut sim = Sim::with_seed(Chip::W25N01GV, SEED).with_factory_bad(FACTORY_BAD_PERCENT, false);
    let Some(options) = Options::DEFAULT.fit::<Sim>(&sim.chip().geometry, MEMORY_SIZE) else {
        bail!("{MEMORY_SIZE} bytes are not enough for a store on this chip");
    };
    let mut memory = vec![0; Store::<Sim>::memory_required(&sim.chip().geometry, &options)];
    describe_chip(&mut guide, &sim, memory.len(), &mut report)?;
    let mut store = Store::format(&mut sim, options, &mut memory).map_err(fail)?;

    let mut census = take_census(args, &mut guide, store.key_size_max(), &mut report)?;
    load::run(&mut guide, &mut store, &census.records, &mut report)?;
    query::run(&mut guide, &mut store, &census, &mut report)?;
    update::run(&mut guide, &mut store, &mut census.records, &mut report)?;
    store.abandon();
    cuts::run(&mut guide, &mut sim, options, &mut memory, &mut census, &mut report)?;

    let mut store = Store::open(&mut sim, options, &mut memory).map_err(fail)?;
    verify(&mut guide, &mut store, &census.records, &mut report)?;
    store.unmount().map_err(fail)?;
    costs::run(&mut guide, &sim, &census.records, memory.len(), &mut report)?;
    let seconds = started.elapsed().as_secs_f64();
    report.insert("duration_s".to_owned(), json!((seconds * 10.0).round() / 10.0));
    farewell(&mut guide, seconds)?;
    if guide.out.is_json() {
        guide.out.json(&Value::Object(report))?;
    }
    Ok(())
}

fn welcome(guide: &mut Guide<'_>) -> anyhow::Result<()> {
    guide.title("nandu: ordered records on raw NAND flash")?;
    guide.say(
        "Each change is one page program, durable when it returns, and whole or absent whenever the power goes. Watch it \
         with the files of this machine as records, on a chip in memory that behaves as real ones do, also when it \
         breaks.",
    )?;
    Ok(())
}

fn describe_chip(
    guide: &mut Guide<'_>,
    sim: &Sim,
    memory_size: usize,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    let (name, geometry) = (sim.chip().name, &sim.chip().geometry);
    let bad = (f64::from(geometry.block_count) * FACTORY_BAD_PERCENT / 100.0) as u64;
    guide.step("A chip and some memory")?;
    guide.say(&format!(
        "A simulated {name}: {} in {} of {} of {} bytes; {bad} blocks left the factory bad. Programming a page takes {}, \
         erasing a block {}.",
        units::bytes(geometry.capacity()),
        units::things(geometry.block_count.into(), "block"),
        units::things(geometry.pages_per_block.into(), "page"),
        units::count_of(geometry.page_size.into()),
        units::duration_ns(sim.chip().timing.program_lsb_ns.into()),
        units::duration_ns(sim.chip().timing.erase_ns.into()),
    ))?;
    guide.say(&format!("The store gets {} of memory, now, and never any more.", units::bytes(memory_size as u64)))?;
    report.insert("chip".to_owned(), name.into());
    report.insert("memory_size".to_owned(), memory_size.into());
    Ok(())
}

fn take_census(
    args: &Tour,
    guide: &mut Guide<'_>,
    key_size_max: usize,
    report: &mut Map<String, Value>,
) -> anyhow::Result<Census> {
    guide.step("Real records")?;
    let wanted = match args.records {
        Some(count) => Wanted { enough: count as usize, limit: count as usize },
        None => Wanted { enough: RECORDS_ENOUGH, limit: RECORDS_MAX },
    };
    let census = Census::take(args.from.as_deref(), wanted, key_size_max);
    let places: Vec<String> = census
        .places
        .iter()
        .map(|(place, count)| format!("{} below {}", units::count_of(*count as u64), place.display()))
        .collect();
    let count = census.records.len();
    if count == 0 {
        bail!("no file was found to make records of");
    }
    let sizes = census.records.keys().map(|key| (key.len() + Facts::SIZE) as u64).sum::<u64>();
    guide.say(&format!(
        "{}: {}. The key is the directory's number and the name, the value is size, time and mode; {:.1} MB \
         altogether.",
        units::things(count as u64, "file"),
        places.join(", "),
        sizes as f64 / 1e6
    ))?;
    if args.records.is_none() && count < RECORDS_ENOUGH {
        guide.aside(&format!("There are fewer than {} here.", units::count_of(RECORDS_ENOUGH as u64)))?;
    }
    for (left_out, why) in [
        (census.too_long, format!("is longer than a key can be on this chip, {key_size_max} bytes; left out")),
        (census.unreadable, "is a directory that may not be read; what is in it is left out".to_owned()),
    ] {
        if left_out > 0 {
            guide.aside(&format!("{}: each {why}.", units::things(left_out, "file")))?;
        }
    }
    report.insert("records".to_owned(), count.into());
    report.insert("record_bytes".to_owned(), sizes.into());
    report.insert("names_too_long".to_owned(), census.too_long.into());
    let places = census.places.iter().map(|(place, count)| (place.display().to_string(), json!(count)));
    report.insert("places".to_owned(), Value::Object(places.collect()));
    Ok(census)
}

/// Holds everything that is on the chip against everything that was acknowledged.
fn verify(
    guide: &mut Guide<'_>,
    store: &mut Records<'_>,
    model: &Model,
    report: &mut Map<String, Value>,
) -> anyhow::Result<()> {
    guide.step("Is everything still there?")?;
    let reads = store.nand().counters().reads;
    let mut violations = Vec::new();
    store.verify(&mut |violation| violations.push(violation.to_string())).map_err(fail)?;
    let reads = store.nand().counters().reads - reads;
    if let Some(first) = violations.first() {
        bail!("{}, the first: {first}", units::things(violations.len() as u64, "violated invariant"));
    }
    guide.say(&format!(
        "Every page was read ({}) and every invariant of log and tree checked: none is violated.",
        units::count_of(reads)
    ))?;
    let mut expected = model.iter();
    let mut differs = false;
    query::all(store, |entry| {
        let is_same = expected.next().is_some_and(|(key, facts)| key == entry.key && facts.to_bytes() == *entry.value);
        differs |= !is_same;
        is_same
    })?;
    if differs || expected.next().is_some() || store.record_count() != model.len() as u64 {
        bail!("the store does not hold what it acknowledged");
    }
    guide.conclude(&format!(
        "All {} are there, in order, byte for byte as acknowledged. Nothing was lost.",
        units::things(model.len() as u64, "record")
    ))?;
    report
        .insert("verify".to_owned(), json!({ "violations": 0, "page_reads": reads, "records_compared": model.len() }));
    Ok(())
}

fn farewell(guide: &mut Guide<'_>, seconds: f64) -> anyhow::Result<()> {
    guide.step("Go on")?;
    for (command, what) in [
        ("nandu create c.nand", "a chip of your own, in a file"),
        ("nandu kv format c.nand", "an empty store on it"),
        ("nandu kv import c.nand data.csv --key 1", "your records"),
        ("nandu kv scan c.nand --prefix a", "in order"),
        ("nandu kv stats c.nand", "and what it has cost"),
    ] {
        guide.line(&format!("{command:<42}{what}"))?;
    }
    guide.aside(&format!("The tour took {seconds:.1} s of this machine's time."))?;
    Ok(())
}

/// Numbers that only look random, so that every tour takes the same way.
struct Dice(u64);

impl Dice {
    /// A number below `limit`, which is at least 1.
    fn below(&mut self, limit: usize) -> usize {
        // A splitmix step.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * limit as u128) >> 64) as usize
    }
}
