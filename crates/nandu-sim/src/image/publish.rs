//! Image files by name: made under another name and renamed, opened under a lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{ImageError, ImageProblem};

/// Opens a file and locks it: for this process alone if it is to be written, else against those who write.
pub(super) fn open_locked(path: &Path, write: bool) -> Result<File, ImageProblem> {
    // Opening a pipe would wait for someone at its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(ImageProblem::NotAnImage);
    }
    let file = OpenOptions::new().read(true).write(write).open(path)?;
    lock(&file, write)?;
    Ok(file)
}

fn lock(file: &File, alone: bool) -> Result<(), ImageProblem> {
    match if alone { file.try_lock() } else { file.try_lock_shared() } {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(ImageProblem::InUse),
        // A file system without locks is no reason not to work on it.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// Has an image written to a new file, and gives it its name when it is complete.
pub(super) fn publish<T>(
    path: &Path,
    replace: bool,
    write: impl FnOnce(File, &Path) -> Result<T, ImageError>,
) -> Result<T, ImageError> {
    let failed = |problem: ImageProblem| ImageError::new(path, problem);
    match fs::symlink_metadata(path) {
        Ok(_) if !replace => return Err(failed(ImageProblem::Exists)),
        // The lock is held until the new file has taken the name.
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(failed(ImageProblem::NotAnImage)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error.into())),
    }
    let replaced = if replace && path.exists() { Some(open_locked(path, true).map_err(failed)?) } else { None };
    let temporary = temporary_name(path).map_err(|error| failed(error.into()))?;
    let created = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary);
    let file = created.map_err(|error| failed(error.into()))?;
    let result = lock(&file, true).map_err(failed).and_then(|()| write(file, path)).and_then(|written| {
        give_name(&temporary, path, replace).map_err(failed)?;
        Ok(written)
    });
    if result.is_err() {
        // The error that is reported is the one that matters.
        let _ = fs::remove_file(&temporary);
    }
    drop(replaced);
    result
}

/// A name beside the file that no other process uses at this time.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.new", std::process::id()));
    Ok(path.with_file_name(temporary))
}

fn give_name(temporary: &Path, path: &Path, replace: bool) -> Result<(), ImageProblem> {
    if replace {
        fs::rename(temporary, path)?;
    } else {
        // Unlike a rename, a link cannot take the name from a file that someone else made in the meantime.
        match fs::hard_link(temporary, path) {
            Ok(()) => fs::remove_file(temporary)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(ImageProblem::Exists),
            // Some file systems have no links; there the window between looking and renaming stays open.
            Err(_) if fs::symlink_metadata(path).is_err() => fs::rename(temporary, path)?,
            Err(error) => return Err(error.into()),
        }
    }
    // Where a directory can be opened as a file, the new name is safe only after this.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(directory) = File::open(directory) {
        directory.sync_all()?;
    }
    Ok(())
}
