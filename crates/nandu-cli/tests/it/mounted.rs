//! A mounted file system for tests. Where FUSE cannot be used the tests say so and pass; with `NANDU_FUSE=1` they fail instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) fn nandu(arguments: &[&str], directory: &Path) -> Output {
    let program = assert_cmd::cargo::cargo_bin("nandu");
    Command::new(program).args(arguments).current_dir(directory).output().unwrap()
}

pub(crate) fn succeed(arguments: &[&str], directory: &Path) -> String {
    let output = nandu(arguments, directory);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// An image with a file system, mounted beside it.
pub(crate) struct Mounted {
    pub(crate) directory: TempDir,
    pub(crate) process: u32,
}

impl Mounted {
    /// `None`, with a word, where nothing can be mounted.
    pub(crate) fn new(chip: &str) -> Option<Mounted> {
        Mounted::with(&["--chip", chip, "--factory-bad", "1", "--seed", "3"], &[], &[])
    }

    /// The same with arguments of one's own for `create`, `fs format` and `mount`.
    pub(crate) fn with(create: &[&str], format: &[&str], arguments: &[&str]) -> Option<Mounted> {
        Mounted::made_in(tempfile::tempdir().unwrap(), create, format, arguments)
    }

    /// The same in a directory of one's own.
    pub(crate) fn made_in(directory: TempDir, create: &[&str], format: &[&str], arguments: &[&str]) -> Option<Mounted> {
        succeed(&[&["create", "c.nand"], create].concat(), directory.path());
        succeed(&[&["fs", "format", "c.nand"], format].concat(), directory.path());
        fs::create_dir(directory.path().join("mnt")).unwrap();
        let process = mount(directory.path(), arguments)?;
        Some(Mounted { directory, process })
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("mnt")
    }

    /// Unmounts, and waits until the image is written.
    pub(crate) fn unmount(&mut self) {
        if self.process != 0 {
            self.leave();
            self.wait();
        }
    }

    /// Unmounts, and waits for nothing.
    pub(crate) fn leave(&self) {
        let unmount = |program: &str, arguments: &[&str]| {
            let status = Command::new(program).args(arguments).arg(self.root()).stderr(Stdio::null()).status();
            status.is_ok_and(|status| status.success())
        };
        // A process that another test begins has the files of this one open for a moment, and the mount is in use until it has its program.
        let start = Instant::now();
        while !unmount("umount", &[]) && !unmount("fusermount3", &["-u"]) {
            assert!(start.elapsed() < Duration::from_secs(10), "the mount cannot be ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the process is gone.
    pub(crate) fn wait(&mut self) {
        let start = Instant::now();
        while is_running(self.process) {
            assert!(start.elapsed() < Duration::from_secs(60), "process {} does not end", self.process);
            std::thread::sleep(Duration::from_millis(20));
        }
        self.process = 0;
    }

    /// Kills the process that serves the mount.
    pub(crate) fn kill(&mut self) {
        let killed = Command::new("kill").args(["-9", &self.process.to_string()]).status().unwrap();
        assert!(killed.success());
        self.wait();
        // What is left of the mount.
        let _ = Command::new("umount").arg("-l").arg(self.root()).stderr(Stdio::null()).status();
        let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(self.root()).stderr(Stdio::null()).status();
    }

    pub(crate) fn mount_again(&mut self) {
        self.mount_with(&[]);
    }

    pub(crate) fn mount_with(&mut self, arguments: &[&str]) {
        self.process = mount(self.directory.path(), arguments).unwrap();
    }

    pub(crate) fn check(&self) {
        let said = succeed(&["check", "c.nand"], self.directory.path());
        assert!(said.contains("no invariant is violated"), "{said}");
    }

    /// Runs a shell's commands in the mounted directory.
    pub(crate) fn shell(&self, script: &str) {
        let output = Command::new("sh").args(["-e", "-c", script]).current_dir(self.root()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {said}{}", String::from_utf8_lossy(&output.stdout));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.unmount();
        } else if self.process != 0 {
            self.kill();
        }
    }
}

pub(crate) fn is_running(process: u32) -> bool {
    // A process that has ended and was not waited for is a zombie.
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

pub(crate) fn mount(directory: &Path, arguments: &[&str]) -> Option<u32> {
    let output = nandu(&[&["mount", "c.nand", "mnt", "--json"], arguments].concat(), directory);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        assert!(std::env::var_os("NANDU_FUSE").is_none(), "{why}");
        eprintln!("SKIPPED: FUSE cannot be used here: {why}");
        return None;
    }
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    Some(u32::try_from(said["process"].as_u64().unwrap()).unwrap())
}

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("SKIPPED: there is no {program} here");
    }
    found
}

/// Chance with a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % count
    }
}
