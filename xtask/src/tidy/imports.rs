//! Which crate may import which: the layers, as a table.

use super::Finding;
use crate::manifest::{Dependency, DependencyKind, Manifest};
use crate::tree::Tree;

/// A crate's place in the layers.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    /// Whether the crate builds without the standard library and without a heap.
    pub(crate) no_std: bool,
    /// Crates of this repository that it may import. Tests may import any.
    imports: &'static [&'static str],
    outside: Outside,
}

/// Crates from elsewhere that a crate may import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outside {
    /// None: it stays buildable from the repository alone.
    Nothing,
    /// Those of [`CORE_CRATES`].
    Core,
    /// Any.
    Any,
}

const fn core(name: &'static str, imports: &'static [&'static str]) -> Layer {
    Layer { name, no_std: true, imports, outside: Outside::Core }
}

const fn host(name: &'static str, imports: &'static [&'static str]) -> Layer {
    Layer { name, no_std: false, imports, outside: Outside::Any }
}

/// Every crate there is, from the bottom up.
pub(crate) const LAYERS: &[Layer] = &[
    Layer { name: "nandu-nand", no_std: true, imports: &[], outside: Outside::Nothing },
    core("nandu-media", &[]),
    core("nandu-index", &["nandu-nand"]),
    core("nandu-files", &["nandu-nand"]),
    core("nandu-placement", &["nandu-nand"]),
    core("nandu-cells", &["nandu-index"]),
    core("nandu-log", &["nandu-nand", "nandu-media"]),
    core("nandu-tree", &["nandu-nand", "nandu-media", "nandu-index", "nandu-cells", "nandu-log"]),
    core("nandu-fs", &["nandu-nand", "nandu-index", "nandu-files", "nandu-placement", "nandu-log", "nandu-tree"]),
    core("nandu", &["nandu-nand", "nandu-index", "nandu-log", "nandu-tree", "nandu-fs"]),
    core("nandu-inpage", &["nandu-nand", "nandu-media", "nandu-index", "nandu-log"]),
    core("nandu-dffs", &["nandu-nand", "nandu-media", "nandu-files"]),
    core("nandu-spi", &["nandu-nand"]),
    host("nandu-sim", &["nandu-nand"]),
    host("nandu-spi-sim", &["nandu-nand", "nandu-sim", "nandu-spi"]),
    host("nandu-suite", &["nandu-nand", "nandu-files", "nandu-sim"]),
    host("nandu-baselines", &["nandu-nand", "nandu-media", "nandu-index", "nandu-log"]),
    host("nandu-mtd", &["nandu-nand"]),
    host("nandu-fuse", &["nandu", "nandu-nand", "nandu-files", "nandu-dffs"]),
    host("nandu-capi", &["nandu", "nandu-sim", "nandu-mtd"]),
    host(
        "nandu-bench",
        &["nandu-index", "nandu-files", "nandu-sim", "nandu", "nandu-inpage", "nandu-dffs", "nandu-baselines"],
    ),
    host(
        "nandu-explore",
        &["nandu", "nandu-dffs", "nandu-files", "nandu-media", "nandu-nand", "nandu-sim", "nandu-suite"],
    ),
    host("nandu-judge", &["nandu", "nandu-files", "nandu-sim", "nandu-bench", "nandu-suite"]),
    // The command works on the chip itself, below any engine, so it may import the contract as well; and it shows what a
    // page says of itself, damaged ones included, which no engine would hand out.
    host(
        "nandu-cli",
        &[
            "nandu",
            "nandu-files",
            "nandu-dffs",
            "nandu-inpage",
            "nandu-nand",
            "nandu-media",
            "nandu-spi",
            "nandu-sim",
            "nandu-mtd",
            "nandu-fuse",
            "nandu-bench",
        ],
    ),
    Layer { name: "xtask", no_std: false, imports: &[], outside: Outside::Nothing },
];

/// Crates from elsewhere that need neither std nor a heap, and whether that takes `default-features = false`.
const CORE_CRATES: &[(&str, bool)] = &[
    ("bitflags", false),
    ("crc", false),
    ("defmt", false),
    ("embedded-hal", false),
    ("embedded-io", false),
    ("heapless", false),
    ("log", false),
    ("siphasher", true),
    ("thiserror", true),
    ("twox-hash", true),
    ("zerocopy", false),
];

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let packages = tree.packages().chain(tree.contains("xtask/Cargo.toml").then_some("xtask"));
    for folder in packages {
        let path = format!("{folder}/Cargo.toml");
        let Some(text) = tree.text(&path) else { continue };
        let manifest = Manifest::parse(text);
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == manifest.name) else {
            let text = format!("crate `{}` has no place in the layers of xtask/src/tidy/imports.rs", manifest.name);
            findings.push(Finding::new(&path, 0, text));
            continue;
        };
        if folder.rsplit('/').next() != Some(layer.name) {
            findings.push(Finding::new(&path, 0, format!("crate `{}` lives in a folder of another name", layer.name)));
        }
        for dependency in manifest.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Dev) {
            if let Some(text) = refusal(layer, dependency) {
                findings.push(Finding::new(&path, dependency.line, text));
            }
        }
    }
}

/// Why this layer may not import this package; `None` if it may.
fn refusal(layer: &Layer, dependency: &Dependency) -> Option<String> {
    let package = dependency.package.as_str();
    let name = layer.name;
    if LAYERS.iter().any(|other| other.name == package) {
        let allowed = layer.imports.contains(&package);
        return (!allowed).then(|| format!("`{name}` may not import `{package}`: the layers forbid it"));
    }
    match layer.outside {
        Outside::Any => None,
        Outside::Nothing => Some(format!("`{name}` imports nothing, not even `{package}`")),
        // A build script runs on the host, where there is a standard library.
        Outside::Core if dependency.kind == DependencyKind::Build => None,
        // Behind a feature; one that is on by default meets the build for a microcontroller.
        Outside::Core if dependency.optional => None,
        Outside::Core => match CORE_CRATES.iter().find(|(known, _)| *known == package) {
            None => Some(format!("`{name}` is no_std, and `{package}` is not among the crates known to be")),
            Some((_, true)) if !dependency.bare => {
                Some(format!("`{name}` is no_std: `{package}` needs `default-features = false`"))
            }
            Some(_) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, folder: &str, dependencies: &str) -> Vec<String> {
        let path = format!("crates/{folder}/Cargo.toml");
        let manifest = format!("[package]\nname = \"{name}\"\n{dependencies}");
        let mut findings = Vec::new();
        check(&Tree::of(&[(&path, &manifest)]), &mut findings);
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_layer_imports_what_lies_below_and_nothing_else() {
        assert!(findings("nandu-log", "nandu-log", "[dependencies]\nnandu-media = \"0\"\n").is_empty());
        let upwards = findings("nandu-log", "nandu-log", "[dependencies]\nnandu-tree = \"0\"\n");
        assert_eq!(
            upwards,
            ["crates/nandu-log/Cargo.toml:4: `nandu-log` may not import `nandu-tree`: the layers forbid it"]
        );
        assert!(findings("nandu-tree", "nandu-tree", "[dev-dependencies]\nnandu-sim = \"0\"\n").is_empty());
        assert_eq!(findings("nandu-tree", "nandu-tree", "[build-dependencies]\nnandu-sim = \"0\"\n").len(), 1);
    }

    #[test]
    fn core_crates_import_only_what_needs_no_std() {
        assert_eq!(findings("nandu-log", "nandu-log", "[dependencies]\nserde = \"1\"\n").len(), 1);
        assert_eq!(findings("nandu-log", "nandu-log", "[dependencies]\nthiserror = \"2\"\n").len(), 1);
        let optional = "[dependencies]\nserde = { version = \"1\", optional = true }\n";
        assert!(findings("nandu-log", "nandu-log", optional).is_empty());
        let bare = "[dependencies]\nthiserror = { version = \"2\", default-features = false }\ncrc = \"3\"\n";
        assert!(findings("nandu-log", "nandu-log", bare).is_empty());
        assert_eq!(findings("nandu-nand", "nandu-nand", bare).len(), 2);
        assert!(findings("nandu-sim", "nandu-sim", "[dependencies]\nserde = \"1\"\n").is_empty());
    }

    #[test]
    fn a_crate_nobody_placed_is_found() {
        assert_eq!(findings("nandu-utils", "nandu-utils", "").len(), 1);
        assert_eq!(findings("nandu-log", "logs", "").len(), 1);
    }

    #[test]
    fn the_table_itself_has_no_cycle_and_core_crates_stand_on_core_crates() {
        for (index, layer) in LAYERS.iter().enumerate() {
            for import in layer.imports {
                let below = LAYERS.iter().position(|other| other.name == *import).unwrap();
                assert!(below < index, "{} imports {import}, which stands above it", layer.name);
                assert!(!layer.no_std || LAYERS[below].no_std, "{} imports {import}", layer.name);
            }
        }
    }
}
