//! A kernel for tests: the calls at an MTD device, answered with a simulated chip.

use std::fs;

use nandu_mtd::{Corrected, Door, Errno, Info, Kind, Mtd, OpenError, Options, Totals};
use nandu_nand::{BlockAddr, CellMode, Nand, NandError, NandErrorKind, PageAddr};
use nandu_sim::{Chip, Sim, SimError};
use tempfile::TempDir;

/// A device and the kernel around it.
pub(crate) struct Fake {
    pub(crate) sim: Sim,
    pub(crate) info: Info,
    /// Whether the kernel has MEMREAD.
    pub(crate) has_reads: bool,
    /// What the next call that programs or erases answers in place of doing it.
    pub(crate) refusal: Option<Errno>,
    /// Bytes of the next program that the kernel takes.
    pub(crate) short: Option<usize>,
    pub(crate) totals: Totals,
    /// Calls so far.
    pub(crate) calls: u64,
    sysfs: TempDir,
}

/// The chip of most tests: small pages and few of them, with tags.
pub(crate) fn chip() -> Chip {
    let tiny = Chip::TINY;
    let geometry = nandu_nand::Geometry { spare_size: 64, tag_size: 16, block_count: 64, ..tiny.geometry };
    Chip { geometry, ..tiny }
}

impl Fake {
    pub(crate) fn new(sim: Sim) -> Fake {
        let geometry = *sim.geometry();
        let info = Info {
            kind: Kind::Nand,
            is_writable: true,
            is_slc_emulated: false,
            size: u32::try_from(geometry.capacity()).unwrap(),
            erase_size: geometry.page_size * geometry.pages_per_block,
            write_size: geometry.page_size,
            spare_size: geometry.spare_size,
        };
        let sysfs = tempfile::tempdir().unwrap();
        let fake = Fake {
            sim,
            info,
            has_reads: true,
            refusal: None,
            short: None,
            totals: Totals { corrected: u32::MAX - 1, failed: u32::MAX },
            calls: 0,
            sysfs,
        };
        fake.says("name", "data");
        fake.says("size", &geometry.capacity().to_string());
        fake.says("ecc_strength", &geometry.ecc.correctable_bits.to_string());
        fake.says("ecc_step_size", &geometry.ecc.codeword_size.to_string());
        fake.says("bitflip_threshold", "3");
        fake.says("oobavail", "38");
        fake
    }

    /// Has sysfs say something of the device.
    pub(crate) fn says(&self, attribute: &str, text: &str) {
        fs::write(self.sysfs.path().join(attribute), format!("{text}\n")).unwrap();
    }

    pub(crate) fn open_with(&mut self, options: &Options) -> Result<Mtd<&mut Fake>, OpenError> {
        let attributes = self.sysfs.path().to_owned();
        Mtd::over(self, &attributes, options)
    }

    pub(crate) fn open(&mut self) -> Mtd<&mut Fake> {
        self.open_with(&OPTIONS).unwrap()
    }

    fn page(&self, offset: u64) -> (PageAddr, u32) {
        let size = u64::from(self.info.write_size);
        (PageAddr((offset / size) as u32), (offset % size) as u32)
    }

    fn block(&self, offset: u64) -> BlockAddr {
        assert!(offset.is_multiple_of(self.info.erase_size.into()), "{offset} is no beginning of a block");
        BlockAddr((offset / u64::from(self.info.erase_size)) as u32)
    }

    fn refused(&mut self) -> Result<(), Errno> {
        self.calls += 1;
        self.refusal.take().map_or(Ok(()), Err)
    }
}

/// As many bad blocks as the chip of most tests may have.
pub(crate) const OPTIONS: Options = Options { bad_block_max: Some(2), ..Options::DEFAULT };

/// As Linux says it.
fn errno(error: SimError) -> Errno {
    match error.kind() {
        NandErrorKind::ProgramFailed | NandErrorKind::EraseFailed => Errno::IO,
        NandErrorKind::Gone => Errno::NODEV,
        NandErrorKind::Bus => Errno::TIMEDOUT,
        NandErrorKind::Uncorrectable => Errno::BADMSG,
        kind => panic!("the driver let pass: {kind}"),
    }
}

impl Door for Fake {
    fn info(&mut self) -> Result<Info, Errno> {
        Ok(self.info)
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<usize, Errno> {
        self.calls += 1;
        let (page, column) = self.page(offset);
        match self.sim.read(page, column, data) {
            Ok(status) => {
                self.totals.corrected = self.totals.corrected.wrapping_add(status.corrected_bits().into());
                Ok(data.len())
            }
            // All bytes come, right or wrong.
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => {
                self.totals.failed = self.totals.failed.wrapping_add(1);
                Ok(data.len())
            }
            Err(error) => Err(errno(error)),
        }
    }

    fn read_counted(&mut self, offset: u64, data: &mut [u8], spare: &mut [u8]) -> Result<Corrected, Errno> {
        self.calls += 1;
        if !self.has_reads {
            return Err(Errno::NOTTY);
        }
        let (page, column) = self.page(offset);
        let tag = self.sim.geometry().tag_column();
        let outcome = match (data.is_empty(), spare.is_empty()) {
            (_, true) => self.sim.read(page, column, data),
            (true, false) => self.sim.read(page, tag, spare),
            (false, false) => self.sim.read_tagged(page, data, spare),
        };
        match outcome {
            Ok(status) => Ok(Corrected { bits_max: status.corrected_bits().into(), uncorrectable: 0 }),
            Err(error) if error.kind() == NandErrorKind::Uncorrectable => {
                Ok(Corrected { bits_max: 0, uncorrectable: 1 })
            }
            Err(error) => Err(errno(error)),
        }
    }

    fn totals(&mut self) -> Result<Totals, Errno> {
        Ok(self.totals)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.refused()?;
        if let Some(count) = self.short.take() {
            return Ok(count);
        }
        let (page, column) = self.page(offset);
        self.sim.program(page, column, data).map_err(errno)?;
        Ok(data.len())
    }

    fn write_spare(&mut self, offset: u64, data: &[u8], spare: &[u8]) -> Result<(), Errno> {
        self.refused()?;
        let (page, _) = self.page(offset);
        self.sim.program_tagged(page, data, spare).map_err(errno)
    }

    fn erase(&mut self, offset: u64, length: u64) -> Result<(), Errno> {
        self.refused()?;
        assert_eq!(length, u64::from(self.info.erase_size));
        self.sim.erase(self.block(offset), CellMode::Slc).map_err(errno)
    }

    fn is_bad(&mut self, offset: u64) -> Result<bool, Errno> {
        self.calls += 1;
        self.sim.is_bad(self.block(offset)).map_err(errno)
    }

    fn mark_bad(&mut self, offset: u64) -> Result<(), Errno> {
        self.refused()?;
        self.sim.mark_bad(self.block(offset)).map_err(errno)
    }

    fn read_spare(&mut self, offset: u64, spare: &mut [u8]) -> Result<(), Errno> {
        let (page, _) = self.page(offset);
        spare.copy_from_slice(&self.sim.peek(page)[self.info.write_size as usize..]);
        Ok(())
    }
}
