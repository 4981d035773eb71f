//! The library for firmware: built for processors without an operating system, measured, run in an emulated Cortex-M4.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::install::Prefix;
use super::{CRATE, answers, archive, call, can_compile, pkg_config, run_quietly};
use crate::firmware::{self, emulator, limit, linked_size};
use crate::target_directory;

/// A processor that the library is built and linked for in each run.
struct Target {
    rust: &'static str,
    /// How clang is told of it.
    clang: &'static [&'static str],
    features: &'static str,
    /// A board of the emulator that runs its code.
    board: Option<&'static str>,
}

const TARGETS: [Target; 3] = [
    Target {
        rust: firmware::TARGET,
        clang: &["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4"],
        features: PROFILES[3].features,
        board: Some(emulator::M4),
    },
    Target {
        rust: "thumbv6m-none-eabi",
        clang: &["--target=thumbv6m-none-eabi", "-mcpu=cortex-m0plus"],
        features: "",
        board: Some(emulator::M4),
    },
    Target {
        rust: "riscv32imc-unknown-none-elf",
        clang: &["--target=riscv32-unknown-none-elf", "-march=rv32imc", "-mabi=ilp32"],
        features: "",
        board: None,
    },
];

/// The features that firmware chooses from, in the order of the table in the page of `nandu`.
const FEATURES: [&str; 6] = ["group", "snapshots", "blobs", "files", "mlc", "tags"];

/// Those of them that stores have nothing of.
const OF_FILES: [&str; 3] = ["files", "mlc", "tags"];

/// What is measured for firmware.
pub(super) struct Profile {
    /// As the budgets of firmware name it.
    name: &'static str,
    features: &'static str,
    pub(super) defines: &'static [&'static str],
}

pub(super) const PROFILES: [Profile; 4] = [
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

/// Puts the library for a processor into a folder.
pub(super) fn install(root: &Path, folder: &Path, target: &str, features: &str) -> Result<(), String> {
    let library = library_for(root, target, features)?;
    Prefix::new(root, folder).install_for_firmware(&library, target, features)
}

/// The library with these features; a program that calls stores alone gets stores that know nothing of files.
fn library_for(root: &Path, target: &str, features: &str) -> Result<Vec<u8>, String> {
    let names = || features.split([',', ' ']).filter(|name| !name.is_empty());
    if let Some(name) = names().find(|name| !FEATURES.contains(name)) {
        return Err(format!("firmware has no feature '{name}'; there are {}", FEATURES.join(", ")));
    }
    let full = build(root, target, features)?;
    let of_stores: Vec<&str> = names().filter(|name| !OF_FILES.contains(name)).collect();
    if of_stores.len() == names().count() {
        return Ok(full);
    }
    archive::join(&build(root, target, &of_stores.join(","))?, &full)
}

/// What cargo makes of the crate.
fn build(root: &Path, target: &str, features: &str) -> Result<Vec<u8>, String> {
    let built = firmware::target(root);
    let mut command = firmware::toolchain_for(root, target)?;
    command
        .args(["rustc", "--quiet", "--profile", "capi", "--locked", "--target", target])
        .args(["--package", "nandu-capi", "--crate-type", "staticlib", "--no-default-features"])
        .args(["--features", features])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", &built);
    call(&mut command)?;
    let library = built.join(target).join("capi").join("libnandu_capi.a");
    fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))
}

/// Measures the library for the microcontroller, runs the test of the interface there, and links it for each processor as a user does.
pub(super) fn run(root: &Path, lacks: &mut Vec<String>) -> Result<(), String> {
    let folder = target_directory(root).join("capi");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for target in &TARGETS {
        let flags: Vec<&str> = target.clang.iter().copied().chain(["-ffreestanding", "-c"]).collect();
        if !can_compile("clang", &flags, &folder) {
            lacks.push(format!("there is no clang for {}", target.rust));
            return Ok(());
        }
    }
    if !answers("ld.lld") {
        lacks.push("there is no ld.lld".to_owned());
        return Ok(());
    }
    let can_run = emulator::is_there();
    if !can_run {
        lacks.push(format!("{} is missing: the test of the interface was built and not run", emulator::NAME));
    }
    println!("{}, code and constants without a driver:", firmware::TARGET);
    for profile in &PROFILES {
        measure(root, profile, can_run)?;
    }
    for target in &TARGETS {
        try_installed(root, target, can_run, lacks)?;
    }
    Ok(())
}

fn measure(root: &Path, profile: &Profile, can_run: bool) -> Result<(), String> {
    let library = target_directory(root).join("capi").join(format!("libnandu-{}.a", profile.name));
    fs::write(&library, library_for(root, firmware::TARGET, profile.features)?)
        .map_err(|error| format!("{}: {error}", library.display()))?;
    let code = link(root, profile, &library, "code", &["tests/c/code.c"], &[])?;
    let (rust, must) = limit(profile.name, "code").unwrap_or_default();
    println!(
        "  {:<10} {:>7} bytes (in Rust, with a driver, at most {rust}; to be reached {must})",
        profile.name,
        size_of(&code)?
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
            count_boots(emulator::M4, &example)?;
        }
    }
    Ok(())
}

/// Runs the example that counts starts.
fn count_boots(board: &str, program: &Path) -> Result<(), String> {
    let said = emulator::output(&mut emulator::run(board, program))?;
    if said == "boots 1\nboots 2\n" { Ok(()) } else { Err(format!("the boot counter says: {said}")) }
}

/// Code and constants of a linked program.
fn size_of(program: &Path) -> Result<u64, String> {
    Ok(linked_size(&emulator::output(Command::new("size").args(["-A", "-d"]).arg(program))?))
}

/// Links a program with what the command installs, as a user does: by hand, with pkg-config and with CMake.
fn try_installed(root: &Path, target: &Target, can_run: bool, lacks: &mut Vec<String>) -> Result<(), String> {
    let (crate_folder, folder) = (root.join(CRATE), target_directory(root).join("capi"));
    let prefix = folder.join(target.rust);
    install(root, &prefix, target.rust, target.features)?;
    let Some(flags) = pkg_config(&prefix) else {
        lacks.push(format!("there is no pkg-config: nothing was linked for {}", target.rust));
        return Ok(());
    };
    let script = crate_folder.join("tests/c/cortex_m.ld");
    let compile = |name: &str, sources: &[&str], defines: &[&str]| {
        let program = folder.join(format!("{}-{name}.elf", target.rust));
        let mut command = Command::new("clang");
        command.args(target.clang).args(["-Os", "-ffreestanding", "-nostdlib", "-fuse-ld=lld", "-Wl,--gc-sections"]);
        command.args(["-ffunction-sections", "-fdata-sections", "-std=c99", "-Wall", "-Wextra", "-Werror"]);
        command.arg("-T").arg(&script).args(defines).arg("-I").arg(crate_folder.join("tests/c"));
        command.args(sources.iter().map(|source| crate_folder.join(source))).args(&flags).arg("-o").arg(&program);
        call(&mut command).map(|()| program)
    };
    let size = size_of(&compile("store", &["tests/c/code.c"], &["-DWITH_STORE"])?)?;
    let features = if target.features.is_empty() { "no feature" } else { target.features };
    println!(
        "{}, {features}: {size} bytes of code and constants of a program that opens, puts, gets and deletes",
        target.rust
    );
    if let (Some(board), true) = (target.board, can_run) {
        let sources = ["tests/c/cortex_m.c", "tests/c/ram_chip.c", "examples/boot_counter.c"];
        count_boots(board, &compile("example", &sources, &["-DEXAMPLE", "-DWITH_STORE"])?)?;
        println!("  its boot counter runs in the emulator");
    }
    if !answers("cmake") {
        lacks.push("there is no cmake".to_owned());
        return Ok(());
    }
    for (how, option) in [
        ("find_package", format!("-DCMAKE_PREFIX_PATH={}", prefix.display())),
        ("FetchContent", format!("-DNANDU_SOURCE={}", root.display())),
    ] {
        let build = folder.join(format!("{}-{how}", target.rust));
        let _ = fs::remove_dir_all(&build);
        let flags = target.clang.join(" ");
        let mut command = Command::new("cmake");
        command.arg("-S").arg(crate_folder.join("tests/cmake")).arg("-B").arg(&build).arg(option);
        command.args(["-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_C_COMPILER=clang"]);
        command.arg("-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY").arg(format!("-DCMAKE_C_FLAGS={flags} -Os"));
        command.arg(format!("-DLINKER_SCRIPT={}", script.display()));
        command
            .arg(format!("-DFIRMWARE_TARGET={}", target.rust))
            .arg(format!("-DFIRMWARE_FEATURES={}", target.features));
        run_quietly(command)?;
        let mut command = Command::new("cmake");
        command.arg("--build").arg(&build).env("CARGO_TARGET_DIR", target_directory(root));
        run_quietly(command)?;
        println!("  {how} of CMake: {} bytes", size_of(&build.join("store"))?);
    }
    Ok(())
}

/// What each feature costs a program that does not use it, from C.
pub(super) fn prices(root: &Path) -> Result<(), String> {
    let profile = &PROFILES[0];
    let mut least = None;
    for features in [""].iter().chain(&FEATURES) {
        let library = target_directory(root).join("capi").join("libnandu-price.a");
        fs::write(&library, library_for(root, firmware::TARGET, features)?)
            .map_err(|error| format!("{}: {error}", library.display()))?;
        let size = size_of(&link(root, profile, &library, "price", &["tests/c/code.c"], &[])?)?;
        let least = *least.get_or_insert(size);
        let name = if features.is_empty() { "none" } else { features };
        println!("{name:<10} {size:>7} bytes, {:>6} more", size - least);
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_firmware_cannot_have_is_named() {
        let error = library_for(Path::new("."), firmware::TARGET, "group,sim").unwrap_err();
        assert!(error.contains("'sim'"), "{error}");
    }

    #[test]
    fn a_test_that_ends_before_its_time_has_shown_nothing() {
        let said = "store_memory 9\nstore_stack_open 8 open\nstore_stack_call 7 put\nstore_memory 20\n";
        assert_eq!(report(&PROFILES[0], said), Ok(()));
        assert!(report(&PROFILES[0], "store_memory 9\nstore_stack_open 8 open\n").is_err());
        assert!(report(&PROFILES[0], "").is_err());
    }
}
