//! The test suite for POSIX file systems, pjdfstest in Rust (`cargo install pjdfstest --version 0.2.2`, which needs libacl1-dev), on a mount of three
//! kinds of chips. It acts as several users, so it is for root.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::mounted::{Mounted, has};

/// All that it can test on Linux but what FUSE has no call for, with users that Debian has.
const CONFIGURATION: &str = r#"
[features]
posix_fallocate = {}
rename_ctime = {}
utimensat = {}
utime_now = {}

[settings]
naptime = 0.01
allow_remount = false

[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"]]
"#;

#[test]
fn nothing_of_pjdfstest_fails_on_three_chips() {
    for chip in [&["--chip", "w25n01gv"][..], &["--chip", "paper-flex"], &["--chip", "mt29f4g01"]] {
        run(chip, &[], CONFIGURATION);
    }
}

/// What DFFS has not is in the configuration: tests with links, special files, more than 868 KiB, fractions of seconds. These have to fail.
#[test]
fn nothing_of_pjdfstest_fails_on_dffs_but_what_it_lacks() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pjdfstest-dffs.toml");
    run(&["--chip", "paper-onenand"], &["--system", "dffs"], &fs::read_to_string(path).unwrap());
}

fn run(chip: &[&str], format: &[&str], configuration: &str) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can run pjdfstest");
        return;
    }
    if !has("pjdfstest") {
        return;
    }
    let Some(mut mounted) = Mounted::with(chip, format, &["--allow-other"]) else { return };
    fs::set_permissions(mounted.directory.path(), Permissions::from_mode(0o755)).unwrap();
    let path = mounted.directory.path().join("pjdfstest.toml");
    fs::write(&path, configuration).unwrap();
    let mut command = Command::new("pjdfstest");
    command.arg("-c").arg(&path).arg("-p").arg(mounted.root());
    let output = command.current_dir(mounted.directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    eprintln!("{chip:?}: {last}");
    let failed: Vec<&str> = said.lines().filter(|line| line.contains("FAILED")).collect();
    assert!(
        output.status.success() && failed.is_empty(),
        "{chip:?}: {failed:#?}\n{last}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    mounted.unmount();
    mounted.check();
}
