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
    /// Which share of it, of how many.
    shard: (u64, u64),
}

impl Arguments {
    /// The cases of the share, and its seed, which no other share has, nor a share of another seed cut into as many.
    fn share(&self) -> (u64, u64) {
        let (at, of) = self.shard;
        (self.cases.div_ceil(of), self.seed * of + at)
    }
}

/// Runs the swarms of the crates `nandu` and `nandu-fs`. Takes `--cases N`, `--seed S` and `--shard K/N`, all optional.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (cases, seed) = parse(arguments)?.share();
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
    let mut parsed = Arguments { cases: CASES, seed: 1, shard: (0, 1) };
    let mut rest = arguments;
    while let [name, value, more @ ..] = rest {
        let number = || value.parse().map_err(|_| format!("{name} takes a number, not '{value}'"));
        match *name {
            "--cases" => parsed.cases = number()?,
            "--seed" => parsed.seed = number()?,
            "--shard" => {
                let shard = value.split_once('/').and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
                let shard = shard.filter(|(at, of)| at < of);
                parsed.shard = shard.ok_or_else(|| format!("'{value}' is no share, as 0/64 to 63/64"))?;
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
    use super::{CASES, parse};

    #[test]
    fn arguments_are_values_with_names() {
        assert_eq!(parse(&[]).map(|of| of.share()), Ok((CASES, 1)));
        assert_eq!(parse(&["--seed", "7", "--cases", "50"]).map(|of| of.share()), Ok((50, 7)));
        assert_eq!(parse(&["--shard", "3/64", "--cases", "640"]).map(|of| of.share()), Ok((10, 67)));
        assert!(parse(&["--shard", "64/64"]).is_err());
        assert!(parse(&["--shard", "3"]).is_err());
        assert!(parse(&["--heart", "new"]).is_err());
        assert!(parse(&["--cases", "many"]).is_err());
        assert!(parse(&["--cases"]).is_err());
        assert!(parse(&["--case", "5"]).is_err());
    }
}
