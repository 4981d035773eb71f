//! A device, opened: found out what it is, made sure that nobody uses it, and how corrected bits are counted.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use nandu_nand::{Geometry, PageAddr, ReadStatus};
use rustix::fs::{major, minor};
use rustix::io::Errno;

use crate::door::{Corrected, Door, Info};
use crate::error::MtdError;
use crate::ioctls::Kernel;
use crate::shape::{Attributes, OpenError, Options, Shape, class};
use crate::users;

/// Where sysfs is mounted.
const SYSFS: &str = "/sys";

/// What is mounted where, as this process sees it.
const MOUNTS: &str = "/proc/self/mounts";

/// The number of MTD devices in the kernel's list of character devices.
const MAJOR: u32 = 90;

/// The number of the block devices that stand for them.
const BLOCK_MAJOR: u32 = 31;

/// Operations that a device did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads of a page or a part of one.
    pub reads: u64,
    /// Programs of a page.
    pub programs: u64,
    /// Erases of a block.
    pub erases: u64,
    /// Reads with corrected bits.
    pub corrected_reads: u64,
    /// Reads with more flipped bits than can be corrected.
    pub uncorrectable_reads: u64,
    /// Programs and erases that failed.
    pub failures: u64,
}

/// How corrected bits are found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    /// The kernel says them with each read.
    Read,
    /// The kernel has sums, which are asked for before and after each read. They count what others read meanwhile, too: then a page is
    /// moved that need not be, or read once more.
    Totals,
}

/// An MTD device as a chip.
///
/// # What it costs
///
/// An operation is one call of the kernel, and a read two more before Linux 6.1, which knows corrected bits only as sums of the device.
///
/// # Corrected bits
///
/// A read advises a move from as many corrected bits on as Linux does (`bitflip_threshold` in sysfs, which an administrator may set). Where
/// only sums are known, all corrected bits of a read are taken to be in one codeword.
///
/// # Spare bytes
///
/// With [`Options::has_tags`] the first free bytes of the layout are the tag; no others can be read or programmed through the contract.
#[derive(Debug)]
pub struct Mtd<D: Door = Kernel> {
    pub(crate) door: D,
    pub(crate) shape: Shape,
    pub(crate) counters: Counters,
    counting: Counting,
    name: String,
}

/// The number of the MTD device that a file stands for; `None` if it stands for none.
///
/// # Errors
///
/// [`OpenError::BlockDevice`] for the block device of one, and [`OpenError::Io`] if there is no such file.
pub fn device_number(path: &Path) -> Result<Option<u32>, OpenError> {
    let metadata = fs::metadata(path).map_err(OpenError::Io)?;
    let (major, minor) = (major(metadata.rdev()), minor(metadata.rdev()));
    if metadata.file_type().is_char_device() && major == MAJOR {
        // Each has a second one, which is only read.
        Ok(Some(minor / 2))
    } else if metadata.file_type().is_block_device() && major == BLOCK_MAJOR {
        Err(OpenError::BlockDevice(minor))
    } else {
        Ok(None)
    }
}

/// The number of the MTD device with this name, which a board's partition table gives it. The first, if there are several.
pub fn device_named(name: &str) -> Option<u32> {
    named(Path::new(SYSFS), name)
}

fn named(root: &Path, name: &str) -> Option<u32> {
    let entries = fs::read_dir(class(root)).ok()?.flatten();
    let numbers = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.strip_prefix("mtd")?.parse().ok()?;
        (Attributes(entry.path()).text("name")? == name).then_some(number)
    });
    numbers.min()
}

impl Mtd<Kernel> {
    /// Opens `/dev/mtdN`: for this process alone, or with [`Options::is_read_only`] for it and others that only look. Costs one page read.
    ///
    /// ```no_run
    /// use std::path::Path;
    ///
    /// use nandu::{Options, Store};
    /// use nandu_mtd::Mtd;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut chip = Mtd::open(Path::new("/dev/mtd3"), &nandu_mtd::Options::DEFAULT)?;
    /// let mut memory = vec![0; 1 << 20];
    /// let mut store = Store::open(&mut chip, Options::DEFAULT, &mut memory)?;
    /// store.put(b"key", b"value")?;
    /// store.unmount()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OpenError`]: each reason by name.
    pub fn open(path: &Path, options: &Options) -> Result<Mtd<Kernel>, OpenError> {
        let number = device_number(path)?.ok_or(OpenError::NotMtd)?;
        let file = OpenOptions::new().read(true).write(!options.is_read_only).open(path).map_err(OpenError::Io)?;
        let mounts = fs::read_to_string(MOUNTS).map_err(OpenError::Io)?;
        if let Some(user) = users::user(Path::new(SYSFS), &mounts, number) {
            return Err(OpenError::InUse(user));
        }
        lock(&file, options.is_read_only)?;
        Mtd::over(Kernel::new(file), &class(Path::new(SYSFS)).join(format!("mtd{number}")), options)
    }
}

/// Keeps other processes of nandu's away. Linux gives the lock back when the process ends, however it does.
fn lock(file: &File, is_shared: bool) -> Result<(), OpenError> {
    let locked = if is_shared { file.try_lock_shared() } else { file.try_lock() };
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => OpenError::Locked,
        TryLockError::Error(error) => OpenError::Io(error),
    })
}

impl<D: Door> Mtd<D> {
    /// The same over any door, with the folder that has the device's attributes as sysfs has them. Who uses the device is not asked.
    ///
    /// # Errors
    ///
    /// [`OpenError`], but for those of files.
    pub fn over(mut door: D, attributes: &Path, options: &Options) -> Result<Mtd<D>, OpenError> {
        let attributes = Attributes(attributes.to_owned());
        let info = door.info().map_err(|error| match error {
            // A device that knows nothing of these calls.
            Errno::NOTTY | Errno::INVAL => OpenError::NotMtd,
            error => error.into(),
        })?;
        let shape = Shape::of(&info, &attributes, options)?;
        let counting = counting(&mut door, &info)?;
        if options.has_tags && counting == Counting::Totals {
            return Err(OpenError::NoTagReads);
        }
        let name = attributes.text("name").unwrap_or_default();
        Ok(Mtd { door, shape, counters: Counters::default(), counting, name })
    }

    /// What the board's partition table calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Operations since it was opened.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Spare bytes of a page that the kernel's layout leaves free. Whether they are protected it does not say.
    pub fn spare_free(&self) -> u32 {
        self.shape.spare_free
    }

    /// Whether the kernel says with each read how many bits were corrected in a codeword; else sums over all that is read are all there is.
    pub fn counts_bits(&self) -> bool {
        self.counting == Counting::Read
    }

    /// Corrected bits of a codeword from which on a page should be moved.
    pub fn bits_advised(&self) -> u16 {
        self.shape.bits_advised
    }

    /// The spare area of a page as it lies there, which is not the order of the contract. Costs one array read.
    ///
    /// # Errors
    ///
    /// [`MtdError::OutOfBounds`], and the kernel's as [`MtdError::Read`].
    pub fn raw_spare(&mut self, page: PageAddr) -> Result<Vec<u8>, MtdError> {
        let offset = self.offset(page)?;
        let mut spare = vec![0; self.geometry().spare_size as usize];
        self.counters.reads += 1;
        self.door.read_spare(offset, &mut spare).map_err(|error| MtdError::Read(page, error))?;
        Ok(spare)
    }

    fn geometry(&self) -> &Geometry {
        &self.shape.geometry
    }

    /// Where a page begins.
    pub(crate) fn offset(&self, page: PageAddr) -> Result<u64, MtdError> {
        let geometry = self.geometry();
        if !geometry.contains_page(page) {
            return Err(MtdError::OutOfBounds);
        }
        Ok(u64::from(page.0) * u64::from(geometry.page_size))
    }

    /// Reads columns of the main area and the beginning of the tag, either of which may be empty.
    pub(crate) fn fetch(
        &mut self,
        page: PageAddr,
        column: u32,
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<ReadStatus, MtdError> {
        let offset = self.offset(page)? + u64::from(column);
        self.counters.reads += 1;
        let found = match self.counting {
            Counting::Read => self.door.read_counted(offset, data, tag),
            Counting::Totals => between_totals(&mut self.door, offset, data),
        };
        let Corrected { bits_max, uncorrectable } = found.map_err(|error| MtdError::Read(page, error))?;
        if uncorrectable > 0 {
            self.counters.uncorrectable_reads += 1;
            return Err(MtdError::Uncorrectable(page));
        }
        self.counters.corrected_reads += u64::from(bits_max > 0);
        Ok(self.judge(bits_max))
    }

    /// What a count of corrected bits says. Beyond the strength there is none, whatever a sum comes to.
    fn judge(&self, bits: u32) -> ReadStatus {
        let max = self.geometry().ecc.correctable_bits;
        let bits = u16::try_from(bits).unwrap_or(max).min(max);
        match ReadStatus::from_bits(bits, max) {
            ReadStatus::Clean => ReadStatus::Clean,
            _ if bits >= self.shape.bits_advised => ReadStatus::RefreshAdvised { bits, max },
            _ => ReadStatus::Corrected { bits, max },
        }
    }
}

/// Which way the kernel has, found out with the first page. What is wrong with that page does not matter here.
fn counting(door: &mut impl Door, info: &Info) -> Result<Counting, OpenError> {
    let mut page = vec![0; info.write_size as usize];
    match door.read_counted(0, &mut page, &mut []) {
        Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::NOSYS) => {
            door.totals().map_err(|error| OpenError::Io(io::Error::from(error)))?;
            Ok(Counting::Totals)
        }
        _ => Ok(Counting::Read),
    }
}

/// A read between two looks at the sums.
fn between_totals(door: &mut impl Door, offset: u64, data: &mut [u8]) -> Result<Corrected, Errno> {
    let before = door.totals()?;
    let outcome = door.read(offset, data);
    let after = door.totals()?;
    // Where all bytes came, that some of them are wrong is said by the sums alone.
    let unsaid = match outcome {
        Ok(count) if count == data.len() => 0,
        Ok(_) => return Err(Errno::IO),
        Err(Errno::BADMSG) => 1,
        Err(error) => return Err(error),
    };
    Ok(Corrected {
        bits_max: after.corrected.wrapping_sub(before.corrected),
        uncorrectable: after.failed.wrapping_sub(before.failed).max(unsaid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_name() {
        let root = tempfile::tempdir().expect("a folder");
        for (number, name) in [(0, "boot"), (10, "data"), (2, "data"), (3, "data2")] {
            let folder = root.path().join(format!("class/mtd/mtd{number}"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("name"), format!("{name}\n")).expect("an attribute");
        }
        // The second door of a device, which is only read.
        fs::create_dir_all(root.path().join("class/mtd/mtd2ro")).expect("a folder");
        let named = |name| named(root.path(), name);
        assert_eq!((named("boot"), named("data"), named("data2"), named("x")), (Some(0), Some(2), Some(3), None));
    }

    #[test]
    fn an_ordinary_file_is_no_device_and_a_missing_one_says_so() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("file");
        fs::write(&file, "").expect("a file");
        assert!(matches!(device_number(&file), Ok(None)));
        assert!(matches!(Mtd::open(&file, &Options::DEFAULT), Err(OpenError::NotMtd)));
        let missing = Mtd::open(&root.path().join("mtd9"), &Options::DEFAULT).map(|_| ());
        assert_eq!(missing.expect_err("missing").to_string(), "there is no such device");
    }

    #[test]
    fn who_writes_is_alone_and_those_who_look_are_not() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("device");
        fs::write(&path, "").expect("a file");
        let open = || File::open(&path).expect("the file");
        let (one, two, three) = (open(), open(), open());
        lock(&one, true).expect("looking");
        lock(&two, true).expect("looking beside another");
        assert!(matches!(lock(&three, false), Err(OpenError::Locked)));
        drop((one, two));
        lock(&three, false).expect("alone");
        assert!(matches!(lock(&open(), true), Err(OpenError::Locked)));
    }
}
