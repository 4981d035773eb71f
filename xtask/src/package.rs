//! Whether the crates could be published, and with which compiler they build.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::manifest::Manifest;
use crate::outcome::Outcome;
use crate::target_directory;
use crate::tree::Tree;

/// What every package has to hold beside its code.
const IN_EACH: [&str; 4] = ["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Packages every crate as for publishing, without a warning, and looks at what is in it. With `--full` each package is also built
/// from what is in it alone.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let full = match arguments {
        [] => false,
        ["--full"] => true,
        _ => return Err("usage: cargo xtask package [--full]".to_owned()),
    };
    let tree = Tree::load(root)?;
    let text = |folder: &str| tree.text(&format!("{folder}/Cargo.toml")).unwrap_or_default().to_owned();
    // What is not published may stand on what is not.
    let kept: Vec<String> = tree
        .packages()
        .map(&text)
        .filter(|text| text.lines().any(|line| line == "publish = false"))
        .flat_map(|text| ["--exclude".to_owned(), Manifest::parse(&text).name])
        .collect();
    // Without the network first: otherwise the registry is asked for each package anew, which may take minutes.
    let package = |more: &[&str]| {
        let mut package = cargo(root);
        package.args(["package", "--workspace", "--allow-dirty"]).args(&kept).args(more);
        if !full {
            package.arg("--no-verify");
        }
        package.stderr(Stdio::piped()).output().map_err(|error| format!("cargo package: {error}"))
    };
    let mut output = package(&["--offline"])?;
    if !output.status.success() {
        output = package(&[])?;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    eprint!("{said}");
    if !output.status.success() {
        return Err(format!("cargo package failed: {}", output.status));
    }
    if said.lines().any(is_warning) {
        return Err("cargo package warns".to_owned());
    }
    let mut count = 0;
    for folder in tree.packages() {
        let name = Manifest::parse(&text(folder)).name;
        let mut list = cargo(root);
        list.args(["package", "--quiet", "--allow-dirty", "--list", "--package", &name]);
        let output = list.output().map_err(|error| format!("cargo package --list: {error}"))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        if let Some(missing) = missing(&listed) {
            return Err(format!("the package of {name} lacks {missing}"));
        }
        count += 1;
    }
    println!("{count} packages, each with its licences and README.md{}", if full { ", each built" } else { "" });
    Ok(())
}

/// Checks the workspace, its examples included, as a release with the oldest compiler that the manifest of the workspace names. Where that
/// is not installed, it cannot run.
pub(crate) fn oldest_compiler(root: &Path) -> Result<Outcome, String> {
    let manifest = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let version = oldest(&text).ok_or("the manifest of the workspace names no rust-version")?;
    let toolchain = format!("+{version}");
    // The `cargo` that runs this is not rustup's: it would take the name of a compiler for a verb.
    let there = Command::new("rustup").args(["run", version, "rustc", "--version"]).output();
    let Some(found) = there.ok().filter(|output| output.status.success()) else {
        let why = format!("Rust {version} is not installed (rustup toolchain install {version} --profile minimal)");
        return Ok(Outcome::Lacks(why));
    };
    print!("{}", String::from_utf8_lossy(&found.stdout));
    let status = Command::new("rustup")
        .args([
            "run",
            version,
            "cargo",
            "check",
            "--release",
            "--workspace",
            "--lib",
            "--bins",
            "--examples",
            "--locked",
        ])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target_directory(root).join("msrv"))
        // They would name the compiler that built this program.
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("rustup: {error}"))?;
    if status.success() { Ok(Outcome::Ran) } else { Err(format!("`cargo {toolchain} check` failed: {status}")) }
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).stdin(Stdio::null());
    command
}

fn is_warning(line: &str) -> bool {
    line.starts_with("warning")
}

/// What a list of files in a package lacks.
fn missing(listed: &str) -> Option<&'static str> {
    IN_EACH.into_iter().find(|name| !listed.lines().any(|line| line == *name))
}

/// The `rust-version` of a manifest.
fn oldest(manifest: &str) -> Option<&str> {
    let value = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "))?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_a_licence_is_found() {
        assert_eq!(missing("Cargo.toml\nLICENSE-APACHE\nLICENSE-MIT\nREADME.md\nsrc/lib.rs\n"), None);
        assert_eq!(missing("Cargo.toml\nREADME.md\nLICENSE-MIT\nsrc/LICENSE-APACHE\n"), Some("LICENSE-APACHE"));
    }

    #[test]
    fn warnings_of_cargo_are_told_from_other_lines() {
        assert!(is_warning("warning: manifest has no documentation, homepage or repository"));
        assert!(!is_warning("   Packaging nandu v0.1.0"));
    }

    #[test]
    fn the_oldest_compiler_is_that_of_the_manifest() {
        assert_eq!(oldest("[workspace.package]\nrust-version = \"1.90\"\n"), Some("1.90"));
        assert_eq!(oldest("[workspace]\n"), None);
    }
}
