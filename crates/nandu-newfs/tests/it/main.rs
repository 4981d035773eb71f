//! The file system on the new heart over the simulator. The cases are those of `nandu-fs`, from where they are.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

// By the name that the shared cases know it by.
extern crate nandu_newfs as nandu_fs;

#[path = "../../../nandu-fs/tests/it/cuts.rs"]
mod cuts;
#[path = "../../../nandu-fs/tests/it/damage.rs"]
mod damage;
#[path = "../../../nandu-fs/tests/it/directories.rs"]
mod directories;
#[path = "../../../nandu-fs/tests/it/files.rs"]
mod files;
mod lives;
#[cfg(feature = "mlc")]
mod mlc_lives;
#[path = "../../../nandu-fs/tests/it/page_sizes.rs"]
mod page_sizes;
#[path = "../../../nandu-fs/tests/it/paths.rs"]
mod paths;
#[cfg(feature = "mlc")]
mod placing;
#[path = "../../../nandu-fs/tests/it/random.rs"]
mod random;
mod records;
#[path = "../../../nandu-fs/tests/it/repair.rs"]
mod repair;
mod rig;
#[cfg(feature = "snapshots")]
mod snapshots;
#[path = "../../../nandu-fs/tests/it/space.rs"]
mod space;
#[path = "../../../nandu-fs/tests/it/suite.rs"]
mod suite;
mod tags;
mod truncations;
#[path = "../../../nandu-fs/tests/it/worn.rs"]
mod worn;
#[path = "../../../nandu-fs/tests/it/xattrs.rs"]
mod xattrs;
