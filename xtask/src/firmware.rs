//! Builds the core crates for a microcontroller, says how much code they are, measures and runs them in an emulator.

mod budget;
pub(crate) mod emulator;
mod panics;
mod proof;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use budget::{figures, limit, linked_size};

use crate::outcome::Outcome;
use crate::tree::HOUSES;
use crate::{target_directory, tidy};

pub(crate) const TARGET: &str = "thumbv7em-none-eabihf";

/// The distribution's own toolchain, beside which it installs the sources of `core`.
const SYSTEM_CARGO: &str = "/usr/bin/cargo";
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";
const SYSTEM_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/core";

/// The linker of the distribution, whose compiler comes without one for the target.
const SYSTEM_LINKER: &str = "ld.lld";

/// Where the build for the microcontroller goes.
pub(crate) fn target(root: &Path) -> PathBuf {
    target_directory(root).join("firmware")
}

/// What `cargo xtask firmware` is asked for.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<Outcome, String> {
    match arguments {
        [] => {
            check_everything(root)?;
            budget::run(root, budget::Print::Table, &|_| true)
        }
        ["--json"] => budget::run(root, budget::Print::Json, &|_| true),
        ["--profile", profile] => budget::run(root, budget::Print::Table, &|name| name == *profile),
        ["--run"] => proof::run(root, false),
        ["--run", "--short"] => proof::run(root, true),
        ["--functions", profile] => budget::functions(root, profile).map(Outcome::from),
        ["--panics", profile] => budget::panicking(root, profile).map(Outcome::from),
        _ => Err("firmware: [--run [--short] | --json | --profile PROFILE | --functions PROFILE | --panics PROFILE]"
            .to_owned()),
    }
}

/// Builds every core crate, whether or not a profile has it.
fn check_everything(root: &Path) -> Result<(), String> {
    let folder = root.join("firmware");
    let target = target(root);
    let mut command = toolchain(&folder)?;
    command
        .args(["build", "--release", "--locked", "--target", TARGET])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", &target);
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        return Err(format!("the build for {TARGET} failed: {status}"));
    }
    let archive = target.join(TARGET).join("release").join("libnandu_firmware.a");
    let sizes = measure(&archive)?;
    if sizes.code == 0 {
        return Err(format!("no code was built for {TARGET}"));
    }
    println!("{TARGET}: {} bytes of code, {} bytes of constants", sizes.code, sizes.constants);
    for (name, size) in &sizes.code_by_crate {
        println!("  {size:>8} bytes of code in {name}");
    }
    check_default_features(root, &target)
}

/// Checks that the core crates build for the target with their default features too: whoever depends on them and says no
/// more gets those. The build above has none of them, and one for the host cannot see that a feature asks for std.
fn check_default_features(root: &Path, target: &Path) -> Result<(), String> {
    // A check builds no code, so it takes seconds where `core` has been built already.
    for layer in tidy::LAYERS.iter().filter(|layer| layer.no_std) {
        if !HOUSES.iter().any(|house| root.join(house).join(layer.name).is_dir()) {
            continue;
        }
        let mut command = toolchain(root)?;
        // One by one, since packages checked together share the features of each.
        command
            .args(["check", "--quiet", "--release", "--locked", "--target", TARGET, "--package", layer.name])
            .current_dir(root)
            .env("CARGO_TARGET_DIR", target);
        let status = command.status().map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("{} with its default features does not build for {TARGET}: {status}", layer.name));
        }
    }
    println!("{TARGET}: every core crate builds with its default features");
    Ok(())
}

/// A cargo that can build for the target: the one at hand if it has the target installed, else the distribution's,
/// which builds `core` from source.
pub(crate) fn toolchain(folder: &Path) -> Result<Command, String> {
    toolchain_for(folder, TARGET)
}

/// The same for another target without an operating system.
pub(crate) fn toolchain_for(folder: &Path, target: &str) -> Result<Command, String> {
    let at_hand = Command::new("rustc").args(["--print", "sysroot"]).current_dir(folder).output();
    if let Ok(output) = at_hand {
        let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        if sysroot.join("lib/rustlib").join(target).is_dir() {
            return Ok(clean(Command::new("cargo")));
        }
    }
    let missing = [SYSTEM_CARGO, SYSTEM_RUSTC, SYSTEM_SOURCES].into_iter().find(|path| !Path::new(path).exists());
    if let Some(path) = missing {
        return Err(format!(
            "{path} is missing: install Debian's packages rustc-web, cargo-web and rust-web-src, or the target {target} (rustup target add {target})"
        ));
    }
    let mut command = clean(Command::new(SYSTEM_CARGO));
    // Building `core` is an unstable feature; the distribution's compiler is the one its sources belong to.
    command.env("RUSTC", SYSTEM_RUSTC).env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=core");
    let linker = format!("CARGO_TARGET_{}_LINKER", target.replace('-', "_").to_uppercase());
    command.env(linker, SYSTEM_LINKER);
    Ok(command)
}

/// Takes away what the cargo that runs this program has set for its own toolchain.
fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let keep =
            matches!(text.as_ref(), "CARGO_HOME") || text.starts_with("CARGO_NET_") || text.starts_with("CARGO_HTTP_");
        let foreign = text.starts_with("CARGO") || text.starts_with("RUSTC") || text == "RUSTFLAGS";
        if foreign && !keep || text == "LD_LIBRARY_PATH" || text == "RUSTUP_TOOLCHAIN" {
            command.env_remove(OsStr::new(&name));
        }
    }
    command
}

/// Bytes by kind of section.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sizes {
    code: u64,
    constants: u64,
    /// Code by the crate that wrote the function. What is inlined counts where it went.
    code_by_crate: BTreeMap<String, u64>,
}

/// Adds up the sections of the archive's objects. With link-time optimisation everything reachable is in one object;
/// the other one holds the compiler's own runtime, of which a linker takes what it needs.
fn measure(archive: &Path) -> Result<Sizes, String> {
    let output =
        Command::new("size").args(["-A", "-d"]).arg(archive).output().map_err(|error| format!("size: {error}"))?;
    if !output.status.success() {
        return Err(format!("size: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(sum(&String::from_utf8_lossy(&output.stdout)))
}

/// Reads the listing of `size -A`: for each object a line with its name, then one line per section.
fn sum(listing: &str) -> Sizes {
    let mut sizes = Sizes::default();
    let mut counted = false;
    for line in listing.lines() {
        if line.contains("(ex ") {
            counted = !line.starts_with("compiler_builtins");
            continue;
        }
        let mut words = line.split_whitespace();
        let (Some(section), Some(size)) = (words.next(), words.next().and_then(|word| word.parse::<u64>().ok())) else {
            continue;
        };
        if size == 0 {
            continue;
        }
        if counted && section.starts_with(".text") {
            sizes.code += size;
            *sizes.code_by_crate.entry(crate_of(section).to_owned()).or_default() += size;
        } else if counted && section.starts_with(".rodata") {
            sizes.constants += size;
        }
    }
    sizes
}

/// The crate that defines a function, from the name of its section: the first identifier of this project's in the
/// mangled name, where identifiers follow their length; "core" for anything else.
fn crate_of(section: &str) -> &str {
    section
        .match_indices("nandu")
        .find_map(|(at, _)| {
            let digits = section[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
            let length: usize = section[at - digits..at].parse().ok()?;
            section.get(at..at + length)
        })
        .unwrap_or("core")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_constants_are_added_up_without_the_compilers_runtime() {
        let listing = "\
nandu_firmware-1.o   (ex libnandu_firmware.a):
section            size   addr
.text                 0      0
.text._RNvNtCsdUC_14nandu_firmware8contract8exercise 100 0
.text._RNvMs0_NtCs8y4_10nandu_nand7pairingNtB5_7page_of 16 0
.text._RNvNtCs1_4core9panicking5panic 4 0
.ARM.exidx            8      0
.rodata.table        16      0
.debug_str          999      0
Total              1143

compiler_builtins-2.o   (ex libnandu_firmware.a):
section            size   addr
.text.memcpy       5000      0
";
        let sizes = sum(listing);
        assert_eq!((sizes.code, sizes.constants), (120, 16));
        let by_crate: Vec<_> = sizes.code_by_crate.iter().map(|(name, &size)| (name.as_str(), size)).collect();
        assert_eq!(by_crate, [("core", 4), ("nandu_firmware", 100), ("nandu_nand", 16)]);
    }
}
