//! Who else uses a device.
//!
//! Linux lets anybody open a device that UBI is attached to or that is mounted, and erase it. So who uses it is looked up where Linux
//! tells of it, before anything is said to the device. What begins to use it later is not kept away.

use std::fs;
use std::path::Path;

use crate::shape::{Attributes, class};

/// Who uses MTD device `number`, in words; `None` if nobody is known to. `root` is where sysfs is mounted, `mounts` the list of mounts.
pub(crate) fn user(root: &Path, mounts: &str, number: u32) -> Option<String> {
    attached(root, number).or_else(|| mounted(root, mounts, number))
}

/// UBI on the device, on a part of it or on what it is a part of.
fn attached(root: &Path, number: u32) -> Option<String> {
    let place = |number: u32| fs::canonicalize(class(root).join(format!("mtd{number}"))).ok();
    for entry in fs::read_dir(root.join("class/ubi")).ok()?.flatten() {
        let Some(other) = Attributes(entry.path()).text("mtd_num").and_then(|text| text.parse().ok()) else { continue };
        let name = entry.file_name().display().to_string();
        if other == number {
            return Some(format!("UBI is attached to it as {name}; 'ubidetach -m {number}' ends that"));
        }
        if let (Some(ours), Some(theirs)) = (place(number), place(other))
            && (ours.starts_with(&theirs) || theirs.starts_with(&ours))
        {
            return Some(format!("UBI is attached to mtd{other}, which shares blocks with it, as {name}"));
        }
    }
    None
}

/// A mount of the device, by any of the names that a mount may have it under.
fn mounted(root: &Path, mounts: &str, number: u32) -> Option<String> {
    let name = Attributes(class(root).join(format!("mtd{number}"))).text("name");
    let mut names = vec![
        format!("mtd{number}"),
        format!("/dev/mtd{number}"),
        format!("/dev/mtdblock{number}"),
        format!("/dev/mtd/{number}"),
    ];
    // By its name, in which the list of mounts writes a blank as a number.
    names.extend(name.map(|name| format!("mtd:{}", name.replace(' ', "\\040"))));
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (source, directory, system) = (words.next()?, words.next()?, words.next()?);
        names.iter().any(|name| name == source).then(|| {
            let system = system.strip_prefix("fuse.").unwrap_or(system);
            format!("mounted on {directory} ({system})")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder like sysfs: mtd0 with its part mtd1, and mtd2 alone; UBI on the devices named.
    fn sysfs(attached: &[u32]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let at = |path: &str| root.path().join(path);
        for place in ["devices/mtd0/mtd1", "devices/mtd2", "class/mtd", "class/ubi"] {
            fs::create_dir_all(at(place)).expect(place);
        }
        for (number, place) in [(0, "devices/mtd0"), (1, "devices/mtd0/mtd1"), (2, "devices/mtd2")] {
            symlink(at(place), at(&format!("class/mtd/mtd{number}"))).expect(place);
            fs::write(at(place).join("name"), format!("part {number}\n")).expect(place);
        }
        for number in attached {
            let folder = at(&format!("class/ubi/ubi{number}"));
            fs::create_dir(&folder).expect("a folder");
            fs::write(folder.join("mtd_num"), format!("{number}\n")).expect("an attribute");
        }
        root
    }

    #[test]
    fn a_device_that_ubi_is_attached_to_is_in_use_and_so_is_what_shares_its_blocks() {
        let root = sysfs(&[1]);
        let user = |number| user(root.path(), "", number);
        assert_eq!(user(1).as_deref(), Some("UBI is attached to it as ubi1; 'ubidetach -m 1' ends that"));
        assert_eq!(user(0).as_deref(), Some("UBI is attached to mtd1, which shares blocks with it, as ubi1"));
        assert_eq!(user(2), None);
    }

    #[test]
    fn a_mounted_device_is_in_use_by_whatever_name() {
        let root = sysfs(&[]);
        let user =
            |source: &str| user(root.path(), &format!("proc /proc proc rw 0 0\n{source} /srv jffs2 rw 0 0\n"), 2);
        for source in ["mtd2", "/dev/mtdblock2", "/dev/mtd2", "mtd:part\\0402"] {
            assert_eq!(user(source).as_deref(), Some("mounted on /srv (jffs2)"), "{source}");
        }
        for source in ["mtd20", "mtd:part", "/dev/mtdblock1"] {
            assert_eq!(user(source), None, "{source}");
        }
    }

    #[test]
    fn a_machine_without_ubi_has_none_attached() {
        let root = tempfile::tempdir().expect("a folder");
        assert_eq!(user(root.path(), "", 0), None);
    }
}
