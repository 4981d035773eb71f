//! The emulator of the microcontrollers.

use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) const NAME: &str = "qemu-system-arm";

/// The board MPS2 with a Cortex-M4, and with a Cortex-M7.
pub(crate) const M4: &str = "mps2-an386";
pub(super) const M7: &str = "mps2-an500";

pub(crate) fn is_there() -> bool {
    Command::new(NAME).arg("--version").stdout(Stdio::null()).status().is_ok_and(|it| it.success())
}

/// Runs a program on a board.
pub(crate) fn run(machine: &str, program: &Path) -> Command {
    let mut command = Command::new(NAME);
    command
        .args(["-machine", machine, "-nographic", "-monitor", "none", "-serial", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(program);
    command
}

/// The same, 128 ns for each instruction, which the program knows.
pub(super) fn run_counted(machine: &str, program: &Path) -> Command {
    let mut command = run(machine, program);
    command.args(["-icount", "shift=7"]);
    command
}

/// Whether the emulator keeps time, which a loop of 30,000 instructions tells.
pub(super) fn check_trial(count: Option<u64>) -> Result<(), String> {
    match count {
        Some(count) if count.abs_diff(30_000) <= 30 => Ok(()),
        _ => Err(format!("{NAME} counts {count:?} instructions in a loop of 30,000")),
    }
}

/// What a command says, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{program}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
