//! What a data sheet forbids.

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{Operation, SpiDevice};
use nandu_spi::{Address, Data, Lanes, Transaction, Wire, command};
use nandu_spi_sim::SpiSim;

use crate::small::{part, small};

fn blank(name: &str) -> SpiSim {
    SpiSim::blank(&part(name, 16))
}

#[test]
#[should_panic(expected = "illegal use: page read while the part is busy")]
fn a_busy_part_takes_no_command() {
    let mut spi = blank("W25N01GV");
    spi.write(&[0x13, 0, 0, 0]).unwrap();
    let _ = spi.write(&[0x13, 0, 0, 1]);
}

#[test]
#[should_panic(expected = "illegal use: register B0h while the part is busy")]
fn a_busy_part_shows_its_status_and_nothing_else() {
    let mut spi = blank("W25N01GV");
    spi.write(&[0x13, 0, 0, 0]).unwrap();
    let _ = spi.transaction(&mut [Operation::Write(&[0x0F, 0xB0]), Operation::Read(&mut [0])]);
}

#[test]
fn time_moves_with_bytes_and_delays() {
    let mut spi = blank("W25N01GV");
    spi.write(&[0x13, 0, 0, 0]).unwrap();
    // Four bytes at 50 MHz.
    assert_eq!(spi.now_ns(), 640);
    spi.delay_ns(9_999);
    let mut status = [0];
    // Busy for 10 us from the end of the command; the status is sampled at the end of its byte.
    spi.transaction(&mut [Operation::Write(&[0x0F, 0xC0]), Operation::Read(&mut status)]).unwrap();
    assert_eq!((status, spi.now_ns()), ([0], 640 + 9_999 + 480));
    let mut delay = spi.delay();
    delay.delay_us(3);
    assert_eq!(spi.now_ns(), 640 + 9_999 + 480 + 3_000);
    // It is the chip's clock, too.
    spi.write(&[0x06]).unwrap();
    assert_eq!(spi.sim().clock_ns(), spi.now_ns());
}

#[test]
#[should_panic(expected = "illegal use: erase without write enable")]
fn an_erase_needs_write_enable() {
    let mut spi = blank("GD5F1GQ5UE");
    spi.write(&[0x1F, 0xA0, 0]).unwrap();
    let _ = spi.write(&[0xD8, 0, 0, 0]);
}

#[test]
#[should_panic(expected = "illegal use: program without write enable")]
fn write_enable_lasts_for_one_operation() {
    let mut small = small("GD5F1GQ5UE", None);
    small.erase(0).unwrap();
    small.spi.write(&[0x02, 0, 0, 1]).unwrap();
    let _ = small.spi.write(&[0x10, 0, 0, 0]);
}

#[test]
#[should_panic(expected = "program load without write enable, which Winbond's parts ignore")]
fn winbond_takes_no_load_without_write_enable() {
    let _ = blank("W25N01GV").write(&[0x02, 0, 0, 1]);
}

#[test]
#[should_panic(expected = "illegal use: erase of a protected block (register A0h is 78h)")]
fn blocks_are_protected_after_power_up() {
    let mut spi = blank("MX35LF1GE4AB");
    spi.write(&[0x06]).unwrap();
    let _ = spi.write(&[0xD8, 0, 0, 0]);
}

#[test]
#[should_panic(expected = "illegal use: erase of a protected block")]
fn a_reset_protects_them_again() {
    let mut small = small("MX35LF1GE4AB", None);
    small.spi.write(&[0xFF]).unwrap();
    small.wait().unwrap();
    let _ = small.erase(0);
}

#[test]
#[should_panic(expected = "row 1024 is outside the part, which has 1024 pages")]
fn a_row_outside_the_part_does_not_alias() {
    let _ = blank("W25N01GV").write(&[0x13, 0, 4, 0]);
}

#[test]
#[should_panic(expected = "read of a cache that holds nothing since power-up or reset")]
fn a_cache_has_to_be_filled() {
    let mut buf = [0; 4];
    let _ = blank("W25N01GV").transaction(&mut [Operation::Write(&[0x03, 0, 0, 0]), Operation::Read(&mut buf)]);
}

#[test]
#[should_panic(expected = "page read ends in the middle of its address")]
fn a_command_has_its_whole_address() {
    let _ = blank("W25N01GV").write(&[0x13, 0, 0]);
}

#[test]
#[should_panic(expected = "the transaction goes on behind the end of the command")]
fn a_command_ends_where_it_ends() {
    let _ = blank("W25N01GV").write(&[0x06, 0]);
}

#[test]
#[should_panic(expected = "columns 2110..2114 are outside the page, which has 2112")]
fn a_load_stays_in_the_page() {
    let mut spi = blank("W25N01GV");
    spi.write(&[0x06]).unwrap();
    let _ = spi.write(&[0x02, 0x08, 0x3E, 1, 2, 3, 4]);
}

#[test]
#[should_panic(expected = "page 1 of block 2), columns 0..2048: a later page of the block is programmed")]
fn pages_are_programmed_in_order() {
    let mut small = small("MT29F1G01ABAFD", None);
    small.erase(2).unwrap();
    small.program(2, 5, 0, &[1; 2048]).unwrap();
    let _ = small.program(2, 1, 0, &[1; 2048]);
}

#[test]
#[should_panic(expected = "illegal use: erase of block 4: the block is bad")]
fn a_bad_block_is_not_erased() {
    let mut small = small("W25N01GV", None);
    small.spi.sim_mut().mark_factory_bad(nandu_nand::BlockAddr(4));
    let _ = small.erase(4);
}

#[test]
#[should_panic(expected = "read of the cache of plane 0, and page 64 is in plane 1")]
fn the_plane_bit_is_that_of_the_row() {
    let mut small = small("MT29F2G01ABAGD", None);
    small.spi.write(&[0x13, 0, 0, 64]).unwrap();
    small.wait().unwrap();
    let _ = small.spi.transaction(&mut [Operation::Write(&[0x03, 0, 0, 0]), Operation::Read(&mut [0])]);
}

#[test]
#[should_panic(expected = "load with 0 as plane bit 12, and row 64 is in plane 1")]
fn a_load_goes_to_the_plane_of_its_row() {
    let mut small = small("MT29F2G01ABAGD", None);
    small.erase(1).unwrap();
    small.load(0x02, 0, 0, &[1; 2048]).unwrap();
    let _ = small.execute(1, 0);
}

#[test]
#[should_panic(expected = "illegal use: the part does not know select die")]
fn a_part_of_one_die_has_none_to_select() {
    let _ = blank("W25N01GV").write(&[0xC2, 1]);
}

#[test]
#[should_panic(expected = "the part has no register 30h")]
fn a_part_has_its_own_registers() {
    let _ = blank("W25N01GV").transaction(&mut [Operation::Write(&[0x0F, 0x30]), Operation::Read(&mut [0])]);
}

#[test]
#[should_panic(expected = "read cache x4 go on lanes: Four, not One")]
fn four_lanes_are_not_one() {
    let mut small = small("W25N01GV", None);
    small.read(0, 0, 0, &mut [0]).unwrap();
    let _ = small.spi.transaction(&mut [Operation::Write(&[0x6B, 0, 0, 0]), Operation::Read(&mut [0])]);
}

#[test]
#[should_panic(expected = "read cache x4 without the bit in register B0h that allows four lanes")]
fn four_lanes_may_have_to_be_allowed() {
    let mut small = small("GD5F1GQ5UE", None);
    small.read(0, 0, 0, &mut [0]).unwrap();
    let mut buf = [0; 4];
    let _ = small.spi.transact(&mut Transaction {
        opcode: command::READ_CACHE_X4,
        address: Address::column(0),
        dummy: 1,
        data: Data::In(&mut buf),
        lanes: Lanes::Four,
    });
}

#[test]
fn four_lanes_take_a_quarter_of_the_time() {
    let mut small = small("W25N01GV", None);
    small.erase(0).unwrap();
    small.program(0, 0, 0, &[7; 2048]).unwrap();
    small.read(0, 0, 0, &mut []).unwrap();
    let before_ns = small.spi.now_ns();
    let mut buf = [0; 1000];
    let mut transaction = Transaction {
        opcode: command::READ_CACHE_X4,
        address: Address::column(0),
        dummy: 1,
        data: Data::In(&mut buf),
        lanes: Lanes::Four,
    };
    small.spi.transact(&mut transaction).unwrap();
    assert_eq!(small.spi.now_ns() - before_ns, 4 * 160 + 1000 * 40);
    assert_eq!(buf, [7; 1000]);
}

#[test]
#[should_panic(expected = "so that the one-time pages are locked for ever")]
fn nobody_locks_the_one_time_pages_by_accident() {
    let _ = blank("W25N01GV").write(&[0x1F, 0xB0, 0xFF]);
}

#[test]
fn the_panic_tells_the_last_transactions_and_the_block() {
    let panic = std::panic::catch_unwind(|| {
        let mut small = small("W25N01GV", None);
        small.erase(1).unwrap();
        small.program(1, 0, 0, &[1; 2048]).unwrap();
        let _ = small.program(1, 0, 0, &[1; 2048]);
    });
    let payload = panic.unwrap_err();
    let text = payload.downcast_ref::<String>().unwrap();
    for line in [
        "illegal use: program of page 64 (page 0 of block 1), columns 0..2048: the page is programmed",
        "W25N01GV: A0h 00, B0h 18, C0h 02; block 1: Erased, 1 erases; its last operations:",
        "  #1 program of page 0 in the block, columns 0+2048 (other)",
        "D8h block erase 00 00 40",
        "02h program load 00 00 : 01 01 01 01 ... (2048 bytes)",
        "0Fh get feature C0 : 00, ",
        "10h program execute 00 00 40",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}
