//! Which error for what the kernel says.

use nandu_mtd::{Errno, MtdError};
use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr};
use nandu_sim::{Fault, Sim, Trigger};

use crate::fake::{Fake, chip};

fn erased() -> Fake {
    let mut sim = Sim::new(chip());
    sim.erase(BlockAddr(0), CellMode::Slc).unwrap();
    Fake::new(sim)
}

#[test]
fn a_failed_program_or_erase_is_the_chips_and_all_else_is_an_outage() {
    let kinds = [
        (Errno::IO, NandErrorKind::ProgramFailed, NandErrorKind::EraseFailed),
        (Errno::TIMEDOUT, NandErrorKind::Bus, NandErrorKind::Bus),
        (Errno::ROFS, NandErrorKind::Bus, NandErrorKind::Bus),
        (Errno::INTR, NandErrorKind::Bus, NandErrorKind::Bus),
        (Errno::NODEV, NandErrorKind::Gone, NandErrorKind::Gone),
    ];
    for (errno, program, erase) in kinds {
        let mut fake = erased();
        fake.refusal = Some(errno);
        let error = fake.open().program(PageAddr(0), 0, &[1; 256]).unwrap_err();
        assert_eq!(error.kind(), program, "{errno}");
        fake.refusal = Some(errno);
        let error = fake.open().erase(BlockAddr(0), CellMode::Slc).unwrap_err();
        assert_eq!(error.kind(), erase, "{errno}");
    }
}

#[test]
fn the_chips_own_failures_are_counted() {
    let mut fake = erased();
    fake.sim.inject(Fault::ProgramFails, Trigger::Page(PageAddr(3)));
    fake.sim.inject(Fault::EraseFails, Trigger::Block(BlockAddr(1)));
    let mut chip = fake.open();
    chip.program(PageAddr(0), 0, &[1; 256]).unwrap();
    assert_eq!(chip.program(PageAddr(3), 0, &[1; 256]), Err(MtdError::ProgramFailed(PageAddr(3))));
    assert_eq!(chip.erase(BlockAddr(1), CellMode::Slc), Err(MtdError::EraseFailed(BlockAddr(1))));
    assert_eq!((chip.counters().programs, chip.counters().erases, chip.counters().failures), (2, 1, 2));
}

#[test]
fn a_page_of_which_a_part_was_taken_is_not_programmed_again() {
    let mut fake = erased();
    fake.short = Some(128);
    let calls = fake.calls;
    let mut chip = fake.open();
    let error = chip.program(PageAddr(0), 0, &[1; 256]).unwrap_err();
    assert_eq!((error, error.kind()), (MtdError::Short(PageAddr(0)), NandErrorKind::Bus));
    drop(chip);
    // One look at the first page, and one program.
    assert_eq!(fake.calls - calls, 2);
}

#[test]
fn what_is_not_the_devices_is_refused_before_the_kernel_is_asked() {
    let mut fake = erased();
    let pages = fake.sim.geometry().page_count();
    let mut chip = fake.open();
    let outside = (PageAddr(pages), BlockAddr(64));
    assert_eq!(chip.read(outside.0, 0, &mut [0]), Err(MtdError::OutOfBounds));
    assert_eq!(chip.program(outside.0, 0, &[1; 256]), Err(MtdError::OutOfBounds));
    assert_eq!(chip.erase(outside.1, CellMode::Slc), Err(MtdError::OutOfBounds));
    assert_eq!(chip.is_bad(outside.1), Err(MtdError::OutOfBounds));
    assert_eq!(chip.mark_bad(outside.1), Err(MtdError::OutOfBounds));
    assert_eq!(chip.program(PageAddr(0), 0, &[1; 128]), Err(MtdError::NotAligned));
    assert_eq!(chip.program(PageAddr(0), 128, &[1; 128]), Err(MtdError::NotAligned));
    assert_eq!(chip.program(PageAddr(0), 0, &[1; 257]), Err(MtdError::Unsupported));
    assert_eq!(chip.program_tagged(PageAddr(0), &[1; 256], &[1; 16]), Err(MtdError::Unsupported));
    assert_eq!(chip.erase(BlockAddr(0), CellMode::Mlc), Err(MtdError::Unsupported));
    drop(chip);
    assert_eq!(fake.calls, 1, "more than the look at the first page");
}

#[test]
fn bad_blocks_are_those_of_the_kernel() {
    let mut fake = Fake::new(Sim::new(chip()));
    fake.sim.mark_factory_bad(BlockAddr(9));
    let mut chip = fake.open();
    chip.mark_bad(BlockAddr(5)).unwrap();
    let bad: Vec<u32> = (0..64).filter(|&block| chip.is_bad(BlockAddr(block)).unwrap()).collect();
    assert_eq!(bad, [5, 9]);
    drop(chip);
    fake.refusal = Some(Errno::ROFS);
    assert_eq!(fake.open().mark_bad(BlockAddr(6)), Err(MtdError::Mark(BlockAddr(6), Errno::ROFS)));
}
