//! A Raspberry Pi Pico 2 with a W25N01GV: the store counts how often the board has started, and the light of the board blinks as often.
//!
//! | W25N01GV | pin | Pico 2 |
//! |---|---|---|
//! | /CS | 1 | GP17, with 10 kOhm to 3V3 |
//! | DO | 2 | GP16 |
//! | /WP | 3 | 3V3, through 10 kOhm |
//! | GND | 4 | GND |
//! | DI | 5 | GP19 |
//! | CLK | 6 | GP18 |
//! | /HOLD | 7 | 3V3, through 10 kOhm |
//! | VCC | 8 | 3V3, with 100 nF to GND |
//!
//! The light blinks fast for ever if the part does not answer or the store cannot be opened. What may be wrong then stands in the
//! README of `nandu-spi`.

#![no_std]
#![no_main]

use embedded_hal::delay::DelayNs;
use embedded_hal::digital::OutputPin;
use embedded_hal::spi::{MODE_0, SpiDevice};
use embedded_hal_bus::spi::ExclusiveDevice;
use hal::fugit::RateExtU32;
use hal::gpio::{FunctionSpi, PinState, Pins};
use hal::{Clock, Sio, Spi, Timer, Watchdog, pac};
use nandu::{Error, Options, Store};
use nandu_spi::{HalWire, SpiError, SpiNand};
use panic_halt as _;
use rp235x_hal as hal;

/// What the chip's own program looks for before it starts this one.
#[unsafe(link_section = ".start_block")]
#[used]
static IMAGE: hal::block::ImageDef = hal::block::ImageDef::secure_exe();

const CRYSTAL_HZ: u32 = 12_000_000;

const OPTIONS: Options = Options { cache_size: 1024, ..Options::DEFAULT };

/// Adds one to the number of starts that the part holds, and returns it.
fn count_starts<S: SpiDevice<Error: 'static>>(
    spi: S,
    delay: impl DelayNs,
    memory: &mut [u8],
) -> Result<u32, Error<SpiError<S::Error>>> {
    let mut chip = SpiNand::open(HalWire::new(spi, delay)).map_err(Error::Chip)?;
    let mut store = match Store::open(&mut chip, OPTIONS, memory) {
        Err(Error::NotFormatted) => Store::format(&mut chip, OPTIONS, memory)?,
        outcome => outcome?,
    };
    let before = store.get(b"starts")?.and_then(|value| value.try_into().ok()).map_or(0, u32::from_le_bytes);
    store.put(b"starts", &(before + 1).to_le_bytes())?;
    store.unmount()?;
    Ok(before + 1)
}

#[hal::entry]
fn main() -> ! {
    let mut pac = pac::Peripherals::take().expect("nobody took them before");
    let mut watchdog = Watchdog::new(pac.WATCHDOG);
    let resets = &mut pac.RESETS;
    let (xosc, clocks, sys, usb) = (pac.XOSC, pac.CLOCKS, pac.PLL_SYS, pac.PLL_USB);
    let Ok(clocks) = hal::clocks::init_clocks_and_plls(CRYSTAL_HZ, xosc, clocks, sys, usb, resets, &mut watchdog)
    else {
        panic!("no clock")
    };
    let mut timer = Timer::new_timer0(pac.TIMER0, resets, &clocks);
    let pins = Pins::new(pac.IO_BANK0, pac.PADS_BANK0, Sio::new(pac.SIO).gpio_bank0, resets);
    let mut light = pins.gpio25.into_push_pull_output();
    let select = pins.gpio17.into_push_pull_output_in_state(PinState::High);
    let (mosi, miso, clock) = (
        pins.gpio19.into_function::<FunctionSpi>(),
        pins.gpio16.into_function::<FunctionSpi>(),
        pins.gpio18.into_function::<FunctionSpi>(),
    );
    let bus = Spi::<_, _, _, 8>::new(pac.SPI0, (mosi, miso, clock));
    let bus = bus.init(resets, clocks.peripheral_clock.freq(), 10.MHz(), MODE_0);
    let Ok(spi) = ExclusiveDevice::new(bus, select, timer);

    let mut memory = [0; 24 * 1024];
    let (count, half_ms) = match count_starts(spi, timer, &mut memory) {
        Ok(starts) => (starts, 250),
        Err(_) => (u32::MAX, 50),
    };
    for _ in 0..count {
        let Ok(()) = light.set_high();
        timer.delay_ms(half_ms);
        let Ok(()) = light.set_low();
        timer.delay_ms(half_ms);
    }
    loop {
        hal::arch::wfi();
    }
}
