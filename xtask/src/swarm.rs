//! Random chains of power cuts, as many as somebody lets run.

use std::path::Path;
use std::process::{Command, Stdio};

/// Cases of a run that names no number.
const CASES: u64 = 1_000_000;

/// Runs the swarms of the crate `nandu`, with changes durable one by one and together and with snapshots, which share the cases; and
/// those of the file system: as many cuts in lives on all cores for each kind of chip, and a twentieth as many chains.
/// Takes `--cases N` and `--seed S`, both optional.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let (cases, seed) = parse(arguments)?;
    let line = [
        "test",
        "--release",
        "-p",
        "nandu",
        "-p",
        "nandu-fs",
        "--test",
        "it",
        "swarm",
        "--",
        "--ignored",
        "--test-threads=1",
        "--nocapture",
    ];
    let status = Command::new("cargo")
        .args(line)
        .current_dir(root)
        .env("NANDU_SWARM_CASES", cases.to_string())
        .env("NANDU_SWARM_SEED", seed.to_string())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("a case failed: {status}")) }
}

fn parse(arguments: &[&str]) -> Result<(u64, u64), String> {
    let (mut cases, mut seed) = (CASES, 1);
    let mut rest = arguments;
    while let [name, value, more @ ..] = rest {
        let number = value.parse().map_err(|_| format!("{name} takes a number, not '{value}'"))?;
        match *name {
            "--cases" => cases = number,
            "--seed" => seed = number,
            _ => return Err(format!("swarm does not know '{name}'")),
        }
        rest = more;
    }
    match rest {
        [] => Ok((cases, seed)),
        [name, ..] => Err(format!("{name} takes a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::{CASES, parse};

    #[test]
    fn arguments_are_numbers_with_names() {
        assert_eq!(parse(&[]), Ok((CASES, 1)));
        assert_eq!(parse(&["--seed", "7", "--cases", "50"]), Ok((50, 7)));
        assert!(parse(&["--cases", "many"]).is_err());
        assert!(parse(&["--cases"]).is_err());
        assert!(parse(&["--case", "5"]).is_err());
    }
}
