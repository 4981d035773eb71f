//! The protocol of log and tree on one page, in Promela, checked by Spin.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::outcome::Outcome;
use crate::target_directory;

/// The page.
const MODEL: &str = "docs/protocol/log.pml";

/// How far it is searched: many cuts of few syncs, and one cut of more.
const BOUNDS: [[&str; 3]; 2] = [["-DSYNCS=2", "-DPUTS=2", "-DCUTS=2"], ["-DSYNCS=3", "-DPUTS=2", "-DCUTS=1"]];

/// Rules that are left out, and the bounds in which that is found.
const LEFT_OUT: [(&str, usize); 5] =
    [("-DEARLY", 1), ("-DNO_COPY", 0), ("-DNO_OWN", 1), ("-DNO_CARRY", 1), ("-DMEMBERS_DIE", 1)];

/// Searches the model, which has to hold, and the model without each of its rules, which must not.
pub(crate) fn run(root: &Path) -> Result<Outcome, String> {
    if let Some(lacking) = ["spin", "cc"].into_iter().find(|program| !is_there(program)) {
        return Ok(Outcome::Lacks(format!("{lacking}, to check the protocol")));
    }
    let folder = target_directory(root).join("protocol");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for bounds in BOUNDS {
        let found = search(root, &folder, &bounds)?;
        println!(
            "{}: {} states, {}",
            bounds.join(" "),
            found.states,
            if found.is_violated { "violated" } else { "holds" }
        );
        if found.is_violated {
            return Err(format!("{MODEL} is violated with {}; `spin -t -p` shows how", bounds.join(" ")));
        }
    }
    for (rule, place) in LEFT_OUT {
        let mut defines = BOUNDS[place].to_vec();
        defines.push(rule);
        let found = search(root, &folder, &defines)?;
        println!(
            "{}: {} states, {}",
            defines.join(" "),
            found.states,
            if found.is_violated { "found" } else { "not found" }
        );
        if !found.is_violated {
            return Err(format!("{MODEL} holds without a rule: {}", defines.join(" ")));
        }
    }
    Ok(Outcome::Ran)
}

fn is_there(program: &str) -> bool {
    let quiet = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    quiet.is_ok()
}

/// What a search found.
struct Found {
    states: u64,
    is_violated: bool,
}

/// Searches the model with these definitions as far as it goes.
fn search(root: &Path, folder: &Path, defines: &[&str]) -> Result<Found, String> {
    call(Command::new("spin").arg("-a").args(defines).arg(root.join(MODEL)).current_dir(folder))?;
    call(
        Command::new("cc")
            .args(["-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DNOREDUCE", "-DVECTORSZ=512", "-o", "pan", "pan.c"])
            .current_dir(folder),
    )?;
    let text = call(Command::new(folder.join("pan")).arg("-m1000000").current_dir(folder))?;
    told(&text).ok_or_else(|| format!("the search did not end:\n{text}"))
}

/// What the search says at its end.
fn told(text: &str) -> Option<Found> {
    let errors: u64 = text.lines().find_map(|line| line.split_once("errors: ")?.1.trim().parse().ok())?;
    let states = text.lines().find_map(|line| line.trim().strip_suffix(" states, stored")?.trim().parse().ok())?;
    (!text.contains("max search depth too small")).then_some(Found { states, is_violated: errors > 0 })
}

fn call(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{command:?}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn a_search_is_read_and_one_that_did_not_end_is_none() {
        let text = "State-vector 108 byte, depth reached 230, errors: 1\n  7325305 states, stored\n";
        let found = told(text).unwrap();
        assert_eq!((found.states, found.is_violated), (7_325_305, true));
        assert!(told("error: max search depth too small\n, errors: 0\n  5 states, stored\n").is_none());
        assert!(told("").is_none());
    }
}
