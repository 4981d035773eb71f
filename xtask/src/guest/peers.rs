//! UBIFS, JFFS2 and nandu on the same work, in one guest, on the same simulated chip, counted by the kernel.
//!
//! A row is a file system and a workload. What a row came to stands in a file of its own below the target directory as the guest said it,
//! so rows can be run one by one and again; the tables are made of what stands there.

use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::Outcome;

/// Where the tables are kept.
const PAGE: &str = "docs/results/peers.md";

/// What is compared, with the words that stand in the tables.
const SYSTEMS: [(&str, &str); 4] =
    [("ubifs", "UBIFS"), ("jffs2", "JFFS2"), ("nandu", "nandu"), ("tagged", "nandu, with tags")];

/// Each of them does these, but the last only those that [`is_row`] says.
const WORKS: [&str; 9] = [
    "postmark-512",
    "postmark-256",
    "postmark-128k",
    "updates",
    "creates",
    "mount-1000",
    "mount-10000",
    "file",
    "full",
];

/// The tables: what was done, by which workload, and which of its phases count.
const TABLES: [(&str, &str, &[&str]); 15] = [
    ("Postmark on 512 MiB, writes of 4 KB, each synced", "postmark-512", &["create", "transactions"]),
    ("Postmark on 256 MiB, writes of 4 KB, each synced", "postmark-256", &["create", "transactions"]),
    ("Postmark on 512 MiB, writes of 128 KB, each synced", "postmark-128k", &["create", "transactions"]),
    ("20,000 updates of 100 bytes at random in a file of 16 MiB, each synced", "updates", &["update"]),
    ("10,000 empty files made in one directory, each synced", "creates", &["create"]),
    ("Mount with 10,000 files, after an unmount", "mount-10000", &["clean"]),
    ("The ten seconds after that mount", "mount-10000", &["settled"]),
    ("stat of 10,000 files, after that", "mount-10000", &["stat"]),
    ("Mount with 10,000 files, after the power was cut", "mount-10000", &["cut"]),
    ("The ten seconds after that mount", "mount-10000", &["settled-cut"]),
    ("Mount with 1,000 files, after the power was cut", "mount-1000", &["cut"]),
    ("A file of 100 MiB written, and synced at its end", "file", &["write"]),
    ("The file of 100 MiB read", "file", &["read"]),
    ("128 MiB filled until there is no room", "full", &["fill"]),
    ("30,000 synced overwrites of 4 KB at random, 90 % full of what it holds", "full", &["overwrite"]),
];

/// Microseconds that a page read, a page program and a block erase of the chip take.
const LATENCIES: [f64; 3] = [165.6, 905.8, 1500.0];

/// Whether a file system does a workload.
fn is_row(system: &str, work: &str) -> bool {
    system != "tagged" || ["postmark-512", "postmark-256", "updates", "creates", "full"].contains(&work)
}

fn all_rows() -> impl Iterator<Item = String> {
    let pairs = SYSTEMS.iter().flat_map(|(system, _)| WORKS.iter().map(move |work| (system, work)));
    pairs.filter(|(system, work)| is_row(system, work)).map(|(system, work)| format!("{system}/{work}"))
}

/// What the arguments ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    /// Rows that begin or end so; all, if none is named.
    only: Vec<String>,
    /// Rows that stand there already are left out.
    resumes: bool,
    /// Nothing is run.
    shows: bool,
    is_json: bool,
}

fn parse(arguments: &[&str]) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    let mut rest = arguments.iter();
    while let Some(&word) = rest.next() {
        match word {
            "--only" => wanted.only.push((*rest.next().ok_or("--only takes a row: FILE_SYSTEM/WORKLOAD")?).to_owned()),
            "--resume" => wanted.resumes = true,
            "--show" => wanted.shows = true,
            "--json" => wanted.is_json = true,
            other => return Err(format!("guest --peers does not know '{other}'")),
        }
    }
    Ok(wanted)
}

impl Wanted {
    fn rows(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let named = |row: &str| {
            let matches = |only: &String| {
                row == only || row.split_once('/').is_some_and(|(system, work)| system == only || work == only)
            };
            self.only.is_empty() || self.only.iter().any(matches)
        };
        let rows = all_rows().filter(|row| named(row));
        rows.filter(|row| !(self.shows || self.resumes && is_there(row))).collect()
    }
}

/// Runs the rows that the arguments ask for, prints the tables, and writes the page, which names the rows that are not there.
pub(super) fn run(root: &Path, arguments: &[&str]) -> Result<Outcome, String> {
    let wanted = parse(arguments)?;
    let folder = crate::target_directory(root).join("peers");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let rows = wanted.rows(|row| file_of(&folder, row).exists());
    if rows.is_empty() && !wanted.shows && !wanted.resumes {
        return Err("no row has such a name".to_owned());
    }
    if !rows.is_empty() {
        let boot = root.join("tools/guest/boot");
        if let Some(why) = super::lacking(&boot)? {
            return super::cannot_run(why);
        }
        boot_with(root, &boot, &folder, &rows)?;
    }
    let results = Results::load(&folder);
    if wanted.is_json {
        print!("{}", results.json());
        return Ok(Outcome::Ran);
    }
    let page = results.page();
    println!("{page}");
    let path = root.join(PAGE);
    let folder = path.parent().unwrap_or(root);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, page));
    written.map(Outcome::from).map_err(|error| format!("{PAGE}: {error}"))
}

fn file_of(folder: &Path, row: &str) -> PathBuf {
    folder.join(row.replace('/', "-"))
}

/// Boots the guest, and keeps what each row came to once it is done.
fn boot_with(root: &Path, boot: &Path, folder: &Path, rows: &[String]) -> Result<(), String> {
    let mut build = Command::new("cargo");
    let words = [
        "build",
        "--quiet",
        "--release",
        "-p",
        "nandu-cli",
        "-p",
        "nandu-bench",
        "--bin",
        "nandu",
        "--bin",
        "nandu-work",
    ];
    super::succeed(build.current_dir(root).args(words))?;
    let program = crate::target_directory(root).join("release/nandu");
    // Several guests may run beside each other.
    let share = crate::target_directory(root).join(format!("guest-{}", std::process::id()));
    let small = super::shared_with(&share, &program)?;
    let fail = |error: std::io::Error| format!("{}: {error}", share.display());
    fs::write(share.join("settings"), format!("rows='{}'\n", rows.join(" "))).map_err(fail)?;
    let commit = super::output(Command::new("git").current_dir(root).args(["rev-parse", "--short", "HEAD"]))?;
    let mut guest = Command::new(boot);
    guest
        .arg("run")
        .arg(root.join("tools/guest/peers.sh"))
        .arg(&share)
        .arg(&small)
        .arg(program.with_file_name("nandu-work"));
    guest.env("NANDU_GUEST_EXACT", "1").env("NANDU_GUEST_SECONDS", "14400").stdout(Stdio::piped());
    let mut child = guest.spawn().map_err(fail)?;
    let (mut kernel, mut lines) = (String::new(), Vec::new());
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line.map_err(fail)?;
            if let Some(version) = line.strip_prefix("#kernel ") {
                version.clone_into(&mut kernel);
            } else if let Some(row) = line.strip_prefix("#row ") {
                eprintln!("{row} ..");
                lines = vec![format!("#from {} {kernel}", commit.trim())];
            } else if let Some(row) = line.strip_prefix("#done ") {
                fs::write(file_of(folder, row), lines.join("\n")).map_err(fail)?;
            } else if line.starts_with('#') {
                eprintln!("   {line}");
                lines.push(line);
            } else {
                println!("{line}");
            }
        }
    }
    let status = child.wait().map_err(fail)?;
    fs::remove_dir_all(&share).map_err(fail)?;
    if status.success() { Ok(()) } else { Err(format!("the guest: {status}")) }
}

/// What a phase did and cost, or what was in memory at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Phase {
    name: String,
    numbers: Vec<(String, u64)>,
}

impl Phase {
    /// Of `#phase NAME A=1 B=2` or `#memory NAME A=1`.
    fn read(line: &str) -> Option<Phase> {
        let mut words = line.strip_prefix("#phase ").or_else(|| line.strip_prefix("#memory "))?.split(' ');
        let name = words.next()?.to_owned();
        let number =
            |word: &str| word.split_once('=').and_then(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
        Some(Phase { name, numbers: words.map(number).collect::<Option<_>>()? })
    }

    fn number(&self, name: &str) -> u64 {
        self.numbers.iter().find(|(own, _)| own == name).map_or(0, |&(_, value)| value)
    }
}

/// All rows that are there.
struct Results {
    rows: Vec<(String, Vec<Phase>)>,
    /// Commits of nandu and versions of the kernel that they were counted with.
    commits: Vec<String>,
    kernels: Vec<String>,
}

impl Results {
    fn load(folder: &Path) -> Results {
        let texts = all_rows().filter_map(|row| Some((fs::read_to_string(file_of(folder, &row)).ok()?, row)));
        Results::of(texts.map(|(text, row)| (row, text)))
    }

    fn of(texts: impl Iterator<Item = (String, String)>) -> Results {
        let mut results = Results { rows: Vec::new(), commits: Vec::new(), kernels: Vec::new() };
        for (row, text) in texts {
            let mut from = text.lines().next().unwrap_or_default().split(' ').skip(1).map(str::to_owned);
            let is_ours = !(row.starts_with("ubifs") || row.starts_with("jffs2"));
            for (list, own, counts) in
                [(&mut results.commits, from.next(), is_ours), (&mut results.kernels, from.next(), true)]
            {
                list.extend(own.filter(|own| counts && !list.contains(own)));
            }
            results.rows.push((row, text.lines().filter_map(Phase::read).collect()));
        }
        results
    }

    /// The first phase of a row that has this name.
    fn phase(&self, system: &str, work: &str, name: &str) -> Option<&Phase> {
        let (_, phases) = self.rows.iter().find(|(row, _)| *row == format!("{system}/{work}"))?;
        phases.iter().find(|phase| phase.name == name)
    }

    /// Numbers of phases, added up.
    fn sum<const N: usize>(&self, system: &str, work: &str, phases: &[&str], names: [&str; N]) -> Option<[u64; N]> {
        let mut sums = [0; N];
        for name in phases {
            let phase = self.phase(system, work, name)?;
            for (sum, name) in sums.iter_mut().zip(names) {
                *sum += phase.number(name);
            }
        }
        Some(sums)
    }

    fn json(&self) -> String {
        let mut text = String::from("[");
        for (index, (row, phase)) in
            self.rows.iter().flat_map(|(row, phases)| phases.iter().map(move |phase| (row, phase))).enumerate()
        {
            let _ =
                write!(text, "{}\n{{\"row\":\"{row}\",\"phase\":\"{}\"", if index > 0 { "," } else { "" }, phase.name);
            for (name, value) in &phase.numbers {
                let _ = write!(text, ",\"{name}\":{value}");
            }
            text.push('}');
        }
        text + "\n]\n"
    }

    fn page(&self) -> String {
        let mut text = format!(
            "# UBIFS, JFFS2 and nandu on one chip\n\n\
             Written by `cargo xtask guest --peers`; not to be changed by hand. nandu at commit {}, Linux {}.\n\n\
             One guest, emulated, with one processor that takes a nanosecond for each instruction, whatever it is, and leaves out what it would wait: so\n\
             all figures are the same on any machine, up to some hundredths. The chip is the kernel's simulator of NAND flash: 512 MiB if not said otherwise, pages of 4 KiB,\n\
             128 in a block, one bit a cell. Reads, programs and erases are the kernel's own counts of the functions that every page and block\n\
             goes through, whoever asks. Flash is what they would take on the chip: {} us a read, {} a program, {} an erase. Wall is the guest's clock and CPU\n\
             the time its processor was busy, both without waiting for the chip. nandu is its FUSE mount with what `nandu mount --noatime` takes; UBI and the file systems of\n\
             the kernel's are as their tools make them, but that UBI's headers have pages of their own. With tags, spare bytes are used that this simulator does\n\
             not protect; on a board the controller has to.\n",
            self.commits.join(", "),
            self.kernels.join(", "),
            LATENCIES[0],
            LATENCIES[1],
            LATENCIES[2],
        );
        for (title, work, phases) in TABLES {
            let lines: Vec<String> =
                SYSTEMS.iter().filter_map(|(system, name)| self.line(system, name, work, phases)).collect();
            if !lines.is_empty() {
                let _ = write!(
                    text,
                    "\n## {title}\n\n| | page reads | programs | erases | flash, s | wall, s | CPU, s |\n|---|---|---|---|---|---|---|\n{}\n",
                    lines.join("\n")
                );
            }
        }
        self.add_memory(&mut text);
        let missing: Vec<String> = all_rows().filter(|row| !self.rows.iter().any(|(name, _)| name == row)).collect();
        if !missing.is_empty() {
            let _ = write!(text, "\nNot counted here: {}.\n", missing.join(", "));
        }
        text
    }

    /// A line of a table.
    fn line(&self, system: &str, name: &str, work: &str, phases: &[&str]) -> Option<String> {
        let names = ["reads", "programs", "erases", "wall_ms", "busy_ms"];
        let [reads, programs, erases, wall, busy] = self.sum(system, work, phases, names)?;
        let counts = [reads, programs, erases];
        let flash: f64 = counts.iter().zip(LATENCIES).map(|(&count, each)| count as f64 * each).sum();
        let [reads, programs, erases] = counts.map(grouped);
        let (flash, wall, busy) = (flash / 1e6, wall as f64 / 1e3, busy as f64 / 1e3);
        Some(format!("| {name} | {reads} | {programs} | {erases} | {flash:.2} | {wall:.2} | {busy:.2} |"))
    }

    fn add_memory(&self, text: &mut String) {
        text.push_str("\n## What it holds, of 128 MiB\n\n| | MiB in files of 128 KiB |\n|---|---|\n");
        for (system, name) in SYSTEMS {
            if let Some([bytes]) = self.sum(system, "full", &["fill"], ["bytes"]) {
                let _ = writeln!(text, "| {name} | {:.1} |", bytes as f64 / f64::from(1 << 20));
            }
        }
        text.push_str(
            "\n## Memory, with 10,000 files\n\nMemory of the whole system beyond what it had before the module was loaded, without page cache and without what the simulated chip holds, in MB; the process\n\
             of nandu and its program included, as are the modules of the kernel's.\n\n\
             | | mounted | after stat of all files |\n|---|---|---|\n",
        );
        for (system, name) in SYSTEMS {
            let at = |point| self.phase(system, "mount-10000", point).map(|phase| phase.number("kib") as f64);
            let (Some(before), Some(mounted), Some(walked)) = (at("before"), at("mounted"), at("walked")) else {
                continue;
            };
            let beyond = |kib: f64| (kib - before) * 1024.0 / 1e6;
            let _ = writeln!(text, "| {name} | {:.1} | {:.1} |", beyond(mounted), beyond(walked));
        }
    }
}

/// A number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_file_system_by_workload_or_by_both() {
        let rows = |words: &[&str]| parse(words).unwrap().rows(|row| row == "ubifs/creates");
        assert_eq!(rows(&["--only", "ubifs/creates"]), ["ubifs/creates"]);
        assert_eq!(rows(&["--only", "creates", "--resume"]), ["jffs2/creates", "nandu/creates", "tagged/creates"]);
        assert_eq!(rows(&["--only", "tagged"]).len(), 5);
        assert_eq!((rows(&[]).len(), rows(&["--show"]).len()), (32, 0));
        assert!(parse(&["--only"]).is_err() && parse(&["--all"]).is_err());
    }

    #[test]
    fn tables_are_made_of_what_the_guest_said() {
        let said = "#from abc 6.1\n#phase create ops=1 bytes=2 reads=1000 programs=2000 erases=3 wall_ms=40 busy_ms=50\n\
                    #phase transactions ops=1 bytes=2 reads=1 programs=2 erases=3 wall_ms=4 busy_ms=5";
        let results = Results::of([("nandu/postmark-512".to_owned(), said.to_owned())].into_iter());
        let line = "| nandu | 1,001 | 2,002 | 6 | 1.99 | 0.04 | 0.06 |";
        assert!(results.page().contains(line), "{}", results.page());
        assert!(results.page().contains("at commit abc, Linux 6.1"));
        assert!(results.json().contains("{\"row\":\"nandu/postmark-512\",\"phase\":\"create\",\"ops\":1,"));
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn every_table_has_a_workload_that_is_run() {
        assert!(TABLES.iter().all(|(_, work, _)| WORKS.contains(work)));
    }
}
