//! Buckets that are behind: the inode of a file was programmed, and its directory was not yet.
//!
//! Whatever comes through a bucket goes through here. Since the table is bounded, so is what a mount after a cut has to put right.

use nandu_media::dffs::POINTER_BASE;
use nandu_nand::{Nand, PageAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::chain::Fold;
use crate::dffs::{Dffs, Result};
use crate::error::Error;
use crate::pages::CHAIN;

/// A bucket that is behind.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Lag {
    /// Where the bucket on flash points.
    pub(crate) behind: u32,
    /// Where the inode is.
    pub(crate) current: u32,
    pub(crate) directory: u32,
    pub(crate) bucket: u32,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Lags<'m> {
    entries: &'m mut [Lag],
    count: usize,
}

impl<'m> Lags<'m> {
    pub(crate) fn new(entries: &'m mut [Lag]) -> Lags<'m> {
        Lags { entries, count: 0 }
    }

    pub(crate) fn all(&self) -> &[Lag] {
        &self.entries[..self.count]
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count == self.entries.len()
    }

    /// Where the inode is to which a bucket points that has this address.
    pub(crate) fn resolve(&self, address: u32) -> PageAddr {
        let lag = self.all().iter().find(|lag| lag.behind == address);
        PageAddr(lag.map_or(address, |lag| lag.current))
    }

    /// Where the bucket on flash points whose inode is at this page.
    pub(crate) fn behind(&self, current: PageAddr) -> u32 {
        let lag = self.all().iter().find(|lag| lag.current == current.0);
        lag.map_or(current.0, |lag| lag.behind)
    }

    /// Notes that a bucket is behind; `false` if there is no room.
    pub(crate) fn set(&mut self, lag: Lag) -> bool {
        if let Some(known) = self.entries[..self.count].iter_mut().find(|known| known.behind == lag.behind) {
            known.current = lag.current;
            return true;
        }
        let Some(entry) = self.entries.get_mut(self.count) else { return false };
        *entry = lag;
        self.count += 1;
        true
    }

    pub(crate) fn remove(&mut self, behind: u32) {
        if let Some(at) = self.all().iter().position(|lag| lag.behind == behind) {
            // Order is kept, so that the oldest is brought up to date first.
            self.entries.copy_within(at + 1..self.count, at);
            self.count -= 1;
        }
    }
}

impl<N: Nand> Dffs<'_, N> {
    /// Programs the page of the directory with this bucket, and with it all that are behind in that page.
    pub(crate) fn catch_up(&mut self, lag: Lag) -> Result<(), N> {
        match self.find_pointer(lag.directory, lag.bucket as u16, lag.behind + POINTER_BASE, CHAIN) {
            Ok(Some(_)) => self.program_chain(CHAIN, Fold::All)?,
            Ok(None) => {}
            // A directory that cannot be read is lost, and what is in it: whoever asks is told.
            Err(Error::Corrupt { .. }) if self.is_last_attempt => {}
            Err(error) => return Err(error),
        }
        // Of a bucket that is gone, nothing is behind.
        self.lags.remove(lag.behind);
        Ok(())
    }

    /// Makes room for the bucket to be behind that leads to the inode at this page. Nothing is programmed where it is behind already: recovery
    /// relies on that, since what it programs first has to be the inode that a cut may have left unstable.
    pub(crate) fn make_lag_room(&mut self, page: PageAddr) -> Result<(), N> {
        match self.lags.all().first().copied() {
            Some(oldest) if self.lags.is_full() && self.lags.behind(page) == page.0 => self.catch_up(oldest),
            _ => Ok(()),
        }
    }

    /// Programs every page of a directory that is behind.
    pub(crate) fn catch_up_all(&mut self) -> Result<(), N> {
        while let Some(lag) = self.lags.all().first().copied() {
            self.catch_up(lag)?;
        }
        Ok(())
    }
}
