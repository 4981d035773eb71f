//! A small driver, as one would write it for one's own board: right, or with one of the mistakes that public drivers had.

use std::borrow::BorrowMut;

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{Operation, SpiDevice};
use nandu_sim::Sim;
use nandu_spi::{ContinuousRead, Part, PlaneSelect, StatusScheme, command};
use nandu_spi_sim::{SpiSim, WireError};

/// What a driver got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// The bits of error correction are taken one place too low.
    ShiftedStatus,
    /// Page size and the number of blocks changed places when the shape was worked out: rows of half the part.
    SwappedGeometry,
    /// A program is not waited for.
    MissingWait,
    /// A program is given the time that it usually takes.
    FixedWait,
    /// The bits of error correction are looked at after a read of the parameter page.
    EccOfParameterPage,
    /// Continuous read is left as it is at power-up.
    ContinuousRead,
    /// A page is copied inside to whatever block.
    CopyAnywhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Wire(WireError),
    Uncorrectable,
    Program,
    Erase,
    /// The part was busy for longer than any operation takes.
    Timeout,
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Failure {
        Failure::Wire(error)
    }
}

pub(crate) struct Small<S: BorrowMut<Sim> = Sim> {
    pub(crate) spi: SpiSim<S>,
    part: Part,
    mistake: Option<Mistake>,
}

impl<S: BorrowMut<Sim>> Small<S> {
    /// Brings the part up.
    pub(crate) fn start(spi: SpiSim<S>, mistake: Option<Mistake>) -> Result<Small<S>, Failure> {
        let part = *spi.part();
        let mut small = Small { spi, part, mistake };
        small.spi.write(&[command::RESET])?;
        small.wait()?;
        small.set(command::REGISTER_LOCK, 0)?;
        let buffered = matches!(part.continuous_read, ContinuousRead::BufferBitClear);
        let wrong = small.mistake == Some(Mistake::ContinuousRead);
        let buffer = if buffered && !wrong { command::CONFIG_BUFFER } else { 0 };
        small.set(command::REGISTER_CONFIG, command::CONFIG_ECC | buffer)?;
        Ok(small)
    }

    pub(crate) fn set(&mut self, register: u8, value: u8) -> Result<(), Failure> {
        Ok(self.spi.write(&[command::SET_FEATURE, register, value])?)
    }

    pub(crate) fn get(&mut self, register: u8) -> Result<u8, Failure> {
        let mut value = [0];
        self.spi
            .transaction(&mut [Operation::Write(&[command::GET_FEATURE, register]), Operation::Read(&mut value)])?;
        Ok(value[0])
    }

    /// Waits until the part is not busy and returns its status.
    pub(crate) fn wait(&mut self) -> Result<u8, Failure> {
        for _ in 0..100_000 {
            let status = self.get(command::REGISTER_STATUS)?;
            if status & command::STATUS_BUSY == 0 {
                return Ok(status);
            }
        }
        Err(Failure::Timeout)
    }

    fn row(&self, block: u32, page: u32) -> [u8; 3] {
        let row = block * self.part.pages_per_block + page;
        let row = if self.mistake == Some(Mistake::SwappedGeometry) {
            // 2,048 blocks and pages of 2,048 bytes were 1,024 and 4,096: half the rows, and the other half are those again.
            row % (self.part.blocks_per_die / 2 * self.part.pages_per_block)
        } else {
            row
        };
        let [_, high, middle, low] = row.to_be_bytes();
        [high, middle, low]
    }

    fn at_row(&mut self, opcode: u8, block: u32, page: u32) -> Result<(), Failure> {
        let [high, middle, low] = self.row(block, page);
        Ok(self.spi.write(&[opcode, high, middle, low])?)
    }

    fn column(&self, block: u32, column: u16) -> [u8; 2] {
        let plane = match self.part.plane_select {
            PlaneSelect::ColumnBit(bit) => ((block % 2) as u16) << bit,
            PlaneSelect::Row => 0,
        };
        (column | plane).to_be_bytes()
    }

    fn is_lost(&mut self, status: u8) -> Result<bool, Failure> {
        let shift = if self.mistake == Some(Mistake::ShiftedStatus) { 3 } else { 4 };
        // The parts of these tests have two bits, or Micron's three.
        let mask = if self.part.status == StatusScheme::Micron { 7 } else { 3 };
        Ok(status >> shift & mask == 2)
    }

    pub(crate) fn read(&mut self, block: u32, page: u32, column: u16, buf: &mut [u8]) -> Result<u8, Failure> {
        self.at_row(command::PAGE_READ, block, page)?;
        let status = self.wait()?;
        if self.is_lost(status)? {
            return Err(Failure::Uncorrectable);
        }
        let [high, low] = self.column(block, column);
        self.spi.transaction(&mut [Operation::Write(&[command::READ_CACHE, high, low, 0]), Operation::Read(buf)])?;
        Ok(status)
    }

    pub(crate) fn load(&mut self, opcode: u8, block: u32, column: u16, data: &[u8]) -> Result<(), Failure> {
        self.spi.write(&[command::WRITE_ENABLE])?;
        let [high, low] = self.column(block, column);
        self.spi.transaction(&mut [Operation::Write(&[opcode, high, low]), Operation::Write(data)])?;
        Ok(())
    }

    pub(crate) fn execute(&mut self, block: u32, page: u32) -> Result<(), Failure> {
        self.at_row(command::PROGRAM_EXECUTE, block, page)?;
        match self.mistake {
            Some(Mistake::MissingWait) => return Ok(()),
            Some(Mistake::FixedWait) => {
                self.spi.delay_us(self.part.times.program_us);
                return Ok(());
            }
            _ => {}
        }
        let failed = self.wait()? & command::STATUS_PROGRAM_FAILED != 0;
        if failed { Err(Failure::Program) } else { Ok(()) }
    }

    pub(crate) fn program(&mut self, block: u32, page: u32, column: u16, data: &[u8]) -> Result<(), Failure> {
        self.load(command::PROGRAM_LOAD, block, column, data)?;
        self.execute(block, page)
    }

    pub(crate) fn erase(&mut self, block: u32) -> Result<(), Failure> {
        self.spi.write(&[command::WRITE_ENABLE])?;
        self.at_row(command::BLOCK_ERASE, block, 0)?;
        let failed = self.wait()? & command::STATUS_ERASE_FAILED != 0;
        if failed { Err(Failure::Erase) } else { Ok(()) }
    }

    /// Copies a page inside the part where that is allowed, and over the wire elsewhere.
    pub(crate) fn copy(&mut self, from: (u32, u32), to: (u32, u32)) -> Result<(), Failure> {
        let may = self.part.geometry().may_copy(nandu_nand::BlockAddr(from.0), nandu_nand::BlockAddr(to.0));
        if !may && self.mistake != Some(Mistake::CopyAnywhere) {
            let mut data = vec![0; self.part.page_size as usize];
            self.read(from.0, from.1, 0, &mut data)?;
            return self.program(to.0, to.1, 0, &data);
        }
        self.at_row(command::PAGE_READ, from.0, from.1)?;
        let status = self.wait()?;
        if self.is_lost(status)? {
            return Err(Failure::Uncorrectable);
        }
        self.spi.write(&[command::WRITE_ENABLE])?;
        self.execute(to.0, to.1)
    }

    /// The first copy of the parameter page, read with error correction off.
    pub(crate) fn parameter_page(&mut self) -> Result<[u8; 256], Failure> {
        let config = self.get(command::REGISTER_CONFIG)?;
        self.set(command::REGISTER_CONFIG, config & !command::CONFIG_ECC | command::CONFIG_OTP)?;
        self.spi.write(&[command::PAGE_READ, 0, 0, 1])?;
        let status = self.wait()?;
        let is_lost = self.is_lost(status)? && self.mistake == Some(Mistake::EccOfParameterPage);
        let mut bytes = [0; 256];
        self.spi.transaction(&mut [Operation::Write(&[command::READ_CACHE, 0, 0, 0]), Operation::Read(&mut bytes)])?;
        self.set(command::REGISTER_CONFIG, config)?;
        if is_lost { Err(Failure::Uncorrectable) } else { Ok(bytes) }
    }
}

/// A row of the table with fewer blocks.
pub(crate) fn part(name: &str, block_count: u32) -> Part {
    let part = Part::by_name(name, nandu_spi::PARTS).unwrap();
    Part { blocks_per_die: block_count / u32::from(part.die_count), bad_block_max: 2, ..*part }
}

/// A part of this name with 16 blocks and a driver for it that started.
pub(crate) fn small(name: &str, mistake: Option<Mistake>) -> Small {
    Small::start(SpiSim::blank(&part(name, 16)), mistake).unwrap()
}
