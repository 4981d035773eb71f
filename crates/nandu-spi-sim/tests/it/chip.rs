//! What the chip behind the wire does, as the wire shows it.

use embedded_hal::spi::{Operation, SpiDevice};
use nandu_nand::{BlockAddr, PageAddr};
use nandu_sim::{Chip, Fault, Sim, Tear, Trigger};
use nandu_spi::{IdMethod, PARTS, Part, command};
use nandu_spi_sim::{SpiSim, WireError, WireFault, chip};

use crate::small::{Failure, Small, part, small};

const PAGE: [u8; 2048] = [0x5A; 2048];

#[test]
fn every_part_says_who_it_is() {
    for row in PARTS {
        let mut spi = SpiSim::blank(&part(row.name, 16));
        let mut answer = [0; 6];
        spi.transaction(&mut [Operation::Write(&[command::READ_ID]), Operation::Read(&mut answer)]).unwrap();
        let dummy = usize::from(row.id.method != IdMethod::Direct);
        assert!(answer[dummy..].starts_with(row.id.bytes), "{}", row.name);
        // Full duplex, as some peripherals do it.
        let mut bytes = [command::READ_ID, 0, 0, 0];
        spi.transfer_in_place(&mut bytes).unwrap();
        assert_eq!(bytes[1..], answer[..3]);
    }
}

#[test]
fn presets_of_the_simulator_follow_the_table() {
    let names = [
        ("w25n01gv", "W25N01GV"),
        ("w25n02kv", "W25N02KV"),
        ("gd5f2gq5", "GD5F2GQ5UE"),
        ("mt29f4g01", "MT29F4G01ABAFD"),
    ];
    for (preset, row) in names {
        let (preset, part) = (Chip::preset(preset).unwrap(), Part::by_name(row, PARTS).unwrap());
        assert_eq!(preset.geometry, part.geometry(), "{row}");
    }
}

#[test]
fn corrected_bits_are_told_as_the_part_tells_them() {
    // Bits, status, register or command, what it says.
    let cases: &[(&str, u16, u8, u8, u8)] = &[
        ("W25N01GV", 1, 0x10, 0, 0),
        ("W25N02KV", 3, 0x10, 0x30, 0x30),
        ("W25N02KV", 7, 0x30, 0x30, 0x70),
        ("GD5F1GQ5UE", 3, 0x10, 0xF0, 0x20),
        ("GD5F1GQ4UE", 6, 0x10, 0xF0, 0x20),
        ("GD5F1GQ4UE", 8, 0x30, 0xF0, 0),
        ("MT29F1G01ABAFD", 2, 0x10, 0, 0),
        ("MT29F1G01ABAFD", 5, 0x30, 0, 0),
        ("MT29F1G01ABAFD", 8, 0x50, 0, 0),
        ("MX35LF1GE4AB", 2, 0x10, 0x7C, 2),
        ("XT26G01A", 5, 0x14, 0, 0),
        ("XT26G01D", 7, 0xD0, 0, 0),
    ];
    for &(name, bits, status, register, more) in cases {
        let mut small = small(name, None);
        small.erase(0).unwrap();
        small.program(0, 0, 0, &PAGE).unwrap();
        small.spi.sim_mut().inject(Fault::BitFlips(bits), Trigger::Page(PageAddr(0)));
        let mut buf = [0; 2048];
        assert_eq!(small.read(0, 0, 0, &mut buf), Ok(status), "{name}, {bits} bits");
        assert_eq!(buf, PAGE);
        let mut value = [0];
        match register {
            0 => continue,
            0x7C => small.spi.transaction(&mut [Operation::Write(&[0x7C, 0]), Operation::Read(&mut value)]).unwrap(),
            _ => value[0] = small.get(register).unwrap(),
        }
        assert_eq!(value[0], more, "{name}, {bits} bits");
    }
}

#[test]
fn a_corrected_read_shows_which_spare_bytes_nobody_protects() {
    let mut small = small("W25N01GV", None);
    small.erase(0).unwrap();
    small.program(0, 2, 0, &[0x5A; 2048 + 64]).unwrap();
    small.spi.sim_mut().inject(Fault::BitFlips(1), Trigger::Page(PageAddr(2)));
    let mut spare = [0; 64];
    small.read(0, 2, 2048, &mut spare).unwrap();
    let changed: Vec<usize> = (2..64).filter(|&at| spare[at] != 0x5A).collect();
    let unprotected: Vec<usize> = (2..64).filter(|at| !(4..8).contains(&(at % 16))).collect();
    assert_eq!(changed, unprotected);
}

#[test]
fn failures_are_told_by_their_bits() {
    let mut small = small("GD5F1GQ5UE", None);
    small.erase(0).unwrap();
    small.spi.sim_mut().inject(Fault::ProgramFails, Trigger::Nth(0));
    assert_eq!(small.program(0, 0, 0, &PAGE), Err(Failure::Program));
    small.program(0, 1, 0, &PAGE).unwrap();
    small.spi.sim_mut().inject(Fault::EraseFails, Trigger::Nth(0));
    assert_eq!(small.erase(0), Err(Failure::Erase));
    small.erase(1).unwrap();
}

#[test]
fn marks_stand_where_the_part_has_them_and_can_be_set() {
    for name in ["W25N01GV", "MX35LF1GE4AB"] {
        let mut small = small(name, None);
        (0..6).for_each(|block| small.spi.sim_mut().mark_factory_bad(BlockAddr(block)));
        let mut mark = |block, page| {
            let mut byte = [0];
            small.read(block, page, 2048, &mut byte).unwrap();
            byte[0] != 0xFF
        };
        let marks: Vec<(bool, bool)> = (0..7).map(|block| (mark(block, 0), mark(block, 1))).collect();
        let (first, second, both) = ((true, false), (false, true), (true, true));
        let expected = if name == "W25N01GV" { [first; 6] } else { [first, second, both, first, second, both] };
        assert_eq!((&marks[..6], marks[6]), (&expected[..], (false, false)), "{name}");

        // A mark on a block that is programmed, and in whose pages there is no room.
        small.erase(7).unwrap();
        (0..3).for_each(|page| small.program(7, page, 0, &PAGE).unwrap());
        small.program(7, 0, 2048, &[0]).unwrap();
        assert!(small.spi.sim().block_state(BlockAddr(7)).grown_bad);
        let mut byte = [9];
        small.read(7, 0, 2048, &mut byte).unwrap();
        assert_eq!(byte, [0]);
    }
}

#[test]
fn a_page_is_programmed_in_parts_and_copied_with_changes() {
    let mut small = small("W25N01GV", None);
    small.erase(0).unwrap();
    small.program(0, 0, 0, &[1; 512]).unwrap();
    small.program(0, 0, 1024, &[3; 300]).unwrap();
    let mut buf = [0; 2048];
    small.read(0, 0, 0, &mut buf).unwrap();
    assert!(buf[..512] == [1; 512] && buf[512..1024] == [0xFF; 512]);
    assert!(buf[1024..1324] == [3; 300] && buf[1324..] == [0xFF; 724]);
    // Page read, random load, execute: the rest of the page goes along.
    small.load(command::PROGRAM_LOAD_MORE, 0, 512, &[9; 4]).unwrap();
    small.execute(0, 1).unwrap();
    small.read(0, 1, 0, &mut buf).unwrap();
    assert!(buf[..512] == [1; 512] && buf[512..516] == [9; 4] && buf[1024..1324] == [3; 300]);
}

#[test]
fn a_page_programmed_without_error_correction_cannot_be_read_with_it() {
    let mut small = small("MT29F1G01ABAFD", None);
    small.erase(0).unwrap();
    small.set(command::REGISTER_CONFIG, 0).unwrap();
    small.program(0, 0, 0, &PAGE).unwrap();
    let mut buf = [0; 2048];
    assert_eq!((small.read(0, 0, 0, &mut buf), buf), (Ok(0), PAGE));
    small.set(command::REGISTER_CONFIG, command::CONFIG_ECC).unwrap();
    assert_eq!(small.read(0, 0, 0, &mut buf), Err(Failure::Uncorrectable));
    // Without it, flipped bits are seen and not told.
    small.program(0, 1, 0, &PAGE).unwrap();
    small.spi.sim_mut().inject(Fault::BitFlips(3), Trigger::Page(PageAddr(1)));
    small.set(command::REGISTER_CONFIG, 0).unwrap();
    assert_eq!(small.read(0, 1, 0, &mut buf), Ok(0));
    assert_eq!(buf.iter().zip(PAGE).filter(|&(&read, programmed)| read != programmed).count(), 3);
}

#[test]
fn a_continuous_read_goes_on_over_the_end_of_the_page() {
    let mut small = small("W25N01GV", None);
    small.erase(0).unwrap();
    small.program(0, 0, 0, &[1; 2048]).unwrap();
    small.program(0, 1, 0, &[2; 2048]).unwrap();
    small.set(command::REGISTER_CONFIG, command::CONFIG_ECC).unwrap();
    let mut buf = [0; 3000];
    small.read(0, 0, 77, &mut buf).unwrap();
    assert!(buf[..2048] == [1; 2048] && buf[2048..] == [2; 952]);
}

#[test]
fn dies_have_registers_of_their_own() {
    let mut small = small("W25M02GV", None);
    // Die 0 was unlocked.
    assert_eq!(small.get(command::REGISTER_LOCK), Ok(0));
    small.spi.write(&[command::SELECT_DIE, 1]).unwrap();
    assert_eq!(small.get(command::REGISTER_LOCK), Ok(0x78));
    small.set(command::REGISTER_LOCK, 0).unwrap();
    small.set(command::REGISTER_CONFIG, command::CONFIG_ECC | command::CONFIG_BUFFER).unwrap();
    small.erase(2).unwrap();
    small.program(2, 0, 0, &PAGE).unwrap();
    assert_eq!(small.spi.sim().peek(PageAddr((8 + 2) * 64))[..2048], PAGE);
    // While this die erases, the other reads.
    small.spi.write(&[command::WRITE_ENABLE]).unwrap();
    small.spi.write(&[command::BLOCK_ERASE, 0, 0, 192]).unwrap();
    small.spi.write(&[command::SELECT_DIE, 0]).unwrap();
    small.read(0, 0, 0, &mut [0; 16]).unwrap();
    small.spi.write(&[command::SELECT_DIE, 1]).unwrap();
    assert_eq!(small.get(command::REGISTER_STATUS).unwrap() & 1, 1);
    small.wait().unwrap();
    assert_eq!(small.spi.sim().block_state(BlockAddr(11)).counters.erases, 1);
}

#[test]
fn a_cut_tears_the_program_and_silences_the_part_until_there_is_power() {
    let mut small = small("MX35LF1GE4AB", None);
    small.erase(0).unwrap();
    let cut = small.spi.sim().operation_count() + 1;
    small.spi.sim_mut().cut_at(cut, Tear::PrefixLost);
    small.program(0, 0, 0, &PAGE).unwrap();
    assert_eq!(small.program(0, 1, 0, &PAGE), Err(Failure::Wire(WireError::Gone)));
    assert_eq!(small.spi.write(&[0xFF]), Err(WireError::Gone));
    assert_eq!(small.spi.sim().last_cut().unwrap().tear, Tear::PrefixLost);
    // With power the part is as after power-up, whoever gave it.
    small.spi.sim_mut().power_on();
    assert_eq!(small.get(command::REGISTER_LOCK), Ok(0x78));
    let Small { spi, .. } = small;
    let mut small = Small::start(spi, None).unwrap();
    assert_eq!(small.read(0, 1, 0, &mut [0; 16]), Err(Failure::Uncorrectable));
    let mut buf = [0; 2048];
    small.read(0, 0, 0, &mut buf).unwrap();
    assert_eq!(buf, PAGE);
}

#[test]
fn a_cut_tears_an_erase_and_a_borrowed_chip_shows_it() {
    let part = part("W25N01GV", 16);
    let mut sim = Sim::new(chip(&part));
    let mut small = Small::start(SpiSim::new(&part, &mut sim), None).unwrap();
    small.erase(0).unwrap();
    small.program(0, 0, 0, &PAGE).unwrap();
    let cut = small.spi.sim().operation_count();
    small.spi.sim_mut().cut_at(cut, Tear::FadingContent);
    assert_eq!(small.erase(0), Err(Failure::Wire(WireError::Gone)));
    sim.power_on();
    let mut small = Small::start(SpiSim::new(&part, &mut sim), None).unwrap();
    let mut buf = [0; 2048];
    small.read(0, 0, 0, &mut buf).unwrap();
    assert_eq!(buf, PAGE);
    while small.read(0, 0, 0, &mut buf).is_ok() {}
}

#[test]
fn a_bus_error_of_the_chip_fails_the_next_transaction() {
    let mut small = small("W25N01GV", None);
    small.erase(0).unwrap();
    small.spi.sim_mut().inject(Fault::Bus(Tear::Complete), Trigger::Nth(0));
    assert_eq!(small.program(0, 0, 0, &PAGE), Err(Failure::Wire(WireError::Bus)));
    // The part is well.
    let mut buf = [0; 2048];
    small.read(0, 0, 0, &mut buf).unwrap();
    assert_eq!(buf, PAGE);
}

#[test]
fn stale_and_misdirected_reads_pass_for_good_ones() {
    let mut small = small("W25N01GV", None);
    small.erase(0).unwrap();
    (0..3).for_each(|page| small.program(0, page, 0, &[page as u8; 2048]).unwrap());
    let mut buf = [0; 2048];
    small.spi.sim_mut().inject(Fault::Stale, Trigger::Nth(0));
    assert_eq!((small.read(0, 0, 0, &mut buf), buf[0]), (Ok(0), 2));
    small.spi.sim_mut().inject(Fault::Misdirected(Some(PageAddr(1))), Trigger::Nth(0));
    assert_eq!((small.read(0, 0, 0, &mut buf), buf[0]), (Ok(0), 1));
    assert_eq!((small.read(0, 0, 0, &mut buf), buf[0]), (Ok(0), 0));
}

#[test]
fn transactions_get_lost() {
    let mut small = small("W25N01GV", None);
    let next = small.spi.transaction_count();
    small.spi.fault_at(next, WireFault::Refused);
    assert_eq!(small.spi.write(&[0x06]), Err(WireError::Bus));
    assert_eq!(small.get(command::REGISTER_STATUS), Ok(0));
    let next = small.spi.transaction_count();
    small.spi.fault_at(next, WireFault::Unreported);
    assert_eq!(small.spi.write(&[0x06]), Err(WireError::Bus));
    assert_eq!(small.get(command::REGISTER_STATUS), Ok(command::STATUS_WRITE_ENABLED));
}

#[test]
fn a_part_that_never_ends_is_freed_by_a_reset_which_tears() {
    let mut torn = 0;
    for round in 0..20 {
        let part = part("W25N01GV", 16);
        let sim = Sim::with_seed(chip(&part), round);
        let mut small = Small::start(SpiSim::new(&part, sim), None).unwrap();
        (0..round as u32 % 5).for_each(|block| small.erase(block + 1).unwrap());
        small.erase(0).unwrap();
        small.load(command::PROGRAM_LOAD, 0, 0, &PAGE).unwrap();
        let next = small.spi.transaction_count();
        small.spi.fault_at(next, WireFault::Stuck);
        assert_eq!(small.execute(0, 0), Err(Failure::Timeout));
        let Small { spi, .. } = small;
        let mut small = Small::start(spi, None).unwrap();
        let mut buf = [0; 2048];
        let read = small.read(0, 0, 0, &mut buf);
        torn += u32::from(read.is_err() || buf != PAGE);
        // A page of which nobody knows how it ended is not programmed again; the next one is.
        small.program(0, 1, 0, &PAGE).unwrap();
    }
    assert!(torn > 5, "{torn}");
}
