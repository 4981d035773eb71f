//! Proof that `nandu` does with an MTD device of Linux what it does with a simulated chip: builds it, boots a guest with Linux's own simulator of
//! NAND flash, runs `tools/guest/proof.sh` there, and reads on this machine what was dumped of the device there.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the guest leaves in the shared folder: dumps of its device, and what a file on it holds.
const DUMPS: [&str; 2] = ["dump.oob", "dump"];

/// How often a mount is killed in the guest where nobody says how often.
const KILLS: &str = "10";

/// Runs the proof; says aloud what is missing, where something is, and is content with that unless `NANDU_GUEST` is set.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let boot = root.join("tools/guest/boot");
    let missing = output(Command::new(&boot).arg("missing"))?;
    if !missing.trim().is_empty() {
        let what = missing.split_whitespace().collect::<Vec<_>>().join(", ");
        return skipped(&format!("this machine lacks {what}"));
    }
    if let Err(why) = output(Command::new(&boot).arg("setup")) {
        return skipped(&format!("the guest could not be fetched: {why}"));
    }
    let mut build = Command::new("cargo");
    build.current_dir(root).args(["build", "--quiet", "--package", "nandu-cli"]);
    succeed(&mut build)?;
    let program = crate::target_directory(root).join("debug/nandu");
    let share = crate::target_directory(root).join("guest");
    let _ = fs::remove_dir_all(&share);
    let fail = |error: std::io::Error| format!("{}: {error}", share.display());
    fs::create_dir_all(&share).map_err(fail)?;
    // Without what a debugger would want, which is most of it and would have to be unpacked in the guest.
    let small = share.join("nandu");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&small).arg(&program);
    if succeed(&mut strip).is_err() {
        fs::copy(&program, &small).map_err(fail)?;
    }
    let kills = env::var("NANDU_KILLS").ok().filter(|text| text.parse::<u32>().is_ok());
    fs::write(share.join("settings"), format!("kills={}\n", kills.as_deref().unwrap_or(KILLS))).map_err(fail)?;
    let mut guest = Command::new(&boot);
    guest.arg("run").arg(root.join("tools/guest/proof.sh")).arg(&share).arg(&small);
    succeed(&mut guest)?;
    for dump in DUMPS {
        let path = share.join(dump);
        succeed(Command::new(&program).arg("check").arg(&path))?;
        let read = Command::new(&program).args(["fs", "cat"]).arg(&path).arg("/content").output().map_err(fail)?;
        if !read.status.success() || read.stdout != fs::read(share.join("content")).map_err(fail)? {
            return Err(format!("{dump}: a file of the guest reads otherwise here"));
        }
    }
    println!("ok            dumps of the guest's device read here");
    fs::remove_dir_all(&share).map_err(fail)
}

fn skipped(why: &str) -> Result<(), String> {
    match env::var_os("NANDU_GUEST") {
        Some(_) => Err(why.to_owned()),
        None => {
            println!("guest: SKIPPED: {why}");
            Ok(())
        }
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", command.get_program().display())) }
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
