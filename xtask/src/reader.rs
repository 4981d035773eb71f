//! The reader for boot loaders, in C: held against the commands, fed damaged images, and measured.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::built::as_for_tests;
use crate::outcome::Outcome;

/// Lives of each kind of volume, each with some images, and damaged images.
const SHORT: (u64, u64) = (3, 4_000);
const FULL: (u64, u64) = (40, 100_000);

/// Most bytes of code for a microcontroller.
const CODE_MAX: u64 = 12 * 1024;

const FLAGS: [&str; 9] = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-g",
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
];

/// Builds the reader and its tests, compares and damages. Takes `--full` and `--seed S`, both optional.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<Outcome, String> {
    let ((lives, damages), seed) = parse(arguments)?;
    let compilers: Vec<&str> = ["gcc", "clang"].into_iter().filter(|name| answers(name)).collect();
    let Some(&compiler) = compilers.first() else {
        return Ok(Outcome::Lacks("there is no gcc and no clang".to_owned()));
    };
    let folder = root.join("target/reader");
    let images = folder.join("images");
    drop(fs::remove_dir_all(&images));
    fs::create_dir_all(&images).map_err(|error| format!("{}: {error}", images.display()))?;
    for compiler in &compilers {
        build(root, compiler, "nandu_read.c", &folder.join(format!("nandu-read-{compiler}")))?;
        build(root, compiler, "fuzz.c", &folder.join(format!("fuzz-{compiler}")))?;
    }
    let is_measured = measure(root, &folder)?;
    let built = as_for_tests(root)?;
    let maker = built.join("examples/reader_images");
    call(root, &text(&maker), &[&text(&images), &lives.to_string(), &seed.to_string()])?;
    let reader = Reader {
        ours: folder.join(format!("nandu-read-{compiler}")),
        command: built.join("nandu"),
        scratch: folder.join("scratch"),
    };
    let mut paths: Vec<PathBuf> = fs::read_dir(&images)
        .map_err(|error| format!("{}: {error}", images.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "img"))
        .collect();
    paths.sort();
    let differing =
        paths.iter().filter_map(|path| reader.compare(path).err()).inspect(|text| eprintln!("reader: {text}"));
    let differing = differing.count();
    println!("reader: {} images, {differing} of them read otherwise than by the commands", paths.len());
    if differing > 0 {
        return Err("the reader and the commands disagree".to_owned());
    }
    let mut words = vec![damages.to_string(), seed.to_string()];
    words.extend(paths.iter().map(|path| text(path)));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    call(root, &text(&folder.join(format!("fuzz-{compiler}"))), &words)?;
    drop(fs::remove_dir_all(&images));
    match is_measured {
        true => Ok(Outcome::Ran),
        false => Ok(Outcome::Lacks("code not measured, since there is no compiler for a microcontroller".to_owned())),
    }
}

fn parse(arguments: &[&str]) -> Result<((u64, u64), u64), String> {
    let (mut counts, mut seed, mut rest) = (SHORT, 1, arguments);
    loop {
        match rest {
            [] => return Ok((counts, seed)),
            ["--full", more @ ..] => (counts, rest) = (FULL, more),
            ["--seed", value, more @ ..] => {
                seed = value.parse().map_err(|_| format!("--seed takes a number, not '{value}'"))?;
                rest = more;
            }
            [other, ..] => return Err(format!("reader does not know '{other}'")),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn answers(program: &str) -> bool {
    let quiet = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn call(root: &Path, program: &str, words: &[&str]) -> Result<(), String> {
    let status = Command::new(program).args(words).current_dir(root).stdin(Stdio::null()).status();
    let status = status.map_err(|error| format!("{program}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} failed: {status}")) }
}

/// What a program prints, or the first line of what it complains about.
fn ask(program: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().next().unwrap_or("it failed without a word").to_owned())
}

fn build(root: &Path, compiler: &str, program: &str, to: &Path) -> Result<(), String> {
    let (program, to) = (format!("reader/tests/{program}"), text(to));
    let mut words = FLAGS.to_vec();
    words.extend(["reader/nandu_reader.c", "reader/tests/image.c", &program, "-o", &to]);
    call(root, compiler, &words)
}

/// Measures code for a microcontroller, by the compilers that are there; whether there was one.
fn measure(root: &Path, folder: &Path) -> Result<bool, String> {
    let compilers: [(&str, &[&str]); 2] = [
        ("arm-none-eabi-gcc", &["-mcpu=cortex-m4", "-mthumb", "-Os"]),
        ("clang", &["--target=thumbv7em-none-eabi", "-Oz"]),
    ];
    let mut is_measured = false;
    for (compiler, flags) in compilers {
        let size = ["arm-none-eabi-size", "llvm-size", "size"].into_iter().find(|name| answers(name));
        let (true, Some(size)) = (answers(compiler), size) else { continue };
        let object = text(&folder.join(format!("{compiler}.o")));
        let mut words = vec!["-std=c99", "-ffreestanding", "-fno-builtin", "-Wall", "-Wextra", "-Werror"];
        words.extend(flags);
        words.extend(["-c", "reader/nandu_reader.c", "-o", &object]);
        call(root, compiler, &words)?;
        let table = ask(Path::new(size), &[&object])?;
        let table = String::from_utf8_lossy(&table);
        let code = table.lines().nth(1).and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let code = code.ok_or_else(|| format!("{size} prints no size of {object}"))?;
        println!("reader: {compiler} {}: {code} bytes of code, at most {CODE_MAX}", flags.join(" "));
        if code > CODE_MAX {
            return Err(format!("the reader takes {code} bytes of code"));
        }
        // The one that comes with its own tools; the other calls shifts of 64 bits in the compiler's library.
        if compiler.starts_with("arm") {
            let missing = ask(Path::new("arm-none-eabi-nm"), &["-u", &object])?;
            if !missing.is_empty() {
                return Err(format!("the reader needs a library: {}", String::from_utf8_lossy(&missing).trim()));
            }
        }
        is_measured = true;
    }
    Ok(is_measured)
}

/// The reader and the command that it has to agree with.
struct Reader {
    ours: PathBuf,
    command: PathBuf,
    scratch: PathBuf,
}

impl Reader {
    /// Compares what an image holds.
    fn compare(&self, image: &Path) -> Result<(), String> {
        let name = image.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let outcome = match name.split('-').next() {
            Some("store") => self.compare_records(&text(image)),
            Some("map") => self.compare_map(image),
            Some("kept") => self.compare_files(&text(image)).and_then(|()| self.compare_sums(image, &name)),
            _ => self.compare_files(&text(image)),
        };
        outcome.map_err(|text| format!("{name}: {text}"))
    }

    fn compare_records(&self, image: &str) -> Result<(), String> {
        let listed = ask(&self.command, &["kv", "snapshot", image, "--json", "list"])?;
        let listed = String::from_utf8_lossy(&listed);
        let numbers = listed.split("\"snapshot\":").skip(1);
        let numbers = numbers.filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        for at in std::iter::once(None).chain(numbers.map(Some)) {
            let (mut theirs, mut ours) = (vec!["kv", "export", "--format", "jsonl"], Vec::new());
            if let Some(number) = at {
                theirs.extend(["--at", number]);
                ours.extend(["--at", number]);
            }
            theirs.push(image);
            ours.extend([image, "all"]);
            if ask(&self.command, &theirs)? != ask(&self.ours, &ours)? {
                return Err(format!("other records{}", at.map(|number| format!(" at {number}")).unwrap_or_default()));
            }
        }
        Ok(())
    }

    fn compare_map(&self, image: &Path) -> Result<(), String> {
        let expected = fs::read(image.with_extension("hex")).map_err(|error| error.to_string())?;
        if ask(&self.ours, &[&text(image), "hex"])? == expected { Ok(()) } else { Err("other records".to_owned()) }
    }

    /// What snapshots keep of files.
    fn compare_sums(&self, image: &Path, name: &str) -> Result<(), String> {
        let folder = image.parent().unwrap_or_else(|| Path::new("."));
        let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let number = file.strip_suffix(".sums").and_then(|rest| rest.strip_prefix(name)?.strip_prefix('.'));
            let Some(number) = number else { continue };
            let expected = fs::read(&path).map_err(|error| error.to_string())?;
            if ask(&self.ours, &["--at", number, &text(image), "sums"])? != expected {
                return Err(format!("other files at {number}"));
            }
        }
        Ok(())
    }

    fn compare_files(&self, image: &str) -> Result<(), String> {
        drop(fs::remove_dir_all(&self.scratch));
        fs::create_dir_all(&self.scratch).map_err(|error| error.to_string())?;
        let (theirs, ours) = (self.scratch.join("theirs"), self.scratch.join("ours"));
        ask(&self.command, &["fs", "export", image, &text(&theirs)])?;
        ask(&self.ours, &[image, "export", &text(&ours)])?;
        same(&theirs, &ours)
    }
}

/// Compares two directories: names, types, contents, targets of links, permissions and times of files.
fn same(theirs: &Path, ours: &Path) -> Result<(), String> {
    let names = |path: &Path| -> Result<Vec<_>, String> {
        let entries = fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        Ok(names)
    };
    let (expected, found) = (names(theirs)?, names(ours)?);
    if expected != found {
        return Err(format!("{}: names {found:?}, not {expected:?}", ours.display()));
    }
    for name in expected {
        let (theirs, ours) = (theirs.join(&name), ours.join(&name));
        let say = |error: std::io::Error| format!("{}: {error}", ours.display());
        let (expected, found) =
            (fs::symlink_metadata(&theirs).map_err(say)?, fs::symlink_metadata(&ours).map_err(say)?);
        let differs = if expected.file_type() != found.file_type() {
            "type"
        } else if expected.is_dir() {
            same(&theirs, &ours)?;
            continue;
        } else if expected.is_symlink() {
            if fs::read_link(&theirs).map_err(say)? == fs::read_link(&ours).map_err(say)? {
                continue;
            }
            "target"
        } else if fs::read(&theirs).map_err(say)? != fs::read(&ours).map_err(say)? {
            "content"
        } else if expected.mode() != found.mode() {
            "permissions"
        } else if (expected.mtime(), expected.mtime_nsec()) != (found.mtime(), found.mtime_nsec()) {
            "time of change"
        } else {
            continue;
        };
        return Err(format!("{}: another {differs}", ours.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FULL, SHORT, parse};

    #[test]
    fn arguments_are_two_options() {
        assert_eq!(parse(&[]), Ok((SHORT, 1)));
        assert_eq!(parse(&["--full"]), Ok((FULL, 1)));
        assert_eq!(parse(&["--seed", "7", "--full"]), Ok((FULL, 7)));
        assert!(parse(&["--seed"]).is_err() && parse(&["--seed", "x"]).is_err() && parse(&["--half"]).is_err());
    }
}
