//! What the adapter from `embedded-hal` puts on the bus.

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{ErrorKind, ErrorType, Operation, SpiDevice};
use nandu_nand::{NandError, NandErrorKind};
use nandu_spi::{Address, Data, HalWire, SpiError, SpiNand, Transaction, Wire};

/// Notes what it is given, and answers with counting bytes.
#[derive(Default)]
struct Device {
    /// For each transaction the bytes written and how many were read.
    seen: Vec<(Vec<u8>, usize)>,
    fails: bool,
}

impl ErrorType for Device {
    type Error = ErrorKind;
}

impl SpiDevice for Device {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), ErrorKind> {
        if self.fails {
            return Err(ErrorKind::ModeFault);
        }
        let (mut written, mut read) = (Vec::new(), 0);
        for operation in operations {
            match operation {
                Operation::Write(bytes) => written.extend_from_slice(bytes),
                Operation::Read(buf) => {
                    read += buf.len();
                    for (index, byte) in buf.iter_mut().enumerate() {
                        *byte = index as u8;
                    }
                }
                other => written.push(format!("{other:?}").len() as u8),
            }
        }
        self.seen.push((written, read));
        Ok(())
    }
}

/// Adds up nanoseconds.
#[derive(Default)]
struct Delay(u64);

impl DelayNs for Delay {
    fn delay_ns(&mut self, ns: u32) {
        self.0 += u64::from(ns);
    }
}

#[test]
fn a_transaction_is_one_selection_with_its_bytes_in_order() {
    let mut wire = HalWire::new(Device::default(), Delay::default());
    let mut buf = [0; 3];
    let reads = Transaction {
        address: Address::column(0x0804),
        dummy: 1,
        data: Data::In(&mut buf),
        ..Transaction::command(0x03)
    };
    let writes = Transaction { address: Address::column(7), data: Data::Out(&[1, 2]), ..Transaction::command(0x84) };
    for mut transaction in [reads, writes, Transaction::row(0x10, 0x01_0203), Transaction::command(0x06)] {
        wire.transact(&mut transaction).unwrap();
    }
    wire.wait_us(25);
    let (device, delay) = wire.release();
    assert_eq!(buf, [0, 1, 2]);
    assert_eq!(delay.0, 25_000);
    let expected: [(&[u8], usize); 4] =
        [(&[0x03, 0x08, 0x04, 0], 3), (&[0x84, 0, 7, 1, 2], 0), (&[0x10, 1, 2, 3], 0), (&[0x06], 0)];
    let seen: Vec<_> = device.seen.iter().map(|(written, read)| (written.as_slice(), *read)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn the_error_of_the_bus_is_kept() {
    let device = Device { fails: true, ..Device::default() };
    let error = SpiNand::open(HalWire::new(device, Delay::default())).map(drop).unwrap_err();
    assert_eq!(error, SpiError::Wire(ErrorKind::ModeFault));
    assert_eq!(error.kind(), NandErrorKind::Bus);
}
