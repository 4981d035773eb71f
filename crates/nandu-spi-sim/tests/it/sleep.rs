//! Deep power-down: what the driver does about it, and what the simulator refuses.

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::SpiDevice;
use nandu::{Options, Store};
use nandu_nand::{BlockAddr, CellMode, Nand, PageAddr, ReadStatus};
use nandu_spi::{Part, PowerDown, SpiError, SpiNand, command};
use nandu_spi_sim::{SpiSim, WireFault};

use crate::small::part;

/// A row of one's own with a deep power-down.
fn sleeper(name: &str) -> &'static Part {
    let power_down = Some(PowerDown { enter_us: 3, wake_us: 30 });
    Box::leak(Box::new(Part { power_down, ..part(name, 16) }))
}

#[test]
fn a_part_that_sleeps_is_woken_by_the_next_operation() {
    for name in ["W25N01GV", "GD5F1GM7UE", "MX35LF2GE4AD"] {
        let part = sleeper(name);
        let mut chip = SpiNand::open_as(SpiSim::blank(part), part).unwrap();
        chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
        let data = vec![0x5A; part.page_size as usize];
        chip.power_down().unwrap();
        chip.power_down().unwrap();
        chip.program(PageAddr(0), 0, &data).unwrap();
        chip.power_down().unwrap();
        let mut buf = vec![0; data.len()];
        assert_eq!(chip.read(PageAddr(0), 0, &mut buf).unwrap(), ReadStatus::Clean, "{name}");
        assert!(buf == data, "{name}");
        chip.power_down().unwrap();
        let mut spi = chip.release();
        assert!(spi.is_asleep(), "{name}");
        // The power that comes back wakes it as well.
        spi.power_cycle();
        assert!(!spi.is_asleep(), "{name}");
    }
}

#[test]
fn a_processor_that_was_reset_finds_the_part_asleep_and_wakes_it() {
    for keeps in [false, true] {
        let part = sleeper("W25N01GV");
        let mut spi = SpiSim::blank(part);
        spi.set_reset_keeps_registers(keeps);
        let mut chip = SpiNand::open_as(spi, part).unwrap();
        chip.power_down().unwrap();
        let mut chip = SpiNand::open_as(chip.release(), part).unwrap();
        assert!(!chip.is_bad(BlockAddr(0)).unwrap());
        chip.power_down().unwrap();
        let parts = std::slice::from_ref(part);
        assert_eq!(SpiNand::open_with(chip.release(), parts).unwrap().part().name, part.name);
    }
}

#[test]
fn whatever_becomes_of_a_transaction_the_part_is_found_again() {
    let part = sleeper("GD5F1GQ5UE");
    for fault in [WireFault::Refused, WireFault::Unreported, WireFault::PowerLost] {
        // Into sleep, and each transaction on the way out.
        for at in 0..12 {
            let mut chip = SpiNand::open_as(SpiSim::blank(part), part).unwrap();
            let mut spi = chip.release();
            let next = spi.transaction_count();
            spi.fault_at(next + 16 + at, fault);
            chip = SpiNand::open_as(spi, part).unwrap();
            let _ = chip.power_down();
            let _ = chip.wake();
            let mut spi = chip.release();
            spi.clear_faults();
            let mut chip = SpiNand::open_as(spi, part).unwrap();
            chip.erase(BlockAddr(0), CellMode::Slc).unwrap();
        }
    }
}

#[test]
fn a_store_goes_on_after_its_part_slept() {
    let part = sleeper("W25N01GV");
    let chip = SpiNand::open_as(SpiSim::blank(part), part).unwrap();
    let mut memory = vec![0; 64 * 1024];
    let mut store = Store::format(chip, Options::default(), &mut memory).unwrap();
    for number in 0_u32..20 {
        store.put(&number.to_be_bytes(), b"on").unwrap();
        store.nand_mut().power_down().unwrap();
    }
    assert_eq!(store.get(&7_u32.to_be_bytes()).unwrap(), Some(&b"on"[..]));
}

#[test]
fn a_row_that_names_none_has_none() {
    let part = Box::leak(Box::new(part("W25N01GV", 16)));
    let mut chip = SpiNand::open_as(SpiSim::blank(part), part).unwrap();
    assert_eq!(chip.power_down(), Err(SpiError::Unsupported));
    chip.wake().unwrap();
}

#[test]
#[should_panic(expected = "reset before the part has woken up")]
fn who_does_not_wait_after_waking_is_caught() {
    let mut spi = SpiSim::blank(sleeper("W25N01GV"));
    spi.delay_us(10);
    spi.write(&[command::DEEP_POWER_DOWN]).unwrap();
    spi.delay_us(3);
    spi.write(&[command::RELEASE_POWER_DOWN]).unwrap();
    spi.delay_us(29);
    let _ = spi.write(&[command::RESET]);
}

#[test]
#[should_panic(expected = "deep power-down while the part is busy")]
fn who_puts_a_busy_part_to_sleep_is_caught() {
    let mut spi = SpiSim::blank(sleeper("W25N01GV"));
    spi.write(&[command::PAGE_READ, 0, 0, 0]).unwrap();
    let _ = spi.write(&[command::DEEP_POWER_DOWN]);
}
