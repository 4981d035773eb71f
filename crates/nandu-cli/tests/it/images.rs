//! Images made and refused through the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use nandu::fs::{Fs, Ino, Options};
use nandu_nand::{BlockAddr, CellMode, Geometry, Nand, PageAddr};
use nandu_sim::image::{ImageFile, ImageProblem};
use nandu_sim::{Chip, Sim};
use tempfile::TempDir;

/// A directory with an image of a chip that was used a little.
fn used_image() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.nand");
    succeed(&["create", "c.nand", "--chip", "tiny", "--factory-bad", "7", "--seed", "7"], directory.path());
    let erased =
        ["0", "1", "2"].iter().any(|block| run(&["raw", "erase", block, "c.nand"], directory.path()).status.success());
    assert!(erased);
    (directory, path)
}

fn run(arguments: &[&str], directory: &Path) -> Output {
    Command::cargo_bin("nandu").unwrap().args(arguments).current_dir(directory).output().unwrap()
}

fn succeed(arguments: &[&str], directory: &Path) -> String {
    let output = run(arguments, directory);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The one line on the error stream of a command that ends with this code.
fn complaint(arguments: &[&str], directory: &Path, code: i32) -> String {
    let output = run(arguments, directory);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert!(output.stdout.is_empty() && text.ends_with('\n') && text.lines().count() == 1, "{arguments:?}: {text}");
    text
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bad_blocks_and_another_seed_others() {
    let directory = tempfile::tempdir().unwrap();
    let bad_blocks = |seed: &str| {
        succeed(&["create", "c.nand", "--force", "--factory-bad", "2", "--seed", seed], directory.path());
        json(&succeed(&["info", "c.nand", "--json"], directory.path()))["bad_blocks"].clone()
    };
    let first = bad_blocks("7");
    assert_eq!(first, bad_blocks("7"));
    assert_ne!(first["factory"], bad_blocks("8")["factory"]);
    let percent = first["percent"].as_f64().unwrap();
    assert!(percent > 1.5 && percent <= 2.0, "{percent}");
    assert_eq!(first["count"].as_u64().unwrap() as usize, first["factory"].as_array().unwrap().len());
}

/// A NAND writer, by what it does with erased bytes and at bad blocks.
struct Writer {
    /// A page that has nothing else is programmed too, if anything in its block is.
    programs_erased_pages: bool,
    /// A block that has nothing else is programmed too.
    programs_erased_blocks: bool,
    /// What stands at the place of a bad block is left out, not put into the next good one.
    is_in_place: bool,
}

impl Writer {
    /// Writes an image with spare areas to a chip that holds something old.
    fn write(&self, image: &[u8], chip: &mut Sim) {
        let Geometry { page_size, spare_size, pages_per_block, block_count, .. } = chip.chip().geometry;
        let (page_size, raw_size) = (page_size as usize, (page_size + spare_size) as usize);
        let is_erased = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0xFF);
        let mut blocks = image.chunks(raw_size * pages_per_block as usize);
        for block in (0..block_count).map(BlockAddr) {
            if chip.is_bad(block).unwrap() {
                if self.is_in_place {
                    assert!(blocks.next().is_none_or(is_erased), "nothing is put into {block:?}");
                }
                continue;
            }
            chip.erase(block, CellMode::Slc).unwrap();
            let content = blocks.next().unwrap_or_default();
            assert!(content.len().is_multiple_of(raw_size * pages_per_block as usize), "whole blocks");
            if is_erased(content) && !self.programs_erased_blocks {
                continue;
            }
            let first = block.0 * pages_per_block;
            for (page, content) in (first..).map(PageAddr).zip(content.chunks(raw_size)) {
                let (data, spare) = content.split_at(page_size);
                assert!(is_erased(spare), "the spare area is left alone");
                if self.programs_erased_pages || !is_erased(data) {
                    chip.program(page, 0, data).unwrap();
                }
            }
        }
        assert!(blocks.next().is_none(), "the image is longer than the chip");
    }
}

/// A chip as it comes out of another device: with two bad blocks, and something in all others.
fn used_chip() -> Sim {
    // Stricter than the part: a page takes one program, of whatever.
    let geometry = Geometry { programs_per_page: 1, program_unit: 2048, ..Chip::W25N01GV.geometry };
    let mut chip = Sim::new(Chip { geometry, ..Chip::W25N01GV });
    for bad in [2, 7] {
        chip.mark_bad(BlockAddr(bad)).unwrap();
    }
    for block in (0..geometry.block_count).map(BlockAddr) {
        if !chip.is_bad(block).unwrap() {
            chip.erase(block, CellMode::Slc).unwrap();
            chip.program(PageAddr(block.0 * 64), 0, &[0x55; 2048]).unwrap();
        }
    }
    chip
}

/// Mounts what a writer left, in the memory of a small device; everything is there and can be changed. The simulator panics if a page is
/// programmed twice.
fn use_what_was_flashed(chip: Sim) {
    let options = Options::DEFAULT;
    let mut memory = vec![0; Fs::<Sim>::memory_required(&chip.chip().geometry, &options)];
    let mut mounted = Fs::mount(chip, options, &mut memory).unwrap();
    for number in 0..200_u32 {
        let file = mounted.lookup(Ino::ROOT, number.to_string().as_bytes()).unwrap();
        let mut content = vec![0; 10_001];
        assert_eq!(mounted.read_at(file, 0, &mut content), Ok(50 * number as usize));
        assert!(content[..50 * number as usize].iter().all(|&byte| byte == number as u8));
        mounted.write_at(file, 0, &[9; 6000]).unwrap();
        mounted.sync().unwrap();
    }
    let mut wrong = 0;
    mounted.verify(&mut [], &mut |_| wrong += 1).unwrap();
    assert_eq!(wrong, 0);
}

/// What `fs build` makes works whatever the writer does with erased pages, erased blocks and bad blocks.
#[test]
fn what_was_built_is_flashed_by_any_writer_and_used() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("tree")).unwrap();
    for number in 0..200_u32 {
        fs::write(root.join(format!("tree/{number}")), vec![number as u8; 50 * number as usize]).unwrap();
    }
    for is_in_place in [false, true] {
        let output = if is_in_place { "in-place.bin" } else { "flash.bin" };
        let mut arguments =
            vec!["fs", "build", "-r", "tree", "-o", output, "--chip", "w25n01gv", "--oob", "--bad", "2,7"];
        arguments.extend(is_in_place.then_some("--in-place"));
        succeed(&arguments, root);
        let image = fs::read(root.join(output)).unwrap();
        for (programs_erased_pages, programs_erased_blocks) in [(false, false), (true, false), (true, true)] {
            let mut chip = used_chip();
            Writer { programs_erased_pages, programs_erased_blocks, is_in_place }.write(&image, &mut chip);
            use_what_was_flashed(chip);
        }
    }
}

#[test]
fn an_image_of_files_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    succeed(&["create", "c.nand"], root);
    succeed(&["fs", "format", "c.nand"], root);
    assert!(succeed(&["info", "c.nand"], root).contains("\nholds       a file system\n"));
    assert_eq!(json(&succeed(&["info", "c.nand", "--json"], root))["index"]["holds"], "files");
    succeed(&["kv", "format", "c.nand", "--force"], root);
    assert!(!succeed(&["info", "c.nand"], root).contains("file system"));
}

#[test]
fn an_image_cut_short_is_refused_by_every_verb_that_opens_one() {
    let (directory, path) = used_image();
    let bytes = fs::read(&path).unwrap();
    for size in [0, 1, 100, 4095, 4096, bytes.len() - 1] {
        fs::write(&path, &bytes[..size]).unwrap();
        for verb in [
            &["info", "c.nand"][..],
            &["map", "c.nand"],
            &["dump", "page", "0", "c.nand"],
            &["raw", "erase", "0", "c.nand"],
        ] {
            let text = complaint(verb, directory.path(), 1);
            assert!(text.starts_with(&format!("nandu: c.nand: cut short: it has {size} bytes")), "{text}");
        }
    }
}

#[test]
fn an_image_with_two_damaged_headers_is_refused_with_the_file_and_the_reason() {
    let (directory, path) = used_image();
    let bytes = fs::read(&path).unwrap();
    // All 4096 are tried in the tests of the simulator.
    for place in [0, 7, 8, 11, 12, 16, 32, 40, 48, 56, 68, 72, 88, 111, 112, 2000, 4095] {
        let mut flipped = bytes.clone();
        flipped[place] ^= 0x10;
        fs::write(&path, &flipped).unwrap();
        // The second header says the same.
        succeed(&["info", "c.nand"], directory.path());
        flipped[4096 + place] ^= 0x10;
        fs::write(&path, &flipped).unwrap();
        let text = complaint(&["info", "c.nand"], directory.path(), 1);
        let reason = if place < 8 { "not an image" } else { "damaged: the checksum of the header does not match" };
        assert!(text.starts_with(&format!("nandu: c.nand: {reason}")), "byte {place}: {text}");
    }
    fs::write(&path, &bytes).unwrap();
    succeed(&["info", "c.nand"], directory.path());
}

#[test]
fn a_refused_command_leaves_the_image_as_it_was() {
    let (directory, path) = used_image();
    let bytes = fs::read(&path).unwrap();
    complaint(&["raw", "erase", "99", "c.nand"], directory.path(), 2);
    complaint(&["raw", "program", "127", "c.nand", "c.nand"], directory.path(), 2);
    complaint(&["create", "c.nand", "--chip", "tiny"], directory.path(), 1);
    complaint(&["raw", "erase", "0", "c.nand", "--trace", "c.nand"], directory.path(), 1);
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn an_image_in_use_is_refused_for_work_and_shared_for_looking() {
    let (directory, path) = used_image();
    let held = fs::File::open(&path).unwrap();
    held.lock_shared().unwrap();
    succeed(&["info", "c.nand"], directory.path());
    let text = complaint(&["raw", "erase", "0", "c.nand"], directory.path(), 1);
    assert_eq!(text, "nandu: c.nand: in use by another process\n");
    held.unlock().unwrap();
    held.lock().unwrap();
    complaint(&["info", "c.nand"], directory.path(), 1);
    complaint(&["create", "c.nand", "--force"], directory.path(), 1);
}

#[test]
fn every_json_line_of_every_verb_is_json() {
    let (directory, _) = used_image();
    for arguments in [
        &["chip", "list"][..],
        &["create", "d.nand", "--chip", "paper-flex", "--factory-bad", "5"],
        &["info", "d.nand"],
        &["map", "d.nand"],
        &["raw", "erase", "0", "d.nand", "--trace", "d.trace"],
        &["raw", "read", "0", "d.nand"],
        &["dump", "page", "0", "d.nand", "--spare"],
        &["trace", "replay", "d.trace"],
    ] {
        let text = succeed(&[arguments, &["--json"]].concat(), directory.path());
        assert!(!text.is_empty());
        for line in text.lines() {
            assert!(json(line).is_object(), "{arguments:?}: {line}");
        }
    }
}

#[test]
fn a_chip_of_eight_gigabytes_is_made_and_shown_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let started = std::time::Instant::now();
    succeed(&["create", "c.nand", "--chip", "mlc-4k", "--blocks", "16384"], directory.path());
    let info = json(&succeed(&["info", "c.nand", "--json"], directory.path()));
    assert_eq!(info["geometry"]["capacity_size"], 8u64 << 30);
    assert!(fs::metadata(directory.path().join("c.nand")).unwrap().len() < 16_384);
    // Generous, for a slow machine under load; it takes some hundredths.
    assert!(started.elapsed().as_secs() < 5);
}

#[test]
fn a_chip_with_tags_keeps_them_in_its_image() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let refused = complaint(&["create", "c.nand", "--tag-bytes", "61"], path, 2);
    assert!(refused.contains("--tag-bytes: a tag of 61 bytes does not fit the spare area"), "{refused}");
    succeed(&["create", "c.nand"], path);
    assert_eq!(json(&succeed(&["info", "c.nand", "--json"], path))["geometry"]["tag_size"], 16);
    assert!(succeed(&["info", "c.nand"], path).contains("16 of the spare bytes are protected"));
    // A page that only its tag tells of, after the power has gone.
    let options = Options::DEFAULT;
    let edit = |change: &mut dyn FnMut(&mut Sim)| {
        // A process that another test begins just now has the lock of this one until it is under way.
        let tries = (0..500).map(|_| {
            let image = ImageFile::open(path.join("c.nand"));
            if matches!(&image, Err(error) if matches!(error.problem(), ImageProblem::InUse)) {
                std::thread::sleep(std::time::Duration::from_millis(10));
                return None;
            }
            Some(image.unwrap())
        });
        let (mut image, mut sim) = tries.flatten().next().unwrap();
        change(&mut sim);
        image.commit(&mut sim).unwrap();
    };
    let mut file = Ino::ROOT;
    edit(&mut |sim| {
        let mut memory = vec![0; Fs::<Sim>::memory_required(&sim.chip().geometry, &options)];
        let mut fs = Fs::format(sim, options, nandu::fs::Format::default(), &mut memory).unwrap();
        file = fs.create(Ino::ROOT, b"a", nandu::fs::Attributes::default()).unwrap();
        for value in [1, 2, 3] {
            fs.write_at(file, 0, &[value; 2048]).unwrap();
            fs.sync().unwrap();
        }
        fs.abandon();
    });
    edit(&mut |sim| {
        let mut memory = vec![0; Fs::<Sim>::memory_required(&sim.chip().geometry, &options)];
        let mut fs = Fs::mount(sim, options, &mut memory).unwrap();
        let mut page = [0; 2048];
        assert_eq!(fs.read_at(file, 0, &mut page).unwrap(), 2048);
        assert_eq!((page, fs.stats().tail.pages), ([3; 2048], 2));
        for value in [4, 5, 6] {
            fs.write_at(file, 0, &[value; 2048]).unwrap();
            fs.sync().unwrap();
        }
        let sim = fs.abandon();
        // The tag of the first page behind the commit decays, so that nobody knows whose page it was.
        let geometry = sim.chip().geometry;
        let is_lost = |page: &PageAddr| sim.peek(*page)[..2048] == [5; 2048];
        let lost = (0..geometry.page_count()).map(PageAddr).find(is_lost).unwrap();
        sim.corrupt(lost, 8 * geometry.tag_column());
    });
    let told = "LOST: 1 page of files, synced before the power was cut; neither content nor name can be read";
    let listed = run(&["fs", "ls", "c.nand"], path);
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stderr).contains(told), "{listed:?}");
    let checked = run(&["check", "c.nand", "--json"], path);
    assert_eq!(
        (checked.status.code(), json(&String::from_utf8_lossy(&checked.stdout))["lost_pages"].clone()),
        (Some(4), 1.into())
    );
    assert!(String::from_utf8_lossy(&run(&["check", "c.nand"], path).stdout).contains(told));
    let repaired = run(&["check", "c.nand", "-y"], path);
    assert_eq!(repaired.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&repaired.stderr).contains("repaired, something is lost"), "{repaired:?}");
    succeed(&["check", "c.nand"], path);
    assert_eq!(succeed(&["fs", "cat", "c.nand", "/a"], path), "\u{6}".repeat(2048));
}
