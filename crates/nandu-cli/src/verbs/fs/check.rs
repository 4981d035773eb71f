//! The part of `nandu check` that is about file systems.

use std::path::Path;

use nandu::fs::{Fs, FsError, Options, Violation};
use nandu_sim::Sim;
use serde_json::{Value, json};

use crate::failure::Ending;
use crate::files::{self, MemoryArgs};
use crate::output::Output;
use crate::units;
use crate::verbs::check::{ERRORS_LEFT, NOT_DONE};

/// Bytes for counting the names of inodes: enough for a million of them in one walk.
const SCRATCH_SIZE: usize = 12 << 20;

/// What a check found.
struct Findings {
    is_clean: bool,
    pages_read: u64,
    damaged_blocks: u32,
    violations: Vec<Violation>,
}

/// Whether a chip holds a file system, however damaged. Looks at a copy.
pub(crate) fn is_file_system(sim: &Sim) -> bool {
    let mut copy = sim.clone();
    copy.power_on();
    let options = Options { read_only: true, ..MemoryArgs::DEFAULT.options() };
    let mut memory = files::memory(&copy, &options);
    matches!(Fs::mount(copy, options, &mut memory), Ok(_) | Err(FsError::Corrupt { .. } | FsError::OtherVersion { .. }))
}

/// Checks the file system on a chip, which may be changed: it is a copy.
pub(crate) fn run(image: &Path, sim: &mut Sim, out: &mut Output) -> anyhow::Result<()> {
    let findings = check(sim).map_err(|error| {
        let code = if matches!(error, FsError::Corrupt { .. }) { ERRORS_LEFT } else { NOT_DONE };
        Ending::new(code, format!("{:#}", files::explain(image, error)))
    })?;
    print(image, &findings, out)?;
    let count = findings.violations.len() as u64 + u64::from(findings.damaged_blocks);
    if count > 0 {
        let message = format!("{}: {} left", image.display(), units::things(count, "error"));
        return Err(Ending::new(ERRORS_LEFT, message).into());
    }
    Ok(())
}

fn check(sim: &mut Sim) -> Result<Findings, files::FilesError> {
    sim.power_on();
    let options = MemoryArgs::DEFAULT.options();
    let mut memory = files::memory(sim, &options);
    let mut fs = Fs::mount(sim, options, &mut memory)?;
    let is_clean = !fs.stats().was_cut;
    let reads = fs.nand().counters().reads;
    let mut violations = Vec::new();
    fs.verify(&mut vec![0; SCRATCH_SIZE], &mut |violation| violations.push(violation))?;
    Ok(Findings {
        is_clean,
        pages_read: fs.nand().counters().reads - reads,
        damaged_blocks: fs.stats().damaged_blocks,
        violations,
    })
}

fn print(image: &Path, findings: &Findings, out: &mut Output) -> anyhow::Result<()> {
    let Findings { is_clean, pages_read, damaged_blocks, violations } = findings;
    let name = image.display().to_string();
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "kind": "files",
            "clean": is_clean,
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
    writeln!(out, "{name}: a file system; {left}")?;
    writeln!(out, "{} checked", units::things(*pages_read, "page read"))?;
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
        Violation::Fs { invariant, ino, what } => json!({ "invariant": invariant, "inode": ino.0, "what": what }),
        other => json!({ "invariant": "below the file system", "what": other.to_string() }),
    }
}
