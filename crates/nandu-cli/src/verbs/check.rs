//! `nandu check`: whether everything on a chip is as it should be.

use std::path::PathBuf;

use clap::Args;
use nandu::Violation;
use serde_json::{Value, json};

use crate::failure::Ending;
use crate::flash::Flash;
use crate::index::{self, Index, IndexArgs, IndexError, Plan, Use};
use crate::kind::{Found, Kind};
use crate::output::Output;
use crate::verbs::fs::check as files;
use crate::{session, units};

/// Exit code: violations were found, and all of them were repaired.
pub(super) const ERRORS_REPAIRED: u8 = 1;

/// Exit code: violations were found, and are there still.
pub(super) const ERRORS_LEFT: u8 = 4;

/// Exit code: the check itself could not be done.
pub(super) const NOT_DONE: u8 = 8;

/// Exit codes: 0 all is well, 1 something was not and was repaired, 4 something is not, 8 the check could not be done.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The image; without -y it is checked on a copy in memory and stays as it is
    image: PathBuf,
    /// Change nothing, which is the default
    #[arg(short = 'n', long = "no")]
    is_left: bool,
    /// Repair a file system as far as nothing has to be guessed, and say what is lost
    #[arg(short = 'y', long = "yes", conflicts_with = "is_left")]
    repairs: bool,
    #[command(flatten)]
    index: IndexArgs,
}

/// What a check found.
struct Findings {
    kind: Kind,
    is_clean: bool,
    records: u64,
    height: u8,
    pages_read: u64,
    damaged_blocks: u32,
    violations: Vec<Violation>,
}

pub(crate) fn run(args: &Check, out: &mut Output) -> anyhow::Result<()> {
    let image = &args.image;
    let mut flash = session::look(image).map_err(|error| Ending::new(NOT_DONE, format!("{error:#}")))?;
    if args.index.index.is_none() && files::is_file_system(&flash) {
        if args.repairs {
            // Nobody can write to an image that a chip reads from.
            drop(flash);
            return files::repair(image, out);
        }
        return files::run(image, &mut flash, out);
    }
    let found = index::identify(image, &flash, args.index.index)
        .map_err(|error| Ending::new(NOT_DONE, format!("{error:#}")))?;
    let findings = check(&mut flash, found, args.index).map_err(|error| {
        let code = if error.is_damage() { ERRORS_LEFT } else { NOT_DONE };
        Ending::new(code, format!("{:#}", index::explain(image, error)))
    })?;
    print(args, &findings, out)?;
    let count = findings.violations.len() as u64 + u64::from(findings.damaged_blocks);
    if count > 0 {
        let message = format!("{}: {} left", image.display(), units::things(count, "error"));
        return Err(Ending::new(ERRORS_LEFT, message).into());
    }
    Ok(())
}

fn check(flash: &mut Flash, found: Found, args: IndexArgs) -> Result<Findings, IndexError> {
    flash.power_on();
    let mut plan = Plan::new(flash, found, args.cache, Use::Single);
    let mut index = plan.open(flash)?;
    let is_clean = match &index {
        Index::Tree(store) => !store.stats().was_cut,
        Index::InPage(index, ..) => !index.was_cut(),
    };
    let reads = index.flash().counters().reads;
    let mut violations = Vec::new();
    match &mut index {
        Index::Tree(store) => {
            store.verify(&mut |violation| violations.push(violation))?;
        }
        Index::InPage(index, ..) => index.verify(&mut |violation| violations.push(Violation::Tree(violation)))?,
    }
    let pages_read = index.flash().counters().reads - reads;
    let damaged_blocks = match &index {
        Index::Tree(store) => store.stats().damaged_blocks,
        Index::InPage(..) => 0,
    };
    // Where a leaf cannot be read nobody knows how many records there are.
    let records = match index.record_count() {
        Err(error) if error.is_damage() && !violations.is_empty() => 0,
        count => count?,
    };
    Ok(Findings {
        kind: index.kind(),
        is_clean,
        records,
        height: index.height(),
        pages_read,
        damaged_blocks,
        violations,
    })
}

fn print(args: &Check, findings: &Findings, out: &mut Output) -> anyhow::Result<()> {
    let name = args.image.display().to_string();
    let Findings { kind, is_clean, records, height, pages_read, damaged_blocks, violations } = findings;
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "index": kind.name(),
            "clean": is_clean,
            "records": records,
            "height": height,
            "pages_read": pages_read,
            "damaged_blocks": damaged_blocks,
            "violations": violations.iter().map(json_of).collect::<Vec<_>>(),
        }))?;
        return Ok(());
    }
    let left = if *is_clean {
        "was left cleanly"
    } else {
        "the power was cut; what recovery does was done in memory and not written"
    };
    writeln!(out, "{name}: {left}")?;
    writeln!(
        out,
        "{} in a tree of {} ({kind}); {} checked",
        units::things(*records, "record"),
        units::things((*height).into(), "level"),
        units::things(*pages_read, "page read")
    )?;
    for violation in violations {
        writeln!(out, "  {violation}")?;
    }
    if *damaged_blocks > 0 {
        let blocks = units::things((*damaged_blocks).into(), "block");
        writeln!(out, "  {blocks} kept because a page that may be needed cannot be read")?;
    }
    if violations.is_empty() && *damaged_blocks == 0 {
        writeln!(out, "no invariant is violated")?;
    }
    Ok(())
}

fn json_of(violation: &Violation) -> Value {
    match violation {
        Violation::Log(violation) => json!({
            "invariant": format!("N{}", violation.invariant),
            "block": violation.block.0,
            "page": violation.page.map(|page| page.0),
        }),
        Violation::Tree(violation) => json!({
            "invariant": violation.invariant,
            "page": violation.page.0,
            "level": violation.level,
            "entry": violation.index,
        }),
        Violation::Value(root) => json!({ "invariant": "T7", "page": root.0 }),
    }
}
