//! Where the output goes, and how.

use std::io::Read;
use std::process::{Command, Stdio};

fn nandu() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("nandu"))
}

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("c.nand");
    assert!(nandu().arg("create").arg(&image).stdout(Stdio::null()).status().unwrap().success());
    // More than a pipe holds, so that the command has to notice.
    let mut child =
        nandu().args(["map", "--json"]).arg(&image).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut first).unwrap();
    drop(output);
    let finished = child.wait_with_output().unwrap();
    assert!(finished.stderr.is_empty(), "{}", String::from_utf8_lossy(&finished.stderr));
    assert_eq!(finished.status.code(), Some(0));
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("c.nand");
    assert!(
        nandu()
            .arg("create")
            .arg(&image)
            .args(["--factory-bad", "2"])
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let map = |variable: Option<(&str, &str)>| {
        let mut command = nandu();
        command.arg("map").arg(&image).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("COLUMNS", "80");
        if let Some((name, value)) = variable {
            command.env(name, value);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let plain = map(None);
    assert!(!plain.contains('\u{1b}'));
    assert_eq!(map(Some(("NO_COLOR", "1"))), plain);
    let coloured = map(Some(("CLICOLOR_FORCE", "1")));
    assert!(coloured.contains('\u{1b}'));
    // The colours add nothing but themselves.
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((text, escape)) = rest.split_once('\u{1b}') {
        stripped.push_str(text);
        rest = escape.split_once('m').map_or("", |(_, after)| after);
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn the_map_is_as_wide_as_fits() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("c.nand");
    assert!(nandu().arg("create").arg(&image).stdout(Stdio::null()).status().unwrap().success());
    for (columns, blocks_per_line) in [("40", 16), ("80", 64), ("200", 128)] {
        let output = nandu().arg("map").arg(&image).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with("0 ")).unwrap();
        assert_eq!(line.chars().filter(|glyph| *glyph == '.').count(), blocks_per_line, "{columns} columns");
    }
}

#[test]
fn completions_and_manual_pages_name_the_verbs() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = nandu().args(["completions", shell]).output().unwrap();
        assert!(output.status.success() && String::from_utf8(output.stdout).unwrap().contains("create"), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    assert!(nandu().args(["man", "--dir"]).arg(directory.path()).status().unwrap().success());
    let page = std::fs::read_to_string(directory.path().join("nandu-create.1")).unwrap();
    assert!(page.contains("factory"));
}
