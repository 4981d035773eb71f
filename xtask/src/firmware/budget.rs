//! What a firmware with nandu in it takes, profile by profile, held against limits.
//!
//! The programs are those of `firmware/budget`. One is linked and not run: its size is the code of a profile. One is run in an emulated
//! Cortex-M4 and measures memory and stack, one is run there with a fixed time for each instruction and counts them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::emulator::{self, M4, output};
use super::{TARGET, crate_of, panics, target, toolchain};
use crate::outcome::Outcome;

const KIB: u64 = 1024;

/// A figure of a profile.
struct Figure {
    name: &'static str,
    /// Beyond it the check fails. It is what was measured last, with the compiler of Debian's packages (1.96), rounded up: code to the next 50 bytes,
    /// since the folder in which it is built moves it by 8. Panics are the calls of the language's panics in the image, with two or three more, since the compiler joins some. It rises only for another compiler, or for something that users were given: said in the
    /// commit.
    limit: u64,
    /// What has to be reached, and what is hoped for.
    must: u64,
    aim: u64,
    /// What commit 3f09a33 took, where it was measured.
    before: Option<u64>,
}

const fn figure(name: &'static str, limit: u64, must: u64, aim: u64, before: Option<u64>) -> Figure {
    Figure { name, limit, must, aim, before }
}

/// What is measured of one kind of firmware.
struct Profile {
    name: &'static str,
    calls: &'static str,
    figures: &'static [Figure],
}

const PROFILES: [Profile; 5] = [
    Profile {
        name: "store-min",
        calls: "open, put, get, delete",
        figures: &[
            figure("code", 74_800, 54 * KIB, 54 * KIB, Some(160_130)),
            figure("panics", 108, 0, 0, None),
            figure("ram", 21_620, 20 * KIB, 20 * KIB, Some(51 * KIB)),
            figure("stack_open", 3_550, 4 * KIB, 4 * KIB, Some(41 * KIB)),
            figure("stack_call", 1_750, 3 * KIB, 3 * KIB, Some(6 * KIB)),
            figure("put_instructions", 23_200, 28_000, 28_000, Some(80_000)),
            figure("get_instructions", 7_550, 9_000, 9_000, Some(27_000)),
        ],
    },
    Profile {
        name: "records",
        calls: "store without snapshots: batches, ranges, group commit, large values too",
        figures: &[
            figure("code", 110_420, 70 * KIB, 70 * KIB, None),
            figure("panics", 124, 0, 0, None),
            figure("ram", 24_640, 24 * KIB, 24 * KIB, None),
            figure("stack_open", 3_760, 4 * KIB, 4 * KIB, None),
            figure("stack_call", 2_450, 3 * KIB, 3 * KIB, None),
            figure("put_instructions", 24_160, 28_000, 28_000, None),
            figure("get_instructions", 7_720, 9_000, 9_000, None),
        ],
    },
    Profile {
        name: "store",
        calls: "batches, ranges, snapshots, group commit, large values too",
        figures: &[
            figure("code", 123_630, 70 * KIB, 70 * KIB, Some(166_750)),
            figure("panics", 130, 0, 0, None),
            figure("ram", 26_110, 24 * KIB, 24 * KIB, None),
            figure("stack_open", 3_990, 4 * KIB, 4 * KIB, None),
            figure("stack_call", 2_910, 3 * KIB, 3 * KIB, None),
            figure("put_instructions", 24_610, 28_000, 28_000, Some(80_000)),
            figure("get_instructions", 7_720, 9_000, 9_000, Some(27_000)),
        ],
    },
    Profile {
        name: "files",
        calls: "mount, create, read, write, rename, unlink",
        figures: &[
            figure("code", 141_820, 105 * KIB, 90 * KIB, Some(200_858)),
            figure("panics", 155, 0, 0, None),
            figure("ram", 27_200, 28 * KIB, 26 * KIB, Some(62 * KIB)),
            figure("stack_open", 3_960, 4 * KIB, 4 * KIB, Some(41 * KIB)),
            figure("stack_call", 3_940, 3 * KIB, 3 * KIB, Some(24 * KIB)),
        ],
    },
    Profile {
        name: "all",
        calls: "store and files with every call but verify, two bits a cell, tags",
        figures: &[
            figure("code", 205_140, 136 * KIB, 96 * KIB, Some(203_294)),
            figure("panics", 180, 0, 0, None),
            figure("ram", 44_570, 48 * KIB, 36 * KIB, None),
            figure("stack_open", 5_160, 4 * KIB, 4 * KIB, None),
            figure("stack_call", 4_430, 3 * KIB, 3 * KIB, None),
            figure("put_instructions", 25_000, 28_000, 28_000, Some(80_000)),
            figure("get_instructions", 7_730, 9_000, 9_000, Some(27_000)),
        ],
    },
];

/// What was measured of a profile, by the names of the figures; what could not be measured is missing.
#[derive(Default)]
pub(super) struct Measured {
    values: BTreeMap<String, u64>,
    /// Which call was the deepest one, by the figure.
    calls: BTreeMap<String, String>,
}

impl Measured {
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// Takes lines of a name, a number and perhaps the name of a call.
    pub(super) fn read(&mut self, output: &str) {
        for line in output.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) else { continue };
            self.values.insert(name.to_owned(), value);
            if let Some(call) = words.next() {
                self.calls.insert(name.to_owned(), call.to_owned());
            }
        }
    }

    /// The deepest stack of all, and what is in memory at that moment.
    fn add_up(&mut self) {
        let Some(stack) = self.get("stack_open").max(self.get("stack_call")) else { return };
        self.values.insert("stack".to_owned(), stack);
        if let (Some(memory), Some(size)) = (self.get("memory"), self.get("struct")) {
            self.values.insert("ram".to_owned(), memory + size + stack);
        }
    }
}

/// How the figures are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Print {
    Table,
    /// A line for each profile, and nothing else.
    Json,
}

/// Measures the profiles that are asked for, by their names, prints, and fails if a figure is beyond its limit.
pub(super) fn run(root: &Path, print: Print, is_asked: &dyn Fn(&str) -> bool) -> Result<Outcome, String> {
    let start = Instant::now();
    let can_run = emulator::is_there();
    let mut excesses = String::new();
    let profiles: Vec<_> = PROFILES.iter().filter(|profile| is_asked(profile.name)).collect();
    if profiles.is_empty() {
        return Err(format!("no such profile: {}", PROFILES.map(|profile| profile.name).join(", ")));
    }
    for profile in profiles {
        let measured = measure(root, profile, can_run)?;
        match print {
            Print::Table => print_table(root, profile, &measured)?,
            Print::Json => println!("{}", json(profile, &measured)),
        }
        for figure in profile.figures {
            if let Some(value) = measured.get(figure.name).filter(|&value| value > figure.limit) {
                let _ = write!(excesses, "\n  {}: {} is {value}, limit {}", profile.name, figure.name, figure.limit);
            }
        }
    }
    if print == Print::Table {
        println!("budgets measured in {:.0} s", start.elapsed().as_secs_f64());
    }
    if !excesses.is_empty() {
        return Err(format!("beyond the budget:{excesses}"));
    }
    match can_run {
        true => Ok(Outcome::Ran),
        false => Ok(Outcome::Lacks(format!(
            "{} is missing: memory, stack and instructions are not measured",
            emulator::NAME
        ))),
    }
}

/// What was measured of every profile: profile, figure and number. What cannot be measured without the emulator is missing.
pub(crate) fn figures(root: &Path) -> Result<Vec<(&'static str, &'static str, u64)>, String> {
    let can_run = emulator::is_there();
    let mut figures = Vec::new();
    for profile in &PROFILES {
        let measured = measure(root, profile, can_run)?;
        let of_profile = profile.figures.iter().filter_map(|figure| Some((figure.name, measured.get(figure.name)?)));
        figures.extend(of_profile.map(|(name, value)| (profile.name, name, value)));
    }
    Ok(figures)
}

/// The limit of a figure, and what has to be reached.
pub(crate) fn limit(profile: &str, figure: &str) -> Option<(u64, u64)> {
    let profile = PROFILES.iter().find(|it| it.name == profile)?;
    profile.figures.iter().find(|it| it.name == figure).map(|it| (it.limit, it.must))
}

/// The largest functions of a profile.
pub(super) fn functions(root: &Path, name: &str) -> Result<(), String> {
    let profile = of_name(name)?;
    build(root, profile, "size", &["code"])?;
    let symbols = symbols(&binary(root, "size", "code"), &["--demangle"])?;
    for (size, name) in symbols.iter().take(25) {
        println!("{size:>8}  {name}");
    }
    Ok(())
}

/// The functions of a profile that may panic.
pub(super) fn panicking(root: &Path, name: &str) -> Result<(), String> {
    build(root, of_name(name)?, "size", &["code"])?;
    let functions = panics::of(&binary(root, "size", "code"))?;
    print!("{}", panics::table(&functions.ok_or("arm-none-eabi-objdump is missing")?));
    Ok(())
}

fn of_name(name: &str) -> Result<&'static Profile, String> {
    let known = || PROFILES.map(|profile| profile.name).join(", ");
    let profile = PROFILES.iter().find(|profile| profile.name == name);
    profile.ok_or_else(|| format!("no profile {name}: {}", known()))
}

fn measure(root: &Path, profile: &Profile, can_run: bool) -> Result<Measured, String> {
    let mut measured = Measured::default();
    let bins: &[&str] = if can_run { &["code", "stack"] } else { &["code"] };
    build(root, profile, "size", bins)?;
    let code = binary(root, "size", "code");
    let sizes = output(Command::new("size").args(["-A", "-d"]).arg(&code))?;
    measured.values.insert("code".to_owned(), linked_size(&sizes));
    if let Some(functions) = panics::of(&code)? {
        measured.values.insert("panics".to_owned(), panics::count(&functions));
    }
    if !can_run {
        return Ok(measured);
    }
    measured.read(&output(&mut emulator::run(M4, &binary(root, "size", "stack")))?);
    if profile.figures.iter().any(|figure| figure.name == "put_instructions") {
        build(root, profile, "release", &["instructions"])?;
        measured.read(&output(&mut emulator::run_counted(M4, &binary(root, "release", "instructions")))?);
        emulator::check_trial(measured.get("trial"))?;
    }
    measured.add_up();
    for figure in profile.figures {
        let is_there = measured.get(figure.name).is_some() || figure.name == "panics";
        is_there.then_some(()).ok_or_else(|| format!("{} of {} was not measured", figure.name, profile.name))?;
    }
    Ok(measured)
}

fn build(root: &Path, profile: &Profile, optimisation: &str, bins: &[&str]) -> Result<(), String> {
    let folder = root.join("firmware");
    let mut command = toolchain(&folder)?;
    command
        .args(["build", "--quiet", "--locked", "--target", TARGET, "--package", "nandu-budget"])
        .args(["--profile", optimisation, "--features", profile.name])
        .args(bins.iter().flat_map(|bin| ["--bin", bin]))
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", target(root));
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("profile {} does not build: {status}", profile.name)) }
}

fn binary(root: &Path, optimisation: &str, bin: &str) -> PathBuf {
    target(root).join(TARGET).join(optimisation).join(bin)
}

/// Code and constants in the listing of `size -A` for a linked program.
pub(crate) fn linked_size(listing: &str) -> u64 {
    let sections = listing.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        matches!(words.next(), Some(".text" | ".rodata")).then(|| words.next()?.parse::<u64>().ok())?
    });
    sections.sum()
}

/// Functions with their bytes, the largest first.
fn symbols(binary: &Path, arguments: &[&str]) -> Result<Vec<(u64, String)>, String> {
    let mut command = Command::new("nm");
    command.args(["--print-size", "--size-sort", "--reverse-sort", "--radix=d"]).args(arguments).arg(binary);
    Ok(functions_in(&output(&mut command)?))
}

/// Reads lines of an address, a size, a kind and a name.
fn functions_in(listing: &str) -> Vec<(u64, String)> {
    let function = |line: &str| {
        let mut words = line.splitn(4, ' ');
        let (_, size, kind, name) = (words.next()?, words.next()?, words.next()?, words.next()?);
        matches!(kind, "t" | "T").then(|| Some((size.parse().ok()?, name.to_owned())))?
    };
    listing.lines().filter_map(function).collect()
}

fn print_table(root: &Path, profile: &Profile, measured: &Measured) -> Result<(), String> {
    println!("\n{}: {}", profile.name, profile.calls);
    println!("  {:<18} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "measured", "limit", "must", "aim", "3f09a33");
    for figure in profile.figures {
        let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let call = measured.calls.get(figure.name).map_or("", String::as_str);
        println!(
            "  {:<18} {:>9} {:>9} {:>9} {:>9} {:>9} {call}",
            figure.name,
            number(measured.get(figure.name)),
            figure.limit,
            figure.must,
            figure.aim,
            number(figure.before)
        );
    }
    println!("  functions by crate: {}", crates_of(&binary(root, "size", "code"))?);
    if let (Some(memory), Some(size)) = (measured.get("memory"), measured.get("struct")) {
        println!("  memory {memory}, struct {size}");
    }
    Ok(())
}

/// The crates of a linked program with the bytes of their functions, the largest first.
pub(super) fn crates_of(binary: &Path) -> Result<String, String> {
    let mut crates = BTreeMap::new();
    for (size, name) in symbols(binary, &[])? {
        *crates.entry(crate_of(&name).to_owned()).or_default() += size;
    }
    let mut crates: Vec<(u64, String)> = crates.into_iter().map(|(name, size)| (size, name)).collect();
    crates.sort_unstable_by(|a, b| b.cmp(a));
    let crates: Vec<String> = crates.iter().map(|(size, name)| format!("{name} {size}")).collect();
    Ok(crates.join(", "))
}

fn json(profile: &Profile, measured: &Measured) -> String {
    let mut line = format!("{{\"profile\":\"{}\"", profile.name);
    let names = [
        "code",
        "panics",
        "ram",
        "stack",
        "put_instructions",
        "get_instructions",
        "memory",
        "struct",
        "stack_open",
        "stack_call",
    ];
    for name in names {
        let value = measured.get(name).map_or_else(|| "null".to_owned(), |value| value.to_string());
        let _ = write!(line, ",\"{name}\":{value}");
    }
    line.push('}');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_program_counts_with_its_code_and_its_constants() {
        let listing = "\
code  :
section             size        addr
.vector_table       1024           0
.text             160012        1024
.rodata             3012      161040
.bss                   4   536870912
Total             164207
";
        assert_eq!(linked_size(listing), 163_024);
    }

    #[test]
    fn only_functions_are_listed() {
        let listing = "\
00012345 00000100 t _RNvMNtCs5v4_9nandu_log5mount4open
00000000 00000004 b PORT
00000004 00000040 T main
";
        assert_eq!(
            functions_in(listing),
            [(100, "_RNvMNtCs5v4_9nandu_log5mount4open".to_owned()), (40, "main".to_owned())]
        );
    }

    #[test]
    fn ram_is_memory_struct_and_the_deepest_stack() {
        let mut measured = Measured::default();
        measured.read("memory 1000\nstruct 200\nstack_open 30 open\nstack_call 40 put (large)\n");
        measured.add_up();
        assert_eq!((measured.get("stack"), measured.get("ram")), (Some(40), Some(1240)));
        assert_eq!(measured.calls.get("stack_call").map(String::as_str), Some("put (large)"));
        let line = json(&PROFILES[0], &measured);
        assert!(
            line.starts_with(
                r#"{"profile":"store-min","code":null,"panics":null,"ram":1240,"stack":40,"put_instructions":null"#
            ),
            "{line}"
        );
    }
}
