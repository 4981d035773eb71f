//! Random chains of power cuts, as many as somebody lets run.

use std::path::Path;
use std::process::{Command, Stdio};

/// Cases of a run that names no number.
const CASES: u64 = 1_000_000;

/// What is to be run.
#[derive(Debug, PartialEq)]
struct Arguments {
    cases: u64,
    seed: u64,
    is_new: bool,
}

/// Runs the swarms of the crate `nandu`, with changes durable one by one and together and with snapshots, which share the cases; and
/// those of the file system: as many cuts in lives on all cores for each kind of chip, and a twentieth as many chains.
///
/// With `--heart new`: as many cuts of stores on the new heart, a tenth as many pairs of cuts and a hundredth as many triples, as many operations on both
/// hearts, and as many cuts in lives of its file system. Takes `--cases N` and `--seed S` too, all optional.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let Arguments { cases, seed, is_new } = parse(arguments)?;
    let runs: &[(&[&str], &[&str])] = if is_new {
        &[
            (&["-p", "nandu", "--features", "next,std"], &["next::campaign::swarm", "next::differential::swarm"]),
            (&["-p", "nandu-newfs"], &["lives::swarm", "mlc_lives::mlc_swarm"]),
        ]
    } else {
        &[(&["-p", "nandu", "-p", "nandu-fs"], &["swarm"])]
    };
    for (packages, tests) in runs {
        let status = Command::new("cargo")
            .args(["test", "--release"])
            .args(*packages)
            .args(["--test", "it", "--"])
            .args(*tests)
            .args(["--ignored", "--test-threads=1", "--nocapture"])
            .current_dir(root)
            .env("NANDU_SWARM_CASES", cases.to_string())
            .env("NANDU_SWARM_SEED", seed.to_string())
            .stdin(Stdio::null())
            .status()
            .map_err(|error| format!("cargo: {error}"))?;
        if !status.success() {
            return Err(format!("a case failed: {status}"));
        }
    }
    Ok(())
}

fn parse(arguments: &[&str]) -> Result<Arguments, String> {
    let mut parsed = Arguments { cases: CASES, seed: 1, is_new: false };
    let mut rest = arguments;
    while let [name, value, more @ ..] = rest {
        let number = || value.parse().map_err(|_| format!("{name} takes a number, not '{value}'"));
        match *name {
            "--cases" => parsed.cases = number()?,
            "--seed" => parsed.seed = number()?,
            "--heart" => {
                parsed.is_new = match *value {
                    "old" => false,
                    "new" => true,
                    _ => return Err(format!("--heart is old or new, not '{value}'")),
                };
            }
            _ => return Err(format!("swarm does not know '{name}'")),
        }
        rest = more;
    }
    match rest {
        [] => Ok(parsed),
        [name, ..] => Err(format!("{name} takes a value")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, CASES, parse};

    #[test]
    fn arguments_are_values_with_names() {
        assert_eq!(parse(&[]), Ok(Arguments { cases: CASES, seed: 1, is_new: false }));
        assert_eq!(parse(&["--seed", "7", "--cases", "50"]), Ok(Arguments { cases: 50, seed: 7, is_new: false }));
        assert_eq!(parse(&["--heart", "new"]), Ok(Arguments { cases: CASES, seed: 1, is_new: true }));
        assert!(parse(&["--heart", "newest"]).is_err());
        assert!(parse(&["--cases", "many"]).is_err());
        assert!(parse(&["--cases"]).is_err());
        assert!(parse(&["--case", "5"]).is_err());
    }
}
