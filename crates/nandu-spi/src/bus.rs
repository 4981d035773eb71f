//! Single commands to a part, without knowing which it is.

use crate::command::{
    GET_FEATURE, IDENTITY_SIZE, READ_ID, REGISTER_STATUS, RELEASE_POWER_DOWN, RESET, SET_FEATURE, STATUS_BUSY,
    STATUS_WRITE_ENABLED, WRITE_ENABLE,
};
use crate::error::{Operation, SpiError};
use crate::part::{IdMethod, PowerDown, Times};
use crate::wire::{Address, Data, Lanes, Transaction, Wire};

/// How long an operation takes: before the first look, between looks, and at most.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    operation: Operation,
    first_us: u32,
    step_us: u32,
    limit_us: u32,
}

impl Patience {
    const fn new(operation: Operation, usual_us: u32, limit_us: u32) -> Patience {
        let step_us = usual_us / 8 + 1;
        Patience { operation, first_us: usual_us, step_us, limit_us }
    }

    pub(crate) const fn read(times: &Times) -> Patience {
        Patience::new(Operation::Read, times.read_us, times.read_limit_us)
    }

    pub(crate) const fn program(times: &Times) -> Patience {
        Patience::new(Operation::Program, times.program_us, times.program_limit_us)
    }

    pub(crate) const fn erase(times: &Times) -> Patience {
        Patience::new(Operation::Erase, times.erase_us, times.erase_limit_us)
    }

    /// For whatever goes on from before: it may be over.
    const fn leftover(times: &Times) -> Patience {
        Patience { first_us: 0, ..Patience::erase(times) }
    }

    const fn reset(times: &Times) -> Patience {
        Patience::new(Operation::Reset, RESET_US, times.reset_limit_us)
    }
}

/// What a reset of an idle part takes, in microseconds; parts say 5 to 10.
const RESET_US: u32 = 16;

/// A wire with a part at its end.
#[derive(Debug)]
pub(crate) struct Bus<W> {
    pub(crate) wire: W,
}

impl<W: Wire> Bus<W> {
    pub(crate) fn transact(&mut self, mut transaction: Transaction<'_>) -> Result<(), SpiError<W::Error>> {
        self.wire.transact(&mut transaction).map_err(SpiError::Wire)
    }

    pub(crate) fn command(&mut self, opcode: u8) -> Result<(), SpiError<W::Error>> {
        self.transact(Transaction::command(opcode))
    }

    pub(crate) fn row(&mut self, opcode: u8, row: u32) -> Result<(), SpiError<W::Error>> {
        self.transact(Transaction::row(opcode, row))
    }

    pub(crate) fn get(&mut self, register: u8) -> Result<u8, SpiError<W::Error>> {
        let mut value = [0];
        self.transact(Transaction {
            address: Address::register(register),
            data: Data::In(&mut value),
            ..Transaction::command(GET_FEATURE)
        })?;
        Ok(value[0])
    }

    pub(crate) fn set(&mut self, register: u8, value: u8) -> Result<(), SpiError<W::Error>> {
        self.transact(Transaction {
            address: Address::register(register),
            data: Data::Out(&[value]),
            ..Transaction::command(SET_FEATURE)
        })
    }

    /// Writes a register and looks whether it took the bits of the mask.
    pub(crate) fn set_checked(&mut self, register: u8, value: u8, mask: u8) -> Result<(), SpiError<W::Error>> {
        self.set(register, value)?;
        let found = self.get(register)?;
        if found & mask == value & mask {
            Ok(())
        } else {
            Err(SpiError::Register { register, expected: value & mask, found, mask })
        }
    }

    /// One byte that a command answers after a dummy byte.
    pub(crate) fn answer(&mut self, opcode: u8) -> Result<u8, SpiError<W::Error>> {
        let mut value = [0];
        self.transact(Transaction { dummy: 1, data: Data::In(&mut value), ..Transaction::command(opcode) })?;
        Ok(value[0])
    }

    pub(crate) fn read_cache(
        &mut self,
        opcode: u8,
        lanes: Lanes,
        column: u16,
        buf: &mut [u8],
    ) -> Result<(), SpiError<W::Error>> {
        let address = Address::column(column);
        self.transact(Transaction { opcode, address, dummy: 1, data: Data::In(buf), lanes })
    }

    pub(crate) fn load(
        &mut self,
        opcode: u8,
        lanes: Lanes,
        column: u16,
        data: &[u8],
    ) -> Result<(), SpiError<W::Error>> {
        let address = Address::column(column);
        self.transact(Transaction { opcode, address, dummy: 0, data: Data::Out(data), lanes })
    }

    /// Waits until the part is no longer busy. Only then the other bits of the status, which it returns, mean anything.
    ///
    /// Time is what the wire was asked to wait, so a slow bus makes the limit longer and never shorter.
    pub(crate) fn wait(&mut self, patience: Patience) -> Result<u8, SpiError<W::Error>> {
        if patience.first_us > 0 {
            self.wire.wait_us(patience.first_us);
        }
        let mut waited_us = patience.first_us;
        loop {
            let status = self.get(REGISTER_STATUS)?;
            if status & STATUS_BUSY == 0 {
                return Ok(status);
            }
            if waited_us >= patience.limit_us {
                return Err(SpiError::Timeout(patience.operation));
            }
            self.wire.wait_us(patience.step_us);
            waited_us = waited_us.saturating_add(patience.step_us);
        }
    }

    /// Allows a program or erase and makes sure that the part heard it. A bus that is dead reads as zeros or ones, and a part that
    /// has lost power and come back would answer every status with success.
    pub(crate) fn enable(&mut self) -> Result<(), SpiError<W::Error>> {
        self.command(WRITE_ENABLE)?;
        let status = self.get(REGISTER_STATUS)?;
        if status & (STATUS_WRITE_ENABLED | STATUS_BUSY) == STATUS_WRITE_ENABLED {
            Ok(())
        } else {
            Err(SpiError::Silent)
        }
    }

    /// Wakes a part from deep power-down.
    pub(crate) fn rouse(&mut self, power_down: PowerDown) -> Result<(), SpiError<W::Error>> {
        self.command(RELEASE_POWER_DOWN)?;
        self.wire.wait_us(power_down.wake_us);
        Ok(())
    }

    /// Lets what goes on in the part come to its end, and resets it. An erase that goes on is waited for and not cut short: a cut
    /// erase is a torn block.
    pub(crate) fn quiet(&mut self, times: &Times) -> Result<(), SpiError<W::Error>> {
        match self.wait(Patience::leftover(times)) {
            Ok(_) | Err(SpiError::Timeout(_)) => {}
            Err(error) => return Err(error),
        }
        self.command(RESET)?;
        self.wait(Patience::reset(times)).map(drop)
    }

    pub(crate) fn identity(&mut self, method: IdMethod) -> Result<[u8; IDENTITY_SIZE], SpiError<W::Error>> {
        let mut identity = [0; IDENTITY_SIZE];
        // An address byte of zero and a dummy byte are the same on the wire.
        let dummy = u8::from(method != IdMethod::Direct);
        self.transact(Transaction { dummy, data: Data::In(&mut identity), ..Transaction::command(READ_ID) })?;
        Ok(identity)
    }
}
