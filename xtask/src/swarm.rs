//! Power cuts, as many as somebody lets run.

use std::path::Path;
use std::process::{Command, Stdio};

/// Cases of a run that names no number.
const CASES: u64 = 1_000_000;

/// What is to be run.
#[derive(Debug, PartialEq)]
struct Arguments {
    cases: u64,
    seed: u64,
}

/// Runs the swarms of the crates `nandu` and `nandu-fs`. Takes `--cases N` and `--seed S`, both optional.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let Arguments { cases, seed } = parse(arguments)?;
    for package in ["nandu", "nandu-fs"] {
        let status = Command::new("cargo")
            .args(["test", "--release", "--package", package, "--test", "it", "--", "swarm"])
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
    let mut parsed = Arguments { cases: CASES, seed: 1 };
    let mut rest = arguments;
    while let [name, value, more @ ..] = rest {
        let number = || value.parse().map_err(|_| format!("{name} takes a number, not '{value}'"));
        match *name {
            "--cases" => parsed.cases = number()?,
            "--seed" => parsed.seed = number()?,
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
        assert_eq!(parse(&[]), Ok(Arguments { cases: CASES, seed: 1 }));
        assert_eq!(parse(&["--seed", "7", "--cases", "50"]), Ok(Arguments { cases: 50, seed: 7 }));
        assert!(parse(&["--heart", "new"]).is_err());
        assert!(parse(&["--cases", "many"]).is_err());
        assert!(parse(&["--cases"]).is_err());
        assert!(parse(&["--case", "5"]).is_err());
    }
}
