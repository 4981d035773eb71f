//! What reads say of corrected bits, with and without MEMREAD.

use nandu_mtd::{MtdError, Options};
use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr, ReadStatus};
use nandu_sim::{Fault, Sim, Trigger};

use crate::fake::{Fake, OPTIONS, chip};

/// A device whose page 0 holds sevens.
fn device(has_reads: bool) -> Fake {
    let mut sim = Sim::new(chip());
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    sim.program(PageAddr(0), 0, &[7; 256]).unwrap();
    let mut fake = Fake::new(sim);
    fake.has_reads = has_reads;
    fake
}

#[test]
fn corrected_bits_are_told_and_a_move_is_advised_where_linux_would() {
    for has_reads in [true, false] {
        let mut fake = device(has_reads);
        let mut page = [0; 256];
        assert_eq!(fake.open().read(PageAddr(0), 0, &mut page), Ok(ReadStatus::Clean));
        assert_eq!(page, [7; 256]);
        fake.sim.inject(Fault::BitFlips(2), Trigger::Page(PageAddr(0)));
        let mut chip = fake.open();
        let bits = chip.read(PageAddr(0), 0, &mut page).unwrap();
        assert_eq!(bits, ReadStatus::Corrected { bits: 2, max: 4 }, "{has_reads}");
        assert_eq!((chip.counters().reads, chip.counters().corrected_reads), (1, 1));
        drop(chip);
        // The threshold of the device is 3, below the three quarters of the contract.
        let mut fake = device(has_reads);
        fake.sim.inject(Fault::BitFlips(3), Trigger::Page(PageAddr(0)));
        let bits = fake.open().read(PageAddr(0), 0, &mut page).unwrap();
        assert!(bits.refresh_advised() && page == [7; 256], "{has_reads}: {bits:?}");
    }
}

#[test]
fn a_threshold_that_is_none_is_three_quarters() {
    let mut fake = device(true);
    fake.says("bitflip_threshold", "0");
    fake.sim.inject(Fault::BitFlips(3), Trigger::Page(PageAddr(0)));
    let bits = fake.open().read(PageAddr(0), 0, &mut [0; 256]).unwrap();
    assert_eq!(bits, ReadStatus::Corrected { bits: 3, max: 4 });
}

#[test]
fn what_cannot_be_corrected_is_an_error_though_the_bytes_came() {
    for has_reads in [true, false] {
        let mut fake = device(has_reads);
        fake.sim.inject(Fault::Uncorrectable, Trigger::Page(PageAddr(0)));
        let mut chip = fake.open_with(&OPTIONS).unwrap();
        let error = chip.read(PageAddr(0), 0, &mut [0; 256]).unwrap_err();
        assert_eq!(error, MtdError::Uncorrectable(PageAddr(0)), "{has_reads}");
        assert_eq!(chip.counters().uncorrectable_reads, 1);
    }
}

#[test]
fn parts_of_a_page_and_of_its_tag_are_read() {
    let mut fake = device(true);
    let tagged = Options { has_tags: true, ..OPTIONS };
    let mut chip = fake.open_with(&tagged).unwrap();
    let (data, tag): (Vec<u8>, Vec<u8>) = ((0..=255).collect(), (100..116).collect());
    chip.program_tagged(PageAddr(1), &data, &tag).unwrap();
    let mut part = [0; 3];
    let _ = chip.read(PageAddr(1), 17, &mut part).unwrap();
    assert_eq!(part, [17, 18, 19]);
    let column = chip.geometry().tag_column();
    let _ = chip.read(PageAddr(1), column + 4, &mut part).unwrap();
    assert_eq!(part, [104, 105, 106]);
    let (mut whole, mut read) = (vec![0; 256], vec![0; 16]);
    let _ = chip.read_tagged(PageAddr(1), &mut whole, &mut read).unwrap();
    assert_eq!((whole, read), (data, tag));
    // Bytes that are not the tag's, and across its end.
    assert_eq!(chip.read(PageAddr(1), 256, &mut part), Err(MtdError::Unsupported));
    assert_eq!(chip.read(PageAddr(1), column + 14, &mut part), Err(MtdError::Unsupported));
    assert_eq!(chip.read(PageAddr(1), 319, &mut part), Err(MtdError::OutOfBounds));
    assert_eq!(chip.raw_spare(PageAddr(1)).unwrap().len(), 64);
}
