//! The bits that let a program run as another user or group, which go when somebody changes the file.
//!
//! The kernel leaves it to the file system (`FUSE_HANDLE_KILLPRIV_V2`), and says of a write whether the writer may keep them. Of a
//! truncation it says so too, but not to us, and of an allocation it says nothing; there root may keep them and nobody else.

use std::fs;

use fuser::Request;
use nandu_files::{FileKind, Stat};

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

/// Whether who asks may leave such bits on what it changes.
pub(crate) fn may_keep(request: &Request) -> bool {
    request.uid() == 0
}

/// The mode of a file without the bits that go when its content is changed by who may not keep them, or its owner by anybody; `None` if none
/// goes. The bit of the group stays for its members, where it is not that of a program.
pub(crate) fn without(stat: &Stat, request: &Request) -> Option<u32> {
    if stat.kind != FileKind::File {
        return None;
    }
    let mut mode = stat.mode & !SET_UID;
    if mode & SET_GID != 0 && (mode & GROUP_EXECUTE != 0 || !may_set_gid(stat.gid, request)) {
        mode &= !SET_GID;
    }
    (mode != stat.mode).then_some(mode)
}

/// The mode that an access list leaves a file: a stranger to its group cannot keep the bit of the group.
pub(crate) fn without_foreign_group(mode: u32, gid: u32, request: &Request) -> u32 {
    if mode & SET_GID != 0 && !may_set_gid(gid, request) { mode & !SET_GID } else { mode }
}

fn may_set_gid(gid: u32, request: &Request) -> bool {
    may_keep(request) || request.gid() == gid || groups(request.pid()).contains(&gid)
}

/// The groups that a process is a member of besides its own; none where that cannot be seen.
fn groups(process: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    line.split_whitespace().filter_map(|group| group.parse().ok()).collect()
}
