//! Linux MTD devices as chips.
//!
//! **For** programs on embedded Linux that use raw NAND behind MTD, without UBI. The command `nandu` does it for whoever needs no code of
//! their own.
//!
//! [`Mtd`] is `/dev/mtdN` behind the contract [`Nand`](nandu_nand::Nand): shape from the kernel and from sysfs, pages and blocks by offset,
//! bad blocks by the kernel's own table, corrected bits with each read. [`Mtd::open`] refuses what is no raw NAND flash, and what somebody
//! uses, and says which. [`Door`] is what it asks of the kernel, so that a test can be the kernel.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use nandu::{Options, Store};
//! use nandu_mtd::Mtd;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut chip = Mtd::open(Path::new("/dev/mtd3"), &nandu_mtd::Options::DEFAULT)?;
//! let mut memory = vec![0; 1 << 20];
//! let mut store = Store::open(&mut chip, Options::DEFAULT, &mut memory)?;
//! store.put(b"key", b"value")?;
//! store.unmount()?;
//! # Ok(())
//! # }
//! ```
//!
//! **The key decision** is that the kernel's driver is believed in all that it says, and nothing is assumed of what it does not say.
//! Endurance and rated bad blocks are options. That spare bytes are free does not mean that error correction protects them, and Linux has
//! no word for it; so a device has no tags unless whoever opens it says that its data sheet promises that. The alternative, to take free
//! bytes for protected ones, would lose synced data on chips where they are not, after a cut, years later. It was refused.

#[cfg(not(target_os = "linux"))]
compile_error!("MTD devices are Linux's");

mod abi;
mod device;
mod door;
mod error;
#[allow(unsafe_code, reason = "the calls of the kernel, each with its argument; nothing else of this crate has any")]
mod ioctls;
mod nand;
mod shape;
mod users;

pub use device::{Counters, Mtd, device_named, device_number};
pub use door::{Corrected, Door, Info, Kind, Totals};
pub use error::MtdError;
pub use ioctls::Kernel;
pub use rustix::io::Errno;
pub use shape::{OpenError, Options, TAG_SIZE};
