//! What the checks need to know of a Cargo.toml.
//!
//! Reads the form in which this repository writes its manifests: a section header or a `key = value` on a line of its
//! own, values that go on over several lines only inside brackets.

/// Which builds a dependency is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    /// Every build.
    Normal,
    /// The build script.
    Build,
    /// Tests, benchmarks and examples.
    Dev,
}

/// One line of a dependency section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package, by the name it is published under.
    pub(crate) package: String,
    pub(crate) kind: DependencyKind,
    /// Whether `default-features = false` stands with it.
    pub(crate) bare: bool,
    /// Whether it is imported only if a feature asks for it.
    pub(crate) optional: bool,
    /// Line in the manifest, from 1.
    pub(crate) line: usize,
}

/// A manifest, as far as it matters here.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether the lints of the workspace hold for the package.
    pub(crate) lints_inherited: bool,
    pub(crate) dependencies: Vec<Dependency>,
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Manifest {
        let mut manifest = Manifest::default();
        let mut section = String::new();
        let mut open_brackets = 0;
        for (index, line) in text.lines().enumerate() {
            let line = without_comment(line).trim();
            let continues = open_brackets > 0;
            if !continues && line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned();
                manifest.enter(&section, index + 1);
                continue;
            }
            open_brackets += bracket_balance(line);
            if continues {
                continue;
            }
            if let Some((key, value)) = line.split_once('=') {
                manifest.set(&section, key.trim(), value.trim(), index + 1);
            }
        }
        manifest
    }

    /// A section of its own for one dependency, `[dependencies.name]`.
    fn enter(&mut self, section: &str, line: usize) {
        if let Some((kind, Some(key))) = dependency_section(section) {
            let package = unquoted(key).to_owned();
            self.dependencies.push(Dependency { package, kind, bare: false, optional: false, line });
        }
    }

    fn set(&mut self, section: &str, key: &str, value: &str, line: usize) {
        match (section, key) {
            ("package", "name") => self.name = unquoted(value).to_owned(),
            ("package", "description") => self.description = unquoted(value).to_owned(),
            ("lints", "workspace") | ("", "lints.workspace") => self.lints_inherited = value == "true",
            _ => {}
        }
        match dependency_section(section) {
            Some((kind, None)) => {
                let name = key.split('.').next().unwrap_or(key);
                self.dependencies.push(Dependency {
                    package: unquoted(inline_value(value, "package").unwrap_or(name)).to_owned(),
                    kind,
                    bare: inline_value(value, "default-features") == Some("false"),
                    optional: inline_value(value, "optional") == Some("true"),
                    line,
                });
            }
            Some((_, Some(_))) => {
                if let Some(dependency) = self.dependencies.last_mut() {
                    match key {
                        "package" => dependency.package = unquoted(value).to_owned(),
                        "default-features" => dependency.bare = value == "false",
                        "optional" => dependency.optional = value == "true",
                        _ => {}
                    }
                }
            }
            None => {}
        }
    }
}

/// The kind of a dependency section and, where it is about one dependency only, that dependency's key.
fn dependency_section(section: &str) -> Option<(DependencyKind, Option<&str>)> {
    // `[target.'cfg(unix)'.dependencies]` counts like `[dependencies]`: an import is an import on every platform.
    let section = match section.strip_prefix("target.") {
        Some(rest) => rest.rsplit_once("'.").or_else(|| rest.split_once('.')).map_or(rest, |(_, after)| after),
        None => section,
    };
    let (table, key) = match section.split_once('.') {
        Some((table, key)) => (table, Some(key)),
        None => (section, None),
    };
    let kind = match table {
        "dependencies" => DependencyKind::Normal,
        "build-dependencies" => DependencyKind::Build,
        "dev-dependencies" => DependencyKind::Dev,
        _ => return None,
    };
    Some((kind, key))
}

fn unquoted(value: &str) -> &str {
    value.trim_matches(['"', '\''])
}

/// The value of a key in an inline table, `{ key = value, .. }`.
fn inline_value<'a>(table: &'a str, key: &str) -> Option<&'a str> {
    let inside = table.strip_prefix('{')?.trim_end_matches('}');
    inside.split(',').find_map(|part| {
        let (name, value) = part.split_once('=')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (index, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..index],
            _ => {}
        }
    }
    line
}

fn bracket_balance(line: &str) -> i32 {
    let mut quoted = false;
    let mut balance = 0;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => balance += 1,
            ']' | '}' if !quoted => balance -= 1,
            _ => {}
        }
    }
    balance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_dependency_is_seen() {
        let manifest = Manifest::parse(
            r#"
[package]
name = "a" # not "b"
description = "does [things]"
keywords = [
    "dependencies",
    "x = y",
]

[lints]
workspace = true

[dependencies]
plain = "1"
bare = { version = "1", default-features = false, optional = true }
renamed = { package = "real", path = "../real" }
inherited.workspace = true
featured = { version = "1", features = [
    "one",
] }

[dependencies.table]
version = "1"
default-features = false
optional = true

[target.'cfg(target_os = "linux")'.dependencies]
nix = "0.30"

[build-dependencies]
cc = "1"

[dev-dependencies]
proptest = "1"
"#,
        );
        assert_eq!((manifest.name.as_str(), manifest.description.as_str()), ("a", "does [things]"));
        assert!(manifest.lints_inherited);
        let seen: Vec<_> = manifest.dependencies.iter().map(|d| (d.package.as_str(), d.kind, d.bare)).collect();
        use DependencyKind::{Build, Dev, Normal};
        let expected = [
            ("plain", Normal, false),
            ("bare", Normal, true),
            ("real", Normal, false),
            ("inherited", Normal, false),
            ("featured", Normal, false),
            ("table", Normal, true),
            ("nix", Normal, false),
            ("cc", Build, false),
            ("proptest", Dev, false),
        ];
        assert_eq!(seen, expected);
        assert_eq!(manifest.dependencies[0].line, 14);
        let optional: Vec<_> =
            manifest.dependencies.iter().filter(|d| d.optional).map(|d| d.package.as_str()).collect();
        assert_eq!(optional, ["bare", "table"]);
    }
}
