//! Image files: what goes in comes out, and what is not whole is refused.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nandu_nand::{BlockAddr, Cause, CellMode, Nand, NandErrorKind, PageAddr};
use nandu_sim::image::{ImageError, ImageFile, ImageProblem, Medium};
use nandu_sim::{Aging, Chip, Fault, Sim, Tear, Trigger};
use proptest::prelude::*;

use crate::activity::{carry_out, chips, steps};

/// A medium in memory, of which one can keep a second handle.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Medium for Memory {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.lock().unwrap();
        let from = bytes.get(offset as usize..offset as usize + buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(from);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let end = offset as usize + data.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(data);
        Ok(())
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.lock().unwrap().resize(size as usize, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn create(sim: &mut Sim) -> (ImageFile<Memory>, Memory) {
    let memory = Memory::default();
    (ImageFile::create_on(memory.clone(), "chip", sim, &mut |_, _| {}).unwrap(), memory)
}

fn open(bytes: &[u8]) -> Result<(ImageFile<Memory>, Sim), ImageError> {
    ImageFile::open_on(Memory(Arc::new(Mutex::new(bytes.to_vec()))), "chip", &mut |_, _| {})
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A chip from an image is the chip that was committed, and stays so whatever is done to both.
    #[test]
    fn an_image_gives_back_the_chip(chip in chips(), seed: u64, parts in [steps(), steps(), steps()]) {
        let mut sim = Sim::with_seed(chip, seed).with_factory_bad(10.0, false);
        let mut next = vec![0; chip.geometry.block_count as usize];
        let (mut image, memory) = create(&mut sim);
        for part in &parts {
            part.iter().for_each(|step| carry_out(&mut sim, &mut next, step));
            image.commit(&mut sim).unwrap();
            let (_, mut again) = open(&memory.0.lock().unwrap()).unwrap();
            prop_assert_eq!(again.state_hash(), sim.state_hash());
            prop_assert_eq!(again.chip(), sim.chip());
            let mut twin = sim.clone();
            let (mut next_again, mut next_twin) = (next.clone(), next.clone());
            for step in parts.iter().flatten() {
                carry_out(&mut again, &mut next_again, step);
                carry_out(&mut twin, &mut next_twin, step);
            }
            prop_assert_eq!(again.state_hash(), twin.state_hash());
            prop_assert_eq!(again.last_cut(), twin.last_cut());
        }
    }

    /// Any bytes may be refused, and none may do more harm than that.
    #[test]
    fn a_forged_image_is_refused_or_opened(place: prop::sample::Index, value: u8, seed: u64) {
        let mut bytes = used_image(Chip::TINY_MLC, seed);
        let at = 8192 + place.index(bytes.len() - 8192);
        bytes[at] = value;
        repair_checksums(&mut bytes);
        if let Ok((_, mut sim)) = open(&bytes) {
            let _ = sim.state_hash();
            let page_count = sim.geometry().page_count();
            for page in (0..page_count).map(PageAddr) {
                sim.power_on();
                let _ = sim.read(page, 0, &mut [0; 256]);
                let block = sim.geometry().block_of(page);
                if !sim.block_state(block).reads_bad {
                    let _ = sim.erase(block, CellMode::Slc);
                }
            }
        }
    }
}

/// The image of a chip that has been through something.
fn used_image(chip: Chip, seed: u64) -> Vec<u8> {
    let mut sim = Sim::with_seed(chip, seed).with_factory_bad(10.0, false);
    let (mut image, memory) = create(&mut sim);
    let good = (0..chip.geometry.block_count).map(BlockAddr).find(|&block| !sim.block_state(block).reads_bad);
    let block = good.unwrap();
    sim.erase(block, chip.full_mode()).unwrap();
    let first = chip.geometry.first_page(block);
    sim.program(first, 0, &vec![0x5A; chip.geometry.page_size as usize]).unwrap();
    sim.inject(Fault::Stale, Trigger::Page(first));
    sim.cut_at(sim.operation_count(), Tear::Unstable);
    let _ = sim.program(PageAddr(first.0 + 1), 0, &vec![0xA5; chip.geometry.page_size as usize]);
    sim.power_on();
    image.commit(&mut sim).unwrap();
    drop(image);
    memory.0.lock().unwrap().clone()
}

/// Makes all checksums right, as someone would who forges an image.
fn repair_checksums(bytes: &mut [u8]) {
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let repair = |bytes: &mut [u8], extent: usize| {
        let (offset, size) = (word(bytes, extent), word(bytes, extent + 8));
        if size > 0 && offset + size <= bytes.len() {
            let sum = crc.checksum(&bytes[offset..offset + size]);
            bytes[extent + 12..extent + 16].copy_from_slice(&sum.to_le_bytes());
        }
    };
    for list in [72, 88] {
        let (offset, size) = (word(bytes, list), word(bytes, list + 8));
        for entry in (offset..offset + size).step_by(64) {
            repair(bytes, entry + 16);
        }
        repair(bytes, list);
    }
    repair(bytes, 56);
    // The second header is the first one, made for another place.
    let first = bytes[..4096].to_vec();
    for (position, header) in [(0_u64, 0), (4096, 4096)] {
        bytes[header..header + 4096].copy_from_slice(&first);
        bytes[header + 32..header + 40].copy_from_slice(&position.to_le_bytes());
        let sum = crc.checksum(&bytes[header + 12..header + 4096]);
        bytes[header + 8..header + 12].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn a_block_keeps_the_history_that_explains_an_illegal_use() {
    let mut sim = Sim::new(Chip::TINY);
    let (mut image, memory) = create(&mut sim);
    for _ in 0..3 {
        sim.erase(BlockAddr(2), CellMode::Slc).unwrap();
        for page in 16..24 {
            sim.program(PageAddr(page), 0, &[3; 256]).unwrap();
        }
    }
    image.commit(&mut sim).unwrap();
    let (_, again) = open(&memory.0.lock().unwrap()).unwrap();
    assert_eq!(again.block_history(BlockAddr(2)), sim.block_history(BlockAddr(2)));
    assert_eq!(again.block_history(BlockAddr(2)).len(), 16);
}

#[test]
fn one_damaged_header_does_no_harm_and_two_are_refused() {
    let bytes = used_image(Chip::TINY, 1);
    let hash = open(&bytes).unwrap().1.state_hash();
    for place in 0..4096 {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        assert_eq!(open(&flipped).unwrap().1.state_hash(), hash, "byte {place}");
        flipped[place + 4096] ^= 1 << (place % 8);
        let error = open(&flipped).err().unwrap_or_else(|| panic!("bytes {place} of both may be flipped"));
        let text = error.to_string();
        assert!(text.starts_with("chip: ") && (text.contains("header") || text.contains("not an image")), "{text}");
    }
}

/// The checksum of a page is looked at when the page is read: then the chip is gone, and nothing is committed of it.
#[test]
fn a_page_that_the_image_lost_is_no_content() {
    let mut bytes = used_image(Chip::TINY, 1);
    let (_, sim) = open(&bytes).unwrap();
    let page =
        (0..sim.geometry().page_count()).map(PageAddr).find(|&page| sim.peek(page)[..256] == [0x5A; 256]).unwrap();
    let at = bytes.windows(256).position(|window| window == [0x5A; 256]).unwrap();
    bytes[at] ^= 1;
    let (mut image, mut sim) = open(&bytes).unwrap();
    assert_eq!(sim.read(page, 0, &mut [0; 256]).unwrap_err().kind, NandErrorKind::Gone);
    assert_eq!(sim.read(PageAddr(page.0 + 2), 0, &mut [0; 256]).unwrap_err().kind, NandErrorKind::Gone);
    let error = image.commit(&mut sim).unwrap_err();
    assert!(matches!(error.problem(), ImageProblem::Damaged(_)), "{error}");
    assert!(image.commit(&mut sim).is_err());
}

#[test]
fn a_clone_reads_what_it_was_cloned_with_however_often_its_twin_is_committed() {
    let mut sim = Sim::new(Chip::TINY);
    let (mut image, memory) = create(&mut sim);
    sim.erase(BlockAddr(1), CellMode::Slc).unwrap();
    sim.program(PageAddr(8), 0, &[1; 256]).unwrap();
    image.commit(&mut sim).unwrap();
    drop(image);
    let (mut image, mut sim) = open(&memory.0.lock().unwrap().clone()).unwrap();
    let twin = sim.clone();
    let hash = twin.state_hash();
    for round in 0..50 {
        sim.erase(BlockAddr(1), CellMode::Slc).unwrap();
        sim.program(PageAddr(8), 0, &[round; 256]).unwrap();
        image.commit(&mut sim).unwrap();
        assert_eq!(twin.state_hash(), hash, "round {round}");
    }
}

#[test]
fn a_shortened_image_is_refused_at_any_length() {
    let bytes = used_image(Chip::TINY, 1);
    for size in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        let error = open(&bytes[..size]).err().unwrap();
        assert!(matches!(error.problem(), ImageProblem::CutShort { .. }), "{size} bytes: {error}");
        assert_eq!(error.path().to_str(), Some("chip"));
    }
}

#[test]
fn other_versions_and_features_are_named() {
    let image = used_image(Chip::TINY, 1);
    let changed = |place: usize, value: u8| {
        let mut bytes = image.clone();
        bytes[place] = value;
        repair_checksums(&mut bytes);
        open(&bytes)
    };
    assert!(matches!(changed(12, 3).err().unwrap().problem(), ImageProblem::Version(3)));
    assert!(changed(12, 1).err().unwrap().to_string().contains("older form"));
    assert!(matches!(changed(17, 4).err().unwrap().problem(), ImageProblem::Features(0x400)));
    // Who need not write can read what has features that only writers must know.
    let (mut image, mut sim) = changed(20, 1).unwrap();
    assert!(matches!(image.commit(&mut sim).unwrap_err().problem(), ImageProblem::Features(1)));
    assert!(changed(24, 1).is_ok());
    for reserved in [14, 28, 112, 4095] {
        assert!(matches!(changed(reserved, 1).err().unwrap().problem(), ImageProblem::Invalid { .. }));
    }
}

#[test]
fn a_small_forged_file_cannot_claim_a_large_chip() {
    let image = used_image(Chip::TINY, 1);
    let state = u32::from_le_bytes(image[56..60].try_into().unwrap()) as usize;
    // Name and source stand before the geometry: page size, spare size, pages per block, blocks.
    let name_size = usize::from(image[state]);
    let geometry = state + 2 + name_size + 2 + usize::from(image[state + 2 + name_size]);
    for (field, value) in [(0, 1 << 16), (3, u32::MAX / 8 - 1), (3, (1 << 20) + 1), (3, 0)] {
        let mut bytes = image.clone();
        bytes[geometry + 4 * field..geometry + 4 * field + 4].copy_from_slice(&u32::to_le_bytes(value));
        repair_checksums(&mut bytes);
        let problem = open(&bytes).err().unwrap_or_else(|| panic!("field {field} may be {value}"));
        assert!(matches!(problem.problem(), ImageProblem::Invalid { .. }), "{problem}");
    }
}

#[test]
fn an_untouched_chip_of_four_gigabytes_is_a_small_file_and_grows_with_what_is_programmed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chip.nand");
    let mut sim = Sim::with_seed(Chip::PAPER_GRR, 7);
    let mut image = ImageFile::create(&path, &mut sim).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 12_288);
    for block in 0..8 {
        sim.erase(BlockAddr(block * 4000), CellMode::Slc).unwrap();
    }
    image.commit(&mut sim).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 16_384);
    sim.program(PageAddr(32 * 4000), 0, &[1; 4096]).unwrap();
    image.commit(&mut sim).unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 32_768);
}

#[test]
fn commits_reuse_the_room_of_older_ones() {
    let mut sim = Sim::new(Chip::W25N01GV.with_blocks(4));
    let (mut image, memory) = create(&mut sim);
    let mut largest = 0;
    for round in 0..40 {
        for block in 0..4 {
            sim.erase(BlockAddr(block), CellMode::Slc).unwrap();
            for page in 0..(round * 7 + block) % 64 {
                sim.program(PageAddr(block * 64 + page), 0, &[1; 2048]).unwrap();
            }
        }
        image.commit(&mut sim).unwrap();
        largest = largest.max(memory.0.lock().unwrap().len());
    }
    assert!(largest < 3 * 4 * 64 * 2112, "{largest} bytes");
    // The end of the file is where its directory is: once that is written anew, which is after sixteen commits of four blocks, nothing is behind it.
    for _ in 0..16 {
        (0..4).for_each(|block| sim.erase(BlockAddr(block), CellMode::Slc).unwrap());
        image.commit(&mut sim).unwrap();
    }
    let size = memory.0.lock().unwrap().len();
    assert!(size < 32_768, "{size} bytes for an erased chip");
    // Where the directory is not behind what goes, the end comes down at once.
    let mut sim = Sim::new(Chip::W25N01GV.with_blocks(4));
    let (mut image, memory) = create(&mut sim);
    let small = memory.0.lock().unwrap().len();
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    for page in 0..64 {
        sim.program(PageAddr(page), 0, &[1; 2048]).unwrap();
    }
    image.commit(&mut sim).unwrap();
    assert!(memory.0.lock().unwrap().len() > 64 * 2112);
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    (0..3).for_each(|_| image.commit(&mut sim).unwrap());
    let size = memory.0.lock().unwrap().len();
    assert!(size < small + 8192, "{size} bytes for an erased chip, {small} for a new one");
}

#[test]
fn reads_are_committed_without_the_content_that_was_read() {
    struct Counting {
        inner: Memory,
        written: Arc<AtomicUsize>,
    }
    impl Medium for Counting {
        fn size(&self) -> io::Result<u64> {
            self.inner.size()
        }
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.inner.read_at(offset, buf)
        }
        fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.written.fetch_add(data.len(), Ordering::Relaxed);
            self.inner.write_at(offset, data)
        }
        fn set_size(&self, size: u64) -> io::Result<()> {
            self.inner.set_size(size)
        }
        fn sync(&self) -> io::Result<()> {
            self.inner.sync()
        }
    }
    let written = Arc::new(AtomicUsize::new(0));
    let medium = Counting { inner: Memory::default(), written: written.clone() };
    let mut sim = Sim::new(Chip::W25N01GV);
    let mut image = ImageFile::create_on(medium, "chip", &mut sim, &mut |_, _| {}).unwrap();
    sim.erase(BlockAddr(9), CellMode::Slc).unwrap();
    for page in 0..64 {
        sim.program(PageAddr(9 * 64 + page), 0, &[7; 2048]).unwrap();
    }
    image.commit(&mut sim).unwrap();
    written.store(0, Ordering::Relaxed);
    let _ = sim.read(PageAddr(9 * 64), 0, &mut [0; 2048]).unwrap();
    image.commit(&mut sim).unwrap();
    let written = written.load(Ordering::Relaxed);
    assert!(written < 16_384, "{written} bytes written for one read");
}

#[test]
fn a_clone_that_went_another_way_can_be_committed() {
    let mut sim = Sim::new(Chip::TINY);
    let (mut image, memory) = create(&mut sim);
    sim.erase(BlockAddr(1), CellMode::Slc).unwrap();
    let mut twin = sim.clone();
    for block in [1, 2] {
        sim.erase(BlockAddr(block), CellMode::Slc).unwrap();
        sim.program(PageAddr(block * 8), 0, &[1; 256]).unwrap();
    }
    image.commit(&mut sim).unwrap();
    twin.erase(BlockAddr(3), CellMode::Slc).unwrap();
    for other in [&mut twin, &mut sim] {
        image.commit(other).unwrap();
        let (_, again) = open(&memory.0.lock().unwrap()).unwrap();
        assert_eq!(again.state_hash(), other.state_hash());
    }
}

/// An image written by version 2 of the format is read for ever, and what is read from it is written as it was.
#[test]
fn the_format_is_frozen() {
    let frozen = include_bytes!("../frozen/tiny-mlc.img");
    let (_, mut sim) = open(frozen).unwrap();
    assert_eq!((sim.seed(), sim.chip()), (11, &Chip::TINY_MLC));
    assert_eq!((sim.operation_count(), sim.clock_ns()), (8, 10_000));
    assert_eq!((sim.counters().programs, sim.counters().erases), (4, 2));
    assert_eq!(sim.ledger().of(Cause::Gc).reads, 2);
    assert_eq!(sim.aging(), &Aging::typical());
    assert_eq!(sim.last_cut().unwrap().tear, Tear::PairUnstable);
    assert!(sim.block_state(BlockAddr(3)).factory_bad && sim.block_state(BlockAddr(4)).grown_bad);
    assert!(sim.page_state(PageAddr(8)).harmed && sim.page_state(PageAddr(12)).harmed);
    assert_eq!(sim.peek(PageAddr(9))[..256], [0x22; 256]);
    assert_eq!(sim.block_history(BlockAddr(1)).len(), 4);
    let (_, memory) = create(&mut sim);
    assert!(*memory.0.lock().unwrap() == frozen, "a change of what is written is a change of the format");
}

#[test]
fn files_are_locked_kept_and_replaced_as_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chip.nand");
    let mut sim = Sim::with_seed(Chip::TINY, 1);
    let image = ImageFile::create(&path, &mut sim).unwrap();
    let problem = |result: Result<(), ImageError>| result.err().map(|error| error.to_string()).unwrap_or_default();
    // This handle excludes all others, in this process too.
    assert!(problem(ImageFile::open(&path).map(drop)).ends_with("in use by another process"));
    assert!(problem(ImageFile::load(&path).map(drop)).ends_with("in use by another process"));
    assert!(problem(ImageFile::replace(&path, &mut Sim::new(Chip::TINY)).map(drop)).contains("in use"));
    drop(image);
    assert!(problem(ImageFile::create(&path, &mut Sim::new(Chip::TINY)).map(drop)).ends_with("exists already"));
    assert_eq!(ImageFile::load(&path).unwrap().seed(), 1);
    drop(ImageFile::replace(&path, &mut Sim::with_seed(Chip::TINY_MLC, 2)).unwrap());
    let (image, sim) = ImageFile::open(&path).unwrap();
    assert_eq!((sim.seed(), sim.chip().name), (2, "tiny-mlc"));
    assert_eq!(image.file_size(), fs::metadata(&path).unwrap().len());
    // Nothing else is left in the directory.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(problem(ImageFile::load(directory.path()).map(drop)).ends_with("not an image of a simulated chip"));
    let missing = problem(ImageFile::load(directory.path().join("none")).map(drop));
    assert!(missing.contains("none: "), "{missing}");
}

#[test]
fn a_chip_that_an_image_cannot_hold_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chip.nand");
    let mut sim = Sim::new(Chip::TINY.with_blocks((1 << 20) + 1));
    let error = ImageFile::create(&path, &mut sim).err().unwrap();
    assert!(matches!(error.problem(), ImageProblem::Unsupported(_)), "{error}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
#[should_panic(expected = "the image of one chip cannot take the content of another")]
fn another_chip_cannot_be_committed() {
    let (mut image, _memory) = create(&mut Sim::with_seed(Chip::TINY, 1));
    let _ = image.commit(&mut Sim::with_seed(Chip::TINY, 2));
}

/// Rounds of changes in several blocks, each of which is a commit; meanwhile copies are made, and each is a whole round.
#[test]
fn a_copy_of_an_image_in_use_is_a_commit_of_it() {
    const BLOCKS: u32 = 40;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chip.nand");
    let mut sim = Sim::new(Chip::W25N01GV.with_blocks(64));
    drop(ImageFile::create(&path, &mut sim).unwrap());
    drop(sim);
    let (mut image, mut sim) = ImageFile::open(&path).unwrap();
    let write_round = move |round: u8| {
        for block in (0..BLOCKS).map(BlockAddr) {
            sim.erase(block, CellMode::Slc).unwrap();
            for page in 0..4 {
                sim.program(PageAddr(block.0 * 64 + page), 0, &[round; 2048]).unwrap();
            }
        }
        image.commit(&mut sim).unwrap();
    };
    let mut write_round = write_round;
    write_round(0);
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            for round in (1..=250).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                write_round(round);
            }
        }
    });
    let mut rounds = std::collections::BTreeSet::new();
    for number in 0..8 {
        let copy = directory.path().join(format!("copy{number}"));
        nandu_sim::image::backup(&path, &copy, &mut |_, _| {}).unwrap();
        let sim = ImageFile::load(&copy).unwrap();
        let round = sim.peek(PageAddr(0))[0];
        for block in 0..BLOCKS {
            for page in 0..4 {
                assert_eq!(sim.peek(PageAddr(block * 64 + page))[..2048], [round; 2048], "copy {number}");
            }
        }
        rounds.insert(round);
    }
    is_over.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert!(rounds.len() > 1, "nothing was written meanwhile: {rounds:?}");
    let taken = nandu_sim::image::backup(&path, directory.path().join("copy0"), &mut |_, _| {}).unwrap_err();
    assert!(matches!(taken.problem(), ImageProblem::Exists), "{taken}");
}
