//! An owner as simple as can be: an array of values, each in a page of its own, and on every page with a header the whole map. With raw pages every other value is in one, durable by its tag where it can have one.

use std::collections::{BTreeMap, BTreeSet};

use nandu_log::{
    Budget, Claim, Claimed, Fate, Grant, Kind, Log, LogError, LogOptions, TAIL_MAX, Tagged, Victim, Whose,
};
use nandu_nand::{CellMode, Nand, PageAddr};

const NONE: u32 = u32::MAX;
const SELF: u32 = u32::MAX - 1;

/// What the toy holds.
pub(crate) type Values = BTreeMap<u32, u64>;

pub(crate) struct Toy<'m, N: Nand> {
    pub(crate) log: Log<'m, N>,
    /// Page of each entry.
    map: Vec<Option<PageAddr>>,
    /// The newest commit, if it holds no entry of its own and so dies with the next commit.
    lone_root: Option<PageAddr>,
    buffer: Vec<u8>,
    /// Moves that are due.
    due: u32,
    /// The chip is one that loses data: what the log believes may be less than what the toy hopes for.
    pub(crate) is_lenient: bool,
    was_exact: bool,
    /// Pages were copied since the newest commit.
    has_copied: bool,
    has_raw: bool,
    /// Copies that no commit may name yet.
    unsettled: Vec<Copied>,
    /// Pages that shared their cells with one that failed: copies, and others.
    pub(crate) lost: (u32, u32),
    /// How often the log did not know whose raw pages are.
    pub(crate) searches: u32,
    /// Pages of the tail that the mount found.
    pub(crate) tail: u32,
    /// Pages that the toy named for a recount.
    pub(crate) recounts: u32,
    /// What it says of a page that cannot be read.
    pub(crate) unreadable: Fate,
}

/// A copy of a raw page that no commit may name yet.
struct Copied {
    id: u32,
    source: PageAddr,
    /// Erases of the block of the source: once there are more, its page is another.
    erases: u32,
    page: PageAddr,
}

pub(crate) type ToyError<N> = LogError<<N as nandu_nand::ErrorType>::Error>;

fn misplaced<E: core::error::Error>(page: PageAddr) -> LogError<E> {
    LogError::Corrupt { page, why: nandu_log::Malformed::Misplaced }
}

pub(crate) fn memory(geometry: &nandu_nand::Geometry, options: &LogOptions) -> Vec<u8> {
    vec![0xa5; Log::<nandu_sim::Sim>::memory_required(geometry, options)]
}

impl<'m, N: Nand> Toy<'m, N> {
    /// Entries that a toy on this chip has.
    pub(crate) fn entries(log: &Log<'_, N>) -> usize {
        let room = (log.page_size() - log.header_size() - 12) / 4;
        room.min(log.geometry().page_count() as usize / 2)
    }

    pub(crate) fn format(nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, ToyError<N>> {
        Ok(Self::around(crate::formatted(nand, options, memory)?, options.has_raw))
    }

    fn around(log: Log<'m, N>, has_raw: bool) -> Self {
        let entries = Self::entries(&log);
        let buffer = vec![0; log.page_size()];
        Toy {
            log,
            map: vec![None; entries],
            lone_root: None,
            buffer,
            due: 0,
            is_lenient: false,
            was_exact: false,
            has_copied: false,
            has_raw,
            unsettled: Vec::new(),
            lost: (0, 0),
            searches: 0,
            tail: 0,
            recounts: 0,
            unreadable: Fate::Unreadable,
        }
    }

    pub(crate) fn mount(nand: N, options: LogOptions, memory: &'m mut [u8]) -> Result<Self, ToyError<N>> {
        let mut toy = Self::around(crate::mounted(nand, options, memory)?, options.has_raw);
        if let Some(root) = toy.log.committed() {
            let info = toy.log.read(root, &mut toy.buffer)?;
            assert_eq!(info.kind, nandu_log::PageKind::Commit);
            let (id, _, map) = toy.parse();
            toy.lone_root = (id == NONE).then_some(root);
            let page = |entry| match entry {
                NONE => None,
                SELF => Some(root),
                page => Some(PageAddr(page)),
            };
            toy.map = map.into_iter().map(page).collect();
        }
        toy.take_over_tail()?;
        Ok(toy)
    }

    /// Names the pages of the tail that the mount found, the last of them in a place where it was not torn.
    fn take_over_tail(&mut self) -> Result<(), ToyError<N>> {
        let mut last = None;
        for place in 0..TAIL_MAX {
            match self.log.read_tail(place, &mut self.buffer)? {
                Tagged::End => break,
                Tagged::Other | Tagged::Lost => {}
                Tagged::Of(page, tag) => {
                    let id = u32::from_le_bytes(tag[..4].try_into().unwrap());
                    if let Some(old) = self.map[id as usize].replace(page) {
                        self.log.dies(old);
                    }
                    self.tail += 1;
                    last = Some((id, page, self.buffer.clone()));
                }
            }
        }
        let Some((id, page, bytes)) = last.filter(|_| !self.log.is_read_only()) else { return Ok(()) };
        let Claimed::Granted(mut grant) = self.log.claim_with(Claim::Bury, (1, Some(CellMode::Slc)), 0)? else {
            panic!("no room")
        };
        self.buffer = bytes;
        let copy = self.log.append(&mut self.buffer, Kind::Raw(&id.to_le_bytes(), CellMode::Slc), &mut grant)?;
        self.log.dies(page);
        self.map[id as usize] = Some(copy);
        let map = self.map.clone();
        self.fill(NONE, 0, &map);
        self.commit(grant, NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Entry, value and map of the page in the buffer.
    fn parse(&self) -> (u32, u64, Vec<u32>) {
        let body = &self.buffer[self.log.header_size()..];
        let word = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        let value = u64::from_le_bytes(body[4..12].try_into().unwrap());
        (word(0), value, (0..self.map.len()).map(|entry| word(12 + 4 * entry)).collect())
    }

    fn fill(&mut self, id: u32, value: u64, map: &[Option<PageAddr>]) {
        let header = self.log.header_size();
        let body = &mut self.buffer[header..];
        body.fill(0);
        body[..4].copy_from_slice(&id.to_le_bytes());
        body[4..12].copy_from_slice(&value.to_le_bytes());
        for (place, (entry, page)) in body[12..].chunks_exact_mut(4).zip(map.iter().enumerate()) {
            let stored = match page {
                _ if entry as u32 == id => SELF,
                None => NONE,
                Some(page) => page.0,
            };
            place.copy_from_slice(&stored.to_le_bytes());
        }
    }

    pub(crate) fn get(&mut self, id: u32) -> Result<Option<u64>, ToyError<N>> {
        let Some(page) = self.map[id as usize] else { return Ok(None) };
        if self.is_raw(id) {
            self.log.read_raw(page, &mut self.buffer)?;
            let (start, value) =
                (self.buffer[..4].to_vec(), u64::from_le_bytes(self.buffer[4..12].try_into().unwrap()));
            let is_whole = start == id.to_le_bytes() && self.buffer[12..].iter().all(|&byte| byte == value as u8);
            return if is_whole { Ok(Some(value)) } else { Err(misplaced(page)) };
        }
        self.log.read(page, &mut self.buffer)?;
        let (stored, value, _) = self.parse();
        if stored != id {
            return Err(misplaced(page));
        }
        Ok(Some(value))
    }

    /// Whether the value of an entry is in a raw page.
    pub(crate) fn is_raw(&self, id: u32) -> bool {
        self.has_raw && id.is_multiple_of(2)
    }

    fn fill_raw(&mut self, id: u32, value: u64) {
        self.buffer.fill(value as u8);
        self.buffer[..4].copy_from_slice(&id.to_le_bytes());
        self.buffer[4..12].copy_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn values(&mut self) -> Result<Values, ToyError<N>> {
        let mut values = Values::new();
        for id in 0..self.map.len() as u32 {
            if let Some(value) = self.get(id)? {
                values.insert(id, value);
            }
        }
        Ok(values)
    }

    /// Pays the share of collecting and makes room.
    fn prepare(&mut self, want: Claim, (pages, raw): (u32, Option<CellMode>), live: u32) -> Result<Grant, ToyError<N>> {
        let raws = u32::from(raw.is_some());
        let mut budget = self.log.instalment((pages + raws, self.due), (4, 1));
        self.work(&mut budget)?;
        self.due = budget.left_due();
        for _ in 0..10_000 {
            // A commit that holds no entry dies with the next one.
            let more = live.saturating_sub(self.lone_root.is_some().into());
            match self.log.claim_with(want, (pages, raw), more.saturating_sub(raws))? {
                Claimed::Granted(grant) => return Ok(grant),
                Claimed::Collect(mut budget) => {
                    let before = self.log.spent();
                    self.work(&mut budget)?;
                    if self.log.spent() == before && !self.unsettled.is_empty() {
                        self.log.settle_copies();
                        self.name_settled();
                        self.bury()?;
                    }
                }
                Claimed::Bury => self.bury()?,
                Claimed::Recount => self.recount()?,
            }
            if self.log.dying_room() < 16 {
                self.bury()?;
            }
        }
        panic!("no room is made and none refused: {:?}", self.log.stats());
    }

    pub(crate) fn work(&mut self, budget: &mut Budget) -> Result<(), ToyError<N>> {
        while let Some(victim) = self.log.victim(budget)? {
            let fate = match self.relocate(&victim) {
                Err(LogError::Full) => Fate::Stays,
                fate => fate?,
            };
            self.log.answer(victim, fate, budget);
            self.check_bounds();
        }
        Ok(())
    }

    /// Idle time: collects, and lets deaths count.
    pub(crate) fn idle(&mut self) -> Result<(), ToyError<N>> {
        self.work(&mut Budget::idle(8))?;
        if self.log.has_dying() { self.bury() } else { Ok(()) }
    }

    /// A commit that says what the one before said.
    fn bury(&mut self) -> Result<(), ToyError<N>> {
        let Claimed::Granted(grant) = self.log.claim(Claim::Bury, 1, 0)? else { panic!("a commit has no room") };
        let map = self.map.clone();
        self.fill(NONE, 0, &map);
        self.commit(grant, NONE)
    }

    fn commit(&mut self, grant: Grant, id: u32) -> Result<(), ToyError<N>> {
        if let Some(root) = self.lone_root.take() {
            self.log.dies(root);
        }
        let page = self.log.commit(&mut self.buffer, grant)?;
        self.has_copied = false;
        if id == NONE {
            self.lone_root = Some(page);
        } else {
            self.map[id as usize] = Some(page);
        }
        self.check_bounds();
        Ok(())
    }

    fn recount(&mut self) -> Result<(), ToyError<N>> {
        if self.log.has_dying() || self.has_copied {
            self.bury()?;
        }
        self.recounts += 1;
        self.log.recount_begin();
        for (id, page) in (0_u32..).zip(&self.map) {
            page.iter().for_each(|page| self.log.found(*page, &id.to_le_bytes()));
        }
        self.lone_root.iter().for_each(|page| self.log.found(*page, &[]));
        self.unsettled.iter().for_each(|copy| self.log.found(copy.page, &copy.id.to_le_bytes()));
        self.log.found_all(true);
        self.check_bounds();
        Ok(())
    }

    pub(crate) fn relocate(&mut self, victim: &Victim) -> Result<Fate, ToyError<N>> {
        let page = victim.page();
        if self.log.is_raw(page) {
            return self.relocate_raw(victim);
        }
        if self.lone_root == Some(page) {
            // The next commit says all that it says.
            self.lone_root = None;
            self.log.dies(page);
            return Ok(Fate::Copied(1));
        }
        let Some(id) = self.map.iter().position(|&entry| entry == Some(page)) else { return Ok(Fate::Dead) };
        let value = match self.get(id as u32) {
            Ok(value) => value.unwrap(),
            Err(LogError::Corrupt { .. }) => return Ok(self.unreadable),
            Err(error) => return Err(error),
        };
        let map = self.map.clone();
        self.fill(id as u32, value, &map);
        let new = self.log.copy(&mut self.buffer, Kind::Node, victim)?;
        self.map[id] = Some(new);
        self.has_copied = true;
        self.log.dies(page);
        Ok(Fate::Copied(1))
    }

    fn relocate_raw(&mut self, victim: &Victim) -> Result<Fate, ToyError<N>> {
        let page = victim.page();
        let mut whose = self.log.whose(victim)?;
        if whose == Whose::Unknown {
            self.searches += 1;
            for (id, page) in (0_u32..).zip(&self.map) {
                if let Some(page) = page {
                    self.log.found(*page, &id.to_le_bytes());
                }
            }
            self.log.found_all(true);
            whose = self.log.whose(victim)?;
        }
        let Whose::Of(owner) = whose else {
            assert!(!self.map.contains(&Some(page)), "a page is called nobody's that is somebody's");
            return Ok(Fate::Dead);
        };
        let id = u32::from_le_bytes(owner.key().unwrap().try_into().unwrap());
        if self.map[id as usize] != Some(page) {
            assert!(!self.map.contains(&Some(page)), "it is another's");
            return Ok(Fate::Dead);
        }
        match self.get(id) {
            Ok(_) => {}
            Err(LogError::Corrupt { .. }) => return Ok(self.unreadable),
            Err(error) => return Err(error),
        }
        if self.unsettled.iter().any(|copy| copy.source == page) {
            return Ok(Fate::Stays);
        }
        let new = self.log.copy(&mut self.buffer, Kind::Raw(&id.to_le_bytes(), CellMode::Slc), victim)?;
        self.has_copied = true;
        let is_settled = self.log.is_settled(new);
        if is_settled {
            self.map[id as usize] = Some(new);
            self.log.dies(page);
        } else {
            let erases = self.log.erases(page);
            self.unsettled.push(Copied { id, source: page, erases, page: new });
        }
        self.rescue()?;
        self.name_settled();
        Ok(if is_settled { Fate::Values(1) } else { Fate::Kept })
    }

    /// What failed took other pages with it.
    fn rescue(&mut self) -> Result<(), ToyError<N>> {
        while let Some(rescued) = self.log.rescue(&mut self.buffer)? {
            let id = u32::from_le_bytes(rescued.owner.key().unwrap().try_into().unwrap()) as usize;
            match rescued.to {
                Some(to) if self.map[id] == Some(rescued.from) => {
                    self.map[id] = Some(to);
                    self.log.forget(rescued.from);
                    self.lost.1 += 1;
                }
                Some(to) => self.log.forget(to),
                None => {
                    self.unsettled.retain(|copy| copy.page != rescued.from);
                    self.log.forget(rescued.from);
                    self.lost.0 += 1;
                }
            }
        }
        Ok(())
    }

    /// Names the copies that a commit may name now.
    fn name_settled(&mut self) {
        let (settled, unsettled) = core::mem::take(&mut self.unsettled)
            .into_iter()
            .partition(|copy| self.log.is_settled(copy.page) && self.log.dying_room() > 8);
        self.unsettled = unsettled;
        for Copied { id, source, erases, page } in Vec::into_iter(settled) {
            if self.map[id as usize] == Some(source) && self.log.erases(source) == erases {
                self.map[id as usize] = Some(page);
                self.log.dies(source);
                self.log.goes_late(source);
            } else {
                self.log.forget(page);
            }
        }
    }

    /// Changes several entries, all or none; of those in raw pages it puts one at most.
    pub(crate) fn batch(&mut self, changes: &[(u32, Option<u64>)]) -> Result<(), ToyError<N>> {
        let puts: Vec<_> = changes.iter().filter_map(|&(id, value)| Some((id, value?))).collect();
        let new = puts.iter().filter(|&&(id, _)| self.map[id as usize].is_none()).count() as u32;
        let want = match (puts.len(), new) {
            (0, _) => Claim::Free,
            (_, 0) => Claim::Replace,
            _ => Claim::Grow,
        };
        let (raws, puts): (Vec<_>, Vec<_>) = puts.into_iter().partition(|&(id, _)| self.is_raw(id));
        let is_lone = puts.is_empty() && want != Claim::Free;
        let mode = if self.log.has_mlc() && changes[0].0.is_multiple_of(3) { CellMode::Mlc } else { CellMode::Slc };
        let pages = (puts.len().max(1) as u32, raws.first().map(|_| mode));
        let mut grant = self.prepare(want, pages, new + u32::from(is_lone))?;
        for &(id, value) in changes {
            if let Some(page) = self.map[id as usize] {
                self.log.dies(page);
            }
            if value.is_none() {
                self.map[id as usize] = None;
            }
        }
        let mut tag = [0; 12];
        for &(id, value) in &raws {
            self.fill_raw(id, value);
            tag[..4].copy_from_slice(&id.to_le_bytes());
            let kind = match changes.len() {
                1 if mode == CellMode::Slc => Kind::Tagged(&tag[..4], &tag),
                _ => Kind::Raw(&tag[..4], mode),
            };
            let page = self.log.append(&mut self.buffer, kind, &mut grant)?;
            self.map[id as usize] = Some(page);
            self.rescue()?;
            self.name_settled();
            if self.log.is_tagged(page) {
                return Ok(());
            }
        }
        let Some((&(last, value), others)) = puts.split_last() else {
            let map = self.map.clone();
            self.fill(NONE, 0, &map);
            return self.commit(grant, NONE);
        };
        for &(id, value) in others {
            let map = self.map.clone();
            self.fill(id, value, &map);
            self.map[id as usize] = Some(self.log.append(&mut self.buffer, Kind::Node, &mut grant)?);
        }
        let map = self.map.clone();
        self.fill(last, value, &map);
        self.commit(grant, last)
    }

    pub(crate) fn put(&mut self, id: u32, value: u64) -> Result<(), ToyError<N>> {
        self.batch(&[(id, Some(value))])
    }

    pub(crate) fn delete(&mut self, id: u32) -> Result<(), ToyError<N>> {
        self.batch(&[(id, None)])
    }

    /// Unmounts, with all deaths counted.
    pub(crate) fn unmount(mut self) -> Result<N, ToyError<N>> {
        for copy in core::mem::take(&mut self.unsettled) {
            self.log.forget(copy.page);
        }
        if self.log.has_dying() {
            self.bury()?;
        }
        self.log.unmount().map_err(|(error, _)| error)
    }

    /// N5, from the owner's side: no block holds more live pages than the log believes.
    pub(crate) fn check_bounds(&mut self) {
        if self.is_lenient {
            return;
        }
        // Only a mount after a cut, and what the owner contradicts, make counts less than the truth.
        assert!(self.log.is_exact() || !self.was_exact, "the owner said what cannot be by the counts");
        self.was_exact = self.log.is_exact();
        let mut live = BTreeMap::new();
        let pages: BTreeSet<PageAddr> = self.map.iter().flatten().chain(&self.lone_root).copied().collect();
        let pages = pages.into_iter().chain(self.unsettled.iter().map(|copy| copy.page)).collect::<BTreeSet<_>>();
        for page in pages {
            *live.entry(self.log.geometry().block_of(page)).or_insert(0) += 1;
        }
        for (block, count) in live {
            assert!(self.log.live_bound(block) >= count, "N5: block {block} holds {count} live pages");
        }
    }

    pub(crate) fn verify(&mut self) -> Result<(), ToyError<N>> {
        let mut violations = Vec::new();
        self.check_bounds();
        self.log.verify(&mut |violation| violations.push(violation.to_string()))?;
        assert!(violations.is_empty(), "{violations:?}");
        Ok(())
    }
}
