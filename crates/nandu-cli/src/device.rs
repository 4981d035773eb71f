//! An MTD device as the chip of a verb: opened by its path or name, looked into, and changed on the flash itself or in memory only.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use std::{env, thread};

use anyhow::{Context, anyhow};
use nandu_mtd::{Mtd, MtdError, OpenError, Options, device_named, device_number};
use nandu_nand::{BlockAddr, Cause, CellMode, Geometry, Nand, PageAddr, ReadStatus};
use nandu_sim::{BlockCounters, BlockInfo, Chip, Condition, Counters, Ledger, Timing};

use crate::kind::Survey;
use crate::overlay::{Overlay, Place};
use crate::session::{PATIENCE, WAIT_TICK};

/// Says for how many erases a block of devices is rated.
pub(crate) const ENDURANCE_VARIABLE: &str = "NANDU_MTD_ENDURANCE";

/// Says how many bad blocks devices are rated for.
pub(crate) const BAD_BLOCKS_VARIABLE: &str = "NANDU_MTD_BAD_BLOCKS";

/// What stands before the name of a device in the place of a path.
const NAME_PREFIX: &str = "mtd:";

/// Times of a device: none are known, and the clock runs by itself.
pub(crate) const NO_TIMES: Timing = Timing::slc(0, 0, 0, nandu_sim::Bus::INCLUDED);

/// Whether a verb changes the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Look,
    Change,
}

/// An open device.
#[derive(Debug)]
pub(crate) struct Device {
    mtd: Arc<Mutex<Mtd>>,
    chip: Chip,
    /// Where it is, all changes stay there.
    overlay: Option<Overlay>,
    counters: Counters,
    ledger: Ledger,
    cause: Cause,
    /// What it was found to hold, until it is changed.
    survey: OnceLock<Survey>,
}

/// A copy of what is on the device: what is changed in it changes nothing on the device.
impl Clone for Device {
    fn clone(&self) -> Device {
        Device {
            mtd: Arc::clone(&self.mtd),
            chip: self.chip,
            overlay: Some(self.overlay.clone().unwrap_or_default()),
            counters: self.counters,
            ledger: self.ledger.clone(),
            cause: self.cause,
            survey: self.survey.clone(),
        }
    }
}

/// The path of a device where an image was named by one, or by `mtd:NAME`; `None` for a file.
pub(crate) fn path(image: &Path) -> anyhow::Result<Option<PathBuf>> {
    let name = image.display();
    let number = match device_number(image) {
        Ok(number) => number,
        Err(OpenError::Io(error)) => {
            let text = image.to_str().unwrap_or_default();
            match text.strip_prefix(NAME_PREFIX) {
                Some(wanted) => {
                    Some(device_named(wanted).ok_or_else(|| anyhow!("{name}: no MTD device has this name"))?)
                }
                None if text.starts_with("/dev/mtd") => return Err(anyhow!("{name}: {}", OpenError::Io(error))),
                // An image that is not there is told of by whoever opens it.
                None => None,
            }
        }
        Err(error) => return Err(anyhow!("{name}: {error}")),
    };
    Ok(number.map(|number| match image.starts_with("/dev") {
        true => image.to_owned(),
        false => PathBuf::from(format!("/dev/mtd{number}")),
    }))
}

/// Whether an image was named by a device.
pub(crate) fn is_device(image: &Path) -> bool {
    matches!(path(image), Ok(Some(_)))
}

/// A number that the environment gives.
fn variable(name: &str) -> anyhow::Result<Option<u32>> {
    let Some(text) = env::var_os(name) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.parse().ok()).filter(|&number| number > 0);
    number.map(Some).with_context(|| format!("{name}: a number from 1 on is needed"))
}

impl Device {
    /// Opens a device, waiting for one that another process is about to leave.
    pub(crate) fn open(path: &Path, access: Access, has_tags: bool) -> anyhow::Result<Device> {
        let options = Options {
            endurance: variable(ENDURANCE_VARIABLE)?.unwrap_or(Options::DEFAULT.endurance),
            bad_block_max: variable(BAD_BLOCKS_VARIABLE)?,
            has_tags,
            is_read_only: access == Access::Look,
        };
        let begin = Instant::now();
        let mtd = loop {
            match Mtd::open(path, &options) {
                Err(OpenError::Locked) if begin.elapsed() < PATIENCE => thread::sleep(WAIT_TICK),
                done => break done.map_err(|error| anyhow!("{}: {error}", path.display()))?,
            }
        };
        let name = match mtd.name() {
            "" => path.display().to_string(),
            name => format!("{} '{name}'", path.display()),
        };
        let chip = Chip {
            // One device is opened in a process, or two.
            name: Box::leak(name.into_boxed_str()),
            source: "an MTD device of Linux",
            geometry: *mtd.geometry(),
            timing: NO_TIMES,
            lsb_recovery: false,
        };
        Ok(Device {
            mtd: Arc::new(Mutex::new(mtd)),
            chip,
            overlay: (access == Access::Look).then(Overlay::default),
            counters: Counters::ZERO,
            ledger: Ledger::EMPTY,
            cause: Cause::Other,
            survey: OnceLock::new(),
        })
    }

    /// The same device opened anew, with tags.
    pub(crate) fn with_tags(self, path: &Path, access: Access) -> anyhow::Result<Device> {
        let survey = self.survey.clone();
        // The lock of the first goes with it.
        drop(self);
        Ok(Device { survey, ..Device::open(path, access, true)? })
    }

    pub(crate) fn mtd(&self) -> MutexGuard<'_, Mtd> {
        // A call that panicked left the device as the kernel has it.
        self.mtd.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn chip(&self) -> &Chip {
        &self.chip
    }

    /// Where what it holds is kept once it was found.
    pub(crate) fn survey(&self) -> &OnceLock<Survey> {
        &self.survey
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What a page holds in its main area, unasked for by anybody; `None` if it is erased. One that cannot be read holds zeros.
    pub(crate) fn content(&self, page: PageAddr) -> Option<Vec<u8>> {
        let mut main = vec![0; self.chip.geometry.page_size as usize];
        if self.fetch(page, 0, &mut main, &mut []).is_err() {
            main.fill(0);
        }
        main.iter().any(|&byte| byte != 0xFF).then_some(main)
    }

    /// How many pages of a block are programmed, of which the first ones are known to be. Pages are programmed from the first on, so there is
    /// one seam between those that are and those that are not.
    pub(crate) fn programmed_pages(&self, block: BlockAddr, known: u32) -> u32 {
        let geometry = &self.chip.geometry;
        let (mut low, mut high) = (known, geometry.pages_per_block);
        while low < high {
            // The first is asked first: of an erased block that is all.
            let middle = if low == 0 && high == geometry.pages_per_block { 0 } else { low.midpoint(high) };
            match self.content(geometry.page_at(block, middle)) {
                Some(_) => low = middle + 1,
                None => high = middle,
            }
        }
        low
    }

    /// What a block looks like from outside: how many of its pages are programmed, by the last that is.
    pub(crate) fn block_state(&self, block: BlockAddr) -> BlockInfo {
        let is_bad = self.is_marked(block).unwrap_or(true);
        let pages_programmed = if is_bad { 0 } else { self.programmed_pages(block, 0) };
        BlockInfo {
            condition: Condition::Erased,
            mode: CellMode::Slc,
            // Linux does not say who marked a block.
            factory_bad: is_bad,
            grown_bad: false,
            reads_bad: is_bad,
            pages_programmed,
            counters: BlockCounters::default(),
        }
    }

    pub(crate) fn is_marked(&self, block: BlockAddr) -> Result<bool, MtdError> {
        if self.overlay.as_ref().is_some_and(|overlay| overlay.is_bad(block)) {
            return Ok(true);
        }
        self.mtd().is_bad(block)
    }

    /// Reads from memory what was changed there, and else from the device.
    fn fetch(&self, page: PageAddr, column: u32, main: &mut [u8], tag: &mut [u8]) -> Result<ReadStatus, MtdError> {
        let geometry = &self.chip.geometry;
        if !geometry.contains_page(page) {
            return Err(MtdError::OutOfBounds);
        }
        let overlay = self.overlay.as_ref();
        if overlay.is_some_and(|overlay| overlay.read(geometry, page, column, main, tag) == Place::Memory) {
            return Ok(ReadStatus::Clean);
        }
        if tag.is_empty() { self.mtd().read(page, column, main) } else { self.mtd().read_tagged(page, main, tag) }
    }

    /// Does something that counts, with the time that it takes.
    fn book<T>(&mut self, entry: Counters, work: impl FnOnce(&mut Self) -> Result<T, MtdError>) -> Result<T, MtdError> {
        let begin = Instant::now();
        let outcome = work(self);
        let busy_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let entry = Counters { busy_ns, ..entry };
        self.counters.add(&entry);
        self.ledger.book(self.cause, &entry);
        outcome
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.chip.geometry
    }

    pub(crate) fn read(&mut self, page: PageAddr, column: u32, buf: &mut [u8]) -> Result<ReadStatus, MtdError> {
        let entry = Counters { reads: 1, bytes_out: buf.len() as u64, ..Counters::ZERO };
        let (page_size, tag_column) = (self.chip.geometry.page_size, self.chip.geometry.tag_column());
        self.book(entry, |device| {
            if column < page_size || device.overlay.is_none() {
                return device.fetch(page, column, buf, &mut []);
            }
            // A tag that may be in memory: with its page, from its beginning on.
            let skipped = column.checked_sub(tag_column).ok_or(MtdError::Unsupported)? as usize;
            let mut main = vec![0; page_size as usize];
            let mut tag = vec![0; skipped + buf.len()];
            let status = device.fetch(page, 0, &mut main, &mut tag)?;
            buf.copy_from_slice(&tag[skipped..]);
            Ok(status)
        })
    }

    pub(crate) fn read_tagged(
        &mut self,
        page: PageAddr,
        data: &mut [u8],
        tag: &mut [u8],
    ) -> Result<ReadStatus, MtdError> {
        let entry = Counters { reads: 1, bytes_out: (data.len() + tag.len()) as u64, ..Counters::ZERO };
        self.book(entry, |device| device.fetch(page, 0, data, tag))
    }

    pub(crate) fn program(&mut self, page: PageAddr, column: u32, data: &[u8]) -> Result<(), MtdError> {
        self.survey.take();
        let entry = Counters { programs: 1, bytes_in: data.len() as u64, ..Counters::ZERO };
        self.book(entry, |device| match &mut device.overlay {
            None => device.mtd().program(page, column, data),
            Some(_) if column > 0 || data.len() != device.chip.geometry.page_size as usize => Err(MtdError::NotAligned),
            Some(overlay) => {
                overlay.program(&device.chip.geometry, page, data, &[]);
                Ok(())
            }
        })
    }

    pub(crate) fn program_tagged(&mut self, page: PageAddr, data: &[u8], tag: &[u8]) -> Result<(), MtdError> {
        self.survey.take();
        let entry = Counters { programs: 1, bytes_in: (data.len() + tag.len()) as u64, ..Counters::ZERO };
        self.book(entry, |device| match &mut device.overlay {
            None => device.mtd().program_tagged(page, data, tag),
            Some(overlay) => {
                overlay.program(&device.chip.geometry, page, data, tag);
                Ok(())
            }
        })
    }

    pub(crate) fn erase(&mut self, block: BlockAddr, mode: CellMode) -> Result<(), MtdError> {
        self.survey.take();
        self.book(Counters { erases: 1, ..Counters::ZERO }, |device| match &mut device.overlay {
            None => device.mtd().erase(block, mode),
            Some(overlay) => {
                overlay.erase(block);
                Ok(())
            }
        })
    }

    pub(crate) fn is_bad(&mut self, block: BlockAddr) -> Result<bool, MtdError> {
        self.book(Counters { mark_checks: 1, ..Counters::ZERO }, |device| device.is_marked(block))
    }

    pub(crate) fn mark_bad(&mut self, block: BlockAddr) -> Result<(), MtdError> {
        self.survey.take();
        self.book(Counters { marks: 1, ..Counters::ZERO }, |device| match &mut device.overlay {
            None => device.mtd().mark_bad(block),
            Some(overlay) => {
                overlay.mark_bad(block);
                Ok(())
            }
        })
    }

    pub(crate) fn attribute(&mut self, cause: Cause) -> Cause {
        std::mem::replace(&mut self.cause, cause)
    }
}
