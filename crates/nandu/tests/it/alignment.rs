//! Where whole pages lie that go to the chip and come from it: at the alignment of the memory that was handed over.

use std::ops::{Bound, ControlFlow};

use nandu::fs::{Attributes, Format, Fs, Ino};
use nandu::nand::{BlockAddr, CellMode, ErrorType, Geometry, Nand, PageAddr, ReadStatus};
use nandu::{Direction, Durability, Options, Store, fs};
use nandu_sim::{Chip, Sim, SimError};

/// What a Cortex-M7 wants.
const LINE: usize = 32;

/// A chip that takes and gives whole pages only at addresses that leave this rest when divided by the size of a line.
struct Particular<'a> {
    sim: &'a mut Sim,
    rest: usize,
    whole: &'a mut u32,
}

impl Particular<'_> {
    fn look(&mut self, bytes: &[u8]) {
        if bytes.len() == self.sim.geometry().page_size as usize {
            assert_eq!(bytes.as_ptr().addr() % LINE, self.rest, "a whole page");
            *self.whole += 1;
        }
    }
}

impl ErrorType for Particular<'_> {
    type Error = SimError;
}

impl Nand for Particular<'_> {
    fn geometry(&self) -> &Geometry {
        self.sim.geometry()
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, SimError> {
        self.look(buf);
        self.sim.read(page, column, buf)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), SimError> {
        self.look(data);
        self.sim.program(page, column, data)
    }

    fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), SimError> {
        self.look(data);
        self.sim.program_tagged(page, data, tag)
    }

    fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), SimError> {
        self.sim.erase(block, mode)
    }

    fn is_bad(&mut self, block: BlockAddr) -> Result<bool, SimError> {
        self.sim.is_bad(block)
    }

    fn mark_bad(&mut self, block: BlockAddr) -> Result<(), SimError> {
        self.sim.mark_bad(block)
    }
}

/// So many bytes at an address that leaves this rest.
fn at(bytes: &mut Vec<u8>, size: usize, rest: usize) -> &mut [u8] {
    bytes.resize(size + 2 * LINE, 0);
    let skip = bytes.as_ptr().align_offset(LINE) + rest;
    &mut bytes[skip..skip + size]
}

/// Puts, large values, a snapshot and a range on a store that collects all the time and is opened again, as after a cut.
fn use_store(options: Options, rest: usize) {
    // A log that takes no multiple of 32 by itself.
    let chip = Chip::W25N01GV.with_blocks(41);
    let (mut sim, mut whole, mut bytes) = (Sim::new(chip), 0, Vec::new());
    let size = Store::<Sim>::memory_required(&chip.geometry, &options);
    let memory = at(&mut bytes, size, rest);
    let mut first = true;
    for round in 0..4_u32 {
        let chip = Particular { sim: &mut sim, rest, whole: &mut whole };
        let opened = if first { Store::format(chip, options, memory) } else { Store::open(chip, options, memory) };
        first = false;
        let mut store = opened.unwrap();
        let kept = store.snapshot().unwrap();
        for count in 0..600_u32 {
            store.put(&(count % 50).to_be_bytes(), &[round as u8; 30]).unwrap();
            if count % 20 == 0 {
                store.put(&[count as u8 % 3], &vec![round as u8; 9_000]).unwrap();
            }
        }
        store.range(Bound::Unbounded, Bound::Unbounded, Direction::Forward, |_| ControlFlow::Continue(())).unwrap();
        store.release(kept).unwrap();
        store.sync().unwrap();
    }
    assert!(whole > 900, "{whole}");
}

#[test]
fn pages_of_a_store_are_as_aligned_as_its_memory() {
    // With a cache of an odd size, behind which nothing may lie that holds a page.
    let plain = Options { cache_size: 5_001, ..Options::DEFAULT };
    let grouped = Options { durability: Durability::OnSync, pending_size: 3_333, ..plain };
    for rest in [0, 4, 20] {
        use_store(plain, rest);
        use_store(grouped, rest);
    }
}

/// Files of whole pages and of parts of them, from a buffer of the caller that is aligned likewise.
fn use_files(chip: Chip, options: fs::Options, rest: usize) {
    let page_size = chip.geometry.page_size as usize;
    let (mut sim, mut whole, mut bytes) = (Sim::new(chip), 0, Vec::new());
    let memory = at(&mut bytes, Fs::<Sim>::memory_required(&chip.geometry, &options), rest);
    let mut own = Vec::new();
    let data = at(&mut own, 4 * page_size, rest);
    let mut first = true;
    for round in 0..3_u8 {
        let chip = Particular { sim: &mut sim, rest, whole: &mut whole };
        let format = Format { hash_key: [7; 16], ..Format::default() };
        let opened = if first { Fs::format(chip, options, format, memory) } else { Fs::mount(chip, options, memory) };
        first = false;
        let mut fs = opened.unwrap();
        for number in 0..3_u8 {
            let name = [b'a' + number, b'0' + round];
            let ino = fs.create(Ino::ROOT, &name, Attributes::FILE).unwrap();
            for count in 0..40_u8 {
                data.fill(count + 1);
                let at = usize::from(count % 10) * page_size;
                // Whole pages go straight from the caller's buffer, others through one of the file system.
                match count % 3 {
                    2 => fs.write_at(ino, at as u64 + 77, &data[..700]).unwrap(),
                    _ => fs.write_at(ino, at as u64, data).unwrap(),
                };
                if count % 4 == 0 {
                    fs.fsync(ino).unwrap();
                }
                assert!(fs.read_at(ino, at as u64, data).unwrap() >= 777);
            }
            if number > 0 {
                fs.unlink(Ino::ROOT, &name).unwrap();
            }
        }
        fs.idle(100).unwrap();
        fs.sync().unwrap();
    }
    assert!(whole > 500, "{whole}");
}

#[test]
fn pages_of_files_are_as_aligned_as_their_memory() {
    let plain = fs::Options { cache_size: 5_001, ..fs::Options::DEFAULT };
    for rest in [0, 4, 20] {
        use_files(Chip::W25N01GV.with_blocks(40), plain, rest);
        use_files(Chip::GD5F2GQ5.with_blocks(40), plain, rest);
    }
    let chip = Chip::MLC_4K.with_blocks(40);
    use_files(chip, plain.both_modes(&chip.geometry), 0);
}
