//! What a device is taken for, and which are refused.

use nandu_mtd::{Errno, Kind, OpenError, Options};
use nandu_nand::{Ecc, Nand, Pairing};
use nandu_sim::{Chip, Sim};

use crate::fake::{Fake, OPTIONS, chip};

fn refusal(change: impl FnOnce(&mut Fake), options: &Options) -> String {
    let mut fake = Fake::new(Sim::new(chip()));
    change(&mut fake);
    fake.open_with(options).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn the_shape_is_what_kernel_and_sysfs_say() {
    let mut fake = Fake::new(Sim::new(Chip::W25N01GV));
    fake.says("ecc_strength", "8");
    fake.says("bitflip_threshold", "6");
    let device = fake.open_with(&Options::DEFAULT).unwrap();
    let geometry = *device.geometry();
    assert_eq!((geometry.page_size, geometry.spare_size, geometry.tag_size), (2048, 64, 0));
    assert_eq!((geometry.pages_per_block, geometry.block_count), (64, 1024));
    assert_eq!(geometry.ecc, Ecc { codeword_size: 512, correctable_bits: 8 });
    assert_eq!((geometry.programs_per_page, geometry.program_unit), (1, 2048));
    assert_eq!((geometry.endurance, geometry.bad_block_max, geometry.pairing), (50_000, 20, Pairing::None));
    assert_eq!((device.name(), device.bits_advised(), device.spare_free()), ("data", 6, 38));
    assert!(device.counts_bits());
}

#[test]
fn a_device_beyond_4_gib_has_the_size_that_sysfs_says() {
    let mut fake = Fake::new(Sim::new(Chip::W25N01GV));
    fake.info.size = 0;
    fake.says("size", &(8_u64 << 30).to_string());
    let geometry = *fake.open_with(&Options::DEFAULT).unwrap().geometry();
    assert_eq!((geometry.block_count, geometry.bad_block_max), (65_536, 64 * 20));
}

#[test]
fn options_say_what_the_kernel_does_not() {
    let mut fake = Fake::new(Sim::new(chip()));
    let options = Options { endurance: 7, bad_block_max: Some(1000), has_tags: true, is_read_only: false };
    let geometry = *fake.open_with(&options).unwrap().geometry();
    assert_eq!((geometry.endurance, geometry.bad_block_max, geometry.tag_size), (7, 64, 16));
}

#[test]
fn what_is_no_nand_flash_with_one_bit_a_cell_is_refused_by_name() {
    let refused = |kind| refusal(|fake| fake.info.kind = kind, &OPTIONS);
    assert_eq!(refused(Kind::Nor), "NOR flash, and nandu is for NAND flash");
    assert_eq!(refused(Kind::DataFlash), "DataFlash, and nandu is for NAND flash");
    assert_eq!(refused(Kind::UbiVolume), "a volume of UBI, not NAND flash itself");
    assert!(refused(Kind::MlcNand).starts_with("NAND flash with several bits a cell"));
    let mut emulated = Fake::new(Sim::new(chip()));
    (emulated.info.kind, emulated.info.is_slc_emulated) = (Kind::MlcNand, true);
    emulated.open_with(&OPTIONS).unwrap();
}

#[test]
fn a_protected_device_can_only_be_looked_at() {
    assert_eq!(refusal(|fake| fake.info.is_writable = false, &OPTIONS), "write-protected");
    let mut fake = Fake::new(Sim::new(chip()));
    fake.info.is_writable = false;
    fake.open_with(&Options { is_read_only: true, ..OPTIONS }).unwrap();
}

#[test]
fn tags_are_refused_where_they_cannot_be() {
    let tags = Options { has_tags: true, ..OPTIONS };
    let few = refusal(|fake| fake.says("oobavail", "15"), &tags);
    assert_eq!(few, "no tags: the layout of the spare area leaves 15 bytes free, and 16 are needed");
    let old = refusal(|fake| fake.has_reads = false, &tags);
    assert_eq!(old, "no tags: this kernel cannot read them; Linux 6.1 can");
}

#[test]
fn sizes_that_fit_no_chip_are_refused() {
    assert_eq!(refusal(|fake| fake.info.write_size = 0, &OPTIONS), "its blocks are not made of whole pages");
    assert_eq!(refusal(|fake| fake.info.erase_size = 2049, &OPTIONS), "its blocks are not made of whole pages");
    assert_eq!(refusal(|fake| fake.says("size", "2049"), &OPTIONS), "it is not made of whole blocks");
    let pages = refusal(|fake| (fake.info.write_size, fake.info.erase_size) = (128, 2048), &OPTIONS);
    assert_eq!(pages, "page size 128 is not a power of two from 256 to 65536");
    assert_eq!(refusal(|fake| fake.says("ecc_strength", "0"), &OPTIONS), "the kernel corrects no flipped bits of it");
}

#[test]
fn errors_of_files_are_one_line_for_people() {
    let line = |error: Errno| OpenError::Io(error.into()).to_string();
    assert_eq!(line(Errno::ACCESS), "permission denied: MTD devices are root's");
    assert_eq!(line(Errno::NODEV), "there is no such device");
    assert_eq!(OpenError::Locked.to_string(), "in use by another process of nandu");
    assert_eq!(OpenError::NotMtd.to_string(), "not an MTD device");
}
