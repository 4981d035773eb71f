//! Programs of this repository as its tests were built, so that nothing is built twice.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::target_directory;

/// Builds them where they are not there yet, and returns the folder that they are in; examples have one of their own in it.
///
/// Cargo builds what is asked for with the features that all packages which are asked for want, and tests want more than programs do. So all packages are
/// asked for, and an example stands in for the tests.
pub(crate) fn as_for_tests(root: &Path) -> Result<PathBuf, String> {
    let mut command = Command::new("cargo");
    command.args(["build", "--quiet", "--workspace", "--bins", "--examples"]).current_dir(root).stdin(Stdio::null());
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() {
        Ok(target_directory(root).join("debug"))
    } else {
        Err(format!("cargo build failed: {status}"))
    }
}
