//! Every state of small volumes, to a depth.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the explorer, which reads its arguments itself.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--release", "--package", "nandu-explore", "--"])
        .args(arguments)
        .current_dir(root)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("the explorer failed: {status}")) }
}
