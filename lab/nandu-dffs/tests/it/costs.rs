//! What operations cost, and what a mount takes.

use nandu_dffs::{Dffs, Options, ParentUpdate};
use nandu_sim::{Chip, Sim};

use crate::rig::{NEW, everything, memory};

/// The chip of the paper, with fewer blocks: pages of 2 KiB, 64 of them in a block.
const CHIP: Chip = Chip::W25N01GV;

/// Programs of an operation, on average over many, each on a file of its own. `before` is done first and not counted.
fn programs(
    options: Options,
    before: impl Fn(&mut Dffs<'_, Sim>, u32),
    operation: impl Fn(&mut Dffs<'_, Sim>, u32),
) -> f64 {
    const COUNT: u32 = 256;
    let mut memory = memory(&CHIP.geometry, &options);
    let mut fs = Dffs::format(Sim::new(CHIP), options, &mut memory).unwrap();
    (0..COUNT).for_each(|number| before(&mut fs, number));
    let begun = fs.nand().counters().programs;
    (0..COUNT).for_each(|number| operation(&mut fs, number));
    (fs.nand().counters().programs - begun) as f64 / f64::from(COUNT)
}

fn name(number: u32) -> Vec<u8> {
    format!("f{number}").into_bytes()
}

fn create(fs: &mut Dffs<'_, Sim>, number: u32) {
    let root = fs.root();
    // Few names in a directory, so that none collide.
    let above = format!("d{}", number / 8).into_bytes();
    let directory = match fs.lookup(root, &above) {
        Ok(nandu_dffs::Node::Directory(directory)) => directory,
        _ => fs.mkdir(root, &above, NEW).unwrap(),
    };
    fs.create(directory, &name(number), NEW).unwrap();
}

fn file(fs: &mut Dffs<'_, Sim>, number: u32) -> (nandu_dffs::Directory, nandu_dffs::File) {
    let root = fs.root();
    let above = format!("d{}", number / 8).into_bytes();
    let Ok(nandu_dffs::Node::Directory(directory)) = fs.lookup(root, &above) else { panic!("it was made") };
    let Ok(nandu_dffs::Node::File(file)) = fs.lookup(directory, &name(number)) else { panic!("it was made") };
    (directory, file)
}

/// The figures of the specification, with the share of checkpoints and of summaries.
#[test]
fn operations_cost_as_many_programs_as_the_paper_has_them() {
    let close = Options { open_files: 8, ..Options::DEFAULT };
    let each = Options { parent_update: ParentUpdate::Each, ..close };
    let near = |found: f64, expected: f64| {
        assert!((expected * 0.98..expected * 1.04).contains(&found), "{found} and not {expected}");
    };
    let write = |size: usize| {
        move |fs: &mut Dffs<'_, Sim>, number: u32| {
            let (_, file) = file(fs, number);
            fs.write(file, 0, &vec![1; size]).unwrap();
            fs.fsync(file).unwrap();
        }
    };
    let written_and_closed = |fs: &mut Dffs<'_, Sim>, number: u32| {
        create(fs, number);
        let (_, file) = file(fs, number);
        fs.write(file, 0, &vec![1; 128 << 10]).unwrap();
        fs.close(file).unwrap();
    };
    let unlink = |fs: &mut Dffs<'_, Sim>, number: u32| {
        let (directory, _) = file(fs, number);
        fs.unlink(directory, &name(number)).unwrap();
    };
    // A directory for every eight, which takes two programs.
    near(programs(close, |_, _| (), create), 2.0 + 2.0 / 8.0);
    near(programs(each, create, write(4096)), 4.0);
    near(programs(each, create, write(64 << 10)), 34.0);
    near(programs(close, |_, _| (), written_and_closed), 68.0 + 2.0 / 8.0);
    near(programs(close, create, unlink), 1.0);
}

/// One file, synced again and again: its bucket stays behind.
#[test]
fn a_synced_write_costs_its_pages_and_one_inode() {
    let mut memory = memory(&CHIP.geometry, &Options::DEFAULT);
    let mut fs = Dffs::format(Sim::new(CHIP), Options::DEFAULT, &mut memory).unwrap();
    let file = fs.create(fs.root(), b"f", NEW).unwrap();
    let begun = fs.nand().counters().programs;
    for number in 0..1000 {
        fs.write(file, number % 200 * 4096, &[number as u8; 4096]).unwrap();
        fs.fsync(file).unwrap();
    }
    let each = (fs.nand().counters().programs - begun) as f64 / 1000.0;
    assert!((3.0..3.06).contains(&each), "{each}");
}

/// Directories of a thousand files each: bytes of memory are those that were handed over, and a mount reads as much.
#[test]
fn a_mount_reads_as_much_with_ten_thousand_files_as_with_ten() {
    let options = Options { directory_max: 1024, ..Options::DEFAULT };
    let mut reads = Vec::new();
    for count in [10, 10_000] {
        let mut memory = memory(&CHIP.geometry, &options);
        let mut fs = Dffs::format(Sim::new(CHIP), options, &mut memory).unwrap();
        let mut directory = fs.root();
        for number in 0..count {
            if number % 250 == 0 {
                directory = fs.mkdir(fs.root(), format!("d{number}").as_bytes(), NEW).unwrap();
            }
            fs.create(directory, &name(number), NEW).unwrap();
        }
        let chip = fs.unmount().unwrap();
        let memory_size = memory.len();
        let mut fs = Dffs::mount(chip, options, &mut memory).unwrap();
        reads.push((memory_size, fs.stats().reads));
        let found = everything(&mut fs).unwrap();
        assert_eq!(found.values().filter(|content| content.is_some()).count(), count as usize);
    }
    assert_eq!(reads[0].0, reads[1].0);
    // Checkpoints of a chip that was used more lie elsewhere in their blocks.
    assert!(reads[1].1.abs_diff(reads[0].1) <= 40 && reads[1].1 < 120, "{reads:?}");
}

/// A directory whose chain has many pages.
#[test]
fn a_directory_takes_two_thousand_names() {
    let options = Options { directory_max: 256, ..Options::DEFAULT };
    let mut memory = memory(&CHIP.geometry, &options);
    let mut fs = Dffs::format(Sim::new(CHIP), options, &mut memory).unwrap();
    let root = fs.root();
    for number in 0..2000 {
        fs.create(root, &name(number), NEW).unwrap();
    }
    assert_eq!(everything(&mut fs).unwrap().len(), 2000);
    for number in 0..2000 {
        fs.unlink(root, &name(number * 7 % 2000)).unwrap();
    }
    assert_eq!(everything(&mut fs).unwrap().len(), 0);
    // Empty pages left the chain.
    assert_eq!(fs.space().directories_free, 254);
    let mut found = Vec::new();
    fs.verify(&mut |violation| found.push(violation)).unwrap();
    assert_eq!(found, []);
}

/// The directory's page and the inode, where no page is kept: what a directory's generation is stands in the page that is read anyway.
#[test]
fn a_lookup_reads_two_pages() {
    let options = Options { cache_pages: 0, ..Options::DEFAULT };
    let mut memory = memory(&CHIP.geometry, &options);
    let mut fs = Dffs::format(Sim::new(CHIP), options, &mut memory).unwrap();
    let directory = fs.mkdir(fs.root(), b"d", NEW).unwrap();
    fs.create(directory, b"f", NEW).unwrap();
    let begun = fs.nand().counters().reads;
    fs.lookup(directory, b"f").unwrap();
    assert_eq!(fs.nand().counters().reads - begun, 2);
}
