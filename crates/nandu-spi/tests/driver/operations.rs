//! What the contract offers, on a part that is well.

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_spi::command::*;
use nandu_spi::{DieSelect, IdMethod, Identity, MarkPages, PARTS, Part, SpiError, SpiNand};

use super::fake::Handle;
use super::{open, part};

#[test]
fn what_is_programmed_is_read_on_every_part_in_every_die_and_plane() {
    // A stack whose dies are selected by a register, with planes that want a bit; the table has none.
    static STACK: [Part; 1] = [Part {
        name: "STACK",
        id: Identity { method: IdMethod::Dummy, bytes: &[0x2c, 0x36] },
        die_count: 2,
        die_select: DieSelect::Register,
        bad_block_max: 80,
        ..PARTS[14]
    }];
    assert_eq!(PARTS[14].name, "MT29F2G01ABAGD");
    for part in PARTS.iter().chain(&STACK) {
        let handle = Handle::new(part);
        let mut chip = SpiNand::open_as(handle.clone(), part).unwrap();
        let geometry = *chip.geometry();
        let last = geometry.block_count - 1;
        for block in [0, 1, geometry.block_count / 2, last].map(BlockAddr) {
            let page = geometry.first_page(block);
            chip.erase(block, CellMode::Slc).unwrap();
            let data = vec![block.0 as u8 ^ 0x5a; geometry.page_size as usize];
            let tag: Vec<u8> = (1..=geometry.tag_size as u8).collect();
            match geometry.tag_size {
                0 => chip.program(page, 0, &data).unwrap(),
                _ => chip.program_tagged(page, &data, &tag).unwrap(),
            }
            let mut found = vec![0; geometry.column_count() as usize];
            assert_eq!(chip.read(page, 0, &mut found), Ok(ReadStatus::Clean));
            let (main, spare) = found.split_at(data.len());
            assert_eq!(main, data, "{}", part.name);
            assert_eq!(spare[..4], [0xff; 4]);
            assert_eq!(spare[4..4 + tag.len()], tag, "{}", part.name);
            assert!(spare[4 + tag.len()..].iter().all(|byte| *byte == 0xff));
            // By itself, as storage code reads it.
            let mut by_itself = vec![0; tag.len()];
            assert_eq!(chip.read(page, geometry.tag_column(), &mut by_itself), Ok(ReadStatus::Clean));
            assert_eq!(by_itself, tag);
        }
        let mut byte = [0];
        assert_eq!(chip.read(geometry.first_page(BlockAddr(last)), 9, &mut byte), Ok(ReadStatus::Clean));
        assert_eq!(byte, [last as u8 ^ 0x5a], "{}", part.name);
        assert_eq!(handle.0.borrow().pages.len(), 4);
        handle.was_used_rightly();
    }
}

#[test]
fn a_tag_is_put_into_the_bytes_that_the_part_protects() {
    let (mut chip, handle) = open(part("W25N01GV"));
    let tag: Vec<u8> = (1..=16).collect();
    chip.program_tagged(PageAddr(7), &[0; 2048], &tag).unwrap();
    let page = handle.0.borrow().page(0, 7);
    let mut expected = [0xff; 64];
    for (quarter, bytes) in tag.chunks(4).enumerate() {
        expected[16 * quarter + 4..16 * quarter + 8].copy_from_slice(bytes);
    }
    assert_eq!(page[2048..], expected);
}

#[test]
fn what_the_cache_held_before_is_not_programmed() {
    for part in PARTS {
        let (mut chip, handle) = open(part);
        let size = part.page_size as usize;
        // A page full of zeros, marks and all, is read into the cache.
        handle.0.borrow_mut().pages.insert((0, 64), vec![0; size + part.spare_size as usize]);
        chip.read(PageAddr(64), 0, &mut [0]).map(drop).unwrap();
        chip.program(PageAddr(0), 0, &vec![0x33; size]).unwrap();
        assert!(handle.0.borrow().page(0, 0)[size..].iter().all(|byte| *byte == 0xff), "{}", part.name);
        assert_eq!(chip.is_bad(BlockAddr(0)), Ok(false), "{}", part.name);

        chip.read(PageAddr(64), 0, &mut [0]).map(drop).unwrap();
        chip.mark_bad(BlockAddr(2)).unwrap();
        let page = handle.0.borrow().page(0, 128);
        assert!(page[..size].iter().all(|byte| *byte == 0xff), "{}", part.name);
        assert_eq!(page[size..].iter().filter(|byte| **byte == 0).count(), 2, "{}", part.name);
        handle.was_used_rightly();
    }
}

#[test]
fn a_part_without_protected_bytes_takes_no_tag() {
    let (mut chip, handle) = open(part("XT26G01D"));
    handle.said();
    assert_eq!(chip.program_tagged(PageAddr(0), &[0; 2048], &[1]), Err(SpiError::Unsupported));
    assert!(handle.said().is_empty());
}

#[test]
fn a_program_is_allowed_before_it_is_given_data_and_proved_afterwards() {
    let (mut chip, handle) = open(part("W25N01GV"));
    handle.said();
    chip.program(PageAddr(0), 512, &[0; 512]).unwrap();
    let said = handle.said();
    assert_eq!(said[..4], [WRITE_ENABLE, GET_FEATURE, PROGRAM_LOAD, PROGRAM_EXECUTE]);
    assert!(said[4..].iter().all(|opcode| *opcode == GET_FEATURE) && said.len() > 6, "{said:02x?}");
    assert_eq!(handle.0.borrow().page(0, 0)[511..1025], [&[0xff][..], &[0; 512], &[0xff]].concat());
}

#[test]
fn error_correction_is_asked_once_the_part_is_no_longer_busy() {
    // While it is busy the fake says "uncorrectable".
    for part in PARTS {
        let (mut chip, _) = open(part);
        assert_eq!(chip.read(PageAddr(0), 0, &mut [0; 16]), Ok(ReadStatus::Clean), "{}", part.name);
    }
}

#[test]
fn corrected_bits_are_reported_at_their_worst() {
    let cases = [
        ("W25N01GV", 0x10, 0, ReadStatus::RefreshAdvised { bits: 1, max: 1 }),
        ("W25N02KV", 0x10, 0x30, ReadStatus::Corrected { bits: 3, max: 8 }),
        ("W25N02KV", 0x30, 0x70, ReadStatus::RefreshAdvised { bits: 7, max: 8 }),
        ("W25N02KV", 0x30, 0, ReadStatus::RefreshAdvised { bits: 8, max: 8 }),
        ("GD5F1GQ5UE", 0x10, 0x10, ReadStatus::Corrected { bits: 2, max: 4 }),
        ("GD5F1GQ4UE", 0x10, 0, ReadStatus::Corrected { bits: 4, max: 8 }),
        ("MT29F1G01ABAFD", 0x10, 0, ReadStatus::Corrected { bits: 3, max: 8 }),
        ("MT29F1G01ABAFD", 0x50, 0, ReadStatus::RefreshAdvised { bits: 8, max: 8 }),
        ("MX35LF1GE4AB", 0x10, 2, ReadStatus::Corrected { bits: 2, max: 4 }),
        ("DS35Q1GA", 0x10, 0, ReadStatus::RefreshAdvised { bits: 4, max: 4 }),
    ];
    for (name, status, more, expected) in cases {
        let (mut chip, handle) = open(part(name));
        handle.0.borrow_mut().ecc.insert(70, (status, more));
        assert_eq!(chip.read(PageAddr(70), 100, &mut [0; 16]), Ok(expected), "{name}");
        handle.was_used_rightly();
    }
}

#[test]
fn what_is_beyond_correction_is_an_error_that_names_the_page() {
    let (mut chip, handle) = open(part("W25N01GV"));
    for code in [0x20, 0x30] {
        handle.0.borrow_mut().ecc.insert(70, (code, 0));
        assert_eq!(chip.read(PageAddr(70), 0, &mut [0; 16]), Err(SpiError::Uncorrectable(PageAddr(70))));
    }
    assert_eq!(chip.read(PageAddr(71), 0, &mut [0; 16]), Ok(ReadStatus::Clean));
}

#[test]
fn failures_that_the_part_reports_are_told_apart() {
    let (mut chip, handle) = open(part("W25N01GV"));
    handle.0.borrow_mut().program_fails = true;
    handle.0.borrow_mut().erase_fails = true;
    let error = chip.program(PageAddr(64), 0, &[0; 2048]).unwrap_err();
    assert_eq!((error, error.kind()), (SpiError::ProgramFailed(PageAddr(64)), NandErrorKind::ProgramFailed));
    let error = chip.erase(BlockAddr(1), CellMode::Slc).unwrap_err();
    assert_eq!((error, error.kind()), (SpiError::EraseFailed(BlockAddr(1)), NandErrorKind::EraseFailed));
    handle.was_used_rightly();
}

#[test]
fn addresses_outside_the_part_are_refused_before_anything_is_said() {
    let (mut chip, handle) = open(part("W25N01GV"));
    handle.said();
    let (page, block) = (PageAddr(1024 * 64), BlockAddr(1024));
    assert_eq!(chip.read(page, 0, &mut [0]), Err(SpiError::OutOfBounds));
    assert_eq!(chip.read(PageAddr(0), 2112, &mut [0]), Err(SpiError::OutOfBounds));
    assert_eq!(chip.read(PageAddr(0), u32::MAX, &mut [0]), Err(SpiError::OutOfBounds));
    assert_eq!(chip.program(page, 0, &[0; 2048]), Err(SpiError::OutOfBounds));
    assert_eq!(chip.program(PageAddr(0), 0, &[0; 2113]), Err(SpiError::OutOfBounds));
    assert_eq!(chip.program(PageAddr(0), 1, &[0; 512]), Err(SpiError::NotAligned));
    assert_eq!(chip.program(PageAddr(0), 0, &[0; 100]), Err(SpiError::NotAligned));
    assert_eq!(chip.program_tagged(PageAddr(0), &[0; 512], &[0; 16]), Err(SpiError::NotAligned));
    assert_eq!(chip.program_tagged(PageAddr(0), &[0; 2048], &[0; 17]), Err(SpiError::OutOfBounds));
    assert_eq!(chip.erase(block, CellMode::Slc), Err(SpiError::OutOfBounds));
    assert_eq!(chip.erase(BlockAddr(0), CellMode::Mlc), Err(SpiError::Unsupported));
    assert_eq!(chip.is_bad(block), Err(SpiError::OutOfBounds));
    assert_eq!(chip.mark_bad(block), Err(SpiError::OutOfBounds));
    assert_eq!(chip.copy(page, PageAddr(0)), Err(SpiError::OutOfBounds));
    assert!(handle.said().is_empty());
}

#[test]
fn marks_are_looked_for_where_the_maker_puts_them() {
    for part in PARTS {
        let (mut chip, handle) = open(part);
        let size = part.page_size as usize;
        for (index, expected) in [(0, true), (1, part.marks == MarkPages::FirstTwo), (2, false)] {
            let mut page = vec![0xff; size + part.spare_size as usize];
            page[size] = 0;
            handle.0.borrow_mut().pages = [((0, 64 * 5 + index), page)].into();
            assert_eq!(chip.is_bad(BlockAddr(5)), Ok(expected), "{}: page {index}", part.name);
        }
        assert_eq!(chip.is_bad(BlockAddr(4)), Ok(false));
        assert_eq!(handle.0.borrow().register(0, REGISTER_CONFIG) & CONFIG_ECC, CONFIG_ECC);
        handle.was_used_rightly();
    }
}

#[test]
fn a_single_flipped_bit_is_no_mark() {
    let (mut chip, handle) = open(part("W25N01GV"));
    for (mark, expected) in [(0xfe, false), (0x7f, false), (0xfc, true), (0xf0, true), (0, true)] {
        let mut page = vec![0xff; 2112];
        page[2048] = mark;
        handle.0.borrow_mut().pages.insert((0, 0), page);
        assert_eq!(chip.is_bad(BlockAddr(0)), Ok(expected), "{mark:02x}h");
    }
}

#[test]
fn a_block_that_is_marked_is_bad_and_keeps_its_pages() {
    for part in PARTS {
        let (mut chip, handle) = open(part);
        let geometry = *chip.geometry();
        let block = BlockAddr(geometry.block_count - 1);
        let data = vec![0xa5; part.page_size as usize];
        for index in 0..2 {
            chip.program(geometry.page_at(block, index), 0, &data).unwrap();
        }
        chip.mark_bad(block).unwrap();
        assert_eq!(chip.is_bad(block), Ok(true), "{}", part.name);
        let mut found = vec![0; data.len()];
        assert_eq!(chip.read(geometry.first_page(block), 0, &mut found), Ok(ReadStatus::Clean));
        assert_eq!(found, data, "{}", part.name);
        handle.was_used_rightly();
    }
}

#[test]
fn a_mark_that_cannot_be_programmed_is_an_error_and_error_correction_is_on_again() {
    let (mut chip, handle) = open(part("F50L1G41LB"));
    handle.0.borrow_mut().program_fails = true;
    assert_eq!(chip.mark_bad(BlockAddr(2)), Err(SpiError::ProgramFailed(PageAddr(129))));
    assert_eq!(handle.0.borrow().register(0, REGISTER_CONFIG) & CONFIG_ECC, CONFIG_ECC);
    // Both pages were tried.
    assert_eq!(handle.said().iter().filter(|opcode| **opcode == PROGRAM_EXECUTE).count(), 2);
}

#[test]
fn pages_are_copied_where_the_part_allows_it() {
    let cases = [
        ("W25N01GV", 1, 2, true),
        ("W25N01GV", 0, 1023, true),
        ("W25N04KV", 0, 2, false),
        ("GD5F2GQ5UE", 4, 6, true),
        ("GD5F2GQ5UE", 4, 7, false),
        ("GD5F4GQ6UE", 4, 2046, true),
        ("GD5F4GQ6UE", 4, 2048, false),
        ("MT29F2G01ABAGD", 3, 5, true),
        ("MT29F2G01ABAGD", 3, 4, false),
        ("W25M02GV", 0, 1024, false),
        ("XT26G01A", 0, 1, false),
    ];
    for (name, from, to, expected) in cases {
        let (mut chip, handle) = open(part(name));
        let geometry = *chip.geometry();
        let (from, to) = (geometry.first_page(BlockAddr(from)), geometry.first_page(BlockAddr(to)));
        let data = vec![0x3c; geometry.page_size as usize];
        chip.program(from, 0, &data).unwrap();
        handle.said();
        let copied = chip.copy(from, to).unwrap();
        assert_eq!(copied, expected.then_some(ReadStatus::Clean), "{name}: {from} to {to}");
        if expected {
            let mut found = vec![0; data.len()];
            assert_eq!(chip.read(to, 0, &mut found), Ok(ReadStatus::Clean));
            assert_eq!(found, data);
        } else {
            assert!(handle.said().is_empty(), "{name}");
        }
        handle.was_used_rightly();
    }
}

#[test]
fn a_page_beyond_correction_is_not_copied() {
    let (mut chip, handle) = open(part("W25N01GV"));
    handle.0.borrow_mut().ecc.insert(0, (0x20, 0));
    assert_eq!(chip.copy(PageAddr(0), PageAddr(64)), Err(SpiError::Uncorrectable(PageAddr(0))));
    assert!(!handle.said().contains(&PROGRAM_EXECUTE));
}

#[test]
fn the_parameter_page_is_read_whatever_error_correction_says() {
    let (mut chip, handle) = open(part("W25N01GV"));
    let mut page = [0; 256];
    // The fake says "uncorrectable" of it.
    chip.parameter_page(&mut page).unwrap();
    assert_eq!(page, [b'P'; 256]);
    assert_eq!(chip.read(PageAddr(1), 0, &mut page), Ok(ReadStatus::Clean));
    assert_eq!(page, [0xff; 256]);
    handle.was_used_rightly();
}
