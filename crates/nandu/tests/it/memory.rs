//! A store uses the memory it was given and no other.

use assert_no_alloc::{AllocDisabler, assert_no_alloc};
use nandu::nand::{
    BlockAddr, CellMode, CopyRule, Ecc, ErrorType, Geometry, Nand, NandErrorKind, PageAddr, Pairing, ProgramOrder,
    ReadStatus, TearScope,
};
use nandu::{Direction, Durability, Edit, Options, Store};
use std::ops::{Bound, ControlFlow};

/// Ends the test program if something is allocated where it may not.
#[global_allocator]
static ALLOCATOR: AllocDisabler = AllocDisabler;

/// A chip in an array: the simulator allocates, this does not.
struct ArrayChip {
    geometry: Geometry,
    bytes: Vec<u8>,
}

impl ArrayChip {
    fn new(block_count: u32) -> ArrayChip {
        let geometry = Geometry {
            page_size: 2048,
            spare_size: 64,
            tag_size: 0,
            pages_per_block: 64,
            block_count,
            pairing: Pairing::None,
            order: ProgramOrder::Ascending,
            programs_per_page: 1,
            program_unit: 2048,
            tear: TearScope::Page,
            ecc: Ecc { codeword_size: 512, correctable_bits: 1 },
            endurance: 100_000,
            bad_block_max: block_count / 50,
            plane_count: 1,
            die_count: 1,
            copies: CopyRule::Never,
        };
        ArrayChip { geometry, bytes: vec![0xFF; geometry.capacity() as usize] }
    }

    fn page(&mut self, page: PageAddr) -> &mut [u8] {
        let size = self.geometry.page_size as usize;
        &mut self.bytes[page.0 as usize * size..][..size]
    }
}

impl ErrorType for ArrayChip {
    type Error = NandErrorKind;
}

impl Nand for ArrayChip {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, NandErrorKind> {
        buf.copy_from_slice(&self.page(page)[column as usize..][..buf.len()]);
        Ok(ReadStatus::Clean)
    }

    fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), NandErrorKind> {
        self.page(page)[column as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn program_tagged(&mut self, _page: PageAddr, _data: &[u8], _tag: &[u8]) -> Result<(), NandErrorKind> {
        Err(NandErrorKind::Unsupported)
    }

    fn erase(&mut self, block: BlockAddr, _mode: CellMode) -> Result<(), NandErrorKind> {
        for index in 0..self.geometry.pages_per_block {
            let page = self.geometry.page_at(block, index);
            self.page(page).fill(0xFF);
        }
        Ok(())
    }

    fn is_bad(&mut self, _block: BlockAddr) -> Result<bool, NandErrorKind> {
        Ok(false)
    }

    fn mark_bad(&mut self, _block: BlockAddr) -> Result<(), NandErrorKind> {
        Ok(())
    }
}

#[test]
fn nothing_is_allocated_whatever_the_store_does() {
    nothing_is_allocated(Options::default());
    nothing_is_allocated(Options { durability: Durability::OnSync, pending_size: 9000, ..Options::default() });
}

fn nothing_is_allocated(options: Options) {
    let mut chip = ArrayChip::new(64);
    let mut memory = vec![0; Store::<ArrayChip>::memory_required(&chip.geometry, &options)];
    let key = |number: u32| (number.wrapping_mul(0x9E37_79B1) % 3000).to_be_bytes();
    let entries = assert_no_alloc(|| {
        let mut store = Store::format(&mut chip, options, &mut memory)?;
        // Enough for every block to be emptied several times.
        for number in 0..20_000 {
            store.put(&key(number), &[number as u8; 60])?;
            if number % 7 == 0 {
                store.delete(&key(number / 2))?;
            }
            if number % 30 == 0 {
                store.sync()?;
            }
            if number % 50 == 0 {
                let (low, high) = ([0, 0, 0, 1], [0, 0, 9, 9]);
                store.batch(&[Edit { key: &low, value: Some(b"low") }, Edit { key: &high, value: None }])?;
                store.idle(10)?;
            }
        }
        let before = store.snapshot()?;
        for number in 0..4_000 {
            store.put(&key(number), &[number as u8; 60])?;
        }
        let kept = store.at(&before).record_count()?;
        store.at(&before).get(&key(1))?;
        assert!(kept <= store.record_count());
        store.release(before)?;
        store.unmount()?;
        let mut store = Store::open(&mut chip, options, &mut memory)?;
        let mut entries = 0;
        store.range(Bound::Unbounded, Bound::Unbounded, Direction::Backward, |_| {
            entries += 1;
            ControlFlow::Continue(())
        })?;
        assert_eq!(store.verify(&mut |_| {})?, 0);
        Ok::<_, nandu::Error<NandErrorKind>>((entries, store.record_count()))
    });
    let (entries, count) = entries.unwrap();
    assert!(entries > 1000 && entries == count, "{entries} entries, {count} counted");
}

#[test]
fn the_memory_required_is_enough_and_a_byte_less_is_not() {
    let mut chip = ArrayChip::new(64);
    let options = Options { pending_size: 1000, ..Options::default() };
    let required = Store::<ArrayChip>::memory_required(&chip.geometry, &options);
    let mut memory = vec![0; required];
    Store::format(&mut chip, options, &mut memory).unwrap();
    for size in [required - 1, required / 2, 100, 0] {
        let refused = Store::open(&mut chip, options, &mut memory[..size]).err();
        assert_eq!(refused, Some(nandu::Error::Memory { required }), "{size} bytes");
    }
    // And fitting a given size uses all of it.
    let fitted = Options::default().fit::<ArrayChip>(&chip.geometry, 16_384).unwrap();
    assert_eq!(Store::<ArrayChip>::memory_required(&chip.geometry, &fitted), 16_384);
    assert_eq!(Options::default().fit::<ArrayChip>(&chip.geometry, 2048), None);
}
