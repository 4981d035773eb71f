//! A part that does as its row says, keeps what was said to it and notes what no data sheet allows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use nandu_spi::command::*;
use nandu_spi::{ContinuousRead, Data, DieSelect, Lanes, Part, PlaneSelect, Transaction, Wire};

/// What the wire says when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) usize);

/// The state of a part. Times are in microseconds.
pub(crate) struct Fake {
    pub(crate) part: &'static Part,
    pub(crate) pages: HashMap<(u8, u32), Vec<u8>>,
    pub(crate) registers: HashMap<(u8, u8), u8>,
    /// Opcodes, in order.
    pub(crate) log: Vec<u8>,
    /// What no data sheet allows.
    pub(crate) violations: Vec<String>,
    /// Status bits after a read of a page, and what is read besides the status.
    pub(crate) ecc: HashMap<u32, (u8, u8)>,
    pub(crate) program_fails: bool,
    pub(crate) erase_fails: bool,
    /// The transaction, counted from 0, that fails on the wire.
    pub(crate) broken_at: Option<usize>,
    /// The transaction before which the power goes and comes back.
    pub(crate) power_at: Option<usize>,
    /// Every byte that comes from a dead bus.
    pub(crate) dead: Option<u8>,
    /// A command that the part does not hear.
    pub(crate) deaf_to: Option<u8>,
    /// Operations never end.
    pub(crate) stuck: bool,
    pub(crate) lanes: Lanes,
    pub(crate) identity: [u8; IDENTITY_SIZE],
    pub(crate) now: u64,
    die: u8,
    busy_until: u64,
    is_enabled: bool,
    status: u8,
    more: u8,
    row: u32,
    cache: Vec<u8>,
}

#[derive(Clone)]
pub(crate) struct Handle(pub(crate) Rc<RefCell<Fake>>);

impl Handle {
    pub(crate) fn new(part: &'static Part) -> Handle {
        let mut identity = [0; IDENTITY_SIZE];
        identity[..part.id.bytes.len()].copy_from_slice(part.id.bytes);
        let mut fake = Fake {
            part,
            pages: HashMap::new(),
            registers: HashMap::new(),
            log: Vec::new(),
            violations: Vec::new(),
            ecc: HashMap::new(),
            program_fails: false,
            erase_fails: false,
            broken_at: None,
            power_at: None,
            dead: None,
            deaf_to: None,
            stuck: false,
            lanes: Lanes::One,
            identity,
            now: 0,
            die: 0,
            busy_until: 0,
            is_enabled: false,
            status: 0,
            more: 0,
            row: 0,
            cache: Vec::new(),
        };
        fake.power_up();
        Handle(Rc::new(RefCell::new(fake)))
    }
}

impl Fake {
    fn column_count(&self) -> usize {
        (self.part.page_size + self.part.spare_size) as usize
    }

    pub(crate) fn power_up(&mut self) {
        let mut config = CONFIG_ECC;
        match self.part.continuous_read {
            ContinuousRead::BufferBitClear if !self.part.power_up.continuous_read => config |= CONFIG_BUFFER,
            ContinuousRead::ConfigBitSet(bit) if self.part.power_up.continuous_read => config |= bit,
            _ => {}
        }
        for die in 0..self.part.die_count {
            self.registers.insert((die, REGISTER_LOCK), LOCK_BLOCKS);
            self.registers.insert((die, REGISTER_CONFIG), config);
        }
        (self.die, self.busy_until, self.is_enabled, self.status) = (0, 0, false, 0);
        self.cache = vec![0xff; self.column_count()];
    }

    pub(crate) fn register(&self, die: u8, register: u8) -> u8 {
        self.registers.get(&(die, register)).copied().unwrap_or_default()
    }

    pub(crate) fn page(&self, die: u8, row: u32) -> Vec<u8> {
        self.pages.get(&(die, row)).cloned().unwrap_or_else(|| vec![0xff; self.column_count()])
    }

    pub(crate) fn is_continuous(&self) -> bool {
        let config = self.register(self.die, REGISTER_CONFIG);
        match self.part.continuous_read {
            ContinuousRead::None => false,
            ContinuousRead::BufferBitClear => config & CONFIG_BUFFER == 0,
            ContinuousRead::ConfigBitSet(bit) => config & bit != 0,
        }
    }

    fn complain(&mut self, text: &str) {
        let opcode = self.log.last().copied().unwrap_or_default();
        self.violations.push(format!("transaction {}, {opcode:02x}h: {text}", self.log.len() - 1));
    }

    fn busy(&mut self, microseconds: u32) {
        self.busy_until = if self.stuck { u64::MAX } else { self.now + u64::from(microseconds) };
    }

    fn is_busy(&self) -> bool {
        self.now < self.busy_until
    }

    fn column(&mut self, address: u32) -> usize {
        if self.is_continuous() {
            self.complain("column in continuous read");
        }
        let mut column = address;
        if let PlaneSelect::ColumnBit(bit) = self.part.plane_select {
            let plane = (self.row / self.part.pages_per_block) & 1;
            if (column >> bit) & 1 != plane {
                self.complain("column of the other plane");
            }
            column &= !(1 << bit);
        }
        column as usize
    }

    fn has_ecc(&self) -> bool {
        self.register(self.die, REGISTER_CONFIG) & CONFIG_ECC != 0
    }

    fn is_writable(&mut self) -> bool {
        if !self.is_enabled {
            self.complain("not enabled");
        }
        self.is_enabled && self.register(self.die, REGISTER_LOCK) & LOCK_BLOCKS == 0
    }

    fn say(&mut self, transaction: &mut Transaction<'_>) {
        let address = transaction.address.value();
        let opcode = transaction.opcode;
        if self.is_busy() && !matches!(opcode, GET_FEATURE | RESET | SELECT_DIE) {
            self.complain("said to a busy part");
            return;
        }
        if self.deaf_to == Some(opcode) {
            return;
        }
        let dies = if self.part.die_select == DieSelect::Row { u32::from(self.part.die_count) } else { 1 };
        let rows = self.part.blocks_per_die * self.part.pages_per_block * dies;
        if matches!(opcode, PAGE_READ | PROGRAM_EXECUTE | BLOCK_ERASE) && address >= rows {
            self.complain("row outside the die");
        }
        let key = (self.die, self.row);
        match (opcode, &mut transaction.data) {
            (RESET, Data::None) => {
                self.stuck = false;
                (self.is_enabled, self.status) = (false, 0);
                self.busy(5);
            }
            (READ_ID, Data::In(buf)) => buf.copy_from_slice(&self.identity[..buf.len()]),
            (GET_FEATURE, Data::In(buf)) => {
                buf[0] = match address as u8 {
                    // Nothing but the busy bit is valid while it is set, so the others are as bad as can be.
                    REGISTER_STATUS if self.is_busy() => 0x6d,
                    REGISTER_STATUS => self.status | (u8::from(self.is_enabled) << 1),
                    REGISTER_ECC_COUNT | REGISTER_STATUS_2 => self.more,
                    register => self.register(self.die, register),
                };
            }
            (SET_FEATURE, Data::Out(data)) => {
                if address as u8 == REGISTER_DIE {
                    if self.part.die_select != DieSelect::Register {
                        self.complain("no register for dies");
                    }
                    self.die = data[0] >> 6;
                    return;
                }
                self.registers.insert((self.die, address as u8), data[0]);
            }
            (WRITE_ENABLE, Data::None) => self.is_enabled = true,
            (WRITE_DISABLE, Data::None) => self.is_enabled = false,
            (SELECT_DIE, Data::Out(data)) => self.die = data[0],
            (READ_ECC_STATUS, Data::In(buf)) => buf[0] = self.more,
            (PAGE_READ, Data::None) => {
                self.row = address;
                self.cache = self.page(self.die, address);
                let flipped: u32 = self.cache.iter().map(|byte| byte.count_zeros()).sum();
                if self.has_ecc() && flipped <= u32::from(self.part.ecc_bits) {
                    // A page that holds a mark and nothing else is an erased page with flipped bits.
                    self.cache.fill(0xff);
                }
                let (status, more) = self.ecc.get(&address).copied().unwrap_or_default();
                let is_parameter = self.register(self.die, REGISTER_CONFIG) & CONFIG_OTP != 0;
                (self.status, self.more) = if self.has_ecc() { (status, more) } else { (0, 0) };
                if is_parameter {
                    self.cache.fill(b'P');
                    self.status = 0x20;
                }
                self.is_enabled = false;
                self.busy(self.part.times.read_us * 3);
            }
            (READ_CACHE | READ_CACHE_X2 | READ_CACHE_X4, Data::In(buf)) => {
                let column = self.column(address);
                buf.copy_from_slice(&self.cache[column..column + buf.len()]);
            }
            (PROGRAM_LOAD | PROGRAM_LOAD_MORE | PROGRAM_LOAD_X4 | PROGRAM_LOAD_MORE_X4, Data::Out(data)) => {
                if !self.is_enabled {
                    self.complain("data before the permission");
                    return;
                }
                // Not every part does that.
                if matches!(opcode, PROGRAM_LOAD | PROGRAM_LOAD_X4) && self.part.programs_per_page > 1 {
                    self.cache.fill(0xff);
                }
                let column = if let PlaneSelect::ColumnBit(bit) = self.part.plane_select {
                    address & !(1 << bit)
                } else {
                    address
                } as usize;
                self.cache[column..column + data.len()].copy_from_slice(data);
            }
            (PROGRAM_EXECUTE, Data::None) => {
                self.row = address;
                self.status = STATUS_PROGRAM_FAILED;
                if self.has_ecc() && self.part.programs_per_page == 1 && self.pages.contains_key(&(self.die, address)) {
                    self.complain("programmed twice with parity");
                }
                if self.is_writable() && !self.program_fails {
                    self.status = 0;
                    let mut page = self.page(self.die, address);
                    for (byte, new) in page.iter_mut().zip(&self.cache) {
                        *byte &= new;
                    }
                    self.pages.insert((self.die, address), page);
                }
                self.is_enabled = false;
                self.busy(self.part.times.program_us * 2);
            }
            (BLOCK_ERASE, Data::None) => {
                self.status = STATUS_ERASE_FAILED;
                if self.is_writable() && !self.erase_fails {
                    self.status = 0;
                    let block = address / self.part.pages_per_block;
                    let (die, size) = (self.die, self.part.pages_per_block);
                    self.pages.retain(|&(at, row), _| (at, row / size) != (die, block));
                }
                self.is_enabled = false;
                self.busy(self.part.times.erase_us * 2);
            }
            (other, data) => self.complain(&format!("no such command: {other:02x}h with {data:?}, {key:?}")),
        }
    }
}

impl Wire for Handle {
    type Error = Broken;

    fn transact(&mut self, transaction: &mut Transaction<'_>) -> Result<(), Broken> {
        let mut fake = self.0.borrow_mut();
        let index = fake.log.len();
        fake.log.push(transaction.opcode);
        fake.now += 1;
        if fake.broken_at == Some(index) {
            return Err(Broken(index));
        }
        if fake.power_at == Some(index) {
            fake.power_up();
        }
        match fake.dead {
            None => fake.say(transaction),
            Some(byte) => {
                if let Data::In(buf) = &mut transaction.data {
                    buf.fill(byte);
                }
            }
        }
        // A die is selected by the right means only.
        let is_right = match transaction.opcode {
            SELECT_DIE => fake.part.die_select == DieSelect::Command,
            _ => true,
        };
        if !is_right {
            fake.complain("not a stack of dies");
        }
        Ok(())
    }

    fn wait_us(&mut self, microseconds: u32) {
        self.0.borrow_mut().now += u64::from(microseconds);
    }

    fn lanes(&self) -> Lanes {
        self.0.borrow().lanes
    }
}
