//! The core crates stay free of the standard library and of a heap.
//!
//! The build for a microcontroller proves it of what that build reaches; this check says it early and names the line.

use super::Finding;
use super::imports::LAYERS;
use crate::manifest::Manifest;
use crate::tree::Tree;

/// The package that builds the core crates for a microcontroller.
const FIRMWARE: &str = "firmware/Cargo.toml";

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let firmware = tree.text(FIRMWARE).map(Manifest::parse).unwrap_or_default();
    for layer in LAYERS.iter().filter(|layer| layer.no_std) {
        let Some(folder) = tree.package(layer.name) else { continue };
        let root = format!("{folder}/src/lib.rs");
        if !tree.text(&root).unwrap_or_default().lines().any(|line| line == "#![no_std]") {
            findings.push(Finding::new(&root, 0, "a core crate says `#![no_std]`, whatever is built"));
        }
        let sources = format!("{folder}/src/");
        for (path, text) in tree.texts().filter(|(path, _)| path.starts_with(&sources) && path.ends_with(".rs")) {
            check_source(path, text, findings);
        }
        if !firmware.dependencies.iter().any(|dependency| dependency.package == layer.name) {
            let text = format!("`{}` is not built for a microcontroller: it is no dependency here", layer.name);
            findings.push(Finding::new(FIRMWARE, 0, text));
        }
    }
}

fn check_source(path: &str, text: &str, findings: &mut Vec<Finding>) {
    // The attribute holds for the item after it.
    let mut conditional = false;
    let mut for_tests = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("#[cfg(") {
            for_tests = line == "#[cfg(test)]";
            // A feature that is on by default meets the build for a microcontroller.
            conditional = for_tests || line.contains("feature = ");
            continue;
        }
        // A module of tests is the last item of its file.
        if for_tests && line.starts_with("mod ") && line.ends_with('{') {
            return;
        }
        let imported = line.strip_prefix("extern crate ").map(|rest| rest.trim_end_matches(';'));
        if !conditional && matches!(imported, Some("std" | "alloc")) {
            findings.push(Finding::new(
                path,
                index + 1,
                "a core crate has std or a heap in tests and behind features only",
            ));
        }
        if !line.is_empty() && !line.starts_with("#[") && !line.starts_with("//") {
            (conditional, for_tests) = (false, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRMWARE_WITH_LOG: &str = "[dependencies]\nnandu-log = \"0\"\n";

    fn lines(root: &str, firmware: &str) -> Vec<(String, usize)> {
        let mut findings = Vec::new();
        let files = [
            ("crates/nandu-log/Cargo.toml", "[package]\nname = \"nandu-log\"\n"),
            ("crates/nandu-log/src/lib.rs", root),
            ("crates/nandu-sim/Cargo.toml", "[package]\nname = \"nandu-sim\"\n"),
            ("crates/nandu-sim/src/lib.rs", "extern crate alloc;\n"),
            ("firmware/Cargo.toml", firmware),
        ];
        check(&Tree::of(&files), &mut findings);
        findings.into_iter().map(|finding| (finding.path, finding.line)).collect()
    }

    #[test]
    fn std_and_alloc_are_found_outside_tests_and_features() {
        let root = "crates/nandu-log/src/lib.rs".to_owned();
        assert_eq!(lines("#![no_std]\n", FIRMWARE_WITH_LOG), []);
        assert_eq!(lines("#![cfg_attr(not(test), no_std)]\n", FIRMWARE_WITH_LOG), [(root.clone(), 0)]);
        assert_eq!(lines("#![no_std]\nextern crate alloc;\n", FIRMWARE_WITH_LOG), [(root.clone(), 2)]);
        let tested = "#![no_std]\n#[cfg(test)]\nextern crate std;\n#[cfg(test)]\nmod tests {\nextern crate alloc;\n}\n";
        assert_eq!(lines(tested, FIRMWARE_WITH_LOG), []);
        let after = "#![no_std]\n#[cfg(test)]\nextern crate std;\nextern crate alloc;\n";
        assert_eq!(lines(after, FIRMWARE_WITH_LOG), [(root.clone(), 4)]);
        let feature = "#![no_std]\n#[cfg(feature = \"suite\")]\nextern crate std;\n";
        assert_eq!(lines(feature, FIRMWARE_WITH_LOG), []);
        let platform = "#![no_std]\n#[cfg(unix)]\nextern crate std;\n";
        assert_eq!(lines(platform, FIRMWARE_WITH_LOG), [(root, 3)]);
    }

    #[test]
    fn a_core_crate_missing_from_the_firmware_is_found() {
        assert_eq!(lines("#![no_std]\n", ""), [("firmware/Cargo.toml".to_owned(), 0)]);
    }
}
