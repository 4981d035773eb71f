//! The library for C: builds it, tries it from C on this machine and in an emulated Cortex-M4, measures it, installs it.
//!
//! Compilers that are missing are skipped aloud.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::firmware::{self, emulator, limit, linked_size};
use crate::target_directory;

const CRATE: &str = "crates/nandu-capi";

/// What every program in C is compiled with.
const STRICT: [&str; 5] = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"];

const SANITIZED: [&str; 4] = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// What a program needs beside the static library, where that has the standard library of Rust.
const SYSTEM_LIBRARIES: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

const EXAMPLES: [&str; 4] = ["boot_counter", "sensor_log", "configuration", "files"];

/// The version of the interface of the shared library, which its name has.
const SONAME: &str = "libnandu.so.0";

/// What is measured for firmware.
struct Profile {
    /// As the budgets of firmware name it.
    name: &'static str,
    features: &'static str,
    defines: &'static [&'static str],
}

const PROFILES: [Profile; 4] = [
    Profile { name: "store-min", features: "", defines: &["-DWITH_STORE"] },
    Profile {
        name: "store",
        features: "group,snapshots,blobs",
        defines: &["-DWITH_STORE", "-DWITH_GROUP", "-DWITH_SNAPSHOTS", "-DWITH_BLOBS"],
    },
    Profile { name: "files", features: "files", defines: &["-DWITH_FILES"] },
    Profile {
        name: "all",
        features: "group,snapshots,blobs,files,mlc,tags",
        defines: &["-DWITH_STORE", "-DWITH_GROUP", "-DWITH_SNAPSHOTS", "-DWITH_BLOBS", "-DWITH_FILES"],
    },
];

/// What `cargo xtask capi` is asked for.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    match arguments {
        [] => {
            let start = Instant::now();
            host(root)?;
            firmware(root)?;
            println!("the library for C: {:.0} s", start.elapsed().as_secs_f64());
            Ok(())
        }
        ["--install", folder] => {
            let library = build(root, "release")?;
            install(root, &library, Path::new(folder))
        }
        _ => Err("capi: [--install FOLDER]".to_owned()),
    }
}

/// Builds both libraries for this machine; the folder that they are in.
fn build(root: &Path, profile: &str) -> Result<PathBuf, String> {
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--locked", "--package", "nandu-capi", "--profile", profile]).current_dir(root);
    call(&mut command)?;
    Ok(target_directory(root).join(if profile == "dev" { "debug" } else { profile }))
}

fn host(root: &Path) -> Result<(), String> {
    let libraries = build(root, "dev")?;
    let folder = target_directory(root).join("capi");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let crate_folder = root.join(CRATE);
    let (operations, cuts) = ("100000", "2000");
    for compiler in ["gcc", "clang"] {
        if !can_compile(compiler, &SANITIZED, &folder) {
            eprintln!("skipped: there is no {compiler} with sanitizers");
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
        run_quietly(Command::new(compile("api", &sources, PROFILES[3].defines)?))?;
        let sources = ["tests/c/dhara_port.c", "tests/c/dhara.c"];
        let more = format!("-I{}", crate_folder.join("tests/c").display());
        run_quietly(Command::new(compile("dhara", &sources, &[&more])?))?;
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
    install(root, &libraries, &prefix)?;
    try_installed(&crate_folder.join("examples"), &folder, &prefix)
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

/// Puts headers and libraries where a program looks for them.
fn install(root: &Path, libraries: &Path, prefix: &Path) -> Result<(), String> {
    let crate_folder = root.join(CRATE);
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let place = |from: PathBuf, to: &str| {
        let to = prefix.join(to);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        fs::copy(&from, &to).map(|_| ()).map_err(|error| failed(&from, error))
    };
    for header in ["nandu.h", "nandu_sim.h", "nandu_dhara.h"] {
        place(crate_folder.join("include").join(header), &format!("include/{header}"))?;
    }
    place(libraries.join("libnandu_capi.a"), "lib/libnandu.a")?;
    place(libraries.join("libnandu_capi.so"), &format!("lib/{SONAME}"))?;
    let link = prefix.join("lib/libnandu.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link).map_err(|error| failed(&link, error))?;
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(SONAME, &link).map_err(|error| failed(&link, error))?;
    let absolute = prefix.canonicalize().map_err(|error| failed(prefix, error))?;
    for (template, to) in [
        ("nandu.pc.in", "lib/pkgconfig/nandu.pc"),
        ("nandu-config.cmake", "lib/cmake/nandu/nandu-config.cmake"),
        ("nandu-config-version.cmake.in", "lib/cmake/nandu/nandu-config-version.cmake"),
    ] {
        let from = crate_folder.join("package").join(template);
        let text = fs::read_to_string(&from).map_err(|error| failed(&from, error))?;
        let text =
            text.replace("@PREFIX@", &absolute.to_string_lossy()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        let to = prefix.join(to);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        fs::write(&to, text).map_err(|error| failed(&to, error))?;
    }
    println!("installed in {}", absolute.display());
    Ok(())
}

/// Builds an example with what was installed, as a user does.
fn try_installed(examples: &Path, folder: &Path, prefix: &Path) -> Result<(), String> {
    let pkg_config = |more: &[&str]| {
        let mut command = Command::new("pkg-config");
        command.args(more).arg("nandu").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        command.output().ok().filter(|output| output.status.success())
    };
    match pkg_config(&["--cflags", "--libs"]) {
        Some(output) if can_compile("gcc", &[], folder) => {
            let flags = String::from_utf8_lossy(&output.stdout).into_owned();
            let program = folder.join("with-pkg-config");
            let mut command = Command::new("gcc");
            command.args(["boot_counter.c", "host.c"]).args(flags.split_whitespace()).arg("-o").arg(&program);
            call(command.current_dir(examples))?;
            let mut command = Command::new(program);
            command.env("LD_LIBRARY_PATH", prefix.join("lib"));
            run_quietly(command)?;
            println!("pkg-config finds the library");
        }
        _ => eprintln!("skipped: there is no pkg-config or no gcc"),
    }
    if !Command::new("cmake").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no cmake");
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

/// Builds the library for the microcontroller, measures it, and runs the test of the interface there.
fn firmware(root: &Path) -> Result<(), String> {
    let folder = target_directory(root).join("capi");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    if !can_compile("clang", &["--target=thumbv7em-none-eabihf", "-ffreestanding", "-c"], &folder) {
        eprintln!("skipped: there is no clang for {}", firmware::TARGET);
        return Ok(());
    }
    if Command::new("ld.lld").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: there is no ld.lld");
        return Ok(());
    }
    let can_run = emulator::is_there();
    if !can_run {
        eprintln!("{} is missing: the test of the interface was built and not run", emulator::NAME);
    }
    println!("{}, code and constants without a driver:", firmware::TARGET);
    for profile in &PROFILES {
        let library = library_for(root, profile)?;
        let code = link(root, profile, &library, "code", &["tests/c/code.c"], &[])?;
        let sizes = emulator::output(Command::new("size").args(["-A", "-d"]).arg(&code))?;
        let (rust, must) = limit(profile.name, "code").unwrap_or_default();
        println!(
            "  {:<10} {:>7} bytes (in Rust, with a driver, at most {rust}; to be reached {must})",
            profile.name,
            linked_size(&sizes)
        );
        let mut sources = vec!["tests/c/cortex_m.c", "tests/c/ram_chip.c"];
        for (feature, source) in [("-DWITH_STORE", "tests/c/store.c"), ("-DWITH_FILES", "tests/c/files.c")] {
            if profile.defines.contains(&feature) {
                sources.push(source);
            }
        }
        let api = link(root, profile, &library, "api", &sources, &[])?;
        let example = match profile.defines.contains(&"-DWITH_STORE") {
            true => {
                let sources = ["tests/c/cortex_m.c", "tests/c/ram_chip.c", "examples/boot_counter.c"];
                Some(link(root, profile, &library, "example", &sources, &["-DEXAMPLE"])?)
            }
            false => None,
        };
        if can_run {
            report(profile, &emulator::output(&mut emulator::run(emulator::M4, &api))?)?;
            if let Some(example) = example {
                let said = emulator::output(&mut emulator::run(emulator::M4, &example))?;
                if said != "boots 1\nboots 2\n" {
                    return Err(format!("the boot counter says: {said}"));
                }
            }
        }
    }
    Ok(())
}

fn library_for(root: &Path, profile: &Profile) -> Result<PathBuf, String> {
    let target = firmware::target(root);
    let mut command = firmware::toolchain(root)?;
    command
        .args(["rustc", "--quiet", "--profile", "capi", "--locked", "--target", firmware::TARGET])
        .args(["--package", "nandu-capi", "--crate-type", "staticlib", "--no-default-features"])
        .args(["--features", profile.features])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &target);
    call(&mut command)?;
    Ok(target.join(firmware::TARGET).join("capi").join("libnandu_capi.a"))
}

/// Compiles and links a program for the microcontroller.
fn link(
    root: &Path,
    profile: &Profile,
    library: &Path,
    name: &str,
    sources: &[&str],
    more: &[&str],
) -> Result<PathBuf, String> {
    let crate_folder = root.join(CRATE);
    let folder = target_directory(root).join("capi");
    let mut objects = Vec::new();
    for source in sources {
        let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let object = folder.join(format!("{}-{name}-{stem}.o", profile.name));
        let mut command = Command::new("clang");
        command.args(["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4", "-Os", "-ffreestanding", "-c"]);
        command.args(["-ffunction-sections", "-fdata-sections", "-std=c99", "-Wall", "-Wextra", "-Werror"]);
        command.args(profile.defines).args(more).arg("-I").arg(crate_folder.join("include"));
        command.arg("-I").arg(crate_folder.join("tests/c")).arg(crate_folder.join(source)).arg("-o").arg(&object);
        call(&mut command)?;
        objects.push(object);
    }
    let program = folder.join(format!("{}-{name}.elf", profile.name));
    let mut command = Command::new("ld.lld");
    command.arg("--gc-sections").arg("-T").arg(crate_folder.join("tests/c/cortex_m.ld"));
    command.args(&objects).arg(library).arg("-o").arg(&program);
    call(&mut command)?;
    Ok(program)
}

/// Prints what the test of the interface says of memory and stack: the last memory is that of 1,024 blocks.
fn report(profile: &Profile, said: &str) -> Result<(), String> {
    let value = |name: &str| {
        let mut found = None;
        for line in said.lines() {
            let mut words = line.splitn(3, ' ');
            if words.next() == Some(name) {
                found =
                    words.next().and_then(|word| word.parse::<u64>().ok()).map(|it| (it, words.next().unwrap_or("")));
            }
        }
        found
    };
    let mut is_told = false;
    for what in ["store", "files"] {
        let Some((open, _)) = value(&format!("{what}_stack_open")) else { continue };
        let (Some((call, deepest)), Some((memory, _))) =
            (value(&format!("{what}_stack_call")), value(&format!("{what}_memory")))
        else {
            return Err(format!("the test of the interface does not say everything: {said}"));
        };
        let ram = memory + open.max(call);
        let (rust, must) = limit(profile.name, "ram").unwrap_or_default();
        println!(
            "    {what}: memory with the handle {memory}, stack of format and open {open}, of other calls {call} ({deepest}), \
             RAM {ram} (in Rust at most {rust}; to be reached {must})"
        );
        is_told = true;
    }
    if is_told { Ok(()) } else { Err(format!("the test of the interface says: {said}")) }
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
    fn a_test_that_ends_before_its_time_has_shown_nothing() {
        let said = "store_memory 9\nstore_stack_open 8 open\nstore_stack_call 7 put\nstore_memory 20\n";
        assert_eq!(report(&PROFILES[0], said), Ok(()));
        assert!(report(&PROFILES[0], "store_memory 9\nstore_stack_open 8 open\n").is_err());
        assert!(report(&PROFILES[0], "").is_err());
    }
}
