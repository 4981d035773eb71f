//! What moves bytes between a processor and a part.

/// On how many lanes the data of a transaction goes. Opcode, address and dummy bytes go on one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lanes {
    /// One lane for each direction: plain SPI.
    #[default]
    One,
    /// Two.
    Two,
    /// Four.
    Four,
}

/// The address bytes of a transaction, at most three, as they go over the wire: the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    bytes: [u8; 3],
    size: u8,
}

impl Address {
    /// No address.
    pub const NONE: Address = Address { bytes: [0; 3], size: 0 };

    /// One byte: the address of a register.
    pub const fn register(register: u8) -> Address {
        Address { bytes: [register, 0, 0], size: 1 }
    }

    /// Two bytes: a column, with the plane's bit if the part has one.
    pub const fn column(column: u16) -> Address {
        let [high, low] = column.to_be_bytes();
        Address { bytes: [high, low, 0], size: 2 }
    }

    /// Three bytes: a row, which is the number of a page in its die. Bits above 24 are lost.
    pub const fn row(row: u32) -> Address {
        let [_, high, middle, low] = row.to_be_bytes();
        Address { bytes: [high, middle, low], size: 3 }
    }

    /// The bytes, the first to be sent first.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }

    /// The number that the bytes are.
    pub fn value(&self) -> u32 {
        self.bytes().iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
    }
}

/// The data of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub enum Data<'a> {
    /// There are none.
    None,
    /// From the part, which fills all of it.
    In(&'a mut [u8]),
    /// To the part.
    Out(&'a [u8]),
}

/// One transaction: what happens between chip select going low and going high again.
///
/// On the wire stand, in this order: the opcode (one byte), the address bytes, the dummy bytes, the data. A plain SPI peripheral sends
/// the first three as bytes, dummy bytes as zeros; a QSPI controller has a field for each. There is no transaction that sends data and
/// receives data.
///
/// ```text
/// reset                FFh
/// identity             9Fh  -  1 dummy  in    (the dummy byte is a zero, which parts that want an address take for address 0)
/// get, set feature     0Fh, 1Fh  register (1)  in or out (1)
/// page read            13h  row (3)
/// read cache           03h  column (2)  1 dummy  in         3Bh, 6Bh: data on two or four lanes
/// program load         02h  column (2)  out                 32h: data on four lanes
/// program load more    84h  column (2)  out                 34h: data on four lanes
/// program execute      10h  row (3)
/// block erase          D8h  row (3)
/// write enable         06h
/// select die           C2h  out (1)                         Winbond
/// read ECC status      7Ch  1 dummy  in (1)                 Macronix
/// power down, release  B9h, ABh                             where the row of the part says so
/// ```
#[derive(Debug, PartialEq, Eq)]
pub struct Transaction<'a> {
    /// The first byte.
    pub opcode: u8,
    /// Address bytes after it.
    pub address: Address,
    /// Dummy bytes after those, eight clocks each, sent as zeros; at most [`DUMMY_MAX`](Transaction::DUMMY_MAX).
    pub dummy: u8,
    /// What comes last.
    pub data: Data<'a>,
    /// On how many lanes the data goes.
    pub lanes: Lanes,
}

impl<'a> Transaction<'a> {
    /// Most dummy bytes that a transaction has.
    pub const DUMMY_MAX: u8 = 4;

    /// An opcode and nothing else.
    pub const fn command(opcode: u8) -> Transaction<'a> {
        Transaction { opcode, address: Address::NONE, dummy: 0, data: Data::None, lanes: Lanes::One }
    }

    /// An opcode and a row.
    pub const fn row(opcode: u8, row: u32) -> Transaction<'a> {
        Transaction { address: Address::row(row), ..Transaction::command(opcode) }
    }
}

/// Moves the bytes of transactions to one part and back.
///
/// An implementation owns chip select and the bus. It neither knows the part nor interprets what it moves.
pub trait Wire {
    /// What can go wrong on the bus.
    type Error: core::fmt::Debug + 'static;

    /// Carries out one transaction. After `Ok` every byte of it went over the wire, and a buffer for data from the part is full.
    ///
    /// # Errors
    ///
    /// The bus's own. Then nothing is known of how far the transaction went, and the driver brings the part to a known state before it
    /// says anything else to it.
    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Self::Error>;

    /// Lets at least so many microseconds pass. This is where an RTOS lets others run: the driver calls it before each look at whether
    /// the part is still busy.
    fn wait_us(&mut self, microseconds: u32);

    /// On how many lanes data can go, at most. The driver never asks for more.
    fn lanes(&self) -> Lanes {
        Lanes::One
    }
}

impl<W: Wire + ?Sized> Wire for &mut W {
    type Error = W::Error;

    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), W::Error> {
        (**self).transact(transaction)
    }

    fn wait_us(&mut self, microseconds: u32) {
        (**self).wait_us(microseconds);
    }

    fn lanes(&self) -> Lanes {
        (**self).lanes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_byte_of_an_address_goes_first() {
        assert_eq!(Address::row(0x01_2345).bytes(), [0x01, 0x23, 0x45]);
        assert_eq!(Address::column(0x0804).bytes(), [0x08, 0x04]);
        assert_eq!(Address::register(0xc0).bytes(), [0xc0]);
        assert_eq!(Address::NONE.bytes(), []);
        assert_eq!(Address::row(0x01_2345).value(), 0x01_2345);
    }
}
