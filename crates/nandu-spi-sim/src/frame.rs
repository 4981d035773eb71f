//! Bytes between chip select going low and going high again.

use std::borrow::BorrowMut;
use std::error::Error;
use std::fmt;

use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{self, ErrorKind, Operation, SpiDevice};
use nandu_sim::Sim;
use nandu_spi::{Data, DieSelect, IdMethod, Lanes, PlaneSelect, StatusScheme, Transaction, Wire, command};

use crate::SpiSim;
use crate::command::{Flow, READ_CACHE_FAST, Shape, shape};
use crate::sim::{Sleep, WireFault};
use crate::unit::Filled;

/// Why a transaction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// Something went wrong on the bus: the transaction, or the one before it, was carried out or was not.
    Bus,
    /// The part has no power.
    Gone,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WireError::Bus => "a transfer failed",
            WireError::Gone => "the part has no power",
        })
    }
}

impl Error for WireError {}

impl spi::Error for WireError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

/// A transaction under way.
struct Frame {
    opcode: u8,
    /// `None` before the opcode came.
    shape: Option<Shape>,
    header: [u8; 4],
    header_size: usize,
    /// Bytes of data that went over the wire.
    position: usize,
    /// The data of a command that takes one byte.
    value: Option<u8>,
    /// On how many lanes data go.
    lanes: Lanes,
    fault: Option<WireFault>,
    /// What all bytes from the part are, if it hears nothing.
    deaf: Option<u8>,
}

impl Frame {
    /// Whether address and dummy bytes are complete.
    fn is_ready(&self) -> bool {
        self.shape.is_some_and(|shape| self.header_size == usize::from(shape.address + shape.dummy))
    }

    fn flow(&self) -> Flow {
        self.shape.map_or(Flow::None, |shape| shape.flow)
    }

    fn row(&self) -> u32 {
        u32::from_be_bytes([0, self.header[0], self.header[1], self.header[2]])
    }

    /// How many lanes the data go on.
    fn lane_count(&self) -> u64 {
        match self.lanes {
            Lanes::One => 1,
            Lanes::Two => 2,
            Lanes::Four => 4,
        }
    }
}

impl<S: BorrowMut<Sim>> SpiSim<S> {
    /// Chip select goes low.
    fn open(&mut self, lanes: Lanes) -> Result<Frame, WireError> {
        self.advance(0);
        if self.sim().is_off() {
            self.lost_power = true;
            return Err(WireError::Gone);
        }
        if self.lost_power {
            self.wake();
        }
        let fault = self.faults.remove(&self.transactions);
        self.transactions += 1;
        let bus_failed = std::mem::take(&mut self.unit().bus_failed);
        if bus_failed || fault == Some(WireFault::Refused) {
            return Err(WireError::Bus);
        }
        if fault == Some(WireFault::PowerLost) {
            self.lose_power();
            // A cut of the chip may have been due.
            if self.sim().is_off() {
                self.lost_power = true;
                return Err(WireError::Gone);
            }
        }
        self.stuck = fault == Some(WireFault::Stuck);
        if let Some(WireFault::Dead(level)) = fault {
            self.dead = Some(level);
        }
        let deaf = self.dead;
        self.excused |= deaf.is_some();
        Ok(Frame {
            opcode: 0,
            shape: None,
            header: [0; 4],
            header_size: 0,
            position: 0,
            value: None,
            lanes,
            fault,
            deaf,
        })
    }

    /// Bytes to the part; what it sends meanwhile is not looked at.
    fn shift_in(&mut self, frame: &mut Frame, bytes: &[u8]) {
        if frame.deaf.is_some() {
            return self.advance(Self::byte_ns(bytes.len(), 1));
        }
        let mut rest = bytes;
        while !(frame.is_ready() && frame.flow() == Flow::ToPart) {
            let Some((&first, others)) = rest.split_first() else { return };
            self.byte(frame, Some(first));
            rest = others;
        }
        self.take(frame, rest);
    }

    /// Bytes from the part.
    fn shift_out(&mut self, frame: &mut Frame, bytes: &mut [u8]) {
        if let Some(level) = frame.deaf {
            bytes.fill(level);
            return self.advance(Self::byte_ns(bytes.len(), 1));
        }
        let mut rest = bytes;
        while !(frame.is_ready() && frame.flow() == Flow::FromPart) {
            let Some((first, others)) = rest.split_first_mut() else { return };
            *first = self.byte(frame, None);
            rest = others;
        }
        self.give(frame, rest);
    }

    /// One byte in each direction. The part's own is FFh where it sends nothing.
    fn byte(&mut self, frame: &mut Frame, input: Option<u8>) -> u8 {
        if let Some(level) = frame.deaf {
            self.advance(Self::byte_ns(1, 1));
            return level;
        }
        let Some(shape) = frame.shape else {
            match input {
                Some(opcode) => self.opcode(frame, opcode),
                None => self.refuse("a transaction begins with bytes from the part and not with an opcode"),
            }
            return 0xFF;
        };
        if frame.is_ready() {
            let mut output = [0xFF];
            match (shape.flow, input) {
                (Flow::FromPart, _) => self.give(frame, &mut output),
                (Flow::ToPart, Some(byte)) => self.take(frame, &[byte]),
                (Flow::ToPart, None) => self.refuse("bytes are read where the part takes data"),
                (Flow::None, _) => self.refuse("the transaction goes on behind the end of the command"),
            }
            return output[0];
        }
        if input.is_none() && frame.header_size < usize::from(shape.address) {
            self.refuse("bytes are read before the address is complete");
        }
        self.header_byte(frame, input.unwrap_or(0));
        0xFF
    }

    fn header_byte(&mut self, frame: &mut Frame, byte: u8) {
        self.advance(Self::byte_ns(1, 1));
        frame.header[frame.header_size] = byte;
        frame.header_size += 1;
        if let Some(entry) = self.history.current() {
            entry.note_header(byte);
        }
        if frame.is_ready() {
            self.ready(frame);
        }
    }

    /// The first byte.
    fn opcode(&mut self, frame: &mut Frame, opcode: u8) {
        self.history.open(self.transactions - 1, self.now_ns, opcode);
        self.advance(Self::byte_ns(1, 1));
        let Some(shape) = shape(opcode) else {
            self.refuse(&format!("opcode {opcode:02X}h is no command that is known here"));
        };
        (frame.opcode, frame.shape) = (opcode, Some(shape));
        let part = self.part;
        let is_known = match opcode {
            command::SELECT_DIE => part.die_select == DieSelect::Command,
            command::READ_ECC_STATUS => matches!(part.status, StatusScheme::Macronix4 | StatusScheme::Macronix8),
            command::DEEP_POWER_DOWN | command::RELEASE_POWER_DOWN => part.power_down.is_some(),
            _ => true,
        };
        if !is_known {
            self.refuse(&format!("the part does not know {}", shape.name));
        }
        match self.sleep {
            Sleep::Asleep { from_ns } if opcode == command::RELEASE_POWER_DOWN && self.now_ns < from_ns => {
                return self.ignore(frame, "release before the part has gone to sleep");
            }
            Sleep::Asleep { .. } if opcode == command::RELEASE_POWER_DOWN => {}
            // Nobody is blamed: after a reset a processor does not know. The pins are left alone.
            Sleep::Asleep { .. } => return frame.deaf = Some(0xFF),
            Sleep::Waking { until_ns } if self.now_ns < until_ns => {
                return self.ignore(frame, &format!("{} before the part has woken up", shape.name));
            }
            Sleep::Waking { .. } | Sleep::Awake => self.sleep = Sleep::Awake,
        }
        let unit = &self.units[self.selected];
        // Another die may be told something, and registers tell which die.
        let is_other = opcode == command::SET_FEATURE && part.die_select == DieSelect::Register;
        let may_be_busy = matches!(opcode, command::GET_FEATURE | command::RESET | command::SELECT_DIE) || is_other;
        if unit.pending.is_some() && !may_be_busy {
            return self.ignore(frame, &format!("{} while the part is busy", shape.name));
        }
        if shape.lanes != frame.lanes && shape.flow != Flow::None {
            self.refuse(&format!("the data of {} go on lanes: {:?}, not {:?}", shape.name, shape.lanes, frame.lanes));
        }
        if shape.lanes == Lanes::Four && part.quad_bit && unit.config & command::CONFIG_QUAD == 0 {
            let reason = format!("{} without the bit in register B0h that allows four lanes", shape.name);
            return self.ignore(frame, &reason);
        }
        if shape.flow == Flow::ToPart && shape.address == 2 && part.maker == "Winbond" && !unit.write_enabled {
            let reason = format!("{} without write enable, which Winbond's parts ignore", shape.name);
            return self.ignore(frame, &reason);
        }
        if frame.is_ready() {
            self.ready(frame);
        }
    }

    /// Address and dummy bytes are complete.
    fn ready(&mut self, frame: &mut Frame) {
        let register = frame.header[0];
        match frame.opcode {
            command::GET_FEATURE | command::SET_FEATURE if self.unit().pending.is_some() => {
                let is_status = frame.opcode == command::GET_FEATURE && register == command::REGISTER_STATUS;
                if !is_status && register != command::REGISTER_DIE {
                    self.ignore(frame, &format!("register {register:02X}h while the part is busy"));
                }
            }
            command::READ_CACHE | READ_CACHE_FAST | command::READ_CACHE_X2 | command::READ_CACHE_X4 => {
                self.check_cache(frame);
            }
            command::PROGRAM_LOAD | command::PROGRAM_LOAD_X4 => {
                let clears = self.part.programs_per_page > 1;
                let unit = self.unit();
                if clears {
                    unit.cache.bytes.fill(0xFF);
                }
                unit.cache.refill(Filled::Loaded);
                self.note_plane(frame);
            }
            command::PROGRAM_LOAD_MORE | command::PROGRAM_LOAD_MORE_X4 => {
                if self.unit().cache.filled == Filled::Nothing {
                    let reason =
                        "a random load keeps the rest of the cache, which holds nothing since power-up or reset";
                    return self.ignore(frame, reason);
                }
                self.note_plane(frame);
            }
            _ => {}
        }
    }

    /// What the part does not do, and nobody may ask of it who knows its state.
    fn ignore(&mut self, frame: &mut Frame, reason: &str) {
        if !self.excused {
            self.refuse(reason);
        }
        frame.deaf = Some(0xFF);
    }

    /// Column and plane of a command; a part without plane bit has none.
    fn column(&self, frame: &Frame) -> (u32, Option<u32>) {
        let address = u32::from(u16::from_be_bytes([frame.header[0], frame.header[1]]));
        match self.part.plane_select {
            PlaneSelect::Row => (address, None),
            PlaneSelect::ColumnBit(bit) => (address & !(1 << bit), Some(address >> bit & 1)),
        }
    }

    fn note_plane(&mut self, frame: &Frame) {
        if let (_, Some(plane)) = self.column(frame) {
            self.unit().cache.planes.push(plane);
        }
    }

    /// Looks whether what a read of the cache asks for is there.
    fn check_cache(&mut self, frame: &mut Frame) {
        match self.unit().cache.filled {
            Filled::Nothing => self.ignore(frame, "read of a cache that holds nothing since power-up or reset"),
            Filled::Info | Filled::Loaded => {}
            Filled::Page(page) => {
                let right = self.geometry().plane_of(self.geometry().block_of(page));
                if let (_, Some(plane)) = self.column(frame)
                    && plane != right
                {
                    let reason = format!("read of the cache of plane {plane}, and page {page} is in plane {right}");
                    self.ignore(frame, &reason);
                }
            }
        }
    }

    /// Looks whether so many more bytes of data fit the page.
    fn check_columns(&self, frame: &Frame, size: usize) -> u32 {
        let (column, _) = self.column(frame);
        let first = column as usize + frame.position;
        let columns = self.geometry().column_count();
        if first + size > columns as usize {
            self.refuse(&format!("columns {column}..{} are outside the page, which has {columns}", first + size));
        }
        first as u32
    }

    /// Data from the part.
    fn give(&mut self, frame: &mut Frame, bytes: &mut [u8]) {
        let part = self.part;
        let lanes = frame.lane_count();
        match frame.opcode {
            command::GET_FEATURE => {
                let register = frame.header[0];
                for byte in bytes.iter_mut() {
                    // It is looked at anew for each byte.
                    self.advance(Self::byte_ns(1, lanes));
                    let selected = (self.selected as u8) << 6;
                    *byte = match self.unit().register(&part, register) {
                        Some(_) if register == command::REGISTER_DIE && part.die_select == DieSelect::Register => {
                            selected
                        }
                        Some(value) => value,
                        None => self.refuse(&format!("the part has no register {register:02X}h")),
                    };
                }
            }
            command::READ_ID => {
                let dummy = usize::from(part.id.method != IdMethod::Direct);
                for (at, byte) in (frame.position..).zip(bytes.iter_mut()) {
                    *byte = match at.checked_sub(dummy) {
                        Some(at) => part.id.bytes.get(at).copied().unwrap_or(0),
                        None => 0xFF,
                    };
                }
            }
            command::READ_ECC_STATUS => bytes.fill(self.unit().code(&part).more),
            _ if self.unit().is_continuous(&part) => self.give_continuously(frame.position, bytes),
            _ => {
                let first = self.check_columns(frame, bytes.len()) as usize;
                bytes.copy_from_slice(&self.unit().cache.bytes[first..first + bytes.len()]);
            }
        }
        if frame.opcode != command::GET_FEATURE {
            self.advance(Self::byte_ns(bytes.len(), lanes));
        }
        self.note_data(frame, bytes);
    }

    /// A continuous read: the main areas of the page in the cache and of those after it, from the first column on.
    fn give_continuously(&mut self, position: usize, bytes: &mut [u8]) {
        let page_size = self.part.page_size as usize;
        for (at, byte) in (position..).zip(bytes.iter_mut()) {
            let next = at / page_size;
            *byte = match self.unit().cache.filled {
                Filled::Page(page) if next > 0 => {
                    let page = nandu_nand::PageAddr(page.0 + next as u32);
                    let is_there = self.geometry().contains_page(page);
                    if is_there { self.sim().peek(page)[at % page_size] } else { 0xFF }
                }
                _ if next > 0 => 0xFF,
                _ => self.unit().cache.bytes[at],
            };
        }
    }

    /// Data to the part.
    fn take(&mut self, frame: &mut Frame, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.advance(Self::byte_ns(bytes.len(), frame.lane_count()));
        if matches!(frame.opcode, command::SET_FEATURE | command::SELECT_DIE) {
            if frame.value.is_some() || bytes.len() > 1 {
                self.refuse("more than one byte for a register");
            }
            frame.value = bytes.first().copied();
        } else {
            let first = self.check_columns(frame, bytes.len());
            self.unit().cache.load(first, bytes);
        }
        self.note_data(frame, bytes);
    }

    fn note_data(&mut self, frame: &mut Frame, bytes: &[u8]) {
        frame.position += bytes.len();
        if let Some(entry) = self.history.current() {
            entry.note_data(bytes);
        }
    }

    /// Into deep power-down, or out of it.
    fn change_sleep(&mut self, opcode: u8) {
        let Some(times) = self.part.power_down else { return };
        let behind_ns = |us: u32| self.now_ns + u64::from(us) * 1000;
        self.sleep = match (opcode, self.sleep) {
            (command::DEEP_POWER_DOWN, _) => Sleep::Asleep { from_ns: behind_ns(times.enter_us) },
            (_, Sleep::Asleep { .. }) => Sleep::Waking { until_ns: behind_ns(times.wake_us) },
            (_, other) => other,
        };
    }

    /// Chip select goes high: the part does what it was told.
    fn close(&mut self, frame: &Frame) -> Result<(), WireError> {
        let Some(shape) = frame.shape else { return Ok(()) };
        if frame.deaf.is_some() {
            self.stuck = false;
            self.history.close();
            return Ok(());
        }
        if !frame.is_ready() {
            self.refuse(&format!("{} ends in the middle of its address", shape.name));
        }
        match frame.opcode {
            command::RESET => self.reset(),
            command::WRITE_ENABLE => self.unit().write_enabled = true,
            command::WRITE_DISABLE => self.unit().write_enabled = false,
            command::DEEP_POWER_DOWN | command::RELEASE_POWER_DOWN => self.change_sleep(frame.opcode),
            command::PAGE_READ => self.page_read(frame.row()),
            command::PROGRAM_EXECUTE => self.program_execute(frame.row()),
            command::BLOCK_ERASE => self.block_erase(frame.row()),
            command::SET_FEATURE | command::SELECT_DIE => {
                let Some(value) = frame.value else { self.refuse(&format!("{} without its byte", shape.name)) };
                if frame.opcode == command::SELECT_DIE {
                    self.select(value)
                } else {
                    self.set_feature(frame.header[0], value)
                }
            }
            _ => {}
        }
        self.stuck = false;
        self.history.close();
        if self.lost_power {
            Err(WireError::Gone)
        } else if std::mem::take(&mut self.unit().bus_failed) || frame.fault == Some(WireFault::Unreported) {
            Err(WireError::Bus)
        } else {
            Ok(())
        }
    }
}

impl<S: BorrowMut<Sim>> spi::ErrorType for SpiSim<S> {
    type Error = WireError;
}

impl<S: BorrowMut<Sim>> SpiDevice for SpiSim<S> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), WireError> {
        let mut frame = self.open(Lanes::One)?;
        for operation in operations {
            match operation {
                Operation::Read(bytes) => self.shift_out(&mut frame, bytes),
                Operation::Write(bytes) => self.shift_in(&mut frame, bytes),
                Operation::Transfer(read, write) => {
                    for at in 0..read.len().max(write.len()) {
                        let output = self.byte(&mut frame, Some(write.get(at).copied().unwrap_or(0)));
                        if let Some(byte) = read.get_mut(at) {
                            *byte = output;
                        }
                    }
                }
                Operation::TransferInPlace(bytes) => {
                    for byte in bytes.iter_mut() {
                        *byte = self.byte(&mut frame, Some(*byte));
                    }
                }
                Operation::DelayNs(duration_ns) => self.advance(u64::from(*duration_ns)),
            }
        }
        self.close(&frame)
    }
}

impl<S: BorrowMut<Sim>> DelayNs for SpiSim<S> {
    fn delay_ns(&mut self, ns: u32) {
        self.advance(u64::from(ns));
    }
}

impl<S: BorrowMut<Sim>> Wire for SpiSim<S> {
    type Error = WireError;

    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), WireError> {
        let mut frame = self.open(transaction.lanes)?;
        self.shift_in(&mut frame, &[transaction.opcode]);
        let address = transaction.address.bytes();
        if let Some(shape) = frame.shape
            && transaction.opcode != command::READ_ID
            && (address.len() != usize::from(shape.address) || transaction.dummy != shape.dummy)
        {
            let (addresses, dummies) = (address.len(), transaction.dummy);
            self.refuse(&format!(
                "{} has {} address and {} dummy bytes, not {addresses} and {dummies}",
                shape.name, shape.address, shape.dummy
            ));
        }
        let dummies = [0; u8::MAX as usize];
        let zeros = &dummies[..usize::from(transaction.dummy)];
        for &byte in address.iter().chain(zeros) {
            self.byte(&mut frame, Some(byte));
        }
        match &mut transaction.data {
            Data::None => {}
            Data::In(bytes) => self.shift_out(&mut frame, bytes),
            Data::Out(bytes) => self.shift_in(&mut frame, bytes),
        }
        self.close(&frame)
    }

    fn wait_us(&mut self, microseconds: u32) {
        self.advance(u64::from(microseconds) * 1000);
    }

    fn lanes(&self) -> Lanes {
        Lanes::Four
    }
}
