//! Identity and set-up.

use nandu_nand::{Nand, NandError, NandErrorKind};
use nandu_spi::command::*;
use nandu_spi::{ContinuousRead, IdMethod, Identity, Lanes, PARTS, Part, SpiError, SpiNand};

use super::fake::Handle;
use super::{Error, open, part};

#[test]
fn every_part_is_found_unlocked_and_read_page_by_page() {
    for part in PARTS {
        let (chip, handle) = open(part);
        assert_eq!(chip.part().name, part.name);
        assert_eq!(*chip.geometry(), part.geometry());
        chip.geometry().validate().unwrap();
        handle.was_used_rightly();
        let fake = handle.0.borrow();
        let dies = if part.die_select == nandu_spi::DieSelect::Row { 1 } else { part.die_count };
        for die in 0..dies {
            assert_eq!(fake.register(die, REGISTER_LOCK), 0, "{}", part.name);
            let config = fake.register(die, REGISTER_CONFIG);
            assert_eq!(config & (CONFIG_ECC | CONFIG_OTP), CONFIG_ECC, "{}", part.name);
            match part.continuous_read {
                ContinuousRead::None => {}
                ContinuousRead::BufferBitClear => assert_eq!(config & CONFIG_BUFFER, CONFIG_BUFFER, "{}", part.name),
                ContinuousRead::ConfigBitSet(bit) => assert_eq!(config & bit, 0, "{}", part.name),
            }
        }
    }
}

/// What comes of opening a part that answers this.
fn opened(bytes: [u8; 5]) -> Option<Error> {
    let handle = Handle::new(part("W25N01GV"));
    handle.0.borrow_mut().identity = bytes;
    SpiNand::open(handle).err()
}

#[test]
fn an_unknown_part_prints_what_it_answered() {
    let error = opened([0xef, 0xaa, 0x99, 0x01, 0x02]).unwrap();
    assert_eq!(error.to_string(), "unknown part: identity EF AA 99 01 02");
    assert_eq!(error.kind(), NandErrorKind::Bus);
    assert_eq!(opened([0xff; 5]).unwrap().to_string(), "no part answers: identity FF FF FF FF FF");
}

#[test]
fn where_nothing_answers_it_is_said() {
    for (level, text) in [(0xff, "FF FF FF FF FF"), (0, "00 00 00 00 00")] {
        let handle = Handle::new(part("W25N01GV"));
        handle.0.borrow_mut().dead = Some(level);
        let error = SpiNand::open(handle).map(|chip| chip.part().name).unwrap_err();
        assert_eq!(error.to_string(), format!("no part answers: identity {text}"));
    }
}

#[test]
fn a_row_of_ones_own_is_used_like_any_other() {
    static MINE: [Part; 1] = [Part {
        name: "MINE",
        id: Identity { method: IdMethod::Direct, bytes: &[0x77, 0x78] },
        sources: &["made up"],
        ..PARTS[1]
    }];
    let handle = Handle::new(&MINE[0]);
    assert_eq!(SpiNand::open_with(handle.clone(), &MINE).map(|chip| chip.part().name), Ok("MINE"));
    assert_eq!(SpiNand::open_as(handle.clone(), &MINE[0]).map(|chip| chip.part().name), Ok("MINE"));
    let other = SpiNand::open_as(handle, part("W25N01GV")).map(|chip| chip.part().name);
    let text = "not a W25N01GV: identity 77 78 00 00 00";
    assert_eq!(other.unwrap_err().to_string(), text);
}

#[test]
fn a_row_that_does_not_fit_itself_is_refused_before_anything_is_said() {
    static WRONG: Part = Part { die_count: 2, ..PARTS[1] };
    let handle = Handle::new(&WRONG);
    let error = SpiNand::open_as(handle.clone(), &WRONG).map(|chip| chip.part().name).unwrap_err();
    assert!(matches!(error, SpiError::Part(_)), "{error}");
    assert!(handle.said().is_empty());
}

#[test]
fn four_lanes_are_switched_on_where_the_part_wants_that() {
    for (name, bit) in [("GD5F1GQ5UE", CONFIG_QUAD), ("MT29F4G01ABAFD", 0)] {
        let handle = Handle::new(part(name));
        handle.0.borrow_mut().lanes = Lanes::Four;
        let mut chip = SpiNand::open(handle.clone()).unwrap();
        assert_eq!(handle.0.borrow().register(0, REGISTER_CONFIG) & CONFIG_QUAD, bit, "{name}");
        handle.said();
        let size = chip.geometry().page_size as usize;
        chip.program_tagged(nandu_nand::PageAddr(0), &vec![7; size], &[8; 16]).unwrap();
        assert!(handle.said().contains(&PROGRAM_LOAD_MORE_X4));
        let mut byte = [0];
        let status = chip.read(nandu_nand::PageAddr(0), 0, &mut byte).unwrap();
        assert_eq!((byte, status.corrected_bits()), ([7], 0));
        assert!(handle.said().contains(&READ_CACHE_X4));
        handle.was_used_rightly();
    }
}

#[test]
fn an_erase_that_goes_on_is_waited_for_and_not_cut_short() {
    let handle = Handle::new(part("W25N01GV"));
    let mut chip = SpiNand::open(handle.same()).unwrap();
    // A transaction behind the erase's own: the wire fails while the part is busy.
    handle.said();
    handle.0.borrow_mut().broken_at = Some(3);
    assert_eq!(chip.erase(nandu_nand::BlockAddr(3), nandu_nand::CellMode::Slc), Err(SpiError::Wire(super::Broken(3))));
    assert_eq!(handle.said(), [WRITE_ENABLE, GET_FEATURE, BLOCK_ERASE, GET_FEATURE]);
    assert_eq!(chip.read(nandu_nand::PageAddr(0), 0, &mut [0]), Ok(nandu_nand::ReadStatus::Clean));
    let said = handle.said();
    let reset = said.iter().position(|opcode| *opcode == RESET).unwrap();
    assert!(reset >= 3 && said[..reset].iter().all(|opcode| *opcode == GET_FEATURE), "{said:02x?}");
    handle.was_used_rightly();
}
