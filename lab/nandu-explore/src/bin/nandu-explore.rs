//! Explores systems and prints the table; `cargo xtask explore` calls it.

use std::fs;
use std::process::ExitCode;

use nandu_explore::{Bounds, Report, merge, replay, systems, table};

const USAGE: &str = "usage: nandu-explore [--system NAME].. [--depth N] [--shard K/N] [--no-faults] [--brown-out N] [--json] | --merge FILE.. | --replay NAME MOVES";

/// Calls and cuts of a sequence, where nobody says.
const DEPTH: u8 = 2;

/// Operations before a cut that may be weak, at most.
const SAG_MAX: u8 = 8;

/// What is asked for.
#[derive(Debug, PartialEq)]
enum Asked {
    Explore { names: Vec<String>, bounds: Bounds, is_json: bool },
    Merge(Vec<String>),
    Replay(String, String),
}

fn asked(words: &[String]) -> Result<Asked, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--replay", name, moves] => return Ok(Asked::Replay(name.to_owned(), moves.to_owned())),
        ["--merge", ref files @ ..] if !files.is_empty() => {
            return Ok(Asked::Merge(files.iter().map(|&file| file.to_owned()).collect()));
        }
        _ => {}
    }
    let mut bounds = Bounds { depth: DEPTH, shard: (0, 1), has_faults: true, sag_max: 0 };
    let (mut names, mut is_json) = (Vec::new(), false);
    let mut rest = words.into_iter();
    while let Some(word) = rest.next() {
        let mut value = |what: &str| rest.next().ok_or_else(|| format!("{word} takes {what}"));
        match word {
            "--system" => names.push(value("the name of a system")?.to_owned()),
            "--depth" => {
                let text = value("how many calls and cuts a sequence has")?;
                let depth = text.parse().ok().filter(|depth| (1..=16).contains(depth));
                bounds.depth = depth.ok_or_else(|| format!("`{text}` is no depth from 1 to 16"))?;
            }
            "--shard" => {
                let text = value("K/N")?;
                let shard = text.split_once('/').and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
                bounds.shard = shard
                    .filter(|(at, of)| at < of)
                    .ok_or_else(|| format!("`{text}` is no share, as 0/64 to 63/64"))?;
            }
            "--no-faults" => bounds.has_faults = false,
            "--brown-out" => {
                let text = value("how many operations before a cut may be weak")?;
                let count = text.parse().ok().filter(|count| (1..=SAG_MAX).contains(count));
                bounds.sag_max = count.ok_or_else(|| format!("`{text}` is no number from 1 to {SAG_MAX}"))?;
            }
            "--json" => is_json = true,
            _ => return Err(format!("`{word}` is not known\n{USAGE}")),
        }
    }
    Ok(Asked::Explore { names, bounds, is_json })
}

fn run(asked: Asked) -> Result<bool, String> {
    let (reports, is_json) = match asked {
        Asked::Replay(name, moves) => return replay(&name, &moves).map(|()| true),
        Asked::Merge(files) => (merge(read(&files)?), false),
        Asked::Explore { names, bounds, is_json } => {
            let all = systems();
            if let Some(name) = names.iter().find(|name| all.iter().all(|system| system.name() != **name)) {
                let known: Vec<_> = all.iter().map(|system| system.name()).collect();
                return Err(format!("there is no system `{name}`; there are {}", known.join(", ")));
            }
            let chosen = all.iter().filter(|system| names.is_empty() || names.iter().any(|name| name == system.name()));
            let reports: Vec<Report> = chosen.map(|system| system.explore(bounds)).collect();
            reports.iter().for_each(|report| report.record(bounds));
            (reports, is_json)
        }
    };
    if is_json {
        for report in &reports {
            println!("{}", serde_json::to_string(report).map_err(|error| error.to_string())?);
        }
    } else {
        print!("{}", table(&reports));
    }
    Ok(reports.iter().all(|report| report.violations.is_empty()))
}

/// Reports of shares: a line for each.
fn read(files: &[String]) -> Result<Vec<Report>, String> {
    let mut reports = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        for line in text.lines() {
            reports.push(serde_json::from_str(line).map_err(|error| format!("{file}: {error}"))?);
        }
    }
    Ok(reports)
}

fn main() -> ExitCode {
    // A panic of what is explored is a violation, and told as one.
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let words: Vec<_> = std::env::args().skip(1).collect();
    let asked = match asked(&words) {
        Ok(asked) => asked,
        Err(message) => {
            eprintln!("nandu-explore: {message}");
            return ExitCode::from(2);
        }
    };
    match run(asked) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("nandu-explore: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, asked};
    use nandu_explore::Bounds;

    fn of(words: &str) -> Result<Asked, String> {
        asked(&words.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn shares_and_depths_are_read_and_anything_else_refused() {
        let bounds = Bounds { depth: 3, shard: (63, 64), has_faults: false, sag_max: 2 };
        let wanted = Asked::Explore { names: vec!["store".to_owned()], bounds, is_json: false };
        assert_eq!(of("--system store --depth 3 --shard 63/64 --no-faults --brown-out 2"), Ok(wanted));
        assert_eq!(of("--merge a b"), Ok(Asked::Merge(vec!["a".to_owned(), "b".to_owned()])));
        for wrong in
            ["--shard 64/64", "--shard 1", "--depth 0", "--depth x", "--brown-out 9", "--system", "--merge", "store"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
