//! An owner of many pages that keeps its map in memory: for measuring, not for cuts.

use nandu_log::{Budget, Claim, Claimed, Fate, Grant, Kind, Log, LogError, LogOptions, Victim};
use nandu_nand::{Geometry, PageAddr};
use nandu_sim::{Chip, Counters, Sim, SimError};

pub(crate) type Error = LogError<SimError>;

/// A chip like [`Chip::TINY`], in another shape.
pub(crate) const fn chip(blocks: u32, pages: u32, page_size: u32) -> Chip {
    let geometry = Geometry {
        page_size,
        program_unit: page_size,
        pages_per_block: pages,
        ..Chip::TINY.with_blocks(blocks).geometry
    };
    Chip { name: "shaped", geometry, ..Chip::TINY }
}

/// An owner of so many pages.
pub(crate) struct Pages<'m> {
    pub(crate) log: Log<'m, Sim>,
    place: Vec<Option<PageAddr>>,
    /// Which entry each page of the chip was programmed for.
    owner: Vec<u32>,
    /// The newest commit, if it holds no entry.
    lone: Option<PageAddr>,
    buffer: Vec<u8>,
    /// Moves that are due.
    due: u32,
}

const NONE: u32 = u32::MAX;

impl<'m> Pages<'m> {
    pub(crate) fn format(sim: Sim, options: LogOptions, memory: &'m mut [u8]) -> Pages<'m> {
        let log = crate::formatted(sim, options, memory).unwrap();
        let count = log.geometry().page_count() as usize;
        let buffer = vec![0; log.page_size()];
        Pages { log, place: vec![None; count], owner: vec![NONE; count], lone: None, buffer, due: 0 }
    }

    pub(crate) fn holds(&self, id: u32) -> bool {
        self.place[id as usize].is_some()
    }

    pub(crate) fn count(&self) -> u32 {
        self.place.iter().flatten().count() as u32
    }

    /// What a piece of work costs on flash.
    pub(crate) fn cost(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Error>) -> (Result<(), Error>, Counters) {
        let before = *self.log.nand().counters();
        let result = work(self);
        (result, self.log.nand().counters().since(&before))
    }

    fn work(&mut self, budget: &mut Budget) -> Result<(), Error> {
        while let Some(victim) = self.log.victim(budget)? {
            let fate = match self.relocate(&victim) {
                Err(LogError::Full) => Fate::Stays,
                fate => fate?,
            };
            self.log.answer(victim, fate, budget);
        }
        Ok(())
    }

    fn relocate(&mut self, victim: &Victim) -> Result<Fate, Error> {
        let page = victim.page();
        if self.lone == Some(page) {
            self.lone = None;
            self.log.dies(page);
            return Ok(Fate::Copied(1));
        }
        let id = self.owner[page.0 as usize];
        if id == NONE || self.place[id as usize] != Some(page) {
            return Ok(Fate::Dead);
        }
        self.log.read(page, &mut self.buffer)?;
        let copy = self.log.copy(&mut self.buffer, Kind::Node, victim)?;
        self.set(id, Some(copy));
        Ok(Fate::Copied(1))
    }

    /// An entry stands elsewhere; its page before dies.
    fn set(&mut self, id: u32, page: Option<PageAddr>) {
        if let Some(page) = page {
            self.owner[page.0 as usize] = id;
        }
        if let Some(old) = std::mem::replace(&mut self.place[id as usize], page) {
            self.log.dies(old);
        }
    }

    /// Room for a commit, after which so many pages more live.
    fn claim(&mut self, want: Claim, live: u32) -> Result<Grant, Error> {
        let mut budget = self.log.instalment((1, self.due), (4, 1));
        self.work(&mut budget)?;
        self.due = budget.left_due();
        for _ in 0..10_000 {
            // A commit that holds no entry dies with the next one.
            let more = live.saturating_sub(self.lone.is_some().into());
            match self.log.claim(want, 1, more)? {
                Claimed::Granted(grant) => return Ok(grant),
                Claimed::Collect(mut budget) => self.work(&mut budget)?,
                Claimed::Bury => self.bury()?,
                Claimed::Recount => panic!("counts are not the truth, though nothing was cut"),
            }
            if self.log.dying_room() < 16 {
                self.bury()?;
            }
        }
        panic!("no room is made and none refused: {:?}", self.log.stats());
    }

    fn bury(&mut self) -> Result<(), Error> {
        let Claimed::Granted(grant) = self.log.claim(Claim::Bury, 1, 0)? else { panic!("a commit has no room") };
        self.commit(NONE, grant)
    }

    fn commit(&mut self, id: u32, grant: Grant) -> Result<(), Error> {
        if let Some(lone) = self.lone.take() {
            self.log.dies(lone);
        }
        let header = self.log.header_size();
        self.buffer[header..header + 4].copy_from_slice(&id.to_le_bytes());
        if let Some(old) = self.place.get_mut(id as usize).and_then(Option::take) {
            self.log.dies(old);
        }
        let page = self.log.commit(&mut self.buffer, grant)?;
        if id == NONE {
            self.lone = Some(page);
        } else {
            self.owner[page.0 as usize] = id;
            self.place[id as usize] = Some(page);
        }
        Ok(())
    }

    pub(crate) fn put(&mut self, id: u32) -> Result<(), Error> {
        let (want, live) = if self.holds(id) { (Claim::Replace, 0) } else { (Claim::Grow, 1) };
        let grant = self.claim(want, live)?;
        self.commit(id, grant)
    }

    pub(crate) fn delete(&mut self, id: u32) -> Result<(), Error> {
        let grant = self.claim(Claim::Free, 0)?;
        self.set(id, None);
        self.commit(NONE, grant)
    }

    /// Idle time: collects, and lets deaths count.
    pub(crate) fn idle(&mut self) -> Result<(), Error> {
        self.work(&mut Budget::idle(8))?;
        if self.log.has_dying() { self.bury() } else { Ok(()) }
    }

    /// Reads every entry back.
    pub(crate) fn check(&mut self) {
        for id in 0..self.place.len() {
            let Some(page) = self.place[id] else { continue };
            self.log.read(page, &mut self.buffer).unwrap();
            let header = self.log.header_size();
            assert_eq!(self.buffer[header..header + 4], (id as u32).to_le_bytes());
        }
        assert_eq!(self.log.live_pages(), self.count() + u32::from(self.lone.is_some()), "counts are exact");
    }
}
