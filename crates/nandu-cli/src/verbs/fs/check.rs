//! The part of `nandu check` that is about file systems.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use nandu::fs::{FileKind, Fs, FsError, Ino, Mended, Options, Violation};
use nandu_files::FileSystem;
use nandu_files::errno::EUCLEAN;
use serde_json::{Value, json};

use crate::failure::Ending;
use crate::files::{self, LookArgs, MemoryArgs};
use crate::flash::{Flash, FlashError};
use crate::output::Output;
use crate::verbs::check::{ERRORS_LEFT, ERRORS_REPAIRED, NOT_DONE};
use crate::volume::{System, VolumeError};
use crate::{kind, session, units};

/// What goes wrong in a file system of nandu's.
type FilesError = FsError<FlashError>;

/// Bytes for counting the names of inodes: enough for a million of them in one walk.
const SCRATCH_SIZE: usize = 12 << 20;

/// What a check found.
struct Findings {
    is_clean: bool,
    pages_read: u64,
    damaged_blocks: u32,
    tail_lost: u32,
    violations: Vec<Violation>,
    paths: Paths,
}

impl Findings {
    fn error_count(&self) -> u64 {
        self.violations.len() as u64 + u64::from(self.damaged_blocks) + u64::from(self.tail_lost)
    }
}

/// Something that was repaired.
struct Repaired {
    ino: Ino,
    name: String,
    range: Option<(u64, u64)>,
    what: Mended,
}

/// A path of each inode that a name leads to.
struct Paths(HashMap<Ino, String>);

impl Paths {
    /// Walks down from the root, as far as that can be read.
    fn of(fs: &mut Fs<'_, &mut Flash>) -> Paths {
        let mut paths = HashMap::from([(Ino::ROOT, "/".to_owned())]);
        let mut left = vec![Ino::ROOT];
        while let Some(directory) = left.pop() {
            let above = paths.get(&directory).map_or("", |path| path.trim_end_matches('/')).to_owned();
            // What cannot be read is told of by the check.
            let _ = fs.read_dir(directory, 2, |entry| {
                paths.entry(entry.ino).or_insert_with(|| {
                    if entry.kind == FileKind::Directory {
                        left.push(entry.ino);
                    }
                    format!("{above}/{}", entry.name.escape_ascii())
                });
                ControlFlow::Continue(())
            });
        }
        Paths(paths)
    }

    /// How people call an inode.
    fn name(&self, ino: Ino) -> String {
        match self.0.get(&ino) {
            Some(path) => format!("{path} (inode {ino})"),
            None if ino.0 == 0 => "the volume".to_owned(),
            None => format!("inode {ino}"),
        }
    }
}

/// Whether a chip holds a file system, however damaged. Looks at a copy.
pub(crate) fn is_file_system(flash: &Flash) -> bool {
    if kind::system(flash) == System::Dffs {
        return true;
    }
    let mut copy = flash.clone();
    copy.power_on();
    let options = Options { read_only: true, ..MemoryArgs::DEFAULT.options_for(flash) };
    let mut memory = files::memory(&copy, &options);
    matches!(Fs::mount(copy, options, &mut memory), Ok(_) | Err(FsError::Corrupt { .. } | FsError::OtherVersion { .. }))
}

/// Whether a volume of DFFS cannot be changed any more. Looks at a copy; of one that cannot be mounted it is not known.
pub(crate) fn is_dffs_read_only(flash: &Flash) -> Option<bool> {
    let mut copy = flash.clone();
    copy.power_on();
    let mut memory = files::volume_memory(&copy, System::Dffs, MemoryArgs::DEFAULT);
    files::mount(&mut copy, System::Dffs, LookArgs::now(MemoryArgs::DEFAULT), &mut memory)
        .ok()
        .map(|fs| fs.is_read_only())
}

fn fail(image: &Path, error: FilesError) -> Ending {
    let is_damage = matches!(error, FsError::Corrupt { .. }) || error.errno() == EUCLEAN;
    let code = if is_damage { ERRORS_LEFT } else { NOT_DONE };
    Ending::new(code, format!("{:#}", files::explain(image, VolumeError::Nandu(error))))
}

/// Checks the file system on a chip, which may be changed: it is a copy.
pub(crate) fn run(image: &Path, flash: &mut Flash, out: &mut Output) -> anyhow::Result<()> {
    if kind::system(flash) == System::Dffs {
        return check_dffs(image, flash, out);
    }
    let findings = check(flash).map_err(|error| fail(image, error))?;
    if out.is_json() {
        out.json(&json_of(image, &findings))?;
    } else {
        print(image, &findings, out)?;
    }
    match findings.error_count() {
        0 => Ok(()),
        count => {
            let message = format!("{}: {} left", image.display(), units::things(count, "error"));
            Err(Ending::new(ERRORS_LEFT, message).into())
        }
    }
}

/// Checks the file system of an image and repairs it. The image is written once, at the end; it stays as it is if nothing is wrong, or
/// the repair fails.
pub(crate) fn repair(image: &Path, out: &mut Output) -> anyhow::Result<()> {
    let not_done = |error: anyhow::Error| Ending::new(NOT_DONE, format!("{error:#}"));
    let (mut file, mut flash) = session::open(image).map_err(not_done)?;
    if kind::system(&flash) == System::Dffs {
        let why = "a mount of DFFS puts right what a cut left, and nothing else can be repaired";
        return Err(Ending::new(NOT_DONE, format!("{}: {why}", image.display())).into());
    }
    let before = check(&mut flash.clone()).map_err(|error| fail(image, error))?;
    if before.error_count() == 0 {
        return if out.is_json() { Ok(out.json(&json_of(image, &before))?) } else { print(image, &before, out) };
    }
    let (repairs, paths) = mend(&mut flash).map_err(|error| fail(image, error))?;
    let after = check(&mut flash.clone()).map_err(|error| fail(image, error))?;
    session::commit(&mut file, &mut flash).map_err(|error| not_done(error.into()))?;
    if out.is_json() {
        let mut found = json_of(image, &before);
        found["repairs"] = repairs.iter().map(|repair| json_of_repair(repair, &paths)).collect();
        found["left"] = after.error_count().into();
        out.json(&found)?;
    } else {
        print(image, &before, out)?;
        writeln!(out, "repaired:")?;
        for repair in &repairs {
            writeln!(out, "  {}", describe(repair, &paths))?;
        }
        for violation in &after.violations {
            writeln!(out, "left: {}", in_words(violation, &after.paths))?;
        }
    }
    let name = image.display();
    let lost = match before.tail_lost > 0 || repairs.iter().any(|repair| repair.what.is_loss()) {
        true => "something is lost",
        false => "nothing is lost",
    };
    let (code, message) = match after.error_count() {
        0 => (ERRORS_REPAIRED, format!("{name}: repaired, {lost}")),
        count => (ERRORS_LEFT, format!("{name}: repaired, {lost}; {} left", units::things(count, "error"))),
    };
    Err(Ending::new(code, message).into())
}

/// Checks a volume of DFFS by its own invariants.
fn check_dffs(image: &Path, flash: &mut Flash, out: &mut Output) -> anyhow::Result<()> {
    flash.power_on();
    let explain = |error| Ending::new(NOT_DONE, format!("{:#}", files::explain(image, error)));
    let mut memory = files::volume_memory(flash, System::Dffs, MemoryArgs::DEFAULT);
    let mut fs = files::mount(flash, System::Dffs, LookArgs::now(MemoryArgs::DEFAULT), &mut memory).map_err(explain)?;
    let (is_clean, reads) = (!fs.was_cut(), fs.nand().counters().reads);
    let is_read_only = fs.is_read_only();
    let mut violations = Vec::new();
    fs.check(&mut vec![0; SCRATCH_SIZE], &mut |violation| violations.push(violation.to_string())).map_err(explain)?;
    let pages_read = fs.nand().counters().reads - reads;
    let name = image.display().to_string();
    if out.is_json() {
        out.json(&json!({
            "image": name,
            "kind": "files",
            "system": System::Dffs.name(),
            "clean": is_clean,
            "read_only": is_read_only,
            "pages_read": pages_read,
            "violations": violations.iter().map(|what| json!({ "what": what })).collect::<Vec<_>>(),
        }))?;
    } else {
        let state = if is_read_only { files::READ_ONLY } else { in_what_state(is_clean) };
        writeln!(out, "{name}: a file system of DFFS; {state}")?;
        writeln!(out, "{} checked", units::things(pages_read, "page read"))?;
        for violation in &violations {
            writeln!(out, "  {violation}")?;
        }
        if violations.is_empty() {
            writeln!(out, "no invariant is violated")?;
        }
    }
    match violations.len() {
        0 => Ok(()),
        count => Err(Ending::new(ERRORS_LEFT, format!("{name}: {} left", units::things(count as u64, "error"))).into()),
    }
}

/// How a volume was left.
fn in_what_state(is_clean: bool) -> &'static str {
    match is_clean {
        true => "was left cleanly",
        false => "the power was cut; what recovery does was done in memory and not written",
    }
}

/// How many errors there are in the file system on a chip, which may be changed.
pub(crate) fn error_count(flash: &mut Flash) -> u64 {
    check(flash).map_or(u64::MAX, |findings| findings.error_count())
}

fn check(flash: &mut Flash) -> Result<Findings, FilesError> {
    flash.power_on();
    let options = MemoryArgs::DEFAULT.options_for(flash);
    let mut memory = files::memory(flash, &options);
    let mut fs = Fs::mount(flash, options, &mut memory)?;
    let is_clean = !fs.stats().was_cut;
    let reads = fs.nand().counters().reads;
    let mut violations = Vec::new();
    fs.verify(&mut vec![0; SCRATCH_SIZE], &mut |violation| violations.push(violation))?;
    Ok(Findings {
        is_clean,
        pages_read: fs.nand().counters().reads - reads,
        damaged_blocks: fs.stats().damaged_blocks,
        tail_lost: fs.stats().tail.lost,
        paths: if violations.is_empty() { Paths(HashMap::new()) } else { Paths::of(&mut fs) },
        violations,
    })
}

/// Repairs the file system on a chip and leaves it cleanly; returns what was done, and the paths that there are then.
fn mend(flash: &mut Flash) -> Result<(Vec<Repaired>, Paths), FilesError> {
    flash.power_on();
    let options = MemoryArgs::DEFAULT.options_for(flash);
    let mut memory = files::memory(flash, &options);
    let mut fs = Fs::mount(flash, options, &mut memory)?;
    fs.set_now(files::now());
    let before = Paths::of(&mut fs);
    let mut repairs = Vec::new();
    fs.repair(&mut vec![0; SCRATCH_SIZE], &mut |repair| {
        let name = repair.name.escape_ascii().to_string();
        repairs.push(Repaired { ino: repair.ino, name, range: repair.range, what: repair.what });
    })?;
    let mut paths = Paths::of(&mut fs);
    // What lost its name is known by the one that it had.
    for (ino, path) in before.0 {
        paths.0.entry(ino).or_insert(path);
    }
    fs.unmount()?;
    Ok((repairs, paths))
}

fn describe(repair: &Repaired, paths: &Paths) -> String {
    let mut line = format!("{}: {}", paths.name(repair.ino), repair.what);
    // Writing to a string does not fail.
    if let Some((offset, size)) = repair.range {
        let _ = write!(line, ": {} from {offset} on", units::things(size, "byte"));
    }
    if !repair.name.is_empty() {
        let _ = write!(line, ": '{}'", repair.name);
    }
    line
}

fn in_words(violation: &Violation, paths: &Paths) -> String {
    match violation {
        Violation::Fs { ino, .. } if paths.0.contains_key(ino) => format!("{violation} ({})", paths.0[ino]),
        violation => violation.to_string(),
    }
}

fn print(image: &Path, findings: &Findings, out: &mut Output) -> anyhow::Result<()> {
    let Findings { is_clean, pages_read, damaged_blocks, tail_lost, violations, paths } = findings;
    let name = image.display().to_string();
    writeln!(out, "{name}: a file system; {}", in_what_state(*is_clean))?;
    writeln!(out, "{} checked", units::things(*pages_read, "page read"))?;
    for violation in violations {
        writeln!(out, "  {}", in_words(violation, paths))?;
    }
    if *damaged_blocks > 0 {
        let blocks = units::things((*damaged_blocks).into(), "block");
        writeln!(out, "  {blocks} kept because a page that may be needed cannot be read")?;
    }
    if *tail_lost > 0 {
        writeln!(out, "  {}", files::loss_in_words(*tail_lost))?;
    }
    if findings.error_count() == 0 {
        writeln!(out, "no invariant is violated")?;
    }
    Ok(())
}

fn json_of(image: &Path, findings: &Findings) -> Value {
    let Findings { is_clean, pages_read, damaged_blocks, tail_lost, violations, paths } = findings;
    let violation = |violation: &Violation| match violation {
        Violation::Fs { invariant, ino, what, offset } => json!({
            "invariant": invariant,
            "inode": ino.0,
            "path": paths.0.get(ino),
            "offset": offset,
            "what": what,
        }),
        other => json!({ "invariant": "below the file system", "what": other.to_string() }),
    };
    json!({
        "image": image.display().to_string(),
        "kind": "files",
        "clean": is_clean,
        "pages_read": pages_read,
        "damaged_blocks": damaged_blocks,
        "lost_pages": tail_lost,
        "violations": violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

fn json_of_repair(repair: &Repaired, paths: &Paths) -> Value {
    json!({
        "inode": repair.ino.0,
        "path": paths.0.get(&repair.ino),
        "name": repair.name,
        "offset": repair.range.map(|(offset, _)| offset),
        "size": repair.range.map(|(_, size)| size),
        "what": repair.what.to_string(),
        "lost": repair.what.is_loss(),
    })
}
