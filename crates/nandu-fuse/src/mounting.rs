//! A directory becomes a mount, and stops being one.
//!
//! Whoever may mount does it with the kernel's own call, so that type and flags are those that were asked for; everybody else has
//! `fusermount3` do it. The end is asked for in the same two ways, as often as somebody likes: a directory that is in use stays mounted.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use fuser::{Config, Filesystem, MountOption, Session, SessionACL};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::MountOptions;

/// The type that the list of mounts shows.
const TYPE: &str = "fuse.nandu";

/// What the type says behind its dot.
const SUBTYPE: &str = "nandu";

/// The door to the kernel.
const DEVICE: &str = "/dev/fuse";

/// Ends a mount, from any thread.
#[derive(Clone, Debug)]
pub struct Unmounter {
    directory: PathBuf,
    connection: Arc<OwnedFd>,
}

impl Unmounter {
    /// Unmounts the directory; `Ok` if it is no mount any more.
    ///
    /// # Errors
    ///
    /// A directory that is in use stays mounted, and this can be called again.
    pub fn unmount(&self) -> io::Result<()> {
        // Somebody else may have done it, and what is mounted there now is another's.
        if self.is_over() {
            return Ok(());
        }
        match unmount(&self.directory, UnmountFlags::empty()) {
            Err(Errno::PERM) => self.unmount_by_helper(),
            done => Ok(done?),
        }
    }

    fn unmount_by_helper(&self) -> io::Result<()> {
        let mut command = Command::new("fusermount3");
        let output = command.args(["-u", "--"]).arg(&self.directory).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }

    /// Whether the kernel has closed the connection.
    fn is_over(&self) -> bool {
        let mut polled = [PollFd::new(&*self.connection, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|count| count > 0) && polled[0].revents().contains(PollFlags::ERR)
    }
}

/// Mounts a directory and begins to serve it.
pub(crate) fn begin<F: Filesystem>(
    filesystem: F,
    directory: &Path,
    options: &MountOptions,
) -> io::Result<(Session<F>, Unmounter)> {
    let directory = directory.canonicalize()?;
    let mut config = Config::default();
    config.acl = if options.is_for_all { SessionACL::All } else { SessionACL::Owner };
    let session = match mount_directly(&directory, options)? {
        Some(device) => {
            let acl = config.acl;
            Session::from_fd(filesystem, device, acl, config)?
        }
        None => {
            config.mount_options = options_of_helper(options);
            Session::new(filesystem, &directory, &config)?
        }
    };
    let connection = Arc::new(session.as_fd().try_clone_to_owned()?);
    Ok((session, Unmounter { directory, connection }))
}

/// Mounts by the kernel's call; `None` where only a helper may.
fn mount_directly(directory: &Path, options: &MountOptions) -> io::Result<Option<OwnedFd>> {
    let why = |error: Errno, what: &str| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{what}: {error}"))
    };
    let root_mode = directory.metadata()?.mode();
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| why(error, DEVICE))?;
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let mut data =
        format!("fd={},rootmode={root_mode:o},user_id={user},group_id={group},default_permissions", device.as_raw_fd());
    if options.is_for_all {
        data.push_str(",allow_other");
    }
    let flags = [
        (options.read_only, MountFlags::RDONLY),
        (options.no_atime, MountFlags::NOATIME),
        (!options.has_set_id, MountFlags::NOSUID),
        (!options.has_devices, MountFlags::NODEV),
        (options.no_exec, MountFlags::NOEXEC),
    ];
    let flags = flags.into_iter().filter(|&(is_set, _)| is_set).fold(MountFlags::empty(), |all, (_, flag)| all | flag);
    let data = CString::new(data)?;
    match mount(options.name.as_str(), directory, TYPE, flags, data.as_c_str()) {
        Ok(()) => Ok(Some(device)),
        Err(Errno::PERM) => Ok(None),
        Err(error) => Err(why(error, &directory.display().to_string())),
    }
}

/// The same for `fusermount3`.
fn options_of_helper(options: &MountOptions) -> Vec<MountOption> {
    // There a comma ends an option, unless it stands behind a backslash.
    let name = options.name.replace('\\', "\\\\").replace(',', "\\,");
    vec![
        MountOption::FSName(name),
        MountOption::Subtype(SUBTYPE.into()),
        MountOption::DefaultPermissions,
        if options.no_atime { MountOption::NoAtime } else { MountOption::Atime },
        if options.read_only { MountOption::RO } else { MountOption::RW },
        if options.has_set_id { MountOption::Suid } else { MountOption::NoSuid },
        if options.has_devices { MountOption::Dev } else { MountOption::NoDev },
        if options.no_exec { MountOption::NoExec } else { MountOption::Exec },
    ]
}
