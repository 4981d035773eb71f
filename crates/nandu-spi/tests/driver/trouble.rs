//! A wire that fails, a part that hangs, power that goes.

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_spi::command::*;
use nandu_spi::{CopyRule, Operation, PARTS, SpiError};

use super::fake::Broken;
use super::{Chip, Error, open, part};

type Work = fn(&mut Chip) -> Result<(), Error>;

/// Every operation, one by one.
const OPERATIONS: [Work; 7] = [
    |chip| chip.read(PageAddr(3), 0, &mut [0; 64]).map(drop),
    |chip| chip.program(PageAddr(64), 0, &vec![0; chip.geometry().page_size as usize]),
    |chip| chip.program_tagged(PageAddr(65), &vec![0; chip.geometry().page_size as usize], &[1, 2, 3]),
    |chip| chip.erase(BlockAddr(9), CellMode::Slc),
    |chip| chip.is_bad(BlockAddr(2)).map(drop),
    |chip| chip.mark_bad(BlockAddr(8)),
    |chip| chip.copy(PageAddr(3), PageAddr(64 * 4)).map(drop),
];

#[test]
fn an_error_of_the_wire_is_kept_and_the_next_operation_starts_from_a_known_state() {
    for part in PARTS {
        for operation in OPERATIONS {
            for index in 0.. {
                let (mut chip, handle) = open(part);
                handle.said();
                handle.0.borrow_mut().broken_at = Some(index);
                let result = operation(&mut chip);
                let ended = handle.said().len() <= index;
                if ended {
                    break;
                }
                assert_eq!(result, Err(SpiError::Wire(Broken(index))), "{}", part.name);
                assert_eq!(result.map_err(|error| error.kind()), Err(NandErrorKind::Bus));
                assert_eq!(chip.read(PageAddr(0), 0, &mut [0; 8]), Ok(ReadStatus::Clean), "{}", part.name);
                let said = handle.said();
                let reset = said.iter().position(|opcode| *opcode == RESET);
                let first = said.iter().position(|opcode| *opcode == PAGE_READ);
                assert!(reset.is_some() && reset < first, "{}: {said:02x?}", part.name);
                handle.was_used_rightly();
                assert_eq!(handle.0.borrow().register(0, REGISTER_CONFIG) & CONFIG_ECC, CONFIG_ECC);
            }
        }
    }
}

#[test]
fn a_part_that_hangs_is_given_up_after_its_time_and_reset_before_the_next_command() {
    let limits = [Operation::Read, Operation::Program, Operation::Program, Operation::Erase];
    for (operation, expected) in OPERATIONS.into_iter().zip(limits) {
        let (mut chip, handle) = open(part("W25N01GV"));
        handle.0.borrow_mut().stuck = true;
        let before = handle.0.borrow().now;
        let error = operation(&mut chip).unwrap_err();
        assert_eq!((error, error.kind()), (SpiError::Timeout(expected), NandErrorKind::Bus));
        let passed = handle.0.borrow().now - before;
        assert!((10_000..500_000).contains(&passed), "{passed} microseconds");
        handle.was_used_rightly();
        assert_eq!(chip.read(PageAddr(0), 0, &mut [0; 8]), Ok(ReadStatus::Clean));
        handle.was_used_rightly();
    }
}

#[test]
fn a_dead_bus_is_never_a_success() {
    for part in PARTS {
        for level in [0x00, 0xff] {
            for operation in OPERATIONS {
                let (mut chip, handle) = open(part);
                // Tags and copies are not for every part.
                if chip.geometry().tag_size == 0 || part.copy == CopyRule::Never {
                    continue;
                }
                handle.0.borrow_mut().dead = Some(level);
                let error = operation(&mut chip).unwrap_err();
                assert_eq!(error.kind(), NandErrorKind::Bus, "{}: {error}", part.name);
                let error = operation(&mut chip).unwrap_err();
                assert_eq!(error.kind(), NandErrorKind::Bus, "{}: {error}", part.name);
                // Back again, all is well.
                handle.0.borrow_mut().dead = None;
                operation(&mut chip).unwrap();
                handle.was_used_rightly();
            }
        }
    }
}

#[test]
fn a_command_that_the_part_did_not_hear_is_no_success() {
    for opcode in [WRITE_ENABLE, PROGRAM_EXECUTE, BLOCK_ERASE] {
        let (mut chip, handle) = open(part("W25N01GV"));
        handle.0.borrow_mut().deaf_to = Some(opcode);
        let result = match opcode {
            BLOCK_ERASE => chip.erase(BlockAddr(1), CellMode::Slc),
            _ => chip.program(PageAddr(64), 0, &[0; 2048]),
        };
        assert_eq!(result, Err(SpiError::Silent), "{opcode:02x}h");
    }
}

#[test]
fn power_that_goes_for_a_moment_is_an_error_of_the_bus_or_nothing_was_lost() {
    let part = part("W25N01GV");
    for index in 0.. {
        let (mut chip, handle) = open(part);
        handle.said();
        handle.0.borrow_mut().power_at = Some(index);
        let result = chip.program(PageAddr(64), 0, &[0x11; 2048]);
        if handle.said().len() <= index {
            assert_eq!(result, Ok(()));
            break;
        }
        match result {
            // The power went after the part had said that it was done.
            Ok(()) => assert_eq!(handle.0.borrow().page(0, 64)[..2048], [0x11; 2048]),
            Err(error) => assert_eq!(error.kind(), NandErrorKind::Bus, "{error}"),
        }
        // It woke up locked and in continuous read; what was said before that was noticed is of no account.
        handle.0.borrow_mut().violations.clear();
        chip.program(PageAddr(65), 0, &[0x22; 2048]).or_else(|_| chip.program(PageAddr(66), 0, &[0x22; 2048])).unwrap();
        let fake = handle.0.borrow();
        assert!(!fake.is_continuous() && fake.register(0, REGISTER_LOCK) == 0);
    }
}

#[test]
fn power_that_goes_during_a_read_is_not_taken_for_an_erased_page() {
    let part = part("GD5F1GQ5UE");
    let mut outages = 0;
    for index in 0.. {
        let (mut chip, handle) = open(part);
        chip.program(PageAddr(0), 0, &[0x11; 2048]).unwrap();
        handle.said();
        handle.0.borrow_mut().power_at = Some(index);
        let mut found = [0; 2048];
        let result = chip.read(PageAddr(0), 0, &mut found);
        if handle.said().len() <= index {
            break;
        }
        match result {
            Ok(_) => assert_eq!(found, [0x11; 2048]),
            Err(error) => {
                outages += 1;
                assert_eq!(error.kind(), NandErrorKind::Bus, "{error}");
            }
        }
        assert_eq!(chip.read(PageAddr(0), 0, &mut found), Ok(ReadStatus::Clean));
        assert_eq!(found, [0x11; 2048]);
    }
    assert!(outages > 2);
}

#[test]
fn another_part_in_its_place_is_not_used() {
    let (mut chip, handle) = open(part("W25N01GV"));
    handle.said();
    handle.0.borrow_mut().broken_at = Some(0);
    chip.read(PageAddr(0), 0, &mut [0; 8]).map(drop).unwrap_err();
    handle.said();
    handle.0.borrow_mut().identity[1] = 0xbb;
    let error = chip.read(PageAddr(0), 0, &mut [0; 8]).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "not a W25N01GV: identity EF BB 21 00 00");
    assert!(!handle.said().contains(&PAGE_READ));
}
