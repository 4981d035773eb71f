//! File systems, as liveness asks of them.

use nandu_files::errno::{ENOSPC, EROFS};
use nandu_files::{FileError, FileKind, FileSystem, Ino, Time};
use nandu_sim::Sim;

use super::{Asked, Kind, Refusal, Served};
use crate::operation::NEW;
use crate::seen::{names, violations};
use crate::system::System;

/// Pages that a piece of idle time looks at.
const PIECE: u32 = 64;

/// Pages that deletions may hold which wait for others to go to their leaves with, in a file system that does not bring them there in idle time: the leaf of each, and what the leaf names. A page of changes names so many more
/// as leaves are smaller. Four of 1391 volumes, on small chips with pages of 512 bytes, hold more.
const HELD: u64 = 64;
const HELD_SHARE: u64 = 7;
const HELD_LARGE: u64 = 16;

/// When the campaign is over, in seconds since 1970: later than any of its calls.
const OVER: i64 = 1 << 31;

/// Volumes of a kind of file system.
#[derive(Clone, Copy, Debug)]
pub struct Files<'s, S>(pub &'s S);

/// One of them that is mounted.
struct Mounted<'s, 'm, S: System> {
    system: &'s S,
    fs: S::Mounted<'m, &'m mut Sim>,
    now: Time,
    page: Vec<u8>,
}

/// What an error is to who asks.
fn refusal(error: impl FileError) -> Refusal {
    match error.errno() {
        ENOSPC => Refusal::Full,
        EROFS => Refusal::ReadOnly,
        _ => Refusal::Failed(error.to_string()),
    }
}

impl<S: System> Files<'_, S> {
    fn mounted<'m>(&self, fs: S::Mounted<'m, &'m mut Sim>) -> Mounted<'_, 'm, S> {
        let page = vec![7; fs.nand().chip().geometry.page_size as usize];
        Mounted { system: self.0, fs, now: Time::from_seconds(OVER), page }
    }
}

impl<S: System> Kind for Files<'_, S> {
    fn memory_size(&self, chip: &Sim) -> usize {
        self.0.memory_size(&chip.chip().geometry)
    }

    fn held_max(&self, chip: &Sim, room: u64) -> u64 {
        let most = if chip.chip().geometry.page_size < 2048 { HELD } else { HELD_LARGE };
        most.min(room.div_ceil(HELD_SHARE))
    }

    fn format<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>> {
        Ok(Box::new(self.mounted(self.0.format(chip, memory).map_err(refusal)?)))
    }

    fn open<'m>(&'m self, chip: &'m mut Sim, memory: &'m mut [u8]) -> Asked<Box<dyn Served + 'm>> {
        Ok(Box::new(self.mounted(self.0.mount(chip, memory).map_err(refusal)?)))
    }
}

impl<'m, S: System> Mounted<'_, 'm, S> {
    /// A request, as systems with policies want it.
    fn request<T>(
        &mut self,
        request: impl FnOnce(
            &mut S::Mounted<'m, &'m mut Sim>,
        ) -> Result<T, <S::Mounted<'m, &'m mut Sim> as FileSystem>::Error>,
    ) -> Asked<T> {
        self.system.begin(&mut self.fs, self.now, false);
        let outcome = request(&mut self.fs);
        self.system.end(&mut self.fs, self.now);
        outcome.map_err(refusal)
    }

    fn remove(&mut self, directory: Ino, name: &[u8]) -> Asked<()> {
        let found = self.fs.lookup(directory, name).map_err(refusal)?;
        if self.fs.stat(found).map_err(refusal)?.kind != FileKind::Directory {
            return self.request(|fs| fs.unlink(directory, name));
        }
        for (name, _, _) in names(&mut self.fs, found).map_err(refusal)? {
            self.remove(found, &name)?;
        }
        self.request(|fs| fs.rmdir(directory, name))
    }
}

impl<S: System> Served for Mounted<'_, '_, S> {
    fn chip(&self) -> &Sim {
        self.fs.nand()
    }

    fn let_go(&mut self) -> Asked<()> {
        self.system.let_go(&mut self.fs).map_err(refusal)
    }

    fn put(&mut self, number: u32) -> Asked<()> {
        let (name, page) = (format!("live-{number}"), std::mem::take(&mut self.page));
        let made = self.request(|fs| fs.create(Ino::ROOT, name.as_bytes(), NEW));
        let put = made.and_then(|file| self.request(|fs| fs.write_at(file, 0, &page)));
        self.page = page;
        if put? < self.page.len() { Err(Refusal::Full) } else { Ok(()) }
    }

    fn names(&mut self) -> Asked<Vec<Vec<u8>>> {
        let found = names(&mut self.fs, Ino::ROOT).map_err(refusal)?;
        Ok(found.into_iter().map(|(name, _, _)| name).collect())
    }

    fn delete(&mut self, name: &[u8]) -> Asked<()> {
        self.remove(Ino::ROOT, name)
    }

    fn sync(&mut self) -> Asked<()> {
        self.request(FileSystem::sync)
    }

    fn merge(&mut self) -> Asked<()> {
        self.sync()
    }

    fn idle(&mut self) -> Asked<bool> {
        if !self.system.has_steps() {
            return self.fs.idle(PIECE).map_err(refusal);
        }
        let stepped = self.system.step(&mut self.fs, self.now);
        self.now = stepped.map_or(self.now, |stepped| self.now.max(stepped.at));
        Ok(stepped.is_some())
    }

    fn room(&mut self) -> Asked<u64> {
        Ok(self.fs.statfs().map_err(refusal)?.blocks_free)
    }

    fn violations(&mut self) -> Asked<u64> {
        Ok(violations(&mut self.fs).len() as u64)
    }

    fn unmount(self: Box<Self>) -> Asked<()> {
        self.fs.unmount().map(drop).map_err(refusal)
    }
}
