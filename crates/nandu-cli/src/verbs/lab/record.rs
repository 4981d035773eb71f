//! `nandu lab record`: real work as a trace of what a file system's index is asked for.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context;
use clap::Args;
use nandu_bench::workload::recorder::{self, Recorder};
use nandu_bench::workload::{Operation, Trace};
use serde_json::json;

use crate::failure::Ending;
use crate::output::Output;

#[derive(Args, Debug)]
pub(crate) struct Record {
    /// Write the trace to this file, which must not be there yet; packed if its name ends in .gz. Otherwise the trace is
    /// printed, and what the command prints goes to the error stream
    #[arg(long, value_name = "TRACE")]
    out: Option<PathBuf>,
    /// Directory whose files count
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// The command and its arguments; it runs in the working directory
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Record, out: &mut Output) -> anyhow::Result<()> {
    // Before the work, not after: it may take long.
    let target = args.out.as_ref().map(|path| create(path)).transpose()?;
    let scanned = Recorder::scan(&args.dir).with_context(|| format!("cannot record '{}'", args.dir.display()));
    let outcome = scanned.and_then(|recorder| {
        let log = Log::new()?;
        let status = trace(&args.command, &log.path, target.is_none())?;
        Ok((read(recorder, &log)?, status))
    });
    let (trace, status) = match (outcome, &args.out) {
        (Ok(recorded), _) => recorded,
        (Err(error), Some(path)) => {
            // The empty file that was to hold the trace.
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        (Err(error), None) => return Err(error),
    };
    match (target, &args.out) {
        (Some(mut file), Some(path)) => {
            let is_packed = path.extension().is_some_and(|extension| extension == "gz");
            let bytes = if is_packed { trace.to_packed()? } else { trace.to_text().into_bytes() };
            file.write_all(&bytes).with_context(|| format!("cannot write '{}'", path.display()))?;
            summary(&trace, bytes.len(), out)?;
        }
        _ => out.bytes(trace.to_text().as_bytes())?,
    }
    if status.success() {
        return Ok(());
    }
    out.flush()?;
    Err(Ending::new(1, format!("the command did not succeed ({status}); what it did is recorded")).into())
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create_new(path).with_context(|| format!("cannot make '{}'", path.display()))
}

/// Runs a command under strace.
fn trace(command: &[String], log: &Path, prints_trace: bool) -> anyhow::Result<ExitStatus> {
    let mut strace = Command::new("strace");
    // -y says which file a number means, -s 0 leaves out what is read and written, and names are always whole.
    strace.args(["-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-e"]).arg(format!("trace={}", recorder::CALLS));
    strace.arg("-o").arg(log).arg("--").args(command);
    if prints_trace {
        strace.stdout(Stdio::from(io::stderr()));
    }
    match strace.status() {
        Ok(status) => Ok(status),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            anyhow::bail!(
                "strace is needed to see what the command does; Debian's package has its name: apt-get install strace"
            )
        }
        Err(error) => Err(error).context("cannot run strace"),
    }
}

fn read(mut recorder: Recorder, log: &Log) -> anyhow::Result<Trace> {
    let mut log = BufReader::new(File::open(&log.path).context("strace left no log")?);
    let mut line = Vec::new();
    // Names need not be UTF-8.
    while log.read_until(b'\n', &mut line)? > 0 {
        recorder.line(&String::from_utf8_lossy(&line))?;
        line.clear();
    }
    Ok(recorder.finish())
}

fn summary(trace: &Trace, byte_count: usize, out: &mut Output) -> anyhow::Result<()> {
    let operations = trace.operations();
    let run = &operations[trace.load_count()..];
    let count = |is: fn(&Operation) -> bool| run.iter().filter(|operation| is(operation)).count();
    let retrievals = count(|operation| matches!(operation, Operation::Get { .. } | Operation::Scan { .. }));
    let insertions = count(|operation| matches!(operation, Operation::Put { .. }));
    let deletions = count(|operation| matches!(operation, Operation::Delete { .. }));
    let load = trace.load_count();
    if out.is_json() {
        out.json(&json!({
            "load": load, "retrievals": retrievals, "insertions": insertions, "deletions": deletions, "bytes": byte_count,
        }))?;
    } else {
        writeln!(
            out,
            "{load} entries before; {retrievals} retrievals, {insertions} insertions, {deletions} deletions; \
             {byte_count} bytes"
        )?;
    }
    Ok(())
}

/// Where strace writes, removed in the end.
struct Log {
    path: PathBuf,
}

impl Log {
    fn new() -> anyhow::Result<Log> {
        for nth in 0..1000 {
            let path = std::env::temp_dir().join(format!("nandu-record-{}-{nth}.log", std::process::id()));
            match File::create_new(&path) {
                Ok(_) => return Ok(Log { path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).context("cannot make a temporary file"),
            }
        }
        anyhow::bail!("cannot make a temporary file: a thousand of them are there")
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // What cannot be removed stays for the system to clean up.
        let _ = std::fs::remove_file(&self.path);
    }
}
