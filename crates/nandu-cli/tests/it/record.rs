//! Real work recorded through the command.

use std::fs;

use assert_cmd::Command;

fn nandu() -> Command {
    Command::cargo_bin("nandu").unwrap()
}

#[test]
fn without_strace_the_command_says_what_to_install_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["lab", "record", "--out", "t.trace", "--", "true"];
    let output = nandu().args(arguments).current_dir(&place).env("PATH", place.path()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("apt-get install strace") && text.lines().count() == 1, "{text}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

#[test]
fn what_a_command_does_to_files_is_recorded() {
    // A machine may have no strace, or forbid it to trace.
    let probe = std::process::Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: this machine has no strace that works");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("old"), [7; 5000]).unwrap();
    let work = "mkdir d; cat old old > d/new; rm old; cat d/new > /dev/null; exit 3";
    let output = nandu().args(["lab", "record", "--", "sh", "-c", work]).current_dir(&place).output().unwrap();
    let trace = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "the command's failure is passed on");
    let (load, run) = trace.split_once("run\n").unwrap();
    assert!(load.ends_with("p i 2\np b 2 0-1\n"), "{trace}");
    // The new file has 10,000 bytes; whether they are written at once is the command's business.
    for part in ["p i 3\n", "p i 4\n", "g b 2 0-1\n", "d i 2\n", "g b 4 0-2\n"] {
        assert!(run.contains(part), "{part}: {trace}");
    }
    let put: Vec<&str> = run.lines().filter(|line| line.starts_with("p b 4 ")).collect();
    assert!(put.last().is_some_and(|line| line.ends_with('2')), "{trace}");
}
