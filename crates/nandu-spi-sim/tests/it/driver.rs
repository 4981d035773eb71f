//! The driver of `nandu-spi` on the wire: as the contract wants it, on every part.

use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr, ReadStatus};
use nandu_sim::{Fault, Trigger};
use nandu_spi::{HalWire, PARTS, Part, SpiError, SpiNand, Wire};
use nandu_spi_sim::{SpiSim, WireFault};

use crate::small::part;

/// A row with fewer blocks that lives as long as the tests.
fn row(name: &str) -> &'static Part {
    Box::leak(Box::new(part(name, 16)))
}

/// A short life: pages, parts of pages, tags, marks and copies.
fn live<W: Wire>(mut chip: SpiNand<W>, name: &str) {
    let geometry = *chip.geometry();
    let (page_size, unit) = (geometry.page_size as usize, geometry.program_unit as usize);
    let at = |block, index| geometry.page_at(BlockAddr(block), index);
    for block in 0..4 {
        assert!(!chip.is_bad(BlockAddr(block)).unwrap(), "{name}");
        chip.erase(BlockAddr(block), CellMode::Slc).unwrap();
    }
    let data: Vec<u8> = (0..page_size).map(|at| (at * 7 % 251) as u8).collect();
    chip.program(at(1, 0), 0, &data).unwrap();
    chip.program(at(1, 1), 0, &data[..unit]).unwrap();
    let mut buf = vec![0; page_size];
    assert_eq!(chip.read(at(1, 0), 0, &mut buf).unwrap(), ReadStatus::Clean);
    assert!(buf == data, "{name}");
    assert_eq!(chip.read(at(1, 1), 100, &mut buf[..200]).unwrap(), ReadStatus::Clean);
    assert_eq!(buf[..200], data[100..300], "{name}");
    if geometry.tag_size > 0 {
        let tag: Vec<u8> = (0..geometry.tag_size as u8).collect();
        chip.program_tagged(at(1, 2), &data, &tag).unwrap();
        let mut found = vec![0; tag.len()];
        let _ = chip.read(at(1, 2), geometry.tag_column(), &mut found).unwrap();
        assert_eq!(found, tag, "{name}");
    }
    for to in [2, 3] {
        // The driver copies where the part's rule lets it, and says so where it does not.
        let may = geometry.may_copy(BlockAddr(1), BlockAddr(to));
        assert_eq!(chip.copy(at(1, 0), at(to, 0)).unwrap(), may.then_some(ReadStatus::Clean), "{name}");
        if may {
            let _ = chip.read(at(to, 0), 0, &mut buf).unwrap();
            assert!(buf == data, "{name}");
        }
    }
    chip.mark_bad(BlockAddr(1)).unwrap();
    assert!(chip.is_bad(BlockAddr(1)).unwrap() && !chip.is_bad(BlockAddr(2)).unwrap(), "{name}");
}

#[test]
fn the_driver_lives_on_every_part() {
    for known in PARTS {
        let part = row(known.name);
        live(SpiNand::open_as(SpiSim::blank(part), part).unwrap(), part.name);
        // The same through the traits of embedded-hal, on one lane.
        let spi = SpiSim::blank(part);
        let delay = spi.delay();
        live(SpiNand::open_as(HalWire::new(spi, delay), part).unwrap(), part.name);
    }
}

#[test]
fn the_driver_finds_each_part_by_its_identity() {
    for known in PARTS {
        let chip = SpiNand::open(SpiSim::blank(known)).unwrap();
        assert_eq!(chip.part().name, known.name);
    }
}

#[test]
fn the_parameter_page_is_read_whatever_its_status_says() {
    for known in PARTS {
        let part = row(known.name);
        let mut chip = SpiNand::open_as(SpiSim::blank(part), part).unwrap();
        let mut bytes = [0; 4];
        let read = chip.parameter_page(&mut bytes);
        if part.parameter_row.is_none() {
            assert_eq!(read, Err(SpiError::Unsupported), "{}", part.name);
            continue;
        }
        read.unwrap();
        assert_eq!(&bytes, b"ONFI", "{}", part.name);
        assert_eq!(chip.read(PageAddr(0), 0, &mut bytes).unwrap(), ReadStatus::Clean);
    }
}

#[test]
fn what_error_correction_found_reaches_the_contract() {
    for known in PARTS {
        let part = row(known.name);
        let limit = u16::from(part.ecc_bits);
        for bits in 1..=limit + 1 {
            let mut chip = SpiNand::open_as(SpiSim::blank(part), part).unwrap();
            chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
            let data = vec![0x3C; part.page_size as usize];
            chip.program(PageAddr(0), 0, &data).unwrap();
            let mut spi = chip.release();
            spi.sim_mut().inject(Fault::BitFlips(bits), Trigger::Page(PageAddr(0)));
            let mut chip = SpiNand::open_as(spi, part).unwrap();
            let mut buf = vec![0; data.len()];
            match chip.read(PageAddr(0), 0, &mut buf) {
                Ok(status) => {
                    let told = status.corrected_bits();
                    assert!(buf == data && (bits..=limit).contains(&told), "{}: {bits} bits, {told} told", part.name);
                }
                Err(error) => {
                    assert_eq!((error.kind(), bits), (NandErrorKind::Uncorrectable, limit + 1), "{}", part.name);
                }
            }
        }
    }
}

#[test]
fn the_marks_of_the_factory_are_found_on_both_pages() {
    for known in PARTS {
        let part = row(known.name);
        let mut spi = SpiSim::blank(part);
        (3..9).for_each(|block| spi.sim_mut().mark_factory_bad(BlockAddr(block)));
        let mut chip = SpiNand::open_as(spi, part).unwrap();
        let bad: Vec<u32> = (0..16).filter(|&block| chip.is_bad(BlockAddr(block)).unwrap()).collect();
        assert_eq!(bad, [3, 4, 5, 6, 7, 8], "{}", part.name);
    }
}

#[test]
fn failures_reach_the_contract_and_the_part_goes_on() {
    for name in ["W25N01GV", "GD5F1GQ5UE", "MT29F1G01ABAFD", "MX35LF1GE4AB"] {
        let part = row(name);
        let mut spi = SpiSim::blank(part);
        spi.sim_mut().inject(Fault::EraseFails, Trigger::Block(BlockAddr(1)));
        spi.sim_mut().inject(Fault::ProgramFails, Trigger::Nth(0));
        let mut chip = SpiNand::open_as(spi, part).unwrap();
        assert_eq!(chip.erase(BlockAddr(1), CellMode::Slc).unwrap_err().kind(), NandErrorKind::EraseFailed);
        chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
        let data = vec![1; part.page_size as usize];
        assert_eq!(chip.program(PageAddr(0), 0, &data).unwrap_err().kind(), NandErrorKind::ProgramFailed);
        chip.program(PageAddr(1), 0, &data).unwrap();
    }
}

#[test]
fn any_transaction_may_fail_and_the_driver_comes_back() {
    for name in ["W25N01GV", "GD5F1GQ4UE", "MT29F2G01ABAGD", "MX35LF2GE4AD", "W25M02GV"] {
        let part = row(name);
        let data = vec![0x77; part.page_size as usize];
        let mut failed = 0;
        let dead = [0x00, 0xFF].map(WireFault::Dead);
        let failing = [WireFault::Refused, WireFault::Unreported, WireFault::Stuck, WireFault::PowerLost];
        for (fault, keeps_registers) in
            failing.into_iter().chain(dead).flat_map(|fault| [(fault, false), (fault, true)])
        {
            for nth in 0..60 {
                let mut spi = SpiSim::blank(part);
                spi.set_reset_keeps_registers(keeps_registers);
                let mut chip = SpiNand::open_as(spi, part).unwrap();
                chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
                let mut spi = chip.release();
                // Bringing it up takes some, too.
                spi.fault_at(spi.transaction_count() + nth, fault);
                let Ok(mut chip) = SpiNand::open_as(&mut spi, part) else {
                    failed += 1;
                    spi.clear_faults();
                    spi.set_dead(None);
                    live(SpiNand::open_as(spi, part).unwrap(), name);
                    continue;
                };
                let program = chip.program(PageAddr(0), 0, &data).map_err(|error| error.kind());
                assert!(matches!(program, Ok(()) | Err(NandErrorKind::Bus)), "{name}: {program:?}");
                let mut buf = vec![0; data.len()];
                for _ in 0..2 {
                    let read = chip.read(PageAddr(0), 0, &mut buf).map_err(|error| error.kind());
                    match read {
                        Ok(_) => assert!(program.is_err() || buf == data, "{name}: {fault:?} at {nth}"),
                        Err(kind) => {
                            failed += 1;
                            assert!(
                                kind == NandErrorKind::Bus || program.is_err(),
                                "{name}: {kind} after {fault:?} at {nth}"
                            );
                        }
                    }
                }
                failed += u32::from(program.is_err());
                let spi = chip.release();
                spi.clear_faults();
                spi.set_dead(None);
                live(SpiNand::open_as(spi, part).unwrap(), name);
            }
        }
        assert!(failed > 20, "{name}: {failed}");
    }
}

#[test]
fn a_dead_bus_is_never_a_success() {
    for known in PARTS {
        let part = row(known.name);
        for level in [0x00, 0xFF] {
            let mut spi = SpiSim::blank(part);
            let mut buf = vec![0; part.page_size as usize];
            let mut chip = SpiNand::open_as(&mut spi, part).unwrap();
            chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
            spi.set_dead(Some(level));
            assert_eq!(SpiNand::open_as(&mut spi, part).unwrap_err().kind(), NandErrorKind::Bus, "{}", part.name);
            // It came back while nobody spoke to it.
            spi.set_dead(None);
            let mut chip = SpiNand::open_as(&mut spi, part).unwrap();
            assert_eq!(chip.read(PageAddr(0), 0, &mut buf).unwrap(), ReadStatus::Clean);
        }
    }
}

/// A driver that believes the bus: a status of zeros is success.
#[test]
fn a_driver_that_does_not_look_twice_takes_a_dead_bus_for_success() {
    let mut small = crate::small::small("W25N01GV", None);
    small.erase(0).unwrap();
    small.spi.set_dead(Some(0x00));
    small.program(0, 0, 0, &[1; 2048]).unwrap();
    small.spi.set_dead(None);
    let mut buf = [0; 2048];
    small.read(0, 0, 0, &mut buf).unwrap();
    assert_eq!(buf, [0xFF; 2048]);
}
