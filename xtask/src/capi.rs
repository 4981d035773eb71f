//! The library for C: builds it, tries it from C on this machine and in an emulated Cortex-M4, measures it, installs it.
//!
//! What is missing is named, and the rest is done.

mod archive;
mod install;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::firmware::emulator;
use crate::outcome::Outcome;
use crate::target_directory;

use install::Prefix;

const CRATE: &str = "crates/nandu-capi";

/// What every program in C is compiled with.
const STRICT: [&str; 5] = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"];

const SANITIZED: [&str; 4] = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// What a program needs beside the static library, where that has the standard library of Rust.
const SYSTEM_LIBRARIES: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

const EXAMPLES: [&str; 4] = ["boot_counter", "sensor_log", "configuration", "files"];

/// What `cargo xtask capi` is asked for.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<Outcome, String> {
    match Wanted::parse(arguments)? {
        Wanted::Everything => {
            let start = Instant::now();
            let mut lacks = Vec::new();
            host(root, &mut lacks)?;
            targets::run(root, &mut lacks)?;
            println!("the library for C: {:.0} s", start.elapsed().as_secs_f64());
            Ok(Outcome::without(&lacks))
        }
        Wanted::Prices => targets::prices(root).map(Outcome::from),
        Wanted::Install { folder, target: None, .. } => {
            let library = build(root, "release")?;
            Prefix::new(root, folder).install_for_this_machine(&library).map(Outcome::from)
        }
        Wanted::Install { folder, target: Some(target), features } => {
            targets::install(root, folder, target, features).map(Outcome::from)
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted<'a> {
    /// Every test.
    Everything,
    /// What each feature costs a program that does not use it.
    Prices,
    /// The library in a folder, for firmware where a target is named.
    Install { folder: &'a Path, target: Option<&'a str>, features: &'a str },
}

impl<'a> Wanted<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Wanted<'a>, String> {
        match arguments {
            [] => return Ok(Wanted::Everything),
            ["--prices"] => return Ok(Wanted::Prices),
            _ => {}
        }
        let (mut folder, mut target, mut features, mut rest) = (None, None, None, arguments);
        while let [name, value, more @ ..] = rest {
            match *name {
                "--install" => folder = Some(Path::new(*value)),
                "--target" => target = Some(*value),
                "--features" => features = Some(*value),
                other => return Err(format!("capi does not know '{other}'")),
            }
            rest = more;
        }
        match (rest, folder) {
            ([], _) if features.is_some() && target.is_none() => {
                Err("--features goes with --target: the library for this machine has all of them".to_owned())
            }
            ([], Some(folder)) => Ok(Wanted::Install { folder, target, features: features.unwrap_or_default() }),
            _ => Err("capi: [--prices | [--target TARGET [--features LIST]] --install FOLDER]".to_owned()),
        }
    }
}

/// Builds both libraries for this machine; the folder that they are in.
fn build(root: &Path, profile: &str) -> Result<PathBuf, String> {
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--locked", "--package", "nandu-capi", "--profile", profile]).current_dir(root);
    call(&mut command)?;
    Ok(target_directory(root).join(if profile == "dev" { "debug" } else { profile }))
}

fn host(root: &Path, lacks: &mut Vec<String>) -> Result<(), String> {
    let libraries = build(root, "dev")?;
    let folder = target_directory(root).join("capi");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let crate_folder = root.join(CRATE);
    let (operations, cuts) = ("100000", "2000");
    for compiler in ["gcc", "clang"] {
        if !can_compile(compiler, &SANITIZED, &folder) {
            lacks.push(format!("there is no {compiler} with sanitizers"));
            continue;
        }
        let compile = |name: &str, sources: &[&str], more: &[&str]| {
            let program = folder.join(format!("{name}-{compiler}"));
            let mut command = Command::new(compiler);
            command.args(STRICT).args(SANITIZED).args(more).arg("-I").arg(crate_folder.join("include"));
            command.args(sources.iter().map(|source| crate_folder.join(source)));
            command.arg(libraries.join("libnandu_capi.a")).args(SYSTEM_LIBRARIES).arg("-o").arg(&program);
            call(&mut command).map(|()| program)
        };
        let sources = ["tests/c/host.c", "tests/c/store.c", "tests/c/files.c", "tests/c/ram_chip.c"];
        run_quietly(Command::new(compile("api", &sources, targets::PROFILES[3].defines)?))?;
        let sources = ["tests/c/dhara_port.c", "tests/c/dhara.c"];
        let more = format!("-I{}", crate_folder.join("tests/c").display());
        run_quietly(Command::new(compile("dhara", &sources, &[&more])?))?;
        let sources = ["tests/c/tasks.c", "tests/c/ram_chip.c"];
        run_quietly(Command::new(compile("tasks", &sources, &[])?))?;
        let model = compile("model", &["tests/c/model.c"], &[])?;
        let mut command = Command::new(model);
        command.args([operations, cuts]);
        print!("{}", run_quietly(command)?);
        println!("{compiler}: the interface, used rightly and wrongly; {operations} operations, {cuts} cuts");
        for example in EXAMPLES {
            let source = format!("examples/{example}.c");
            run_quietly(Command::new(compile(example, &[&source, "examples/host.c"], &[])?))?;
        }
    }
    let prefix = folder.join("prefix");
    Prefix::new(root, &prefix).install_for_this_machine(&libraries)?;
    try_installed(&crate_folder.join("examples"), &folder, &prefix, lacks)
}

/// Whether a compiler is there and can link with these flags.
fn can_compile(compiler: &str, flags: &[&str], folder: &Path) -> bool {
    let source = folder.join("nothing.c");
    if fs::write(&source, "int main(void) { return 0; }\n").is_err() {
        return false;
    }
    let mut command = Command::new(compiler);
    command.args(flags).arg(&source).arg("-o").arg(folder.join("nothing"));
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Builds an example with what was installed, as a user does.
fn try_installed(examples: &Path, folder: &Path, prefix: &Path, lacks: &mut Vec<String>) -> Result<(), String> {
    match pkg_config(prefix) {
        Some(flags) if can_compile("gcc", &[], folder) => {
            let program = folder.join("with-pkg-config");
            let mut command = Command::new("gcc");
            command.args(["boot_counter.c", "host.c"]).args(flags).arg("-o").arg(&program);
            call(command.current_dir(examples))?;
            let mut command = Command::new(program);
            command.env("LD_LIBRARY_PATH", prefix.join("lib"));
            run_quietly(command)?;
            println!("pkg-config finds the library");
        }
        _ => lacks.push("there is no pkg-config or no gcc".to_owned()),
    }
    if !answers("cmake") {
        lacks.push("there is no cmake".to_owned());
        return Ok(());
    }
    let build = folder.join("cmake");
    let mut command = Command::new("cmake");
    command.arg("-S").arg(examples).arg("-B").arg(&build).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    run_quietly(command)?;
    let mut command = Command::new("cmake");
    command.arg("--build").arg(&build);
    run_quietly(command)?;
    for library in ["nandu", "nandu_static"] {
        run_quietly(Command::new(build.join(format!("boot_counter_{library}"))))?;
    }
    println!("cmake finds both libraries");
    Ok(())
}

/// What `pkg-config` has a compiler take for the library in a folder.
fn pkg_config(prefix: &Path) -> Option<Vec<String>> {
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "nandu"]).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

/// Whether a program is there.
fn answers(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn call(command: &mut Command) -> Result<(), String> {
    let line = format!("{command:?}");
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{line}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{line}: {status}")) }
}

/// Runs a program; what it says counts only if it fails.
fn run_quietly(mut command: Command) -> Result<String, String> {
    emulator::output(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_chosen_for_firmware_alone() {
        let words = ["--target", "thumbv6m-none-eabi", "--features", "group,files", "--install", "there"];
        let install =
            Wanted::Install { folder: Path::new("there"), target: Some("thumbv6m-none-eabi"), features: "group,files" };
        assert_eq!(Wanted::parse(&words), Ok(install));
        assert_eq!(Wanted::parse(&[]), Ok(Wanted::Everything));
        assert!(Wanted::parse(&["--features", "group", "--install", "there"]).unwrap_err().contains("--target"));
        assert!(Wanted::parse(&["--target", "thumbv6m-none-eabi"]).is_err());
        assert!(Wanted::parse(&["--instal", "there"]).unwrap_err().contains("--instal"));
    }
}
