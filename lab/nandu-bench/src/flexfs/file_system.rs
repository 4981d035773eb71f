//! The file system under the loads of a volume of pages: requests, idle time and steps by the chip's clock.

use std::collections::{BTreeMap, BTreeSet};

use nandu::fs::{Attributes, Format, Fs, Ino, Options, Time};
use nandu_sim::Sim;

use crate::BenchError;
use crate::experiments::volume::failed;
use crate::workload::FileVerb;

const FILE: Attributes = Attributes { mode: 0o644, uid: 0, gid: 0, rdev: 0 };

/// A file system whose files are numbers.
pub(crate) struct FileSystem<'m> {
    fs: Fs<'m, Sim>,
    files: BTreeMap<u32, Ino>,
    /// Pages that were written, by file.
    written: BTreeSet<(u32, u32)>,
    page: Vec<u8>,
    /// Time of the processor for each page of the host and for each step, microseconds.
    host_cpu_us: u64,
    step_cpu_us: u64,
}

fn time(us: u64) -> Time {
    Time { seconds: (us / 1_000_000) as i64, nanoseconds: (us % 1_000_000) as u32 * 1000 }
}

fn microseconds(time: Time) -> u64 {
    time.seconds as u64 * 1_000_000 + u64::from(time.nanoseconds) / 1000
}

impl<'m> FileSystem<'m> {
    /// A new volume. Counters of the chip begin after that.
    pub(crate) fn format(
        chip: Sim,
        options: Options,
        memory: &'m mut [u8],
        (host_cpu_us, step_cpu_us): (u64, u64),
    ) -> Result<FileSystem<'m>, BenchError> {
        let mut fs = Fs::format(chip, options, Format::default(), memory).map_err(failed)?;
        fs.nand_mut().reset_counters();
        let page = vec![0; fs.page_size()];
        Ok(FileSystem { fs, files: BTreeMap::new(), written: BTreeSet::new(), page, host_cpu_us, step_cpu_us })
    }

    pub(crate) fn fs(&mut self) -> &mut Fs<'m, Sim> {
        &mut self.fs
    }

    /// The chip's clock, microseconds.
    pub(crate) fn now_us(&self) -> u64 {
        self.fs.nand().clock_ns() / 1000
    }

    fn advance_us(&mut self, us: u64) {
        self.fs.nand_mut().advance_ns(us * 1000);
    }

    /// Pages of files that can be written.
    pub(crate) fn available_pages(&mut self) -> Result<u64, BenchError> {
        Ok(self.fs.statfs().map_err(failed)?.blocks_available)
    }

    /// Lets idle time pass until then: steps are done when they are due. One that has begun is brought to its end.
    pub(crate) fn idle_until(&mut self, at_us: u64) -> Result<(), BenchError> {
        while self.now_us() < at_us {
            let now_us = self.now_us();
            let due_us = self.fs.step_due().map(|due| microseconds(due).max(now_us)).filter(|&due_us| due_us < at_us);
            let Some(due_us) = due_us else {
                self.advance_us(at_us - now_us);
                break;
            };
            self.advance_us(due_us - now_us);
            // The chip's clock is finer than that of the steps.
            if self.fs.step(time(self.now_us() + 1)).map_err(failed)? {
                self.advance_us(self.step_cpu_us);
            }
        }
        Ok(())
    }

    fn fill(page: &mut [u8], file: u32, index: u32) {
        page.fill(file as u8 ^ index as u8 | 1);
        page[..4].copy_from_slice(&file.to_le_bytes());
        page[4..8].copy_from_slice(&index.to_le_bytes());
    }

    /// A request to write a page of a file, which is made if it is not there. It takes until the clock says.
    pub(crate) fn write(&mut self, file: u32, index: u32) -> Result<(), BenchError> {
        self.fs.request_begin(time(self.now_us())).map_err(failed)?;
        self.advance_us(self.host_cpu_us);
        let ino = self.made(file)?;
        Self::fill(&mut self.page, file, index);
        let offset = u64::from(index) * self.page.len() as u64;
        self.fs.write_at(ino, offset, &self.page).map_err(failed)?;
        self.written.insert((file, index));
        self.fs.request_end(time(self.now_us()));
        Ok(())
    }

    /// A request to delete a file.
    pub(crate) fn delete(&mut self, file: u32) -> Result<(), BenchError> {
        if self.files.remove(&file).is_none() {
            return Ok(());
        }
        self.written.retain(|&(other, _)| other != file);
        self.fs.request_begin(time(self.now_us())).map_err(failed)?;
        self.fs.unlink(Ino::ROOT, format!("file-{file}").as_bytes()).map_err(failed)?;
        self.fs.request_end(time(self.now_us()));
        Ok(())
    }

    /// A request of a program. Bytes are those of the pages that [`write`](FileSystem::write) writes; a file is durable when it is synced or closed. Files
    /// that take such requests are not compared at the end.
    pub(crate) fn call(&mut self, verb: FileVerb) -> Result<(), BenchError> {
        let file = match verb {
            FileVerb::Delete { file } => return self.delete(file),
            FileVerb::Read { file, .. }
            | FileVerb::Write { file, .. }
            | FileVerb::Sync { file }
            | FileVerb::Close { file } => file,
        };
        self.fs.request_begin(time(self.now_us())).map_err(failed)?;
        let ino = self.made(file)?;
        match verb {
            FileVerb::Read { offset, length, .. } => {
                let mut bytes = vec![0; length as usize];
                self.fs.read_at(ino, offset, &mut bytes).map(drop)
            }
            FileVerb::Write { offset, length, .. } => {
                let bytes = vec![file as u8; length as usize];
                self.fs.write_at(ino, offset, &bytes).map(drop)
            }
            _ => self.fs.fsync(ino),
        }
        .map_err(failed)?;
        self.fs.request_end(time(self.now_us()));
        Ok(())
    }

    /// The file of a number, made if it is not there.
    fn made(&mut self, file: u32) -> Result<Ino, BenchError> {
        if let Some(&ino) = self.files.get(&file) {
            return Ok(ino);
        }
        let ino = self.fs.create(Ino::ROOT, format!("file-{file}").as_bytes(), FILE).map_err(failed)?;
        self.files.insert(file, ino);
        Ok(ino)
    }

    /// Compares every page of every file, and holds the volume against every invariant.
    pub(crate) fn verify(mut self) -> Result<(), BenchError> {
        self.fs.sync().map_err(failed)?;
        let mut found = vec![0; self.page.len()];
        for &(file, index) in &self.written {
            Self::fill(&mut self.page, file, index);
            self.fs.read_at(self.files[&file], u64::from(index) * found.len() as u64, &mut found).map_err(failed)?;
            if found != self.page {
                return Err(BenchError::Other(format!("page {index} of file {file} is not what was written")));
            }
        }
        let mut violations = Vec::new();
        self.fs.verify(&mut [], &mut |violation| violations.push(violation.to_string())).map_err(failed)?;
        match violations.first() {
            None => Ok(()),
            Some(violation) => Err(BenchError::Other(format!("an invariant is violated: {violation}"))),
        }
    }
}
