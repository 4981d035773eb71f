//! The program that `cargo xtask promises` calls.

use std::path::PathBuf;
use std::process::{Command, Output};

fn judge(arguments: &[&str]) -> Output {
    let promises = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../promises.toml");
    Command::new(env!("CARGO_BIN_EXE_nandu-judge")).arg(promises).args(arguments).output().unwrap()
}

/// One row that is quick.
#[test]
fn a_row_is_measured_and_printed() {
    let output = judge(&["--only", "million-lookup", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(
        text.starts_with("{")
            && text.contains("\"promise\":\"million-lookup\"")
            && text.contains("\"verdict\":\"met\""),
        "{text}"
    );
}

#[test]
fn what_programs_do_to_files_is_measured() {
    let output = judge(&["--only", "small-file", "--only", "small-write", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(!text.contains("\"measured\":null"), "{text}");
}

#[test]
fn what_is_not_known_is_named() {
    for (arguments, said) in [
        (&["--only", "updates"][..], "no promise is called `updates`"),
        (&["--only"], "--only takes the id of a promise"),
        (&["--fast"], "`--fast` is not known"),
    ] {
        let output = judge(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(said), "{arguments:?}: {text}");
    }
}

/// Whoever leaves out what is measured elsewhere is told so, and does not get a table that looks whole.
#[test]
fn numbers_that_nobody_gave_fail() {
    let output = judge(&["--only", "lines"]);
    assert!(!output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "nandu-judge: lines is not measured\n");
}
