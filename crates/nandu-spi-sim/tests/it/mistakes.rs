//! Six mistakes of public drivers. The right driver passes each life, and each mistake is seen.

use std::panic::{AssertUnwindSafe, catch_unwind};

use nandu_nand::PageAddr;
use nandu_sim::{Fault, Trigger};
use nandu_spi_sim::SpiSim;

use crate::small::{Failure, Mistake, Small, part, small};

/// What the panic of a life says.
fn panic_of(life: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(life)).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

const PAGE: [u8; 2048] = [0x5A; 2048];

#[test]
fn shifted_status_bits_take_a_lost_page_for_good() {
    let read = |name, mistake| {
        let mut small = small(name, mistake);
        small.erase(1).unwrap();
        small.program(1, 0, 0, &PAGE).unwrap();
        small.spi.sim_mut().inject(Fault::Uncorrectable, Trigger::Page(PageAddr(64)));
        let mut buf = [0; 2048];
        let result = small.read(1, 0, 0, &mut buf).map(|_| ());
        (result, buf == PAGE)
    };
    for name in ["W25N01GV", "W25N02KV", "GD5F1GQ5UE", "GD5F1GQ4UE", "MT29F1G01ABAFD", "MX35LF2GE4AD", "F50L1G41LB"] {
        assert_eq!(read(name, None), (Err(Failure::Uncorrectable), false), "{name}");
        // It says that all is well, and hands out garbage.
        assert_eq!(read(name, Some(Mistake::ShiftedStatus)), (Ok(()), false), "{name}");
    }
}

#[test]
fn a_swapped_geometry_programs_the_same_page_twice() {
    let life = |mistake| {
        let mut small = small("W25N02KV", mistake);
        for block in 0..16 {
            small.erase(block).unwrap();
        }
        for block in [0, 8] {
            small.program(block, 0, 0, &PAGE).unwrap();
        }
    };
    life(None);
    let message = panic_of(|| life(Some(Mistake::SwappedGeometry)));
    assert!(message.starts_with("illegal use: program of page 0 (page 0 of block 0)"), "{message}");
    assert!(message.contains("the page is programmed"), "{message}");
}

#[test]
fn a_driver_that_takes_pages_for_twice_as_large_leaves_the_page() {
    // Its twin, of a part with pages of 4 KiB: it reads a column that is not there.
    let mut small = small("W25N02KV", None);
    let message = panic_of(|| {
        let _ = small.read(0, 0, 2048 + 128, &mut [0; 16]);
    });
    assert!(message.contains("columns 2176..2192 are outside the page, which has 2176"), "{message}");
}

#[test]
fn a_program_that_is_not_waited_for_is_seen_at_the_next_command() {
    let life = |mistake| {
        let mut small = small("MT29F1G01ABAFD", mistake);
        small.erase(3).unwrap();
        small.program(3, 0, 0, &PAGE).unwrap();
        small.program(3, 1, 0, &PAGE).unwrap();
    };
    life(None);
    let message = panic_of(|| life(Some(Mistake::MissingWait)));
    assert!(message.starts_with("illegal use: write enable while the part is busy"), "{message}");
    // The history tells what it was busy with.
    assert!(message.contains("10h program execute 00 00 C0\n"), "{message}");
}

#[test]
fn a_program_that_is_given_the_usual_time_is_seen_when_one_takes_longer() {
    let life = |mistake, slow_every: Option<u32>| {
        let mut small = small("MT29F1G01ABAFD", mistake);
        slow_every.into_iter().for_each(|operations| small.spi.set_slow_every(operations));
        small.erase(3).unwrap();
        (0..8).for_each(|page| small.program(3, page, 0, &PAGE).unwrap());
    };
    life(None, None);
    life(Some(Mistake::FixedWait), Some(0));
    let message = panic_of(|| life(Some(Mistake::FixedWait), None));
    assert!(message.starts_with("illegal use: write enable while the part is busy"), "{message}");
}

#[test]
fn bits_of_error_correction_say_nothing_of_the_parameter_page() {
    for name in ["W25N01GV", "GD5F1GM7UE", "MT29F1G01ABAFD", "MX35LF1GE4AB"] {
        assert!(small(name, None).parameter_page().unwrap().starts_with(b"ONFI"));
        let wrong = small(name, Some(Mistake::EccOfParameterPage)).parameter_page();
        assert_eq!(wrong, Err(Failure::Uncorrectable), "{name}");
    }
}

#[test]
fn continuous_read_after_power_up_pays_no_heed_to_columns() {
    let read = |name, mistake| {
        let mut small = small(name, mistake);
        small.erase(0).unwrap();
        let data: Vec<u8> = (0..2048).map(|at| (at / 256) as u8).collect();
        small.program(0, 0, 0, &data).unwrap();
        let mut buf = [0; 16];
        small.read(0, 0, 1024, &mut buf).unwrap();
        buf
    };
    assert_eq!(read("W25N01GV", None), [4; 16]);
    assert_eq!(read("W25N01GV", Some(Mistake::ContinuousRead)), [0; 16]);
}

#[test]
fn a_copy_between_blocks_of_different_parity_or_plane_panics() {
    let life = |name, mistake| {
        let mut small = small(name, mistake);
        (0..4).for_each(|block| small.erase(block).unwrap());
        small.program(0, 0, 0, &PAGE).unwrap();
        // The same parity and plane, then the other.
        for to in [2, 1] {
            small.copy((0, 0), (to, 0)).unwrap();
            let mut buf = [0; 2048];
            small.read(to, 0, 0, &mut buf).unwrap();
            assert_eq!(buf, PAGE);
        }
    };
    for (name, rule) in
        [("GD5F2GQ5UE", "from even to even and from odd to odd blocks"), ("MT29F2G01ABAGD", "inside a plane")]
    {
        life(name, None);
        let message = panic_of(|| life(name, Some(Mistake::CopyAnywhere)));
        assert!(message.starts_with("illegal use: copy of page 0 in block 0"), "{message}");
        assert!(message.contains("to page 64 in block 1") && message.contains(rule), "{message}");
    }
}

#[test]
fn a_driver_without_mistake_lives_on_every_part() {
    for row in nandu_spi::PARTS {
        let mut small = Small::start(SpiSim::blank(&part(row.name, 16)), None).unwrap();
        if row.continuous_read != nandu_spi::ContinuousRead::None {
            // The small driver knows Winbond's bit only, and clears the others'.
            assert!(small.get(nandu_spi::command::REGISTER_CONFIG).unwrap() & 0x10 != 0);
        }
        let data = vec![0xA5; row.page_size as usize];
        for block in [0, 3] {
            small.erase(block).unwrap();
            small.program(block, 0, 0, &data).unwrap();
            let mut buf = vec![0; row.page_size as usize];
            small.read(block, 0, 0, &mut buf).unwrap();
            assert!(buf == data, "{}", row.name);
        }
    }
}

#[test]
fn a_program_of_the_main_area_alone_takes_the_spare_bytes_of_the_page_before() {
    let spare_of_the_second = |name: &str, data: &[u8]| {
        let mut small = small(name, None);
        small.erase(1).unwrap();
        let mut first = [0x77; 2048 + 64];
        first[2048..2052].fill(0xFF);
        small.program(1, 0, 0, &first).unwrap();
        small.read(1, 0, 0, &mut [0; 16]).unwrap();
        small.program(1, 1, 0, data).unwrap();
        let mut byte = [0];
        small.read(1, 1, 2048 + 40, &mut byte).unwrap();
        byte[0]
    };
    let whole = [&PAGE[..], &[0xFF; 128]].concat();
    // Not every part's program load sets the rest of the cache to ones.
    assert_eq!(spare_of_the_second("MT29F1G01ABAFD", &PAGE), 0x77);
    assert_eq!(spare_of_the_second("MT29F1G01ABAFD", &whole), 0xFF);
    assert_eq!(spare_of_the_second("W25N01GV", &PAGE), 0xFF);
}
