//! Proof that `nandu` does with an MTD device of Linux what it does with a simulated chip: builds it, boots a guest with Linux's own simulator of
//! NAND flash, runs `tools/guest/proof.sh` there, and reads on this machine what was dumped of the device there.

mod peers;

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::outcome::Outcome;

/// What the guest leaves in the shared folder: dumps of its device, and what a file on it holds.
const DUMPS: [&str; 2] = ["dump.oob", "dump"];

/// How often a mount is killed in the guest where nobody says how often.
const KILLS: u32 = 50;

/// The same in the short form.
const KILLS_SHORT: u32 = 3;

/// How long the proof may take, in one of the two forms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All there is to prove.
    Full,
    /// What continuous integration has time for: fewer kills, fewer operations.
    Short,
}

/// Runs what the arguments name.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<Outcome, String> {
    match arguments {
        [] => prove(root, Form::Full),
        ["--short"] => prove(root, Form::Short),
        ["--peers", arguments @ ..] => peers::run(root, arguments),
        [name, ..] => Err(format!("guest does not know '{name}'")),
    }
}

/// Runs the proof, where this machine can; with `NANDU_GUEST` set it fails where it cannot.
fn prove(root: &Path, form: Form) -> Result<Outcome, String> {
    let boot = root.join("tools/guest/boot");
    let mut table = Table::default();
    if let Some(why) = lacking(&boot)? {
        return cannot_run(why);
    }
    table.add("the guest's parts fetched", "ok");
    let program = crate::built::as_for_tests(root)?.join("nandu");
    table.add("nandu built", "ok");
    let share = crate::target_directory(root).join("guest");
    let fail = |error: std::io::Error| format!("{}: {error}", share.display());
    let small = shared_with(&share, &program)?;
    let kills = env::var("NANDU_KILLS").ok().and_then(|text| text.parse::<u32>().ok());
    let (is_short, usual) = match form {
        Form::Full => (0, KILLS),
        Form::Short => (1, KILLS_SHORT),
    };
    let settings = format!("kills={}\nshort={is_short}\n", kills.unwrap_or(usual));
    fs::write(share.join("settings"), settings).map_err(fail)?;
    let mut guest = Command::new(&boot);
    guest.arg("run").arg(root.join("tools/guest/proof.sh")).arg(&share).arg(&small).args(installed("fsx"));
    let outcome = table.follow(&mut guest).and_then(|()| {
        for dump in DUMPS {
            read_here(&program, &share, dump)?;
        }
        table.add("dumps of the guest's device read on this machine", "ok");
        fs::remove_dir_all(&share).map_err(fail)
    });
    table.print();
    outcome.map(Outcome::from)
}

/// Why there can be no guest; fetches what it is made of.
fn lacking(boot: &Path) -> Result<Option<String>, String> {
    let missing = output(Command::new(boot).arg("missing"))?;
    if !missing.trim().is_empty() {
        let what = missing.split_whitespace().collect::<Vec<_>>().join(", ");
        return Ok(Some(format!("this machine lacks {what}")));
    }
    let fetched = output(Command::new(boot).arg("setup"));
    Ok(fetched.err().map(|why| format!("the guest could not be fetched: {why}")))
}

/// Makes the folder that the guest shares anew, and puts the program there without what a debugger would want, which is most of it and
/// would have to be unpacked in the guest. Returns the program there.
fn shared_with(share: &Path, program: &Path) -> Result<PathBuf, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", share.display());
    let _ = fs::remove_dir_all(share);
    fs::create_dir_all(share).map_err(fail)?;
    let small = share.join("nandu");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&small).arg(program);
    if succeed(&mut strip).is_err() {
        fs::copy(program, &small).map_err(fail)?;
    }
    Ok(small)
}

/// Checks a dump and reads a file of it.
fn read_here(program: &Path, share: &Path, dump: &str) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", share.display());
    let path = share.join(dump);
    succeed(Command::new(program).arg("check").arg(&path))?;
    let read = Command::new(program).args(["fs", "cat"]).arg(&path).arg("/content").output().map_err(fail)?;
    if !read.status.success() || read.stdout != fs::read(share.join("content")).map_err(fail)? {
        return Err(format!("{dump}: a file of the guest reads otherwise here"));
    }
    Ok(())
}

/// What was proved: a row for each step, with what it took on this machine's clock.
struct Table {
    rows: Vec<Row>,
    begin: Instant,
    last: Instant,
}

struct Row {
    step: String,
    result: &'static str,
    seconds: f64,
}

impl Default for Table {
    fn default() -> Table {
        let now = Instant::now();
        Table { rows: Vec::new(), begin: now, last: now }
    }
}

impl Table {
    /// A step that ended now, which is shown.
    fn add(&mut self, step: &str, result: &'static str) {
        let now = Instant::now();
        let seconds = (now - self.last).as_secs_f64();
        println!("{result:<8} {seconds:6.1} s  {step}");
        self.rows.push(Row { step: step.to_owned(), result, seconds });
        self.last = now;
    }

    /// Runs a guest, shows what it says, and takes its steps in: lines that begin with `ok: `, `not here: ` or `FAILED: `.
    fn follow(&mut self, guest: &mut Command) -> Result<(), String> {
        let name = guest.get_program().display().to_string();
        let fail = |error: std::io::Error| format!("{name}: {error}");
        let mut child = guest.stdout(Stdio::piped()).spawn().map_err(fail)?;
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).lines() {
                let line = line.map_err(fail)?;
                match read_step(&line) {
                    Some((step, result)) => self.add(step, result),
                    None if line.starts_with('#') => {}
                    None => println!("{line}"),
                }
            }
        }
        let status = child.wait().map_err(fail)?;
        if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
    }

    fn print(&self) {
        println!("{}", self.text());
        println!("in {:.0} s", self.begin.elapsed().as_secs_f64());
    }

    fn text(&self) -> String {
        let width = self.rows.iter().map(|row| row.step.chars().count()).max().unwrap_or(0);
        let mut lines = vec![format!("{:<width$}  {:<8}  seconds", "step", "result")];
        lines.extend(
            self.rows.iter().map(|row| format!("{:<width$}  {:<8}  {:7.1}", row.step, row.result, row.seconds)),
        );
        lines.join("\n")
    }
}

/// The step that a line of the guest's tells of, and how it ended.
fn read_step(line: &str) -> Option<(&str, &'static str)> {
    ["ok", "not here", "FAILED"]
        .into_iter()
        .find_map(|result| Some((line.strip_prefix(result)?.strip_prefix(": ")?, result)))
}

/// A program of this machine's, where it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// That there can be no guest.
fn cannot_run(why: String) -> Result<Outcome, String> {
    if env::var_os("NANDU_GUEST").is_some() { Err(why) } else { Ok(Outcome::Lacks(why)) }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", command.get_program().display())) }
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Table, read_step};

    #[test]
    fn steps_are_read_from_what_the_guest_says() {
        assert_eq!(read_step("ok: mounted by fstab"), Some(("mounted by fstab", "ok")));
        assert_eq!(read_step("FAILED: umount"), Some(("umount", "FAILED")));
        assert_eq!(read_step("not here: git"), Some(("git", "not here")));
        assert_eq!(read_step("okay: no step"), None);
        assert_eq!(read_step("#status 0"), None);
    }

    #[test]
    fn the_table_has_a_line_for_each_step() {
        let row = |step: &str, seconds| Row { step: step.to_owned(), result: "ok", seconds };
        let table = Table { rows: vec![row("format", 1.25), row("mount", 10.0)], ..Table::default() };
        assert_eq!(table.text(), "step    result    seconds\nformat  ok            1.2\nmount   ok           10.0");
    }

    #[test]
    fn a_guest_that_fails_is_a_failure_and_its_steps_stand_in_the_table() {
        let mut table = Table::default();
        let mut guest = std::process::Command::new("sh");
        guest.args(["-c", "echo 'ok: one'; echo 'FAILED: two'; exit 3"]);
        let error = table.follow(&mut guest).unwrap_err();
        assert!(error.contains("exit status: 3"), "{error}");
        let results: Vec<_> = table.rows.iter().map(|row| (row.step.as_str(), row.result)).collect();
        assert_eq!(results, [("one", "ok"), ("two", "FAILED")]);
    }
}
