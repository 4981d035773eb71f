//! The driver: opening a part, keeping it in a known state, and the steps that operations are made of.

use core::slice;

use nandu_nand::{BlockAddr, Geometry, NandError, NandErrorKind, PageAddr, ReadStatus};

use crate::bus::{Bus, Patience};
use crate::columns;
use crate::command::{
    BLOCK_ERASE, CONFIG_BUFFER, CONFIG_ECC, CONFIG_OTP, CONFIG_QUAD, DEEP_POWER_DOWN, IDENTITY_SIZE, LOCK_BLOCKS,
    PAGE_READ, PROGRAM_EXECUTE, PROGRAM_LOAD, PROGRAM_LOAD_MORE, PROGRAM_LOAD_MORE_X4, PROGRAM_LOAD_X4, READ_CACHE,
    READ_CACHE_X2, READ_CACHE_X4, READ_ECC_STATUS, REGISTER_CONFIG, REGISTER_DIE, REGISTER_LOCK, SELECT_DIE,
    STATUS_ERASE_FAILED, STATUS_PROGRAM_FAILED, STATUS_WRITE_ENABLED, WRITE_DISABLE,
};
use crate::error::{SpiError, is_nothing};
use crate::part::{ContinuousRead, DieSelect, IdMethod, Part, PlaneSelect, Times};
use crate::parts::PARTS;
use crate::status::{EccOutcome, MoreStatus};
use crate::wire::{Data, Lanes, Transaction, Wire};

/// Times for a part of which nothing is known yet: those of the slowest.
const ANY_TIMES: Times = Times::usual(120, 450, 6_000);

/// What a part may take until it answers after its power came, in microseconds. Winbond's say 5,000.
const POWER_UP_US: u32 = 5_000;

/// What the cache is set to where nothing is programmed.
static ONES: [u8; 64] = [0xff; 64];

/// An SPI NAND part at the end of a [`Wire`].
///
/// # What it costs
///
/// Besides its data, an operation costs the wire a few transactions of three bytes: the status while it waits, and after it two
/// registers, which prove that the part is still there and still set up as it was. A bus that is dead reads as zeros, which as a status
/// is success; and a part whose power was gone for a moment, however short, has forgotten what it was doing and answers that nothing
/// went wrong. Both are an error of kind [`Bus`](NandErrorKind::Bus) here.
///
/// # After an error
///
/// After an error of the wire, a time limit that passed or a proof that failed, the next operation first waits until the part is no
/// longer busy, resets it, looks at its identity and sets it up again. If that fails, its error is what the operation returns, and the
/// next one tries again. An operation that was cut short is never repeated by the driver.
///
/// # Spare columns
///
/// Columns behind the main area are in the contract's order, not in the part's: four bytes for the bad mark, then the protected bytes
/// ([`Part::protected`]), which are the tag, then the rest. So a tag is in one piece whatever the part.
#[derive(Debug)]
pub struct SpiNand<W: Wire> {
    bus: Bus<W>,
    part: &'static Part,
    geometry: Geometry,
    lanes: Lanes,
    /// What the register of configuration holds.
    config: u8,
    /// The die that is selected, where it is known.
    die: Option<u8>,
    /// Whether the part is idle, and its registers hold what they were set to.
    is_known: bool,
    /// Whether it was put into deep power-down.
    is_asleep: bool,
}

impl<W: Wire> SpiNand<W> {
    /// Finds out by its identity which part of [`PARTS`] there is, and sets it up: every block unlocked, error correction on,
    /// continuous read off. Costs 5 ms, a reset and a dozen short transactions for each die, and the rest of an erase if one goes on.
    ///
    /// The wire is gone if that fails; who needs it again hands over a reference to it.
    ///
    /// # Errors
    ///
    /// [`UnknownPart`](SpiError::UnknownPart), which prints the identity; [`Wire`](SpiError::Wire) and the others of kind
    /// [`Bus`](NandErrorKind::Bus).
    pub fn open(wire: W) -> Result<SpiNand<W>, SpiError<W::Error>> {
        SpiNand::open_with(wire, PARTS)
    }

    /// The same with another table.
    ///
    /// # Errors
    ///
    /// As [`open`](SpiNand::open), and [`Part`](SpiError::Part) for a row that does not fit itself.
    pub fn open_with(wire: W, parts: &'static [Part]) -> Result<SpiNand<W>, SpiError<W::Error>> {
        let mut bus = Bus { wire };
        bus.wire.wait_us(POWER_UP_US);
        let (mut quiet, mut identity) = Self::ask(&mut bus)?;
        // A processor that was reset may find the part as deep asleep as it left it.
        let slowest = parts.iter().filter_map(|part| part.power_down).max_by_key(|it| it.wake_us);
        if is_nothing(&identity)
            && let Some(power_down) = slowest
        {
            bus.rouse(power_down)?;
            (quiet, identity) = Self::ask(&mut bus)?;
        }
        let mut found = Part::identify(&identity, parts).filter(|part| part.id.method != IdMethod::Direct);
        if found.is_none() && parts.iter().any(|part| part.id.method == IdMethod::Direct) {
            let direct = bus.identity(IdMethod::Direct)?;
            found = Part::identify(&direct, parts).filter(|part| part.id.method == IdMethod::Direct);
        }
        let part = found.ok_or(SpiError::UnknownPart { identity })?;
        quiet?;
        SpiNand::set_up(bus, part)
    }

    /// Whether a part of which nothing is known came to rest, and what it says of itself.
    #[expect(clippy::type_complexity, reason = "two answers of a part")]
    fn ask(bus: &mut Bus<W>) -> Result<(Result<(), SpiError<W::Error>>, [u8; IDENTITY_SIZE]), SpiError<W::Error>> {
        // Where no part is, the bus may read as "busy". The identity, which is asked for all the same, says more than a time limit.
        let quiet = bus.quiet(&ANY_TIMES);
        if let Err(SpiError::Wire(error)) = quiet {
            return Err(SpiError::Wire(error));
        }
        let identity = bus.identity(IdMethod::Dummy)?;
        Ok((quiet, identity))
    }

    /// Opens a part that is known beforehand: a row of the table, or one of one's own.
    ///
    /// ```
    /// use nandu_spi::{IdMethod, Identity, PARTS, Part};
    ///
    /// static MINE: Part = Part {
    ///     name: "W25N01GW",
    ///     id: Identity { method: IdMethod::Dummy, bytes: &[0xef, 0xba, 0x21] },
    ///     sources: &["its data sheet"],
    ///     ..PARTS[1]
    /// };
    /// # struct Nothing;
    /// # impl nandu_spi::Wire for Nothing {
    /// #     type Error = ();
    /// #     fn transact(&mut self, _: &mut nandu_spi::Transaction<'_>) -> Result<(), ()> { Err(()) }
    /// #     fn wait_us(&mut self, _: u32) {}
    /// # }
    /// # let wire = Nothing;
    /// let chip = nandu_spi::SpiNand::open_as(wire, &MINE);
    /// # assert_eq!(chip.err(), Some(nandu_spi::SpiError::Wire(())));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`open`](SpiNand::open), with [`OtherPart`](SpiError::OtherPart) in place of `UnknownPart`, and
    /// [`Part`](SpiError::Part) for a row that does not fit itself.
    pub fn open_as(wire: W, part: &'static Part) -> Result<SpiNand<W>, SpiError<W::Error>> {
        let mut bus = Bus { wire };
        bus.wire.wait_us(POWER_UP_US);
        SpiNand::set_up(bus, part)
    }

    fn set_up(bus: Bus<W>, part: &'static Part) -> Result<SpiNand<W>, SpiError<W::Error>> {
        part.validate().map_err(SpiError::Part)?;
        let lanes = bus.wire.lanes();
        let geometry = part.geometry();
        let mut chip = SpiNand { bus, part, geometry, lanes, config: 0, die: None, is_known: false, is_asleep: false };
        chip.bring_up()?;
        Ok(chip)
    }

    /// Which part it is.
    pub fn part(&self) -> &'static Part {
        self.part
    }

    /// Gives the wire back. The part stays as it is.
    pub fn release(self) -> W {
        self.bus.wire
    }

    /// Reads the beginning of the part's parameter page, by which a part that is in no table can be recognised by a reader of data
    /// sheets. It stands there several times over with a checksum, and error correction has nothing to do with it: its status is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// Those of kind [`Bus`](NandErrorKind::Bus), [`OutOfBounds`](SpiError::OutOfBounds) for more than a page, and
    /// [`Unsupported`](SpiError::Unsupported) for a part without one ([`Part::parameter_row`]).
    pub fn parameter_page(&mut self, buf: &mut [u8]) -> Result<(), SpiError<W::Error>> {
        if buf.len() > self.geometry.page_size as usize {
            return Err(SpiError::OutOfBounds);
        }
        let row = self.part.parameter_row.ok_or(SpiError::Unsupported)?;
        self.run(|chip| {
            chip.select(0)?;
            chip.configured(CONFIG_OTP, |chip| {
                chip.bus.row(PAGE_READ, row.into())?;
                chip.bus.wait(Patience::read(&chip.part.times))?;
                let (opcode, lanes) = chip.read_opcode();
                chip.bus.read_cache(opcode, lanes, 0, buf)
            })
        })
    }

    /// Puts the part into deep power-down (B9h), where it takes a few microamperes and hears nothing. The next operation wakes it, or
    /// [`wake`](SpiNand::wake). Costs a transaction and [`PowerDown::enter_us`](crate::PowerDown::enter_us); what is durable is not touched. With a store above,
    /// sync first where changes wait, and call it through `Store::nand_mut`.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](SpiError::Unsupported) if the row of the part does not say that it has one ([`Part::power_down`]), or if it has dies that
    /// are selected by a command; those of kind [`Bus`](NandErrorKind::Bus), after which the part may sleep or not, and the next operation finds
    /// out.
    pub fn power_down(&mut self) -> Result<(), SpiError<W::Error>> {
        let power_down = self.part.power_down.filter(|_| self.selectable_dies() == 1).ok_or(SpiError::Unsupported)?;
        if self.is_asleep {
            return Ok(());
        }
        self.run(|chip| chip.bus.command(DEEP_POWER_DOWN))?;
        (self.is_asleep, self.is_known) = (true, false);
        self.bus.wire.wait_us(power_down.enter_us);
        Ok(())
    }

    /// Wakes the part (ABh), waits until it hears again ([`PowerDown::wake_us`](crate::PowerDown::wake_us)), and sets it up as [`open`](SpiNand::open) does, since parts differ in what
    /// they remember. Costs that, a reset and a dozen short transactions; nothing if it is awake. Every operation does it where it has to; this
    /// is for who wants the time spent before.
    ///
    /// # Errors
    ///
    /// Those of kind [`Bus`](NandErrorKind::Bus).
    pub fn wake(&mut self) -> Result<(), SpiError<W::Error>> {
        self.run(|_| Ok(()))
    }

    pub(crate) fn shape(&self) -> &Geometry {
        &self.geometry
    }

    /// Does something with a part in a known state, and notes if the state is not known afterwards.
    pub(crate) fn run<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, SpiError<W::Error>>,
    ) -> Result<T, SpiError<W::Error>> {
        if !self.is_known {
            self.bring_up()?;
        }
        let result = work(self);
        if result.as_ref().is_err_and(|error| error.kind() == NandErrorKind::Bus) {
            self.is_known = false;
        }
        result
    }

    /// From any state to a known one.
    fn bring_up(&mut self) -> Result<(), SpiError<W::Error>> {
        let Some(power_down) = self.part.power_down else { return self.bring_up_awake() };
        if self.is_asleep {
            self.bus.rouse(power_down)?;
            self.is_asleep = false;
        }
        match self.bring_up_awake() {
            // It may have been put to sleep by who had it before, or by a command whose outcome is unknown.
            Err(error) if is_like_sleep(&error) => {
                self.bus.rouse(power_down)?;
                self.bring_up_awake()
            }
            outcome => outcome,
        }
    }

    fn bring_up_awake(&mut self) -> Result<(), SpiError<W::Error>> {
        self.is_known = false;
        for die in 0..self.selectable_dies() {
            self.die = None;
            self.select(die)?;
            self.bus.quiet(&self.part.times)?;
        }
        // A reset may select the first die.
        self.die = None;
        let identity = self.bus.identity(self.part.id.method)?;
        self.expect(identity)?;
        for die in 0..self.selectable_dies() {
            self.select(die)?;
            self.bus.command(WRITE_DISABLE)?;
            self.bus.set_checked(REGISTER_LOCK, 0, LOCK_BLOCKS)?;
            let (value, mask) = self.settings();
            self.config = self.bus.get(REGISTER_CONFIG)? & !mask | value;
            self.bus.set_checked(REGISTER_CONFIG, self.config, mask)?;
        }
        self.is_known = true;
        Ok(())
    }

    fn expect(&self, identity: [u8; IDENTITY_SIZE]) -> Result<(), SpiError<W::Error>> {
        match Part::identify(&identity, slice::from_ref(self.part)) {
            Some(_) => Ok(()),
            None => Err(SpiError::OtherPart { expected: self.part.name, identity }),
        }
    }

    /// Bits of the configuration as they have to be, and which they are.
    fn settings(&self) -> (u8, u8) {
        let (mut value, mut mask) = (CONFIG_ECC, CONFIG_ECC | CONFIG_OTP);
        match self.part.continuous_read {
            ContinuousRead::None => {}
            ContinuousRead::BufferBitClear => {
                value |= CONFIG_BUFFER;
                mask |= CONFIG_BUFFER;
            }
            ContinuousRead::ConfigBitSet(bit) => mask |= bit,
        }
        if self.part.quad_bit && self.lanes == Lanes::Four {
            value |= CONFIG_QUAD;
            mask |= CONFIG_QUAD;
        }
        (value, mask)
    }

    /// Dies that are selected by a command of their own.
    fn selectable_dies(&self) -> u8 {
        match self.part.die_select {
            DieSelect::Single | DieSelect::Row => 1,
            DieSelect::Command | DieSelect::Register => self.part.die_count,
        }
    }

    fn select(&mut self, die: u8) -> Result<(), SpiError<W::Error>> {
        if self.die == Some(die) {
            return Ok(());
        }
        match self.part.die_select {
            DieSelect::Single | DieSelect::Row => {}
            DieSelect::Command => {
                let data = [die];
                self.bus.transact(Transaction { data: Data::Out(&data), ..Transaction::command(SELECT_DIE) })?;
            }
            DieSelect::Register => self.bus.set(REGISTER_DIE, die << 6)?,
        }
        self.die = Some(die);
        Ok(())
    }

    /// Selects the die of a page and says its row there.
    fn row_of(&mut self, page: PageAddr) -> Result<u32, SpiError<W::Error>> {
        if self.selectable_dies() == 1 {
            self.select(0)?;
            return Ok(page.0);
        }
        let pages = self.part.blocks_per_die * self.part.pages_per_block;
        self.select((page.0 / pages) as u8)?;
        Ok(page.0 % pages)
    }

    /// A column as it goes over the wire.
    fn column(&self, page: PageAddr, physical: u32) -> u16 {
        let plane = match self.part.plane_select {
            PlaneSelect::ColumnBit(bit) => self.geometry.plane_of(self.geometry.block_of(page)) << bit,
            PlaneSelect::Row => 0,
        };
        (physical | plane) as u16
    }

    fn read_opcode(&self) -> (u8, Lanes) {
        match self.lanes {
            Lanes::One => (READ_CACHE, Lanes::One),
            Lanes::Two => (READ_CACHE_X2, Lanes::Two),
            Lanes::Four => (READ_CACHE_X4, Lanes::Four),
        }
    }

    fn load_opcodes(&self) -> (u8, u8, Lanes) {
        match self.lanes {
            Lanes::One | Lanes::Two => (PROGRAM_LOAD, PROGRAM_LOAD_MORE, Lanes::One),
            Lanes::Four => (PROGRAM_LOAD_X4, PROGRAM_LOAD_MORE_X4, Lanes::Four),
        }
    }

    /// Makes sure that the part is there and still set up as it was: see the type's documentation.
    fn prove(&mut self) -> Result<(), SpiError<W::Error>> {
        let (value, mask) = self.settings();
        let is_same = self.bus.get(REGISTER_CONFIG)? & mask == value;
        if is_same && self.bus.get(REGISTER_LOCK)? & LOCK_BLOCKS == 0 { Ok(()) } else { Err(SpiError::Silent) }
    }

    /// Does something without error correction and with these bits of the configuration set. After an error of the bus the settings
    /// are not restored, since the part is set up anew then.
    fn configured<T>(
        &mut self,
        bits: u8,
        work: impl FnOnce(&mut Self) -> Result<T, SpiError<W::Error>>,
    ) -> Result<T, SpiError<W::Error>> {
        // Not checked: some parts cannot switch it off, and then read and program as ever.
        self.bus.set(REGISTER_CONFIG, self.config & !CONFIG_ECC | bits)?;
        let result = work(self);
        if result.as_ref().is_err_and(|error| error.kind() == NandErrorKind::Bus) {
            return result;
        }
        self.bus.set(REGISTER_CONFIG, self.config)?;
        self.prove()?;
        result
    }

    /// Array to cache; what error correction made of it.
    fn fill_cache(&mut self, page: PageAddr) -> Result<EccOutcome, SpiError<W::Error>> {
        let row = self.row_of(page)?;
        self.bus.row(PAGE_READ, row)?;
        let status = self.bus.wait(Patience::read(&self.part.times))?;
        let more = match self.part.status.more(status) {
            None => 0,
            Some(MoreStatus::Feature(register)) => self.bus.get(register)?,
            Some(MoreStatus::EccStatus) => self.bus.answer(READ_ECC_STATUS)?,
        };
        Ok(self.part.status.decode(status, more, self.part.ecc_bits))
    }

    /// The outcome as the contract has it. A part that names a range is taken at its worst: a page is then moved too early and not
    /// too late.
    fn judge(&self, page: PageAddr, outcome: EccOutcome) -> Result<ReadStatus, SpiError<W::Error>> {
        let limit = u16::from(self.part.ecc_bits);
        match outcome {
            EccOutcome::Clean => Ok(ReadStatus::Clean),
            EccOutcome::Corrected { max, .. } => Ok(ReadStatus::from_bits(u16::from(max), limit)),
            EccOutcome::Uncorrectable => Err(SpiError::Uncorrectable(page)),
        }
    }

    /// Reads pieces of a page with one array read.
    pub(crate) fn read_page(
        &mut self,
        page: PageAddr,
        pieces: &mut [(u32, &mut [u8])],
    ) -> Result<ReadStatus, SpiError<W::Error>> {
        let outcome = self.fill_cache(page)?;
        let (opcode, lanes) = self.read_opcode();
        for (column, buf) in pieces {
            for (physical, start, end) in columns::pieces(self.part, *column, buf.len()) {
                self.bus.read_cache(opcode, lanes, self.column(page, physical), &mut buf[start..end])?;
            }
        }
        self.prove()?;
        self.judge(page, outcome)
    }

    /// Programs pieces of a page with one program.
    ///
    /// The part is told that it may before it is given data: Winbond's do not take them otherwise.
    fn program_cache(&mut self, page: PageAddr, pieces: &[(u32, &[u8])]) -> Result<(), SpiError<W::Error>> {
        let row = self.row_of(page)?;
        self.bus.enable()?;
        let (mut opcode, more, lanes) = self.load_opcodes();
        let mut column = self.first_undefined(pieces);
        while column < self.geometry.column_count() {
            let size = ONES.len().min((self.geometry.column_count() - column) as usize);
            self.bus.load(opcode, lanes, self.column(page, column), &ONES[..size])?;
            opcode = more;
            column += size as u32;
        }
        for &(column, data) in pieces {
            for (physical, start, end) in columns::pieces(self.part, column, data.len()) {
                self.bus.load(opcode, lanes, self.column(page, physical), &data[start..end])?;
                opcode = more;
            }
        }
        self.bus.row(PROGRAM_EXECUTE, row)?;
        self.programmed(page)
    }

    /// The column from which on the cache has to be set to ones before the pieces are loaded over it.
    ///
    /// Not every maker's program load sets the rest of the cache to ones (Linux's `drivers/mtd/nand/spi/core.c` says so), and what is
    /// left there from the page before would be programmed too, over the mark of the block for instance. A program of a part of the
    /// main area is left to program load: only parts of which it is known take one.
    fn first_undefined(&self, pieces: &[(u32, &[u8])]) -> u32 {
        let page_size = self.geometry.page_size;
        match pieces.first() {
            Some(&(0, data)) if data.len() >= page_size as usize => page_size,
            Some(&(column, _)) if column < page_size => self.geometry.column_count(),
            _ => 0,
        }
    }

    /// The outcome of a program under way.
    fn programmed(&mut self, page: PageAddr) -> Result<(), SpiError<W::Error>> {
        let status = self.bus.wait(Patience::program(&self.part.times))?;
        match status & (STATUS_PROGRAM_FAILED | STATUS_WRITE_ENABLED) {
            0 => Ok(()),
            // The part did not hear the command: it would have taken the permission back.
            STATUS_WRITE_ENABLED => Err(SpiError::Silent),
            _ => Err(SpiError::ProgramFailed(page)),
        }
    }

    pub(crate) fn program_page(&mut self, page: PageAddr, pieces: &[(u32, &[u8])]) -> Result<(), SpiError<W::Error>> {
        let result = self.program_cache(page, pieces);
        self.settle(result)
    }

    pub(crate) fn erase_block(&mut self, block: BlockAddr) -> Result<(), SpiError<W::Error>> {
        let row = self.row_of(self.geometry.first_page(block))?;
        self.bus.enable()?;
        self.bus.row(BLOCK_ERASE, row)?;
        let status = self.bus.wait(Patience::erase(&self.part.times))?;
        let result = match status & (STATUS_ERASE_FAILED | STATUS_WRITE_ENABLED) {
            0 => Ok(()),
            STATUS_WRITE_ENABLED => Err(SpiError::Silent),
            _ => Err(SpiError::EraseFailed(block)),
        };
        self.settle(result)
    }

    /// The outcome of a program or erase, once it is proved that the part was there all the time. One that lost its power locks its
    /// blocks again and forgets what it did; its success is none, and its failure says nothing about the block.
    fn settle(&mut self, result: Result<(), SpiError<W::Error>>) -> Result<(), SpiError<W::Error>> {
        if result.as_ref().is_err_and(|error| error.kind() == NandErrorKind::Bus) {
            return result;
        }
        self.prove()?;
        result
    }

    /// The page goes through error correction on its way into the cache and gets new parity on its way out.
    pub(crate) fn copy_page(&mut self, from: PageAddr, to: PageAddr) -> Result<ReadStatus, SpiError<W::Error>> {
        let outcome = self.fill_cache(from)?;
        // Only what was read well goes on: a cache that could not be corrected would get parity that fits it.
        self.prove()?;
        let status = self.judge(from, outcome)?;
        let row = self.row_of(to)?;
        self.bus.enable()?;
        self.bus.row(PROGRAM_EXECUTE, row)?;
        let result = self.programmed(to);
        self.settle(result)?;
        Ok(status)
    }

    /// The worst of the marks of a block, as a byte: FFh for a good block.
    ///
    /// Error correction is off: where it protects the mark, it would mend the eight zero bits that a mark is in a page that holds
    /// nothing else.
    pub(crate) fn read_marks(&mut self, block: BlockAddr) -> Result<u8, SpiError<W::Error>> {
        self.row_of(self.geometry.first_page(block))?;
        self.configured(0, |chip| {
            let mut worst = 0xff_u8;
            for index in 0..chip.part.marks.count() {
                let page = chip.geometry.page_at(block, index);
                chip.fill_cache(page)?;
                let (opcode, lanes) = chip.read_opcode();
                let mut mark = [0];
                chip.bus.read_cache(opcode, lanes, chip.column(page, chip.geometry.page_size), &mut mark)?;
                if mark[0].count_zeros() > worst.count_zeros() {
                    worst = mark[0];
                }
            }
            Ok(worst)
        })
    }

    /// Marks a block in every page where a mark is looked for. Without error correction, since the page may be programmed already.
    pub(crate) fn write_marks(&mut self, block: BlockAddr) -> Result<(), SpiError<W::Error>> {
        self.row_of(self.geometry.first_page(block))?;
        self.configured(0, |chip| {
            let mut result = Ok(());
            for index in 0..chip.part.marks.count() {
                let page = chip.geometry.page_at(block, index);
                match chip.program_cache(page, &[(chip.geometry.page_size, &[0, 0])]) {
                    Ok(()) => {}
                    // One mark is enough, so the other page is tried as well.
                    Err(error) if error.kind() == NandErrorKind::ProgramFailed => result = Err(error),
                    Err(error) => return Err(error),
                }
            }
            result
        })
    }
}

/// Whether an error is what a part in deep power-down looks like: nobody drives the bus.
fn is_like_sleep<E>(error: &SpiError<E>) -> bool {
    match error {
        SpiError::Timeout(_) => true,
        SpiError::OtherPart { identity, .. } => is_nothing(identity),
        _ => false,
    }
}
