//! A wire over `embedded-hal`.

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{Operation, SpiDevice};

use crate::wire::{Data, Transaction, Wire};

/// A [`Wire`] of an `embedded-hal` 1.0 SPI device and a delay.
///
/// The delay is where the driver waits for the part: one that sleeps lets other tasks of an RTOS run. The device must be in SPI mode 0
/// or 3, with the bytes' highest bit first, and at a clock that the part takes with command 03h.
#[derive(Debug)]
pub struct HalWire<S, D> {
    spi: S,
    delay: D,
}

impl<S, D> HalWire<S, D> {
    /// A wire of these two.
    pub fn new(spi: S, delay: D) -> HalWire<S, D> {
        HalWire { spi, delay }
    }

    /// Gives them back.
    pub fn release(self) -> (S, D) {
        (self.spi, self.delay)
    }
}

/// Opcode, address and dummy bytes.
const HEAD_SIZE: usize = 1 + 3 + Transaction::DUMMY_MAX as usize;

impl<S, D> Wire for HalWire<S, D>
where
    S: SpiDevice,
    S::Error: 'static,
    D: DelayNs,
{
    type Error = S::Error;

    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), S::Error> {
        let mut head = [0; HEAD_SIZE];
        head[0] = transaction.opcode;
        let address = transaction.address.bytes();
        head[1..1 + address.len()].copy_from_slice(address);
        let dummy = usize::from(transaction.dummy.min(Transaction::DUMMY_MAX));
        let head = &head[..1 + address.len() + dummy];
        match &mut transaction.data {
            Data::None => self.spi.write(head),
            Data::In(buf) => self.spi.transaction(&mut [Operation::Write(head), Operation::Read(buf)]),
            Data::Out(data) => self.spi.transaction(&mut [Operation::Write(head), Operation::Write(data)]),
        }
    }

    fn wait_us(&mut self, microseconds: u32) {
        self.delay.delay_us(microseconds);
    }
}
